# SPDX-License-Identifier: BSD-3-Clause
"""The files of ``fuzz/corpus``: sound, on some edge, and wrong in every known way.

Files that were found by fuzzing are added by hand, under names that begin with ``found``, and stay.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.models import _Parts
from fuzz.targets import CORPUS

SOUND_TEXT = {
    "plain": b"1 1:0.5 3:-2\n-1 2:1e-3 4:7\n+1 1:1\n",
    "grammar": b"\xef\xbb\xbf# comment\n\n"
    b"+1 qid:7 1:.5 2:5. +3:1E5 # more\r\n-1\t1:-0\x0b2:00012\x0c\r\n0\n2 5:1",
    "empty_rows": b"1\n2\n3 1:1\n\n4\n",
    "numbers": b"1e5 1:9007199254740993 2:1.7976931348623157e308 3:4.9e-324 4:2.4703282292062327e-324\n"
    b"2 5:1e-400\n"
    b"-0 1:0.1 2:123456789012345678901234567890 3:0.00000000000000000000000000000001 4:1e22 5:1e23\n",
    "large_index": b"1 1048576:1\n0 1:2\n",
    "index_needs_columns": b"1 2147483647:1\n0 2147483648:2 9223372036854775807:1\n",
    "leading_zeros": b"1 0000000000000000000000001:1 +2:3\n",
    "zero_based": b"1 0:1 1:2\n-1 0:3\n",
    "unlabelled": b"1:1 2:2\n3:1\n1 2:5\n",
    "no_newline": b"1 1:1\n-1 2:2",
    "long": b"".join(b"%d %d:%d.%d %d:1\n" % (k % 3, k % 7 + 1, k, k * k, k % 11 + 9) for k in range(200)),
    "comments": b"# only\n#\n   # comments\n1 1:1 # 2:2\n1 2:2#3:3\n",
}
BAD_LINES = {
    "label_missing": b" 1:1 2:3",
    "label_text": b"x 1:1",
    "label_nan": b"nan 1:1",
    "label_inf": b"1e999 1:1",
    "label_hex": b"0x1 1:1",
    "labels_two": b"1,2 1:1",
    "index_missing": b"1 1:1 :2",
    "index_text": b"1 1:1 a:2",
    "index_fraction": b"1 1:1 2.0:2",
    "index_sign": b"1 1:1 +:2",
    "index_negative": b"1 1:1 -2:2",
    "index_zero": b"1 0:1",
    "index_64_bits": b"1 9223372036854775808:1",
    "index_long": b"1 99999999999999999999999:1",
    "index_unasked": b"1 9223372036854775807:1",
    "index_unsorted": b"1 3:1 2:1",
    "index_repeated": b"1 3:1 3:1",
    "colon_missing": b"1 1:1 2",
    "value_missing": b"1 1:1 2: 3:4",
    "value_text": b"1 1:1 2:abc",
    "value_points": b"1 1:1 2:1.2.3",
    "value_exponent": b"1 1:1 2:1e",
    "value_comma": b"1 1:1 2:1,5",
    "value_hex": b"1 1:1 2:0x1p3",
    "value_underscore": b"1 1:1 2:1_000",
    "value_nan": b"1 1:1 2:NaN",
    "value_infinity": b"1 1:1 2:-Infinity",
    "value_large": b"1 1:1 2:1e309",
    "value_large_single": b"1 1:1 2:3.5e38",
    "value_long": b"1 1:1 2:" + b"9x" * 100,
    "query": b"1 qid:x 2:1",
    "query_late": b"1 1:1 qid:3 2:1",
    "query_long": b"1 qid:9223372036854775808 2:1",
    "nul": b"1 1:1\0 2:1",
    "nul_index": b"1 \x001:1",
    "escape": b"1 2:\xff\xfe\x1b[31m",
}
LIBLINEAR = {
    "two": b"solver_type L2R_L1LOSS_SVC_DUAL\nnr_class 2\nlabel 1 -1\nnr_feature 3\nbias 1\nw\n"
    b"0.5 \n-1 \n2e-3 \n0.25 \n",
    "none": b"solver_type L2R_LR\nnr_class 2\nlabel 0 1\nnr_feature 2\nbias -1\nw\n0.5 \n-1 \n",
    "three": b"solver_type L2R_L2LOSS_SVC\nnr_class 3\nlabel 3 1 2\nnr_feature 2\nbias 0.5\nw\n"
    b"1 2 3 \n4 5 6 \n7 8 9 \n",
    "crammer_singer": b"solver_type MCSVM_CS\nnr_class 2\nlabel 1 2\nnr_feature 1\nbias -1\nw\n1 -1 \n",
    "l1": b"solver_type L1R_LR\nnr_class 2\nlabel 1 2\nnr_feature 1\nbias 0\nw\n1\n2\n",
    "one_class": b"solver_type ONECLASS_SVM\nnr_class 2\nnr_feature 2\nbias -1\nrho 0.5\nw\n1 \n-0.5 \n",
    "regression": b"solver_type L2R_L2LOSS_SVR\nnr_class 2\nnr_feature 1\nbias -1\nw\n1 \n",
    "count": b"solver_type L2R_LR\nnr_class 2\nlabel 0 1\n"
    b"nr_feature 9223372036854775807\nbias -1\nw\n0.5 \n",
    "label_twice": b"solver_type L2R_LR\nnr_class 2\nlabel 1 1\nnr_feature 1\nbias -1\nw\n0.5 \n",
    "nan": b"solver_type L2R_LR\nnr_class 2\nlabel 0 1\nnr_feature 1\nbias -1\nw\nnan \n",
    "short": b"solver_type L2R_LR\nnr_class 2\nlabel 0 1\nnr_feature 2\nbias -1\nw\n0.5 \n",
    "more": b"solver_type L2R_LR\nnr_class 2\nlabel 0 1\nnr_feature 1\nbias -1\nw\n0.5 \n1\n",
    "keyword": b"solver_type L2R_LR\ncolour 2\nw\n",
    "twice": b"solver_type L2R_LR\nnr_class 2\nnr_class 2\nw\n",
    "bias": b"solver_type L2R_LR\nnr_class 2\nlabel 0 1\nnr_feature 1\nbias 1e300\nw\n0.5 \n1e300\n",
    "words": b"solver_type L2R_LR\nnr_class 2\nlabel 0 1\nnr_feature 1\nbias -1\nw\n0.5 1\n",
}
_SV = b"svm_type c_svc\nkernel_type linear\n"
_RBF = b"svm_type c_svc\nkernel_type rbf\ngamma 0.5\n"
LIBSVM = {
    "two": _SV
    + b"nr_class 2\ntotal_sv 2\nrho 0.5\nlabel 1 -1\nnr_sv 1 1\nSV\n0.5 1:1 3:-2 \n-0.5 2:1e-3 \n",
    "three": _SV + b"nr_class 3\ntotal_sv 3\nrho 0.5 0 -1\nlabel 2 0 1\nnr_sv 1 1 1\nSV\n"
    b"0.5 1 1:1 \n-0.5 1 2:1 \n-1 -1 1:1 3:1 \n",
    "probability": _SV
    + b"nr_class 2\ntotal_sv 1\nrho 0\nlabel 1 2\nprobA -1\nprobB 0\nnr_sv 1 0\nSV\n1 1:1 \n",
    "index": _SV + b"nr_class 2\ntotal_sv 1\nrho 0\nlabel 1 2\nnr_sv 1 0\nSV\n1 200000:1 \n",
    "index_large": _SV + b"nr_class 2\ntotal_sv 1\nrho 0\nlabel 1 2\nnr_sv 1 0\nSV\n1 2147483647:1 \n",
    "index_unsorted": _SV + b"nr_class 2\ntotal_sv 1\nrho 0\nlabel 1 2\nnr_sv 1 0\nSV\n1 2:1 1:1 \n",
    "overflow": _SV + b"nr_class 2\ntotal_sv 2\nrho 0\nlabel 1 2\nnr_sv 1 1\nSV\n1e200 1:1e200 \n1 1:1 \n",
    "colon": _SV + b"nr_class 2\ntotal_sv 1\nrho 0\nlabel 1 2\nnr_sv 1 0\nSV\n1 2 \n",
    "classes": _SV + b"nr_class 4294967296\ntotal_sv 1\nrho 0\nlabel 1 2\nnr_sv 1 0\nSV\n1 1:1 \n",
    "total": _SV + b"nr_class 2\ntotal_sv 9223372036854775807\nrho 0\nlabel 1 2\nnr_sv 1 0\nSV\n1 1:1 \n",
    "sum": _SV + b"nr_class 2\ntotal_sv 2\nrho 0\nlabel 1 2\nnr_sv 1 0\nSV\n1 1:1 \n1 1:1 \n",
    "no_coefficient": _SV + b"nr_class 2\ntotal_sv 1\nrho 0\nlabel 1 2\nnr_sv 1 0\nSV\n\n",
    "kernel": b"svm_type c_svc\nkernel_type rbf\ngamma 0.5\nnr_class 2\ntotal_sv 1\nSV\n",
    "rbf": _RBF
    + b"nr_class 2\ntotal_sv 2\nrho 0.5\nlabel 1 -1\nnr_sv 1 1\nSV\n0.5 1:1 3:2 \n-0.5 2:1e-3 \n",
    "rbf_three": _RBF + b"nr_class 3\ntotal_sv 3\nrho 0.5 0 -1\nlabel 2 0 1\nnr_sv 1 1 1\nSV\n"
    b"0.5 1 1:1 \n-0.5 1 2:1 \n-1 -1 1:1 3:1 \n",
    "rbf_index": _RBF + b"nr_class 2\ntotal_sv 1\nrho 0\nlabel 1 2\nnr_sv 1 0\nSV\n1 1048577:1 \n",
    "rbf_gamma": b"svm_type c_svc\nkernel_type rbf\ngamma -1\nnr_class 2\ntotal_sv 1\nSV\n",
    "polynomial": b"svm_type c_svc\nkernel_type polynomial\ndegree 3\ngamma 0.5\ncoef0 1\nnr_class 2\n"
    b"total_sv 1\nrho 0\nlabel 1 2\nnr_sv 1 0\nSV\n1 1:1 \n",
    "polynomial_degree": b"svm_type c_svc\nkernel_type polynomial\ndegree 65\ngamma 1\ncoef0 0\nSV\n",
    "sigmoid": b"svm_type c_svc\nkernel_type sigmoid\ngamma 0.5\ncoef0 -1\nnr_class 2\ntotal_sv 2\nrho 0\n"
    b"label 1 2\nnr_sv 1 1\nSV\n1 1:1 \n-1 \n",
    "precomputed": b"svm_type c_svc\nkernel_type precomputed\nnr_class 2\ntotal_sv 1\nrho 0\nlabel 1 2\n"
    b"nr_sv 1 0\nSV\n1 0:1 \n",
    "type": b"svm_type epsilon_svr\nkernel_type linear\nnr_class 2\ntotal_sv 1\nrho 0\nSV\n1 1:1\n",
    "nu_classes": b"svm_type nu_svc\nkernel_type linear\nnr_class 2\ntotal_sv 2\nrho 0.5\nlabel 1 -1\n"
    b"nr_sv 1 1\nSV\n0.5 1:1 3:-2 \n-0.5 2:1e-3 \n",
    "nu_regression": b"svm_type nu_svr\nkernel_type rbf\ngamma 0.5\nnr_class 2\ntotal_sv 2\nrho 0\nSV\n"
    b"1 1:1\n-1 2:1\n",
    "one_class": b"svm_type one_class\nkernel_type rbf\ngamma 0.5\nnr_class 2\ntotal_sv 2\nrho 0.7\nSV\n"
    b"1 1:1\n0.5 2:1\n",
}
CSV = {
    "plain.csv": b"a,b,label\n1,2,0\n3,4.5,1\n-1,1e5,0\n",
    "texts.csv": b"a,b,class\n1,true,yes\n2,false,no\n",
    "plain.tsv": b"y\ta\n1\t2\n0\t3\n",
    "quoted.csv": b'"a","b\nc",label\r\n1,"2",x\r\n"3",4,"y,""z"""\r\n',
    "no_label.csv": b"a,b\n1,2\n",
    "missing.csv": b"a,label\n1,0\n,1\n3,\n",
    "nan.csv": b"a,label\n1,0\nnan,1\n1e999,1\n",
    "text_feature.csv": b"a,b,label\n1,x,0\n",
    "ragged.csv": b"a,b,label\n1,2,0\n3,4\n5,6,1\n1,2,3,4\n",
    "twice.csv": b"a,a,label\n1,2,0\n",
    "late_text.csv": b"a,label\n" + b"1,0\n" * 100 + b"x,1\n",
    "late_fraction.csv": b"a,label\n" + b"1,0\n" * 100 + b"2.5,1\n",
    "dates.csv": b"a,label\n2020-01-01,0\n",
    "date_labels.csv": b"a,label\n1,2020-01-01\n2,2020-01-02\n",
    "long_label.csv": b"a,label\n1," + b"x" * 300 + b"\n",
    "header_only.csv": b"a,label\n",
    "empty.csv": b"",
    "not_utf8.csv": b"a,label\n1,\xff\xfe\n2,b\n",
    "bom.csv": b"\xef\xbb\xbflabel,a\n1,2\n0,3\n",
    "escape.csv": b"a,\x1b[31m\n1,\x1b[2J\n",
    "nul.csv": b"a,label\n1\0,0\n2,\0\n",
    "only_label.csv": b"label\n1\n2\n",
}


