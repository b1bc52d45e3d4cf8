# SPDX-License-Identifier: BSD-3-Clause
"""The path: every point is what a fit of its own would be, and is certified, whatever ends it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import maxmargin
from combinations import every_pair
from maxmargin import Certificate, Problem, Solution, Status, certify, path, solve
from maxmargin.along_costs.model_path import Path
from maxmargin.along_costs.other_costs import carried_over, start_of
from maxmargin.core import Budget
from maxmargin.solvers import DualCoordinateAscent
from maxmargin.solvers.base import Report
from maxmargin.solvers.newton import Newton
from maxmargin.solving.costs import Costs
from maxmargin.solving.hand_over import HandOver
from problems import INTERCEPTS, clouds, is_proof_of

Cs = np.geomspace(0.01, 100.0, 7)
LOSSES = ("hinge", "squared_hinge", "logistic")


def problem_of(loss="hinge", intercept="exact", weights=None, seed=0):
    X, y = clouds(n=300, d=8, seed=seed)
    return Problem.of(X, y, loss=loss, intercept=intercept, weights=weights)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", LOSSES)
def test_every_point_is_what_a_cold_fit_is(loss, intercept):
    weights = np.random.default_rng(1).integers(0, 4, 300).astype(float)
    problem = problem_of(loss, intercept, weights)
    found = path(problem, Cs, tol=1e-6)
    assert found.certified
    assert len(found) == len(Cs)
    for C, model in zip(Cs, found, strict=True):
        here = problem.with_costs_times(C)
        cold = solve(here, tol=1e-6).certificate
        assert is_proof_of(model.certificate, here)
        assert model.certificate.primal == pytest.approx(cold.primal, rel=3e-6)
        assert model.certificate.relative_gap <= 1e-6


def plain_gap(X, y, C, loss, w, b, alpha):
    """By the definition, in NumPy alone; alpha must be a dual point for an exact intercept."""
    missing = np.maximum(0.0, 1.0 - y * (X @ w + b))
    combined = X.T @ (alpha * y)
    assert np.all(alpha >= 0.0)
    assert abs(alpha @ y) <= 1e-12 * alpha.sum()
    if loss == "hinge":
        assert np.all(alpha <= C)
        primal, dual = 0.5 * w @ w + C * missing.sum(), alpha.sum() - 0.5 * combined @ combined
    else:
        primal = 0.5 * w @ w + C * missing @ missing
        dual = alpha.sum() - 0.5 * combined @ combined - alpha @ alpha / (4.0 * C)
    assert primal >= dual - 1e-9 * primal
    return (primal - dual) / primal


GRIDS = {
    "20 values": np.geomspace(2.0**-10, 2.0**10, 20),
    "5 values": np.geomspace(1e-3, 1e3, 5),
    "50 values, from the largest": np.geomspace(1e-2, 1e2, 50)[::-1],
    "in any order, some twice": np.random.default_rng(0).permutation(
        np.repeat(np.geomspace(0.01, 10, 8), 2)
    ),
}


def random_data(n, d):
    random = np.random.default_rng(5)
    X = random.normal(size=(n, d)) * random.uniform(0.1, 3.0, d)
    return X, np.where(X @ random.normal(size=d) + 0.7 * random.normal(size=n) > 0.5, 1.0, -1.0)


@every_pair(
    shape=[(1500, 12), (150, 400)], loss=["hinge", "squared_hinge"], grid=GRIDS, tol=[1e-3, 1e-4, 1e-6]
)
def test_every_point_is_within_tol_by_the_definition(shape, loss, grid, tol):
    X, y = random_data(*shape)
    values = GRIDS[grid]
    found = path(Problem.of(X, y, loss=loss), values, tol=tol)
    assert found.certified
    for C, model in zip(values, found, strict=True):
        gap = plain_gap(X, y, C, loss, model.w, model.b, model.certificate.alpha)
        assert gap <= tol * (1 + 1e-9) + 1e-12
        again = certify(Problem.of(X, y, C, loss=loss), Solution(w=model.w, alpha=model.certificate.alpha))
        assert again.relative_gap <= tol * (1 + 1e-6) + 1e-12


def test_the_order_of_the_values_changes_nothing_else():
    problem = problem_of("squared_hinge")
    up, down = path(problem, Cs), path(problem, Cs[::-1])
    for one, other in zip(up, reversed(down), strict=True):
        np.testing.assert_array_equal(one.w, other.w)
        np.testing.assert_array_equal(one.certificate.alpha, other.certificate.alpha)
        assert one.steps == other.steps


def test_the_order_of_the_values_is_that_of_the_models():
    shuffled = np.random.default_rng(0).permutation(np.append(Cs, Cs[2]))
    problem = problem_of()
    found = path(problem, shuffled, tol=1e-5)
    np.testing.assert_array_equal(found.C, shuffled)
    in_order = path(problem, np.sort(shuffled), tol=1e-5)
    np.testing.assert_array_equal(np.sort(found.primal), in_order.primal)
    np.testing.assert_array_equal(found.primal[np.argsort(shuffled, kind="stable")], in_order.primal)
    for C, model in zip(shuffled, found, strict=True):
        assert model.certificate.primal == pytest.approx(
            problem.with_costs_times(C).primal(model.w, model.b), rel=1e-9
        )


class Pessimist(DualCoordinateAscent):
    """Thinks itself far away, always."""

    def report(self, state):
        return Report(1.0)


def test_a_start_that_lacks_little_is_looked_at_soon():
    problem = problem_of().with_costs_times(0.01)
    near = solve(problem, DualCoordinateAscent(), tol=1e-2, certify_every=1).certificate
    tol = near.relative_gap / 2.0
    model = solve(problem, Pessimist(), tol=tol, start=start_of(near), known=near)
    assert model.status.certified
    assert model.steps <= 8
    assert solve(problem, Pessimist(), tol=tol).steps >= 64


def test_what_a_path_tells():
    found = path(problem_of(), Cs)
    assert isinstance(found, Path)
    np.testing.assert_array_equal(found.gaps, [m.certificate.relative_gap for m in found])
    np.testing.assert_array_equal(found.dual, [m.certificate.dual for m in found])
    np.testing.assert_array_equal(found.steps, [m.steps for m in found])
    assert found.seconds > 0
    assert found[-1] is found.models[-1]
    assert list(found[1:3]) == [found[1], found[2]]
    assert np.all(np.diff(found.primal) > 0)
    assert len(str(found).splitlines()) == 1 + len(Cs)
    assert f"{len(Cs)} values of C" in repr(found)
    assert "asked for" not in found[0].solver
    # For every (w, b) the objective is linear in C, so that its minimum is concave.
    assert np.all(np.diff(np.diff(found.primal) / np.diff(Cs)) <= 1e-3)


@pytest.mark.parametrize("loss", LOSSES)
def test_warm_points_take_fewer_steps_than_cold_ones(loss):
    problem = problem_of(loss)
    many = np.geomspace(0.01, 100.0, 20)
    solver = Newton() if loss != "hinge" else "augmented_lagrangian"
    cold = sum(solve(problem.with_costs_times(C), solver).steps for C in many)
    assert path(problem, many, solver=solver).steps.sum() < 0.6 * cold


@every_pair(loss=LOSSES, intercept=INTERCEPTS, factor=[0.01, 0.5, 1.0, 2.0, 100.0])
def test_a_certificate_that_is_carried_over_is_a_proof(loss, intercept, factor):
    problem = problem_of(loss, intercept)
    there = problem.with_costs_times(factor)
    certificate = solve(problem, tol=1e-6).certificate
    carried = carried_over(certificate, there, factor)
    assert is_proof_of(carried, there)
    if factor == 1.0:
        assert carried.relative_gap <= 2e-6
    optimum = solve(there, tol=1e-8, max_steps=100_000).certificate
    assert carried.dual <= optimum.primal * (1 + 1e-9)
    assert carried.primal >= optimum.dual * (1 - 1e-9)


def test_separable_data_need_no_steps_once_C_is_large():
    X, y = clouds(n=200, d=5, distance=8.0, seed=1)
    found = path(Problem.of(X, y), [1.0, 100.0, 1000.0, 1e4], tol=1e-3, solver="augmented_lagrangian")
    assert found.certified
    assert found.steps[-2:].sum() == 0


def test_a_callback_is_told_the_C_and_can_end_the_path():
    seen = []

    def stop_after_the_third(progress):
        seen.append(progress.label)
        return len(set(seen)) == 3

    problem = problem_of()
    found = path(problem, Cs, tol=1e-9, callback=stop_after_the_third)
    assert sorted(set(seen)) == sorted(Cs[:3])
    assert found[1].status is Status.CERTIFIED
    assert all(model.status is Status.STOPPED for model in found[3:])
    for C, model in zip(Cs, found, strict=True):
        assert is_proof_of(model.certificate, problem.with_costs_times(C))


def test_a_path_without_time_is_certified_all_the_same():
    problem = problem_of()
    found = path(problem, Cs, max_time=0.0)
    assert all(model.status is Status.TIME_SPENT for model in found)
    for C, model in zip(Cs, found, strict=True):
        assert is_proof_of(model.certificate, problem.with_costs_times(C))


CHILD = """
import os, signal, threading
import numpy as np
from maxmargin import Problem, path

