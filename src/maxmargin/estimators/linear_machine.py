# SPDX-License-Identifier: BSD-3-Clause
"""What the linear estimators with one problem share: regressors, rankings, and those of one class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from maxmargin.estimators import parameter_types as takes
from maxmargin.estimators.certified import check_solver
from maxmargin.estimators.one_problem import OneProblem
from maxmargin.estimators.reading import MATRIX, from_card, here
from maxmargin.problem.rows import RowSpace
from maxmargin.proof.solution import Solution
from maxmargin.reductions.linear_fit import Begin
from maxmargin.solving.loop import Callback
from maxmargin.tools.parameters import check_options


@dataclass(eq=False, repr=False, kw_only=True)
class LinearMachine(OneProblem):
    """An estimator with one problem on columns as they are: ``LinearSVC`` says what its parameters mean."""

    tol: takes.Tolerance = 1e-4
    verbose: takes.Verbose = 0
    random_state: takes.RandomState = None
    max_iter: takes.Steps = -1
    max_time: takes.Seconds = None
    callback: Callback | None = None
    warm_start: takes.Flag = False
    n_jobs: takes.Jobs = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _check_parameters(self) -> None:
        check_solver(self)
        check_options(self)

    def _last_solution(self, rows: RowSpace) -> Solution | None:
        """The solution of the last fit, if there was one on such data and it is to be the start."""
        if not (self.warm_start and hasattr(self, "coef_")) or self.coef_.shape[-1] != rows.columns:
            return None
        proof: Any = getattr(self, "certificate_", None)
        width = getattr(proof, "width", None)  # of a ranking, whose multipliers follow from it
        known = proof is not None and width is None and len(proof.alpha) == rows.count
        w, b = np.ravel(self.coef_), float(self.intercept_[0])
        return Solution(w=w, b=b, alpha=proof.alpha if known else None, width=width or 0.0)

    def _begin(self, rows: RowSpace) -> Begin | None:
        """The same for a ``LinearFit``."""
        start = self._last_solution(rows)
        return None if start is None else lambda k, problem: (start, None)

    def _scores(self, X: Any) -> NDArray[np.float64]:
        """``<w, x> + b`` of each row."""
        check_is_fitted(self)
        X = here(self, X)
        X = validate_data(self, X, reset=False, **MATRIX)
        return np.asarray(X @ np.ravel(self.coef_) + self.intercept_[0], np.float64)

    def _scored(self, X: Any) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        from maxmargin.estimators.sureness import linear_scales, refuse_changed

        weights = np.atleast_2d(self.coef_)
        refuse_changed(self, [weights[0]])
        scores = self._scores(X)[:, np.newaxis]
        X = validate_data(self, from_card(X), reset=False, **MATRIX)
        return scores, *linear_scales(weights, X)
