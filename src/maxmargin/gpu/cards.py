# SPDX-License-Identifier: BSD-3-Clause
"""The GPU: whether there is one, and the sentence that says what is missing where there is none."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from maxmargin import core
from maxmargin.gpu.programs import FUNCTIONS, OPTIONS, Program
from maxmargin.types import Vector

if TYPE_CHECKING:
    from maxmargin.gpu.kernel_rows import CardData

_LEAST_CAPABILITY = 75
"""The compute capability, times ten, that the programs need: Turing, of 2018."""
_LONG = 1 << 16
"""Numbers from which it pays to copy an array by way of memory that stays in its place: half a megabyte."""


_LARGE = 1 << 24
"""Bytes from which a matrix is sent by several threads: to begin them takes a tenth of a millisecond."""
_SENDERS, _PIECE = 4, 1 << 22
"""Threads that send a matrix, and bytes that one of them sends at a time: four saturate the bus."""


_SHARE_OF_MEMORY = 0.8
"""The share of the card's free memory that one thing may take: others come on top."""
_CURES = "Use device='cpu', fewer rows or columns, or values of float32."
_SPENT = "OutOfMemory", "cudaErrorMemoryAllocation", "STATUS_ALLOC_FAILED"
"""What errors of CuPy are called, or say, where a card's memory or the fixed one of the system is spent."""


class NoCardError(ValueError):
    """There is no GPU that can be used, and why."""


class NoRoomError(MemoryError):
    """The memory of the GPU does not suffice, and what to do."""


def refuse_without_room(card: Any, needed: int, what: str) -> None:
    """Refuse what has no room on a card before it is sent there; ``what`` begins the sentence."""
    free = card.free_bytes
    if needed > _SHARE_OF_MEMORY * free:
        raise NoRoomError(
            f"{what} {needed / 1e9:.1f} GB on the GPU, which has {free / 1e9:.1f} GB free. {_CURES}"
        )


def no_room(error: BaseException | None) -> str | None:
    """What to do where an error of CuPy says that memory is spent; None where it says something else."""
    if not any(words in f"{type(error).__name__}: {error}" for words in _SPENT):
        return None
    words = str(error).removesuffix(".")
    return f"The GPU has too little memory for what is made of the data there: {words}. {_CURES}"


