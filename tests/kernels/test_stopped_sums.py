# SPDX-License-Identifier: BSD-3-Clause
"""Sums over the support vectors are whole where a run was stopped, and those of the w asked about."""

from __future__ import annotations

import math

import numpy as np

from maxmargin import Problem, Solution, certify
from maxmargin.core import Budget
from maxmargin.kernels import Gaussian, KernelRows


def test_a_stopped_budget_does_not_change_a_certificate():
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 4))
    y = np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0)
    alpha = random.uniform(size=300)
    stopped = Budget(math.inf, 1)
    stopped.stop()
    found, expected = (
        certify(Problem.of(KernelRows(X, Gaussian(0.5)), y), Solution(alpha=alpha), budget=budget)
        for budget in (stopped, Budget(math.inf, 1))
    )
    assert (found.primal, found.dual) == (expected.primal, expected.dual)
    assert found.dual < found.primal


def test_a_w_that_a_solver_changes_in_place_has_scores_of_its_own():
    rows, w = KernelRows(np.eye(3), Gaussian(0.5)), np.zeros(3)
    assert not rows.scores(w).any()
    w[:] = 1.0, -2.0, 0.5
    expected = KernelRows(np.eye(3), Gaussian(0.5)).scores(w)
    assert np.array_equal(rows.scores(w), expected)
    assert rows.squared_norm(w) >= w @ expected
