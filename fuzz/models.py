# SPDX-License-Identifier: BSD-3-Clause
"""Model files: ours, with a checksum made anew to reach what lies behind it, and the peers' text."""

from __future__ import annotations

import json
import math
import struct
import warnings
from dataclasses import asdict, fields
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from scipy import sparse

from fuzz.mutations import mutated
from fuzz.oracles import Outcome, attempt, reason, require
from fuzz.targets import Input, Target, Verdict
from maxmargin.files.models import arrays as own_arrays
from maxmargin.files.models import safetensors as own_format
from maxmargin.files.models import saved as model_files
from maxmargin.files.models.fitted import kinds_of
from maxmargin.files.models.saved import ModelError, SavedModel
from maxmargin.files.models.stored import SavedKernelModel, StoredModel

WORDS = (
    b"solver_type nr_class label nr_feature bias w rho svm_type c_svc nu_svc nu_svr kernel_type linear "
    b"one_class rbf total_sv nr_sv SV probA L2R_LR L2R_L1LOSS_SVC_DUAL MCSVM_CS L1R_LR 1:1 2:0.5 "
    b"__metadata__ dtype shape data_offsets F64 I8 coef intercept alpha BF16 F32 U64 polynomial sigmoid "
    b"precomputed degree gamma coef0 coefficients support vectors values indices offsets"
).split()
_STRANGE: list[Any] = [
    None,
    True,
    False,
    0,
    1,
    2,
    -1,
    3,
    0.5,
    -0.0,
    1e308,
    5e-324,
    2**31,
    2**53,
    2**63,
    -(2**63) - 1,
    10**400,
    "",
    "inf",
    "-inf",
    "nan",
    "1",
    "hinge",
    "balanced",
    "\ud800",
    "\x1b[31m\0",
    "x" * 5000,
    [],
    {},
    [[]],
    [1, 2, 3],
    ["a", "b"],
    {"labels": [0, 1], "factors": [1.0, 2.0]},
    {"labels": [[]], "factors": [1]},
    {"name": "pegasos", "batch": 2},
    {"name": "dual_coordinate_ascent"},
    {"type": "object", "values": ["a", 1]},
    {"type": "float16", "values": [1.5, 2.5]},
    {"type": "str", "values": ["b", "a"]},
    {"type": "int64", "values": [9223372036854775807, -9223372036854775808]},
    {"type": "uint64", "values": [18446744073709551615, 0]},
    {"type": "float64", "values": [1, 9007199254740993]},
    {"type": "bool", "values": [True, False]},
    {"kernel": "gaussian", "gamma": 1e300},
    {"kernel": "polynomial", "degree": 64, "gamma": 1e9, "coef0": -1e9},
    {"kernel": "chi_squared", "gamma": 0.5},
    {"kernel": "precomputed"},
    {"kernel": "sum", "terms": [{"coefficient": 1e308, "factors": [{"kernel": "linear"}]}]},
    {"map": "monomials", "columns": 2, "lowest": 1, "scales": [0, 1, 1e200], "once": False}
    | {"shared_repeats": True},
    {"map": "monomials", "columns": 10**12, "lowest": 2, "scales": [1, 1, 1], "once": True}
    | {"shared_repeats": False},
    {"format": "csr", "columns": 1048576, "open_ended": True},
    {"format": "dense", "columns": 2, "open_ended": False},
    {"format": "none", "columns": 9, "open_ended": False},
]
_WHOLE = (0, 1, 2, 3, 8, 9, -1, 2**31 - 1, 2**31, 2**62, -(2**31))
_SIZES = {"F64": 8, "I64": 8, "F32": 4, "I32": 4, "I8": 1}
_FLOATS = (0.0, -0.0, 1.0, -1.0, 1e-320, 1.7e308, -1.7e308, math.nan, math.inf, -math.inf, 2.5, 2.0**53)
_TYPES = ("F64", "I8", "F32", "I64", "I32", "BF16", "BOOL", "U64", "F8_E4M3", "C64", "?", "")
_COUNTS = (0, 1, 2, 3, 5, 150, 2**31, 2**32, 2**62, 2**63, 2**64, -1, 1.5, None)
_MANY = 10_000
_MIB = 1 << 20


