# SPDX-License-Identifier: BSD-3-Clause
"""Default fits of random problems: which are not certified, which proofs are untrue, which take long.

Proofs are checked by code that shares nothing with the library: both values are computed again from w, b
and alpha in extended precision, as the problem is written down in the lectures; and for a sample of small
problems Clarabel, or L-BFGS for the logistic loss, finds a point of its own. A lower bound above the value
of any point is untrue.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse
from sklearn.exceptions import ConvergenceWarning

from benchmarks import machine, sceptic
from benchmarks.report import table
from benchmarks.sceptic import Batches, Fault, TooLong, in_time
from benchmarks.search_cases import KINDS, Case, draw
from maxmargin import DoubtfulModelWarning

FINDINGS = {
    "untrue": "a value is on the wrong side of what it bounds",
    "uncertified": "the fit ended with a gap above tol, and does not say that rounding is the reason",
    "rounding": "the fit ended with a gap above tol, and says that rounding leaves nothing to gain",
    "slow": "the fit took more than 10 s of one processor",
    "crash": "an exception",
    "warning": "a warning that is neither about convergence nor about a proven model of no use",
}
_UNIT = 100.0 * float(np.finfo(np.longdouble).eps)
"""What a value of a kernel, or a product, may be off by in extended precision, relatively."""
_SLOW = 10.0
"""Seconds of a processor that no fit with fewer than a million values should take."""
_ROUNDED = 1e-9
"""The share of the objective that values in float64 may be off by beside those in extended precision."""
_RIVAL_OF_ONE_IN = 8
"""Problems of which one is solved by somebody else as well, where it is small."""
_MOST_OF_RIVAL = 4_000
"""Values of such a problem's matrix: Clarabel takes some ten milliseconds."""

Extended = NDArray[np.longdouble]


@dataclass
class Found(sceptic.Found):
    """What some of the fits came to; nearly all findings are shown."""

    most_shown: ClassVar[int] = 300


_LISTED = 40
"""Findings of a kind that the page lists, those that fell shortest first."""


class Stated(NamedTuple):
    """One of the problems of a fit, written down anew: rows, or the kernel matrix of them, and the rest."""

    rows: Extended
    """Of X; with a kernel the matrix of all its values."""
    y: Extended
    costs: Extended
    loss: str
    scaling: float
    """Of a regularised intercept; 0: there is none; infinite: it is free."""
    kernel: bool
    targets: Extended
    """What ``y_i (<w, x_i> + b)`` has to reach: 1 in classification."""
    twice: bool
    """Whether every row stands for the two walls of a tube: y, costs and targets are those of the walls."""

    def primal(self, w: Any, b: float) -> float:
        """``1/2 |w|^2 + sum_i C_i loss(y_i (<w, x_i> + b))``, and b's own part."""
        w = np.asarray(w, np.longdouble)
        scores = self.rows @ w
        m = self.y * (np.repeat(scores, 1 + self.twice) + b)
        slack = np.maximum(self.targets - m, 0.0)
        losses = {"hinge": slack, "squared_hinge": slack**2}.get(self.loss)
        if losses is None:
            losses = np.maximum(-m, 0.0) + np.log1p(np.exp(-np.abs(m)))
        own = (b / self.scaling) ** 2 / 2.0 if 0.0 < self.scaling < np.inf else 0.0
        square = w @ scores if self.kernel else w @ w
        return float(square / 2.0 + own + self.costs @ losses)

    def dual(self, alpha: Any) -> float:
        """What multipliers prove by weak duality, but for the rounding of their balance."""
        alpha = np.asarray(alpha, np.longdouble)
        signed, C = self.of_rows(alpha * self.y), self.costs
        combined = signed @ self.rows
        square = signed @ combined if self.kernel else combined @ combined
        if 0.0 < self.scaling < np.inf:
            square += (self.scaling * signed.sum()) ** 2
        if self.loss == "hinge":
            gains = alpha * self.targets
        elif self.loss == "squared_hinge":
            own = np.divide(alpha**2, 4.0 * C, out=np.zeros_like(alpha), where=C > 0)
            gains = alpha * self.targets - own
        else:
            share = np.divide(alpha, C, out=np.zeros_like(alpha), where=C > 0)
            gains = -C * (_entropy(share) + _entropy(1.0 - share))
        return float(gains.sum() - square / 2.0)

    def rounding(self, w: Any) -> float:
        """How far extended precision may leave the value of w from the exact one, about."""
        sizes, magnitudes = np.abs(np.asarray(w, np.longdouble)), np.abs(self.rows)
        scores = magnitudes @ sizes
        square = sizes @ scores if self.kernel else sizes @ sizes
        # With a kernel, a value is off by as many roundings as its formula has.
        return float(len(sizes) * _UNIT * (square + self.of_rows(self.costs) @ scores))

    def of_rows(self, walls: Any) -> Any:
        """The sum of what both walls of a row have; of a row without, the number itself."""
        return walls.reshape(-1, 2).sum(axis=1) if self.twice else walls

    def is_feasible(self, alpha: Any) -> bool:
        """Whether alpha is in its box, and in balance where b is free, but for rounding."""
        alpha = np.asarray(alpha, np.longdouble)
        upper = np.inf if self.loss == "squared_hinge" else self.costs * (1.0 + _ROUNDED)
        balanced = self.scaling < np.inf or abs(alpha @ self.y) <= _ROUNDED * alpha.sum()
        return bool((alpha >= 0.0).all() and (alpha <= upper).all() and balanced)


