# SPDX-License-Identifier: BSD-3-Clause
"""What rows go through before a model weighs them, as a file holds it: fitted scalers and feature maps.

A transformer is written as its name, plain parameters and arrays, and read back without any trust: each
``_Form`` says which arrays there are, of which shapes, and everything is compared before it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from maxmargin.files.data.reading import printable
from maxmargin.kernels.base import Function, Kernel
from maxmargin.kernels.names import describe, from_description
from maxmargin.tools.parameters import check_options

MOST_STEPS = 20
"""Transformers that a file may have."""
MOST_DENSE = 100_000_000
"""Values of sparse rows, at most, that are written out with their zeros: 800 MB."""


class UnsoundStep(ValueError):
    """A transformer that contradicts itself, or cannot be written."""


class _Form(NamedTuple):
    """How a kind of transformer is held."""

    kind: type[Any]
    parameters: tuple[str, ...] = ()
    """Those that are plain values, and are kept."""
    arrays: Mapping[str, str] = MappingProxyType({})
    """The shape of each fitted array: names of numbers, of which d is that of the columns that go in; those
    of whole numbers have a colon in front."""
    finish: Callable[[Any], None] = lambda step: None
    """Sets what follows from the rest, and raises UnsoundStep where that cannot be."""
    made: Callable[[Any], int] = lambda step: int(step.n_features_in_)
    """How many columns come out."""


class Step(NamedTuple):
    """A transformer in plain values and arrays."""

    name: str
    columns: int
    """How many go in."""
    parameters: dict[str, Any]
    arrays: dict[str, NDArray[Any]]

    @property
    def in_double(self) -> bool:
        """Whether it was fitted in double precision."""
        return all(array.dtype != np.float32 for array in self.arrays.values())


@dataclass(frozen=True, eq=False)
class Preparation:
    """The transformers, in their order; their ``columns`` are those of the data."""

    steps: tuple[Step, ...]

    @cached_property
    def transformers(self) -> list[Any]:
        """The fitted transformers; raises UnsoundStep where the steps contradict themselves."""
        if not 1 <= len(self.steps) <= MOST_STEPS:
            raise UnsoundStep(f"there must be 1 to {MOST_STEPS} steps before the model")
        made, columns = [], self.columns
        for step in self.steps:
            if step.columns != columns:
                raise UnsoundStep(f"step {step.name!r:.60} takes {step.columns} columns of {columns}")
            made.append(_restored(step))
            columns = _forms()[step.name].made(made[-1])
        return made

    @property
    def columns(self) -> int:
        """The number of columns of the data."""
        return self.steps[0].columns

    @property
    def made(self) -> int:
        """The number of columns that come out."""
        return _forms()[self.steps[-1].name].made(self.transformers[-1])

    @property
    def keeps_columns(self) -> bool:
        """Whether columns are scaled and nothing else, so that they keep their names."""
        return all(step.name in _SCALERS for step in self.steps)

    def __call__(self, X: Any) -> Any:
        """The rows as the model weighs them; X is a matrix of ``columns`` columns."""
        with np.errstate(over="ignore", invalid="ignore"):  # the next step refuses what is not finite
            for step, transformer in zip(self.steps, self.transformers, strict=True):
                if sparse.issparse(X) and (step.name == "polar" or step.parameters.get("with_mean")):
                    X = dense(X)
                if step.name in _OF_KERNELS and step.in_double:
                    X = X.astype(np.float64, copy=False)
                X = transformer.transform(X)
        return X

    def __str__(self) -> str:
        return ", ".join(map(_in_words, self.steps))

    @classmethod
    def of(cls, transformers: Sequence[Any]) -> Preparation:
        """The preparation of fitted transformers; raises UnsoundStep for those that cannot be written."""
        return cls(tuple(map(_written, transformers)))


def _in_words(step: Step) -> str:
    if step.name == "max_abs_scaler":
        return "columns scaled to at most 1 in size"
    if step.name == "nystroem":
        kernel, made = step.parameters["kernel"], step.arrays["projection_"].shape[1]
        numbers = [
            f", {name} = {value:.6g}" for name, value in kernel.items() if isinstance(value, float | int)
        ]
        return f"nystroem ({made} columns for the {kernel['kernel']} kernel{''.join(numbers)})"
    if step.name == "random_fourier":
        gamma, made = step.parameters["gamma"], 2 * step.arrays["directions_"].shape[1]
        return f"random fourier ({made} columns for the gaussian kernel, gamma = {gamma:.6g})"
    if step.name != "standard_scaler":
        return step.name.replace("_", " ")
    parts = [("with_mean", "mean 0"), ("with_std", "variance 1")]
    return f"columns scaled to {' and '.join(words for part, words in parts if step.parameters.get(part))}"


def dense(X: Any) -> Any:
    """Sparse rows with their zeros, for what takes no others; refuses too many of them."""
    if X.shape[0] * X.shape[1] > MOST_DENSE:
        raise ValueError(
            f"{X.shape[0]} sparse rows of {X.shape[1]} columns must be written out with their zeros, since "
            "means are subtracted from the columns, and that takes too much memory. Scale with "
            "MaxAbsScaler (--scale max-abs), which keeps zeros."
        )
    return X.toarray()


def can_be_written(transformer: Any) -> bool:
    """Whether there is a form for it."""
    return any(type(transformer) is form.kind for form in _forms().values())


def _written(transformer: Any) -> Step:
    name = next(name for name, form in _forms().items() if type(transformer) is form.kind)
    form, parameters = _forms()[name], {}
    for parameter in form.parameters:
        value = getattr(transformer, parameter)
        parameters[parameter] = value.item() if isinstance(value, np.generic) else value
    if hasattr(transformer, "kernel_") and "kernel" in form.parameters:
        if isinstance(transformer.kernel_, Function):
            raise UnsoundStep("a kernel that is a function cannot be saved: files hold no code")
        parameters["kernel"] = describe(transformer.kernel_)
    held = {part: getattr(transformer, part, None) for part in form.arrays}
    if name == "standard_scaler":  # whose means are there also where they are not used
        held |= {} if transformer.with_mean else {"mean_": None}
    if name == "buckets":
        held["flat_edges_"] = np.concatenate(transformer.edges_)
        held["edge_counts_"] = np.array([len(edges) for edges in transformer.edges_])
    arrays = {part: _plain(array, form.arrays[part]) for part, array in held.items() if array is not None}
    return Step(name, int(transformer.n_features_in_), parameters, arrays)


def _plain(array: Any, shape: str) -> NDArray[Any]:
    if sparse.issparse(array):
        if array.shape[0] * array.shape[1] > MOST_DENSE:
            raise UnsoundStep(
                f"a map that keeps {array.shape[0]} sparse rows of {array.shape[1]} columns is too large "
                "to be saved"
            )
        array = array.toarray()
    if shape.startswith(":"):
        return np.ascontiguousarray(array, np.int64)
    array = np.asarray(array)
    return np.ascontiguousarray(array, np.float32 if array.dtype == np.float32 else np.float64)


def _restored(step: Step) -> Any:
    """The fitted transformer; what it is made of is looked at first."""
    form = _forms()[step.name]
    if set(step.parameters) != set(form.parameters) or not set(step.arrays) <= set(form.arrays):
        raise UnsoundStep(f"step {step.name!r} has other parameters or arrays than such a step has")
    sizes = {"d": step.columns, "d+1": step.columns + 1}
    for part, array in step.arrays.items():
        expected = form.arrays[part].lstrip(":").split()
        fits = len(expected) == array.ndim and all(
            sizes.setdefault(name, size) == size for name, size in zip(expected, array.shape, strict=True)
        )
        if not fits or not np.isfinite(array).all():
            raise UnsoundStep(f"{part!r} of step {step.name!r} has the wrong shape, or is not finite")
    parameters = dict(step.parameters)
    try:
        if isinstance(parameters.get("kernel"), dict):
            parameters["kernel"] = from_description(parameters["kernel"])
        transformer = form.kind(**parameters)
        if step.name not in _SCALERS:
            check_options(transformer)
        transformer.n_features_in_ = step.columns
        for part, array in step.arrays.items():
            setattr(transformer, part, array)
        form.finish(transformer)
    except UnsoundStep:
        raise
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        raise UnsoundStep(f"step {step.name!r} is none: {printable(str(error))}") from error
    return transformer


def _finish_standard(step: Any) -> None:
    if not (isinstance(step.with_mean, bool) and isinstance(step.with_std, bool)):
        raise UnsoundStep("a scaler does not say whether it takes means and deviations")
    step.mean_ = _there(step, "mean_") if step.with_mean else None
    step.scale_ = _positive(step) if step.with_std else None
    with np.errstate(over="ignore"):
        step.var_ = None if step.scale_ is None else np.square(step.scale_)
    step.n_samples_seen_ = 1


def _finish_max_abs(step: Any) -> None:
    step.scale_ = step.max_abs_ = _positive(step)
    step.n_samples_seen_ = 1


def _there(step: Any, part: str) -> Any:
    if getattr(step, part, None) is None:
        raise UnsoundStep(f"{part!r} is missing")
    return getattr(step, part)


def _positive(step: Any) -> Any:
    if not (_there(step, "scale_") > 0).all():
        raise UnsoundStep("a scaler divides by a number that is not above 0")
    return step.scale_


def _finish_columns(step: Any) -> None:
    """The places of the columns that a map reads exist, and no two are the same."""
    chosen = _there(step, "columns_")
    if len(np.unique(chosen)) < len(chosen) or not ((chosen >= 0) & (chosen < step.n_features_in_)).all():
        raise UnsoundStep("a map reads columns that do not exist, or one of them twice")
    step.columns = chosen.tolist()


def _finish_squares(step: Any) -> None:
    _finish_columns(step)
    step.center = _there(step, "centers_").tolist()


def _finish_polar(step: Any) -> None:
    _finish_columns(step)
    if len(step.columns_) != 2:
        raise UnsoundStep("an angle is one of two columns")


def _finish_buckets(step: Any) -> None:
    _finish_columns(step)
    counts, flat = _there(step, "edge_counts_"), _there(step, "flat_edges_")
    if (counts < 1).any() or (counts > len(flat)).any() or counts.sum() != len(flat):
        raise UnsoundStep("the edges of buckets do not add up")
    step.edges_ = np.split(flat, np.cumsum(counts)[:-1])
    if any((np.diff(edges) <= 0).any() for edges in step.edges_):
        raise UnsoundStep("the edges of buckets do not increase")
    del step.edge_counts_, step.flat_edges_


def _finish_monomials(step: Any) -> None:
    step.expansion_ = step._expansion(step.n_features_in_)
    step.lazy_ = False


def _finish_random_fourier(step: Any) -> None:
    from maxmargin.kernels import Gaussian

    step._n_features_out = 2 * _there(step, "directions_").shape[1]
    step.kernel_ = Gaussian(float(step.gamma))


def _finish_nystroem(step: Any) -> None:
    _there(step, "sample_")
    step._n_features_out = _there(step, "projection_").shape[1]
    if not isinstance(step.kernel, Kernel):
        raise UnsoundStep("a sample of rows has no kernel")
    step.kernel_ = step._find_kernel()


def _finish_distances(step: Any) -> None:
    step.prototypes = _there(step, "prototypes_")
    step._n_features_out = len(step.prototypes_)


def _finish_sketch(step: Any) -> None:
    from maxmargin.kernels import Polynomial

    places, columns = _there(step, "places_"), int(step.columns)
    if len(_there(step, "signs_")) != step.degree or not ((places >= 0) & (places < columns)).all():
        raise UnsoundStep("a sketch has columns that do not exist")
    step.kernel_ = Polynomial(int(step.degree), float(step.gamma), float(step.coef0))
    step._n_features_out = columns


def _numbered(step: Any) -> int:
    return int(step._n_features_out)


_OF_KERNELS = ("nystroem", "random_fourier", "polynomial_sketch")
"""Steps whose values in single precision depend on the rows beside."""
_SCALERS = ("standard_scaler", "max_abs_scaler")
STEP_NAMES: tuple[str, ...] = ("buckets", "distances", "interactions", "log", "max_abs_scaler", "monomials")
STEP_NAMES += ("nystroem", "paraboloid", "polar", "polynomial_sketch", "random_fourier", "squares")
STEP_NAMES += ("standard_scaler",)
"""The names by which files know transformers."""


@cache
def _forms() -> dict[str, _Form]:
    """How each kind of transformer is held; made when it is needed, since scikit-learn takes a while."""
    from sklearn.preprocessing import MaxAbsScaler, StandardScaler

    from maxmargin import features

    return {
        "standard_scaler": _Form(
            StandardScaler, ("with_mean", "with_std"), {"mean_": "d", "scale_": "d"}, _finish_standard
        ),
        "max_abs_scaler": _Form(MaxAbsScaler, (), {"scale_": "d"}, _finish_max_abs),
        "buckets": _Form(
            features.Buckets,
            ("sparse_output",),
            {"columns_": ":chosen", "edge_counts_": ":chosen", "flat_edges_": "edges"},
            _finish_buckets,
            lambda step: (
                int(step.n_features_in_) - len(step.columns_) + sum(len(edges) + 1 for edges in step.edges_)
            ),
        ),
        "distances": _Form(
            features.Distances, ("gamma",), {"prototypes_": "count d"}, _finish_distances, _numbered
        ),
        "interactions": _Form(
            features.Interactions,
            ("max_bytes",),
            {"columns_": ":chosen"},
            _finish_columns,
            lambda step: int(step.n_features_in_) + len(step.columns_) * (len(step.columns_) - 1) // 2,
        ),
        "log": _Form(features.Log, (), {"columns_": ":chosen"}, _finish_columns),
        "monomials": _Form(
            features.Monomials,
            ("degree", "interaction_only", "scaling", "gamma", "coef0", "include_bias", "max_bytes"),
            {},
            _finish_monomials,
            lambda step: int(step.expansion_.size),
        ),
        "nystroem": _Form(
            features.Nystroem,
            ("kernel",),
            {"sample_": "count d", "projection_": "count made"},
            _finish_nystroem,
            _numbered,
        ),
        "paraboloid": _Form(
            features.Paraboloid,
            (),
            {"columns_": ":chosen"},
            _finish_columns,
            lambda step: int(step.n_features_in_) + 1,
        ),
        "polar": _Form(features.Polar, (), {"columns_": ":chosen"}, _finish_polar),
        "polynomial_sketch": _Form(
            features.PolynomialSketch,
            ("degree", "gamma", "coef0", "columns"),
            {"places_": ":degree d+1", "signs_": "degree d+1"},
            _finish_sketch,
            _numbered,
        ),
        "random_fourier": _Form(
            features.RandomFourier, ("gamma",), {"directions_": "d half"}, _finish_random_fourier, _numbered
        ),
        "squares": _Form(
            features.Squares,
            (),
            {"columns_": ":chosen", "centers_": "chosen"},
            _finish_squares,
            lambda step: int(step.n_features_in_) + len(step.columns_),
        ),
    }


def array_types(name: str, part: str) -> tuple[int, tuple[str, ...]] | None:
    """The dimensions and the types of an array of a step; None where it has none of that name."""
    shape = _forms()[name].arrays.get(part)
    if shape is None:
        return None
    return len(shape.lstrip(":").split()), ("I64",) if shape.startswith(":") else ("F64", "F32")
