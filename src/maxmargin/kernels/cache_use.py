# SPDX-License-Identifier: BSD-3-Clause
"""What a fit has made of its memory for values of the kernel."""

from __future__ import annotations

from dataclasses import dataclass

from maxmargin import core

PEAK, COMPUTED, FOUND = "cache_peak_bytes", "cache_rows_computed", "cache_rows_found"
"""What solvers call the three numbers in their notes."""


@dataclass(frozen=True)
class CacheUse:
    """Rows of the kernel matrix that a fit held, computed and found again."""

    budget_bytes: int
    """The ``cache_size`` of the fit; of a configured solver its own, for as many as run side by side."""
    peak_bytes: int
    """The most that was held at once, or a bound on it where problems were solved side by side."""
    rows_computed: int
    """Rows of the matrix of all rows, or of those that were not put aside at the time."""
    rows_found: int
    """Rows that were needed again and were still there."""

    @property
    def hit_share(self) -> float:
        """The share of the rows that were needed and did not have to be computed."""
        asked = self.rows_computed + self.rows_found
        return self.rows_found / asked if asked else 0.0

    def __str__(self) -> str:
        asked = self.rows_computed + self.rows_found
        return (
            f"Kernel cache: at most {self.peak_bytes / 1e6:.3g} of {self.budget_bytes / 1e6:.6g} MB held; "
            f"{self.rows_found} of {asked} rows ({100.0 * self.hit_share:.3g} %) were found in it."
        )


def cache_notes(peak_bytes: int, rows_computed: int, rows_found: int) -> dict[str, float]:
    """What a solver's ``Solution`` tells of its cache."""
    return {PEAK: float(peak_bytes), COMPUTED: float(rows_computed), FOUND: float(rows_found)}


def notes_of(counts: core.CacheCounts) -> dict[str, float]:
    """What the core's counts tell of a cache."""
    return cache_notes(counts.peak_bytes, counts.rows_computed, counts.rows_found)
