# SPDX-License-Identifier: BSD-3-Clause
"""Polar, Paraboloid, Log, Squares, Interactions, Buckets: values, names, the columns that pass through."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from maxmargin import LinearSVC
from maxmargin.features import Buckets, Interactions, Log, Monomials, Paraboloid, Polar, Squares
from maxmargin.reproduce.examples import disc_and_ring, ideal_weight


@pytest.fixture
def people():
    return pd.DataFrame(
        {"age": [20.0, 30.0, 45.0, 30.0], "height": [1.5, 1.6, 1.7, 1.8], "sold": [0.0, 9.0, 99.0, 999.0]}
    )


def test_polar_goes_there_and_back():
    random = np.random.default_rng(0)
    X = random.normal(size=(100, 2))
    r, angle = Polar().fit_transform(X).T
    np.testing.assert_allclose(np.column_stack([r * np.cos(angle), r * np.sin(angle)]), X, rtol=1e-12)
    assert angle.min() < -np.pi / 2 < np.pi / 2 < angle.max()


def test_polar_at_special_points():
    X = [[0.0, 0.0], [-0.0, 0.0], [-0.0, -0.0], [-1.0, 0.0], [-1.0, -0.0], [3e200, 4e200]]
    expected = [[0, 0], [0, 0], [0, 0], [1, np.pi], [1, np.pi], [5e200, np.arctan2(4, 3)]]
    np.testing.assert_allclose(Polar().fit_transform(X), expected)


def test_polar_separates_circles():
    random = np.random.default_rng(0)
    r, angle = random.uniform(0.0, 1.0, 300), random.uniform(-np.pi, np.pi, 300)
    y = r > 0.5
    r += np.where(y, 0.1, -0.1).clip(-r)
    X = np.column_stack([r * np.cos(angle), r * np.sin(angle)])
    assert LinearSVC(C=100.0).fit(Polar().fit_transform(X), y).score(Polar().fit_transform(X), y) == 1.0
    assert LinearSVC(C=100.0).fit(X, y).score(X, y) < 0.8


def test_polar_needs_two_columns(people):
    with pytest.raises(ValueError, match=r"exactly 2 columns, x and y. Got 3 instead.*'columns'"):
        Polar().fit(people)
    found = Polar(columns=["sold", "age"]).fit(people)
    assert list(found.get_feature_names_out()) == ["angle", "height", "r"]
    np.testing.assert_allclose(found.transform(people)[:, 2], np.hypot(people.sold, people.age))
    np.testing.assert_array_equal(found.transform(people)[:, 1], people.height)


def test_log(people):
    found = Log(columns=["sold"]).fit(people)
    out = found.transform(people)
    np.testing.assert_allclose(out[:, 2], np.arange(4) * np.log(10.0), atol=1e-15)
    np.testing.assert_array_equal(out[:, :2], people[["age", "height"]])
    assert list(found.get_feature_names_out()) == ["age", "height", "log(1+sold)"]
    assert Log().fit_transform([[1e-20]])[0, 0] == 1e-20


@pytest.mark.parametrize("kind", [np.array, sparse.csr_array])
def test_log_refuses_what_has_none(kind):
    X = kind([[0.0, 3.0], [-1.0, 3.0]])
    with pytest.raises(ValueError, match=r"'x0' has -1. Leave the column out"):
        Log().fit(X)
    assert Log(columns=[1]).fit(X).transform(X).shape == (2, 2)
    fitted = Log().fit(kind([[0.0, 3.0]]))
    with pytest.raises(ValueError, match="needs x > -1"):
        fitted.transform(X)


def test_log_keeps_zeros_unstored():
    X = sparse.csr_array([[0.0, 3.0], [1.0, 0.0]])
    out = Log().fit_transform(X)
    assert out.nnz == 2
    np.testing.assert_allclose(out.toarray(), np.log1p(X.toarray()))
    np.testing.assert_array_equal(X.toarray(), [[0.0, 3.0], [1.0, 0.0]])


def test_squares(people):
    found = Squares(columns=["age"]).fit(people)
    np.testing.assert_array_equal(found.transform(people), people.assign(square=people.age**2))
    assert list(found.get_feature_names_out()) == ["age", "height", "sold", "age^2"]
    out = Squares().fit_transform(sparse.csr_array(people.to_numpy()))
    assert sparse.issparse(out)
    np.testing.assert_array_equal(out.toarray(), np.hstack([people, people**2]))


def test_a_square_lets_both_extremes_be_bad():
    temperature = np.linspace(33.0, 41.0, 81)[:, None]
    healthy = np.abs(temperature.ravel() - 37.0) < 1.05
    centred = temperature - temperature.mean()
    model = LinearSVC(C=1e4, max_iter=100_000).fit(Squares().fit_transform(centred), healthy)
    assert model.score(Squares().fit_transform(centred), healthy) == 1.0


def test_squares_around_a_center(people):
    found = Squares(columns=["age", "sold"], center=[30.0, -1.0]).fit(people)
    expected = people.assign(a=(people.age - 30.0) ** 2, b=(people.sold + 1.0) ** 2)
    np.testing.assert_array_equal(found.transform(people), expected)
    assert list(found.get_feature_names_out())[3:] == ["(age-30)^2", "(sold+1)^2"]
    sparse_rows = sparse.csr_array(people.to_numpy())
    out = Squares(columns=[0, 2], center=(30.0, -1.0)).fit_transform(sparse_rows)
    assert sparse.issparse(out)
    np.testing.assert_array_equal(out.toarray(), expected)
    with pytest.raises(ValueError, match=r"'center' parameter of Squares.*There are 3 columns to square"):
        Squares(center=[1.0, 2.0]).fit(people)


def test_the_distance_from_37_degrees_is_one_feature():
    # 003: health is no affine function of the temperature, and an affine one of (temperature - 37)^2.
    temperature = np.linspace(33.0, 41.0, 81)[:, None]
    healthy = np.abs(temperature.ravel() - 37.0) < 1.05
    centred = Squares(center=37.0).fit_transform(temperature)
    model = LinearSVC(C=100.0).fit(centred, healthy)
    assert model.score(centred, healthy) == 1.0
    weights = model.coef_[0]
    assert weights[1] < 0.0, "both extremes are bad"
    assert abs(weights[0]) < 1e-2 * abs(weights[1]), "which of the two does not matter"
    assert LinearSVC(C=100.0).fit(temperature, healthy).score(temperature, healthy) < 0.8


def test_paraboloid(people):
    found = Paraboloid().fit(people)
    np.testing.assert_array_equal(found.transform(people), people.assign(r=(people**2).sum(axis=1)))
    assert list(found.get_feature_names_out()) == ["age", "height", "sold", "|x|^2"]
    out = Paraboloid(columns=["age", "sold"]).fit_transform(people)
    np.testing.assert_array_equal(out[:, 3], people.age**2 + people.sold**2)
    out = Paraboloid().fit_transform(sparse.csr_array(people.to_numpy()))
    assert sparse.issparse(out)
    np.testing.assert_array_equal(out.toarray(), found.transform(people))


def test_a_plane_above_the_paraboloid_is_a_circle_wherever_it_lies():
    X, y = disc_and_ring()
    X, y = X + np.array([3.0, -2.0]), y.astype(int)  # the center is not told
    assert LinearSVC(C=10.0).fit(X, y).score(X, y) < 0.7
    lifted = Paraboloid().fit_transform(X)
    model = LinearSVC(C=10.0).fit(lifted, y)
    assert model.score(lifted, y) > 0.95
    *c, a = model.coef_[0]
    np.testing.assert_allclose(-np.array(c) / (2 * a), [3.0, -2.0], atol=0.1)


def test_robinson_s_formula_is_in_reach_of_monomials_and_not_of_the_columns():
    X, y = ideal_weight()
    assert LinearSVC(C=100.0).fit(X, y).score(X, y) < 0.7
    products = Monomials(2).fit(X)
    Z = products.transform(X)
    model = LinearSVC(C=1e4).fit(Z, y)
    assert model.score(Z, y) == 1.0
    # The lecture's expansion of the score, by its columns h, w, h^2, h w, w^2 and the constant.
    h, w = X.T
    by_hand = (52.0 + 1.9 * (h - 60.0) - w) ** 2
    assert list(products.get_feature_names_out()) == ["x0", "x1", "x0^2", "x0*x1", "x1^2"]
    np.testing.assert_allclose(Z @ [-235.6, 124.0, 3.61, -3.8, 1.0] + 3844.0, by_hand, rtol=1e-6, atol=1e-6)


def test_interactions(people):
    found = Interactions().fit(people)
    out = found.transform(people)
    age, height, sold = people.to_numpy().T
    np.testing.assert_allclose(out[:, 3:], np.column_stack([age * height, age * sold, height * sold]))
    assert list(found.get_feature_names_out())[3:] == ["age*height", "age*sold", "height*sold"]
    found = Interactions(columns=["sold", "age"]).fit(people)
    assert list(found.get_feature_names_out())[3:] == ["sold*age"]
    np.testing.assert_array_equal(found.transform(people)[:, 3], sold * age)
    rows = sparse.csr_array(people.to_numpy())
    assert sparse.issparse(Interactions(columns=[2, 0]).fit_transform(rows))
    np.testing.assert_array_equal(
        Interactions(columns=[2, 0]).fit_transform(rows).toarray()[:, 3], sold * age
    )


def test_buckets_with_given_edges(people):
    found = Buckets(edges=[10, 100], columns=["sold"]).fit(people)
    out = found.transform(people)
    assert sparse.issparse(out)
    np.testing.assert_array_equal(out.toarray()[:, :2], people[["age", "height"]])
    np.testing.assert_array_equal(out.toarray()[:, 2:], [[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    names = ["age", "height", "sold < 10", "sold in [10, 100)", "sold >= 100"]
    assert list(found.get_feature_names_out()) == names


def test_buckets_with_edges_by_column(people):
    edges = {"sold": [10.0], "age": [20.0, 30.0]}
    found = Buckets(edges=edges, sparse_output=False).fit(people)
    names = ["height", "age < 20", "age in [20, 30)", "age >= 30", "sold < 10", "sold >= 10"]
    assert list(found.get_feature_names_out()) == names
    np.testing.assert_array_equal(
        found.transform(people)[:, 1:4], [[0, 1, 0], [0, 0, 1], [0, 0, 1], [0, 0, 1]]
    )
    with pytest.raises(ValueError, match="every one of the columns"):
        Buckets(edges=edges, columns=["sold"]).fit(people)


def test_an_edge_belongs_to_the_bucket_above_it():
    # 0.1 is smaller as float64 than as float32: both are compared as the numbers that they are.
    for dtype in (np.float32, np.float64):
        X = np.array([[0.1], [np.nextafter(dtype(0.1), dtype(0.0))]], dtype)
        out = Buckets(edges=[float(dtype(0.1))], sparse_output=False).fit_transform(X)
        np.testing.assert_array_equal(out, [[0, 1], [1, 0]])


@pytest.mark.parametrize("buckets", [2, 5, 10])
def test_learnt_buckets_hold_equally_many(buckets):
    X = np.random.default_rng(0).normal(size=(1000, 2))
    out = Buckets(edges=buckets).fit_transform(X)
    assert out.shape == (1000, 2 * buckets)
    np.testing.assert_allclose(out.sum(axis=0), 1000 / buckets, atol=1)
    np.testing.assert_array_equal(out.sum(axis=1), 2.0)


def test_learnt_buckets_are_never_empty_and_all_values_have_one():
    X = np.array([0.0] * 80 + list(range(1, 21)))[:, None]
    found = Buckets(edges=5).fit(X)
    assert (found.transform(X).sum(axis=0) > 0).all()
    np.testing.assert_array_equal(found.transform([[-1e9], [1e9]]).sum(axis=1), 1.0)
    assert Buckets().fit_transform(np.ones((5, 1))).shape == (5, 2)


@pytest.mark.parametrize("edges", [1, True, [], [2.0, 1.0], [1.0, 1.0], [np.nan], [[1.0]], "four", {}])
def test_wrong_edges(edges):
    with pytest.raises(ValueError, match="'edges' parameter of Buckets must be"):
        Buckets(edges=edges).fit(np.ones((3, 1)))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["weight"], "There is no column 'weight'; there are 'age', 'height', 'sold'"),
        ([3], "X has n_features = 3"),
        ([-4], "X has n_features = 3"),
        ([], "at least one"),
        ([0, "age"], "different columns"),
        ([1.5], "names or indices"),
        ([True], "names or indices"),
    ],
)
def test_wrong_columns(people, columns, message):
    with pytest.raises(ValueError, match=message):
        Squares(columns=columns).fit(people)


def test_names_need_names(people):
    with pytest.raises(ValueError, match="X has no column names: give a data frame, or indices"):
        Squares(columns=["age"]).fit(people.to_numpy())
    one = Squares(columns="age").fit_transform(people)
    np.testing.assert_array_equal(one, Squares(columns=[-3]).fit_transform(people))
