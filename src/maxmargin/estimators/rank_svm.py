# SPDX-License-Identifier: BSD-3-Clause
"""A linear ranking machine with scikit-learn's interface and a proof in every fit."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_consistent_length, column_or_1d, validate_data

from maxmargin.estimators import parameter_types as takes
from maxmargin.estimators.certified_regressor import CertifiedRegressor
from maxmargin.estimators.linear_machine import LinearMachine
from maxmargin.estimators.ranking_measures import RankingMeasures, ranking_measures
from maxmargin.estimators.reading import MATRIX, checked_weights, here
from maxmargin.problem.ranking import codes_of
from maxmargin.problem.rows import Rows, in_numpy
from maxmargin.proof.ranking import RankingCertificate
from maxmargin.reductions.linear_fit import LinearFit
from maxmargin.reductions.ranking import Ranking
from maxmargin.tools.interrupts import Interrupts, held_back


@dataclass(eq=False, repr=False, kw_only=True)
class RankSVM(CertifiedRegressor, LinearMachine):
    """Linear ranking from pairs of rows of one query; every fit proves how close to the optimum it is.

        minimise over w   1/2 |w|^2  +  C sum over pairs (i, j) of  weight_i weight_j loss(<w, x_i - x_j>)

    The pairs are all those of rows of one query with ``y_i > y_j``, and the loss is ``max(0, 1 - m)^2`` or
    ``max(0, 1 - m)``. Pairs are never written out: a pass takes O(n log n), whatever their number.

    Parameters
    ----------
    tol : float
        The relative gap to reach: ``(primal - dual) / |primal|``.
    C : float
        Weight of the loss of each pair: a larger C fits the data harder. There are up to n^2 / 2 pairs, so
        that useful values are smaller than in classification.
    loss : "squared_hinge" or "hinge"
        The loss of a pair by its margin ``<w, x_i - x_j>``.
    verbose, random_state, max_iter, max_time, callback, warm_start, n_jobs
        As in ``LinearSVC``; nothing is drawn, so that ``random_state`` is without effect.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : ndarray of shape (1,)
        0: it would cancel out of every pair.
    n_iter_ : int
        Steps taken.
    certificate_ : RankingCertificate
        The proof. Its ``alpha`` has one number for each row, the signed sum of the multipliers of its
        pairs.
    trace_ : Trace
        The certificates on the way.
    status_ : Status
        Why the fit ended.
    solver_ : str
        What ran and why, in one sentence.

    Ctrl-C during a fit ends it: the best certified model so far is kept, and a warning says so.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import RankSVM
    >>> X = np.array([[1.0, 0.2], [0.4, 0.1], [0.1, 0.9], [0.9, 0.5], [0.3, 0.3]])
    >>> model = RankSVM().fit(X, [2, 1, 0, 1, 0], query=["a", "a", "a", "b", "b"])
    >>> bool(model.certificate_.relative_gap <= 1e-4)
    True
    >>> model.predict(X)[:3].argsort()[::-1]
    array([0, 1, 2])
    """

    C: takes.Cost = 1.0
    loss: Literal["squared_hinge", "hinge"] = "squared_hinge"
    solver = "auto"  # there is one for pairs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Its scores are no estimates of y, so that it has a decision_function, which regressors have not.
        tags.estimator_type, tags.regressor_tags = None, None
        return tags

    def fit(  # type: ignore[override]
        self,
        X: Any,
        y: ArrayLike,
        query: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Train until the relative gap is at most ``tol``.

        X : array or sparse matrix of shape (n_samples, n_features), read in place where ``Rows`` can.
        y : the relevance of each row, a number; only its order within a query counts. query : a number or
        a name for each row, in any order: rows are compared with those of the same query. None: all rows
        are of one query. sample_weight : one number per row, not negative; the weight of a pair is the
        product of those of its rows, so that a row of weight 2 counts as the row twice. To weigh the pairs
        of a query by a factor, give its rows the square root of it.

        Ctrl-C ends a fit whose data are checked: the best model that is proven so far is kept, and a
        warning says so.
        """
        with self._showing() if self.verbose else nullcontext():
            interrupts = self._fit_once(X, y, sample_weight, query)
        if self.status_.certified:
            interrupts.pass_on()
        return self

    def _fit_once(self, X: Any, y: Any, sample_weight: Any, query: Any = None) -> Interrupts:
        self._check_parameters()
        X = here(self, X)
        y, sample_weight = in_numpy(y, sample_weight)
        X, values = validate_data(self, X, y, order="C", y_numeric=True, **MATRIX)
        weights = checked_weights(sample_weight, X)
        if query is not None:
            query = codes_of(_names(query, X), X.shape[0])
        with held_back() as interrupts:
            rows = Rows(X, check_finite=False)
            ranking = Ranking(rows, np.asarray(values, np.float64), query, self.C, self.loss, weights)
            ranking.refuse_nothing_to_rank()
            models, coef = LinearFit(ranking, self._running(), self._begin(rows)).solve()
            self.coef_, self.n_iter_ = coef[0], max(1, models[0].steps)
            self._set_proof(ranking, models[0])
            proof = models[0].certificate
            assert isinstance(proof, RankingCertificate)
            self._stated_problem["width"] = proof.width
            self._places = [proof.place]
        self._warn_of_shortfall()
        return interrupts

    def predict(self, X: Any) -> NDArray[np.float64]:
        """The score ``<w, x>`` of each row: the larger, the more relevant within its query."""
        return self._scores(X)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """The same as ``predict``."""
        return self.predict(X)

    def score(self, X: Any, y: ArrayLike, query: ArrayLike | None = None, k: int | None = None) -> float:
        """The mean nDCG of the queries, of all their rows or of the first k; 1 is the best.

        ``measures`` has the other ones, too.
        """
        found = self.measures(X, y, query, k=k or 1)
        return found.ndcg if k is None else found.ndcg_at_k

    def measures(
        self, X: Any, y: ArrayLike, query: ArrayLike | None = None, *, k: int = 10
    ) -> RankingMeasures:
        """nDCG, nDCG of the first k rows, the share of pairs in order, and Kendall's tau."""
        scores = self.predict(X)
        names = None if query is None else _names(query, X)
        return ranking_measures(column_or_1d(in_numpy(y)), scores, names, k)


def _names(query: Any, X: Any) -> NDArray[Any]:
    """The queries of the rows of X; only their equality counts."""
    names = column_or_1d(query, dtype=None)
    check_consistent_length(X, names)
    return np.asarray(names)
