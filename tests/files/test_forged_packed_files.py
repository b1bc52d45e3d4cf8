# SPDX-License-Identifier: BSD-3-Clause
"""Packed files that lie under right checksums: each lie is refused by the words that name it."""

from __future__ import annotations

import json
import re
import struct
import zlib

import numpy as np
import pytest
from scipy import sparse

from maxmargin.files import DataError, pack, read
from maxmargin.files.data.packed import END, MAGIC, TRAILER, aligned, header_checksum, read_head

X = np.array([[1.0, 0.0, 2.5], [0.0, 3.0, 0.0], [4.0, 5.0, 6.0]])
Y = np.array([1, 2, 1])


class Forged:
    """The parts of a packed file of one block, which can be changed and signed anew."""

    def __init__(self, content: bytes) -> None:
        place, length, _, _ = TRAILER.unpack(content[-TRAILER.size :])
        self.index = json.loads(content[place : place + length])
        ((at, _),) = self.index["blocks"]
        self.before = content[:at]
        length = int.from_bytes(content[at : at + 8], "little")
        self.header = json.loads(content[at + 8 : at + 8 + length])
        self.facts = self.header.pop("__metadata__")
        body = content[at + 8 + length : place]
        self.arrays = {name: body[slice(*entry["data_offsets"])] for name, entry in self.header.items()}

    def write(self, path, *, signs_header=True, signs_index=True, end=END) -> None:
        body = b"".join(self.arrays.values())
        sums = {name: zlib.crc32(array) for name, array in self.arrays.items()}
        self.facts["checksums"] = json.dumps(sums)
        if signs_header:
            self.facts["checksum"] = str(header_checksum(self.header, self.facts))
        text = json.dumps({"__metadata__": self.facts} | self.header).encode()
        block = self.before + struct.pack("<Q", len(text)) + text + body
        block += bytes(aligned(len(block)) - len(block))
        index = json.dumps(self.index).encode()
        checksum = zlib.crc32(index) ^ (not signs_index)
        path.write_bytes(block + index + TRAILER.pack(len(block), len(index), checksum, end))

    def set(self, name, values) -> None:
        """Other values of an array, of the same type and number."""
        kinds = {"I64": "<i8", "I32": "<i4", "I8": "<i1"}
        new = np.array(values, kinds[self.header[name]["dtype"]]).tobytes()
        assert len(new) == len(self.arrays[name])
        self.arrays[name] = new

    def move(self, name, by) -> None:
        self.header[name]["data_offsets"] = [each + by for each in self.header[name]["data_offsets"]]


@pytest.fixture
def forged(tmp_path):
    def made(rows=X, labels=Y, *more):
        pack(lambda: [(rows, labels, *more)], tmp_path / "a.mmd")
        return Forged((tmp_path / "a.mmd").read_bytes())

    return made


