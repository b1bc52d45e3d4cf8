# SPDX-License-Identifier: BSD-3-Clause
"""Chunks mapped on a GPU, with NumPy in CuPy's place: what passes see, what is proven, refusals."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline

from combinations import every_pair
from maxmargin import Chunks, LinearSVC, LinearSVCCV
from maxmargin.chunks import passes as local
from maxmargin.chunks.fit import Wanted, fit_in_passes
from maxmargin.estimators.in_chunks import fit_passes
from maxmargin.features import Nystroem, PolynomialSketch, RandomFourier
from maxmargin.gpu import cards, maps
from maxmargin.kernels import Gaussian
from maxmargin.problem import Problem
from maxmargin.proof.model import each_of
from tests.gpu.numpy_card import NumpyCard

ROWS = 3000
MAPS = {"nystroem": lambda: Nystroem(50, gamma=0.3), "fourier": lambda: RandomFourier(60, gamma=0.3)}


class RoughCard(NumpyCard):
    """A card whose values have other last digits than those of the CPU, as those of a real one may have.

    It counts the matrices that it is sent and gives back.
    """

    name = "rough"

    def __init__(self, kernel):
        super().__init__(kernel)
        self.sent, self.received = 0, 0

    def matrix(self, X):
        self.sent += 1
        return super().matrix(X)

    def receive(self, values):
        self.received += 1
        return values * (1.0 + 2.0**-40)


@pytest.fixture(autouse=True)
def card(monkeypatch):
    found = RoughCard(Gaussian(0.3))
    for module in (cards, maps):
        monkeypatch.setattr(module, "the_card", lambda: found)
    return found


def data(classes=2):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(ROWS, 4))
    X[generator.random(X.shape) < 0.2] = 0.0
    values = np.sin(2.0 * X[:, 0]) + X[:, 1] ** 2 - 1.0 + 0.3 * generator.normal(size=ROWS)
    return X, np.digitize(values, [0.0, 1.0][: classes - 1])


def as_mapped_there(features, X):
    """What the card makes of rows."""
    return features.transform(X.astype(np.float64)) * (1.0 + 2.0**-40)


@every_pair(
    loss=["hinge", "squared_hinge", "logistic"],
    map=list(MAPS),
    layout=["dense", "csr", "float32"],
    classes=[2, 3],
    memory=[3_000_000, 30_000_000],
)
def test_what_is_proven_is_true_of_the_rows_that_the_card_has_mapped(loss, map, layout, classes, memory):
    X, y = data(classes)
    X = {"dense": X, "csr": sparse.csr_matrix(X), "float32": X.astype(np.float32)}[layout]
    options = {"loss": loss, "tol": 1e-3}
    here, there = (
        make_pipeline(MAPS[map](), LinearSVC(**options, device=device)).fit(Chunks((X, y), memory=memory))
        for device in (None, "cuda")
    )
    last = there[-1]
    assert last.status_.certified
    mapped = as_mapped_there(there[0], X)
    positive = 1 if classes == 2 else 0
    problem = Problem.of(mapped, np.where(y == positive, 1.0, -1.0), 1.0, loss=loss)
    proof = each_of(last.certificate_)[0]
    assert proof.primal == pytest.approx(problem.primal(last.coef_[0], last.intercept_[0]), rel=1e-10)
    close = LinearSVC(**options | {"tol": 1e-8}).fit(mapped, y)
    for mine, theirs in zip(each_of(last.certificate_), each_of(close.certificate_), strict=True):
        assert mine.relative_gap <= 1e-3
        assert mine.dual <= theirs.primal * (1 + 1e-12)
        assert theirs.dual <= mine.primal * (1 + 1e-12)
    # The answers are those of the CPU but for what tol leaves open.
    for mine, theirs in zip(each_of(last.certificate_), each_of(here[-1].certificate_), strict=True):
        assert mine.primal == pytest.approx(theirs.primal, rel=2e-3)
    assert np.mean(there.predict(X) == here.predict(X)) > 0.99


@pytest.mark.parametrize("map", MAPS)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_every_pass_sees_the_same_bits(map, loss, monkeypatch, card):
    """A proof joins sums of several passes, so all of them have to be about the same numbers."""
    seen = []
    over = local.LocalPasses.over

    def noting(self, task, *arguments, each=None):
        seen.append([])
        chunks = self.chunks

        class Noted:
            memory = chunks.memory

            def __iter__(self):
                for chunk in chunks:
                    seen[-1].append(hashlib.sha256(chunk.X.tobytes()).hexdigest())
                    yield chunk

        passes = local.LocalPasses(Noted(), self.workers)
        return over(passes, task, *arguments, each=each)

    monkeypatch.setattr(local.LocalPasses, "over", noting)
    X, y = data()
    features = MAPS[map]().fit(X)
    chunks = features.transform(Chunks((X, y), rows=700, memory=1_000_000))
    for workers in (1, 3):
        seen.clear()
        card.sent = card.received = 0
        model = LinearSVC(loss=loss, tol=1e-6, device="cuda", n_jobs=workers).fit(chunks)
        assert model.n_iter_ == len(seen) >= 3
        assert len(seen[0]) == 5
        assert all(one == seen[0] for one in seen[1:])
        assert card.received == 5 * len(seen)  # each chunk goes there and comes back once in each pass
    # The last bits of a mapped row may depend on the rows beside it, so each chunk is mapped by itself.
    parts = [as_mapped_there(features, part) for part in np.split(X, range(700, ROWS, 700))]
    assert seen[0] == [hashlib.sha256(np.ascontiguousarray(part).tobytes()).hexdigest() for part in parts]


def test_the_number_of_workers_changes_no_bit(card):
    found = []
    chunks = Nystroem(50, gamma=0.3).fit_transform(Chunks(data(), rows=400, memory=2_000_000))
    for workers in (1, 2, 4):
        passes = local.LocalPasses(chunks.mapped_on(card), workers)
        fitted = fit_in_passes(passes, Wanted(loss="hinge", memory=2_000_000, threads=1), chunks.surveyed)
        proof = fitted.models[0].certificate
        found.append((proof.w.tobytes(), proof.b, proof.primal, proof.dual, fitted.passes))
    assert found[0] == found[1] == found[2]


def test_a_choice_of_C(card):
    options = {"Cs": [0.1, 1.0], "cv": 3, "tol": 1e-3}
    here = make_pipeline(MAPS["fourier"](), LinearSVCCV(**options)).fit(Chunks(data()))
    assert not card.received
    there = make_pipeline(MAPS["fourier"](), LinearSVCCV(**options, device="cuda")).fit(Chunks(data()))
    assert card.received
    assert there[-1].C_ == here[-1].C_
    assert there[-1].best_score_ == pytest.approx(here[-1].best_score_, abs=2e-3)


def test_a_state_that_is_kept_is_that_of_one_device(tmp_path):
    X, y = data()
    chunks = Chunks((X, y), memory=400_000, checkpoint=tmp_path / "state")
    chunks = RandomFourier(20, gamma=0.3).fit(X).transform(chunks)
    with pytest.warns(ConvergenceWarning, match="Budget spent"):
        LinearSVC(tol=1e-9, max_iter=2, device="cuda").fit(chunks)
    with pytest.raises(ValueError, match="state"):
        LinearSVC(tol=1e-9).fit(chunks)
    assert LinearSVC(tol=1e-6, device="cuda").fit(chunks).status_.certified


@pytest.mark.parametrize("estimator", [LinearSVC(device="cuda"), LinearSVCCV(device="cuda")])
def test_chunks_without_a_map_say_why_they_stay_on_the_cpu(estimator):
    words = r"On a GPU chunks are mapped, and these have no map: .* on the CPU\. Leave device out, or put "
    with pytest.raises(ValueError, match=words):
        estimator.fit(Chunks(data()))


def test_passes_on_a_cluster_stay_there():
    with pytest.raises(ValueError, match="stay on the CPUs of its workers: leave device out"):
        fit_passes(LinearSVC(device="cuda"), local.LocalPasses(Chunks(data())))


def test_maps_of_the_cpu_say_so():
    model = make_pipeline(PolynomialSketch(2, 0.3, columns=64), LinearSVC(device="cuda"))
    with pytest.raises(ValueError, match=r"PolynomialSketch maps rows on the CPU\. .*RandomFourier or"):
        model.fit(Chunks(data()))


def test_a_chunk_that_has_no_room_is_refused_with_the_cure(card):
    card.free_bytes = 1000
    model = make_pipeline(Nystroem(50, gamma=0.3), LinearSVC(device="cuda"))
    with pytest.raises(MemoryError, match=r"rows of a chunk take .* GB on the GPU.*Use device='cpu'"):
        model.fit(Chunks(data()))