def write_corpus() -> int:
    """Writes all but what fuzzing found, refused ("found...") or read ("kept..."); returns the bytes."""
    for name, files in (
        ("libsvm", _texts()),
        ("model", _models()),
        ("npz", _matrices()),
        ("packed", _packed()),
        ("tables", _tables()),
    ):
        folder = CORPUS / name
        folder.mkdir(parents=True, exist_ok=True)
        for path in folder.iterdir():
            if not path.name.startswith(("found", "kept")):
                path.unlink()
        for file, content in files.items():
            (folder / file).write_bytes(content)
    return sum(path.stat().st_size for path in CORPUS.rglob("*") if path.is_file())


def _texts() -> dict[str, bytes]:
    import zstandard

    sound = SOUND_TEXT["plain"]
    texts = {f"sound_{name}.svm": text for name, text in SOUND_TEXT.items()}
    texts |= {f"bad_{name}.svm": b"1 1:1\n" + line + b"\n-1 2:1\n" for name, line in BAD_LINES.items()}
    frame = zstandard.ZstdCompressor(write_checksum=True).compress(sound)
    packed = {"gz": gzip.compress(sound, mtime=0), "bz2": bz2.compress(sound), "zst": frame}
    for kind, content in packed.items():
        texts[f"packed.svm.{kind}"] = content
        texts[f"packed_cut.svm.{kind}"] = content[:-5]
        texts[f"packed_damaged.svm.{kind}"] = content[:-12] + bytes([content[-12] ^ 1]) + content[-11:]
        texts[f"packed_and_more.svm.{kind}"] = content + b"1 1:1\n"
        texts[f"packed_twice.svm.{kind}"] = content + content
    texts["packed_skipped.svm.zst"] = b"\x52\x2a\x4d\x18\3\0\0\0abc" + frame
    texts["packed_window.svm.zst"] = frame[:4] + b"\0\xff" + frame[6:]
    texts["packed_index.svm.gz"] = gzip.compress(b"1 1048577:1\n", mtime=0)
    texts["packed_zeros.svm.gz"] = gzip.compress(b"1 1:1\n" * 1_000, mtime=0)
    texts["xz.svm"] = b"\xfd7zXZ\0\0\4"
    texts["utf16.svm"] = "1 1:1\n".encode("utf-16")
    texts["empty.svm"] = b""
    texts["blank.svm"] = b" \n\r\n#\n"
    texts["newlines.svm"] = b"\n" * 300
    return texts


