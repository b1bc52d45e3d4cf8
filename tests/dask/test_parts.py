# SPDX-License-Identifier: BSD-3-Clause
"""What workers do with a partition, called here: the parts as arrays, and what is said of wrong ones."""

from __future__ import annotations

import re
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

pytest.importorskip("distributed")

import dask.array as da
import dask.dataframe as dd

import dask
import maxmargin
from dask import delayed
from maxmargin.dask import LinearSVC
from maxmargin.dask.linear_svc import _of_rows, _right
from maxmargin.dask.parts import delayed_parts, known_rows, plain_part, plain_parts, row_counts
from maxmargin.dask.passes import DaskPasses, _answers, _grouped, _held

_X = np.arange(12.0).reshape(6, 2)
_Y = np.array([0, 1, 0, 1, 1, 0])


def _computed(parts: list[Any]) -> list[Any]:
    return list(dask.compute(*parts, scheduler="synchronous"))


def test_partitions_become_arrays() -> None:
    frame = pd.DataFrame(_X, columns=["a", "b"])
    parts, names = delayed_parts(
        dd.from_pandas(frame, npartitions=2),
        dd.from_pandas(frame[["a"]] > 5, npartitions=2),
        dd.from_pandas(frame["b"], npartitions=2),
    )
    assert names == ["a", "b"]
    found = _computed(parts)
    assert row_counts(found) == [3, 3]
    for values, expected in zip(
        zip(*found, strict=True), (_X, _X[:, 0] > 5, frame["b"].to_numpy()), strict=True
    ):
        assert np.array_equal(np.concatenate(values), expected)


def test_partitions_of_x_are_those_of_the_rest() -> None:
    parts, names = delayed_parts(
        da.from_array(_X, chunks=(4, 1)), da.from_array(_Y, chunks=3), da.from_array(_Y + 0.5, chunks=2)
    )
    assert names is None
    found = _computed(parts)
    assert [X.shape for X, _, _ in found] == [(4, 2), (2, 2)]
    assert [weight.tolist() for _, _, weight in found] == [[0.5, 1.5, 0.5, 1.5], [1.5, 0.5]]


def test_partitions_must_be_alike_where_their_sizes_are_unknown() -> None:
    X = dd.from_pandas(pd.DataFrame(_X), npartitions=3)
    y = dd.from_pandas(pd.Series(_Y), npartitions=2)
    with pytest.raises(ValueError, match=r"must have the same partitions\. Got 3, 2; rechunk or repart"):
        delayed_parts(X, y, None)


