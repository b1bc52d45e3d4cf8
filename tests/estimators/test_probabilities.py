# SPDX-License-Identifier: BSD-3-Clause
"""Probabilities of SVC: those of CalibratedClassifierCV, or coupled pairs; kept in files."""

from __future__ import annotations

import json
import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn import svm
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import SVC, files
from maxmargin.estimators.held_out import folds
from maxmargin.reductions.decompositions import OneAgainstOne
from maxmargin.reductions.probabilities import sigmoid
from maxmargin.solvers import WorkingSet, sizes
from scikit_learn import assert_passes

IRIS = load_iris(return_X_y=True)
METHODS = {True: "sigmoid", "isotonic": "isotonic"}


@parametrize_with_checks([SVC(probability=True)])
def test_scikit_learn_checks(estimator, check):
    if "sample_weight_equivalence" in str(check):
        pytest.skip("a row that is repeated falls into other folds, in CalibratedClassifierCV as well")
    assert_passes(check, estimator)


@pytest.mark.parametrize("probability", METHODS)
@pytest.mark.parametrize("weighted", [False, True])
def test_two_classes_agree_with_a_calibrated_classifier(breast_cancer, probability, weighted):
    X, y = breast_cancer
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(y)) if weighted else None
    options = {"gamma": 0.02, "tol": 1e-7, "class_weight": "balanced"}
    model = SVC(probability=probability, **options).fit(X, y, sample_weight=weights)
    peer = CalibratedClassifierCV(SVC(**options), ensemble=False, method=METHODS[probability])
    peer.fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("probability", METHODS)
def test_classes_against_the_rest_agree_with_a_calibrated_classifier(probability):
    X, y = IRIS
    options = {"gamma": 0.5, "tol": 1e-8, "multi_class": "ovr"}
    model = SVC(probability=probability, **options).fit(X, y)
    peer = CalibratedClassifierCV(SVC(**options), ensemble=False, method=METHODS[probability]).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("classes", [2, 3])
def test_folds_of_many_rows_begin_at_the_margins_of_all_rows(classes, monkeypatch):
    X, y = make_classification(
        1050 * classes, 5, n_informative=4, n_redundant=0, n_classes=classes, flip_y=0.1, random_state=0
    )
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    told = []

    def init(self, problem, start):
        state = of_solver(self, problem, start)
        if start is not None:
            scores = problem.rows.scores(start.alpha * problem.y)
            np.testing.assert_allclose(state.whole.dual.f, scores - problem.y, atol=1e-9)
            told.append(state.whole.matrix.computed_rows)
        return state

    of_solver = WorkingSet.init
    monkeypatch.setattr(WorkingSet, "init", init)
    options = {"gamma": 0.3, "tol": 1e-6}
    model = SVC(probability=True, **options).fit(X, y, sample_weight=weights)
    assert told == [0] * (5 * len(model.calibration_.curves))
    if classes == 2:
        peer = CalibratedClassifierCV(SVC(**options), ensemble=False, method="sigmoid")
        peer.fit(X, y, sample_weight=weights)
        np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("classes", [2, 3])
def test_folds_side_by_side_are_those_one_after_the_other(classes, monkeypatch):
    X, y = make_classification(
        1050 * classes, 5, n_informative=4, n_redundant=0, n_classes=classes, flip_y=0.1, random_state=0
    )
    options = {"gamma": 0.2, "probability": True, "multi_class": "ovr", "random_state": 0}
    side_by_side = [SVC(n_jobs=threads, **options).fit(X, y).predict_proba(X) for threads in (1, 2)]
    monkeypatch.setattr(sizes, "ONE_THREAD_ROWS", 0)
    one_by_one = SVC(n_jobs=1, **options).fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(side_by_side[0], one_by_one)
    np.testing.assert_allclose(side_by_side[1], one_by_one, rtol=1e-9)  # two threads round otherwise


def test_pairs_of_classes_are_as_good_as_those_of_libsvm(digits):
    X, y = digits
    X, y, new, labels = X[:600], y[:600], X[600:], y[600:]
    ours = SVC(probability=True).fit(X, y).predict_proba(new)
    with pytest.warns(FutureWarning):
        theirs = svm.SVC(probability=True, random_state=0).fit(X, y).predict_proba(new)
    assert log_loss(labels, ours) < log_loss(labels, theirs) + 0.02
    np.testing.assert_allclose(ours.sum(axis=1), 1.0, rtol=1e-12)


def test_coupling_finds_probabilities_that_pairs_agree_with():
    p = np.random.default_rng(0).dirichlet(np.ones(5), 50)
    kind = OneAgainstOne(5)
    pairs = np.column_stack([p[:, i] / (p[:, i] + p[:, j]) for i, j in kind.pairs])
    np.testing.assert_allclose(kind.probabilities(pairs), p, atol=1e-6)


