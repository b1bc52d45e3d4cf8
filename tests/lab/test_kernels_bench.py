# SPDX-License-Identifier: BSD-3-Clause
"""The kernels bench: scores, matrix and verdict are the library's."""

from __future__ import annotations

import base64
import json

import numpy as np
import pytest

from maxmargin import SVC
from maxmargin.kernels import Gaussian, Linear, Polynomial, Sigmoid
from maxmargin.lab.benches.kernels import GRID
from maxmargin.lab.chosen_kernel import NAMES
from maxmargin.lab.data import named_points
from maxmargin.lab.messages import reply

ASK = {
    "data": "moons",
    "points": [],
    "C": 2.0,
    "kernel": "gaussian",
    "gamma": 1.0,
    "degree": 3,
    "coef0": 1.0,
    "combine": "alone",
    "kernel2": "linear",
    "gamma2": 1.0,
    "degree2": 2,
    "coef02": 1.0,
}


def answered(want="show", **values):
    """The answer to a question."""
    message = {"id": 1, "bench": "kernels", "want": want, "ask": ASK | values}
    return json.loads(reply(json.dumps(message)))["answer"]


def unpacked(matrix):
    """What the page makes of a packed matrix."""
    steps = np.frombuffer(base64.b64decode(matrix["steps"]), "<u2").reshape(-1, matrix["columns"])
    return matrix["low"] + (matrix["high"] - matrix["low"]) / 65535 * steps


def test_scores_and_matrix_are_those_of_the_machine():
    X, y = named_points("moons")
    answer, model = answered(), SVC(kernel=Gaussian(1.0), C=2.0, tol=1e-8).fit(X, y)
    assert answer["primal"] == pytest.approx(model.certificate_.primal, rel=1e-5)
    expected = np.clip(model.decision_function(GRID), -4, 4).reshape(49, 65)
    assert unpacked(answer["scores"]) == pytest.approx(expected, abs=1e-2)
    order = np.lexsort((X[:, 0], y))
    assert unpacked(answer["matrix"]) == pytest.approx(Gaussian(1.0)(X[order]), abs=1e-4)


@pytest.mark.parametrize(
    ("combine", "kernel"),
    [("sum", Polynomial(3, 1.0, 1.0) + Linear()), ("product", Polynomial(3, 1.0, 1.0) * Linear())],
)
def test_two_kernels_make_one(combine, kernel):
    X, y = named_points("moons")
    matrix = unpacked(answered(kernel="polynomial", combine=combine)["matrix"])
    wanted = kernel(X[np.lexsort((X[:, 0], y))])
    assert matrix == pytest.approx(wanted, abs=np.ptp(wanted) / 65535)


def test_the_sigmoid_fails_with_a_witness():
    answer = answered(kernel="sigmoid", data="xor", coef0=-1.0)
    X, y = named_points("xor")
    K = Sigmoid(1.0, -1.0)(X[np.lexsort((X[:, 0], y))])
    witness = np.array(answer["witness"])
    assert witness @ K @ witness < -1.0
    assert not answer["valid"]
    assert not answer["proven"]
    assert "No kernel" in answer["verdict"]


@pytest.mark.parametrize("name", NAMES)
def test_every_kernel_has_a_script_that_computes_the_same(name, capsys):
    values = {"kernel": name, "kernel2": name, "combine": "sum", "data": "overlapping", "C": 0.5}
    answer = answered(**values)
    exec(answered("script", **values)["script"], {})
    printed = dict(
        line.split(" = ") for line in capsys.readouterr().out.splitlines() if line.count(" = ") == 1
    )
    assert float(printed["P"]) == pytest.approx(answer["primal"], rel=1e-6)
    assert float(printed["smallest eigenvalue"]) == pytest.approx(answer["smallest_eigenvalue"], abs=1e-6)


def test_a_drag_among_200_points_is_answered_at_once(browse):
    with browse("kernels?data=many") as opened:
        opened.assert_quick("answer", 50.0, lambda: opened.drag(3, 60, 40, steps=40))
