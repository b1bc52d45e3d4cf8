# SPDX-License-Identifier: BSD-3-Clause
"""The linear support vector classifier that chooses its C by cross-validation.

    1  the path: fit all rows at every C, each from the two before
    2  for every fold, side by side:
    3      for every C:  fit from the path's model at this C, the held-out rows at weight 0;  score these
    4  the C of the best mean score:  fit its folds on to a hundredth of tol;  score again
    5  until the best is one that has been through line 4: that is the answer, and the path has its model
    6  with bounds on scores:  fit the folds of all C that may be the best closer, until they are told apart

All fits read the same rows in place: a fold is a vector of weights.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from copy import copy
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed

from maxmargin.core import Budget, default_threads
from maxmargin.estimators import parameter_types as takes
from maxmargin.estimators.answers_by_best import ClassifiesByBest
from maxmargin.estimators.certified import check_solver, is_logged
from maxmargin.estimators.folds import (
    SAME_MEAN,
    Data,
    Fits,
    Outcome,
    contenders,
    make_folds,
    refine,
    settle,
)
from maxmargin.estimators.linear_svc import LinearParameters, LinearSVC, are_chunks
from maxmargin.estimators.reading import (
    card_for,
    checked_weights,
    from_card,
    read_onto,
    read_training_data,
)
from maxmargin.estimators.tried_values import tried_values
from maxmargin.problem.rows import TellingOfRoom, in_numpy, lies_on_card
from maxmargin.proof.model import each_of
from maxmargin.solving.loop import Callback, Progress, Watch
from maxmargin.tools.one_blas_thread import one_blas_thread
from maxmargin.tools.parameters import check_options, wrong
from maxmargin.types import Vector

if TYPE_CHECKING:
    from maxmargin.telling.verbose import Shown


@dataclass(eq=False, repr=False)
class LinearSVCCV(ClassifiesByBest, LinearParameters):
    """Linear support vector classification with C chosen by cross-validation; every fit is certified.

    The parameters of ``LinearSVC`` but for C and warm_start mean what they mean there, and these are added.
    At the chosen C the folds are fitted to ``tol / 100`` as far as max_iter and max_time allow: which score
    is the best hangs on a few rows near the plane.

    Parameters
    ----------
    Cs : int or array
        The values of C to choose from, or how many of them, on a logarithmic scale from 1e-4 to 1e4.
    cv : int, splitter, iterable or None
        The folds, as scikit-learn has them; None: 5, stratified.
    scoring : str, callable or None
        What the held-out rows are scored by; None: accuracy.
    refit : bool
        Whether to be the model of all rows at the chosen C afterwards. It costs nothing.
    score_bounds : bool
        Whether to bound the accuracy that each fold has at its exact optimum, too; only where accuracy is
        the score, ``scoring=None``. It takes several passes over the scores of every fit. Where bounds
        leave the choice open, the folds of those values of C that may be the best, and only these, are
        fitted closer and closer, as far as rounding, max_iter and max_time allow.
    verbose : int
        1 shows how many fits are done and which C is chosen, 2 the scores of every C, too.
    max_time : float or None
        Seconds for all fits together.
    callback : callable or None
        As in ``LinearSVC``, from every fit and so from several threads; a true answer ends all of them.
    device : "cuda", "cpu" or None
        As in ``LinearSVC``: all fits and scores share the rows that lie on a GPU.
    n_jobs : int or None
        Folds side by side, by joblib: threads, unless ``joblib.parallel_config`` names another back end.
        None means as many as that says, or else OMP_NUM_THREADS or all cores; -1 all cores.

    Attributes
    ----------
    C_ : float
        The chosen C: of equal scores the smallest.
    Cs_ : ndarray
        The values it was chosen from.
    cv_results_ : dict
        In the form of ``GridSearchCV``, and for every fit the certified ``split<i>_relative_gap``; the
        largest of all folds is ``max_relative_gap``. With ``score_bounds``, the score of every fold at
        its exact optimum is between ``split<i>_test_score_low`` and ``split<i>_test_score_high``, and
        their mean between ``mean_test_score_low`` and ``mean_test_score_high``.
    contenders_ : ndarray
        Only with ``score_bounds``: the values of C, the chosen one among them, whose mean score at the
        optimum may be as good as that of ``C_``; all others are proven to be worse.
    choice_ : str
        Only with ``score_bounds``: "proven" where ``C_`` is the only contender; "tied" where all contenders
        are proven to be equally good, so that ``C_`` is the smallest of them; "open" where they could not
        be told apart: time or steps ran out, or rows lie so near the plane that rounding decides them.
    best_score_ : float
        The mean score of the chosen C.
    best_index_ : int
        Its place in ``Cs_``.
    best_estimator_ : LinearSVC
        Fitted on all rows at the chosen C, as are the attributes of ``LinearSVC``, which are here as well:
        ``coef_``, ``intercept_``, ``certificate_``, ``status_`` and so on. Only with ``refit=True``.
    n_passes_ : int
        Only of ``fit(Chunks(...))``: the passes over the data, for all fits and scores together.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from maxmargin import LinearSVCCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LinearSVCCV(Cs=[0.001, 0.1, 10.0], random_state=0).fit(scale(X), y)
    >>> model.C_
    0.1
    """

    penalty: takes.L2Penalty = "l2"
    _: KW_ONLY
    Cs: int | ArrayLike = 10
    cv: Any = None
    scoring: str | Callable[..., Any] | None = None
    refit: takes.Flag = True
    score_bounds: takes.Flag = False
    device: takes.Device = None

    def fit(self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit every fold at every C until the relative gap is at most ``tol``, and choose.

        X : array or sparse matrix of shape (n_samples, n_features), read in place where ``Rows`` can; or
        what ``Monomials(lazy=True)`` gives. y : one label per row. sample_weight : one factor on C per row,
        not negative. As in ``GridSearchCV``, it is for the fits: scores count every held-out row once.

        ``fit(Chunks(...))`` fits all folds at every C in the same passes over data of any size. A row's
        fold comes from its number and ``random_state`` (None: 0); folds are not stratified. All fits end
        at ``tol``, those at the chosen C too. ``cv`` is a number of folds there, the score is the
        accuracy, and there are no ``score_bounds``. The times in ``cv_results_`` are those at which a fit
        ended, side by side with all others, and of the one pass that scores all of them.

        Ctrl-C ends the fit without a model: nothing is chosen yet.
        """
        if are_chunks(X):
            from maxmargin.estimators.chosen_in_passes import choose_in_chunks

            with TellingOfRoom():
                choose_in_chunks(self, X, y, sample_weight)
            return self
        shown: list[Shown] = []
        ended = ""
        try:
            with TellingOfRoom():
                X, y, sample_weight = in_numpy(X, y, sample_weight)
                self._choose(X, y, sample_weight, shown)
            ended = f"C = {self.C_:g} has the best mean score, {self.best_score_:.6g}."
        finally:
            for one in shown:
                one.end(ended)
        return self

    def _choose(self, X: Any, y: Any, sample_weight: ArrayLike | None, shown: list[Shown]) -> None:
        self._check_parameters()
        Cs = self._values_of_C()
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        card, rows = card_for(self.device, X), None
        if card is not None:
            X, targets, rows = read_onto(card, self, X, y)
        else:
            X, targets = read_training_data(self, from_card(X), from_card(y))
        sample_weight = checked_weights(sample_weight, targets)
        weights = np.ones(len(targets)) if sample_weight is None else sample_weight
        data = Data(X, targets, weights, rows, self.device)
        places = np.empty(len(targets)) if lies_on_card(X) else X
        splits = list(check_cv(self.cv, targets, classifier=True).split(places, targets))
        if not splits:
            cure = "None takes 5 stratified folds, an int as many as it says."
            raise wrong(self, "cv", self.cv, "None, an int, or at least one split into rows", cure)
        self.n_splits_ = len(splits)
        folds = make_folds(splits, data)
        watch = Watch(self._told(shown, fits=len(Cs) * (1 + len(splits))))
        template = self._template(seed, watch)
        ascending = np.argsort(Cs, kind="stable")
        scoring = check_scoring(template, self.scoring) if isinstance(self.scoring, str) else self.scoring
        fits = Fits(template, data, scoring, bool(self.score_bounds))
        ways = [fits.way_at(float(C)) for C in Cs[ascending]]
        workers = self._workers()
        # The path and each round of folds have an equal share of the time.
        rounds = -(-len(folds) // workers)
        budget = Budget(math.inf if self.max_time is None else float(self.max_time), 1)
        path = fits.path(Cs[ascending], ways, budget.seconds_left / (1 + rounds))
        template.set_params(n_jobs=max(1, default_threads() // workers))
        side_by_side = one_blas_thread()(Parallel(n_jobs=workers, prefer="threads"))

        def fit_again(place: int, rough: list[int], goal: float) -> list[list[Outcome]]:
            if watch.stopped or budget.spent:
                return []
            share, at = budget.seconds_left / rounds, path[place : place + 1]
            closer = replace(fits, template=copy(template).set_params(tol=goal))
            way = closer.way_at(float(at[0].C))
            found: list[list[Outcome]] = side_by_side(
                delayed(closer.fold)(folds[i], at, [way], share, outcomes[i][place].model) for i in rough
            )
            return found

        try:
            share = budget.seconds_left / rounds
            outcomes = side_by_side(delayed(fits.fold)(fold, path, ways, share) for fold in folds)
            settle(outcomes, float(self.tol), fit_again)
            if self.score_bounds:
                refine(outcomes, float(self.tol), fit_again)
        except BaseException:
            watch.stopped = True  # threads that are still at it
            raise
        back = np.argsort(ascending, kind="stable")
        self._set_results(Cs, [[outcome[k] for k in back] for outcome in outcomes])
        if self.refit:
            self._set_fitted(path[int(back[self.best_index_])])
        if self.verbose >= 2:
            for one in shown:
                self._tell_scores(one)
        self._warn_of(shortfalls=[at for outcome in outcomes for at in outcome if at.shortfall])
        if self.refit:
            self.best_estimator_._warn_of_doubts(X, sample_weight)

    def _told(self, shown: list[Shown], fits: int) -> Callback | None:
        """The user's callback, and what ``verbose`` shows of so many fits, which is added to ``shown``."""
        if not self.verbose or is_logged():
            return self.callback
        from maxmargin.telling.progress import many_fits
        from maxmargin.telling.verbose import Shown

        callback, show = self.callback, Shown(type(self).__name__, 1, many_fits(fits))
        shown.append(show)

        def tell(progress: Progress) -> bool | None:
            show(progress)
            return None if callback is None else callback(progress)

        return tell

    def _tell_scores(self, shown: Shown) -> None:
        """A line for every C."""
        results = self.cv_results_
        columns = (results[name] for name in ("mean_test_score", "std_test_score", "max_relative_gap"))
        for C, mean, deviation, gap in zip(self.Cs_, *columns, strict=True):
            score = f"mean score {mean:.6g}, deviation {deviation:.2g}"
            shown.line(f"C = {C:g}: {score}, largest relative gap {gap:.1e}")

    def _check_parameters(self) -> None:
        """Check the parameters before any data are read."""
        check_solver(self)
        check_options(self)
        if self.score_bounds and self.scoring is not None:
            cure = "Only the accuracy is bounded: use scoring=None with it."
            raise wrong(self, "score_bounds", self.score_bounds, "False where there is a scoring", cure)
        self._values_of_C()
        self._template(0, Watch(self.callback))._check_parameters()

    def _values_of_C(self) -> Vector:
        return tried_values(self, "Cs", lambda count: np.logspace(-4.0, 4.0, count))

    def _template(self, seed: int, watch: Watch) -> LinearSVC:
        own = ("Cs", "cv", "scoring", "refit", "score_bounds", "n_jobs", "callback", "random_state")
        shared = {name: value for name, value in self.get_params(deep=False).items() if name not in own}
        shared["verbose"] = self.verbose if is_logged() else 0  # what all fits are together, is shown here
        callback = self.callback if self.callback is not None and not callable(self.callback) else watch
        return LinearSVC(**shared, random_state=seed, callback=callback)

    def _workers(self) -> int:
        workers = effective_n_jobs(self.n_jobs)
        if self.n_jobs is None and workers == 1:
            return default_threads()
        return int(workers)

    def _warn_of(self, shortfalls: list[Outcome]) -> None:
        parts = []
        if shortfalls:
            worst = max(shortfalls, key=lambda outcome: outcome.relative_gap)
            parts.append(
                f"{len(shortfalls)} of {self.n_splits_ * len(self.Cs_)} fits of folds are not within tol = "
                f"{self.tol:.1e}, and their scores may be off. The worst of them, at C = {worst.C:g}: "
                f"{worst.shortfall}"
            )
        if self.refit and not self.status_.certified:
            gap = max(proof.relative_gap for proof in each_of(self.certificate_))
            sentence = self.status_.sentence(gap, self.tol, self.n_iter_)
            parts.append(f"The model of all rows at C = {self.C_:g}: {sentence}")
        if parts:
            warnings.warn(" ".join(parts), ConvergenceWarning, stacklevel=4)

    def _set_results(self, Cs: Vector, outcomes: list[list[Outcome]]) -> None:
        """Sets: ``cv_results_``, ``Cs_``, ``C_``, ``best_index_``, ``best_score_``, ``best_params_``."""
        results: dict[str, Any] = {}
        for name, field_name in (("fit_time", "fit_seconds"), ("score_time", "score_seconds")):
            seconds = np.array([[getattr(at, field_name) for at in outcome] for outcome in outcomes])
            results[f"mean_{name}"], results[f"std_{name}"] = seconds.mean(axis=0), seconds.std(axis=0)
        results["param_C"] = np.ma.MaskedArray(Cs, mask=np.zeros(len(Cs), bool))
        results["params"] = [{"C": float(C)} for C in Cs]
        scores = np.array([[at.score for at in outcome] for outcome in outcomes])
        for i, row in enumerate(scores):
            results[f"split{i}_test_score"] = row
        mean = scores.mean(axis=0)
        results["mean_test_score"], results["std_test_score"] = mean, scores.std(axis=0)
        compared = np.where(np.isnan(mean), -np.inf, mean)
        results["rank_test_score"] = np.array([1 + np.sum(compared > m) for m in compared], np.int32)
        gaps = np.array([[at.relative_gap for at in outcome] for outcome in outcomes])
        for i, row in enumerate(gaps):
            results[f"split{i}_relative_gap"] = row
        results["max_relative_gap"] = gaps.max(axis=0)
        self.cv_results_ = results
        self.Cs_ = Cs
        best = np.flatnonzero(compared >= compared.max() - SAME_MEAN)
        self.best_index_ = int(best[np.argmin(Cs[best])])
        self.best_score_ = float(mean[self.best_index_])
        self.C_ = float(Cs[self.best_index_])
        self.best_params_ = {"C": self.C_}
        for name in ("contenders_", "choice_"):
            self.__dict__.pop(name, None)
        if self.score_bounds:
            self._set_bounds(outcomes)

    def _set_bounds(self, outcomes: list[list[Outcome]]) -> None:
        """Sets: ``contenders_``, ``choice_``, and the bounds in ``cv_results_``."""
        bounds = np.array([[at.bounds for at in outcome] for outcome in outcomes])
        mean = bounds.mean(axis=0)
        for place, end in enumerate(("low", "high")):
            for i, row in enumerate(bounds[:, :, place]):
                self.cv_results_[f"split{i}_test_score_{end}"] = row
            self.cv_results_[f"mean_test_score_{end}"] = mean[:, place]
        places = contenders(outcomes)
        self.contenders_ = self.Cs_[places]
        known = bool((bounds[:, places, 0] == bounds[:, places, 1]).all())
        self.choice_ = "proven" if len(places) == 1 else "tied" if known else "open"

    def _set_fitted(self, best: LinearSVC) -> None:
        """Sets: ``best_estimator_`` and what ``LinearSVC`` sets, which are its."""
        best.set_params(random_state=self.random_state, callback=self.callback, n_jobs=None, max_time=None)
        best.verbose = self.verbose
        self._become(best)
