# SPDX-License-Identifier: BSD-3-Clause
"""Steps that are seen one by one are those that the solvers take."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from maxmargin import Problem, solve
from maxmargin.core import ALL_CORES
from maxmargin.kernels import Gaussian, KernelRows
from maxmargin.solvers import (
    Newton,
    Pegasos,
    SequentialMinimalOptimization,
    StochasticSubgradient,
    Subgradient,
)
from maxmargin.solving.steps import record, steps_of

RANDOM = np.random.default_rng(0)
Y = np.where(np.arange(40) % 2 == 0, 1.0, -1.0)
X = RANDOM.normal(size=(40, 2)) + 0.8 * Y[:, None]
PROBLEM = Problem.of(X, Y, 0.5)
KERNEL = Problem.of(KernelRows(X, Gaussian(1.0)), Y, 0.5)


@pytest.mark.parametrize(
    ("solver", "steps"),
    [
        (Pegasos(average="last", polish=0), 40),
        (Pegasos(batch=8, average="last", polish=0), 5),
        (StochasticSubgradient(average="last", polish=0), 40),
        (Subgradient(average="last", polish=0), 1),
    ],
    ids=["pegasos", "batches", "automatic steps", "full"],
)
def test_single_steps_end_where_an_epoch_ends(solver, steps):
    problem = Problem.of(X, Y, 0.5, intercept="none")
    last = list(islice(steps_of(problem, solver), steps))[-1]
    epoch = solver.step(problem, solver.init(problem, None), ALL_CORES)
    assert last.point[0] == pytest.approx(solver.solution(problem, epoch, ALL_CORES).w)


def test_rows_of_a_step_are_those_that_it_drew():
    steps = list(islice(steps_of(PROBLEM, Pegasos(batch=3)), 20))
    assert all(len(step.rows) == 3 for step in steps)
    assert len({tuple(step.rows) for step in steps}) > 10


def test_pairs_change_two_multipliers_and_raise_the_dual_value():
    run = record(KERNEL, SequentialMinimalOptimization(epsilon=1e-3), steps=500)
    assert 10 < len(run) < 500, "it ends by its own rule"
    before = np.zeros(40)
    for step in run.steps[:-1]:
        assert np.flatnonzero(step.solution.alpha != before).tolist() == step.rows.tolist()
        assert len(step.rows) <= 2
        before = step.solution.alpha
    duals = [step.dual for step in run.steps]
    assert np.all(np.diff(duals) >= 0)
    assert duals[-1] == pytest.approx(KERNEL.dual(run.steps[-1].solution.alpha))
    assert duals[-1] == pytest.approx(run.best.dual, rel=1e-3)


def test_a_recording_holds_points_and_the_optimum():
    run = record(PROBLEM, "dual_coordinate_ascent", steps=30)
    assert len(run) == 30
    w, b = run.steps[-1].point
    best = solve(PROBLEM, tol=1e-9).certificate
    assert run.best.primal == pytest.approx(best.primal, rel=1e-8)
    assert PROBLEM.primal(w, b) == pytest.approx(best.primal, rel=1e-2)
    assert repr(run) == "Recording(30 steps of dual_coordinate_ascent, 40 rows)"


def test_steps_that_are_too_long_end_a_recording():
    run = record(PROBLEM, Subgradient(step_size="constant", eta=1e300), steps=50)
    assert len(run) < 50
    assert all(np.isfinite(step.point[0]).all() for step in run.steps)


def test_wrong_runs_are_refused_with_the_cure():
    with pytest.raises(ValueError, match="at least 1"):
        record(PROBLEM, "pegasos", steps=0)
    with pytest.raises(ValueError, match="newton"):
        record(PROBLEM, "newton")
    with pytest.raises(ValueError, match="newton"):
        next(steps_of(PROBLEM, Newton()))
