# SPDX-License-Identifier: BSD-3-Clause
"""The best combination of the last moves of dual coordinate ascent, against plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from maxmargin import Problem, core, solve
from maxmargin.rows import Rows
from maxmargin.solvers import DualCoordinateAscent
from maxmargin.solvers.dual_coordinate_ascent import ALPHA, most_moves
from maxmargin.solvers.extrapolation import Moves, Quadratic, extrapolate

N, D, MOVES = 30, 12, 4
BIAS, CURVATURE = 0.3, 0.02


class Setting:
    """A point in the box, a few moves up to it, and the dual value in full."""

    def __init__(self, seed, upper, resting=()):
        random = np.random.default_rng(seed)
        self.X = 0.2 * random.normal(size=(N, D)) * (random.random((N, D)) < 0.6)
        self.y = random.choice([-1.0, 1.0], N)
        self.diagonal = 1.0 + random.random(N)  # so that the best point is inside the box
        self.upper = np.full(N, upper)
        self.alpha = random.uniform(0.3, 0.7, N)
        self.alpha[list(resting)] = 0.0
        self.moves = Moves(MOVES, self.alpha, self.w(self.alpha))
        self.lines = 0.05 * random.normal(size=(MOVES + 1, N))
        for line in self.lines:  # one more than are kept
            self.moves.start_at(self.alpha - line, self.w(self.alpha - line))
            self.moves.end_at(self.alpha, self.w(self.alpha))
        self.at = Quadratic(self.alpha, self.w(self.alpha), BIAS, self.y, self.diagonal, CURVATURE)
        self.data = Rows(sparse.csr_matrix(self.X)).data

    def w(self, alpha):
        return self.X.T @ (alpha * self.y)

    def value(self, alpha):
        """L, up to a constant: the pull on b is a parabola in q around where q is now."""
        q = (alpha - self.alpha) @ self.y
        squares = self.w(alpha) @ self.w(alpha) + self.diagonal @ alpha**2
        return alpha.sum() - 0.5 * squares - BIAS * q - 0.5 * CURVATURE * q**2

    def slope(self, alpha):
        q = (alpha - self.alpha) @ self.y
        score = self.X @ self.w(alpha) + BIAS + CURVATURE * q
        return 1.0 - self.y * score - self.diagonal * alpha


@pytest.mark.parametrize("seed", range(3))
def test_the_best_point_on_the_span(seed):
    setting = Setting(seed, upper=np.inf)
    of_alpha, of_w, gain = extrapolate(setting.moves, setting.at, setting.upper, setting.data)
    kept = setting.lines[1:]
    np.testing.assert_allclose(of_w, setting.w(of_alpha), atol=1e-10)
    # It lies in the span of the moves that are kept, and the slope along each of them is gone.
    assert np.linalg.matrix_rank(np.vstack([kept, of_alpha]), tol=1e-8) == MOVES
    before = kept @ setting.slope(setting.alpha)
    assert np.abs(kept @ setting.slope(setting.alpha + of_alpha)).max() < 1e-9 * np.abs(before).max()
    grown = setting.value(setting.alpha + of_alpha) - setting.value(setting.alpha)
    np.testing.assert_allclose(gain, grown, rtol=1e-6)


@pytest.mark.parametrize("seed", range(10))
def test_walls_hold_and_the_dual_value_grows(seed):
    resting = [0, 7, 8]
    setting = Setting(seed, upper=0.72, resting=resting)
    of_alpha, of_w, gain = extrapolate(setting.moves, setting.at, setting.upper, setting.data)
    moved = setting.alpha + of_alpha
    assert np.all(of_alpha[resting] == 0.0)
    assert moved.min() >= -1e-15
    assert moved.max() <= 0.72 + 1e-15
    np.testing.assert_allclose(of_w, setting.w(of_alpha), atol=1e-12)
    assert gain > 0.0
    np.testing.assert_allclose(gain, setting.value(moved) - setting.value(setting.alpha), rtol=1e-8)


def test_moves_of_resting_rows_alone_lead_nowhere():
    # Of a move whose rows were all taken out, rounding is left, which must not be blown up.
    setting = Setting(0, upper=1.0)
    setting.alpha[:] = 1.0
    setting.at.w = setting.w(setting.alpha)
    assert extrapolate(setting.moves, setting.at, setting.upper, setting.data) is None


def test_numbers_out_of_range_lead_nowhere():
    setting = Setting(0, upper=1.0)
    setting.moves.of_w[0] = 1e200
    assert extrapolate(setting.moves, setting.at, setting.upper, setting.data) is None


def nearly_equal_rows(seed):
    """Text-like rows of many columns, some of which nearly repeat one of the other class."""
    random = np.random.default_rng(seed)
    X = random.random((600, 1200)) * (random.random((600, 1200)) < 0.05)
    X[1:20:2] = X[0:20:2] + 0.3 * random.random((10, 1200)) * (random.random((10, 1200)) < 0.05)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = random.choice([-1.0, 1.0], 600)
    y[1:20:2] = -y[0:20:2]
    return sparse.csr_matrix(X), y


@pytest.mark.parametrize("intercept", ["none", "regularised", "exact"])
def test_it_saves_sweeps_where_rows_nearly_repeat(intercept):
    X, y = nearly_equal_rows(1)
    problem = Problem.of(X, y, 100.0, intercept=intercept)
    steps = []
    for extrapolation in (True, False):
        solver = DualCoordinateAscent(extrapolation=extrapolation, seed=3)
        model = solve(problem, solver, tol=1e-6, max_steps=20_000)
        assert model.status.certified
        steps.append(model.steps)
    assert steps[0] < 0.7 * steps[1]


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("intercept", ["none", "regularised", "exact"])
def test_w_and_b_stay_those_of_alpha(loss, intercept):
    X, y = nearly_equal_rows(2)
    problem = Problem.of(X, y, 10.0, loss=loss, intercept=intercept)
    solver = DualCoordinateAscent(seed=3)
    state = solver.init(problem, None)
    for _ in range(60):
        state = solver.step(problem, state, core.ALL_CORES)
    assert state.moves is not None
    alpha = state.coordinates[:, ALPHA]
    np.testing.assert_allclose(state.w, X.T @ (alpha * y), atol=1e-9)
    if intercept != "none":
        pull = state.centre / state.bias_reach
        np.testing.assert_allclose(state.bias, state.bias_curvature * (pull + alpha @ y), atol=1e-9)


def test_rows_are_added_to_w():
    random = np.random.default_rng(4)
    X = random.normal(size=(6, 5)) * (random.random((6, 5)) < 0.5)
    order, coefficients = np.array([4, 1, 1]), np.array([0.5, -2.0, 3.0])
    for stored in (X, sparse.csr_matrix(X)):
        w = np.ones(5)
        core.add_rows(Rows(stored).data, order, coefficients, w)
        np.testing.assert_allclose(w, 1.0 + X[order].T @ coefficients)
    with pytest.raises(ValueError, match="one number per row"):
        core.add_rows(Rows(X).data, order, coefficients[:2], w)


def test_w_does_not_part_from_alpha_when_moves_are_small():
    # Moves that are as good as multiples of each other: t is large, and with it what rounding does to v.
    random = np.random.default_rng(4)
    X = random.normal(size=(210, 248))
    y = np.sign(X @ random.normal(size=248) + random.normal(size=210))
    problem = Problem.of(X, y, C=20.0, loss="hinge", intercept="none")
    solver = DualCoordinateAscent()
    state, budget = solver.init(problem, None), core.Budget(np.inf, 1)
    extrapolated = 0
    for _ in range(200):
        state = solver.step(problem, state, budget)
        if state.moves is not None:
            extrapolated = max(extrapolated, len(state.moves.of_w))
        expected = X.T @ (state.coordinates[:, ALPHA] * y)
        assert np.abs(state.w - expected).max() <= 1e-13 * max(1.0, np.abs(expected).max())
    assert extrapolated > 3


def test_moves_leave_the_memory_of_one_copy():
    random = np.random.default_rng(5)
    y = random.choice([-1.0, 1.0], 300)
    few = sparse.random_array((300, 100), density=0.5, rng=random, format="csr")
    # Columns that one row holds alone: the copy without them is nearly as large as the rows.
    own = sparse.random_array((300, 70_000), density=5e-5, rng=random, format="csr")
    wide = sparse.hstack([few, own]).tocsr()
    rooms = []
    for X in (few, wide):
        problem = Problem.of(X, y, C=1.0, loss="hinge")
        state = DualCoordinateAscent().init(problem, None)
        count = most_moves(problem, state)
        held = 0 if state.data is problem.rows.data else state.data.stored
        assert held + (count + 3) * (300 + len(state.w)) <= problem.rows.stored or count == 0
        rooms.append((count, held > 0))
    assert rooms == [(10, False), (0, True)]