def _models() -> dict[str, bytes]:
    models = {f"liblinear_{name}": text for name, text in LIBLINEAR.items()}
    models |= {f"libsvm_{name}": text for name, text in LIBSVM.items()}
    models |= {
        "empty": b"",
        "pickle": b"\x80\x04\x95\x00\x00\x00",
        "zip": b"PK\x03\x04 and more of it",
        "header_length": b"\xff\xff\xff\xff\xff\xff\xff\x7f{}",
        "others": (38).to_bytes(8, "little") + b'{"__metadata__":{"format":"of others"}}'[:38],
    }
    own = _own_models() | _feature_models() | _kernel_models()
    models |= {f"own_{name}": content for name, content in own.items()}
    sound = own["two"]
    models["own_cut"] = sound[:-3]
    models["own_edited"] = sound[:-3] + b"abc"
    for name, changes in {
        "newer": {"version": "4"},
        "older": {"version": "0"},
        "version": {"version": "one"},
        "checksum": {"checksum": "blake2b:00"},
        "format": {"format": "another"},
    }.items():
        models[f"own_{name}"] = _with_texts(sound, changes)
    return models


def _feature_models() -> dict[str, bytes]:
    from scipy import sparse

    from maxmargin.estimators import LinearSVC
    from maxmargin.features.expansion import Expansion
    from maxmargin.features.lazy import LazyMonomials

    X = np.random.default_rng(0).normal(size=(9, 2))
    y = np.arange(9) % 3
    usual: dict[str, Any] = {"tol": 1e-2, "max_iter": 50, "random_state": 0}
    plain = Expansion(2, 1, (1.0, 1.0, 1.0))
    kernel = Expansion(2, 0, (1.0, 2.0**0.5, 2.0**0.5), shared_repeats=True)
    fits = {
        "features_two": (LazyMonomials(X, kernel), (y > 0).astype(int)),
        "features_three": (LazyMonomials(sparse.csr_matrix(X), plain), y),
    }
    contents = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        for name, (rows, labels) in fits.items():
            LinearSVC(**usual).fit(rows, labels).save(path, data=(rows, labels))
            contents[name] = path.read_bytes()
    assert all(_Parts.of(content) is not None for content in contents.values())
    return contents


