# SPDX-License-Identifier: BSD-3-Clause
"""No solver runs on when its time is spent, whatever its options are: every loop looks at a clock."""

from __future__ import annotations

import re
import time
from dataclasses import fields

import numpy as np
import pytest

from maxmargin import Problem, solve
from maxmargin.core import Budget
from maxmargin.kernels import Gaussian, KernelRows
from maxmargin.solvers import SOLVERS, AugmentedLagrangian
from maxmargin.solvers.second_order.cholesky import cholesky

SECONDS, AT_MOST = 0.05, 0.6  # the rest is for the last certificate, and for machines that do other things
EXTREMES = {
    "Positive": [5e-324, 1e-30, 1e30, 1.7e308],
    "NotNegative": [0.0, 1e-300, 1.7e308],
    "Natural": [0, 10**6, 2**62],
    "Count": [1, 10**6, 2**62],
    "[1, inf)": [1.0, 1.0 + 2**-52, 1.7e308],
    "(0, 2)": [5e-324, 1.9999999],
    "[0, inf]": [0.0, np.inf],
    "[2, inf)": [2, 2**62],
    "(0, 1e6]": [5e-324, 1e6],
    "bool": [True, False],
}
RUNS_OF_EACH = 6


def values_of(annotation):
    """The words of an option, and the ends of the range of its numbers."""
    words = [word for group in re.findall(r"Literal\[([^]]*)\]", annotation) for word in group.split(",")]
    found = [word.strip(" '") for word in words if "'" in word]
    return found + [value for kind, ends in EXTREMES.items() if kind in annotation for value in ends]


def options_of(kind, draw):
    """Some of the solver's options, each at an end of its range."""
    values = {field.name: values_of(str(field.type)) for field in fields(kind) if field.name != "seed"}
    names = [name for name in values if values[name] and draw.random() < 0.5]
    return {name: values[name][draw.integers(len(values[name]))] for name in names}


@pytest.mark.parametrize("name", SOLVERS)
def test_time_ends_a_run_whatever_the_options(name):
    draw, kind = np.random.default_rng(len(name)), SOLVERS[name]
    for _ in range(RUNS_OF_EACH):
        options = options_of(kind, draw)
        if options.get("batch", 1) > 1:
            options["batch"] = 2  # more than there are rows would be refused
        rows, columns = [(60, 4), (30, 60), (600, 10)][draw.integers(3)]
        X = draw.normal(size=(rows, columns))
        y = np.where(X[:, 0] + draw.normal(size=rows) > 0, 1.0, -1.0)
        problem = Problem.of(
            KernelRows(X, Gaussian(0.1)) if kind.needs_kernels else X,
            y,
            float(10.0 ** draw.integers(-3, 4)),
            loss=str(draw.choice(["hinge", "squared_hinge", "logistic"])),
            intercept=str(draw.choice(["exact", "regularised", "none"])),
        )
        solver = kind(**options)
        if solver.accepts(problem) is not None:
            problem = Problem.of(problem.rows, y)
        if solver.accepts(problem) is not None:
            continue
        before = min(time.perf_counter(), time.process_time())
        model = solve(problem, solver, tol=0.0, max_steps=10**9, max_time=SECONDS, threads=1)
        seconds = time.process_time() - before
        assert seconds < AT_MOST, (options, problem.loss.name, problem.intercept)
        assert model.certificate.dual <= model.certificate.primal * (1.0 + 1e-9)


def test_wrong_options_are_refused():
    for wrong in (-1, 0.5, np.inf, np.nan):
        with pytest.raises(ValueError, match="'raise_by' parameter of AugmentedLagrangian must be a float"):
            AugmentedLagrangian(raise_by=wrong)


@pytest.mark.parametrize("size", [3, 60])
def test_a_matrix_that_nothing_makes_definite_is_given_up(size):
    indefinite = np.full((size, size), -1.0)
    indefinite[0, 1:] = indefinite[1:, 0] = -1e300
    np.fill_diagonal(indefinite, 0.0)
    with pytest.raises(FloatingPointError, match="Scale the features"):
        cholesky(indefinite, np.zeros(size))


def test_a_long_memory_of_steps_is_not_taken_before_it_is_needed():
    X = np.random.default_rng(0).normal(size=(50, 3))
    problem = Problem.of(X, np.where(X[:, 0] > 0, 1.0, -1.0))
    solver = SOLVERS["stochastic_subgradient"](stop_threshold=1.0, stop_count=2**62)
    state = solver.init(problem, None)
    for _ in range(3):
        state = solver.step(problem, state, Budget(np.inf, 1))
    assert not solver.report(state).finished
