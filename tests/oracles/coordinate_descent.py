# SPDX-License-Identifier: BSD-3-Clause
"""Coordinate descent on working sets of columns for the l1 penalty, with whole matrices."""

from __future__ import annotations

import numpy as np

from oracles import DERIVATIVE, VALUE
from oracles.newton import SECOND_DERIVATIVE


def coordinate_descent(
    X,
    y,
    C,
    w,
    b,
    steps,
    *,
    loss,
    least,
    newton_steps,
    sweeps,
    by_columns,
    whole,
    stored,
    careful_after,
    by_columns_with_care,
    intercept="none",
    s=1.0,
):
    """Yield ``(w, b)`` after every working set; with ``whole`` it has all columns.

    Of all columns, ``stored`` values are in memory. After so many working sets models are solved with care.
    """
    cost_of_b = 1.0 / s if intercept == "regularised" else 0.0

    def value(w, b):
        return np.abs(w).sum() + cost_of_b * abs(b) + C @ VALUE[loss](y * (X @ w + b))

    def multipliers(w, b):
        return -C * DERIVATIVE[loss](y * (X @ w + b))

    lengths, lifted = np.linalg.norm(X, axis=0), True
    dense = stored == X.size
    for step in range(steps):  # 1
        if careful := step >= careful_after:
            by_columns = by_columns_with_care
        v = X.T @ (y * multipliers(w, b))  # 2
        W = (
            np.arange(len(w)) if whole else working_set(w, v, lengths, least, 2 if dense or careful else 4)
        )  # 3
        all_off = violation(w[W], v[W])
        for done in range(newton_steps):  # 4
            a, margins, objective = multipliers(w, b), y * (X @ w + b), value(w, b)  # 5
            v = X[:, W].T @ (a * y)
            h = C * SECOND_DERIVATIVE[loss](margins)
            if lifted and loss == "logistic":
                h = np.maximum(h, 0.5 * a**2 / (C * VALUE[loss](margins)))
            off = violation(w[W], v)
            model = Model(X[:, W], h, -v, -(a @ y), w[W], b, intercept, cost_of_b, by_columns=by_columns)
            if by_columns and careful:
                descend_carefully(model, sweeps, 0.1 * off)
            elif by_columns:
                descend_by_columns(model, sweeps, objective, off)  # 6
            else:
                for _ in range(20):
                    if descend(model, sweeps, min(0.01 if whole else 0.1, off) * off) or not jumps(model):
                        break
            z, c = w.copy(), model.intercept()
            z[W] = model.z[: len(W)]
            change = y * (X @ (z - w) + c - b)
            slope = np.abs(z).sum() + cost_of_b * abs(c) - np.abs(w).sum() - cost_of_b * abs(b) - a @ change
            if not slope < 0.0:
                break
            promise = -(slope + 0.5 * h @ change**2) / objective
            part = 1.0
            while (
                value(w + part * (z - w), b + part * (c - b))
                > (1.0 + 1e-14) * objective + 0.01 * part * slope
            ):
                part *= 0.5  # 7
            w, b = (w + part * (z - w), b + part * (c - b)) if part < 1.0 else (z, c)
            if done == 0:
                first = promise
            lifted = part < 1.0 or (lifted and (done > 0 or first > 0.01))
            large = by_columns and model.work.sum() >= 2 * 0.1 * stored
            if len(W) == len(w):  # 8
                break
            if careful and violation(w[W], X[:, W].T @ (multipliers(w, b) * y)) <= 0.1 * all_off:
                break
            if not careful and part == 1.0 and (large or promise <= 0.1 * first):
                break
        yield w, b


def working_set(w, v, lengths, least, growth):
    inside, beyond = w != 0.0, np.abs(v) - 1.0
    outside = np.flatnonzero(~inside & (beyond > 0.0))
    many = max(least, growth * np.count_nonzero(inside))
    hardest = outside[np.argsort(-beyond[outside] / lengths[outside])[:many]]
    return np.union1d(np.flatnonzero(inside), hardest)


def violation(w, v):
    return np.where(w == 0.0, np.abs(v) - 1.0, np.abs(v - np.sign(w))).max(initial=0.0)


class Model:
    """The quadratic model on some columns; where b is free it is that with the best b for them."""

    def __init__(self, X, h, q, q_b, w, b, intercept, cost_of_b, *, by_columns):
        self.plain = self.H = X.T @ (h[:, np.newaxis] * X)
        self.q, self.z, self.t, self.by_columns = q, w.copy(), np.ones(len(w)), by_columns
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
        self.z[(np.diag(self.H) == 0.0) & (np.abs(self.q) < self.t)] = 0.0
        self.follows = intercept == "regularised" and by_columns
        self.work = 2 * np.count_nonzero(np.sqrt(h)[:, np.newaxis] * X, axis=0)

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

    def value(self):
        """Of the model, but for what it is at the start."""
        change = self.z - self.start
        held = self.t @ (np.abs(self.z) - np.abs(self.start))
        return self.q @ change + 0.5 * change @ self.H @ change + held

    def intercept(self):
        if self.form == "regularised":
            return self.z[-1]
        if self.form == "none" or self.S == 0.0:
            return self.b
        return self.b - (self.q_b + self.u @ (self.z - self.w)) / self.S


