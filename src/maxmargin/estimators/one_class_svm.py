# SPDX-License-Identifier: BSD-3-Clause
"""The region of one class, with scikit-learn's interface and a proof in every fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from maxmargin.estimators import parameter_types as takes
from maxmargin.estimators.kernel_machine import KernelMachine
from maxmargin.estimators.one_class_region import OneClassRegion
from maxmargin.reductions.one_class import OneClass
from maxmargin.solvers import AnySolver
from maxmargin.solving.loop import Callback
from maxmargin.tools.parameters import AnyNumber, Natural
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
    support_ : ndarray of shape (n_SV,)
        Indices of the support vectors.
    support_vectors_ : array or CSR matrix of shape (n_SV, n_features)
        Empty for a precomputed kernel.
    n_support_ : ndarray of shape (1,)
    dual_coef_ : array or CSR matrix of shape (1, n_SV)
        Multipliers, which add up to ``nu n``.
    intercept_ : ndarray of shape (1,)
        ``-rho``.
    offset_ : float
        ``rho``: ``decision_function`` is ``score_samples`` less this.
    coef_ : array or CSR matrix of shape (1, n_features)
        Of the linear kernel only.
    fit_status_ : int
        0 if the fit is proven to be within ``tol``, else 1.
    shape_fit_ : tuple
        Shape of the training data.
    n_iter_ : int
        Steps taken.
    kernel_ : Kernel
        With gamma as a number.
    certificate_, trace_, status_, solver_
        As in ``LinearSVR``; ``certificate_.shift`` is ``-rho``.

    Ctrl-C during a fit ends it: the best certified model so far is kept, and a warning says so. A function
    that is not shown to be a kernel is trained with, but proves nothing, as in ``SVC``.

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

    kernel: Any = "rbf"
    degree: Natural = 3
    gamma: takes.Gamma = "scale"
    coef0: AnyNumber = 0.0
    tol: takes.Tolerance = 1e-3
    nu: takes.Share = 0.5
    shrinking: takes.Flag = True
    cache_size: takes.Megabytes = 1000.0
    verbose: takes.Verbose = 0
    max_iter: takes.Steps = -1
    random_state: takes.RandomState = None
    solver: str | AnySolver = "auto"
    max_time: takes.Seconds = None
    callback: Callback | None = None
    warm_start: takes.Flag = False
    n_jobs: takes.Jobs = None

    def _statement(self, values: Vector, weights: Vector | None) -> OneClass:
        return OneClass(None, len(values), float(self.nu), weights)
