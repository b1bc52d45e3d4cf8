# SPDX-License-Identifier: BSD-3-Clause
"""Data and model files as tests write them: sound ones, and what is wrong with a right checksum."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import safetensors.numpy
from hypothesis import strategies as st

from maxmargin.files import ModelError, load_model, save_model
from maxmargin.files.models.safetensors import _checksum
from maxmargin.proof.certificate import Certificate

PROBLEM = {
    "loss": "hinge",
    "C": 1.0,
    "intercept": "exact",
    "intercept_scaling": 1.0,
    "class_weight": None,
    "sample_weights": False,
    "penalty": "l2",
    "formulation": "separate",
}


def write_libsvm(path, X, y):
    lines = (
        f"{label} " + " ".join(f"{j + 1}:{value:.17g}" for j, value in enumerate(row) if value) + "\n"
        for label, row in zip(y, X, strict=True)
    )
    path.write_text("".join(lines))


def each(part):
    return [part] if isinstance(part, Certificate) else list(part)


def assert_same_certificates(one, other):
    for first, second in zip(each(one), each(other), strict=True):
        for name in ("primal", "dual", "b", "alpha_from", "relative_gap", "gap", "kkt_violation"):
            assert getattr(first, name) == getattr(second, name), name
        for name in ("w", "alpha", "margins", "w_of_alpha", "row_classes"):
            np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
        assert str(first) == str(second)


def parts_of(path):
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    texts = header["__metadata__"]
    return texts, json.loads(texts["model"]), dict(safetensors.numpy.load(content))


def signed(path, texts, description, arrays):
    """Write a file whose checksum is right, whatever it says."""
    texts = {**texts, "model": json.dumps(description)}
    kinds = {"float64": "F64", "int8": "I8", "float32": "F32", "float16": "F16"}
    kinds |= {"int64": "I64", "int32": "I32"}
    sums = {
        name: (kinds[a.dtype.name], a.shape, [np.ascontiguousarray(a).tobytes()])
        for name, a in arrays.items()
    }
    texts["checksum"] = _checksum(texts, sums)
    Path(path).write_bytes(safetensors.numpy.save(arrays, texts))


mutations = st.lists(
    st.tuples(
        st.sampled_from(["flip", "set", "cut", "insert", "delete", "double"]),
        st.floats(0, 1, exclude_max=True),
        st.integers(0, 255),
    ),
    min_size=1,
    max_size=4,
)


def mutated(content, changes, head=None):
    """Bytes changed at places that are spread over the first ``head`` bytes."""
    content = bytearray(content)
    for kind, where, value in changes:
        place = int(where * min(len(content), head or len(content)))
        if kind == "flip" and content:
            content[place] ^= 1 << (value % 8)
        elif kind == "set" and content:
            content[place] = value
        elif kind == "cut":
            del content[place:]
        elif kind == "insert":
            content[place:place] = bytes([value])
        elif kind == "delete":
            del content[place : place + 1 + value % 16]
        elif kind == "double":
            content[place:place] = content[place : place + 1 + value]
    return bytes(content)


strange = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.just([]),
    st.just({}),
    st.lists(st.integers(), max_size=3),
    st.sampled_from(["inf", "nan", "\ud800", 10**400, 2**63, [[]], {"labels": [[]], "factors": [1]}]),
)


def replace_one_part(description, data):
    """Put something strange into one place of a description, however deep."""
    place = description
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = data.draw(st.sampled_from(keys))
        if not isinstance(place[key], dict | list) or not place[key] or data.draw(st.booleans()):
            break
        place = place[key]
    place[key] = data.draw(strange)


def assert_refused_or_usable(path, texts, description, arrays, estimator):
    """A file of these parts, with a right checksum, is refused, or predicts, is saved and loaded again."""
    try:
        signed(path, texts, description, arrays)
    except UnicodeError:
        return
    try:
        saved = load_model(path)
        saved.predict(np.ones((2, saved.features)))
        save_model(saved, path)
        estimator.load(path).predict(np.ones((2, saved.features)))
    except ModelError:
        return