class _Models(Target):
    name = "model"

    def allowance(self, given: Input) -> int:
        # Ours has all its numbers in the file; a LIBSVM text may have 64 MiB of weights from one index.
        # Rows of a kernel model may have a million columns, for each of which predicting needs room.
        size = len(given.content)
        wide = given.content.startswith(b"svm_type") or b"open_ended" in given.content
        return 64 * _MIB + 64 * size + (8 * 64 * _MIB if wide else 0)

    def mutate(self, random: Random, pool: list[Input]) -> Input:
        given, other = random.choice(pool), random.choice(pool)
        parts = _Parts.of(given.content)
        if parts is None or random.random() < 0.25:
            return Input(mutated(given.content, random, WORDS, other.content))
        for _ in range(random.choice((1, 1, 1, 2, 3))):
            parts.edit(random)
        return Input(parts.written(random))

    def check(self, path: Path, given: Input, random: Random, *, thorough: bool) -> Verdict:
        name = str(path)
        loaded = attempt(lambda: model_files.load_model(path), ModelError, name)
        estimator = "not tried"
        if not loaded.refused:
            model = loaded.value
            wrong = model.contradiction()
            require(wrong is None, f"a model was loaded although {wrong}")
            estimator = _check_loaded(model, path, random, thorough)
        kind = "" if loaded.refused else loaded.value.format
        signature = (reason(loaded.error, name), estimator, kind)
        return Verdict(signature[0], signature)


def _check_loaded(model: StoredModel, path: Path, random: Random, thorough: bool) -> str:
    # Rows may be shorter than those of a model with a kernel, unless its values are given.
    short = isinstance(model, SavedKernelModel) and model.vectors is not None
    width = min(model.features, _MANY) if short else model.features
    X = np.array([[0.0], [1.0], [0.25], [0.5]]) * np.ones(width)
    if width <= 1000:
        X[2] = [random.choice((0.0, 1.0, 2.0, 0.25)) for _ in range(width)]
    expansion: Any = getattr(model, "expansion", None)
    if expansion is not None and not math.isfinite(4.0 * max(expansion.scales)):
        return "products beyond floats"  # refused when rows are seen, which decide whether they are
    labels, scores = _predicted(model, X)
    if model.has_classes:
        known = set(model.classes.tolist())
        require(set(labels.tolist()) <= known, "a class was predicted that there is none")
    again = path.with_name("again")
    for format in ("maxmargin", "liblinear", "libsvm"):
        if format != "maxmargin" and model.features > _MANY:
            continue  # text of so many numbers takes seconds
        saved = _saved(model, again, format)
        if saved.refused:
            # The text of others does not tell the epsilon, or the nu, that a file of ours has to name.
            unnamed = model.is_regression and model.problem["epsilon"] is None
            unnamed = unnamed or (model.has_nu and model.shares is None)
            can_be = format == "maxmargin" and not unnamed
            require(not can_be, f"a model that was loaded cannot be saved: {saved.error}")
        elif format == "maxmargin":
            _require_same_model(model, saved.value)
        elif format == model.format and isinstance(model, SavedModel):
            _require_same_weights(model, saved.value)
        elif isinstance(model, SavedKernelModel):
            _require_same_scores(X, scores, saved.value)
    estimator = kinds_of(model)[-1 if isinstance(model, SavedKernelModel) else 0]
    tried = attempt(lambda: estimator.load(path), ModelError, "")
    if tried.refused:
        return reason(tried.error, str(path))
    if width == model.features and (model.has_classes or model.is_one_class):
        _check_estimator(tried.value, X, labels, scores, by_votes=model.decision == "one_vs_one")
    if thorough or random.random() < 0.05:
        require("<" in tried.value._repr_html_inner(), "there is no summary")
    return "read"


def _require_same_scores(X: Any, scores: Any, other: StoredModel) -> None:
    """A kernel model written as LIBSVM text and read back: the same numbers, summed in another order."""
    _, found = _predicted(other, X)
    size = np.abs(scores).max(initial=1.0)
    if np.isfinite(size) and size < 1e100 and found.shape == scores.shape:
        require(np.allclose(found, scores, rtol=1e-6, atol=1e-6 * size), "written as libsvm, scores differ")


def _predicted(model: Any, X: Any) -> tuple[Any, Any]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # finite weights can have an infinite sum
        return model.predict(X), np.asarray(model.decision_function(X))


def _check_estimator(estimator: Any, X: Any, labels: Any, scores: Any, *, by_votes: bool) -> None:
    theirs, _ = _predicted(estimator, X)
    clear = np.isfinite(scores)
    if by_votes and scores.ndim == 2:
        return  # which of equal votes is the first depends on the order of the classes
    if scores.ndim == 1:
        clear &= scores != 0  # of which sign the score is depends on the order of the classes
    else:
        first, second = np.sort(scores, axis=1)[:, :-3:-1].T
        clear = clear.all(axis=1) & (first > second)
    require(
        np.asarray(theirs)[clear].tolist() == np.asarray(labels)[clear].tolist(),
        f"{type(estimator).__name__}.load predicts otherwise than load_model",
    )


def _saved(model: StoredModel, path: Path, format: Any) -> Outcome:
    def save_and_load() -> StoredModel:
        model_files.save_model(model, path, format=format)
        return model_files.load_model(path)

    return attempt(save_and_load, ModelError, "")


