# SPDX-License-Identifier: BSD-3-Clause
"""One-dimensional features: what a linear machine can say of one number depends on how it is told."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin.features import Buckets, Log, Monomials, Squares
from maxmargin.lab.asked import Asked, Refused
from maxmargin.lab.benches import SECONDS, Answer, Bench
from maxmargin.lab.scripts import number
from maxmargin.problem import Problem
from maxmargin.proof.certificate import Certificate
from maxmargin.solving.loop import solve
from maxmargin.types import Vector

_TOL = 1e-6
"""The relative gap of every fit: below what the page shows of a number."""
_HIGHEST, _MOST_BUCKETS, _UNSEEN = 12, 12, 600
"""The highest degree, the largest number of buckets, and rows that no fit has seen."""
_EXPONENTS = np.arange(-2.0, 4.5, 0.5)
"""The values of C of the curves, in powers of ten."""


class Quantity(NamedTuple):
    """A number that is measured, and what is true of it."""

    low: float
    high: float
    draw: Callable[[np.random.Generator, int], Vector]
    truth: Callable[[Vector, Vector], NDArray[np.bool_]]
    """Whether the label is +1, from the number and from noise of variance 1."""
    center: float
    """What the square is taken around."""
    rows: int = 36
    """Rows to learn from."""


QUANTITIES = {
    "temperature": Quantity(
        34.0,
        41.0,
        lambda random, n: random.uniform(34.2, 40.8, n),
        lambda t, noise: np.abs(t - 37.0 + 0.25 * noise) < 1.1,
        37.0,
    ),
    "bought": Quantity(
        0.0,
        3000.0,
        lambda random, n: np.floor(10.0 ** random.uniform(0.0, 3.45, n)),
        lambda count, noise: np.log10(1.0 + count) + 0.25 * noise > 1.5,
        0.0,
    ),
    "wave": Quantity(
        -3.0,
        3.0,
        lambda random, n: random.uniform(-2.9, 2.9, n),
        lambda x, noise: np.sin(1.6 * x) + 0.6 * noise > 0.0,
        0.0,
        24,
    ),
}
"""A body's temperature and whether it is healthy; how often a product was bought and whether it is worth
showing; and something that goes up and down."""


@cache
def _drawn(name: str, count: int, seed: int) -> tuple[Vector, Vector]:
    """Numbers and labels of a quantity, the same ones every time."""
    random = np.random.default_rng(seed)
    x = np.round(QUANTITIES[name].draw(random, count), 2)
    return x, np.where(QUANTITIES[name].truth(x, random.standard_normal(count)), 1.0, -1.0)


class Features(NamedTuple):
    """A map of one number, learnt from the training rows; every column has mean 0 and variance 1 there."""

    kind: str
    degree: int
    buckets: int
    quantity: Quantity

    def __call__(self, train: Vector, x: Vector) -> Vector:
        """The columns of x."""
        # Powers of what is far from 0 are nearly multiples of each other: they are taken of [-1, 1].
        low, high = self.quantity.low, self.quantity.high
        first, second = ((2.0 * each[:, None] - low - high) / (high - low) for each in (train, x))
        if self.kind == "square":
            map_ = Squares(center=self.quantity.center)
            known, new = map_.fit_transform(train[:, None])[:, 1:], map_.transform(x[:, None])[:, 1:]
        elif self.kind == "log":
            map_ = Log()
            known, new = map_.fit_transform(train[:, None]), map_.transform(x[:, None])
        elif self.kind == "buckets":
            map_ = Buckets(edges=self.buckets, sparse_output=False)
            known, new = map_.fit_transform(train[:, None]), map_.transform(x[:, None])
        elif self.kind == "powers":
            map_ = Monomials(self.degree)
            known, new = map_.fit_transform(first), map_.transform(second)
        else:
            known, new = first, second
        spread = known.std(axis=0)
        return np.asarray((new - known.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0))


KINDS = ("number", "square", "log", "buckets", "powers")


class _Question(NamedTuple):
    name: str
    x: Vector
    y: Vector
    features: Features
    C: float
    against: str


def _asked(asked: Asked) -> _Question:
    name = asked.choice("quantity", QUANTITIES)
    rows = asked.rows("rows", 2, 200)
    kind = asked.choice("features", KINDS)
    degree, buckets = asked.whole("degree", 1, _HIGHEST), asked.whole("buckets", 2, _MOST_BUCKETS)
    C, against = asked.number("C", 1e-3, 1e5), asked.choice("against", ("degree", "C"))
    x, y = _drawn(name, QUANTITIES[name].rows, 1)
    if len(rows):
        x, y = np.ascontiguousarray(rows[:, 0]), np.ascontiguousarray(rows[:, 1])
    if not np.isin(y, (-1.0, 1.0)).all():
        raise Refused("The labels of 'rows' must be -1 or 1. Got another number.")
    if kind == "log" and x.min() <= -1.0:
        raise Refused("log(1 + x) needs numbers above -1. Choose another quantity or other features.")
    return _Question(name, x, y, Features(kind, degree, buckets, QUANTITIES[name]), C, against)


def _fitted(x: Vector, y: Vector, features: Features, C: float) -> Certificate:
    return solve(Problem.of(features(x, x), y, C), tol=_TOL, max_time=SECONDS).certificate


def _errors(x: Vector, y: Vector, proof: Certificate, features: Features, new: Vector, of: Vector) -> float:
    """The share of wrong answers."""
    return float(np.mean(of * (features(x, new) @ proof.w + proof.b) <= 0.0))


def show(asked: Asked) -> Answer:
    """The score along the axis with its proof, and errors on training rows and on unseen ones."""
    name, x, y, features, C, against = _asked(asked)
    quantity = QUANTITIES[name]
    unseen, truth = _drawn(name, _UNSEEN, 2)
    proof = _fitted(x, y, features, C)
    across = np.linspace(quantity.low, quantity.high, 401)

    def both(features: Features, C: float) -> list[float]:
        found = _fitted(x, y, features, C)
        return [
            _errors(x, y, found, features, x, y),
            _errors(x, y, found, features, unseen, truth),
        ]

    if against == "degree":
        places = [float(degree) for degree in range(1, _HIGHEST + 1)]
        curves = [both(features._replace(kind="powers", degree=int(degree)), C) for degree in places]
    else:
        places = [float(10.0**exponent) for exponent in _EXPONENTS]
        curves = [both(features, cost) for cost in places]
    return {
        "rows": np.column_stack([x, y]),
        "low": quantity.low,
        "high": quantity.high,
        "across": across,
        "scores": features(x, across) @ proof.w + proof.b,
        "columns": len(proof.w),
        "primal": proof.primal,
        "dual": proof.dual,
        "gap": proof.gap,
        "train": _errors(x, y, proof, features, x, y),
        "unseen": _errors(x, y, proof, features, unseen, truth),
        "places": places,
        "curves": curves,
    }


_MAPS = {
    "number": "((x - {middle}) / {half})[:, None]",
    "square": "Squares(center={center}).fit_transform(x[:, None])[:, 1:]",
    "log": "Log().fit_transform(x[:, None])",
    "buckets": "Buckets(edges={buckets}, sparse_output=False).fit_transform(x[:, None])",
    "powers": "Monomials({degree}).fit_transform(((x - {middle}) / {half})[:, None])",
}
_NAMES = {"square": "Squares", "log": "Log", "buckets": "Buckets", "powers": "Monomials"}


def script(asked: Asked) -> Answer:
    """A script that fits the training rows."""
    _, x, y, features, C, _ = _asked(asked)
    quantity = features.quantity
    columns = _MAPS[features.kind].format(
        middle=number(0.5 * (quantity.low + quantity.high)),
        half=number(0.5 * (quantity.high - quantity.low)),
        center=number(quantity.center),
        buckets=features.buckets,
        degree=features.degree,
    )
    using = f"from maxmargin.features import {_NAMES[features.kind]}\n" if features.kind in _NAMES else ""
    text = (
        '"""A linear machine on features of one number, with its proof."""\n\n'
        f"import numpy as np\nfrom maxmargin import Problem, solve\n{using}\n"
        f"x = np.array({x.tolist()})\ny = np.array({y.astype(int).tolist()}, dtype=float)\n"
        f"columns = {columns}\n"
        "spread = columns.std(axis=0)\n"
        "columns = (columns - columns.mean(axis=0)) / np.where(spread > 0, spread, 1)\n"
        f"proof = solve(Problem.of(columns, y, C={number(C)}), tol={_TOL:g}).certificate\n"
        'print(f"P = {proof.primal:.10g}")\nprint(f"D = {proof.dual:.10g}")\n'
        'print(f"train = {np.mean(y * (columns @ proof.w + proof.b) <= 0):.10g}")\n'
    )
    return {"script": text}


BENCH = Bench(
    order=8,
    title="One-dimensional features",
    invitation=(
        "Too warm is bad, too cold is bad, and no weight on the temperature says so: choose features "
        "that can. Then raise the degree on the wave until it fits the noise, and let C hold it back."
    ),
    tour="27_nonlinearities",
    answers={"show": show, "script": script},
)
