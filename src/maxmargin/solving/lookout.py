# SPDX-License-Identifier: BSD-3-Clause
"""When a certificate is worth its price, and the time that is kept for the last one."""

from __future__ import annotations

import math
from collections.abc import Callable

from maxmargin.core import Budget
from maxmargin.problem.rows import RowSpace
from maxmargin.proof.solution import Solution
from maxmargin.solvers.base import Report
from maxmargin.solvers.sizes import LARGE_VALUES, LONG_PROOF_ROWS

_LEAST_RATIO = 0.02
"""The least ratio of a certified gap to its estimate that is believed. Where C is large, the certificate
can find a far better length of w."""
_NEAR = 4.0
"""A certified gap of up to so many times tol may lack little, whatever the estimate says."""
_SOON = 32
"""Steps after such a certificate until the next look, at least."""
_TRUST = 4
"""An estimate that is known to be near the gap is relied upon for so many times as many steps as others."""
_PATIENCE, _WATCHED_PATIENCE = 64, 16
"""Steps that an estimate may put a certificate off by, and where somebody watches the run."""
_LEAST_LONG_PATIENCE, _ROWS_PER_STEP = 200, 100
"""The same with a kernel and many rows: a step for each hundred of them, and at least two hundred."""
_PATIENCE_OF_LARGE = 4
"""The same on data of ``LARGE_VALUES``: a certificate takes as long as a step, and the first step is one on
samples of the rows, as a rule."""
_GROWTH, _WAIT = 1.25, 4
"""Factors on the step of the last certificate: where a solver has no estimate the next one is due at the
first, and where its estimate says no, at the second and as many more steps as the patience has."""
_LARGEST_RATIO = 10.0
"""The largest ratio of a certified gap to its estimate that is believed."""
_CAUTION = 1.2
"""A factor on the estimated time of the last certificate."""
_SHARE_OF_STEP = 0.375
"""The share of the time before the last certificate that one step gets."""


class Lookout:
    """Tells when a certificate is worth its two passes, from steps and estimates alone.

    Never from the clock: the same seed has to give the same run on a slower machine.
    """

    def __init__(self, tol: float, every: int | None, rows: RowSpace, watched: bool) -> None:
        self.tol, self.every = tol, every
        self.patience = _WATCHED_PATIENCE if watched else _PATIENCE
        if rows.stored >= LARGE_VALUES:
            self.patience = _PATIENCE_OF_LARGE
        if rows.has_kernel and rows.count > LONG_PROOF_ROWS:
            self.patience = max(_LEAST_LONG_PATIENCE, rows.count // _ROWS_PER_STEP)
        self.last_step = 0
        self.ratio = 1.0  # of certified gap to estimate
        self.near = False  # whether little was missing at the last certificate
        self.soon = self.patience // 8  # steps after a near one until a look, whatever the estimate

    def begins(self, gap: float) -> None:
        """The run begins with a start of this gap."""
        self.near = gap <= _NEAR * self.tol

    def due(self, step: int, report: Report) -> bool:
        """Whether it is time for one, after so many steps and by what the solver reports."""
        if self.every is not None:
            return step % self.every == 0
        estimate = report.gap
        if math.isnan(estimate):
            return step >= _GROWTH * self.last_step
        if self.near and step >= self.last_step + self.soon:
            return True
        if estimate * self.ratio <= self.tol:
            return True
        wait = step - _WAIT * self.last_step
        return wait >= self.patience and (wait >= _TRUST * self.patience or not report.near())

    def saw(self, step: int, gap: float, estimate: float) -> None:
        """What a certificate found where the solver estimated that."""
        self.last_step, self.near = step, gap <= _NEAR * self.tol
        self.soon = max(_SOON, self.patience // 2, step // 4)
        if estimate > 0 and math.isfinite(gap):
            self.ratio = min(max(gap / estimate, _LEAST_RATIO), _LARGEST_RATIO)


class Reserve:
    """Keeps time for the last certificate of a run with a kernel and a limit on time.

    That certificate needs a value of the kernel for each support vector and each row, which can take longer
    than the steps did. A step that computes rows of the kernel matrix makes it longer by about as much
    again, so a step gets a share of what is left only.
    """

    def __init__(self, rows: RowSpace, budget: Budget) -> None:
        self.rows, self.budget = rows, budget
        self.limited = math.isfinite(budget.seconds_left)

    def seconds(self, propose: Callable[[], Solution]) -> float:
        """How long a certificate of what is proposed would take, about; 0 without a kernel."""
        if not self.rows.has_kernel:
            return 0.0
        alpha = propose().alpha
        return 0.0 if alpha is None else self.rows.seconds_of_scores(alpha, self.budget)

    def for_step(self, propose: Callable[[], Solution]) -> Budget:
        """What the next step may use; a budget that is spent where the last certificate is due."""
        if not (self.limited and self.rows.has_kernel):
            return self.budget
        left = self.budget.seconds_left - _CAUTION * self.seconds(propose)
        return self.budget.part(_SHARE_OF_STEP * left)
