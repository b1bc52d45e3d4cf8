# SPDX-License-Identifier: BSD-3-Clause
"""A graph that grows node by node, and how skl2onnx is told what is written into it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx.helper import np_dtype_to_tensor_dtype
from skl2onnx.common.data_types import DoubleTensorType, Int64TensorType, StringTensorType
from skl2onnx.common.utils import check_input_and_output_types

from maxmargin.files.data.labels import label_text
from onnx import TensorProto

DOUBLE: int = TensorProto.DOUBLE
FLOAT: int = TensorProto.FLOAT
INT64: int = TensorProto.INT64
Value = str
"""The name of a tensor in the graph."""
Write = Callable[["Graph", Any, Value], Sequence[Value]]
"""Writes the nodes of an estimator, given the name of its rows in float64; answers with its outputs."""


class Graph:
    """The graph of a model, as far as it is written."""

    def __init__(self, scope: Any, container: Any) -> None:
        self._scope, self._container = scope, container

    @property
    def opset(self) -> int:
        """The version of the operators."""
        return int(self._container.target_opset)

    def constant(self, values: Any) -> Value:
        """An array; floats become float64, whole numbers int64."""
        array = np.asarray(values)
        if array.dtype.kind == "U" or array.dtype == object:
            kind, flat = TensorProto.STRING, [str(text).encode() for text in array.ravel()]
        else:
            array = array.astype({"f": np.float64, "b": np.bool_}.get(array.dtype.kind, np.int64))
            kind, flat = np_dtype_to_tensor_dtype(array.dtype), array.ravel().tolist()
        name: str = self._scope.get_unique_variable_name("constant")
        self._container.add_initializer(name, kind, list(array.shape), flat)
        return name

    def node(self, kind: str, *inputs: Value, **attributes: Any) -> Value:
        """An operator on tensors, and the name of what it gives."""
        name: str = self._scope.get_unique_variable_name(kind.lower())
        unique = self._scope.get_unique_operator_name(kind)
        self._container.add_node(kind, list(inputs), [name], name=unique, **attributes)
        return name

    def sum_of(self, values: Value, axis: int, *, keep: bool = False) -> Value:
        """The sum along an axis."""
        return self.node("ReduceSum", values, self.constant([axis]), keepdims=int(keep))

    def columns(self, X: Value, places: Any) -> Value:
        """Some columns of a matrix."""
        return self.node("Gather", X, self.constant(np.asarray(places, np.int64)), axis=1)

    def beside(self, *parts: Value) -> Value:
        """Matrices side by side."""
        return self.node("Concat", *parts, axis=1)

    def cast(self, values: Value, kind: int) -> Value:
        """Values of another type."""
        return self.node("Cast", values, to=kind)

    def affine(self, X: Value, weights: Any, shift: Any = None) -> Value:
        """``X weights + shift``."""
        product = self.node("MatMul", X, self.constant(np.asarray(weights, np.float64)))
        return product if shift is None else self.node("Add", product, self.constant(np.asarray(shift)))

    def name(self, value: Value, outputs: Value) -> None:
        """Give a tensor the name by which it is an output."""
        self._container.add_node(
            "Identity", [value], [outputs], name=self._scope.get_unique_operator_name("Identity")
        )


def converter(write: Write) -> Callable[[Any, Any, Any], None]:
    """What skl2onnx calls to have the nodes of an estimator written."""

    def convert(scope: Any, operator: Any, container: Any) -> None:
        graph = Graph(scope, container)
        X = graph.cast(operator.inputs[0].full_name, DOUBLE)
        for value, output in zip(write(graph, operator.raw_operator, X), operator.outputs, strict=True):
            graph.name(value, output.full_name)

    return convert


def classifier_parser(alias: str) -> Callable[..., Any]:
    """What skl2onnx calls to learn the outputs of a classifier."""

    def parse(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
        operator = scope.declare_local_operator(alias, model)
        operator.inputs.extend(inputs)
        texts = hasattr(model, "classes_") and is_text(model.classes_)  # one class has 1 and -1
        labels = StringTensorType() if texts else Int64TensorType()
        operator.outputs.append(scope.declare_local_variable("label", labels))
        operator.outputs.append(scope.declare_local_variable("scores", DoubleTensorType()))
        return operator.outputs

    return parse


def regressor_parser(alias: str) -> Callable[..., Any]:
    """What skl2onnx calls to learn the output of a regressor."""

    def parse(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
        operator = scope.declare_local_operator(alias, model)
        operator.inputs.extend(inputs)
        operator.outputs.append(scope.declare_local_variable("prediction", DoubleTensorType()))
        return operator.outputs

    return parse


def value_shape(operator: Any) -> None:
    """What skl2onnx calls to learn the shape of a regressor's output."""
    operator.outputs[0].type.shape = [operator.inputs[0].get_first_dimension(), 1]


def scores_shape(operator: Any) -> None:
    """What skl2onnx calls to learn the shapes of a classifier's outputs."""
    check_input_and_output_types(operator)
    rows = operator.inputs[0].get_first_dimension()
    labels, scores = operator.outputs
    labels.type.shape, scores.type.shape = [rows], [rows, None]


def map_shape(operator: Any) -> None:
    """What skl2onnx calls to learn the type and the shape of what a feature map gives."""
    columns = len(operator.raw_operator.get_feature_names_out())
    rows = operator.inputs[0].get_first_dimension()
    operator.outputs[0].type = DoubleTensorType([rows, columns])


def is_text(classes: Any) -> bool:
    """Whether labels are texts; else they have to be whole numbers."""
    if classes.dtype.kind in "OUT":
        return True
    if classes.dtype.kind == "f" and not all(float(label).is_integer() for label in classes):
        raise ValueError(
            "The labels in ONNX must be texts or whole numbers. Got "
            f"{', '.join(map(label_text, classes[:5]))} instead. Fit with such labels."
        )
    return False
