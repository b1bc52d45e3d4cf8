# SPDX-License-Identifier: BSD-3-Clause
"""The commands with kernels: train, predict, certify, info, compare and demo."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from libsvm import svmutil
from sklearn.svm import SVC as ScikitLearnSVC

from maxmargin import SVC
from maxmargin.command_line import main
from maxmargin.files import SavedKernelModel, load_model, read_libsvm, save_model
from maxmargin.kernels import Gaussian, Laplacian, Polynomial
from maxmargin.solvers import SOLVERS
from written_files import write_libsvm

WITH_KERNELS = [name for name, solver in SOLVERS.items() if solver.takes_kernels]
GAMMA = 0.05


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Data of two and of three classes, and models of them with a Gaussian kernel."""
    folder = tmp_path_factory.mktemp("files")
    with pytest.raises(SystemExit):
        main(["demo", "--save-data", str(folder / "two.svm"), "--json"])
    random = np.random.default_rng(0)
    X = np.round(random.normal(size=(160, 5)), 12)
    y = np.argmax(X[:, :3] ** 2 + 0.3 * random.normal(size=(160, 3)), axis=1) + 1
    X[:, 3] = 0.0
    write_libsvm(folder / "three.svm", X, y)
    for name in ("two", "three"):
        command = ["train", folder / f"{name}.svm", "-o", folder / f"{name}.mm", "--json"]
        with pytest.raises(SystemExit) as ended:
            main([*map(str, command), "--kernel", "gaussian", "--gamma", str(GAMMA)])
        assert ended.value.code == 0
    return folder


def objective(X, y, gamma, C, coefficients, b):
    """The primal value in plain NumPy, of w = sum_i coefficient_i phi(x_i)."""
    squares = (X**2).sum(axis=1)
    K = np.exp(-gamma * (squares[:, None] + squares - 2 * X @ X.T))
    losses = np.maximum(0.0, 1.0 - y * (K @ coefficients + b))
    return 0.5 * coefficients @ K @ coefficients + C * losses.sum()


# train


def test_train_tells_kernel_support_vectors_and_how_rows_are_held(run, folder, tmp_path):
    options = ["--kernel", "rbf", "--gamma", GAMMA, "--test", folder / "two.test.svm"]
    code, out, err = run("train", folder / "two.svm", "-o", tmp_path / "model.mm", *options)
    assert (code, err) == (0, "")
    for words in (
        "379 rows, 30 columns, classes -1 (136), 1 (243).",
        "is within the --tol of 0.001",
        "Kernel: Gaussian(gamma=0.05); ",
        "support vectors; rows held as dense in one block.",
        "Kernel cache: at most ",
        "Test accuracy: 9",
    ):
        assert words in out


def test_the_objective_is_that_of_others(answer, folder, tmp_path):
    model = tmp_path / "model.mm"
    options = ["--kernel", "gaussian", "--gamma", GAMMA, "-C", "3", "--tol", "1e-6"]
    code, said = answer("train", folder / "two.svm", "-o", model, *options)
    assert said["cache"]["budget_bytes"] == 1_000_000_000
    assert 0 < said["cache"]["peak_bytes"] <= 1_000_000_000
    assert said["cache"]["rows_computed"] >= 379
    (interval,) = [proof["b_interval"] for proof in said["certificates"]]
    assert interval[0] <= interval[1]
    assert (code, said["certified"], said["kernel"]) == (0, True, {"kernel": "gaussian", "gamma": GAMMA})
    X, y = read_libsvm(folder / "two.svm")
    X = X.toarray()
    theirs = ScikitLearnSVC(C=3.0, gamma=GAMMA, tol=1e-6).fit(X, y)
    w = np.zeros(len(y))
    w[theirs.support_] = theirs.dual_coef_[0]
    expected = objective(X, y, GAMMA, 3.0, w, theirs.intercept_[0])
    assert said["primal"] == pytest.approx(expected, rel=2e-6)
    assert said["dual"] <= expected * (1 + 1e-12)
    saved = load_model(model)
    w = np.zeros(len(y))
    w[saved.support] = saved.coefficients[0]
    assert said["primal"] == pytest.approx(objective(X, y, GAMMA, 3.0, w, saved.intercept[0]), rel=1e-10)
    assert said["support_vectors"] == len(saved.support)
    assert said["held_as"] in ("bits", "bytes", "dense", "sparse")


