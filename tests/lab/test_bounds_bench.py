# SPDX-License-Identifier: BSD-3-Clause
"""Bounds: what is measured stays below what is promised, and both are the library's."""

from __future__ import annotations

import json

import numpy as np
import pytest

from maxmargin import Problem, solve
from maxmargin.lab.data import named_points
from maxmargin.lab.messages import reply
from maxmargin.solvers import Pegasos


def shown(**values):
    """The answer to a question."""
    ask = {"data": "overlapping", "lambda": 0.01, "doublings": 3, "seeds": 4, "batch": 1} | values
    return json.loads(reply(json.dumps({"id": 1, "bench": "bounds", "want": "show", "ask": ask})))["answer"]


@pytest.mark.parametrize("batch", [1, 7])
@pytest.mark.parametrize("lambda_", [0.003, 0.3])
def test_nothing_measured_is_above_its_bound(lambda_, batch):
    answer = shown(**{"lambda": lambda_, "batch": batch})
    assert np.all(np.array(answer["off"]) >= -1e-9)
    assert np.all(np.array(answer["mean"]) <= answer["bound"])
    assert np.all(np.array(answer["regret"]) <= answer["sharp_bound"])
    assert np.all(np.array(answer["sharp_bound"]) <= np.array(answer["regret_bound"]) * (1 + 1e-9))


def test_what_is_measured_is_the_run_of_the_solver():
    X, y = named_points("overlapping")
    problem = Problem.of(X, y, 1 / (0.01 * len(y)), intercept="none")
    run = solve(problem, Pegasos(seed=2, polish=0), tol=0.0, max_steps=4, certify_every=4)
    answer = shown()
    assert answer["steps"] == [60, 120, 240, 480]
    off = problem.primal(run.w) / problem.total_cost
    assert answer["off"][2][2] + answer["best"] == pytest.approx(off, rel=1e-6)
    assert run.notes["bound"] / problem.total_cost == pytest.approx(answer["bound"][2])
