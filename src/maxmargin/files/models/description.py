# SPDX-License-Identifier: BSD-3-Clause
"""Everything about a model that is not an array, as JSON: written, and read back without any trust."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.files.models.kernel_model import SavedKernelModel
from maxmargin.files.models.stored import Claim, ModelError, StoredModel
from maxmargin.kernels.base import Kernel
from maxmargin.kernels.names import describe, from_description
from maxmargin.proof.model import Status

if TYPE_CHECKING:
    from maxmargin.features.expansion import Expansion

_NUMBERS = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
_NUMBERS += ["float16", "float32", "float64"]


def described(model: StoredModel) -> str:
    """The JSON text."""
    whole: dict[str, Any] = {
        "library": f"maxmargin {_library_version()}",
        "classes": _classes_to_json(model.classes),
        "decision": model.decision,
        "problem": _with_pairs(model.problem),
        "parameters": _with_pairs(model.parameters),
        "feature_names": model.feature_names,
        "status": None if model.status is None else model.status.name,
        "steps": model.steps,
        "solver": model.solver,
        "tol": model.tol,
        "fingerprint": model.fingerprint,
        "rows": model.rows,
        "claims": None,
        "certificates": None,
        "traces": None,
    }
    if model.claims is not None:
        whole["claims"] = [
            {
                "primal": _number_to_json(claim.primal),
                "dual": _number_to_json(claim.dual),
                "relative_gap": _number_to_json(claim.relative_gap),
                "kkt_violation": _number_to_json(claim.kkt_violation),
                "alpha_from": claim.alpha_from,
            }
            for claim in model.claims
        ]
    if model.certificates is not None:
        whole["certificates"] = [
            {
                "b": proof.b,
                "b_interval": proof.b_interval and [_number_to_json(end) for end in proof.b_interval],
                "proven": proof.proven,
                "w_is_w_of_alpha": proof.w_of_alpha is proof.w,
            }
            for proof in model.certificates
        ]
    if isinstance(model, SavedKernelModel):
        _add_kernel(whole, model)
    expansion: Expansion | None = getattr(model, "expansion", None)
    if expansion is not None:
        whole["features"] = described_features(expansion)
    if model.traces is not None:
        whole["traces"] = [
            {"records": len(trace), "certifying": _number_to_json(trace.certifying)}
            for trace in model.traces
        ]
    try:
        text = json.dumps(whole, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        text.encode()
    except (TypeError, ValueError) as error:
        raise ModelError(f"The model cannot be described in JSON: {error}.") from error
    return text


def _add_kernel(whole: dict[str, Any], model: SavedKernelModel) -> None:
    """What only a kernel model has; the problems of pairs of classes differ in their rows."""
    vectors = model.vectors
    held = "none" if vectors is None else "csr" if hasattr(vectors, "indptr") else "dense"
    whole["kernel"] = describe(model.kernel)
    whole["vectors"] = {"format": held, "columns": model.features, "open_ended": model.open_ended}
    whole["counts"] = model.counts.tolist()
    whole["steps_each"] = model.steps_each
    whole["class_factors"] = model.class_factors
    for entry, proof in zip(whole["certificates"] or (), model.certificates or (), strict=True):
        entry["rows"] = len(proof.alpha)


def described_features(expansion: Expansion) -> dict[str, Any]:
    """The features of a model in plain values."""
    return {
        "map": "monomials",
        "columns": expansion.columns,
        "lowest": expansion.lowest,
        "scales": [float(scale) for scale in expansion.scales],
        "once": expansion.once,
        "shared_repeats": expansion.shared_repeats,
    }


def _library_version() -> str:
    try:
        return version("maxmargin")
    except PackageNotFoundError:  # a source tree that was never installed
        return "of unknown version"


def _number_to_json(value: float) -> float | str:
    """JSON has no infinity."""
    return float(value) if math.isfinite(value) else str(float(value))


def _with_pairs(values: dict[str, Any]) -> dict[str, Any]:
    """Class weights as two lists, since the keys of JSON's objects are strings; C may be infinite."""
    if values.get("C") == math.inf:
        values = {**values, "C": "inf"}
    weight = values.get("class_weight")
    if not isinstance(weight, dict):
        return values
    return {**values, "class_weight": {"labels": list(weight), "factors": list(weight.values())}}


def _classes_to_json(classes: NDArray[Any]) -> dict[str, Any]:
    values = classes.tolist()
    kind = "str" if classes.dtype.kind in "UT" else classes.dtype.name
    if kind not in [*_NUMBERS, "bool", "str", "object"]:
        raise ModelError(
            f"Classes of type {kind} cannot be saved. Fit with labels that are numbers or text."
        )
    if not all(isinstance(value, str | bool | int | float) for value in values):
        raise ModelError("Only classes that are numbers or text can be saved. Fit with such labels.")
    return {"type": kind, "values": values}


