# SPDX-License-Identifier: BSD-3-Clause
"""The hard margin: the largest one, proven from both sides, or the proof that there is none."""

from __future__ import annotations

import contextlib
import json
import math
import pickle
import time
from fractions import Fraction

import clarabel
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from maxmargin import (
    HardMarginCertificate,
    InseparabilityProof,
    InseparableError,
    LinearSVC,
    Problem,
    RowClass,
    Solution,
    Status,
    certify_hard_margin,
    solve_hard_margin,
)
from maxmargin.core import Budget
from maxmargin.files import load_model, save_model
from maxmargin.proof.model import Certificates
from maxmargin.reductions.ladders import solve_each
from problems import INTERCEPTS, LAYOUTS, clouds

SQUARE = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
XOR = np.array([1.0, -1.0, -1.0, 1.0])

every_intercept = pytest.mark.parametrize("intercept", INTERCEPTS)


def conic_program(P, q, A, b, cones):
    options = clarabel.DefaultSettings()
    options.verbose = False
    options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = 1e-9
    answer = clarabel.DefaultSolver(
        sparse.csc_matrix(P), q, sparse.csc_matrix(A), b, cones, options
    ).solve()
    assert answer.status == clarabel.SolverStatus.Solved
    return np.array(answer.x)


def with_constant(X, intercept, s):
    """The rows as those of a problem without intercept, where b is regularised."""
    return np.column_stack([X, np.full(len(X), s)]) if intercept == "regularised" else X


def least_norm(X, y, intercept, s=1.0):
    """The least |w| with every functional margin at least 1 (002, 003): a quadratic program."""
    Z = with_constant(X, intercept, s)
    exact = int(intercept == "exact")
    d = Z.shape[1]
    P = np.diag(np.append(np.ones(d), np.zeros(exact)))
    A = -y[:, None] * np.column_stack([Z, np.ones((len(y), exact))])
    v = conic_program(P, np.zeros(d + exact), A, -np.ones(len(y)), [clarabel.NonnegativeConeT(len(y))])
    return np.linalg.norm(v[:d])


def largest_margin(X, y, intercept, s=1.0):
    """The largest gamma with y_i (<u, x_i> + c) >= gamma and |u| <= 1 (002): a conic program."""
    Z = with_constant(X, intercept, s)
    exact = int(intercept == "exact")
    n, d = Z.shape
    size = d + exact + 1  # (u, c, gamma)
    rows = np.column_stack([-y[:, None] * np.column_stack([Z, np.ones((n, exact))]), np.ones(n)])
    ball = np.zeros((d + 1, size))
    ball[1:, :d] = -np.eye(d)
    b = np.concatenate([np.zeros(n), [1.0], np.zeros(d)])
    cones = [clarabel.NonnegativeConeT(n), clarabel.SecondOrderConeT(d + 1)]
    q = np.append(np.zeros(size - 1), -1.0)
    return conic_program(np.zeros((size, size)), q, np.vstack([rows, ball]), b, cones)[-1]


def separable(n=60, d=5, *, margin=0.3, seed=0):
    """Points at least so far from a hyperplane; through 0, so that all three intercepts have it."""
    random = np.random.default_rng(seed)
    u = random.normal(size=d)
    u /= np.linalg.norm(u)
    X = random.normal(size=(n, d))
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    X += np.outer(y * (margin + random.exponential(size=n)) - X @ u, u)
    return X.astype(np.float32).astype(np.float64), y


def assert_right(model, X, y, intercept, s=1.0, tol=1e-4):
    """All that the certificate says, computed again in plain NumPy."""
    proof = model.certificate
    assert isinstance(proof, HardMarginCertificate)
    assert model.status is Status.CERTIFIED
    assert proof.relative_gap <= tol
    w, b = proof.w, proof.b
    margins = y * (X @ w + b)
    own = b / s if intercept == "regularised" else 0.0
    norm = math.hypot(np.linalg.norm(w), own)
    rounding = 1e-12 * norm * np.linalg.norm(X, axis=1).max() + 1e-12
    assert margins.min() == pytest.approx(1.0, abs=rounding)
    np.testing.assert_allclose(proof.margins, margins, atol=rounding * abs(margins).max())
    assert proof.primal == pytest.approx(norm**2 / 2)
    assert proof.margin == pytest.approx(1.0 / norm)
    alpha = proof.alpha
    assert (alpha >= 0).all()
    balance = alpha @ y
    if intercept == "exact":
        assert abs(balance) <= 1e-12 * alpha.sum()
    pull = math.hypot(np.linalg.norm((alpha * y) @ X), s * balance if intercept == "regularised" else 0.0)
    assert proof.dual == pytest.approx(alpha.sum() ** 2 / (2 * pull**2), rel=1e-7)
    assert proof.margin_bound == pytest.approx(pull / alpha.sum(), rel=1e-7)
    assert proof.margin <= proof.margin_bound * (1 + 1e-9)
    assert set(proof.row_classes) <= {RowClass.NOT_SUPPORT_VECTOR, RowClass.ON_MARGIN}
    np.testing.assert_array_equal(proof.support, np.flatnonzero(alpha))