random = np.random.default_rng(0)
X = random.standard_normal((20_000, 20))
problem = Problem.of(X, np.where(random.random(20_000) < 0.5, 1.0, -1.0))
threading.Timer(0.4, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
many = np.geomspace(0.01, 100, 500)
found = path(problem, many, tol=1e-9, max_steps=10**6, solver="dual_coordinate_ascent")
print(sum(m.status.name == "INTERRUPTED" for m in found) > 100, np.isfinite(found.gaps).all(), len(found))
here = problem.with_costs_times(float(found.C[-1]))
print(abs(here.primal(found[-1].w, found[-1].b) / found[-1].certificate.primal - 1) < 1e-9)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGINT") or os.name == "nt", reason="needs POSIX signals")
def test_an_interrupt_leaves_certified_models():
    child = subprocess.run(
        [sys.executable, "-c", CHILD], capture_output=True, text=True, timeout=120, check=True
    )
    assert child.stdout.split() == ["True", "True", "500", "True"], child.stderr


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        ([], {}, "list of values"),
        (3.0, {}, "list of values"),
        ([1.0, 0.0], {}, r"above 0. Got 0.0"),
        ([1.0, np.inf], {}, "Got inf"),
        ([1.0], {"solver": "newton"}, "newton needs a loss with a slope"),
        ([1.0], {"tol": -1.0}, "tol must be"),
        ([1.0], {"max_time": -1.0}, "max_time must be"),
        ([1.0], {"threads": 0}, "threads must be"),
    ],
)
def test_wrong_arguments_are_named(values, options, message):
    with pytest.raises(ValueError, match=message):
        path(problem_of(), values, **options)


