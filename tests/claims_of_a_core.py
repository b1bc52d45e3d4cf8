# SPDX-License-Identifier: BSD-3-Clause
"""What the compiled core of this process claims of badly scaled problems, as a program that prints JSON.

It imports as little as it can: a process for each instruction set runs it.
"""

from __future__ import annotations

import json
import math

import numpy as np

from maxmargin import Problem, Solution, certify, core, solve
from maxmargin.kernels import Gaussian, KernelRows, Linear, Polynomial
from maxmargin.kernels.names import describe
from maxmargin.kernels.rounding import rounding_of
from maxmargin.problem.rows import Rows
from maxmargin.proof.certificate import _DualPoint, _twofold
from maxmargin.reductions.small_problems import solve_small

ROWS, COLUMNS = 9, 5
TARGETS = np.linspace(-2.0, 3.0, ROWS).tolist()
SCALES = {
    "usual": 1.0,
    "far from 0": 1e8,
    "tiny": 1e-9,
    "columns of different scales": 10.0 ** np.array([-6.0, 6.0, 0.0, 3.0, -3.0]),
}
FORMS = {
    "hinge": {"loss": "hinge", "intercept": "exact", "C": 1e4},
    "squared hinge": {"loss": "squared_hinge", "intercept": "regularised", "C": 1e-3},
    "logistic": {"loss": "logistic", "intercept": "exact", "C": 1e2},
    "perceptron": {"loss": "perceptron", "intercept": "none", "C": 1e6},
}
MORE_FORMS = {
    "regression": {"loss": "hinge", "intercept": "exact", "C": 1e2, "targets": TARGETS},
    "squared regression": {
        "loss": "squared_hinge",
        "intercept": "regularised",
        "C": 1.0,
        "targets": TARGETS,
    },
    "l1": {"loss": "squared_hinge", "intercept": "exact", "C": 1e2, "penalty": "l1"},
    "l1, logistic": {"loss": "logistic", "intercept": "regularised", "C": 1e3, "penalty": "l1"},
    "groups": {"loss": "hinge", "intercept": "none", "C": 10.0, "group": 3},
    "nu": {"loss": "hinge", "intercept": "exact", "C": 1.0, "targets": [0.0] * ROWS, "total": 3.0},
    "one class": {"loss": "hinge", "intercept": "none", "C": 1.0, "targets": [0.0] * ROWS, "total": 4.0},
}
"""Without a kernel; those with a total through one, which they are solved with."""
KERNELS = (Linear(), Polynomial(3, 0.5, 1.0), Gaussian(0.5))


def data(scale):
    random = np.random.default_rng(0)
    X, y = random.normal(size=(ROWS, COLUMNS)), np.where(np.arange(ROWS) % 2 == 0, 1.0, -1.0)
    X[:, 0] += 2.0 * y
    X = X * SCALES[scale]
    return X + (1e8 if scale == "far from 0" else 0.0), y


def stated(form, **more):
    """The problem in words of JSON."""
    return {**form, **more}


def bounds_of(problem, words):
    """Both ways of one problem, at a point that is nearly the best."""
    found = solve(problem, tol=1e-6, max_steps=40).certificate
    plain = certify(problem, Solution(w=found.w, alpha=found.alpha), tol=math.inf)
    proposed = _DualPoint(plain.alpha, plain.w_of_alpha, plain.alpha_from)
    for way, proof in (("plain", plain), ("twofold", _twofold(problem, plain, proposed))):
        yield way, words, proof


def bounds_of_small(rows, y, C, words):
    parts = np.arange(ROWS), y, np.full(ROWS, C), np.array([0, ROWS])
    lengths, error = rounding_of(rows.kernel, rows.data).simple
    every = np.arange(ROWS)
    models = solve_small(rows.block(every, every), parts, 1e-3, 0, core.ALL_CORES, lengths, error)
    yield "many", words, models.certificates[0]


def all_bounds():
    """Every claim of this process's core, with the points that it is about."""
    for scale in SCALES:
        X, y = data(scale)
        for form in FORMS.values():
            yield from bounds_of(
                Problem.of(Rows(X, check_finite=False), y, **form), stated(form, scale=scale, kernel=None)
            )
        for name, form in MORE_FORMS.items():
            with_total = "total" in form
            kernel = Polynomial(2, 1.0, 1.0) if with_total else None
            rows = Rows(X, check_finite=False) if kernel is None else KernelRows(X, kernel)
            signs = np.ones(ROWS) if name in ("groups", "one class") else y
            words = stated(form, scale=scale, kernel=None if kernel is None else describe(kernel))
            yield from bounds_of(Problem.of(rows, signs, **form), words | {"y": signs.tolist()})
        form = FORMS["hinge"]
        for kernel in KERNELS:
            words = stated(form, scale=scale, kernel=describe(kernel))
            rows = KernelRows(X, kernel, check_finite=False)
            yield from bounds_of(Problem.of(rows, y, **form), words)
            yield from bounds_of_small(rows, y, form["C"], words)


def told():
    for way, words, proof in all_bounds():
        point = {"w": proof.w.tolist(), "b": proof.b, "alpha": proof.alpha.tolist(), "shift": proof.shift}
        yield {"way": way, **words, **point, "primal": proof.primal, "dual": proof.dual}


if __name__ == "__main__":
    print(json.dumps([core.INSTRUCTION_SET, core.products_are_rounded(), *told()]))
