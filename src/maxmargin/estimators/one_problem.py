# SPDX-License-Identifier: BSD-3-Clause
"""What the estimators with one problem share: how a fit runs, and how it ends."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from maxmargin.estimators.certified import Certified
from maxmargin.proof.certificate import Certificate
from maxmargin.proof.model import Model, Status, Trace
from maxmargin.reductions.one_class import OneClass
from maxmargin.reductions.ranking import Ranking
from maxmargin.reductions.regression import Regression
from maxmargin.solving.loop import Callback, Progress
from maxmargin.solving.ways import Running


class OneProblem(Certified):
    """An estimator with one problem, whose fit ends with a certificate."""

    _what: ClassVar[str]
    """What the problem is about, for the log."""
    intercept_: NDArray[np.float64]
    trace_: Trace
    status_: Status

    def _running(self) -> Running:
        """How the problem of a fit is to be solved."""
        if self.verbose:
            self._show()
        return self._running_told(self._told_of)

    def _told_of(self, name: Any) -> Callback:
        """The user's callback, and what ``verbose`` shows."""

        def tell(progress: Progress) -> bool | None:
            self._tell(self._what, progress)
            return None if self.callback is None else self.callback(progress)

        return tell

    def _set_proof(self, stated: Regression | OneClass | Ranking, model: Model) -> None:
        """The intercept, the proof and how the fit ended; warns where it fell short."""
        self.certificate_, self.trace_ = model.certificate, model.trace
        self.intercept_ = np.array([model.b])
        self._stated_problem = stated.statement() | {"tol": float(self.tol)}
        self._outline = stated.outline()
        self.__dict__.pop("_shares", None)
        self.__dict__.pop("_places", None)
        self.solver_, self.status_ = model.solver, model.status.at(model.certificate)
        gap = model.certificate.relative_gap
        if gap <= self.tol:
            self.status_ = Status.within_tol(model.certificate)

    def _warn_of_shortfall(self) -> None:
        """Warn where the fit has not come within ``tol``."""
        if self.status_.certified:
            return
        assert isinstance(self.certificate_, Certificate)
        gap, steps = self.certificate_.relative_gap, int(self.n_iter_)
        warnings.warn(self.status_.sentence(gap, float(self.tol), steps), ConvergenceWarning, stacklevel=4)