def test_a_sigmoid_is_at_the_optimum_of_platts_problem():
    rng = np.random.default_rng(0)
    scores, weights = 1e3 * rng.standard_normal(200), rng.uniform(0.1, 3.0, 200)
    positive = scores + 500 * rng.standard_normal(200) > 0
    curve = sigmoid(scores, positive, weights)
    plus, minus = weights[positive].sum(), weights[~positive].sum()
    targets = np.where(positive, (plus + 1) / (plus + 2), 1 / (minus + 2))
    residual = weights * (1 / (1 + np.exp(-curve.first[0] * scores - curve.second[0])) - targets)
    assert abs(residual.sum()) < 1e-8 * weights.sum()
    assert abs(residual @ scores) < 1e-5 * weights.sum()


def test_equal_scores_give_the_share_of_the_class():
    curve = sigmoid(np.ones(8), np.arange(8) < 2, np.ones(8))
    value = 1 / (1 + np.exp(-curve.first[0] - curve.second[0]))
    assert 0.2 < value < 0.35


def test_the_same_data_give_the_same_probabilities_in_every_layout():
    X, y = make_classification(300, 8, n_informative=4, n_classes=3, random_state=0)
    X[np.abs(X) < 0.5] = 0.0
    first = SVC(probability=True, random_state=0).fit(X, y).predict_proba(X)
    again = SVC(probability=True, random_state=0, n_jobs=1).fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(first, again)
    of_sparse = SVC(probability=True).fit(sparse.csr_matrix(X), y).predict_proba(X)
    np.testing.assert_allclose(of_sparse, first, atol=1e-3)
    K = X @ X.T
    of_matrix = SVC(probability=True, kernel="precomputed").fit(K, y).predict_proba(K)
    of_function = SVC(probability=True, kernel=lambda a, b: a @ b.T).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(of_matrix, of_function, atol=1e-6)


@pytest.mark.parametrize("probability", [True, "isotonic"])
@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_files_and_pickles_keep_what_probabilities_need(tmp_path, probability, multi_class):
    X, y = IRIS
    model = SVC(probability=probability, multi_class=multi_class).fit(X, y)
    model.save(tmp_path / "model.mm", data=(X, y))
    before = model.predict_proba(X)
    loaded = SVC.load(tmp_path / "model.mm")
    assert loaded.probability == probability
    np.testing.assert_array_equal(loaded.predict_proba(X), before)
    np.testing.assert_allclose(np.exp(loaded.predict_log_proba(X)), before)
    np.testing.assert_array_equal(files.load_model(tmp_path / "model.mm").predict_proba(X), before)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), before)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda found: found["curves"].pop(), "curves for 3 problems"),
        (lambda found: found["curves"][0].update(first=[]), "as many numbers"),
        (lambda found: found.update(method="oracle"), "sigmoid or isotonic"),
        (lambda found: found["curves"][0].update(second=["nan"]), "finite"),
    ],
)
def test_files_with_wrong_curves_are_refused(tmp_path, change, message):
    path = tmp_path / "model.mm"
    SVC(probability=True).fit(*IRIS).save(path, proof=False)
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    name, text = next((k, v) for k, v in header["__metadata__"].items() if "curves" in v)
    described = json.loads(text)
    change(described["calibration"])
    header["__metadata__"][name] = json.dumps(described)
    new = json.dumps(header).encode()
    new += b" " * (-len(new) % 8)
    path.write_bytes(len(new).to_bytes(8, "little") + new + content[8 + size :])
    with pytest.raises(files.ModelError, match=rf"{message}|checksum"):
        files.load_model(path)


def test_without_probabilities_there_are_none(tmp_path):
    X, y = IRIS
    model = SVC().fit(X, y)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match="predict_log_proba") as error:
        _ = model.predict_log_proba
    assert "probability=True" in str(error.value.__cause__)
    model.probability = True
    with pytest.raises(NotFittedError, match="probability=False"):
        model.predict_proba(X)
    model.fit(X, y).set_params(probability=False).fit(X, y)
    assert not hasattr(model, "calibration_")
    model.save(tmp_path / "model.mm")
    with pytest.raises(ValueError, match="no probabilities"):
        files.load_model(tmp_path / "model.mm").predict_proba(X)


def test_folds_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    for case in range(300):
        codes = np.unique(rng.integers(0, 1 + case % 7, 2 + case % 50), return_inverse=True)[1]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that a class has fewer rows than there are folds
            count = min(5, np.bincount(codes).max())
            splitter = StratifiedKFold(count) if count > 1 else KFold(min(5, len(codes)))
            wanted = [held_out for _, held_out in splitter.split(codes, codes)]
        found = folds(codes)
        assert len(found) == len(wanted)
        assert all(map(np.array_equal, found, wanted))


def test_a_class_of_one_row_has_probabilities_too():
    X = np.array([[0.0], [0.1], [0.2], [1.0], [1.1], [1.2], [5.0]])
    values = SVC(probability=True).fit(X, [0, 0, 0, 1, 1, 1, 2]).predict_proba(X)
    assert values.shape == (7, 3)
    assert np.isfinite(values).all()
    np.testing.assert_allclose(values.sum(axis=1), 1.0)


def test_no_time_is_enough_for_probabilities():
    X, y = make_classification(2500, 5, flip_y=0.2, random_state=0)
    with pytest.warns(UserWarning, match="max_time"):
        model = SVC(probability=True, max_time=1e-4, C=100.0).fit(X, y)
    assert np.isfinite(model.predict_proba(X[:5])).all()
