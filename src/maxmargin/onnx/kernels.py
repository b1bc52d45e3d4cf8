# SPDX-License-Identifier: BSD-3-Clause
"""Values of kernels in ONNX, from the same table of terms and factors that the core has."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from maxmargin.kernels.base import Factor, Function, Kernel
from maxmargin.onnx.graph import Graph, Value


def kernel_values(graph: Graph, kernel: Kernel, X: Value, fixed: Any) -> Value:
    """``k(x, z)`` of all rows x and all fixed rows z: a sum of products of factors.

    The Laplacian and the chi-squared kernel compare rows column by column, in memory for every column of
    every pair.
    """
    if isinstance(kernel, Function):
        raise ValueError(
            "A kernel that is a function cannot be written in ONNX, which holds no code. Use one of "
            "maxmargin.kernels."
        )
    Z = np.asarray(fixed.toarray() if sparse.issparse(fixed) else fixed, np.float64)
    terms = []
    for coefficient, factors in kernel.terms:
        term, *others = (_factor(graph, factor, X, Z) for factor in factors)
        for other in others:
            term = graph.node("Mul", term, other)
        terms.append(term if coefficient == 1.0 else graph.node("Mul", term, graph.constant(coefficient)))
    total, *others = terms
    for other in others:
        total = graph.node("Add", total, other)
    return total


def _factor(graph: Graph, factor: Factor, X: Value, Z: Any) -> Value:
    common, shape, gamma, shift, degree = factor
    if shape == "exponential":
        distances = {"product": _squared, "minimum": _absolute, "harmonic": _chi_squared}[common]
        return graph.node("Exp", graph.node("Mul", distances(graph, X, Z), graph.constant(-gamma)))
    product = graph.affine(X, gamma * Z.T, np.float64(shift))
    if shape == "tanh":
        return graph.node("Tanh", product)
    return product if degree == 1 else graph.node("Pow", product, graph.constant(float(degree)))


def _squared(graph: Graph, X: Value, Z: Any) -> Value:
    """``|x|^2 - 2 <x, z> + |z|^2``, which rounding must not take below 0."""
    norms = graph.sum_of(graph.node("Mul", X, X), 1, keep=True)
    rest = graph.affine(X, -2.0 * Z.T, np.square(Z).sum(axis=1))
    return graph.node("Relu", graph.node("Add", norms, rest))


def _differences(graph: Graph, X: Value, Z: Any) -> tuple[Value, Value, Value]:
    """Every row beside every fixed one, and the difference, column by column."""
    rows = graph.node("Unsqueeze", X, graph.constant([1]))
    fixed = graph.constant(Z[np.newaxis])
    return rows, fixed, graph.node("Sub", rows, fixed)


def _absolute(graph: Graph, X: Value, Z: Any) -> Value:
    return graph.sum_of(graph.node("Abs", _differences(graph, X, Z)[2]), 2)


def _chi_squared(graph: Graph, X: Value, Z: Any) -> Value:
    """``sum_k (x_k - z_k)^2 / (x_k + z_k)``; a column in which both are 0 adds nothing."""
    rows, fixed, apart = _differences(graph, X, Z)
    tiny = graph.constant(np.finfo(np.float64).tiny)
    below = graph.node("Max", graph.node("Add", rows, fixed), tiny)
    return graph.sum_of(graph.node("Div", graph.node("Mul", apart, apart), below), 2)
