# SPDX-License-Identifier: BSD-3-Clause
"""Every C between two values that are solved: what is proven of it is so."""

from __future__ import annotations

import signal

import numpy as np
import pytest

from maxmargin import Certificate, Problem, path, solve, whole_path
from maxmargin.along_costs import model_path
from maxmargin.along_costs.model_path import Segment
from maxmargin.along_costs.other_costs import combined
from maxmargin.kernels import Gaussian
from maxmargin.kernels.kernel_rows import KernelRows
from maxmargin.problem.rows import Rows
from maxmargin.tools.parameters import changed
from problems import INTERCEPTS, clouds, is_proof_of

LOSSES = ("hinge", "squared_hinge", "logistic")
LOW, HIGH = 2.0**-8, 2.0**6


def problem_of(loss="hinge", intercept="exact", weights=None, seed=0):
    X, y = clouds(n=300, d=8, seed=seed)
    return Problem.of(X, y, loss=loss, intercept=intercept, weights=weights, intercept_scaling=1.5)


def some_C(count, seed=0):
    return np.exp(np.random.default_rng(seed).uniform(np.log(LOW), np.log(HIGH), count))


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", LOSSES)
def test_every_C_is_within_tol(loss, intercept):
    weights = np.random.default_rng(1).integers(0, 4, 300).astype(float)
    problem = problem_of(loss, intercept, weights)
    tol = 1e-2
    found = whole_path(problem, LOW, HIGH, tol=tol)
    assert found.certified
    assert found.C[0] == LOW
    assert found.C[-1] == HIGH
    assert 0.0 < found.largest_gap <= tol
    for C in some_C(12):
        here, proof = problem.with_costs_times(C), found.at(C)
        assert is_proof_of(proof, here)
        assert proof.relative_gap <= found.gap_at(C) * (1 + 1e-9) + 1e-12 <= found.largest_gap * (1 + 1e-8)
        best = solve(here, tol=1e-8).certificate
        assert proof.dual <= best.primal
        assert best.dual <= proof.primal <= best.primal * (1.0 + tol)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", LOSSES)
def test_the_bound_is_one_on_the_straight_line(loss, intercept):
    """By the definition: P and D of points on the line, from certificates far from the optimum too."""
    problem = problem_of(loss, intercept)
    low, high = 0.05, 0.4
    for tol in (0.3, 1e-2, 1e-6):
        ends = path(problem, [low, high], tol=tol)
        first, second = (model.certificate for model in ends)
        segment, largest = Segment(problem, low, high, first, second), 0.0
        for s in np.linspace(0.0, 1.0, 41):
            here = problem.with_costs_times((1 - s) * low + s * high)
            w, b = (1 - s) * first.w + s * second.w, (1 - s) * first.b + s * second.b
            alpha = (1 - s) * first.alpha + s * second.alpha
            primal, dual = here.primal(w, b), here.dual(np.minimum(alpha, here.upper))
            gap, bound = (primal - dual) / primal, segment.gap_at((1 - s) * low + s * high)
            assert gap <= bound * (1 + 1e-9) + 1e-12
            assert bound <= segment.largest_gap * (1 + 1e-9)
            largest = max(largest, bound)
        assert segment.largest_gap <= largest * 1.01 + 1e-12


def point_of(problem, w, b, alpha):
    """Any two points make a certificate."""
    v = problem.rows.combine(alpha * problem.y)
    primal, dual = problem.primal(w, b), problem.dual_of(alpha, v)
    return Certificate(problem, w, b, primal, alpha, dual, "a guess", problem.margins(w, b), v)


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_the_bound_is_the_gap_itself_where_no_margin_crosses_1(intercept):
    """Losses are then linear along the line, and so is what multipliers of the hinge gain."""
    random = np.random.default_rng(2)
    X, y = random.normal(size=(40, 5)), np.where(np.arange(40) % 2, 1.0, -1.0)
    problem = Problem.of(X, y, intercept=intercept, intercept_scaling=1.5)
    low, high = 0.01, 0.03
    weights = np.where(y > 0.0, 1.0, 1.0 if intercept == "exact" else 0.5)
    ends = [
        point_of(
            problem.with_costs_times(C),
            0.05 * random.normal(size=5),
            0.0 if intercept == "none" else 0.02 * random.normal(),
            share * C * weights,
        )
        for C, share in ((low, 0.9), (high, 0.6))
    ]
    segment = Segment(problem, low, high, *ends)
    for s in (0.1, 0.5, 0.8):
        C = (1 - s) * low + s * high
        w, b, alpha = (
            (1 - s) * getattr(ends[0], of) + s * getattr(ends[1], of) for of in ("w", "b", "alpha")
        )
        there = point_of(problem.with_costs_times(C), w, b, alpha)
        assert there.margins.max() < 1.0
        least = (1 - s) * ends[0].dual + s * ends[1].dual
        assert segment.gap_at(C) == pytest.approx((there.primal - there.dual) / least, rel=1e-9)


def test_no_proof_is_worse_than_that_of_the_straight_line(monkeypatch):
    def unlucky(pair, problem, factors):
        w, b = pair[0].w, pair[0].b
        margins = problem.margins(w, b)
        return changed(
            combined(pair, problem, factors), w=w, b=b, margins=margins, primal=problem.primal(w, b)
        )

    problem = problem_of()
    found = whole_path(problem, LOW, HIGH)
    monkeypatch.setattr(model_path, "combined", unlucky)
    for C in some_C(8):
        proof = found.at(C)
        assert is_proof_of(proof, problem.with_costs_times(C))
        assert proof.relative_gap <= found.gap_at(C) * (1 + 1e-9)


