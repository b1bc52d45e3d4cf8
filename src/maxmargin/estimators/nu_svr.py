# SPDX-License-Identifier: BSD-3-Clause
"""Regression with nu in the place of epsilon, with scikit-learn's interface, and a proof in every fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from maxmargin.estimators import parameter_types as takes
from maxmargin.estimators.certified_regressor import CertifiedRegressor
from maxmargin.estimators.kernel_machine import KernelMachine
from maxmargin.reductions.regression import Regression
from maxmargin.types import Vector


@dataclass(eq=False, repr=False, kw_only=True)
class NuSVR(CertifiedRegressor, KernelMachine):
    """Regression with a tube as wide as nu says; every fit proves how close to the optimum it is.

        minimise over (w, b, epsilon)   1/2 |w|^2  +  C (nu n epsilon + sum_k weight_k loss_k),
                                        loss_k = max(0, |y_k - <w, phi(x_k)> - b| - epsilon)

    with ``<phi(x), phi(z)> = k(x, z)``, where n is the sum of all weights. A share of at most nu of the
    examples is then outside of the tube, and one of at least nu are support vectors. ``epsilon_`` is the
    epsilon that was found: ``SVR`` with it has the same answer.

    Parameters
    ----------
    kernel, degree, gamma, coef0
        As in ``SVC``.
    tol : float
        The relative gap to reach: ``(primal - dual) / |primal|``.
    C : float
        Weight of the losses: a larger C fits the data harder.
    nu : float
        A share of the examples, above 0 and at most 1.
    shrinking, cache_size, verbose, max_iter, random_state, solver, max_time, callback, warm_start, n_jobs
        As in ``SVC``.

    Attributes
    ----------
    epsilon_ : float
        How far a prediction may be off at no cost, as the fit found it.

    All others are as in ``SVR``.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from maxmargin import NuSVR
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = NuSVR(C=100.0, nu=0.3).fit(X, y)
    >>> bool(model.certificate_.relative_gap <= 1e-3)
    True
    """

    C: takes.Cost = 1.0
    nu: takes.Share = 0.5

    def _statement(self, values: Vector, weights: Vector | None) -> Regression:
        return Regression(None, values, float(self.C), 0.0, weights=weights, nu=float(self.nu))

    @property
    def epsilon_(self) -> float:
        """The epsilon that the fit found."""
        check_is_fitted(self)
        told = self.__dict__.get("_shares")  # by the file that it was loaded from
        proof: Any = self.certificate_ if told is None else told[0]
        return float(proof.shift)

    def predict(self, X: Any) -> NDArray[np.float64]:
        """``<w, phi(x)> + b`` of each row."""
        return self._scores(X)
