# SPDX-License-Identifier: BSD-3-Clause
"""The solver for GPUs, with NumPy in CuPy's place: its answers, its parts, and what it is proven by."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin import SVC, Problem, solve
from maxmargin.gpu import cards
from maxmargin.gpu.kernel_rows import CardData, CardKernelRows
from maxmargin.gpu.rounds import Rounds
from maxmargin.kernels import ChiSquared, Gaussian, Laplacian, Linear, Polynomial
from maxmargin.kernels.kernel_rows import KernelRows
from maxmargin.kernels.uncoupled import Blocks
from maxmargin.problem.rows import Rows
from maxmargin.solvers.gpu_working_sets import GpuWorkingSets, Price
from tests.gpu.numpy_card import NumpyCard

KERNELS = [
    Gaussian(0.5),
    Laplacian(0.3),
    ChiSquared(0.2),
    Polynomial(2, 0.5, 1.0),
    Linear(),
    Linear() + 2.0 * Gaussian(0.5) * Laplacian(0.1),
]


def data(n: int = 120, d: int = 4, seed: int = 0):
    random = np.random.default_rng(seed)
    X = random.random((n, d))
    y = np.where(X[:, 0] + 0.3 * random.normal(size=n) > 0.5, 1.0, -1.0)
    return X, y


def on_card(X, kernel, blocks: Blocks | None = None) -> CardKernelRows:
    rows = CardKernelRows(CardData(NumpyCard(kernel), X), Rows(X), kernel)
    rows.blocks = blocks or rows.blocks
    return rows


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_the_same_optimum_as_on_the_cpu(kernel):
    X, y = data()
    weights = np.random.default_rng(1).random(len(y))
    here = solve(Problem.of(KernelRows(X, kernel), y, 3.0, weights=weights), tol=1e-6)
    there = solve(Problem.of(on_card(X, kernel), y, 3.0, weights=weights), tol=1e-4)
    assert there.status.certified
    assert "gpu_working_sets" in there.solver
    assert here.certificate.dual <= there.certificate.primal * (1 + 1e-9)
    assert there.certificate.dual <= here.certificate.primal * (1 + 1e-9)


def test_parts_share_one_intercept():
    """Two blocks far apart: the price of b makes the sum of beta 0, which no block does by itself."""
    X, y = data(200)
    far = np.arange(200) % 3 == 0
    X[far] += 1000.0
    y[far & (X[:, 1] > 1000.2)] = 1.0
    order = np.argsort(far, kind="stable")
    blocks = Blocks(order, np.array([0, int((~far).sum()), 200]))
    model = solve(Problem.of(on_card(X, Gaussian(4.0), blocks), y, 5.0), tol=1e-3)
    assert model.status.certified
    beta = model.alpha * y
    assert abs(beta.sum()) < 1e-9
    assert abs(beta[far].sum()) > 1.0
    whole = solve(Problem.of(KernelRows(X, Gaussian(4.0)), y, 5.0), tol=1e-6)
    assert model.certificate.primal <= whole.certificate.primal * (1 + 1e-3)


def test_more_rows_than_a_set_has():
    X, y = data(2600, 2)
    model = solve(Problem.of(on_card(X, Gaussian(2.0)), y, 10.0), tol=1e-3)
    assert model.status.certified
    assert np.count_nonzero(model.alpha) > 1024


def test_a_matrix_of_all_values_where_rows_are_long():
    random = np.random.default_rng(0)
    X = random.normal(size=(150, 200))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    for kernel in (Gaussian(0.01), Polynomial(2, 0.01, 1.0)):
        rows = on_card(X, kernel)
        model = solve(Problem.of(rows, y, 1.0), tol=1e-3)
        assert model.status.certified


@pytest.mark.parametrize("kernel", [Gaussian(0.01), Polynomial(2, 0.01, 1.0)], ids=str)
def test_long_rows_whose_matrix_has_no_room(kernel, monkeypatch):
    """The rows that matter are solved among themselves; a matrix of 387 of 500 rows has room."""
    random = np.random.default_rng(0)
    X = random.normal(size=(500, 70))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    monkeypatch.setattr(NumpyCard, "free_bytes", 10**6)
    sizes, among = [], Rounds.among
    monkeypatch.setattr(Rounds, "among", lambda self, which: sizes.append(len(which)) or among(self, which))
    model = solve(Problem.of(on_card(X, kernel), y, 1.0), tol=1e-3)
    assert model.status.certified
    assert sizes[0] == 387 >= max(sizes)
    stopped = solve(Problem.of(on_card(X, kernel), y, 1.0), tol=1e-3, max_time=0.0)
    assert not stopped.status.certified


def test_rows_that_were_left_out_too_early_come_back(monkeypatch):
    """Rows whose scores are not brought up to date take part again when these or a proof tell of them."""
    random = np.random.default_rng(0)
    X = random.normal(size=(500, 70))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    monkeypatch.setattr(NumpyCard, "free_bytes", 10**6)
    take, begun = Rounds.take, []

    def leave_nearly_all_out(self, *given):
        take(self, *given)
        self._near &= self.alpha > 0.0

    monkeypatch.setattr(Rounds, "take", leave_nearly_all_out)
    bring = Rounds._bring_back
    monkeypatch.setattr(Rounds, "_bring_back", lambda self, b: begun.append(1) or bring(self, b))
    assert solve(Problem.of(on_card(X, Gaussian(0.01)), y, 1.0), tol=1e-3).status.certified
    assert begun


def test_a_card_that_the_data_nearly_fill_goes_round_by_round(monkeypatch):
    """Among 17 rows, for which there is room, hardly anything could be solved."""
    random = np.random.default_rng(0)
    X = random.normal(size=(500, 70))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    monkeypatch.setattr(Rounds, "_most_in_matrix", 17)
    monkeypatch.setattr(Rounds, "among", lambda *_: pytest.fail("17 rows were solved among themselves"))
    assert solve(Problem.of(on_card(X, Gaussian(0.01)), y, 1.0), tol=1e-3).status.certified


def test_more_rows_inside_their_walls_than_a_matrix_has_room_for(monkeypatch):
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 70))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    monkeypatch.setattr(Rounds, "_most_in_matrix", 100)
    model = solve(Problem.of(on_card(X, Gaussian(0.02)), y, 100.0), tol=1e-3, max_steps=2000)
    assert model.status.certified
    assert ((model.alpha > 0.0) & (model.alpha < 100.0)).sum() > 100


def test_blocks_of_long_rows(monkeypatch):
    """The scores of a part are brought up to date by products of its rows with those that changed."""
    random = np.random.default_rng(0)
    X = random.normal(size=(500, 70))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    far = np.arange(500) % 2 == 0
    X[far] += 1000.0
    blocks = Blocks(np.argsort(far, kind="stable"), np.array([0, 250, 500]))
    calls, update = [], NumpyCard.add_products
    monkeypatch.setattr(NumpyCard, "add_products", lambda *given: calls.append(update(*given)))
    assert solve(Problem.of(on_card(X, Gaussian(0.01), blocks), y, 1.0), tol=1e-3).status.certified
    assert calls


@pytest.mark.usefixtures("card")
def test_several_classes_whose_matrix_has_no_room(monkeypatch):
    random = np.random.default_rng(0)
    X = random.random((400, 70))
    y = X[:, :3].argmax(axis=1)
    here = SVC(gamma=2.0).fit(X, y)
    monkeypatch.setattr(NumpyCard, "free_bytes", 10**6)
    there = SVC(gamma=2.0, device="cuda").fit(X, y)
    assert there.status_.certified
    assert (there.predict(X) == here.predict(X)).mean() > 0.99


def test_far_from_zero_digits_are_kept():
    """Rows of a part are moved to their mean before they become single precision."""
    X, y = data()
    model = solve(Problem.of(on_card(X + 1e6, Gaussian(0.5)), y, 3.0), tol=1e-3)
    assert model.status.certified


def test_a_start_is_taken():
    X, y = data()
    problem = Problem.of(on_card(X, Gaussian(0.5)), y, 3.0)
    first = solve(problem, tol=1e-3)
    again = solve(problem, tol=1e-3, start=None if first.alpha is None else _start(first))
    assert again.certificate.relative_gap <= first.certificate.relative_gap
    assert len(again.trace) == 1


def _start(model):
    from maxmargin.proof.solution import Solution

    return Solution(alpha=model.alpha, b=model.b)


@pytest.fixture
def card(monkeypatch):
    """A card that the estimator finds."""
    found = NumpyCard(Gaussian(2.0))
    monkeypatch.setattr(cards, "the_card", lambda: found)
    return found


@pytest.mark.parametrize("pairs", ["ovo", "ovr"])
@pytest.mark.usefixtures("card")
def test_the_estimator(pairs):
    random = np.random.default_rng(0)
    X, y = random.random((150, 3)), random.integers(3, size=150)
    y[X[:, 0] > 0.6] = 2
    here = SVC(kernel=Gaussian(2.0), multi_class=pairs).fit(X, y)
    there = SVC(kernel=Gaussian(2.0), multi_class=pairs, device="cuda").fit(X, y)
    assert there.status_.certified
    assert "GPU" in there.solver_
    assert type(there.dual_coef_) is np.ndarray
    for near, far in zip(here.certificate_, there.certificate_, strict=True):
        assert far.dual <= near.primal
        assert near.dual <= far.primal
    assert (there.predict(X) == here.predict(X)).mean() > 0.95
    there.device = "cpu"
    scores = there.decision_function(X)
    there.device = "cuda"
    np.testing.assert_allclose(there.decision_function(X), scores, atol=1e-9)


def test_what_is_missing_is_said():
    try:
        import cupy  # noqa: F401
    except ImportError:
        with pytest.raises(cards.NoCardError, match=r"needs CuPy.*maxmargin\[gpu-cuda13\].*device='cpu'"):
            SVC(device="cuda").fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match="The 'device' parameter of SVC must be 'cuda', 'cpu' or None"):
        SVC(device="gpu").fit([[0.0], [1.0]], [0, 1])


@pytest.mark.usefixtures("card")
def test_kernels_that_only_the_cpu_has_are_refused():
    with pytest.raises(ValueError, match="device='cpu'"):
        SVC(kernel="precomputed", device="cuda").fit(np.eye(4), [0, 1, 0, 1])


def test_too_much_for_the_card():
    found = NumpyCard(Gaussian(1.0))
    found.free_bytes = 100
    with pytest.raises(MemoryError, match="GB on the GPU"):
        CardData(found, np.zeros((10, 10)))


def test_the_price_learns_its_slope():
    price = Price(slope=10.0)
    price.move(1.0)
    assert price.b == pytest.approx(0.05)  # 0.1, and no more than the largest step
    price.move(-0.9)  # the sum of beta has changed its sign, and is hardly smaller: too far
    assert price.slope == 20.0
    assert price.b == pytest.approx(0.05 - 0.045)
    price.move(0.1)  # far smaller: as far as it should be
    assert price.slope == 20.0
    for _ in range(13):
        price.move(0.1)  # the same sign for long, and never smaller: too slow
    assert price.slope == pytest.approx(14.0)
    for balance in np.geomspace(0.1, 0.01, 14):
        price.move(float(balance))
    assert price.slope == pytest.approx(14.0)
    assert price.is_settled(1e-6 * price.slope)
    assert not price.is_settled(1e-5 * price.slope)


def test_rows_that_are_not_on_a_card_are_refused():
    problem = Problem.of(np.eye(2), np.array([1.0, -1.0]))
    with pytest.raises(ValueError, match=r"needs rows that lie on a GPU\. Use SVC\(device='cuda'\)"):
        solve(problem, solver=GpuWorkingSets())
