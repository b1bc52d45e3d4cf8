# SPDX-License-Identifier: BSD-3-Clause
"""The commands with monomials that are never written out: train, predict, certify, info and compare."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from sklearn.preprocessing import PolynomialFeatures
from sklearn.svm import SVC as ScikitLearnSVC

from maxmargin.command_line import main
from maxmargin.command_line.shared.features import features_in_words, monomial_name
from maxmargin.features import Monomials
from maxmargin.features.expansion import Expansion
from maxmargin.files import load_model, read_libsvm, save_model
from written_files import write_libsvm

GAMMA, COEF0 = 0.25, 2.0
KERNEL = f"monomials:2,scaling=kernel,gamma={GAMMA},coef0={COEF0}"
COLUMNS = 6


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Data of two and of three classes that products tell apart, and models of them."""
    folder = tmp_path_factory.mktemp("files")
    random = np.random.default_rng(0)
    X = np.round(random.normal(size=(240, COLUMNS)), 3)
    X[random.random(X.shape) < 0.3] = 0.0
    noise = 0.2 * random.normal(size=(240, 3))
    two = np.where(X[:, 0] * X[:, 1] + X[:, 2] ** 2 - 0.5 + noise[:, 0] > 0, 1, -1)
    three = np.argmax(np.column_stack([X[:, 0] * X[:, 1], X[:, 2] ** 2, X[:, 3]]) + noise, axis=1)
    write_libsvm(folder / "two.svm", X[:160], two[:160])
    write_libsvm(folder / "two.test.svm", X[160:], two[160:])
    write_libsvm(folder / "three.svm", X, three)
    for name, features in (("two", KERNEL), ("three", "monomials:2")):
        command = ["train", folder / f"{name}.svm", "-o", folder / f"{name}.mm", "--features", features]
        command += ["--loss", "hinge"]
        with pytest.raises(SystemExit) as ended:
            main([*map(str, command), "--json"])
        assert ended.value.code == 0
    return folder


def read_dense(path):
    X, y = read_libsvm(path)
    return X.toarray(), y


def written_out(X):
    """All monomials in scikit-learn's words, and the same in the scaling of the kernel."""
    plain = PolynomialFeatures(2, include_bias=False).fit_transform(X)
    pairs = np.triu_indices(X.shape[1])
    scales = np.where(pairs[0] == pairs[1], GAMMA, np.sqrt(2.0) * GAMMA)
    constant = np.full((len(X), 1), COEF0)
    d = X.shape[1]
    scaled = np.hstack([constant, np.sqrt(2.0 * GAMMA * COEF0) * plain[:, :d], scales * plain[:, d:]])
    return plain, scaled


def objective(X, y, w, b):
    return 0.5 * w @ w + np.maximum(0.0, 1.0 - y * (X @ w + b)).sum()


# train


def test_the_optimum_is_that_of_the_polynomial_kernel(answer, folder, tmp_path):
    options = ["--features", KERNEL, "--tol", "1e-7", "--loss", "hinge"]
    code, said = answer("train", folder / "two.svm", "-o", tmp_path / "m", *options)
    assert (code, said["certified"], said["columns"], said["kernel"]) == (0, True, COLUMNS, None)
    X, y = read_dense(folder / "two.svm")
    theirs = ScikitLearnSVC(C=1.0, kernel="poly", degree=2, gamma=GAMMA, coef0=COEF0, tol=1e-8).fit(X, y)
    signed = theirs.dual_coef_[0]
    V = X[theirs.support_]
    best = np.abs(signed).sum() - 0.5 * signed @ (GAMMA * V @ V.T + COEF0) ** 2 @ signed
    assert said["dual"] <= best * (1 + 1e-6)
    assert said["primal"] == pytest.approx(best, rel=1e-6)
    saved = load_model(tmp_path / "m")
    assert said["primal"] == pytest.approx(
        objective(written_out(X)[1], y, saved.coef[0], saved.intercept[0]), rel=1e-10
    )
    described = said["feature_map"]
    assert (described["map"], described["columns"], described["size"]) == ("monomials", 6, 28)


def test_train_tells_features_and_accuracy(run, folder, tmp_path):
    options = ["--features", KERNEL, "--test", folder / "two.test.svm"]
    code, out, err = run("train", folder / "two.svm", "-o", tmp_path / "m", *options)
    assert (code, err) == (0, "")
    for words in (
        "160 rows, 6 columns",
        "Features: 28 monomials of degree 0 to 2 of 6 columns, scaled as (0.25 <x, z> + 2)^2; never",
        "Test accuracy: 8",
    ):
        assert words in out


