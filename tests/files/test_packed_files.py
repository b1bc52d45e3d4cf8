# SPDX-License-Identifier: BSD-3-Clause
"""Packed data: the same rows as in their sources, whole or not at all, and gone on with after a kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from scipy import sparse

from combinations import every_pair
from maxmargin.files import DataError, fingerprint, pack, read, stream, write_libsvm
from maxmargin.files.data import block_writer, packing
from maxmargin.files.data.several import data_files, state_of


def rows_of(count=900, seed=0, *, single=True):
    generator = np.random.default_rng(seed)
    X = np.round(generator.normal(size=(count, 6)), 2) * (generator.random((count, 6)) < 0.5)
    X = X.astype(np.float32).astype(np.float64) if single else X
    return X, generator.integers(0, 3, count)


def written(folder, format, X, y, name="a"):
    path = folder / f"{name}.{format}"
    if format.startswith("svm"):
        plain = folder / f"{name}.plain"
        write_libsvm(plain, X, y)
        if format == "svm.gz":
            import gzip

            path.write_bytes(gzip.compress(plain.read_bytes()))
            plain.unlink()
        else:
            plain.rename(path)
    elif format == "npz":
        np.savez(path, X=X, y=y)
    elif format == "csv":
        lines = [
            ",".join([*(repr(v) for v in row), f"c{label}"])
            for row, label in zip(X.tolist(), y, strict=True)
        ]
        path.write_text("a,b,c,d,e,f,label\n" + "\n".join(lines) + "\n")
    else:
        import pyarrow as pa
        from pyarrow import parquet

        table = dict(zip("abcdef", X.T, strict=True)) | {"label": y}
        parquet.write_table(pa.table(table), path, row_group_size=200)
    return path


@every_pair(
    format=["svm", "svm.gz", "npz", "csv", "parquet"],
    single=[True, False],
    several=[1, 3],
    block=[1 << 12, 1 << 22],
)
def test_packed_rows_are_those_of_their_sources(tmp_path, monkeypatch, format, single, several, block):
    monkeypatch.setattr(block_writer, "BLOCK_BYTES", block)
    sources = [
        written(tmp_path, format, *rows_of(300, seed, single=single), name=f"part{seed}")
        for seed in range(several)
    ]
    done = pack(sources, tmp_path / "all.mmd")
    parts = [read(path, columns=6) for path in sources]
    X = np.concatenate([p.X.toarray() if sparse.issparse(p.X) else p.X for p in parts])
    y = np.concatenate([p.y for p in parts])
    whole = read(tmp_path / "all.mmd")
    assert sparse.issparse(whole.X) == format.startswith("svm")
    assert np.array_equal(whole.X.toarray() if sparse.issparse(whole.X) else whole.X, X)
    assert np.array_equal(whole.y, y)
    assert whole.feature_names == parts[0].feature_names
    assert done.fingerprint == fingerprint(X, y)
    assert (done.rows, done.columns, done.weighted) == (300 * several, 6, False)
    assert sum(data.X.shape[0] for data in stream(tmp_path / "all.mmd")) == done.rows
    assert not list(tmp_path.glob("*.part"))
    # Values that float32 has are stored in it: 4 bytes for each, and no more than 8 for the others.
    assert done.nbytes < 12_000 * done.blocks + done.stored * (4 if single else 8) * (1 + done.sparse)


def test_weights_and_dense_rows(tmp_path):
    X, y = rows_of()
    weights = np.linspace(0.0, 2.0, len(y))
    done = pack(
        lambda: [(X[:500], y[:500], weights[:500]), (X[500:], y[500:], weights[500:])], tmp_path / "a.mmd"
    )
    found = read(tmp_path / "a.mmd")
    assert done.weighted
    assert np.array_equal(found.weight, weights)
    assert found.y.dtype == np.int64
    write_libsvm(tmp_path / "a.svm", X, y)
    assert not pack(tmp_path / "a.svm", tmp_path / "b.mmd", dense=True).sparse
    assert np.array_equal(read(tmp_path / "b.mmd").X, X)


def test_queries_are_packed(tmp_path):
    X, y = rows_of(60)
    write_libsvm(tmp_path / "a.svm", X, y, query=np.arange(60) // 7)
    pack(tmp_path / "a.svm", tmp_path / "a.mmd")
    assert np.array_equal(read(tmp_path / "a.mmd").query, np.arange(60) // 7)


@pytest.mark.parametrize("cut", [0, 1, 9, 20_000, -5, -60, -3000])
def test_a_packing_that_was_stopped_goes_on_after_its_last_whole_block(tmp_path, monkeypatch, cut):
    monkeypatch.setattr(block_writer, "BLOCK_BYTES", 1 << 11)
    sources = [written(tmp_path, "svm", *rows_of(700, seed), name=f"p{seed}") for seed in range(2)]
    straight = pack(sources, tmp_path / "all.mmd")
    content = (tmp_path / "all.mmd").read_bytes()
    (tmp_path / "all.mmd").unlink()
    (tmp_path / "all.mmd.part").write_bytes(content[:cut] if cut else content[:-200] + b"?" * 200)
    again = pack(sources, tmp_path / "all.mmd")
    assert (tmp_path / "all.mmd").read_bytes() == content
    assert 0 <= again.resumed <= straight.rows
    assert (again.resumed > 0) == (cut not in (1, 9))


def test_a_source_that_changed_is_packed_anew(tmp_path, monkeypatch):
    monkeypatch.setattr(block_writer, "BLOCK_BYTES", 1 << 11)
    source = written(tmp_path, "svm", *rows_of(700))
    before = state_of([str(source)])
    pack(source, tmp_path / "a.mmd")
    os.rename(tmp_path / "a.mmd", tmp_path / "a.mmd.part")
    write_libsvm(source, *rows_of(700, 5))
    assert state_of([str(source)]) != before
    assert pack(source, tmp_path / "a.mmd").resumed == 0
    assert np.array_equal(read(tmp_path / "a.mmd").y, rows_of(700, 5)[1])


KILLED = """
import sys
from maxmargin.files import pack
from maxmargin.files.data import block_writer
block_writer.BLOCK_BYTES = 1 << 11
write = block_writer.BlockWriter._write
def slowly(self, taken):
    import time
    write(self, taken)
    time.sleep(0.05)
    print(len(self.places), flush=True)
