# SPDX-License-Identifier: BSD-3-Clause
"""Certificates recomputed in exact arithmetic, where float64 alone would tell other values."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.datasets import load_wine

from benchmarks.sceptic import Found, examine
from benchmarks.sceptic_cases import Case
from maxmargin import LinearSVC

LINEAR = {"loss": "hinge", "random_state": 0, "n_jobs": 1}


def whole_columns(seed, size, C):
    """Two columns of large numbers with two decimals, of which the first tells the classes apart."""
    random = np.random.default_rng(seed)
    X = np.round(random.random((6, 2)) * size, 2)
    y = np.where(X[:, 0] > np.median(X[:, 0]), 1, -1)
    X[:, 0] += np.where(y > 0, size, 0.0)
    return Case("linear", X, y, LINEAR | {"C": C})


def timestamps():
    random = np.random.default_rng(0)
    t = np.round(1.7e9 + random.random(24) * 86400 * 365)
    y = np.where(t + random.normal(size=24) * 2e6 > np.median(t), 1, -1)
    return Case("kernel", t[:, np.newaxis], y, {"kernel": "poly", "degree": 3, "coef0": 0.0, "C": 1.0})


def raw_wine():
    X = load_wine().data[np.r_[0:12, 60:72]]
    y = np.repeat([1, -1], 12)
    options = {"kernel": "poly", "degree": 3, "coef0": 0.0, "gamma": 1.0, "C": 1.0}
    return Case("kernel", X, y, options)


def small_shares():
    """Multipliers that are a tiny share of their costs."""
    random = np.random.default_rng(1)
    y = np.where(np.arange(8) % 2 == 0, 1, -1)
    X = random.normal(size=(8, 2)) + 40.0 * y[:, np.newaxis]
    return Case("linear", X, y, LINEAR | {"loss": "logistic", "C": 1e4})


def next_to_nothing():
    """A column that tells the classes apart by 1e-12, beside one that reaches over 8."""
    X = np.array([[-4.0, 1e-12], [4.0, 1e-12], [-4.0, -1e-12], [4.0, -1e-12]])
    return Case("hard margin", X, np.array([1, 1, -1, -1]), LINEAR | {"C": math.inf})


def far_pairs():
    """Three classes of rows far from 0: multipliers out of balance by rounding, and a model like w = 0."""
    digits = [
        [29.439176, 29.460891, 29.460863, 29.455829, 29.457428, 29.453663],
        [28.75642, 28.755841, 28.745112, 28.760097, 28.751041, 28.757318],
        [27.361504, 27.3614855, 27.361154, 27.361617, 27.361337, 27.361531],
        [14967.789989, 15012.872439, 15218.630958, 15020.473012, 15166.169331, 15017.485773],
    ]
    options = {"kernel": "linear", "C": 1.0, "random_state": 0, "n_jobs": 1, "tol": 0.0011441969541965736}
    return Case("kernel", 5762597000.0 + np.array(digits), np.array([0, 2, 0, 1]), options)


def tiny_radius():
    """A gap of 1e-136: the square root of 0 has to be 0 beside it."""
    digits = np.array([[0.62, 0.604, 0.68], [0.549, 0.68, 0.583], [0.755, 0.525, 0.602]])
    options = {"kernel": "poly", "degree": 4, "coef0": 0.1, "gamma": 1.0, "C": 8e4, "tol": 0.04}
    return Case("kernel", 2.3445e17 + 1e13 * digits, np.array([0, 2, 1]), options)


def beyond_single_precision():
    """Rows in single precision whose inner products are too large for it, of three classes."""
    X = np.array([[1.3e9, -1.4e22], [8.8e6, -5.9e18], [3.0e5, -1.7e18]], np.float32)
    return Case("kernel", X, np.array([0, 2, 1]), {"kernel": "poly", "coef0": 0.1, "C": 0.14})


def small_numbers():
    """A regression whose numbers are in the last digits of margins around 1."""
    X = np.array([[0.5], [-1.0], [2.0], [0.25]])
    return Case("regression", X, 1e-9 * np.array([1.0, -3.0, 2.5, 1.0]), {"C": 100.0, "epsilon": 1e-12})


def rounded_walls():
    """A tube of 1e-12 around values near 505, whose walls are no float64."""
    random = np.random.default_rng(0)
    X, y = random.normal(size=(10, 2)), 505.4 + 0.1 * random.normal(size=10)
    options = {"kernel": "poly", "degree": 2, "coef0": 1.0, "gamma": 1e-3, "C": 70.0, "epsilon": 1e-12}
    return Case("regression", X, y, options | {"tol": 1e-10})


def far_rows_with_nu():
    """Rows of many scales, whose multipliers at the optimum a rho that is not quite known leaves open."""
    X = 1e3 * np.array([[2e9, -1e9, 0.0], [-1.5e5, 1e5, -1.5e5], [-1.0, -0.3, -1.0], [-71.0, 71.0, 47.0]])
    X = np.vstack([X, [0.0, -13365.8, 6682.9]])
    options = {"kernel": "linear", "nu": 0.5, "random_state": 0, "n_jobs": 1}
    return Case("nu classification", X, np.array([-1, -1, 1, 1, -1]), options)


CASES = {
    "rounding of margins, times C": whole_columns(15, 1e8, 1.0),
    "the same at 1e7": whole_columns(23, 1e7, 1.0),
    "the same at 1e6 with C = 1000": whole_columns(2, 1e6, 1000.0),
    "cancellation in kernel values": timestamps(),
    "a cubic kernel of unscaled data": raw_wine(),
    "the logistic dual of small multipliers": small_shares(),
    "an intercept that is bounded by w = 0": far_pairs(),
    "a radius of 1e-68": tiny_radius(),
    "a regression of small numbers": small_numbers(),
    "walls of a tube that are no float64": rounded_walls(),
    "products beyond single precision": beyond_single_precision(),
    "rows that a rho which moves leaves open": far_rows_with_nu(),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_no_value_is_on_the_wrong_side(case):
    assert examine(case, Found()) == []


def test_what_can_be_separated_is_not_said_to_be_inseparable():
    assert examine(next_to_nothing(), Found()) == []


def test_changed_coefficients_are_not_those_of_the_proof(tmp_path):
    case = small_shares()
    model = LinearSVC(**case.options).fit(case.X, case.y)
    model.coef_ *= 1.3
    with pytest.raises(ValueError, match="must be those that the fit proved"):
        model.save(tmp_path / "changed.mm")