def _entropy(share: Extended) -> Extended:
    share = np.clip(share, 0.0, 1.0)
    return share * np.log(np.where(share > 0.0, share, 1.0))


def stated(case: Case, k: int) -> Stated:
    """Problem k of a fit: of class k against the rest, or of pair k; of two classes the only one."""
    weights = np.ones(len(case.y)) if case.weights is None else case.weights
    if case.kind == "regression":
        return _stated_regression(case, weights)
    labels = np.unique(case.y)
    rows, y = np.arange(len(case.y)), np.where(case.y == labels[-1], 1.0, -1.0)
    if len(labels) > 2 and case.kind == "linear":
        y = np.where(case.y == labels[k], 1.0, -1.0)
    elif len(labels) > 2:
        i, j = [(a, b) for a in labels for b in labels if a < b][k]
        rows = np.concatenate([np.flatnonzero(case.y == i), np.flatnonzero(case.y == j)])
        y = np.where(case.y[rows] == i, 1.0, -1.0)
    loss = case.options.get("loss", "hinge")
    X, costs, scaling = _given(case, rows, weights)
    y = y.astype(np.longdouble)
    return Stated(X, y, costs, loss, scaling, case.has_kernel, np.ones_like(y), twice=False)


def _stated_regression(case: Case, weights: Any) -> Stated:
    """Both walls of the tube around every value, as float64 has them."""
    X, costs, scaling = _given(case, np.arange(len(case.y)), weights)
    epsilon = float(case.options["epsilon"])
    targets = np.stack([case.y - epsilon, -(case.y + epsilon)], axis=1).ravel().astype(np.longdouble)
    signs = np.tile(np.array([1.0, -1.0], np.longdouble), len(case.y))
    loss = "squared_hinge" if case.options.get("loss", "").startswith("squared") else "hinge"
    return Stated(X, signs, np.repeat(costs, 2), loss, scaling, case.has_kernel, targets, twice=True)


def _given(case: Case, rows: Any, weights: Any) -> tuple[Extended, Extended, float]:
    """Some rows, or their kernel matrix; their costs; and the scaling of the intercept."""
    X = case.X[rows].astype(np.longdouble)
    options, scaling = case.options, np.inf
    if not options.get("fit_intercept", True):
        scaling = 0.0
    elif options.get("regularize_intercept"):
        scaling = options.get("intercept_scaling", 1.0)
    if case.has_kernel:
        X = kernel_matrix(X, **{name: options[name] for name in _KERNEL if name in options})
    return X, np.longdouble(options["C"]) * weights[rows].astype(np.longdouble), scaling


