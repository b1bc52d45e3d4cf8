# SPDX-License-Identifier: BSD-3-Clause
"""What fits warn of though they are certified: models of no use, and columns that are far apart."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxmargin import SVC, DoubtfulModelWarning, LinearSVC, LinearSVCCV, features, kernels
from maxmargin.telling.doubts import few_column_scales, orders_apart

random = np.random.default_rng(0)
NOISE = random.normal(size=(200, 5)), np.arange(200) % 10 < 3
SOUND = make_classification(400, 30, n_informative=10, random_state=0)
FAR = make_classification(2000, 12, n_informative=10, random_state=0)
FAR[0][:, 3] *= 1e-4
FAR[0][:, 5] *= 1e5


def warned(model, X, y, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y, **options)
    return [str(one.message) for one in caught if one.category is DoubtfulModelWarning]


@pytest.mark.parametrize("kind", [LinearSVC(C=1e-3), SVC(C=1e-3), LinearSVCCV(Cs=[1e-4, 1e-3])], ids=repr)
def test_a_model_that_does_not_beat_the_largest_class(kind):
    (told,) = warned(kind, *NOISE)
    assert told.startswith("The model gets no more training rows right than the largest class alone")
    assert "Raise C" in told
    assert np.mean(kind.predict(NOISE[0]) == NOISE[1]) <= 0.7


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_several_classes(multi_class):
    labels = np.repeat([0, 1, 2], [100, 50, 50])
    for model in (SVC(C=1e-3, multi_class=multi_class), LinearSVC(C=1e-5)):
        assert len(warned(model, NOISE[0], labels)) == 1
    apart = NOISE[0] + 10.0 * labels[:, np.newaxis]
    for model in (SVC(multi_class=multi_class), LinearSVC()):
        assert warned(model, apart, labels) == []


@pytest.mark.parametrize(
    "kind", [LinearSVC(), LinearSVC(loss="logistic"), SVC(), LinearSVCCV(Cs=2)], ids=repr
)
def test_a_sound_fit_says_nothing(kind):
    assert warned(kind, *SOUND) == []


def test_the_place_is_that_of_the_call():
    with pytest.warns(DoubtfulModelWarning) as caught:
        LinearSVC(C=1e-4).fit(*NOISE)
    assert "maxmargin/estimators" not in caught[0].filename


def test_folds_are_silent_since_their_scores_tell():
    grid = {"linearsvc__C": [1e-5, 1e-4, 1e-3]}
    poor = make_pipeline(StandardScaler(), LinearSVC())
    assert len(warned(GridSearchCV(poor, grid), *NOISE)) == 1
    assert warned(GridSearchCV(poor, grid, refit=False), *NOISE) == []


def test_columns_that_are_far_apart():
    (told,) = warned(LinearSVC(), *FAR)
    assert "orders of magnitude apart: column 3 is the smallest and column 5 the largest" in told
    assert "StandardScaler" in told
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(FAR[0], columns=[f"of {j}" for j in range(12)])
    (told,) = warned(SVC(), frame, FAR[1])
    assert "column 'of 3' is the smallest" in told
    (told,) = warned(LinearSVC(), sparse.csr_matrix(FAR[0]), FAR[1])
    assert "MaxAbsScaler" in told
    assert warned(make_pipeline(StandardScaler(), LinearSVC()), *FAR) == []
    assert len(warned(LinearSVCCV(Cs=2), *FAR)) == 1


def test_a_useless_model_of_such_columns_tells_of_them():
    X = NOISE[0] * [1.0, 1e-3, 1.0, 1e5, 1.0]
    (told,) = warned(SVC(C=1e-2), X, NOISE[1])
    assert told.startswith("The model gets no more")
    assert "column 1 is the smallest and column 3 the largest" in told


def test_what_is_small_by_design_is_not_warned_of():
    X, y = make_classification(600, 20, n_informative=3, n_redundant=10, random_state=0)
    for first in (PCA(), features.Nystroem(200, gamma=1e-3), features.Monomials(3)):
        assert warned(make_pipeline(first, LinearSVC(C=10.0)), X, y) == []


def test_weights_and_fits_that_fell_short_are_left_to_others():
    assert warned(LinearSVC(C=1e-3, class_weight="balanced"), *NOISE) == []
    assert warned(LinearSVC(C=1e-3), *NOISE, sample_weight=np.ones(200)) == []
    assert warned(LinearSVC(C=1e3, max_iter=1, solver="pegasos", loss="hinge"), *NOISE) == []


def test_rows_that_are_values_of_a_kernel_have_no_columns():
    values = kernels.Linear()(NOISE[0])
    (told,) = warned(SVC(kernel="precomputed", C=1e-4), values, NOISE[1])
    assert "Columns" not in told
    assert warned(SVC(kernel="precomputed"), kernels.Polynomial(5)(SOUND[0]), SOUND[1]) == []


def test_closer_fits_do_not_say_it_again():
    assert len(warned(LinearSVC(C=1e-3), *NOISE, until_sure=NOISE[0])) == 1


def test_orders_of_columns():
    assert orders_apart(np.array([1.0, 1e-3, 0.0, 1e4])) == (7, 3, 1)
    assert orders_apart(np.array([1.0, 1e-15]), 1e-12) == (0, 0, 0)
    assert orders_apart(np.zeros(2))[0] == 0
    dense = random.normal(size=(30, 4)) * [1.0, 0.0, 10.0, 100.0]
    for X in (dense, sparse.csr_array(dense)):
        np.testing.assert_array_equal(few_column_scales(X), np.abs(dense).max(axis=0))


def test_columns_that_separate_are_found_block_by_block_in_little_memory(monkeypatch):
    import tracemalloc

    from maxmargin.telling import doubts

    X = sparse.random(600, 20_000, 0.002, "lil", random_state=0)
    y = np.arange(600) % 3
    X[:, 7], X[:, 19_999] = y[:, np.newaxis] + 1.0, -y[:, np.newaxis] - 1.0
    X = X.tocsr()
    tracemalloc.start()
    try:
        assert doubts.separating_columns(X, y) == [7, 19_999]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * 600 * 20_000 / 2
    monkeypatch.setattr(doubts, "_VALUES_AT_ONCE", 1)
    assert doubts.separating_columns(X[:, -50:], y) == [49]
