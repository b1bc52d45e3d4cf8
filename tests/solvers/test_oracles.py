# SPDX-License-Identifier: BSD-3-Clause
"""The compiled solvers follow the lectures' pseudo-code step by step, to rounding error.

The random order comes from ``core.shuffle`` and ``core.draw`` with the solver's seed, so both sides visit
the same rows; everything else of the oracles is plain NumPy.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from combinations import every_pair
from maxmargin import Problem, Solution, certify, core, solve
from maxmargin.problem.regression import regression_problem, walls
from maxmargin.solvers import (
    ActiveSet,
    AugmentedLagrangian,
    DualCoordinateAscent,
    InteriorPoint,
    Newton,
    Pegasos,
    StochasticSubgradient,
    Subgradient,
    dual_coordinate_ascent,
)
from maxmargin.solvers import active_set as active_sets
from maxmargin.solvers.ascent import shrinking
from maxmargin.solvers.ascent.state import ALPHA
from maxmargin.solvers.quadratic_program import dual_program, primal_program
from maxmargin.solvers.second_order import bordered
from maxmargin.solvers.second_order import system as newton_system
from maxmargin.solvers.second_order.opening import Opening
from oracles import quadratic_program as written_out
from oracles.active_set import active_set
from oracles.augmented_lagrangian import augmented_lagrangian
from oracles.dual_coordinate_ascent import ascend, ascend_naive, ascend_pairs, ascend_with_gram_matrix
from oracles.interior_point import interior_point
from oracles.newton import newton
from oracles.pegasos import pegasos
from oracles.stochastic_subgradient import average, stochastic_subgradient
from oracles.subgradient import subgradient
from problems import INTERCEPTS, LAYOUTS, Case, clouds

SEED = 7
EPOCHS = 5
STORED = ("dense C float64", "CSR float64 int32")
PRIMAL_LOSSES = ("hinge", "squared_hinge", "logistic", "perceptron")
UNLIMITED = core.Budget(np.inf, 1)


@pytest.fixture(scope="module")
def data():
    # Weights of all sizes, one of them zero; an empty row; a number of rows that no batch divides.
    X, y = clouds(n=23, d=5, seed=4)
    X[11] = 0.0
    weights = np.random.default_rng(5).uniform(0.2, 3.0, len(y))
    weights[2] = 0.0
    return Case("oracle", X, y, C=0.4, weights=weights, intercept_scaling=1.7)


def close(ours, theirs, tolerance=1e-10):
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


def batches_of(case, epochs, kind, batch):
    """The batches that a stochastic solver with SEED draws: n // batch in every epoch."""
    state, pool = SEED, np.arange(len(case.y))
    steps = len(case.y) // batch
    for _ in range(epochs):
        order = np.empty(steps * batch, np.int64)
        if kind == "uniform":
            state = core.draw(order, len(case.y), state)
        elif kind == "without_repetition":
            state = core.draw_batches(order, batch, pool, state)
        else:
            state = core.shuffle(pool, state)
            order = pool
        yield from order[: steps * batch].reshape(steps, batch).copy()


# ---- dual coordinate ascent ----------------------------------------------------------------------


def upcoming_sweep(problem, solver, state):
    """The rows that the next step will visit, drawn as the solver will draw them."""
    if solver.order == "uniform":
        rows = np.flatnonzero(problem.costs > 0)
        draws = np.empty(len(rows), np.int64)
        core.draw(draws, len(rows), state.random)
        return rows[draws]
    order = state.visits.order.copy()
    core.shuffle(order, state.random)
    return order


def upcoming_pairs(problem, state):
    """The examples whose two rows the next step will visit."""
    order = np.flatnonzero(problem.costs[::2] > 0)
    core.shuffle(order, state.random)
    return order


REACHES = {"none": [np.inf], "regularised": [np.inf, 0.3], "exact": [1.0]}


