# SPDX-License-Identifier: BSD-3-Clause
"""Films of runs: the boundary along C, the steps of a solver, the gap that closes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.contour import ContourSet
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from maxmargin.along_costs.model_path import Path
from maxmargin.kernels.base import Precomputed
from maxmargin.kernels.kernel_rows import KernelRows
from maxmargin.plot.curves import convergence
from maxmargin.plot.estimator_checks import check_labels
from maxmargin.plot.film import Film
from maxmargin.plot.paths import path as draw_path
from maxmargin.plot.plane import LEVELS, RING, RINGS, Grid, draw_rows, draw_sides, name_lines, read_plane
from maxmargin.plot.styles import legend_below, line, tidy
from maxmargin.problem import Problem
from maxmargin.proof.certificate import Certificate
from maxmargin.solving.steps import Recording
from maxmargin.types import Vector

_GRID = 120
"""Points in each direction at which the scores of a frame are computed: lines are smooth all the same."""
_MOST_FRAMES = 150
"""Frames of a film; of longer runs, steps are left out at equal distances."""
_TRACE_FRAMES = 60
"""Frames in which curves are drawn to their ends."""
_LOWEST = 1e-9
"""The smallest distance to the optimum that is drawn: the optimum itself is known no better."""
_SIZES = 30.0, 150.0
"""The areas of rings, in square points, around rows whose multiplier is just above 0, and at its cap."""

_SIZE = 9.6, 4.6
"""Inches of a film of two pictures."""


def animate(
    run: Any,
    X: Any = None,
    y: ArrayLike | None = None,
    *,
    against: Literal["seconds", "steps"] = "seconds",
    fps: float = 8.0,
    greyscale: bool = False,
) -> Film:
    """Make a film of a run. In a notebook it shows itself; ``save("film.gif")`` writes it to a file.

    Parameters
    ----------
    run : Path, Recording, or whatever convergence takes
        The answer of ``maxmargin.path``: how boundary, margin and support vectors move as C grows. The
        answer of ``record``: how a solver moves them, step by step, and how far from the optimum each step
        is. A fitted estimator, a Model, a Trace, or a dict of names and these: how the certified gap falls,
        all runs on one clock.
    X, y : array or data frame of shape (n_samples, 2), and array
        The rows of the problem and their labels, of two classes, for the first two kinds.
    against : "seconds" or "steps"
        The horizontal axis of the third kind.
    fps : float
        Frames per second.
    greyscale : bool
        Whether to do without colours.
    """
    if not isinstance(run, Path | Recording):
        return _of_traces(run, against, fps, greyscale)
    if X is None or y is None:
        raise ValueError(
            f"A film of a {type(run).__name__} shows the rows of the plane. Give X, of two columns, and "
            "y, the labels: animate(run, X, y)."
        )
    stage = _Stage(run.problem, X, y, greyscale)
    return _along_costs(run, stage, fps) if isinstance(run, Path) else _of_steps(run, stage, fps)


class _Stage:
    """The rows of a problem in the plane, and the boundary of any w and b."""

    def __init__(self, problem: Problem, X: Any, y: ArrayLike, greyscale: bool) -> None:
        self.problem, self.greyscale = problem, greyscale
        self.values, self.names = read_plane(X)
        self.labels, self.classes = _labels(problem, y, len(self.values))
        self.grid = Grid.around(self.values, _GRID)
        self._images = self._images_of_grid()
        self._drawn: list[ContourSet] = []

    def _images_of_grid(self) -> NDArray[np.float64]:
        """What w is multiplied with for the scores of the grid: the points, or their kernel values."""
        rows = self.problem.rows
        if isinstance(rows, KernelRows) and not isinstance(rows.kernel, Precomputed):
            return np.asarray(rows.kernel(self.grid.corners, self.values))
        if rows.has_kernel or rows.columns != 2:
            raise ValueError(
                "A film shows problems whose rows are the two columns of X, or are seen through a kernel "
                "that can be computed between them. Use Problem.of(X, y) or "
                "Problem.of(KernelRows(X, kernel), y), without a feature map."
            )
        return self.grid.corners

    def begin(self, ax: Axes, w: Vector, b: float) -> None:
        """Draw the rows, and the boundary of this w and b, and name all lines."""
        draw_rows(ax, self.values, self.labels, self.classes, self.names, self.greyscale)
        self.show(ax, w, b)
        name_lines(ax, LEVELS)
        ax.set_xlim(self.grid.across[0], self.grid.across[-1])
        ax.set_ylim(self.grid.up[0], self.grid.up[-1])

    def show(self, ax: Axes, w: Vector, b: float) -> None:
        """Draw the boundary of this w and b in the place of the one before."""
        for artist in self._drawn:
            artist.remove()
        self._drawn = draw_sides(ax, self.grid, self._images @ w + b, self.greyscale)


def _labels(problem: Problem, y: ArrayLike, count: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """The labels and the two classes, first the one that is -1 in the problem."""
    labels = check_labels(np.unique(np.asarray(y)), y, count)
    classes = np.unique(labels)
    if count == problem.rows.count and len(classes) == 2:
        for each in (classes, classes[::-1]):
            if np.array_equal(problem.y, np.where(labels == each[1], 1.0, -1.0)):
                return labels, each
    raise ValueError(
        f"X and y must hold the {problem.rows.count} rows of the run's problem, in the same order, and "
        f"the labels of its two classes. Got {count} rows of {len(classes)} classes instead."
    )


def _along_costs(models: Path, stage: _Stage, fps: float) -> Film:
    """The boundary and the support vectors at each C; beside them, where this C is among all."""
    order = np.argsort(models.C)
    proofs = [models[int(k)].certificate for k in order]

    def build(figure: Figure) -> list[Callable[[], object]]:
        left, right = _two_axes(figure)
        stage.begin(left, proofs[-1].w, proofs[-1].b)
        rings = {
            kind: left.scatter([], [], marker=marker, label=name, **RING)
            for kind, (marker, name) in RINGS.items()
        }
        legend_below(left)
        draw_path(models, right, show="rows", greyscale=stage.greyscale)
        here = right.axvline(models.C[order[0]], color="black", linewidth=2.0)

        def draw(C: float, proof: Certificate) -> None:
            stage.show(left, proof.w, proof.b)
            for kind, ring in rings.items():
                ring.set_offsets(stage.values[proof.row_classes == kind])
            here.set_xdata([C, C])
            support = int((proof.row_classes > 0).sum())
            left.set_title(f"C = {C:.3g}: {support} support vectors", loc="left")

        return [partial(draw, float(C), proof) for C, proof in zip(models.C[order], proofs, strict=True)]

    return Film(*_SIZE, build, fps)


def _of_steps(run: Recording, stage: _Stage, fps: float) -> Film:
    """The boundary after each step and the rows that it was about; beside it, how far the optimum is."""
    if not len(run):
        raise ValueError(
            "The recording has no step: the first one has left what float64 can hold. Scale the columns, "
            "or take smaller steps."
        )
    shown = np.unique(np.linspace(0, len(run) - 1, min(len(run), _MOST_FRAMES)).round().astype(int))
    curves = _distances(run)

    def build(figure: Figure) -> list[Callable[[], object]]:
        left, right = _two_axes(figure)
        stage.begin(left, *run.steps[-1].point)
        moved, holds = _rings(left, run)
        legend_below(left)
        lines = [
            right.plot(_counted(values), values, label=name, **_plain(k, stage.greyscale))[0]
            for k, (name, values) in enumerate(curves.items())
        ]
        right.set_yscale("log")
        right.set_xlabel("steps")
        right.set_ylabel("relative distance to the optimum")
        tidy(right)
        legend_below(right)
        right.set_xlim(right.get_xlim())
        right.set_ylim(right.get_ylim())

        def draw(k: int) -> None:
            step = run.steps[k]
            stage.show(left, *step.point)
            if moved is not None:
                moved.set_offsets(stage.values[step.rows])
            if holds is not None:
                alpha = np.asarray(step.solution.alpha)
                held, share = alpha > 0, alpha / run.problem.upper.max()
                holds.set_offsets(stage.values[held])
                holds.set_sizes(_SIZES[0] + (_SIZES[1] - _SIZES[0]) * np.minimum(share[held], 1.0))
            for each, values in zip(lines, curves.values(), strict=True):
                each.set_data(_counted(values)[: k + 1], values[: k + 1])
                each.set_markevery([k])
            left.set_title(f"{run.solver.name.replace('_', ' ')}, step {k + 1} of {len(run)}", loc="left")

        return [partial(draw, int(k)) for k in shown]

    return Film(*_SIZE, build, fps)


def _counted(values: Vector) -> Vector:
    return np.arange(1.0, len(values) + 1.0)


def _plain(k: int, greyscale: bool) -> dict[str, Any]:
    return line(k, greyscale) | {"linewidth": 1.6, "markersize": 7}


def _rings(ax: Axes, run: Recording) -> tuple[Any, Any]:
    """Marks of the rows that a step is about, and of those with a multiplier; None where there are none."""
    moved = holds = None
    if any(step.solution.alpha is not None and step.solution.w is None for step in run.steps):
        holds = ax.scatter([], [], label="alpha, by size", **RING)
    if any(len(step.rows) for step in run.steps):
        moved = ax.scatter(
            [], [], marker="h", label="in this step", **(RING | {"linewidths": 2.6, "s": 190})
        )
    return moved, holds


def _distances(run: Recording) -> dict[str, Vector]:
    """How far primal and dual values are from the optimum, at most; the dual ones of dual methods only."""
    primal = np.array([run.problem.primal(*step.point) for step in run.steps])
    curves = {"objective": (primal - run.best.dual) / run.best.primal}
    if all(step.solution.w is None for step in run.steps):
        dual = np.array([run.problem.dual(np.asarray(step.solution.alpha)) for step in run.steps])
        curves["dual value"] = (run.best.primal - dual) / run.best.primal
    return {name: np.maximum(values, _LOWEST) for name, values in curves.items()}


def _of_traces(runs: Any, against: Literal["seconds", "steps"], fps: float, greyscale: bool) -> Film:
    """The curves of ``convergence`` as they grow, all on one clock."""

    def build(figure: Figure) -> list[Callable[[], object]]:
        ax = convergence(runs, figure.subplots(), against=against, greyscale=greyscale)
        whole: list[tuple[Any, Vector, Vector]] = [
            (each, np.asarray(each.get_xdata(), np.float64), np.asarray(each.get_ydata(), np.float64))
            for each in ax.lines
        ]
        ax.set_xlim(ax.get_xlim())
        ax.set_ylim(ax.get_ylim())
        places = np.concatenate([xs for _, xs, _ in whole])
        first, last = float(places.min()), float(places.max())
        log = against == "seconds" and first > 0.0
        clock = np.geomspace(first, last, _TRACE_FRAMES) if log else np.linspace(first, last, _TRACE_FRAMES)
        clock[-1] = last

        def draw(now: float) -> None:
            for each, xs, ys in whole:
                until = int(np.searchsorted(xs, now, side="right"))
                each.set_data(xs[:until], ys[:until])
            unit = "seconds" if against == "seconds" else "steps"
            ax.set_title(f"after {now:.3g} {unit}", loc="left")

        return [partial(draw, float(now)) for now in clock]

    return Film(6.4, 4.4, build, fps)


def _two_axes(figure: Figure) -> tuple[Axes, Axes]:
    left, right = figure.subplots(1, 2, width_ratios=(1.25, 1.0))
    return left, right
