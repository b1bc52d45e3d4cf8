# SPDX-License-Identifier: BSD-3-Clause
"""The pictures of a report: the gap, its way down, scores, probabilities, and the plane."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from contourpy import contour_generator

from maxmargin.proof.model import Trace
from maxmargin.proof.of_files import Finding
from maxmargin.reductions.decompositions import OneAgainstOne, TwoClasses
from maxmargin.report.drawing import COLOURS, WIDTH, Axis, Picture, clipped, ticks
from maxmargin.report.measures import Calibration, Measures
from maxmargin.report.numbers import Numbers
from maxmargin.types import Vector

MOST_PROBLEMS = 10
"""Problems that are drawn or listed, the widest gap first."""
MOST_ROWS = 1500
"""Rows that are drawn in the plane: more would hide each other."""
_SMALLEST_GAP = 1e-16
"""The smallest gap that is drawn: a logarithmic axis has no place for 0."""
_GRID = 120
"""Points in each direction at which the scores of the plane are computed."""
_LONGEST_MARK = 22
"""Characters of a name beside an axis."""


def gaps(findings: Sequence[Finding], tol: float, name: str) -> str:
    """The recomputed relative gap of each problem, on a logarithmic axis."""
    found, tol = [_drawable(finding.relative_gap) for finding in findings], _drawable(tol)
    low = 10.0 ** math.floor(math.log10(min(*found, tol) * 0.5))
    marks = [(float(-k), finding.name or "this model") for k, finding in enumerate(findings)]
    marks = [(place, clipped(text, _LONGEST_MARK)) for place, text in marks]
    longest = max(len(text) for _, text in marks)
    height = 70 + 20 * len(marks)
    picture = Picture(
        Axis(low, 1.0, "relative gap: the smaller, the tighter the proof", "log"),
        Axis(0.5 - len(marks), 0.5, "", marks=marks),
        height=height,
        left=12 + 6.2 * longest,
    )
    picture.upright(tol)
    top = picture.top + 8
    near_right = picture.x(tol) > 0.7 * WIDTH
    picture.text(picture.x(tol) + (-4 if near_right else 4), top, "tol", "end" if near_right else "start")
    for k, (finding, gap) in enumerate(zip(findings, found, strict=True)):
        picture.line([(gap, -k), (1.0, -k)], 1 if finding.reasons else 0, "stem")
        picture.point(gap, -k, 1 if finding.reasons else 0, 4.5)
    worst = max(finding.relative_gap for finding in findings)
    return picture.svg(
        name, f"Relative gap of {len(found)} problems; the widest is {worst:.1e}, tol {tol:g}."
    )


def trace(traces: Sequence[tuple[str, Trace]], tol: float | None, name: str) -> str | None:
    """The certified gap against the steps; None where no run has two certificates to draw a line with."""
    lines = [(title, _steps_and_gaps(each)) for title, each in traces]
    lines = [(title, points) for title, points in lines if len(points) > 1]
    if not lines:
        return None
    every = [gap for _, points in lines for _, gap in points] + ([_drawable(tol)] if tol else [])
    steps = [step for _, points in lines for step, _ in points]
    low, high = 10.0 ** math.floor(math.log10(min(every))), 10.0 ** math.ceil(math.log10(max(every)))
    spread = max(steps) / max(min(steps), 1.0) > 100.0
    across = (
        Axis(max(min(steps), 1.0), max(steps), "steps", "log")
        if spread
        else Axis(0.0, max(*steps, 1.0), "steps")
    )
    picture = Picture(across, Axis(low, max(high, 10.0 * low), "relative gap", "log"))
    if tol:
        picture.level(tol, "tol")
    for k, (title, points) in enumerate(lines):
        picture.line(points, k)
        picture.point(*points[-1], k)
        if len(lines) > 1:
            picture.explain("line", k, clipped(title))
    best = min(points[-1][1] for _, points in lines)
    says = f"The certified relative gap falls to {best:.1e} in {max(steps):.0f} steps."
    return picture.svg(name, says)


def _steps_and_gaps(trace: Trace) -> list[tuple[float, float]]:
    found = [(float(at.step), at.relative_gap) for at in trace]
    return [(step, _drawable(gap)) for step, gap in found if math.isfinite(gap)]


def _drawable(gap: float) -> float:
    """A gap as it is drawn; one of 1 or more, or none, says nothing that 1 does not say."""
    return max(gap, _SMALLEST_GAP) if gap < 1.0 else 1.0


def scores(measures: Measures, name: str) -> str:
    """Two classes: the scores of one upwards, of the other downwards. More: how far ahead rows are."""
    histogram, kind = measures.histogram, measures.model.kind
    edges, counts = histogram.edges, histogram.counts
    two = isinstance(kind, TwoClasses)
    label = "score"
    if not two:
        pairs = isinstance(kind, OneAgainstOne)
        label = "smallest margin of a pair" if pairs else "own score less the largest other"
    tallest = {group: max(values) for group, values in counts.items()}
    down, up = tallest.values() if two else (0, max(map(sum, zip(*counts.values(), strict=True))))
    high, low = 1.05 * max(up, 1), -1.05 * max(down, 1) if two else 0.0
    marks = [(value, f"{abs(value):g}") for value in ticks(low, high) if value == round(value)]
    picture = Picture(
        Axis(float(edges[0]), float(edges[-1]), label), Axis(low, high, "rows", marks=marks), height=250
    )
    groups = list(counts)
    for k in range(len(edges) - 1):
        at, to = float(edges[k]), float(edges[k + 1])
        first, second = counts[groups[0]][k], counts[groups[1]][k]
        if two:
            picture.bar(at, to, 0.0, -first, 0)
            picture.bar(at, to, 0.0, second, 1)
        else:
            picture.bar(at, to, 0.0, first, 0)
            picture.bar(at, to, first, first + second, 1)
    picture.upright(0.0)
    for place in (-1.0, 1.0) if two and measures.model.problem["loss"] != "logistic" else ():
        picture.upright(place, "mark dashed")
    words = {
        groups[0]: f"class {clipped(groups[0])}, downwards",
        groups[1]: f"class {clipped(groups[1])}, upwards",
    }
    for k, group in enumerate(groups):
        picture.explain("bar", k, words[group] if two else group)
    each = ", ".join(f"{group}: {sum(counts[group])} rows" for group in groups)
    return picture.svg(name, f"Histogram of {label}, from {edges[0]:g} to {edges[-1]:g}. {each}.")


def reliability(calibration: Calibration, name: str) -> str:
    """What was seen against what was predicted; on the diagonal, a probability is what it says."""
    unit = Axis(0.0, 1.0, "predicted probability"), Axis(0.0, 1.0, "share seen")
    picture = Picture(*unit, height=300)
    picture.line([(0.0, 0.0), (1.0, 1.0)], 0, "mark dashed")
    for each in calibration.bins:
        picture.between(each.predicted, each.low, each.high, 0)
        picture.point(each.predicted, each.seen, 0, 4.0)
    picture.explain("marker", 0, "rows of about the same probability, with the interval of their share")
    furthest = max(abs(each.predicted - each.seen) for each in calibration.bins)
    says = f"Reliability in {len(calibration.bins)} groups of rows; the furthest is {furthest:.2f} off."
    return picture.svg(name, says)


def plane(measures: Measures, X: Any, name: str) -> str:
    """The rows of two columns, where the model decides how, and its margin where there are two classes."""
    model, labels, codes = measures.model, measures.labels, measures.codes
    values = np.asarray(X.toarray() if hasattr(X, "toarray") else X, np.float64)
    names = model.feature_names or ["column 1", "column 2"]
    # Kernels of values that are not negative, such as the chi-squared one, take no others.
    floor = 0.0 if hasattr(model, "kernel") and values.min() >= 0.0 else -math.inf
    across, up = (_span(column, floor) for column in values.T)
    picture = Picture(
        Axis(float(across[0]), float(across[-1]), names[0]),
        Axis(float(up[0]), float(up[-1]), names[1]),
        height=330,
    )
    corners = np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2)
    found = np.clip(model.decision_function(corners), -1e300, 1e300)
    if isinstance(model.kind, TwoClasses):
        _two_sides(picture, across, up, found.reshape(_GRID, _GRID))
    else:
        decided = model.kind.decide(found).reshape(_GRID, _GRID)
        for k in range(len(labels)):
            _fill(picture, across, up, (decided == k).astype(np.float64), 0.5, math.inf, k)
    wrong = measures.predicted != codes
    for row in _drawn(len(values)):
        x, y = values[row].tolist()
        if codes[row] >= 0:
            picture.point(x, y, int(codes[row]), 3.0)
        if wrong[row]:
            picture.ring(x, y)
    for k, label in enumerate(labels[: 2 * COLOURS]):
        picture.explain("marker", k, f"class {clipped(label)}")
    picture.explain("ring", 0, "misclassified")
    says = f"Rows of {len(labels)} classes in the plane, and where the model decides for which."
    return picture.svg(name, says)


def predictions(measures: Numbers, name: str) -> str:
    """What is predicted against what is true, the line where they are equal, and the walls of the tube."""
    assert measures.values is not None
    both = np.concatenate([measures.values, measures.scores])
    low, high = float(both.min()), float(both.max())
    room = 0.05 * (high - low) or 1.0
    low, high = low - room, high + room
    picture = Picture(Axis(low, high, "true number"), Axis(low, high, "predicted"), height=330)
    picture.line([(low, low), (high, high)], 0, "mark")
    width = measures.epsilon
    if width and width < high - low:
        picture.line([(low, low + width), (high - width, high)], 0, "mark dashed")
        picture.line([(low + width, low), (high, high - width)], 0, "mark dashed")
    for k in _drawn(measures.rows):
        picture.point(float(measures.values[k]), float(measures.scores[k]), 0, 2.5)
    says = f"Predictions of {measures.rows} rows, off by {measures.mean_absolute_error:.3g} in the mean."
    return picture.svg(name, says)


def _drawn(count: int) -> Sequence[int]:
    """The rows that are drawn: all, or some at equal distances."""
    return range(count) if count <= MOST_ROWS else np.linspace(0, count - 1, MOST_ROWS).astype(int).tolist()


def _span(column: Vector, floor: float) -> Vector:
    low, high = float(column.min()), float(column.max())
    room = 0.08 * (high - low) or 1.0
    return np.linspace(max(low - room, floor), high + room, _GRID)


def _two_sides(picture: Picture, across: Vector, up: Vector, scores: Vector) -> None:
    """The side of each class, the boundary as a full line, and the ends of the margin as dashed ones."""
    _fill(picture, across, up, scores, -math.inf, 0.0, 0)
    _fill(picture, across, up, scores, 0.0, math.inf, 1)
    levels = contour_generator(across, up, scores, line_type="Separate")
    for level, style in ((-1.0, "mark dashed"), (0.0, "boundary"), (1.0, "mark dashed")):
        for points in levels.lines(level):
            picture.line(np.asarray(points).tolist(), 0, style)


def _fill(
    picture: Picture, across: Vector, up: Vector, values: Vector, low: float, high: float, k: int
) -> None:
    """Colour the region between two values."""
    filled: Any = contour_generator(across, up, values, fill_type="OuterOffset").filled(low, high)
    for points, starts in zip(*filled, strict=True):
        picture.region(points, starts, k)
