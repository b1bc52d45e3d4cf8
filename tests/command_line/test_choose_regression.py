# SPDX-License-Identifier: BSD-3-Clause
"""``choose --task regression``: the values that are best on held-out rows, and the model of all rows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, KFold

from maxmargin import SVR, LinearSVR
from written_files import write_libsvm

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(90, 3))
Y = np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.1 * RANDOM.normal(size=90)


@pytest.fixture
def data(tmp_path):
    write_libsvm(tmp_path / "data.svm", X, Y)
    return tmp_path / "data.svm"


def test_the_choice_is_that_of_a_grid_search(data, tmp_path, run, answer):
    model = tmp_path / "m.mm"
    given = ["choose", data, "-o", model, "--task", "regression", "--folds", 3, "--values", 4]
    code, said = answer(*given, "--epsilons", 2)
    assert code == 0
    choice = said["choice"]
    grid = {name: sorted({one[name] for one in choice["values"]}) for name in ("C", "epsilon")}
    assert [len(values) for values in grid.values()] == [4, 2]
    folds = KFold(3, shuffle=True, random_state=0)
    peer = GridSearchCV(LinearSVR(), grid, cv=folds).fit(X, Y)
    assert choice["score"] == pytest.approx(peer.best_score_, abs=1e-3)
    assert all(one["max_relative_gap"] <= 1e-4 for one in choice["values"])
    assert choice["C"] == LinearSVR.load(model).C
    assert run("certify", model, data)[0] == 0
    code, out, _ = run(*given, "--test", data)
    assert (code, "on held-out rows" in out, "Test data" in out) == (0, True, True)


def test_a_kernel_has_gamma_besides(data, tmp_path, run, answer):
    given = ["choose", data, "-o", tmp_path / "m.mm", "--task", "regression", "--kernel", "gaussian"]
    code, said = answer(*given, "--folds", 3, "--values", 2, "--gammas", 2, "--epsilons", 1)
    assert code == 0
    assert {"C", "epsilon", "gamma", "score"} <= set(said["choice"])
    assert said["choice"]["C"] == SVR.load(tmp_path / "m.mm").C
    assert run("certify", tmp_path / "m.mm", data)[0] == 0


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--task", "ranking"], "--task must be classification or regression"),
        (["--epsilons", 2], "--epsilons is for --task regression"),
        (["--task", "regression", "--class-weight", "balanced"], "--class-weight is not for choose"),
        (["--task", "regression", "--gammas", 2], "--gammas is for kernels"),
        (["--task", "regression", "--low", 5, "--high", 1], "--low and --high must be finite"),
        (["--task", "regression", "--folds", 91], "--folds must be at most the 90 rows"),
    ],
)
def test_what_makes_no_sense_is_refused(data, tmp_path, run, options, sentence):
    code, _, err = run("choose", data, "-o", tmp_path / "m.mm", *options)
    assert (code, sentence in err) == (2, True), err


@pytest.mark.parametrize("more", [[], ["--kernel", "rbf"], ["--loss", "squared_epsilon_insensitive"]])
def test_solvers_of_regressions_are_compared(data, tmp_path, run, answer, more):
    given = ["compare", data, "-o", tmp_path / "c.svg", "--task", "regression", "--epsilon", 0.1]
    code, said = answer(*given, "--max-time", 0.5, "--tol", 1e-3, *more)
    assert code == 0
    reached = [one["primal"] for one in said["solvers"] if one["status"] == "certified"]
    assert len(reached) >= 1
    assert max(reached) <= min(reached) * 1.002


def test_compare_refuses_what_makes_no_sense(data, tmp_path, run):
    for options, sentence in (
        (["--task", "ranking"], "--task must be classification or regression"),
        (["--task", "regression", "--loss", "hinge"], "--loss must be one of epsilon_insensitive"),
        (["--epsilon", 0.1], "--epsilon is for --task regression"),
    ):
        code, _, err = run("compare", data, "-o", tmp_path / "c.svg", *options)
        assert (code, sentence in err) == (2, True), err