@pytest.mark.parametrize(
    ("options", "kernel"),
    [
        (
            ["--kernel", "polynomial", "--gamma", "0.1", "--degree", "2", "--coef0", "1"],
            Polynomial(2, 0.1, 1.0),
        ),
        (["--kernel", "laplacian", "--gamma", "auto"], Laplacian(1 / 30)),
        (["--kernel", "gaussian", "--gamma", "1e-2", "--cache-size", "1"], Gaussian(0.01)),
    ],
)
def test_train_passes_its_options_on(answer, folder, tmp_path, options, kernel):
    more = ["-C", "0.5", "--class-weight", "-1:2,+1:0.5", "--tol", "1e-4", "--seed", "7"]
    code, _ = answer("train", folder / "two.svm", "-o", tmp_path / "model.mm", *options, *more)
    assert code == 0
    saved = load_model(tmp_path / "model.mm")
    assert saved.kernel == kernel
    assert saved.problem["C"] == 0.5
    assert saved.problem["class_weight"] == {-1.0: 2.0, 1.0: 0.5}
    assert (saved.tol, saved.parameters["random_state"]) == (1e-4, 7)
    code, said = answer("certify", tmp_path / "model.mm", folder / "two.svm")
    assert (code, said["reasons"]) == (0, [])


def test_chi_squared_needs_values_that_are_not_negative(run, folder, tmp_path):
    code, _, err = run("train", folder / "two.svm", "-o", tmp_path / "m", "--kernel", "chi2")
    assert code == 2
    assert "not negative" in err
    (tmp_path / "positive.svm").write_text("1 1:1 2:0.5\n-1 1:0.1\n1 1:2\n-1 2:3\n")
    assert run("train", tmp_path / "positive.svm", "-o", tmp_path / "m", "--kernel", "chi2")[0] == 0
    assert run("certify", tmp_path / "m", tmp_path / "positive.svm")[0] == 0


def test_pairs_of_classes(run, answer, folder, tmp_path):
    options = ["--kernel", "gaussian", "--class-weight", "balanced"]
    code, out, _ = run("train", folder / "three.svm", "-o", tmp_path / "model.mm", *options)
    assert code == 0
    assert "Each pair of classes, the widest gap first" in out
    assert "1 against 2" in out
    code, said = answer("train", folder / "three.svm", "-o", tmp_path / "model.mm", *options)
    assert [entry["class"] for entry in said["certificates"]] == [[1.0, 2.0], [1.0, 3.0], [2.0, 3.0]]
    code, said = answer("certify", tmp_path / "model.mm", folder / "three.svm")
    assert (code, said["reasons"], said["same_data"]) == (0, [], True)
    assert [problem["name"] for problem in said["problems"]] == [
        "1 against 2",
        "1 against 3",
        "2 against 3",
    ]
    for problem in said["problems"]:
        assert problem["primal"] == pytest.approx(problem["claimed"]["primal"], rel=1e-11)
        assert problem["dual"] == pytest.approx(problem["claimed"]["dual"], rel=1e-11)


def test_a_run_that_falls_short_can_be_resumed(run, answer, folder, tmp_path):
    model = tmp_path / "model.mm"
    options = ["--kernel", "gaussian", "--solver", "sequential_minimal_optimization", "-C", "500"]
    code, _, err = run(
        "train", folder / "two.svm", "-o", model, *options, "--max-iter", "1", "--tol", "1e-8"
    )
    assert code == 3
    assert "Raise --max-iter" in err
    first = load_model(model)
    assert answer("certify", model, folder / "two.svm")[0] == 0
    code, said = answer(
        "train", folder / "two.svm", "--resume", model, "--max-iter", "100000", "--tol", "1e-4"
    )
    assert (code, said["C"]) == (0, 500.0)
    resumed = load_model(model)
    assert resumed.kernel == first.kernel
    assert resumed.claims[0].dual > first.claims[0].dual


