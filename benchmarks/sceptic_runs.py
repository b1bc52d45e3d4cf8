# SPDX-License-Identifier: BSD-3-Clause
"""The fits of ``sceptic_draws``: each is made, and what it claims is gathered."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.sceptic_cases import (
    Case,
    Claim,
    Outcome,
    against_rest,
    claim_of,
    class_factors,
    each_of,
    form_of,
    is_refuted,
    known_of,
    plain_rows,
    row_weights,
)
from benchmarks.sceptic_family import FAMILY_RUNS
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
from maxmargin.estimators.sureness import places_of
from maxmargin.independent.arithmetic import Vector
from maxmargin.independent.places import Place
from maxmargin.independent.rows import KernelRows, PlainRows, Rows, TwinRows
from maxmargin.independent.values import ExactProblem
from maxmargin.kernels import Gaussian, Polynomial
from maxmargin.kernels.kernel_rows import KernelRows as LibraryKernelRows
from maxmargin.kernels.names import describe


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
    known = [{}] * len(model.coef_) if unknown else list(known_of(model, case.data))
    for k, certificate in enumerate(each_of(model.certificate_)):
        y, factors = against_rest(case, model.classes_, k)
        costs = factors if np.isinf(C) else C * factors
        problem = ExactProblem(
            rows,
            y.tolist(),
            [Fraction(cost) for cost in costs.tolist()],
            options["loss"],
            form_of(options),
            Fraction(options.get("intercept_scaling", 1.0)),
            penalty=penalty,
        )
        point = Vector.of(model.coef_[k].tolist()), Fraction(float(model.intercept_[k]))
        yield claim_of(problem, point, certificate, outcome.status, tol, hard=bool(np.isinf(C)), **known[k])


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
        zip(each_of(model.certificate_), known_of(model, case.data), strict=True)
    ):
        if sides is None:
            which = np.arange(len(case.y))
            y, factors = against_rest(case, classes, k)
        else:
            members = [np.flatnonzero(case.y == classes[side]) for side in sides[k]]
            which = np.concatenate(members)
            y = np.concatenate([np.ones(len(members[0]), int), -np.ones(len(members[1]), int)])
            factors = row_weights(case)[which] * class_factors(case, classes)[which]
        vectors = plain_rows(case.X[which]).vectors
        costs = [Fraction(cost) for cost in (options["C"] * factors).tolist()]
        problem = ExactProblem(KernelRows(vectors, kernel), y.tolist(), costs)
        point = Vector.of(certificate.w.tolist()), Fraction(float(model.intercept_[k]))
        refuted = options["kernel"] == "sigmoid" and certificate.proven and is_refuted(problem.rows)
        low, high = known["scores"]
        known["scores"] = [low[i] for i in which], [high[i] for i in which]
        yield claim_of(problem, point, certificate, outcome.status, tol, is_kernel=not refuted, **known)


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
        refuted = options["kernel"] == "sigmoid" and proof.proven and is_refuted(examples)
    width = Fraction(epsilon)
    walls = [end for y in map(Fraction, case.y.tolist()) for end in (y - width, -(y + width))]
    costs = np.repeat(options["C"] * row_weights(case), 2)
    problem = ExactProblem(
        TwinRows(examples),
        [1, -1] * len(case.y),
        [Fraction(cost) for cost in costs.tolist()],
        {"squared_epsilon_insensitive": "squared_hinge"}.get(getattr(model, "loss", ""), "hinge"),
        form_of(options),
        Fraction(options.get("intercept_scaling", 1.0)),
        targets=walls,
    )
    point = Vector.of(proof.w.tolist()), Fraction(float(model.intercept_[0]))
    bounds = tuple(np.repeat(ends, 2).tolist() for ends in model.prediction_bounds(case.data))
    known = {"is_kernel": not refuted, "place": Place(*places_of(model)[0]), "scores": bounds}
    yield claim_of(problem, point, proof, outcome.status, tol, **known)


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
    yield claim_of(problem, point, model.certificate, outcome.status, options.get("tol", 1e-4))


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
        yield claim_of(_stated(case, rows, C), point, proof, status, bound)


def _stated(case: Case, rows: Rows, C: float) -> ExactProblem:
    options = case.options
    return ExactProblem(
        rows,
        case.y.tolist(),
        [Fraction(cost) for cost in (C * row_weights(case)).tolist()],
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
    **FAMILY_RUNS,
}
