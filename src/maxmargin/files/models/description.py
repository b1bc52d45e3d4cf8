# SPDX-License-Identifier: BSD-3-Clause
"""Everything about a model that is not an array, as JSON: written, and read back without any trust.

A ``Kind`` says how a value is written, and how it is read, which checks it. Kinds of objects are tables of
the kinds of their fields; the table of the whole description stands at the end.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Mapping
from importlib.metadata import PackageNotFoundError, version
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin.features.expansion import Expansion
from maxmargin.files.models.preparation import STEP_NAMES
from maxmargin.files.models.stored import Claim, ModelError, Share, StoredModel
from maxmargin.kernels.base import Kernel
from maxmargin.kernels.names import describe, from_description
from maxmargin.proof.model import Status
from maxmargin.proof.sure import Neighbourhood
from maxmargin.reductions.probabilities import Calibration, Curve
from maxmargin.tables.encoding import SCALES, Column, Encoding
from maxmargin.tables.kinds import KINDS, LeftOut

LINEAR, WITH_KERNEL, WITH_FEATURES = 1, 2, 3
"""The versions of the format.

Features have a version of their own, and only they: an older maxmargin goes on reading plain linear models,
and of these says that they are newer, instead of taking their weights for those of columns or the file
for a damaged one."""
WITH_TABLE = 3
"""What is added to the version of a model whose columns are made from those of a table."""
REGRESSION = 6
"""What is added to the version of a model of regression, ranking or one class: older ones know classes."""
WITH_STEPS = 12
"""What is added to the version of a model that has scalers or feature maps before it."""
WITH_SHARES = 24
"""What is added to the version of a model with a nu."""
_NUMBERS = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
_NUMBERS += ["float16", "float32", "float64"]
_GAP_ROUNDING = 1e-9
"""How far, relatively, the gap that a claim states may be from that of its values: far above the rounding
of a decimal number, and far below any gap that means something."""


class Kind(NamedTuple):
    """How a value is read from JSON and written to it."""

    read: Callable[[Any, str], Any]
    """Takes the value and the words for where it stands; raises ModelError where it is of another kind."""
    write: Callable[[Any], Any] = lambda value: value


def _wrong(value: Any, where: str, expected: str) -> ModelError:
    return ModelError(f"{where} should be {expected}, not {_short(value)}.")


def _short(value: Any) -> str:
    text = ascii(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _plain(expected: str, fits: Callable[[Any], bool]) -> Kind:
    """The kind of the values that fit, which are the same in JSON."""

    def read(value: Any, where: str) -> Any:
        if not fits(value):
            raise _wrong(value, where, expected)
        return value

    return Kind(read)


def _one_of(choices: Collection[str], expected: str) -> Kind:
    plain = _plain(expected, lambda value: value in choices)
    return Kind(lambda value, where: plain.read(_TEXT.read(value, where), where))


def _or_none(kind: Kind) -> Kind:
    return Kind(
        lambda value, where: None if value is None else kind.read(value, where),
        lambda value: None if value is None else kind.write(value),
    )


def _list_of(kind: Kind) -> Kind:
    def read(value: Any, where: str) -> list[Any]:
        if not isinstance(value, list):
            raise _wrong(value, where, "a list")
        return [kind.read(part, where) for part in value]

    return Kind(read, lambda value: [kind.write(part) for part in value])


def _object(
    fields: dict[str, Kind],
    made: Callable[[dict[str, Any], str], Any] = lambda found, where: found,
    *,
    derived: Mapping[str, Callable[[Any], Any]] = {},
    later: Mapping[str, Any] = {},
) -> Kind:
    """The kind of the objects of exactly these fields.

    ``made`` makes the value from what was read, and ``derived`` gives the fields that are not attributes of
    the value. Files of earlier versions lack the fields of ``later``, which names what they stand for.
    """

    def read(value: Any, where: str) -> Any:
        _JSON_OBJECT.read(value, where)
        found = {}
        for name, kind in fields.items():
            if name not in value and name not in later:
                raise ModelError(f"{where} lacks {name!r}.")
            missing = value.get(name) is None and name in later
            found[name] = later[name] if missing else kind.read(value[name], f"{name!r} of {where}")
        if unknown := set(value) - set(fields):
            raise ModelError(f"{where} has an unknown field {_short(min(unknown))}.")
        return made(found, where)

    def write(value: Any) -> dict[str, Any]:
        return {
            name: kind.write(derived.get(name, attrgetter(name))(value)) for name, kind in fields.items()
        }

    return Kind(read, write)


def _read_number(value: Any, where: str) -> float:
    if value in ("inf", "-inf", "nan") or (isinstance(value, int | float) and not isinstance(value, bool)):
        try:
            return float(value)
        except OverflowError:
            pass
    raise _wrong(value, where, "a number")


def _write_number(value: float) -> float | str:
    """JSON has no infinity."""
    return float(value) if math.isfinite(value) else str(float(value))


def _read_finite(value: Any, where: str) -> float:
    number = _read_number(value, where)
    if not math.isfinite(number):
        raise _wrong(value, where, "a finite number")
    return number


_JSON_OBJECT = _plain("a JSON object", lambda value: isinstance(value, dict))
_TEXT = _plain("text", lambda value: isinstance(value, str))
_FLAG = _plain("true or false", lambda value: isinstance(value, bool))
_COUNT = _plain("a whole number", lambda value: type(value) is int and 0 <= value < 2**63)
_PLAIN = _plain("text or a number", lambda value: isinstance(value, str | bool | int | float))
_NUMBER, _FINITE = Kind(_read_number, _write_number), Kind(_read_finite)


def _interval(value: Any, where: str) -> tuple[float, float]:
    ends = _list_of(_NUMBER).read(value, where)
    if len(ends) != 2 or not ends[0] <= ends[1]:
        raise _wrong(value, where, "the two ends of an interval")
    return ends[0], ends[1]


def _kernel(value: Any, where: str) -> Kernel:
    try:
        return from_description(value)
    except ValueError as error:
        raise ModelError(f"{where}: {error}") from error


def _claim(found: dict[str, Any], where: str) -> Claim:
    stated = found.pop("relative_gap")
    claim = Claim(**found)
    if not math.isclose(stated, claim.relative_gap, rel_tol=_GAP_ROUNDING):
        raise ModelError(
            f"{where} states a relative gap of {stated:g}, its values have one of {claim.relative_gap:g}."
        )
    return claim


def _expansion(found: dict[str, Any], where: str) -> Expansion:
    """The features' numbers are compared with each other and with coef when the model is made."""
    found.pop("map")
    return Expansion(**found | {"scales": tuple(found["scales"])})


