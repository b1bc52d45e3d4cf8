# SPDX-License-Identifier: BSD-3-Clause
"""What needs a GPU: the programs against their NumPy twins, fits, predictions, the same bits twice."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from maxmargin import SVC, Chunks, LinearSVC, LinearSVCCV, LinearSVR, Problem, core, path
from maxmargin.features import Nystroem, RandomFourier
from maxmargin.gpu.bytes import byte_rows
from maxmargin.gpu.cards import NoCardError, NoRoomError, the_card
from maxmargin.gpu.halves import halves_of
from maxmargin.gpu.kernel_rows import CardData, CardKernelRows
from maxmargin.gpu.rounds import Rounds
from maxmargin.gpu.rows import CardRows
from maxmargin.gpu.scores import values_of_bytes
from maxmargin.kernels import ChiSquared, Gaussian, Laplacian, Linear, Polynomial, Sigmoid
from maxmargin.problem.rows import Rows, TellingOfRoom
from tests.gpu.numpy_card import NumpyCard

try:
    CARD = the_card()
except NoCardError as error:
    pytest.skip(str(error), allow_module_level=True)

KERNELS = [
    Gaussian(0.5),
    Laplacian(0.3),
    ChiSquared(0.2),
    Polynomial(3, 0.5, 1.0),
    Linear(),
    Sigmoid(0.1, 0.2),
    Linear() + 2.0 * Gaussian(0.5) * Laplacian(0.1),
]


def data(n: int = 700, d: int = 21, seed: int = 0):
    random = np.random.default_rng(seed)
    X = random.random((n, d))
    y = np.where(X[:, 0] + X[:, 1] + 0.3 * random.normal(size=n) > 1.0, 1.0, -1.0)
    return X, y


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", [21, 200])
def test_scores_are_those_of_the_cpu(kernel, dtype, columns):
    X, _ = data(d=columns)
    X = X.astype(dtype)
    w = np.random.default_rng(1).normal(size=len(X))
    w[::3] = 0.0
    rows = CardKernelRows(CardData(CARD, X), Rows(X), kernel)
    expected = kernel(X.astype(np.float64)) @ w
    per_length, constant = rows.score_error(w)
    error = np.abs(rows.scores(w) - expected)
    assert (error <= 2.0 * (per_length * rows.lengths + constant)).all()


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize(("priced", "shared"), [(False, False), (True, False), (False, True)])
def test_rounds_are_those_of_numpy(kernel, priced, shared):
    X, y = data(1500)
    price = 0.1 if priced else None
    order, costs = np.random.default_rng(0).permutation(len(y)), np.full(len(y), 2.0)
    costs[::50] = 0.0
    each = []
    for card in (CARD, NumpyCard(kernel)):
        rows = CardKernelRows(CardData(card, X), Rows(X), kernel)
        rounds = Rounds(rows, order, np.array([0, 600, len(y)]), y[order], costs[order], shared=shared)
        for _ in range(2):
            facts = rounds.select(price)
            rounds.move(price, 0.5, 1e-3, 20)
        each.append((rounds, facts))
    (there, told), (here, expected) = each
    np.testing.assert_allclose(np.array(told), np.array(expected), rtol=2e-3, atol=1e-3)
    np.testing.assert_allclose(CARD.get(there.scores), here.scores, rtol=1e-3, atol=2e-3)


def test_looks_at_large_parts_choose_the_rows_that_numpy_does():
    """Parts of two and more looks; few rows lie so near to the edge of a bin that rounding moves them."""
    X, y = data(20_000, 2)
    order, costs = np.random.default_rng(0).permutation(len(y)), np.full(len(y), 2.0)
    each = []
    for card in (CARD, NumpyCard(Gaussian(2.0))):
        rows = CardKernelRows(CardData(card, X), Rows(X), Gaussian(2.0))
        rounds = Rounds(rows, order, np.array([0, 5000, 5001, len(y)]), y[order], costs[order])
        facts = rounds.select(None)
        each.append((facts, card.get(rounds._sets), card.get(rounds._marked)))
    (told, there, marks), (expected, here, _) = each
    np.testing.assert_allclose(np.array(told), np.array(expected), rtol=1e-6, atol=1e-9)
    for ours, theirs in zip(there, here, strict=True):
        assert len(set(ours) ^ set(theirs)) <= 4
        chosen = ours[ours >= 0]
        assert (np.diff(chosen) > 0).all()
    assert not marks.any()


@pytest.mark.parametrize("columns", [3, 70, 784])
def test_products_in_halves(columns):
    X = np.random.default_rng(columns).normal(size=(3000, columns)).astype(np.float32)
    halves = halves_of(CARD, CARD.put(X))
    which, out = CARD.put(np.arange(5, 2000, 3)), CARD.arrays.empty((1000, 665), np.float32)
    halves.products(slice(1000, 2000), halves.swapped(which), out)
    lengths = np.linalg.norm(X.astype(np.float64), axis=1)
    exact = X[1000:2000].astype(np.float64) @ X[5:2000:3].astype(np.float64).T
    error = abs(CARD.get(out) - exact) / (lengths[1000:2000, np.newaxis] * lengths[5:2000:3])
    print("products in halves are off by", error.max(), "of the lengths")
    assert error.max() < 2e-6


@pytest.mark.parametrize("kernel", ["rbf", "poly", "laplacian", "chi2", "linear"])
def test_fits_are_certified_and_confirmed(kernel):
    X, y = data(3000, 30)
    model = SVC(kernel=kernel, device="cuda").fit(X, y)
    assert model.status_.certified
    assert CARD.name in model.solver_
    model.device = "cpu"
    here = model.decision_function(X)
    model.device = "cuda"
    np.testing.assert_allclose(model.decision_function(X), here, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("kernel", [Gaussian(0.02), Polynomial(2, 0.01, 1.0)], ids=str)
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("room", [False, True])
def test_rounds_of_long_rows_are_those_of_numpy(kernel, shared, room, monkeypatch):
    """With a matrix of all values, and with products of all rows with those that changed."""
    X, y = data(1500, 150)
    if not room:
        monkeypatch.setattr(Rounds, "_most_in_matrix", 100)
    order, costs = np.random.default_rng(0).permutation(len(y)), np.full(len(y), 2.0)
    each = []
    for card in (CARD, NumpyCard(kernel)):
        rows = CardKernelRows(CardData(card, X), Rows(X), kernel)
        rounds = Rounds(rows, order, np.array([0, 600, len(y)]), y[order], costs[order], shared=shared)
        for _ in range(2):
            rounds.select(None)
            rounds.move(None, 0.5, 1e-3, 40)
        each.append(card.get(rounds.scores))
    np.testing.assert_allclose(*each, rtol=1e-3, atol=2e-3)


def test_the_same_bits_twice(monkeypatch):
    X, y = data(5000, 200)
    # Values computed when needed, a matrix of all of them, and one of those that matter.
    for columns, most in ((20, 10_000), (200, 10_000), (200, 2_000)):
        monkeypatch.setattr(Rounds, "_most_in_matrix", most)
        fits = [SVC(C=10.0, device="cuda", random_state=3).fit(X[:, :columns], y) for _ in range(2)]
        np.testing.assert_array_equal(fits[0].dual_coef_, fits[1].dual_coef_)


def test_sparse_rows_and_several_classes():
    random = np.random.default_rng(0)
    X = sparse.random(2000, 50, 0.2, "csr", random_state=0)
    y = random.integers(4, size=2000)
    there, here = SVC(device="cuda").fit(X, y), SVC().fit(X, y)
    assert there.status_.certified
    assert (there.predict(X) == here.predict(X)).mean() > 0.98


def test_arrays_that_lie_on_the_card():
    X, y = data()
    model = SVC().fit(CARD.put(X), CARD.put(y))
    assert CARD.name in model.solver_
    assert isinstance(model.dual_coef_, np.ndarray)
    answer = model.predict(CARD.put(X))
    np.testing.assert_array_equal(CARD.get(answer), model.predict(X))
    torch = pytest.importorskip("torch")
    tensor = torch.as_tensor(X, device="cuda")
    np.testing.assert_array_equal(CARD.get(CARD.put(model.predict(tensor))), model.predict(X))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_passes_are_those_of_numpy(dtype):
    X, _ = data(9001, 45)
    X = X.astype(dtype)
    there, here = (CardRows(CardData(card, X)) for card in (CARD, NumpyCard(Linear())))
    random = np.random.default_rng(0)
    w, c = random.normal(size=45), random.normal(size=9001)
    c[::3] = 0.0
    np.testing.assert_allclose(there.scores(w), here.scores(w), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(there.combine(c), here.combine(c), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(there.gram(np.abs(c)), here.gram(np.abs(c)), rtol=1e-10)
    np.testing.assert_allclose(there.squared_norms, here.squared_norms, rtol=1e-12)
    np.testing.assert_array_equal(there.combine(c), there.combine(c))


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_linear_fits(loss):
    X, y = data(20000, 60)
    here, there = LinearSVC(loss=loss, random_state=0).fit(X, y), LinearSVC(loss=loss).fit(CARD.put(X), y)
    assert there.status_.certified
    assert there.certificate_.dual <= here.certificate_.primal
    assert here.certificate_.dual <= there.certificate_.primal
    assert isinstance(there.predict(CARD.put(X)), type(CARD.put(y)))


def test_long_arrays_come_back_as_they_went():
    values = np.random.default_rng(0).normal(size=300_001)
    there = CARD.send(values, core.ALL_CORES)
    np.testing.assert_array_equal(CARD.get(there), values)
    np.testing.assert_array_equal(CARD.receive(there), values)
    X = CARD.put(np.ones((300_001, 1)))
    rows = CardRows(CardData(CARD, X))
    np.testing.assert_array_equal(rows.scores(np.full(1, 0.5)), np.full(300_001, 0.5))
    products, sums, total = rows.bordered_gram(values)
    np.testing.assert_allclose([products[0, 0], sums[0], total], values.sum(), rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_at_several_points(dtype):
    X, _ = data(9001, 45)
    rows, points = CardRows(CardData(CARD, X.astype(dtype))), np.random.default_rng(0).normal(size=(4, 45))
    expected = [rows.scores(w) for w in points]
    np.testing.assert_allclose(rows.scores_at(points), expected, rtol=1e-12, atol=1e-12)
    taken = rows.take(np.array([8, 8, 3]))
    np.testing.assert_array_equal(taken.scores(points[0]), expected[0][[8, 8, 3]])


def test_other_estimators_on_rows_of_a_card():
    X, y = data(20000, 30)
    there, labels = CARD.put(X), CARD.put(y)
    chosen = LinearSVCCV(Cs=[0.01, 1.0], cv=3, random_state=0).fit(there, labels)
    here = LinearSVCCV(Cs=[0.01, 1.0], cv=3, random_state=0).fit(X, y)
    assert chosen.C_ == here.C_
    assert chosen.cv_results_["max_relative_gap"].max() <= 1e-4
    regressor = LinearSVR(epsilon=0.1).fit(there, CARD.put(X[:, 0]))
    assert regressor.status_.certified
    assert regressor.score(there, CARD.put(X[:, 0])) > 0.9
    several = LinearSVC().fit(there, CARD.put(np.digitize(X[:, 0], [0.3, 0.6])))
    np.testing.assert_allclose(CARD.get(several.decision_function(there)), several.decision_function(X))
    assert 0.5 < several.score(there, CARD.put(np.digitize(X[:, 0], [0.3, 0.6]))) <= 1.0
    models = path(Problem.of(there, y), [0.01, 0.1, 1.0]).models
    assert all(model.status.certified for model in models)


@pytest.mark.parametrize("feature_map", [RandomFourier(200, gamma=0.5), Nystroem(150, gamma=0.5)], ids=repr)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_are_mapped_where_they_lie(feature_map, dtype):
    X, y = data(3000)
    X = X.astype(dtype)
    expected = feature_map.fit(X).transform(X)
    there = feature_map.transform(CARD.put(X))
    assert there.dtype == dtype
    tolerance = 1e-3 if dtype == np.float32 else 1e-10
    np.testing.assert_allclose(CARD.get(there), expected, atol=tolerance * abs(expected).max())
    assert LinearSVC().fit(there, y).status_.certified


@pytest.mark.parametrize("unit", [1.0, 1 / 255])
@pytest.mark.parametrize("count", [1, 130])
def test_rows_of_bytes_are_multiplied_without_rounding(unit, count):
    random = np.random.default_rng(0)
    X, Z = (unit * random.integers(0, 256, size=(n, 101)) for n in (count, 77))
    kernel = Gaussian(1e-4 / unit**2)
    rows, others = (byte_rows(CARD, CARD.put(some), unit) for some in (X, Z))
    assert rows is not None
    assert others is not None
    ((inside, values),) = values_of_bytes(CARD, kernel, rows, others)
    assert inside == slice(0, count)
    np.testing.assert_allclose(CARD.get(values), kernel(X, Z), rtol=1e-12)


def test_images_are_predicted_as_on_the_cpu():
    X = np.random.default_rng(1).integers(0, 256, size=(400, 64)) / 255.0
    y = np.digitize(X[:, :4].sum(axis=1), [1.5, 2.5])
    model = SVC(C=10, gamma=0.05, device="cuda").fit(X, y)
    there = CARD.put(X)
    scores = CARD.get(model.decision_function(there))
    np.testing.assert_allclose(scores, model.decision_function(X), atol=1e-9)
    assert np.array_equal(CARD.get(model.predict(there)), SVC(C=10, gamma=0.05).fit(X, y).predict(X))


@pytest.mark.parametrize("feature_map", [RandomFourier(200, gamma=0.5), Nystroem(150, gamma=0.5)], ids=repr)
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix])
def test_chunks_are_mapped_there_and_every_pass_sees_the_same_bits(feature_map, layout):
    X, y = data(9000)
    feature_map.fit(X)
    chunks = feature_map.transform(Chunks((layout(X), y), rows=2000))
    passes = [[chunk.X for chunk in chunks.mapped_on(CARD)] for _ in range(3)]
    for mapped, again, third in zip(*passes, strict=True):
        assert mapped.tobytes() == again.tobytes() == third.tobytes()
    np.testing.assert_allclose(np.concatenate(passes[0]), feature_map.transform(X), atol=1e-9)
    here, there = (LinearSVC(tol=1e-5, device=device).fit(chunks) for device in (None, "cuda"))
    assert there.status_.certified
    assert there.certificate_.primal == pytest.approx(here.certificate_.primal, rel=3e-5)


def test_rows_that_lie_there_need_no_room_again():
    there = CARD.put(np.ones((1000, 7)))
    assert CARD.data(there).X.data.ptr == there.data.ptr


def test_memory_that_runs_out_is_said():
    words = r"The GPU has too little memory for .*Out of memory allocating"
    with pytest.raises(NoRoomError, match=words), TellingOfRoom():
        CARD.arrays.empty(1 << 50, np.uint8)
