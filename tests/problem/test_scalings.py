# SPDX-License-Identifier: BSD-3-Clause
"""The lectures' four scalings are one problem: the conversions round-trip and share the minimiser."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from maxmargin import Problem, solve
from maxmargin.problem import scalings
from problems import clouds

N = 40
CONVERSIONS = {
    "003: 1/2 w'w + (c / n) sum": (scalings.C_from_mean_cost, scalings.mean_cost_from_C),
    "001, 002: lambda / 2 w'w + mean": (scalings.C_from_half_lambda, scalings.half_lambda_from_C),
    "003: lambda w'w + mean": (scalings.C_from_lambda, scalings.lambda_from_C),
}
# The objectives as the lectures write them: the regulariser's factor and the losses' factor.
FACTORS = {
    "003: 1/2 w'w + (c / n) sum": lambda c: (0.5, c / N),
    "001, 002: lambda / 2 w'w + mean": lambda lambda_: (lambda_ / 2, 1 / N),
    "003: lambda w'w + mean": lambda lambda_: (lambda_, 1 / N),
}


@pytest.mark.parametrize("name", CONVERSIONS)
@pytest.mark.parametrize("value", [1e-6, 0.3, 1.0, 2e5])
def test_round_trip(name, value):
    to_C, from_C = CONVERSIONS[name]
    assert from_C(to_C(value, N), N) == pytest.approx(value, rel=1e-14)
    assert to_C(from_C(value, N), N) == pytest.approx(value, rel=1e-14)


@pytest.mark.parametrize("name", CONVERSIONS)
@pytest.mark.parametrize("parameter", [0.05, 2.0])
def test_same_minimiser(name, parameter):
    # The squared hinge, so that a general minimiser of smooth functions can judge.
    X, y = clouds(n=N, d=3)
    regulariser, losses = FACTORS[name](parameter)

    def lecture(w):
        slack = np.maximum(0.0, 1.0 - y * (X @ w))
        gradient = 2 * regulariser * w - 2 * losses * X.T @ (y * slack)
        return regulariser * w @ w + losses * slack @ slack, gradient

    expected = minimize(lecture, np.zeros(3), jac=True, method="BFGS", options={"gtol": 1e-11}).x
    C = CONVERSIONS[name][0](parameter, N)
    model = solve(Problem.of(X, y, C, loss="squared_hinge", intercept="none"), tol=1e-12)
    np.testing.assert_allclose(model.w, expected, rtol=1e-5)


@pytest.mark.parametrize("name", CONVERSIONS)
def test_objectives_are_multiples_of_each_other(name):
    X, y = clouds(n=N, d=3)
    regulariser, losses = FACTORS[name](0.7)
    problem = Problem.of(X, y, CONVERSIONS[name][0](0.7, N), intercept="none")
    ratios = []
    for seed in range(3):
        w = np.random.default_rng(seed).normal(size=3)
        lecture = regulariser * w @ w + losses * np.maximum(0.0, 1.0 - y * (X @ w)).sum()
        ratios.append(lecture / problem.primal(w))
    np.testing.assert_allclose(ratios, 2 * regulariser, rtol=1e-12)
