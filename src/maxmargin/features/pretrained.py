# SPDX-License-Identifier: BSD-3-Clause
"""The first part of a trained network as a feature map (000)."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from maxmargin.core import default_threads
from maxmargin.features.dense_maps import NumberedMap
from maxmargin.features.network import first_part
from maxmargin.tools.parameters import Count

_TYPES = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(uint8)": np.uint8,
}


@dataclass(eq=False, repr=False)
class Pretrained(NumberedMap):
    """The values of an inner layer of an ONNX network, one row per example, run with onnxruntime.

    Needs the packages onnx and onnxruntime: ``pip install 'maxmargin[pretrained]'``. What lies behind the
    layer is cut off and not computed. Rows are given as the network takes them, or flat: then they are
    reshaped. Nothing is trained. The fitted map holds the network and no longer needs the file.

    Parameters
    ----------
    onnx_file : path
        The network. It may have one input; the file must hold all its weights.
    layer : str or None
        The name of a tensor inside the network; None: its first output.
    batch_size : int
        Rows at a time. A network made for a fixed number gets that many.
    callback : callable or None
        Called with the number of rows that are done and the number of all rows, after every batch.
    max_bytes : int
        The largest file that is read.

    Attributes
    ----------
    network_ : bytes
        The part of the network that is run, as an ONNX file.
    """

    onnx_file: str | os.PathLike[str]
    layer: str | None = None
    _: KW_ONLY
    batch_size: Count = 256
    callback: Callable[[int, int], Any] | None = None
    max_bytes: Count = 2**30

    def _learn(self, X: NDArray[Any]) -> None:
        self.network_ = first_part(self.onnx_file, self.layer, self.max_bytes)
        self._session = self._open()
        self._n_features_out = self._run(X[:1]).shape[1]

    def _map(self, X: NDArray[Any]) -> NDArray[Any]:
        size = self._batch() or self.batch_size
        out = np.empty((len(X), self._n_features_out), np.float32 if X.dtype == np.float32 else np.float64)
        for begin in range(0, len(X), size):
            end = min(begin + size, len(X))
            out[begin:end] = self._run(X[begin:end])
            if self.callback is not None:
                self.callback(end, len(X))
        return out

    def _read(self, X: Any, *, reset: bool) -> NDArray[Any]:
        array: NDArray[Any] = validate_data(self, X, reset=reset, dtype="numeric", allow_nd=True)
        return array

    def _open(self) -> Any:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = default_threads()
        # Threads that wait by spinning would take the cores from everyone else.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            return onnxruntime.InferenceSession(self.network_, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime has a class of its own for every kind of fault
            raise ValueError(
                f"onnxruntime cannot run the network in {self.onnx_file!r}: {error}"
            ) from error

    def _batch(self) -> int | None:
        """The number of rows that the network was made for, if it is a fixed one."""
        shape = self._session.get_inputs()[0].shape
        return shape[0] if shape and isinstance(shape[0], int) and shape[0] > 0 else None

    def _run(self, X: NDArray[Any]) -> NDArray[Any]:
        """The layer's values for as many rows as the network takes at a time, or fewer."""
        expected = self._session.get_inputs()[0]
        rows = self._shaped(X, expected.shape[1:]).astype(_TYPES[expected.type], copy=False)
        missing = (self._batch() or len(X)) - len(X)
        if missing > 0:
            rows = np.concatenate([rows, np.repeat(rows[-1:], missing, axis=0)])
        (values,) = self._session.run(None, {expected.name: rows})
        if len(values) != len(rows):
            raise ValueError(
                f"Layer {self.layer!r} gives {len(values)} rows for a batch of {len(rows)}. Choose a layer "
                "that has one row per example."
            )
        return np.asarray(values).reshape(len(rows), -1)[: len(X)]

    def _shaped(self, X: NDArray[Any], expected: list[Any]) -> NDArray[Any]:
        """Rows in the form of the network's input; sizes that it leaves open are taken from X."""
        open_sizes = [k for k, size in enumerate(expected) if not isinstance(size, int)]
        if X.ndim == len(expected) + 1:
            fits = all(k in open_sizes or X.shape[k + 1] == size for k, size in enumerate(expected))
            if fits:
                return X
        elif X.ndim == 2 and not open_sizes and X.shape[1] == math.prod(expected):
            return X.reshape(len(X), *expected)
        raise ValueError(
            f"The network takes rows of shape {tuple(expected)}. Got X of shape {X.shape} instead. Give "
            "one row per example, as the network takes it or flat."
        )

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_session"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if hasattr(self, "network_"):
            self._session = self._open()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags
