# SPDX-License-Identifier: BSD-3-Clause
"""Kernels (003, 004): inner products ``k(x, z) = <phi(x), phi(z)>`` of images that are never written out.

Sums, products and positive multiples of kernels are kernels again: ``Linear() + 2.0 * Gaussian(0.5)``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Annotated, Any, ClassVar

import numpy as np
from scipy import sparse

from maxmargin import core
from maxmargin.problem.rows import Matrix, Rows
from maxmargin.tools.parameters import AnyNumber, NotNegative, Range, check_options

Factor = tuple[str, str, float, float, int]
"""(common sum, shape, gamma, shift, degree): see core/kernel/kernels.hpp."""
Term = tuple[float, tuple[Factor, ...]]
"""A coefficient and the factors of a product."""
HIGHEST_DEGREE = 64
"""Higher powers leave the range of floats, and rarely help."""
Gamma = Annotated[
    NotNegative, "1 / (X.shape[1] * X.var()) is a good start; a larger gamma tells nearer rows apart."
]
Coef0 = Annotated[AnyNumber, "0 leaves the inner product as it is."]
Degree = Annotated[
    int,
    Range(f"[0, {HIGHEST_DEGREE}]"),
    "Powers above that leave the range of floats; high degrees rarely help.",
]


class Kernel(ABC):
    """A symmetric function of two rows; ``kernel(X, Z)`` is the matrix of its values, in float64."""

    __post_init__ = check_options

    @property
    @abstractmethod
    def terms(self) -> tuple[Term, ...]:
        """The kernel as a sum of products of the compiled ones."""

    @cached_property
    def compiled(self) -> core.KernelSum:
        """The kernel as the core knows it."""
        return core.KernelSum([(coefficient, list(factors)) for coefficient, factors in self.terms])

    @property
    def is_known(self) -> bool:
        """Whether it is a kernel for certain, whatever the rows are: sums and products of kernels are."""
        return all(
            common != "given" and shape != "tanh" and gamma >= 0 and shift >= 0
            for _, factors in self.terms
            for common, shape, gamma, shift, _ in factors
        )

    def __call__(self, X: Any, Z: Any = None, budget: core.Budget = core.ALL_CORES) -> Matrix:
        """``k(x_i, z_j)`` for all rows of X and Z (default: X)."""
        # The core compares rows of one type, so what has few values must not become sparse by itself.
        first = X if isinstance(X, Rows) else Rows(X, keep_zeros=Z is not None)
        second = first if Z is None else (Z if isinstance(Z, Rows) else Rows(_like(Z, X), keep_zeros=True))
        self.refuse_negative(first)
        self.refuse_negative(second)
        out = np.empty((first.count, second.count))
        core.kernel_block(
            self.compiled,
            first.stored_data,
            np.arange(first.count),
            second.stored_data,
            np.arange(second.count),
            out,
            budget,
        )
        return out

    def __getstate__(self) -> dict[str, Any]:
        # What the core knows is made anew where a pickled kernel is used.
        return {name: value for name, value in self.__dict__.items() if name != "compiled"}

    def refuse_negative(self, rows: Rows) -> None:
        """An error where the chi-squared kernel, which divides by sums of values, meets negative ones."""
        harmonic = any(factor[0] == "harmonic" for _, factors in self.terms for factor in factors)
        if not harmonic:
            return
        low, _ = rows.column_ranges(np.arange(rows.count))
        if low.min(initial=0.0) < 0:
            raise ValueError(
                f"The chi-squared kernel needs values that are not negative. Got {low.min():g} in X. "
                "Shift the features, for instance with MinMaxScaler, or take the Gaussian kernel."
            )

    def __add__(self, other: Kernel) -> Kernel:
        if not isinstance(other, Kernel):
            return NotImplemented
        _refuse_given(self, other)
        return Combination(self.terms + other.terms, f"{self} + {other}")

    def __mul__(self, other: Kernel | float) -> Kernel:
        if isinstance(other, Kernel):
            _refuse_given(self, other)
            products = tuple(
                (a * b, (*first, *second)) for a, first in self.terms for b, second in other.terms
            )
            return Combination(products, f"{_bracketed(self)} * {_bracketed(other)}")
        return self.__rmul__(other)

    def __rmul__(self, factor: float) -> Kernel:
        if not isinstance(factor, (int, float, np.number)):
            return NotImplemented
        if not (math.isfinite(factor) and factor > 0):
            raise ValueError(
                f"A kernel can be multiplied by finite numbers above 0. Got {factor!r} instead: "
                "a negative multiple of a kernel is not a kernel."
            )
        _refuse_given(self)
        scaled = tuple((float(factor) * coefficient, factors) for coefficient, factors in self.terms)
        return Combination(scaled, f"{float(factor):g} * {_bracketed(self)}")


@dataclass(frozen=True)
class Combination(Kernel):
    """What sums, products and multiples of kernels give."""

    parts: tuple[Term, ...]
    words: str

    @property
    def terms(self) -> tuple[Term, ...]:
        """The kernel as a sum of products of the compiled ones."""
        return self.parts

    def __str__(self) -> str:
        return self.words

    def __repr__(self) -> str:
        return self.words


class _Simple(Kernel):
    """A kernel that is one of the compiled ones, with those of the numbers that it has."""

    form: ClassVar[tuple[str, str]]
    """The common sum and the shape."""

    @property
    def terms(self) -> tuple[Term, ...]:
        """The kernel as a sum of products of the compiled ones: one product of one factor."""
        gamma, shift = float(getattr(self, "gamma", 1.0)), float(getattr(self, "coef0", 0.0))
        return ((1.0, ((*self.form, gamma, shift, int(getattr(self, "degree", 1))),)),)


@dataclass(frozen=True)
class Linear(_Simple):
    """``<x, z>``."""

    form: ClassVar = ("product", "power")


@dataclass(frozen=True)
class Polynomial(_Simple):
    """``(gamma <x, z> + coef0)^degree``: all monomials up to the degree (003, 004), for coef0 >= 0."""

    form: ClassVar = ("product", "power")
    degree: Degree = 3
    gamma: Gamma = 1.0
    coef0: Coef0 = 0.0


@dataclass(frozen=True)
class Gaussian(_Simple):
    """``exp(-gamma |x - z|^2)``; with 004's sigma, gamma = 1 / (2 sigma^2): ``Gaussian.with_sigma``."""

    form: ClassVar = ("product", "exponential")
    gamma: Gamma = 1.0

    @classmethod
    def with_sigma(cls, sigma: float) -> Gaussian:
        """``exp(-|x - z|^2 / (2 sigma^2))``, as 004 writes it."""
        if not (isinstance(sigma, Real) and 1e-150 <= sigma <= 1e150):
            raise ValueError(
                f"sigma must be a float in the range [1e-150, 1e150]. Got {sigma!r} instead. sigma is the "
                "distance at which the kernel has fallen to 0.61."
            )
        return cls(1.0 / (2.0 * sigma**2))


@dataclass(frozen=True)
class Laplacian(_Simple):
    """``exp(-gamma sum_k |x_k - z_k|)``."""

    form: ClassVar = ("minimum", "exponential")
    gamma: Gamma = 1.0


@dataclass(frozen=True)
class ChiSquared(_Simple):
    """``exp(-gamma sum_k (x_k - z_k)^2 / (x_k + z_k))``, for values that are not negative."""

    form: ClassVar = ("harmonic", "exponential")
    gamma: Gamma = 1.0


@dataclass(frozen=True)
class Sigmoid(_Simple):
    """``tanh(gamma <x, z> + coef0)``: in use, but not a kernel for most parameters (see ``is_valid``)."""

    form: ClassVar = ("product", "tanh")
    gamma: Gamma = 1.0
    coef0: Coef0 = 0.0


@dataclass(frozen=True)
class Precomputed(_Simple):
    """The matrix of all values is given in the place of the data."""

    form: ClassVar = ("given", "power")

    def __call__(self, X: Any, Z: Any = None, budget: core.Budget = core.ALL_CORES) -> Matrix:
        """The matrix of all values."""
        if Z is not None:
            raise ValueError("With a precomputed kernel the values are given: there is no second argument.")
        return np.asarray(X, np.float64)


@dataclass(frozen=True)
class Function(_Simple):
    """Any function of two matrices that returns the matrix of all values, as scikit-learn takes them."""

    form: ClassVar = Precomputed.form
    function: Callable[[Any, Any], Any]

    def __call__(self, X: Any, Z: Any = None, budget: core.Budget = core.ALL_CORES) -> Matrix:
        """The matrix of all values."""
        returned = self.function(X, X if Z is None else Z)
        values = np.asarray(returned.toarray() if sparse.issparse(returned) else returned, np.float64)
        shape = (_count(X), _count(X if Z is None else Z))
        if values.shape != shape:
            raise ValueError(
                f"The kernel function must return one value per pair, an array of shape {shape}. "
                f"Got shape {values.shape} instead."
            )
        return values


