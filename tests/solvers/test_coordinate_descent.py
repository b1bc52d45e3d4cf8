# SPDX-License-Identifier: BSD-3-Clause
"""The l1 penalty: coordinate descent step by step, and what its proofs say, also in exact arithmetic."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.preprocessing import scale
from sklearn.svm import l1_min_c

from combinations import every_pair
from maxmargin import (
    LinearSVC,
    LinearSVCCV,
    LogisticRegression,
    Problem,
    Solution,
    certify,
    core,
    path,
    smallest_C,
    solve,
    whole_path,
)
from maxmargin.core import ALL_CORES
from maxmargin.independent.arithmetic import Vector
from maxmargin.independent.rows import PlainRows
from maxmargin.independent.values import ExactProblem, lower_bound, primal
from maxmargin.problem.rows import Rows
from maxmargin.proof.model import Status
from maxmargin.solvers import CoordinateDescent, coordinate_descent
from maxmargin.solvers.columns import point, working_set
from maxmargin.solvers.columns.jumps import best_move, share_of_line
from oracles.coordinate_descent import coordinate_descent as oracle
from problems import INTERCEPTS, LAYOUTS, clouds
from quadratic_program import solve_by_quadratic_program

LOSSES = ["squared_hinge", "logistic"]


def drawn(seed, n=60, d=25, scales=0.0):
    """Rows of which some columns tell the classes apart, over some orders of magnitude."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d)) * 10.0 ** random.uniform(-scales, scales, size=d)
    X[random.random((n, d)) < 0.3] = 0.0
    scores = X @ (random.normal(size=d) * (random.random(d) < 0.3)) + random.normal(size=n)
    return X.astype(np.float32).astype(np.float64), np.where(scores > np.median(scores), 1.0, -1.0)


WAYS = {"whole": (200, 1000), "products": (0, 1000), "columns": (0, 0)}
"""Columns up to which all are in every working set, and up to which their products are written down."""


def take_way(name, monkeypatch):
    few, products = WAYS[name]
    monkeypatch.setattr(coordinate_descent, "_FEW_COLUMNS", few)
    monkeypatch.setattr(working_set, "_ALL_PRODUCTS", products)


@every_pair(
    loss=LOSSES, intercept=INTERCEPTS, way=WAYS, layout=LAYOUTS, C=[0.3, 1.0], careful_after=[0, 2, 1000]
)
def test_every_step_is_that_of_the_oracle(loss, intercept, way, layout, C, careful_after, monkeypatch):
    take_way(way, monkeypatch)
    monkeypatch.setattr(point, "_PATIENCE", 1000)
    X, y = drawn(3)
    data = LAYOUTS[layout](X)
    problem = Problem.of(data, y, C, loss=loss, intercept=intercept, intercept_scaling=2.0, penalty="l1")
    solver = CoordinateDescent(least_columns=4, sweeps=7, newton_steps=3)
    state = solver.init(problem, None)
    by_columns = way == "columns" or (way == "products" and sparse.issparse(data))
    options = {"loss": loss, "intercept": intercept, "s": 2.0, "stored": problem.rows.stored}
    options |= {"by_columns": by_columns, "whole": way == "whole"}
    options |= {"careful_after": careful_after, "by_columns_with_care": way == "columns"}
    options |= {"least": 4, "newton_steps": 3, "sweeps": 7}
    steps = oracle(X, y, problem.costs, state.w.copy(), state.b, 6, **options)
    for done, (w, b) in enumerate(steps):
        state.careful = done >= careful_after
        state = solver.step(problem, state, ALL_CORES)
        np.testing.assert_allclose(state.w, w, rtol=1e-6, atol=1e-8)
        np.testing.assert_array_equal(state.w == 0.0, w == 0.0)
        assert state.b == pytest.approx(b, rel=1e-6, abs=1e-8)


