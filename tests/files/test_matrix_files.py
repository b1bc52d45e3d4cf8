# SPDX-License-Identifier: BSD-3-Clause
"""Matrices in .npz and tables in CSV and Parquet: read, streamed, and refused where they are wrong."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import time
import zipfile
from contextlib import nullcontext

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from maxmargin.files import DataError, fingerprint, read, stream
from maxmargin.files.data.compressed import TextSource

# ---- .npz ---------------------------------------------------------------------------------------------

X = sparse.random_array((300, 40), density=0.2, format="csr", rng=np.random.default_rng(0))
Y = np.arange(300) % 3


def savez(path, compressed=False, **arrays):
    (np.savez_compressed if compressed else np.savez)(path, **arrays)
    return str(path)


def parts(**changes):
    arrays = dict(data=X.data, indices=X.indices, indptr=X.indptr, shape=np.array(X.shape), y=Y)
    return {**arrays, **changes}


@pytest.mark.parametrize("compressed", [False, True])
def test_npz(tmp_path, compressed, monkeypatch):
    files = [
        savez(tmp_path / "sparse.npz", compressed, **parts()),
        savez(tmp_path / "wide.npz", compressed, **parts(indices=X.indices.astype(np.int64))),
        savez(tmp_path / "dense.npz", compressed, X=X.toarray(), y=Y),
        savez(tmp_path / "fortran.npz", compressed, X=np.asfortranarray(X.toarray()), y=Y),
        savez(tmp_path / "scipy.npz", compressed, **parts(format=np.array(b"csr"))),
    ]
    os.rename(files[-1], tmp_path / "no_suffix")
    files[-1] = str(tmp_path / "no_suffix")
    monkeypatch.setattr("maxmargin.files.data.npz._VALUES_AT_A_TIME", 500)
    monkeypatch.setattr("maxmargin.files.data.npz._ROWS_AT_A_TIME", 70)
    for path in files:
        data = read(path)
        assert fingerprint(data.X, data.y) == fingerprint(X, Y)
        assert data.X.dtype == np.float64
        assert read(path, dtype=np.float32).X.dtype == np.float32
        chunks = list(stream(path))
        assert len(chunks) > (1 if "fortran" not in path else 0)
        stacked = np.vstack([np.asarray(sparse.csr_array(chunk.X).toarray()) for chunk in chunks])
        np.testing.assert_array_equal(stacked, X.toarray())
        np.testing.assert_array_equal(np.concatenate([chunk.y for chunk in chunks]), Y)


def test_npz_of_integers_texts_and_no_labels(tmp_path):
    data = read(savez(tmp_path / "a.npz", X=np.eye(3, dtype=np.uint8), y=np.array(["a", "b", "a"])))
    assert data.X.dtype == np.float64
    assert data.y.tolist() == ["a", "b", "a"]
    path = savez(tmp_path / "b.npz", X=np.eye(3))
    assert read(path, labelled=False).y is None
    with pytest.raises(DataError, match="there is no array 'y'; there are X"):
        read(path)
    unsorted = parts(
        indices=np.array([3, 1]), data=np.ones(2), indptr=np.array([0, 2]), shape=[1, 5], y=[1]
    )
    assert read(savez(tmp_path / "c.npz", **unsorted)).X.indices.tolist() == [1, 3]


def test_npz_columns(tmp_path):
    path = savez(tmp_path / "a.npz", **parts())
    assert read(path, columns=50).X.shape == (300, 50)
    fewer = read(path, columns=10, ignore_extra=True)
    assert fewer.X.shape == (300, 10)
    assert fewer.dropped == X.nnz - fewer.X.nnz
    with pytest.raises(DataError, match="there are 40 columns, and 10 were asked for"):
        read(path, columns=10)


NAN = np.where(np.arange(X.nnz) == 7, np.nan, X.data)
WRONG = {
    "indptr decreases": parts(indptr=np.r_[X.indptr[:5], 0, X.indptr[6:]]),
    "indptr leaves the data": parts(indptr=np.r_[X.indptr[:-1], 10**9]),
    "indptr is negative": parts(indptr=np.r_[0, -5, X.indptr[2:]]),
    "indptr begins late": parts(indptr=np.r_[1, X.indptr[1:]]),
    "indptr ends early": parts(indptr=np.r_[X.indptr[:-1], X.indptr[-2]]),
    "indptr is short": parts(indptr=X.indptr[:-1]),
    "indptr of floats": parts(indptr=X.indptr.astype(float)),
    "index too large": parts(indices=np.where(np.arange(X.nnz) == 9, 40, X.indices)),
    "index negative": parts(indices=np.where(np.arange(X.nnz) == 9, -1, X.indices)),
    "index of 64 bits": parts(indices=np.where(np.arange(X.nnz) == 9, np.int64(2**40), X.indices)),
    "more values than indices": parts(data=np.ones(X.nnz + 1)),
    "shape of three": parts(shape=np.array([300, 40, 1])),
    "shape negative": parts(shape=np.array([300, -40])),
    "shape of floats": parts(shape=np.array([300.0, 40.0])),
    "shape too large": parts(shape=np.array([2**62, 40])),
    "labels too short": parts(y=Y[:-1]),
    "labels of two dimensions": parts(y=Y[:, None]),
    "csc": parts(format=np.array(b"csc")),
    "values of texts": parts(data=np.full(X.nnz, "a")),
    "complex values": parts(data=X.data * 1j),
    "NaN": parts(data=NAN),
    "infinite label": parts(y=np.where(Y == 2, np.inf, 0.0)),
    "shape far too wide": parts(shape=np.array([300, 2**50])),
    "no rows": dict(X=np.ones((0, 3)), y=np.ones(0)),
    "no columns": dict(X=np.ones((2**20, 0)), y=np.ones(2**20)),
    "no rows of a sparse matrix": dict(
        data=np.ones(0), indices=np.ones(0, int), indptr=np.zeros(1, int), shape=[0, 3], y=np.ones(0)
    ),
    "no matrix": dict(y=Y),
    "one dimension": dict(X=np.ones(3), y=np.ones(3)),
    "texts": dict(X=np.array([["a"]]), y=np.ones(1)),
    "objects": dict(X=np.array([[None]], dtype=object), y=np.ones(1)),
    "objects as labels": dict(X=np.ones((1, 1)), y=np.array([{}], dtype=object)),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_npz_is_refused(tmp_path, name):
    path = savez(tmp_path / "a.npz", **WRONG[name])
    for reader in (read, lambda path: list(stream(path))):
        with pytest.raises(DataError) as caught:
            reader(path)
        assert path in str(caught.value)


def test_rows_of_an_npz_that_are_not_finite_can_be_skipped(tmp_path):
    data = read(savez(tmp_path / "a.npz", **WRONG["NaN"]), skip_bad_lines=True)
    assert (data.X.shape[0], len(data.y), data.skipped) == (299, 299, 1)


def npy_header(shape, dtype="<f8"):
    stream_ = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream_, {"shape": shape, "fortran_order": False, "descr": dtype})
    return stream_.getvalue()


@pytest.mark.parametrize(
    ("member", "claims"),
    [
        (npy_header((10**9, 10**9)) + bytes(64), "another size"),
        (npy_header((2**62, 2**62)) + bytes(64), "another size"),
        (npy_header((-1, 5)) + bytes(64), "another size"),
        (npy_header((2, 2), "|O") + bytes(64), "only numbers and texts"),
        (b"\x93NUMPY\x03\x00" + bytes(64), "unknown"),
        (b"no header", "cannot be read"),
        (b"", "cannot be read"),
    ],
    ids=range(7),
)
def test_a_npz_that_claims_what_it_does_not_have(tmp_path, member, claims):
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("X.npy", member)
        archive.writestr("y.npy", npy_header((1,)) + bytes(8))
    with pytest.raises(DataError, match=claims):
        read(path)


def test_a_npz_that_grows_beyond_reason(tmp_path):
    path = savez(tmp_path / "a.npz", compressed=True, X=np.zeros((9_000_000, 1)), y=np.zeros(9_000_000))
    with pytest.raises(DataError, match=r"claims 72000128 bytes, in a file of .* not compressed"):
        read(path)


@settings(max_examples=100)
@given(st.data())
def test_any_change_to_a_npz_gives_rows_or_a_data_error(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "changed.npz"
    savez(path, data.draw(st.booleans()), **parts())
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(1, len(content)))])
    try:
        result = read(path, format="npz")
    except DataError:
        return
    assert result.X.shape[0] == len(result.y)


# ---- tables -------------------------------------------------------------------------------------------

CSV = "a,b,label,c\n1,2,x,true\n3,4.5,y,false\n-1e3,6,x,true\n"


def test_csv(file):
    for path in (
        file(CSV.encode(), "a.csv"),
        file(CSV.replace(",", "\t").encode(), "a.tsv"),
        file(gzip.compress(CSV.encode()), "a.csv.gz"),
        file(zstandard.compress(CSV.replace(",", "\t").encode()), "a.tsv.zst"),
        file(CSV.replace("label", "class").encode(), "class.csv"),
    ):
        data = read(path)
        assert data.X.tolist() == [[1, 2, 1], [3, 4.5, 0], [-1000, 6, 1]]
        assert data.X.dtype == np.float64
        assert data.y.tolist() == ["x", "y", "x"]
        assert data.feature_names == ["a", "b", "c"]
    assert read(file(CSV.encode(), "a.data"), format="csv").X.shape == (3, 3)


def test_a_csv_whose_first_block_has_no_decimals(file, monkeypatch):
    monkeypatch.setattr("maxmargin.files.data.sheets._BLOCK", 100)
    path = file(b"label,a\n" + b"1,2\n" * 100 + b"0,0.5\n" * 100, "a.csv")
    data = read(path)
    assert data.X.ravel().tolist() == [2.0] * 100 + [0.5] * 100
    assert data.y.dtype.kind == "i"
    chunks = list(stream(path))
    assert len(chunks) > 2
    assert np.vstack([chunk.X for chunk in chunks]).tolist() == data.X.tolist()


def parquet(path, **columns):
    pq.write_table(pa.table(columns), path)
    return str(path)


def test_parquet(tmp_path):
    path = parquet(
        tmp_path / "a.parquet",
        target=pa.array(["u", "v"]).dictionary_encode(),
        a=pa.array([1, 2], pa.int8()),
        b=pa.array([0.5, 1.5], pa.float32()),
        c=pa.array([True, False]),
    )
    for data in (read(path), *stream(path)):
        assert data.X.tolist() == [[1, 0.5, 1], [2, 1.5, 0]]
        assert data.y.tolist() == ["u", "v"]
        assert data.feature_names == ["a", "b", "c"]
    assert read(path, columns=2, ignore_extra=True).feature_names == ["a", "b"]


def test_tables_without_labels(file):
    path = file(b"a,b\n1,2\n", "a.csv")
    data = read(path, labelled=False)
    assert data.y is None
    assert data.feature_names == ["a", "b"]
    with pytest.raises(DataError, match=r"no column is called label, target, y or class; .* 'a', 'b'"):
        read(path)
    with pytest.raises(DataError, match=r"no column is called 'z'; the columns are 'a', 'b'"):
        read(path, label="z")
    assert read(path, label="b").y.tolist() == [2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"a,label\n1,0\n,1\n", r"row 2 has no value in column 'a'. Fill it in"),
        (b"a,label\n1,0\n2,\n", "row 2 has no value in column 'label'"),
        (b"a,label\n1,0\ninf,1\n", "row 2 has a value or a label that is not finite"),
        (b"a,city,label\n1,Ulm,0\n", "column 'city' holds string and no numbers"),
        (b"a,a,label\n1,1,0\n", "two columns are called 'a'"),
        (b"a,label\n1,0\n1\n", "line 3: a row has 1 value, and the table 2 columns: '1'"),
        (b"", "the file is empty"),
        (b"a,label\n", "not a single row"),
        (b"a,label\n1," + b"x" * 1000 + b"\n", "1000 characters"),
        (b"a,label\n\xac,0\n", r"the table is not in UTF-8: '.*'. Save it as UTF-8"),
        (b"\xff\xfea\x00", "the table is in UTF-16, not in UTF-8"),
    ],
)
def test_a_wrong_csv_is_refused(file, text, message):
    path = file(text, "a.csv")
    for reader in (read, lambda path: list(stream(path))):
        with pytest.raises(DataError, match=message) as caught:
            reader(path)
        assert path in str(caught.value)


@pytest.mark.parametrize("bad", [b"1\n", b"x,1\n", b""], ids=["ragged", "text", "sound"])
def test_nobody_reads_a_csv_after_its_end(file, monkeypatch, bad):
    """A thread of pyarrow that still reads ahead when the program ends makes Python abort it."""
    path = file(b"a,label\n" + b"1,0\n" * 500 + bad + b"1,0\n" * 5000, "a.csv")
    monkeypatch.setattr("maxmargin.files.data.sheets._BLOCK", 1000)
    right, reads = TextSource.fill, []

    def slow_fill(source, buffer):
        reads.append("begun")
        time.sleep(0.01)
        count = right(source, buffer)
        reads.append("done")
        return count

    monkeypatch.setattr(TextSource, "fill", slow_fill)
    chunks = stream(path)
    with nullcontext() if bad == b"" else pytest.raises(DataError):
        for _ in range(3 if bad == b"" else 1000):
            next(chunks)
    chunks.close()
    known = list(reads)
    assert known[-1] == "done"
    time.sleep(0.1)
    assert reads == known


@pytest.mark.parametrize("bad", ["1,2,3", "x,1"])
def test_pyarrow_gets_text_that_is_in_memory(file, monkeypatch, bad):
    """From a file object of ours it would read ahead on a thread that nobody can wait for."""
    path = file(b"a,label\n" + b"1,0\n" * 2000 + bad.encode() + b"\n", "a.csv")
    monkeypatch.setattr("maxmargin.files.data.sheets._BLOCK", 1000)
    right, given = pa_csv.open_csv, []

    def open_csv(text, **options):
        given.append(type(text))
        return right(text, **options)

    monkeypatch.setattr(pa_csv, "open_csv", open_csv)
    with pytest.raises(DataError):
        read(path)
    assert set(given) == {pa.BufferReader}


def test_a_program_that_refuses_a_csv_ends_as_it_says(file):
    path = file(b"a,label\n" + b"1,0\n" * 500 + b"1,2,3\n" + b"1,0\n" * 50_000, "a.csv")
    program = (
        "import sys\n"
        "from maxmargin.files import DataError, read\n"
        "from maxmargin.files.data import sheets\n"
        "sheets._BLOCK = 1000\n"
        "try:\n"
        "    read(sys.argv[1])\n"
        "except DataError:\n"
        "    sys.exit(2)\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", program, path]) for _ in range(6)]
    assert [process.wait() for process in running] == [2] * 6


def test_pieces_of_a_csv_are_read_as_one_table(file, monkeypatch):
    """A piece may begin or end with empty lines, and columns have the types of the first block."""
    rows = [f"{number},{number % 7}.5,{'ab'[number % 2]}" for number in range(3000)]
    text = "a,b,label\n" + "\n".join(rows[:2000]) + "\n" * 9000 + "\r\n".join(rows[2000:])
    monkeypatch.setattr("maxmargin.files.data.sheets._BLOCK", 1000)
    data = read(file(text.encode(), "a.csv"))
    assert data.X.tolist() == [[number, number % 7 + 0.5] for number in range(3000)]
    assert data.y.tolist() == ["ab"[number % 2] for number in range(3000)]


def test_rows_that_are_left_out_are_counted_over_all_pieces(file, monkeypatch):
    lines = ["1,0"] * 20_000
    bad = [0, 1, 250, 999, 1500, 5001, 19_999]
    for number in bad:
        lines[number] = "1,2,3"
    monkeypatch.setattr("maxmargin.files.data.sheets._BLOCK", 1000)
    path = file(("a,label\n" + "\n".join(lines) + "\n").encode(), "a.csv")
    chunks = list(stream(path, skip_bad_lines=True))
    assert [gap for chunk in chunks for gap in chunk.gaps] == bad
    assert sum(len(chunk.X) for chunk in chunks) == 20_000 - len(bad)


def test_bad_rows_of_a_csv_can_be_skipped(file):
    text = b"a,b,label\n1,2,0\n,2,1\n3,4\n5,6,1\ninf,1,0\n7,8,\n9,1,1\n"
    data = read(file(text, "a.csv"), skip_bad_lines=True)
    assert data.X.tolist() == [[1, 2], [5, 6], [9, 1]]
    assert data.y.tolist() == [0, 1, 1]
    assert data.skipped == 4


def test_bad_rows_at_the_end_of_a_csv_are_counted(file, monkeypatch):
    monkeypatch.setattr("maxmargin.files.data.sheets._BLOCK", 64)
    data = read(file(b"a,label\n" + b"1,0\n" * 30 + b"1,2,3,4,5\n" * 30, "a.csv"), skip_bad_lines=True)
    assert (len(data.y), data.skipped) == (30, 30)


def test_wrong_parquet(tmp_path, file):
    with pytest.raises(DataError, match="cannot be read"):
        read(file(b"PAR1" + b"x" * 100, "a.parquet"))
    path = parquet(tmp_path / "a.parquet", y=[0, 1], a=[1.0, None])
    with pytest.raises(DataError, match="row 2 has no value in column 'a'"):
        read(path)
    path = parquet(tmp_path / "b.parquet", y=[0, 1], a=[[1.0], [2.0]])
    with pytest.raises(DataError, match="column 'a' holds list"):
        read(path)


def test_a_parquet_that_grows_beyond_reason(tmp_path):
    path = parquet(tmp_path / "a.parquet", y=np.zeros(9_000_000), a=np.zeros(9_000_000))
    with pytest.raises(DataError, match="9000000 rows of 2 columns would take 144000000 bytes"):
        read(path)
    assert sum(len(chunk.y) for chunk in stream(path)) == 9_000_000


def test_heavy_packages_are_imported_when_they_are_needed(file):
    code = """
import sys
import time
from maxmargin.files import DataError, fingerprint, read, read_libsvm, stream
read(sys.argv[1])
assert not {"pyarrow", "zstandard", "matplotlib", "sklearn"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code, file(b"1 1:1\n", "a.svm")], check=True, timeout=60)


def test_without_pyarrow_the_cure_is_named(file, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(DataError, match=r"pip install 'maxmargin\[tables\]'"):
        read(file(CSV.encode(), "a.csv"))
