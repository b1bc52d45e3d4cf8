# SPDX-License-Identifier: BSD-3-Clause
"""The exact arithmetic that proofs are checked with, against values known by hand and against itself."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pytest

from benchmarks.separation import separates
from maxmargin import Problem, solve
from maxmargin.independent.arithmetic import (
    Vector,
    combination,
    exponential,
    logarithm,
    root_above,
    total,
)
from maxmargin.independent.rows import (
    KernelRows,
    NotAKernel,
    PlainRows,
    TwinRows,
    kernel_value,
    refuse_unproven,
)
from maxmargin.independent.values import (
    LOSSES,
    ExactProblem,
    balanced,
    hard_margin_lower_bound,
    hard_margin_primal,
    largest_intercept,
    lower_bound,
    primal,
    relative_gap,
)
from maxmargin.kernels import ChiSquared, Gaussian, Laplacian, Linear, Polynomial, Sigmoid
from maxmargin.kernels.kernel_rows import KernelRows as LibraryKernelRows
from maxmargin.kernels.names import describe
from maxmargin.problem.regression import TUBE_LOSSES, regression_problem

FORMS = ("none", "regularised", "exact")


def fractions(numbers):
    return [Fraction(number) for number in np.asarray(numbers).tolist()]


def vectors(X):
    return [Vector.of(row) for row in np.asarray(X).tolist()]


def drawn(seed, loss, intercept, n=9, d=3):
    """The same problem for both: in float64, and exactly."""
    random = np.random.default_rng(seed)
    X, y = random.normal(size=(n, d)), np.where(np.arange(n) % 3 == 0, -1, 1)
    weights, s = random.uniform(0.2, 3.0, size=n), 0.75
    options = {"fixed_intercept": -0.5} if intercept == "none" else {}
    problem = Problem.of(
        X, y, 2.0, loss=loss, intercept=intercept, weights=weights, intercept_scaling=s, **options
    )
    exact = ExactProblem(
        PlainRows(vectors(X)),
        y.tolist(),
        fractions(problem.costs),
        loss,
        intercept,
        Fraction(s),
        Fraction(options.get("fixed_intercept", 0.0)),
    )
    return random, problem, exact


@pytest.mark.parametrize("x", [-1e-30, -0.3, -1.0, -50.0, -699.0, -5000.0])
def test_exponentials_lie_in_their_intervals(x):
    low, high = exponential(Fraction(x))
    true = Fraction(Decimal(x).exp(Context(prec=120))) if x > -1000 else 0
    assert low <= true <= high
    assert high - low <= Fraction(1, 10**70)


@pytest.mark.parametrize("x", [1e-300, 0.3, 1.0 - 2.0**-53, 1.0, 1.0 + 2.0**-52, 3e20])
def test_logarithms_lie_in_their_intervals(x):
    low, high = logarithm(Fraction(x))
    assert low <= Fraction(Decimal(x).ln(Context(prec=120))) <= high
    assert high - low <= Fraction(1, 10**70)


def test_exponentials_are_of_numbers_below_zero():
    with pytest.raises(ValueError, match="must be at most 0"):
        exponential(Fraction(1, 2))


@pytest.mark.parametrize("x", [0.0, 1e-200, 0.5, 2.0, 1e200])
def test_roots_are_bounded_from_above(x):
    root = root_above(Fraction(x))
    assert root**2 >= Fraction(x)
    assert float(root) <= math.sqrt(x) * (1 + 1e-15)


def test_vectors_are_exact():
    x, z = Vector.of([1e20, 1.0, -1e20]), Vector.of([1.0, 2.0**-60, 1.0])
    assert x.dot(z) == Fraction(1, 2**60)
    assert combination([Fraction(1, 3), Fraction(0)], [x, z])[1] == Fraction(1, 3)
    assert total([Fraction(1, 3), Fraction(1, 6), Fraction(-1, 2)]) == 0
    assert Vector({4: 0.5, 9: 0.0}) == Vector({4: Fraction(1, 2)})
    assert x != z


@pytest.mark.parametrize("intercept", FORMS)
@pytest.mark.parametrize("loss", LOSSES)
def test_the_exact_values_are_those_of_the_problem(loss, intercept):
    random, problem, exact = drawn(3, loss, intercept)
    w = random.normal(size=3)
    b = -0.5 if intercept == "none" else 0.3
    value = primal(exact, Vector.of(w.tolist()), Fraction(b))
    assert value.high - value.low <= Fraction(1, 10**60)
    assert float(value.low) == pytest.approx(problem.primal(w, b), rel=1e-13)
    alpha = random.uniform(0.0, 1.0, size=9) * problem.costs
    alpha *= np.where(problem.y > 0, 1.0 / alpha[problem.y > 0].sum(), 1.0 / alpha[problem.y < 0].sum())
    alpha *= 0.3
    bound = lower_bound(exact, fractions(alpha), value.high)
    expected = max(problem.dual(alpha), 0.0)
    assert float(bound) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("intercept", FORMS)
@pytest.mark.parametrize("loss", LOSSES)
def test_no_point_is_below_the_bound_of_any_multipliers(loss, intercept):
    for seed in range(3):
        random, problem, exact = drawn(seed, loss, intercept)
        best = solve(problem, tol=1e-3, max_steps=300).certificate if intercept != "none" else None
        points = [(random.normal(size=3), random.normal()) for _ in range(4)]
        if best is not None:
            points.append((best.w, best.b))
        values = [
            primal(exact, Vector.of(w.tolist()), Fraction(b if intercept != "none" else -0.5)).low
            for w, b in points
        ]
        # Far out of balance, and outside of their boxes.
        alpha = random.uniform(-0.2, 1.2, size=9) * problem.costs
        if best is not None:
            alpha = best.alpha + random.choice([0.0, 1e-3, 0.1]) * alpha
        assert lower_bound(exact, fractions(alpha), min(values)) <= min(values)


@pytest.mark.parametrize("loss", LOSSES)
def test_some_best_intercept_is_within_the_bound_of_the_lemma(loss):
    for seed in range(4):
        _, problem, exact = drawn(seed, loss, "exact")
        proof = solve(problem, tol=1e-6, max_steps=2000).certificate
        assert abs(proof.b) <= largest_intercept(exact, Fraction(proof.primal))
        # A point that is worse than w = 0 tells nothing more.
        far = [largest_intercept(exact, Fraction(10**power)) for power in (6, 9)]
        assert far[0] == far[1]


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
@pytest.mark.parametrize("kernel", [None, Gaussian(0.5)])
def test_the_exact_values_of_a_regression_are_those_of_the_problem(kernel, loss):
    random = np.random.default_rng(8)
    X, y, epsilon = random.normal(size=(6, 3)), 5.0 + random.normal(size=6), 0.25
    library = X if kernel is None else LibraryKernelRows(X, kernel)
    problem = regression_problem(library, y, 2.0, epsilon=epsilon, loss=loss)
    rows = PlainRows(vectors(X)) if kernel is None else KernelRows(vectors(X), describe(kernel))
    exact = ExactProblem(
        TwinRows(rows), [1, -1] * 6, fractions(problem.costs), TUBE_LOSSES[loss],
        targets=fractions(problem.targets),
    )  # fmt: skip
    w, b = random.normal(size=3 if kernel is None else 6), 4.0
    value = primal(exact, Vector.of(w.tolist()), Fraction(b))
    scores = X @ w if kernel is None else kernel(X, X) @ w
    squared = w @ w if kernel is None else w @ scores
    outside = np.maximum(np.abs(scores + b - y) - epsilon, 0.0)
    by_hand = 0.5 * squared + 2.0 * (outside if loss == "epsilon_insensitive" else outside**2).sum()
    assert float(value.low) == pytest.approx(by_hand, rel=1e-12)
    assert float(value.low) == pytest.approx(problem.primal(w, b), rel=1e-12)
    alpha = np.where(np.arange(12) % 4 < 2, 0.3, 0.0) * random.uniform(size=12)
    alpha[::2] *= alpha[1::2].sum() / alpha[::2].sum()
    bound = lower_bound(exact, fractions(alpha), value.high)
    assert float(bound) == pytest.approx(max(problem.dual(alpha), 0.0), rel=1e-10)
    if kernel is not None and loss != "epsilon_insensitive":
        return  # no solver minimises that
    best = solve(problem, tol=1e-9).certificate
    assert abs(best.b) <= largest_intercept(exact, Fraction(best.primal))
    assert lower_bound(exact, fractions(best.alpha), Fraction(best.primal)) > best.primal * (1 - 1e-6)


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_the_objective_of_zero_keeps_the_digits_of_small_targets(loss):
    y = 1e-9 * np.array([1.0, 3.0, -2.0])
    problem = regression_problem(np.eye(3), y, 1.0, epsilon=0.0, loss=loss)
    power = 1 if loss == "epsilon_insensitive" else 2
    assert problem.primal_of_zero == pytest.approx((np.abs(y) ** power).sum(), rel=1e-15)


def test_multipliers_are_balanced_by_making_some_smaller():
    _, _, exact = drawn(1, "logistic", "exact")
    alpha = [cost / 2 for cost in exact.costs]
    repaired = balanced(exact.y, alpha)
    assert sum(a * y for a, y in zip(repaired, exact.y, strict=True)) == 0
    assert all(0 <= a <= b for a, b in zip(repaired, alpha, strict=True))


def test_one_class_of_positive_cost_leaves_nothing_to_prove():
    rows = PlainRows(vectors([[1.0], [2.0]]))
    for loss in LOSSES:
        problem = ExactProblem(rows, [1, -1], fractions([1.0, 0.0]), loss)
        assert lower_bound(problem, fractions([0.5, 0.0]), Fraction(1)) == 0


def test_a_value_known_by_hand():
    rows = PlainRows(vectors([[-1.0], [1.0]]))
    problem = ExactProblem(rows, [-1, 1], fractions([0.125, 0.125]))
    value = primal(problem, Vector.of([0.25]), Fraction(0))
    assert value.low == value.high == Fraction(7, 32)
    assert lower_bound(problem, fractions([0.125, 0.125]), value.high) == Fraction(7, 32)
    assert relative_gap(value.high, Fraction(7, 32)) == 0
    assert relative_gap(Fraction(2), Fraction(1)) == Fraction(1, 2)
    assert relative_gap(Fraction(0), Fraction(-1)) is None


def test_hard_margins_known_by_hand():
    rows = PlainRows(vectors([[-1.0], [1.0], [3.0]]))
    problem = ExactProblem(rows, [-1, 1, 1], fractions([1.0, 1.0, 1.0]))
    value = hard_margin_primal(problem, Vector.of([2.0]), Fraction(0))
    assert value is not None
    assert value.low == value.high == Fraction(1, 2)
    assert hard_margin_lower_bound(problem, fractions([0.5, 0.5, 0.0])) == Fraction(1, 2)
    assert hard_margin_lower_bound(problem, fractions([3.0, 0.5, 0.0])) == Fraction(1, 2)  # put right
    assert hard_margin_lower_bound(problem, fractions([0.0, 0.5, 0.0])) == 0
    assert hard_margin_primal(problem, Vector.of([2.0]), Fraction(-2)) is None
    meeting = ExactProblem(PlainRows(vectors([[1.0], [1.0]])), [-1, 1], fractions([1.0, 1.0]))
    assert hard_margin_lower_bound(meeting, fractions([1.0, 1.0])) is None


@pytest.mark.parametrize(
    "kernel",
    [
        Linear(),
        Polynomial(3, 0.7, 0.25),
        Gaussian(0.3),
        Laplacian(0.4),
        ChiSquared(0.2),
        Sigmoid(0.3, -0.5),
        Linear() + 2.0 * Gaussian(0.3) * Polynomial(2, 1.0, 1.0),
    ],
    ids=str,
)
def test_kernel_values_are_those_of_the_kernel(kernel):
    X = np.abs(np.random.default_rng(0).normal(size=(5, 3)))
    X[2, 1] = 0.0
    described = describe(kernel)
    if not isinstance(kernel, Sigmoid):
        refuse_unproven(described)
    rows = vectors(X)
    for i, line in enumerate(kernel(X)):
        for j, value in enumerate(line):
            low, high = kernel_value(described, rows[i], rows[j])
            assert high - low <= Fraction(1, 10**65)
            assert float(low) == pytest.approx(value, rel=1e-13)
    seen = KernelRows(rows, described)
    c = [0.5, -1.0, 0.0, 2.0, -0.25]
    scores = seen.scores(Vector.of(c))
    np.testing.assert_allclose([float(score.low) for score in scores], kernel(X) @ c, rtol=1e-12)
    square = seen.squared_norm(Vector.of(c))
    assert float(square.high) == pytest.approx(c @ kernel(X) @ c, rel=1e-12)


@pytest.mark.parametrize(
    "described",
    [
        {"kernel": "precomputed"},
        {"kernel": "sigmoid", "gamma": 1.0, "coef0": 0.0},
        {"kernel": "polynomial", "degree": 3, "gamma": 1.0, "coef0": -1.0},
        {"kernel": "sum", "terms": [{"coefficient": -1.0, "factors": [{"kernel": "linear"}]}]},
        {"kernel": "sum", "terms": [{"coefficient": 1.0, "factors": [{"kernel": "precomputed"}]}]},
    ],
    ids=str,
)
def test_functions_that_need_not_be_kernels_are_refused(described):
    with pytest.raises(NotAKernel):
        refuse_unproven(described)


def test_separation_is_decided_exactly():
    tiny = [[-4, 1e-12], [4, 1e-12], [-4, -1e-12], [4, -1e-12]]
    assert separates(tiny, [1, 1, -1, -1], intercept=True)
    assert separates(tiny, [1, 1, -1, -1], intercept=False)
    corners = [[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]]
    assert not separates(corners, [1, -1, -1, 1], intercept=True)
    assert not separates([[1.0], [2.0]], [1, -1], intercept=False)
    assert separates([[1.0], [2.0]], [1, -1], intercept=True)
    # The middle of three points, moved by one last digit.
    assert not separates([[0.1, 0.1], [0.3, 0.3], [0.2, 0.2]], [1, 1, -1], intercept=True)
    assert separates([[0.1, 0.1], [0.3, 0.3], [0.2, np.nextafter(0.2, 1)]], [1, 1, -1], intercept=True)


def test_separation_agrees_with_planes_and_means():
    random = np.random.default_rng(0)
    for _ in range(10):
        X = random.normal(size=(12, 3))
        y = np.where(X @ random.normal(size=3) + 0.1 > 0, 1, -1)
        assert separates(X.tolist(), y.tolist(), intercept=True)
        inside = [*X.tolist(), X[y > 0].mean(axis=0).tolist()]
        assert not separates(inside, [*y.tolist(), -1], intercept=True)
