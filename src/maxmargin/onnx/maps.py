# SPDX-License-Identifier: BSD-3-Clause
"""Feature maps in ONNX, each by the formula in its own file."""

from __future__ import annotations

import math
from itertools import combinations, combinations_with_replacement, groupby
from typing import Any

import numpy as np

from maxmargin import features
from maxmargin.features.expansion import Expansion
from maxmargin.kernels.base import Gaussian
from maxmargin.onnx.graph import DOUBLE, FLOAT, Graph, Value, Write
from maxmargin.onnx.kernels import kernel_values


def monomials(graph: Graph, expansion: Expansion, X: Value) -> Value:
    """All monomials of an expansion: one degree after the other, as products of columns."""
    choose = combinations if expansion.once else combinations_with_replacement
    parts = []
    for degree in range(expansion.lowest, expansion.degree + 1):
        chosen = np.array(list(choose(range(expansion.columns), degree)), np.int64)
        scales = np.full(len(chosen), expansion.scales[degree])
        if expansion.shared_repeats:
            scales /= np.sqrt([_repeats(columns) for columns in chosen.tolist()])
        if degree == 0:
            nothing = graph.sum_of(graph.node("Mul", X, graph.constant(0.0)), 1, keep=True)
            parts.append(graph.node("Add", nothing, graph.constant(scales)))
            continue
        product = graph.node("Mul", graph.columns(X, chosen[:, 0]), graph.constant(scales))
        for factor in chosen.T[1:]:
            product = graph.node("Mul", product, graph.columns(X, factor))
        parts.append(product)
    return parts[0] if len(parts) == 1 else graph.beside(*parts)


def _repeats(columns: list[int]) -> int:
    """The product of the factorials of how often each column is there."""
    return math.prod(math.factorial(len(list(group))) for _, group in groupby(columns))


def _monomials(graph: Graph, model: Any, X: Value) -> list[Value]:
    return [monomials(graph, model.expansion_, X)]


def _interactions(graph: Graph, model: Any, X: Value) -> list[Value]:
    if len(model.columns_) < 2:
        return [X]
    return [graph.beside(X, monomials(graph, model._expansion(), graph.columns(X, model.columns_)))]


def _squares(graph: Graph, model: Any, X: Value) -> list[Value]:
    apart = graph.node("Sub", graph.columns(X, model.columns_), graph.constant(model.centers_))
    return [graph.beside(X, graph.node("Mul", apart, apart))]


def _paraboloid(graph: Graph, model: Any, X: Value) -> list[Value]:
    chosen = graph.columns(X, model.columns_)
    return [graph.beside(X, graph.sum_of(graph.node("Mul", chosen, chosen), 1, keep=True))]


def _log(graph: Graph, model: Any, X: Value) -> list[Value]:
    chosen = graph.constant(np.isin(np.arange(model.n_features_in_), model.columns_))
    logarithms = graph.node("Log", graph.node("Add", X, graph.constant(1.0)))
    return [graph.node("Where", chosen, logarithms, X)]


def _polar(graph: Graph, model: Any, X: Value) -> list[Value]:
    """ONNX has no angle of two numbers, and the arc tangent for float32 alone.

    ``2 atan(y / (r + x))`` where x is not negative, and ``2 atan((r - x) / y)``, which is the same, where
    it is: neither takes the difference of two numbers that are nearly equal.
    """
    x, y = (graph.columns(X, [j]) for j in model.columns_)
    squares = graph.node("Add", graph.node("Mul", x, x), graph.node("Mul", y, y))
    r, zero = graph.node("Sqrt", squares), graph.constant(0.0)
    right = graph.node("Div", y, graph.node("Add", r, x))
    left = graph.node("Div", graph.node("Sub", r, x), graph.node("Abs", y))
    half = graph.node("Where", graph.node("Less", x, zero), left, right)
    angle = graph.cast(graph.node("Atan", graph.cast(half, FLOAT)), DOUBLE)
    below = graph.node("And", graph.node("Less", x, zero), graph.node("Less", y, zero))
    sign = graph.node("Where", below, graph.constant(-2.0), graph.constant(2.0))
    angle = graph.node("Where", graph.node("Equal", r, zero), zero, graph.node("Mul", angle, sign))
    places = np.arange(model.n_features_in_)
    places[model.columns_] = model.n_features_in_ + np.arange(2)
    return [graph.columns(graph.beside(X, r, angle), places)]


