# SPDX-License-Identifier: BSD-3-Clause
"""Feature maps in passes: learnt from rows of every chunk, applied in every pass, proven as in memory."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.pipeline import make_pipeline

from combinations import every_pair
from maxmargin import Chunks, LinearSVC, LinearSVCCV
from maxmargin.chunks.fit import Wanted, fit_in_passes
from maxmargin.chunks.passes import LocalPasses
from maxmargin.chunks.sums import DualSums
from maxmargin.features import Log, Nystroem, PolynomialSketch, RandomFourier
from maxmargin.features.exact_kernel.bounds import exact_kernel_bound
from maxmargin.files import DataError, load_pipeline, pack, save_model
from maxmargin.problem import Problem
from maxmargin.proof.model import each_of

ROWS = 4000
MAPS = {
    "nystroem": lambda: Nystroem(60, gamma=0.3),
    "fourier": lambda: RandomFourier(60, gamma=0.3),
    "sketch": lambda: PolynomialSketch(2, 0.3, columns=64),
}


def data(classes=2, rows=ROWS):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(rows, 4))
    X[generator.random(X.shape) < 0.2] = 0.0
    values = np.sin(2.0 * X[:, 0]) + X[:, 1] ** 2 - 1.0 + 0.3 * generator.normal(size=rows)
    return X, np.digitize(values, [0.0, 1.0][: classes - 1])


@every_pair(
    loss=["hinge", "squared_hinge", "logistic"],
    map=list(MAPS),
    layout=["dense", "csr", "float32"],
    classes=[2, 3],
    memory=[4_000_000, 30_000_000],
    intercept=["exact", "none"],
)
def test_what_is_proven_is_true_of_the_mapped_problem_in_memory(
    loss, map, layout, classes, memory, intercept
):
    X, y = data(classes)
    X = {"dense": X, "csr": sparse.csr_matrix(X), "float32": X.astype(np.float32)}[layout]
    form = {"loss": loss, "tol": 1e-3, "fit_intercept": intercept != "none"}
    model = make_pipeline(MAPS[map](), LinearSVC(**form)).fit(Chunks((X, y), memory=memory))
    last = model[-1]
    assert last.status_.certified
    assert last.n_iter_ <= 12
    mapped = model[:-1].transform(X.astype(np.float64))  # as it is mapped in passes
    close = LinearSVC(**form | {"tol": 1e-8}).fit(mapped, y)
    for mine, theirs in zip(each_of(last.certificate_), each_of(close.certificate_), strict=True):
        assert mine.relative_gap <= 1e-3
        assert mine.dual <= theirs.primal * (1 + 1e-12)
        assert theirs.dual <= mine.primal * (1 + 1e-12)
    positive = 1 if classes == 2 else 0
    problem = Problem.of(
        mapped, np.where(y == positive, 1.0, -1.0), 1.0, loss=loss, intercept=last._intercept_form()
    )
    proof = each_of(last.certificate_)[0]
    value = problem.primal(last.coef_[0], last.intercept_[0])
    assert proof.primal == pytest.approx(value, rel=1e-10)
    assert np.mean(model.predict(X) == y) > 0.75


@pytest.mark.parametrize("map", MAPS)
def test_a_map_that_sees_all_rows_is_that_of_memory(map):
    X, y = data()
    chunked = make_pipeline(MAPS[map](), LinearSVC()).fit(Chunks((X, y), rows=700, memory=30_000_000))
    whole = MAPS[map]().fit(X)
    assert np.array_equal(chunked[0].transform(X[:50]), whole.transform(X[:50]))
    assert chunked[0].error_estimate_ == whole.error_estimate_


def test_a_sample_of_a_map_comes_from_every_chunk_and_rows_far_out_are_no_likelier():
    generator = np.random.default_rng(1)
    X = generator.normal(size=(50_000, 3))
    X[:2500] *= 30.0  # which have a leverage, and are drawn more often
    X[:, 2] = np.arange(50_000)
    X = X[generator.permutation(50_000)]
    features = Nystroem(400, gamma=0.1).fit(Chunks((X, X[:, 0] > 0), rows=5000, memory=2_000_000))
    chosen = features.sample_[:, 2]
    assert len(chosen) == 400
    assert np.count_nonzero(chosen < 2500) <= 40  # 20 are likely
    places = np.searchsorted(np.sort(X[:, 2]), chosen)
    assert len(np.unique(places // 5000)) == 10


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("map", ["nystroem", "fourier"])
def test_the_number_of_workers_changes_no_bit(loss, map):
    chunks = MAPS[map]().fit_transform(Chunks(data(), memory=2_000_000))
    found = []
    for workers in (1, 2, 4):
        passes = LocalPasses(chunks, workers)
        fitted = fit_in_passes(passes, Wanted(loss=loss, memory=2_000_000, threads=1), chunks.surveyed)
        proof = fitted.models[0].certificate
        found.append((proof.w.tobytes(), proof.b, proof.primal, proof.dual, fitted.passes))
    assert found[0] == found[1] == found[2]


def test_a_fit_reads_the_data_once_for_the_map_and_the_facts():
    X, y = data()
    reads = []

    def parts():
        reads.append(1)
        yield X, y

    model = make_pipeline(Nystroem(50), LinearSVC(loss="logistic")).fit(Chunks(parts))
    assert len(reads) == model[-1].n_iter_


def test_a_pipeline_of_chunks_is_saved_with_its_map(tmp_path):
    X, y = data(3)
    model = make_pipeline(Nystroem(50, gamma=0.3), LinearSVC(tol=1e-3)).fit(Chunks((X, y)))
    save_model(model, tmp_path / "model.mm")
    again = load_pipeline(tmp_path / "model.mm")
    assert np.array_equal(again.predict(X), model.predict(X))


def test_a_state_is_gone_on_from_with_its_own_map_alone(tmp_path):
    pack(lambda: [data()], tmp_path / "rows.mmd")

    def fitted(gamma, **limits):
        chunks = Chunks(tmp_path / "rows.mmd", memory=2_000_000, checkpoint=tmp_path / "state")
        model = make_pipeline(Nystroem(50, gamma=gamma), LinearSVC(loss="hinge", tol=1e-5, **limits))
        return model.fit(chunks)[-1]

    with pytest.warns(UserWarning, match="passes were made"):
        fitted(0.3, max_iter=2)
    with pytest.raises(DataError, match="other data"):
        fitted(0.4)
    went_on = fitted(0.3)
    (tmp_path / "state").unlink()
    straight = fitted(0.3)
    assert went_on.coef_.tobytes() == straight.coef_.tobytes()
    assert went_on.n_iter_ == straight.n_iter_ > 3


def test_c_is_chosen_through_a_map():
    X, y = data()
    model = make_pipeline(Nystroem(50, gamma=0.3), LinearSVCCV(Cs=[1e-3, 1.0], cv=3, tol=1e-2))
    model.fit(Chunks((X, y)))
    assert model[-1].C_ == 1.0
    assert np.mean(model.predict(X) == y) > 0.75


def test_columns_of_tables_keep_their_names(tmp_path):
    X, y = data()
    lines = (",".join(map(str, [*row, label])) for row, label in zip(X.tolist(), y, strict=True))
    (tmp_path / "a.csv").write_text("a,b,c,d,label\n" + "\n".join(lines) + "\n")
    model = make_pipeline(Nystroem(50), LinearSVC(tol=1e-2)).fit(Chunks(tmp_path / "a.csv"))
    assert model[0].feature_names_in_.tolist() == ["a", "b", "c", "d"]
    assert not hasattr(model[-1], "feature_names_in_")


def test_what_is_wrong_is_said():
    X, y = data()
    with pytest.raises(ValueError, match="Log learns from all rows, and Chunks have only some"):
        make_pipeline(Log(), LinearSVC()).fit(Chunks((X, y)))
    with pytest.raises(ValueError, match=r"with room to draw \d+\. Raise memory"):
        Nystroem(2000).fit(Chunks((X, y), memory=200_000))
    with pytest.raises(ValueError, match=r"Nystroem was fitted to 3 columns\. Got 4 in the rows from 0"):
        LinearSVC().fit(Nystroem(10).fit(X[:, :3]).transform(Chunks((X, y))))
    with pytest.raises(ValueError, match="'gamma' parameter of Nystroem"):
        Nystroem(gamma=-1.0).fit(Chunks((X, y)))
    X[1234, 1] = np.nan
    with pytest.raises(ValueError, match="row 1234 "):
        Nystroem(10).fit(Chunks((X, y), rows=300))


def test_a_bound_on_the_exact_kernel_needs_the_rows():
    X, y = data()
    model = make_pipeline(Nystroem(20), LinearSVC(tol=1e-2)).fit(Chunks((X, y)))
    with pytest.raises(ValueError, match="a fit in passes over Chunks keeps none"):
        exact_kernel_bound(model, X, y)


def test_rows_go_through_any_fitted_map():
    X, y = data()
    features = Log().fit(np.abs(X))
    model = LinearSVC(tol=1e-6).fit(features.transform(Chunks((np.abs(X), y), rows=900)))
    whole = LinearSVC(tol=1e-6).fit(features.transform(np.abs(X)), y)
    assert model.certificate_.primal == pytest.approx(whole.certificate_.primal, rel=1e-5)


def test_sums_know_the_longest_row_of_all_whether_it_has_a_multiplier_or_not():
    X = np.array([[3.0], [-1.0], [-7.0]])
    labels = np.array([1.0, -1.0, 1.0])
    first, second = (
        DualSums.of(Problem.of(X[part], labels[part], 1.0, loss="hinge"), np.zeros(len(X[part])))
        for part in (slice(0, 2), slice(2, 3))
    )
    assert first.plus(second).longest == pytest.approx(7.0)