SPARSE, TEXTS = (sparse.csr_array(X), Y), (X, np.array(["a", "b", "a"]))
LIES = {
    # of the index
    "is no count": ((), lambda file: file.index.update(rows=-1)),
    "cannot be read: 'identity'": ((), lambda file: file.index.pop("identity")),
    "are not as many as there are columns": ((), lambda file: file.index.update(feature_names=["a"])),
    "the fingerprint is none": ((), lambda file: file.index.update(fingerprint="blake2b:0")),
    "the matrix has 3 rows and 0 columns": ((), lambda file: file.index.update(columns=0)),
    "other rows than the index says": ((), lambda file: file.index.update(rows=4)),
    "a model of 1000000000000 columns would take": ((), lambda file: file.index.update(columns=10**12)),
    "two blocks overlap": ((), lambda file: file.index.update(blocks=file.index["blocks"] * 2, rows=6)),
    "begins beyond the end of the file": ((), lambda file: file.index.update(blocks=[[10**9, 3]])),
    "a block is not what the index says": ((), lambda file: file.index.update(sparse=True)),
    "a block has 3 columns, and the file 4": ((), lambda file: file.index.update(columns=4)),
    "some rows have weights": ((), lambda file: file.index.update(weighted=True)),
    # of a header
    "'values' has another size than its shape says": ((), lambda file: file.move("values", 8)),
    "its arrays are labels, more, values": (
        (),
        lambda file: (
            file.arrays.update(more=b""),
            file.header.update(more={"dtype": "I8", "shape": [0], "data_offsets": [39, 39]}),
        ),
    ),
    "its array 'weights' has the shape (12,)": (
        (X, Y, Y + 0.5),
        lambda file: file.header["weights"].update(dtype="I8", shape=[12]),
    ),
    "its texts are of no array": ((), lambda file: file.facts.update(texts='{"values": []}')),
    "a label is no text, or too long": (TEXTS, lambda file: file.facts.update(texts='{"labels": [1, 2]}')),
    "cannot be read: 'F16'": ((), lambda file: file.header["values"].update(dtype="F16")),
    "a block is cut off": (
        (),
        lambda file: file.header["labels"].update(shape=[10**6], data_offsets=[36, 36 + 10**6]),
    ),
    "it has no row": (
        (),
        lambda file: (
            file.header["values"].update(shape=[0, 3], data_offsets=[0, 0]),
            file.header["labels"].update(shape=[0], data_offsets=[0, 0]),
            file.facts.update(rows="0"),
        ),
    ),
    # of arrays
    "an index of a block lies outside the 3 columns": (
        SPARSE,
        lambda file: file.set("indices", [0, 3, 1, 0, 1, 2]),
    ),
    "the indices of a row in a block do not increase": (
        SPARSE,
        lambda file: file.set("indices", [2, 0, 1, 0, 1, 2]),
    ),
    "must increase from 0 to 6": (SPARSE, lambda file: file.set("offsets", [0, 3, 2, 6])),
    "the labels of a block lie outside their list": (TEXTS, lambda file: file.set("labels", [0, 1, 2])),
}


@pytest.mark.parametrize("words", LIES)
def test_a_lie_is_refused_by_its_name(tmp_path, forged, words):
    given, lie = LIES[words]
    file = forged(*given)
    file.write(tmp_path / "b.mmd")
    assert np.array_equal(read(tmp_path / "b.mmd").X @ np.eye(3), X)
    lie(file)
    file.write(tmp_path / "b.mmd")
    with pytest.raises(DataError, match=re.escape(words)) as refused:
        read(tmp_path / "b.mmd")
    cure = "Check that it is the right file" if "and 0 columns" in words else "pack the data again"
    assert cure in str(refused.value)


def test_checksums_magic_and_ends(tmp_path, forged):
    file, path = forged(), tmp_path / "b.mmd"
    file.write(path, signs_index=False)
    with pytest.raises(DataError, match="the index does not match its checksum"):
        read(path)
    file.write(path, end=b"mmd ends")
    with pytest.raises(DataError, match="the file ends too early"):
        read(path)
    file.facts["checksum"] = "1"
    file.write(path, signs_header=False)
    with pytest.raises(DataError, match="the header of a block does not match its checksum"):
        read(path)
    content = path.read_bytes()
    for cut in (20, 90):
        path.write_bytes(content[:cut])
        with pytest.raises(DataError, match=r"the file ends too early|should have"):
            read(path)
    for head, words in ((b"[1]", "no JSON object"), (b"{", "a header cannot be read")):
        path.write_bytes(MAGIC + struct.pack("<Q", len(head)) + head + bytes(200))
        with pytest.raises(DataError, match=words):
            read(path)
    path.write_bytes(b"1 1:1\n")
    with path.open("rb") as opened, pytest.raises(DataError, match=r"not a packed file.* maxmargin pack"):
        read_head(opened, 6)


def test_truth_of_a_byte_that_is_more_than_one(tmp_path, forged):
    file = forged(X, np.array([True, False, True]))
    file.arrays["labels"] = bytes([7, 0, 1])
    file.write(tmp_path / "b.mmd")
    assert read(tmp_path / "b.mmd").y.tolist() == [True, False, True]
