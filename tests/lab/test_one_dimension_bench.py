# SPDX-License-Identifier: BSD-3-Clause
"""One-dimensional features: each cures what it is for, and the numbers are those of certify."""

from __future__ import annotations

import json

import numpy as np
import pytest

from maxmargin.lab.benches.one_dimension import KINDS
from maxmargin.lab.messages import reply

ASK = {
    "quantity": "temperature",
    "rows": [],
    "features": "number",
    "degree": 3,
    "buckets": 5,
    "C": 100.0,
    "against": "degree",
}


def asked(**values):
    """The whole answer to a question."""
    message = {"id": 1, "bench": "one_dimension", "want": "show", "ask": ASK | values}
    return json.loads(reply(json.dumps(message)))


def shown(**values):
    """What is shown."""
    return asked(**values)["answer"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("against", ["degree", "C"])
def test_every_fit_is_proven_and_its_errors_are_those_of_the_score(kind, against):
    answer = shown(features=kind, against=against)
    assert 0.0 <= answer["gap"] <= 1e-5 * answer["primal"]
    x, y = np.array(answer["rows"]).T
    # Buckets jump between two places of the drawn score, so rows close to a jump are left out.
    near = np.searchsorted(answer["across"], x)
    scores = np.array(answer["scores"])
    certain = np.sign(scores[near - 1]) == np.sign(scores[near])
    wrong = (y * scores[near] <= 0) & certain
    assert wrong.sum() <= answer["train"] * len(x) + 1e-9 <= (wrong | ~certain).sum() + 1e-9


def test_a_square_or_powers_or_buckets_say_what_the_number_cannot():
    alone = shown()["unseen"]
    for kind in ("square", "powers", "buckets"):
        assert shown(features=kind)["unseen"] < 0.5 * alone, kind


def test_the_degree_learns_the_noise_and_a_small_cost_holds_it_back():
    curves = np.array(shown(quantity="wave", features="powers", degree=12, C=1e4)["curves"])
    assert curves[-1, 0] < curves[2, 0] < curves[0, 0], "errors on training rows become fewer"
    assert curves[-1, 1] > curves[2, 1] + 0.1, "those on unseen rows do not"
    held = shown(quantity="wave", features="powers", degree=12, C=100.0)
    assert held["unseen"] < curves[-1, 1] - 0.05


def test_what_makes_no_sense_is_refused():
    assert "log(1 + x) needs numbers above -1" in asked(quantity="wave", features="log")["error"]
    assert "must be -1 or 1" in asked(rows=[[1.0, 0.5]])["error"]
