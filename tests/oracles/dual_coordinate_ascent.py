# SPDX-License-Identifier: BSD-3-Clause
"""Stochastic dual coordinate ascent in lecture 000's three costs: O(nd), O(n) and O(d) per step.

All three yield ``(alpha, w, b)`` after every sweep, where a sweep is an explicit sequence of rows.

A regularised intercept is 000's augmentation trick, literally: one more column of constant value s. With
the method of multipliers b is also pulled towards a centre, by (b - centre)^2 / (2 r^2), and the centre
moves to b after every sweep. The column then has the value sqrt(k), 1 / k = 1 / s^2 + 1 / r^2, and every
score a constant part of k centre / r^2; an exact intercept has s = inf, the lecture's has r = inf.
"""

from __future__ import annotations

import numpy as np


def ascend(X, y, C, sweeps, *, targets=None, alpha=None, **options):
    """O(d) per step: w is kept up to date (Hsieh et al. 2008)."""
    p = np.ones(len(y)) if targets is None else targets
    setup = _Setup(X, y, C, **options)
    alpha, w = np.zeros(len(y)) if alpha is None else alpha, np.zeros(setup.X.shape[1])
    for sweep in sweeps:
        for i in sweep:  # 1
            g = y[i] * (w @ setup.X[i] + setup.offset) - p[i] + setup.D[i] * alpha[i]  # 2
            a = setup.clipped(alpha[i], g, i)  # 3
            w = w + (a - alpha[i]) * y[i] * setup.X[i]  # 4
            alpha[i] = a
        yield setup.finish_sweep(alpha, w)


def ascend_pairs(X, walls, C, sweeps, **options):
    """The same for two rows of opposite signs with the data of each example, which sweeps name."""
    twins, y, costs = np.repeat(X, 2, axis=0), np.tile([1.0, -1.0], len(X)), np.repeat(C, 2)
    alpha = np.zeros(len(y))

    def rows_of(sweep):
        for k in sweep:  # first the row whose multiplier is not 0
            first = int(alpha[2 * k] == 0 and alpha[2 * k + 1] != 0)
            yield 2 * k + first
            yield 2 * k + 1 - first

    yield from ascend(twins, y, costs, map(rows_of, sweeps), targets=walls, alpha=alpha, **options)


def ascend_naive(X, y, C, sweeps, **options):
    """O(nd) per step: n inner products for the margin of one row."""
    setup = _Setup(X, y, C, **options)
    alpha = np.zeros(len(y))
    for sweep in sweeps:
        for i in sweep:  # 1
            score = sum(alpha[j] * y[j] * (setup.X[j] @ setup.X[i]) for j in range(len(y)))
            g = y[i] * (score + setup.offset) - 1 + setup.D[i] * alpha[i]  # 2
            alpha[i] = setup.clipped(alpha[i], g, i)  # 3
        yield setup.finish_sweep(alpha, (alpha * y) @ setup.X)


def ascend_with_gram_matrix(X, y, C, sweeps, **options):
    """O(n) per step and O(n^2) storage: all inner products are known."""
    setup = _Setup(X, y, C, **options)
    gram = setup.X @ setup.X.T
    alpha = np.zeros(len(y))
    for sweep in sweeps:
        for i in sweep:  # 1
            g = y[i] * (gram[i] @ (alpha * y) + setup.offset) - 1 + setup.D[i] * alpha[i]  # 2
            alpha[i] = setup.clipped(alpha[i], g, i)  # 3
        yield setup.finish_sweep(alpha, (alpha * y) @ setup.X)


class _Setup:
    """The augmented rows, the box, and the constant part of every score."""

    def __init__(
        self,
        X,
        y,
        C,
        *,
        loss="hinge",
        intercept="none",
        intercept_scaling=1.0,
        bias_reach=np.inf,
        relaxation=1.0,
    ):
        self.columns = X.shape[1]
        self.relaxation = relaxation
        self.has_b = intercept != "none"
        self.X, self.offset = X, 0.0
        if self.has_b:
            own = 0.0 if intercept == "exact" else 1.0 / intercept_scaling**2
            pull = 1.0 / (bias_reach * np.mean(np.sum(X**2, axis=1)))
            self.k = 1.0 / (own + pull)
            self.pull = pull
            self.X = np.column_stack([X, np.full(len(X), np.sqrt(self.k))])
        with np.errstate(divide="ignore"):  # rows of cost 0 are never visited
            self.D = 0.5 / C if loss == "squared_hinge" else np.zeros(len(y))
        self.U = np.full(len(y), np.inf) if loss == "squared_hinge" else C

    def clipped(self, alpha, g, i):
        curvature = self.X[i] @ self.X[i] + self.D[i]
        # An empty row has no curvature: its dual value is linear and best at the wall.
        step = g / curvature if curvature > 0 else np.inf * g
        return min(max(alpha - self.relaxation * step, 0.0), self.U[i])

    def finish_sweep(self, alpha, w):
        if not self.has_b:
            return alpha.copy(), w.copy(), 0.0
        own = np.sqrt(self.k) * w[-1]
        centre = self.offset + own
        self.offset = self.k * self.pull * centre
        return alpha.copy(), w[: self.columns].copy(), self.offset + own