def assert_proof(proof, X, y, positive=1.0):
    """The weights make one point of both classes: added up exactly, as fractions."""
    assert isinstance(proof, InseparabilityProof)
    is_positive = np.asarray(y) == positive
    ours, theirs = proof.weights_positive, proof.weights_negative
    assert (ours >= 0).all()
    assert (theirs >= 0).all()
    assert not ours[~is_positive].any()
    assert not theirs[is_positive].any()
    sums = ours.sum(), theirs.sum()
    if proof.intercept == "none":
        assert sum(sums) == pytest.approx(1.0, abs=1e-12)
    else:
        assert sums == pytest.approx((1.0, 1.0), abs=1e-12)
    rows = proof.rows
    assert set(rows) == set(np.flatnonzero(proof.weights))
    dense = X.toarray() if sparse.issparse(X) else np.asarray(X)
    scale = np.abs(dense).max()
    for column in dense.T:
        exactly = sum(Fraction(float(ours[i] - theirs[i])) * Fraction(float(column[i])) for i in rows)
        assert abs(exactly) <= 1e-12 * scale
    assert proof.check(X, y) <= 1e-12 * scale * math.sqrt(dense.shape[1])
    assert proof.check(X, y) == pytest.approx(proof.distance, abs=1e-14 * scale)


# Known by hand


def test_two_points():
    X, y = np.array([[0.0, 0.0], [3.0, 4.0]]), np.array([-1.0, 1.0])
    model = solve_hard_margin(Problem.of(X, y))
    assert_right(model, X, y, "exact")
    assert model.certificate.margin == pytest.approx(2.5)  # half of their distance
    np.testing.assert_allclose(model.w, [0.24, 0.32])  # 2 (x_1 - x_0) / 25
    assert model.b == pytest.approx(-1.0)
    np.testing.assert_allclose(model.alpha, 0.08)
    assert model.certificate.kkt_violation < 1e-9
    assert list(model.certificate.support) == [0, 1]


@every_intercept
def test_square(intercept):
    y = np.array([1.0, 1.0, -1.0, -1.0])
    model = solve_hard_margin(Problem.of(SQUARE, y, intercept=intercept))
    assert_right(model, SQUARE, y, intercept)
    assert model.certificate.margin == pytest.approx(1.0)
    np.testing.assert_allclose(model.w, [1.0, 0.0], atol=1e-9)
    assert model.b == pytest.approx(0.0, abs=1e-9)


def test_the_middle_between_two_points_on_a_line():
    # x = 1 against x = 4. Exact: w = 2/3, b = -5/3. Regularised, s = 1: the point of least norm with
    # -(w + b) >= 1 and 4 w + b >= 1, where both hold with equality: the same. Without: 1 < 0 is impossible.
    X, y = np.array([[1.0], [4.0]]), np.array([-1.0, 1.0])
    exact = solve_hard_margin(Problem.of(X, y), tol=1e-12)
    assert exact.certificate.margin == pytest.approx(1.5)
    regularised = solve_hard_margin(Problem.of(X, y, intercept="regularised"), tol=1e-9)
    np.testing.assert_allclose([regularised.w[0], regularised.b], [2 / 3, -5 / 3], rtol=1e-6)
    assert regularised.certificate.primal == pytest.approx((4 + 25) / 18)
    with pytest.raises(InseparableError, match="through 0"):
        solve_hard_margin(Problem.of(X, y, intercept="none"))


# Against the off-the-shelf programs


@every_intercept
@pytest.mark.parametrize("seed", range(3))
def test_largest_margin_and_least_norm_are_one_problem(intercept, seed):
    X, y = separable(seed=seed)
    s = 1.0 + seed
    model = solve_hard_margin(Problem.of(X, y, intercept=intercept, intercept_scaling=s), tol=1e-9)
    assert_right(model, X, y, intercept, s)
    norm, gamma = least_norm(X, y, intercept, s), largest_margin(X, y, intercept, s)
    assert gamma == pytest.approx(1.0 / norm, rel=1e-7)
    assert model.certificate.margin == pytest.approx(gamma, rel=1e-7)
    assert 2 * model.certificate.primal == pytest.approx(norm**2, rel=1e-7)


