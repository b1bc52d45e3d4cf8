# SPDX-License-Identifier: BSD-3-Clause
"""``--device cuda`` of train and choose, with NumPy in CuPy's place: what runs there, what does not."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from maxmargin.files import load_model, pack, write_libsvm
from maxmargin.gpu import cards, maps
from maxmargin.kernels import Gaussian
from tests.gpu.numpy_card import NumpyCard


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("device")
    generator = np.random.default_rng(0)
    X = np.round(generator.normal(size=(600, 5)), 3)
    values = X @ np.arange(5.0) + generator.normal(size=600)
    write_libsvm(folder / "two.svm", X, (values > 0.5).astype(int))
    write_libsvm(folder / "three.svm", X, np.digitize(values, [-2.0, 2.0]))
    write_libsvm(folder / "numbers.svm", X, np.round(values, 3))
    rows = generator.normal(size=(12_000, 5))
    pack(lambda: [(rows, (np.sin(2.0 * rows[:, 0]) + rows[:, 1] > 0.3).astype(int))], folder / "many.mmd")
    return folder


@pytest.fixture
def card(monkeypatch):
    found = NumpyCard(Gaussian(0.3))
    for module in (cards, maps):
        monkeypatch.setattr(module, "the_card", lambda: found)
    return found


@pytest.fixture
def seen(card, monkeypatch):
    """How many matrices went to the card, and what became rows there."""
    found = []
    matrix = card.matrix
    monkeypatch.setattr(card, "matrix", lambda X: found.append(X.shape) or matrix(X))
    return found


@pytest.mark.parametrize(
    ("data", "given"),
    [
        ("two.svm", []),
        ("three.svm", ["--loss", "hinge"]),
        ("three.svm", ["--loss", "logistic", "--intercept", "regularised"]),
        ("two.svm", ["-C", "inf"]),
        ("two.svm", ["--hold-out", "0.25"]),
        ("numbers.svm", ["--task", "regression", "--epsilon", "0.2"]),
        ("numbers.svm", ["--task", "regression", "--loss", "squared_epsilon_insensitive"]),
        ("two.svm", ["--kernel", "gaussian", "--gamma", "0.3"]),
    ],
)
def test_train_fits_on_the_card_what_it_fits_here(answer, folder, tmp_path, seen, data, given):
    if given == ["-C", "inf"]:
        X = np.random.default_rng(1).normal(size=(100, 5))
        data = tmp_path / "apart.svm"
        write_libsvm(data, X[abs(X[:, 0]) > 0.3], X[abs(X[:, 0]) > 0.3, 0] > 0)
    model, common = tmp_path / "m", ("train", folder / data, "-o", tmp_path / "m", *given)
    code, here = answer(*common, "--device", "cpu")
    assert (code, seen) == (0, [])
    code, there = answer(*common, "--device", "cuda")
    assert (code, there["certified"]) == (0, True)
    assert seen
    assert seen[-1][1] == 5
    assert "the rows lie on a GPU" in there["solver"] or "--kernel" not in given
    values = [found.get("primal") or found["certificates"][0]["primal"] for found in (here, there)]
    assert values[1] == pytest.approx(values[0], rel=3e-3)
    if "regression" not in given:
        assert answer("certify", model, folder / data)[0] == 0
    assert answer("predict", model, folder / data)[1]["rows"] == there["rows"]


@pytest.mark.parametrize("given", [[], ["--task", "regression", "--epsilons", "1"]])
def test_choose_fits_on_the_card(answer, folder, tmp_path, monkeypatch, seen, given):
    data = folder / ("numbers.svm" if given else "two.svm")
    common = ("choose", data, "-o", tmp_path / "m", "--low", "0.1", "--high", "10", "--values", "2")
    common = (*common, "--folds", "2", *given)
    here = answer(*common)[1]
    assert not seen
    code, there = answer(*common, "--device", "cuda")
    assert code == 0
    assert seen
    assert there["C"] == here["C"]


@pytest.mark.parametrize("features", ["nystroem:40,gamma=0.3", "random-fourier:60,gamma=0.3"])
@pytest.mark.parametrize("memory", ["1GB", "4MB"])
def test_features_are_mapped_there(answer, folder, tmp_path, seen, features, memory):
    given = ("train", folder / "many.mmd", "-o", tmp_path / "m", "--features", features, "--tol", "1e-3")
    code, here = answer(*given, "--memory", memory)
    assert (code, seen) == (0, [])
    code, there = answer(*given, "--memory", memory, "--device", "cuda")
    assert (code, bool(there.get("in_chunks"))) == (0, memory == "4MB")
    assert sum(rows for rows, columns in seen if columns == 5) >= 12_000
    values = [found["certificates"][0]["primal"] for found in (here, there)]
    assert values[1] == pytest.approx(values[0], rel=3e-3)
    code, judged = answer("certify", tmp_path / "m", folder / "many.mmd", "--memory", "1GB")
    assert (code, judged["reasons"]) == (0, [])


def test_rows_held_out_go_through_the_same_map(answer, folder, tmp_path, seen):
    given = ("--features", "nystroem:40,gamma=0.3", "--hold-out", "0.25", "--device", "cuda")
    code, told = answer("train", folder / "many.mmd", "-o", tmp_path / "m", *given)
    assert (code, told["held_out_rows"]) == (0, 3000)
    assert told["held_out_accuracy"] > 0.8


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--penalty", "l1"], "coordinate_descent visits single columns"),
        (["--multi-class", "crammer-singer"], "only offer whole passes. Use --device cpu"),
        (["--solver", "dual_coordinate_ascent"], "rows only offer whole passes"),
        (["--features", "monomials:2"], "not written out stay on the CPU. Use --device cpu"),
        (["--task", "ranking"], "--device is not for --task ranking. Leave it out."),
        (["--task", "one-class"], "--device is not for --task one-class. Leave it out."),
        (
            ["--kernel", "gaussian", "--nu", "0.1"],
            "--device is not for --nu. Leave it out, or give -C in the place of --nu.",
        ),
        (
            ["--task", "regression", "--kernel", "gaussian"],
            "With a kernel, --task regression works on the CPU. Leave --device out, or --kernel",
        ),
    ],
)
@pytest.mark.usefixtures("card")
def test_what_a_card_does_not_take_is_said(run, folder, tmp_path, given, words):
    data = folder / ("numbers.svm" if "regression" in given else "three.svm")
    code, _, err = run("train", data, "-o", tmp_path / "m", "--device", "cuda", *given)
    assert code == 2
    assert words in " ".join(err.split())
    assert not (tmp_path / "m").exists()


@pytest.mark.usefixtures("card")
def test_choose_with_a_kernel_works_on_the_cpu(run, folder, tmp_path):
    given = ("choose", folder / "two.svm", "-o", tmp_path / "m", "--kernel", "gaussian", "--device", "cuda")
    code, _, err = run(*given)
    assert code == 2
    assert "With --kernel, choose works on the CPU. Leave --device out" in " ".join(err.split())


@pytest.mark.usefixtures("card")
def test_chunks_without_a_map_need_the_rows_in_memory(run, folder, tmp_path):
    given = ("train", folder / "many.mmd", "-o", tmp_path / "m", "--device", "cuda", "--memory", "1MB")
    code, _, err = run(*given)
    assert code == 2
    assert "--device needs the rows in memory, but a fit in memory would take" in " ".join(err.split())


def test_too_little_memory_there_is_said(run, folder, tmp_path, card):
    card.free_bytes = 1000
    code, _, err = run("train", folder / "two.svm", "-o", tmp_path / "m", "--device", "cuda")
    assert code == 2
    words = " ".join(err.split())
    assert "The memory does not suffice. The data take" in words
    assert "Use --device cpu, fewer rows or columns, or values of float32." in words


@pytest.mark.parametrize("command", ["train", "choose"])
def test_a_missing_card_is_said_before_the_data_are_read(run, folder, tmp_path, monkeypatch, command):
    monkeypatch.setitem(sys.modules, "cupy", None)
    cards.the_card.cache_clear()
    (tmp_path / "bad.svm").write_text("no data at all\n")
    code, _, err = run(command, tmp_path / "bad.svm", "-o", tmp_path / "m", "--device", "cuda")
    words = " ".join(err.split())
    assert code == 2
    assert "--device cuda needs CuPy, which is not installed. Install it with pip install" in words
    assert words.endswith("or use --device cpu.")
    code, _, err = run(command, folder / "two.svm", "-o", tmp_path / "m", "--device", "gpu")
    assert (code, "--device must be cuda or cpu. Got 'gpu' instead." in " ".join(err.split())) == (2, True)


@pytest.mark.parametrize(
    ("data", "given"),
    [
        ("two.svm", ["--kernel", "gaussian", "--gamma", "0.3"]),
        ("three.svm", ["--kernel", "gaussian", "--gamma", "0.3"]),
        ("two.svm", ["--kernel", "gaussian", "--gamma", "0.3", "--nu", "0.3"]),
        ("numbers.svm", ["--task", "regression", "--kernel", "gaussian", "--gamma", "0.3"]),
        ("two.svm", ["--task", "one-class", "--kernel", "gaussian", "--gamma", "0.3"]),
    ],
)
def test_predict_sums_up_scores_on_the_card(run, answer, folder, tmp_path, seen, data, given):
    assert run("train", folder / data, "-o", tmp_path / "m", *given)[0] in (0, 3)
    common = ("predict", tmp_path / "m", folder / data, "--scores")
    code, here = answer(*common)
    assert (code, seen) == (0, [])
    code, there = answer(*common, "--device", "cuda")
    assert code == 0
    assert [rows for rows, _ in seen].count(600) == 1
    assert there["accuracy"] == here["accuracy"]
    np.testing.assert_allclose(there["scores"], here["scores"], rtol=1e-9, atol=1e-9)


def test_predict_with_a_linear_model_stays_on_the_cpu(run, folder, tmp_path, card):
    run("train", folder / "two.svm", "-o", tmp_path / "m")
    given = ("predict", tmp_path / "m", folder / "two.svm", "--device", "cuda")
    code, _, err = run(*given)
    assert code == 2
    assert "--device cuda is for models with a kernel." in " ".join(err.split())
    with pytest.raises(ValueError, match="Models without a kernel predict on the CPU"):
        load_model(tmp_path / "m").decision_function(np.zeros((1, 5)), card=card)