_KERNEL = ("kernel", "gamma", "degree", "coef0")


def kernel_matrix(
    X: Extended, kernel: str, gamma: float = 1.0, degree: int = 3, coef0: float = 0.0
) -> Extended:
    """All values of a kernel, by its formula."""
    if kernel in ("linear", "poly"):
        products = X @ X.T
        return products if kernel == "linear" else (gamma * products + coef0) ** degree
    power = 1 if kernel == "laplacian" else 2
    distances = [(np.abs(X - x) ** power).sum(axis=1) for x in X]
    return np.exp(-np.longdouble(gamma) * np.array(distances))


def rival(problem: Stated) -> float:
    """The value of a point that somebody else has found; infinite where nobody has."""
    if problem.loss == "logistic":
        w, b = _by_l_bfgs(problem)
    elif problem.kernel:
        w, b = _by_dual_program(problem)
    else:
        w, b = _by_primal_program(problem)
    return problem.primal(w, b) if np.isfinite(w).all() and np.isfinite(b) else np.inf


def _by_l_bfgs(problem: Stated) -> tuple[Any, float]:
    rows, y, costs = (np.asarray(each, np.float64) for each in (problem.rows, problem.y, problem.costs))
    d, free = rows.shape[1], float(problem.scaling > 0.0)
    ridge = np.append(np.ones(d), 0.0 if problem.scaling in (0.0, np.inf) else problem.scaling**-2)

    def value(v: Any) -> tuple[float, Any]:
        m = y * (rows @ v[:d] + free * v[d])
        pulls = -costs * y / (1.0 + np.exp(np.clip(m, -700.0, 700.0)))
        gradient = ridge * v + np.append(rows.T @ pulls, free * pulls.sum())
        return 0.5 * v @ (ridge * v) + costs @ np.logaddexp(0.0, -m), gradient

    v = optimize.minimize(value, np.zeros(d + 1), jac=True, method="L-BFGS-B").x
    return v[:d], float(free * v[d])


def _by_primal_program(problem: Stated) -> tuple[Any, float]:
    """The problem with slack variables (000, 003, 004): over w, b and xi."""
    rows, y, costs = (np.asarray(each, np.float64) for each in (problem.rows, problem.y, problem.costs))
    rows = np.repeat(rows, 1 + problem.twice, axis=0)
    n, d = rows.shape
    squared, has_b = problem.loss == "squared_hinge", problem.scaling > 0.0
    own = [0.0 if problem.scaling == np.inf else problem.scaling**-2] if has_b else []
    P = sparse.diags_array(np.concatenate([np.ones(d), own, 2.0 * costs if squared else np.zeros(n)]))
    q = np.concatenate([np.zeros(d + len(own)), np.zeros(n) if squared else costs])
    margins = np.hstack([y[:, None] * rows, y[:, None][:, : len(own)]])
    A = sparse.vstack(
        [
            sparse.hstack([sparse.csc_array(-margins), -sparse.eye_array(n)]),
            sparse.hstack([sparse.csc_array((n, d + len(own))), -sparse.eye_array(n)]),
        ]
    )
    x = _interior_point(P, q, A, np.append(-problem.targets.astype(np.float64), np.zeros(n)), equalities=0)
    return x[:d], float(x[d]) if has_b else 0.0