@every_intercept
def test_hull_distance_is_twice_the_margin(intercept):
    X, y = separable(seed=5)
    proof = solve_hard_margin(Problem.of(X, y, intercept=intercept), tol=1e-10).certificate
    assert proof.hull_distance == pytest.approx(2 * proof.margin, rel=1e-9)
    if intercept == "exact":
        weights = proof.alpha / proof.alpha[y > 0].sum()
        points = [weights[y == label] @ X[y == label] for label in (1.0, -1.0)]
        assert np.linalg.norm(points[0] - points[1]) == pytest.approx(proof.hull_distance)


@every_intercept
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout, intercept):
    X, y = separable(seed=1)
    model = solve_hard_margin(Problem.of(LAYOUTS[layout](X), y, intercept=intercept))
    assert_right(model, X, y, intercept)


@pytest.mark.parametrize(
    "solver", ["auto", "augmented_lagrangian", "dual_coordinate_ascent", "interior_point"]
)
def test_any_solver_for_the_hinge_will_do(solver):
    X, y = separable(seed=2)
    model = solve_hard_margin(Problem.of(X, y), solver)
    assert_right(model, X, y, "exact")
    assert "soft margins" in model.solver
    if solver != "auto":
        assert model.solver.startswith(solver)


# Harder data


@every_intercept
def test_wide_data_are_separable(intercept):
    random = np.random.default_rng(0)
    X = random.normal(size=(80, 200))
    y = np.where(random.random(80) < 0.3, 1.0, -1.0)
    assert_right(solve_hard_margin(Problem.of(X, y, intercept=intercept)), X, y, intercept)


@pytest.mark.parametrize("margin", [1e-3, 1e-6])
def test_nearly_inseparable_data(margin):
    # Both classes on two planes that are 2 margin apart, and reach over several units along them.
    random = np.random.default_rng(0)
    u = random.normal(size=4)
    u /= np.linalg.norm(u)
    X = random.normal(size=(300, 4))
    y = np.where(np.arange(300) % 3, 1.0, -1.0)
    X += np.outer(margin * y - X @ u, u)
    model = solve_hard_margin(Problem.of(X, y))
    assert_right(model, X, y, "exact")
    assert model.certificate.margin == pytest.approx(margin, rel=1e-4)


def test_cancer_data_as_they_are():
    # Columns from 1e-3 to 1e3, and a margin that is 1e-8 of the largest row.
    X, y = load_breast_cancer(return_X_y=True)
    proof = solve_hard_margin(Problem.of(X, 2.0 * y - 1.0)).certificate
    assert proof.relative_gap <= 1e-4
    assert ((2 * y - 1) * (X @ proof.w + proof.b)).min() > 0.99


@given(
    seed=st.integers(0, 2**32 - 1),
    factor=st.sampled_from([2.0**-20, 1e-3, 0.3, 7.0, 1e4, 2.0**20]),
    shift=st.integers(-3, 3),
)
@settings(max_examples=25, deadline=None)
def test_the_margin_scales_with_the_data(seed, factor, shift):
    X, y = separable(30, 3, seed=seed)
    before = solve_hard_margin(Problem.of(X, y), tol=1e-9).certificate
    after = solve_hard_margin(Problem.of(factor * (X + shift), y), tol=1e-9).certificate
    assert after.margin == pytest.approx(factor * before.margin, rel=1e-8)


# Inseparable data


@pytest.mark.parametrize("intercept", ["exact", "regularised"])
def test_exclusive_or(intercept):
    with pytest.raises(InseparableError, match="4 rows are involved") as caught:
        solve_hard_margin(Problem.of(SQUARE, XOR, intercept=intercept))
    proof = caught.value.certificate
    assert_proof(proof, SQUARE, XOR)
    np.testing.assert_allclose(proof.weights, 0.5)
    assert isinstance(caught.value, ValueError)


@every_intercept
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_equal_rows_with_both_labels_are_found_at_once(intercept, kind, monkeypatch):
    monkeypatch.setattr("maxmargin.reductions.hard_margin.solve", None)  # no soft margin is needed
    X, y = separable(1000, 20)
    X[777] = X[40]
    y[777], y[40] = 1.0, -1.0
    with pytest.raises(InseparableError) as caught:
        solve_hard_margin(Problem.of(kind(X), y, intercept=intercept))
    proof = caught.value.certificate
    assert_proof(proof, kind(X), y)
    assert set(proof.rows) == {40, 777}
    assert proof.distance == 0.0


