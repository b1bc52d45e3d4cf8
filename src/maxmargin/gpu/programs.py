# SPDX-License-Identifier: BSD-3-Clause
"""The programs for the GPU: CUDA sources, with the kernel written into them as a function of a few sums.

A program depends on the form of the kernel and not on its numbers, which are arguments: so that it is
compiled once for all values of gamma, and kept on disk by CuPy.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np

from maxmargin.kernels.base import Factor, Kernel, Linear
from maxmargin.types import Vector

SELECTION, WORKING_SETS, EXPANSIONS, ROWS = "selection", "working_sets", "expansions", "rows"
"""The programs: of the kernel solver, its values in single precision; of kernel values and of passes, in
double."""
FUNCTIONS = {
    SELECTION: ("find_extremes", "weigh_rows", "count_rows", "place_rows", "refill_sets"),
    WORKING_SETS: (
        "form_matrices",
        "gather_matrices",
        "move_pairs",
        "update_scores",
        "update_from_matrix",
        "add_products",
        "finish_values",
    ),
    EXPANSIONS: ("expand", "fill_values", "finish_values", "sum_values", "values_of_bytes"),
    ROWS: ("row_products", "column_sums"),
}
"""The functions of each program that are called from here."""
_HEADERS = {SELECTION: ("sets.cuh",), WORKING_SETS: ("sets.cuh",)}
"""What stands before a program, after what is common to all."""
_SUM = {
    ("product", "power"): "product",
    ("product", "tanh"): "product",
    ("product", "exponential"): "square",
    ("minimum", "exponential"): "absolute",
    ("harmonic", "exponential"): "harmonic",
}
"""The sum over the columns of two rows that a factor of a kernel is a function of."""
SHIFTED = {"square", "absolute"}
"""The sums that do not change where all rows are moved by the same vector."""
BY_PRODUCTS = {"product", "square"}
"""The sums that follow from inner products."""
OPTIONS = ("-std=c++17",)
"""For the compiler. Nothing is said about precision: its defaults round divisions and roots exactly."""


class Program(NamedTuple):
    """One program for one form of kernel."""

    name: str
    source: str


def sums_of(kernel: Kernel) -> set[str]:
    """The sums that a kernel is a function of."""
    return {_sum_of(factor) for _, factors in kernel.terms for factor in factors}


def _sum_of(factor: Factor) -> str:
    found = _SUM.get(factor[:2])
    if found is None:
        raise ValueError(
            "On a GPU the kernel has to be one that maxmargin computes from the rows. Got values that are "
            "given, or a function: use device='cpu', or one of linear, poly, rbf, laplacian, chi2, sigmoid."
        )
    return found


def numbers_of(kernel: Kernel) -> Vector:
    """The numbers of a kernel, in the order in which its program reads them."""
    numbers: list[float] = []
    for coefficient, factors in kernel.terms:
        numbers.append(coefficient)
        for _, shape, gamma, shift, _ in factors:
            numbers += [gamma] if shape == "exponential" else [gamma, shift]
    return np.array(numbers)


def program_for(name: str, kernel: Kernel, stored: str) -> Program:
    """The source of a program; values of the data are ``stored`` as "float" or as "double"."""
    form = tuple(
        tuple((_sum_of(factor), factor[1], factor[4]) for factor in factors) for _, factors in kernel.terms
    )
    real = "float" if name == WORKING_SETS else "double"
    return Program(name, _source(name, form, real, stored))


@cache
def passes_over(stored: str) -> Program:
    """The program of passes over rows, without a kernel."""
    return program_for(ROWS, Linear(), stored)


@cache
def selection() -> Program:
    """The program that chooses working sets, whatever the kernel is."""
    return program_for(SELECTION, Linear(), "float")


@cache
def _source(name: str, form: tuple[tuple[tuple[str, str, int], ...], ...], real: str, stored: str) -> str:
    used = {factor[0] for factors in form for factor in factors}
    lines = [f"#define REAL {real}", f"#define STORED {stored}"]
    lines += [
        f"#define USES_{each.upper()} {int(each in used)}"
        for each in ("product", "square", "absolute", "harmonic")
    ]
    lines.append(f"#define VALUE(sums) ({_expression(form)})")
    folder = files(__package__) / "cuda"
    texts = [
        (folder / file).read_text(encoding="utf-8")
        for file in ("values.cuh", *_HEADERS.get(name, ()), f"{name}.cu")
    ]
    return "\n".join([*lines, *texts])


def _expression(form: tuple[tuple[tuple[str, str, int], ...], ...]) -> str:
    """The kernel as a sum of products, in the words of CUDA."""
    terms, place = [], 0

    def number() -> str:
        nonlocal place
        place += 1
        return f"(REAL)numbers[{place - 1}]"

    for factors in form:
        product = [number()]
        for used, shape, degree in factors:
            if shape == "exponential":
                product.append(f"exponential(-{number()} * (sums).{used})")
            else:
                inside = f"{number()} * (sums).{used} + {number()}"
                product.append(f"power({inside}, {degree})" if shape == "power" else f"tanh({inside})")
        terms.append(" * ".join(product))
    return " + ".join(terms)