def _by_dual_program(problem: Stated) -> tuple[Any, float]:
    """The dual of the hinge with a free intercept, whose w has the coefficients alpha_i y_i."""
    K, y, costs = (np.asarray(each, np.float64) for each in (problem.rows, problem.y, problem.costs))
    n, targets = len(y), problem.targets.astype(np.float64)
    K = np.repeat(np.repeat(K, 1 + problem.twice, axis=0), 1 + problem.twice, axis=1)
    A = sparse.vstack([sparse.csc_array(y[None]), -sparse.eye_array(n), sparse.eye_array(n)])
    limits = np.concatenate([[0.0], np.zeros(n), costs])
    P = sparse.csc_array(np.triu(K * np.outer(y, y)))
    coefficients = y * np.clip(_interior_point(P, -targets, A, limits, equalities=1), 0.0, costs)
    if not np.isfinite(coefficients).all():
        return problem.of_rows(coefficients), 0.0
    # The best b is where a margin is 1, or a score on a wall.
    scores = K @ coefficients
    places = y * targets - scores
    values = [costs @ np.maximum(targets - y * (scores + b), 0.0) for b in places]
    return problem.of_rows(coefficients), float(places[int(np.argmin(values))])


def _interior_point(P: Any, q: Any, A: Any, limits: Any, *, equalities: int) -> Any:
    import clarabel

    settings = clarabel.DefaultSettings()
    settings.verbose = False
    cones = [clarabel.ZeroConeT(equalities)] * (equalities > 0)
    cones.append(clarabel.NonnegativeConeT(len(limits) - equalities))
    matrices = sparse.csc_matrix(P), sparse.csc_matrix(A)
    return np.array(clarabel.DefaultSolver(matrices[0], q, matrices[1], limits, cones, settings).solve().x)


def untrue(problem: Stated, proof: Any, *, with_rival: bool) -> Iterator[Fault]:
    """What is wrong with a certificate."""
    primal, dual = problem.primal(proof.w, proof.b), problem.dual(proof.alpha)
    allowed = _ROUNDED * abs(primal) + problem.rounding(proof.w)
    if not proof.primal >= primal - allowed:
        share = (primal - proof.primal) / abs(primal)
        yield Fault("untrue", share, f"primal {proof.primal!r}, and the point has {primal!r}")
    if not problem.is_feasible(proof.alpha):
        yield Fault("untrue", 1.0, "alpha is not feasible")
    summed = problem.of_rows(np.abs(proof.alpha))
    combined = summed if problem.kernel else summed @ np.abs(problem.rows)
    if not proof.dual <= max(dual, 0.0) + allowed + problem.rounding(combined):
        share = (proof.dual - dual) / abs(primal)
        yield Fault("untrue", share, f"dual {proof.dual!r}, and alpha proves {dual!r}")
    if with_rival and problem.rows.size <= _MOST_OF_RIVAL:
        other = rival(problem)
        if not proof.dual <= other * (1.0 + _ROUNDED):
            share = (proof.dual - other) / abs(primal)
            yield Fault("untrue", share, f"dual {proof.dual!r}, and another point has {other!r}")


def examine(case: Case, number: int, found: Found) -> Iterator[Fault]:
    """Fit, and what is wrong with it; it is counted as well."""
    found.fits[case.kind] += 1
    before = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = case.fitted()
        except Exception as error:
            yield Fault("crash", 0.0, f"{type(error).__name__}: {error}")
            return
    seconds = time.process_time() - before
    for warning in caught:
        if not issubclass(warning.category, (ConvergenceWarning, DoubtfulModelWarning)):
            yield Fault("warning", 0.0, str(warning.message))
    certificates = model.certificate_
    several = case.kind != "regression" and len(np.unique(case.y)) > 2
    each = list(certificates) if several else [certificates]
    found.claims[case.kind] += len(each)
    found.certified[case.kind] += sum(proof.relative_gap <= model.tol for proof in each)
    found.statuses[case.kind, model.status_.name.lower().replace("_", " ")] += 1
    if seconds > _SLOW:
        yield Fault("slow", seconds, f"{seconds:.1f} s")
    if not model.status_.certified:
        gap = max(proof.relative_gap for proof in each)
        said = model.status_.name in ("RULE_FIRED", "VALUES_ROUNDED")
        name = "rounding" if said else "uncertified"
        yield Fault(name, gap, f"{model.status_.name}, gap {gap:.2e} after {seconds:.2f} s")
    if model.status_.name != "NOT_PROVEN":
        for k, proof in enumerate(each):
            yield from untrue(stated(case, k), proof, with_rival=number % _RIVAL_OF_ONE_IN == 0)