block_writer.BlockWriter._write = slowly
pack(sys.argv[1], sys.argv[2])
"""


def test_a_killed_packing_leaves_no_file_and_loses_no_block(tmp_path, monkeypatch):
    monkeypatch.setattr(block_writer, "BLOCK_BYTES", 1 << 11)
    source = written(tmp_path, "svm", *rows_of(5000))
    target = tmp_path / "a.mmd"
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(source), str(target)], stdout=subprocess.PIPE, text=True
    )
    for line in process.stdout:
        if int(line) >= 4:
            break
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not target.exists()
    done = pack(source, target)
    assert done.resumed >= 4 * 256
    assert np.array_equal(read(target).X.toarray(), read(source).X.toarray())


@pytest.mark.parametrize(
    ("contents", "words"),
    [
        (["1 1:1\n2 1:x\n"], "a.svm, line 2, column 5: a value must be a decimal number"),
        (["1 1:1\n", None], "sparse rows .* labels are numbers"),
    ],
)
def test_what_is_wrong_is_named_by_file_and_line(tmp_path, contents, words):
    sources = [tmp_path / "a.svm", tmp_path / "b.npz"][: len(contents)]
    sources[0].write_text(contents[0])
    if len(contents) > 1:
        np.savez(sources[1], X=np.eye(2), y=[0, 1])
    with pytest.raises(DataError, match=words):
        pack(sources, tmp_path / "all.mmd")
    assert not (tmp_path / "all.mmd").exists()


def test_tables_must_have_the_same_columns(tmp_path):
    (tmp_path / "a.csv").write_text("a,b,label\n1,2,x\n")
    (tmp_path / "b.csv").write_text("b,a,label\n1,2,x\n")
    with pytest.raises(DataError, match=r"b\.csv: the columns have other names"):
        pack(tmp_path / "*.csv", tmp_path / "all.mmd")


def test_rows_of_another_width_and_no_rows_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"here are 2 columns, and before were 3\. .* the same columns"):
        pack(lambda: [(np.eye(3), [0, 1, 0]), (np.eye(2), [0, 1])], tmp_path / "a.mmd")
    with pytest.raises(DataError, match="there is not a single row"):
        pack(lambda: [(np.empty((0, 3)), np.empty(0))], tmp_path / "b.mmd")
    assert not (tmp_path / "a.mmd").exists()
    assert not (tmp_path / "b.mmd").exists()


@pytest.mark.parametrize(
    "labels",
    [
        np.array([True, False, True]),
        np.array([1, 2, 3], np.uint16),
        np.array([1, 2**63, 2**64 - 1], np.uint64),
        np.array([-(2**40), 0, 2**40]),
        np.array([-200, 0, 200]),
        np.array([0.1, -0.0, 1e300]),
    ],
)
def test_labels_of_every_type_come_back(tmp_path, labels):
    pack(lambda: [(np.eye(3), labels)], tmp_path / "a.mmd")
    found = read(tmp_path / "a.mmd").y
    assert found.tolist() == labels.tolist()


def test_rows_without_a_query_are_told_from_those_of_one(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:1\n2 1:2\n")
    (tmp_path / "b.svm").write_text("1 qid:4 1:1\n")
    pack([tmp_path / "a.svm", tmp_path / "b.svm"], tmp_path / "all.mmd")
    assert read(tmp_path / "all.mmd").query.tolist() == [-1, -1, 4]


def test_folders_and_patterns(tmp_path):
    for name in ("b.csv.gz", "a.svm", "notes.md", ".hidden.svm"):
        (tmp_path / name).write_text("1 1:1\n")
    names = [os.path.basename(path) for path in data_files(str(tmp_path))]
    assert names == ["a.svm", "b.csv.gz"]
    assert data_files([str(tmp_path / "*.svm")]) == [str(tmp_path / "a.svm")]
    with pytest.raises(DataError, match="no file has such a name"):
        data_files(str(tmp_path / "*.npz"))


def test_every_damaged_byte_is_found(tmp_path):
    X, y = rows_of(40)
    pack(lambda: [(X, y)], tmp_path / "a.mmd")
    content = bytearray((tmp_path / "a.mmd").read_bytes())
    generator = np.random.default_rng(0)
    for place in generator.integers(0, len(content), 60):
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(generator.integers(8))
        (tmp_path / "b.mmd").write_bytes(damaged)
        try:
            found = read(tmp_path / "b.mmd")
        except DataError:
            continue
        # What is not read at all: the head, what fills up, and spaces of a header.
        assert np.array_equal(found.X, X)
        assert np.array_equal(found.y, y)


def test_two_processes_do_not_write_one_file(tmp_path):
    source = written(tmp_path, "svm", *rows_of(50))
    pytest.importorskip("fcntl")
    with (
        packing._opened(f"{os.path.realpath(tmp_path / 'a.mmd')}.part"),
        pytest.raises(OSError, match="another process is packing it"),
    ):
        pack(source, tmp_path / "a.mmd")


def test_reading_is_quick(tmp_path):
    X = np.ones((200_000, 20), np.float32)
    pack(lambda: [(X, np.arange(200_000) % 2)], tmp_path / "a.mmd")
    start = time.process_time()
    count = sum(data.X.shape[0] for data in stream(tmp_path / "a.mmd", dtype=np.float32))
    assert count == 200_000
    assert time.process_time() - start < 2.0
