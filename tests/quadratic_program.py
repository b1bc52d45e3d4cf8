# SPDX-License-Identifier: BSD-3-Clause
"""The referee: the primal problem with slack variables (000, 003, 004), solved off the shelf.

    minimise    1/2 |w|^2 + sum_i C_i xi_i      (squared hinge: C_i xi_i^2)
    subject to  y_i (<w, x_i> + b) >= p_i - xi_i,   xi_i >= 0      (p_i = 1 in classification)

by the interior-point solver Clarabel. The logistic loss is smooth: Newton's method in a trust region. With
the l1 penalty, w is the difference of two vectors that are not negative, whose sum counts, and the logistic
loss is two exponential cones for each row.
Nothing here imports ``maxmargin``.
"""

from __future__ import annotations

import clarabel
import numpy as np
from scipy import optimize, sparse
from scipy.special import expit


def solve_by_quadratic_program(
    X, y, costs, loss, intercept, intercept_scaling=1.0, *, fixed_intercept=0.0, targets=1.0, penalty="l2"
):
    """``(w, b, objective)`` at the optimum, to about ten digits of the objective.

    A fixed_intercept is a b that is not sought: for the hinge and the squared hinge without intercept. So
    are targets that are not 1.
    """
    X, y, costs = (np.asarray(array, np.float64) for array in (X, y, costs))
    if loss == "perceptron":
        return np.zeros(X.shape[1]), 0.0, 0.0
    # A row of cost 0 is no part of the problem, and would leave its slack undetermined.
    used = costs > 0
    p = np.broadcast_to(np.asarray(targets, np.float64), y.shape)
    if penalty == "l1":
        w, b = _solve_l1(X[used], y[used], costs[used], loss, intercept, intercept_scaling)
    elif fixed_intercept:
        w, b = _solve_hinge(X[used], y[used], costs[used], loss, "none", 1.0, fixed_intercept)
    elif loss != "logistic":
        w, b = _solve_hinge(X[used], y[used], costs[used], loss, intercept, intercept_scaling, 0.0, p[used])
    else:
        w, b = _solve_logistic(X[used], y[used], costs[used], loss, intercept, intercept_scaling)
    return w, b, objective(X, y, costs, loss, intercept, intercept_scaling, w, b, p, penalty)


def solve_all_classes(X, codes, costs, classes):
    """``(w, objective)`` of Crammer and Singer's problem; w has one line for each class.

    minimise    1/2 sum_k |w_k|^2 + sum_i C_i xi_i
    subject to  <w_y - w_k, x_i> >= 1 - xi_i  for k != y = y_i,   xi_i >= 0
    """
    X, costs = np.asarray(X, np.float64), np.asarray(costs, np.float64)
    n, d = X.shape
    lines, right = [], []
    for i in range(n):
        for k in range(classes):
            line = np.zeros(classes * d + n)
            if k != codes[i]:
                line[codes[i] * d : (codes[i] + 1) * d] = -X[i]
                line[k * d : (k + 1) * d] = X[i]
                right.append(-1.0)
            else:
                right.append(0.0)
            line[classes * d + i] = -1.0
            lines.append(line)
    P = sparse.diags(np.concatenate([np.ones(classes * d), np.zeros(n)]), format="csc")
    q = np.concatenate([np.zeros(classes * d), costs])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    cones = [clarabel.NonnegativeConeT(len(lines))]
    solver = clarabel.DefaultSolver(P, q, sparse.csc_matrix(lines), np.array(right), cones, settings)
    w = np.array(solver.solve().x[: classes * d]).reshape(classes, d)
    return w, objective_of_all_classes(X, codes, costs, w)


def objective_of_all_classes(X, codes, costs, w):
    """Crammer and Singer's objective, written down once more."""
    scores, rows = X @ w.T, np.arange(len(X))
    own = scores[rows, codes].copy()
    scores += 1.0
    scores[rows, codes] -= 1.0
    return 0.5 * float((w**2).sum()) + float(costs @ (scores.max(axis=1) - own))


def objective(X, y, costs, loss, intercept, intercept_scaling, w, b, targets=1.0, penalty="l2"):
    """The primal value, written down once more and independently of problem.py."""
    m = y * (X @ w + b)
    slack = np.maximum(0.0, targets - m)
    losses = {
        "hinge": slack,
        "squared_hinge": slack**2,
        "logistic": np.logaddexp(0.0, -m),
        "perceptron": np.maximum(0.0, -m),
    }[loss]
    beta = b / intercept_scaling if intercept == "regularised" else 0.0
    held = np.abs(w).sum() + abs(beta) if penalty == "l1" else 0.5 * (w @ w + beta**2)
    return held + costs @ losses


def _solve_hinge(X, y, costs, loss, intercept, intercept_scaling, fixed_intercept=0.0, targets=1.0):
    n, d = X.shape
    with_b = int(intercept != "none")
    own = 1.0 / intercept_scaling**2 if intercept == "regularised" else 0.0
    squared = loss == "squared_hinge"
    # The variables are (w, b, xi); b is left out where there is none.
    P = sparse.diags_array(
        np.concatenate([np.ones(d), [own] * with_b, 2.0 * costs if squared else np.zeros(n)])
    )
    q = np.concatenate([np.zeros(d + with_b), np.zeros(n) if squared else costs])
    margins = sparse.csc_array(np.hstack([y[:, None] * X, np.repeat(y[:, None], with_b, axis=1)]))
    A = sparse.hstack([-margins, -sparse.eye_array(n)])  # p - xi - m <= 0
    limits = y * fixed_intercept - targets * np.ones(n)
    if not squared:
        # Needless for the squared hinge, where a negative slack only costs more, and its presence
        # would leave two of three conditions without strict complementarity.
        nonnegative = sparse.hstack([sparse.csc_array((n, d + with_b)), -sparse.eye_array(n)])
        A, limits = sparse.vstack([A, nonnegative]), np.append(limits, np.zeros(n))  # -xi <= 0
    x = _interior_point(sparse.csc_matrix(P), q, sparse.csc_matrix(A), limits)
    return x[:d], float(x[d]) if with_b else fixed_intercept


