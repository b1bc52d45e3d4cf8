# SPDX-License-Identifier: BSD-3-Clause
"""What a solver proposes; what it is worth, the certificate says."""

from __future__ import annotations

from dataclasses import dataclass, field

from maxmargin.types import Vector


@dataclass(frozen=True)
class Solution:
    """A primal point, a dual point, or both.

    A dual method gives ``alpha`` alone: ``w`` is then ``sum_i alpha_i y_i x_i``. A primal method gives
    ``w`` and ``b``, and ``alpha`` if it has a better one than the margins suggest.
    """

    w: Vector | None = None
    b: float = 0.0
    alpha: Vector | None = None
    margins: Vector | None = None
    """``y_i (<w, x_i> + b)``, where they are known: a start then spares a pass."""
    w_of_alpha: Vector | None = None
    """``sum_i alpha_i y_i x_i``, where it is known: that spares another."""
    any_length: bool = False
    """Whether a multiple of w would do as well: where C is large, one may be worth more."""
    alpha_from: str = "the solver"
    """The origin of alpha, in words."""
    width: float = 0.0
    """Of a ranking with the hinge: over how much of the margin the multipliers of pairs rise."""
    notes: dict[str, float] = field(default_factory=dict[str, float])
    """What else the solver can tell, such as the bound of Pegasos."""
