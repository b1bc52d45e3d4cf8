# SPDX-License-Identifier: BSD-3-Clause
"""Chunks whose rows have room in memory are read once, and their fits prove what those in memory do."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from combinations import every_pair
from maxmargin import Chunks, LinearSVC, LinearSVCCV
from maxmargin.chunks.fit import Wanted, fit_in_passes
from maxmargin.chunks.passes import LocalPasses
from maxmargin.chunks.survey import Room
from maxmargin.files import pack
from maxmargin.proof.model import each_of
from peak_memory import needs_proc

ROWS, COLUMNS = 3000, 8


def data(classes=2):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(ROWS, COLUMNS)) * np.linspace(0.5, 3.0, COLUMNS)
    scores = X @ generator.normal(size=(COLUMNS, classes)) + generator.normal(size=(ROWS, classes))
    return X, scores.argmax(axis=1), generator.choice([0.0, 0.5, 1.0, 2.0], ROWS)


def parts_of(*arrays):
    """A source whose size nobody knows, and the list of how often it was begun."""
    begun = []

    def parts():
        begun.append(1)
        for i in range(0, ROWS, 700):
            yield tuple(each[i : i + 700] for each in arrays)

    return parts, begun


def bits(model):
    values = [
        (proof.primal, proof.dual, proof.b, proof.w.tobytes()) for proof in each_of(model.certificate_)
    ]
    return values, model.n_iter_


@every_pair(
    loss=["hinge", "squared_hinge", "logistic"],
    intercept=["exact", "regularised", "none"],
    layout=["dense", "csr", "float32"],
    classes=[2, 3],
    weighted=[False, True],
    class_weight=[None, "balanced"],
    known=[False, True],
)
def test_one_pass_proves_what_is_true_of_all_rows(
    loss, intercept, layout, classes, weighted, class_weight, known
):
    X, y, weight = data(classes)
    X = {"dense": X, "csr": sparse.csr_matrix(X), "float32": X.astype(np.float32)}[layout]
    arrays = (X, y, weight) if weighted else (X, y)
    form = {"fit_intercept": intercept != "none", "regularize_intercept": intercept == "regularised"}
    form |= {"loss": loss, "class_weight": class_weight}
    source, begun = parts_of(*arrays)
    model = LinearSVC(tol=1e-3, **form).fit(Chunks(arrays if known else source, rows=500))
    assert model.status_.certified
    assert model.n_iter_ == 1
    assert len(begun) == (0 if known else 1)
    assert "in memory" in model.solver_
    exact = LinearSVC(tol=1e-9, **form).fit(*arrays)
    for mine, best in zip(each_of(model.certificate_), each_of(exact.certificate_), strict=True):
        assert mine.relative_gap <= 1e-3
        assert mine.dual <= best.primal * (1 + 1e-12)
        assert mine.primal >= best.dual * (1 - 1e-12)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_number_of_workers_changes_no_bit(loss):
    X, y, _ = data()
    answers = []
    for workers in (1, 2, 4):
        fitted = fit_in_passes(LocalPasses(Chunks((X, y), rows=300), workers), Wanted(loss=loss, threads=1))
        proof = fitted.models[0].certificate
        answers.append((proof.w.tobytes(), proof.b, proof.primal, proof.dual))
        assert fitted.passes == 1
    assert answers[0] == answers[1] == answers[2]


@pytest.mark.parametrize("known", [False, True])
def test_rows_that_turn_out_to_have_no_room_are_fitted_as_if_none_had_been_taken_along(request, known):
    # Rows grow on the way, so that those at the beginning promise too little.
    X, y, _ = data()
    X[:1500, 1:] = 0.0
    X = sparse.csr_matrix(X)
    source = (X, y) if known else parts_of(X, y)[0]
    model = LinearSVC(loss="hinge", tol=1e-3).fit(Chunks(source, rows=100, memory=690_000))
    request.getfixturevalue("in_passes")
    again = LinearSVC(loss="hinge", tol=1e-3).fit(Chunks(source, rows=100, memory=690_000))
    assert model.status_.certified
    assert model.n_iter_ > 1
    assert bits(model) == bits(again)


def test_what_is_solved_in_memory_is_what_has_room_and_is_sooner_done():
    room = Room(1 << 26, 1 << 30)
    assert room.has_all(300_000, 100, 400.0, known=True)
    assert room.has_all(100_000, 20, 160.0, known=True)
    assert not room.has_all(1_000_000, 20, 160.0, known=True)
    assert room.has_all(1_000_000, 20, 160.0, known=False)
    assert not room.has_all(10_000_000, 20, 160.0, known=False)
    assert not Room(1 << 26).has_all(1, 1, 1.0, known=False)


def test_folds_and_values_of_C_are_fitted_and_scored_in_two_passes(request):
    X, y, weight = data(3)
    options = {"Cs": [0.1, 1.0], "cv": 3, "loss": "hinge", "tol": 1e-3}
    source, begun = parts_of(X, y, weight)
    model = LinearSVCCV(**options).fit(Chunks(source))
    assert len(begun) == model.n_passes_ == 2
    assert model.cv_results_["max_relative_gap"].max() <= 1e-3
    request.getfixturevalue("in_passes")
    other = LinearSVCCV(**options).fit(Chunks(source))
    assert model.C_ == other.C_
    scores = model.cv_results_["mean_test_score"], other.cv_results_["mean_test_score"]
    assert scores[0] == pytest.approx(scores[1], abs=5e-3)


def test_a_given_point_is_the_first_that_is_proven():
    X, y, _ = data()
    start = np.linspace(-0.1, 0.1, COLUMNS), 0.25
    wanted = Wanted(loss="hinge", tol=1e-3, threads=1, starts=(start,))
    model = fit_in_passes(LocalPasses(Chunks((X, y), rows=300), 1), wanted).models[0]
    w, b = start
    value = 0.5 * w @ w + np.maximum(0.0, 1.0 - (2 * y - 1) * (X @ w + b)).sum()
    assert model.trace.records[0].primal == pytest.approx(value, rel=1e-12)
    assert model.certificate.relative_gap <= 1e-3


def test_limits_and_callbacks_end_a_fit_in_memory():
    X, y, _ = data(3)
    told = []
    model = LinearSVC(loss="hinge", tol=1e-3, callback=lambda progress: told.append(progress) or True)
    with pytest.warns(match="the callback asked to stop"):
        model.fit(Chunks((X, y)))
    assert [progress.step for progress in told] == [1]
    assert model.certificate_[0].relative_gap <= 1e-3
    with pytest.warns(match="max_time ran out"):
        LinearSVC(loss="hinge", max_time=0.0).fit(Chunks((X, y)))


MEASURED = """
import sys
from pathlib import Path
from maxmargin import Chunks, LinearSVC

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line.split()[1] for line in lines if line.startswith("VmHWM")))