def test_without_intercept_opposite_rows_and_empty_ones():
    X, y = separable(50, 4)
    X[7], y[7], y[9] = -X[9], 1.0, 1.0
    with pytest.raises(InseparableError) as caught:
        solve_hard_margin(Problem.of(X, y, intercept="none"))
    assert_proof(caught.value.certificate, X, y)
    assert set(caught.value.certificate.rows) == {7, 9}
    X[7] = 0.0
    with pytest.raises(InseparableError, match="1 row is involved, counted from 0: 7") as caught:
        solve_hard_margin(Problem.of(X, y, intercept="none"))
    assert_proof(caught.value.certificate, X, y)


@every_intercept
def test_a_point_inside_the_other_hull(intercept):
    X, y = separable(60, 3, seed=4)
    inside = np.flatnonzero(y > 0)[0]
    X[inside] = X[y < 0].mean(axis=0)
    with pytest.raises(InseparableError) as caught:
        solve_hard_margin(Problem.of(X, y, intercept=intercept))
    proof = caught.value.certificate
    assert_proof(proof, X, y)
    assert inside in proof.rows
    assert len(proof.rows) <= 5  # Caratheodory


@every_intercept
def test_many_mixed_rows(intercept):
    X, y = clouds(3000, 10)
    with pytest.raises(InseparableError, match=r"the heaviest first") as caught:
        solve_hard_margin(Problem.of(X, y, intercept=intercept))
    proof = caught.value.certificate
    assert_proof(proof, X, y)
    assert 10 < len(proof.rows) <= 12
    assert (np.diff(proof.weights[proof.rows]) <= 0).all()


def test_weights_alone_prove_it_where_least_squares_are_too_large(monkeypatch):
    monkeypatch.setattr("maxmargin.proof.inseparable._MOST_VALUES", 10)
    X, y = clouds(200, 3)
    with pytest.raises(InseparableError) as caught:
        solve_hard_margin(Problem.of(X, y))
    assert_proof(caught.value.certificate, X, y)


def test_a_check_tells_other_data_and_other_labels():
    with pytest.raises(InseparableError) as caught:
        solve_hard_margin(Problem.of(SQUARE, XOR))
    proof = caught.value.certificate
    assert proof.check(SQUARE + 0.1, XOR) < 1e-15  # both points move alike
    assert proof.check(SQUARE * [[1.0], [2.0], [3.0], [4.0]], XOR) > 0.1
    with pytest.raises(ValueError, match="other labels"):
        proof.check(SQUARE, -XOR)
    with pytest.raises(ValueError, match="4 rows"):
        proof.check(SQUARE[:3], XOR[:3])
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert again.certificate.check(SQUARE, XOR) < 1e-15


def test_rows_of_no_weight_are_no_part_of_it():
    y = np.array([1.0, 1.0, -1.0, -1.0, -1.0])
    X = np.vstack([SQUARE, [5.0, 0.0]])
    with pytest.raises(InseparableError):
        solve_hard_margin(Problem.of(X, y))
    model = solve_hard_margin(Problem.of(X, y, weights=[1.0, 2.0, 0.5, 1.0, 0.0]))
    assert model.certificate.margin == pytest.approx(1.0)
    assert model.alpha[4] == 0.0


def in_exact_arithmetic(X, y, intercept):
    """Whether a linear program finds t > 0 with y_i (<w, x_i> + b) >= t, |w|, |b| <= 1."""
    n, d = X.shape
    with_b = int(intercept != "none")
    A = np.column_stack([-y[:, None] * np.column_stack([X, np.ones((n, with_b))]), np.ones(n)])
    bounds = [(-1, 1)] * (d + with_b) + [(0, None)]
    answer = linprog(np.append(np.zeros(d + with_b), -1.0), A_ub=A, b_ub=np.zeros(n), bounds=bounds)
    assert answer.status == 0
    return answer.x[-1] > 1e-7


