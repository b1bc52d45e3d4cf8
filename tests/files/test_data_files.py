# SPDX-License-Identifier: BSD-3-Clause
"""LIBSVM text: read as Python and scikit-learn read it, and never trusted."""

from __future__ import annotations

import os
import pickle
from io import BytesIO

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from maxmargin import core
from maxmargin.files import DataError, read, read_libsvm, stream
from maxmargin.files.data.libsvm import read_text, stream_text
from maxmargin.files.data.reading import Options


def rows_of(X):
    """As plain Python: for every row, the pairs of column and value."""
    return [
        list(zip(X.indices[a:b].tolist(), X.data[a:b].tolist(), strict=True))
        for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)
    ]


def parse(text: bytes, **changes):
    arguments = dict(
        wide=False,
        single=False,
        first_index=1,
        columns=2**40,
        drop_extra=False,
        labels_optional=False,
        skip_faulty=False,
    )
    return core.parse_libsvm(np.frombuffer(text, np.uint8), **{**arguments, **changes})


def assert_equal(a, b):
    assert a.X.shape == b.X.shape
    for one, other in ((a.X.data, b.X.data), (a.X.indices, b.X.indices), (a.X.indptr, b.X.indptr)):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(a.y, b.y)
    assert (a.skipped, a.dropped) == (b.skipped, b.dropped)


# ---- what is accepted ------------------------------------------------------------------------------


def test_the_whole_grammar(file):
    path = file(
        b"\xef\xbb\xbf# a comment line\n"
        b"+1 1:0.5 3:-2 # and one after the values\n"
        b"\n"
        b"-1\tqid:7\t2:+1e-3\t \r\n"
        b"  2.5 +4:.5 007:5.  \n"
        b"3\n"
        b"1e1 1:1#close\n"
        b"-0 2:0"
    )
    data = read(path)
    assert data.y.tolist() == [1.0, -1.0, 2.5, 3.0, 10.0, 0.0]
    assert rows_of(data.X) == [
        [(0, 0.5), (2, -2.0)],
        [(1, 0.001)],
        [(3, 0.5), (6, 5.0)],
        [],
        [(0, 1.0)],
        [(1, 0.0)],
    ]
    assert data.X.shape == (6, 7)
    assert data.X.format == "csr"
    assert data.X.dtype == np.float64
    assert data.X.indices.dtype == data.X.indptr.dtype == np.int32
    assert (data.skipped, data.dropped, data.feature_names) == (0, 0, None)


def test_options(file):
    path = file(b"1 0:1 3:2\n-1 1:3\n")
    X, y = read_libsvm(path, zero_based=True, columns=9)
    assert X.shape == (2, 9)
    assert rows_of(X) == [[(0, 1.0), (3, 2.0)], [(1, 3.0)]]
    assert y.tolist() == [1.0, -1.0]
    small = read(path, zero_based=True, columns=2, ignore_extra=True)
    assert rows_of(small.X) == [[(0, 1.0)], [(1, 3.0)]]
    assert small.dropped == 1
    assert read(path, zero_based=True, dtype=np.float32).X.dtype == np.float32
    with pytest.raises(ValueError, match=r"dtype must be float32 or float64. Got int64"):
        read(path, dtype=np.int64)
    with pytest.raises(ValueError, match="columns must be a positive integer"):
        read(path, columns=0)
    with pytest.raises(ValueError, match="threads must be a positive integer"):
        read(path, threads=-1)
    with pytest.raises(ValueError, match="format must be one of"):
        read(path, format="arff")


def test_labels_may_be_optional(file):
    path = file(b"1:2 3:4\n-1 2:5\n")
    with pytest.raises(DataError, match="must begin with its label: '1:2'"):
        read(path)
    X, y = read_libsvm(path, labelled=False)
    assert rows_of(X) == [[(0, 2.0), (2, 4.0)], [(1, 5.0)]]
    np.testing.assert_array_equal(y, [np.nan, -1.0])


NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(-1e3, 1e3).map(lambda x: f"{x:.6g}"),
    st.integers(-(10**25), 10**25).map(str),
    st.from_regex(r"[+-]?([0-9]{1,25}\.?[0-9]{0,25}|\.[0-9]{1,25})([eE][+-]?[0-9]{1,3})?", fullmatch=True),
)


@settings(max_examples=120)
@given(st.lists(NUMBERS, min_size=1, max_size=20))
def test_numbers_are_rounded_as_python_rounds_them(texts):
    finite = [text for text in texts if np.isfinite(float(text))]
    (values, *_), facts = parse("".join(f"0 1:{text}\n" for text in finite).encode())
    assert facts.fault == "none"
    expected = np.array([float(text) for text in finite])
    assert values.tobytes() == expected.tobytes()  # the sign of zero included
    for text in set(texts) - set(finite):
        assert parse(f"0 1:{text}\n".encode())[1].fault == "value_too_large"


def test_numbers_that_are_hard_to_round():
    hard = [
        "9007199254740993",
        "9007199254740992.9999999999999999999999999",
        "0.1e-1",
        "123456789.123456789e-22",
        "1e22",
        "1e23",
        "8.98846567431158e307",
        "2.2250738585072011e-308",
        "4.9e-324",
        "2.4703282292062327e-324",
        "2.4703282292062328e-324",
        "1.00000000000000011102230246251565404236316680908203125",
        "1.00000000000000011102230246251565404236316680908203124",
        "0." + "0" * 400 + "1e401",
        "0" * 50 + "1" + "0" * 50 + "e-50",
        "1e-99999999999999999999",
        "0e99999999999999999999",
    ]
    (values, *_), facts = parse("".join(f"0 1:{text}\n" for text in hard).encode())
    assert facts.fault == "none"
    assert values.tolist() == [float(text) for text in hard]


