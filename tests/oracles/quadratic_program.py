# SPDX-License-Identifier: BSD-3-Clause
"""The two quadratic programs of 000, 003 and 004, written out line by line.

    minimise 1/2 u'Pu + q'u  subject to  A u <= limits, the first ``equalities`` lines with equality

as ``(P, q, A, limits, equalities)`` in dense matrices; rows of cost 0 are no part of either.
"""

from __future__ import annotations

import numpy as np


def primal(X, y, C, *, loss="hinge", intercept="none", intercept_scaling=1.0):
    """Over u = (w, b, xi); without b where there is none."""
    rows = np.flatnonzero(C)
    d, with_b = X.shape[1], int(intercept != "none")
    size = d + with_b + len(rows)
    P, q = np.zeros((size, size)), np.zeros(size)
    for j in range(d):
        P[j, j] = 1.0  # 1/2 |w|^2
    if intercept == "regularised":
        P[d, d] = 1.0 / intercept_scaling**2
    A, limits = [], []
    for place, i in enumerate(rows, start=d + with_b):
        if loss == "squared_hinge":
            P[place, place] = 2.0 * C[i]
        else:
            q[place] = C[i]
        line = np.zeros(size)  # y_i (<w, x_i> + b) >= 1 - xi_i
        line[:d] = -y[i] * X[i]
        line[d : d + with_b] = -y[i]
        line[place] = -1.0
        A.append(line)
        limits.append(-1.0)
    if loss == "hinge":
        for place in range(d + with_b, size):
            line = np.zeros(size)  # xi_i >= 0
            line[place] = -1.0
            A.append(line)
            limits.append(0.0)
    return P, q, np.array(A), np.array(limits), 0


def dual(X, y, C, *, loss="hinge", intercept="none", intercept_scaling=1.0):
    """Over u = alpha."""
    rows = np.flatnonzero(C)
    size = len(rows)
    constant = intercept_scaling if intercept == "regularised" else 0.0  # the augmentation trick
    P, q = np.zeros((size, size)), -np.ones(size)
    for k, i in enumerate(rows):
        for other, j in enumerate(rows):
            P[k, other] = y[i] * y[j] * (X[i] @ X[j] + constant**2)
        if loss == "squared_hinge":
            P[k, k] += 1.0 / (2.0 * C[i])
    A, limits = [], []
    if intercept == "exact":
        A.append(y[rows])
        limits.append(0.0)
    for k in range(size):  # alpha_i >= 0
        A.append(-np.eye(size)[k])
        limits.append(0.0)
    if loss == "hinge":
        for k, i in enumerate(rows):  # alpha_i <= C_i
            A.append(np.eye(size)[k])
            limits.append(C[i])
    return P, q, np.array(A), np.array(limits), int(intercept == "exact")