@given(data=st.data(), intercept=st.sampled_from(INTERCEPTS))
@settings(max_examples=150, deadline=None)
def test_either_a_hyperplane_or_a_proof_against_it(data, intercept):
    n, d = data.draw(st.integers(2, 14)), data.draw(st.integers(1, 4))
    values = st.integers(-3, 3)
    X = np.array(data.draw(st.lists(values, min_size=n * d, max_size=n * d)), float).reshape(n, d)
    y = np.array(data.draw(st.lists(st.sampled_from([-1.0, 1.0]), min_size=n, max_size=n)))
    y[:2] = 1.0, -1.0
    begun = time.perf_counter()
    try:
        model = solve_hard_margin(Problem.of(X, y, intercept=intercept), tol=1e-6)
    except InseparableError as error:
        assert_proof(error.certificate, X, y)
        assert not in_exact_arithmetic(X, y, intercept)
    else:
        assert_right(model, X, y, intercept, tol=1e-6)
        assert in_exact_arithmetic(X, y, intercept)
    assert time.perf_counter() - begun < 5.0


# The certificate by itself


@given(data=st.data(), intercept=st.sampled_from(INTERCEPTS), seed=st.integers(0, 10))
@settings(max_examples=60, deadline=None)
def test_any_two_points_make_a_valid_bound(data, intercept, seed):
    X, y = separable(12, 3, seed=seed)
    best = 1.0 / least_norm(X, y, intercept)
    numbers = st.floats(-10, 10)
    w = np.array(data.draw(st.lists(numbers, min_size=3, max_size=3)))
    b = data.draw(numbers)
    alpha = np.array(data.draw(st.lists(numbers, min_size=12, max_size=12)))
    for point in (Solution(w=w, b=b, alpha=alpha), Solution(w=w, b=b), Solution(alpha=alpha)):
        proof = certify_hard_margin(Problem.of(X, y, intercept=intercept), point)
        assert proof.margin <= best * (1 + 1e-7)
        assert proof.margin_bound >= best * (1 - 1e-7)
        assert proof.gap >= 0.0
        assert proof.relative_gap >= 0.0
        if proof.separated:
            b = proof.b if intercept != "none" else 0.0
            assert (y * (X @ proof.w + b)).min() == pytest.approx(1.0, rel=1e-6)
        else:
            assert proof.primal == proof.relative_gap == np.inf
            assert proof.margin == 0.0
            assert "No separating hyperplane was found" in str(proof)
        assert np.isfinite(proof.kkt_violation)


@every_intercept
def test_the_best_intercept_for_w(intercept):
    X, y = separable(30, 3)
    X += [0.3, -0.2, 0.1]
    problem = Problem.of(X, y, intercept=intercept, intercept_scaling=0.7)
    w = solve_hard_margin(problem).w + 0.01
    proof = certify_hard_margin(problem, Solution(w=w, b=0.123))
    smallest = (y * (X @ w + proof.b * np.linalg.norm(w) / np.linalg.norm(proof.w))).min()

    def worth(b):
        own = b / 0.7 if intercept == "regularised" else 0.0
        return (y * (X @ w + b)).min() / math.hypot(np.linalg.norm(w), own)

    grid = [worth(b) for b in np.linspace(-3, 3, 20_001)] if intercept != "none" else [worth(0.0)]
    assert smallest > 0
    assert proof.margin >= max(grid) * (1 - 1e-12)
    assert proof.margin == pytest.approx(max(grid), rel=1e-3)


def test_known_points_are_kept():
    X, y = separable()
    problem = Problem.of(X, y)
    best = solve_hard_margin(problem, tol=1e-9).certificate
    worse = Solution(w=best.w + 0.1, alpha=np.ones(len(y)))
    kept = certify_hard_margin(problem, worse, known=best)
    assert (kept.primal, kept.dual) == (best.primal, best.dual)
    with pytest.raises(ValueError, match="Got neither"):
        certify_hard_margin(problem, Solution())


def test_words():
    X, y = separable()
    proof = solve_hard_margin(Problem.of(X, y)).certificate
    assert f"The margin is {proof.margin:.8g}." in str(proof)
    assert f"{len(proof.support)} of 60 rows are support vectors." in str(proof)
    assert repr(proof).startswith("HardMarginCertificate(margin=")
    alone = proof.without_problem(proof.w)
    assert str(alone) == str(proof)


def test_rounding_is_no_margin():
    # The rows differ in the last digit only: what the scores say about it is noise.
    X = np.array([[1.0, 1.0 + 2.0**-52], [1.0, 1.0]])
    proof = certify_hard_margin(Problem.of(X, [1.0, -1.0]), Solution(w=np.array([0.0, 1.0])))
    assert not proof.separated


# Ends


