# SPDX-License-Identifier: BSD-3-Clause
"""Members of the family beside the usual ones: what is drawn of them, and what they claim."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.exact_family import RankedPairs, RankedProof, ShiftedProof
from benchmarks.sceptic_cases import (
    Case,
    Claim,
    Outcome,
    claim_of,
    each_of,
    is_refuted,
    known_of,
    plain_rows,
    row_weights,
)
from benchmarks.sceptic_draws import (
    drawn_cost,
    drawn_kernel,
    drawn_labels,
    drawn_numbers,
    drawn_tol,
    drawn_values,
    drawn_weights,
    longest_fit,
)
from maxmargin import LinearSVC, NuSVC, NuSVR, OneClassSVM, RankSVM
from maxmargin.estimators.sureness import places_of
from maxmargin.independent.arithmetic import Vector
from maxmargin.independent.places import Place
from maxmargin.independent.ranking import ExactRanking
from maxmargin.independent.rows import KernelRows, PlainRows, Rows, TwinRows
from maxmargin.independent.values import ExactProblem
from maxmargin.kernels.names import describe

FAMILY = ("nu classification", "nu regression", "one class", "joint classes", "ranking")
_STREAM = 1
"""Of random numbers: not that of the other kinds, whose fits stay what they are."""
_MOST_OFF = 1e-12
"""How far a total may be from nu times the sum of the costs, as a share: it is a float64."""


def draw_family(seed: int, number: int) -> Case:
    """The fit of that number: the same seed draws the same ones."""
    random = np.random.default_rng([seed, number, _STREAM])
    kind = str(random.choice(FAMILY))
    n = int(np.exp(random.uniform(np.log(4), np.log(24 if kind != "ranking" else 16))))
    X = drawn_values(random, n, int(random.integers(1, 7)))
    y: NDArray[Any] = np.zeros(n)
    if kind == "nu regression":
        y = drawn_numbers(random, X)
    elif kind != "one class":
        y = drawn_labels(random, X, "kernel")
    if kind == "joint classes" and len(np.unique(y)) < 3:
        y = np.arange(n) % 3  # two classes are another problem
    if random.random() < 0.12:
        X = X.astype(np.float32)
    is_sparse = bool(random.random() < 0.12)
    if is_sparse:
        X = np.where(random.random(X.shape) < 0.4, X.dtype.type(0), X)
    weights = None if kind == "ranking" else drawn_weights(random, n)
    options = _OPTIONS[kind](random)
    if options.get("kernel") == "chi2":
        X = np.abs(X)
    labels = kind in ("nu classification", "joint classes")
    if weights is not None and labels and len(np.unique(y[weights > 0])) < len(np.unique(y)):
        weights = None
    query = None
    if kind == "ranking" and random.random() < 0.7:
        query = np.sort(random.integers(max(n // 4, 1), size=n))
    return Case(kind, X, y, options, weights, is_sparse, longest_fit(number), query)


def _with_nu(random: np.random.Generator) -> dict[str, Any]:
    options = drawn_kernel(random)
    for name in ("C", "class_weight", "multi_class"):
        options.pop(name, None)
    return options | {"nu": float(random.choice([0.5, 0.1, 10.0 ** random.uniform(-3, 0)]))}


def _regression(random: np.random.Generator) -> dict[str, Any]:
    return _with_nu(random) | {"C": drawn_cost(random)}


def _joint(random: np.random.Generator) -> dict[str, Any]:
    options: dict[str, Any] = {"loss": "hinge", "multi_class": "crammer_singer", "C": drawn_cost(random)}
    options |= {"random_state": 0, "n_jobs": 1} | drawn_tol(random)
    if random.random() < 0.3:
        options["fit_intercept"] = False
    elif random.random() < 0.5:
        options["intercept_scaling"] = float(10.0 ** random.uniform(-3, 3))
    return options


def _ranking(random: np.random.Generator) -> dict[str, Any]:
    loss = str(random.choice(["hinge", "squared_hinge"]))
    return {"loss": loss, "C": drawn_cost(random), "random_state": 0, "n_jobs": 1} | drawn_tol(random)


_OPTIONS: dict[str, Callable[[np.random.Generator], dict[str, Any]]] = {
    "nu classification": _with_nu,
    "nu regression": _regression,
    "one class": _with_nu,
    "joint classes": _joint,
    "ranking": _ranking,
}


# ---- what is claimed ----------------------------------------------------------------------------------


def _shifted(
    rows: Rows,
    y: list[int],
    costs: NDArray[np.float64],
    targets: NDArray[np.float64],
    proof: Any,
    share: float,
    intercept: str = "exact",
) -> ExactProblem:
    """The problem with the total that the certificate is about: a share of the costs, but for rounding."""
    if not abs(proof.total - share * costs.sum()) <= _MOST_OFF * proof.total:
        raise RuntimeError(
            f"a total of {proof.total!r} where the share {share!r} of costs is meant: {costs.tolist()}"
        )
    return ExactProblem(
        rows,
        y,
        [Fraction(cost) for cost in costs.tolist()],
        intercept=intercept,
        targets=[Fraction(p) for p in targets.tolist()],
        total=Fraction(proof.total),
    )


def _with_shift(proof: Any) -> Callable[..., ShiftedProof]:
    return partial(ShiftedProof, shift=Fraction(proof.shift))


def run_nu_classification(case: Case, outcome: Outcome) -> Iterator[Claim]:
    options = case.options
    model = NuSVC(**options, max_time=case.max_time)
    model.fit(case.data, case.y, sample_weight=case.weights)
    outcome.status, kernel, classes = model.status_.name, describe(model.kernel_), model.classes_
    pairs = [(i, j) for i in range(len(classes)) for j in range(i + 1, len(classes))]
    proofs = each_of(model.certificate_)
    for k, (proof, known) in enumerate(zip(proofs, known_of(model, case.data), strict=True)):
        if len(classes) == 2:
            which = np.arange(len(case.y))
            y = np.where(case.y == classes[1], 1, -1)
        else:
            members = [np.flatnonzero(case.y == classes[side]) for side in pairs[k]]
            which = np.concatenate(members)
            y = np.repeat([1, -1], [len(each) for each in members])
        rows = KernelRows(plain_rows(case.X[which]).vectors, kernel)
        costs = model._outline.cost(k) * row_weights(case)[which]
        problem = _shifted(rows, y.tolist(), costs, np.zeros(len(y)), proof, options["nu"])
        point = Vector.of(proof.w.tolist()), Fraction(float(model.intercept_[k]))
        refuted = options["kernel"] == "sigmoid" and proof.proven and is_refuted(rows)
        low, high = known["scores"]
        known["scores"] = [low[i] for i in which], [high[i] for i in which]
        more = known | {"is_kernel": not refuted, "prove": _with_shift(proof)}
        yield claim_of(problem, point, proof, outcome.status, options.get("tol", 1e-3), **more)


def run_nu_regression(case: Case, outcome: Outcome) -> Iterator[Claim]:
    options = case.options
    model = NuSVR(**options, max_time=case.max_time)
    model.fit(case.data, case.y, sample_weight=case.weights)
    outcome.status, proof = model.status_.name, model.certificate_
    examples = KernelRows(plain_rows(case.X).vectors, describe(model.kernel_))
    costs = np.repeat(options["C"] * row_weights(case), 2)
    walls = np.column_stack([case.y, -case.y]).ravel()
    twins = TwinRows(examples)
    problem = _shifted(twins, [1, -1] * len(case.y), costs, walls, proof, 0.5 * options["nu"])
    point = Vector.of(proof.w.tolist()), Fraction(float(model.intercept_[0]))
    refuted = options["kernel"] == "sigmoid" and proof.proven and is_refuted(examples)
    bounds = tuple(np.repeat(ends, 2).tolist() for ends in model.prediction_bounds(case.data))
    more = {"is_kernel": not refuted, "place": Place(*places_of(model)[0]), "scores": bounds}
    yield claim_of(
        problem, point, proof, outcome.status, options.get("tol", 1e-3), **more, prove=_with_shift(proof)
    )


def run_one_class(case: Case, outcome: Outcome) -> Iterator[Claim]:
    options = case.options
    model = OneClassSVM(**options, max_time=case.max_time)
    model.fit(case.data, sample_weight=case.weights)
    outcome.status, proof = model.status_.name, model.certificate_
    rows = KernelRows(plain_rows(case.X).vectors, describe(model.kernel_))
    count = len(case.y)
    targets = np.zeros(count)
    problem = _shifted(rows, [1] * count, row_weights(case), targets, proof, options["nu"], "none")
    refuted = options["kernel"] == "sigmoid" and proof.proven and is_refuted(rows)
    bounds = tuple(ends.tolist() for ends in model.decision_bounds(case.data))
    more = {"is_kernel": not refuted, "place": Place(*places_of(model)[0]), "scores": bounds}
    point = Vector.of(proof.w.tolist()), Fraction(0)
    yield claim_of(
        problem, point, proof, outcome.status, options.get("tol", 1e-3), **more, prove=_with_shift(proof)
    )


def run_joint_classes(case: Case, outcome: Outcome) -> Iterator[Claim]:
    """All m classes in one problem: column j of class k has the place j m + k."""
    options = case.options
    model = LinearSVC(**options, max_time=case.max_time)
    model.fit(case.data, case.y, sample_weight=case.weights)
    outcome.status, proof, many = model.status_.name, model.certificate_, len(model.classes_)
    with_intercept, columns = options.get("fit_intercept", True), case.X.shape[1]
    scaling = Fraction(options.get("intercept_scaling", 1.0) if with_intercept else 0.0)
    coef = model.coef_.tolist()
    w = {j * many + k: Fraction(value) for k, line in enumerate(coef) for j, value in enumerate(line)}
    if scaling:
        w |= {columns * many + k: Fraction(b) / scaling for k, b in enumerate(model.intercept_.tolist())}
    rows, shared = [], []
    codes = np.searchsorted(model.classes_, case.y).tolist()
    costs = (options["C"] * row_weights(case)).tolist()
    for x, own, cost in zip(plain_rows(case.X).vectors, codes, costs, strict=True):
        values = {j: x[j] for j in x.numerators} | ({columns: scaling} if scaling else {})
        ours = {j * many + own: value for j, value in values.items()}
        for other in (k for k in range(many) if k != own):
            rows.append(Vector(ours | {j * many + other: -value for j, value in values.items()}))
            shared.append(Fraction(cost))
    ones = [1] * len(rows)
    problem = ExactProblem(PlainRows(rows), ones, shared, "hinge", "none", group=many - 1)
    point, place = (Vector(w), Fraction(0)), Place(*places_of(model)[0])
    yield claim_of(problem, point, proof, outcome.status, options.get("tol", 1e-4), place=place)


def run_ranking(case: Case, outcome: Outcome) -> Iterator[Claim]:
    options = case.options
    model = RankSVM(**options, max_time=case.max_time)
    model.fit(case.data, case.y, case.query)
    outcome.status, proof = model.status_.name, model.certificate_
    query = [0] * len(case.y) if case.query is None else case.query.tolist()
    relevance = [Fraction(label) for label in case.y.tolist()]
    rows = plain_rows(case.X).vectors
    ranking = ExactRanking(rows, relevance, list(map(str, query)), Fraction(options["C"]), options["loss"])
    yield Claim(
        RankedPairs(ranking, proof.width),
        Vector.of(model.coef_.tolist()),
        Fraction(0),
        [Fraction(score) for score in proof.margins.tolist()],
        proof.primal,
        proof.dual,
        bool(proof.proven),
        outcome.status == "CERTIFIED",
        options.get("tol", 1e-4),
        place=Place(*places_of(model)[0]),
        prove=RankedProof,
    )


FAMILY_RUNS = {
    "nu classification": run_nu_classification,
    "nu regression": run_nu_regression,
    "one class": run_one_class,
    "joint classes": run_joint_classes,
    "ranking": run_ranking,
}
