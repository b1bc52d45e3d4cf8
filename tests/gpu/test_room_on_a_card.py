# SPDX-License-Identifier: BSD-3-Clause
"""The memory of a GPU does not suffice: what is said before it is taken, and where it runs out."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from maxmargin import SVC, Chunks, LinearSVC, LinearSVCCV, LinearSVR, Problem, path, solve
from maxmargin.features import Nystroem, RandomFourier
from maxmargin.gpu import cards, maps
from maxmargin.gpu.cards import NoRoomError
from maxmargin.gpu.kernel_rows import CardData
from maxmargin.gpu.rows import CardRows
from maxmargin.kernels import Gaussian
from tests.gpu.numpy_card import NumpyCard, OnCard

SENTENCE = (
    r"The GPU has too little memory for .*: .*[^.]\. Use device='cpu', fewer rows or columns, or values"
)


def error_of(module, name, base, message):
    """An error as CuPy has it."""
    return type(name, (base,), {"__module__": module})(message)


RUNTIME = "cupy_backends.cuda.api.runtime"
ERRORS = [
    error_of("cupy.cuda.memory", "OutOfMemoryError", MemoryError, "Out of memory allocating 8 bytes."),
    error_of("cupy_backends.cuda.libs.cublas", "CUBLASError", RuntimeError, "CUBLAS_STATUS_ALLOC_FAILED"),
    error_of(
        "cupy_backends.cuda.api.runtime", "CUDARuntimeError", RuntimeError, "cudaErrorMemoryAllocation"
    ),
]
OTHER = error_of(
    "cupy_backends.cuda.api.runtime", "CUDARuntimeError", RuntimeError, "cudaErrorLaunchFailure"
)


class FullCard(NumpyCard):
    """A card that has no memory left once it has done so much."""

    def __init__(self, error=None, after=0):
        super().__init__(Gaussian(0.5))
        self.error, self.left = error, after

    def _spend(self):
        self.left -= 1
        if self.error is not None and self.left < 0:
            raise self.error

    def call(self, *given):
        self._spend()
        super().call(*given)

    def contiguous(self, values, dtype):
        self._spend()
        return super().contiguous(values, dtype)


@pytest.fixture
def install(monkeypatch):
    """Puts a card in the place of the GPU."""

    def put(card):
        for module in (cards, maps):
            monkeypatch.setattr(module, "the_card", lambda: card)
        return card

    return put


def data():
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 5))
    return X, (X[:, 0] + 0.3 * random.normal(size=200) > 0).astype(int)


FITS = {
    "LinearSVC": LinearSVC(device="cuda"),
    "LinearSVR": LinearSVR(device="cuda"),
    "LinearSVCCV": LinearSVCCV(Cs=[1.0], cv=2, device="cuda"),
    "SVC": SVC(gamma=0.5, device="cuda"),
}


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("after", [0, 3])
@pytest.mark.parametrize("name", FITS)
def test_a_fit_that_runs_out_of_memory_says_what_to_do(install, name, error, after):
    install(FullCard(error, after))
    with pytest.raises(NoRoomError, match=SENTENCE) as raised:
        FITS[name].fit(*data())
    assert raised.value.__cause__ is error


def test_so_does_a_problem_without_an_estimator():
    X, y = data()
    card = FullCard()
    problem = Problem.of(CardRows(CardData(card, X)), 2.0 * y - 1.0)
    card.error = ERRORS[0]
    for run in (solve, lambda problem: path(problem, [0.5, 1.0])):
        with pytest.raises(NoRoomError, match=SENTENCE) as raised:
            run(problem)
        assert raised.value.__cause__ is ERRORS[0]


@pytest.mark.parametrize("name", FITS)
def test_other_errors_are_left_alone(install, name):
    for error in (
        OTHER,
        MemoryError("of the machine"),
        RuntimeError("OutOfMemory of others"),
    ):
        install(FullCard(error))
        with pytest.raises(type(error), match=str(error)):
            FITS[name].fit(*data())


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_so_does_an_answer(install, error):
    X, y = data()
    there = X.view(OnCard)
    install(FullCard())
    classifier, regressor = LinearSVC().fit(X, y), LinearSVR().fit(X, X[:, 0])
    with_kernel = SVC(gamma=0.5, device="cuda").fit(X, y)
    feature_map = Nystroem(20, gamma=0.5).fit(X)
    install(FullCard(error))
    answers = [classifier.predict, classifier.decision_function, regressor.predict]
    for answer in (*answers, with_kernel.predict, with_kernel.decision_function, feature_map.transform):
        with pytest.raises(NoRoomError, match=SENTENCE):
            answer(there)
    with pytest.raises(NoRoomError, match=SENTENCE):
        LinearSVC(device="cuda").fit(feature_map.transform(Chunks((X, y))))


def test_what_is_known_to_have_no_room_is_not_begun(install):
    X, y = data()
    card = install(FullCard())
    linear, with_kernel = LinearSVC().fit(X, y), SVC(gamma=0.5, device="cuda").fit(X, y)
    maps_of = [RandomFourier(2000, gamma=0.5).fit(X), Nystroem(200, gamma=0.5).fit(X)]
    card.free_bytes = X.nbytes
    for estimator in FITS.values():
        with pytest.raises(NoRoomError, match=r"^The data take 0\.0 GB on the GPU, which has 0\.0 GB free"):
            estimator.fit(X, y)
    with pytest.raises(NoRoomError, match="200 rows to be predicted take"):
        with_kernel.predict(X)
    for feature_map in maps_of:
        with pytest.raises(NoRoomError, match=r"\d+ mapped columns of 200 rows take"):
            feature_map.transform(X.view(OnCard))
    with pytest.raises(NoRoomError, match="The rows of a chunk take"):
        make_pipeline(maps_of[0], LinearSVC(device="cuda")).fit(Chunks((X, y)))
    # Rows that lie there take no more memory in a linear fit; a kernel's solver has its own copy.
    assert LinearSVC().fit(X.view(OnCard), y).status_.certified
    assert np.array_equal(linear.predict(X.view(OnCard)), linear.predict(X))
    card.free_bytes = X.nbytes // 2
    with pytest.raises(NoRoomError, match="The data take"):
        SVC(gamma=0.5).fit(X.view(OnCard), y)
    with pytest.raises(NoRoomError, match="A copy of 150 rows takes"):
        CardRows(CardData(card, X.view(OnCard))).take(np.arange(150))