def _require_same_model(one: StoredModel, other: StoredModel) -> None:
    for field in fields(type(one)):
        if field.name in ("writer", "format", "certificates", "traces", "claims"):
            continue
        if field.name == "support" and isinstance(one, SavedModel):
            continue  # our own file has none for a linear model
        mine, theirs = getattr(one, field.name), getattr(other, field.name)
        require(
            _same(mine, theirs), f"saved and loaded, {field.name} is {theirs!r:.200}, not {mine!r:.200}"
        )
    claims = [[asdict(claim) for claim in model.claims or ()] for model in (one, other)]
    require(_same(*claims), "saved and loaded, the claims differ")
    for mine, theirs in zip(one.certificates or (), other.certificates or (), strict=True):
        for name in ("w", "b", "alpha", "margins", "w_of_alpha", "row_classes"):
            require(_same(getattr(mine, name), getattr(theirs, name)), f"saved and loaded, {name} differs")
    for mine, theirs in zip(one.traces or (), other.traces or (), strict=True):
        require(_same(list(mine), list(theirs)), "saved and loaded, a trace differs")


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) and one.dtype != object:
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    if sparse.issparse(one):
        return one.shape == other.shape and all(
            _same(getattr(one, part), getattr(other, part)) for part in ("data", "indices", "indptr")
        )
    return repr(one) == repr(other)  # equal with NaN, and of the same types


def _require_same_weights(one: SavedModel, other: SavedModel) -> None:
    """The peers' text as read back: LIBSVM's leaves out zeros, also those at the end."""
    d = min(one.features, other.features)
    same = np.array_equal(one.coef[:, :d], other.coef[:, :d]) and not one.coef[:, d:].any()
    require(same, f"written as {one.format} and loaded, coef differs")
    require(_same(one.classes, other.classes), f"written as {one.format} and loaded, the classes differ")
    # LIBLINEAR's weight of the constant feature is the intercept over its value: one rounding each way.
    with np.errstate(all="ignore"):
        close = np.isclose(one.intercept, other.intercept, rtol=1e-15, atol=1e-300)
    require(close.all(), f"written as {one.format} and loaded, the intercept differs")