def test_a_hundredth_of_tol_takes_about_ten_times_as_many_values():
    problem = problem_of()
    coarse, fine = (whole_path(problem, LOW, HIGH, tol=tol) for tol in (1e-2, 1e-4))
    assert fine.largest_gap <= 1e-4
    assert 4 * len(coarse) < len(fine) < 20 * len(coarse)


def test_a_path_of_values_that_were_given_proves_something_of_the_others():
    problem, given = problem_of("squared_hinge"), [1.0, 0.1, 0.4, 0.1]
    found = path(problem, given)
    for C in (0.1, 0.17, 0.4, 0.99, 1.0):
        assert is_proof_of(found.at(C), problem.with_costs_times(C))
        assert found.at(C).relative_gap <= found.gap_at(C) * (1 + 1e-9) + 1e-12
        assert found.gap_at(C) <= found.largest_gap * (1 + 1e-9)
    assert found.at(0.4) is found[2].certificate
    single = path(problem, [0.3])
    assert single.at(0.3) is single[0].certificate
    assert single.largest_gap == single.gap_at(0.3) == single.gaps[0]


def test_what_lies_between_takes_no_pass(monkeypatch):
    found = whole_path(problem_of(), LOW, HIGH)
    passes = []
    for name in ("scores", "combine"):
        inner = getattr(Rows, name)
        monkeypatch.setattr(Rows, name, lambda *of, inner=inner: passes.append(1) or inner(*of))
    proofs = [found.at(C) for C in some_C(20)]
    assert found.largest_gap <= 1e-2
    assert not passes
    assert all(proof.relative_gap <= 1e-2 for proof in proofs)


def test_it_ends_early_and_says_what_is_proven():
    problem = problem_of("squared_hinge")
    found = whole_path(problem, LOW, HIGH, tol=1e-4, max_time=0.0)
    assert not found.certified
    assert found.C[-1] == HIGH
    for C in some_C(5):
        proof = found.at(C)
        assert is_proof_of(proof, problem.with_costs_times(C))
        assert proof.relative_gap <= found.gap_at(C) * (1 + 1e-9)
    told = []
    stopped = whole_path(problem, LOW, HIGH, tol=1e-6, callback=lambda p: told.append(p) or len(told) > 5)
    assert len(stopped) < len(whole_path(problem, LOW, HIGH, tol=1e-6))
    assert stopped.C[-1] == HIGH
    assert stopped.largest_gap > 1e-6


def test_an_interrupt_between_two_fits_leaves_what_is_proven(monkeypatch, ctrl_c):
    problem, seen = problem_of("squared_hinge"), []
    inner = Segment.largest_gap.func

    def interrupted(segment):
        seen.append(segment)
        if len(seen) == 3:
            signal.raise_signal(signal.SIGINT)
        return inner(segment)

    with monkeypatch.context() as patched:
        patched.setattr(Segment, "largest_gap", property(interrupted))
        found = whole_path(problem, LOW, HIGH, tol=1e-4)
    assert found.C[-1] == HIGH
    assert found.largest_gap > 1e-4
    for C in some_C(5):
        assert is_proof_of(found.at(C), problem.with_costs_times(C))


def test_steps_that_are_spent_end_it_too():
    found = whole_path(problem_of(), LOW, HIGH, tol=1e-6, solver="dual_coordinate_ascent", max_steps=2)
    assert found.C[-1] == HIGH
    assert found.largest_gap > 1e-6


@pytest.mark.parametrize(
    ("low", "high", "options", "message"),
    [
        (1.0, 1.0, {}, "low must be below high"),
        (2.0, 1.0, {}, "low must be below high"),
        (0.0, 1.0, {}, "finite number above 0"),
        (1.0, np.inf, {}, "finite number above 0"),
        (0.1, 1.0, {"tol": 0.0}, "tol above 0"),
        (0.1, 1.0, {"tol": -1.0}, "tol must be a number of at least 0"),
        (0.1, 1.0, {"solver": "magic"}, "magic"),
    ],
)
def test_wrong_arguments_are_named(low, high, options, message):
    with pytest.raises(ValueError, match=message):
        whole_path(problem_of(), low, high, **options)


def test_what_it_does_not_take():
    X, y = clouds(n=60, d=3)
    seen = Problem.of(KernelRows(X, Gaussian(0.5)), y, loss="hinge")
    with pytest.raises(ValueError, match="without a kernel"):
        whole_path(seen, 0.1, 1.0)
    with pytest.raises(ValueError, match="without a kernel"):
        path(seen, [0.1, 1.0], tol=1e-2).at(0.5)
    with pytest.raises(ValueError, match=r"C must be from 0\.1 to 1\. Got 2\.0"):
        path(problem_of(), [0.1, 1.0]).at(2.0)


@pytest.mark.parametrize("max_time", [0.0, 60.0])
def test_rows_without_values_are_proven_as_far_as_is_said(max_time):
    """Multipliers of such rows add nothing to w, so that their value has no bend."""
    r = np.random.default_rng(0)
    problem = Problem.of(np.zeros((10, 3)), np.repeat([-1, 1], 5), weights=r.random(10), intercept="exact")
    found = whole_path(problem, 1e2, 1e4, tol=1e-2, max_time=max_time)
    for C in np.geomspace(1e2, 1e4, 9):
        said = min(found.largest_gap, found.gap_at(C))
        assert found.at(C).relative_gap <= said * (1.0 + 1e-9) + 1e-12
