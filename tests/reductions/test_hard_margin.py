# SPDX-License-Identifier: BSD-3-Clause
"""The hard margin: the largest one, proven from both sides, or the proof that there is none."""

from __future__ import annotations

import contextlib
import math
import pickle
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog
from sklearn.datasets import load_breast_cancer

from hard_margins import (
    SQUARE,
    XOR,
    assert_proof,
    assert_right,
    largest_margin,
    least_norm,
    separable,
)
from maxmargin import (
    InseparableError,
    Problem,
    Solution,
    Status,
    certify_hard_margin,
    solve_hard_margin,
)
from problems import INTERCEPTS, LAYOUTS, clouds

every_intercept = pytest.mark.parametrize("intercept", INTERCEPTS)


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
@settings(max_examples=25)
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
    monkeypatch.setattr("maxmargin.solvers.sizes.FEW_ROWS_PROOF_VALUES", 10)
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
@settings(max_examples=150)
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
@settings(max_examples=60)
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
