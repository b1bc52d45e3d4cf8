# SPDX-License-Identifier: BSD-3-Clause
"""Feature maps: what is drawn is what the maps make of the points, and the planes are proven."""

from __future__ import annotations

import json

import numpy as np
import pytest

from maxmargin import Problem, solve
from maxmargin.features import Paraboloid, Polar
from maxmargin.kernels import Gaussian, KernelRows
from maxmargin.lab.benches.features import MAPS
from maxmargin.lab.data import named_points
from maxmargin.lab.messages import reply

ASK = {
    "data": "rings",
    "points": [],
    "map": "lift",
    "C": 10.0,
    "prototypes": [[-1.0, 0.5], [1.0, -0.5]],
    "gamma": 1.0,
    "degree": 2,
    "buckets": 4,
    "pairs": 10,
    "seed": 0,
}


def asked(**values):
    """The whole answer to a question."""
    message = {"id": 1, "bench": "features", "want": "show", "ask": ASK | values}
    return json.loads(reply(json.dumps(message)))


def shown(**values):
    """What is shown."""
    return asked(**values)["answer"]


@pytest.mark.parametrize("name", MAPS)
def test_every_plane_is_proven_and_the_picture_shows_on_which_side_points_are(name):
    answer = shown(map=name)
    assert 0.0 <= answer["gap"] <= 1e-5 * answer["primal"]
    y, images = named_points("rings")[1], np.array(answer["images"])
    scores = images[:, 0] if len(answer["w"]) == 1 else images @ answer["w"] + answer["b"]
    assert np.mean(y * scores > 0) == pytest.approx(answer["accuracy"])


def test_images_are_those_of_the_maps():
    X, _ = named_points("rings")
    assert shown()["images"] == pytest.approx(Paraboloid().fit_transform(X))
    assert shown(map="polar")["images"] == pytest.approx(Polar().fit_transform(X))
    near = np.exp(-((X - [-1.0, 0.5]) ** 2).sum(axis=1))
    assert np.array(shown(map="prototypes")["images"])[:, 0] == pytest.approx(near)


def test_the_best_value_of_the_kernel_lies_in_the_proven_interval():
    X, y = named_points("rings")
    exact = solve(Problem.of(KernelRows(X, Gaussian(gamma=1.0)), y, 10.0), tol=1e-9).certificate
    wide = shown(map="fourier")
    assert wide["lower"] <= exact.dual
    assert exact.primal <= wide["upper"]
    assert wide["exact"] == pytest.approx(exact.primal, rel=1e-4)
    narrow = shown(map="fourier", pairs=200)
    assert narrow["upper"] - narrow["lower"] < 0.5 * (wide["upper"] - wide["lower"])


def test_what_makes_no_sense_is_refused():
    assert "must be 2 rows" in asked(prototypes=[[0.0, 0.0]])["error"]
    assert "one class only" in asked(points=[[0.0, 0.0, 1.0]])["error"]