def _kernel_models() -> dict[str, bytes]:
    from scipy import sparse

    from maxmargin.estimators import SVC, LinearOneClassSVM, NuSVC, NuSVR, OneClassSVM
    from maxmargin.kernels import Gaussian, Linear

    random = np.random.default_rng(0)
    X = np.abs(random.normal(size=(9, 2)))
    y = np.arange(9) % 3
    two = y > 0
    usual: dict[str, Any] = {"random_state": 0}
    fits: dict[str, tuple[Any, Any, Any]] = {
        "kernel_two": (SVC(**usual), X, two.astype(int)),
        "kernel_pairs": (SVC(**usual, kernel="poly"), X.astype(np.float32), y),
        "kernel_rest": (
            SVC(**usual, multi_class="ovr", class_weight="balanced"),
            X,
            np.array(["a", "b", "c"])[y],
        ),
        "kernel_sparse": (SVC(**usual, kernel="chi2"), sparse.csr_matrix(X), two),
        "kernel_sum": (SVC(**usual, kernel=Gaussian(0.5) + 2.0 * Linear() * Gaussian(1.0)), X, y),
        "nu_two": (NuSVC(**usual, nu=0.4), X, two.astype(int)),
        "nu_pairs": (NuSVC(**usual, nu=0.5), X, y),
        "nu_regression": (NuSVR(**usual, nu=0.4), X, X[:, 0] + y),
        "one_class": (OneClassSVM(**usual, nu=0.4), X, None),
        "one_class_linear": (LinearOneClassSVM(**usual, nu=0.4), X, None),
        "kernel_given": (SVC(**usual, kernel="precomputed"), X @ X.T, y),
    }
    contents = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        for name, (estimator, rows, labels) in fits.items():
            estimator.fit(rows, labels).save(path)
            contents[name] = path.read_bytes()
        estimator.save(path, proof=False)
        contents["kernel_without_proof"] = path.read_bytes()
    assert all(_Parts.of(content) is not None for content in contents.values())
    return contents


