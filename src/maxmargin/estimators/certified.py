# SPDX-License-Identifier: BSD-3-Clause
"""What all estimators here share: callbacks, budgets, how a fit ended, and the proof in a notebook."""

from __future__ import annotations

import logging
import math
import os
import time
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from maxmargin.core import default_threads
from maxmargin.estimators.kept_callback import KeptCallback
from maxmargin.estimators.summary import Unfolded, caption, fitted_summary
from maxmargin.kernels.base import Function, Precomputed
from maxmargin.problem.rows import TellingOfRoom, in_numpy, lies_on_card
from maxmargin.proof.certificate import Certificate
from maxmargin.proof.inseparable import InseparabilityProof
from maxmargin.proof.model import Certificates, Models, Status, Trace, each_of
from maxmargin.proof.sure import Neighbourhood
from maxmargin.reductions.class_problems import ClassProblems
from maxmargin.reductions.decompositions import Decomposition
from maxmargin.solvers import SOLVERS, AnySolver, Solver, sizes
from maxmargin.solving.loop import NO_LIMIT, Callback, Progress
from maxmargin.solving.ways import Running
from maxmargin.tools.interrupts import Interrupts, held_back
from maxmargin.tools.parameters import check_choice, wrong

logger = logging.getLogger("maxmargin")

_SMALLEST_TOL = 1e-14
"""The relative gap below which float64 has nothing to tell apart any more."""
_LOSS_OF_ERROR = math.log(2.0)
"""The least logistic loss of a row on the wrong side; the other losses have 1."""


class ShowsProof(BaseEstimator):
    """An estimator that shows the certificate of its fit in a notebook."""

    certificate_: Certificate | Certificates | InseparabilityProof
    classes_: NDArray[Any]
    n_iter_: Any
    solver_: str
    _stated_problem: dict[str, Any]
    """The problem of the last fit in plain values."""

    def _repr_html_inner(self) -> str:
        """scikit-learn's picture of the estimator and, once fitted, the certificate below it."""
        usual, card = super()._repr_html_inner(), fitted_summary(self)
        return usual.replace(card, "") + card if card else str(usual)

    def _get_params_html(self, *args: Any, **kwargs: Any) -> Unfolded:
        """What scikit-learn, from 1.7 on, unfolds of the estimator: parameters, and the certificate.

        So it is there in the pictures of a Pipeline, and of others that hold the estimator.
        """
        return Unfolded(super()._get_params_html(*args, **kwargs), fitted_summary(self))

    def _sk_visual_block_(self) -> Any:
        """The box in scikit-learn's pictures, with the gap below the name; without, where it has no room.

        What is private in scikit-learn may go: it draws its usual box where this raises anything.
        """
        from sklearn.utils._repr_html.estimator import _VisualBlock

        words = {"names": type(self).__name__, "name_details": str(self)}
        return _VisualBlock("single", self, **words, name_caption=caption(self))

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:  # not where scikit-learn is configured to show text
            bundle["text/html"] = self._repr_html_inner()
        return bundle

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        if state.get("callback") is None:
            return state
        return state | {"callback": KeptCallback(state["callback"])}

    def __setstate__(self, state: dict[str, Any]) -> None:
        kept = state.get("callback")
        super().__setstate__(
            state | {"callback": kept.callback} if isinstance(kept, KeptCallback) else state
        )


