# SPDX-License-Identifier: BSD-3-Clause
"""The separators bench: its lines are the perceptron's, its margin that of the proof."""

from __future__ import annotations

import json

import numpy as np
import pytest

from maxmargin import InseparableError, Problem, solve, solve_hard_margin
from maxmargin.lab.data import named_points
from maxmargin.lab.messages import reply
from maxmargin.solvers import Perceptron


def shown(**values):
    """The answer to a question."""
    ask = {"data": "close", "points": [], "orders": 5} | values
    return json.loads(reply(json.dumps({"id": 1, "bench": "separators", "want": "show", "ask": ask})))


def test_every_line_separates_and_none_has_a_margin_above_the_largest():
    answer = shown()["answer"]
    X, y = named_points("close")
    for (*w, b), margin, way in zip(answer["lines"], answer["margins"], answer["ways"], strict=True):
        scores = y * (X @ w + b)
        assert scores.min() > 0
        assert margin == pytest.approx(scores.min() / np.linalg.norm(w))
        assert way[-1] == [*w, b]
    proof = solve_hard_margin(Problem.of(X, y), tol=1e-9).certificate
    assert max(answer["margins"]) < answer["margin"] <= proof.margin_bound
    assert answer["margin"] == pytest.approx(proof.margin, rel=1e-6)
    assert all(answer["finished"])
    assert len({tuple(line) for line in answer["lines"]}) > 1, "another order gives another line"
    assert max(answer["mistakes"]) <= answer["bound"]


def test_lines_are_those_of_the_solver():
    problem = Problem.of(*named_points("close"))
    model = solve(problem, Perceptron(seed=3, polish=0), tol=0.0)
    *w, _ = shown()["answer"]["lines"][3]
    cosine = w @ model.w / np.linalg.norm(w) / np.linalg.norm(model.w)
    assert cosine == pytest.approx(1.0)


def test_without_a_separating_line_the_proof_is_told_and_the_passes_end():
    answer = shown(data="overlapping", orders=2)["answer"]
    with pytest.raises(InseparableError) as error:
        solve_hard_margin(Problem.of(*named_points("overlapping")))
    assert answer["inseparable"] == error.value.certificate.statement
    assert answer["finished"] == [False, False]
    assert "widest" not in answer


def test_too_many_orders_are_refused():
    assert "'orders' must be" in shown(orders=1000)["error"]
