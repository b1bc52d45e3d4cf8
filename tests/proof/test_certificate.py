# SPDX-License-Identifier: BSD-3-Clause
"""The proof itself: weak duality for arbitrary points, and what must not change it.

The solvers are hardly used here: a certificate has to be right for any point, a good one or a bad one.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize_scalar

from drawn_problems import any_w, cases
from maxmargin import Intercept, Problem, RowClass, Solution, certify, solve
from maxmargin.problem.losses import LOSSES
from maxmargin.proof.certificate import feasible, longer
from problems import CASES, INTERCEPTS, every_case
from quadratic_program import objective, solve_by_quadratic_program


def any_alpha(case, seed, size=1.0):
    """Mostly in the box, some on its walls, some outside: the certificate has to repair it."""
    random = np.random.default_rng(seed)
    alpha = size * case.costs * random.uniform(-0.3, 1.3, size=len(case.y))
    return np.where(random.random(len(alpha)) < 0.2, case.costs, alpha)


def scale_of(certificate):
    return max(abs(certificate.primal), abs(certificate.dual), 1e-300)


@given(cases(), st.integers(0, 1000), st.sampled_from([0.0, 1e-3, 1.0, 1e3]))
@settings(max_examples=150)
def test_primal_is_never_below_dual(case, seed, size):
    problem = case.problem()
    w, alpha = any_w(case, seed, size), any_alpha(case, seed, min(size, 1.0))
    for solution in (
        Solution(w=w, b=0.3),
        Solution(alpha=alpha),
        Solution(w=w, b=-2.0, alpha=alpha),
    ):
        certificate = certify(problem, solution)
        assert certificate.primal >= certificate.dual - 1e-9 * scale_of(certificate)
        assert np.isfinite(certificate.primal)
        # The values belong to the points: the primal by the referee's formula ...
        ours = (case.X, case.y, case.costs, case.loss, case.intercept, case.intercept_scaling)
        by_hand = objective(*ours, certificate.w, certificate.b)
        assert certificate.primal == pytest.approx(by_hand, rel=1e-9, abs=1e-12)
        # ... the dual by the problem's, from alpha alone.
        assert certificate.dual == pytest.approx(problem.dual(certificate.alpha), rel=1e-9, abs=1e-12)
        np.testing.assert_allclose(
            certificate.w_of_alpha, (certificate.alpha * case.y) @ case.X, rtol=1e-9, atol=1e-12
        )


@given(cases(two_classes=True), st.integers(0, 1000))
@settings(max_examples=100)
def test_gap_bounds_the_true_suboptimality(case, seed):
    optimum = solve_by_quadratic_program(
        case.X, case.y, case.costs, case.loss, case.intercept, case.intercept_scaling
    )[2]
    solution = Solution(w=any_w(case, seed), alpha=any_alpha(case, seed, 0.1))
    for given_part in (solution, replace(solution, w=None), replace(solution, alpha=None)):
        certificate = certify(case.problem(), given_part)
        slack = 1e-7 * max(abs(optimum), 1e-6 * abs(certificate.dual))
        assert certificate.primal >= optimum - slack
        assert certificate.dual <= optimum + slack
        assert certificate.gap >= certificate.primal - optimum - slack


@every_case()
def test_referee_s_point_is_certified(data, loss, intercept):
    """The optimum found elsewhere gets the primal value of the optimum, and no worse intercept."""
    case = CASES[data, loss, intercept]
    w, b, optimum = case.referee
    certificate = certify(case.problem(), Solution(w=w, b=b))
    assert certificate.primal == pytest.approx(optimum, rel=1e-8)
    assert certificate.primal <= optimum * (1 + 1e-12)
    if case.loss != "hinge":
        # The margins of a smooth loss determine its multipliers, and they prove the optimum.
        assert certificate.relative_gap < 1e-5
    if case.known_optimum is not None:
        assert certificate.primal == pytest.approx(case.known_optimum, rel=1e-8)


# ---- what must not matter ------------------------------------------------------------------------


def pieces(certificate):
    return np.array([certificate.primal, certificate.dual])


@given(cases(), st.integers(0, 1000))
@settings(max_examples=60)
def test_order_of_rows_does_not_matter(case, seed):
    solution = Solution(w=any_w(case, seed), alpha=any_alpha(case, seed))
    permutation = np.random.default_rng(seed).permutation(len(case.y))
    weights = None if case.weights is None else case.weights[permutation]
    shuffled = case.with_(X=case.X[permutation], y=case.y[permutation], weights=weights)
    before = certify(case.problem(), solution)
    after = certify(shuffled.problem(), replace(solution, alpha=solution.alpha[permutation]))
    np.testing.assert_allclose(pieces(after), pieces(before), rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(after.alpha, before.alpha[permutation], rtol=1e-9, atol=1e-12)


@given(cases(), st.integers(0, 1000), st.sampled_from([1e-3, 0.5, 8.0, 300.0]))
@settings(max_examples=60)
def test_scaling_of_the_data(case, seed, s):
    # For x -> s x, C -> C / s^2: with w -> w / s and alpha -> alpha / s^2 every margin stays as it
    # was and every term of both objectives is divided by s^2. The constant feature of a regularised
    # intercept has to be scaled along, so that b stays as it was too.
    scaled = case.with_(X=s * case.X, C=case.C / s**2, intercept_scaling=s * case.intercept_scaling)
    w, alpha = any_w(case, seed), any_alpha(case, seed)
    before = certify(case.problem(), Solution(w=w, alpha=alpha))
    after = certify(scaled.problem(), Solution(w=w / s, alpha=alpha / s**2))
    np.testing.assert_allclose(s**2 * pieces(after), pieces(before), rtol=1e-8, atol=1e-10)


@given(cases(), st.integers(0, 1000))
@settings(max_examples=60)
def test_a_row_given_twice_is_a_row_of_weight_two(case, seed):
    case = case.with_(weights=None)
    random = np.random.default_rng(seed)
    times = random.integers(1, 4, size=len(case.y))
    rows = np.repeat(np.arange(len(case.y)), times)
    repeated = case.with_(X=case.X[rows], y=case.y[rows])
    weighted = case.with_(weights=times.astype(np.float64))
    w, share = any_w(case, seed), np.clip(any_alpha(case, seed), 0.0, case.C)
    one = certify(weighted.problem(), Solution(w=w, alpha=times * share))
    other = certify(repeated.problem(), Solution(w=w, alpha=share[rows]))
    np.testing.assert_allclose(pieces(one), pieces(other), rtol=1e-9, atol=1e-11)


@given(cases(), st.integers(0, 1000))
@settings(max_examples=60)
def test_sparse_is_dense(case, seed):
    solution = Solution(w=any_w(case, seed), alpha=any_alpha(case, seed))
    dense = certify(case.problem(), solution)
    stored = certify(case.problem("CSC float64 int32"), solution)
    np.testing.assert_allclose(pieces(stored), pieces(dense), rtol=1e-11, atol=1e-13)
    assert stored.b == pytest.approx(dense.b, rel=1e-9, abs=1e-9)


@given(cases(), st.integers(0, 1000))
@settings(max_examples=60)
def test_known_never_worsens(case, seed):
    problem = case.problem()
    known = None
    for k in range(4):
        fresh = certify(problem, Solution(w=any_w(case, seed + k), alpha=any_alpha(case, seed + k)))
        kept = certify(
            problem, Solution(w=fresh.w, b=fresh.b, alpha=any_alpha(case, seed + k)), known=known
        )
        if known is not None:
            assert kept.primal == min(known.primal, fresh.primal)
            assert kept.dual == max(known.dual, fresh.dual)
        # Each value still belongs to the point beside it.
        assert kept.primal == pytest.approx(problem.primal(kept.w, kept.b), rel=1e-12)
        assert kept.dual == pytest.approx(problem.dual(kept.alpha), rel=1e-9, abs=1e-12)
        known = kept


# ---- the parts -----------------------------------------------------------------------------------


@given(cases(), st.integers(0, 1000))
@settings(max_examples=150)
def test_best_intercept_is_the_best(case, seed):
    problem = case.problem()
    scores = case.X @ any_w(case, seed)
    b = problem.best_intercept(scores)
    if case.intercept == "none":
        assert b == 0.0
        return
    if case.loss == "logistic" and case.intercept == "exact":
        # With one class only there is no best b, just a better one further out.
        assume(len(set(case.y[case.costs > 0])) == 2)
    ours = (case.X, case.y, case.costs, case.loss, case.intercept, case.intercept_scaling)
    w = any_w(case, seed)

    def value(other):
        return objective(*ours, w, other)

    # Everywhere else is worse: at every kink, far out, and where a general search ends.
    candidates = [*(case.y - scores), *-scores, *np.linspace(-30.0, 30.0, 121)]
    searched = minimize_scalar(value, bracket=(-1.0, 1.0), options={"maxiter": 200})
    best = min(value(other) for other in [*candidates, searched.x])
    assert value(b) <= best + 1e-9 * abs(best) + 1e-13


@pytest.mark.parametrize("C", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_best_intercept_of_very_unequal_classes(loss, C):
    # One row against 999 with w = 0; the best b of the logistic loss is log 999, whatever C is.
    y = np.where(np.arange(1000) == 0, -1.0, 1.0)
    problem = Problem.of(np.zeros((1000, 1)), y, C, loss=loss, intercept="exact")
    b = problem.best_intercept(np.zeros(1000))
    best = min(problem.primal(np.zeros(1), other) for other in np.linspace(-3.0, 10.0, 1301))
    assert problem.primal(np.zeros(1), b) <= best * (1 + 1e-9)


@given(cases(), st.integers(0, 1000), st.sampled_from([0.01, 1.0, 100.0]))
@settings(max_examples=100)
def test_feasible_is_in_the_box_and_balanced(case, seed, size):
    problem = case.problem()
    before = any_alpha(case, seed, size)
    given_alpha = before.copy()
    alpha = feasible(problem, before)
    np.testing.assert_array_equal(before, given_alpha)  # the solver's array is not ours to change
    assert np.all(alpha >= 0)
    assert np.all(alpha <= problem.upper)
    assert np.isfinite(problem.dual(alpha))
    if case.intercept == "exact":
        assert abs(alpha @ case.y) <= 1e-12 * max(alpha.sum(), 1e-300)
    else:
        np.testing.assert_array_equal(alpha, np.clip(before, 0.0, problem.upper))
    # Nothing to repair: nothing changed.
    again = feasible(problem, alpha)
    np.testing.assert_allclose(again, alpha, rtol=1e-12, atol=0.0)


def test_feasible_takes_free_multipliers_before_bounded_ones():
    problem = Problem.of(np.eye(4), [1.0, 1.0, 1.0, -1.0], 1.0, intercept="exact")
    # 0.5 too much on the positive side: the free ones give it up, the bounded one stays.
    alpha = feasible(problem, np.array([1.0, 0.4, 0.6, 1.0]))
    np.testing.assert_allclose(alpha, [1.0, 0.0, 0.0, 1.0], atol=1e-15)
    alpha = feasible(problem, np.array([1.0, 1.0, 0.5, 1.0]))
    np.testing.assert_allclose(alpha, [0.5, 0.5, 0.0, 1.0], atol=1e-15)


def test_feasible_where_one_class_weighs_next_to_nothing():
    # The heavy class has to give up almost all; what is left must balance in its own units, since an
    # imbalance e makes the bound wrong by |b e|, and here the whole objective is of that size.
    random = np.random.default_rng(0)
    y = np.where(np.arange(30) < 29, 1.0, -1.0)
    weights = np.where(y > 0, 1.0, 1e-10)
    problem = Problem.of(random.normal(size=(30, 2)), y, weights=weights, intercept="exact")
    for _ in range(20):
        alpha = feasible(problem, weights * random.uniform(0.1, 1.0, 30))
        assert abs(alpha @ y) <= 1e-12 * alpha.sum()
        certificate = certify(problem, Solution(w=np.zeros(2), alpha=alpha))
        assert certificate.dual <= certificate.primal * (1 + 1e-12)


def test_multipliers_that_are_not_numbers_prove_nothing_and_break_nothing():
    problem = Problem.of(np.eye(3), [1.0, -1.0, 1.0], 1.0)
    certificate = certify(problem, Solution(alpha=np.array([np.nan, 1.0, np.inf])))
    assert np.isfinite(certificate.dual)
    assert certificate.dual <= certificate.primal


def test_neither_w_nor_alpha_is_refused():
    with pytest.raises(ValueError, match="w, alpha, or both"):
        certify(Problem.of(np.eye(2), [1.0, -1.0]), Solution())


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_perceptron_loss_is_solved_by_zero(intercept):
    X = np.random.default_rng(0).normal(size=(20, 3))
    problem = Problem.of(X, np.where(X[:, 0] > 0, 1.0, -1.0), loss="perceptron", intercept=intercept)
    certificate = certify(problem, Solution(w=np.zeros(3)))
    assert certificate.primal == certificate.dual == 0.0
    assert certificate.relative_gap == 0.0
    assert solve(problem, tol=0.0).status.certified


# ---- classes of rows -----------------------------------------------------------------------------

# Two dimensions, w = (1, 0), b = 0, C = 1: the second column only keeps rows apart. The multipliers
# satisfy sum alpha_i y_i = 0 and sum alpha_i y_i x_i = (1, 0), so this is the optimum.
ROWS = np.array(
    [
        [3.0, 1.0],  # y = 1, margin 3: beyond the margin
        [1.0, 0.0],  # y = 1, margin 1: on it
        [0.5, 0.0],  # y = 1, margin 0.5: inside
        [-0.5, 0.0],  # y = 1, margin -0.5: on the wrong side
        [-2.0, 5.0],  # y = -1, margin 2: beyond
        [-1.0, 0.0],  # y = -1, margin 1: on it
        [0.0, 0.0],  # y = -1, margin 0: on the boundary itself, slack 1
        [-0.25, 0.0],  # y = -1, margin 0.25: inside
    ]
)
LABELS = np.array([1.0, 1.0, 1.0, 1.0, -1.0, -1.0, -1.0, -1.0])
ALPHA = np.array([0.0, 0.375, 1.0, 1.0, 0.0, 0.375, 1.0, 1.0])
CLASSES = [
    RowClass.NOT_SUPPORT_VECTOR,
    RowClass.ON_MARGIN,
    RowClass.INSIDE_MARGIN,
    RowClass.MISCLASSIFIED,
    RowClass.NOT_SUPPORT_VECTOR,
    RowClass.ON_MARGIN,
    RowClass.MISCLASSIFIED,
    RowClass.INSIDE_MARGIN,
]


@pytest.fixture
def by_hand():
    problem = Problem.of(ROWS, LABELS, 1.0, intercept="exact")
    return certify(problem, Solution(alpha=ALPHA))


def test_example_by_hand_is_optimal(by_hand):
    np.testing.assert_allclose(by_hand.w, [1.0, 0.0], atol=1e-15)
    assert by_hand.b == pytest.approx(0.0, abs=1e-15)
    assert by_hand.primal == pytest.approx(0.5 + 0.5 + 1.5 + 1.0 + 0.75)
    assert by_hand.gap <= 1e-13
    assert by_hand.kkt_violation <= 1e-14


def test_row_classes_of_004_and_003(by_hand):
    assert list(by_hand.row_classes) == CLASSES
    assert list(by_hand.support) == [1, 2, 3, 5, 6, 7]
    for row_class, alpha, margin in zip(by_hand.row_classes, by_hand.alpha, by_hand.margins, strict=True):
        # 003's table, both ways round.
        if alpha == 0:
            assert margin >= 1
            assert row_class == RowClass.NOT_SUPPORT_VECTOR
        elif alpha < 1:
            assert margin == 1
            assert row_class == RowClass.ON_MARGIN
        else:
            assert margin <= 1
            assert row_class in (RowClass.INSIDE_MARGIN, RowClass.MISCLASSIFIED)
        # 004's consequences: slack above 1 is a misclassification.
        if 1 - margin > 1:
            assert row_class == RowClass.MISCLASSIFIED


def test_report_counts_the_classes(by_hand):
    text = str(by_hand)
    assert "6 of 8 rows are support vectors: 2 on the margin, 2 inside it, 2 misclassified" in text
    assert "relative gap" in text


def test_kkt_violation_is_felt(by_hand):
    # At w = (1.1, 0) the multipliers are still those of w = (1, 0).
    problem = by_hand.problem
    moved = certify(problem, Solution(w=np.array([1.1, 0.0]), alpha=ALPHA))
    assert moved.kkt_violation >= 0.1 - 1e-12
    assert moved.gap > 0


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_row_classes_by_margin_where_there_is_no_wall(loss):
    problem = Problem.of(ROWS, LABELS, 1.0, loss=loss, intercept="none")
    certificate = certify(problem, Solution(w=np.array([1.0, 0.0])))
    assert problem.intercept is Intercept.NONE
    expected = np.where(certificate.margins < 1, RowClass.INSIDE_MARGIN, RowClass.NOT_SUPPORT_VECTOR)
    expected[certificate.margins <= 0] = RowClass.MISCLASSIFIED
    np.testing.assert_array_equal(certificate.row_classes, expected)


def test_relative_gap_of_a_worthless_bound():
    problem = Problem.of(np.eye(2), [1.0, -1.0], 1.0, intercept="none")
    certificate = certify(problem, Solution(w=np.zeros(2), alpha=np.zeros(2)))
    assert (certificate.primal, certificate.dual) == (pytest.approx(2.0, rel=1e-14), 0.0)
    assert certificate.gap == certificate.primal >= 2.0
    assert certificate.relative_gap == 1.0


def test_sparse_rows_that_hold_nothing():
    problem = Problem.of(sparse.csr_matrix((3, 2)), [1.0, -1.0, 1.0], 0.5, intercept="none")
    certificate = certify(problem, Solution(alpha=np.full(3, 0.5)))
    assert 1.5 * (1 - 1e-14) <= certificate.dual <= 1.5 <= certificate.primal <= 1.5 * (1 + 1e-14)


def test_balance_is_restored_without_moving_bounded_multipliers():
    """Rounding of the balance must not take a row off its bound: it would count as on the margin."""
    generator = np.random.default_rng(0)
    y = np.where(np.arange(60) < 25, 1.0, -1.0)
    problem = Problem.of(0.1 * generator.normal(size=(60, 3)), y, 0.7)
    alpha = np.full(60, 0.7)
    alpha[:2] = 0.5, 0.6  # free, of the lighter class: they can take 0.3
    alpha[25:28] = 0.1, 0.2, 0.3  # free, of the heavier class: they can give up 0.6
    alpha[50:] = 0.0
    certificate = certify(problem, Solution(alpha=alpha))
    assert abs(certificate.alpha @ y) <= 1e-14
    assert np.array_equal(certificate.alpha[2:25], alpha[2:25])
    assert np.array_equal(certificate.alpha[28:], alpha[28:])
    assert np.count_nonzero(certificate.row_classes == RowClass.ON_MARGIN) <= 5


def nearly_separated(intercept, C=1e4):
    """Rows with a wide gap between the classes, and multipliers of a run that was cut short."""
    random = np.random.default_rng(5)
    X = random.normal(size=(400, 6))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    X[:, 0] += y
    problem = Problem.of(X, y, C, intercept=intercept)
    return X, problem, solve(problem, "dual_coordinate_ascent", tol=0.0, max_steps=8).certificate.alpha


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_the_length_of_w_is_the_best_one(intercept):
    X, problem, alpha = nearly_separated(intercept)
    w = problem.rows.combine(feasible(problem, alpha) * problem.y)
    b = problem.best_intercept(problem.rows.scores(w))
    margins = problem.margins(w, b)
    found, best_b, best_margins = longer(problem, w, b, margins)
    factor = float(found @ w / (w @ w))
    assert factor > 1.0
    np.testing.assert_allclose(found, factor * w, rtol=1e-12)
    np.testing.assert_allclose(best_margins, problem.margins(found, best_b), rtol=1e-9, atol=1e-9)

    def primal(s):  # of s (w, b)
        return objective(X, problem.y, problem.costs, "hinge", intercept, 1.0, s * w, s * b)

    searched = minimize_scalar(
        primal, bounds=(0.9, 3.0 * factor), method="bounded", options={"xatol": 1e-12}
    )
    assert primal(factor) <= searched.fun * (1 + 1e-9)
    certificate = certify(problem, Solution(alpha=alpha))
    assert certificate.primal <= primal(factor) * (1 + 1e-9) < 0.9 * primal(1.0)
    assert certificate.primal == pytest.approx(problem.primal(certificate.w, certificate.b), rel=1e-9)
    # A w that is given is judged as it is, unless its length is left open.
    assert certify(problem, Solution(w=w)).primal == pytest.approx(primal(1.0), rel=1e-9)
    open_length = certify(problem, Solution(w=w, alpha=alpha, any_length=True))
    assert open_length.primal == pytest.approx(certificate.primal, rel=1e-9)


def test_what_is_known_stays_where_a_solution_is_not_finite():
    _, problem, alpha = nearly_separated("exact")
    known = certify(problem, Solution(alpha=alpha))
    lost = certify(problem, Solution(w=np.full(6, np.nan), alpha=alpha), known=known)
    assert (lost.primal, lost.dual) == (known.primal, known.dual)
    assert np.array_equal(lost.w, known.w)


def test_the_length_stays_where_losses_are_a_part_of_the_optimum():
    random = np.random.default_rng(6)
    X = random.normal(size=(300, 5))
    y = np.where(X[:, 0] + random.normal(size=300) > 0, 1.0, -1.0)
    certificate = solve(Problem.of(X, y, 1.0), "dual_coordinate_ascent", tol=1e-3).certificate
    again = certify(certificate.problem, Solution(alpha=certificate.alpha))
    assert again.w is again.w_of_alpha


def test_rows_are_counted_by_their_margins_where_a_fit_was_cut_short():
    """Multipliers of a few steps are zero on most rows, also on those that the plane gets wrong."""
    generator = np.random.default_rng(0)
    X, y = generator.normal(size=(200, 3)), np.where(np.arange(200) % 2 == 0, 1.0, -1.0)
    alpha = np.where(np.arange(200) < 6, 0.5, 0.0)
    certificate = certify(Problem.of(X, y, 1.0), Solution(w=np.array([1.0, -2.0, 0.5]), alpha=alpha))
    wrong, inside = certificate.margins <= 0, (certificate.margins > 0) & (certificate.margins < 0.99)
    assert wrong.sum() > 50
    assert np.array_equal(certificate.row_classes == RowClass.MISCLASSIFIED, wrong)
    assert np.array_equal(certificate.row_classes == RowClass.INSIDE_MARGIN, inside)
    support = np.count_nonzero(certificate.alpha > 0)
    assert f"{support} of 200 rows are support vectors. Counted by margins:" in str(certificate)
    assert f"{wrong.sum()} misclassified." in str(certificate)
