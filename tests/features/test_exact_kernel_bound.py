# SPDX-License-Identifier: BSD-3-Clause
"""The bounds on the exact kernel SVM, against certified solutions of it and against plain NumPy."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxmargin import SVC, LinearSVC, LinearSVCCV, Problem, solve
from maxmargin.features import (
    ExactKernelBounds,
    Nystroem,
    PolynomialSketch,
    RandomFourier,
    Squares,
    exact_kernel_bound,
)
from maxmargin.features.exact_kernel.function import KernelFunction, in_span, squared_norm_bound
from maxmargin.kernels import Function, Gaussian, KernelRows

INTERCEPTS = {
    "exact": {},
    "regularised": {"regularize_intercept": True, "intercept_scaling": 0.5},
    "none": {"fit_intercept": False},
}
SOLVERS = {
    ("hinge", True): "working_set",
    ("squared_hinge", True): "quadratic_program",
    ("hinge", False): "kernel_dual_ascent",
    ("squared_hinge", False): "kernel_dual_ascent",
}


def draw(seed, n=60):
    """Overlapping classes, weights of several sizes, some of them 0."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    y = np.where(X[:, 0] * X[:, 1] + 0.5 * random.normal(size=n) > 0.2, 1, -1)
    y[:2] = 1, -1
    weights = random.choice([0.0, 0.5, 1.0, 3.0], size=n)
    weights[:2] = 1.0
    return X, y, weights


