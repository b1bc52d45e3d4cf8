# SPDX-License-Identifier: BSD-3-Clause
"""A linear support vector classifier with scikit-learn's interface and a proof in every fit."""

from __future__ import annotations

import math
import sys
import warnings
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from maxmargin.estimators import parameter_types as takes
from maxmargin.estimators.certified import CertifiedClassifier, ShowsProof, check_solver
from maxmargin.estimators.reading import (
    checked_weights,
    in_the_kind_of,
    labels_and_codes,
    linear_scores,
    read_training_rows,
    seen_rows,
)
from maxmargin.problem import Intercept
from maxmargin.problem.rows import RowSpace
from maxmargin.proof.inseparable import InseparabilityProof, InseparableError
from maxmargin.proof.model import each_of
from maxmargin.proof.solution import Solution
from maxmargin.proof.sure import Neighbourhood
from maxmargin.reductions.class_problems import ClassProblems
from maxmargin.reductions.decompositions import Decomposition, decomposition
from maxmargin.reductions.joint_classes import JointClasses, constant_of, places_of_scores
from maxmargin.reductions.linear_fit import Begin, LinearFit
from maxmargin.solvers import AnySolver
from maxmargin.solving.loop import Callback
from maxmargin.solving.ways import Way
from maxmargin.tools.interrupts import Interrupts, held_back
from maxmargin.tools.parameters import check_choice, check_options
from maxmargin.types import Vector

if TYPE_CHECKING:
    from maxmargin.estimators.leave_one_out import LeaveOneOut


def are_chunks(X: Any) -> bool:
    """Whether X is ``Chunks``; where nobody has imported them, it is not."""
    module = sys.modules.get("maxmargin.chunks.source")
    return module is not None and isinstance(X, module.Chunks)


@dataclass(eq=False, repr=False)
class LinearParameters(ClassifierMixin, ShowsProof):
    """The parameters that all linear classifiers have: ``LinearSVC`` says what they mean."""

    penalty: takes.Penalty = "l2"
    loss: takes.LossName = "squared_hinge"
    _: KW_ONLY
    dual: takes.Dual = "auto"
    tol: takes.Tolerance = 1e-4
    multi_class: takes.OneVsRest = "ovr"
    fit_intercept: takes.Flag = True
    intercept_scaling: takes.ConstantFeature = 1.0
    class_weight: takes.ClassWeight = None
    verbose: takes.Verbose = 0
    random_state: takes.RandomState = None
    max_iter: takes.Steps = -1
    solver: str | AnySolver = "auto"
    regularize_intercept: takes.Flag = False
    max_time: takes.Seconds = None
    callback: Callback | None = None
    n_jobs: takes.Jobs = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