path, loss, memory = sys.argv[1], sys.argv[2], int(sys.argv[3])
LinearSVC(loss=loss, tol=1e-2, n_jobs=2).fit(Chunks(path + ".small"))
before = peak()
model = LinearSVC(loss=loss, tol=1e-4, n_jobs=2).fit(Chunks(path, memory=memory))
assert model.n_iter_ == 1 and model.status_.certified
print(peak() - before)
"""


@needs_proc
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
@pytest.mark.parametrize(("rows", "columns"), [(60_000, 80), (150_000, 4)])
def test_a_fit_in_memory_takes_no_more_than_its_memory(tmp_path, loss, rows, columns):
    def drawn(parts):
        for seed in range(parts):
            generator = np.random.default_rng(seed)
            X = generator.normal(size=(rows // 10, columns)).astype(np.float32)
            yield X, X[:, 0] + 0.5 * generator.normal(size=len(X)) > 0

    pack(lambda: drawn(10), tmp_path / "rows.mmd")
    pack(lambda: drawn(1), tmp_path / "rows.mmd.small")
    memory = 3 * rows * (4 * columns + 48) + 1_000_000
    command = [sys.executable, "-c", MEASURED, str(tmp_path / "rows.mmd"), loss, str(memory)]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.stdout, ran.stderr
    assert int(ran.stdout) <= memory
