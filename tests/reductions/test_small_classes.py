# SPDX-License-Identifier: BSD-3-Clause
"""Small one-vs-rest problems in one call of the core: the same problems, proven as well as in the loop."""

from __future__ import annotations

import logging
import signal
from functools import cache

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from combinations import every_pair
from maxmargin import LinearSVC, Problem, Status, core, solve
from maxmargin.core import Budget
from maxmargin.reductions.linear_fit import are_small, solve_small_classes
from maxmargin.solvers import AugmentedLagrangian, DualCoordinateAscent, Newton
from maxmargin.tools.parameters import changed
from tests.problems import Case

INTERCEPTS = ["none", "regularised", "exact"]
LOSSES = ["hinge", "squared_hinge"]
SOLVERS = {"hinge": AugmentedLagrangian(), "squared_hinge": Newton()}
SHAPES = {"short rows": (60, 7), "long rows": (90, 70), "few long rows": (30, 100), "far apart": (120, 45)}


def classes_of(shape, seed=0, classes=3, scale=1.0):
    """Rows, and labels that a plane does not quite tell apart, unless the classes are far apart."""
    random = np.random.default_rng(seed)
    n, d = SHAPES[shape]
    X = scale * random.normal(size=(n, d))
    noise = 0.0 if shape == "far apart" else scale * np.sqrt(d)
    scores = X @ random.normal(size=(d, classes)) + noise * random.normal(size=(n, classes))
    labels = scores.argmax(axis=1)
    if shape == "far apart":  # few support vectors, none at its wall
        X += np.round(8.0 * random.normal(size=(classes, d)))[labels]
    return X.astype(np.float32).astype(np.float64), labels  # the same numbers in both types


def problems_of(X, labels, loss, intercept, layout, costs=None):
    costs = np.ones(len(labels)) if costs is None else costs
    whole = Case("classes", X, np.where(labels == 0, 1.0, -1.0), loss=loss, intercept=intercept)
    first = whole.problem(layout)
    same = [np.where(labels == k, 1.0, -1.0) for k in np.unique(labels)]
    return [changed(first.with_labels(y), costs=costs * first.costs) for y in same]


def solved(problems, loss, tol=1e-6, seed=0):
    options = {"tol": tol, "max_steps": 1000, "seed": seed, "budget": Budget(np.inf, 1)}
    return solve_small_classes(problems, SOLVERS[loss], "why", **options)


@cache
def optimum_of(shape, loss, intercept, k):
    """By the independent quadratic program."""
    X, labels = classes_of(shape)
    return Case("class", X, np.where(labels == k, 1.0, -1.0), loss=loss, intercept=intercept).optimum


@every_pair(
    shape=SHAPES,
    loss=LOSSES,
    intercept=INTERCEPTS,
    layout=["dense C float64", "dense C float32", "CSR float64 int32"],
)
def test_every_class_is_solved_and_proven(shape, loss, intercept, layout):
    X, labels = classes_of(shape)
    problems = problems_of(X, labels, loss, intercept, layout)
    for k, (problem, model) in enumerate(zip(problems, solved(problems, loss), strict=True)):
        expected = optimum_of(shape, loss, intercept, k)
        proof = model.certificate
        assert model.status is Status.CERTIFIED
        assert proof.relative_gap <= 1e-6
        assert proof.primal == pytest.approx(expected, rel=2e-6)
        w = proof.w
        margins = problem.y * (X @ w + proof.b)
        losses = np.maximum(0.0, 1.0 - margins) ** (1 if loss == "hinge" else 2)
        size = 0.5 * w @ w + (0.5 * proof.b**2 if intercept == "regularised" else 0.0)
        assert proof.primal == pytest.approx(size + problem.costs @ losses, rel=1e-9)
        assert proof.dual <= expected * (1 + 1e-7)
        assert np.all(proof.alpha >= 0.0)
        assert 0 < model.steps == model.trace[-1].step