@pytest.mark.parametrize(
    ("features", "monomials"),
    [
        ("monomials:2", Monomials(2)),
        ("monomials:2,interaction_only", Monomials(2, interaction_only=True)),
        ("monomials:2, scaling=kernel", Monomials(2, scaling="kernel")),
        (
            "monomials:2,coef0=0,scaling=kernel,gamma=1e-1",
            Monomials(2, False, "kernel", gamma=0.1, coef0=0),
        ),
    ],
)
def test_train_passes_the_features_on(answer, folder, tmp_path, features, monomials):
    options = ["--loss", "squared_hinge", "--intercept", "regularised", "-C", "0.5"]
    code, _ = answer("train", folder / "three.svm", "-o", tmp_path / "m", "--features", features, *options)
    saved = load_model(tmp_path / "m")
    assert saved.expansion == monomials.fit(np.ones((1, COLUMNS))).expansion_
    assert saved.problem["loss"] == "squared_hinge"
    code, said = answer("certify", tmp_path / "m", folder / "three.svm")
    assert (code, said["reasons"], said["same_data"], len(said["problems"])) == (0, [], True, 3)


def test_resume_takes_the_features_of_the_model(run, answer, folder, tmp_path):
    model = tmp_path / "m"
    short = ["--features", KERNEL, "--max-iter", "2", "-C", "20", "--solver", "dual_coordinate_ascent"]
    code, _, err = run("train", folder / "two.svm", "-o", model, *short)
    assert (code, f"--resume {model}" in err) == (3, True)
    first = load_model(model)
    for more in ([], ["--features", KERNEL]):
        code, said = answer("train", folder / "two.svm", "--resume", model, "--max-iter", "100000", *more)
        assert (code, said["C"]) == (0, 20.0)
        resumed = load_model(model)
        assert resumed.expansion == first.expansion
        assert resumed.claims[0].dual > first.claims[0].dual


# predict, info and certify


@pytest.mark.parametrize("name", ["two", "three"])
def test_predict_expands_each_row(answer, folder, name):
    X, y = read_dense(folder / f"{name}.svm")
    saved = load_model(folder / f"{name}.mm")
    plain, scaled = written_out(X)
    expected = (scaled if name == "two" else plain) @ saved.coef.T + saved.intercept
    code, said = answer("predict", folder / f"{name}.mm", folder / f"{name}.svm", "--scores")
    assert (code, said["rows"]) == (0, len(y))
    np.testing.assert_allclose(said["scores"], expected, rtol=1e-9, atol=1e-9)
    assert said["accuracy"] > 0.85


def test_predict_of_many_pieces_and_of_columns_that_the_model_lacks(answer, folder, tmp_path):
    lines = (folder / "two.test.svm").read_text()
    (tmp_path / "many.svm").write_text(lines * 2000 + "1 1:0.5 9:7\n")
    code, said = answer("predict", folder / "two.mm", tmp_path / "many.svm")
    assert (code, said["rows"], said["dropped_values"]) == (0, 160_001, 1)
    once = answer("predict", folder / "two.mm", folder / "two.test.svm")[1]["labels"]
    assert said["labels"][:-1] == once * 2000


def test_tables_are_matched_by_the_names_of_their_columns(run, answer, folder, tmp_path):
    X, y = read_dense(folder / "two.svm")
    names = ["width", "height", "depth", "a", "b", "c"]

    def write(name, order):
        rows = np.column_stack([X[:, order], y]).tolist()
        lines = [[*(names[column] for column in order), "label"], *rows]
        (tmp_path / name).write_text("".join(",".join(map(str, line)) + "\n" for line in lines))
        return tmp_path / name

    table, turned = write("table.csv", [0, 1, 2, 3, 4, 5]), write("turned.csv", [5, 4, 3, 2, 1, 0])
    assert answer("train", table, "-o", tmp_path / "m", "--features", "monomials:2")[0] == 0
    labels = [answer("predict", tmp_path / "m", data)[1]["labels"] for data in (table, turned)]
    assert labels[0] == labels[1]
    for data in (table, turned):
        code, said = answer("certify", tmp_path / "m", data)
        assert (code, said["reasons"], said["same_data"]) == (0, [], True)
    assert "width*height (" in run("info", tmp_path / "m")[1]


def test_info_tells_the_features(run, answer, folder):
    code, out, _ = run("info", folder / "two.mm")
    assert code == 0
    assert "  features  6\n  expanded  28 monomials of degree 0 to 2 of 6 columns, scaled as" in out
    assert "1*2 (" in out
    code, said = answer("info", folder / "two.mm")
    assert (said["features"], said["feature_map"]["size"]) == (6, 28)
    assert said["heaviest"][0]["feature"] in ("1*2", "3^2")


