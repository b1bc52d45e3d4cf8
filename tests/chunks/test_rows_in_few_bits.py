# SPDX-License-Identifier: BSD-3-Clause
"""Rows packed in memory are those that were read, to the last bit, and are read once."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from maxmargin import Chunks, LinearSVC, core
from maxmargin.chunks.chunk import Chunk
from maxmargin.chunks.fit import Wanted, fit_in_passes
from maxmargin.chunks.packed_rows import Packing
from maxmargin.chunks.passes import LocalPasses


def rows_of_few_values(rows, seed=0, columns=30):
    """Truth values, counts, decimals of two digits and one column without two equal values."""
    generator = np.random.default_rng(seed)
    X = (generator.random((rows, columns)) < 0.3).astype(np.float64)
    X[:, 0] = generator.poisson(3.0, rows)
    X[:, 1] = generator.normal(size=rows).round(2)
    X[:, 2] = generator.normal(size=rows)
    X[:, 3] = -0.0
    return X, (X[:, 0] - 3.0 + X[:, 4] + generator.normal(size=rows) > 0.0).astype(np.int64)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_rows_come_back_as_they_were(dtype, form):
    X, _ = rows_of_few_values(9000)
    y = np.array(["one", "two", "three"])[np.arange(9000) % 3]
    weight = np.arange(9000.0)
    packing = Packing(10_000_000)
    parts = [slice(0, 6000), slice(6000, 6001), slice(6001, 9000)]
    chunks = [Chunk(form(X[part].astype(dtype)), y[part], weight[part], part.start) for part in parts]
    packing.take(chunks)
    assert len(packing.chunks) == 3
    assert packing.nbytes < 0.3 * sum(chunk.X.nbytes if form is np.asarray else 10**9 for chunk in chunks)
    for packed, chunk in zip(packing.chunks, chunks, strict=True):
        back = packed.unpacked()
        assert back.first == chunk.first
        assert np.array_equal(back.y, chunk.y)
        assert np.array_equal(back.weight, chunk.weight)
        if form is np.asarray:
            assert back.X.tobytes() == chunk.X.tobytes()
        else:
            for name in ("data", "indices", "indptr"):
                assert getattr(back.X, name).tobytes() == getattr(chunk.X, name).tobytes()


def test_a_column_of_more_values_than_a_table_has_is_kept_as_it_is():
    values = np.repeat(np.arange(70_000.0), 3)[:, np.newaxis]
    book = core.Codebook(1, False)
    words, widths = book.pack(core.Data.dense(values))
    assert widths.tolist() == [64]
    back = np.empty_like(values)
    book.unpack_dense(words, widths, back)
    assert np.array_equal(back, values)


def test_what_cannot_be_unpacked_is_refused():
    X = np.eye(4)
    book = core.Codebook(4, False)
    words, widths = book.pack(core.Data.dense(X))
    with pytest.raises(ValueError, match="cut off"):
        book.unpack_dense(words[:2], widths, np.empty((4, 4)))
    with pytest.raises(ValueError, match="another type"):
        book.unpack_dense(words, widths, np.empty((4, 4), np.float32))
    with pytest.raises(ValueError, match="another type"):
        book.pack(core.Data.dense(X.astype(np.float32)))
    with pytest.raises(ValueError, match="other columns"):
        book.pack(core.Data.dense(X[:, :3].copy()))
    rows = sparse.csr_array(X)
    words, widths = book.pack(core.Data.sparse(rows.data, rows.indices, rows.indptr, 4))
    with pytest.raises(ValueError, match="more values"):
        book.unpack_sparse(words, widths, np.empty(3), np.empty(3, np.int32), np.empty(5, np.int32))


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_rows_that_have_room_packed_are_read_once(loss):
    readings = []

    def parts():
        readings.append(len(readings))
        for seed in range(40):
            yield rows_of_few_values(1000, seed)

    # 9.6 MB of values.
    wanted = Wanted(loss=loss, tol=1e-3, memory=9_000_000, threads=1)
    fits = [fit_in_passes(LocalPasses(Chunks(parts, memory=9_000_000), jobs), wanted) for jobs in (1, 2)]
    assert len(readings) == 2
    one, two = (fit.models[0] for fit in fits)
    assert np.array_equal(one.w, two.w)
    assert fits[0].passes == one.steps == 1
    assert "packed in memory" in one.solver
    X, y = (np.concatenate(each) for each in zip(*parts(), strict=True))
    whole = LinearSVC(loss=loss, tol=1e-5).fit(X, y).certificate_
    proof = one.certificate
    assert proof.dual <= whole.primal
    assert whole.dual <= proof.primal <= whole.primal * (1.0 + 1.1e-3)


def test_rows_of_many_values_are_not_packed():
    packing = Packing(10_000_000)
    X = np.random.default_rng(0).normal(size=(5000, 10))
    packing.take([Chunk(X, X[:, 0] > 0.0)])
    packing.take([Chunk(np.zeros((10, 10)), np.arange(10) > 5)])
    assert packing.chunks == []
    assert packing.passes() is None