@pytest.mark.parametrize("scale", [1e-2, 1.0, 1e2])
@pytest.mark.parametrize("loss", LOSSES)
def test_rows_of_any_length_and_weights(loss, scale):
    X, labels = classes_of("long rows", seed=3, scale=scale)
    weights = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 30.0], len(labels))
    problems = problems_of(X, labels, loss, "exact", "dense C float64", weights)
    for problem, model in zip(problems, solved(problems, loss), strict=True):
        expected = solve(problem, tol=1e-8).certificate.primal
        assert model.certificate.primal == pytest.approx(expected, rel=2e-6)
        assert not model.certificate.alpha[weights == 0.0].any()


@pytest.mark.parametrize("loss", LOSSES)
def test_the_same_seed_gives_the_same_models(loss):
    X, labels = classes_of("long rows")
    problems = problems_of(X, labels, loss, "exact", "dense C float64")
    once, again, other = (solved(problems, loss, 1e-3, seed) for seed in (5, 5, 6))
    for first, second in zip(once, again, strict=True):
        np.testing.assert_array_equal(first.w, second.w)
    assert any((first.w != second.w).any() for first, second in zip(once, other, strict=True))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_fit_that_is_watched_finds_the_same(shape, loss):
    X, y = classes_of(shape)
    unseen = LinearSVC(loss=loss, tol=1e-8, random_state=0).fit(X, y)
    watched = LinearSVC(loss=loss, tol=1e-8, random_state=0, callback=lambda _: None).fit(X, y)
    np.testing.assert_allclose(unseen.coef_, watched.coef_, atol=2e-3 * np.abs(watched.coef_).max())
    for ours, theirs in zip(unseen.certificate_, watched.certificate_, strict=True):
        assert ours.primal == pytest.approx(theirs.primal, rel=2e-8)
    assert unseen.status_ is Status.CERTIFIED
    assert unseen.solver_ == watched.solver_


def calls_of(monkeypatch):
    """Counts the calls of the core from here on."""
    calls = []

    def counted(*arguments):
        calls.append(arguments)
        return original(*arguments)

    original = core.solve_small_classes
    monkeypatch.setattr(core, "solve_small_classes", counted)
    return calls


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, 1),
        ({"class_weight": "balanced"}, 1),
        ({"solver": "newton"}, 1),
        ({"solver": Newton(sweeps=2)}, 0),
        ({"solver": "dual_coordinate_ascent"}, 0),
        ({"loss": "logistic"}, 0),
        ({"callback": lambda _: None}, 0),
        ({"verbose": 1}, 0),
        ({"max_time": 10.0}, 0),
        ({"max_iter": 99}, 0),
        ({"C": np.inf}, 0),
    ],
)
def test_who_has_a_say_in_the_steps_gets_them_one_by_one(monkeypatch, options, expected):
    calls = calls_of(monkeypatch)
    X, y = classes_of("few long rows")
    LinearSVC(random_state=0, **options).fit(X, y)
    assert len(calls) == expected


def test_a_warm_start_begins_where_the_last_fit_ended(monkeypatch):
    X, y = classes_of("short rows")
    model = LinearSVC(warm_start=True).fit(X, y)
    calls = calls_of(monkeypatch)
    assert model.fit(X, y).n_iter_ == 1
    assert not calls


def test_what_is_small():
    X, labels = classes_of("short rows")
    hinge = problems_of(X, labels, "hinge", "exact", "dense C float64")[0]
    assert are_small(AugmentedLagrangian(), hinge, 3)
    assert not are_small(AugmentedLagrangian(), hinge, 1_000_000)  # their labels add up
    assert not are_small(DualCoordinateAscent(), hinge, 3)
    wide = Case("wide", np.ones((2, 128)), np.array([1.0, -1.0])).problem()
    assert not are_small(AugmentedLagrangian(), wide, 1)
    many = Case("many", np.ones((13_001, 10)), np.repeat([1.0, -1.0], [1, 13_000])).problem()
    assert not are_small(AugmentedLagrangian(), many, 1)


@pytest.mark.parametrize("loss", LOSSES)
def test_what_falls_short_is_left_to_the_loop(monkeypatch, loss):
    monkeypatch.setattr(core, "solve_small_classes", lambda *_: None)
    X, y = classes_of("long rows")
    model = LinearSVC(loss=loss, random_state=0).fit(X, y)
    assert model.status_ is Status.CERTIFIED
    assert all(proof.relative_gap <= 1e-4 for proof in model.certificate_)