def _solve_l1(X, y, costs, loss, intercept, intercept_scaling):
    n, d = X.shape
    logistic = loss == "logistic"
    # The variables: the positive part of w, the negative one, both parts of b, one or three for each row.
    with_b = 2 * int(intercept != "none")
    Z = np.hstack([X, -X, np.ones((n, with_b // 2)), -np.ones((n, with_b // 2))])
    k, total = Z.shape[1], costs.sum()
    own = 1.0 / intercept_scaling if intercept == "regularised" else 0.0
    q = np.concatenate([np.ones(2 * d), [own] * with_b]) / total
    margins, eye = sparse.csc_array(y[:, None] * Z), sparse.eye_array(n, format="csc")
    none = sparse.csc_array((n, n))
    parts = sparse.hstack([-sparse.eye_array(k), sparse.csc_array((k, (3 if logistic else 1) * n))])
    if not logistic:  # m >= 1 - xi, and xi^2 counts
        P = sparse.diags_array(np.concatenate([np.zeros(k), 2.0 * costs / total]))
        A = sparse.vstack([parts, sparse.hstack([-margins, -eye])])
        x = _interior_point(
            sparse.csc_matrix(P),
            np.append(q, np.zeros(n)),
            sparse.csc_matrix(A),
            -np.repeat([0.0, 1.0], [k, n]),
        )
    else:  # t >= log(1 + exp(-m)): exp(-t) <= r, exp(-m - t) <= s and r + s <= 1
        P = sparse.csc_matrix((k + 3 * n, k + 3 * n))
        sums = sparse.hstack([sparse.csc_array((n, k)), none, eye, eye])
        first = [sparse.hstack([sparse.csc_array((n, k)), eye, none, none]), None]
        second = [sparse.hstack([margins, eye, none, none]), None]
        first[1] = sparse.hstack([sparse.csc_array((n, k)), none, -eye, none])
        second[1] = sparse.hstack([sparse.csc_array((n, k)), none, none, -eye])
        # A cone is of three numbers in turn: what is in the exponential, 1, and what it is at most.
        order = np.arange(3 * n).reshape(3, n).T.ravel()
        ones = sparse.csc_array((n, k + 3 * n))
        triples = [sparse.csr_array(sparse.vstack([a, ones, c]))[order] for a, c in (first, second)]
        limits = np.concatenate([np.zeros(k), np.ones(n), np.tile([0.0, 1.0, 0.0], 2 * n)])
        A = sparse.csc_matrix(sparse.vstack([parts, sums, *triples]))
        cones = [clarabel.NonnegativeConeT(k + n), *[clarabel.ExponentialConeT()] * (2 * n)]
        x = _interior_point(P, np.concatenate([q, costs / total, np.zeros(2 * n)]), A, limits, cones)
    b = float(x[2 * d] - x[2 * d + 1]) if with_b else 0.0
    return x[:d] - x[d : 2 * d], b


def _interior_point(P, q, A, limits, cones=None):
    """Minimise 1/2 x'Px + q'x subject to Ax <= limits, as precisely as rounding allows."""
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    cones = cones or [clarabel.NonnegativeConeT(len(limits))]
    for tolerance in (1e-12, 1e-11, 1e-10, 1e-9):
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
        answer = clarabel.DefaultSolver(P, q, A, limits, cones, settings).solve()
        if answer.status == clarabel.SolverStatus.Solved:
            return np.array(answer.x)
    raise RuntimeError(f"the referee did not solve the problem: {answer.status}")


def _solve_logistic(X, y, costs, loss, intercept, intercept_scaling):
    n, d = X.shape
    if intercept == "none":
        Z, ridge = X, np.ones(d)
    else:
        Z = np.column_stack([X, np.ones(n)])
        ridge = np.append(np.ones(d), 0.0 if intercept == "exact" else 1.0 / intercept_scaling**2)

    # Over the sum of the costs, so that b has a curvature of order 1 whatever C is.
    ridge, costs = ridge / costs.sum(), costs / costs.sum()

    def value(v):
        return 0.5 * v @ (ridge * v) + costs @ np.logaddexp(0.0, -y * (Z @ v))

    def gradient(v):
        return ridge * v - Z.T @ (costs * y * expit(-y * (Z @ v)))

    def hessian(v):
        p = expit(y * (Z @ v))
        return np.diag(ridge) + (Z.T * (costs * p * (1.0 - p))) @ Z

    v = np.zeros(Z.shape[1])
    # The trust region ends where rounding hides the descent; plain Newton steps finish from there.
    v = optimize.minimize(
        value, v, jac=gradient, hess=hessian, method="trust-exact", options={"gtol": 1e-9}
    ).x
    for _ in range(3):
        v = v - np.linalg.solve(hessian(v), gradient(v))
    return v[:d], float(v[d]) if intercept != "none" else 0.0