@every_pair(
    lambda intercept, reach, **_: reach in REACHES[intercept],
    loss=["hinge", "squared_hinge"],
    intercept=REACHES,
    reach=[np.inf, 0.3, 1.0],
    order=["epochs", "uniform"],
    relaxation=[1.0, 1.3],
    layout=STORED,
)
def test_dual_coordinate_ascent(data, loss, intercept, reach, order, relaxation, layout):
    case = data.with_(loss=loss, intercept=intercept)
    problem = case.problem(layout)
    solver = DualCoordinateAscent(
        order=order,
        relaxation=relaxation,
        shrinking=False,
        warm_up=False,
        extrapolation=False,
        momentum=False,
        bias_reach=reach,
        seed=SEED,
    )
    state = solver.init(problem, None)
    oracle = ascend(
        case.X,
        case.y,
        case.costs,
        # Lazily: the oracle asks for each sweep just before the solver takes it.
        (upcoming_sweep(problem, solver, state) for _ in range(EPOCHS)),
        loss=loss,
        intercept=intercept,
        intercept_scaling=case.intercept_scaling,
        bias_reach=reach,
        relaxation=relaxation,
    )
    for alpha, w, b in oracle:
        state = solver.step(problem, state, UNLIMITED)
        close(state.coordinates[:, ALPHA], alpha)
        close(state.w, w)
        close(state.intercept.b, b)
    assert np.any(alpha > 0)


@every_pair(
    lambda intercept, reach, **_: reach in REACHES[intercept],
    loss=["epsilon_insensitive", "squared_epsilon_insensitive"],
    intercept=REACHES,
    reach=[np.inf, 0.3, 1.0],
    layout=STORED,
)
def test_dual_coordinate_ascent_of_pairs(data, loss, intercept, reach, layout, monkeypatch):
    """In regression, sweeps over all rows of large data read each example once."""
    monkeypatch.setattr(dual_coordinate_ascent, "CACHED_VALUES", 0)
    values, scaling = data.X @ np.arange(5.0) + data.y, data.intercept_scaling
    problem = regression_problem(
        LAYOUTS[layout](data.X),
        values,
        data.C,
        loss=loss,
        intercept=intercept,
        weights=data.weights,
        intercept_scaling=scaling,
    )
    options = {"shrinking": False, "warm_up": False, "extrapolation": False, "momentum": False}
    solver = DualCoordinateAscent(relaxation=1.3, bias_reach=reach, seed=SEED, **options)
    state = solver.init(problem, None)
    oracle = ascend_pairs(
        data.X,
        walls(values, 0.1),
        data.costs,
        (upcoming_pairs(problem, state) for _ in range(EPOCHS)),
        loss=problem.loss.name,
        intercept=intercept,
        intercept_scaling=scaling,
        bias_reach=reach,
        relaxation=1.3,
    )
    crossed = 0
    for alpha, w, b in oracle:
        before = state.coordinates[:, ALPHA].reshape(-1, 2) > 0
        state = solver.step(problem, state, UNLIMITED)
        crossed += np.count_nonzero(before & (alpha.reshape(-1, 2)[:, ::-1] > 0))
        close(state.coordinates[:, ALPHA], alpha)
        close(state.w, w)
        close(state.intercept.b, b)
    assert crossed > 0