class _Parts:
    """A file of ours taken apart: texts, the description in JSON, and arrays as type, shape and bytes."""

    def __init__(self, texts: dict[str, Any], description: Any, arrays: dict[str, list[Any]]) -> None:
        self.texts, self.description, self.arrays = texts, description, arrays

    @classmethod
    def of(cls, content: bytes) -> _Parts | None:
        try:
            length = int.from_bytes(content[:8], "little")
            header = json.loads(content[8 : 8 + length])
            texts = dict(header.pop("__metadata__"))
            arrays = {}
            for name, entry in header.items():
                begin, end = entry["data_offsets"]
                arrays[name] = [entry["dtype"], list(entry["shape"]), content[8 + length :][begin:end]]
            return cls(texts, json.loads(texts["model"]), arrays)
        except Exception:  # not a file of ours any more
            return None

    def edit(self, random: Random) -> None:
        kind = random.random()
        if kind < 0.2:
            self._edit_harmlessly(random)
        elif kind < 0.6:
            self.description = _edited(self.description, random)
        elif kind < 0.97:
            self._edit_array(random)
        else:
            name = random.choice([*self.texts, "more"])
            self.texts[name] = random.choice(
                ("", "0", "1", "2", "3", "-1", "99999999999", "1.0", "maxmargin model")
            )

    def _edit_harmlessly(self, random: Random) -> None:
        """So that what is still loaded goes a longer way."""
        description, arrays = self.description, self.arrays
        try:
            if random.random() < 0.5:
                name = random.choice([*arrays])
                values = np.frombuffer(arrays[name][2], own_arrays.TYPES[arrays[name][0]]).copy()
                if name not in ("intercept", "coefficients", "support", "indices", "offsets", "w"):
                    values[random.randrange(len(values))] = random.choice((0, 1, 2, 3))
                arrays[name][2] = values.tobytes()
            elif random.random() < 0.5:
                name = random.choice(("C", "intercept_scaling", "loss", "penalty", "class_weight"))
                choices = (
                    0.5,
                    3.0,
                    "hinge",
                    "logistic",
                    "squared_hinge",
                    "l1",
                    "balanced",
                    None,
                    1e-300,
                    1e300,
                )
                description["problem"][name] = random.choice(choices)
            elif random.random() < 0.5:
                name = random.choice([*description["parameters"]])
                description["parameters"][name] = random.choice(
                    (None, True, False, 0, 1, 0.5, 1e-9, "auto", "x")
                )
            else:
                random.shuffle(description["classes"]["values"])
                description["tol"] = random.choice((None, 0, 0.5, 1e300))
                description["solver"] = random.choice((None, "", "<b>&", "x"))
        except Exception:  # it was edited before
            self._edit_array(random)

    def _edit_array(self, random: Random) -> None:
        if not self.arrays:
            return
        name = random.choice(list(self.arrays))
        type_, shape, data = self.arrays[name]
        kind = random.random()
        if kind < 0.45 and type_ == "F64" and len(data) >= 8:
            values = bytearray(data)
            place = 8 * random.randrange(len(data) // 8)
            values[place : place + 8] = struct.pack("<d", random.choice(_FLOATS))
            self.arrays[name][2] = bytes(values)
        elif kind < 0.45 and type_ in ("I64", "I32") and data and len(data) % _SIZES[type_] == 0:
            numbers = np.frombuffer(data, own_arrays.TYPES[type_]).copy()
            numbers[random.randrange(len(numbers))] = random.choice(_WHOLE) % 2**31
            self.arrays[name][2] = numbers.tobytes()
        elif kind < 0.55 and data:
            values = bytearray(data)
            values[random.randrange(len(values))] = random.randrange(256)
            self.arrays[name][2] = bytes(values)
        elif kind < 0.8:
            counts = list(shape)
            if counts and random.random() < 0.7:
                counts[random.randrange(len(counts))] = random.choice(_COUNTS)
            elif random.random() < 0.5:
                counts.insert(random.randrange(len(counts) + 1), random.choice(_COUNTS))
            elif counts:
                counts.pop()
            self.arrays[name][1] = counts
            self._fill(name, random)
        elif kind < 0.87:
            self.arrays[name][0] = random.choice(_TYPES)
        elif kind < 0.94:
            del self.arrays[name]
        else:
            self.arrays[random.choice(("coef", "alpha", "trace", "more", "__metadata__", "\ud800"))] = [
                type_,
                list(shape),
                data,
            ]

    def _fill(self, name: str, random: Random) -> None:
        """As many bytes as the shape asks for."""
        type_, shape, data = self.arrays[name]
        if all(type(count) is int and 0 <= count <= 1000 for count in shape) and random.random() < 0.9:
            size = math.prod(shape) * _SIZES.get(type_, 8)
            if size <= 1 << 15:
                self.arrays[name][2] = (data * (size // max(1, len(data)) + 1))[:size].ljust(size, b"\0")

    def written(self, random: Random) -> bytes:
        texts = dict(self.texts)
        texts["model"] = json.dumps(self.description)
        if random.random() < 0.05:
            texts["model"] = mutated(texts["model"].encode(), random, WORDS).decode("latin-1")
        sums = {
            name: (t, tuple(shape), [memoryview(data)]) for name, (t, shape, data) in self.arrays.items()
        }
        try:
            texts["checksum"] = own_format._checksum(texts, sums)
        except (KeyError, UnicodeError):  # the format or the version is gone, or cannot be encoded
            texts["checksum"] = "blake2b:"
        header: dict[str, Any] = {"__metadata__": texts}
        end = 0
        for name, (type_, shape, data) in self.arrays.items():
            begin, end = end, end + len(data)
            header[name] = {"dtype": type_, "shape": shape, "data_offsets": [begin, end]}
        encoded = json.dumps(header).encode()
        encoded += b" " * (-len(encoded) % 8)
        if random.random() < 0.05:
            encoded = mutated(encoded, random, WORDS)
        data = b"".join(data for _, _, data in self.arrays.values())
        return struct.pack("<Q", len(encoded)) + encoded + data


def _edited(value: Any, random: Random) -> Any:
    """JSON with one place in it changed, added or left out."""
    if isinstance(value, dict) and value and random.random() < 0.9:
        value = dict(value)
        key = random.choice(list(value))
        kind = random.random()
        if kind < 0.05:
            del value[key]
        elif kind < 0.1:
            value[random.choice(("more", "name", "C", "class_weight", "solver", "max_iter"))] = _strange(
                random
            )
        else:
            value[key] = _edited(value[key], random)
        return value
    if isinstance(value, list) and value and random.random() < 0.8:
        value = list(value)
        place = random.randrange(len(value))
        kind = random.random()
        if kind < 0.1:
            del value[place]
        elif kind < 0.25:
            value.insert(place, random.choice((value[place], _strange(random))))
        else:
            value[place] = _edited(value[place], random)
        return value
    if isinstance(value, int | float) and random.random() < 0.3:
        return random.choice((-value, value + 1, value * 2, 0.3, value // 3))
    return _strange(random)


def _strange(random: Random) -> Any:
    return random.choice(_STRANGE)


TARGET = _Models()