def test_loose_models_end_after_steps_that_do_not_halve_the_gap():
    X, y = drawn(3)
    state = CoordinateDescent().init(Problem.of(X, y, loss="logistic", penalty="l1"), None)
    state.gap = state.halved = 0.8
    for waited in range(1, point._PATIENCE):
        state.judge()
        assert (state.waited, state.careful) == (waited, False)
    state.gap = 0.4
    state.judge()
    assert (state.waited, state.halved, state.careful) == (0, 0.4, False)
    state.gap, state.waited = 0.3, point._PATIENCE - 1
    state.judge()
    assert state.careful
    state.gap = 0.1
    state.judge()
    assert state.careful  # for good


@pytest.mark.parametrize("loss", LOSSES)
def test_nothing_to_gain_with_loose_models_is_not_the_end(loss):
    X, y = drawn(3)
    problem = Problem.of(X, y, loss=loss, penalty="l1")
    solver = CoordinateDescent()
    state = solver.init(problem, None)
    while not state.finished:
        was_careful = state.careful
        state = solver.step(problem, state, ALL_CORES)
    assert was_careful
    assert state.gap <= 1e-12


@every_pair(loss=LOSSES, intercept=INTERCEPTS, C=[1e-3, 0.1, 10.0], way=WAYS, seed=range(4))
def test_the_gap_bounds_the_truth(loss, intercept, C, way, seed, monkeypatch):
    take_way(way, monkeypatch)
    X, y = drawn(seed)
    weights = np.random.default_rng(seed).integers(0, 3, len(y)).astype(np.float64)
    options = {"loss": loss, "intercept": intercept, "weights": weights, "penalty": "l1"}
    problem = Problem.of(X, y, C, **options, intercept_scaling=0.7)
    *_, best = solve_by_quadratic_program(X, y, problem.costs, loss, intercept, 0.7, penalty="l1")
    for tol in (1e-1, 1e-8):
        proof = solve(problem, tol=tol).certificate
        assert proof.relative_gap <= tol
        assert proof.dual <= best * (1 + 1e-8)
        assert proof.primal >= best * (1 - 1e-8)
        assert proof.kkt_violation >= 0.0


def exactly(problem, X):
    rows = PlainRows([Vector.of(row) for row in X.tolist()])
    fractions = [Fraction(cost) for cost in problem.costs.tolist()]
    stated = problem.loss.name, problem.intercept.value, Fraction(problem.intercept_scaling)
    return ExactProblem(rows, problem.y.astype(int).tolist(), fractions, *stated, penalty="l1")


@every_pair(loss=LOSSES, intercept=INTERCEPTS, scales=[0.0, 3.0, 8.0], seed=range(10))
def test_proofs_hold_in_exact_arithmetic(loss, intercept, scales, seed):
    X, y = drawn(seed, n=20, d=6, scales=scales)
    random = np.random.default_rng(seed)
    C, s = 10.0 ** random.uniform(-6, 6), 10.0 ** random.uniform(-2, 2)
    problem = Problem.of(X, y, C, loss=loss, intercept=intercept, intercept_scaling=s, penalty="l1")
    exact = exactly(problem, X)
    runs = [solve(problem, tol=tol, max_steps=20).certificate for tol in (1e-1, 1e-9)]
    # Any points will do, also such as no solver proposes.
    far = Solution(w=random.normal(size=6) * 10.0 ** random.uniform(-6, 2), alpha=C * random.random(len(y)))
    for proof in [*runs, certify(problem, far)]:
        value = primal(exact, Vector.of(proof.w.tolist()), Fraction(proof.b))
        assert Fraction(proof.primal) >= value.low
        bound = lower_bound(exact, [Fraction(a) for a in proof.alpha.tolist()], value.high)
        assert Fraction(proof.dual) <= bound


def test_multipliers_are_feasible_and_scaled_no_more_than_needed():
    X, y = drawn(0)
    problem = Problem.of(X, y, 1.0, loss="squared_hinge", penalty="l1")
    proof = certify(problem, Solution(w=np.zeros(25)))
    largest = np.abs(problem.rows.combine(proof.alpha * y)).max()
    assert 1.0 - 1e-10 <= largest <= 1.0
    assert problem.dual_size(proof.alpha, proof.w_of_alpha) <= 1.0
    # What is not feasible is worth what is left when it is made feasible.
    beyond = 3.0 * proof.alpha
    assert problem.dual(beyond) <= problem.dual(proof.alpha) + 1e-9 * proof.primal


