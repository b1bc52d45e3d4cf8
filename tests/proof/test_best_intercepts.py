# SPDX-License-Identifier: BSD-3-Clause
"""All intercepts that are as good as the reported one: the admissible interval without free multipliers."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from drawn_problems import any_w, cases
from maxmargin import SVC, LinearSVC, Problem, Solution, certify, solve
from maxmargin.estimators.summary import fitted_summary
from maxmargin.files import ModelError, load_model
from maxmargin.kernels import KernelRows, Linear
from maxmargin.reductions.hard_margin import solve_hard_margin
from quadratic_program import objective
from written_files import parts_of, signed

# x = 1 against x = -1 with C = 1/8: both multipliers are at C, w = 2 C = 1/4, and the objective
# 1/32 + (max(0, 3/4 - b) + max(0, 3/4 + b)) / 8 is the same for all b in [-3/4, 3/4].
X = np.array([[-1.0], [1.0]])
Y = np.array([-1.0, 1.0])


@given(cases(), st.integers(0, 1000))
@settings(max_examples=200)
def test_inside_the_interval_all_are_best_and_outside_none(case, seed):
    if case.loss == "logistic":
        assume(len(set(case.y[case.costs > 0])) == 2)  # one class has no best b
    w = any_w(case, seed)
    proof = certify(case.problem(), Solution(w=w))
    low, high = proof.b_interval
    assert low <= proof.b <= high
    ours = (case.X, case.y, case.costs, case.loss, case.intercept, case.intercept_scaling)

    def value(b):
        return objective(*ours, w, b)

    best = value(proof.b)
    rounding = 1e-9 * (abs(best) + case.costs.sum())
    ends = np.clip([low, high], -1e3, 1e3)  # there are infinite ones with one class only
    for b in np.linspace(*ends, 7):
        assert value(b) == pytest.approx(best, abs=rounding)
    if case.intercept == "none":
        assert (low, high) == (0.0, 0.0)
        return
    if case.loss in ("hinge", "perceptron") and case.intercept == "exact":
        # Beyond an end the slope is at least the cost of one row.
        least = case.costs[case.costs > 0].min()
        for b in (low - 1.0, high + 1.0):
            assert np.isinf(b) or value(b) >= best + 0.9 * least
    else:
        for b in (low - 3.0, high + 3.0):
            assert np.isinf(b) or value(b) > best
    if case.intercept == "regularised" or case.loss == "logistic":
        assert low == high


@pytest.mark.parametrize("rows", [X, KernelRows(X, Linear())], ids=["linear", "kernel"])
def test_the_interval_by_hand(rows):
    proof = solve(Problem.of(rows, Y, 0.125), tol=1e-12).certificate
    assert proof.b_interval == pytest.approx((-0.75, 0.75), abs=1e-12)
    assert proof.b == pytest.approx(0.0, abs=1e-12)
    assert "Any intercept from -0.75 to 0.75 is as good as" in str(proof)


def test_a_free_support_vector_leaves_one_intercept():
    proof = solve(Problem.of(X, Y, 2.0), tol=1e-12).certificate  # w = 1, both rows on the margin
    assert proof.b_interval == (proof.b, proof.b)
    assert "Any intercept" not in str(proof)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_one_class_has_no_end_on_its_side(loss, sign):
    problem = Problem.of(np.zeros((3, 1)), np.full(3, sign), loss=loss)
    proof = certify(problem, Solution(w=np.zeros(1)))
    assert proof.b == sign
    assert proof.b_interval == ((1.0, np.inf) if sign > 0 else (-np.inf, -1.0))


def test_rows_that_do_not_count_tell_nothing():
    problem = Problem.of(np.vstack([X, [[0.0]]]), np.append(Y, 1.0), 0.125, weights=[1.0, 1.0, 0.0])
    assert problem.best_intercepts(0.25 * np.array([-1.0, 1.0, 0.0])) == (-0.75, 0.75)


def test_a_hard_margin_leaves_one_intercept():
    proof = solve_hard_margin(Problem.of(X, Y)).certificate
    assert proof.b_interval == (proof.b, proof.b)


@pytest.mark.parametrize("quick", [True, False], ids=["at once", "by steps"])
def test_each_pair_of_classes_has_its_own(quick):
    # Pairs two apart share w = 1/4 with the two points above; the outer pair has w = 1/2.
    points, labels = np.array([[-2.0], [0.0], [2.0]]), np.array([0, 1, 2])
    model = SVC(C=0.125, kernel="linear", max_time=None if quick else 100.0).fit(points, labels)
    for first, second in ((0, 1), (0, 2), (1, 2)):
        proof = model.certificate_.of(first, second)
        a, z = points[first, 0], points[second, 0]
        w = 0.125 * (a - z)
        # Both margins are below 1, so the kinks of the two rows are the ends.
        assert proof.b_interval == pytest.approx(sorted((1 - w * a, -1 - w * z)), abs=1e-9)
        assert proof.b == pytest.approx(np.mean(proof.b_interval), abs=1e-12)


@pytest.mark.parametrize("model", [SVC(C=0.125, kernel="linear"), LinearSVC(C=0.125, loss="hinge")])
def test_estimators_show_it_and_files_keep_it(model, tmp_path):
    if isinstance(model, LinearSVC):
        model.set_params(regularize_intercept=False, tol=1e-10)
    model.fit(X, Y)
    assert model.certificate_.b_interval == pytest.approx((-0.75, 0.75), abs=1e-9)
    assert "Any intercept from -0.75 to 0.75" in fitted_summary(model)
    model.save(tmp_path / "model")
    loaded = type(model).load(tmp_path / "model")
    assert loaded.certificate_.b_interval == model.certificate_.b_interval
    assert str(loaded.certificate_) == str(model.certificate_)

    texts, description, arrays = parts_of(tmp_path / "model")
    interval = description["certificates"][0].pop("b_interval")
    signed(tmp_path / "older", texts, description, arrays)
    older = type(model).load(tmp_path / "older").certificate_
    assert older.b_interval is None
    assert "Any intercept" not in str(older)
    for wrong in (interval[::-1], interval[:1], "all"):
        description["certificates"][0]["b_interval"] = wrong
        signed(tmp_path / "wrong", texts, description, arrays)
        with pytest.raises(ModelError, match=r"an interval|a list"):
            load_model(tmp_path / "wrong")


def test_an_infinite_end_survives_a_file(tmp_path):
    model = LinearSVC(loss="hinge").fit(X, Y)
    model.certificate_.__dict__["b_interval"] = (-np.inf, 1.0)
    model.save(tmp_path / "model")
    assert (
        json.loads(parts_of(tmp_path / "model")[0]["model"])["certificates"][0]["b_interval"][0] == "-inf"
    )
    assert LinearSVC.load(tmp_path / "model").certificate_.b_interval == (-np.inf, 1.0)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
@pytest.mark.parametrize("shift", [-1e5, -2000.0, -30.0, 30.0, 2000.0, 1e5])
def test_scores_that_are_all_far_from_zero(loss, shift):
    # There the logistic loss is all slope and has no curvature to go by.
    random = np.random.default_rng(0)
    scores, y = random.normal(size=200), random.choice([-1.0, 1.0], 200)
    problem = Problem.of(scores[:, np.newaxis], y, C=2.0, loss=loss, intercept="exact")
    expected = problem.best_intercept(scores) - shift
    assert problem.best_intercept(scores + shift) == pytest.approx(expected, abs=1e-9)
    moved = Problem.of(scores[:, np.newaxis] + shift, y, C=2.0, loss=loss, intercept="exact")
    assert certify(moved, Solution(w=np.ones(1))).b == pytest.approx(expected, abs=1e-9)