def test_costs_are_multiplied_and_the_rest_is_shared():
    problem = problem_of(weights=np.arange(300.0))
    doubled = problem.with_costs_times(2)
    np.testing.assert_array_equal(doubled.costs, 2.0 * problem.costs)
    assert doubled.rows is problem.rows
    assert doubled.y is problem.y
    with pytest.raises(ValueError, match="Got 0 instead"):
        problem.with_costs_times(0)


def test_what_is_known_is_not_certified_again(monkeypatch):
    problem = problem_of("squared_hinge")
    model = solve(problem, tol=1e-5)
    passes = []
    monkeypatch.setattr(
        maxmargin.solving.loop, "certify", lambda *a, **k: passes.append(1) or certify(*a, **k)
    )
    start = Solution(w=model.w, b=model.b, alpha=model.alpha)
    again = solve(problem, start=start, known=model.certificate, tol=1e-5)
    assert not passes
    assert again.status is Status.CERTIFIED
    assert again.steps == 0
    assert again.certificate is model.certificate
    assert again.trace[-1].relative_gap == model.certificate.relative_gap
    solve(problem, start=start, tol=1e-5)
    assert len(passes) == 1


def test_the_answer_is_never_worse_than_what_is_known():
    problem = problem_of()
    model = solve(problem, tol=1e-6)
    bad = Solution(w=np.full(8, 10.0))
    again = solve(problem, "subgradient", start=bad, known=model.certificate, tol=1e-12, max_steps=3)
    assert isinstance(again.certificate, Certificate)
    assert again.certificate.primal <= model.certificate.primal
    assert again.certificate.dual >= model.certificate.dual


def test_an_ascent_that_begins_at_the_end_has_no_way_to_go():
    hand_over = HandOver(Newton(), 0.0)
    assert hand_over.sweeps_left([0.0] * 9 + [1e-16]) == 0.0


def test_an_ascent_from_a_start_is_judged_later():
    problem = problem_of("squared_hinge")
    hand_over = HandOver(Newton(), 1e-14, costs=lambda problem, tol, inside: Costs(0.0))
    start = Solution(w=np.zeros(8), alpha=np.full(300, 0.5))
    for given, sweeps in ((None, 4), (start, 16)):
        state = hand_over.init(problem, given)
        state.inner.stage = 0  # no warm-up
        while not state.handed_over:
            state = hand_over.step(problem, state, Budget(float("inf"), 1))
        assert state.sweeps == sweeps


def test_data_in_the_place_of_a_problem_are_refused_with_the_cure():
    X, y = clouds(n=20, d=2)
    with pytest.raises(
        TypeError, match=r"Got ndarray instead.*path\(Problem.of\(X, y\), \[0.1, 1.0, 10.0\]\)"
    ):
        path(X, y)
    with pytest.raises(TypeError, match=r"whole_path\(Problem.of\(X, y\), 0.1, 10.0\)"):
        maxmargin.whole_path(X, 0.1, 1.0)
