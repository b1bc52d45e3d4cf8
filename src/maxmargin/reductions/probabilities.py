# SPDX-License-Identifier: BSD-3-Clause
"""From scores to probabilities: a curve for each problem, fitted to scores of rows that were held out.

What the curves say of a row becomes one probability for each class by ``Decomposition.probabilities``. With
two classes, or each class against the rest, it is what ``sklearn.calibration.CalibratedClassifierCV`` says;
pairs of classes are coupled as LIBSVM does it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from maxmargin.problem.rows import Matrix
from maxmargin.reductions.decompositions import Decomposition
from maxmargin.types import Vector

Method = Literal["sigmoid", "isotonic"]

_MOST_STEPS = 100
"""Steps of Newton's method for the two numbers of a sigmoid: a dozen is the rule."""
_SMALLEST_STEP = 1e-10
"""The share of a step of Newton's method below which none is taken: there is only rounding to gain."""
_FLAT = 1e-10
"""The gradient, per unit of weight, at which a sigmoid has nothing to gain any more."""
_RIDGE = 1e-12
"""What is added to the diagonal of a Hessian, in units of it, so that equal scores have a step, too."""


@dataclass(frozen=True)
class Curve:
    """The probability of the label 1 as a function of the score.

    A sigmoid ``1 / (1 + exp(-(slope score + offset)))`` has one number in each of its two vectors. Other
    curves go straight from point to point, and are flat beyond the first and the last.
    """

    first: Vector
    """The slope, or the scores of the points."""
    second: Vector
    """The offset, or the probabilities of the points."""


@dataclass(frozen=True)
class Calibration:
    """What turns scores into probabilities."""

    method: Method
    curves: tuple[Curve, ...]
    """One for each problem."""

    def probabilities(self, scores: Matrix, kind: Decomposition) -> Matrix:
        """One column for each class, given a column of scores for each problem."""
        return kind.probabilities(
            np.column_stack([self._of(k, column) for k, column in enumerate(scores.T)])
        )

    def _of(self, k: int, scores: Vector) -> Vector:
        curve = self.curves[k]
        if self.method == "sigmoid":
            return np.asarray(expit(curve.first[0] * scores + curve.second[0]))
        return np.asarray(np.interp(scores, curve.first, curve.second))

    def contradiction(self, problems: int) -> str | None:
        """What is wrong with it for so many problems, in a sentence; None where nothing is."""
        if len(self.curves) != problems:
            return f"its probabilities have {len(self.curves)} curves for {problems} problems."
        for curve in self.curves:
            x, y = curve.first, curve.second
            if len(x) != len(y) or not len(x) or (self.method == "sigmoid" and len(x) > 1):
                return "a curve of its probabilities has not as many numbers of one kind as of the other."
            if self.method == "isotonic" and not (
                (np.diff(x) >= 0.0).all() and y.min() >= 0.0 and y.max() <= 1.0
            ):
                return "a curve of its probabilities goes back, or leaves the interval from 0 to 1."
        return None


def calibrated(
    method: Method, scores: Matrix, kind: Decomposition, codes: NDArray[Any], weights: Vector
) -> Calibration:
    """The calibration by scores of held-out rows in each problem, given their classes and weights."""
    curves = []
    for (i, j), column in zip(kind.sides, scores.T, strict=True):
        own = np.ones(len(codes), bool) if j is None else (codes == i) | (codes == j)
        fit = sigmoid if method == "sigmoid" else isotonic
        curves.append(fit(column[own], codes[own] == i, weights[own]))
    return Calibration(method, tuple(curves))


def sigmoid(scores: Vector, positive: NDArray[np.bool_], weights: Vector) -> Curve:
    """Platt's sigmoid: it minimises the logistic loss against targets a little within 0 and 1.

    The targets are those that a uniform prior gives, ``(n_+ + 1) / (n_+ + 2)`` and ``1 / (n_- + 2)``, with
    weights in the place of numbers. The problem is convex in slope and offset: Newton's method with
    halved steps ends at its optimum.
    """
    counts = float(weights[positive].sum()), float(weights[~positive].sum())
    targets = np.where(positive, (counts[0] + 1.0) / (counts[0] + 2.0), 1.0 / (counts[1] + 2.0))
    unit = max(1.0, float(np.abs(scores).max(initial=0.0)))
    column = scores / unit
    point = np.array([0.0, np.log((counts[0] + 1.0) / (counts[1] + 1.0))])

    def loss(at: Vector) -> float:
        margins = at[0] * column + at[1]
        return float(weights @ (np.logaddexp(0.0, margins) - targets * margins))

    value = loss(point)
    for _ in range(_MOST_STEPS):
        values = expit(point[0] * column + point[1])
        residual = weights * (values - targets)
        gradient = np.array([residual @ column, residual.sum()])
        if np.abs(gradient).max() <= _FLAT * sum(counts):
            break
        curvature = weights * values * (1.0 - values)
        ss, so, oo = curvature @ column**2, curvature @ column, curvature.sum()
        ridge = _RIDGE * max(ss + oo, 1.0)
        ss, oo = ss + ridge, oo + ridge
        step = np.array([so * gradient[1] - oo * gradient[0], so * gradient[0] - ss * gradient[1]])
        step, share = step / (ss * oo - so * so), 1.0
        while share >= _SMALLEST_STEP:
            closer = loss(point + share * step)
            if closer < value + 1e-4 * share * float(gradient @ step):
                break
            share *= 0.5
        else:
            break
        point, value = point + share * step, closer
    return Curve(np.array([point[0] / unit]), np.array([point[1]]))


def isotonic(scores: Vector, positive: NDArray[np.bool_], weights: Vector) -> Curve:
    """The curve that never falls and is nearest to the labels in squares; it needs many rows."""
    from sklearn.isotonic import IsotonicRegression

    fitted = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
    fitted.fit(scores, positive.astype(np.float64), sample_weight=weights)
    return Curve(np.asarray(fitted.X_thresholds_, float), np.asarray(fitted.y_thresholds_, float))