def test_an_interrupt_keeps_what_there_is(monkeypatch, ctrl_c):
    original = core.solve_small_classes

    def interrupted(data, loss, classes, *arguments):
        original(data, loss, classes[:1], *arguments)  # the others had no turn
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(core, "solve_small_classes", interrupted)
    X, y = classes_of("long rows")
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = LinearSVC(loss="hinge", random_state=0).fit(X, y)
    assert model.status_ is Status.INTERRUPTED
    assert model.certificate_[0].relative_gap <= 1e-4
    assert model.certificate_[1].dual == 0.0
    assert not model.coef_[1:].any()


def test_an_interrupt_leaves_nothing_worse_than_zero(monkeypatch, ctrl_c):
    def interrupted(data, loss, classes, *_):
        for one in classes:
            one.v[:] = 100.0
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(core, "solve_small_classes", interrupted)
    X, y = classes_of("long rows")
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = LinearSVC(random_state=0).fit(X, y)
    assert not model.coef_.any()
    assert all(proof.primal <= len(y) for proof in model.certificate_)


def test_a_budget_that_is_spent_ends_the_call():
    X, labels = classes_of("long rows")
    problems = problems_of(X, labels, "hinge", "exact", "dense C float64")
    spent = Budget(0.0, 1)
    options = {"tol": 1e-9, "max_steps": 1000, "seed": 0}
    assert solve_small_classes(problems, AugmentedLagrangian(), "", budget=spent, **options) == [None] * 3


def test_steps_are_counted_and_limited():
    X, labels = classes_of("long rows")
    problems = problems_of(X, labels, "hinge", "exact", "dense C float64")
    options = {"tol": 1e-12, "seed": 0, "budget": Budget(np.inf, 1)}
    assert solve_small_classes(problems, AugmentedLagrangian(), "", max_steps=3, **options) == [None] * 3


def test_data_that_cannot_be_squared_end_in_a_sentence():
    with pytest.raises(ValueError, match=r"no room for the squares .* Scale the features"):
        LinearSVC(solver="newton").fit(np.array([[1e200], [-1e200], [2e200]]), [0, 1, 1])


@pytest.mark.parametrize("scale", [1e-100, 1e3])
@pytest.mark.parametrize("loss", LOSSES)
def test_long_rows_of_extreme_length(loss, scale):
    X, y = classes_of("far apart")
    model = LinearSVC(
        loss=loss, random_state=0, solver={"hinge": "augmented_lagrangian"}.get(loss, "newton")
    )
    assert model.fit(scale * X, y).status_ is Status.CERTIFIED


def test_the_log_has_every_proof(caplog):
    X, y = classes_of("short rows")
    with caplog.at_level(logging.DEBUG, "maxmargin"):
        LinearSVC().fit(X, y)
    assert sum("newton: step" in record.getMessage() for record in caplog.records) == 3


@pytest.mark.parametrize(("n", "size", "loss"), [(4, 3, "hinge"), (3, 4, "hinge"), (3, 3, "logistic")])
def test_inconsistent_arguments_are_refused(n, size, loss):
    data = core.Data.dense(np.ones((3, 2)))
    classes = [core.SmallClass(np.ones(n), np.ones(n), np.ones(size))]
    options = core.SmallOptions(most=5, until=0.1, seed=0)
    with pytest.raises(ValueError, match="needed"):
        core.solve_small_classes(data, loss, classes, options, Budget(np.inf, 1))


def test_a_class_needs_a_cost_for_every_label():
    with pytest.raises(ValueError, match="per row"):
        core.SmallClass(np.ones(3), np.ones(4), np.ones(2))


@pytest.mark.parametrize("seed", range(40))
def test_a_proof_just_above_tol_takes_another_step_and_not_another_run(seed):
    random = np.random.default_rng(seed)
    X = random.normal(size=(200, 8))
    y = np.where(X @ random.normal(size=8) + 3.0 * random.normal(size=200) > 0.0, 1.0, -1.0)
    problem = Problem.of(X, y, 10.0, loss="squared_hinge", intercept="regularised")
    gap = 1.0
    while gap > 1e-9:
        (model,) = solved([problem], "squared_hinge", tol=0.99999 * gap)
        assert model is not None
        gap = model.certificate.relative_gap