@pytest.mark.parametrize("lowest", [0, 1, 2])
@pytest.mark.parametrize("once", [False, True])
def test_monomials_are_named_in_the_order_of_coef(lowest, once):
    names = list("abcde")
    monomials = Monomials(2, interaction_only=once, include_bias=True).fit(np.ones((1, 5)))
    expected = list(monomials.get_feature_names_out(names))[{0: 0, 1: 1, 2: 6}[lowest] :]
    expansion = Expansion(5, lowest, (1.0, 1.0, 1.0), once)
    found = [monomial_name(expansion, position, names) for position in range(expansion.size)]
    assert [name.replace("constant", "1") for name in found] == expected
    assert monomial_name(expansion, expansion.size - 1, None) == ("4*5" if once else "5^2")


def test_features_in_words():
    assert (
        features_in_words(Expansion(3, 1, (1.0, 1.0, 1.0))) == "9 monomials of degree 1 and 2 of 3 columns"
    )
    products = Expansion(3, 2, (1.0, 1.0, 1.0), once=True)
    assert features_in_words(products) == "3 monomials of degree 2 of 3 columns, each column at most once"
    homogeneous = Monomials(2, False, "kernel", gamma=0.1, coef0=0).fit(np.ones((1, 3))).expansion_
    assert features_in_words(homogeneous).endswith("scaled as (0.1 <x, z>)^2")
    assert features_in_words(Expansion(3, 0, (1.0, 2.0, 3.0))).endswith("scaled by 1, 2 and 3")


def test_certify_recomputes_both_values(run, answer, folder):
    code, said = answer("certify", folder / "two.mm", folder / "two.svm")
    assert (code, said["holds"], said["same_data"], said["feature_map"]["size"]) == (0, True, True, 28)
    X, y = read_dense(folder / "two.svm")
    saved = load_model(folder / "two.mm")
    found, alpha = said["problems"][0], saved.certificates[0].alpha
    scaled = written_out(X)[1]
    expected = objective(scaled, y, saved.coef[0], saved.intercept[0])
    assert found["primal"] == pytest.approx(expected, rel=1e-10)
    w_of_alpha = scaled.T @ (alpha * y)
    assert found["dual"] == pytest.approx(alpha.sum() - 0.5 * w_of_alpha @ w_of_alpha, rel=1e-9)
    assert "28 monomials" in run("certify", folder / "two.mm", folder / "two.svm")[1]


def changed(folder, tmp_path, **changes):
    save_model(dataclasses.replace(load_model(folder / "two.mm"), **changes), tmp_path / "changed.mm")
    return tmp_path / "changed.mm"


def test_certify_finds_other_features_and_claims_too_good(answer, folder, tmp_path):
    saved = load_model(folder / "two.mm")
    scales = (COEF0, *(1.01 * scale for scale in saved.expansion.scales[1:]))
    other = changed(folder, tmp_path, expansion=dataclasses.replace(saved.expansion, scales=scales))
    code, said = answer("certify", other, folder / "two.svm")
    assert (code, said["holds"], said["same_data"]) == (1, False, True)
    claim = dataclasses.replace(saved.claims[0], dual=1.0001 * saved.claims[0].dual)
    code, said = answer("certify", changed(folder, tmp_path, claims=[claim]), folder / "two.svm")
    assert (code, "below the claimed" in said["reasons"][0]) == (1, True)
    code, said = answer("certify", folder / "two.mm", folder / "two.test.svm")
    assert (code, said["same_data"]) == (1, False)


def test_certify_proves_a_model_without_proof(answer, folder, tmp_path):
    options = ["--features", "monomials:2", "--no-proof"]
    assert answer("train", folder / "three.svm", "-o", tmp_path / "m", *options)[0] == 0
    code, said = answer("certify", tmp_path / "m", folder / "three.svm")
    assert (code, said["holds"]) == (0, True)


# compare


def test_compare_races_on_the_monomials(run, answer, folder, tmp_path):
    options = ["--features", KERNEL, "--max-time", "0.5", "--tol", "1e-3", "-o", tmp_path / "p.svg"]
    code, said = answer("compare", folder / "two.svm", *options, "--intercept", "regularised")
    assert (code, said["columns"], said["feature_map"]["columns"]) == (0, 28, 6)
    best = max(row["dual"] for row in said["solvers"])
    assert {"dual_coordinate_ascent", "augmented_lagrangian"} <= {row["solver"] for row in said["solvers"]}
    assert all(row["primal"] >= best * (1 - 1e-12) for row in said["solvers"])
    assert "28 monomials" in (tmp_path / "p.svg").read_text()


# what goes wrong


