# SPDX-License-Identifier: BSD-3-Clause
"""What sets the interior point method apart: any scaling, any C, few steps, multipliers on their walls."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer

from combinations import every_pair
from maxmargin import Problem, Solution, Status, solve
from maxmargin.solvers import InteriorPoint, QuadraticProgram
from maxmargin.solvers.interior_point import _central
from problems import HARD_DATA, INTERCEPTS, clouds


@pytest.fixture(scope="module")
def unscaled():
    """Columns from 1e-3 to 1e3 in size."""
    X, target = load_breast_cancer(return_X_y=True)
    return X, np.where(target == 1, 1.0, -1.0)


@every_pair(
    loss=["hinge", "squared_hinge"], intercept=INTERCEPTS, C=[2.0**-15, 2.0**-5, 1.0, 2.0**5, 2.0**15]
)
def test_few_steps_whatever_the_scales(unscaled, loss, intercept, C):
    problem = Problem.of(*unscaled, C=C, loss=loss, intercept=intercept)
    model = solve(problem, "interior_point", tol=1e-6, max_steps=30)
    assert model.status is Status.CERTIFIED


@pytest.mark.parametrize("C", [2.0**-15, 1.0, 2.0**15])
def test_more_columns_than_rows_over_orders_of_magnitude(C):
    # Without refinement the steps on the rows' side lose too many digits here.
    X, y = clouds(n=60, d=300, distance=0.2, seed=9)
    X = X * 10.0 ** np.random.default_rng(9).uniform(-3.0, 3.0, X.shape[1])
    model = solve(Problem.of(X, y, C=C), "interior_point", tol=1e-8, max_steps=40)
    assert model.status is Status.CERTIFIED


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_multipliers_reach_their_walls(unscaled, loss):
    problem = Problem.of(*unscaled, C=1.0, loss=loss)
    ours = solve(problem, "interior_point", tol=1e-9).certificate
    referee = solve(problem, QuadraticProgram(form="primal"), tol=1e-9).certificate
    assert ours.kkt_violation < 1e-3
    np.testing.assert_array_equal(ours.row_classes, referee.row_classes)
    np.testing.assert_array_equal(ours.support, referee.support)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("name", sorted(HARD_DATA))
def test_goes_on_to_rounding_and_ends_by_itself(name, intercept):
    problem = HARD_DATA[name].with_(intercept=intercept).problem()
    model = solve(problem, "interior_point", tol=0.0, max_steps=100)
    assert model.status in (Status.RULE_FIRED, Status.CERTIFIED)
    assert model.certificate.relative_gap < 1e-10


def test_corrections_save_steps():
    X, y = clouds(n=2000, d=10, distance=1.0, seed=3)
    problem = Problem.of(X, y, C=1.0)
    plain, corrected = (solve(problem, InteriorPoint(corrections=k), tol=1e-8).steps for k in (0, 2))
    assert corrected < plain


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_start_of_another_C_saves_steps(loss):
    X, y = clouds(n=2000, d=10, distance=1.0, seed=3)
    before = solve(Problem.of(X, y, C=1.0, loss=loss), "interior_point", tol=1e-8)
    problem = Problem.of(X, y, C=1.1, loss=loss)
    start = Solution(w=before.w, b=before.b, alpha=before.alpha)
    cold, warm = (solve(problem, "interior_point", tol=1e-8, start=s) for s in (None, start))
    assert cold.status is warm.status is Status.CERTIFIED
    assert warm.steps <= cold.steps


def test_side_of_the_factor_is_limited():
    # One value in each row is enough: the factor would be dense.
    problem = Problem.of(sparse.identity(4801, format="csr"), np.where(np.arange(4801) % 2, 1.0, -1.0))
    refusal = InteriorPoint().accepts(problem)
    assert refusal is not None
    assert "4801" in refusal
    assert "dual_coordinate_ascent" in refusal
    narrow = Problem.of(sparse.identity(4801, format="csr")[:, :10], problem.y)
    assert InteriorPoint().accepts(narrow) is None


@pytest.mark.parametrize("slack", [0.0, 1.0, -1.0, 1e20, -1e20])
def test_the_start_is_central_however_far_the_walls_are_apart(slack):
    costs, mu = np.array([2.0]), 1e-12
    _, (alpha, rest), (distance, loss) = _central(np.array([slack]), costs, mu)
    for value in (alpha, rest, distance, loss):
        assert value[0] > 0.0
    np.testing.assert_allclose([alpha[0] * distance[0], rest[0] * loss[0]], mu, rtol=1e-14)
    np.testing.assert_allclose(alpha + rest, costs, rtol=1e-14)
    np.testing.assert_allclose(loss - distance, slack, rtol=1e-14, atol=1e-27)