@every_pair(loss=LOSSES, intercept=INTERCEPTS, seed=[1, 2])
def test_weights_are_repetition_and_order_does_not_matter(loss, intercept, seed):
    X, y = drawn(seed)
    times = np.random.default_rng(seed).integers(1, 4, len(y))
    options = {"loss": loss, "intercept": intercept, "penalty": "l1"}
    weighted = solve(Problem.of(X, y, 0.5, weights=times, **options), tol=1e-10)
    repeated = solve(
        Problem.of(np.repeat(X, times, axis=0), np.repeat(y, times), 0.5, **options), tol=1e-10
    )
    order = np.random.default_rng(seed).permutation(25)
    turned = solve(Problem.of(X[::-1, order], y[::-1], 0.5, weights=times[::-1], **options), tol=1e-10)
    for other in (repeated.w, turned.w[np.argsort(order)]):
        np.testing.assert_allclose(weighted.w, other, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_answer_is_that_of_liblinear(loss):
    liblinearutil = pytest.importorskip("liblinear.liblinearutil")
    X, y = drawn(7, n=120)
    ours = LinearSVC("l1", loss, regularize_intercept=True, intercept_scaling=2.0, C=0.4, tol=1e-9).fit(
        X, y
    )
    solver = 5 if loss == "squared_hinge" else 6
    model = liblinearutil.train(y, sparse.csr_matrix(X), f"-s {solver} -c 0.4 -B 2 -e 1e-7 -q")
    theirs = np.array(model.w[:26]) * (1.0 if model.label[0] == 1 else -1.0)
    np.testing.assert_allclose(ours.coef_[0], theirs[:25], atol=2e-4)
    assert ours.intercept_[0] == pytest.approx(2.0 * theirs[25], abs=2e-4)


@every_pair(loss=LOSSES, intercept=INTERCEPTS, layout=["dense C float64", "CSR float32 int32"])
def test_the_first_column_enters_where_smallest_C_says(loss, intercept, layout):
    X, y = drawn(5)
    problem = Problem.of(LAYOUTS[layout](X), y, loss=loss, intercept=intercept, penalty="l1")
    first = smallest_C(problem)
    models = path(problem, [0.999 * first, 1.01 * first, 10.0 * first], tol=1e-6)
    used = [
        np.count_nonzero(np.append(model.w, model.b * (intercept == "regularised"))) for model in models
    ]
    assert used[0] == 0
    assert 0 < used[1] <= used[2]
    assert all(model.status.certified for model in models)
    if intercept != "exact":
        theirs = {"squared_hinge": "squared_hinge", "logistic": "log"}[loss]
        by_peer = l1_min_c(X, y, loss=theirs, fit_intercept=intercept == "regularised")
        assert first == pytest.approx(by_peer)


def test_a_path_is_the_models_of_its_values():
    X, y = drawn(11, n=100)
    problem = Problem.of(X, y, loss="logistic", penalty="l1")
    Cs = smallest_C(problem) * np.geomspace(1.0, 100.0, 6)
    for C, model in zip(Cs, path(problem, Cs, tol=1e-7), strict=True):
        alone = solve(problem.with_costs_times(C), tol=1e-7)
        assert model.certificate.primal == pytest.approx(alone.certificate.primal, rel=2e-7)
    with pytest.raises(ValueError, match="l2 penalty"):
        whole_path(problem, 0.1, 1.0)
    with pytest.raises(ValueError, match="penalty='l1'"):
        smallest_C(Problem.of(X, y))


def test_other_solvers_and_other_problems_are_refused_with_a_sentence():
    X, y = drawn(1)
    problem = Problem.of(X, y, loss="logistic", penalty="l1")
    with pytest.raises(
        ValueError, match=r"newton solves problems with the l2 penalty\. Use coordinate_descent"
    ):
        solve(problem, "newton")
    with pytest.raises(ValueError, match="dual_coordinate_ascent or newton for the l2 penalty"):
        solve(Problem.of(X, y, loss="logistic"), "coordinate_descent")
    with pytest.raises(ValueError, match="penalty must be one of 'l2', 'l1'"):
        Problem.of(X, y, penalty="l0")
    with pytest.raises(ValueError, match="smooth losses"):
        Problem.of(X, y, loss="hinge", penalty="l1")
    with pytest.raises(ValueError, match="w follows from alpha alone"):
        problem.primal_from_dual(np.zeros(len(y)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "hinge"}, "Unsupported set of arguments.*loss='hinge'"),
        ({"dual": True}, "Unsupported set of arguments.*dual=True"),
        ({"C": np.inf}, "C must be finite with the l1 penalty"),
        ({"solver": "newton"}, "Use coordinate_descent"),
    ],
)
def test_combinations_that_there_are_not(options, message):
    with pytest.raises(ValueError, match=message):
        LinearSVC("l1", **options).fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize("kind", [LinearSVC, LogisticRegression])
