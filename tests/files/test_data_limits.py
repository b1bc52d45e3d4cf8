# SPDX-License-Identifier: BSD-3-Clause
"""LIBSVM text that is compressed, hostile or large; pipes, interrupts, and fingerprints."""

from __future__ import annotations

import bz2
import gzip
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import zstandard
from scipy import sparse

from maxmargin.files import DataError, fingerprint, read, read_libsvm, stream
from maxmargin.files.data import libsvm as libsvm_module
from peak_memory import needs_proc

COMPRESS = {".gz": gzip.compress, ".bz2": bz2.compress, ".zst": zstandard.ZstdCompressor().compress}
TEXT = b"".join(b"%d 1:%d.5 %d:2e-3\n" % (k % 2, k, k + 2) for k in range(5000))


def same(a, b):
    return fingerprint(a.X, a.y) == fingerprint(b.X, b.y)


# ---- compressed text --------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", COMPRESS)
def test_compressed_text(file, suffix):
    whole = read(file(TEXT))
    squeezed = COMPRESS[suffix](TEXT)
    assert same(read(file(squeezed, "data.svm" + suffix)), whole)
    assert same(read(file(squeezed, "no_suffix")), whole)  # by its first bytes
    assert sum(len(chunk.y) for chunk in stream(file(squeezed, "data" + suffix))) == 5000
    in_two = COMPRESS[suffix](TEXT[:1000]) + COMPRESS[suffix](TEXT[1000:])
    assert same(read(file(in_two, "data" + suffix)), whole)
    assert same(read(file(TEXT, "not_compressed" + suffix)), whole)


@pytest.mark.parametrize("suffix", COMPRESS)
@pytest.mark.parametrize("kept", [0.2, 0.9, -1])
def test_truncated_compressed_text(file, suffix, kept):
    squeezed = COMPRESS[suffix](TEXT)
    cut = int(kept * len(squeezed)) if kept > 0 else len(squeezed) + kept
    path = file(squeezed[:cut], "data" + suffix)
    with pytest.raises(DataError, match=r"ends too early. It was cut off"):
        read(path)
    with pytest.raises(DataError, match="ends too early"):
        list(stream(path))


