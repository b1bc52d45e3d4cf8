# SPDX-License-Identifier: BSD-3-Clause
"""Folds and values of C in the same passes: they are those of fits in memory, and cost few passes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from combinations import every_pair
from maxmargin import Chunks, LinearSVC, LinearSVCCV
from maxmargin.chunks import cross_validation
from maxmargin.chunks.fit import Wanted
from maxmargin.chunks.held_out import Folding
from maxmargin.chunks.memory import Memory
from maxmargin.chunks.passes import LocalPasses
from maxmargin.chunks.survey import Room
from maxmargin.estimators.chosen_in_passes import choose_in_passes
from maxmargin.proof.model import each_of

pytestmark = pytest.mark.usefixtures("in_passes")

ROWS, COLUMNS, FOLDS = 2400, 6, 3
CS = [1.0, 0.001, 0.1]


def data(classes=2, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(ROWS, COLUMNS)) * np.linspace(0.5, 3.0, COLUMNS)
    scores = X @ generator.normal(size=(COLUMNS, classes)) + 2.0 * generator.normal(size=(ROWS, classes))
    return X, scores.argmax(axis=1), generator.choice([0.0, 0.5, 1.0, 2.0], ROWS)


def results(model):
    scores = [model.cv_results_[f"split{i}_test_score"] for i in range(model.n_splits_)]
    gaps = [model.cv_results_[f"split{i}_relative_gap"] for i in range(model.n_splits_)]
    values = [value for proof in each_of(model.certificate_) for value in (proof.primal, proof.dual)]
    return np.array(scores), np.array(gaps), model.coef_.tobytes() + np.array(values).tobytes()


@every_pair(
    loss=["hinge", "squared_hinge", "logistic"],
    regularised=[False, True],
    layout=["dense", "csr"],
    weighted=[False, True],
    class_weight=[None, "balanced"],
    classes=[2, 3],
    memory=[None, 300_000],
)
def test_the_fits_of_folds_are_those_in_memory(
    loss, regularised, layout, weighted, class_weight, classes, memory
):
    X, y, weight = data(classes)
    X = sparse.csr_matrix(X) if layout == "csr" else X
    same = {"loss": loss, "class_weight": class_weight, "regularize_intercept": regularised}
    parts = (X, y, weight) if weighted else (X, y)
    wanted = Wanted(loss=loss, class_weight=class_weight, tol=1e-4, memory=memory)
    chosen = LinearSVCCV(Cs=CS, cv=FOLDS, random_state=5, tol=1e-4, **same)
    chosen.fit(Chunks(parts, rows=500, memory=memory))
    folds = Folding(FOLDS, 5).of(np.arange(ROWS))
    scores, gaps, _ = results(chosen)
    assert chosen.status_.certified
    assert gaps.max() <= 1e-4
    if not regularised:
        found = cross_validation.fit_folds(
            LocalPasses(Chunks(parts, rows=500, memory=memory)), wanted, CS, Folding(FOLDS, 5)
        )
    for place, C in enumerate(CS):
        for fold in range(FOLDS):
            held = folds == fold
            own = np.where(held, 0.0, weight if weighted else 1.0)
            exact = LinearSVC(C=C, tol=1e-7, **same).fit(X, y, own)
            right = np.mean(exact.predict(X[held]) == y[held])
            assert abs(scores[fold, place] - right) <= 0.03  # rows near the plane
            if regularised:
                continue
            for model, proof in zip(found.models[place][fold], each_of(exact.certificate_), strict=True):
                assert model.certificate.dual <= proof.primal * (1 + 1e-12)
                assert proof.dual <= model.certificate.primal * (1 + 1e-12)
    whole = LinearSVC(C=chosen.C_, tol=1e-7, **same).fit(X, y, weight if weighted else None)
    for mine, theirs in zip(each_of(chosen.certificate_), each_of(whole.certificate_), strict=True):
        assert mine.dual <= theirs.primal * (1 + 1e-12)
        assert theirs.dual <= mine.primal * (1 + 1e-12)


def test_attributes_are_those_of_a_choice_in_memory():
    X, y, _ = data()
    folds = Folding(FOLDS, 0).of(np.arange(ROWS))
    splits = [(np.flatnonzero(folds != k), np.flatnonzero(folds == k)) for k in range(FOLDS)]
    local = LinearSVCCV(Cs=CS, cv=splits, tol=1e-8).fit(X, y)
    model = LinearSVCCV(Cs=CS, cv=FOLDS, tol=1e-8).fit(Chunks((X, y), rows=500))
    assert set(vars(local)) - {"callback"} <= set(vars(model)) | {"_shown"}
    assert local.cv_results_.keys() == model.cv_results_.keys()
    assert local.C_ == model.C_
    assert local.best_index_ == model.best_index_
    for name in (f"split{k}_test_score" for k in range(FOLDS)):
        np.testing.assert_array_equal(local.cv_results_[name], model.cv_results_[name])
    np.testing.assert_allclose(model.coef_, local.coef_, rtol=1e-3, atol=1e-5)
    np.testing.assert_array_equal(model.predict(X[:50]), local.predict(X[:50]))
    assert LinearSVCCV(Cs=CS, refit=False).fit(Chunks((X, y))).C_ in CS


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_all_fits_share_their_passes_and_workers_change_no_bit(loss):
    X, y, weight = data(3)
    reads = []

    def parts():
        reads.append(1)
        yield X, y, weight

    answers = []
    for workers in (1, 2):
        reads.clear()
        model = LinearSVCCV(Cs=CS, cv=FOLDS, loss=loss, tol=1e-3, n_jobs=1)
        choose_in_passes(model, LocalPasses(Chunks(parts, rows=300), workers), 1 << 26)
        assert len(reads) == model.n_passes_ <= 14
        answers.append(results(model))
    np.testing.assert_array_equal(answers[0][0], answers[1][0])
    np.testing.assert_array_equal(answers[0][1], answers[1][1])
    assert answers[0][2] == answers[1][2]


def test_little_memory_fits_in_groups():
    X, y, _ = data()
    chunks = Chunks((X, y), rows=300, memory=60_000)
    model = LinearSVCCV(Cs=CS, cv=FOLDS, tol=1e-3).fit(chunks)
    roomy = LinearSVCCV(Cs=CS, cv=FOLDS, tol=1e-3).fit(Chunks((X, y), rows=300, memory=1 << 26))
    assert model.n_passes_ > roomy.n_passes_
    assert results(model)[1].max() <= 1e-3
    facts, sample = cross_validation.survey_of(LocalPasses(chunks), Room(4000), 0)
    few, more = (
        Memory(limit).together(facts, sample.count, "squared_hinge", 12) for limit in (60_000, 600_000)
    )
    assert 1 <= few < more


def test_many_columns():
    generator = np.random.default_rng(0)
    X = sparse.random(400, 4500, 0.01, format="csr", random_state=0)
    y = generator.integers(0, 2, 400)
    X = sparse.csr_matrix(X + sparse.csr_matrix((np.ones(400), (np.arange(400), y)), X.shape))
    model = LinearSVCCV(Cs=[0.1, 1.0], cv=2, tol=1e-3).fit(Chunks((X, y), rows=200))
    assert results(model)[1].max() <= 1e-3
    assert model.best_score_ > 0.9


def test_a_fold_is_a_function_of_the_number_and_the_seed():
    numbers = np.arange(100_000, dtype=np.int64)
    folds = Folding(5, 3).of(numbers)
    assert folds[:12].tolist() == Folding(5, 3).of(numbers[:12]).tolist()
    assert np.array_equal(folds[777:], Folding(5, 3).of(numbers[777:]))
    assert np.abs(np.bincount(folds) - 20_000).max() < 600
    assert not np.array_equal(folds, Folding(5, 4).of(numbers))
    # The folds of a data set stay the same from release to release.
    assert folds[:12].tolist() == FIRST


FIRST = [0, 1, 0, 3, 2, 3, 3, 1, 2, 1, 4, 3]


def test_what_cannot_be_had_is_refused():
    X, y, _ = data()
    few = np.where(np.arange(ROWS) == 7, 2, y)
    with pytest.raises(ValueError, match=r"trains on no row of class .*2.*not stratified"):
        LinearSVCCV(cv=FOLDS).fit(Chunks((X, few)))
    with pytest.raises(ValueError, match=r"holds out no row"):
        LinearSVCCV(cv=30).fit(Chunks((X[:20], y[:20])))
    with pytest.raises(ValueError, match="splitters"):
        LinearSVCCV(cv=[(np.arange(5), np.arange(5))]).fit(Chunks((X, y)))
    with pytest.raises(ValueError, match="accuracy"):
        LinearSVCCV(scoring="f1").fit(Chunks((X, y)))
    with pytest.raises(ValueError, match="in memory alone"):
        LinearSVCCV(score_bounds=True).fit(Chunks((X, y)))
    with pytest.raises(ValueError, match="without y"):
        LinearSVCCV().fit(Chunks((X, y)), y)
    with pytest.raises(ValueError, match="leave checkpoint out"):
        LinearSVCCV().fit(Chunks((X, y), checkpoint="nothing.state"))


def test_ctrl_c_leaves_no_model(monkeypatch):
    X, y, _ = data()

    def interrupted(*arguments):
        import os
        import signal

        os.kill(os.getpid(), signal.SIGINT)

    model = LinearSVCCV(Cs=CS, cv=FOLDS, tol=1e-12, callback=interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(Chunks((X, y), rows=300))
    assert not hasattr(model, "coef_")