def test_no_kernel_is_told_and_proves_nothing(run, answer, folder, tmp_path):
    options = ["--kernel", "sigmoid", "--gamma", "0.5", "--coef0", "-1", "--max-time", "0.3"]
    code, _, err = run("train", folder / "two.svm", "-o", tmp_path / "model.mm", *options)
    assert "Warning: No kernel: a vector v" in err
    loose = [*options, "--tol", "0.99"]
    code, out, err = run("train", folder / "two.svm", "-o", tmp_path / "model.mm", *loose)
    assert code == 3
    assert "Not proven: the relative distance of " in err
    assert "No (w, b) can bring it below" not in out
    code, said = answer("train", folder / "two.svm", "-o", tmp_path / "model.mm", *loose)
    assert (code, said["status"], said["certified"]) == (3, "not_proven", False)
    code, said = answer("train", folder / "two.svm", "-o", tmp_path / "model.mm", *options)
    assert said["warnings"][0].startswith("No kernel")
    code, said = answer("certify", tmp_path / "model.mm", folder / "two.svm")
    assert (code, said["holds"]) == (1, False)
    assert "the dual value is no lower bound" in said["reasons"][0]


def test_text_of_libsvm_is_written(answer, folder, tmp_path):
    model = tmp_path / "model.txt"
    options = ["--kernel", "poly", "--coef0", "1", "--model-format", "libsvm"]
    code, _ = answer("train", folder / "three.svm", "-o", model, *options)
    assert code == 0
    y, x = svmutil.svm_read_problem(str(folder / "three.svm"))
    labels, _, values = svmutil.svm_predict(y, x, svmutil.svm_load_model(str(model)), "-q")
    code, said = answer("predict", model, folder / "three.svm", "--scores")
    assert [float(label) for label in said["labels"]] == labels
    np.testing.assert_allclose(said["scores"], values, atol=1e-9)
    code, said = answer(
        "certify", model, folder / "three.svm", "-C", "1", "--tol", "1e-3", "--max-time", "0"
    )
    assert (code, said["support_vectors_found"]) == (0, True)


# predict and info


def test_predict_streams(run, answer, folder, tmp_path, monkeypatch):
    saved = load_model(folder / "three.mm")
    X, y = read_libsvm(folder / "three.svm")
    code, said = answer("predict", folder / "three.mm", folder / "three.svm", "--scores")
    assert (code, said["rows"]) == (0, 160)
    np.testing.assert_array_equal([float(label) for label in said["labels"]], saved.predict(X))
    np.testing.assert_allclose(said["scores"], saved.decision_function(X), atol=1e-12)
    assert said["accuracy"] == np.mean(saved.predict(X) == y)
    (tmp_path / "wide.svm").write_text("1 1:0.5 31:7\n-1 2:1\n")
    assert "1 values in columns" in run("predict", folder / "two.mm", tmp_path / "wide.svm")[2]


def test_info_describes_kernel_and_support_vectors(run, answer, folder):
    code, out, _ = run("info", folder / "three.mm")
    assert code == 0
    for words in ("kernel    Gaussian(gamma=0.05)", "vectors   ", "one vs one", "To check them: maxmargin"):
        assert words in out
    code, said = answer("info", folder / "three.mm")
    saved = load_model(folder / "three.mm")
    assert said["kernel"] == {"kernel": "gaussian", "gamma": GAMMA}
    assert list(said["support_vectors"].values()) == saved.counts.tolist()
    assert answer("info", folder / "two.mm")[1]["rows"] == 379


# certify


def changed(folder, tmp_path, **changes):
    """The model of two classes with something else in it, and a checksum that fits."""
    save_model(dataclasses.replace(load_model(folder / "two.mm"), **changes), tmp_path / "changed.mm")
    return tmp_path / "changed.mm"


@pytest.mark.parametrize(
    ("field", "factor", "reason"),
    [("primal", 0.999, "above the claimed"), ("dual", 1.0001, "below the claimed")],
)
def test_certify_finds_a_claim_that_is_too_good(answer, folder, tmp_path, field, factor, reason):
    claim = load_model(folder / "two.mm").claims[0]
    better = dataclasses.replace(claim, **{field: factor * getattr(claim, field)})
    code, said = answer("certify", changed(folder, tmp_path, claims=[better]), folder / "two.svm")
    assert (code, said["holds"]) == (1, False)
    assert any(reason in words for words in said["reasons"])


