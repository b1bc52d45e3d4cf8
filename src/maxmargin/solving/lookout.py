# SPDX-License-Identifier: BSD-3-Clause
"""When a certificate is worth its price."""

from __future__ import annotations

import math

from maxmargin.kernels.kernel_rows import KernelRows
from maxmargin.problem.rows import Rows
from maxmargin.solvers.base import Report

LARGE = 30_000_000
"""Stored values from which two passes are too long to wait for after Ctrl-C, so that certificates have to
be made on the way, often enough to have a recent one."""
_LEAST_RATIO = 0.02
"""Of certified gap to estimate: where C is large, the certificate finds a far better length of w."""
_NEAR, _SOON = 4.0, 32
"""Times tol: a certified gap after which tol may be near, whatever the estimate; and steps until a look."""
_TRUST = 4
"""Times as long as others, an estimate that is known to be near is relied upon."""


class Lookout:
    """Tells when a certificate is worth its two passes, from steps and estimates alone.

    Never from the clock: the same seed has to give the same run on a slower machine.
    """

    def __init__(self, tol: float, every: int | None, rows: Rows, watched: bool) -> None:
        self.tol, self.every = tol, every
        self.patience = 16 if watched else 64
        if rows.stored >= LARGE:
            self.patience = 1
        if isinstance(rows, KernelRows) and rows.count > 2000:
            self.patience = max(200, rows.count // 100)  # a proof costs as much as many steps on a few rows
        self.last_step = 0
        self.ratio = 1.0  # of certified gap to estimate
        self.near = False  # whether little was missing at the last certificate
        self.soon = self.patience // 8  # steps after a near one until a look, whatever the estimate

    def begins(self, gap: float) -> None:
        """With a start of this gap."""
        self.near = gap <= _NEAR * self.tol

    def due(self, step: int, report: Report) -> bool:
        """Whether it is time for one, after so many steps and by what the solver reports."""
        if self.every is not None:
            return step % self.every == 0
        estimate = report.gap
        if math.isnan(estimate):
            return step >= 1.25 * self.last_step
        if self.near and step >= self.last_step + self.soon:
            return True
        if estimate * self.ratio <= self.tol:
            return True
        wait = step - 4 * self.last_step
        return wait >= self.patience and (wait >= _TRUST * self.patience or not report.near())

    def saw(self, step: int, gap: float, estimate: float) -> None:
        """What a certificate found where the solver estimated that."""
        self.last_step, self.near = step, gap <= _NEAR * self.tol
        self.soon = max(_SOON, self.patience // 2, step // 4)
        if estimate > 0 and math.isfinite(gap):
            self.ratio = min(max(gap / estimate, _LEAST_RATIO), 10.0)
