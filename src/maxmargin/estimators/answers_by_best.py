# SPDX-License-Identifier: BSD-3-Clause
"""What the estimators that choose by cross-validation share: ``best_estimator_`` answers for them."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import check_scoring
from sklearn.utils.validation import check_is_fitted

from maxmargin.estimators.certified import ShowsProof
from maxmargin.problem.rows import in_numpy
from maxmargin.proof.model import Status


class AnswersByBest(ShowsProof):
    """An estimator whose answers are those of the model of all rows at the chosen values."""

    scoring: str | Callable[..., Any] | None
    status_: Status

    def _best(self) -> Any:
        check_is_fitted(self, "best_estimator_")
        return self.__dict__["best_estimator_"]

    def _become(self, best: Any) -> None:
        """Sets: ``best_estimator_`` and what it has of its own."""
        for name in ("n_features_in_", "feature_names_in_", "expansion_"):
            if hasattr(self, name):
                setattr(best, name, getattr(self, name))
        self.best_estimator_ = best
        fitted = {name: value for name, value in vars(best).items() if name.endswith("_")}
        self.__dict__.update(fitted, _stated_problem=best._stated_problem)

    def predict(self, X: Any) -> Any:
        """What ``best_estimator_`` predicts for each row."""
        return self._best().predict(X)

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """The score by ``scoring``; the usual one of ``best_estimator_`` if that is None."""
        if self.scoring is None:
            return float(self._best().score(X, y, sample_weight=sample_weight))
        X, y, sample_weight = in_numpy(X, y, sample_weight)
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        return float(check_scoring(self, self.scoring)(self, X, y, **weights))

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        data: tuple[Any, Any] | str | None = None,
        proof: bool = True,
        format: Literal["maxmargin", "liblinear", "libsvm"] = "maxmargin",
    ) -> None:
        """Write ``best_estimator_`` to a file, which its ``load`` reads."""
        self._best().save(path, data=data, proof=proof, format=format)


class ClassifiesByBest(AnswersByBest):
    """The same of a classifier."""

    score = AnswersByBest.score  # and not that of scikit-learn's ClassifierMixin

    def decision_function(self, X: Any) -> Any:
        """The scores that ``best_estimator_`` gives each row."""
        return self._best().decision_function(X)

    def decision_bounds(self, X: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(low, high): the best model at the chosen values gives each row a score between the two."""
        bounds: tuple[NDArray[np.float64], NDArray[np.float64]] = self._best().decision_bounds(X)
        return bounds

    def is_sure(self, X: Any) -> NDArray[np.bool_]:
        """Whether the class of each row is that of the best model at the chosen values."""
        sure: NDArray[np.bool_] = self._best().is_sure(X)
        return sure

    def report(
        self, path: str | os.PathLike[str], X: Any, y: ArrayLike, *, test: tuple[Any, Any] | None = None
    ) -> None:
        """Write a page about ``best_estimator_``, as its own ``report`` does."""
        self._best().report(path, X, y, test=test)