def test_certify_finds_another_kernel_and_other_vectors(answer, folder, tmp_path):
    code, said = answer("certify", changed(folder, tmp_path, kernel=Gaussian(0.2)), folder / "two.svm")
    assert (code, said["holds"]) == (1, False)
    vectors = load_model(folder / "two.mm").vectors.copy()
    vectors.data[:5] += 3.0
    code, said = answer("certify", changed(folder, tmp_path, vectors=vectors), folder / "two.svm")
    assert (code, said["support_vectors_found"]) == (1, False)
    assert any("above the claimed" in words for words in said["reasons"])


def test_certify_takes_a_model_by_what_it_predicts_with(answer, folder, tmp_path):
    """The rows that a file names do not decide: its vectors are found again among the data."""
    saved = load_model(folder / "two.mm")
    support = np.sort(np.setdiff1d(np.arange(379), saved.support)[: len(saved.support)])
    moved = dataclasses.replace(saved, support=support, certificates=None, traces=None)
    save_model(moved, tmp_path / "moved.mm")
    code, said = answer("certify", tmp_path / "moved.mm", folder / "two.svm")
    assert (code, said["support_vectors_found"]) == (0, True)
    assert said["problems"][0]["primal"] == pytest.approx(saved.claims[0].primal, rel=1e-10)


def test_certify_names_other_data(answer, folder, tmp_path):
    code, said = answer("certify", folder / "two.mm", folder / "two.test.svm")
    assert (code, said["same_data"]) == (1, False)
    lines = (folder / "three.svm").read_text().splitlines(keepends=True)
    first = next(k for k, line in enumerate(lines) if line.startswith("1 "))
    lines[first] = "2" + lines[first][1:]
    (tmp_path / "other.svm").write_text("".join(lines))
    code, said = answer("certify", folder / "three.mm", tmp_path / "other.svm")
    assert code == 1
    assert "other numbers of rows of each class" in said["reasons"][0]


def test_certify_takes_given_values_and_classes_against_the_rest(answer, tmp_path):
    random = np.random.default_rng(2)
    X = random.normal(size=(90, 3))
    y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)
    weights = {0: 2.0, 1: 1.0, 2: 0.5}
    cases = {
        "given": (SVC(kernel="precomputed", class_weight=weights), X @ X.T),
        "rest": (SVC(multi_class="ovr", class_weight=weights), X),
        "single": (SVC(kernel="laplacian"), X.astype(np.float32)),
    }
    for name, (model, rows) in cases.items():
        data, path = tmp_path / f"{name}.npz", tmp_path / f"{name}.mm"
        np.savez(data, X=rows, y=y)
        model.fit(rows, y).save(path, data=(rows, y))
        code, said = answer("certify", path, data)
        assert (code, said["reasons"], said["same_data"]) == (0, [], True), name
        assert len(said["problems"]) == 3
    wrong = dataclasses.replace(load_model(tmp_path / "given.mm"), certificates=None, traces=None)
    np.savez(tmp_path / "given.npz", X=X @ X.T, y=(y + 1) % 3)
    save_model(wrong, tmp_path / "given.mm")
    code, said = answer("certify", tmp_path / "given.mm", tmp_path / "given.npz")
    assert (code, "of the classes that it gives them" in said["error"]) == (2, True)


def test_blocks_are_told_and_certified(run, answer, tmp_path):
    random = np.random.default_rng(1)
    X = random.normal(size=(5200, 2))
    y = np.where(X[:, 0] > 0.5 * random.normal(size=5200), 1, -1)
    X[::2] += 300.0
    data, model = tmp_path / "far.npz", tmp_path / "model.mm"
    np.savez(data, X=X, y=y)
    code, said = answer("train", data, "-o", model, "--kernel", "gaussian", "--gamma", "1")
    assert (code, said["blocks"]) == (0, 2)
    code, said = answer("certify", model, data)
    assert (code, said["holds"]) == (0, True)
    found = said["problems"][0]
    assert found["primal"] == pytest.approx(found["claimed"]["primal"], rel=1e-8)
    saved = load_model(model)
    claim = dataclasses.replace(saved.claims[0], dual=saved.claims[0].dual * (1 + 1e-6))
    save_model(dataclasses.replace(saved, claims=[claim]), model)
    code, said = answer("certify", model, data)
    assert (code, "below the claimed" in said["reasons"][0]) == (1, True)


