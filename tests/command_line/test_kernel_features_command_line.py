# SPDX-License-Identifier: BSD-3-Clause
"""``train --features nystroem:COUNT`` and ``random-fourier:COUNT``, in memory and in passes."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin.features import Nystroem, RandomFourier
from maxmargin.files import load_model, load_pipeline, pack, write_libsvm

ROWS = 6000


def drawn(classes=2):
    generator = np.random.default_rng(0)
    X = np.round(generator.normal(size=(ROWS, 5)), 3)
    values = np.sin(2.0 * X[:, 0]) + X[:, 1] ** 2 - 1.0 + 0.3 * generator.normal(size=ROWS)
    return X, np.digitize(values, [0.0, 1.0][: classes - 1])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("features")
    X, y = drawn()
    write_libsvm(folder / "two.svm", X, y)
    write_libsvm(folder / "three.svm", *drawn(3))
    pack(lambda: [(X.astype(np.float32), y)], folder / "single.mmd")
    lines = (",".join(map(str, [*row, label])) for row, label in zip(X.tolist(), y, strict=True))
    head, lines = "a,b,c,d,e,label\n", [f"{line}\n" for line in lines]
    (folder / "two.csv").write_text(head + "".join(lines))
    (folder / "parts").mkdir()
    for k in range(2):
        (folder / "parts" / f"{k}.csv").write_text(head + "".join(lines[k::2]))
    return folder


@pytest.mark.parametrize(
    ("data", "features", "memory"),
    [
        ("two.svm", "nystroem:40,gamma=0.3", "1GB"),
        ("two.svm", "nystroem:40,gamma=0.3", "5MB"),
        ("three.svm", "random-fourier:60", "5MB"),
        ("three.svm", "nystroem:30,kernel=poly,degree=2,coef0=1.5", "4MB"),
        ("single.mmd", "nystroem:40", "5MB"),
        ("single.mmd", "random-fourier:60,gamma=0.2", "1GB"),
    ],
)
def test_a_model_with_its_map_holds_in_memory_and_in_passes(
    run, answer, folder, tmp_path, data, features, memory
):
    model = tmp_path / "model.mm"
    given = ("train", folder / data, "-o", model, "--features", features, "--tol", "1e-3")
    code, said = answer(*given, "--memory", memory, "--loss", "squared_hinge")
    assert (code, said["certified"], said["columns"], said["rows"]) == (0, True, 5, ROWS)
    assert bool(said.get("in_chunks")) == (memory != "1GB")
    for way in ("1GB", "3MB"):
        code, judged = answer("certify", model, folder / data, "--memory", way)
        assert (code, judged["reasons"]) == (0, [])
        assert judged["problems"][0]["relative_gap"] <= 1e-3
    code, told = answer("predict", model, folder / data)
    assert (code, told["rows"]) == (0, ROWS)
    assert told["accuracy"] > 0.7
    assert load_pipeline(model).predict(drawn()[0][:20]).shape == (20,)


def test_the_map_is_that_of_python_and_without_a_gamma_it_is_scaled(run, folder, tmp_path):
    X, _ = drawn()
    for features, own in (
        ("nystroem:25,gamma=0.5", Nystroem(25, gamma=0.5, seed=3)),
        ("random-fourier:20", RandomFourier(20, gamma=1.0 / (5 * X.var()), seed=3)),
    ):
        run("train", folder / "two.svm", "-o", tmp_path / "m", "--features", features, "--seed", "3")
        (kept,) = load_model(tmp_path / "m").preparation.transformers
        np.testing.assert_allclose(kept.transform(X[:9]), own.fit(X).transform(X[:9]), atol=1e-12)


def test_train_says_what_the_features_are_and_how_well_they_stand_for_the_kernel(run, folder, tmp_path):
    model = tmp_path / "m"
    code, out, _ = run(
        "train", folder / "two.svm", "-o", model, "--features", "nystroem:50,gamma=0.3", "--memory", "5MB"
    )
    words = " ".join(out.split())
    assert code == 0
    assert "6000 rows, 5 columns" in words
    assert "nystroem (50 columns for the gaussian kernel, gamma = 0.3)" in words
    assert "the proof is about the problem on the features" in words
    code, out, _ = run("info", model)
    assert "nystroem (50 columns for the gaussian kernel" in out


def test_rows_that_are_held_out_have_no_part_in_the_map_and_resume_keeps_it(run, answer, folder, tmp_path):
    model = tmp_path / "m"
    given = ("--features", "nystroem:40,gamma=0.3", "--scale", "standard")
    code, said = answer("train", folder / "two.svm", "-o", model, *given, "--hold-out", "0.25")
    assert (code, said["held_out_rows"]) == (0, ROWS // 4)
    assert 0.7 < said["held_out_accuracy"] <= 1.0
    before = load_model(model).preparation
    assert [step.name for step in before.steps] == ["standard_scaler", "nystroem"]
    code, said = answer("train", folder / "two.svm", "--resume", model, "--tol", "1e-7")
    assert (code, said["certified"]) == (0, True)
    after = load_model(model).preparation
    assert np.array_equal(after.steps[1].arrays["sample_"], before.steps[1].arrays["sample_"])


def test_columns_of_a_table_go_through_the_map_with_their_names(run, answer, folder, tmp_path):
    model = tmp_path / "m"
    given = ("-o", model, "--label", "label", "--features", "nystroem:40")
    for data, more in (("two.csv", []), ("parts", ["--scale", "none"])):
        code, said = answer("train", folder / data, *given, *more)
        assert (code, said["certified"], said["columns"]) == (0, True, 5)
        assert load_model(model).feature_names == ["a", "b", "c", "d", "e"]
        code, judged = answer("certify", model, folder / "two.csv", "--label", "label")
        assert (code, judged["reasons"]) == (0, [])
    code, _, err = run("train", folder / "two.csv", *given, "--memory", "4MB")
    assert (code, "Pack the data (maxmargin pack DATA rows.mmd)" in " ".join(err.split())) == (2, True)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["nystroem"], "--features nystroem must have a number of columns, as in nystroem:1000. Got ''"),
        (["nystroem:0"], "must have a number of columns"),
        (["nystroem:many"], "Got 'many' instead"),
        (["nystroem:10,gama=1"], "has the settings kernel, gamma, degree, coef0. Got 'gama=1'"),
        (["nystroem:10,gamma=wide"], "gamma of --features must be a number. Got 'wide'"),
        (["nystroem:10,gamma=-1"], "gamma of --features must be a number in the range (0, inf). Got -1.0"),
        (["nystroem:10,gamma=1,gamma=1"], "each setting once. Got gamma twice"),
        (["nystroem:10,kernel=sigmoid"], "kernel of --features must be one of gaussian"),
        (["random-fourier:10,degree=2"], "has the settings gamma. Got 'degree=2'"),
        (["random-fourier:11"], "an even number of columns. Got 11"),
        (["nystroem:10", "--gamma", "2"], "--gamma for kernels. Got both"),
        (["nystroem:10", "--model-format", "liblinear"], "--model-format must be maxmargin"),
        (["nystroem:10", "--dask", "tcp://nowhere:1"], "--features needs the rows in memory"),
        (["nystroem:4000", "--memory", "3MB"], "Raise memory, or ask for fewer"),
    ],
)
def test_wrong_features_are_named(run, folder, tmp_path, given, words):
    code, out, err = run("train", folder / "two.svm", "-o", tmp_path / "m", "--features", *given)
    assert code == 2
    assert words in " ".join((out + err).split())
    assert not (tmp_path / "m").exists()


def test_features_that_others_have_no_use_for(run, folder, tmp_path):
    model = tmp_path / "m"
    run("train", folder / "two.svm", "-o", model, "--features", "nystroem:10")
    code, _, err = run("train", folder / "two.svm", "--resume", model, "--features", "nystroem:10")
    assert (code, "Leave it out to go on with the features of the model" in " ".join(err.split())) == (
        2,
        True,
    )
    code, _, err = run("compare", folder / "two.svm", "-o", tmp_path / "p.png", "--features", "nystroem:10")
    assert (code, "Only train takes --features nystroem:10" in " ".join(err.split())) == (2, True)