def test_no_time_at_all():
    X, y = separable()
    model = solve_hard_margin(Problem.of(X, y), max_time=0.0)
    assert model.status is Status.TIME_SPENT
    assert not model.certificate.separated
    assert model.certificate.relative_gap == np.inf
    assert "No separating hyperplane" in str(model)


def test_one_step_and_then_on_from_there():
    X, y = separable(200, 8, margin=1e-3)
    problem = Problem.of(X, y)
    short = solve_hard_margin(problem, max_steps=1)
    assert short.status is Status.STEPS_SPENT
    model = solve_hard_margin(problem, start=Solution(w=short.w, b=short.b, alpha=short.alpha))
    assert_right(model, X, y, "exact")
    again = solve_hard_margin(problem, start=Solution(w=model.w, b=model.b, alpha=model.alpha))
    assert again.steps == 0
    assert again.status is Status.CERTIFIED


def test_rounding_ends_it():
    X, y = separable()
    model = solve_hard_margin(Problem.of(X, y), tol=0.0)
    assert model.status in (Status.RULE_FIRED, Status.CERTIFIED)
    assert model.certificate.relative_gap < 1e-11


def test_callback_and_trace():
    X, y = separable(200, 8, margin=1e-3)
    seen = []
    model = solve_hard_margin(Problem.of(X, y), callback=seen.append)
    assert model.status is Status.CERTIFIED
    assert seen[-1].certificate.relative_gap == model.trace[-1].relative_gap <= 1e-4
    assert [p.step for p in seen] == sorted(p.step for p in seen)
    assert seen[-1].step == model.steps == model.trace[-1].step
    assert (np.diff(model.trace.column("dual")) >= 0).all()
    stopped = solve_hard_margin(Problem.of(X, y), callback=lambda progress: len(seen) > 0)
    assert stopped.status is Status.STOPPED


def test_interrupt():
    X, y = separable(200, 8, margin=1e-3)
    calls = []

    def interrupt(progress):
        calls.append(progress)
        if len(calls) == 5:
            raise KeyboardInterrupt

    model = solve_hard_margin(Problem.of(X, y), callback=interrupt)
    assert model.status is Status.INTERRUPTED
    assert model.certificate.margin_bound < np.inf


@pytest.mark.parametrize("seed", range(3))
def test_it_ends_where_rounding_hides_everything(seed):
    random = np.random.default_rng(seed)
    X = 1e6 + 1e-6 * random.normal(size=(100, 3))
    y = np.where(random.random(100) < 0.5, 1.0, -1.0)
    begun = time.perf_counter()
    with contextlib.suppress(InseparableError):
        model = solve_hard_margin(Problem.of(X, y), max_time=20.0)
        assert model.status is not Status.CERTIFIED
    assert time.perf_counter() - begun < 25.0


def test_arguments():
    X, y = separable()
    with pytest.raises(ValueError, match="tol must be"):
        solve_hard_margin(Problem.of(X, y), tol=-1.0)
    with pytest.raises(ValueError, match="solver must be"):
        solve_hard_margin(Problem.of(X, y), "smo")
    with pytest.raises(ValueError, match="newton"):
        solve_hard_margin(Problem.of(X, y), "newton")
    with pytest.raises(ValueError, match="both labels"):
        solve_hard_margin(Problem.of(X, np.ones(60)))
    with pytest.raises(ValueError, match="solve_hard_margin"):
        Problem.of(X, y, C=np.inf)


def test_one_label_without_exact_intercept():
    X = np.array([[2.0, 1.0], [2.0, -1.0]])
    model = solve_hard_margin(Problem.of(X, [1.0, 1.0], intercept="none"), tol=1e-9)
    assert_right(model, X, np.ones(2), "none")
    assert model.certificate.margin == pytest.approx(2.0)
    X = np.ones((3, 2))  # no extent at all
    model = solve_hard_margin(Problem.of(X, np.ones(3), intercept="regularised"), tol=1e-9)
    assert_right(model, X, np.ones(3), "regularised")
    assert model.certificate.margin == pytest.approx(math.sqrt(3.0))


# The estimator


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), np.where(y == 1, "benign", "malignant")


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_estimator(cancer, loss):
    X, y = cancer
    model = LinearSVC(C=np.inf, loss=loss, random_state=0).fit(X, y)
    proof = model.certificate_
    assert isinstance(proof, HardMarginCertificate)
    assert model.score(X, y) == 1.0
    assert proof.margin == pytest.approx(0.00139984, rel=1e-4)
    assert model.status_ is Status.CERTIFIED
    assert "soft margins" in model.solver_
    assert proof.margin == pytest.approx(1.0 / np.linalg.norm(model.coef_), rel=1e-12)
    signs = np.where(y == "malignant", 1.0, -1.0)
    assert (signs * model.decision_function(X)).min() == pytest.approx(1.0, rel=1e-9)
    again = model.set_params(warm_start=True).fit(X, y)
    assert again.certificate_.relative_gap <= 1e-4
    assert "maxmargin-certificate" in model._repr_html_inner()