def read_description(text: str, *, with_kernel: bool, with_features: bool) -> dict[str, Any]:
    """The fields of a model that are not arrays; of proofs and traces what is not in arrays."""
    try:
        whole = json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
        # Half of a surrogate pair is a string for Python that nothing can print.
        json.dumps(whole, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise ModelError(f"its description is not JSON: {error}.") from error
    taken = _Fields(whole, "the description")
    fields: dict[str, Any] = {
        "writer": taken("library", _text),
        "classes": taken("classes", _classes),
        "decision": taken("decision", _text),
        "problem": taken("problem", _settings),
        "parameters": taken("parameters", _settings),
        "feature_names": taken("feature_names", _or_none(_list_of(_text))),
        "status": taken("status", _or_none(_status)),
        "steps": taken("steps", _or_none(_count)),
        "solver": taken("solver", _or_none(_text)),
        "tol": taken("tol", _or_none(_number)),
        "fingerprint": taken("fingerprint", _or_none(_text)),
        "rows": taken("rows", _or_none(_count)),
        "claims": taken("claims", _or_none(_list_of(_claim))),
    }
    if with_features:
        fields["expansion"] = taken("features", _features)
    if with_kernel:
        held = taken("vectors", _held)
        fields |= {
            "kernel": taken("kernel", _kernel),
            "vectors": held,
            "open_ended": held.pop("open_ended"),
            "counts": taken("counts", _whole_numbers),
            "steps_each": taken("steps_each", _or_none(_list_of(_count))),
            "class_factors": taken("class_factors", _or_none(_list_of(_finite_number))),
        }
    proofs = taken("certificates", _or_none(_list_of(_kernel_proof if with_kernel else _proof)))
    traces = taken("traces", _or_none(_list_of(_trace)))
    taken.nothing_is_left()
    if proofs is not None:
        if fields["claims"] is None:
            raise ModelError("it has a proof but does not say of what.")
        fields["certificates"] = proofs
    if traces is not None:
        fields["traces"] = traces
    return fields


class _Fields:
    """A JSON object from which every field is taken once, by a function that checks it."""

    def __init__(self, value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise ModelError(f"{where} should be a JSON object, not {_short(value)}.")
        self.left, self.where = dict(value), where

    def __call__(self, name: str, check: Callable[[Any, str], Any]) -> Any:
        if name not in self.left:
            raise ModelError(f"{self.where} lacks {name!r}.")
        return check(self.left.pop(name), f"{name!r} of {self.where}")

    def if_there(self, name: str, check: Callable[[Any, str], Any]) -> Any:
        """None for a field that files of earlier versions lack."""
        return self(name, _or_none(check)) if name in self.left else None

    def nothing_is_left(self) -> None:
        if self.left:
            raise ModelError(f"{self.where} has an unknown field {_short(min(self.left))}.")


def _short(value: Any) -> str:
    text = ascii(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _wrong(value: Any, where: str, expected: str) -> ModelError:
    return ModelError(f"{where} should be {expected}, not {_short(value)}.")


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _finite(digits: str) -> float:
    """JSON's numbers have no bound, and what is beyond all floats could not be written again."""
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{_short(digits)} is beyond all floats")
    return number


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise _wrong(value, where, "text")
    return value


def _number(value: Any, where: str) -> float:
    if value in ("inf", "-inf", "nan") or (isinstance(value, int | float) and not isinstance(value, bool)):
        try:
            return float(value)
        except OverflowError:
            pass
    raise _wrong(value, where, "a number")


def _finite_number(value: Any, where: str) -> float:
    number = _number(value, where)
    if not math.isfinite(number):
        raise _wrong(value, where, "a finite number")
    return number


def _interval(value: Any, where: str) -> tuple[float, float]:
    ends = _list_of(_number)(value, where)
    if len(ends) != 2 or not ends[0] <= ends[1]:
        raise _wrong(value, where, "the two ends of an interval")
    return ends[0], ends[1]


def _count(value: Any, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
        raise _wrong(value, where, "a whole number")
    return value


def _flag(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise _wrong(value, where, "true or false")
    return value


def _or_none(check: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    return lambda value, where: None if value is None else check(value, where)


def _list_of(check: Callable[[Any, str], Any]) -> Callable[[Any, str], list[Any]]:
    def each(value: Any, where: str) -> list[Any]:
        if not isinstance(value, list):
            raise _wrong(value, where, "a list")
        return [check(part, where) for part in value]

    return each


def _status(value: Any, where: str) -> Status:
    name = _text(value, where)
    if name not in Status.__members__:
        raise _wrong(value, where, f"one of {', '.join(Status.__members__)}")
    return Status[name]


def _claim(value: Any, where: str) -> Claim:
    taken = _Fields(value, where)
    claim = Claim(
        taken("primal", _number),
        taken("dual", _number),
        taken("kkt_violation", _number),
        taken("alpha_from", _text),
    )
    stated = taken("relative_gap", _number)
    taken.nothing_is_left()
    if not math.isclose(stated, claim.relative_gap, rel_tol=1e-9):
        raise ModelError(
            f"{where} states a relative gap of {stated:g}, its values have one of {claim.relative_gap:g}."
        )
    return claim


def _proof(value: Any, where: str) -> dict[str, Any]:
    taken = _Fields(value, where)
    proof = {
        "b": taken("b", _finite_number),
        "b_interval": taken.if_there("b_interval", _interval),
        "proven": taken.if_there("proven", _flag) is not False,
        "w_is_w_of_alpha": taken("w_is_w_of_alpha", _flag),
    }
    taken.nothing_is_left()
    return proof


def _kernel_proof(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict) or "rows" not in value:
        raise ModelError(f"{where} lacks 'rows'.")
    rows = _count(value["rows"], f"'rows' of {where}")
    return {"rows": rows, **_proof({name: part for name, part in value.items() if name != "rows"}, where)}


def _kernel(value: Any, where: str) -> Kernel:
    try:
        return from_description(value)
    except ValueError as error:
        raise ModelError(f"{where}: {error}") from error


def _features(value: Any, where: str) -> Expansion:
    """Their numbers are compared with each other and with coef when the model is made."""
    from maxmargin.features.expansion import Expansion

    taken = _Fields(value, where)
    if (kind := taken("map", _text)) != "monomials":
        raise _wrong(kind, f"'map' of {where}", "monomials")
    expansion = Expansion(
        columns=taken("columns", _count),
        lowest=taken("lowest", _count),
        scales=tuple(taken("scales", _list_of(_finite_number))),
        once=taken("once", _flag),
        shared_repeats=taken("shared_repeats", _flag),
    )
    taken.nothing_is_left()
    return expansion


def _held(value: Any, where: str) -> dict[str, Any]:
    """How the support vectors are held."""
    taken = _Fields(value, where)
    held = {
        "format": taken("format", _text),
        "columns": taken("columns", _count),
        "open_ended": taken("open_ended", _flag),
    }
    taken.nothing_is_left()
    if held["format"] not in ("dense", "csr", "none"):
        raise _wrong(held["format"], f"'format' of {where}", "dense, csr or none")
    return held


def _whole_numbers(value: Any, where: str) -> NDArray[np.int64]:
    return np.array(_list_of(_count)(value, where), np.int64)


def _trace(value: Any, where: str) -> dict[str, Any]:
    taken = _Fields(value, where)
    trace = {"records": taken("records", _count), "certifying": taken("certifying", _number)}
    taken.nothing_is_left()
    return trace


def _plain(value: Any, where: str) -> str | bool | int | float:
    if not isinstance(value, str | bool | int | float):
        raise _wrong(value, where, "text or a number")
    return value


def _settings(value: Any, where: str) -> dict[str, Any]:
    """Names with plain values; class weights become a dictionary again."""
    settings = dict(_Fields(value, where).left)
    for name, setting in settings.items():
        there = f"{_short(name)} of {where}"
        if name == "class_weight" and isinstance(setting, dict):
            taken = _Fields(setting, there)
            labels, factors = taken("labels", _list_of(_plain)), taken("factors", _list_of(_finite_number))
            taken.nothing_is_left()
            if len(set(labels)) != len(factors) or len(labels) != len(factors):
                raise ModelError(f"{there} should have one factor for each label.")
            settings[name] = dict(zip(labels, factors, strict=True))
        elif name == "C" and setting == "inf":
            settings[name] = math.inf
        elif name == "kernel" and isinstance(setting, dict):
            settings[name] = describe(_kernel(setting, there))
        elif name == "solver" and isinstance(setting, dict):
            settings[name] = {key: _plain_or_none(part, there) for key, part in setting.items()}
        else:
            settings[name] = _plain_or_none(setting, there)
    return settings


_plain_or_none = _or_none(_plain)


def _classes(value: Any, where: str) -> NDArray[Any]:
    taken = _Fields(value, where)
    kind, values = taken("type", _text), taken("values", _list_of(_plain))
    taken.nothing_is_left()
    expected: type | tuple[type, ...]
    if kind == "object":
        if len({isinstance(value, str) for value in values}) > 1:
            raise ModelError(f"{where} should be all text or all numbers: others have no order.")
        objects = np.empty(len(values), object)
        objects[:] = values
        return objects
    if kind == "str":
        expected = str
    elif kind == "bool":
        expected = bool
    elif kind in _NUMBERS:
        expected = (int, float) if kind.startswith("float") else int
    else:
        raise _wrong(kind, where, "of a type that classes can have")
    if not all(isinstance(v, expected) and isinstance(v, bool) == (kind == "bool") for v in values):
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