def examine_numbers(seed: int, numbers: range) -> Found:
    """What the fits of these numbers came to."""
    start, found = time.process_time(), Found()
    for number in numbers:
        case = draw(seed, number)
        try:
            with in_time():
                faults = list(examine(case, number, found))
        except TooLong:
            faults = [Fault("slow", sceptic.LONGEST, f"more than {sceptic.LONGEST} s")]
        found.findings.update({(fault.name, case.kind) for fault in faults})
        for fault in {fault.name: fault for fault in faults}.values():
            found.shown.append((fault, f"--seed {seed} --show {number}: {fault.text}. {case.words}"))
    found.seconds = time.process_time() - start
    return found


def show(seed: int, number: int) -> None:
    """Make one fit again, and say what is found."""
    case = draw(seed, number)
    print(case.words)
    for fault in examine(case, 0, Found()):
        print(f"{fault.name}: {fault.text}")


def measure(
    minutes: float,
    seed: int,
    first: int,
    processes: int,
    tell: Callable[[str], None],
    file: Path | None = None,
) -> Batches:
    """Draw, fit and check for so many minutes, as the sceptic does."""
    return sceptic.measure(minutes, seed, first, processes, tell, file, Found, examine_numbers)


_PAGE = """\
# The search

Default fits of random problems: 6 to 2,500 rows and 1 to 1,000 columns, mostly of up to 30,000 values and
one in {rare} of up to a million; normal, of low rank, sparse, whole numbers, far from 0, rows that occur
twice, columns and data of scales up to six orders apart; classes that are separable, and labels that are
nothing but noise; C from 1e-6 to 1e6; all losses and forms of the intercept, weights, several classes;
Gaussian, polynomial, Laplacian and linear kernels; regression with and without a kernel. Each proof is
checked by code that shares nothing with the library: both values are computed again from w, b and alpha
in extended precision, and for one problem in {rivals}, where it is small, Clarabel or L-BFGS finds a point
of its own, which no lower bound may be above. (Exact arithmetic, down to the last digit, is
[the sceptic's](sceptic.md) part.)

{fits:,} fits with {claims:,} certificates were made and checked in {time} of processor time, with seed
{seeds}. {facts}. `python -m benchmarks search --seed S --show N` makes a fit again."""


def markdown(batches: Batches) -> str:
    """The whole page."""
    found = batches.total
    hours = found.seconds / 3600.0
    parts = [
        _PAGE.format(
            fits=sum(found.fits.values()),
            claims=sum(found.claims.values()),
            time=f"{hours:.1f} hours" if hours >= 1.0 else f"{60.0 * hours:.1f} minutes",
            seeds=" and ".join(map(str, batches.seeds)),
            facts=", ".join(f"{name} {value}" for name, value in machine.facts().items()),
            rare=200,
            rivals=_RIVAL_OF_ONE_IN,
        )
    ]
    lines = [["fits", *(f"{found.fits[kind]:,}" for kind in KINDS)]]
    lines += [
        [f"{name}: {words}", *(f"{found.findings[name, kind]:,}" for kind in KINDS)]
        for name, words in FINDINGS.items()
    ]
    parts += ["## What was found", table(["", *KINDS], lines)]
    for name in FINDINGS:
        texts = [text for fault, text in found.shown if fault.name == name]
        if texts:
            listed = "\n".join(f"* `{text}`" for text in texts[:_LISTED])
            worst = f", the worst {_LISTED}" if len(texts) > _LISTED else ""
            parts.append(f"### {name.capitalize()}{worst}\n\n{listed}")
    return "\n\n".join(parts) + "\n"