@pytest.mark.parametrize("suffix", COMPRESS)
def test_damaged_compressed_text(file, suffix):
    squeezed = bytearray(COMPRESS[suffix](TEXT))
    squeezed[len(squeezed) // 2] ^= 0xFF
    squeezed[-3] ^= 0xFF
    with pytest.raises(DataError):
        read(file(bytes(squeezed), "data" + suffix))


def test_zstd_with_frames_to_skip(file):
    skipped = b"\x5a\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"hello"
    squeezed = skipped + COMPRESS[".zst"](TEXT[:1000]) + skipped + COMPRESS[".zst"](TEXT[1000:])
    assert same(read(file(squeezed, "a.zst")), read(file(TEXT)))


def test_garbage_after_compressed_text(file):
    with pytest.raises(DataError, match="cannot be decompressed"):
        read(file(COMPRESS[".zst"](TEXT) + b"garbage and more", "a.zst"))
    with pytest.raises(DataError, match="cannot be decompressed"):
        read(file(gzip.compress(TEXT) + b"garbage and more", "a.gz"))


def test_xz_is_named(file):
    import lzma

    with pytest.raises(DataError, match=r"xz files cannot be read. Decompress it with xz -d first"):
        read(file(lzma.compress(TEXT)))


# ---- hostile text -------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", COMPRESS)
def test_text_that_grows_beyond_reason_when_decompressed(file, suffix):
    bomb = COMPRESS[suffix](b"\n" * (70 << 20))
    with pytest.raises(DataError, match=r"which text does not do. If the file can be trusted, decompress"):
        read(file(bomb, "bomb" + suffix))


def test_an_index_needs_a_file_of_its_size(file):
    path = file(b"1 1048576:1\n")
    assert read(path).X.shape == (1, 1 << 20)
    path = file(b"1 1:1\n1 3:1 1048577:1\n")
    for reader in (read, lambda path: list(stream(path))):
        with pytest.raises(DataError, match=r"columns=N .*--columns N on the command line") as caught:
            reader(path)
        assert (caught.value.line, caught.value.column, caught.value.text) == (2, 7, "1048577:1")
    assert read(path, columns=2_000_000).X.shape == (2, 2_000_000)
    assert read(path, skip_bad_lines=True).skipped == 1
    padding = b"#" + b" " * (1 << 20) + b"\n"
    assert read(file(b"1 1:1\n1 3:1 1048577:1\n" + padding)).X.shape == (2, 1_048_577)


def test_an_index_in_compressed_text_needs_text_of_its_size(file):
    path = file(gzip.compress(b"1 1:1\n1 3:1 1048577:1\n"), "data.gz")
    with pytest.raises(DataError, match="columns=N") as caught:
        read(path)
    assert (caught.value.line, caught.value.column, caught.value.text) == (2, 7, "1048577:1")


def test_an_index_beyond_the_columns_asked_for(file):
    path = file(b"1 1:1\n1 3:1 5:1\n")
    with pytest.raises(DataError, match=r"beyond the 4 columns asked for: '5:1'"):
        read(path, columns=4)
    assert read(path, columns=4, skip_bad_lines=True).skipped == 1


def test_lines_that_are_too_long(file, monkeypatch):
    monkeypatch.setattr(libsvm_module, "LONGEST_LINE", 1000)
    longest = b"1 " + b" ".join(b"%d:1" % k for k in range(1, 400))
    longest = longest[: longest.rindex(b" ", 0, 1001)].ljust(1000)
    for block in (64, 300, 999):
        monkeypatch.setattr(libsvm_module, "_SMALLEST_BLOCK", block)
        monkeypatch.setattr(libsvm_module, "_LARGEST_BLOCK", block)
        assert read(file(b"1 1:1\n" + longest + b"\n1 2:1\n")).X.shape[0] == 3
        path = file(b"1 1:1\n\n" + longest + b" \n1 2:1\n1 3:1\n" + longest + b" ")
        with pytest.raises(DataError, match=r"line 3, column 1: a line is longer than"):
            read(path)
        data = read(path, skip_bad_lines=True)
        assert data.X.shape[0] == 3
        assert data.skipped == 2


# The peak of the process from here on, and what it has now.
MEASURE = """
import os, sys, tempfile
import numpy as np
from pathlib import Path
from maxmargin.files import read_libsvm, DataError, stream

def status(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field + ":"))

def begin():
    Path("/proc/self/clear_refs").write_text("5")
    return status("VmRSS")

path = sys.argv[1]
# Modules that are imported when they are first needed are not part of what is measured.
with tempfile.NamedTemporaryFile(suffix=".svm") as first:
    first.write(b"1 1:2 3:4\\n" * 100_000)
    first.flush()
    read_libsvm(first.name, threads=2)
"""


def measured(code: str, path: str) -> list[str]:
    child = subprocess.run(
        [sys.executable, "-c", MEASURE + code, path],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert child.returncode == 0, child.stderr
    return child.stdout.split()


@needs_proc
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("width", "rows"), [(100, 40_000), (3, 250_000), (1, 1_000_000)])
def test_memory_is_at_most_one_and_a_half_times_the_result(file, width, rows, threads):
    values = np.random.default_rng(0).integers(1, 10, width)
    row = " ".join(f"{j + 1}:{value}" for j, value in enumerate(values))
    path = file(f"1 {row}\n".encode() * rows)  # labels are a hundredth to a quarter of 10 to 48 MB
    code = f"""
before = begin()
X, y = read_libsvm(path, threads={threads})
print((status("VmHWM") - before) / (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes))
"""
    (ratio,) = map(float, measured(code, path))
    assert 1.0 <= ratio <= 1.5


@needs_proc
def test_a_stream_takes_little_memory(file):
    row = " ".join(f"{j}:{j}" for j in range(1, 100))
    path = file(gzip.compress(f"1 {row}\n".encode() * 40_000, 1), "data.gz")
    code = """
before = begin()
rows = sum(len(chunk.y) for chunk in stream(path))
print(rows, (status("VmHWM") - before) >> 20)
"""
    rows, mebibytes = map(int, measured(code, path))
    assert rows == 40_000
    assert mebibytes < 40  # the matrix would take 46


@needs_proc
def test_a_line_without_end_is_not_held(tmp_path):
    path = tmp_path / "data.svm"
    with open(path, "wb") as holes:
        holes.write(b"1 1:1\n1 ")
        holes.truncate(1 << 30)
    code = """
before = begin()
try:
    read_libsvm(path)
except DataError as error:
    print(error.line, (status("VmHWM") - before) >> 20)
"""
    line, mebibytes = map(int, measured(code, str(path)))
    assert line == 2
    assert mebibytes < 160


# ---- pipes and interrupts ------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_pipes(tmp_path, file):
    path = str(tmp_path / "pipe")
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: Path(path).write_bytes(gzip.compress(TEXT)))
    writer.start()
    data = read(path)
    writer.join()
    assert same(data, read(file(TEXT)))


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_an_interrupt_ends_reading_at_once(file):
    path = file(b"1 1:0.25 5:0.5\n" * 200_000)
    code = """
import os, signal, sys, time
from maxmargin.files import read_libsvm
begun = []
def interrupt(done, total):
    if not begun:
        begun.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)
try:
    read_libsvm(sys.argv[1], progress=interrupt)
except KeyboardInterrupt:
    print(time.perf_counter() - begun[0])
"""
    child = subprocess.run(
        [sys.executable, "-c", code, path], capture_output=True, text=True, timeout=60, check=False
    )
    assert child.returncode == 0, child.stderr
    assert float(child.stdout) < 0.5