def test_certify_proves_a_model_without_proof(answer, folder, tmp_path):
    model = tmp_path / "model.mm"
    options = ["--kernel", "laplacian", "--no-proof"]
    assert answer("train", folder / "three.svm", "-o", model, *options)[0] == 0
    code, said = answer("certify", model, folder / "three.svm")
    assert (code, said["holds"]) == (0, True)


@pytest.mark.parametrize("data", ["two", "three"])
@pytest.mark.parametrize("options", ["-t 2 -g 0.05", "-t 1 -g 0.1 -r 1 -d 2"])
def test_certify_measures_models_of_libsvm(run, answer, folder, tmp_path, data, options):
    y, x = svmutil.svm_read_problem(str(folder / f"{data}.svm"))
    model = tmp_path / "libsvm.model"
    svmutil.svm_save_model(str(model), svmutil.svm_train(y, x, f"{options} -c 2 -e 1e-5 -q"))
    code, said = answer("certify", model, folder / f"{data}.svm", "-C", "2", "--max-time", "0")
    assert (code, said["support_vectors_found"], said["writer"]) == (0, True, "LIBSVM")
    for problem in said["problems"]:
        assert "found again" in problem["bound_from"]
        assert 0 <= problem["at_least_above_optimum"] <= problem["at_most_above_optimum"] < 1e-4
    code, said = answer("certify", model, folder / f"{data}.svm")
    assert (code, "largest multiplier is 2," in said["error"]) == (2, True)
    # Rows that are not those of the training: measured all the same, and said.
    lines = (folder / f"{data}.svm").read_text().splitlines(keepends=True)
    (tmp_path / "part.svm").write_text("".join(lines[::2]))
    code, out, _ = run("certify", model, tmp_path / "part.svm", "-C", "2", "--max-time", "5")
    assert "Not all of the file's support vectors are rows of these data." in out
    assert "solving the problem here (working_set)" in out


def test_the_objective_of_a_libsvm_file_is_that_of_its_own_vectors(answer, folder, tmp_path):
    y, x = svmutil.svm_read_problem(str(folder / "three.svm"))
    model = tmp_path / "libsvm.model"
    svmutil.svm_save_model(str(model), svmutil.svm_train(y, x, f"-t 2 -g {GAMMA} -c 2 -q"))
    saved = load_model(model)
    X, labels = read_libsvm(folder / "three.svm")
    _, said = answer("certify", model, folder / "three.svm", "-C", "2")
    assert isinstance(saved, SavedKernelModel)
    for k, (i, j) in enumerate(saved.pairs):
        chosen = np.isin(labels, saved.classes[[i, j]])
        signs = np.where(labels[chosen] == saved.classes[i], 1.0, -1.0)
        scores = saved.decision_function(X[chosen])[:, k]
        V, c = saved.vectors.toarray(), saved.coefficients_of(k)
        norm = c @ np.exp(-GAMMA * ((V[:, None] - V[None]) ** 2).sum(axis=2)) @ c
        expected = 0.5 * norm + 2.0 * np.maximum(0.0, 1.0 - signs * scores).sum()
        assert said["problems"][k]["primal"] == pytest.approx(expected, rel=1e-10)


# compare and demo


@pytest.mark.parametrize("intercept", ["exact", "none"])
def test_compare_races_the_kernel_solvers(answer, folder, tmp_path, intercept):
    picture = tmp_path / "picture.svg"
    options = ["--kernel", "gaussian", "--gamma", "0.05", "--max-time", "1", "--tol", "1e-4", "-o", picture]
    code, said = answer("compare", folder / "two.svm", *options, "--intercept", intercept)
    assert (code, said["kernel"]) == (0, {"kernel": "gaussian", "gamma": 0.05})
    names = [row["solver"] for row in said["solvers"]]
    assert set(names) <= set(WITH_KERNELS)
    assert len(names) + len(said["left_out"]) == len(WITH_KERNELS)
    assert ("working_set" in names, "kernel_dual_ascent" in names) == (
        intercept == "exact",
        intercept == "none",
    )
    best = max(row["dual"] for row in said["solvers"])
    assert all(row["primal"] >= best * (1 - 1e-12) for row in said["solvers"])
    assert names[0].replace("_", " ") in picture.read_text()