def _encoding(found: dict[str, Any], where: str) -> Encoding:
    """Its columns are compared with those of the model when that is made."""
    found = {name: tuple(part) if isinstance(part, list) else part for name, part in found.items()}
    encoding = Encoding(**found)
    if wrong := encoding.contradiction():
        raise ModelError(f"{where}: {wrong}.")
    return encoding


def _factors(found: dict[str, Any], where: str) -> dict[Any, float]:
    labels, factors = found["labels"], found["factors"]
    if not len(set(labels)) == len(labels) == len(factors):
        raise ModelError(f"{where} should have one factor for each label.")
    return dict(zip(labels, factors, strict=True))


_FACTORS = _object({"labels": _list_of(_PLAIN), "factors": _list_of(_FINITE)}, _factors)


def _read_settings(value: Any, where: str) -> dict[str, Any]:
    """Names with plain values; class weights become a dictionary again."""
    _JSON_OBJECT.read(value, where)
    settings, plain = dict(value), _or_none(_PLAIN)
    for name, setting in value.items():
        there = f"{_short(name)} of {where}"
        if name == "class_weight" and isinstance(setting, dict):
            settings[name] = _FACTORS.read(setting, there)
        elif name == "C" and setting == "inf":
            settings[name] = math.inf
        elif name == "kernel" and isinstance(setting, dict):
            settings[name] = describe(_kernel(setting, there))
        elif name == "solver" and isinstance(setting, dict):
            settings[name] = {key: plain.read(part, there) for key, part in setting.items()}
        else:
            settings[name] = plain.read(setting, there)
    return settings