class Card:
    """One GPU, seen through CuPy.

    Everything that the solver and the rows do there goes through this object, so that tests can put another
    in its place that does the same with NumPy.
    """

    def __init__(self, cupy: Any) -> None:
        self.arrays = cupy
        """The functions of NumPy, for arrays on the card."""
        properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
        self.name: str = properties["name"].decode()
        self._functions: dict[Program, dict[str, Any]] = {}

    def put(self, values: Any, dtype: Any = None) -> Any:
        """An array on the card."""
        return self.arrays.asarray(values, dtype)

    def matrix(self, X: Any) -> Any:
        """A matrix on the card with all its values, also those that are 0; one that lies there as it is."""
        if isinstance(X, np.ndarray) and X.nbytes >= _LARGE and X.flags.c_contiguous:
            return self._piece_by_piece(X)
        if not sparse.issparse(X):
            return self.put(X)
        from cupyx.scipy import sparse as on_card  # type: ignore[import-not-found]

        return on_card.csr_matrix(X).toarray()

    def _piece_by_piece(self, X: Any) -> Any:
        """A large matrix on the card: threads copy pieces of it to memory that the system cannot move.

        From there they go on at the bus's own speed, while other pieces are copied.
        """
        there = self.arrays.empty(X.shape, X.dtype)
        self.wait()  # for whatever may still use this memory
        given, size = X.reshape(-1).view(np.uint8), X.nbytes

        def send(first: int) -> None:
            stream = self.arrays.cuda.Stream(non_blocking=True)
            room = self._fixed(_PIECE, np.uint8)
            for begin in range(first, size, _SENDERS * _PIECE):
                piece = given[begin : begin + _PIECE]
                np.copyto(room[: len(piece)], piece)
                (there.data + begin).copy_from_host_async(room.ctypes.data, len(piece), stream)
                stream.synchronize()  # before the room is used again

        with ThreadPoolExecutor(_SENDERS) as pool:
            list(pool.map(send, range(0, min(size, _SENDERS * _PIECE), _PIECE)))
        return there

    def contiguous(self, values: Any, dtype: Any) -> Any:
        """The same values row by row."""
        return self.arrays.ascontiguousarray(values, dtype)

    def data(self, X: Any, *, copied: bool = False) -> CardData:
        """The rows of a matrix on the card, for the problems of a fit; ``copied``: by a kernel's solver."""
        from maxmargin.gpu.kernel_rows import CardData

        return CardData(self, X, copied=copied)

    def get(self, values: Any) -> Any:
        """An array of NumPy."""
        return self.arrays.asnumpy(values)

    def send(self, values: Vector, budget: core.Budget) -> Any:
        """Numbers of each row on the card: long arrays by way of memory that the system cannot move.

        Such copies run at the bus's own speed, several times that of others, and need no fresh memory.
        """
        if len(values) < _LONG:
            return self.put(values, np.float64)
        room, out = self._fixed(len(values)), self.arrays.empty(len(values))
        core.copy(np.ascontiguousarray(values, np.float64), room, budget)
        out.set(room)
        self.arrays.cuda.get_current_stream().synchronize()  # before the room is another's
        return out

    def receive(self, values: Any) -> Vector:
        """Numbers of each row as an array of NumPy, in such memory where they are many."""
        if len(values) < _LONG:
            return np.asarray(self.get(values))
        out: Vector = values.get(out=self._fixed(len(values)))
        return out

    def get_before(self, values: Any, work: Callable[[], None]) -> Any:
        """A few numbers as they are before some work, which the card begins while they are on their way."""
        room, come = self._fixed(values.size, values.dtype).reshape(values.shape), self.arrays.cuda.Event()
        values.get(out=room, blocking=False)
        come.record()
        work()
        come.synchronize()
        return room

    @staticmethod
    def _fixed(count: int, dtype: Any = np.float64) -> Any:
        """Memory that stays in its place, out of CuPy's pool of it, to which it goes back."""
        from cupyx import empty_pinned  # type: ignore[import-not-found]

        return empty_pinned(count, dtype)

    @property
    def free_bytes(self) -> int:
        """Memory of the card that nothing is kept in."""
        free = int(self.arrays.cuda.runtime.memGetInfo()[0])
        return free + int(self.arrays.get_default_memory_pool().free_bytes())

    def multiply_halves(self, first: Any, second: Any, out: Any, scale: float, *, add: bool) -> None:
        """``out = scale first second'``, or that added to it: from half precision to single."""
        in_single = 68  # CUBLAS_COMPUTE_32F
        self._multiply(first, second, out, np.array([scale, float(add)], np.float32), in_single)

    def multiply_bytes(self, first: Any, second: Any, out: Any) -> None:
        """``out = first second'``: from signed bytes to whole numbers of 32 bits."""
        in_whole_numbers = 72  # CUBLAS_COMPUTE_32I
        self._multiply(first, second, out, np.array([1, 0], np.int32), in_whole_numbers)

    def _multiply(self, first: Any, second: Any, out: Any, factors: Any, sums: int) -> None:
        """``out = factors_0 first second' + factors_1 out`` on tensor cores."""
        from cupy.cuda import cublas, device

        # CUDA_R_16F, CUDA_R_8I, CUDA_R_32F and CUDA_R_32I.
        kinds = {"float16": 2, "int8": 3, "float32": 0, "int32": 10}
        (kind, result), (count, depth) = (kinds[some.dtype.name] for some in (first, out)), first.shape
        widths = [some.strides[0] // some.dtype.itemsize for some in (second, first, out)]
        # Column by column, as cuBLAS sees it, out is its transpose.
        cublas.gemmEx(
            device.get_cublas_handle(),
            *(cublas.CUBLAS_OP_T, cublas.CUBLAS_OP_N, len(second), count, depth, factors[:1].ctypes.data),
            *(second.data.ptr, kind, widths[0], first.data.ptr, kind, widths[1]),
            *(factors[1:].ctypes.data, out.data.ptr, result, widths[2], sums, -1),
        )

    def call(self, program: Program, function: str, blocks: Any, threads: int, *arguments: Any) -> None:
        """Run a function of a program, which is compiled when it is first called."""
        if program not in self._functions:
            module = self.arrays.RawModule(code=program.source, options=OPTIONS)
            self._functions[program] = {name: module.get_function(name) for name in FUNCTIONS[program.name]}
        self._functions[program][function](blocks, (threads,), arguments)

    def wait(self) -> None:
        """Until all that was asked for is done."""
        self.arrays.cuda.Device().synchronize()


@cache
def the_card() -> Card:
    """The GPU in use, or a NoCardError that says what is missing and what to do."""
    try:
        import cupy
    except ImportError:
        raise NoCardError(
            "device='cuda' needs CuPy, which is not installed. Install it with pip install "
            "'maxmargin[gpu-cuda13]' (or gpu-cuda12, for drivers before 580), or use device='cpu'."
        ) from None
    try:
        count = int(cupy.cuda.runtime.getDeviceCount())
    except Exception as error:
        raise NoCardError(
            f"device='cuda' needs an NVIDIA GPU with its driver, and CUDA finds none: {error}. Look at "
            "what nvidia-smi says: an old driver may need gpu-cuda12 in place of gpu-cuda13. Or use "
            "device='cpu'."
        ) from None
    if count == 0:
        raise NoCardError("device='cuda' needs an NVIDIA GPU, and there is none. Use device='cpu'.")
    capability = int(cupy.cuda.Device().compute_capability)
    if capability < _LEAST_CAPABILITY:
        raise NoCardError(
            f"device='cuda' needs a GPU of compute capability 7.5 or later (Turing). This one has "
            f"{capability // 10}.{capability % 10}. Use device='cpu'."
        )
    return Card(cupy)


def on_host(values: Any) -> Any:
    """An array of NumPy, from one that may lie on a GPU."""
    if not hasattr(values, "__cuda_array_interface__"):
        return values
    card = the_card()
    return card.get(card.put(values))


def like(values: Any, X: Any) -> Any:
    """An answer of NumPy in the kind of X, which lies on a GPU; words, which have no place there, stay."""
    if values.dtype.kind not in "biuf":
        return values
    return as_kind_of(the_card().put(values), X)


def as_kind_of(there: Any, X: Any) -> Any:
    """An array on the card in the kind of X: CuPy's, or a tensor of PyTorch that shares its memory."""
    if hasattr(X, "__dlpack__") and not isinstance(X, type(there)):
        import torch  # type: ignore[import-not-found]

        return torch.from_dlpack(there)
    return there


def refuse_other_columns(estimator: Any, X: Any) -> None:
    """Refuse rows on a GPU that have another number of columns than those of the fit."""
    if X.ndim != 2 or X.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"X has shape {tuple(X.shape)}, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input: a row for each example, a column for each one."
        )
