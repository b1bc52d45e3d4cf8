# SPDX-License-Identifier: BSD-3-Clause
"""The SMO bench: every pair goes where 004 says, and the run ends where certify agrees."""

from __future__ import annotations

import json

import numpy as np
import pytest

from maxmargin import Problem, Solution, certify
from maxmargin.kernels import Gaussian, KernelRows
from maxmargin.lab.data import named_points
from maxmargin.lab.messages import reply

ASK = {
    "data": "moons",
    "points": [],
    "C": 0.7,
    "kernel": "gaussian",
    "gamma": 1.0,
    "degree": 3,
    "coef0": 1.0,
    "selection": "second_order",
}
LONGEST_FRAME = 20.0
"""Milliseconds between two frames of an animation, of 95 in 100: a little more than a screen needs."""


def shown(**values):
    """The answer to a question."""
    message = {"id": 1, "bench": "smo", "want": "show", "ask": ASK | values}
    return json.loads(reply(json.dumps(message)))["answer"]


@pytest.mark.parametrize("selection", ["second_order", "maximal_violating_pair"])
def test_pairs_go_to_the_clipped_maximum_and_the_dual_rises(selection):
    answer = shown(selection=selection)
    assert answer["finished"]
    for pair in answer["pairs"]:
        (first, second), (new_first, new_second) = pair["before"], pair["after"]
        assert new_second == pytest.approx(np.clip(pair["raw"], pair["L"], pair["H"]), abs=1e-9)
        labels = [answer["points"][row][2] for row in pair["rows"]]
        assert labels[0] * new_first + labels[1] * new_second == pytest.approx(
            labels[0] * first + labels[1] * second, abs=1e-9
        )
    assert (np.diff([0.0, *(pair["dual"] for pair in answer["pairs"])]) > 0).all()


def test_the_run_ends_where_certify_agrees():
    answer = shown()
    X, y = named_points("moons")
    alpha = np.zeros(len(y))
    for pair in answer["pairs"]:
        alpha[pair["rows"]] = pair["after"]
    proof = certify(Problem.of(KernelRows(X, Gaussian(1.0)), y, 0.7), Solution(alpha=alpha))
    assert (answer["primal"], answer["dual"]) == pytest.approx((proof.primal, proof.dual), rel=1e-9)
    assert answer["pairs"][-1]["dual"] == pytest.approx(proof.dual, rel=1e-9)
    assert answer["gap"] < 1e-3 * proof.primal


def test_it_is_played_in_even_frames_and_step_by_step(browse):
    with browse("smo") as opened:
        page = opened.page
        last = opened.numbers()["pairs"]
        page.get_by_role("button", name="One step on").click()
        assert page.url.endswith("#smo?step=1")

        def play():
            page.get_by_role("button", name="To the start").click()
            page.get_by_role("button", name="Play").click()
            page.wait_for_timeout(700)
            page.get_by_role("button", name="Pause").click()

        opened.assert_quick("frame", LONGEST_FRAME, play)
        page.get_by_role("button", name="To the end").click()
        assert page.url.endswith(f"step={last:.0f}")
        numbers = opened.numbers()
        assert numbers["dual"] == pytest.approx(numbers["D"], rel=1e-6)


def test_who_wants_no_motion_has_none(browse):
    with browse("smo", reduced_motion="reduce") as opened:
        assert opened.page.locator(".player").get_by_text("Play", exact=True).is_hidden()
