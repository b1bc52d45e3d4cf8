# SPDX-License-Identifier: BSD-3-Clause
"""What a page asks for, read with suspicion: every value has a kind and a range, and a name of its own."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import numpy as np

from maxmargin.lab.data import SETS, named_points
from maxmargin.types import Vector

MOST_POINTS = 500
"""Points of a bench: more cannot be told apart on a screen."""
FARTHEST = 1000.0
"""The largest coordinate, in either direction. The planes of the benches end long before."""


class Refused(ValueError):
    """A message that is not answered; the sentence says what is wrong with it."""


class Asked:
    """The values of one message, by name. Whatever has no reader is refused."""

    def __init__(self, values: object) -> None:
        if not isinstance(values, dict):
            raise Refused(f"What is asked must be an object. Got {_shown(values)} instead.")
        self._values: dict[str, Any] = values
        self._read: set[str] = set()

    def number(self, name: str, low: float, high: float, *, or_infinite: bool = False) -> float:
        """A number from low to high; with ``or_infinite`` also the word "inf"."""
        value = self._take(name)
        if or_infinite and value == "inf":
            return math.inf
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            also = ' or "inf"' if or_infinite else ""
            raise self._wrong(name, f"a number from {low:g} to {high:g}{also}", value)
        return float(value)

    def whole(self, name: str, low: int, high: int) -> int:
        """A whole number from low to high."""
        value = self._take(name)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise self._wrong(name, f"a whole number from {low} to {high}", value)
        return value

    def choice(self, name: str, allowed: Collection[str]) -> str:
        """One of these words."""
        value = self._take(name)
        if not isinstance(value, str) or value not in allowed:
            raise self._wrong(name, f"one of {', '.join(allowed)}", value)
        return value

    def flag(self, name: str) -> bool:
        """True or false."""
        value = self._take(name)
        if not isinstance(value, bool):
            raise self._wrong(name, "true or false", value)
        return value

    def rows(self, name: str, columns: int, most: int = MOST_POINTS) -> Vector:
        """A matrix of at most so many rows, each of so many numbers."""
        value = self._take(name)
        if not isinstance(value, list) or len(value) > most:
            raise self._wrong(name, f"a list of at most {most} rows", value)
        for row in value:
            if not isinstance(row, list) or len(row) != columns or not all(map(_is_coordinate, row)):
                raise self._wrong(name, f"rows of {columns} numbers up to {FARTHEST:g}", row)
        return np.array(value, dtype=np.float64).reshape(len(value), columns)

    def points(self, most: int = MOST_POINTS) -> tuple[Vector, Vector]:
        """X and y: the rows ``points``, (x1, x2, label) each, or where there are none the set ``data``."""
        name, rows = self.choice("data", SETS), self.rows("points", 3, most)
        if not len(rows):
            return named_points(name)
        if not np.isin(rows[:, 2], (-1.0, 1.0)).all():
            raise Refused("The labels of 'points' must be -1 or 1. Got another number.")
        return np.ascontiguousarray(rows[:, :2]), np.ascontiguousarray(rows[:, 2])

    def refuse_the_rest(self) -> None:
        """Refuse the message where it holds something that nobody has read."""
        unknown = sorted(set(self._values) - self._read)
        if unknown:
            raise Refused(f"Nothing is known of {_shown(unknown[0])}. Leave it out.")

    def _take(self, name: str) -> Any:
        if name not in self._values:
            raise Refused(f"{name!r} is missing.")
        self._read.add(name)
        return self._values[name]

    def _wrong(self, name: str, expected: str, value: object) -> Refused:
        return Refused(f"{name!r} must be {expected}. Got {_shown(value)} instead.")


def _is_coordinate(value: object) -> bool:
    return not isinstance(value, bool) and isinstance(value, int | float) and abs(value) <= FARTHEST


def _shown(value: object) -> str:
    """A value in a sentence, cut where it is long."""
    shown = ascii(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."
