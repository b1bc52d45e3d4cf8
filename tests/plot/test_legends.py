# SPDX-License-Identifier: BSD-3-Clause
"""Legends hide nothing: below their axes, inside the figure, apart from each other and from all texts."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.colors import to_rgb
from sklearn.datasets import load_iris

import maxmargin
from figure_boxes import assert_nothing_is_hidden
from maxmargin import SVC, LinearSVC, Problem, plot, solve
from maxmargin import path as path_along
from maxmargin.plot.styles import COLOURS, line, points


@pytest.fixture(autouse=True)
def _closed():
    yield
    pyplot.close("all")


IRIS = load_iris(return_X_y=True)
PLANE = IRIS[0][50:, 2:], IRIS[1][50:]
PROBLEM = Problem.of(PLANE[0], 2.0 * PLANE[1] - 3.0)
TWO = LinearSVC(loss="hinge", random_state=0).fit(*PLANE)
THREE = SVC().fit(IRIS[0][:, 2:], IRIS[1])
SIX = SVC().fit(np.random.default_rng(0).normal(size=(60, 2)), [f"a long name {k}" for k in range(6)] * 10)
RUNS = {name: solve(PROBLEM, name, max_steps=5) for name in ("pegasos", "dual_coordinate_ascent")}
PATH = path_along(PROBLEM, [0.1, 1.0, 10.0])
PICTURES = {
    "two classes": lambda ax, **how: plot.support_vectors(TWO, *PLANE, ax, **how),
    "three classes": lambda ax, **how: plot.support_vectors(THREE, IRIS[0][:, 2:], IRIS[1], ax, **how),
    "six classes": lambda ax, **how: plot.decision_boundary(
        SIX,
        np.random.default_rng(0).normal(size=(60, 2)),
        [f"a long name {k}" for k in range(6)] * 10,
        ax,
        **how,
    ),
    "margins": lambda ax, **how: plot.margins(TWO, *PLANE, ax, **how),
    "convergence": lambda ax, **how: plot.convergence(RUNS, ax, **how),
    "coefficients": lambda ax, **how: plot.path(PATH, ax, **how),
    "rows": lambda ax, **how: plot.path(PATH, ax, show="rows", **how),
    "gaps": lambda ax, **how: plot.path(PATH, ax, show="gaps", **how),
}


@pytest.mark.parametrize("name", ["two classes", "three classes", "coefficients"])
def test_the_legend_of_one_picture_hides_nothing(name):
    assert_nothing_is_hidden(PICTURES[name](None).figure)


@pytest.mark.parametrize(
    ("layout", "names"),
    [
        (None, ("two classes", "three classes", "margins")),
        ("constrained", ("convergence", "coefficients", "gaps")),
        ("tight", ("six classes", "rows")),
    ],
)
def test_legends_of_neighbours_hide_nothing(layout, names):
    figure, axes = pyplot.subplots(1, len(names), figsize=(4 * len(names), 4), layout=layout)
    for ax, name in zip(axes, names, strict=True):
        PICTURES[name](ax)
        ax.set_title(name)
    assert_nothing_is_hidden(figure)


def test_margins_that_somebody_has_set_are_kept():
    figure, ax = pyplot.subplots()
    figure.subplots_adjust(bottom=0.4)
    plot.support_vectors(TWO, *PLANE, ax)
    assert figure.get_layout_engine() is None
    assert_nothing_is_hidden(figure)


def test_colours_differ_for_every_kind_of_colour_vision():
    """The least distance of two colours, in OKLab, for people without one kind of cones (Machado 2009)."""
    without = {
        "no": np.eye(3),
        "long": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
        "medium": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
        "short": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
    }
    to_cones = [[0.4122, 0.5363, 0.0514], [0.2119, 0.6807, 0.1074], [0.0883, 0.2817, 0.6300]]
    to_lab = [[0.2105, 0.7936, -0.0041], [1.9780, -2.4286, 0.4506], [0.0259, 0.7828, -0.8087]]
    values = np.array([to_rgb(colour) for colour in COLOURS])
    linear = np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
    for cones, matrix in without.items():
        seen = np.cbrt(np.clip(linear @ np.transpose(matrix), 0, 1) @ np.transpose(to_cones))
        lab = seen @ np.transpose(to_lab)
        least = min(np.linalg.norm(a - b) for a, b in combinations(lab, 2))
        assert least > 0.07, f"without {cones} cones"


def test_shapes_tell_what_colours_tell():
    for styles, keys in ((points, ("marker",)), (line, ("linestyle", "marker"))):
        shapes = [tuple(str(styles(k)[key]) for key in keys) for k in range(6 if styles is points else 20)]
        assert len(set(shapes)) == len(shapes)
    both = [(points(k)["marker"], points(k)["color"]) for k in range(42)]
    assert len(set(both)) == 42, "42 classes can be told apart"


def test_greyscale_has_no_colour():
    names = ("two classes", "three classes", "margins", "convergence", "rows")
    figure, axes = pyplot.subplots(1, len(names), figsize=(18, 4), dpi=50)
    for ax, name in zip(axes, names, strict=True):
        PICTURES[name](ax, greyscale=True)
    figure.canvas.draw()
    pixels = np.asarray(figure.canvas.buffer_rgba())[..., :3].astype(int)
    assert np.ptp(pixels, axis=-1).max() <= 1


def test_reports_have_the_same_palette():
    sheet = (Path(maxmargin.__file__).parent / "report" / "style.css").read_text()
    assert re.findall(r"--c\d: (#\w{6})", sheet) == [colour.lower() for colour in COLOURS[:6]]
