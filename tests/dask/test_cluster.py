# SPDX-License-Identifier: BSD-3-Clause
"""Fits on a real cluster of two processes, and once of four."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

pytest.importorskip("distributed")

import dask.array as da
import dask.dataframe as dd
from distributed import Client

import dask
import maxmargin
from dask import delayed
from maxmargin import Chunks
from maxmargin.dask import LinearSVC, LinearSVCCV
from maxmargin.proof.model import each_of

# Clusters come and go here: what they leave open for a moment is theirs.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:Sending large graph"),
    pytest.mark.xdist_group("cluster"),
]

_ROWS, _COLUMNS = 3000, 6


@pytest.fixture(scope="module")
def client(address: str) -> Iterator[Client]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with Client(address) as client:
            yield client


def _data(classes: int = 2, rows: int = _ROWS) -> tuple[Any, Any, Any]:
    generator = np.random.default_rng(3)
    X = generator.normal(size=(rows, _COLUMNS))
    scores = X[:, :classes] + 0.8 * generator.normal(size=(rows, classes))
    return X, scores.argmax(axis=1), generator.uniform(0.2, 2.0, size=rows)


def _in_parts(sizes: int | tuple[int, ...], *arrays: Any) -> list[Any]:
    return [da.from_array(each, chunks=(sizes, *each.shape[1:])) for each in arrays]


def _bits(model: Any) -> bytes:
    values = [value for proof in each_of(model.certificate_) for value in (proof.primal, proof.dual)]
    return model.coef_.tobytes() + model.intercept_.tobytes() + np.array(values).tobytes()


@pytest.mark.parametrize("memory", [800_000, 1 << 28], ids=["in passes", "in memory"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_bits_do_not_depend_on_the_workers(client: Client, loss: str, memory: int) -> None:
    X, y, weight = _data(3)
    local = maxmargin.LinearSVC(loss=loss).fit(Chunks((X, y, weight), rows=500, memory=memory))
    assert (local.n_iter_ == 1) == (memory == 1 << 28)
    collections = _in_parts(500, X, y, weight)
    model = LinearSVC(loss=loss, client=client, memory=memory).fit(*collections)
    assert model.status_.certified
    assert model.certificate_.relative_gap <= 1e-4
    assert _bits(model) == _bits(local)
    assert _bits(LinearSVC(loss=loss, memory=memory, persist=False).fit(*collections)) == _bits(local)


def test_four_workers_and_a_lost_one(cluster_of: Callable[[int], Any]) -> None:
    X, y, weight = _data()
    local = maxmargin.LinearSVC(loss="hinge").fit(Chunks((X, y, weight), rows=100, memory=1 << 16))
    assert local.n_iter_ > 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with cluster_of(4) as cluster, Client(cluster) as client:
            collections = _in_parts(100, X, y, weight)
            options = {"loss": "hinge", "client": client, "memory": 1 << 16}
            assert _bits(LinearSVC(**options).fit(*collections)) == _bits(local)
            lost = []

            def lose_one(progress: Any) -> None:
                if not lost:
                    workers = client.run(os.getpid)
                    lost.append(next(iter(workers.values())))
                    os.kill(lost[0], signal.SIGKILL)

            model = LinearSVC(**options, callback=lose_one).fit(*collections)
            assert lost
            assert model.status_.certified
            assert _bits(model) == _bits(local)


def test_partitions_of_every_kind(client: Client) -> None:
    X, y, _ = _data()
    y = np.array(["no", "yes, of course"])[y]
    order = np.argsort(y, kind="stable")  # most partitions know one class alone
    sizes = (1, 0, 2000, 7, 0, 992)
    dX, dy = _in_parts(sizes, X[order], y[order])
    model = LinearSVC(client=client).fit(dX, dy)
    whole = maxmargin.LinearSVC().fit(X[order], y[order])
    assert model.status_.certified
    assert list(model.classes_) == ["no", "yes, of course"]
    assert model.certificate_.primal <= whole.certificate_.primal * (1 + 2e-4)
    answers = model.predict(dX)
    assert isinstance(answers, da.Array)
    assert np.array_equal(answers.compute(), model.to_local().predict(X[order]))
    # Sizes that nobody knows before they are computed.
    kept = X[order][:, 1] > -1.0
    unknown_X, unknown_y = (collection[dX[:, 1] > -1.0] for collection in (dX, dy))
    unknown = LinearSVC(client=client).fit(unknown_X, unknown_y)
    assert unknown.certificate_.primal <= maxmargin.LinearSVC().fit(
        X[order][kept], y[order][kept]
    ).certificate_.primal * (1 + 2e-4)
    assert unknown.score(unknown_X, unknown_y) == pytest.approx(
        unknown.to_local().score(X[order][kept], y[order][kept])
    )


def test_dataframes_have_names(client: Client) -> None:
    X, y, _ = _data(3)
    names = [f"column {k}" for k in range(_COLUMNS)]
    frame = pd.DataFrame(X, columns=names)
    dX = dd.from_pandas(frame, npartitions=4)
    dy = dd.from_pandas(pd.Series(y), npartitions=4)
    model = LinearSVC(client=client).fit(dX, dy)
    assert list(model.feature_names_in_) == names
    assert model.decision_function(dX).compute().shape == (_ROWS, 3)
    local = model.to_local()
    assert type(local) is maxmargin.LinearSVC
    assert np.array_equal(model.predict(dX).compute(), local.predict(frame))
    assert "client" not in local.get_params()


def test_sparse_parts_that_are_delayed(client: Client) -> None:
    X, y, weight = _data()
    X[np.abs(X) < 1.0] = 0.0
    cut = [slice(0, 1000), slice(1000, 1000), slice(1000, 3000)]
    parts = [delayed((sparse.csr_matrix(X[some]), y[some], weight[some])) for some in cut]
    model = LinearSVC(loss="hinge", client=client).fit(parts)
    whole = maxmargin.LinearSVC(loss="hinge").fit(sparse.csr_matrix(X), y, weight)
    assert model.certificate_.dual <= whole.certificate_.primal
    assert whole.certificate_.dual <= model.certificate_.primal
    lazy = model.predict([delayed(sparse.csr_matrix(X[some])) for some in cut])
    assert np.array_equal(np.concatenate(dask.compute(*lazy)), model.to_local().predict(X))


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_many_columns_have_the_same_bits(client: Client, loss: str) -> None:
    _, y, weight = _data(rows=600)
    X = sparse.random(600, 5000, 0.01, format="csr", random_state=0)
    X = sparse.csr_matrix(X + sparse.csr_matrix((np.ones(600), (np.arange(600), y)), X.shape))
    parts = [(X[i : i + 200], y[i : i + 200], weight[i : i + 200]) for i in range(0, 600, 200)]
    local = maxmargin.LinearSVC(loss=loss, tol=1e-3).fit(Chunks(parts, rows=200, memory=1 << 20))
    assert local.n_iter_ > 3
    model = LinearSVC(loss=loss, tol=1e-3, client=client, memory=1 << 20).fit(
        [delayed(part) for part in parts]
    )
    assert model.status_.certified
    assert _bits(model) == _bits(local)


def test_wrong_data_are_refused_with_the_cure(client: Client) -> None:
    X, y, weight = _data()
    dX, dy, dweight = _in_parts(500, X, y, weight)
    model = LinearSVC(client=client)
    with pytest.raises(ValueError, match=r"X must be a Dask array .* Got ndarray instead"):
        model.fit(X, dy)
    with pytest.raises(ValueError, match="y must be given with X"):
        model.fit(dX)
    with pytest.raises(ValueError, match="must be Dask collections as X is"):
        model.fit(dX, y)
    with pytest.raises(ValueError, match="must have as many rows"):
        model.fit(dX, dy[:-1])
    with pytest.raises(ValueError, match="only one class is present"):
        model.fit(dX, da.zeros_like(dy))
    with pytest.raises(ValueError, match=r"row 1234 \(counted from 0\)"):
        model.fit(da.where(da.arange(_ROWS, chunks=500)[:, None] == 1234, np.nan, dX), dy)
    with pytest.raises(ValueError, match=r"weights must be finite and not negative.* row [0-9]+ "):
        model.fit(dX, dy, -dweight)
    with pytest.raises(ValueError, match="hard margin, needs the rows in memory"):
        LinearSVC(client=client, C=np.inf).fit(dX, dy)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_choice_of_C_has_the_same_bits(client: Client, loss: str) -> None:
    X, y, weight = _data(3)
    options: dict[str, Any] = {"Cs": [0.01, 1.0], "cv": 3, "loss": loss, "tol": 1e-3}
    local = maxmargin.LinearSVCCV(**options).fit(Chunks((X, y, weight), rows=500, memory=1 << 28))
    collections = _in_parts(500, X, y, weight)
    model = LinearSVCCV(**options, client=client, memory=1 << 28).fit(*collections)
    assert _bits(model) == _bits(local)
    assert model.C_ == local.C_
    for name, values in local.cv_results_.items():
        if name.endswith(("score", "gap")) and not name.startswith("rank"):
            assert np.array_equal(model.cv_results_[name], values)
    assert isinstance(model.predict(collections[0]), da.Array)
    plain = model.to_local()
    assert type(plain) is maxmargin.LinearSVCCV
    assert type(plain.best_estimator_) is maxmargin.LinearSVC
    assert np.array_equal(model.predict(collections[0]).compute(), plain.predict(X))
    assert model.score(*collections[:2]) == pytest.approx(plain.score(X, y))
    rare = da.where(da.arange(_ROWS, chunks=500) == 5, 7, collections[1])
    with pytest.raises(ValueError, match="trains on no row of class"):
        LinearSVCCV(**options, client=client).fit(collections[0], rare)