def _with_texts(content: bytes, changes: dict[str, str]) -> bytes:
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    header["__metadata__"].update(changes)
    encoded = json.dumps(header).encode()
    return len(encoded).to_bytes(8, "little") + encoded + content[8 + length :]


def _own_models() -> dict[str, bytes]:
    import pandas

    from maxmargin.estimators import LinearSVC
    from maxmargin.solvers import SOLVERS

    random = np.random.default_rng(0)
    X = random.normal(size=(9, 2))
    y = np.arange(9) % 3
    two = y > 0
    table = pandas.DataFrame(X, columns=["width", "häufig"])
    usual: dict[str, Any] = {"tol": 1e-2, "max_iter": 50, "random_state": 0}
    solver = SOLVERS["dual_coordinate_ascent"]()
    fits = {
        "two": (LinearSVC(**usual), X, two.astype(int)),
        "three": (LinearSVC(**usual), X, y),
        "texts": (LinearSVC(**usual, class_weight={"a": 2.0, "b": 1.0}), table, np.where(two, "a", "b")),
        "truth": (LinearSVC(**usual, fit_intercept=False, class_weight="balanced"), X, two),
        "floats": (LinearSVC(**usual, loss="squared_hinge", solver=solver), X, two + 1.0),
        "regularised": (LinearSVC(**usual, regularize_intercept=True, intercept_scaling=3.0), X, two * 2),
        "weights": (LinearSVC(**usual, loss="squared_hinge", C=0.1), X, two.astype(np.int8)),
    }
    contents = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        for name, (estimator, rows, labels) in fits.items():
            estimator.fit(rows, labels)
            estimator.save(path, data=(rows, labels) if name == "two" else None)
            contents[name] = path.read_bytes()
            if name == "three":
                estimator.save(path, proof=False)
                contents["three_without_proof"] = path.read_bytes()
    assert all(_Parts.of(content) is not None for content in contents.values())
    return contents