def test_parts_are_plain() -> None:
    X, y, weight = plain_part((sparse.coo_matrix(_X), _Y[:, np.newaxis]), 0)
    assert X.format == "csr"
    assert np.array_equal(y, _Y)
    assert weight is None
    values, _, weight = plain_part((pd.DataFrame(_X).astype(object), _Y, pd.Series([1] * 6)), 0)
    assert values.dtype == weight.dtype == np.float64


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ([_X, _Y], r"Partition 4 must be (X, y) or (X, y, weights). Got list instead."),
        ((_X,), r"Partition 4 must be (X, y)"),
        ((_X, _Y[:5]), "In partition 4 their shapes are (6, 2) and (5,)."),
        ((_X[0], _Y[:2]), "In partition 4 their shapes are (2,) and (2,)."),
        ((_X, _Y, _Y[:2]), "one weight for each of 6 rows of partition 4. Got an array of shape (2,)"),
        ((pd.DataFrame({"a": ["red"], "b": [1]}), [1]), "Encode texts first, for example with maxmargin.T"),
    ],
)
def test_what_is_wrong_is_named_by_its_partition(part: Any, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        plain_part(part, 4)


def test_what_a_worker_answers() -> None:
    def told(chunk: Any, factor: float, own: float) -> tuple[int, float]:
        return chunk.first, factor * own * float(chunk.X.sum())

    parts = plain_parts([(_X, _Y), (_X[:0], _Y[:0]), (_X, _Y)], [0, 1, 2])
    about = [(30, 6, (0.5,)), (36, 0, None), (36, 6, (1.5,))]
    said = _answers(parts, about, _held(told, (2.0,)))
    assert said == [(30, _X.sum()), None, (36, 3.0 * _X.sum())]
    model = maxmargin.LinearSVC().fit(_X, _Y)
    right = model.predict(_X) == _Y
    assert _right(model, (_X, _Y, None)) == (right.sum(), 6.0)
    assert _right(model, (_X, _Y, _Y + 1.0)) == ((right * (_Y + 1.0)).sum(), 9.0)
    assert _right(model, (_X[:0], _Y[:0], None)) == (0.0, 0.0)
    assert np.array_equal(_of_rows(_X, model, "predict", (), np.int64), model.predict(_X))
    assert _of_rows(_X[:0], model, "decision_function", (3,), np.float64).shape == (0, 3)


def test_answers_to_rows_of_every_kind() -> None:
    """A model answers to NumPy's rows as a plain one does, and to columns in pieces as to whole ones."""
    model = LinearSVC()
    model.__dict__.update(vars(maxmargin.LinearSVC().fit(_X, _Y)))
    local = model.to_local()
    assert np.array_equal(model.predict(_X), local.predict(_X))
    assert model.score(_X, _Y) == local.score(_X, _Y)
    lazy = model.decision_function(da.from_array(_X, chunks=(4, 1)))
    assert np.array_equal(lazy.compute(scheduler="synchronous"), local.decision_function(_X))
    pieces = model.predict([delayed(_X[:4]), delayed(_X[4:])])
    assert np.array_equal(np.concatenate(_computed(pieces)), local.predict(_X))


def test_a_cluster_without_workers_is_refused() -> None:
    with pytest.raises(ValueError, match=r"has no workers\. Start some; client\.wait_for_workers\(1\)"):
        DaskPasses(SimpleNamespace(nthreads=dict), [])  # type: ignore[arg-type]


def test_rows_that_an_array_tells_of_are_not_counted() -> None:
    X = da.from_array(_X, chunks=(4, -1))
    assert known_rows(X, len(X.chunks[0])) == list(X.chunks[0])
    assert known_rows(X, 1) is None
    assert known_rows(X[X[:, 0] > 0], 2) is None
    assert known_rows([delayed(_X)], 1) is None
    # A client that could count nothing.
    passes = DaskPasses(
        SimpleNamespace(nthreads=lambda: {"one": 1}),  # type: ignore[arg-type]
        ["a", "b", "c"],  # type: ignore[list-item]
        persist=False,
        counts=[4, 0, 2],
    )
    assert passes.rows() == 6


def test_an_array_with_other_chunks_than_it_tells_of_is_refused() -> None:
    def count(chunk: Any) -> int:
        return int(chunk.count)

    parts = [(_X, _Y, None)] * 3
    said = _answers(parts, [(10, 6, ()), (16, 7, ()), (23, 6, ())], (count, ()))
    assert said[0] == 6
    for error in said[1:]:
        assert isinstance(error, ValueError)
        assert "from row 16 on has 6 rows in place of 7: give from_delayed" in str(error)


def test_partitions_that_a_worker_holds_are_answered_for_together_and_in_their_order() -> None:
    places = ["a", "b"] * 40 + [None, "a", None]
    batches = _grouped(places, {"a": 1, "b": 1})
    assert sorted(k for batch in batches for group in batch for k in group) == list(range(83))
    # Batches follow each other, so that few answers wait; in each, the tasks are few.
    assert all(max(map(max, one)) < min(map(min, other)) for one, other in pairwise(batches))
    assert [len(batch) for batch in batches] == [2, 4]
    for batch in batches:
        for group in batch:
            assert group == sorted(group)
            assert len({places[k] for k in group}) == 1
            assert len(group) == 1 or places[group[0]] is not None
    # A thread is never without work for few tasks' sake.
    assert _grouped(["a"] * 4, {"a": 4}) == [[[0], [1], [2], [3]]]


def test_a_label_column_of_parquet_has_the_partitions_of_the_others(tmp_path: Any) -> None:
    # Dask reads several files at once where only one of many columns is asked for.
    generator = np.random.default_rng(0)
    frames = [pd.DataFrame(generator.normal(size=(50, 8)), columns=list("abcdefgh")) for _ in range(5)]
    for k, frame in enumerate(frames):
        frame.to_parquet(tmp_path / f"{k}.parquet")
    table = dd.read_parquet(str(tmp_path / "*.parquet"))
    parts, names = delayed_parts(table.drop(columns="c"), table["c"], None)
    assert names == list("abdefgh")
    for (X, y, _), frame in zip(_computed(parts), frames, strict=True):
        assert np.array_equal(X, frame.drop(columns="c").to_numpy())
        assert np.array_equal(y, frame["c"].to_numpy())
