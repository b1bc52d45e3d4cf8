# SPDX-License-Identifier: BSD-3-Clause
"""ONNX networks from files that are hostile until parsed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

_NEEDED = (
    "Pretrained needs the packages onnx and onnxruntime. Install them with: "
    "pip install 'maxmargin[pretrained]'"
)


def first_part(path: str | os.PathLike[str], layer: str | None, max_bytes: int) -> bytes:
    """The network up to a layer, which becomes its only output; None: up to its first output.

    A file larger than ``max_bytes`` is refused, and so is one that names other files for its weights, since
    such a name can lead anywhere.
    """
    try:
        import onnx
    except ImportError as error:
        raise ImportError(_NEEDED) from error
    model = _parsed(path, max_bytes)
    _refuse_other_files(model, path)
    graph = model.graph
    if layer is None and graph.output:
        layer = graph.output[0].name
    needed = _before(graph, layer)
    if needed is None:
        names = [name for node in graph.node for name in node.output if name]
        raise ValueError(
            f"The network in {os.fspath(path)!r} has no layer {layer!r}. It has {_listed(names)}."
        )
    weights = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in weights]
    if len(inputs) != 1:
        raise ValueError(
            f"The network in {os.fspath(path)!r} must have one input. It has {len(inputs)}: "
            f"{_listed([value.name for value in inputs])}."
        )
    nodes = [graph.node[k] for k in needed]
    read = {name for node in nodes for name in _reads(node)}
    kept = [tensor for tensor in graph.initializer if tensor.name in read]
    part = onnx.helper.make_graph(
        nodes, graph.name or "part", inputs, [onnx.ValueInfoProto(name=layer)], kept
    )
    part.sparse_initializer.extend(t for t in graph.sparse_initializer if t.values.name in read)
    result = onnx.helper.make_model(
        part, opset_imports=model.opset_import, functions=model.functions, ir_version=model.ir_version
    )
    data: bytes = result.SerializeToString()
    return data


def _parsed(path: str | os.PathLike[str], max_bytes: int) -> Any:
    from google.protobuf.message import DecodeError

    import onnx

    with open(path, "rb") as file:
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise ValueError(
            f"The file {os.fspath(path)!r} is larger than {max_bytes:,} bytes. Raise 'max_bytes' if it is "
            "the right one."
        )
    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except DecodeError as error:
        raise ValueError(f"The file {os.fspath(path)!r} is no ONNX network: {error}") from error
    if not model.graph.node or not model.opset_import:
        raise ValueError(f"The file {os.fspath(path)!r} is no ONNX network: it has no nodes.")
    return model


def _before(graph: Any, layer: str | None) -> list[int] | None:
    """The nodes that the layer depends on, in order; None if there is no such layer."""
    maker = {name: k for k, node in enumerate(graph.node) for name in node.output if name}
    if layer not in maker:
        return None
    needed: set[int] = set()
    waiting = [maker[layer]]
    while waiting:
        k = waiting.pop()
        if k not in needed:
            needed.add(k)
            waiting += [maker[name] for name in _reads(graph.node[k]) if name in maker]
    return sorted(needed)


def _reads(node: Any) -> Iterator[str]:
    """The names that a node reads, also from inside the graphs that it holds (of If or Loop)."""
    yield from node.input
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            for inner in graph.node:
                yield from _reads(inner)
            yield from (value.name for value in graph.output)


def _refuse_other_files(model: Any, path: str | os.PathLike[str]) -> None:
    """Weights in other files, wherever a message can hold a tensor."""
    from onnx import TensorProto

    for tensor in _tensors(model):
        if tensor.data_location == TensorProto.EXTERNAL or tensor.external_data:
            raise ValueError(
                f"The network in {os.fspath(path)!r} keeps weights in other files, which is refused. Save "
                "it as one file, with onnx.save_model(..., save_as_external_data=False)."
            )


def _tensors(message: Any) -> Iterator[Any]:
    """All tensors inside a message, by its own description of its fields."""
    from onnx import TensorProto

    waiting = [message]
    while waiting:
        current = waiting.pop()
        if isinstance(current, TensorProto):
            yield current
            continue
        for field, value in current.ListFields():
            if field.message_type is not None:
                waiting += value if field.is_repeated else [value]


def _listed(names: list[str], most: int = 20) -> str:
    shown = ", ".join(map(repr, names[:most])) or "none"
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