def test_compare_takes_one_class_and_says_the_kernel(run, folder, tmp_path):
    options = ["--kernel", "poly", "--cache-size", "10", "--max-time", "0.5", "-o", tmp_path / "p.png"]
    code, out, _ = run("compare", folder / "three.svm", *options, "--class", "2")
    assert code == 0
    assert "class 2 against the rest, Polynomial(degree=3, gamma=" in out


def test_demo_has_a_kernel_too(run, answer):
    code, said = answer("demo", "--max-time", "0.2")
    assert code == 0
    kernel = said["with_kernel"]
    assert kernel["kernel"] == "gaussian"
    assert {row["solver"] for row in kernel["solvers"]} <= set(WITH_KERNELS)
    assert kernel["auto"].startswith("working_set")
    best = max(row["dual"] for row in kernel["solvers"])
    for row in kernel["solvers"]:
        assert row["primal"] >= best * (1 - 1e-12)
        assert row["test_accuracy"] > 0.9
    code, out, _ = run("demo", "--max-time", "0.1", "--loss", "logistic")
    assert "Digits 3 and 8, Gaussian(gamma=0.1)" in out


# what goes wrong


def test_wrong_input_is_named_with_the_cure_and_exits_with_2(run, folder, tmp_path):
    data, out = folder / "two.svm", tmp_path / "out"
    with_kernel = ["train", data, "-o", out, "--kernel", "gaussian"]
    cases = [
        ([*with_kernel[:-1], "cosine"], "'cosine'"),
        ([*with_kernel, "--gamma", "wide"], "--gamma must be scale, auto or a number"),
        ([*with_kernel, "--gamma", "-1"], "--gamma must"),
        ([*with_kernel, "--cache-size", "0"], "--cache-size must"),
        ([*with_kernel, "--loss", "logistic"], "--loss must be hinge"),
        ([*with_kernel, "--intercept", "none"], "--intercept must be exact"),
        ([*with_kernel, "--model-format", "liblinear"], "LIBLINEAR has no kernels"),
        ([*with_kernel, "-C", "-inf"], "-C must"),
        ([*with_kernel, "--solver", "newton"], "newton"),
        (["train", data, "-o", out, "--gamma", "1"], "--gamma is for kernels"),
        (["train", data, "-o", out, "--cache-size", "1"], "--cache-size is for kernels"),
        (["compare", data, "-o", tmp_path / "p.png", "--degree", "2"], "--degree is for kernels"),
        (["compare", data, "-o", tmp_path / "p.png", "--kernel", "cosine"], "'cosine'"),
        (["certify", folder / "two.mm", data, "-C", "2"], "Leave -C out"),
        (
            ["train", folder / "two.test.svm", "-o", out, "--resume", folder / "two.mm"],
            "fingerprint differs",
        ),
    ]
    for arguments, complaint in cases:
        code, said, err = run(*arguments)
        assert (code, said) == (2, ""), arguments
        assert complaint in err, arguments
        assert err.startswith("Error: ")
        code, said, err = run(*arguments, "--json")
        assert (code, err) == (2, ""), arguments
        assert complaint in json.loads(said)["error"], arguments
        assert not out.exists()


def test_a_linear_model_is_not_resumed_with_a_kernel(run, folder, tmp_path):
    assert run("train", folder / "two.svm", "-o", tmp_path / "linear.mm")[0] == 0
    code, _, err = run("train", folder / "two.svm", "--resume", tmp_path / "linear.mm", "--kernel", "rbf")
    assert code == 2
    assert "--resume of a linear model" in err


def test_predict_breaks_ties_where_the_model_does(run, tmp_path):
    random = np.random.default_rng(1)
    X, y = random.standard_normal((60, 2)).round(6), random.integers(0, 5, 60)
    queries = random.standard_normal((400, 2)).round(6)
    write_libsvm(tmp_path / "new.svm", queries, np.zeros(400, int))
    voted = SVC(C=0.5).fit(X, y)
    broken = SVC(C=0.5, break_ties=True).fit(X, y)
    assert (voted.predict(queries) != broken.predict(queries)).any()
    for model in (voted, broken):
        model.save(tmp_path / "model.mm")
        run("predict", tmp_path / "model.mm", tmp_path / "new.svm", "-o", tmp_path / "out")
        labels = np.loadtxt(tmp_path / "out", dtype=int)
        np.testing.assert_array_equal(labels, model.predict(queries))
