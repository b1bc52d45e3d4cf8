# SPDX-License-Identifier: BSD-3-Clause
"""From the end of a sweep of dual coordinate ascent further along its way, against plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from combinations import every_pair
from maxmargin import Problem, core, solve
from maxmargin.problem.rows import Rows
from maxmargin.problem.twin_rows import TwinRows
from maxmargin.solvers import DualCoordinateAscent
from maxmargin.solvers.ascent.momentum import LastMove
from maxmargin.solvers.ascent.state import ALPHA, COST, DIAGONAL, INVERSE_CURVATURE, LABEL, TARGET

N, D = 40, 15
CURVATURE = 0.02


class Setting:
    """A point in the box, where it was before, and the dual value in full."""

    def __init__(self, seed, squared, stored=sparse.csr_matrix, length=0.3):
        random = np.random.default_rng(seed)
        self.squared = squared
        self.X = 0.3 * random.normal(size=(N, D)) * (random.random((N, D)) < 0.6)
        self.y = random.choice([-1.0, 1.0], N)
        self.diagonal = random.random(N) * (1.0 if squared else 0.1)
        self.upper = np.full(N, np.inf if squared else 0.8)
        # Some rows came to rest on a wall, some have not moved, and the others went the way L rises.
        self.before = random.uniform(0.1, 0.6, N)
        self.bias = 0.3
        slope = 1.0 - self.y * (self.X @ self.w(self.before) + self.bias) - self.diagonal * self.before
        self.alpha = np.clip(self.before + length * slope, 0.05, np.minimum(self.upper - 0.05, 10.0))
        self.alpha[:4] = 0.0
        if not squared:
            self.alpha[4:8] = self.upper[4:8]
        self.alpha[8:12] = self.before[8:12]
        self.data = Rows(stored(self.X)).compiled
        self.coordinates = np.zeros((N, 6))
        self.coordinates[:, ALPHA] = self.alpha
        self.coordinates[:, INVERSE_CURVATURE] = 1.0
        self.coordinates[:, COST] = 0.8
        self.coordinates[:, DIAGONAL] = self.diagonal
        self.coordinates[:, LABEL] = self.y
        self.coordinates[:, TARGET] = 1.0

    def w(self, alpha):
        return self.X.T @ (alpha * self.y)

    def value(self, alpha):
        """L, up to a constant: the pull on b is a parabola in q around where q is now."""
        q = (alpha - self.alpha) @ self.y
        squares = self.w(alpha) @ self.w(alpha) + self.diagonal @ alpha**2
        return alpha.sum() - 0.5 * squares - self.bias * q - 0.5 * CURVATURE * q**2

    def best_length(self, change):
        """Of the parabola that L is along ``change``, from three of its values."""
        here, ahead, back = (self.value(self.alpha + t * change) for t in (0.0, 1.0, -1.0))
        return (ahead - back) / 2.0 / (2.0 * here - ahead - back)

    def expected(self):
        """Lines 1 to 4 of the algorithm."""
        resting = (self.alpha <= 0.0) | (self.alpha >= self.upper)
        move = np.where(resting, 0.0, self.alpha - self.before)
        if self.best_length(move) <= 0.0:
            return self.alpha
        target = np.clip(self.alpha + min(self.best_length(move), 1.0) * move, 0.0, self.upper)
        change = target - self.alpha
        return self.alpha + np.clip(self.best_length(change), 0.0, 1.0) * change

    def go_on(self):
        w, order = self.w(self.alpha), np.random.default_rng(1).permutation(N)
        last = LastMove(self.before, self.w(self.before), order)
        bias, gain = last.go_on(self.data, self.squared, self.coordinates, order, w, self.bias, CURVATURE)
        return self.coordinates[:, ALPHA].copy(), w, bias, gain, last


@every_pair(
    seed=range(5), length=[0.05, 0.3], squared=[True, False], stored=[sparse.csr_matrix, np.asarray]
)
def test_the_best_point_along_the_move(seed, length, squared, stored):
    setting = Setting(seed, squared, stored, length)
    alpha, w, bias, gain, last = setting.go_on()
    np.testing.assert_allclose(alpha, setting.expected(), rtol=1e-9)
    np.testing.assert_allclose(w, setting.w(alpha), atol=1e-13)
    np.testing.assert_allclose(bias, setting.bias + CURVATURE * (alpha - setting.alpha) @ setting.y)
    np.testing.assert_allclose(gain, setting.value(alpha) - setting.value(setting.alpha), rtol=1e-9)
    assert gain > 0.0
    # The next move begins where this one ended, before it was gone on by.
    setting.before, setting.bias = setting.alpha.copy(), bias
    setting.alpha = np.clip(alpha + 0.02 * np.cos(np.arange(N)), 0.0, setting.upper)
    setting.coordinates[:, ALPHA] = setting.alpha
    expected, w = setting.expected(), setting.w(setting.alpha)
    order = np.arange(N)
    last.go_on(setting.data, squared, setting.coordinates, order, w, bias, CURVATURE)
    np.testing.assert_allclose(setting.coordinates[:, ALPHA], expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(w, setting.w(expected), atol=1e-12)


def test_it_does_not_go_on_downhill():
    setting = Setting(0, squared=True)
    setting.before = 2.0 * setting.alpha - setting.before  # so that the move went the other way
    alpha, w, bias, gain, _ = setting.go_on()
    np.testing.assert_array_equal(alpha, setting.alpha)
    np.testing.assert_array_equal(w, setting.w(setting.alpha))
    assert (bias, gain) == (setting.bias, 0.0)


def test_a_move_needs_a_number_for_every_row():
    setting = Setting(0, squared=True)
    with pytest.raises(ValueError, match="one number per row"):
        LastMove(setting.before[1:], setting.w(setting.before), np.arange(N)).go_on(
            setting.data, True, setting.coordinates, np.arange(N), np.zeros(D), 0.0, CURVATURE
        )
    with pytest.raises(ValueError, match="out of range"):
        LastMove(setting.before, setting.w(setting.before), np.array([N])).go_on(
            setting.data, True, setting.coordinates, np.arange(N), np.zeros(D), 0.0, CURVATURE
        )


def images(n=1500, d=120, seed=0):
    """Long rows that overlap in many columns, of two classes that mostly can be told apart."""
    random = np.random.default_rng(seed)
    y = random.choice([-1.0, 1.0], n)
    X = np.abs(random.normal(size=(n, d)) + 0.15 * np.multiply.outer(y, random.normal(size=d))) + 0.2
    return X, y


@pytest.mark.parametrize("intercept", ["none", "regularised", "exact"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_it_saves_sweeps_where_rows_are_long(loss, intercept):
    X, y = images()
    problem = Problem.of(X, y, 0.02, loss=loss, intercept=intercept)
    steps = {True: 0, False: 0}
    for seed in range(4):
        for momentum in steps:
            model = solve(
                problem, DualCoordinateAscent(momentum=momentum, extrapolation=False, seed=seed), tol=1e-5
            )
            assert model.status.certified
            steps[momentum] += model.steps
    assert steps[True] < 0.9 * steps[False]


@pytest.mark.parametrize("intercept", ["none", "regularised"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_w_and_the_dual_value_stay_those_of_alpha(loss, intercept):
    X, y = images(n=300)
    problem = Problem.of(X, y, 0.02, loss=loss, intercept=intercept)
    solver = DualCoordinateAscent(bias_reach=np.inf, seed=3)
    state = solver.init(problem, None)
    went_on = 0
    for _ in range(60):
        state = solver.step(problem, state, core.ALL_CORES)
        went_on += state.last_move is not None
        alpha = state.coordinates[:, ALPHA]
        np.testing.assert_allclose(state.w, X.T @ (alpha * y), atol=1e-12)
        np.testing.assert_allclose(state.dual, problem.dual(alpha), rtol=1e-11)
    assert went_on > 5


def test_short_rows_do_without():
    X, y = images(d=20)
    solver = DualCoordinateAscent()
    problem = Problem.of(X, y, 0.02)
    state = solver.step(problem, solver.init(problem, None), core.ALL_CORES)
    assert state.last_move is None


def test_it_begins_where_the_gap_falls_slowly():
    random = np.random.default_rng(6)
    X = sparse.random_array((2000, 400), density=0.1, rng=6, format="csr")
    y = np.sign(X @ random.normal(size=400) + 0.1 * random.normal(size=2000))
    begun, sweeps = {}, {}
    for C in (0.01, 10.0):  # with the small one, sweeps leave less than half of the gap
        problem = Problem.of(X, y, C, loss="squared_hinge")
        for momentum in (True, False):
            solver = DualCoordinateAscent(momentum=momentum, extrapolation=False, warm_up=False)
            state, begun[C, momentum], sweeps[C, momentum] = solver.init(problem, None), False, 0
            while solver.report(state).gap > 1e-3:
                state = solver.step(problem, state, core.ALL_CORES)
                begun[C, momentum] |= state.last_move is not None
                sweeps[C, momentum] += 1
    assert [case for case, has_begun in begun.items() if has_begun] == [(10.0, True)]
    assert sweeps[10.0, True] < 0.5 * sweeps[10.0, False]


def test_a_visit_of_a_twin_reads_its_example():
    X, y = images(n=40)
    rows = Problem.of(X, y, 1.0).rows
    assert TwinRows(rows).row_length == rows.row_length == 120.0


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_sweeps_soon_leave_out_most_rows_that_are_no_support_vectors(loss):
    random = np.random.default_rng(5)
    y = random.choice([-1.0, 1.0], 4000)
    X = random.normal(size=(4000, 60)) + 0.25 * np.multiply.outer(y, random.normal(size=60))
    problem = Problem.of(X, y, 0.03, loss=loss)
    solver = DualCoordinateAscent(seed=2)
    state, visits, sweeps = solver.init(problem, None), 0, 0
    while solver.report(state).gap > 1e-3:
        visits += len(state.visits.order)
        sweeps += 1
        state = solver.step(problem, state, core.ALL_CORES)
    assert np.count_nonzero(state.coordinates[:, ALPHA]) < 0.1 * len(y)
    assert sweeps > 10
    assert visits < 6.2 * len(y)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_steps_are_exact_where_momentum_looks_ahead(loss):
    random = np.random.default_rng(8)
    X = random.normal(size=(200, 100))
    y = np.sign(X @ random.normal(size=100) + random.normal(size=200))
    ends = {}
    for columns in (100, 4):  # of which momentum is worth it for the longer rows alone
        problem = Problem.of(X[:, :columns], y, C=0.1, loss=loss)
        for relaxation in (None, 1.0):
            solver = DualCoordinateAscent(relaxation=relaxation, shrinking=False, warm_up=False)
            state = solver.init(problem, None)
            for _ in range(5):
                state = solver.step(problem, state, core.ALL_CORES)
            assert (state.last_move is not None) == (columns == 100)
            ends[columns, relaxation] = state.coordinates[:, ALPHA].copy()
    np.testing.assert_array_equal(ends[100, None], ends[100, 1.0])
    assert np.abs(ends[4, None] - ends[4, 1.0]).max() > 1e-6