def test_wrong_input_is_named_with_the_cure_and_exits_with_2(run, folder, tmp_path):
    data, out = folder / "two.svm", tmp_path / "out"
    (tmp_path / "wide.svm").write_text("1 100000:1\n-1 1:1\n")
    assert run("train", data, "-o", tmp_path / "linear.mm")[0] == 0
    assert run("train", data, "-o", tmp_path / "curved.mm", "--kernel", "rbf")[0] == 0
    train = ["train", data, "-o", out, "--features"]
    resume = ["train", data, "-o", out, "--resume"]
    cases = [
        ([*train, "splines"], "--features must be monomials:2["),
        ([*train, ""], "--features must be monomials:2["),
        ([*train, "monomials"], "must have degree 2. Got ''"),
        ([*train, "monomials:3"], "--kernel polynomial --degree"),
        ([*train, "monomials:2,gamma=1"], "Add scaling=kernel"),
        ([*train, "monomials:2,scaling=plain,coef0=1"], "Add scaling=kernel"),
        ([*train, "monomials:2,scaling=kernel,gamma=wide"], "gamma of --features must be a number"),
        ([*train, "monomials:2,scaling=kernel,gamma=nan"], "gamma of --features must"),
        ([*train, "monomials:2,scaling=kernel,gamma=-1"], "gamma of --features must"),
        ([*train, "monomials:2,scaling=kernel,coef0=-1"], "coef0 of --features must"),
        ([*train, "monomials:2,scaling=kernel,gamma=1e200"], "within the range of floats"),
        ([*train, "monomials:2,scaling=wild"], "scaling of --features must"),
        ([*train, "monomials:2,scaling=kernel,interaction_only"], "The kernel has squares in it"),
        ([*train, "monomials:2,dance"], "Got 'dance' in it"),
        ([*train, "monomials:2,"], "Got '' in it"),
        ([*train, "monomials:2,interaction_only,interaction_only"], "interaction_only twice"),
        ([*train, "monomials:2", "--kernel", "gaussian"], "--features is for linear models"),
        ([*train, "monomials:2", "--gamma", "1"], "gamma and coef0 of the features stand in --features"),
        ([*train, "monomials:2", "--model-format", "liblinear"], "no room for features"),
        ([*train, "monomials:2", "--model-format", "libsvm"], "no room for features"),
        (
            ["train", tmp_path / "wide.svm", *train[2:], "monomials:2"],
            "5,000,150,000 columns out of 100,000",
        ),
        ([*resume, folder / "two.mm", "--features", "monomials:2"], "Leave --features out"),
        ([*resume, folder / "two.mm", "--kernel", "poly"], "--resume of a linear model"),
        ([*resume, folder / "two.mm", "--model-format", "liblinear"], "no room for features"),
        ([*resume, tmp_path / "linear.mm", "--features", "monomials:2"], "(none). Got 27 monomials"),
        ([*resume, tmp_path / "curved.mm", "--features", "monomials:2"], "--resume of a kernel model"),
        (["compare", data, "-o", tmp_path / "p.png", "--features", "x"], "--features must be monomials:2["),
        (
            [
                "compare",
                *train[1:2],
                "-o",
                tmp_path / "p.png",
                "--features",
                "monomials:2",
                "--degree",
                "2",
            ],
            "--degree",
        ),
    ]
    for arguments, complaint in cases:
        code, said, err = run(*arguments)
        assert (code, said) == (2, ""), arguments
        assert complaint in err, (arguments, err)
        assert err.startswith("Error: ")
        assert err.count("\n") == 1, arguments
        code, said, err = run(*arguments, "--json")
        assert (code, err) == (2, ""), arguments
        assert complaint in json.loads(said)["error"], arguments
        assert not out.exists()


def test_a_model_without_fingerprint_is_resumed_on_as_many_columns(run, folder, tmp_path):
    save_model(dataclasses.replace(load_model(folder / "two.mm"), fingerprint=None), tmp_path / "m")
    code, _, err = run("train", folder / "two.svm", "--columns", "9", "--resume", tmp_path / "m")
    assert (code, "must have the 6 columns of the model to --resume. Got 9" in err) == (2, True)


def test_help_has_an_example(run):
    assert "--features monomials:2,scaling=kernel" in " ".join(run("train", "--help")[1].split())


# all of them


def test_one_person_trains_and_another_checks_the_proof(run, folder, tmp_path):
    data, model = folder / "two.svm", tmp_path / "model.mm"
    code, out, err = run("train", data, "-o", model, "--features", KERNEL)
    assert (code, err, "never written out" in out) == (0, "", True)
    code, out, _ = run("certify", model, data)
    assert (code, "Holds: " in out) == (0, True)
    code, _, err = run("predict", model, folder / "two.test.svm", "-o", tmp_path / "labels.txt")
    assert (code, err.startswith("Accuracy: ")) == (0, True)
    assert len((tmp_path / "labels.txt").read_text().split()) == 80
    assert "monomials" in run("info", model)[1]
    code, out, err = run("train", data, "-o", tmp_path / "no", "--features", "monomials:9")
    assert (code, out, err.count("\n"), (tmp_path / "no").exists()) == (2, "", 1, False)
