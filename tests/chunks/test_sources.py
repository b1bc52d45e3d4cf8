# SPDX-License-Identifier: BSD-3-Clause
"""What chunks are made from: parts of every form, and what is said of wrong ones."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy import sparse

from maxmargin import Chunks, LinearSVC
from maxmargin.chunks.chunk import Chunk
from maxmargin.chunks.survey import _labels
from maxmargin.files import pack

X = np.arange(12.0).reshape(6, 2)
Y = np.array([0, 1, 0, 1, 1, 0])


def rows_of(chunks):
    return [[row.tolist() for row in (c.X.toarray() if sparse.issparse(c.X) else c.X)] for c in chunks]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"source": (X, Y), "rows": 0}, "rows must be a number above 0, or None. Got 0 instead."),
        ({"source": (X, Y), "zero_based": True}, "Only files take the options zero_based. Leave them out."),
        ({"source": iter([(X, Y)])}, "wrap what makes it into a function"),
        ({"source": []}, "Got list instead"),
        ({"source": [(X, Y), 3]}, "Got list instead"),
    ],
)
def test_what_no_chunks_are_made_from(given, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        Chunks(**given)


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ([[X, Y]], "A part must be (X, y) or (X, y, weights). Got list instead."),
        ([(X, Y), (X[0], Y[:2])], "X must be a matrix. The part from row 6 on has 1 dimensions."),
        ([(X, Y), (X, Y[:5])], "one label for each of 6 rows from row 6 on. Got an array of shape (5,)"),
        ([(X, Y, [1.0])], "one weight for each of 6 rows from row 0 on. Got an array of shape (1,)"),
        ([(X, Y), (X[:, :1], Y)], "From row 6 on there are 1, and 2 before."),
        ([(X[:0], Y[:0])], "There is no row in these chunks."),
    ],
)
def test_wrong_parts_are_named_by_their_rows(parts, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        list(Chunks(lambda: parts))


def test_parts_are_joined_and_cut_whatever_their_form():
    whole = [(X[:1], Y[:1]), (X[:0], Y[:0]), (X[1:].astype(int), Y[1:], [2.0] * 5)]
    chunks = list(Chunks(whole, rows=4))
    assert rows_of(chunks) == [X[:4].tolist(), X[4:].tolist()]
    assert chunks[0].weight.tolist() == [1.0, 2.0, 2.0, 2.0]
    assert [chunk.first for chunk in chunks] == [0, 4]
    assert all(chunk.X.dtype == np.float64 for chunk in chunks)
    # Coordinates, whole numbers and values that are given twice: the core gets rows as it reads them.
    twice = sparse.csr_array(([1.0, 2.0, 3.0], [1, 1, 0], [0, 2, 3]), shape=(2, 2))
    for given in (twice, twice.tocoo(), twice.astype(int)):
        (chunk,) = Chunks(lambda given=given: [(given, [0, 1])])
        assert chunk.X.format == "csr"
        assert chunk.X.has_canonical_format
        assert rows_of([chunk]) == [[[0.0, 3.0], [3.0, 0.0]]]
    assert twice.nnz == 3
    (mixed,) = Chunks([(X[:2], Y[:2]), (sparse.csr_array(X[2:].astype(int)), Y[2:])])
    assert rows_of([mixed]) == [X.tolist()]


def test_packed_files_have_their_columns(tmp_path):
    pack(lambda: [(X, Y, Y + 1.0)], tmp_path / "a.mmd")
    chunks = Chunks(tmp_path / "a.mmd")
    assert chunks.rows == 6
    (chunk,) = chunks
    assert chunk.weight.tolist() == (Y + 1.0).tolist()
    with pytest.raises(ValueError, match=r"columns must be 2, as many as the file has\. Got 3 instead"):
        list(Chunks(tmp_path / "a.mmd", columns=3))
    with pytest.raises(ValueError, match="columns"):
        LinearSVC().fit(Chunks(tmp_path / "a.mmd", columns=3))


@pytest.mark.parametrize("kind", [bool, np.int8, np.float64, str])
def test_labels_of_two_classes_are_found_whatever_their_kind(kind):
    y = np.array([1, 0, 0, 1, 1, 0]).astype(kind)
    labels, codes = _labels(Chunk(np.zeros((6, 1)), y))
    assert labels.dtype == y.dtype
    assert np.array_equal(labels, np.unique(y))
    assert np.array_equal(labels[codes], y)
    assert codes.dtype == np.int64
    alone = _labels(Chunk(np.zeros((2, 1)), y[1:3]))
    assert np.array_equal(alone[0], y[1:2])
    assert np.array_equal(alone[1], [0, 0])
