# SPDX-License-Identifier: BSD-3-Clause
"""Points in the plane that a bench can begin with; the same ones every time."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from maxmargin.types import Vector

Points = tuple[Vector, Vector]
_DECIMALS = 2
"""The decimals of coordinates: addresses and scripts that hold them stay short."""


def _clouds(count: int, distance: float, spread: float, seed: int) -> Points:
    """Two round clouds, half of the points in each, ``distance`` apart."""
    random = np.random.default_rng(seed)
    y = np.where(np.arange(count) % 2 == 0, -1.0, 1.0)
    centres = np.stack([0.5 * distance * y, 0.25 * distance * y], axis=1)
    return centres + spread * random.standard_normal((count, 2)), y


def _with_outlier() -> Points:
    """Two clouds, and one point of the negative class on the wrong side."""
    X, y = _clouds(24, 4.0, 0.55, 3)
    return np.vstack([X, [2.9, -0.9]]), np.append(y, -1.0)


def _curves(count: int, noise: float, seed: int, curve: Callable[[Vector, float], Vector]) -> Points:
    """Half of the points along a curve for each label; a curve maps times from 0 to 1 to the plane."""
    random = np.random.default_rng(seed)
    y = np.repeat([-1.0, 1.0], count // 2)
    times = np.tile(np.linspace(0.0, 1.0, count // 2), 2)
    X = np.vstack([curve(times[y == label], label) for label in (-1.0, 1.0)])
    return X + noise * random.standard_normal(X.shape), y


def _moon(time: Vector, label: float) -> Vector:
    angle = np.pi * time
    return 1.5 * np.stack([np.cos(angle) - 0.5 * label * -1, -label * np.sin(angle) + 0.3 * label], axis=1)


def _ring(time: Vector, label: float) -> Vector:
    angle, radius = 2.0 * np.pi * time, 1.0 if label > 0 else 2.3
    return radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)


def _spiral(time: Vector, label: float) -> Vector:
    angle = 3.2 * np.pi * np.sqrt(0.03 + 0.97 * time)
    return 0.26 * label * np.stack([angle * np.cos(angle), angle * np.sin(angle)], axis=1)


def _exclusive_or() -> Points:
    """Four clouds; the label is the sign of x1 x2."""
    random = np.random.default_rng(5)
    corners = np.tile([[1.4, 1.3], [-1.4, -1.3], [1.4, -1.3], [-1.4, 1.3]], (15, 1))
    y = np.sign(corners[:, 0] * corners[:, 1])
    return corners + 0.45 * random.standard_normal(corners.shape), y


SETS: dict[str, Callable[[], Points]] = {
    "clouds": lambda: _clouds(24, 4.0, 0.55, 3),
    "close": lambda: _clouds(40, 3.0, 0.6, 8),
    "outlier": _with_outlier,
    "overlapping": lambda: _clouds(60, 2.2, 0.9, 4),
    "many": lambda: _clouds(200, 2.8, 0.8, 6),
    "moons": lambda: _curves(80, 0.2, 1, _moon),
    "rings": lambda: _curves(80, 0.15, 2, _ring),
    "xor": _exclusive_or,
    "spiral": lambda: _curves(100, 0.05, 7, _spiral),
}
"""Every set by its name."""


@cache
def named_points(name: str) -> Points:
    """X and y of the set; read-only, since all who ask share them."""
    X, y = SETS[name]()
    X = np.round(X, _DECIMALS)
    X.flags.writeable = y.flags.writeable = False
    return X, y