def test_several_classes_are_certified_and_sparse(kind):
    X, y = load_iris(return_X_y=True)
    model = kind(penalty="l1", C=0.05).fit(scale(X), y)
    assert model.coef_.shape == (3, 4)
    assert 0 < np.count_nonzero(model.coef_) < 12
    assert all(proof.relative_gap <= 1e-4 for proof in model.certificate_)
    assert model.solver_.startswith("coordinate_descent: ")
    dense = model.decision_function(scale(X))
    assert sparse.issparse(model.sparsify().coef_)
    np.testing.assert_allclose(model.decision_function(scale(X)), dense)
    if kind is LogisticRegression:
        np.testing.assert_allclose(model.predict_proba(scale(X)).sum(axis=1), 1.0)


def test_what_rests_on_the_curvature_of_the_l2_penalty_says_so():
    X, y = load_breast_cancer(return_X_y=True)
    model = LinearSVC("l1", C=0.1).fit(scale(X), y)
    for ask in (model.is_sure, model.decision_bounds):
        with pytest.raises(ValueError, match="Use penalty='l2'"):
            ask(scale(X))
    with pytest.raises(ValueError, match="penalty='l2'"):
        model.leave_one_out(scale(X), y)
    with pytest.raises(ValueError, match="GridSearchCV"):
        LinearSVCCV("l1").fit(scale(X), y)


@pytest.mark.parametrize("loss", LOSSES)
def test_warm_starts_and_time_limits(loss):
    X, y = load_breast_cancer(return_X_y=True)
    model = LinearSVC("l1", loss, tol=1e-6, warm_start=True).fit(scale(X), y)
    value, steps = model.certificate_.primal, model.n_iter_
    assert model.fit(scale(X), y).n_iter_ <= steps
    assert model.certificate_.primal <= value
    seen = []
    for limit, word in (({"max_iter": 2}, "2 steps"), ({"max_time": 0.0}, "max_time")):
        stopped = LinearSVC("l1", loss, tol=1e-9, callback=seen.append, **limit)
        with pytest.warns(match=word):
            stopped.fit(scale(X), y)
        assert 0.0 < stopped.certificate_.relative_gap <= 1.0
    assert seen


def test_columns_that_depend_on_each_other_and_rows_without_values():
    X, y = clouds(n=60, d=5, seed=3)
    X = np.column_stack([X, X[:, :2], X[:, 0] - X[:, 1], np.zeros(60), np.ones(60)])
    X[::7] = 0.0
    for loss in LOSSES:
        problem = Problem.of(X, y, 1.0, loss=loss, penalty="l1")
        proof = solve(problem, tol=1e-8).certificate
        assert proof.relative_gap <= 1e-8
        some = replace(problem, rows=Rows(sparse.csr_matrix(X)))
        assert solve(some, tol=1e-8).certificate.primal == pytest.approx(proof.primal, rel=1e-7)