def _count(X: Any) -> int:
    """Rows of what a user's function takes, be it a matrix or a list."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _refuse_given(*kernels: Kernel) -> None:
    """The core knows the rows of a given matrix by their place in it, not by their values."""
    if any(isinstance(kernel, Precomputed | Function) for kernel in kernels):
        raise TypeError(
            "Kernels whose values are given cannot be combined with others. Combine the matrices, or the "
            "functions, themselves."
        )


def _bracketed(kernel: Kernel) -> str:
    words = str(kernel)
    return f"({words})" if isinstance(kernel, Combination) and " + " in words else words


def _like(Z: Any, X: Any) -> Any:
    """Z in the form of X: the core compares rows of one type."""
    if sparse.issparse(X):
        return sparse.csr_matrix(Z, dtype=X.dtype)
    dense = Z.toarray() if sparse.issparse(Z) else np.asarray(Z)
    return dense.astype(np.asarray(X).dtype, copy=False)


KINDS: dict[str, tuple[Callable[..., Kernel], tuple[str, ...]]] = {
    "linear": (Linear, ()),
    "polynomial": (Polynomial, ("degree", "gamma", "coef0")),
    "gaussian": (Gaussian, ("gamma",)),
    "laplacian": (Laplacian, ("gamma",)),
    "chi_squared": (ChiSquared, ("gamma",)),
    "sigmoid": (Sigmoid, ("gamma", "coef0")),
    "precomputed": (Precomputed, ()),
}
"""The class and the parameters of every kernel, by its name."""
_ALIASES = {"poly": "polynomial", "rbf": "gaussian", "chi2": "chi_squared"}
SHORT_NAMES = {name: short for short, name in _ALIASES.items()}
"""What scikit-learn calls those kernels for which it has another name."""
KERNEL_NAMES = (*KINDS, *_ALIASES)
"""All names that ``kernel_from_name`` takes; the last three are those of scikit-learn."""


def kernel_from_name(name: str, degree: int = 3, gamma: float = 1.0, coef0: float = 0.0) -> Kernel:
    """The kernel of that name, with those of the parameters that it has."""
    found = KINDS.get(_ALIASES.get(name, name)) if isinstance(name, str) else None
    if found is None:
        listed = ", ".join(map(repr, KERNEL_NAMES))
        raise ValueError(f"The 'kernel' parameter must be one of {listed}. Got {name!r} instead.")
    kind, parameters = found
    given = {"degree": degree, "gamma": gamma, "coef0": coef0}
    return kind(**{parameter: given[parameter] for parameter in parameters})