def _savez(compressed: bool = False, **arrays: Any) -> bytes:
    file = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(file, **arrays)
    return _without_dates(file.getvalue())


def _without_dates(content: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as given, zipfile.ZipFile(file, "w") as archive:
        for member in given.infolist():
            fixed = zipfile.ZipInfo(member.filename)
            fixed.compress_type = member.compress_type
            archive.writestr(fixed, given.read(member))
    return file.getvalue()


def _matrices() -> dict[str, bytes]:
    X = np.array([[1.0, 0.0, -2.0], [0.0, 3.5, 0.0], [0.0, 0.0, 0.0], [4.0, 5.0, 6.0]])
    y = np.array([0.0, 1.0, 0.0, 1.0])
    parts: dict[str, Any] = {
        "data": np.array([1.0, -2.0, 3.5, 4.0, 5.0, 6.0]),
        "indices": np.array([0, 2, 1, 0, 1, 2], np.int32),
        "indptr": np.array([0, 2, 3, 3, 6], np.int32),
        "shape": np.array([4, 3]),
        "y": y,
    }
    long = {"X": np.arange(120.0).reshape(40, 3), "y": np.arange(40) % 2}
    sound = {
        "dense": {"X": X, "y": y},
        "long": long,
        "fortran": {"X": np.asfortranarray(X), "y": y},
        "single": {"X": X.astype(np.float32), "y": y.astype(np.int8)},
        "half": {"X": X.astype(np.float16), "y": y},
        "whole": {"X": X.astype(np.int64), "y": y > 0},
        "big_endian": {"X": X.astype(">f8"), "y": y.astype(">i4")},
        "large": {"X": np.array([[2**63, 2**64 - 1]], np.uint64), "y": np.array([2**64 - 1], np.uint64)},
        "texts": {"X": X, "y": np.array(["a", "b", "a", "ü"])},
        "bytes": {"X": X, "y": np.array([b"a", b"b", b"a", b""])},
        "unlabelled": {"X": X},
        "csr": parts,
        "csr_scipy": {**parts, "format": np.array(b"csr")},
        "csr_wide": {
            **parts,
            "indices": parts["indices"].astype(np.int64),
            "indptr": parts["indptr"].astype(np.uint64),
        },
        "csr_unsorted": {**parts, "indices": np.array([2, 0, 1, 2, 1, 0])},
        "csr_repeated": {**parts, "indices": np.array([0, 0, 1, 1, 1, 1])},
        "csr_empty": {**parts, "data": np.ones(0), "indices": np.ones(0, int), "indptr": np.zeros(5, int)},
        "csr_unlabelled": {name: parts[name] for name in ("data", "indices", "indptr", "shape")},
    }
    wrong = {
        "indptr_decreases": {**parts, "indptr": np.array([0, 3, 2, 3, 6])},
        "indptr_leaves": {**parts, "indptr": np.array([0, 2, 3, 3, 10**9])},
        "indptr_negative": {**parts, "indptr": np.array([0, -5, 3, 3, 6])},
        "indptr_late": {**parts, "indptr": np.array([1, 2, 3, 3, 6])},
        "indptr_early": {**parts, "indptr": np.array([0, 2, 3, 3, 5])},
        "indptr_short": {**parts, "indptr": np.array([0, 2, 3, 6])},
        "indptr_float": {**parts, "indptr": np.array([0.0, 2, 3, 3, 6])},
        "index_large": {**parts, "indices": np.array([0, 2, 1, 0, 1, 3])},
        "index_negative": {**parts, "indices": np.array([0, 2, 1, -1, 1, 2])},
        "values_more": {**parts, "data": np.ones(7)},
        "values_nan": {**parts, "data": np.array([1, 2, np.nan, 4, 5, 6])},
        "values_text": {**parts, "data": np.array(["a"] * 6)},
        "shape_three": {**parts, "shape": np.array([4, 3, 1])},
        "shape_negative": {**parts, "shape": np.array([4, -3])},
        "shape_float": {**parts, "shape": np.array([4.0, 3.0])},
        "shape_wide": {**parts, "shape": np.array([4, 2**50])},
        "shape_tall": {**parts, "shape": np.array([2**62, 3])},
        "csc": {**parts, "format": np.array(b"csc")},
        "complex": {"X": X * 1j, "y": y},
        "nan": {"X": np.where(X == 0, np.nan, X), "y": y},
        "label_inf": {"X": X, "y": np.array([0, np.inf, 1, 1])},
        "labels_short": {"X": X, "y": y[:-1]},
        "labels_matrix": {"X": X, "y": y[:, np.newaxis]},
        "no_matrix": {"y": y},
        "no_rows": {"X": X[:0], "y": y[:0]},
        "no_columns": {"X": X[:, :0], "y": y},
        "vector": {"X": y, "y": y},
        "text_matrix": {"X": X.astype(str), "y": y},
        "objects": {"X": np.array([[None]], object), "y": np.ones(1)},
        "dates": {"X": X, "y": np.array(["2020-01-01"] * 4, "M8[s]")},
    }
    files = {f"sound_{name}.npz": _savez(**arrays) for name, arrays in sound.items()}
    files |= {f"bad_{name}.npz": _savez(**arrays) for name, arrays in wrong.items()}
    files["sound_packed.npz"] = _savez(True, **parts)
    whole = files["sound_dense.npz"]
    files["bad_cut.npz"] = whole[:-30]
    files["bad_damaged.npz"] = whole[:200] + b"\xff" + whole[201:]
    files["bad_empty.npz"] = b""
    files["bad_text.npz"] = b"no archive"
    files["bad_claims.npz"] = whole.replace(b"(4, 3)", b"(9, 9)")
    files["bad_version.npz"] = whole.replace(b"NUMPY\1\0", b"NUMPY\3\0")
    return files


def _packed() -> dict[str, bytes]:
    from scipy import sparse

    from fuzz.packed import _Parts as Packed
    from maxmargin.files import pack

    X = np.array([[0.5, 0.0, 2.0], [1.0, -1.0, 0.1], [0.0, 0.0, 0.0], [3.0, 1e-3, 7.0]])
    y = np.array([0, 1, 1, 0])
    weights = np.array([1.0, 0.5, 0.0, 2.0])

    def written(*parts: Any) -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            pack(lambda: iter(parts), Path(folder, "a.mmd"))
            return Path(folder, "a.mmd").read_bytes()

    dense, rows = written((X, y)), sparse.csr_matrix(X)
    many = written((np.tile(X, (150, 1)).astype(np.float32), np.tile(y, 150)))
    files = {
        "sound_dense.mmd": dense,
        "sound_sparse.mmd": written((rows, y.astype(float))),
        "sound_weights.mmd": written((X, y, weights)),
        "sound_texts.mmd": written((X, np.array(["a", "b", "b", "a"]))),
        "sound_truth.mmd": written((rows, y > 0, weights)),
        "sound_blocks.mmd": many,
        "bad_empty.mmd": b"",
        "bad_cut.mmd": dense[:-1],
        "bad_head.mmd": dense[:20],
        "bad_text.mmd": b"1 1:1\n",
        "bad_magic.mmd": dense[:15] + b"2" + dense[16:],
        "bad_index.mmd": dense.replace(b'"rows": 4, "columns"', b'"rows": 5, "columns"'),
    }

    def edited(name: str, edit: Any, content: bytes = dense, honest: bool = True) -> None:
        parts = Packed.of(content)
        assert parts is not None
        edit(parts)
        files[f"bad_{name}.mmd"] = parts.content(honest=honest)

    def entry(name: str, **changes: Any) -> Any:
        return lambda parts: parts.blocks[0][0][name].update(changes)

    def fact(**changes: str) -> Any:
        return lambda parts: parts.blocks[0][0]["__metadata__"].update(changes)

    def index(**changes: Any) -> Any:
        return lambda parts: parts.index.update(changes)

    def values(name: str, place: int, number: Any) -> Any:
        def put(parts: Packed) -> None:
            header, data = parts.blocks[0]
            begin, end = header[name]["data_offsets"]
            kind = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "I8": "<i1"}
            array = np.frombuffer(data[begin:end], kind[header[name]["dtype"]]).copy()
            array[place] = number
            parts.blocks[0] = header, data[:begin] + array.tobytes() + data[end:]

        return put

    csr = files["sound_sparse.mmd"]
    edited("shape", entry("values", shape=[4, 4]))
    edited("dtype", entry("values", dtype="F16"))
    edited("offsets", entry("labels", data_offsets=[0, 4]))
    edited("rows", fact(rows="5"))
    edited("columns", index(columns=4))
    edited("names", index(feature_names=["a"]))
    edited("fingerprint", index(fingerprint="blake2b:0"))
    edited("overlap", index(blocks=[[0, 4]]))
    edited("other_rows", index(rows=3))
    edited("no_rows", index(rows=0, blocks=[]))
    edited("wide", index(columns=2**50), csr)
    edited("nan", values("values", 3, np.nan))
    edited("weight", values("weights", 1, -1.0), files["sound_weights.mmd"])
    edited("damaged", values("values", 3, 9.0), honest=False)
    edited("header", fact(rows="3"), honest=False)
    edited("index_large", values("indices", 1, 9), csr)
    edited("index_unsorted", values("indices", 1, 0), csr)
    edited("row_ends", values("offsets", 2, 99), csr)
    edited("weights_of_some", index(weighted=True))
    edited("layout", index(sparse=True))
    edited("label_place", values("labels", 0, 9), files["sound_texts.mmd"])
    edited("label_text", fact(texts='{"labels": [1, 2]}'), files["sound_texts.mmd"])
    return files


