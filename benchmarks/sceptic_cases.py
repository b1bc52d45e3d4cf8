# SPDX-License-Identifier: BSD-3-Clause
"""A fit that the sceptic makes, and what it claims to have proven."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from maxmargin.estimators.sureness import places_of, settled_of
from maxmargin.independent.arithmetic import Vector, sum_of
from maxmargin.independent.places import Place
from maxmargin.independent.rows import PlainRows, Rows
from maxmargin.independent.values import ExactProblem, Proof


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
    query: NDArray[np.int64] | None = None
    """Of each row of a ranking."""

    @property
    def data(self) -> Any:
        return sparse.csr_matrix(self.X) if self.is_sparse else self.X

    def without(self, row: int) -> Case:
        """The same fit without one row."""
        kept = np.arange(len(self.y)) != row
        weights = None if self.weights is None else self.weights[kept]
        query = None if self.query is None else self.query[kept]
        return replace(self, X=self.X[kept], y=self.y[kept], weights=weights, query=query)

    def code(self) -> str:
        """Lines of Python that make this fit again."""
        dtype = "" if self.X.dtype == np.float64 else ", np.float32"
        lines = [f"X = np.array({self.X.tolist()}{dtype})", f"y = np.array({self.y.tolist()})"]
        if self.is_sparse:
            lines.append("X = scipy.sparse.csr_matrix(X)")
        weights = "" if self.weights is None else f", sample_weight=np.array({self.weights.tolist()})"
        if self.query is not None:
            weights = f", np.array({self.query.tolist()})"
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
    "nu classification": "NuSVC({words}).fit(X, y{weights})",
    "nu regression": "NuSVR({words}).fit(X, y{weights})",
    "one class": "OneClassSVM({words}).fit(X, y{weights})",
    "joint classes": "LinearSVC({words}).fit(X, y{weights})",
    "ranking": "RankSVM({words}).fit(X, y{weights})",
}


def _literal(value: Any) -> str:
    return "np.inf" if isinstance(value, float) and np.isinf(value) else repr(value)


@dataclass(frozen=True)
class Claim:
    """What a certificate says of one problem, with the points it says it of."""

    problem: Any
    """An ``ExactProblem``, or what ``prove`` takes in its place."""
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
    prove: Callable[..., Any] = Proof
    """What computes the exact values, of the problem, w, b and alpha."""


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


def plain_rows(X: NDArray[Any]) -> PlainRows:
    return PlainRows([Vector.of(row) for row in X.tolist()])


def known_of(model: Any, data: Any) -> Iterator[dict[str, Any]]:
    """What a classifier says of the optimum of each of its problems."""
    ends = [np.reshape(each, (data.shape[0], -1)) for each in model.decision_bounds(data)]
    for k, (place, settled) in enumerate(zip(places_of(model), settled_of(model), strict=True)):
        yield {
            "place": Place(*place),
            "scores": tuple(each[:, k].tolist() for each in ends),
            "settled": tuple(each.tolist() for each in settled),
        }


def form_of(options: dict[str, Any]) -> str:
    """The form of the intercept that an estimator's options mean."""
    if not options.get("fit_intercept", True):
        return "none"
    return "regularised" if options.get("regularize_intercept") else "exact"


def each_of(proof: Any) -> list[Any]:
    return list(proof) if hasattr(proof, "worst") else [proof]


def claim_of(problem: ExactProblem, point: Any, proof: Any, status: str, tol: float, **more: Any) -> Claim:
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


def row_weights(case: Case) -> NDArray[np.float64]:
    return np.ones(len(case.y)) if case.weights is None else case.weights


def class_factors(case: Case, classes: NDArray[Any]) -> NDArray[np.float64]:
    """The factor of each row's class; balanced weights are those of ``class_weight="balanced"``."""
    if case.options.get("class_weight") is None:
        return np.ones(len(case.y))
    codes = np.searchsorted(classes, case.y)
    # In the order of the rows: the factors are float64, and the problem is stated with these.
    sums = np.bincount(codes, row_weights(case))
    return (sums.sum() / (len(classes) * sums))[codes]


def against_rest(
    case: Case, classes: NDArray[Any], k: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The labels of a problem, and the factor on C of each row."""
    weights, factors = row_weights(case), class_factors(case, classes)
    if len(classes) == 2:
        return np.where(case.y == classes[1], 1, -1), weights * factors
    positive = case.y == classes[k]
    if case.kind != "kernel":  # of linear problems, the rest has the factor 1
        factors = np.where(positive, factors, 1.0)
    return np.where(positive, 1, -1), weights * factors


def is_refuted(rows: Rows) -> bool:
    """Whether v'Kv < 0 in exact arithmetic, v being an eigenvector as float64 has it."""
    count = len(rows.vectors)
    lines = [rows.scores(Vector({i: 1.0})) for i in range(count)]
    _, vectors = np.linalg.eigh([[float(value.low) for value in line] for line in lines])
    v = Vector.of(vectors[:, 0].tolist())
    return sum_of(score.times(v[i]) for i, score in enumerate(rows.scores(v))).high < 0
