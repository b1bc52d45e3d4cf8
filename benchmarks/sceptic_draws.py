# SPDX-License-Identifier: BSD-3-Clause
"""Random fits over many orders of magnitude: classification, regression, hard margins and paths."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.sceptic_cases import Case

KINDS = ("linear", "kernel", "problem", "regression", "hard margin", "path", "cross-validation")
_SHARES = (0.34, 0.29, 0.11, 0.1, 0.09, 0.045, 0.025)
_LONGEST_FIT = 0.02
"""Seconds after which a fit is to end by itself: most take 1 ms, and a few would go on for minutes."""
_LONGER = {20: 0.1, 500: 1.0}
"""The same for one of so many fits, so that long runs are looked into, too."""


def draw(seed: int, number: int) -> Case:
    """The fit of that number: the same seed draws the same ones."""
    random = np.random.default_rng([seed, number])
    kind = str(random.choice(KINDS, p=_SHARES))
    n = int(np.exp(random.uniform(np.log(4), np.log(40 if kind != "kernel" else 24))))
    if kind == "cross-validation":
        n = max(n, 12)
    d = int(random.integers(1, 7))
    X = drawn_values(random, n, d)
    y = drawn_numbers(random, X) if kind == "regression" else drawn_labels(random, X, kind)
    if kind == "hard margin" and random.random() < 0.6:
        # One column tells the classes apart, clearly or by next to nothing beside the others.
        apart = 4.0 * np.ptp(X[:, 0]) if random.random() < 0.5 else 10.0 ** random.uniform(-16, 0)
        X[:, 0] = X[:, 0] * (random.random() < 0.5) + np.where(y > 0, apart, 0.0)
    if random.random() < 0.12:
        X = X.astype(np.float32)
    is_sparse = bool(random.random() < 0.12)
    if is_sparse:
        X = np.where(random.random(X.shape) < 0.4, X.dtype.type(0), X)
    weights = drawn_weights(random, n) if kind not in ("cross-validation",) else None
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
    return Case(kind, X, y, options, weights, is_sparse, longest_fit(number))


def longest_fit(number: int) -> float:
    """Seconds after which a fit is to end by itself."""
    return max([_LONGEST_FIT, *(seconds for every, seconds in _LONGER.items() if number % every == 0)])


def drawn_values(random: np.random.Generator, n: int, d: int) -> NDArray[np.float64]:
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


def drawn_labels(random: np.random.Generator, X: NDArray[np.float64], kind: str) -> NDArray[np.int64]:
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


def drawn_numbers(random: np.random.Generator, X: NDArray[np.float64]) -> NDArray[np.float64]:
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


def drawn_weights(random: np.random.Generator, n: int) -> NDArray[np.float64] | None:
    style = random.random()
    if style < 0.75:
        return None
    if style < 0.85:
        return 10.0 ** random.uniform(-4, 4, size=n)
    weights = random.random(n)
    weights[random.random(n) < 0.2] = 0.0
    return weights if weights.any() else None


def drawn_cost(random: np.random.Generator) -> float:
    return 1.0 if random.random() < 0.3 else float(10.0 ** random.uniform(-8, 8))


def drawn_tol(random: np.random.Generator) -> dict[str, float]:
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
    options |= (
        {"C": drawn_cost(random), "random_state": 0, "n_jobs": 1}
        | drawn_tol(random)
        | _class_weight(random)
    )
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


def drawn_kernel(random: np.random.Generator) -> dict[str, Any]:
    kernel = str(random.choice(_KERNELS, p=_KERNEL_SHARES))
    options: dict[str, Any] = {"kernel": kernel, "C": drawn_cost(random), "random_state": 0, "n_jobs": 1}
    options |= drawn_tol(random) | _class_weight(random)
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
        options = drawn_kernel(random)
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
    options: dict[str, Any] = {"C": drawn_cost(random), "loss": str(random.choice(losses))}
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
    return options | drawn_tol(random)


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
    "kernel": drawn_kernel,
    "problem": _problem,
    "regression": _regression,
    "hard margin": _hard,
    "path": _path,
    "cross-validation": _cross_validation,
}
