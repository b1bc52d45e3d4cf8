# SPDX-License-Identifier: BSD-3-Clause
"""The rows of a problem as it sees them: as they are, or through a kernel.

A point w is a vector of columns for plain rows. Through a kernel it is ``w = sum_j c_j phi(x_j)``, held by
its coefficients c, one for each row: then ``<w, phi(x_i)> = sum_j c_j k(x_j, x_i)``, and
``|w|^2 = sum_ij c_i c_j k(x_i, x_j)``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

from maxmargin.independent.arithmetic import Interval, Vector, combination, exponential, sum_of


class Rows(ABC):
    """All that the objective and its bound ask of rows."""

    def __init__(self, vectors: Sequence[Vector]) -> None:
        self.vectors = vectors

    @abstractmethod
    def scores(self, w: Vector) -> list[Interval]:
        """``<w, x_i>`` of each row."""

    @abstractmethod
    def squared_norm(self, w: Vector, scores: Sequence[Interval] | None = None) -> Interval:
        """``|w|^2``; ``scores`` are those of w, where they have been computed."""

    @abstractmethod
    def combine(self, coefficients: Sequence[Fraction]) -> Vector:
        """``sum_i coefficient_i x_i``."""

    @abstractmethod
    def squared_length(self, i: int) -> Interval:
        """``|x_i|^2``."""


class PlainRows(Rows):
    """Rows as they are: everything is a fraction."""

    def scores(self, w: Vector) -> list[Interval]:
        """``<w, x_i>`` of each row."""
        return [Interval.exactly(w.dot(x)) for x in self.vectors]

    def squared_norm(self, w: Vector, scores: Sequence[Interval] | None = None) -> Interval:
        """``|w|^2``."""
        return Interval.exactly(w.square)

    def combine(self, coefficients: Sequence[Fraction]) -> Vector:
        """``sum_i coefficient_i x_i``."""
        return combination(coefficients, self.vectors)

    def squared_length(self, i: int) -> Interval:
        """``|x_i|^2``."""
        return self.squared_norm(self.vectors[i])


class KernelRows(Rows):
    """Rows seen through a kernel, which is described as model files describe it."""

    def __init__(self, vectors: Sequence[Vector], kernel: Mapping[str, Any]) -> None:
        super().__init__(vectors)
        self.kernel = kernel

    @cached_property
    def _values(self) -> list[list[Interval]]:
        """The kernel of all pairs of rows; half of them are computed."""
        values: list[list[Interval]] = []
        for i, x in enumerate(self.vectors):
            values.append([kernel_value(self.kernel, x, z) for z in self.vectors[: i + 1]])
        for i, line in enumerate(values):
            line.extend(below[i] for below in values[i + 1 :])
        return values

    @cached_property
    def _ends(self) -> tuple[list[Vector], list[Vector]]:
        """The lower ends of each line of values, and the widths of the intervals."""
        lows = [Vector.of(value.low for value in line) for line in self._values]
        if all(value.is_number for line in self._values for value in line):
            return lows, [Vector({})] * len(lows)
        widths = [Vector.of(value.high - value.low for value in line) for line in self._values]
        return lows, widths

    def scores(self, w: Vector) -> list[Interval]:
        """``<w, phi(x_i)>``: positive coefficients widen it upwards, negative ones downwards."""
        above = Vector({j: max(w[j], Fraction(0)) for j in w.numerators})
        below = Vector({j: min(w[j], Fraction(0)) for j in w.numerators})
        scores = []
        for low, width in zip(*self._ends, strict=True):
            score = w.dot(low)
            if width.numerators:
                scores.append(Interval(score + below.dot(width), score + above.dot(width)))
            else:
                scores.append(Interval.exactly(score))
        return scores

    def squared_norm(self, w: Vector, scores: Sequence[Interval] | None = None) -> Interval:
        """``|w|^2``, which is not negative."""
        scores = self.scores(w) if scores is None else scores
        square = sum_of(scores[i].times(w[i]) for i in w.numerators)
        return Interval(max(square.low, Fraction(0)), max(square.high, Fraction(0)))

    def combine(self, coefficients: Sequence[Fraction]) -> Vector:
        """``sum_i coefficient_i phi(x_i)``, which is held by its coefficients."""
        return Vector.of(coefficients)

    def squared_length(self, i: int) -> Interval:
        """``k(x_i, x_i)``."""
        return self._values[i][i]


class TwinRows(Rows):
    """Each of some rows twice in turn, as regression has them; w is what it is for those rows."""

    def __init__(self, examples: Rows) -> None:
        super().__init__([vector for vector in examples.vectors for _ in range(2)])
        self.examples = examples

    def scores(self, w: Vector) -> list[Interval]:
        """``<w, x_i>`` of each row."""
        return [score for score in self.examples.scores(w) for _ in range(2)]

    def squared_norm(self, w: Vector, scores: Sequence[Interval] | None = None) -> Interval:
        """``|w|^2``."""
        return self.examples.squared_norm(w, None if scores is None else scores[::2])

    def combine(self, coefficients: Sequence[Fraction]) -> Vector:
        """``sum_i coefficient_i x_i``."""
        pairs = zip(coefficients[::2], coefficients[1::2], strict=True)
        return self.examples.combine([first + second for first, second in pairs])

    def squared_length(self, i: int) -> Interval:
        """``|x_i|^2``."""
        return self.examples.squared_length(i // 2)


class NotAKernel(ValueError):
    """A function that is not known to be a kernel, so that duality says nothing about it."""


def kernel_value(kernel: Mapping[str, Any], x: Vector, z: Vector) -> Interval:
    """``k(x, z)`` for a kernel as model files describe it; its numbers are taken as exact."""
    name = kernel["kernel"]
    if name == "sum":
        return sum_of(_product(term, x, z) for term in kernel["terms"])
    if name == "linear":
        return Interval.exactly(x.dot(z))
    if name == "polynomial":
        gamma, shift = Fraction(kernel["gamma"]), Fraction(kernel["coef0"])
        return Interval.exactly((gamma * x.dot(z) + shift) ** int(kernel["degree"]))
    if name in _DISTANCES:
        return exponential(-Fraction(kernel["gamma"]) * _DISTANCES[name](x, z))
    if name == "sigmoid":
        return _tanh(Fraction(kernel["gamma"]) * x.dot(z) + Fraction(kernel["coef0"]))
    raise NotAKernel(f"values of the kernel {name!r} cannot be computed here")


def refuse_unproven(kernel: Mapping[str, Any]) -> None:
    """A ``NotAKernel`` where nothing guarantees that the function is a kernel on any rows."""
    name = kernel["kernel"]
    if name == "sum":
        for term in kernel["terms"]:
            if not term["coefficient"] > 0:
                raise NotAKernel("a kernel with a coefficient that is not above 0 is not known to be one")
            for factor in term["factors"]:
                refuse_unproven(factor)
        return
    if name == "precomputed":
        raise NotAKernel(
            "the kernel is precomputed: its values are not in the data, and whether they are those of a "
            "kernel cannot be seen from here"
        )
    if name != "linear" and name != "polynomial" and name not in _DISTANCES:
        raise NotAKernel(f"the function {name!r} is not known to be a kernel, so that nothing is proven")
    if kernel.get("gamma", 1.0) < 0 or kernel.get("coef0", 0.0) < 0:
        raise NotAKernel(f"a {name} function with a negative gamma or coef0 is not known to be a kernel")


def _tanh(t: Fraction) -> Interval:
    """``(1 - e) / (1 + e)`` with e = exp(-2 |t|), which falls with e, and its negative for negative t."""
    power = exponential(-2 * abs(t))
    ends = [(1 - e) / (1 + e) for e in (power.high, power.low)]
    return Interval(ends[0], ends[1]) if t >= 0 else Interval(-ends[1], -ends[0])


def _product(term: Mapping[str, Any], x: Vector, z: Vector) -> Interval:
    value = Interval.exactly(Fraction(term["coefficient"]))
    for factor in term["factors"]:
        value = value.product(kernel_value(factor, x, z))
    return value


def _squared_distance(x: Vector, z: Vector) -> Fraction:
    return x.square - 2 * x.dot(z) + z.square


def _absolute_distance(x: Vector, z: Vector) -> Fraction:
    return sum((abs(x[c] - z[c]) for c in x.numerators.keys() | z.numerators.keys()), Fraction(0))


def _chi_squared_distance(x: Vector, z: Vector) -> Fraction:
    places = x.numerators.keys() | z.numerators.keys()
    return sum(((x[c] - z[c]) ** 2 / (x[c] + z[c]) for c in places if x[c] + z[c] != 0), Fraction(0))


_DISTANCES = {
    "gaussian": _squared_distance,
    "laplacian": _absolute_distance,
    "chi_squared": _chi_squared_distance,
}
"""What the kernels that are exponentials take of two rows."""