@pytest.mark.parametrize("size", [1e15, 1e20, 1e30])
def test_rows_of_any_size_that_a_plane_separates_come_to_an_end(size):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(20, 2))
    y = np.where(X[:, 0] + 0.1 * X[:, 1] > 0.0, 1, -1)
    problem = Problem.of(size * X, y, 1.0, loss="logistic", penalty="l1")
    model = solve(problem, max_steps=200)
    assert model.status is not Status.STEPS_SPENT
    assert model.certificate.primal < 1e-10


def indicators(seed=0, n=3000):
    """Attributes of several values each, one column per value: those of an attribute add up to 1."""
    rng = np.random.default_rng(seed)
    X = np.hstack([np.eye(k)[rng.integers(0, k, size=n)] for k in (2, 5, 9, 16, 7)])
    scores = X @ rng.normal(size=X.shape[1]) + rng.normal(size=n)
    return X, np.where(scores > 0.0, 1.0, -1.0)


@every_pair(loss=LOSSES, intercept=INTERCEPTS, C=[0.1, 10.0])
def test_columns_that_add_up_to_one_take_a_few_models(loss, intercept, C):
    X, y = indicators()
    problem = Problem.of(X, y, C, loss=loss, intercept=intercept, penalty="l1")
    model = solve(problem, tol=1e-6)
    assert model.certificate.relative_gap <= 1e-6
    assert model.steps <= 8  # with jumps that end where the first column becomes 0, more than twice as many


def test_the_multipliers_of_a_model_prove_what_those_of_the_point_do_not():
    X, y = drawn(2, n=400)
    problem = Problem.of(X, y, 1.0, loss="logistic", penalty="l1")
    solver = CoordinateDescent()
    state = solver.init(problem, None)
    gains = []
    for _ in range(8):
        state = solver.step(problem, state, ALL_CORES)
        proposed = solver.solution(problem, state, ALL_CORES)
        with_model, alone = (
            certify(problem, Solution(w=proposed.w, b=proposed.b, alpha=alpha)).relative_gap
            for alpha in (proposed.alpha, None)
        )
        gains.append(alone / max(with_model, 1e-12))
    assert max(gains) > 3.0


@pytest.mark.parametrize("seed", range(30))
def test_a_jump_ends_at_the_least_value_on_its_line(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 9))
    before = rng.normal(size=size)
    half = rng.normal(size=(int(rng.integers(1, size + 1)), size))  # often fewer rows than columns
    products, gradient = half.T @ half, 3.0 * rng.normal(size=size)
    thresholds = rng.choice([0.0, 0.5, 2.0], size=size)

    def rise(point):
        change = point - before
        held = thresholds @ (np.abs(point) - np.abs(before))
        return gradient @ change + 0.5 * change @ products @ change + held

    step = rng.normal(size=size) * 10.0 ** rng.uniform(-1, 1)
    slope = step @ (gradient + thresholds * np.sign(before))
    step = -np.sign(slope) * step
    ends = np.full(size, np.inf)
    crosses = (before * step < 0.0) & (thresholds > 0.0)
    ends[crosses] = -before[crosses] / step[crosses]
    curvature = step @ products @ step
    share, last = share_of_line(-abs(slope), curvature, ends, 2.0 * thresholds * np.abs(step))
    candidates = np.concatenate([np.linspace(0.0, 2.0 * share, 2001), ends[np.isfinite(ends)]])
    assert rise(before + share * step) <= min(rise(before + t * step) for t in candidates) + 1e-12
    assert last < 0 or share == ends[last]
    moved = best_move(before, step, thresholds, gradient, lambda d: (products @ d, d @ products @ d))
    assert moved is not None
    assert rise(moved[0]) <= rise(before + share * step) + 1e-12
    np.testing.assert_allclose(moved[1], products @ (moved[0] - before), atol=1e-9)


def test_a_step_too_short_to_reach_0_crosses_nothing():
    before, step = np.array([1e200, 1.0]), np.array([-1e-200, 1.0])
    gradient = np.array([0.0, -2.0])
    point, effect = best_move(before, step, np.full(2, 1e-3), gradient, lambda d: (d, float(d @ d)))
    assert point[0] == before[0]
    assert point[1] > before[1]
    assert effect[1] == pytest.approx(point[1] - before[1])


