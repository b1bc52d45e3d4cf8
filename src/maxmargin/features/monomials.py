# SPDX-License-Identifier: BSD-3-Clause
"""Monomials (000, 001, 003, 004): a linear classifier of these is a polynomial one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import combinations, combinations_with_replacement, groupby
from typing import Annotated, Any, Literal

from maxmargin.features.base import FeatureMap, KernelShift
from maxmargin.features.expansion import Expansion
from maxmargin.features.lazy import LazyMonomials, forming_pays
from maxmargin.tools.parameters import Count, Positive, Range, check_options, wrong

_HIGHEST = 255
"""The highest degree that the core takes (core/features/monomials.hpp)."""


@dataclass(eq=False, repr=False)
class Monomials(FeatureMap):
    """All monomials ``x_i1 x_i2 ... x_ik`` up to a degree: C(d + degree, degree), with the constant.

    With ``scaling="kernel"`` the inner product of two images is the polynomial kernel,

        <phi(x), phi(z)> = (gamma <x, z> + coef0)^degree

    up to rounding: the monomial with exponents p of total k is multiplied by
    ``sqrt(degree! / (p_1! p_2! ... (degree - k)!) gamma^k coef0^(degree - k))``.

    The size is computed first, exactly, and an expansion beyond ``max_bytes`` is refused before any memory
    is taken. Sparse rows stay sparse and cost what their stored values cost.

    Parameters
    ----------
    degree : int
        The highest degree of a monomial.
    interaction_only : bool
        Every column at most once in a monomial. Only with plain scaling.
    scaling : "plain" or "kernel"
        The bare products, or those of the polynomial kernel.
    gamma, coef0 : float
        The parameters of the kernel, without effect on plain scaling. With ``coef0=0`` only the monomials
        of exactly this degree remain.
    include_bias : bool or "auto"
        Whether the constant is a column. "auto": as the kernel needs it, but not with plain scaling, since
        ``LinearSVC`` has an intercept of its own.
    max_bytes : int
        The largest result that is made, a weight per column included.
    lazy : bool or "auto"
        True, for degree 2: products are not written out but formed whenever they are needed. The result is
        no matrix then but a ``LazyMonomials``, which only ``LinearSVC`` and ``LinearSVCCV`` take: the same
        problem, optimum and proof, in the memory of X. "auto": where that is expected to be faster, or the
        written-out result would be beyond ``max_bytes``.

    Examples
    --------
    >>> from maxmargin.features import Monomials
    >>> expansion = Monomials(degree=2)
    >>> expansion.fit_transform([[2.0, 3.0]])
    array([[2., 3., 4., 6., 9.]])
    >>> list(expansion.get_feature_names_out())
    ['x0', 'x1', 'x0^2', 'x0*x1', 'x1^2']
    """

    degree: Annotated[int, Range(f"[1, {_HIGHEST}]")] = 2
    interaction_only: bool = False
    scaling: Annotated[str, Literal["plain", "kernel"]] = "plain"
    _: KW_ONLY
    gamma: Positive = 1.0
    coef0: KernelShift = 1.0
    include_bias: Annotated[bool | str, Literal["auto", True, False]] = "auto"
    max_bytes: Count = 2**32
    lazy: Annotated[bool | str, Literal["auto", True, False]] = False

    def _learn(self, X: Any) -> None:
        self.expansion_ = self._expansion(X.shape[1])
        self.lazy_ = self._is_lazy(X)
        self.expansion_.refuse_too_large(self, X, lazy=self.lazy_)

    def _map(self, X: Any) -> Any:
        self.expansion_.refuse_too_large(self, X, lazy=self.lazy_)
        return LazyMonomials(X, self.expansion_) if self.lazy_ else self.expansion_(X)

    def _is_lazy(self, X: Any) -> bool:
        if self.lazy == "auto":
            return forming_pays(self.expansion_, X, self.max_bytes)
        if self.lazy and self.expansion_.degree != 2:
            cure = "Only products of two columns are formed on the way: use degree=2, or lazy=False."
            raise wrong(self, "lazy", True, f"False with degree={self.expansion_.degree}", cure)
        return bool(self.lazy)

    def _expansion(self, columns: int) -> Expansion:
        check_options(self)
        degree, gamma, coef0 = int(self.degree), float(self.gamma), float(self.coef0)
        once, kernel = self.interaction_only, self.scaling == "kernel"
        if kernel and once:
            cure = "The kernel has squares in it: use scaling='plain'."
            raise wrong(self, "interaction_only", True, "False with scaling='kernel'", cure)
        bias = kernel if self.include_bias == "auto" else self.include_bias
        if not kernel:
            return Expansion(columns, 0 if bias else 1, (1.0,) * (degree + 1), once)
        scales = _kernel_scales(degree, gamma, coef0)
        lowest = degree if coef0 == 0.0 else 0 if bias else 1
        return Expansion(columns, lowest, scales, shared_repeats=True)

    def _names(self, given: Sequence[str]) -> Sequence[str]:
        choose = combinations if self.expansion_.once else combinations_with_replacement
        degrees = range(self.expansion_.lowest, self.expansion_.degree + 1)
        return [_product(names) for k in degrees for names in choose(given, k)]


def _kernel_scales(degree: int, gamma: float, coef0: float) -> tuple[float, ...]:
    try:
        squares = [math.perm(degree, k) * gamma**k * coef0 ** (degree - k) for k in range(degree + 1)]
    except OverflowError:
        squares = [math.inf]
    if not all(map(math.isfinite, squares)):
        raise ValueError(
            f"Monomials with scaling='kernel' must have scales within the range of floats. Got "
            f"degree={degree}, gamma={gamma:g} and coef0={coef0:g} instead. Make them smaller."
        )
    return tuple(map(math.sqrt, squares))


def _product(names: Iterable[str]) -> str:
    powers = ((name, len(list(repeats))) for name, repeats in groupby(names))
    return "*".join(name if power == 1 else f"{name}^{power}" for name, power in powers) or "1"