def _read_parameters(value: Any, where: str) -> dict[str, Any]:
    """The parameters of a step: plain values, and a kernel; the step itself looks at them."""
    parameters: dict[str, Any] = _JSON_OBJECT.read(value, where)
    for name, part in parameters.items():
        if not (name == "kernel" and isinstance(part, dict)):
            _PLAIN.read(part, f"{_short(name)} of {where}")
    return parameters


def _write_settings(values: dict[str, Any]) -> dict[str, Any]:
    """Class weights as two lists, since the keys of JSON's objects are strings; C may be infinite."""
    weight = values.get("class_weight")
    if values.get("C") == math.inf:
        values = {**values, "C": "inf"}
    if isinstance(weight, dict):
        values = {**values, "class_weight": {"labels": list(weight), "factors": list(weight.values())}}
    return values


def _classes(found: dict[str, Any], where: str) -> NDArray[Any]:
    kind, values = found["type"], found["values"]
    if kind == "object":
        if len({isinstance(value, str) for value in values}) > 1:
            raise ModelError(f"{where} should be all text or all numbers: others have no order.")
        objects = np.empty(len(values), object)
        objects[:] = values
        return objects
    if kind not in (*_NUMBERS, "str", "bool"):
        raise _wrong(kind, where, "of a type that classes can have")
    numbers = (int, float) if kind.startswith("float") else (int,)
    fitting = {"str": (str,), "bool": (bool,)}.get(kind, numbers)
    if not all(type(value) in fitting for value in values):
        raise ModelError(f"{where} should be of type {kind} throughout.")
    if any(isinstance(value, str) and "\0" in value for value in values):
        raise ModelError(f"{where} should not have zero bytes, which NumPy's text cannot end with.")
    try:
        # NumPy measures the longest string: a width that the file states could be any.
        with np.errstate(over="ignore"):  # what becomes infinite is refused below
            classes = np.array(values, str if kind == "str" else kind)
    except (OverflowError, ValueError) as error:
        raise ModelError(f"{where} are not of type {kind}: {error}.") from error
    if classes.dtype.kind == "f" and not np.isfinite(classes).all():
        raise ModelError(f"{where} should be finite numbers.")
    return classes


def _write_classes(classes: NDArray[Any]) -> dict[str, Any]:
    values = classes.tolist()
    kind = "str" if classes.dtype.kind in "UT" else classes.dtype.name
    if kind not in (*_NUMBERS, "bool", "str", "object"):
        raise ModelError(
            f"Classes of type {kind} cannot be saved. Fit with labels that are numbers or text."
        )
    if not all(isinstance(value, str | bool | int | float) for value in values):
        raise ModelError("Only classes that are numbers or text can be saved. Fit with such labels.")
    return {"type": kind, "values": values}


def _library(_: StoredModel) -> str:
    try:
        return f"maxmargin {version('maxmargin')}"
    except PackageNotFoundError:  # a source tree that was never installed
        return "maxmargin of unknown version"


def _vector_format(model: Any) -> str:
    return "none" if model.vectors is None else "csr" if hasattr(model.vectors, "indptr") else "dense"