@every_pair(loss=LOSSES, intercept=INTERCEPTS, seed=range(4))
def test_the_run_begins_at_the_best_intercept_for_no_weights(loss, intercept, seed):
    X, y = drawn(seed)
    y = np.where(np.arange(len(y)) < 5 + 10 * seed, -1.0, y)  # classes of several sizes
    weights = np.random.default_rng(seed).random(len(y))
    options = {"loss": loss, "intercept": intercept, "weights": weights, "penalty": "l1"}
    problem = Problem.of(X, y, 3.0, **options, intercept_scaling=0.7)
    state = CoordinateDescent().init(problem, None)
    assert state.b == pytest.approx(problem.best_intercept(np.zeros(len(y))), rel=1e-12, abs=1e-12)
    np.testing.assert_allclose(state.margins, y * state.b)


@pytest.mark.parametrize("way", WAYS)
def test_a_column_whose_rows_have_no_loss_gives_up_its_weight(way, monkeypatch):
    take_way(way, monkeypatch)
    X, y = np.array([[1.0, 0.0], [-1.0, 0.0], [1.0, 4.0]]), np.array([1.0, -1.0, 1.0])
    problem = Problem.of(X, y, 1.0, loss="squared_hinge", intercept="none", penalty="l1")
    model = solve(problem, tol=1e-8, start=Solution(w=np.array([0.1, 5.0])))
    assert model.certificate.relative_gap <= 1e-8
    assert model.certificate.primal == pytest.approx(solve(problem, tol=1e-8).certificate.primal)


@pytest.mark.parametrize("loss", LOSSES)
def test_many_rows_of_few_columns_begin_at_the_solution_of_a_sample(loss, monkeypatch):
    X, y = drawn(5, n=20_000, d=6)
    order = np.argsort(y, kind="stable")  # a sample by turns would not be one of both classes
    problem = Problem.of(X[order], y[order], 0.5, loss=loss, penalty="l1")
    solver = CoordinateDescent()
    state = solver.init(problem, None)
    assert state.opening is not None
    before = state.primal
    state = solver.step(problem, state, ALL_CORES)
    assert state.opening is None
    assert state.primal < before
    rare = replace(problem, y=np.where(np.arange(len(y)) < 50, 1.0, -1.0))
    assert solver.init(rare, None).opening is None
    begun = solve(problem, solver, tol=1e-6)
    assert begun.status is Status.CERTIFIED
    monkeypatch.setattr(coordinate_descent.Opening, "by_sample", lambda *_: None)
    plain = solve(problem, solver, tol=1e-6)
    assert begun.steps < plain.steps
    assert begun.certificate.primal == pytest.approx(plain.certificate.primal, rel=1e-6)


def test_columns_beyond_single_precision_are_copied_in_double(monkeypatch):
    take_way("columns", monkeypatch)
    X, y = drawn(6)
    factors = np.where(np.arange(X.shape[1]) % 2, 1e-30, 1e30)
    roots, order = np.linspace(0.0, 1.0, len(y)), np.arange(X.shape[1])
    for scales in (np.ones_like(factors), factors):
        columns = Rows(sparse.csr_matrix(X * scales)).by_columns
        squares, mixed = np.empty(len(order)), np.empty(len(order))
        copied = columns.take_scaled(order, roots, squares, mixed, ALL_CORES)
        scaled = X * scales * roots[:, np.newaxis]
        assert copied.stored == np.count_nonzero(scaled)
        np.testing.assert_allclose(squares, (scaled**2).sum(axis=0), rtol=1e-6)
        np.testing.assert_allclose(mixed / scales, roots @ scaled / scales, atol=1e-5)
        scores = np.empty(len(order))
        core.scores(copied, roots, scores, ALL_CORES)
        np.testing.assert_allclose(scores / scales, mixed / scales, atol=1e-12)


