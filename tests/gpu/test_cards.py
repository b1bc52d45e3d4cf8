# SPDX-License-Identifier: BSD-3-Clause
"""A GPU seen through CuPy: what is said where one is missing, and what is asked of it where one is there.

A small module stands for CuPy: it has the functions that are called, and NumPy does what they ask for.
"""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from maxmargin import core
from maxmargin.gpu import cards
from maxmargin.gpu.cards import Card, NoCardError, the_card
from maxmargin.gpu.kernel_rows import CardData
from maxmargin.gpu.programs import FUNCTIONS, OPTIONS, ROWS, passes_over
from tests.gpu.numpy_card import OnCard


class Settable(OnCard):
    """An array that takes values of an array of NumPy, and gives them back."""

    def set(self, values):
        self[:] = values

    def get(self, out):
        out[:] = self
        return out


class CuPy(ModuleType):
    """CuPy with one card, or as many as are said, and a list of what it was asked for."""

    ascontiguousarray = staticmethod(np.ascontiguousarray)

    def __init__(self, count: int | Exception = 1, capability: str = "90") -> None:
        super().__init__("cupy")
        self.asked: list[tuple] = []
        self._count = count
        runtime = SimpleNamespace(
            getDeviceCount=self._counted,
            getDeviceProperties=lambda number: {"name": f"card {number}".encode()},
            memGetInfo=lambda: (700, 1000),
        )
        device = SimpleNamespace(
            id=3, compute_capability=capability, synchronize=lambda: self.asked.append(("wait",))
        )
        stream = SimpleNamespace(synchronize=lambda: self.asked.append(("copied",)))
        self.cuda = SimpleNamespace(
            runtime=runtime, Device=lambda: device, get_current_stream=lambda: stream
        )

    def _counted(self) -> int:
        if isinstance(self._count, Exception):
            raise self._count
        return self._count

    def asarray(self, values, dtype=None):
        return np.array(values, dtype).view(OnCard)

    def empty(self, count):
        return np.empty(count).view(Settable)

    def asnumpy(self, values):
        return np.array(values)

    def get_default_memory_pool(self):
        return SimpleNamespace(free_bytes=lambda: 30)

    def RawModule(self, code, options):
        self.asked.append(("compile", options))
        return SimpleNamespace(
            get_function=lambda name: lambda *given: self.asked.append((name, name in code, *given))
        )


@pytest.fixture
def installed(monkeypatch):
    """Puts a module in the place of CuPy, and forgets the card before and after."""

    def put(cupy):
        monkeypatch.setitem(sys.modules, "cupy", cupy)
        the_card.cache_clear()
        return cupy

    yield put
    the_card.cache_clear()


@pytest.mark.parametrize(
    ("cupy", "words"),
    [
        (None, r"needs CuPy, which is not installed\. .*maxmargin\[gpu-cuda13\]"),
        (CuPy(RuntimeError("driver too old")), r"CUDA finds none: driver too old\. .*nvidia-smi"),
        (CuPy(0), "needs an NVIDIA GPU, and there is none"),
        (CuPy(capability="61"), r"capability 7\.5 or later \(Turing\)\. This one has 6\.1"),
    ],
)
def test_what_is_missing_is_said_with_the_cure(installed, cupy, words):
    installed(cupy)
    with pytest.raises(NoCardError, match=f"{words}.*se device='cpu'"):
        the_card()


def test_the_card_is_found_once(installed):
    installed(CuPy(capability="75"))
    card = the_card()
    assert card.name == "card 3"
    assert the_card() is card


def test_a_program_is_compiled_when_it_is_first_called():
    cupy = CuPy()
    card, program = Card(cupy), passes_over("double")
    for _ in range(2):
        card.call(program, "row_products", (7,), 256, "X", "out")
    card.call(program, "column_sums", (2, 1), 1024, "X")
    card.wait()
    assert cupy.asked == [
        ("compile", OPTIONS),
        ("row_products", True, (7,), (256,), ("X", "out")),
        ("row_products", True, (7,), (256,), ("X", "out")),
        ("column_sums", True, (2, 1), (1024,), ("X",)),
        ("wait",),
    ]
    assert set(card._functions[program]) == set(FUNCTIONS[ROWS])


def test_arrays_and_matrices_on_the_card(monkeypatch):
    card = Card(CuPy())
    X = np.array([[0.0, 2.0], [1.0, 0.0]])
    assert card.free_bytes == 730
    assert type(card.get(card.put(X))) is np.ndarray
    assert card.put(X, np.float32).dtype == np.float32
    assert np.array_equal(card.matrix(X), X)
    # CuPy's own sparse matrices are made of SciPy's, and become dense there.
    on_card = SimpleNamespace(csr_matrix=lambda given: SimpleNamespace(toarray=lambda: given.todense() + 0))
    scipy_of_cupy = ModuleType("cupyx.scipy")
    scipy_of_cupy.sparse = on_card
    monkeypatch.setitem(sys.modules, "cupyx", ModuleType("cupyx"))
    monkeypatch.setitem(sys.modules, "cupyx.scipy", scipy_of_cupy)
    assert np.array_equal(card.matrix(sparse.csr_matrix(X)), X)
    rows = card.contiguous(X.T, np.float32)
    assert rows.flags.c_contiguous
    assert rows.dtype == np.float32
    data = card.data(X)
    assert isinstance(data, CardData)
    assert data.card is card


def test_long_arrays_go_by_way_of_fixed_memory(monkeypatch):
    cupy, rooms = CuPy(), []
    card, cupyx = Card(cupy), ModuleType("cupyx")
    cupyx.empty_pinned = lambda count, dtype: rooms.append(np.empty(count, dtype)) or rooms[-1]
    monkeypatch.setitem(sys.modules, "cupyx", cupyx)
    few, many = np.arange(9.0), np.arange(100_000)
    assert np.array_equal(card.receive(card.send(few, core.ALL_CORES)), few)
    assert not rooms
    there = card.send(many, core.ALL_CORES)
    assert isinstance(there, Settable)
    # The room is another's only after the copy.
    assert cupy.asked == [("copied",)]
    assert np.array_equal(card.receive(there), many)
    assert len(rooms) == 2


def test_answers_come_in_the_kind_of_the_question(installed, monkeypatch):
    cupy = installed(CuPy())
    here, there = np.arange(3.0), cupy.asarray([4.0, 5.0])
    assert cards.on_host(here) is here
    assert type(cards.on_host(there)) is np.ndarray
    assert list(cards.on_host(there)) == [4.0, 5.0]
    words = np.array(["no", "yes"])
    assert cards.like(words, there) is words
    assert type(cards.like(here, there)) is OnCard
    torch = ModuleType("torch")
    torch.from_dlpack = lambda values: ("tensor", list(values))
    monkeypatch.setitem(sys.modules, "torch", torch)
    tensor = SimpleNamespace(__dlpack__=lambda: None)
    assert cards.like(here, tensor) == ("tensor", [0.0, 1.0, 2.0])
