# SPDX-License-Identifier: BSD-3-Clause
"""When certificates are made."""

import numpy as np
import pytest

from maxmargin import Problem, core
from maxmargin.problem.rows import Rows
from maxmargin.solvers import DualCoordinateAscent
from maxmargin.solvers.base import Report
from maxmargin.solving.lookout import Lookout


@pytest.mark.parametrize(("near", "first"), [(False, 64), (True, 256)])
def test_an_estimate_that_is_near_is_relied_upon_for_longer(near, first):
    lookout = Lookout(1e-6, None, Rows(np.eye(3)), watched=False)
    far, close = (Report(gap, near=lambda: near) for gap in (1e-3, 1e-7))
    steps = [step for step in range(1, 400) if lookout.due(step, far)]
    assert steps[0] == first
    assert lookout.due(1, close)


@pytest.mark.parametrize(("C", "near"), [(0.01, True), (1.0, True), (1e4, False)])
def test_the_ascent_knows_its_gap_where_losses_are_a_part_of_the_optimum(C, near):
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 300)) / 15.0
    y = np.where(X[:, 0] + 0.02 * random.normal(size=200) > 0, 1.0, -1.0)
    problem = Problem.of(X, y, C, loss="hinge")
    solver = DualCoordinateAscent(warm_up=False)
    state = solver.init(problem, None)
    for _ in range(30):
        state = solver.step(problem, state, core.ALL_CORES)
    assert solver.report(state).near() == near


def test_large_data_get_a_certificate_after_some_steps_whatever_the_estimate_says(monkeypatch):
    monkeypatch.setattr("maxmargin.solving.lookout.LARGE_VALUES", 1)
    lookout = Lookout(1e-6, None, Rows(np.eye(3)), watched=False)
    far, near = Report(gap=1.0), Report(gap=1e-7)
    assert [lookout.due(step, far) for step in range(1, 6)] == [False, False, False, True, True]
    assert lookout.due(2, near)