_STATUS = _one_of(Status.__members__, f"one of {', '.join(Status.__members__)}")
_SETTINGS = Kind(_read_settings, _write_settings)
_CLAIM = _object(
    {"primal": _NUMBER, "dual": _NUMBER, "relative_gap": _NUMBER, "kkt_violation": _NUMBER}
    | {"alpha_from": _TEXT},
    _claim,
)
_TRACE = _object({"records": _COUNT, "certifying": _NUMBER}, derived={"records": len})
_PLACE = _object(
    {"radius": _NUMBER, "low": _NUMBER, "high": _NUMBER, "scaling": _FINITE},
    lambda found, where: Neighbourhood(**found),
)
_SHARE = _object({"cost": _FINITE, "total": _FINITE, "shift": _FINITE}, lambda found, where: Share(**found))
_VALUES = Kind(
    lambda value, where: np.array(_list_of(_FINITE).read(value, where), np.float64), np.ndarray.tolist
)
_CURVE = _object({"first": _VALUES, "second": _VALUES}, lambda found, where: Curve(**found))
_CALIBRATION = _object(
    {"method": _one_of(["sigmoid", "isotonic"], "sigmoid or isotonic"), "curves": _list_of(_CURVE)},
    lambda found, where: Calibration(found["method"], tuple(found["curves"])),
)
_PROOF = {
    "b": _FINITE,
    "b_interval": _or_none(Kind(_interval, _list_of(_NUMBER).write)),
    "proven": _FLAG,
    "w_is_w_of_alpha": _FLAG,
}


def _proofs(fields: dict[str, Kind]) -> Kind:
    derived = {
        "w_is_w_of_alpha": lambda proof: proof.w_of_alpha is proof.w,
        "rows": lambda proof: len(proof.alpha),
    }
    later = {"b_interval": None, "proven": True}
    return _or_none(_list_of(_object(fields, derived=derived, later=later)))


_FEATURES = _object(
    {
        "map": _one_of(["monomials"], "monomials"),
        "columns": _COUNT,
        "lowest": _COUNT,
        "scales": _list_of(Kind(_read_finite, float)),
        "once": _FLAG,
        "shared_repeats": _FLAG,
    },
    _expansion,
    derived={"map": lambda expansion: "monomials"},
)
_COLUMN = _object(
    {"name": _TEXT, "kind": _one_of(KINDS, f"one of {', '.join(KINDS)}"), "fill": _FINITE}
    | {"center": _FINITE, "scale": _FINITE, "categories": _list_of(_TEXT), "missing": _FLAG}
    | {"lenient": _FLAG},
    lambda found, where: Column(**found | {"categories": tuple(found["categories"])}),
    later={"lenient": False},
)
_TABLE = _object(
    {
        "columns": _list_of(_COLUMN),
        "scale": _one_of(SCALES, f"one of {', '.join(SCALES)}"),
        "left_out": _list_of(
            _object({"name": _TEXT, "reason": _TEXT}, lambda found, where: LeftOut(**found))
        ),
        "label": _or_none(_TEXT),
        "missing": _list_of(_TEXT),
    },
    _encoding,
)
_EACH_STEP = _list_of(
    _object(
        {"name": _one_of(STEP_NAMES, "the name of a step"), "columns": _COUNT}
        | {"parameters": Kind(_read_parameters), "arrays": _list_of(_TEXT)},
    )
)
_STEPS = Kind(_EACH_STEP.read, lambda preparation: _EACH_STEP.write(preparation.steps))
_VECTORS = _object(
    {"format": _one_of(["dense", "csr", "none"], "dense, csr or none"), "columns": _COUNT}
    | {"open_ended": _FLAG},
    derived={"format": _vector_format, "columns": attrgetter("own_features")},
)
_OF_ANY_MODEL: dict[str, Kind] = {
    "library": _TEXT,
    "classes": Kind(_object({"type": _TEXT, "values": _list_of(_PLAIN)}, _classes).read, _write_classes),
    "decision": _TEXT,
    "problem": _SETTINGS,
    "parameters": _SETTINGS,
    "feature_names": _or_none(_list_of(_TEXT)),
    "status": _or_none(Kind(lambda value, where: Status[_STATUS.read(value, where)], attrgetter("name"))),
    "steps": _or_none(_COUNT),
    "solver": _or_none(_TEXT),
    "tol": _or_none(_NUMBER),
    "fingerprint": _or_none(_TEXT),
    "rows": _or_none(_COUNT),
    "claims": _or_none(_list_of(_CLAIM)),
    "certificates": _proofs(_PROOF),
    "traces": _or_none(_list_of(_TRACE)),
    "optimum": _or_none(_list_of(_PLACE)),
    "calibration": _or_none(_CALIBRATION),
}
_LATER = {"optimum": None, "calibration": None}
"""What files of earlier versions lack, and what that stands for."""
_OF_KERNEL_MODEL: dict[str, Kind] = {
    "certificates": _proofs(_PROOF | {"rows": _COUNT}),  # the problems of pairs of classes differ in rows
    "kernel": Kind(_kernel, describe),
    "vectors": _VECTORS,
    "counts": Kind(
        lambda value, where: np.array(_list_of(_COUNT).read(value, where), np.int64), np.ndarray.tolist
    ),
    "steps_each": _or_none(_list_of(_COUNT)),
    "class_factors": _or_none(_list_of(_FINITE)),
}
_DERIVED: dict[str, Callable[[Any], Any]] = {
    "library": _library,
    "features": attrgetter("expansion"),
    "vectors": lambda model: model,
}
_FIELDS = {
    LINEAR: _OF_ANY_MODEL,
    WITH_KERNEL: _OF_ANY_MODEL | _OF_KERNEL_MODEL,
    WITH_FEATURES: _OF_ANY_MODEL | {"features": _FEATURES},
}
_FIELDS |= {base + WITH_TABLE: fields | {"encoding": _TABLE} for base, fields in _FIELDS.items()}
_FIELDS |= {base + REGRESSION: fields for base, fields in _FIELDS.items()}
_FIELDS |= {base + WITH_STEPS: fields | {"preparation": _STEPS} for base, fields in _FIELDS.items()}
_FIELDS |= {base + WITH_SHARES: fields | {"shares": _list_of(_SHARE)} for base, fields in _FIELDS.items()}
_DESCRIPTIONS = {
    version: _object(fields, derived=_DERIVED, later=_LATER) for version, fields in _FIELDS.items()
}
described_encoding: Callable[[Encoding], dict[str, Any]] = _TABLE.write
"""What became of the columns of a table, in plain values."""
described_features: Callable[[Expansion], dict[str, Any]] = _FEATURES.write
"""The features of a model in plain values."""


