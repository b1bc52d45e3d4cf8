# SPDX-License-Identifier: BSD-3-Clause
"""What holds for every feature map: scikit-learn's contract, types, pipelines, data frames."""

from __future__ import annotations

import doctest
import pickle
import sys

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import maxmargin.features
from maxmargin import LinearSVC
from maxmargin.features import (
    Buckets,
    Distances,
    Interactions,
    Log,
    Monomials,
    Nystroem,
    Paraboloid,
    Polar,
    PolynomialSketch,
    RandomFourier,
    Squares,
)
from scikit_learn import assert_passes

MAPS = [
    Buckets(),
    Buckets(edges=[0.0, 1.0], sparse_output=False),
    Distances(count=5),
    Distances("kmeans", count=3),
    Interactions(),
    Log(),
    Monomials(),
    Monomials(3, scaling="kernel"),
    Nystroem(5),
    Nystroem(5, "poly"),
    Paraboloid(),
    Polar(columns=[0, 1]),
    PolynomialSketch(columns=20),
    RandomFourier(20),
    Squares(),
    Squares(center=0.5),
]
# One parameter of each to search, with two values that fit.
SEARCHED = {
    "Buckets": ("edges", [3, 4]),
    "Distances": ("gamma", [0.1, 1.0]),
    "Interactions": ("columns", [None, [0, 2]]),
    "Log": ("columns", [None, [0]]),
    "Monomials": ("degree", [1, 2]),
    "Nystroem": ("count", [5, 10]),
    "Paraboloid": ("columns", [None, [0, 1]]),
    "Polar": ("columns", [[0, 1], [1, 2]]),
    "PolynomialSketch": ("columns", [10, 20]),
    "RandomFourier": ("gamma", [0.1, 1.0]),
    "Squares": ("center", [0.0, 1.0]),
}


def name_of(estimator):
    return repr(estimator)


@parametrize_with_checks(list({type(features): features for features in MAPS}.values()))
def test_scikit_learn_checks(estimator, check):
    assert_passes(check, estimator)


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(0)
    X = random.uniform(0.0, 2.0, size=(80, 3))
    return X, (X[:, 0] * X[:, 1] > X[:, 2] ** 2).astype(int)


def dense(X):
    return X.toarray() if sparse.issparse(X) else X


@pytest.mark.parametrize("name", sorted(SEARCHED))
def test_the_examples_in_the_docstrings(name):
    module = sys.modules[getattr(maxmargin.features, name).__module__]
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0


def test_every_map_is_here():
    classes = {type(estimator).__name__ for estimator in MAPS}
    others = {"ErrorEstimate", "ExactKernelBound", "ExactKernelBounds", "exact_kernel_bound"}
    assert classes | {"Pretrained"} | others == set(maxmargin.features.__all__)
    assert set(SEARCHED) == classes
    assert set(maxmargin.features.__all__) <= set(dir(maxmargin.features))
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        maxmargin.features.Nothing  # noqa: B018


@pytest.mark.parametrize("estimator", MAPS, ids=name_of)
def test_in_a_pipeline_before_the_classifier(estimator, data):
    X, y = data
    pipeline = make_pipeline(clone(estimator), LinearSVC(random_state=0))
    predicted = pipeline.fit(X, y).predict(X)
    assert np.mean(predicted == y) > 0.6
    assert (clone(pipeline).fit(X, y).predict(X) == predicted).all()
    name, values = SEARCHED[type(estimator).__name__]
    search = GridSearchCV(pipeline, {f"{type(estimator).__name__.lower()}__{name}": values}, cv=2)
    assert search.fit(X, y).best_score_ > 0.5


@pytest.mark.parametrize("estimator", MAPS, ids=name_of)
def test_float32_stays_and_means_the_same(estimator, data):
    # Halves are the same numbers in both types.
    X = np.round(data[0] * 2.0) / 2.0
    wide = dense(clone(estimator).fit_transform(X))
    narrow = dense(clone(estimator).fit_transform(X.astype(np.float32)))
    assert wide.dtype == np.float64
    assert narrow.dtype == np.float32
    if not isinstance(estimator, Nystroem):  # the basis it projects on depends on rounding
        np.testing.assert_allclose(narrow, wide, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("estimator", [e for e in MAPS if not isinstance(e, Polar)], ids=name_of)
def test_sparse_rows_mean_the_same(estimator, data):
    X = np.where(data[0] > 1.0, data[0], 0.0)
    expected = dense(clone(estimator).fit_transform(X))
    for kind in (sparse.csr_matrix, sparse.csr_array, sparse.csc_array):
        found = clone(estimator).fit_transform(kind(X))
        np.testing.assert_allclose(dense(found), expected, atol=1e-7)


@pytest.mark.parametrize("estimator", MAPS, ids=name_of)
def test_data_frames_in_and_out(estimator, data):
    frame = pd.DataFrame(data[0], columns=["age", "height", "weight"], index=np.arange(80) + 7)
    estimator = clone(estimator)
    if isinstance(estimator, Buckets):
        estimator.set_params(sparse_output=False)
    plain = dense(clone(estimator).fit_transform(data[0]))
    out = estimator.set_output(transform="pandas").fit_transform(frame)
    np.testing.assert_array_equal(out.to_numpy(), plain)
    assert list(out.columns) == list(estimator.get_feature_names_out())
    assert len(set(out.columns)) == out.shape[1]
    assert (out.index == frame.index).all()


@pytest.mark.parametrize("estimator", MAPS, ids=name_of)
def test_pickled_maps_map_the_same(estimator, data):
    fitted = clone(estimator).fit(data[0])
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(dense(again.transform(data[0])), dense(fitted.transform(data[0])))
