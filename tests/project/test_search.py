# SPDX-License-Identifier: BSD-3-Clause
"""``python -m benchmarks search``: that it finds what it looks for, and says how to see it again."""

from __future__ import annotations

import time
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from benchmarks import search, search_cases
from benchmarks.__main__ import PAGES, main
from benchmarks.sceptic import Batches, Fault
from benchmarks.search import Found, examine, examine_numbers, markdown, rival, stated, untrue
from benchmarks.search_cases import Case, draw
from maxmargin.proof.model import each_of

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(24, 3))
TWO = (X[:, 0] + RANDOM.normal(size=24) > 0).astype(np.int64)
THREE = np.argmax(X + RANDOM.normal(size=X.shape), axis=1)
WEIGHTS = RANDOM.uniform(0.5, 2.0, 24)
CASES = [
    Case("linear", "normal", X, TWO, None, {"loss": "hinge", "C": 1.0}),
    Case(
        "linear", "sparse", X, THREE, WEIGHTS, {"loss": "squared_hinge", "C": 10.0, "fit_intercept": False}
    ),
    Case(
        "linear",
        "normal",
        X,
        TWO,
        WEIGHTS,
        {"loss": "logistic", "C": 1.0, "regularize_intercept": True, "intercept_scaling": 3.0},
    ),
    Case("linear", "normal", X, THREE, None, {"loss": "logistic", "C": 0.1}),
    Case("kernel", "normal", X, TWO, WEIGHTS, {"kernel": "rbf", "gamma": 0.3, "C": 10.0}),
    Case("kernel", "normal", X, THREE, None, {"kernel": "laplacian", "gamma": 0.3, "C": 1.0}),
    Case(
        "kernel",
        "normal",
        X,
        TWO,
        None,
        {"kernel": "poly", "gamma": 0.3, "degree": 2, "coef0": 1.0, "C": 1.0},
    ),
    Case("kernel", "normal", X, THREE, WEIGHTS, {"kernel": "linear", "C": 1.0}),
    Case("regression", "normal", X, X.sum(axis=1) + WEIGHTS, WEIGHTS, {"C": 3.0, "epsilon": 0.1}),
    Case(
        "regression",
        "normal",
        X,
        X[:, 0] - WEIGHTS,
        None,
        {"C": 1.0, "epsilon": 0.0, "loss": "squared_epsilon_insensitive", "regularize_intercept": True},
    ),
    Case(
        "regression",
        "normal",
        X,
        X[:, 0] ** 2,
        WEIGHTS,
        {"C": 1.0, "epsilon": 0.2, "kernel": "rbf", "gamma": 0.3},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.words)
def test_values_on_the_wrong_side_are_found(case):
    assert list(examine(case, 0, Found())) == []
    for k, proof in enumerate(each_of(case.fitted().certificate_)):
        problem = stated(case, k)
        assert problem.primal(proof.w, proof.b) == pytest.approx(proof.primal, rel=1e-9)
        assert problem.dual(proof.alpha) == pytest.approx(proof.dual, rel=1e-6)
        assert proof.dual <= rival(problem) <= 1.01 * proof.primal
        for wrong, says in (
            (replace(proof, primal=proof.primal * (1 - 1e-6)), "and the point has"),
            (replace(proof, dual=proof.dual * 1.1), "and alpha proves"),
            (replace(proof, alpha=-proof.alpha), "alpha is not feasible"),
        ):
            assert any(says in fault.text for fault in untrue(problem, wrong, with_rival=False))
        above = replace(proof, dual=proof.primal * 1.1)
        assert any("another point has" in fault.text for fault in untrue(problem, above, with_rival=True))


def test_fits_that_fall_short_are_told_apart(monkeypatch):
    case = CASES[0]
    short = replace(case, options=case.options | {"tol": 1e-9, "max_iter": 1, "solver": "pegasos"})
    faults = {fault.name for fault in examine(short, 1, Found())}
    assert faults == {"uncertified"}
    monkeypatch.setattr(search, "_SLOW", 0.0)
    assert {fault.name for fault in examine(case, 1, Found())} == {"slow"}
    wrong = replace(case, options=case.options | {"C": -1.0})
    assert {fault.name for fault in examine(wrong, 1, Found())} == {"crash"}


def test_the_same_number_draws_the_same_problem():
    forms, kinds = set(), set()
    for number in range(1, 60):
        first, second = draw(3, number), draw(3, number)
        assert first.words == second.words
        assert np.array_equal(first.X, second.X)
        assert first.X.size <= 2 * search_cases._MOST_VALUES  # rows may occur twice
        assert len(np.unique(first.y)) >= 2
        forms.add(first.form)
        kinds.add(first.kind)
    assert len(forms) > 5
    assert kinds == set(search_cases.KINDS)


def test_what_was_found_is_kept_and_shown(tmp_path, capsys):
    found = examine_numbers(5, range(1, 4))
    assert sum(found.fits.values()) == 3
    fault = Fault("uncertified", 0.5, "gap 5e-01")
    found.findings["uncertified", "linear"] += 1
    found.shown.append((fault, "--seed 5 --show 2: gap 5e-01"))
    batches = Batches(tmp_path / "batches", Found)
    batches.add(5, 1, found)
    again = Batches(tmp_path / "batches", Found)
    assert again.total == found
    page = markdown(again)
    assert "3 fits" in page
    assert "* `--seed 5 --show 2: gap 5e-01`" in page
    assert main(["search", "--seed", "5", "--show", "1"]) == 0
    assert draw(5, 1).words in capsys.readouterr().out
    assert not PAGES["search"].failed(again)
    again.total.findings["untrue", "linear"] += 1
    assert PAGES["search"].failed(again)


@pytest.mark.parametrize("number", [3487, 5235, 6675, 7163])
def test_few_rows_of_badly_scaled_columns_are_certified(number):
    # Squares of such columns lose what singular vectors and products of rows keep.
    model = draw(1, number).fitted()
    assert model.status_.certified
    assert model.solver_.startswith(("interior_point, on the rows' singular vectors", "active_set"))


@pytest.mark.parametrize("number", [4149, 1939, 7199, 2594, 1604])
def test_regressions_on_badly_scaled_columns_are_certified(number):
    # At a large C rounding ends the other methods early.
    model = draw(31, number).fitted()
    assert model.status_.certified
    assert model.solver_.startswith("interior_point, on the rows' singular vectors")


@pytest.mark.parametrize("number", [5209, 5699, 9189, 364])
def test_regressions_with_a_singular_kernel_end_soon(number):
    before = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = draw(31, number).fitted()
    assert model.status_.name in ("CERTIFIED", "VALUES_ROUNDED")
    assert time.process_time() - before < 5.0


@pytest.mark.parametrize("number", [4114, 4709, 9069])
def test_a_tube_that_holds_every_value_leaves_nothing(number):
    # Sums of C_i that cancel would leave a regularised b of 1e-16, beside which 0 proves nothing.
    proof = draw(43, number).fitted().certificate_
    assert proof.primal == proof.dual == proof.b == 0.0
