# SPDX-License-Identifier: BSD-3-Clause
"""Classifiers in ONNX: the scores of every problem, and the class that they stand for; and regressors."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin.estimators import (
    SVC,
    SVCCV,
    SVR,
    SVRCV,
    LinearOneClassSVM,
    LinearSVC,
    LinearSVCCV,
    LinearSVR,
    LogisticRegression,
    NuSVC,
    NuSVR,
    OneClassSVM,
    RankSVM,
)
from maxmargin.kernels.base import Precomputed
from maxmargin.onnx.graph import DOUBLE, INT64, Graph, Value, Write, is_text
from maxmargin.onnx.kernels import kernel_values
from maxmargin.reductions.decompositions import Decomposition, OneAgainstOne


def _linear(graph: Graph, model: Any, X: Value) -> list[Value]:
    scores = graph.affine(X, np.asarray(model.coef_).T, model.intercept_)
    return [_labels(graph, model, _decided(graph, model._kind, scores)), scores]


def _with_kernel(graph: Graph, model: Any, X: Value) -> list[Value]:
    table, kind = model._problem_scores.coefficients, model._kind
    owners = np.repeat(np.arange(len(model.classes_)), model.n_support_)
    each = np.array([kind.coefficients(table, k, owners) for k in range(len(kind))])
    scores = graph.affine(_kernel_values(graph, model, X), each.T, model.intercept_)
    by_class = _class_scores(graph, kind, scores) if isinstance(kind, OneAgainstOne) else scores
    if model.break_ties and len(kind) > 1:
        places = graph.node("ArgMax", by_class, axis=1, keepdims=0)
    else:
        places = _decided(graph, kind, scores)
    shown = scores if model.decision_function_shape == "ovo" else by_class
    return [_labels(graph, model, places), shown]


def _kernel_values(graph: Graph, model: Any, X: Value) -> Value:
    """The kernel between all rows and the support vectors."""
    if isinstance(model.kernel_, Precomputed):
        return graph.columns(X, model.support_)
    return kernel_values(graph, model.kernel_, X, model.support_vectors_)


def _linear_regressor(graph: Graph, model: Any, X: Value) -> list[Value]:
    return [graph.affine(X, np.asarray(model.coef_)[:, np.newaxis], model.intercept_)]


def _kernel_regressor(graph: Graph, model: Any, X: Value) -> list[Value]:
    coefficients = model._problem_scores.coefficients
    return [graph.affine(_kernel_values(graph, model, X), coefficients.T, model.intercept_)]


def _half_space(graph: Graph, model: Any, X: Value) -> list[Value]:
    return _sides(graph, graph.affine(X, np.asarray(model.coef_).T, model.intercept_))


def _region(graph: Graph, model: Any, X: Value) -> list[Value]:
    return _sides(graph, _kernel_regressor(graph, model, X)[0])


def _sides(graph: Graph, scores: Value) -> list[Value]:
    """1 inside and -1 outside, and the scores."""
    inside = graph.cast(graph.node("Not", graph.node("Less", scores, graph.constant(0.0))), INT64)
    places = graph.node("Squeeze", inside, graph.constant([1]))
    return [graph.node("Gather", graph.constant(np.array([-1, 1], np.int64)), places), scores]


def _chosen(write: Write) -> Write:
    """How the model of all rows is written that a search has chosen."""
    return lambda graph, model, X: write(graph, model.best_estimator_, X)


def _decided(graph: Graph, kind: Decomposition, scores: Value) -> Value:
    """The place of each row's class, as ``Decomposition.decide`` has it."""
    if len(kind) == 1:
        positive = graph.node("Greater", scores, graph.constant(0.0))
        return graph.node("Squeeze", graph.cast(positive, INT64), graph.constant([1]))
    if isinstance(kind, OneAgainstOne):
        scores = _votes(graph, kind, graph.node("Greater", scores, graph.constant(0.0)))
    return graph.node("ArgMax", scores, axis=1, keepdims=0)


def _votes(graph: Graph, kind: OneAgainstOne, won: Value) -> Value:
    """The pairs that each class wins: those won as their first, and those not won as their second."""
    first, second = kind._members
    votes = graph.affine(graph.cast(won, DOUBLE), first - second)
    return graph.node("Add", votes, graph.constant(second.sum(axis=0)))


def _class_scores(graph: Graph, kind: OneAgainstOne, scores: Value) -> Value:
    """One score for each class, as ``OneAgainstOne.class_scores`` has it."""
    first, second = kind._members
    lost = graph.node("Less", scores, graph.constant(0.0))
    votes = _votes(graph, kind, graph.node("Not", lost))
    sums = graph.affine(scores, first - second)
    sizes = graph.node("Add", graph.node("Abs", sums), graph.constant(1.0))
    parts = graph.node("Div", sums, graph.node("Mul", sizes, graph.constant(3.0)))
    return graph.node("Add", votes, parts)


def _labels(graph: Graph, model: Any, places: Value) -> Value:
    labels = model.classes_ if is_text(model.classes_) else model.classes_.astype(np.int64)
    return graph.node("Gather", graph.constant(labels), places)


CLASSIFIERS: dict[type[Any], Write] = {
    LinearSVC: _linear,
    LogisticRegression: _linear,
    SVC: _with_kernel,
    NuSVC: _with_kernel,
    OneClassSVM: _region,
    LinearOneClassSVM: _half_space,
    LinearSVCCV: _chosen(_linear),
    SVCCV: _chosen(_with_kernel),
}
"""How each of them is written."""
REGRESSORS: dict[type[Any], Write] = {
    LinearSVR: _linear_regressor,
    SVR: _kernel_regressor,
    NuSVR: _kernel_regressor,
    RankSVM: _linear_regressor,
    SVRCV: _chosen(_kernel_regressor),
}
"""The same of those whose answers are numbers."""
