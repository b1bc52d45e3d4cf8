# SPDX-License-Identifier: BSD-3-Clause
"""Random problems for default fits: shapes, scales, C, weights, losses and kernels over many orders."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from maxmargin import SVC, SVR, LinearSVC, LinearSVR

KINDS = ("linear", "kernel", "regression")
_REGRESSION = 5
"""One problem in so many is one of regression, with or without a kernel."""
_SHARE_OF_KERNELS = 0.2
_MOST_VALUES, _MOST_VALUES_OF_RARE, _RARE = 30_000, 1_000_000, 200
"""Values of X, rows times columns, as a rule; and for one problem of so many."""
_MOST_ROWS_OF_KERNEL = 600
"""Rows with a kernel: all values are computed again, one by one, in extended precision."""
_KERNELS = ("rbf", "rbf", "poly", "laplacian", "linear")
_FORMS = ("normal", "normal", "low rank", "sparse", "integers", "offset")

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Case:
    """One fit: its data, and the parameters of the estimator."""

    kind: str
    form: str
    """How the rows were drawn, in words."""
    X: Matrix
    y: NDArray[Any]
    """Labels, or the values of a regression."""
    weights: Matrix | None
    options: dict[str, Any]

    @property
    def words(self) -> str:
        """What is fitted to what, in one line."""
        given = ", ".join(f"{name}={value!r}" for name, value in self.options.items())
        what = self._estimator.__name__
        rows = f"{self.X.shape[0]} x {self.X.shape[1]} {self.form}"
        classes = 0 if self.kind == "regression" else len(np.unique(self.y))
        more = [f"{classes} classes"] * (classes > 2) + ["weights"] * (self.weights is not None)
        return f"{what}({given}), {', '.join([rows, *more])}"

    @property
    def has_kernel(self) -> bool:
        """Whether the rows are seen through a kernel."""
        return "kernel" in self.options

    @property
    def _estimator(self) -> Any:
        if self.kind == "regression":
            return SVR if self.has_kernel else LinearSVR
        return SVC if self.has_kernel else LinearSVC

    def fitted(self) -> Any:
        """The estimator after its fit, on one thread."""
        model = self._estimator(**self.options, n_jobs=1)
        X = sparse.csr_matrix(self.X) if self.form.startswith("sparse") else self.X
        return model.fit(X, self.y, sample_weight=self.weights)


def draw(seed: int, number: int) -> Case:
    """The problem of this number; the same at every call."""
    random = np.random.default_rng([seed, number])
    if number % _REGRESSION == _REGRESSION - 1:
        return _regression(random)
    kind = KINDS[int(random.random() < _SHARE_OF_KERNELS)]
    form = str(random.choice(_FORMS))
    X = _rows(random, kind, form, _MOST_VALUES_OF_RARE if number % _RARE == 0 else _MOST_VALUES)
    y = _labels(random, X)
    if random.random() < 0.1:
        twice = random.integers(len(y), size=len(y))
        X, y = np.concatenate([X, X[twice]]), np.concatenate([y, y[twice]])
    spread = float(random.choice([0.0, 0.0, 1.0, 3.0]))
    if spread and kind == "linear":
        X *= 10.0 ** random.uniform(-spread, spread, X.shape[1])
        form += ", columns of different scales"
    scale = float(random.choice([0.0, 0.0, 3.0]))
    X *= 10.0 ** random.uniform(-scale, scale)
    weights = 10.0 ** random.uniform(-2.0, 2.0, len(y)) if random.random() < 0.2 else None
    options: dict[str, Any] = {"C": float(f"{10.0 ** random.uniform(-6.0, 6.0):.3g}"), "random_state": 0}
    options |= _linear_options(random) if kind == "linear" else _kernel_options(random, X)
    return Case(kind, form, X, y, weights, options)


def _regression(random: np.random.Generator) -> Case:
    """A plane or nothing, with noise, in units over six orders; some lie on the plane exactly."""
    kind = KINDS[int(random.random() < _SHARE_OF_KERNELS)]
    form = str(random.choice(_FORMS))
    X = _rows(random, kind, form, _MOST_VALUES)
    if kind == "linear" and random.random() < 0.3:
        X *= 10.0 ** random.uniform(-2.0, 2.0, X.shape[1])
        form += ", columns of different scales"
    plane = (X - X.mean(axis=0)) @ random.normal(size=X.shape[1])
    noise = float(random.choice([0.0, 0.1, 1.0, 100.0]))
    unit = 10.0 ** random.uniform(-3.0, 3.0)
    y = unit * (plane / (float(plane.std()) or 1.0) + noise * random.normal(size=len(X)))
    weights = 10.0 ** random.uniform(-2.0, 2.0, len(y)) if random.random() < 0.2 else None
    epsilon = 0.0 if random.random() < 0.1 else unit * 10.0 ** random.uniform(-3.0, 0.5)
    options: dict[str, Any] = {
        "C": float(f"{10.0 ** random.uniform(-6.0, 6.0):.3g}"),
        "epsilon": float(f"{epsilon:.3g}"),
    }
    if kind == "linear":
        options |= _linear_options(random) | {"random_state": 0}
        options["loss"] = str(random.choice(["epsilon_insensitive", "squared_epsilon_insensitive"]))
    else:
        options |= _kernel_options(random, X)
    return Case("regression", form, X, y, weights, options)


def _rows(random: np.random.Generator, kind: str, form: str, most: int) -> Matrix:
    count = int(10.0 ** random.uniform(0.8, 3.4 if kind == "linear" else math.log10(_MOST_ROWS_OF_KERNEL)))
    columns = int(10.0 ** random.uniform(0.0, 3.0 if kind == "linear" else 1.5))
    if count * columns > most:
        columns = max(1, most // count)
    if form == "low rank":
        rank = max(1, int(10.0 ** random.uniform(0.0, math.log10(max(min(count, columns), 1)))))
        return random.normal(size=(count, rank)) @ random.normal(size=(rank, columns))
    if form == "sparse":
        kept = random.random((count, columns)) < 10.0 ** random.uniform(-2.0, -0.5)
        return np.where(kept, random.exponential(size=(count, columns)), 0.0)
    if form == "integers":
        return random.integers(0, int(random.choice([2, 10, 256])), (count, columns)).astype(np.float64)
    offset = 10.0 ** random.uniform(0.0, 3.0) if form == "offset" else 0.0
    return random.normal(size=(count, columns)) + offset


def _labels(random: np.random.Generator, X: Matrix) -> NDArray[np.int64]:
    """By planes through the middle, with noise: from none, so that they separate, to nothing else."""
    classes = 2 if random.random() < 0.9 else int(random.integers(3, 5))
    scores = (X - X.mean(axis=0)) @ random.normal(size=(X.shape[1], classes))
    deviation = float(scores.std()) or 1.0
    noise = float(random.choice([0.0, 0.1, 1.0, 100.0]))
    y = np.argmax(scores / deviation + noise * random.normal(size=scores.shape), axis=1)
    y[:classes] = np.arange(classes)
    return y.astype(np.int64)


def _linear_options(random: np.random.Generator) -> dict[str, Any]:
    options: dict[str, Any] = {"loss": str(random.choice(["hinge", "squared_hinge", "logistic"]))}
    form = random.random()
    if form < 0.15:
        options["fit_intercept"] = False
    elif form < 0.4:
        options["regularize_intercept"] = True
        if form < 0.3:
            options["intercept_scaling"] = float(f"{10.0 ** random.uniform(-2.0, 2.0):.3g}")
    return options


def _kernel_options(random: np.random.Generator, X: Matrix) -> dict[str, Any]:
    options: dict[str, Any] = {"kernel": str(random.choice(_KERNELS))}
    if options["kernel"] == "linear":
        return options
    variance = float(X.var()) or 1.0
    orders = 0.5 if options["kernel"] == "poly" else 2.0
    gamma = 10.0 ** random.uniform(-orders, orders) / (X.shape[1] * variance)
    options["gamma"] = float(f"{gamma:.3g}")
    if options["kernel"] == "poly":
        options["degree"], options["coef0"] = int(random.integers(2, 5)), 1.0
    return options