class Certified(ShowsProof):
    """An estimator whose fit ends with a certificate."""

    tol: float
    verbose: int
    solver: str | AnySolver
    warm_start: Any
    max_iter: int
    max_time: float | None
    callback: Callback | None
    n_jobs: int | None

    random_state: Any

    def _running_told(self, callback: Callable[[Any], Callback]) -> Running:
        """How the problems of a fit are to be solved; ``callback`` gives that of a problem by its name."""
        watched = self.verbose or self.callback is not None
        return Running(
            self.solver,
            float(self.tol),
            NO_LIMIT if self.max_iter == -1 else int(self.max_iter),
            math.inf if self.max_time is None else float(self.max_time),
            self._threads,
            self.random_state,
            self._draw_seed,
            callback if watched else None,
        )

    def _draw_seed(self) -> int:
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _tell(self, what: str, progress: Progress) -> None:
        """What ``verbose`` shows, or the log."""
        if (shown := self.__dict__.get("_shown")) is not None:
            shown(progress)
        elif self.verbose:
            logger.info(
                "%s: step %d, %.3g s, relative gap %.3e (estimated %.3e)",
                what,
                progress.step,
                progress.seconds,
                progress.relative_gap,
                progress.estimate,
            )

    def _show(self, count: int = 1, *, pairs: bool = False) -> None:
        """From here on until ``_showing`` ends, show how far so many problems are, or every certificate."""
        if is_logged():
            return
        from maxmargin.telling.progress import one_problem, several_problems
        from maxmargin.telling.verbose import Shown

        seconds = math.inf if self.max_time is None else float(self.max_time)
        saw = one_problem(float(self.tol), seconds)
        if count > 1:
            saw = several_problems(count, seconds, pairs=pairs)
        self.__dict__.setdefault("_shown", Shown(type(self).__name__, int(self.verbose), saw))

    @contextmanager
    def _showing(self) -> Iterator[None]:
        """What is shown of a fit ends with it, in a line that says how."""
        ended = ""
        try:
            yield
            gap = max(proof.relative_gap for proof in each_of(self.certificate_))
            sentence = self.status_.sentence(gap, float(self.tol), int(np.max(self.n_iter_)))
            ended = sentence.partition(". ")[0].removesuffix(".") + "."
        finally:
            if (shown := self.__dict__.pop("_shown", None)) is not None:
                shown.end(ended)

    @abstractmethod
    def _scored(self, X: Any) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """The scores of all rows, one column for each problem, the lengths of the rows, and errors."""

    def _bounds(self, X: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Between which numbers the best models score each row, one column for each problem."""
        from maxmargin.estimators.sureness import places_of
        from maxmargin.proof.sure import score_bounds

        check_is_fitted(self)
        return score_bounds(*self._scored(X), self._places_of_scores(places_of(self)), self.intercept_)

    def _flat_bounds(self, X: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The same, flat where there is one problem."""
        low, high = self._bounds(X)
        return (low.ravel(), high.ravel()) if low.shape[1] == 1 else (low, high)

    def _places_of_scores(self, places: list[Neighbourhood]) -> list[Neighbourhood]:
        """Where the best model of each score is, given where that of each problem is."""
        return places

    @abstractmethod
    def _fit_once(self, X: Any, y: Any, sample_weight: Any) -> Interrupts:
        """Fit to ``tol``; whether Ctrl-C came meanwhile."""

    def _threads(self) -> int:
        if self.n_jobs is None or self.n_jobs == -1:
            return default_threads()
        return int(self.n_jobs)

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        data: tuple[Any, Any] | str | None = None,
        proof: bool = True,
        format: Literal["maxmargin", "liblinear", "libsvm"] = "maxmargin",
    ) -> None:
        """Write the fitted model to a file, whole or not at all; see ``maxmargin.files.save_model``.

        Of the parameters, ``callback``, a ``random_state`` that is not a number and a solver that is not of
        the registry are left out, and a kernel that is a function cannot be saved: a file holds no code.
        """
        from maxmargin.files.models.saved import save_model

        save_model(self, path, format=format, data=data, proof=proof)

    def report(
        self,
        path: str | os.PathLike[str],
        X: Any,
        y: ArrayLike | None = None,
        *,
        test: tuple[Any, Any] | None = None,
    ) -> None:
        """Write one HTML page about the fitted model, its proof and its data, whole or not at all.

        X, y : the training data, on which the proof is recomputed; of other data the page says that it
        does not hold on them. One class needs no y. test : rows and labels that the model has not seen.
        """
        from maxmargin.report.of_estimators import report_on

        report_on(self, path, X, y, test)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The fitted estimator of a file that ``save``, LIBLINEAR or LIBSVM wrote.

        It predicts what the saved one does and has its certificate, trace and status where the file has
        them; what the file does not say, such as C in those of others, is at its default. Nothing
        in the file is executed; raises ``maxmargin.files.ModelError`` where it is unsound.
        """
        from maxmargin.files.models.fitted import to_estimator
        from maxmargin.files.models.saved import load_model

        return to_estimator(load_model(path), cls)


class CertifiedClassifier(ClassifierMixin, Certified):
    """A classifier whose fit ends with a certificate."""

    class_weight: Any

    def _running(self, problems: ClassProblems) -> Running:
        """How the problems of a fit are to be solved."""
        if self.verbose:
            self._show(len(problems), pairs=not problems.kind.all_rows)
        return self._running_told(partial(self._told_of, problems))

    def _told_of(self, problems: ClassProblems, name: Any) -> Callback:
        """The user's callback, told which problem it is about, and what ``verbose`` shows."""

        def tell(progress: Progress) -> bool | None:
            told = replace(progress, label=name if problems.several else None)
            self._tell(f"{problems.kind.what} {name}", told)
            if self.callback is None:
                return None
            return self.callback(told)

        return tell

    def _set_proof(self, problems: ClassProblems, models: Models) -> str:
        """The intercepts, the proofs and how the fit ended; returns what is to be warned of, if any."""
        several = problems.several
        certificates, traces = problems.together(models.certificates), models.traces
        self.classes_, self.intercept_ = problems.labels, models.b
        self.certificate_ = certificates if several else certificates[0]
        self.trace_: Trace | list[Trace] = traces if several else traces[0]
        self._stated_problem = problems.statement() | {"tol": float(self.tol)}
        self._outline = problems.outline()
        self.__dict__.pop("_places", None)
        self.__dict__.pop("_shares", None)
        worst = models[int(np.argmax(models.relative_gaps))]
        gap = worst.certificate.relative_gap
        self.solver_, self.status_ = worst.solver, worst.status.at(worst.certificate)
        if gap <= self.tol:
            self.status_ = Status.CERTIFIED if models.proven else Status.NOT_PROVEN
        return "" if self.status_.certified else self.status_.sentence(gap, float(self.tol), worst.steps)

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        until_sure: Any = None,
    ) -> Self:
        """Train until the relative gap of every problem is at most ``tol``.

        X : array or sparse matrix of shape (n_samples, n_features), read in place where ``Rows`` can.
        ``LinearSVC`` takes what ``Monomials(lazy=True)`` gives, and ``SVC`` with a precomputed kernel a
        matrix of shape (n_samples, n_samples). y : one label per row. sample_weight : one factor on C per
        row, not negative; with ``SVC`` a negative one leaves its row out, as LIBSVM has it. until_sure :
        rows; the fit goes on until ``is_sure`` of all of them, if it can.

        Ctrl-C ends a fit whose data are checked: every problem keeps the best model that is proven so far,
        0 where it had not begun, and a warning says so.
        """
        with self._showing() if self.verbose else nullcontext(), TellingOfRoom():
            X, y, sample_weight = in_numpy(X, y, sample_weight)
            interrupts = self._fit_once(X, y, sample_weight)
            if until_sure is not None and not interrupts.came:
                with held_back() as interrupts:
                    self._go_on_until_sure(until_sure, X, y, sample_weight)
        if self.status_.certified:
            interrupts.pass_on()
        return self

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """The share of rows whose class is right; arrays that lie on a GPU are taken, too."""
        if not lies_on_card(X):
            X, y, sample_weight = in_numpy(X, y, sample_weight)
            return float(super().score(X, y, sample_weight=sample_weight))
        from maxmargin.gpu.cards import on_host

        weights = None if sample_weight is None else on_host(sample_weight)
        return float(accuracy_score(on_host(y), on_host(self.predict(X)), sample_weight=weights))

    def _warn_of_doubts(self, X: Any, weights: Any) -> None:
        """Warn of what makes a proven model useless; to find nothing takes a hundredth of a fit.

        A row on the wrong side costs C or more in the problem of a pair of classes, and twice that in those
        of two classes against the rest. So the values of all problems tell, mostly, that the model is
        better than the answer that is always the same.
        """
        if lies_on_card(X):  # to look at its columns would take them from there
            return
        problems = self._outline
        rows = len(problems.codes)
        others = rows - max(np.bincount(problems.codes).tolist())
        traces = self.trace_ if isinstance(self.trace_, list) else [self.trace_]
        least = _LOSS_OF_ERROR if problems.loss == "logistic" else 1.0
        least *= 2.0 if problems.several and problems.kind.all_rows else 1.0
        value = sum(trace.records[-1].primal for trace in traces if trace.records)
        suspicious = value >= least * problems.C * others
        many = getattr(X, "size", 0) > sizes.UNSEEN_COLUMNS_VALUES
        if not (suspicious or many) or problems.hard or not self.status_.certified:
            return
        from maxmargin.telling.doubts import DoubtfulModelWarning, doubts_of_fit

        plain = weights is None and problems.class_weight is None
        useless = plain and suspicious and self._right(X) <= rows - others
        given = isinstance(getattr(self, "kernel_", None), Function | Precomputed)
        columns = None if given else X
        if (useless or many) and (doubt := doubts_of_fit(columns, self._column_name, useless=useless)):
            warnings.warn(doubt, DoubtfulModelWarning, stacklevel=4)

    def _right(self, X: Any) -> float:
        """How many training rows the model gets right; infinitely many where to find out takes long."""
        proofs, codes = each_of(self.certificate_), self._outline.codes
        if len(proofs) == 1:
            worst = proofs[0].margins.reshape(len(codes), -1).min(axis=1)  # several rows of one example
            return int(np.count_nonzero(worst > 0))
        if len(codes) * len(getattr(self, "support_", [0])) > sizes.DOUBTED_SCORES:
            return math.inf
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the names of columns are those of the fit
            return int(np.count_nonzero(self.predict(X) == self.classes_[codes]))

    def _column_name(self, column: int) -> str:
        names = getattr(self, "feature_names_in_", None)
        return str(column) if names is None else f"'{names[column]}'"

    @abstractmethod
    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row."""

    @property
    @abstractmethod
    def _kind(self) -> Decomposition:
        """How the classes are told apart."""

    def decision_bounds(self, X: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(low, high): the score that the best model gives each row is between the two, whatever it is.

        The best model is the one that minimises the objective of the fit; the certificate bounds how far
        it is from this one. Flat for two classes, else with one column for each problem: of a class
        against the rest, or of a pair of classes, (0, 1), (0, 2), ..., (1, 2), ... A smaller ``tol``
        brings the bounds together.
        """
        return self._flat_bounds(X)

    def is_sure(self, X: Any) -> NDArray[np.bool_]:
        """Whether the class of each row is that of the best model: no better fit would change it."""
        return self._kind.is_decided(*self._bounds(X))

    def _go_on_until_sure(self, rows: Any, X: Any, y: Any, sample_weight: Any) -> None:
        """Fit again with smaller and smaller ``tol``, each from the last, until all rows are decided.

        It ends as well where a smaller gap is not reached: what is left cannot be told apart in float64.
        """
        closer, start = copy(self), time.monotonic()
        closer.warm_start = True
        while self.status_.certified and not self.is_sure(rows).all():
            gap = max(proof.relative_gap for proof in each_of(self.certificate_))
            closer.tol = 0.1 * min(closer.tol, gap)
            if self.max_time is not None:
                closer.max_time = self.max_time - (time.monotonic() - start)
            if closer.tol < _SMALLEST_TOL or (closer.max_time or 1.0) <= 0.0:
                break
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # the fit is within tol, and said the rest
                closer._fit_once(X, y, sample_weight)
            gaps = [max(proof.gap for proof in each_of(of.certificate_)) for of in (closer, self)]
            if gaps[0] >= gaps[1]:
                break
            certified, fitted = closer.status_.certified, vars(closer)
            self.__dict__.update({name: fitted[name] for name in fitted if "_" in (name[0], name[-1])})
            self.__dict__.pop("_places", None)
            self.status_, self._stated_problem["tol"] = Status.CERTIFIED, float(self.tol)
            if not certified:
                break


def is_logged() -> bool:
    """Whether somebody takes what ``verbose`` tells from the log, so that it need not be shown."""
    return logger.isEnabledFor(logging.INFO)


def check_solver(estimator: Any) -> None:
    """The parameter ``solver``, whose names are those of the registry."""
    if isinstance(estimator.solver, str):
        check_choice(estimator, "solver", ["auto", *SOLVERS])
    elif not isinstance(estimator.solver, Solver):
        names = ", ".join(map(repr, SOLVERS))
        raise wrong(estimator, "solver", estimator.solver, f"'auto', one of {names}, or a Solver")