DATA = st.lists(
    st.tuples(
        st.floats(-1e6, 1e6),
        st.dictionaries(st.integers(0, 40), st.floats(-1e9, 1e9).filter(bool), max_size=8),
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(DATA, st.booleans(), st.integers(1, 300), st.integers(1, 4))
def test_the_same_as_scikit_learn_whatever_the_blocks_and_threads(file, rows, zero_based, block, threads):
    matrix = sparse.lil_array((len(rows), 41))
    for i, (_, row) in enumerate(rows):
        for j, value in row.items():
            matrix[i, j] = value
    stream_ = BytesIO()
    labels = [label for label, _ in rows]
    dump_svmlight_file(sparse.csr_matrix(matrix), labels, stream_, zero_based=zero_based)
    path = file(stream_.getvalue())
    theirs, y = load_svmlight_file(path, n_features=41, zero_based=zero_based)
    options = Options.of(columns=41, zero_based=zero_based, threads=threads)
    ours = read_text(path, options, block=block)
    np.testing.assert_array_equal(ours.y, y)
    assert rows_of(ours.X) == rows_of(theirs)
    chunks = list(stream_text(path, options, block=block))
    assert all(chunk.X.shape[1] == 41 for chunk in chunks)
    assert rows_of(ours.X) == [row for chunk in chunks for row in rows_of(chunk.X)]
    assert np.concatenate([chunk.y for chunk in chunks]).tolist() == y.tolist()


def test_threads_and_blocks_change_nothing(file):
    random = np.random.default_rng(0)
    lines = [
        f"{k % 3} "
        + " ".join(f"{j + 1}:{random.normal():.{k % 17}g}" for j in sorted({*range(k % 7), k % 90}))
        for k in range(3000)
    ]
    path = file("\r\n".join(lines).encode())
    whole = read_text(path, Options.of(threads=1), block=1 << 20)
    for threads in (1, 2, 5):
        for block in (64, 1000, 4096, 50_000):
            assert_equal(read_text(path, Options.of(threads=threads), block=block), whole)
    assert whole.X.has_canonical_format


def test_a_stream_has_small_chunks(file):
    line = b"1 1:0.25 5:0.5\n"
    path = file(line * 700_000)
    sizes = [chunk.X.shape[0] for chunk in stream(path)]
    assert sum(sizes) == 700_000
    assert max(sizes) * len(line) <= 5 << 20


def test_progress_reaches_the_end(file):
    path = file(b"1 1:0.25 5:0.5\n" * 100_000)
    calls = []
    read(path, progress=lambda done, total: calls.append((done, total)))
    size = os.path.getsize(path)
    assert calls == sorted(calls)
    assert calls[-1] == (size, size)


# ---- 64 bits -----------------------------------------------------------------------------------------


def test_indices_beyond_32_bits(file):
    path = file(b"1 1:1 3000000000:2\n-1 7:3\n")
    X, _ = read_libsvm(path, columns=4_000_000_000)
    assert X.shape == (2, 4_000_000_000)
    assert X.indices.dtype == X.indptr.dtype == np.int64
    assert rows_of(X) == [[(0, 1.0), (2_999_999_999, 2.0)], [(6, 3.0)]]
    (chunk,) = stream(path, columns=4_000_000_000)
    assert rows_of(chunk.X) == rows_of(X)
    narrow, _ = read_libsvm(file(b"1 7:3\n"), columns=4_000_000_000)
    assert narrow.indices.dtype == np.int64  # as SciPy wants it for such a shape


def test_rows_before_a_wide_index_are_widened(file):
    path = file(b"1 1:1 2:2\n-1 7:3\n1 3000000000:4\n-1 2:5\n")
    X = read_text(path, Options.of(columns=4_000_000_000), block=4).X
    assert X.indices.dtype == X.indptr.dtype == np.int64
    assert rows_of(X) == [[(0, 1.0), (1, 2.0)], [(6, 3.0)], [(2_999_999_999, 4.0)], [(1, 5.0)]]


def test_labels_are_narrow_where_that_loses_nothing(file):
    _, y = read_libsvm(file(b"1 1:1\n-1 1:1\n0.5 1:1\n16777216 1:1\n"))
    assert y.dtype == np.float32
    assert y.tolist() == [1, -1, 0.5, 16777216]
    for wide in (b"0.1", b"16777217", b"1e300", b"1e-300"):
        text = b"1 1:1\n2 1:1\n%b 1:1\n3 1:1\n" % wide
        for block in (4, 1 << 16):  # the wide label in a block of its own, and with others
            y = read_text(file(text), Options.of(), block=block).y
            assert y.dtype == np.float64
            assert y.tolist() == [1, 2, float(wide), 3]
    y = read_text(file(b"1:1\n2 1:1\n"), Options.of(labelled=False)).y
    np.testing.assert_array_equal(y, np.array([np.nan, 2], np.float32))


@pytest.mark.parametrize("index", [2**31 - 1, 2**31, 2**31 + 1, 2**62, 2**63 - 2])
def test_the_largest_indices(file, index):
    X, _ = read_libsvm(file(b"1 5:1 %d:2\n" % index), columns=2**63 - 1)
    assert X.indices.tolist() == [4, index - 1]


def test_narrow_arrays_are_never_written_with_wide_indices():
    _, facts = parse(b"x\n1 1:1 3000000000:2\n", skip_faulty=True)
    assert facts.too_narrow
    (_, indices, *_), facts = parse(b"x\n1 1:1 3000000000:2\n", skip_faulty=True, wide=True)
    assert indices.tolist() == [0, 2_999_999_999]
    assert facts.faulty == 1


# ---- what is refused ---------------------------------------------------------------------------------

BAD = {
    # text: (line, column, offending text, part of the message)
    b"1 1:1\nx 1:1\n": (2, 1, "x", "label must be a decimal number"),
    b"1 1:1\n1,2 1:1\n": (2, 1, "1,2", "must have one label"),
    b"1 1:1\n 1:1 2:3\n": (2, 2, "1:1", "must begin with its label"),
    b"nan 1:1\n": (1, 1, "nan", "label must be a finite number"),
    b"-inf 1:1\n": (1, 1, "-inf", "label must be a finite number"),
    b"1e999 1:1\n": (1, 1, "1e999", "label must be a finite number"),
    b"0x1 1:1\n": (1, 1, "0x1", "label must be a decimal number"),
    b"1 1:1 2:abc\n": (1, 9, "abc", "value must be a decimal number"),
    b"1 1:1 2:1.2.3\n": (1, 9, "1.2.3", "value must be a decimal number"),
    b"1 1:1 2:1e\n": (1, 9, "1e", "value must be a decimal number"),
    b"1 1:1 2:1,5\n": (1, 9, "1,5", "decimal point"),
    b"1 1:1 2:0x1p3\n": (1, 9, "0x1p3", "value must be a decimal number"),
    b"1 1:1 2:1_000\n": (1, 9, "1_000", "value must be a decimal number"),
    b"1 1:1 2:.\n": (1, 9, ".", "value must be a decimal number"),
    b"1 1:1 2:--1\n": (1, 9, "--1", "value must be a decimal number"),
    b"1 1:1 2:1:3\n": (1, 9, "1:3", "value must be a decimal number"),
    b"1 1:1 2:NaN\n": (1, 9, "NaN", "value must be finite"),
    b"1 1:1 2:-Infinity\n": (1, 9, "-Infinity", "value must be finite"),
    b"1 1:1 2:1e309\n": (1, 9, "1e309", "too large"),
    b"1 1:1 2:\n": (1, 7, "2:", "value is missing"),
    b"1 1:1 2: 3:4\n": (1, 7, "2:", "value is missing"),
    b"1 1:1 2\n": (1, 7, "2", "colon is missing"),
    b"1 1:1 :2\n": (1, 7, ":2", "index is missing"),
    b"1 1:1 a:2\n": (1, 7, "a:2", "index must be a whole number"),
    b"1 1:1 2.0:2\n": (1, 7, "2.0:2", "index must be a whole number"),
    b"1 1:1 +:2\n": (1, 7, "+:2", "index must be a whole number"),
    b"1 1:1 0x2:2\n": (1, 7, "0x2:2", "index must be a whole number"),
    b"1 1:1 -2:2\n": (1, 7, "-2:2", "must not be negative"),
    b"1 0:1\n": (1, 3, "0:1", "zero_based=True"),
    b"1 3:1 2:1\n": (1, 7, "2:1", "must increase"),
    b"1 3:1 3:1\n": (1, 7, "3:1", "occurs twice"),
    b"1 9223372036854775808:1\n": (1, 3, "9223372036854775808:1", "below 2^63"),
    b"1 99999999999999999999999:1\n": (1, 3, "99999999999999999999999:1", "below 2^63"),
    b"1 1:1 qid:3 2:1\n": (1, 7, "qid:3", "index must be a whole number"),
    b"1 qid:x 2:1\n": (1, 3, "qid:x", "index must be a whole number"),
    b"1 1:1\x00 2:1\n": (1, 5, "1\\x00", "byte is 0"),
    b"1\x00 1:1\n": (1, 1, "1\\x00", "byte is 0"),
    b"1 \x001:1\n": (1, 3, "\\x001:1", "byte is 0"),
    "1 1:1\n".encode("utf-16"): (1, 1, "\\xff\\xfe1\\x00", "UTF-16"),
    b"1 1:1\n1 2:\xff\xfe\x1b[31m\n": (2, 5, "\\xff\\xfe\\x1b[31m", "decimal number"),
    b"1 1:1 2:" + b"9x" * 100: (1, 9, ("9x" * 30) + "...", "decimal number"),
}


@pytest.mark.parametrize("text", BAD, ids=lambda text: repr(text[:24]))
@pytest.mark.parametrize("reader", [read, lambda path: list(stream(path))], ids=["read", "stream"])
def test_every_fault_is_reported_with_its_place(file, text, reader):
    line, column, offending, message = BAD[text]
    path = file(text)
    with pytest.raises(DataError) as caught:
        reader(path)
    error = caught.value
    assert (error.path, error.line, error.column, error.text) == (path, line, column, offending)
    assert str(error).startswith(f"{path}, line {line}, column {column}: ")
    assert message in str(error)
    assert f": '{offending}'. " in str(error)
    assert str(error).endswith(".")


@pytest.mark.parametrize("text", BAD, ids=lambda text: repr(text[:24]))
def test_every_faulty_line_can_be_skipped(file, text):
    bad = text.splitlines(keepends=True)[BAD[text][0] - 1]
    if b"\n" not in bad:
        bad += b"\n"
    data = read(file(b"1 2:3\n" + bad + b"\r\n-1 1:2 3:4\n" + bad * 2), skip_bad_lines=True)
    assert data.y.tolist() == [1.0, -1.0]
    assert rows_of(data.X) == [[(1, 3.0)], [(0, 2.0), (2, 4.0)]]
    assert data.skipped == 3 + 2 * bad[:-1].count(b"\n")


def test_the_line_is_right_in_a_later_block_and_with_several_threads(file):
    text = b"1 1:1 2:2\n\n# comment\n" * 1000 + b"1 1:1 2:x\n" + b"1 3:y\n" * 1000
    path = file(text)
    for threads in (1, 3):
        for block in (50, 5000, 10**6):
            with pytest.raises(DataError) as caught:
                read_text(path, Options.of(threads=threads), block=block)
            assert (caught.value.line, caught.value.column, caught.value.text) == (3001, 9, "x")
    assert read_text(path, Options.of(threads=2, skip_bad_lines=True), block=777).skipped == 1001


def test_the_error_can_be_pickled(file):
    with pytest.raises(DataError) as caught:
        read(file(b"1 1:x\n"))
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value)
    assert (copy.line, copy.column, copy.text) == (1, 5, "x")


@pytest.mark.parametrize("text", [b"", b"\n\n", b"# nothing\n\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n"])
def test_a_file_without_rows(file, text):
    path = file(text)
    with pytest.raises(DataError, match="not a single row"):
        read(path)
    with pytest.raises(DataError, match="not a single row"):
        list(stream(path))


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(DataError, match=r"missing\.svm: there is no such file"):
        read(tmp_path / "missing.svm")
    for name in ("missing.npz", "missing.parquet", "missing.csv.gz"):
        with pytest.raises(DataError, match="no such file"):
            read(tmp_path / name)
    with pytest.raises(DataError, match="this is a folder"):
        read(tmp_path)
    with pytest.raises(DataError, match="cannot be opened"):
        read("with\0nul")


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="permissions do not bind here")
def test_a_file_without_permission(file):
    path = file(b"1 1:1\n")
    os.chmod(path, 0)
    with pytest.raises(DataError, match="cannot be opened: Permission denied"):
        read(path)


