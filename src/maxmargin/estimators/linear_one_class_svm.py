# SPDX-License-Identifier: BSD-3-Clause
"""The half-space of one class, for many rows, with scikit-learn's interface and a proof in every fit."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from maxmargin.core import Budget
from maxmargin.estimators import parameter_types as takes
from maxmargin.estimators.linear_machine import LinearMachine
from maxmargin.estimators.one_class_region import OneClassRegion
from maxmargin.estimators.reading import MATRIX, checked_weights, here, telling_of_tables
from maxmargin.problem.rows import Rows
from maxmargin.proof.model import Model, Status
from maxmargin.reductions.one_class import OneClass
from maxmargin.reductions.one_class_on_columns import solve_one_class
from maxmargin.solvers import AnySolver
from maxmargin.solving.ways import solve_each
from maxmargin.telling.doubts import DoubtfulModelWarning
from maxmargin.tools.interrupts import Interrupts, held_back

_NO_LENGTH = 1e-6
"""The length of w, in units of the longest that it can be, below which no half-space is worth its name."""


@dataclass(eq=False, repr=False, kw_only=True)
class LinearOneClassSVM(LinearMachine, OneClassRegion):
    """The half-space where rows of one class are found; every fit proves how close to the optimum it is.

        minimise over (w, rho)   1/2 |w|^2  -  nu n rho  +  sum_i weight_i max(0, rho - <w, x_i>)

    where n is the sum of all weights. A share of at most nu of the rows is then outside. It is
    ``OneClassSVM(kernel="linear")`` for millions of rows: its time grows with their number, and not with
    its square. After a feature map, such as ``RandomFourier`` or scikit-learn's ``Nystroem``, it is near
    to a region with that kernel.

    The half-space is seen from the origin, so columns must not be centred there: where some mean of rows
    is 0, w = 0 is best, nothing is told apart, and a warning says so.

    Parameters
    ----------
    nu : float
        A share of the rows, above 0 and at most 1.
    tol : float
        The relative gap to reach: ``(primal - dual) / |primal|``.
    verbose, random_state, max_iter, solver, max_time, callback, warm_start, n_jobs
        As in ``LinearSVR``.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
    intercept_ : ndarray of shape (1,)
        ``-rho``.
    offset_ : float
        ``rho``: ``decision_function`` is ``score_samples`` less this.
    n_iter_ : int
        Steps taken.
    certificate_, trace_, status_, solver_
        As in ``LinearSVR``; ``certificate_.shift`` is ``-rho``.

    Ctrl-C during a fit ends it: the best certified model so far is kept, and a warning says so.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import LinearOneClassSVM
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LinearOneClassSVM(nu=0.1).fit(X)
    >>> bool(model.certificate_.relative_gap <= 1e-4)
    True
    >>> bool((model.predict(X) == -1).mean() <= 0.1)
    True
    """

    nu: takes.Share = 0.5
    solver: str | AnySolver = "auto"

    def _fit_once(self, X: Any, y: Any, sample_weight: Any) -> Interrupts:
        self._check_parameters()
        X = here(self, X)
        with telling_of_tables(X):
            X = validate_data(self, X, order="C", **MATRIX)
        weights = checked_weights(sample_weight, X)
        with held_back() as interrupts:
            stated = OneClass(Rows(X, check_finite=False), X.shape[0], float(self.nu), weights)
            model = self._solve(stated, X)
            self.coef_, self.n_iter_ = model.w[np.newaxis], max(1, model.steps)
            self._set_proof(stated, model)
            self.shape_fit_ = X.shape
            longest = stated.total * stated.rows.largest_length
        ended = self.status_ in (Status.CERTIFIED, Status.RULE_FIRED, Status.AT_ZERO)
        if not ended or float(np.linalg.norm(model.w)) > _NO_LENGTH * longest:
            self._warn_of_shortfall()
        else:
            warnings.warn(
                "No half-space has more of the rows than another: w is 0, or nearly so, since some mean of "
                "the rows is the origin. Do not centre the columns, choose a smaller nu, or use a kernel: "
                "OneClassSVM has some.",
                DoubtfulModelWarning,
                stacklevel=3,
            )
        return interrupts

    def _solve(self, stated: OneClass, X: Any) -> Model:
        running, start = self._running(), self._last_solution(stated.rows)

        def solve_one(k: int, budget: Budget) -> Model:
            return solve_one_class(
                stated.problem(),
                X,
                running.solver,
                tol=running.tol,
                max_steps=running.max_steps,
                start=start,
                callback=running.told_of(None),
                seed=running.seed,
                budget=budget,
            )

        return solve_each(1, solve_one, running.seconds, running.threads())[0]
