# SPDX-License-Identifier: BSD-3-Clause
"""Logistic regression with scikit-learn's interface and a proof in every fit."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit, logsumexp

from maxmargin.estimators import parameter_types as takes
from maxmargin.estimators.linear_svc import LinearSVC
from maxmargin.estimators.reading import in_the_kind_of


@dataclass(eq=False, repr=False)
class LogisticRegression(LinearSVC):
    """Logistic regression; every fit proves how close to the optimum it is.

        minimise over (w, b)   1/2 |w|^2  +  C sum_i weight_i log(1 + exp(-y_i (<w, x_i> + b)))

    It is ``LinearSVC(loss="logistic")`` with probabilities, and has its parameters but for the loss, its
    attributes and its methods. The problem of two classes is that of scikit-learn's ``LogisticRegression``,
    where the intercept is free, too, and C means the same; ``tol`` is the relative gap to reach. Several
    classes are told apart one against the rest, as ``OneVsRestClassifier(LogisticRegression())`` does it,
    and not by one problem for all of them.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from maxmargin import LogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LogisticRegression(C=0.1).fit(scale(X), y)
    >>> model.predict_proba(scale(X)[:1]).round(2).tolist()
    [[1.0, 0.0]]
    """

    loss: takes.LossName = field(default="logistic", init=False)
    _: KW_ONLY
    C: takes.Cost = 1.0
    _fixed: ClassVar[dict[str, Any]] = {"loss": "logistic"}
    """What files tell beside the parameters."""

    def predict_proba(self, X: Any) -> Any:
        """The probability of each class, one column each, in the order of ``classes_``.

        Of two classes that of the second is ``1 / (1 + exp(-(<w, x> + b)))``. Of more, each has such a
        value, and these are divided by their sum.
        """
        return in_the_kind_of(X, np.exp(self._log_proba(X)))

    def predict_log_proba(self, X: Any) -> Any:
        """The logarithm of ``predict_proba``, to full precision also where a class is nearly impossible."""
        return in_the_kind_of(X, self._log_proba(X))

    def _log_proba(self, X: Any) -> NDArray[np.float64]:
        scores = self._decisions(X)
        if scores.ndim == 1:
            return np.column_stack([log_expit(-scores), log_expit(scores)])
        values = log_expit(scores)
        return np.asarray(values - logsumexp(values, axis=1, keepdims=True))
