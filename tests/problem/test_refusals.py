# SPDX-License-Identifier: BSD-3-Clause
"""Problems of regression and ranking, kernels and probabilities: what is refused, and in which words."""

from __future__ import annotations

import re

import numpy as np
import pytest

from maxmargin.kernels import Function, Gaussian, Linear, Precomputed
from maxmargin.problem.ranking import ranking_problem
from maxmargin.problem.regression import regression_problem
from maxmargin.reductions.probabilities import Calibration, Curve

X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]])
Y = np.array([1.0, 2.0, 4.0])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"y": Y[:2]}, "y must hold one number for each of the 3 rows of X. Got an array of shape (2,)"),
        ({"epsilon": -0.1}, "epsilon must be a finite number of at least 0. Got -0.1 instead."),
        ({"loss": "hinge"}, "loss must be one of epsilon_insensitive, squared_epsilon_insensitive. Got"),
    ],
)
def test_regression(changes, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        regression_problem(**({"X": X, "y": Y} | changes))


def test_ranking():
    query = np.zeros(3)
    problem = ranking_problem(X, Y, query=query)
    assert problem.primal_of_zero == problem.total_cost > 0
    doubled = problem.with_costs_times(2.0)
    assert doubled.total_cost == 2.0 * problem.total_cost
    with pytest.raises(ValueError, match=r"no sum over rows\. Use maxmargin\.certify"):
        _ = problem.objective
    with pytest.raises(ValueError, match=r"loss must be one of .*Got 'logistic' instead"):
        ranking_problem(X, Y, query=query, loss="logistic")
    with pytest.raises(ValueError, match=r"A ranking needs rows\. Got none\."):
        ranking_problem(X[:0], Y[:0], query=query[:0])


def test_kernels_are_added_and_multiplied_by_what_they_can_be():
    kernel = Gaussian(1.0)
    np.testing.assert_allclose((kernel * Linear())(X), kernel(X) * Linear()(X))
    np.testing.assert_allclose((kernel * 2.0)(X), 2.0 * kernel(X))
    for other in ("rbf", None):
        with pytest.raises(TypeError):
            kernel + other
        with pytest.raises(TypeError):
            kernel * other
    with pytest.raises(ValueError, match=r"finite numbers above 0\. Got -1 instead"):
        -1 * kernel
    assert np.array_equal(Precomputed()(X @ X.T), X @ X.T)
    with pytest.raises(ValueError, match="the values are given: there is no second argument"):
        Precomputed()(X @ X.T, X)
    assert np.array_equal(Function(lambda a, b: a @ b.T)(X), X @ X.T)
    with pytest.raises(ValueError, match="shape"):
        Function(lambda a, b: a)(X)


@pytest.mark.parametrize(
    ("method", "curves", "words"),
    [
        ("sigmoid", [], "its probabilities have 0 curves for 1 problems"),
        ("sigmoid", [([1.0, 2.0], [0.0, 1.0])], "not as many numbers of one kind as of the other"),
        ("isotonic", [([1.0], [])], "not as many numbers of one kind as of the other"),
        ("isotonic", [([2.0, 1.0], [0.0, 1.0])], "goes back, or leaves the interval from 0 to 1"),
        ("isotonic", [([1.0, 2.0], [0.0, 1.5])], "goes back, or leaves the interval from 0 to 1"),
        ("isotonic", [([1.0, 2.0], [0.0, 1.0])], None),
        ("sigmoid", [([1.0], [0.5])], None),
    ],
)
def test_probabilities(method, curves, words):
    made = [Curve(np.array(first), np.array(second)) for first, second in curves]
    found = Calibration(method, made).contradiction(1)
    assert found is None if words is None else words in found
