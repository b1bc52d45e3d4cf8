# SPDX-License-Identifier: BSD-3-Clause
"""A run that was stopped is proven with whole sums over the support vectors."""

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
