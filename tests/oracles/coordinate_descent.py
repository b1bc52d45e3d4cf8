# SPDX-License-Identifier: BSD-3-Clause
"""Coordinate descent on working sets of columns for the l1 penalty, with whole matrices."""

from __future__ import annotations

import numpy as np

from oracles import DERIVATIVE, VALUE
from oracles.newton import SECOND_DERIVATIVE


def coordinate_descent(
    X, y, C, w, b, steps, *, loss, least, newton_steps, sweeps, by_columns, intercept="none", s=1.0
):
    """Yield ``(w, b)`` after every working set, from a w with the best b for it.

    ``best_b`` is asked for the best intercept of a w, which is not what is tested here.
    """
    best_b = yield
    cost_of_b = 1.0 / s if intercept == "regularised" else 0.0

    def value(w, b):
        return np.abs(w).sum() + cost_of_b * abs(b) + C @ VALUE[loss](y * (X @ w + b))

    def multipliers(w, b):
        return -C * DERIVATIVE[loss](y * (X @ w + b))

    lengths = np.linalg.norm(X, axis=0)
    for _ in range(steps):  # 1
        v = X.T @ (multipliers(w, b) * y)  # 2
        W = working_set(w, v, lengths, least)  # 3
        first = violation(w[W], v[W])
        for _ in range(newton_steps):  # 4
            a = multipliers(w, b)
            v = X[:, W].T @ (a * y)
            h = C * SECOND_DERIVATIVE[loss](y * (X @ w + b))  # 5
            off = violation(w[W], v)
            model = Model(X[:, W], h, -v, -(a @ y), w[W], b, intercept, cost_of_b, by_columns=by_columns)
            if by_columns:
                descend(model, sweeps, 0.1 * off)  # 6
            else:
                for _ in range(20):
                    if descend(model, sweeps, min(0.1, off) * off) or not jump(model):  # 5
                        break
            z, c = w.copy(), model.intercept()
            z[W] = model.z[: len(W)]
            slope = np.abs(z).sum() + cost_of_b * abs(c) - np.abs(w).sum() - cost_of_b * abs(b)
            slope -= a @ (y * (X @ (z - w) + c - b))
            if not slope < 0.0:
                break
            part, before = 1.0, value(w, b)
            while (
                value(w + part * (z - w), b + part * (c - b)) > (1.0 + 1e-14) * before + 0.01 * part * slope
            ):
                part *= 0.5  # 7
            w = w + part * (z - w) if part < 1.0 else z
            b = best_b(w)
            if violation(w[W], X[:, W].T @ (multipliers(w, b) * y)) <= 0.1 * first:  # 8, 9
                break
        best_b = yield w, b


def working_set(w, v, lengths, least):
    inside, beyond = w != 0.0, np.abs(v) - 1.0
    outside = np.flatnonzero(~inside & (beyond > 0.0))
    many = max(least, 2 * np.count_nonzero(inside))
    hardest = outside[np.argsort(-beyond[outside] / lengths[outside])[:many]]
    return np.union1d(np.flatnonzero(inside), hardest)


def violation(w, v):
    return np.where(w == 0.0, np.abs(v) - 1.0, np.abs(v - np.sign(w))).max(initial=0.0)


class Model:
    """The quadratic model on some columns; where b is free it is that with the best b for them."""

    def __init__(self, X, h, q, q_b, w, b, intercept, cost_of_b, *, by_columns):
        self.H, self.q, self.z, self.t = X.T @ (h[:, np.newaxis] * X), q, w.copy(), np.ones(len(w))
        self.w, self.b, self.u, self.S, self.q_b, self.form = w, b, X.T @ h, h.sum(), q_b, intercept
        self.order = list(range(len(w)))
        if intercept == "exact" and self.S > 0.0:
            self.H = self.H - np.outer(self.u, self.u) / self.S
            self.q = q - self.u * q_b / self.S
        if intercept == "regularised":  # b is the last coordinate, or follows every other one
            self.H = np.block([[self.H, self.u[:, np.newaxis]], [self.u, np.array([[self.S]])]])
            self.q, self.z = np.append(q, q_b), np.append(w, b)
            self.t = np.append(self.t, cost_of_b)
            if not by_columns:
                self.order.append(len(w))
        self.start = self.z.copy()
        self.follows = intercept == "regularised" and by_columns

    def slope(self, j):
        return self.q[j] + self.H[j] @ (self.z - self.start)

    def move(self, j):
        """The best value in one coordinate; how far it was from that."""
        z, g, h, t = self.z[j], self.slope(j), self.H[j, j], self.t[j]
        off = max(0.0, abs(g) - t) if z == 0.0 else abs(g + np.sign(z) * t)
        if off > 0.0 and h > 0.0:
            goal = h * z - g
            self.z[j] = np.sign(goal) * max(abs(goal) - t, 0.0) / h  # 3
        return off

    def intercept(self):
        if self.form == "regularised":
            return self.z[-1]
        if self.form == "none" or self.S == 0.0:
            return self.b
        return self.b - (self.q_b + self.u @ (self.z - self.w)) / self.S


def descend(model, most, enough):
    order, goal = model.order, enough
    visited, done = len(order), 0  # 1
    while done < most:
        largest, kept = 0.0, 0
        for k in range(visited):  # 2
            j = order[k]
            before = model.z[j]
            largest = max(largest, model.move(j))  # 3, 4
            if model.follows and model.z[j] != before:
                model.move(len(model.z) - 1)
            if model.z[j] != 0.0:
                order[kept], order[k] = order[k], order[kept]
                kept += 1
        done += 1
        if visited == len(order):
            if not largest > enough:
                return True
            goal, visited = max(enough, 0.1 * largest), kept or len(order)
        elif not largest > goal:
            visited = len(order)
        else:
            visited = kept or len(order)
    return False


def jump(model):
    """Those that are not 0 solve their system; what changes its sign becomes 0, if that is better."""
    some = np.flatnonzero(model.z)
    if not len(some):
        return False
    H, z = model.H[np.ix_(some, some)], model.z[some]
    slope = np.array([model.slope(j) for j in some]) + model.t[some] * np.sign(z)
    step = np.linalg.solve(H, -slope)
    crosses = (z + step) * z <= 0.0
    change = np.where(crosses, -z, step)
    if not slope @ change + change @ H @ change / 2.0 < 0.0:
        change = np.min(-z[crosses] / step[crosses]) * step
        change[np.abs(z + change) < 1e-12 * np.abs(z)] = -z[np.abs(z + change) < 1e-12 * np.abs(z)]
    model.z[some] = z + change
    return True
