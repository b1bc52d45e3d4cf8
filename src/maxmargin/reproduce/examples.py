# SPDX-License-Identifier: BSD-3-Clause
"""Data that need no file."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Example = tuple[NDArray[np.float64], NDArray[np.float64]]


def breast_cancer() -> Example:
    """scikit-learn's breast cancer data: 569 rows, 30 columns of unit variance, labels -1 and 1."""
    from sklearn.datasets import load_breast_cancer

    data: Any = load_breast_cancer()
    X = (data.data - data.data.mean(axis=0)) / data.data.std(axis=0)
    return X, np.where(data.target == 1, 1.0, -1.0)


def clouds(n: int = 200, apart: float = 1.2, seed: int = 0) -> Example:
    """Two clouds of the plane that overlap unless they are far apart."""
    random = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    return random.normal(size=(n, 2)) + apart * y[:, np.newaxis], y


def sectors(n: int = 240, seed: int = 0) -> Example:
    """000's case for polar coordinates: the boundary is a spiral, which no line comes near."""
    random = np.random.default_rng(seed)
    radius, angle = random.uniform(0.3, 3.0, n), random.uniform(-np.pi, np.pi, n)
    side = radius - 1.6 - 0.25 * angle
    side += 0.18 * np.sign(side)
    radius = 1.6 + 0.25 * angle + side + 0.12 * random.normal(size=n)
    y = np.where(side > 0, 1.0, -1.0)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), y


def ideal_weight(n: int = 300, seed: int = 0) -> Example:
    """003's case for interactions: height (inches) and weight (kg), and whether the two go together.

    They do within 10 kg of J. D. Robinson's formula, 52 + 1.9 (height - 60). The score of the lecture,

        (52 + 1.9 (h - 60) - w)^2  =  3.61 h^2 - 3.8 h w - 235.6 h + w^2 + 124 w + 3844,

    is a linear function of the monomials of degree 2, and not of height and weight themselves.
    """
    random = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    height = random.uniform(58.0, 78.0, n)
    off = np.where(y > 0, random.uniform(0.0, 9.0, n), random.uniform(11.0, 25.0, n))
    weight = 52.0 + 1.9 * (height - 60.0) + off * random.choice([-1.0, 1.0], n)
    return np.column_stack([height, weight]), y


def disc_and_ring(n: int = 240, seed: int = 0) -> Example:
    """003's case for x1^2 + x2^2: one class around the other."""
    random = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    radius = np.where(y > 0, 2.0, 0.9) + 0.3 * random.normal(size=n)
    angle = random.uniform(-np.pi, np.pi, n)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), y
