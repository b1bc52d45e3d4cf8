# SPDX-License-Identifier: BSD-3-Clause
"""Tables from hostile files: read as they are, or refused with the reason, never anything else."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from maxmargin.files import DataError, load_model
from maxmargin.files.data.reading import Options
from maxmargin.tables.kinds import Said
from maxmargin.tables.reading import read_raw, stream_raw, until_types_fit
from written_files import mutated

CORPUS = Path(__file__).parent.parent.parent / "fuzz" / "corpus"
TABLES = sorted((CORPUS / "tables").iterdir())


def outcome(path, **options):
    """The shape of the matrix, or the message of the refusal."""
    try:
        raw = read_raw(str(path), Options.of(**options), format=None)
        data, _ = raw.encoded(raw.fitted(Said(), "standard"))
    except DataError as error:
        return str(error)
    assert np.isfinite(data.X.data if hasattr(data.X, "indptr") else data.X).all()
    assert data.y is None or len(data.y) == data.X.shape[0]
    return data.X.shape


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.name)
def test_every_table_of_the_corpus_is_read_or_refused(path):
    for options in ({}, {"skip_bad_lines": True}, {"labelled": False}, {"header": False, "label": "1"}):
        outcome(path, **options)


@pytest.mark.parametrize("name", ["texts.csv", "missing.csv", "plain.parquet", "quoted.csv"])
def test_damaged_tables_are_read_or_refused(name, tmp_path):
    content = (CORPUS / "tables" / name).read_bytes()
    random = np.random.default_rng(0)
    kinds = ["flip", "set", "cut", "insert", "delete", "double"]
    for _ in range(40):
        changes = [(str(random.choice(kinds)), random.random(), int(random.integers(256)))]
        (tmp_path / name).write_bytes(mutated(content, changes))
        outcome(tmp_path / name)


def test_pieces_are_the_whole(tmp_path):
    lines = [f"{k % 3},{k},{'xyz'[k % 3]}" for k in range(5000)]
    (tmp_path / "data.csv").write_text("label,number,text\n" + "\n".join(lines) + "\n")
    options = Options.of()
    raw = read_raw(str(tmp_path / "data.csv"), options, format=None)
    encoding = raw.fitted(Said(), "standard")
    whole = raw.encoded(encoding)[0]
    pieces = [
        piece.encoded(encoding)[0] for piece in stream_raw(str(tmp_path / "data.csv"), options, format=None)
    ]
    np.testing.assert_array_equal(np.vstack([piece.X for piece in pieces]), whole.X)
    assert whole.X.shape == (5000, 4)


def test_types_are_tried_until_they_fit(tmp_path):
    (tmp_path / "data.csv").write_text("label,a\n1,2\n0,x\n")
    calls = []

    def read(texts):
        calls.append(set(texts))
        return [*stream_raw(str(tmp_path / "data.csv"), Options.of(), format=None, texts=texts)]

    pieces = until_types_fit(read, {"a"})
    assert calls == [{"a"}]
    assert pieces[0].features.column("a").to_pylist() == ["2", "x"]


def test_models_of_tables_in_the_corpus_are_read():
    for name in ("own_table_two", "own_table_kernel"):
        assert load_model(CORPUS / "model" / name).encoding.label == "churn"


def test_without_pyarrow_a_table_says_what_to_install(tmp_path, monkeypatch):
    path = tmp_path / "table.csv"
    path.write_text("a,label\n1,x\n2,y\n")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(DataError, match=r"table\.csv.*need pyarrow.*pip install 'maxmargin\[tables\]'"):
        read_raw(str(path), Options.of(label="label"), format=None)
