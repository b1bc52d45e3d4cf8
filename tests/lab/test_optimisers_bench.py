# SPDX-License-Identifier: BSD-3-Clause
"""Optimisers: the iterates are the solvers' own, and their values those of the problem."""

from __future__ import annotations

import json

import numpy as np
import pytest

from maxmargin import Problem, solve
from maxmargin.lab.benches.optimisers import METHODS, STEPS
from maxmargin.lab.data import named_points
from maxmargin.lab.messages import reply
from maxmargin.solvers import Pegasos, StochasticSubgradient, Subgradient

ASK = {
    "data": "overlapping",
    "points": [],
    "method": "subgradient",
    "C": 0.1,
    "intercept": "none",
    "rule": "decreasing",
    "eta": 3.0,
    "t0": 1.0,
    "batch": 1,
    "pace": 1.0,
    "average": "last",
    "T_0": 50,
    "seed": 0,
}


def shown(**values):
    """The answer to a question."""
    message = {"id": 1, "bench": "optimisers", "want": "show", "ask": ASK | values}
    return json.loads(reply(json.dumps(message)))["answer"]


@pytest.mark.parametrize("intercept", ["none", "exact"])
@pytest.mark.parametrize("method", METHODS)
def test_values_are_those_of_the_problem_and_none_is_below_the_best(method, intercept):
    answer = shown(method=method, intercept=intercept)
    loss = "squared_hinge" if method == "newton" else "hinge"
    problem = Problem.of(*named_points("overlapping"), 0.1, loss=loss, intercept=intercept)
    for (*w, b), value in zip(answer["iterates"], answer["values"], strict=True):
        assert value == pytest.approx(problem.primal(np.array(w), b))
        assert value >= answer["dual"] - 1e-9
    assert answer["primal"] == pytest.approx(solve(problem, tol=1e-9).certificate.primal, rel=1e-6)
    if method in ("newton", "dual_ascent"):
        assert answer["values"][-1] == pytest.approx(answer["primal"], rel=1e-6)
        assert len(answer["iterates"]) <= STEPS


def test_iterates_are_those_of_the_solvers():
    problem = Problem.of(*named_points("overlapping"), 0.1, intercept="none")
    count = problem.rows.count
    full = Subgradient(step_size="decreasing", eta=3.0, t0=1.0, average="last", polish=0)
    drawn = StochasticSubgradient(
        order="uniform", average="last", step_size="decreasing", eta=3.0, t0=1.0, polish=0
    )
    pegasos = Pegasos(average="last", polish=0)
    for method, solver, steps in (
        ("subgradient", full, 3),
        ("stochastic", drawn, count),
        ("pegasos", pegasos, count),
    ):
        epochs = steps if method == "subgradient" else 1
        run = solve(problem, solver, tol=0.0, max_steps=epochs, certify_every=epochs)
        iterate = shown(method=method)["iterates"][steps]
        assert iterate[:2] == pytest.approx(run.w), method


def test_the_mean_from_a_step_on():
    answer = shown(method="stochastic", average="T_0", T_0=20)
    iterates, answers = np.array(answer["iterates"]), np.array(answer["answers"])
    assert answers[:20] == pytest.approx(iterates[:20])
    assert answers[60] == pytest.approx(iterates[20:61].mean(axis=0))


def test_some_step_rises_and_yet_comes_closer():
    answer = shown(eta=10.0)
    away = np.linalg.norm(np.array(answer["iterates"]) - answer["best"], axis=1)
    values = np.array(answer["values"])
    assert np.any((np.diff(values) > 0) & (np.diff(away) < 0))


def test_pegasos_stays_in_its_ball_which_holds_the_optimum():
    answer = shown(method="pegasos", C=0.05)
    lengths = np.linalg.norm(np.array(answer["iterates"])[:, :2], axis=1)
    assert lengths.max() <= answer["radius"] * (1 + 1e-12)
    assert np.linalg.norm(answer["best"][:2]) <= answer["radius"] <= answer["half"]
