# SPDX-License-Identifier: BSD-3-Clause
"""What all classifiers here share: weights of classes, callbacks, budgets, and the proof in a notebook."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import compute_class_weight

from maxmargin.core import default_threads
from maxmargin.estimators.summary import fitted_summary
from maxmargin.proof.model import Model, Status
from maxmargin.solvers import SOLVERS, AnySolver, Solver
from maxmargin.solving.loop import Callback, Progress
from maxmargin.tools.changed import changed
from maxmargin.tools.parameters import check_choice, wrong
from maxmargin.types import Vector

logger = logging.getLogger("maxmargin")


class ShowsProof(BaseEstimator):
    """An estimator that shows the certificate of its fit in a notebook."""

    classes_: NDArray[Any]
    n_iter_: Any
    solver_: str
    _stated_problem: dict[str, Any]
    """The problem of the last fit in plain values."""

    def _repr_html_inner(self) -> str:
        """scikit-learn's picture of the estimator and, once fitted, the certificate."""
        usual: str = super()._repr_html_inner()
        return usual + fitted_summary(self)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:  # not where scikit-learn is configured to show text
            bundle["text/html"] = self._repr_html_inner()
        return bundle


class CertifiedClassifier(ClassifierMixin, ShowsProof):
    """A classifier whose fit ends with a certificate."""

    tol: float
    class_weight: Any
    verbose: int
    solver: str | AnySolver
    max_time: float | None
    callback: Callback | None
    n_jobs: int | None

    def _class_factors(self, labels: NDArray[Any], y: NDArray[Any], weights: Vector) -> Vector:
        """The factor on C of each class; "balanced" gives all classes the same weight in sum."""
        if self.class_weight is None:
            return np.ones(len(labels))
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            sums = np.array([weights[y == label].sum() for label in labels])
            return float(weights.sum()) / (len(labels) * np.where(sums > 0, sums, np.inf))
        return np.asarray(compute_class_weight(self.class_weight, classes=labels, y=y), np.float64)

    def _plain_class_weight(self) -> Any:
        """``class_weight`` without NumPy's types, to be kept with a fit."""
        factors = self.class_weight
        if not isinstance(factors, dict):
            return factors
        plain = [label.item() if isinstance(label, np.generic) else label for label in factors]
        return dict(zip(plain, map(float, factors.values()), strict=True))

    def _callback(self, label: Any, several: bool, what: str = "class") -> Callback | None:
        """The user's callback, told which problem it is about, and the log; None where there is neither."""
        if not self.verbose and self.callback is None:
            return None

        def tell(progress: Progress) -> bool | None:
            if self.verbose:
                logger.info(
                    "%s %s: step %d, %.3g s, relative gap %.3e (estimated %.3e)",
                    what,
                    label,
                    progress.step,
                    progress.seconds,
                    progress.relative_gap,
                    progress.estimate,
                )
            if self.callback is None:
                return None
            return self.callback(replace(progress, label=label if several else None))

        return tell

    def _set_ending(self, worst: Model, reason: str, proven: bool = True) -> str:
        """What ran and why it ended, by the model with the largest gap; returns what to warn of."""
        self.solver_ = worst.story or reason
        worst = changed(worst, tol=float(self.tol))
        if worst.certificate.relative_gap <= self.tol:
            worst = changed(worst, status=Status.CERTIFIED if proven else Status.NOT_PROVEN)
        self.status_: Status = worst.status
        return "" if worst.status.certified else worst.message

    def _threads(self) -> int:
        if self.n_jobs is None or self.n_jobs == -1:
            return default_threads()
        return int(self.n_jobs)


def check_solver(estimator: Any) -> None:
    """The parameter ``solver``, whose names are those of the registry."""
    if isinstance(estimator.solver, str):
        check_choice(estimator, "solver", ["auto", *SOLVERS])
    elif not isinstance(estimator.solver, Solver):
        names = ", ".join(map(repr, SOLVERS))
        raise wrong(estimator, "solver", estimator.solver, f"'auto', one of {names}, or a Solver")