def fitted(features, X, y, weights=None, **options):
    model = LinearSVC(random_state=0, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # bounds hold for models cut short as well
        model.fit(features.fit_transform(X), y, weights)
    return features, model


@pytest.mark.parametrize("intercept", list(INTERCEPTS))
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@settings(max_examples=12)
@given(
    seed=st.integers(0, 10_000),
    count=st.sampled_from([2, 6, 20, 60]),
    random_map=st.booleans(),
    C=st.sampled_from([0.01, 1.0, 30.0]),
    gamma=st.sampled_from([0.1, 1.0]),
    steps=st.sampled_from([1, 1000]),
    max_values=st.sampled_from([1, 500, 3000, 10**9]),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_the_exact_optimum_lies_between(
    loss, intercept, seed, count, random_map, C, gamma, steps, max_values, dtype
):
    X, y, weights = draw(seed)
    X = X.astype(dtype)
    features = RandomFourier(count, gamma) if random_map else Nystroem(count, gamma=gamma)
    pair = fitted(features, X, y, weights, loss=loss, C=C, max_iter=steps, **INTERCEPTS[intercept])
    bound = exact_kernel_bound(pair, X, y, weights, landmarks=15, max_values=max_values)

    scaling = INTERCEPTS[intercept].get("intercept_scaling", 1.0)
    form = dict(loss=loss, intercept=intercept, weights=weights, intercept_scaling=scaling)
    problem = Problem.of(KernelRows(X, Gaussian(gamma)), y, C, **form)
    best = solve(problem, SOLVERS[loss, intercept == "exact"], tol=1e-9, max_steps=10_000).certificate
    assert best.relative_gap < 1e-3
    slack = 1e-9 * (1.0 + abs(best.primal))
    assert bound.lower <= best.primal + slack
    assert best.dual <= bound.upper + slack
    assert bound.model_is_exact != random_map
    if bound.model_is_exact:
        assert bound.upper <= bound.model_value + slack
        assert bound.gap == pytest.approx(max(bound.model_value - bound.lower, 0.0))


def test_agrees_with_certified_svc():
    X, y, _ = draw(5, n=200)
    exact = SVC(kernel="rbf", gamma=0.5, C=2.0, tol=1e-9).fit(X, y).certificate_
    for features in (Nystroem(50, gamma=0.5), RandomFourier(2000, 0.5)):
        bound = exact_kernel_bound(fitted(features, X, y, loss="hinge", C=2.0), X, y)
        assert 0.5 * exact.dual < bound.lower <= exact.primal * (1 + 1e-9)
        assert exact.dual * (1 - 1e-9) <= bound.upper < 1.5 * exact.primal


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_with_all_rows_nothing_is_lost(loss):
    X, y, weights = draw(1)
    pair = fitted(Nystroem(60, gamma=0.5), X, y, weights, loss=loss, tol=1e-7)
    bound = exact_kernel_bound(pair, X, y, weights)
    own = pair[1].certificate_
    np.testing.assert_allclose([bound.lower, bound.model_value], [own.dual, own.primal], rtol=1e-6)
    assert bound.relative_gap < 2e-6


def test_the_model_has_the_value_that_numpy_finds():
    X, y, _ = draw(2)
    features, model = pair = fitted(Nystroem(7, gamma=0.5), X.astype(np.float32), y, loss="hinge", C=3.0)
    bound = exact_kernel_bound(pair, X.astype(np.float32), y)
    Z, X = features.sample_.astype(float), X.astype(np.float32).astype(float)
    c = features.projection_.astype(float) @ model.coef_[0]
    kernel = np.exp(-0.5 * cdist(Z, Z, "sqeuclidean"))
    scores = np.exp(-0.5 * cdist(X, Z, "sqeuclidean")) @ c + model.intercept_
    value = 0.5 * c @ kernel @ c + 3.0 * np.maximum(0.0, 1.0 - y * scores).sum()
    np.testing.assert_allclose(bound.model_value, value, rtol=1e-9)
    alpha = model.certificate_.alpha
    full = np.exp(-0.5 * cdist(X, X, "sqeuclidean"))
    t = np.linspace(0.0, 1.0, 1001)
    dual = t * alpha.sum() - 0.5 * t**2 * ((alpha * y) @ full @ (alpha * y))
    np.testing.assert_allclose(bound.lower, dual.max(), rtol=1e-5)


@pytest.mark.parametrize("landmarks", [1, 5, 40])
@pytest.mark.parametrize("group", [1, 7, 40])
def test_the_norm_is_bounded_without_all_pairs(landmarks, group):
    random = np.random.default_rng(0)
    X = random.normal(size=(40, 2))
    function = KernelFunction(Gaussian(1.0), X, random.normal(size=40))
    true = function.coefficients @ np.exp(-cdist(X, X, "sqeuclidean")) @ function.coefficients
    found = squared_norm_bound(function, landmarks, group)
    assert found >= true * (1 - 1e-12)
    if group == 40:  # one group: nothing is left to the triangle inequality
        assert found == pytest.approx(true)
    if landmarks == 40:  # all points: nothing is left over
        assert found == pytest.approx(true, rel=1e-3)


def test_the_span_keeps_norms():
    X, _, _ = draw(3)
    features = Nystroem(20, gamma=0.5).fit(X)
    w = np.random.default_rng(0).normal(size=features.projection_.shape[1])
    function = in_span(features, w)
    assert function.squared_norm == pytest.approx(w @ w, rel=1e-6)
    np.testing.assert_allclose(function.at(X), features.transform(X) @ w, atol=1e-6)


def test_one_bound_per_class_and_the_worst():
    X, _, _ = draw(4, n=90)
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    pair = fitted(Nystroem(30, gamma=0.5), X, y, loss="hinge", class_weight={0: 2.0})
    bounds = exact_kernel_bound(pair, X, y)
    assert isinstance(bounds, ExactKernelBounds)
    assert len(bounds) == 3
    for label, bound in zip(pair[1].classes_, bounds, strict=True):
        weights = np.where((y == label) & (y == 0), 2.0, 1.0)
        problem = Problem.of(KernelRows(X, Gaussian(0.5)), np.where(y == label, 1, -1), weights=weights)
        best = solve(problem, tol=1e-9).certificate
        assert bound.lower <= best.primal + 1e-8
        assert best.dual <= bound.upper + 1e-8
    assert bounds.relative_gap == max(bound.relative_gap for bound in bounds)
    assert str(bounds.worst) in str(bounds)
    assert "3 classes" in repr(bounds)


def test_pipelines_sparse_rows_and_other_kernels():
    X, y, _ = draw(6)
    pipeline = make_pipeline(StandardScaler(), Nystroem(20, gamma=0.5), LinearSVC(loss="hinge")).fit(X, y)
    scaled = StandardScaler().fit_transform(X)
    expected = exact_kernel_bound((pipeline[-2], pipeline[-1]), scaled, y)
    assert exact_kernel_bound(pipeline, X, y) == expected
    assert "a point of the exact problem" in str(expected)
    rows = sparse.csr_array(scaled)
    found = exact_kernel_bound(fitted(Nystroem(20, gamma=0.5), rows, y, loss="hinge"), rows, y)
    np.testing.assert_allclose(found.lower, expected.lower, rtol=1e-3)
    by_function = Function(lambda X, Z: np.exp(-0.5 * cdist(X, Z, "sqeuclidean")))
    found = exact_kernel_bound(fitted(Nystroem(20, by_function), scaled, y, loss="hinge"), scaled, y)
    np.testing.assert_allclose(found.upper, expected.upper, rtol=1e-3)
    sketch = fitted(PolynomialSketch(2, columns=300), scaled, y, loss="hinge")
    found = exact_kernel_bound(sketch, scaled, y)
    exact = SVC(kernel="poly", degree=2, gamma=1.0, coef0=1.0, tol=1e-9).fit(scaled, y).certificate_
    assert found.lower <= exact.primal
    assert exact.dual <= found.upper
    assert "no point of the exact problem" in str(found)
    chosen = make_pipeline(Nystroem(20, gamma=0.5), LinearSVCCV(Cs=[0.1, 1.0], cv=2)).fit(X, y)
    assert exact_kernel_bound(chosen, X, y).relative_gap < 1.0


def test_parameters_set_after_the_fit_change_nothing():
    X, y, _ = draw(7)
    pair = fitted(Nystroem(10, gamma=0.5), X, y, loss="hinge", C=2.0)
    expected = exact_kernel_bound(pair, X, y)
    pair[0].set_params(gamma=9.0)
    pair[1].set_params(C=9.0, loss="squared_hinge", fit_intercept=False)
    assert exact_kernel_bound(pair, X, y) == expected


def test_what_is_refused():
    X, y, weights = draw(8)
    features, model = fitted(Nystroem(10), X, y)
    with pytest.raises(TypeError, match=r"a pipeline.*or the pair.*Got LinearSVC"):
        exact_kernel_bound(model, X, y)
    with pytest.raises(TypeError, match=r"must stand for a kernel.*Got Squares"):
        exact_kernel_bound((Squares().fit(X), model), X, y)
    with pytest.raises(TypeError, match=r"must be a LinearSVC.*Got SVC"):
        exact_kernel_bound((features, SVC().fit(X, y)), X, y)
    with pytest.raises(ValueError, match=r"the 60 rows.*Got 59"):
        exact_kernel_bound((features, model), X[1:], y[1:])
    with pytest.raises(ValueError, match="one of the classes"):
        exact_kernel_bound((features, model), X, y + 7)
    with pytest.raises(ValueError, match=r"'max_values' parameter.*\[1, inf\)\. Got 0"):
        exact_kernel_bound((features, model), X, y, max_values=0)
    with pytest.raises(ValueError, match="fitted with sample weights"):
        exact_kernel_bound(fitted(Nystroem(10), X, y, weights), X, y)
    hard = fitted(Nystroem(60, gamma=2.0), X, y, C=np.inf)
    with pytest.raises(ValueError, match="a finite C"):
        exact_kernel_bound(hard, X, y)
