# SPDX-License-Identifier: BSD-3-Clause
"""Step sizes of any kind, means from T_0 on, steps of its own for b, and batches of different rows."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from maxmargin import LinearSVC, Problem, core, solve
from maxmargin.files import load_model, save_model
from maxmargin.files.models.fitted import to_estimator
from maxmargin.solvers import Pegasos, StochasticSubgradient, Subgradient
from problems import clouds

UNLIMITED = core.Budget(np.inf, 1)
FIRST_ORDER = [Subgradient, StochasticSubgradient, Pegasos]


def problem_of(**options):
    X, y = clouds(n=30, d=3)
    return Problem.of(X, y, 0.3, **options)


@pytest.mark.parametrize("kind", FIRST_ORDER)
def test_a_function_is_asked_for_every_step_in_turn(kind):
    problem, asked = problem_of(), []

    def step_size(t):
        asked.append(t)
        return 1.0 / t

    solver = kind(step_size=step_size, polish=0)
    state = solver.init(problem, None)
    for _ in range(2):
        state = solver.step(problem, state, UNLIMITED)
    assert asked == list(range(1, state.t + 1))
    assert all(type(t) is int for t in asked)


@pytest.mark.parametrize("kind", FIRST_ORDER)
@pytest.mark.parametrize("wrong", [0.0, -1.0, np.inf, np.nan, "0.5", None])
def test_a_function_with_a_wrong_value_is_refused_in_words(kind, wrong):
    with pytest.raises(ValueError, match=rf"'step_size' parameter of {kind.__name__} .* At t = 3 it gives"):
        solve(problem_of(), kind(step_size=lambda t: 0.1 if t < 3 else wrong), tol=0.0, max_steps=5)


@pytest.mark.parametrize("kind", FIRST_ORDER)
def test_the_last_value_of_a_sequence_is_repeated(kind):
    problem = problem_of()
    short = solve(problem, kind(step_size=[0.5, 0.25]), tol=0.0, max_steps=4)
    for same in ((0.5, 0.25, 0.25), np.array([0.5] + [0.25] * 500), lambda t: 0.5 if t == 1 else 0.25):
        np.testing.assert_array_equal(solve(problem, kind(step_size=same), tol=0.0, max_steps=4).w, short.w)


def test_the_mean_from_the_first_step_on_is_the_mean_of_all_and_has_its_bound():
    problem = problem_of(intercept="regularised")
    every, first = (solve(problem, Pegasos(average=which), tol=0.0, max_steps=5) for which in ("all", 1))
    np.testing.assert_array_equal(first.w, every.w)
    assert first.notes == every.notes
    assert "bound" in first.notes


@pytest.mark.parametrize(
    "options",
    [
        {"average": 2},
        {"eta": 0.5},
        {"step_size": lambda t: 1.0 / t},
        {"intercept_step_size": 0.5},
        {"order": "epochs"},
    ],
)
def test_the_bound_is_that_of_the_lecture_s_steps_alone(options):
    problem = problem_of(intercept="regularised")
    assert "bound" not in solve(problem, Pegasos(**options), tol=0.0, max_steps=2).notes
    assert "bound" in solve(problem, Pegasos(order="without_repetition"), tol=0.0, max_steps=2).notes


def test_a_mean_that_begins_in_a_step_cut_short_holds_what_was_counted():
    problem = problem_of()
    solver = StochasticSubgradient(average=20, polish=0)
    state = solver.step(problem, solver.init(problem, None), core.Budget(0.0, 1))
    assert state.t == 0
    ours = solver.solution(problem, state, UNLIMITED)
    np.testing.assert_array_equal(ours.w, state.iterate.scale * state.v)


def test_the_steps_by_which_the_full_method_finds_its_size_count_in_its_mean():
    problem, answers = problem_of(), {}
    for which in ("last", "all", 70):
        solver = Subgradient(average=which, polish=0)
        state = solver.init(problem, None)
        answers[which] = []
        while state.t < 80:
            state = solver.step(problem, state, UNLIMITED)
            answers[which].append((state.t, solver.solution(problem, state, UNLIMITED).w))
    (trial, _), *_ = answers["last"]
    assert 1 < trial < 70, "the first step has taken several"
    # w_T is the last iterate after step T - 1, and the mean of all has T members.
    w = dict(answers["last"])
    (t, mean), (_, after) = answers["all"][:2]
    np.testing.assert_allclose((t + 1) * after - t * mean, w[t], rtol=1e-9)
    np.testing.assert_allclose(
        answers[70][-1][1], np.mean([w[k] for k in range(69, 80)], axis=0), rtol=1e-12
    )


@pytest.mark.parametrize("kind", FIRST_ORDER)
def test_the_first_step_of_a_mean_may_be_an_integer_of_any_kind(kind):
    w = [solve(problem_of(), kind(average=k), tol=0.0, max_steps=90).w for k in (61, np.int64(61), "all")]
    np.testing.assert_array_equal(w[1], w[0])
    assert not np.array_equal(w[2], w[0])


def test_batches_of_different_rows_are_independent_and_uniform():
    n, k, batches = 5, 2, 6000
    order = np.empty(batches * k, np.int64)
    core.draw_batches(order, k, np.arange(n), 3)
    pairs = np.sort(order.reshape(batches, k), axis=1)
    assert np.all(pairs[:, 0] < pairs[:, 1]), "no row twice"
    codes = pairs @ [n, 1]
    expected = batches / len(list(combinations(range(n), k)))
    counts = np.array([np.sum(codes == a * n + b) for a, b in combinations(range(n), k)])
    # Pearson's statistic has 9 degrees of freedom: 27.9 is exceeded once in a thousand.
    assert np.sum((counts - expected) ** 2) / expected < 27.9
    # A step knows nothing of the step before: it has the same pair in a tenth of all cases, not in none.
    assert np.mean(codes[1:] == codes[:-1]) == pytest.approx(0.1, abs=0.02)


@pytest.mark.parametrize("batch", [0, -1, 4])
def test_a_batch_has_to_fit_its_pool(batch):
    with pytest.raises(ValueError, match="between 1 and all members"):
        core.draw_batches(np.empty(8, np.int64), batch, np.arange(3), 0)


def test_a_batch_of_all_rows_is_the_full_method():
    problem = problem_of()
    options = {"step_size": "constant", "eta": 0.2, "polish": 0}
    whole = StochasticSubgradient(batch=30, order="without_repetition", average="last", **options)
    full = Subgradient(**options)
    ours, theirs = whole.init(problem, None), full.init(problem, None)
    for _ in range(5):
        ours = whole.step(problem, ours, UNLIMITED)
        theirs = full.step(problem, theirs, UNLIMITED)
    np.testing.assert_allclose(ours.iterate.scale * ours.v, theirs.point.w, rtol=1e-12)


@pytest.mark.parametrize("kind", [Subgradient, StochasticSubgradient])
def test_b_needs_another_step_size_where_rows_are_long(kind):
    # Rows of length 30 want steps of about 1 / 900. With such steps b, which has to get to -29, creeps.
    score = np.linspace(10.0, 30.0, 60)
    X = np.column_stack([score, np.random.default_rng(0).normal(size=(60, 3))])
    problem = Problem.of(X, np.where(score > 20.0, 1.0, -1.0), 1.0)
    steps, values = 200 if kind is Subgradient else 10, []
    for factor in (1.0, 1000.0):
        solver = kind(step_size="decreasing", eta=1.0, t0=500.0, intercept_step_size=factor, polish=0)
        state = solver.init(problem, None)
        for _ in range(steps):
            state = solver.step(problem, state, UNLIMITED)
        found = solver.solution(problem, state, UNLIMITED)
        values.append(problem.primal(found.w, found.b))
    assert values[1] < 0.3 * values[0]


@pytest.mark.parametrize("step_size", [(0.5, 0.25), np.array([0.5]), lambda t: 1.0 / t])
def test_a_model_is_saved_without_a_solver_that_words_and_numbers_do_not_describe(tmp_path, step_size):
    X, y = clouds(n=30, d=3)
    model = LinearSVC(solver=Pegasos(step_size=step_size), loss="hinge", tol=0.5).fit(X, y)
    save_model(model, tmp_path / "model.mm")
    assert to_estimator(load_model(tmp_path / "model.mm"), LinearSVC).solver == "auto"
    save_model(model.set_params(solver=Pegasos(average=4)), tmp_path / "model.mm")
    assert to_estimator(load_model(tmp_path / "model.mm"), LinearSVC).solver == Pegasos(average=4)