def test_estimator_with_several_classes():
    random = np.random.default_rng(0)
    centres = np.array([[8.0, 0.0], [-4.0, 7.0], [-4.0, -7.0]])
    codes = np.arange(90) % 3
    X = centres[codes] + random.normal(size=(90, 2))
    y = np.array(["a", "b", "c"])[codes]
    model = LinearSVC(C=np.inf).fit(X, y)
    assert isinstance(model.certificate_, Certificates)
    assert model.certificate_.relative_gap <= 1e-4
    assert model.score(X, y) == 1.0
    for k, proof in enumerate(model.certificate_):
        signs = np.where(codes == k, 1.0, -1.0)
        assert (signs * model.decision_function(X)[:, k]).min() == pytest.approx(1.0, rel=1e-9)
        assert proof.margin == pytest.approx(1.0 / least_norm(X, signs, "exact"), rel=1e-4)


@pytest.mark.parametrize("threads", [1, 2])
def test_the_inseparable_class_is_named(threads):
    X, codes = load_iris(return_X_y=True)
    y = np.array(["setosa", "versicolor", "virginica"])[codes]
    model = LinearSVC(C=np.inf, n_jobs=threads)
    with pytest.raises(InseparableError, match="Class versicolor against the rest") as caught:
        model.fit(X, y)
    proof = model.certificate_
    assert proof is caught.value.certificate
    assert_proof(proof, X, y, "versicolor")
    assert 1 <= len(proof.rows) <= 6
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_a_failed_fit_leaves_nothing_of_the_last_one():
    model = LinearSVC(C=np.inf).fit(SQUARE, [1, 1, 0, 0])
    with pytest.raises(InseparableError):
        model.fit(SQUARE, [1, 0, 0, 1])
    assert isinstance(model.certificate_, InseparabilityProof)
    assert model.certificate_.check(SQUARE, [1, 0, 0, 1]) < 1e-15
    with pytest.raises(NotFittedError):
        model.predict(SQUARE)
    assert model._repr_html_inner() is not None
    assert model.fit(SQUARE, [1, 1, 0, 0]).score(SQUARE, [1, 1, 0, 0]) == 1.0


def test_sample_weights_only_leave_rows_out():
    X, y = np.vstack([SQUARE, [5.0, 0.0]]), [1, 1, 0, 0, 0]
    model = LinearSVC(C=np.inf).fit(X, y, sample_weight=[1.0, 3.0, 1.0, 1.0, 0.0])
    np.testing.assert_allclose(model.coef_, [[1.0, 0.0]], atol=1e-9)


def test_estimator_arguments():
    with pytest.raises(ValueError, match="logistic loss does not have"):
        LinearSVC(C=np.inf, loss="logistic").fit(SQUARE, [1, 1, 0, 0])
    for C in (-np.inf, np.nan, 0.0):
        with pytest.raises(ValueError, match="'C' parameter"):
            LinearSVC(C=C).fit(SQUARE, [1, 1, 0, 0])


def test_estimator_without_time(cancer):
    with pytest.warns(ConvergenceWarning, match="max_time ran out"):
        model = LinearSVC(C=np.inf, max_time=0.0).fit(*cancer)
    assert not model.certificate_.separated


def test_an_error_ends_the_classes_after_it():
    ended = []

    def solve_one(k, budget):
        if k == 1:
            raise InseparableError(proof)
        if k > 1:
            while not budget.spent:
                time.sleep(0.01)
        ended.append(k)

    with pytest.raises(InseparableError) as caught:
        solve_hard_margin(Problem.of(SQUARE, XOR))
    proof = caught.value.certificate
    with pytest.raises(InseparableError):
        solve_each(4, solve_one, 60.0, 4)
    assert sorted(ended) == [0, 2, 3]
    assert Budget(1.0, 1).stopped is False


# Files and the command line


@pytest.fixture(scope="module")
def fitted(cancer):
    return LinearSVC(C=np.inf, random_state=0).fit(*cancer)


