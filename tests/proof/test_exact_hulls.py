# SPDX-License-Identifier: BSD-3-Clause
"""Weights that are rounded, and the exact ones near them."""

import numpy as np
import pytest

from maxmargin import InseparableError, Problem, solve_hard_margin
from maxmargin.proof import exact_hulls
from maxmargin.solvers import sizes


def system_with_solution(seed, equations, extra=0):
    """Equations that some positive numbers solve nearly, and exact ones near them."""
    random = np.random.default_rng(seed)
    system = random.normal(size=(equations, equations + extra))
    near = random.uniform(0.1, 1.0, equations + extra)
    return system, system @ near, near


@pytest.mark.parametrize("extra", [0, 3])
@pytest.mark.parametrize("seed", range(5))
def test_both_ways_prove_a_solution_that_is_there(seed, extra):
    case = system_with_solution(seed, 8, extra)
    assert exact_hulls._in_fractions(*case)
    assert exact_hulls._by_an_inverse(*case)


@pytest.mark.parametrize("seed", range(5))
def test_an_inverse_proves_nothing_that_fractions_refute(seed):
    random = np.random.default_rng(seed)
    for _ in range(30):
        system, right, near = system_with_solution(int(random.integers(1 << 30)), 5)
        # One exact number is next to 0, on either side of it.
        exact = near.copy()
        exact[0] = random.choice([-1.0, 1.0]) * 10.0 ** random.uniform(-18, -14)
        right = system @ exact
        near[0] = abs(exact[0])
        if exact_hulls._by_an_inverse(system, right, near):
            assert exact_hulls._in_fractions(system, right, near)


def test_a_singular_system_proves_nothing():
    system, right = np.ones((30, 30)), np.ones(30)
    assert not exact_hulls.has_positive_solution(system, right, np.full(30, 1.0 / 30))


def test_nothing_is_proven_without_weights_or_of_too_many_values(monkeypatch):
    system, right, near = system_with_solution(0, 4)
    assert not exact_hulls.has_positive_solution(system, right, np.zeros(4))
    monkeypatch.setattr(sizes, "EXACT_HULL_VALUES", 10)
    assert not exact_hulls.has_positive_solution(system, right, near)


def test_equations_that_contradict_each_other():
    system = np.array([[1.0, 1.0], [1.0, 1.0]])
    assert not exact_hulls.has_positive_solution(system, np.array([1.0, 1.0 + 1e-15]), np.full(2, 0.5))


def test_many_columns_are_proven_by_an_inverse():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(200, 40)), random.choice([-1.0, 1.0], 200)
    with pytest.raises(InseparableError) as caught:
        solve_hard_margin(Problem.of(X, y))
    assert len(caught.value.certificate.rows) > sizes.FRACTION_EQUATIONS
