# SPDX-License-Identifier: BSD-3-Clause
"""The best combination of the last moves of dual coordinate ascent, against plain NumPy."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from maxmargin import Problem, core, solve
from maxmargin.problem.rows import Rows
from maxmargin.solvers import DualCoordinateAscent
from maxmargin.solvers.ascent.extrapolation import Moves, Quadratic, extrapolate, most_moves
from maxmargin.solvers.ascent.state import ALPHA

N, D, MOVES = 30, 12, 4
BIAS, CURVATURE = 0.3, 0.02
BUDGET = core.Budget(np.inf, 1)


class Setting:
    """A point in the box, a few moves up to it, and the dual value in full."""

    def __init__(self, seed, upper, resting=(), size=0.05):
        random = np.random.default_rng(seed)
        self.X = 0.2 * random.normal(size=(N, D)) * (random.random((N, D)) < 0.6)
        self.y = random.choice([-1.0, 1.0], N)
        self.diagonal = 1.0 + random.random(N)  # so that the best point is inside the box
        self.upper = np.full(N, upper)
        self.data = Rows(sparse.csr_matrix(self.X)).compiled
        self.K = self.y[:, np.newaxis] * (self.X @ self.X.T + CURVATURE) * self.y + np.diag(self.diagonal)
        self.alpha = random.uniform(0.3, 0.7, N)
        self.alpha[list(resting)] = 0.0
        self.rows = np.setdiff1d(np.arange(N), [3, 11])  # two rows are not visited
        self.lines = size * random.normal(size=(MOVES + 1, N))  # one more than are kept
        self.lines[:, [3, 11]] = 0.0
        points = self.alpha - np.cumsum(self.lines[::-1], axis=0)[::-1]
        self.moves = Moves(MOVES, self.at(points[0]), self.rows, BUDGET)
        for point in [*points[1:], self.alpha]:
            assert self.moves.end_at(self.at(point), BUDGET)

    def at(self, alpha):
        w = self.w(alpha)
        numbers = self.y, self.upper, self.diagonal, CURVATURE, self.data, np.ones(len(self.y))
        return Quadratic(alpha.copy(), w, BIAS, *numbers)

    def w(self, alpha):
        return self.X.T @ (alpha * self.y)

    def extrapolate(self):
        found = extrapolate(self.moves, self.at(self.alpha), BUDGET)
        if found is None:
            return None
        of_alpha = np.zeros(N)
        of_alpha[self.rows] = found[0]
        return of_alpha, *found[1:]

    def value(self, alpha):
        """L, up to a constant: the pull on b is a parabola in q around where q is now."""
        change = alpha - self.alpha
        return self.slope(self.alpha) @ change - 0.5 * change @ self.K @ change

    def slope(self, alpha):
        now = 1.0 - self.y * (self.X @ self.w(self.alpha) + BIAS) - self.diagonal * self.alpha
        return now - self.K @ (alpha - self.alpha)

    def best(self, rounds=3):
        """The four lines with every product written out."""
        target = self.alpha.copy()
        resting = (target <= 0.0) | (target >= self.upper)
        for _ in range(rounds):
            kept = np.where(resting, 0.0, self.lines[1:])
            start = np.where(resting, target, self.alpha)
            t = np.linalg.solve(kept @ self.K @ kept.T, kept @ self.slope(start))
            target = np.clip(start + t @ kept, 0.0, self.upper)
            outside = target != start + t @ kept
            if not outside.any():
                break
            resting |= outside
        change = target - self.alpha
        return min(1.0, self.slope(self.alpha) @ change / (change @ self.K @ change)) * change


@pytest.mark.parametrize("resting", [[], [0, 7, 8]])
@pytest.mark.parametrize("seed", range(3))
def test_the_best_point_on_the_span(seed, resting):
    setting = Setting(seed, upper=np.inf, resting=resting)
    of_alpha, of_w, gain = setting.extrapolate()
    np.testing.assert_allclose(of_w, setting.w(of_alpha), atol=1e-10)
    # It lies in the span of the moves that are kept, and the slope along each of them is gone.
    kept = setting.lines[1:].copy()
    kept[:, resting] = 0.0
    assert np.linalg.matrix_rank(np.vstack([kept, of_alpha]), tol=1e-8) == MOVES
    before = kept @ setting.slope(setting.alpha)
    assert np.abs(kept @ setting.slope(setting.alpha + of_alpha)).max() < 1e-9 * np.abs(before).max()
    np.testing.assert_allclose(gain, setting.value(setting.alpha + of_alpha), rtol=1e-6)


@pytest.mark.parametrize("seed", range(10))
def test_walls_hold_and_the_dual_value_grows(seed):
    resting = [0, 7, 8]
    setting = Setting(seed, upper=0.72, resting=resting)
    of_alpha, of_w, gain = setting.extrapolate()
    moved = setting.alpha + of_alpha
    assert np.all(of_alpha[resting] == 0.0)
    assert moved.min() >= -1e-15
    assert moved.max() <= 0.72 + 1e-15
    np.testing.assert_allclose(of_w, setting.w(of_alpha), atol=1e-12)
    np.testing.assert_allclose(of_alpha, setting.best(), atol=1e-9)
    assert gain > 0.0
    np.testing.assert_allclose(gain, setting.value(moved), rtol=1e-8)


def test_moves_of_resting_rows_alone_lead_nowhere():
    # Of a move whose rows all rest, rounding is left, which must not be blown up.
    setting = Setting(0, upper=1.0, size=0.0)
    few = np.zeros(N)
    few[[0, 1, 2]] = 0.1, 0.2, 0.3
    for sign in (-1.0, 1.0):
        assert setting.moves.end_at(setting.at(setting.alpha + sign * few), BUDGET)
    setting.alpha += few
    setting.alpha[[0, 1, 2]] = 1.0
    assert setting.moves.end_at(setting.at(setting.alpha), BUDGET)
    assert setting.extrapolate() is None


def test_moves_are_of_no_use_when_many_rows_have_come_to_rest():
    setting = Setting(0, upper=1.0)
    setting.alpha[setting.rows[:21]] = 1.0
    assert not setting.moves.end_at(setting.at(setting.alpha), BUDGET)


def test_rows_that_are_not_visited_end_moves_that_have_hardly_begun():
    setting = Setting(0, upper=1.0)
    moves = Moves(MOVES, setting.at(setting.alpha), setting.rows, BUDGET)
    setting.alpha[3] += 0.1
    assert not moves.end_at(setting.at(setting.alpha), BUDGET)


@pytest.mark.parametrize("seed", range(3))
def test_rows_that_were_not_visited_join_the_moves(seed):
    setting = Setting(seed, upper=0.95)
    kept = list(setting.lines[3:])
    for line in 0.05 * np.random.default_rng(seed + 1).normal(size=(2, N)):
        setting.alpha += line
        assert setting.moves.end_at(setting.at(setting.alpha), BUDGET)
        kept.append(line)
    kept[-2] = np.where(
        np.isin(np.arange(N), [3, 11]), 0.0, kept[-2]
    )  # it was too late to be a part of this
    setting.lines, setting.rows = np.vstack([np.zeros(N), kept]), setting.moves.rows
    assert sorted(setting.rows) == list(range(N))
    of_alpha, of_w, gain = setting.extrapolate()
    np.testing.assert_allclose(of_alpha, setting.best(), atol=1e-9)
    np.testing.assert_allclose(of_w, setting.w(of_alpha), atol=1e-12)
    np.testing.assert_allclose(gain, setting.value(setting.alpha + of_alpha), rtol=1e-8)


def test_numbers_out_of_range_lead_nowhere():
    setting = Setting(0, upper=1.0)
    setting.moves.products[0] = np.inf
    assert setting.extrapolate() is None


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
        solver = DualCoordinateAscent(extrapolation=extrapolation, momentum=False, seed=3)
        model = solve(problem, solver, tol=1e-6, max_steps=20_000)
        assert model.status.certified
        steps.append(model.steps)
    assert steps[0] < 0.7 * steps[1]


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("intercept", ["none", "regularised", "exact"])
def test_w_and_b_stay_those_of_alpha(loss, intercept):
    X, y = nearly_equal_rows(2)
    problem = Problem.of(X, y, 100.0, loss=loss, intercept=intercept)
    solver = DualCoordinateAscent(seed=3)
    state = solver.init(problem, None)
    for _ in range(60):
        state = solver.step(problem, state, core.ALL_CORES)
    assert state.moves is not None
    alpha = state.coordinates[:, ALPHA]
    np.testing.assert_allclose(state.w, X.T @ (alpha * y), atol=1e-9)
    if intercept != "none":
        np.testing.assert_allclose(state.intercept.balance, alpha @ y, atol=1e-9)


def test_rows_are_added_to_w():
    random = np.random.default_rng(4)
    X = random.normal(size=(6, 5)) * (random.random((6, 5)) < 0.5)
    order, coefficients = np.array([4, 1, 1]), np.array([0.5, -2.0, 3.0])
    for stored in (X, sparse.csr_matrix(X)):
        w = np.ones(5)
        core.add_rows(Rows(stored).compiled, order, coefficients, w)
        np.testing.assert_allclose(w, 1.0 + X[order].T @ coefficients)
    with pytest.raises(ValueError, match="one number per row"):
        core.add_rows(Rows(X).compiled, order, coefficients[:2], w)


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
            extrapolated = max(extrapolated, len(state.moves.of_alpha))
        expected = X.T @ (state.coordinates[:, ALPHA] * y)
        assert np.abs(state.w - expected).max() <= 1e-13 * max(1.0, np.abs(expected).max())
    assert extrapolated > 3


def test_moves_leave_the_memory_of_one_copy():
    random = np.random.default_rng(5)
    y = random.choice([-1.0, 1.0], 300)
    few = sparse.random_array((300, 100), density=0.5, rng=random, format="csr")
    # Columns that one row holds alone: beside the copy without them there is less room.
    own = sparse.random_array((300, 70_000), density=2e-4, rng=random, format="csr")
    wide = sparse.hstack([few, own]).tocsr()
    rooms = []
    for X in (few, wide, few[:, :20]):
        problem = Problem.of(X, y, C=1.0, loss="hinge")
        state = DualCoordinateAscent().init(problem, None)
        rooms.append((most_moves(problem, state), state.data is not problem.rows.compiled))
    assert rooms == [(10, False), (6, True), (0, False)]


@pytest.mark.parametrize("more_columns", [0, 3000])
def test_sweeps_and_moves_take_less_than_one_copy(more_columns):
    X, y = nearly_equal_rows(2)
    more = sparse.random_array((600, more_columns), density=0.005, rng=7)
    problem = Problem.of(sparse.hstack([X, 0.1 * more]).tocsr(), y, 100.0, loss="hinge")
    solver = DualCoordinateAscent(seed=3, shrinking=False)
    state = solver.init(problem, None)
    assert most_moves(problem, state) == 10
    tracemalloc.start()
    try:
        for _ in range(80):
            state = solver.step(problem, state, BUDGET)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert state.moves is not None
    assert len(state.moves.of_alpha) > 5
    # Ten moves of two numbers per row, changes of w by these and by momentum, and numbers of rows.
    assert state.last_move is not None
    assert peak <= 8 * (10 * 2 * 600 + 2 * len(state.w) + 16 * 600)