def test_a_model_file_holds_it(fitted, cancer, tmp_path):
    X, y = cancer
    fitted.save(tmp_path / "model.mm", data=(X, y))
    back = LinearSVC.load(tmp_path / "model.mm")
    assert math.isinf(back.C)
    assert back.get_params() == fitted.get_params()
    assert isinstance(back.certificate_, HardMarginCertificate)
    assert str(back.certificate_) == str(fitted.certificate_)
    np.testing.assert_array_equal(back.certificate_.support, fitted.certificate_.support)
    np.testing.assert_array_equal(back.decision_function(X), fitted.decision_function(X))
    assert back.set_params(warm_start=True).fit(X, y).n_iter_ == 1  # nothing left to do
    save_model(load_model(tmp_path / "model.mm"), tmp_path / "again.mm")
    assert (tmp_path / "again.mm").read_bytes() == (tmp_path / "model.mm").read_bytes()


def test_a_model_that_does_not_separate_can_be_saved(cancer, tmp_path):
    with pytest.warns(ConvergenceWarning):
        model = LinearSVC(C=np.inf, max_iter=3).fit(*cancer)
    model.save(tmp_path / "model.mm")
    back = LinearSVC.load(tmp_path / "model.mm")
    assert back.certificate_.relative_gap == np.inf
    assert str(back.certificate_) == str(model.certificate_)


def write_libsvm(path, X, y):
    lines = (
        f"{label:g} " + " ".join(f"{j + 1}:{value:.17g}" for j, value in enumerate(row)) + "\n"
        for label, row in zip(y, X, strict=True)
    )
    path.write_text("".join(lines))


@pytest.fixture
def data(tmp_path):
    X, y = separable(100, 5, margin=0.05)
    write_libsvm(tmp_path / "data.svm", X, y)
    return tmp_path / "data.svm"


@every_intercept
def test_train_and_certify(run, data, intercept):
    model = data.with_name("model.mm")
    code, out, _ = run("train", data, "-o", model, "-C", "inf", "--intercept", intercept)
    assert code == 0
    assert "The margin is" in out
    code, out, _ = run("certify", model, data)
    assert (code, "hard margin" in out, "Holds" in out) == (0, True, True)
    code, out, _ = run("certify", model, data, "--json")
    said = json.loads(out)
    assert said["hard_margin"]
    assert said["holds"]
    code, out, _ = run("info", model)
    assert (code, "C = inf" in out) == (0, True)
    code, out, _ = run("train", data, "--resume", model, "--json")
    assert code == 0
    said = json.loads(out)
    assert said["hard_margin"]
    assert said["certificates"][0]["margin"] <= said["certificates"][0]["margin_bound"] * (1 + 1e-12)


def test_certify_without_proof_and_for_the_text_of_others(run, data):
    for options in (["--no-proof"], ["--model-format", "liblinear", "--intercept", "none"]):
        model = data.with_name("model.mm")
        assert run("train", data, "-o", model, "-C", "inf", *options)[0] == 0
        own = [] if options == ["--no-proof"] else ["-C", "inf"]
        code, out, _ = run("certify", model, data, *own)
        assert code == 0
        assert "solving the problem here" in out


def test_a_false_claim_does_not_hold(run, data, fitted):
    from dataclasses import replace

    model = data.with_name("model.mm")
    assert run("train", data, "-o", model, "-C", "inf")[0] == 0
    saved = load_model(model)
    proof = saved.certificates[0]
    worse = saved.coef + np.eye(1, saved.features)
    lie = replace(proof, w=worse[0])
    for name in ("kkt_violation", "row_classes"):
        lie.__dict__[name] = getattr(proof, name)
    save_model(replace(saved, coef=worse, certificates=[lie]), model)
    code, out, _ = run("certify", model, data)
    assert (code, "Does not hold" in out) == (1, True)
    # w = -w has no margin at all, so its objective is infinite.
    lie = replace(proof, w=-saved.coef[0], b=-proof.b)
    for name in ("kkt_violation", "row_classes"):
        lie.__dict__[name] = getattr(proof, name)
    save_model(replace(saved, coef=-saved.coef, intercept=-saved.intercept, certificates=[lie]), model)
    code, out, _ = run("certify", model, data)
    assert (code, "Does not hold" in out) == (1, True)


def test_inseparable_data_on_the_command_line(run, tmp_path):
    write_libsvm(tmp_path / "xor.svm", SQUARE, XOR)
    code, out, err = run("train", tmp_path / "xor.svm", "-o", tmp_path / "model.mm", "-C", "inf")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "cannot be separated" in err
    assert "finite value" in err
    assert not (tmp_path / "model.mm").exists()