@pytest.mark.parametrize("lifted", [False, True])
def test_curvatures_of_models(lifted):
    margins = np.array([-800.0, -30.0, -2.0, 0.0, 0.5, 1.0, 3.0, 40.0, 800.0])
    costs = np.array([0.5, 1.0, 2.0, 0.0, 3.0, 1.0, 1.0, 1.0, 1.0])
    found = {}
    for loss in LOSSES:
        problem = Problem.of(np.eye(9), np.ones(9), 1.0, loss=loss, penalty="l1", weights=costs)
        found[loss] = np.empty(9)
        problem.objective.curvatures(margins, lifted, found[loss])
    np.testing.assert_array_equal(found["squared_hinge"], np.where(margins < 1.0, 2.0 * costs, 0.0))
    shares = np.where(margins > 0.0, np.exp(-np.abs(margins)), 1.0) / (1.0 + np.exp(-np.abs(margins)))
    expected = costs * shares * np.maximum(1.0 - shares, 1e-8)
    if lifted:
        losses = np.maximum(np.logaddexp(0.0, -margins), 1e-300)
        expected = np.maximum(expected, 0.5 * costs * shares**2 / losses)
    np.testing.assert_allclose(found["logistic"], expected, rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("zeros", [False, True])
def test_threads_copy_the_same_columns(dense, zeros):
    random = np.random.default_rng(8)
    X = random.normal(size=(3000, 300)) * (random.random((3000, 300)) < 0.6)
    roots = random.uniform(0.1, 2.0, 3000)
    if zeros:
        roots[random.random(3000) < 0.5] = 0.0
    columns = Rows(X if dense else sparse.csr_matrix(X)).by_columns
    order = random.permutation(300)[:250]
    results = []
    for threads in (1, 2, 5):
        squares, mixed, sums = np.empty(250), np.empty(250), np.zeros(3000)
        budget = core.Budget(np.inf, threads)
        copied = columns.take_scaled(order, roots, squares, mixed, budget)
        core.combine(copied, np.arange(250.0), sums, core.Budget(np.inf, 1))
        results.append((copied.stored, squares, mixed, sums))
    scaled = X[:, order] * roots[:, np.newaxis]
    assert results[0][0] == np.count_nonzero(scaled)
    np.testing.assert_allclose(results[0][3], scaled @ np.arange(250.0), atol=1e-2)
    for other in results[1:]:
        for ours, theirs in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.filterwarnings("error")
def test_multipliers_whose_share_of_the_costs_rounds_to_0_have_a_best_multiple():
    X, y = np.array([[1.0], [-2.0], [3.0]]), np.array([1.0, -1.0, 1.0])
    problem = Problem.of(X, y, 1e6, loss="logistic", penalty="l1", intercept="none")
    alpha = np.array([5e-324, 0.25, 0.5])
    w = problem.rows.combine(alpha * problem.y)
    assert 0.0 < problem.best_multiple(alpha, w) <= 0.5  # with more, |w| would be above 1


@pytest.mark.parametrize("intercept", [False, True])
def test_conjugate_gradients_over_columns_solve_their_normal_equations(intercept):
    random = np.random.default_rng(3)
    A, roots = random.normal(size=(12, 40)), random.uniform(0.5, 1.0, 40)  # columns as rows, and n of them
    some = np.array([0, 3, 4, 9, 11])
    of = np.vstack([A[some], roots]) if intercept else A[some]
    right = random.normal(size=len(of))
    left, step, image = right.copy(), np.empty(len(of)), np.empty(40)
    diagonal, budget = np.sum(of**2, axis=1), core.Budget(np.inf, 1)
    columns = core.Data.dense(A)
    core.conjugate_gradients_on_columns(
        columns, some, diagonal, roots, left, step, image, 30, 1e-10, budget
    )
    np.testing.assert_allclose(of @ of.T @ step, right, atol=1e-9)
    np.testing.assert_allclose(image, of.T @ step, atol=1e-12)
    assert np.abs(left).max() <= 1e-10
    with pytest.raises(ValueError, match="a number for each column"):
        core.conjugate_gradients_on_columns(
            columns, some[:3], diagonal, roots, left, step, image, 30, 0.0, budget
        )
