# SPDX-License-Identifier: BSD-3-Clause
"""Random fits over many orders of magnitude, and what each of them claims to have proven."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from maxmargin import (
    SVC,
    SVR,
    InseparableError,
    LinearSVC,
    LinearSVCCV,
    LinearSVR,
    Problem,
    solve,
    whole_path,
)
from maxmargin.estimators.sureness import places_of, settled_of
from maxmargin.independent.arithmetic import Vector, sum_of
from maxmargin.independent.places import Place
from maxmargin.independent.rows import KernelRows, PlainRows, Rows, TwinRows
from maxmargin.independent.values import ExactProblem
from maxmargin.kernels import Gaussian, Polynomial
from maxmargin.kernels.kernel_rows import KernelRows as LibraryKernelRows
from maxmargin.kernels.names import describe

KINDS = ("linear", "kernel", "problem", "regression", "hard margin", "path", "cross-validation")
_SHARES = (0.34, 0.29, 0.11, 0.1, 0.09, 0.045, 0.025)
_LONGEST_FIT = 0.02
"""Seconds after which a fit is to end by itself: most take 1 ms, and a few would go on for minutes."""
_LONGER = {20: 0.1, 500: 1.0}
"""The same for one of so many fits, so that long runs are looked into, too."""


@dataclass(frozen=True)
class Case:
    """One fit: what is called, and with what."""

    kind: str
    X: NDArray[Any]
    y: NDArray[Any]
    """Labels, or the numbers of a regression."""
    options: dict[str, Any]
    weights: NDArray[np.float64] | None = None
    is_sparse: bool = False
    max_time: float = 60.0
    """Seconds."""

    @property
    def data(self) -> Any:
        return sparse.csr_matrix(self.X) if self.is_sparse else self.X

    def without(self, row: int) -> Case:
        """The same fit without one row."""
        kept = np.arange(len(self.y)) != row
        weights = None if self.weights is None else self.weights[kept]
        return replace(self, X=self.X[kept], y=self.y[kept], weights=weights)

    def code(self) -> str:
        """Lines of Python that make this fit again."""
        dtype = "" if self.X.dtype == np.float64 else ", np.float32"
        lines = [f"X = np.array({self.X.tolist()}{dtype})", f"y = np.array({self.y.tolist()})"]
        if self.is_sparse:
            lines.append("X = scipy.sparse.csr_matrix(X)")
        weights = "" if self.weights is None else f", sample_weight=np.array({self.weights.tolist()})"
        words = ", ".join(f"{name}={_literal(value)}" for name, value in self.options.items())
        name = "SVR" if "kernel" in self.options else "LinearSVR"
        lines.append(_CALLS[self.kind].format(name=name, words=words, weights=weights))
        return "\n".join(lines)


_CALLS = {
    "linear": "LinearSVC({words}).fit(X, y{weights})",
    "hard margin": "LinearSVC({words}).fit(X, y{weights})",
    "kernel": "SVC({words}).fit(X, y{weights})",
    "cross-validation": "LinearSVCCV({words}).fit(X, y{weights})",
    "problem": "solve_problem(X, y, {words}{weights})",
    "regression": "{name}({words}).fit(X, y{weights})",
    "path": "walk(X, y, {words}{weights})",
}


def _literal(value: Any) -> str:
    return "np.inf" if isinstance(value, float) and np.isinf(value) else repr(value)


@dataclass(frozen=True)
class Claim:
    """What a certificate says of one problem, with the points it says it of."""

    problem: ExactProblem
    w: Vector
    b: Fraction
    alpha: list[Fraction]
    primal: float
    dual: float
    proven: bool
    certified: bool
    """Whether the fit says that the gap is within tol."""
    tol: float
    hard: bool = False
    is_kernel: bool = True
    """Whether nothing shows in exact arithmetic that the function is not a kernel on these rows."""
    place: Place | None = None
    """Where the model says that the best point is."""
    scores: tuple[list[float], list[float]] | None = None
    """Between which numbers it says that the best scores of its rows are."""
    settled: tuple[list[bool], list[bool]] | None = None
    """Of which rows it says that their multipliers are 0 at the optimum, and of which that they are C."""


@dataclass
class Outcome:
    """What a fit came to."""

    claims: list[Claim] = field(default_factory=list[Claim])
    status: str = ""
    refused: str = ""
    """The first words of a ValueError."""
    inseparable: bool = False
    complaints: list[str] = field(default_factory=list[str])
    """Warnings that are no part of the interface."""


# ---- what is drawn ------------------------------------------------------------------------------------


def draw(seed: int, number: int) -> Case:
    """The fit of that number: the same seed draws the same ones."""
    random = np.random.default_rng([seed, number])
    kind = str(random.choice(KINDS, p=_SHARES))
    n = int(np.exp(random.uniform(np.log(4), np.log(40 if kind != "kernel" else 24))))
    if kind == "cross-validation":
        n = max(n, 12)
    d = int(random.integers(1, 7))
    X = _values(random, n, d)
    y = _numbers(random, X) if kind == "regression" else _labels(random, X, kind)
    if kind == "hard margin" and random.random() < 0.6:
        # One column tells the classes apart, clearly or by next to nothing beside the others.
        apart = 4.0 * np.ptp(X[:, 0]) if random.random() < 0.5 else 10.0 ** random.uniform(-16, 0)
        X[:, 0] = X[:, 0] * (random.random() < 0.5) + np.where(y > 0, apart, 0.0)
    if random.random() < 0.12:
        X = X.astype(np.float32)
    is_sparse = bool(random.random() < 0.12)
    if is_sparse:
        X = np.where(random.random(X.shape) < 0.4, X.dtype.type(0), X)
    weights = _weights(random, n) if kind not in ("cross-validation",) else None
    options = _OPTIONS[kind](random)
    if kind == "regression" and random.random() < 0.7:
        options["epsilon"] = float(np.ptp(y) * 10.0 ** random.uniform(-4, 0.3))
    plain = kind == "linear" and "solver" not in options and options["loss"] != "hinge"
    if plain and random.random() < 0.4:
        options["penalty"] = "l1"
    if options.get("kernel") == "chi2":
        X = np.abs(X)  # as histograms are
    classes = kind != "regression"
    if weights is not None and classes and len(np.unique(y[weights > 0])) < len(np.unique(y)):
        weights = None
    longest = max([_LONGEST_FIT, *(seconds for every, seconds in _LONGER.items() if number % every == 0)])
    return Case(kind, X, y, options, weights, is_sparse, longest)


def _values(random: np.random.Generator, n: int, d: int) -> NDArray[np.float64]:
    style = random.integers(5)
    if style == 0:
        X = random.integers(-3, 4, size=(n, d)).astype(np.float64)
    elif style == 1:
        X = np.round(random.random((n, d)), 2)
    elif style == 2:
        X = 1.7e9 / 3e7 + random.random((n, d))  # as timestamps are: far from 0 for their extent
    else:
        X = random.normal(size=(n, d))
    if random.random() < 0.3:
        X = X[random.integers(n, size=n)]  # some rows twice
    if random.random() < 0.4:
        return X
    X = X * 10.0 ** random.uniform(-12, 12)
    if random.random() < 0.4:
        X = X * 10.0 ** random.uniform(-8, 8, size=d)
    if random.random() < 0.2:
        X = X * 10.0 ** random.uniform(-6, 6, size=(n, 1))
    if random.random() < 0.2:
        X = X + np.abs(X).max() * 10.0 ** random.uniform(-2, 6)
    if random.random() < 0.2:
        X = np.round(X, int(random.integers(0, 4)))
    return X


def _labels(random: np.random.Generator, X: NDArray[np.float64], kind: str) -> NDArray[np.int64]:
    n, d = X.shape
    spread = np.where(np.ptp(X, axis=0) > 0, np.ptp(X, axis=0), 1.0)
    scores = (X - X.mean(axis=0)) / spread @ random.normal(size=d)
    scores += random.choice([0.0, 0.1, 1.0]) * random.normal(size=n)
    classes = 2 if kind in ("problem", "path", "hard margin") or random.random() < 0.85 else 3
    ranks = np.argsort(np.argsort(scores, kind="stable"), kind="stable")
    y = np.minimum(ranks * classes // n, classes - 1)
    if random.random() < 0.15:
        y = random.permutation(y)
    return (2 * y - 1 if classes == 2 else y).astype(np.int64)


def _numbers(random: np.random.Generator, X: NDArray[np.float64]) -> NDArray[np.float64]:
    """What is to be predicted: nearly linear, or only noise, in many a unit, and far from 0 or not."""
    n, d = X.shape
    spread = np.where(np.ptp(X, axis=0) > 0, np.ptp(X, axis=0), 1.0)
    y = (X - X.mean(axis=0)) / spread @ random.normal(size=d)
    y += random.choice([0.0, 0.1, 1.0]) * random.normal(size=n)
    if random.random() < 0.3:
        y = np.round(y, int(random.integers(0, 3)))
    if random.random() < 0.5:
        y = y * 10.0 ** random.uniform(-12, 12)
    if random.random() < 0.3:
        y = y + np.abs(y).max() * 10.0 ** random.uniform(-1, 6)
    return y


def _weights(random: np.random.Generator, n: int) -> NDArray[np.float64] | None:
    style = random.random()
    if style < 0.75:
        return None
    if style < 0.85:
        return 10.0 ** random.uniform(-4, 4, size=n)
    weights = random.random(n)
    weights[random.random(n) < 0.2] = 0.0
    return weights if weights.any() else None


def _cost(random: np.random.Generator) -> float:
    return 1.0 if random.random() < 0.3 else float(10.0 ** random.uniform(-8, 8))


def _tol(random: np.random.Generator) -> dict[str, float]:
    return {} if random.random() < 0.6 else {"tol": float(10.0 ** random.uniform(-9, -1))}


def _class_weight(random: np.random.Generator) -> dict[str, Any]:
    return {"class_weight": "balanced"} if random.random() < 0.1 else {}


_SOLVERS = {
    "hinge": [
        "dual_coordinate_ascent",
        "augmented_lagrangian",
        "interior_point",
        "active_set",
        "pegasos",
        "subgradient",
    ],
    "squared_hinge": ["dual_coordinate_ascent", "newton", "interior_point", "active_set"],
    "logistic": ["newton", "subgradient"],
}


_TUBE_SOLVERS = {
    "epsilon_insensitive": ["dual_coordinate_ascent", "augmented_lagrangian"],
    "squared_epsilon_insensitive": ["dual_coordinate_ascent", "newton"],
}


def _linear(random: np.random.Generator) -> dict[str, Any]:
    options: dict[str, Any] = {"loss": str(random.choice(["hinge", "squared_hinge", "logistic"]))}
    options |= {"C": _cost(random), "random_state": 0, "n_jobs": 1} | _tol(random) | _class_weight(random)
    form = random.random()
    if form < 0.2:
        options["fit_intercept"] = False
    elif form < 0.45:
        options["regularize_intercept"] = True
        options["intercept_scaling"] = float(10.0 ** random.uniform(-3, 3))
    if random.random() < 0.15:
        options["solver"] = str(random.choice(_SOLVERS[options["loss"]]))
    return options


def _hard(random: np.random.Generator) -> dict[str, Any]:
    options = _linear(random) | {"C": float("inf")}
    options.pop("solver", None)
    return options | ({"loss": "hinge"} if options["loss"] == "logistic" else {})


_KERNELS = ("linear", "poly", "rbf", "sigmoid", "laplacian", "chi2")
_KERNEL_SHARES = (0.14, 0.3, 0.24, 0.12, 0.1, 0.1)


def _kernel(random: np.random.Generator) -> dict[str, Any]:
    kernel = str(random.choice(_KERNELS, p=_KERNEL_SHARES))
    options: dict[str, Any] = {"kernel": kernel, "C": _cost(random), "random_state": 0, "n_jobs": 1}
    options |= _tol(random) | _class_weight(random)
    if kernel == "poly":
        options |= {"degree": int(random.integers(2, 5)), "coef0": float(random.choice([0.0, 1.0, 0.1]))}
    if random.random() < 0.3:
        # With many a gamma each row is like itself alone, or all rows are alike.
        widths = [1.0, 0.1, 10.0 ** random.uniform(-3, 3), 10.0 ** random.uniform(-12, 12)]
        options["gamma"] = float(random.choice(widths))
    if random.random() < 0.2:
        options["multi_class"] = "ovr"
    return options


def _regression(random: np.random.Generator) -> dict[str, Any]:
    if random.random() < 0.5:
        options = _kernel(random)
        for name in ("multi_class", "class_weight"):
            options.pop(name, None)
        return options
    options = _linear(random)
    options.pop("class_weight", None)
    losses = {"hinge": "epsilon_insensitive"}
    options["loss"] = losses.get(options["loss"], "squared_epsilon_insensitive")
    if "solver" in options:
        options["solver"] = str(random.choice(_TUBE_SOLVERS[options["loss"]]))
    return options


def _problem(random: np.random.Generator) -> dict[str, Any]:
    losses = ["hinge", "squared_hinge", "logistic", "perceptron"]
    options: dict[str, Any] = {"C": _cost(random), "loss": str(random.choice(losses))}
    options["intercept"] = str(random.choice(["none", "regularised", "exact"]))
    if options["intercept"] == "regularised":
        options["intercept_scaling"] = float(10.0 ** random.uniform(-3, 3))
    quadratic = options["loss"] in ("hinge", "squared_hinge")
    options["kernel"] = str(random.choice(["none", "poly", "rbf"])) if quadratic else "none"
    if options["kernel"] != "none" and options["intercept"] == "exact":
        options["loss"] = "hinge"  # the only one that is solved so
    elif options["kernel"] != "none":
        options["solver"] = "kernel_dual_ascent"
    if options["kernel"] != "none" and options["intercept"] == "none" and random.random() < 0.5:
        options["fixed_intercept"] = float(random.normal() * 10.0 ** random.uniform(-2, 2))
    return options | _tol(random)


def _path(random: np.random.Generator) -> dict[str, Any]:
    options = _problem(random)
    if options["loss"] == "perceptron":
        options["loss"] = "hinge"
    low = float(10.0 ** random.uniform(-6, 4))
    dropped = ("C", "kernel", "fixed_intercept", "tol", "solver")
    kept = {name: value for name, value in options.items() if name not in dropped}
    return kept | {"low": low, "high": low * 100.0, "tol": 1e-2}


def _cross_validation(random: np.random.Generator) -> dict[str, Any]:
    options = {name: value for name, value in _linear(random).items() if name != "C"}
    return options | {"Cs": [0.01, 1.0, 100.0], "cv": 2}


_OPTIONS = {
    "linear": _linear,
    "kernel": _kernel,
    "problem": _problem,
    "regression": _regression,
    "hard margin": _hard,
    "path": _path,
    "cross-validation": _cross_validation,
}


# ---- what is claimed ----------------------------------------------------------------------------------


def run(case: Case) -> Outcome:
    """Fit, and gather what is claimed."""
    outcome = Outcome()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            for claim in _RUNS[case.kind](case, outcome):
                outcome.claims.append(claim)
        except InseparableError:
            outcome.inseparable = True
        except ValueError as error:
            outcome.refused = " ".join(str(error).split()[:12])
    allowed = ConvergenceWarning, UserWarning
    outcome.complaints = [
        f"{warning.category.__name__}: {warning.message}"
        for warning in caught
        if not issubclass(warning.category, allowed)
    ]
    return outcome


def _run_linear(case: Case, outcome: Outcome) -> Iterator[Claim]:
    options = dict(case.options)
    kind = LinearSVCCV if case.kind == "cross-validation" else LinearSVC
    model = kind(**options, max_time=case.max_time)
    model.fit(case.data, case.y, sample_weight=case.weights)
    outcome.status = model.status_.name if kind is LinearSVC else model.best_estimator_.status_.name
    C = options["C"] if kind is LinearSVC else float(model.C_)
    tol = options.get("tol", 1e-4)
    rows = plain_rows(case.X)
    penalty = options.get("penalty", "l2")
    unknown = kind is LinearSVCCV or penalty == "l1"  # with which nothing bounds how far the best model is
    known = [{}] * len(model.coef_) if unknown else list(_known(model, case.data))
    for k, certificate in enumerate(_each(model.certificate_)):
        y, factors = _against_rest(case, model.classes_, k)
        costs = factors if np.isinf(C) else C * factors
        problem = ExactProblem(
            rows,
            y.tolist(),
            [Fraction(cost) for cost in costs.tolist()],
            options["loss"],
            _form(options),
            Fraction(options.get("intercept_scaling", 1.0)),
            penalty=penalty,
        )
        point = Vector.of(model.coef_[k].tolist()), Fraction(float(model.intercept_[k]))
        yield _claim(problem, point, certificate, outcome.status, tol, hard=bool(np.isinf(C)), **known[k])


def _run_kernel(case: Case, outcome: Outcome) -> Iterator[Claim]:
    options = case.options
    model = SVC(**options, max_time=case.max_time)
    model.fit(case.data, case.y, sample_weight=case.weights)
    outcome.status, tol = model.status_.name, options.get("tol", 1e-3)
    kernel = describe(model.kernel_)
    classes = model.classes_
    pairs = len(classes) > 2 and options.get("multi_class", "ovo") == "ovo"
    sides = [(i, j) for i in range(len(classes)) for j in range(i + 1, len(classes))] if pairs else None
    for k, (certificate, known) in enumerate(
        zip(_each(model.certificate_), _known(model, case.data), strict=True)
    ):
        if sides is None:
            which = np.arange(len(case.y))
            y, factors = _against_rest(case, classes, k)
        else:
            members = [np.flatnonzero(case.y == classes[side]) for side in sides[k]]
            which = np.concatenate(members)
            y = np.concatenate([np.ones(len(members[0]), int), -np.ones(len(members[1]), int)])
            factors = _row_weights(case)[which] * _class_factors(case, classes)[which]
        vectors = plain_rows(case.X[which]).vectors
        costs = [Fraction(cost) for cost in (options["C"] * factors).tolist()]
        problem = ExactProblem(KernelRows(vectors, kernel), y.tolist(), costs)
        point = Vector.of(certificate.w.tolist()), Fraction(float(model.intercept_[k]))
        refuted = options["kernel"] == "sigmoid" and certificate.proven and _is_refuted(problem.rows)
        low, high = known["scores"]
        known["scores"] = [low[i] for i in which], [high[i] for i in which]
        yield _claim(problem, point, certificate, outcome.status, tol, is_kernel=not refuted, **known)


def _run_regression(case: Case, outcome: Outcome) -> Iterator[Claim]:
    options = case.options
    with_kernel = "kernel" in options
    kind = SVR if with_kernel else LinearSVR
    model = kind(**options, max_time=case.max_time)
    model.fit(case.data, case.y, sample_weight=case.weights)
    outcome.status, tol = model.status_.name, options.get("tol", 1e-3 if with_kernel else 1e-4)
    proof, epsilon = model.certificate_, model.epsilon
    examples: Rows = plain_rows(case.X)
    refuted = False
    if with_kernel:
        examples = KernelRows(examples.vectors, describe(model.kernel_))
        refuted = options["kernel"] == "sigmoid" and proof.proven and _is_refuted(examples)
    walls = np.column_stack([case.y - epsilon, -(case.y + epsilon)]).ravel()
    costs = np.repeat(options["C"] * _row_weights(case), 2)
    problem = ExactProblem(
        TwinRows(examples),
        [1, -1] * len(case.y),
        [Fraction(cost) for cost in costs.tolist()],
        {"squared_epsilon_insensitive": "squared_hinge"}.get(getattr(model, "loss", ""), "hinge"),
        _form(options),
        Fraction(options.get("intercept_scaling", 1.0)),
        targets=[Fraction(wall) for wall in walls.tolist()],
    )
    point = Vector.of(proof.w.tolist()), Fraction(float(model.intercept_[0]))
    bounds = tuple(np.repeat(ends, 2).tolist() for ends in model.prediction_bounds(case.data))
    known = {"is_kernel": not refuted, "place": Place(*places_of(model)[0]), "scores": bounds}
    yield _claim(problem, point, proof, outcome.status, tol, **known)


def solve_problem(
    X: Any,
    y: Any,
    *,
    kernel: str = "none",
    solver: str = "auto",
    sample_weight: Any = None,
    tol: float = 1e-4,
    max_time: float = 60.0,
    **stated: Any,
) -> Any:
    """The model of a problem that no estimator states: any loss, any intercept, with a kernel or not."""
    seen = {"poly": Polynomial(2, 1.0, 1.0), "rbf": Gaussian(1.0)}.get(kernel)
    data = X if seen is None else LibraryKernelRows(X, seen)
    problem = Problem.of(data, y, weights=sample_weight, **stated)
    return solve(problem, solver, tol=tol, max_time=max_time, threads=1)


def _run_problem(case: Case, outcome: Outcome) -> Iterator[Claim]:
    options = case.options
    model = solve_problem(case.data, case.y, sample_weight=case.weights, max_time=case.max_time, **options)
    outcome.status = model.status.name
    described = {
        "poly": {"kernel": "polynomial", "degree": 2, "gamma": 1.0, "coef0": 1.0},
        "rbf": {"kernel": "gaussian", "gamma": 1.0},
    }
    vectors = plain_rows(case.X).vectors
    kernel = options["kernel"]
    rows: Rows = PlainRows(vectors) if kernel == "none" else KernelRows(vectors, described[kernel])
    problem = _stated(case, rows, options["C"])
    point = Vector.of(model.w.tolist()), Fraction(model.b)
    yield _claim(problem, point, model.certificate, outcome.status, options.get("tol", 1e-4))


def walk(
    X: Any,
    y: Any,
    *,
    low: float,
    high: float,
    tol: float,
    max_time: float = 60.0,
    sample_weight: Any = None,
    **stated: Any,
) -> Any:
    """The whole path of a problem."""
    problem = Problem.of(X, y, weights=sample_weight, **stated)
    return whole_path(problem, low, high, tol=tol, max_time=max_time, threads=1)


def _run_path(case: Case, outcome: Outcome) -> Iterator[Claim]:
    options = case.options
    along = walk(case.data, case.y, sample_weight=case.weights, max_time=case.max_time, **options)
    outcome.status = "CERTIFIED" if along.largest_gap <= options["tol"] else "STEPS_SPENT"
    rows = plain_rows(case.X)
    between = np.geomspace(options["low"], options["high"], 7)[1:-1].tolist()
    for C in [*along.C.tolist(), *between]:
        proof = along.at(C)
        point = Vector.of(proof.w.tolist()), Fraction(proof.b)
        bound = min(along.largest_gap, along.gap_at(C))
        status = "CERTIFIED" if np.isfinite(bound) else outcome.status
        yield _claim(_stated(case, rows, C), point, proof, status, bound)


def _stated(case: Case, rows: Rows, C: float) -> ExactProblem:
    options = case.options
    return ExactProblem(
        rows,
        case.y.tolist(),
        [Fraction(cost) for cost in (C * _row_weights(case)).tolist()],
        options["loss"],
        options["intercept"],
        Fraction(options.get("intercept_scaling", 1.0)),
        Fraction(options.get("fixed_intercept", 0.0)),
    )


_RUNS = {
    "linear": _run_linear,
    "hard margin": _run_linear,
    "cross-validation": _run_linear,
    "kernel": _run_kernel,
    "problem": _run_problem,
    "regression": _run_regression,
    "path": _run_path,
}


def plain_rows(X: NDArray[Any]) -> PlainRows:
    return PlainRows([Vector.of(row) for row in X.tolist()])


def _known(model: Any, data: Any) -> Iterator[dict[str, Any]]:
    """What a classifier says of the optimum of each of its problems."""
    ends = [np.reshape(each, (data.shape[0], -1)) for each in model.decision_bounds(data)]
    for k, (place, settled) in enumerate(zip(places_of(model), settled_of(model), strict=True)):
        yield {
            "place": Place(*place),
            "scores": tuple(each[:, k].tolist() for each in ends),
            "settled": tuple(each.tolist() for each in settled),
        }


def _form(options: dict[str, Any]) -> str:
    """The form of the intercept that an estimator's options mean."""
    if not options.get("fit_intercept", True):
        return "none"
    return "regularised" if options.get("regularize_intercept") else "exact"