# ---- fingerprints -------------------------------------------------------------------------------------


def test_a_fingerprint_does_not_depend_on_how_data_are_stored(monkeypatch):
    module = sys.modules["maxmargin.files.data.fingerprints"]
    dense = np.array([[1.5, 0.0, -2.0], [0.0, 0.0, 0.0], [0.0, 0.25, 0.0]])
    y = np.array([1, -1, 1])
    expected = fingerprint(dense, y)
    assert expected.startswith("blake2b:")
    assert len(expected) == len("blake2b:") + 64
    wide = sparse.csr_array(dense)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    explicit = sparse.csr_array(
        (np.array([1.5, 0.0, -2.0, 0.25]), np.array([0, 1, 2, 1]), np.array([0, 3, 3, 4])), shape=(3, 3)
    )
    unsorted = sparse.csr_array(
        (np.array([-2.0, 1.0, 0.5, 0.25]), np.array([2, 0, 0, 1]), np.array([0, 3, 3, 4])), shape=(3, 3)
    )
    before = unsorted.indices.copy()
    others = [
        np.asfortranarray(dense),
        dense.astype(np.float32),
        sparse.csr_matrix(dense),
        sparse.csc_array(dense),
        sparse.csr_array(dense.astype(np.float32)),
        wide,
        explicit,
        unsorted,
        np.where(dense == 0, -0.0, dense),
    ]
    for values_at_a_time in (1, 4, 1 << 20):
        monkeypatch.setattr(module, "_VALUES_AT_A_TIME", values_at_a_time)
        for other in others:
            assert fingerprint(other, y.astype(np.float64)) == expected
    np.testing.assert_array_equal(unsorted.indices, before)  # and nothing is changed
    assert fingerprint(dense, [1, -1, 1]) == expected
    texts = fingerprint(dense, np.array(["a", "b", "a"]))
    assert texts == fingerprint(dense, np.array(["a", "b", "a"], dtype=object))
    changed = [
        fingerprint(dense[:, [0, 2, 1]], y),
        fingerprint(dense[[1, 0, 2]], y),
        fingerprint(dense[[0, 2, 1]], y),
        fingerprint(np.hstack([dense, np.zeros((3, 1))]), y),
        fingerprint(dense + 1e-12, y),
        fingerprint(dense, -y),
        fingerprint(dense, np.array(["1", "-1", "1"])),
        texts,
        fingerprint(dense, np.array(["ab", "", "a"])),
        expected,
    ]
    assert len(set(changed)) == len(changed)


def test_the_fingerprint_of_a_file(file):
    X_read, y = read_libsvm(file(b"1 1:1.5 3:-2\n-1\n1 2:0.25\n"))
    assert fingerprint(X_read, y) == fingerprint([[1.5, 0, -2], [0, 0, 0], [0, 0.25, 0]], [1, -1, 1])
    # Written out, because model files keep it: it must not change from version to version.
    assert fingerprint([[1.0]], [1]) == fingerprint(np.ones((1, 1), np.int8), [True])