def described(model: StoredModel, version: int) -> str:
    """The JSON text of a model in a file of this version."""
    whole = _DESCRIPTIONS[version].write(model)
    if model.calibration is None:
        del whole["calibration"]  # which an older maxmargin does not know
    try:
        text = json.dumps(whole, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        text.encode()
    except (TypeError, ValueError) as error:
        raise ModelError(f"The model cannot be described in JSON: {error}.") from error
    return text


def read_description(text: str, version: int) -> dict[str, Any]:
    """The fields of a model that are not arrays; of vectors, proofs and traces what is not in arrays."""
    try:
        whole = json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
        # Half of a surrogate pair is a string for Python that nothing can print.
        json.dumps(whole, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise ModelError(f"its description is not JSON: {error}.") from error
    fields: dict[str, Any] = _DESCRIPTIONS[version].read(whole, "the description")
    if fields["certificates"] is not None and fields["claims"] is None:
        raise ModelError("it has a proof but does not say of what.")
    fields["writer"] = fields.pop("library")
    without_classes = fields["decision"] in ("regression", "ranking", "one_class")
    of_shares = "nu" in fields["problem"]
    if without_classes != ((version - 1) % WITH_STEPS >= REGRESSION) or of_shares != (
        version > WITH_SHARES
    ):
        raise ModelError("its version is not that of its task.")
    if "features" in fields:
        fields["expansion"] = fields.pop("features")
    return fields


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _finite(digits: str) -> float:
    """JSON's numbers have no bound, and what is beyond all floats could not be written again."""
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{_short(digits)} is beyond all floats")
    return number