@pytest.mark.parametrize("intercept", ["none", "regularised"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_dual_value_is_kept_along_the_way(data, loss, intercept):
    # The sweep adds up its ascent; without a moving centre that is the dual value itself.
    problem = data.with_(loss=loss, intercept=intercept).problem()
    solver = DualCoordinateAscent(warm_up=False, bias_reach=np.inf, seed=SEED)
    state = solver.init(problem, None)
    for _ in range(EPOCHS):
        before = state.dual
        state = solver.step(problem, state, UNLIMITED)
        close(state.dual, problem.dual(state.coordinates[:, ALPHA]))
        assert state.dual >= before


@pytest.mark.parametrize(
    ("intercept", "reach"), [("none", np.inf), ("regularised", np.inf), ("exact", 0.5)]
)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_lecture_s_three_costs_are_one_algorithm(data, loss, intercept, reach):
    random = np.random.default_rng(SEED)
    sweeps = [random.permutation(np.flatnonzero(data.costs > 0)) for _ in range(3)]
    options = {"loss": loss, "intercept": intercept, "bias_reach": reach}
    runs = [
        list(oracle(data.X, data.y, data.costs, sweeps, **options))
        for oracle in (ascend, ascend_naive, ascend_with_gram_matrix)
    ]
    for fast, naive, gram in zip(*runs, strict=True):
        for ours, first, second in zip(fast, naive, gram, strict=True):
            close(ours, first)
            close(ours, second)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_warm_up_keeps_its_books_and_saves_sweeps(loss, intercept):
    """Overlapping data and a large C |x|^2: every stage keeps w, b and the dual value of its alpha."""
    X, y = clouds(n=400, d=6, distance=1.0, seed=8)
    case = Case("overlap", X, y, C=20.0, loss=loss, intercept=intercept)
    problem = case.problem()
    solver = DualCoordinateAscent(seed=SEED)
    state = solver.init(problem, None)
    stages = [state.stage]
    while state.stage > 0:
        state = solver.step(problem, state, UNLIMITED)
        stages.append(state.stage)
        alpha = state.coordinates[:, ALPHA]
        close(state.w, X.T @ (alpha * y))
        assert np.all(alpha <= problem.costs * (4.0**-state.stage) * (1 + 1e-12)) or loss != "hinge"
    assert stages[0] >= 3
    assert stages == sorted(stages, reverse=True)
    steps = [
        solve(problem, DualCoordinateAscent(warm_up=warm_up, seed=SEED), tol=1e-2, max_steps=20_000).steps
        for warm_up in (True, False)
    ]
    assert steps[0] < steps[1]


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_shrinking_changes_the_path_and_not_the_optimum(loss, intercept):
    X, y = clouds(n=150, d=6, distance=2.0, seed=6)
    problem = Case("larger", X, y, C=0.5, loss=loss, intercept=intercept).problem()
    visited, answers = [], []
    for shrink in (False, True):
        solver = DualCoordinateAscent(shrinking=shrink, seed=SEED)
        state = solver.init(problem, None)
        visited.append(0)
        for _ in range(20):
            visited[-1] += len(state.visits.order)
            state = solver.step(problem, state, UNLIMITED)
        answers.append(solve(problem, solver, tol=1e-11, max_steps=20_000))
    full, shrunk = answers
    assert visited[1] < visited[0]
    assert full.status.certified
    assert shrunk.status.certified
    close(shrunk.certificate.primal, full.certificate.primal)
    close(shrunk.w, full.w, 1e-4)


def test_rows_that_do_not_come_back_are_looked_at_less_often(monkeypatch):
    random = np.random.default_rng(0)
    X = random.random((1500, 300)) * (random.random((1500, 300)) < 0.05)
    X /= np.linalg.norm(X, axis=1, keepdims=True) + 1e-9
    y = np.where(X @ random.normal(size=300) + 0.1 * random.normal(size=1500) > 0, 1.0, -1.0)
    problem = Problem.of(X, y, C=3.0, loss="hinge", intercept="regularised")
    solver, looks = DualCoordinateAscent(seed=SEED), []
    for few in (shrinking._FEW_CAME_BACK, -1.0):
        monkeypatch.setattr(shrinking, "_FEW_CAME_BACK", few)
        state = solver.init(problem, None)
        looks.append(0)
        while solver.report(state).gap > 1e-8:
            looks[-1] += len(state.visits.order) == problem.rows.count
            state = solver.step(problem, state, UNLIMITED)
        assert certify(problem, solver.solution(problem, state, UNLIMITED)).relative_gap < 1e-7
    assert looks[0] < 0.8 * looks[1]


# ---- stochastic subgradient, Pegasos -------------------------------------------------------------


def square_root(t):
    return 0.7 / np.sqrt(t)


SEQUENCE = [0.5, 0.4, 0.2, 0.05]
OWN_STEPS = {"function": square_root, "sequence": SEQUENCE, "array": np.array(SEQUENCE)}
"""What ``step_size`` may be beside the names of rules."""


def step_sizes(kind, case, t):
    """The sizes by hand, for eta = 0.3 and t0 = 5."""
    beyond_the_end = np.concatenate([SEQUENCE, np.full(len(t), SEQUENCE[-1])])[: len(t)]
    return {
        "constant": np.full(len(t), 0.3),
        "decreasing": 0.3 / (t + 5.0),
        "pegasos": 0.3 * case.costs.sum() / t,
        "lambda": 0.3 * case.costs.sum() / t,
        "function": square_root(t),
        "sequence": beyond_the_end,
        "array": beyond_the_end,
    }[kind]


@every_pair(
    loss=PRIMAL_LOSSES,
    intercept=INTERCEPTS,
    batch=[1, 4, 23],
    order=["epochs", "uniform", "without_repetition"],
    average_of=["last", "all", "suffix", 1, 24, 40],
    step_size=["constant", "decreasing", "pegasos", *OWN_STEPS],
    pace=[1.0, 0.4],
    layout=STORED,
)
def test_stochastic_subgradient(data, loss, intercept, batch, order, average_of, step_size, pace, layout):
    case = data.with_(loss=loss, intercept=intercept)
    problem = case.problem(layout)
    solver = StochasticSubgradient(
        batch=batch,
        order=order,
        average=average_of,
        step_size=OWN_STEPS.get(step_size, step_size),
        eta=0.3,
        t0=5.0,
        intercept_step_size=pace,
        polish=0,
        seed=SEED,
    )
    steps = len(case.y) // batch
    iterates = stochastic_subgradient(
        case.X,
        case.y,
        case.costs,
        list(batches_of(case, EPOCHS, order, batch)),
        step_sizes(step_size, case, np.arange(1.0, EPOCHS * steps + 1)),
        loss=loss,
        intercept=intercept,
        intercept_scaling=case.intercept_scaling,
        intercept_step_size=pace,
    )
    state = solver.init(problem, None)
    for epoch in range(1, EPOCHS + 1):
        state = solver.step(problem, state, UNLIMITED)
        w, b = average(iterates[: epoch * steps + 1], average_of, steps)
        ours = solver.solution(problem, state, UNLIMITED)
        close(ours.w, w, 1e-9)
        close(ours.b, b, 1e-9)


@every_pair(
    lambda batch, order, **_: batch == 1 or order != "epochs",
    intercept=INTERCEPTS,
    batch=[1, 5],
    order=["uniform", "epochs", "without_repetition"],
    average_of=["last", "all", "suffix", 1, 10, 30],
    step_size=["pegasos of eta 1", "constant", "decreasing", "pegasos", *OWN_STEPS],
    pace=[1.0, 0.4],
    project=[True, False],
    layout=STORED,
)
def test_pegasos(data, intercept, batch, order, average_of, step_size, pace, project, layout):
    case = data.with_(intercept=intercept)
    problem = case.problem(layout)
    steps = len(case.y) // batch
    sizes, options = None, {}
    if step_size != "pegasos of eta 1":
        sizes = step_sizes(step_size, case, np.arange(1.0, EPOCHS * steps + 1))
        options = {"step_size": OWN_STEPS.get(step_size, step_size), "eta": 0.3, "t0": 5.0}
    solver = Pegasos(
        batch=batch,
        order=order,
        average=average_of,
        intercept_step_size=pace,
        project=project,
        polish=0,
        seed=SEED,
        **options,
    )
    iterates = pegasos(
        case.X,
        case.y,
        case.costs,
        list(batches_of(case, EPOCHS, order, batch)),
        intercept=intercept,
        intercept_scaling=case.intercept_scaling,
        project=project,
        step_sizes=sizes,
        intercept_step_size=pace,
    )
    state = solver.init(problem, None)
    for epoch in range(1, EPOCHS + 1):
        state = solver.step(problem, state, UNLIMITED)
        w, b = average(iterates[: epoch * steps + 1], average_of, steps)
        ours = solver.solution(problem, state, UNLIMITED)
        close(ours.w, w, 1e-9)
        close(ours.b, b, 1e-9)


def test_projection_is_felt(data):
    # Else the cases above would compare two runs in which line 5 never did anything.
    batches = list(batches_of(data, 2, "uniform", 1))
    free, held = (
        pegasos(data.X, data.y, data.costs, batches, project=project) for project in (False, True)
    )
    assert max(np.linalg.norm(w - v) for (w, _), (v, _) in zip(free, held, strict=True)) > 0.01


# The mean is a difference of two vectors that may have grown 1e9-fold before they are rescaled; a tiny
# lambda, whose projections shrink w at every step, makes them do so and costs the mean digits.
@pytest.mark.parametrize(("scale", "tolerance"), [(49.0, 1e-9), (1e-9, 1e-9), (3e7, 1e-5)])
def test_first_step_of_pegasos_forgets_its_start(data, scale, tolerance):
    # 1 - eta lambda is 0 for t = 1, or the rounding error of that: 49 * (1 / 49) is not 1.
    case = data.with_(weights=None, C=scale / len(data.y))
    solver = Pegasos(average="all", polish=0, seed=SEED)
    problem = case.problem()
    state = solver.step(problem, solver.init(problem, None), UNLIMITED)
    ours = solver.solution(problem, state, UNLIMITED)
    batches = list(batches_of(case, 1, "uniform", 1))
    w, _ = average(pegasos(case.X, case.y, case.costs, batches, intercept=case.intercept), "all", 23)
    close(ours.w / np.linalg.norm(w), w / np.linalg.norm(w), tolerance)


@pytest.mark.parametrize("name", ["pegasos", "stochastic_subgradient"])
@pytest.mark.parametrize("batch", [1, 3])
def test_stopping_rule_of_001(data, name, batch):
    case = data.with_(intercept="none", weights=None)
    problem = case.problem()
    batches = list(batches_of(case, 40, "uniform", batch))
    rule = {"threshold": 0.35, "stop_count": 6}
    options = {"batch": batch, "order": "uniform", "average": "last", "polish": 0, "seed": SEED}
    options |= {"stop_threshold": 0.35, "stop_count": 6}
    if name == "pegasos":
        iterates = pegasos(case.X, case.y, case.costs, batches, **rule)
        solver = Pegasos(**options)
    else:
        t = np.arange(1.0, len(batches) + 1)
        sizes = 2.0 / (t + 5.0)
        iterates = stochastic_subgradient(case.X, case.y, case.costs, batches, sizes, **rule)
        solver = StochasticSubgradient(**options, step_size="decreasing", eta=2.0, t0=5.0)
    assert 6 < len(iterates) - 1 < len(batches)
    state = solver.init(problem, None)
    while not solver.report(state).finished:
        state = solver.step(problem, state, UNLIMITED)
    assert state.t == len(iterates) - 1
    close(solver.solution(problem, state, UNLIMITED).w, iterates[-1][0], 1e-9)


# ---- full subgradient ----------------------------------------------------------------------------


@every_pair(
    loss=PRIMAL_LOSSES,
    intercept=INTERCEPTS,
    step_size=["constant", "decreasing", "lambda", *OWN_STEPS],
    average_of=["best", "last", "all", 7],
    pace=[1.0, 0.4],
    layout=STORED,
)
def test_subgradient(data, loss, intercept, step_size, average_of, pace, layout):
    case = data.with_(loss=loss, intercept=intercept)
    problem = case.problem(layout)
    step = OWN_STEPS.get(step_size, step_size)
    options = {"step_size": step, "eta": 0.3, "t0": 5.0, "intercept_step_size": pace, "polish": 0}
    solver = Subgradient(average=average_of, **options)
    t = np.arange(1.0, 31.0)
    oracle = subgradient(
        case.X,
        case.y,
        case.costs,
        step_sizes(step_size, case, t),
        loss=loss,
        intercept=intercept,
        intercept_scaling=case.intercept_scaling,
        intercept_step_size=pace,
    )
    state = solver.init(problem, None)
    iterates = [(np.zeros(problem.rows.columns), 0.0)]
    for w, b, *best in oracle:
        state = solver.step(problem, state, UNLIMITED)
        close(state.point.w, w)
        close(problem.bias_feature * state.point.beta, b)
        iterates.append((w, b))
        expected_w, expected_b = best if average_of == "best" else average(iterates, average_of, 1)
        answer = solver.solution(problem, state, UNLIMITED)
        close(answer.w, expected_w)
        close(answer.b, expected_b)


def test_stopping_rule_of_the_full_method(data):
    case = data.with_(intercept="exact")
    problem = case.problem()
    sizes = 2.0 / (np.arange(1.0, 500.0) + 5.0)
    points = list(subgradient(case.X, case.y, case.costs, sizes, intercept="exact", threshold=0.02))
    assert 1 < len(points) < len(sizes)
    solver = Subgradient(step_size="decreasing", eta=2.0, t0=5.0, polish=0, stop_threshold=0.02)
    state = solver.init(problem, None)
    while not solver.report(state).finished:
        state = solver.step(problem, state, UNLIMITED)
    assert state.t == len(points)
    close(state.point.w, points[-1][0])


# ---- Newton's method, augmented Lagrangian -------------------------------------------------------

SHAPES = {"more rows than columns": (23, 5), "more columns than rows": (23, 40), "many rows": (600, 60)}


def newton_case(shape, **changes):
    """Weights of all sizes and few bits, one of them zero, and an empty row."""
    n, d = SHAPES[shape]
    X, y = clouds(n=n, d=d, distance=1.0 if d < 20 else 0.2, seed=4)
    X[11] = 0.0
    # A curvature is k C_i. With few bits it is the same number in whatever order it is multiplied.
    weights = np.random.default_rng(5).integers(1, 24, n) / 8.0
    weights[2] = 0.0
    return Case(shape, X, y, C=0.5, weights=weights, intercept_scaling=1.7).with_(**changes)


def solve_by(way, monkeypatch):
    """In one call of the core, in its parts, or by conjugate gradients as exactly as by a factor."""
    if way != "one call":
        monkeypatch.setattr(newton_system, "FULL_STEP_COLUMNS", 0)
        monkeypatch.setattr(newton_system, "FULL_STEP_COLUMNS_OF_HINGE", 0)
    if way != "conjugate gradients":
        return
    monkeypatch.setattr(newton_system, "LARGEST_SIDE", 0)
    monkeypatch.setattr(newton_system._ConjugateGradients, "accuracy", 1e-15)


@every_pair(
    loss=["squared_hinge", "logistic"],
    intercept=INTERCEPTS,
    shape=SHAPES,
    way=["one call", "factor", "conjugate gradients"],
    layout=STORED,
)
def test_newton(loss, intercept, shape, way, layout, monkeypatch):
    solve_by(way, monkeypatch)
    case = newton_case(shape, loss=loss, intercept=intercept)
    problem = case.problem(layout)
    # From zero, where all rows count, from where a sweep leads, and from a point far off on most rows.
    far = np.random.default_rng(6).normal(size=case.X.shape[1])
    for sweeps, start in ((0, None), (1, None), (0, Solution(w=far))):
        solver = Newton(sweeps=sweeps)
        state = solver.init(problem, start)
        while isinstance(state, Opening):
            state = solver.step(problem, state, UNLIMITED)
        method, d = state.method, problem.rows.columns
        oracle = newton(
            case.X,
            case.y,
            case.costs,
            method.v[:d].copy(),
            method.v[d:].sum(),
            12,
            loss=loss,
            intercept=intercept,
            intercept_scaling=case.intercept_scaling,
        )
        for v, m, a in oracle:
            state = solver.step(problem, state, UNLIMITED)
            close(method.v, v)
            close(method.margins, m)
            close(method.multipliers, a)
            close(method.combined[:d], case.X.T @ (a * case.y))
        assert state.relative_gap < 1e-10


@every_pair(
    intercept=INTERCEPTS,
    shape=SHAPES,
    way=["one call", "factor", "conjugate gradients"],
    options=[{"raise_by": 3.0}, {"stiffness": 0.5, "raise_by": 2.0, "small_part": 0.5}],
    layout=STORED,
)
def test_augmented_lagrangian(intercept, shape, way, options, layout, monkeypatch):
    solve_by(way, monkeypatch)
    case = newton_case(shape, intercept=intercept)
    problem = case.problem(layout)
    # A third of the multipliers at either wall, the rest between.
    alpha = case.costs * np.clip(np.random.default_rng(3).uniform(-1.0, 2.0, len(case.y)), 0.0, 1.0)
    w = case.X.T @ (alpha * case.y)
    solver = AugmentedLagrangian(**options)
    state = solver.init(problem, Solution(w=w, alpha=alpha))
    method = state.method
    oracle = augmented_lagrangian(
        case.X,
        case.y,
        case.costs,
        w,
        method.v[len(w) :].sum(),
        alpha,
        40,
        intercept=intercept,
        intercept_scaling=case.intercept_scaling,
        **options,
    )
    raised, faded = [method.stiffness], 0
    for v, m, a, h, centre, k in oracle:
        state = solver.step(problem, state, UNLIMITED)
        close(method.v, v, 1e-9)
        close(method.margins, m, 1e-9)
        close(method.multipliers, a, 1e-9)
        close(method.curvatures / k, h / k)
        close(method.alpha, centre, 1e-9)
        assert method.stiffness == k
        raised.append(k)
        faded += np.count_nonzero((h > 0) & (h < k * case.costs))
        if state.relative_gap < 1e-9:
            break  # what is left is rounding, and decides whether line 4 holds
    # Else the two could agree without a look at line 4 and at both refinements.
    assert len(set(raised)) > 2
    assert faded > 0
    assert state.relative_gap < 1e-3


# ---- active sets ---------------------------------------------------------------------------------


@every_pair(
    loss=["hinge", "squared_hinge"],
    intercept=INTERCEPTS,
    shape=[(23, 40), (40, 60), (60, 50)],
    C=[0.4, 30.0],
    layout=STORED,
)
def test_active_set(data, loss, intercept, shape, C, layout):
    n, d = shape
    X, y = clouds(n=n, d=d, seed=4)
    weights = np.random.default_rng(5).uniform(0.2, 3.0, n)
    weights[2] = 0.0
    case = data.with_(X=X, y=y, C=C, weights=weights, loss=loss, intercept=intercept)
    problem = case.problem(layout)
    alpha = 0.1 * case.costs  # at zero all rows of a class are alike, and rounding tells them apart
    problem.objective.make_feasible(alpha)
    solver = ActiveSet()
    state = solver.init(problem, Solution(alpha=alpha))
    options = dict(loss=loss, intercept=intercept, intercept_scaling=case.intercept_scaling)
    for beta, w, _, r in active_set(X, y, case.costs, alpha, 20, **options):
        state = solver.step(problem, state, UNLIMITED)
        close(state.beta, beta, 1e-6)
        close(state.w, w, 1e-6)
        close(state.proximal / r, 1.0, 1e-12)
        if state.relative_gap < 1e-8:
            break
    assert state.relative_gap < 1e-8


def test_rows_come_and_go_in_the_border_of_a_factor():
    # Else the systems above would all be factored anew, or none.
    X, y = clouds(n=200, d=300, seed=1)
    problem = Problem.of(X, y, 1e4)
    state = ActiveSet().init(problem, None)
    f = state.scores + state.b - y
    state.products.keep(np.arange(200), 200, UNLIMITED)
    small = active_sets._OnSet(problem, state, np.arange(200), f, 0.0)
    J = np.arange(200) % 10 > 0
    J[190:] = False
    some = replace(
        small.equations,
        matrix=small.matrix[:190, :190],
        diagonal=small.equations.diagonal[:190],
        right=-f[:190],
    )
    system = bordered.Bordered(some, J[:190], 1.0)
    near, far = J.copy(), ~J
    near[[0, 10, 21, 32, 199]] = True, True, False, False, True  # one that was not there before
    assert system.reaches(near)
    assert not system.reaches(far)
    for _ in range(2):  # the second time with what is known already
        change, shift = system.solve(small.equations, near, np.zeros(200))
        left = f + small.matrix @ change + small.equations.diagonal * change + shift
        assert np.abs(left[near]).max() < 1e-9
        assert not change[~near].any()
        assert abs(change.sum()) < 1e-9


def test_contradicting_rows_are_taken_back_from_C(monkeypatch):
    # Rows that occur with both labels, in groups of odd size, lead far beyond C: only some belong there.
    X, y = clouds(n=200, d=300, seed=1)
    X[:12] = np.repeat(X[:4], 3, axis=0)
    y[:12] = np.tile([1.0, 1.0, -1.0], 4)
    problem, factors, sizes = Problem.of(X, y, 1e3, intercept="none"), [0], []
    alpha = solve(problem, "dual_coordinate_ascent", max_steps=3).alpha

    class Counted(bordered.Bordered):
        def __init__(self, equations, J, r, budget):
            factors[-1] += 1
            super().__init__(equations, J, r, budget)

        def solve(self, equations, J, known, budget):
            sizes.append(np.count_nonzero(J))
            return super().solve(equations, J, known, budget)

    monkeypatch.setattr(active_sets, "Bordered", Counted)
    solver = ActiveSet(proximal=1e-8)
    state = solver.init(problem, Solution(alpha=alpha))
    for beta, *_ in active_set(X, y, problem.costs, alpha, 3, proximal=1e-8):
        state = solver.step(problem, state, UNLIMITED)
        close(X.T @ state.beta, X.T @ beta, 1e-6)  # of equal rows only the sum is known
        factors.append(0)
        if state.relative_gap < 1e-8:
            break
    assert state.relative_gap < 1e-8
    assert factors[1] == 0  # the second step needs no factor of its own
    assert sizes[2] == sizes[1] + 8  # both rows of a kind in each group, and nothing else


# ---- interior point, quadratic program -----------------------------------------------------------


@every_pair(
    loss=["hinge", "squared_hinge"],
    intercept=INTERCEPTS,
    shape=[(23, 5), (23, 40), (60, 50)],
    corrections=[0, 2],
    layout=STORED,
)
def test_interior_point(data, loss, intercept, shape, corrections, layout):
    n, d = shape
    X, y = clouds(n=n, d=d, seed=4)
    X[11] = 0.0
    weights = np.random.default_rng(5).uniform(0.2, 3.0, n)
    weights[2] = 0.0
    case = data.with_(X=X, y=y, weights=weights, loss=loss, intercept=intercept)
    problem = case.problem(layout)
    solver = InteriorPoint(corrections=corrections)
    state = solver.init(problem, None)
    oracle = interior_point(
        X,
        y,
        case.costs,
        15,
        loss=loss,
        intercept=intercept,
        intercept_scaling=case.intercept_scaling,
        corrections=corrections,
    )
    for t, (v, alpha, s, xi, mu) in enumerate(oracle):
        if t > 0:
            state = solver.step(problem, state, UNLIMITED)
        if state.relative_gap < 1e-6:
            break  # from here on the equations are too ill-conditioned to be solved in two ways
        close(state.v, v, 1e-8)
        close(state.multipliers[0], alpha, 1e-8)
        close(state.distances[0], s, 1e-8)
        if loss == "hinge":
            close(state.multipliers[1], case.costs[weights > 0] - alpha, 1e-8)
            close(state.distances[1], xi, 1e-8)
        close(np.mean(state.multipliers * state.distances) / mu, 1.0, 1e-8)
    assert state.relative_gap < 1e-6


def test_corrections_are_felt(data):
    # Else the cases above would compare two runs in which line 6 never did anything.
    runs = [
        list(interior_point(data.X, data.y, data.costs, 6, intercept="exact", corrections=corrections))
        for corrections in (0, 2)
    ]
    without, corrected = (mu for *_, mu in (run[-1] for run in runs))
    assert corrected < 0.1 * without


@every_pair(loss=["hinge", "squared_hinge"], intercept=INTERCEPTS, form=["primal", "dual"], layout=STORED)
def test_quadratic_program(data, loss, intercept, form, layout):
    case = data.with_(loss=loss, intercept=intercept)
    ours = (primal_program if form == "primal" else dual_program)(case.problem(layout))
    P, q, A, limits, equalities = getattr(written_out, form)(
        case.X,
        case.y,
        case.costs,
        loss=loss,
        intercept=intercept,
        intercept_scaling=case.intercept_scaling,
    )
    close(ours.P.toarray(), np.triu(P), 1e-12)
    close(ours.q, q, 1e-12)
    close(ours.A.toarray(), A, 1e-12)
    close(ours.limits, limits, 1e-12)
    assert ours.equalities == equalities


# ---- random orders -------------------------------------------------------------------------------


def test_shuffle_is_a_permutation_and_draw_stays_in_range():
    order = np.arange(50)
    state = core.shuffle(order, SEED)
    assert sorted(order) == list(range(50))
    assert np.any(order != np.arange(50))
    again = np.arange(50)
    assert core.shuffle(again, SEED) == state
    np.testing.assert_array_equal(order, again)
    draws = np.empty(5000, np.int64)
    core.draw(draws, 10, SEED)
    counts = np.bincount(draws, minlength=10)
    assert len(counts) == 10
    # Expected 500 each with a standard deviation of 21; fixed by the seed, so never flaky.
    assert np.all(np.abs(counts - 500) < 100)


def test_layouts_hold_the_same_numbers(data):
    # The oracles see the float64 matrix; every layout has to be the same one.
    for lay_out in LAYOUTS.values():
        stored = lay_out(data.X)
        dense = stored if isinstance(stored, np.ndarray) else stored.toarray()
        np.testing.assert_array_equal(dense, data.X)
