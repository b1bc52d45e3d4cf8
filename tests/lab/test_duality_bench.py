# SPDX-License-Identifier: BSD-3-Clause
"""Convexity and duality: lines lie below, bounds hold, and the smallest SVM is the library's."""

from __future__ import annotations

import json

import numpy as np
import pytest

from maxmargin import Problem, solve_hard_margin
from maxmargin.lab.benches.duality import CASES, GRAPHS
from maxmargin.lab.messages import reply


def shown(**ask):
    """The answer to a question."""
    return json.loads(reply(json.dumps({"id": 1, "bench": "duality", "want": "show", "ask": ask})))[
        "answer"
    ]


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("x", [-1.7, 0.0, 0.3, 1.0, 2.2])
def test_every_slope_between_the_ends_gives_a_line_below_the_graph_and_no_other_does(graph, x):
    answer = shown(part="lines", graph=graph, x=x)
    across, heights = np.array(answer["across"]), np.array(answer["heights"])

    def is_below(slope):
        return bool(np.all(heights >= answer["value"] + slope * (across - answer["place"]) - 1e-9))

    if answer["low"] is None:
        assert graph == "wells"
        assert not any(map(is_below, np.linspace(-4, 4, 801)))
        return
    assert is_below(answer["low"])
    assert is_below(answer["high"])
    assert not is_below(answer["low"] - 0.2)
    assert not is_below(answer["high"] + 0.2)
    assert answer["least"] == (answer["value"] <= heights.min() + 1e-9)


def test_the_kink_has_a_fan_and_other_points_a_tangent():
    assert [shown(part="lines", graph="hinge", x=1.0)[end] for end in ("low", "high")] == [-1.0, 0.0]
    assert [shown(part="lines", graph="absolute", x=0.0)[end] for end in ("low", "high")] == [-1.0, 1.0]
    assert shown(part="lines", graph="wells", x=0.0)["low"] is None


@pytest.mark.parametrize("case", CASES)
def test_no_multiplier_gives_a_bound_above_the_best_value(case):
    answers = [shown(part="dual", case=case, z=0.0, alpha=alpha) for alpha in (0.0, 0.37, 1.0, 2.9)]
    for answer in answers:
        assert answer["dual"] <= answer["primal"] + 1e-9
        assert max(answer["duals"]) == pytest.approx(answer["best_dual"])
    gap = answers[0]["primal"] - answers[0]["best_dual"]
    assert gap == pytest.approx({"gap": 0.8418, "slater": 1 / 12}.get(case, 0.0), abs=2e-3)


def test_the_smallest_svm_is_the_hard_margin_of_one_point():
    model = solve_hard_margin(Problem.of([[1.0]], [1.0], intercept="none"))
    answer = shown(part="dual", case="svm", z=1.0, alpha=1.0)
    assert answer["best_x"] == pytest.approx(model.w[0], abs=1e-3)
    assert answer["best_alpha"] == pytest.approx(model.alpha[0], abs=1e-2)
    assert answer["primal"] == pytest.approx(model.certificate.primal, abs=1e-3)
    assert all(missed <= answer["nearly"] for missed in answer["conditions"].values())
    off = shown(part="dual", case="svm", z=0.5, alpha=1.0)["conditions"]
    assert off == {"constraint": 0.5, "multiplier": 0.0, "slackness": 0.5, "stationarity": 0.5}
