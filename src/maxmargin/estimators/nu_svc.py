# SPDX-License-Identifier: BSD-3-Clause
"""A kernel classifier with nu in the place of C, with scikit-learn's interface and a proof in every fit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from maxmargin.estimators import parameter_types as takes
from maxmargin.estimators.svc import SVC


@dataclass(eq=False, repr=False, kw_only=True)
class NuSVC(SVC):
    """Classification with nu in the place of C; every fit proves how close to the optimum it is.

        minimise over (w, b, rho)   1/2 |w|^2  -  nu n rho  +  sum_i weight_i max(0, rho - y_i f(x_i)),
                                    f(x) = <w, phi(x)> + b

    with ``<phi(x), phi(z)> = k(x, z)``, where n is the sum of all weights. A share of at most nu of the
    weights is then below the margin, and one of at least nu is that of support vectors. There is one
    problem for two classes, and one per pair of classes for more; nu can be at most twice the share of the
    smaller class of each.

    The answer is given in units of rho, as LIBSVM does it: scores of the margin are 1 and -1, and w, b and
    the multipliers are those of ``SVC`` with ``C = 1 / rho``. The certificates are about the problem with
    all costs times that number, whose rho is 1, ``-certificate_.shift``.

    Parameters
    ----------
    nu : float
        A share of the rows, above 0 and at most 1.
    kernel, degree, gamma, coef0, shrinking, probability, tol, cache_size, verbose, max_iter,
    decision_function_shape, break_ties, random_state, solver, max_time, callback, warm_start, n_jobs
        As in ``SVC``.

    There is no ``class_weight``, which scikit-learn's ``NuSVC`` takes and ignores. What it would do,
    ``sample_weight`` does: with ``compute_sample_weight("balanced", y)`` of scikit-learn, classes weigh the
    same, and every nu is feasible.

    Attributes
    ----------
    As in ``SVC``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import NuSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = NuSVC(nu=0.1).fit(X, y)
    >>> bool(model.certificate_.relative_gap <= 1e-3)
    True
    """

    nu: takes.Share = 0.5
    C: takes.Cost = field(default=1.0, init=False)
    class_weight: takes.ClassWeight = field(default=None, init=False)
    multi_class: Annotated[str, Literal["ovr", "ovo"]] = field(default="ovo", init=False)
    device: takes.Device = field(default=None, init=False)
    _fixed: ClassVar[dict[str, Any]] = {
        "C": 1.0,
        "class_weight": None,
        "multi_class": "ovo",
        "device": None,
    }
    """What files tell beside the parameters."""

    @property
    def _nu(self) -> float | None:
        return float(self.nu)
