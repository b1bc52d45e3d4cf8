# SPDX-License-Identifier: BSD-3-Clause
"""The region of one class, with scikit-learn's interface and a proof in every fit."""

from __future__ import annotations

from dataclasses import dataclass

from maxmargin.estimators import parameter_types as takes
from maxmargin.estimators.kernel_machine import KernelMachine
from maxmargin.estimators.one_class_region import OneClassRegion
from maxmargin.reductions.one_class import OneClass
from maxmargin.types import Vector


@dataclass(eq=False, repr=False, kw_only=True)
class OneClassSVM(KernelMachine, OneClassRegion):
    """The region where rows of one class are found; every fit proves how close to the optimum it is.

        minimise over (w, rho)   1/2 |w|^2  -  nu n rho  +  sum_i weight_i max(0, rho - <w, phi(x_i)>)

    with ``<phi(x), phi(z)> = k(x, z)``, where n is the sum of all weights. A share of at most nu of the
    rows is then outside, and one of at least nu are support vectors.

    Parameters
    ----------
    kernel, degree, gamma, coef0
        As in ``SVC``.
    tol : float
        The relative gap to reach: ``(primal - dual) / |primal|``.
    nu : float
        A share of the rows, above 0 and at most 1.
    shrinking, cache_size, verbose, max_iter, random_state, solver, max_time, callback, warm_start, n_jobs
        As in ``SVC``.

    Attributes
    ----------
    dual_coef_ : array or CSR matrix of shape (1, n_SV)
        Multipliers, which add up to ``nu n``.
    intercept_ : ndarray of shape (1,)
        ``-rho``.
    offset_ : float
        ``rho``: ``decision_function`` is ``score_samples`` less this.

    All others are as in ``SVR``; ``certificate_.shift`` is ``-rho``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import OneClassSVM
    >>> X, y = load_iris(return_X_y=True)
    >>> model = OneClassSVM(nu=0.1).fit(X)
    >>> bool(model.certificate_.relative_gap <= 1e-3)
    True
    >>> bool((model.predict(X) == -1).mean() <= 0.1)
    True
    """

    nu: takes.Share = 0.5

    def _statement(self, values: Vector, weights: Vector | None) -> OneClass:
        return OneClass(None, len(values), float(self.nu), weights)