@dataclass(eq=False, repr=False)
class LinearSVC(LinearParameters, CertifiedClassifier):
    """Linear support vector classification; every fit proves how close to the optimum it is.

        minimise over (w, b)   1/2 |w|^2  +  C sum_i weight_i loss(y_i (<w, x_i> + b))

    One problem for two classes; for more, one per class against the rest. With ``penalty="l1"``, |w|_1 is
    in the place of 1/2 |w|^2.

    Parameters
    ----------
    penalty : "l2" or "l1"
        What keeps w small. "l1" is the sum of the magnitudes of its entries, and makes most of them zero;
        it goes with the squared hinge and the logistic loss. A regularised b is in it, as |b| / s.
    loss : "squared_hinge", "hinge" or "logistic"
        The loss of a margin.
    dual : "auto" or bool
        Without effect but for True with the l1 penalty, which scikit-learn refuses, too: every solver here
        proves its answer in the primal and the dual.
    tol : float
        The relative gap to reach: ``(primal - dual) / |primal|``.
    C : float
        Weight of the losses: a larger C fits the data harder. ``numpy.inf`` is the hard margin (hinge and
        squared hinge are then the same): the separating hyperplane of the largest margin, with a
        ``HardMarginCertificate`` as proof. Weights are without effect then, but 0 leaves a row out. Data
        that no hyperplane separates raise ``InseparableError``, with the proof in ``certificate_``.
    multi_class : "ovr" or "crammer_singer"
        One class against the rest, or all classes in one problem, as Crammer and Singer have it:

            minimise   1/2 sum_k |w_k|^2  +  C sum_i weight_i max_k ([k != y_i] + <w_k - w_(y_i), x_i>)

        It has one certificate. Its loss is this one whatever ``loss`` says, and its intercepts are
        regularised whatever ``regularize_intercept`` says, as in scikit-learn and LIBLINEAR. C is finite.
    fit_intercept : bool
        Whether there is an intercept b.
    intercept_scaling : float
        With ``regularize_intercept=True``, the value s of the constant feature: ``b^2 / (2 s^2)`` is
        added to the objective.
    class_weight : dict, "balanced" or None
        Multiplies C for rows of a class; with several classes, as scikit-learn does, in the problem of
        that class against the rest.
    verbose : int
        1 shows how far the fit is, and how it ended: a bar in a terminal, a line in a notebook. 2 shows
        every certificate. Where the logger "maxmargin" takes messages of level INFO, it has them instead.
    random_state : int, RandomState instance or None
        Seed of the solver's random order.
    max_iter : int
        Steps of the solver: epochs, or outer iterations; -1 sets no limit. With an infinite C, for each
        soft margin on the way.
    solver : str or Solver
        "auto", a name of ``maxmargin.solvers.SOLVERS``, or a configured solver.
    regularize_intercept : bool
        False: b is free, as in the lectures' problem and in ``SVC``. True: b is regularised, as in
        LIBLINEAR and scikit-learn's ``LinearSVC``.
    max_time : float or None
        Seconds after which the best certified model so far is kept.
    callback : callable or None
        Called with a ``Progress`` after every certificate, and about ten times a second between them; a
        true answer ends the fit.
    warm_start : bool
        Start from the last fit instead of from zero.
    n_jobs : int or None
        Threads; None means OMP_NUM_THREADS or all cores, -1 all cores.
    device : "cuda", "cpu" or None
        Where to fit. None: where X lies, which is on a GPU for arrays of CuPy and CUDA tensors of PyTorch.
        It pays for dense data of many rows and some hundred columns. ``Chunks`` that go through a feature
        map are mapped there.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        After ``sparsify()`` a CSR matrix, until ``densify()``.
    intercept_ : ndarray of shape (1,) or (n_classes,)
    classes_ : ndarray of shape (n_classes,)
    n_iter_ : int
        Steps taken; the largest number of any class.
    certificate_ : Certificate or Certificates
        The proof; for several classes one for each, and ``worst``. After an ``InseparableError``, its
        ``InseparabilityProof``.
    trace_ : Trace or list of Trace
        The certificates on the way.
    status_ : Status
        Why the fit ended; for several classes the status of the worst certificate.
    solver_ : str
        What ran and why, in one sentence.
    expansion_ : Expansion
        Only after a fit of monomials that are not written out, ``Monomials(lazy=True)``: such a model also
        takes the rows that they are of for prediction.

    Ctrl-C during a fit ends it: the best certified model so far is kept, and a warning says so.

    ``fit(Chunks(...))`` reads data of any size chunk by chunk: labels and weights are in the chunks, and y
    is left out. ``max_iter`` and ``n_iter_`` then count passes over the data.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from maxmargin import LinearSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LinearSVC(loss="hinge", random_state=0).fit(scale(X), y)
    >>> bool(model.certificate_.relative_gap <= 1e-4)
    True
    """

    _: KW_ONLY
    C: takes.CostOrHardMargin = 1.0
    multi_class: takes.MultiClass = "ovr"
    warm_start: takes.Flag = False
    device: takes.Device = None

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_")

    def _fit_once(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None) -> Interrupts:
        self._check_parameters()
        if are_chunks(X):
            from maxmargin.estimators.in_chunks import fit_chunks

            return fit_chunks(self, X, y, sample_weight)
        _, targets, rows = read_training_rows(self, X, y)
        labels, codes = labels_and_codes(targets)
        weights = checked_weights(sample_weight, targets)
        with held_back() as interrupts:
            problems = self._problems(rows, labels, codes, weights)
            shortfall, _ = self._fit_problems(problems, begin=self._from_last_fit(problems))
        if shortfall:
            warnings.warn(shortfall, ConvergenceWarning, stacklevel=3)
        self._warn_of_doubts(X, weights)
        return interrupts

    def _problems(
        self, rows: RowSpace, labels: NDArray[Any], codes: NDArray[Any], weights: Vector | None
    ) -> ClassProblems:
        """The problems that the parameters state on some rows."""
        kind = JointClasses if self._is_joint else ClassProblems
        return kind(
            labels,
            codes,
            rows,
            decomposition(len(labels), pairs=False),
            C=self.C,
            loss=self.loss,
            intercept=self._intercept_form(),
            intercept_scaling=self.intercept_scaling,
            weights=weights,
            class_weight=self.class_weight,
            penalty=self.penalty,
        )

    def _fit_problems(
        self, problems: ClassProblems, *, begin: Begin | None = None, way: Way | None = None
    ) -> tuple[str, bool]:
        """Fit: what is to be warned of, if anything, and whether Ctrl-C ended it.

        Fits on the same rows can share ``way``, the answer of ``find_way``; ``begin`` says where to start.
        """
        running = self._running(problems)
        with held_back() as interrupts:
            if not (isinstance(self.random_state, int) and self.random_state >= 0):
                _ = running.seed  # drawn by every fit that shares a generator, whether it is needed or not
            try:
                models, coef = LinearFit(problems, running, begin, way).solve()
            except InseparableError as error:
                self._refuse(error.certificate)
            self.n_iter_ = max(1, *models.steps)
            shortfall = self._set_proof(problems, models)
            self.coef_, self.intercept_ = problems.answers(models.certificates, coef)
            formulation = "crammer_singer" if self._is_joint else "separate"
            self._stated_problem |= {"penalty": str(self.penalty), "formulation": formulation}
            return shortfall, interrupts.came or any(models[k].interrupted for k in range(len(models)))

    def _from_last_fit(self, problems: ClassProblems) -> Begin | None:
        """The solutions of the last fit, if there was one on such data and it is to be the start."""
        rows = problems.rows
        if not (self.warm_start and hasattr(self, "coef_")) or self.coef_.shape[1] != rows.columns:
            return None
        if not np.array_equal(self.classes_, problems.labels):
            return None
        starts = problems.starts(self._dense_coef(), self.intercept_)
        proofs = each_of(self.certificate_) if hasattr(self, "certificate_") else []
        for k, proof in enumerate(proofs if len(proofs) == len(starts) else []):
            w = starts[k].w
            if w is not None and len(proof.w) == len(w) and len(proof.alpha) == problems.count(k):
                starts[k] = Solution(w=proof.w, b=proof.b, alpha=proof.alpha)
        return lambda k, problem: (starts[k], None)

    def _intercept_form(self) -> Intercept:
        if not self.fit_intercept:
            return Intercept.NONE
        regularised = self.regularize_intercept or self._is_joint
        return Intercept.REGULARISED if regularised else Intercept.EXACT

    def _refuse(self, proof: InseparabilityProof) -> NoReturn:
        """Keep the proof that there is no hard margin, and nothing of an earlier fit."""
        self.certificate_ = proof
        for name in ("coef_", "intercept_", "classes_", "n_iter_", "trace_", "status_", "solver_"):
            if hasattr(self, name):
                delattr(self, name)
        raise InseparableError(proof) from None

    def decision_function(self, X: Any) -> Any:
        """``<w, x> + b`` of each row; one column per class if there are more than two."""
        return in_the_kind_of(X, self._decisions(X))

    def _decisions(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self)
        scores = linear_scores(self, X)
        return scores.ravel() if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> Any:
        """The class of each row."""
        scores = self._decisions(X)
        return in_the_kind_of(X, self.classes_.take(self._kind.decide(scores)))

    def leave_one_out(self, X: Any, y: ArrayLike, *, max_time: float | None = None) -> LeaveOneOut:
        """The accuracy on rows of models fitted without them, one at a time: at least, and at most.

        X, y : the rows and labels of the fit, in their order. max_time : seconds after which rows that are
        not decided yet stay open, and count for neither. The costs stay what they were in the fit, also
        with ``class_weight="balanced"``. Nearly all rows are decided by what alpha and margins prove,
        without another fit.
        """
        from maxmargin.estimators.leave_one_out import leave_one_out

        check_is_fitted(self)
        if self._is_joint:
            raise ValueError(
                "Rows left out of a fit are followed where each class has a problem of its own. Got "
                "multi_class='crammer_singer' instead. Use 'ovr', or scikit-learn's cross_val_score."
            )
        return leave_one_out(self, X, y, max_time)

    def _places_of_scores(self, places: list[Neighbourhood]) -> list[Neighbourhood]:
        if not self._is_joint:
            return places
        return places_of_scores(places[0], self.intercept_, constant_of(self._stated_problem))

    @property
    def _is_joint(self) -> bool:
        """Whether all classes are in one problem."""
        return self.multi_class == "crammer_singer"

    @property
    def _kind(self) -> Decomposition:
        return decomposition(len(self.classes_), pairs=False)

    def _scored(self, X: Any) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        from maxmargin.estimators.sureness import linear_scales, refuse_changed

        weights = self._dense_coef()
        refuse_changed(self, list(weights), joint=self._is_joint)
        return linear_scores(self, X), *linear_scales(weights, seen_rows(self, X))

    def sparsify(self) -> Self:
        """Hold ``coef_`` as a CSR matrix, which saves memory where most of its values are zero.

        Predictions stay what they are. ``densify`` takes it back, and so does the next fit.
        """
        check_is_fitted(self)
        self.coef_ = sparse.csr_matrix(self.coef_)
        return self

    def densify(self) -> Self:
        """Hold ``coef_`` as an array again, as a fit leaves it."""
        check_is_fitted(self)
        self.coef_ = self._dense_coef()
        return self

    def _dense_coef(self) -> NDArray[np.float64]:
        weights: Any = self.coef_
        return np.asarray(weights.toarray() if sparse.issparse(weights) else weights)

    def _check_parameters(self) -> None:
        check_solver(self)
        check_options(self)
        if self.penalty == "l1" and (self.loss == "hinge" or self.dual is True):
            raise ValueError(
                "Unsupported set of arguments: the l1 penalty goes with a smooth loss and with dual='auto' "
                f"or False. Got penalty='l1', loss={self.loss!r}, dual={self.dual!r} instead. Use "
                "loss='squared_hinge' or 'logistic', and leave dual out."
            )
        if self.penalty == "l1" and self._is_joint:
            raise ValueError(
                "With multi_class='crammer_singer' the penalty must be 'l2'. Got 'l1' instead. Use "
                "multi_class='ovr'."
            )
        if self.penalty == "l1" and math.isinf(self.C):
            raise ValueError(
                "C must be finite with the l1 penalty. Got C = inf instead: the hard margin is that of the "
                "l2 penalty. Use a large C, or penalty='l2'."
            )
        if self._is_joint and math.isinf(self.C):
            raise ValueError(
                "With multi_class='crammer_singer' C must be finite. Got C=inf instead. Use a large C, or "
                "multi_class='ovr', which has hard margins."
            )
        if math.isinf(self.C):
            check_choice(
                self,
                "loss",
                ["squared_hinge", "hinge"],
                "With C = inf there is a hard margin, which the logistic loss does not have.",
            )