def _tables() -> dict[str, bytes]:
    import pyarrow
    from pyarrow import parquet

    def written(columns: dict[str, Any], **options: Any) -> bytes:
        file = io.BytesIO()
        parquet.write_table(pyarrow.table(columns), file, **options)
        return file.getvalue()

    a, label = [1.0, 2.5, -3.0], [0, 1, 0]
    files = dict(CSV)
    files["packed.csv.gz"] = gzip.compress(CSV["plain.csv"], mtime=0)
    files["packed_cut.csv.gz"] = files["packed.csv.gz"][:-6]
    files["plain.parquet"] = written({"a": a, "b": [1, 2, 3], "label": label}, compression="none")
    files["groups.parquet"] = written({"a": a, "y": ["x", "y", "x"]}, row_group_size=1)
    files["missing.parquet"] = written({"a": [1.0, None, 2.0], "label": [0, 1, None]})
    files["nan.parquet"] = written({"a": [1.0, float("nan"), 2.0], "label": label})
    files["text_feature.parquet"] = written({"a": ["x", "y", "z"], "label": label})
    files["nested.parquet"] = written({"a": [[1], [2], [3]], "label": label})
    files["no_rows.parquet"] = written({"a": a[:0], "label": label[:0]})
    files["no_label.parquet"] = written({"a": a})
    files["truth.parquet"] = written({"a": [True, False, True], "label": [True, False, True]})
    files["dictionary.parquet"] = written(
        {"a": a, "label": pyarrow.array(["p", "q", "p"]).dictionary_encode()}
    )
    files["repeated.parquet"] = written({"a": [1.0] * 1_000, "label": [1] * 1_000})
    files["cut.parquet"] = files["plain.parquet"][:-20]
    files["empty.parquet"] = b""
    return files