def _buckets(graph: Graph, model: Any, X: Value) -> list[Value]:
    """Indicators are differences of ``1, x >= e_1, ..., x >= e_k`` and ``x >= e_1, ..., x >= e_k, 0``."""
    parts = []
    others = model._others(model.n_features_in_)
    if len(others):
        parts.append(graph.columns(X, others))
    for j, edges in zip(model.columns_, model.edges_, strict=True):
        below = graph.node("Less", graph.columns(X, [j]), graph.constant(edges))
        reached = graph.cast(graph.node("Not", below), DOUBLE)
        ends = [graph.node("Pad", reached, graph.constant(pads), end) for pads, end in _ends(graph)]
        parts.append(graph.node("Sub", *ends))
    return [parts[0] if len(parts) == 1 else graph.beside(*parts)]


def _ends(graph: Graph) -> list[tuple[list[int], Value]]:
    return [([0, 1, 0, 0], graph.constant(1.0)), ([0, 0, 0, 1], graph.constant(0.0))]


def _distances(graph: Graph, model: Any, X: Value) -> list[Value]:
    return [kernel_values(graph, Gaussian(float(model.gamma)), X, model.prototypes_)]


def _nystroem(graph: Graph, model: Any, X: Value) -> list[Value]:
    return [graph.affine(kernel_values(graph, model.kernel_, X, model.sample_), model.projection_)]


def _random_fourier(graph: Graph, model: Any, X: Value) -> list[Value]:
    """Cosines are sines a quarter of a turn on: runtimes have these for float64, too."""
    directions = np.asarray(model.directions_, np.float64)
    half = directions.shape[1]
    phases = graph.affine(X, np.hstack([directions, directions]), np.repeat([math.pi / 2, 0.0], half))
    return [graph.node("Mul", graph.node("Sin", phases), graph.constant(math.sqrt(1.0 / half)))]


def _polynomial_sketch(graph: Graph, model: Any, X: Value) -> list[Value]:
    """Sketches of each factor, folded with each other: the product of their Fourier transforms."""
    columns, width = int(model._n_features_out), model.n_features_in_
    real: Value | None = None
    imaginary: Value = ""
    for places, signs in zip(model.places_, model.signs_, strict=True):
        sketch = np.zeros((width + 1, columns))
        sketch[np.arange(width + 1), places] = signs
        sketched = graph.affine(X, sketch[:width], sketch[width])
        sketched = graph.node("Unsqueeze", sketched, graph.constant([2]))
        a, b = _parts(graph, _transform(graph, sketched, columns, inverse=0))
        if real is None:
            real, imaginary = a, b
            continue
        mixed = graph.node("Add", graph.node("Mul", real, b), graph.node("Mul", imaginary, a))
        real = graph.node("Sub", graph.node("Mul", real, a), graph.node("Mul", imaginary, b))
        imaginary = mixed
    assert real is not None
    both = graph.node("Concat", real, imaginary, axis=2)
    back, _ = _parts(graph, _transform(graph, both, columns, inverse=1))
    return [graph.node("Squeeze", back, graph.constant([2]))]


def _transform(graph: Graph, signal: Value, length: int, *, inverse: int) -> Value:
    """The Fourier transform along the columns, whose axis is an input from version 20 of ONNX on."""
    if graph.opset >= 20:
        return graph.node("DFT", signal, graph.constant(length), graph.constant(1), inverse=inverse)
    return graph.node("DFT", signal, graph.constant(length), axis=1, inverse=inverse)


def _parts(graph: Graph, signal: Value) -> tuple[Value, Value]:
    """The real and the imaginary part."""
    each = [graph.node("Gather", signal, graph.constant([k]), axis=2) for k in range(2)]
    return each[0], each[1]


MAPS: dict[type[Any], Write] = {
    features.Buckets: _buckets,
    features.Distances: _distances,
    features.Interactions: _interactions,
    features.Log: _log,
    features.Monomials: _monomials,
    features.Nystroem: _nystroem,
    features.Paraboloid: _paraboloid,
    features.Polar: _polar,
    features.PolynomialSketch: _polynomial_sketch,
    features.RandomFourier: _random_fourier,
    features.Squares: _squares,
}
"""How each of them is written; a ``Pretrained`` network is a graph already."""