def _each(proof: Any) -> list[Any]:
    return list(proof) if hasattr(proof, "worst") else [proof]


def _claim(problem: ExactProblem, point: Any, proof: Any, status: str, tol: float, **more: Any) -> Claim:
    return Claim(
        problem,
        *point,
        [Fraction(a) for a in proof.alpha.tolist()],
        proof.primal,
        proof.dual,
        bool(proof.proven),
        status == "CERTIFIED",
        tol,
        **more,
    )


def _row_weights(case: Case) -> NDArray[np.float64]:
    return np.ones(len(case.y)) if case.weights is None else case.weights


def _class_factors(case: Case, classes: NDArray[Any]) -> NDArray[np.float64]:
    """The factor of each row's class; balanced weights are those of ``class_weight="balanced"``."""
    if case.options.get("class_weight") is None:
        return np.ones(len(case.y))
    codes = np.searchsorted(classes, case.y)
    # In the order of the rows: the factors are float64, and the problem is stated with these.
    sums = np.bincount(codes, _row_weights(case))
    return (sums.sum() / (len(classes) * sums))[codes]


def _against_rest(
    case: Case, classes: NDArray[Any], k: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The labels of a problem, and the factor on C of each row."""
    weights, factors = _row_weights(case), _class_factors(case, classes)
    if len(classes) == 2:
        return np.where(case.y == classes[1], 1, -1), weights * factors
    positive = case.y == classes[k]
    if case.kind != "kernel":  # of linear problems, the rest has the factor 1
        factors = np.where(positive, factors, 1.0)
    return np.where(positive, 1, -1), weights * factors


def _is_refuted(rows: Rows) -> bool:
    """Whether v'Kv < 0 in exact arithmetic, v being an eigenvector as float64 has it."""
    count = len(rows.vectors)
    lines = [rows.scores(Vector({i: 1.0})) for i in range(count)]
    _, vectors = np.linalg.eigh([[float(value.low) for value in line] for line in lines])
    v = Vector.of(vectors[:, 0].tolist())
    return sum_of(score.times(v[i]) for i, score in enumerate(rows.scores(v))).high < 0
