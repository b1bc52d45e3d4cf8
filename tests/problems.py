# SPDX-License-Identifier: BSD-3-Clause
"""Small problems with a known optimum, the easy ones and the nasty ones, and the layouts of their data.

All values are representable in float32, so that every layout holds exactly the same problem.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest
from scipy import sparse

from combinations import every_pair
from maxmargin import Problem
from quadratic_program import solve_by_quadratic_program

INTERCEPTS = ("none", "regularised", "exact")


@dataclass(frozen=True, eq=False)
class Case:
    """A problem before it is laid out in memory."""

    name: str
    X: np.ndarray
    y: np.ndarray
    C: float = 1.0
    weights: np.ndarray | None = None
    loss: str = "hinge"
    intercept: str = "exact"
    intercept_scaling: float = 1.0
    penalty: str = "l2"
    known_optimum: float | None = None
    """The best value, where it can be found by hand."""

    @property
    def costs(self):
        weights = np.ones(len(self.y)) if self.weights is None else self.weights
        return self.C * weights

    @cached_property
    def optimum(self) -> float:
        if self.known_optimum is not None:
            return self.known_optimum
        return self.referee[2]

    @cached_property
    def referee(self):
        """``(w, b, objective)`` by the independent quadratic program."""
        return solve_by_quadratic_program(
            self.X,
            self.y,
            self.costs,
            self.loss,
            self.intercept,
            self.intercept_scaling,
            penalty=self.penalty,
        )

    def problem(self, layout="dense C float64") -> Problem:
        return Problem.of(
            LAYOUTS[layout](self.X),
            self.y,
            self.C,
            loss=self.loss,
            intercept=self.intercept,
            weights=self.weights,
            intercept_scaling=self.intercept_scaling,
            penalty=self.penalty,
        )

    def with_(self, **changes) -> Case:
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return Case(**(fields | {"known_optimum": None} | changes))


def _compressed(kind, value_type, index_type):
    def lay_out(X):
        matrix = kind(X.astype(value_type))
        matrix.indices = matrix.indices.astype(index_type)
        matrix.indptr = matrix.indptr.astype(index_type)
        return matrix

    return lay_out


LAYOUTS = {
    "dense C float64": lambda X: np.ascontiguousarray(X, np.float64),
    "dense C float32": lambda X: np.ascontiguousarray(X, np.float32),
    "dense F float64": lambda X: np.asfortranarray(X, np.float64),
    "dense F float32": lambda X: np.asfortranarray(X, np.float32),
    "CSR float64 int32": _compressed(sparse.csr_matrix, np.float64, np.int32),
    "CSR float32 int32": _compressed(sparse.csr_matrix, np.float32, np.int32),
    "CSR float64 int64": _compressed(sparse.csr_array, np.float64, np.int64),
    "CSR float32 int64": _compressed(sparse.csr_array, np.float32, np.int64),
    "CSC float64 int32": _compressed(sparse.csc_matrix, np.float64, np.int32),
    "CSC float32 int64": _compressed(sparse.csc_array, np.float32, np.int64),
}


def clouds(n=40, d=4, *, distance=1.0, positive_share=0.5, seed=0):
    """Two overlapping clouds of points, some of whose values are zero."""
    random = np.random.default_rng(seed)
    y = np.where(np.arange(n) < positive_share * n, 1.0, -1.0)
    X = random.normal(size=(n, d)) + distance / 2 * y[:, None]
    X[random.random((n, d)) < 0.2] = 0.0
    return X.astype(np.float32).astype(np.float64), y


def _hard_data():
    X, y = clouds()
    yield Case("overlapping clouds", X, y)
    yield Case("separable clouds", *clouds(distance=6.0, seed=1))
    half = X[:20]
    yield Case(
        "duplicate rows with opposite labels",
        np.vstack([half, half[:5], half]),
        np.concatenate([y[:20], -np.ones(5), np.where(np.arange(20) % 2, 1.0, -1.0)]),
    )
    empty = X.copy()
    empty[3] = 0.0
    empty[30] = 0.0
    yield Case("empty rows", empty, y)
    yield Case("zero column", np.column_stack([X[:, :2], np.zeros(len(X)), X[:, 2:]]), y)
    yield Case("one feature", X[:, :1], y)
    yield Case("unbalanced classes", *clouds(n=60, positive_share=0.05, seed=2), C=0.5)
    weights = np.random.default_rng(3).integers(0, 4, len(y)).astype(np.float64)
    yield Case("weights with zeros", X, y, C=0.3, weights=weights)
    scales = np.float32([1e-3, 1.0, 30.0, 1e3]).astype(np.float64)
    scaled = (X * scales).astype(np.float32).astype(np.float64)
    yield Case("features over orders of magnitude", scaled, y, C=0.01)
    yield Case("C of 1e-6", X, y, C=1e-6)
    yield Case("C of 1e4", X, y, C=1e4)
    shifted = (X + 3.0).astype(np.float32).astype(np.float64)
    yield Case("wide intercept", shifted, y, intercept_scaling=5.0)


def _by_hand():
    # x = 1 against x = -1. The objective is 1/2 w^2 + 2 C loss(w), for b = 0 by symmetry.
    X, y = np.array([[1.0], [-1.0]]), np.array([1.0, -1.0])
    for intercept in INTERCEPTS:
        ours = {"X": X, "y": y, "intercept": intercept}
        yield Case("two points apart", **ours, C=2.0, known_optimum=0.5)  # w = 1
        yield Case("two points, soft", **ours, C=0.125, known_optimum=0.21875)  # w = 2 C
        yield Case(  # w = 4 C / (1 + 4 C)
            "two points, squared", **ours, C=0.75, loss="squared_hinge", known_optimum=0.375
        )
    # Both labels at one place: by symmetry w = 0 and b = 0, and each row costs loss(0).
    for loss, value in {"hinge": 1.0, "squared_hinge": 1.0, "logistic": np.log(2.0)}.items():
        yield Case(
            "contradiction",
            np.array([[2.0, -1.0]] * 4),
            np.array([1.0, -1.0, 1.0, -1.0]),
            C=0.7,
            loss=loss,
            known_optimum=4 * 0.7 * value,
        )


HARD_DATA = {case.name: case for case in _hard_data()}
CASES = {
    (case.name, case.loss, case.intercept): case
    for case in (
        *_by_hand(),
        *(
            case.with_(loss=loss, intercept=intercept)
            for case in HARD_DATA.values()
            for loss in ("hinge", "squared_hinge", "logistic")
            for intercept in INTERCEPTS
        ),
    )
}


def every_case(possible=None, /, **axes):
    """Parametrise a test by ``data``, ``loss`` and ``intercept``, the key of a case, and by further axes.

    Every two values meet in some case, as far as there is one and ``possible`` is true of it.
    """

    def exists(data, loss, intercept, **others):
        if (data, loss, intercept) not in CASES:
            return False
        return possible is None or possible(CASES[data, loss, intercept], **others)

    data, losses, intercepts = (dict.fromkeys(values) for values in zip(*CASES, strict=True))
    return every_pair(exists, data=data, loss=losses, intercept=intercepts, **axes)


def is_proof_of(certificate, problem):
    """Whether the numbers of a certificate are those of its points, and these are feasible."""
    alpha = certificate.alpha
    assert certificate.primal == pytest.approx(problem.primal(certificate.w, certificate.b), rel=1e-9)
    assert np.all(alpha >= 0)
    assert np.all(alpha <= problem.upper)
    if problem.intercept == "exact":
        assert abs(alpha @ problem.y) <= 1e-12 * max(alpha.sum(), 1e-300)
    w = problem.rows.combine(alpha * problem.y)
    np.testing.assert_allclose(certificate.w_of_alpha, w, rtol=1e-9, atol=1e-9 * np.abs(w).max(initial=0.0))
    assert certificate.dual <= problem.dual_of(alpha, w) + 1e-9 * abs(certificate.primal)
    assert certificate.dual <= certificate.primal
    margins = problem.margins(certificate.w, certificate.b)
    np.testing.assert_allclose(certificate.margins, margins, rtol=1e-9, atol=1e-9)
    return True
