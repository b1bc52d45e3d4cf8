# SPDX-License-Identifier: BSD-3-Clause
"""The proof of a fit in passes: both values, without a multiplier and a margin for each of the rows."""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from maxmargin.proof.certificate import Certificate
from maxmargin.types import Vector


class ChunkCertificate(Certificate):
    """A certificate whose sums were made chunk by chunk; ``alpha`` and ``margins`` are empty."""

    rows_read: int = 0
    """Rows that were read."""

    @classmethod
    def of(
        cls,
        w: Vector,
        b: float,
        primal: float,
        dual: float,
        w_of_alpha: Vector,
        alpha_from: str,
        rows: int,
    ) -> ChunkCertificate:
        """The proof of (w, b) by multipliers whose ``sum_i alpha_i y_i x_i`` is given."""
        none = np.empty(0)
        proof = cls(None, w, b, primal, none, dual, alpha_from, none, w_of_alpha)
        proof.__dict__["rows_read"] = rows
        proof.__dict__["b_interval"] = None
        return proof

    def without_problem(self, w: Vector) -> ChunkCertificate:
        """The same proof, with its w where it lies now."""
        proof = type(self).of(
            w, self.b, self.primal, self.dual, self.w_of_alpha, self.alpha_from, self.rows_read
        )
        return proof

    @property
    def kkt_violation(self) -> float:
        """How far w is from that of the multipliers; the rows' own conditions are not looked at."""
        return float(np.abs(self.w - self.w_of_alpha).max(initial=0.0))

    def __str__(self) -> str:
        return f"{self._claim}\nThe lower bound comes from {self.alpha_from}. {self.rows_in_words}"

    @property
    def knows_rows(self) -> bool:
        """It does not: the sums over all chunks are what proves it."""
        return False

    @property
    def row_classes(self) -> NoReturn:
        """There are none: they would take memory that grows with the rows."""
        raise AttributeError("A fit in chunks keeps no margin and no multiplier for each of its rows.")

    @property
    def other_intercepts(self) -> str:
        """Not known."""
        return ""

    @property
    def rows_in_words(self) -> str:
        """What the sums are of."""
        return f"Proven by sums over {self.rows_read} rows."
