# SPDX-License-Identifier: BSD-3-Clause
"""Losses of the margin ``m = y (<w, x> + b) + 1 - p``, with what duality needs of them.

For every loss, ``dual_gain(alpha, C)`` is ``-C loss*(-alpha / C)``, the row's share of the dual value

    D(alpha) = -1/2 |sum_i alpha_i y_i x_i|^2 + sum_i dual_gain(alpha_i, C_i) + (p_i - 1) alpha_i

over ``0 <= alpha_i <= upper``; the targets p_i are 1 in classification. And ``multiplier(m, C) = -C
loss'(m)`` is the alpha that goes with a margin where the loss is smooth.

The core has a twin of each function for its passes over the rows, core/passes/losses.hpp. These here are
the ones to read, and a test holds the twins to them, row by row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from scipy.special import entr, expit

from maxmargin.types import Vector


class Loss(ABC):
    """A convex, non-increasing function of the margin."""

    name: str
    smooth: bool

    def __init__(self) -> None:
        self.at_zero = float(self.value(np.zeros(1))[0])
        """``loss(0)``."""

    @abstractmethod
    def value(self, margin: Vector) -> Vector:
        """``loss(m)``."""

    @abstractmethod
    def derivative(self, margin: Vector) -> Vector:
        """A subgradient of the loss, the one that the compiled core uses too."""

    @abstractmethod
    def upper(self, C: Vector) -> Vector:
        """The upper end of each multiplier's box; the lower end is 0."""

    @abstractmethod
    def dual_gain(self, alpha: Vector, C: Vector) -> Vector:
        """``-C loss*(-alpha / C)`` for alpha in its box."""

    @abstractmethod
    def kkt_violation(self, margin: Vector, alpha: Vector, C: Vector) -> Vector:
        """How far each row is from ``alpha_i in -C_i dloss(m_i)``; 0 at an optimum."""

    def multiplier(self, margin: Vector, C: Vector) -> Vector:
        """``-C loss'(m)``, a feasible multiplier for any margin."""
        return -C * self.derivative(margin)

    def __repr__(self) -> str:
        return f"maxmargin.problem.losses.{self.name.upper()}"


class _Hinge(Loss):
    """``max(0, 1 - m)``: the soft margin's slack (000, 002, 003, 004)."""

    name, smooth = "hinge", False

    def value(self, margin: Vector) -> Vector:
        return np.maximum(0.0, 1.0 - margin)

    def derivative(self, margin: Vector) -> Vector:
        return -(margin < 1.0).astype(np.float64)

    def upper(self, C: Vector) -> Vector:
        return C

    def dual_gain(self, alpha: Vector, C: Vector) -> Vector:
        return alpha

    def kkt_violation(self, margin: Vector, alpha: Vector, C: Vector) -> Vector:
        # Complementary slackness (003): alpha = 0 wants m >= 1, alpha = C wants m <= 1.
        slack = 1.0 - margin
        may_grow = np.where(alpha < C, np.maximum(slack, 0.0), 0.0)
        may_fall = np.where(alpha > 0, np.maximum(-slack, 0.0), 0.0)
        return np.maximum(may_grow, may_fall)


class _SquaredHinge(Loss):
    """``max(0, 1 - m)^2``: differentiable, with no upper end to the multipliers."""

    name, smooth = "squared_hinge", True

    def value(self, margin: Vector) -> Vector:
        return np.square(np.maximum(0.0, 1.0 - margin))

    def derivative(self, margin: Vector) -> Vector:
        return -2.0 * np.maximum(0.0, 1.0 - margin)

    def upper(self, C: Vector) -> Vector:
        return np.where(C > 0, np.inf, 0.0)

    def dual_gain(self, alpha: Vector, C: Vector) -> Vector:
        return alpha - np.divide(alpha**2, 4.0 * C, out=np.zeros_like(alpha), where=C > 0)

    def kkt_violation(self, margin: Vector, alpha: Vector, C: Vector) -> Vector:
        own = np.divide(alpha, 2.0 * C, out=np.zeros_like(alpha), where=C > 0)
        derivative = 1.0 - margin - own
        at_zero = np.maximum(derivative, 0.0)
        return np.where(C > 0, np.where(alpha > 0, np.abs(derivative), at_zero), 0.0)


class _Logistic(Loss):
    """``log(1 + exp(-m))``: the loss of logistic regression (000)."""

    name, smooth = "logistic", True

    def value(self, margin: Vector) -> Vector:
        return np.logaddexp(0.0, -margin)

    def derivative(self, margin: Vector) -> Vector:
        return -np.asarray(expit(-margin))

    def upper(self, C: Vector) -> Vector:
        return C

    def dual_gain(self, alpha: Vector, C: Vector) -> Vector:
        # C times the entropy of the share and of the rest. C - alpha is exact where alpha is near C, and
        # log1p keeps the digits of the larger one, whose logarithm is next to 0.
        share, rest = (np.divide(a, C, out=np.zeros_like(alpha), where=C > 0) for a in (alpha, C - alpha))
        small, large = np.minimum(share, rest), np.maximum(share, rest)
        entropy: Vector = entr(small) - large * np.log1p(-small)
        return C * entropy

    def kkt_violation(self, margin: Vector, alpha: Vector, C: Vector) -> Vector:
        # In units of alpha / C: the derivative of the dual is infinite at the walls of the box.
        share = np.divide(alpha, C, out=np.zeros_like(alpha), where=C > 0)
        return np.where(C > 0, np.abs(share - expit(-margin)), 0.0)


class _Perceptron(Loss):
    """``max(0, -m)`` (003), for study: without a margin to reach, ``w = 0`` minimises it.

    The regulariser and the loss are both 0 at ``w = 0`` and nowhere negative, so no other point can be
    better: the perceptron loss needs either no regulariser, and then has no unique answer, or a
    margin, and then is the hinge loss. ``certify`` proves it for any data: primal = dual = 0.
    """

    name, smooth = "perceptron", False

    def value(self, margin: Vector) -> Vector:
        return np.maximum(0.0, -margin)

    def derivative(self, margin: Vector) -> Vector:
        return -(margin < 0.0).astype(np.float64)

    def upper(self, C: Vector) -> Vector:
        return C

    def dual_gain(self, alpha: Vector, C: Vector) -> Vector:
        return np.zeros_like(alpha)

    def kkt_violation(self, margin: Vector, alpha: Vector, C: Vector) -> Vector:
        may_grow = np.where(alpha < C, np.maximum(-margin, 0.0), 0.0)
        may_fall = np.where(alpha > 0, np.maximum(margin, 0.0), 0.0)
        return np.maximum(may_grow, may_fall)


HINGE: Loss = _Hinge()
SQUARED_HINGE: Loss = _SquaredHinge()
LOGISTIC: Loss = _Logistic()
PERCEPTRON: Loss = _Perceptron()
LOSSES = {loss.name: loss for loss in (HINGE, SQUARED_HINGE, LOGISTIC, PERCEPTRON)}
