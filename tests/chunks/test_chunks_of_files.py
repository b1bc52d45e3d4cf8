# SPDX-License-Identifier: BSD-3-Clause
"""Chunks that come from files: the same rows, whatever the format; what is wrong is named."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from maxmargin import Chunks, LinearSVC
from maxmargin.files import DataError, pack, write_libsvm
from maxmargin.files.data import block_writer


def drawn(rows=4000):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(rows, 5)).astype(np.float32).astype(np.float64)
    return X, np.where(X[:, 0] + 0.5 * generator.normal(size=rows) > 0, 1, -1)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    import pyarrow as pa
    from pyarrow import parquet

    monkeypatch.setattr(block_writer, "BLOCK_BYTES", 1 << 14)
    X, y = drawn()
    write_libsvm(tmp_path / "a.svm", X, y)
    (tmp_path / "b.svm.gz").write_bytes(gzip.compress((tmp_path / "a.svm").read_bytes()))
    (tmp_path / "npz").mkdir()
    for k in range(4):
        part = slice(1000 * k, 1000 * (k + 1))
        np.savez(tmp_path / "npz" / f"{k}.npz", X=X[part], y=y[part])
        table = dict(zip("abcde", X[part].T, strict=True)) | {"label": y[part]}
        parquet.write_table(pa.table(table), tmp_path / f"{k}.parquet")
    pack(tmp_path / "a.svm", tmp_path / "sparse.mmd")
    pack(tmp_path / "npz", tmp_path / "dense.mmd")
    return tmp_path


@pytest.mark.parametrize("source", ["a.svm", "b.svm.gz", "npz", "*.parquet", "sparse.mmd", "dense.mmd"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_model_is_that_of_the_rows(folder, source, loss):
    X, y = drawn()
    chunks = Chunks(folder / source, memory=4_000_000)
    model = LinearSVC(loss=loss, tol=1e-4).fit(chunks)
    exact = LinearSVC(loss=loss, tol=1e-8).fit(X, y)
    assert model.status_.certified
    assert model.certificate_.dual <= exact.certificate_.primal * (1 + 1e-12)
    assert model.certificate_.primal >= exact.certificate_.dual * (1 - 1e-12)
    assert model.classes_.tolist() == [-1, 1]
    if source == "*.parquet":
        assert model.feature_names_in_.tolist() == list("abcde")


def test_packed_data_are_read_in_their_blocks_or_in_parts_of_them(folder):
    whole = [chunk.count for chunk in Chunks(folder / "dense.mmd")]
    assert sum(whole) == 4000
    assert len(set(whole[:-1])) == 1
    small = Chunks(folder / "dense.mmd", memory=64 * 4000)
    counts = [chunk.count for chunk in small]
    assert sum(counts) == 4000
    assert max(counts) * 5 * 4 <= 4000
    assert small.rows == 4000
    assert [chunk.count for chunk in Chunks(folder / "dense.mmd", rows=900)] == [900, 900, 900, 900, 400]


def test_weights_come_with_packed_data(folder):
    X, y = drawn()
    weights = np.tile([0.5, 1.0, 2.0, 0.0], 1000)
    pack(lambda: [(X, y, weights)], folder / "weights.mmd")
    model = LinearSVC(tol=1e-6).fit(Chunks(folder / "weights.mmd"))
    exact = LinearSVC(tol=1e-8).fit(X, y, weights)
    assert model.certificate_.primal == pytest.approx(exact.certificate_.primal, rel=1e-5)


def test_a_bad_row_is_named_by_file_and_line(folder):
    (folder / "c.svm").write_text("1 1:1\n-1 2:x\n")
    with pytest.raises(DataError, match=r"c\.svm, line 2, column 6"):
        LinearSVC().fit(Chunks([folder / "a.svm", folder / "c.svm"]))
    other = folder / "other.csv"
    other.write_text("a,b,c,d,f,label\n1,2,3,4,5,1\n")
    with pytest.raises(DataError, match=r"other\.csv: the columns have other names"):
        LinearSVC().fit(Chunks([folder / "0.parquet", other]))
    np.savez(folder / "z.npz", X=np.array([[1.0], [np.inf]]), y=[0, 1])
    with pytest.raises(DataError, match=r"z\.npz: row 2 has a value"):
        LinearSVC().fit(Chunks(folder / "z.npz"))


def test_data_that_change_between_passes_are_noticed(folder):
    chunks = Chunks(folder / "dense.mmd")
    list(chunks)
    with open(folder / "dense.mmd", "r+b") as file:
        file.seek(5000)
        file.write(b"????")
    with pytest.raises(DataError, match="have changed since"):
        list(chunks)


def test_damage_is_noticed_in_the_first_pass(folder):
    with open(folder / "dense.mmd", "r+b") as file:
        file.seek(5000)
        file.write(b"????")
    with pytest.raises(DataError, match="do not match their checksum"):
        list(Chunks(folder / "dense.mmd"))


def test_options_are_those_of_files(folder):
    (folder / "d.csv").write_text("1;2,5;x\n2;1,5;y\n")
    read = Chunks(folder / "d.csv", label="3", header=False, delimiter=";", decimal=",")
    (chunk,) = read
    assert chunk.X.tolist() == [[1.0, 2.5], [2.0, 1.5]]
    with pytest.raises(ValueError, match="Only files take the options header"):
        Chunks(drawn(), header=False)