def descend(model, most, enough):
    order, goal = model.order, enough
    if model.follows:
        model.move(len(model.z) - 1)
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


def sweep(model, most):
    """Sweeps, each with the worst of its columns again, until one gains a tenth of what all have gained."""
    if model.follows:
        model.move(len(model.z) - 1)
    before = gained = model.value()

    def visit(j):
        at, off = model.z[j], model.move(j)
        if model.follows and model.z[j] != at:
            model.move(len(model.z) - 1)
        return off

    for _ in range(most):
        offs = np.array([visit(j) for j in model.order])
        if not offs.max(initial=0.0) > 0.0:
            break
        worst = np.flatnonzero(offs > 0.3 * offs.max())
        left, work = offs.max(), model.work.sum()
        while left > 0.15 * offs.max() and work > 0:
            left = max(visit(j) for j in worst)
            work -= model.work[worst].sum()
        gain, gained = gained - model.value(), model.value()
        if not gain > 0.1 * (before - gained):
            break
    return before - gained, offs.max(initial=0.0)


def descend_by_columns(model, sweeps, objective, off):
    gained, _ = sweep(model, sweeps)
    for _ in range(20):
        if gained > 1e-3 * objective:
            return
        before = model.value()
        jump(model, conjugate_gradients)
        gain = before - model.value()
        more, left = sweep(model, 2)
        gain += more
        gained += gain
        if not gain > 0.1 * gained and not (gained <= 1e-10 * objective and left > 0.1 * off):
            return


def descend_carefully(model, sweeps, enough):
    few = max(1, sweeps // 3)
    if descend(model, sweeps - few, enough):
        return
    for _ in range(20):
        signs = np.sign(model.z[: len(model.w)])
        if descend(model, few, enough):
            return
        if (signs != np.sign(model.z[: len(model.w)])).any():
            return
        if not jump(model, lambda H, right: conjugate_gradients(H, right, 30, 0.5 * enough)):
            return


def conjugate_gradients(H, right, most=8, enough=None):
    """At most so many of them, each scaled by the diagonal, until a tenth is left, or enough."""
    step, left, direction, last = np.zeros_like(right), right.copy(), np.zeros_like(right), np.inf
    enough = 0.1 * np.abs(right).max() if enough is None else enough
    for _ in range(most):
        if np.abs(left).max() <= enough:
            break
        size = left @ (left / np.diag(H))
        direction = left / np.diag(H) + size / last * direction
        last, part = size, size / (direction @ H @ direction)
        step, left = step + part * direction, left - part * (H @ direction)
    return step


def jumps(model):
    """As many as change signs. Whether there was one."""
    count, moved = np.count_nonzero(model.z), False
    for _ in range(count):
        signs = np.sign(model.z)
        if not jump(model, np.linalg.solve):
            break
        moved = True
        if (signs == np.sign(model.z)).all():
            break
    return moved


def jump(model, solve):
    """Those that are not 0 move to the best point on the line, or what would cross 0 stays there."""
    some, H = np.flatnonzero(model.z), model.H
    t = model.t
    if model.form == "exact" and model.by_columns and model.S > 0.0:  # b is one more, which costs nothing
        H = np.block([[model.plain, model.u[:, np.newaxis]], [model.u, np.array([[model.S]])]])
        t, some = np.append(t, 0.0), np.append(some, len(model.z))
    if not len(some):
        return False
    z = np.append(model.z, 1.0)[some]  # the sign of a free b does not count
    # At the best b for z, where its slope is 0.
    g = np.array([model.slope(j) if j < len(model.z) else 0.0 for j in some])
    H, t = H[np.ix_(some, some)], t[some]
    step = solve(H, -(g + t * np.sign(z)))
    if not (g + t * np.sign(z)) @ step < 0.0:
        return False

    def rise(change):
        return g @ change + 0.5 * change @ H @ change + t @ (np.abs(z + change) - np.abs(z))

    crosses = (z * step < 0.0) & (t > 0.0)
    ends = np.sort(-z[crosses] / step[crosses])
    low, best = 0.0, 0.0
    for high in np.append(ends, np.inf):  # the model is a quadratic between two crossings
        middle = low + 1.0 if high == np.inf else 0.5 * (low + high)
        slope = (g + t * np.sign(z + middle * step)) @ step
        best = np.clip(-slope / (step @ H @ step), low, high)
        if best < high:
            break
        low = high
    change = best * step
    moved = z + change
    moved[crosses & (-z == change)] = 0.0
    moved[np.abs(moved) < 1e-14 * np.abs(z)] = 0.0
    nearer = np.where(crosses & (z * (z + step) <= 0.0), 0.0, z + step)
    if rise(nearer - z) < rise(moved - z):
        moved = nearer
    if (moved == z).all():
        return False
    inside = some < len(model.z)
    model.z[some[inside]] = moved[inside]
    return True
