# SPDX-License-Identifier: BSD-3-Clause
"""A kernel support vector classifier with scikit-learn's interface and a proof in every fit."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils import assert_all_finite
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from maxmargin.core import Budget
from maxmargin.estimators import parameter_types as takes
from maxmargin.estimators.certified import CertifiedClassifier, check_solver
from maxmargin.estimators.named_kernels import (
    SeesThroughKernel,
    check_kernel,
    find_kernel,
    is_function,
    is_precomputed,
    why_unproven,
)
from maxmargin.estimators.reading import (
    MATRIX,
    card_for,
    check_on_card,
    from_card,
    here,
    in_the_kind_of,
    labels_and_codes,
    weights_or_zero,
)
from maxmargin.gpu.kernel_rows import RowsOnCard
from maxmargin.kernels.base import Function, Kernel, Precomputed
from maxmargin.problem.rows import TellingOfRoom, in_numpy, lies_on_card
from maxmargin.proof.model import Models, Status, each_of
from maxmargin.proof.solution import Solution
from maxmargin.reductions.class_problems import KernelProblems, all_values
from maxmargin.reductions.decompositions import Decomposition, OneAgainstOne, decomposition
from maxmargin.reductions.kernel_fit import KernelFit
from maxmargin.reductions.probabilities import Method, calibrated
from maxmargin.solving.ways import Running
from maxmargin.tools.interrupts import Interrupts, held_back
from maxmargin.tools.parameters import check_options, wrong
from maxmargin.types import Vector

if TYPE_CHECKING:
    from maxmargin.gpu.cards import Card
    from maxmargin.gpu.kernel_rows import CardData

_SHARE_OF_ALL_ROWS = 0.5
"""The share of ``max_time`` that the fit of all rows has, where others hold rows out for probabilities."""


def _offers_probabilities(model: SVC) -> bool:
    if not model._wants_probabilities:
        raise AttributeError(
            "predict_proba is not available when probability=False. Fit with probability=True."
        )
    return True


@dataclass(eq=False, repr=False, kw_only=True)
class SVC(SeesThroughKernel, CertifiedClassifier):
    """Support vector classification with kernels; every fit proves how close to the optimum it is.

        minimise over (w, b)   1/2 |w|^2  +  C sum_i weight_i max(0, 1 - y_i (<w, phi(x_i)> + b))

    with ``<phi(x), phi(z)> = k(x, z)``. One problem for two classes; for more, one per pair of classes, or
    one per class against the rest.

    Parameters
    ----------
    C : float
        Weight of the losses: a larger C fits the data harder. ``numpy.inf`` stands for 1e10, which no
        multiplier reaches where the classes can be separated; a warning says so where one does.
    kernel : str, callable or Kernel
        "rbf" or "gaussian" ``exp(-gamma |x - z|^2)``, "linear" ``<x, z>``, "poly"
        ``(gamma <x, z> + coef0)^degree``, "laplacian" ``exp(-gamma sum_k |x_k - z_k|)``, "chi2"
        ``exp(-gamma sum_k (x_k - z_k)^2 / (x_k + z_k))``, "sigmoid" ``tanh(gamma <x, z> + coef0)``;
        "precomputed": X is the matrix of all values; a function of two matrices that returns the matrix of
        all values; or an object of ``maxmargin.kernels``, which brings its own parameters.
    degree, coef0 : int, float
        Of the named kernels, where the formulas have them.
    gamma : "scale", "auto" or float
        "scale" is 1 / (n_features * variance of X), "auto" is 1 / n_features. In the variance a row counts
        as much as its ``sample_weight``, as if it were repeated.
    shrinking : bool
        Whether a solver that can may put rows aside that are unlikely to change; "auto" chooses one that
        can. The answer is proven either way.
    probability : bool, "sigmoid" or "isotonic"
        Whether to offer ``predict_proba``. True is "sigmoid", Platt's curve; "isotonic" is a curve that
        never falls, for which a thousand rows are few. The curve is fitted to scores of rows that five
        further fits hold out in turn, the folds of ``StratifiedKFold(5)``; these share rows, gamma and
        values of the kernel, and begin at the multipliers of all rows. The same data give the same
        probabilities whatever ``random_state`` is, within what ``tol`` leaves open.
    tol, verbose, n_jobs
        As in ``LinearSVC``.
    cache_size : float
        Memory for rows of the kernel matrix, in megabytes, of all problems together; ``cache_use_`` tells
        how much of it was used. The data, and the matrix of a working set, come on top.
    class_weight : dict, "balanced" or None
        Multiplies C for rows of a class.
    max_iter : int
        Steps of the solver for each problem; -1 sets no limit.
    decision_function_shape : "ovr" or "ovo"
        With more than two classes, whether ``decision_function`` has a column per class or per pair.
    break_ties : bool
        Whether ``predict`` takes the largest score of ``decision_function`` instead of counting votes.
    random_state : int, RandomState instance or None
        Seed of the solver's random choices, where it makes any.
    multi_class : "ovo" or "ovr"
        One problem per pair of classes, as LIBSVM has it, or one per class against the rest.
    solver : str or Solver
        "auto", a name of ``maxmargin.solvers.SOLVERS`` that takes kernels, or a configured solver.
    max_time : float or None
        Seconds after which the best certified model so far is kept. The time for the last certificate is
        part of it, as estimated before; one round of a solver on many wide rows may still overrun it. With
        ``probability``, half of it is for the held-out rows.
    callback : callable or None
        Called with a ``Progress`` after every certificate, and about ten times a second between them; a
        true answer ends the problem it is about. ``Progress.label`` is the pair of classes, or the class.
    warm_start : bool
        Start from the last fit, if it was on as many rows of the same classes.
    device : "cuda", "cpu" or None
        Where to fit and to predict. None: where X lies, which is on a GPU for arrays of CuPy and CUDA
        tensors of PyTorch. Fitted attributes are those of NumPy in any case.

    Attributes
    ----------
    support_ : ndarray of shape (n_SV,)
        Indices of the support vectors, those of the first class first.
    support_vectors_ : array or CSR matrix of shape (n_SV, n_features)
        Empty for a precomputed kernel.
    n_support_ : ndarray of shape (n_classes,)
    dual_coef_ : array or CSR matrix of shape (n_classes - 1, n_SV)
        ``alpha_i y_i``. A support vector of class i has that of its pair with class j in line j - 1 if
        i < j, and in line j otherwise. With ``multi_class="ovr"`` there is a line for each class.
    intercept_ : ndarray of shape (n_problems,)
        The pairs in the order (0, 1), (0, 2), ..., (1, 2), ...
    coef_ : array or CSR matrix of shape (n_problems, n_features)
        Of the linear kernel only.
    classes_, class_weight_ : ndarray of shape (n_classes,)
    fit_status_ : int
        0 if every problem is proven to be within ``tol``, else 1.
    shape_fit_ : tuple
        Shape of the training data.
    n_iter_ : ndarray of shape (n_problems,)
        Steps taken.
    kernel_ : Kernel
        With gamma as a number.
    calibration_ : Calibration
        Only with ``probability``: the curves from scores to probabilities.
    certificate_ : Certificate, PairCertificates or Certificates
        The proof; for several problems one for each, and ``worst``.
    trace_, status_, solver_
        As in ``LinearSVC``: of several problems one trace for each, and the status of the worst.
    cache_use_ : CacheUse
        Of ``cache_size``, the most that was held, and how many rows were found in it; not kept in files.

    Ctrl-C during a fit ends it: the best certified model so far is kept, and a warning says so. A
    function that is not shown to be a kernel (most sigmoids) is trained with, but proves nothing: a
    warning, the status and the certificates say so.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SVC(C=10.0).fit(X, y)
    >>> model.certificate_.pairs
    [(0, 1), (0, 2), (1, 2)]
    >>> bool(model.certificate_.relative_gap <= 1e-3)
    True
    """

    C: takes.CostOrHardMargin = 1.0
    probability: takes.Probability = False
    class_weight: takes.ClassWeight = None
    decision_function_shape: Annotated[str, Literal["ovr", "ovo"]] = "ovr"
    break_ties: takes.Flag = False
    multi_class: Annotated[str, Literal["ovr", "ovo"]] = "ovo"
    device: takes.Device = None

    def _fit_once(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None) -> Interrupts:
        self._check_parameters()
        X = X if self._nu is None else here(self, X)  # the solver of a card knows no nu
        card = card_for(self.device, X)
        # Kernels that the card does not know are refused there, with values that lie in memory.
        known = not (is_function(self.kernel) or is_precomputed(self.kernel))
        stays = card is not None and known and lies_on_card(X)
        if stays:
            targets = check_on_card(self, X, from_card(y))
        else:
            # A card looks for NaN and infinities in no time, once the values lie there.
            finite = card is None or sparse.issparse(X)
            X, targets = self._checked_data(from_card(X), from_card(y), check_finite=finite)
        weights = weights_or_zero(sample_weight, targets)
        labels, codes = labels_and_codes(targets)
        with held_back() as interrupts:
            data = None if card is None else card.data(X, copied=True)
            if data is not None and not data.is_finite:
                assert_all_finite(from_card(X), estimator_name=type(self).__name__, input_name="X")
            X = data.X if stays and data is not None else X
            doubt, shortfall = self._fit_checked(X, labels, codes, weights, data)
        if doubt:
            warnings.warn(doubt, UserWarning, stacklevel=3)
        if shortfall and not (doubt and self.status_ is Status.NOT_PROVEN):  # that was said already
            warnings.warn(shortfall, ConvergenceWarning, stacklevel=3)
        self._warn_of_doubts(X, weights)
        self._warn_of_no_hard_margin(self.C)
        return interrupts

    def _fit_checked(
        self,
        X: Any,
        labels: NDArray[Any],
        codes: NDArray[Any],
        weights: Vector | None,
        on_card: CardData | None = None,
    ) -> tuple[str, str]:
        """Fit; what is to be warned of, if anything: of the kernel, and of the gap."""
        problems, doubt = self._problems(X, labels, codes, weights, on_card)
        running = self._running(problems)
        if self._wants_probabilities:
            running = replace(running, seconds=_SHARE_OF_ALL_ROWS * running.seconds)
        memory = float(self.cache_size)
        options: dict[str, Any] = {"cache_size": memory, "shrinking": bool(self.shrinking)}
        starts = self._last_multipliers(problems)
        fit = KernelFit(problems, running, warm=bool(self.warm_start), starts=starts, **options)
        models = fit.solve()
        shortfall = self._set_fitted(problems, X, models)
        self.cache_use_ = fit.cache_use(models, self.kernel_)
        self.__dict__.pop("calibration_", None)
        if self._wants_probabilities:
            self._calibrate(problems, models, running, options)
        return doubt, shortfall

    def _problems(
        self,
        X: Any,
        labels: NDArray[Any],
        codes: NDArray[Any],
        weights: Vector | None,
        on_card: CardData | None = None,
        *,
        shared: bool = False,
    ) -> tuple[KernelProblems, str]:
        """The problems that the parameters state on some rows, and what is to be warned of, if anything.

        ``shared``: so many fits are on these rows that all values of the kernel are worth it.
        """
        kernel, rows = find_kernel(self, X, weights), X
        if on_card is not None and not isinstance(kernel, Function | Precomputed):
            rows = RowsOnCard(on_card, None if lies_on_card(X) else X)
        problems = KernelProblems(
            labels,
            codes,
            rows,
            kernel,
            decomposition(len(labels), pairs=self.multi_class == "ovo"),
            matrix=self._all_values(kernel, X, shared) if on_card is None else None,
            on_card=on_card,
            C=self._finite_cost(self.C),
            nu=self._nu,
            weights=weights,
            class_weight=self.class_weight,
        )
        problems.refuse_classes_without_weight()
        doubt = "" if kernel.is_known else why_unproven(kernel, from_card(X), problems.matrix)
        problems.kernel_is_none |= bool(doubt)
        return problems, doubt

    @property
    def _nu(self) -> float | None:
        """The share of the rows that may be on the wrong side, where it is given in the place of C."""
        return None

    def _set_fitted(self, problems: KernelProblems, X: Any, models: Models) -> str:
        """Everything that the models tell; returns what is to be warned of, if anything."""
        self.class_weight_, self.kernel_ = problems.factors, problems.given[0]
        self.shape_fit_ = X.shape if hasattr(X, "shape") else (len(problems.codes),)
        self._set_model(problems, X, models)
        self.n_iter_ = np.maximum(models.steps, 1).astype(np.int32)
        shortfall = self._set_proof(problems, models)
        self._stated_problem |= {"multi_class": str(self.multi_class), "kernel": str(self.kernel_)}
        self.fit_status_ = 0 if self.status_.certified else 1
        return shortfall

    def _calibrate(
        self, problems: KernelProblems, models: Models, running: Running, options: dict[str, Any]
    ) -> None:
        """Set ``calibration_`` by scores of rows that were held out, unless Ctrl-C came before any."""
        from maxmargin.estimators.held_out import FOLDS, held_out_scores

        # Each fold has an equal share of the time that is left for all of them.
        seconds = running.seconds * (1.0 / _SHARE_OF_ALL_ROWS - 1.0) / FOLDS
        unwatched = replace(running, seconds=seconds, callback=None)

        def fit(folds: Sequence[KernelProblems], starts: Sequence[Sequence[Solution]]) -> Iterator[Models]:
            fits = [
                KernelFit(fold, unwatched, warm=False, starts=start, **options)
                for fold, start in zip(folds, starts, strict=True)
            ]
            return KernelFit.solve_together(fits)

        budget = Budget(math.inf, running.threads())
        with held_back(budget.stop) as interrupts:
            scores, known = held_out_scores(problems, models, fit, lambda: interrupts.came, budget)
        if known.any():
            method: Method = "isotonic" if self.probability == "isotonic" else "sigmoid"
            codes, weights = problems.codes[known], problems.weights[known]
            self.calibration_ = calibrated(method, scores[known], problems.kind, codes, weights)

    @property
    def _wants_probabilities(self) -> bool:
        return bool(self.probability) and self.probability != "deprecated"

    def _all_values(self, kernel: Kernel, X: Any, shared: bool) -> NDArray[Any] | None:
        return all_values(kernel, X, float(self.cache_size), self._threads, shared=shared)

    def _last_multipliers(self, problems: KernelProblems) -> list[Solution] | None:
        """The multipliers of the last fit, if there was one on such data and it is to be the start."""
        proof: Any = getattr(self, "certificate_", None)
        if not self.warm_start or proof is None or not np.array_equal(self.classes_, problems.labels):
            return None
        each = [certificate.alpha for certificate in each_of(proof)]
        counts = [problems.count(k) for k in range(len(problems))]
        if [len(alpha) for alpha in each] != counts:
            return None
        return [Solution(alpha=alpha) for alpha in each]

    def _checked_data(self, X: Any, y: ArrayLike, *, check_finite: bool = True) -> tuple[Any, NDArray[Any]]:
        return self._read(X, y, ensure_all_finite=check_finite)

    def _set_model(self, problems: KernelProblems, X: Any, models: Models) -> None:
        """The support vectors, those of the first class first, with their coefficients."""
        table = problems.table(models.w)
        used = table.any(axis=0)
        support = np.concatenate(problems.by_class)[used]
        counts = np.bincount(problems.codes[support], minlength=len(problems.labels))
        self._set_support(X, support, counts, table[:, used])

    @property
    def _kind(self) -> Decomposition:
        return self._problem_scores.kind

    def _scored(self, X: Any) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        from maxmargin.estimators.sureness import kernel_scales, refuse_changed

        scores = self._problem_scores
        owners = np.repeat(np.arange(len(self.classes_)), self.n_support_)
        each = [scores.kind.coefficients(scores.coefficients, k, owners) for k in range(len(scores.kind))]
        refuse_changed(self, each)
        if not isinstance(self.kernel_, Function | Precomputed):
            X = from_card(X)
            X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, order="C", reset=False)
        lengths, errors = kernel_scales(self.kernel_, each, self.support_vectors_, X)
        return scores(X, self.intercept_, Budget(math.inf, self._threads())), lengths, errors

    def is_sure(self, X: Any) -> NDArray[np.bool_]:
        """Whether the class of each row is that of the best model: no better fit would change it."""
        if self.break_ties and isinstance(self._kind, OneAgainstOne):
            return self._kind.is_decided(*self._bounds(X), break_ties=True)
        return super().is_sure(X)

    @property
    def probA_(self) -> NDArray[np.float64]:
        """Minus the slope of each sigmoid of ``calibration_``; deprecated in scikit-learn, too."""
        return self._of_sigmoids("probA_")

    @property
    def probB_(self) -> NDArray[np.float64]:
        """Minus the offset of each sigmoid of ``calibration_``; deprecated in scikit-learn, too."""
        return self._of_sigmoids("probB_")

    def _of_sigmoids(self, name: str) -> NDArray[np.float64]:
        check_is_fitted(self)
        warnings.warn(
            f"Attribute `{name}` was deprecated in scikit-learn 1.8. Use calibration_: it has the curves.",
            FutureWarning,
            stacklevel=3,
        )
        known = getattr(self, "calibration_", None)
        if known is None or known.method != "sigmoid":
            return np.empty(0)
        part = "first" if name == "probA_" else "second"
        # Those of the first of two classes, as LIBSVM has them: 1 / (1 + exp(A score + B)).
        return np.array([-getattr(curve, part)[0] for curve in known.curves])

    @property
    def _dual_coef_(self) -> Any:
        """``dual_coef_`` with LIBSVM's signs, where converters of scikit-learn's models look for it."""
        return -self.dual_coef_ if len(self.classes_) == 2 else self.dual_coef_

    @_dual_coef_.setter
    def _dual_coef_(self, coefficients: Any) -> None:
        signed = np.asarray(coefficients, np.float64)
        self.dual_coef_ = np.ascontiguousarray(-signed if len(self.classes_) == 2 else signed)
        self._set_scores(self.dual_coef_)

    @property
    def _intercept_(self) -> NDArray[np.float64]:
        """``intercept_`` with LIBSVM's signs."""
        return -self.intercept_ if len(self.classes_) == 2 else self.intercept_

    @property
    def _gamma(self) -> float:
        """Gamma as a number, where converters of scikit-learn's models look for it."""
        return float(getattr(self.kernel_, "gamma", 0.0))

    def _scores(self, X: Any) -> NDArray[np.float64]:
        """The scores of all rows, one column for each problem."""
        check_is_fitted(self)
        if (card := card_for(self.device, X)) is not None:
            return np.asarray(card.get(self._scores_on_card(card, X)))
        rows = X if isinstance(self.kernel_, Function) else from_card(X)
        return self._problem_scores(
            self._to_score(rows), self.intercept_, Budget(math.inf, self._threads())
        )

    def _scores_on_card(self, card: Card, X: Any) -> Any:
        """The same as an array on the card."""
        from maxmargin.gpu.cards import refuse_other_columns
        from maxmargin.gpu.scores import scores_on_card

        if not lies_on_card(X):
            X = validate_data(self, in_numpy(X), order="C", reset=False, **MATRIX)
        else:
            refuse_other_columns(self, X)
        with TellingOfRoom():
            return scores_on_card(card, self._problem_scores, X, self.intercept_)

    def decision_function(self, X: Any) -> Any:
        """``<w, phi(x)> + b`` of each row; of several classes one column per class, or per pair.

        A score of two classes is above 0 for the second, ``classes_[1]``; that of a pair for its first.
        """
        scores = self._scores(X)
        if scores.shape[1] == 1:
            return in_the_kind_of(X, scores.ravel())
        if self.decision_function_shape == "ovo":
            return in_the_kind_of(X, scores)
        return in_the_kind_of(X, self._problem_scores.kind.class_scores(scores))

    def predict(self, X: Any) -> Any:
        """The class of each row: of several, the one with most votes, or with the largest score."""
        check_is_fitted(self)
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError(
                "break_ties must be False when decision_function_shape is 'ovo': scores of pairs break no "
                "ties. Use decision_function_shape='ovr'."
            )
        kind = self._problem_scores.kind
        if self.break_ties and len(kind) > 1:
            codes = kind.class_scores(self._scores(X)).argmax(axis=1)
        elif (card := card_for(self.device, X)) is not None:
            codes = card.get(kind.decide(self._scores_on_card(card, X), card.put))
        else:
            codes = kind.decide(self._scores(X))
        return in_the_kind_of(X, np.asarray(self.classes_[codes]))

    @available_if(_offers_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probability of each class, one column each, in the order of ``classes_``.

        A curve of the score is fitted to the scores that rows have by models fitted without them. With two
        classes, or ``multi_class="ovr"``, it is what ``CalibratedClassifierCV(model, ensemble=False)`` says
        where gamma is a number. Pairs of classes have a curve each, and are coupled as LIBSVM does it.
        ``predict`` goes by the scores, and may differ where two classes are nearly as likely.
        """
        check_is_fitted(self)
        if not hasattr(self, "calibration_"):
            raise NotFittedError(
                "predict_proba is not available when fitted with probability=False, or where Ctrl-C ended "
                "the fit before any rows were held out. Fit with probability=True."
            )
        return self.calibration_.probabilities(self._scores(X), self._kind)

    @available_if(_offers_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """The logarithm of ``predict_proba``."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def _check_parameters(self) -> None:
        check_solver(self)
        check_options(self)
        check_kernel(self)
        if self.multi_class == "ovr" and self.decision_function_shape == "ovo":
            cure = "With multi_class='ovr' there are no pairs of classes to score."
            raise wrong(self, "decision_function_shape", self.decision_function_shape, "'ovr'", cure)