@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.sampled_from(
            [b"1", b"-1", b" ", b":", b"\n", b"2:3", b"\t", b"#", b"\x00", b"qid:1", b"e", b"."]
        )
        | st.binary(max_size=6),
        max_size=40,
    ),
    st.integers(1, 40),
)
def test_any_bytes_give_rows_or_a_data_error(file, pieces, block):
    path = file(b"#\n" + b"".join(pieces))  # else it could be taken for a compressed file

    def result(**options):
        try:
            return read_text(
                path, Options.of(**options), block=block if options["threads"] > 1 else 1 << 20
            )
        except DataError as error:
            return str(error)

    one, several = result(threads=1), result(threads=2)
    if isinstance(one, str):
        assert one == several
    else:
        assert_equal(one, several)
    kept = result(threads=1, skip_bad_lines=True)
    if isinstance(kept, str):
        assert "not a single row" in kept
    else:
        assert kept.X.indices.max(initial=-1) < kept.X.shape[1]
        assert np.isfinite(kept.X.data).all()
        assert np.isfinite(kept.y).all()


def test_rows_that_are_left_out_are_known_whatever_ends_a_line_elsewhere(tmp_path):
    """A carriage return inside a line ends none."""
    path = tmp_path / "some.svm"
    path.write_bytes(b"1 1:2\r 2:x\n-1 1:3\r\nx\n1 2:1\n")
    (found,) = stream(path, skip_bad_lines=True, labelled=False)
    assert (found.gaps, found.skipped, found.X.shape[0]) == ((0, 2), 2, 2)
