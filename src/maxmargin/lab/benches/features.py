# SPDX-License-Identifier: BSD-3-Clause
"""Feature maps: the input space beside the feature space, where a plane separates what no line could."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from maxmargin import LinearSVC
from maxmargin.features import (
    Buckets,
    Distances,
    Monomials,
    Paraboloid,
    Polar,
    RandomFourier,
    exact_kernel_bound,
)
from maxmargin.features.exact_kernel.bounds import ExactKernelBound
from maxmargin.kernels import Gaussian, KernelRows
from maxmargin.lab.asked import Asked, Refused
from maxmargin.lab.benches import SECONDS, Answer, Bench
from maxmargin.lab.packed import packed
from maxmargin.lab.scripts import number, points_as_code
from maxmargin.problem import Problem
from maxmargin.proof.certificate import Certificate
from maxmargin.solving.loop import solve
from maxmargin.types import Vector

MOST_POINTS = 200
"""Points of a page: a fit then answers within a frame or two."""
_TOL = 1e-6
"""The relative gap to reach."""
_COLUMNS, _ROWS = 81, 61
"""The grid on which scores are computed, over the plane of the page."""
_FARTHEST_SCORE = 4.0
"""Scores beyond look alike."""
_GRID = np.stack(np.meshgrid(np.linspace(-4, 4, _COLUMNS), np.linspace(-3, 3, _ROWS)), axis=-1)
MAPS = ("identity", "polar", "lift", "prototypes", "monomials", "buckets", "fourier")
_DRAWN = ("identity", "polar", "prototypes")
"""Maps to a plane, which is shown as it is."""


class _Question(NamedTuple):
    X: Vector
    y: Vector
    C: float
    map_: str
    prototypes: Vector
    gamma: float
    degree: int
    buckets: int
    pairs: int
    seed: int

    @property
    def features(self) -> Any:
        """The map of the library; None: the points as they are."""
        maps: dict[str, Callable[[], Any]] = {
            "identity": lambda: None,
            "polar": Polar,
            "lift": Paraboloid,
            "prototypes": lambda: Distances(self.prototypes, gamma=self.gamma),
            "monomials": lambda: Monomials(self.degree),
            "buckets": lambda: Buckets(self.buckets, sparse_output=False),
            "fourier": lambda: RandomFourier(2 * self.pairs, gamma=self.gamma, seed=self.seed),
        }
        return maps[self.map_]()

    @property
    def code(self) -> str:
        """The Python that makes the map."""
        places = ", ".join(f"[{number(x)}, {number(y)}]" for x, y in self.prototypes)
        return {
            "identity": "None",
            "polar": "Polar()",
            "lift": "Paraboloid()",
            "prototypes": f"Distances([{places}], gamma={number(self.gamma)})",
            "monomials": f"Monomials({self.degree})",
            "buckets": f"Buckets({self.buckets}, sparse_output=False)",
            "fourier": f"RandomFourier({2 * self.pairs}, gamma={number(self.gamma)}, seed={self.seed})",
        }[self.map_]


def _asked(asked: Asked) -> _Question:
    X, y = asked.points(MOST_POINTS)
    if len(set(y)) < 2:
        raise Refused("There is one class only. Add a point of the other one.")
    question = _Question(
        X,
        y,
        asked.number("C", 1e-3, 1e4),
        asked.choice("map", MAPS),
        asked.rows("prototypes", 2, 2),
        asked.number("gamma", 1e-3, 1e2),
        asked.whole("degree", 1, 8),
        asked.whole("buckets", 2, 12),
        asked.whole("pairs", 1, 200),
        asked.whole("seed", 0, 100),
    )
    if len(question.prototypes) != 2:
        raise Refused("'prototypes' must be 2 rows of 2 numbers.")
    return question


def show(asked: Asked) -> Answer:
    """Scores over the plane, and the points in the feature space with what separates them there."""
    question = _asked(asked)
    features = question.features
    grid = _GRID.reshape(-1, 2)
    if features is None:
        images, over = question.X, grid
    else:
        images, over = features.fit_transform(question.X), features.transform(grid)
    model = LinearSVC(loss="hinge", C=question.C, tol=_TOL, max_time=SECONDS, random_state=0)
    model.fit(images, question.y)
    proof, w, b = model.certificate_, model.coef_[0], float(model.intercept_[0])
    assert isinstance(proof, Certificate)  # there are two classes
    answer: dict[str, object] = {
        "points": np.column_stack([question.X, question.y]),
        "alpha": proof.alpha,
        "classes": proof.row_classes,
        "scores": _packed(over @ w + b),
        "columns": len(w),
        "accuracy": np.mean(proof.margins > 0),
        "primal": proof.primal,
        "dual": proof.dual,
        "gap": proof.gap,
        "w": w if question.map_ in (*_DRAWN, "lift") else [float(np.linalg.norm(w))],
        "b": b,
        "images": images if question.map_ in (*_DRAWN, "lift") else _along(images, w, b),
    }
    if question.map_ == "fourier":
        answer |= _beside_the_kernel(question, (features, model))
    return answer


def _packed(scores: Vector) -> dict[str, object]:
    return packed(np.clip(scores, -_FARTHEST_SCORE, _FARTHEST_SCORE).reshape(_ROWS, _COLUMNS))


def _along(images: Vector, w: Vector, b: float) -> Vector:
    """The feature space from the side: the distance from the plane, and where the points differ most."""
    length = float(np.linalg.norm(w)) or 1.0
    across = (images @ w + b) / length
    rest = images - images.mean(axis=0)
    rest = rest - np.outer(rest @ w, w) / length**2
    u, s, _ = np.linalg.svd(rest, full_matrices=False)
    return np.column_stack([across, u[:, 0] * s[0]])


def _beside_the_kernel(question: _Question, fitted: tuple[Any, LinearSVC]) -> dict[str, object]:
    """The line of the exact kernel, and the interval that is proven for its best value."""
    kernel = Gaussian(gamma=question.gamma)
    exact = solve(
        Problem.of(KernelRows(question.X, kernel), question.y, question.C), tol=_TOL, max_time=SECONDS
    ).certificate
    bound = exact_kernel_bound(fitted, question.X, question.y)
    assert isinstance(bound, ExactKernelBound)  # there are two classes
    scores = kernel(_GRID.reshape(-1, 2), question.X) @ exact.w + exact.b
    return {
        "exact_scores": _packed(scores),
        "exact": exact.primal,
        "lower": bound.lower,
        "upper": bound.upper,
    }


def script(asked: Asked) -> Answer:
    """A script that fits the same model."""
    question = _asked(asked)
    name = question.code.partition("(")[0]
    fourier = question.map_ == "fourier"
    using = "" if name == "None" else f"from maxmargin.features import {name}\n"
    if fourier:
        using = f"from maxmargin.features import {name}, exact_kernel_bound\n"
    learnt = "X" if name == "None" else "features.fit_transform(X)"
    text = (
        '"""Points in the plane, mapped into a feature space and separated there."""\n\n'
        f"import numpy as np\nfrom maxmargin import LinearSVC\n{using}\n"
        f"{points_as_code(question.X, question.y)}"
        + (f"features = {question.code}\n" if name != "None" else "")
        + f"images = {learnt}\n"
        f'model = LinearSVC(loss="hinge", C={number(question.C)}, tol={_TOL:g}, random_state=0)\n'
        "model.fit(images, y)\nproof = model.certificate_\n"
        'print(f"P = {proof.primal:.10g}")\nprint(f"D = {proof.dual:.10g}")\n'
        'print(f"accuracy = {np.mean(proof.margins > 0):.10g}")\n'
    )
    if fourier:
        text += "print(exact_kernel_bound((features, model), X, y))\n"
    return {"script": text}


BENCH = Bench(
    order=3,
    title="Feature maps",
    invitation=(
        "On the left the points as they are, on the right as the map sees them: there, one plane separates "
        "them. Turn the lift, drag the prototypes, and add Fourier features until they follow the kernel."
    ),
    tour="26_feature_maps",
    answers={"show": show, "script": script},
)
