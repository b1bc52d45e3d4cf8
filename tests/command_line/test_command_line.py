# SPDX-License-Identifier: BSD-3-Clause
"""The commands in this process: what they answer, in words and as JSON, and with which exit code."""

from __future__ import annotations

import dataclasses
import json
import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

import maxmargin
from maxmargin.command_line import main
from maxmargin.command_line.shared.answer import print_table
from maxmargin.command_line.shared.survey import Survey
from maxmargin.files import DataSet, load_model, save_model
from maxmargin.files.data.labels import class_codes, label_text
from maxmargin.solvers import LINEAR_SOLVERS
from maxmargin.solving.loop import Progress
from maxmargin.telling.progress import ClassesDone, TimeLeft, gap_now, share_done
from maxmargin.tools.words import bytes_in_words, seconds_in_words, some
from written_files import write_libsvm

# newton needs a smooth loss.
FOR_THE_HINGE = [name for name in LINEAR_SOLVERS if name not in ("newton", "coordinate_descent")]


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Data of two and of three classes, and models of them."""
    folder = tmp_path_factory.mktemp("files")
    with pytest.raises(SystemExit):
        main(["demo", "--save-data", str(folder / "cancer.svm"), "--json"])
    random = np.random.default_rng(0)
    X = random.normal(size=(150, 20))
    y = np.argmax(X[:, :3] + 0.3 * random.normal(size=(150, 3)), axis=1) + 1
    X[:, 5] = 0.0
    write_libsvm(folder / "three.svm", X, y)
    for name in ("cancer", "three"):
        with pytest.raises(SystemExit) as ended:
            main(["train", str(folder / f"{name}.svm"), "-o", str(folder / f"{name}.mm"), "--json"])
        assert ended.value.code == 0
    return folder


# demo


def test_demo_proves_every_solver(answer):
    code, said = answer("demo", "--max-time", "0.2")
    assert code == 0
    assert [row["solver"] for row in said["solvers"]] == FOR_THE_HINGE
    best_dual = max(row["dual"] for row in said["solvers"])
    for row in said["solvers"]:
        assert row["primal"] >= best_dual
        assert row["test_accuracy"] > 0.9
    assert said["auto"].split(":")[0] in FOR_THE_HINGE


def test_in_a_file_the_widest_table_is_whole(capsys):
    headings = ["data", "classifier", *(f"a heading of number {k}" for k in range(12))]
    row = ["covtype_binary_scale", "expanded", *(1.5 + k for k in range(12))]
    print_table("A table", headings, [row], left=2)
    out = capsys.readouterr().out
    assert all(str(cell) in out for cell in row)
    assert all(heading in out for heading in headings)


def test_demo_prints_a_table_and_what_auto_takes(run):
    code, out, _ = run("demo", "--max-time", "0.2", "--loss", "squared_hinge")
    assert code == 0
    for word in ("primal", "dual", "rel. gap", "seconds", "test acc.", "auto takes", "Left out: pegasos"):
        assert word in out


# train


def test_train_tells_certificate_accuracy_time_and_memory(run, folder, tmp_path):
    model = tmp_path / "model.mm"
    code, out, err = run("train", folder / "cancer.svm", "-o", model, "--test", folder / "cancer.test.svm")
    assert (code, err) == (0, "")
    for words in (
        "379 rows, 30 columns, classes -1 (136), 1 (243).",
        "Certified: the relative gap of",
        "No (w, b) can bring it below",
        "Test accuracy: 9",
        "of 190 rows",
        "Time: read ",
        "of which certify ",
        "Peak memory: ",
        f"Model: {model}",
    ):
        assert words in out
    assert load_model(model).status.certified


def test_train_of_several_classes_tells_the_worst_and_a_table(run, answer, folder, tmp_path):
    code, out, _ = run("train", folder / "three.svm", "-o", tmp_path / "model.mm")
    assert code == 0
    assert "Each class against the rest, the widest gap first" in out
    code, said = answer("train", folder / "three.svm", "-o", tmp_path / "model.mm")
    assert [entry["class"] for entry in said["certificates"]] == [1.0, 2.0, 3.0]
    assert said["relative_gap"] == max(entry["relative_gap"] for entry in said["certificates"])


def test_train_passes_its_options_on(answer, folder, tmp_path):
    options = [
        "-C",
        "0.25",
        "--loss",
        "squared_hinge",
        "--solver",
        "dual_coordinate_ascent",
        "--tol",
        "1e-5",
    ]
    options += ["--intercept", "regularised", "--seed", "3", "--class-weight", "-1:2,+1:0.5"]
    code, said = answer("train", folder / "cancer.svm", "-o", tmp_path / "model.mm", *options)
    assert code == 0
    saved = load_model(tmp_path / "model.mm")
    assert saved.problem["loss"] == said["loss"] == "squared_hinge"
    assert saved.problem["C"] == said["C"] == 0.25
    assert saved.problem["intercept"] == "regularised"
    assert saved.problem["class_weight"] == {-1.0: 2.0, 1.0: 0.5}
    assert saved.tol == 1e-5
    assert saved.parameters["random_state"] == 3
    code, said = answer("certify", tmp_path / "model.mm", folder / "cancer.svm")
    assert (code, said["holds"]) == (0, True)


@pytest.mark.parametrize("weight", ["balanced", "2:3"])
@pytest.mark.parametrize("intercept", ["exact", "regularised", "none"])
def test_certify_rebuilds_weighted_problems_of_several_classes(answer, folder, tmp_path, weight, intercept):
    options = ["--class-weight", weight, "--intercept", intercept, "--loss", "hinge"]
    code, _ = answer("train", folder / "three.svm", "-o", tmp_path / "model.mm", *options)
    assert code == 0
    code, said = answer("certify", tmp_path / "model.mm", folder / "three.svm")
    assert (code, said["reasons"], said["same_data"]) == (0, [], True)
    for problem in said["problems"]:
        assert problem["primal"] == pytest.approx(problem["claimed"]["primal"], rel=1e-12)
        assert problem["dual"] == pytest.approx(problem["claimed"]["dual"], rel=1e-12)


def test_a_run_that_falls_short_exits_with_3_and_can_be_resumed(run, answer, folder, tmp_path):
    model = tmp_path / "model.mm"
    short = ("train", folder / "cancer.svm", "-o", model, "--max-iter", "3", "-C", "2")
    code, out, err = run(*short)
    assert code == 3
    assert "Raise --max-iter" in err
    assert f"--resume {model}" in err
    assert "The objective is" in out
    first = load_model(model)
    code, said = answer("certify", model, folder / "cancer.svm")
    assert (code, said["holds"]) == (0, True)
    code, said = answer("train", folder / "cancer.svm", "--resume", model, "--max-iter", "100000")
    assert (code, said["C"]) == (0, 2.0)
    resumed = load_model(model)
    assert resumed.claims[0].dual > first.claims[0].dual
    assert resumed.status.certified


def test_what_falls_short_without_proof_claims_no_more_than_its_gap(answer, folder, tmp_path):
    model = tmp_path / "model.mm"
    options = ["--max-iter", "10", "--no-proof", "--loss", "hinge"]
    code, said = answer("train", folder / "cancer.svm", "-o", model, *options)
    assert (code, said["status"]) == (3, "steps_spent")
    assert said["relative_gap"] > 0.05
    code, said = answer("certify", model, folder / "cancer.svm")
    assert (code, said["reasons"]) == (0, [])


def test_resume_refuses_other_data(run, folder, tmp_path):
    code, _, err = run(
        "train", folder / "cancer.test.svm", "--resume", folder / "cancer.mm", "-o", tmp_path / "m"
    )
    assert code == 2
    assert "fingerprint differs" in err
    assert "379 rows" in err
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("kind", ["liblinear", "libsvm"])
def test_train_writes_the_formats_of_others(answer, folder, tmp_path, kind):
    model = tmp_path / "model.txt"
    options = ["--model-format", kind, "--test", folder / "cancer.test.svm"]
    code, said = answer("train", folder / "cancer.svm", "-o", model, *options)
    assert code == 0
    assert said["test_accuracy"] > 0.9
    assert load_model(model).format == kind
    code, said = answer("certify", model, folder / "cancer.svm", "-C", "1", "--tol", "0.05")
    assert (code, said["claims"]) == (0, False)


def test_no_proof_makes_a_small_file_whose_claim_can_be_checked(run, answer, folder, tmp_path):
    model = tmp_path / "model.mm"
    assert run("train", folder / "cancer.svm", "-o", model, "--no-proof")[0] == 0
    assert model.stat().st_size < (folder / "cancer.mm").stat().st_size
    code, said = answer("certify", model, folder / "cancer.svm")
    assert (code, said["holds"]) == (0, True)
    assert said["problems"][0]["bound_from"] == "the margins"
    run("train", folder / "cancer.svm", "-o", model, "--no-proof", "--loss", "hinge")
    code, said = answer("certify", model, folder / "cancer.svm")
    assert (code, said["holds"]) == (0, True)
    assert said["problems"][0]["bound_from"].startswith("solving")


def test_train_has_the_loss_of_the_estimator(answer, folder, tmp_path):
    code, said = answer("train", folder / "cancer.svm", "-o", tmp_path / "m.mm")
    assert (code, said["loss"]) == (0, maxmargin.LinearSVC().loss)
    for options in (["--solver", "pegasos", "--tol", "0.5"], ["--kernel", "gaussian"]):
        assert (
            answer("train", folder / "cancer.svm", "-o", tmp_path / "m.mm", *options)[1]["loss"] == "hinge"
        )


def test_train_tells_the_accuracy_beside_that_of_the_largest_class(run, answer, folder, tmp_path):
    code, out, _ = run("train", folder / "cancer.svm", "-o", tmp_path / "m.mm", "--hold-out", "0.2")
    assert code == 0
    assert "Always to say 1 would give 64.12 %." in out
    assert "Predicted by a model of the other 303 rows." in out
    _, said = answer("train", folder / "cancer.svm", "-o", tmp_path / "m.mm", "--hold-out", "0.2")
    assert said["majority_share"] == pytest.approx(243 / 379)
    assert said["training_accuracy"] > said["held_out_accuracy"] > 0.9
    assert said["held_out_rows"] == 76
    for name, kernel in (("three", []), ("three", ["--kernel", "gaussian"]), ("cancer", ["-C", "inf"])):
        _, said = answer("train", folder / f"{name}.svm", "-o", tmp_path / "m.mm", *kernel)
        data = maxmargin.files.read(folder / f"{name}.svm")
        right = np.mean(load_model(tmp_path / "m.mm").predict(data.X) == data.y)
        assert said["training_accuracy"] == right
    assert "--hold-out" in run("train", folder / "cancer.svm", "-o", tmp_path / "m", "--hold-out", "1")[2]


def test_what_makes_a_model_useless_is_told_with_the_cure(run, answer, tmp_path):
    random = np.random.default_rng(0)
    y = np.repeat([0, 1], [130, 170])
    X = np.column_stack([1e5 * random.normal(size=300), 1e-3 * (y + random.normal(size=300))])
    np.savez(tmp_path / "bad.npz", X=X, y=y)
    code, _, err = run("train", tmp_path / "bad.npz", "-o", tmp_path / "m.mm")
    assert code == 0
    assert "Warning: Columns are seven orders of magnitude apart: column 1 reaches" in err
    assert err.count("Warning: The model is useless: it gets ") == 1
    _, said = answer(
        "choose", tmp_path / "bad.npz", "-o", tmp_path / "m.mm", "--values", "2", "--high", "1"
    )
    assert any("orders of magnitude" in warning for warning in said["warnings"])
    np.savez(tmp_path / "copy.npz", X=np.column_stack([random.normal(size=300), 3.0 * y]), y=y)
    _, _, err = run("train", tmp_path / "copy.npz", "-o", tmp_path / "m.mm")
    assert "Column 2 alone separates the classes" in err


# predict


def test_predict_writes_labels_and_scores(run, folder, tmp_path):
    data, model = folder / "cancer.test.svm", folder / "cancer.mm"
    code, out, err = run("predict", model, data)
    assert code == 0
    assert "Accuracy: 9" in err
    labels = out.split()
    assert set(labels) == {"-1", "1"}
    code, out, _ = run("predict", model, data, "--scores", "-o", tmp_path / "scores.txt")
    assert (code, out) == (0, "")
    rows = [line.split("\t") for line in (tmp_path / "scores.txt").read_text().splitlines()]
    assert [label for label, _ in rows] == labels
    assert all((float(score) > 0) == (label == "1") for label, score in rows)


def test_predict_of_several_classes_has_a_score_for_each(answer, folder):
    code, said = answer("predict", folder / "three.mm", folder / "three.svm", "--scores")
    assert code == 0
    assert said["rows"] == 150
    assert said["accuracy"] > 0.8
    assert [int(label) for label in said["labels"]] == [1 + int(np.argmax(row)) for row in said["scores"]]


def test_predict_leaves_out_columns_that_the_model_lacks_and_says_so(run, answer, folder, tmp_path):
    (tmp_path / "wide.svm").write_text("1 1:0.5 31:7\n-1 2:1\n")
    code, _, err = run("predict", folder / "cancer.mm", tmp_path / "wide.svm")
    assert code == 0
    assert "1 values in columns that the model does not have were left out" in err
    assert answer("predict", folder / "cancer.mm", tmp_path / "wide.svm")[1]["dropped_values"] == 1


def test_predict_tells_no_accuracy_for_labels_that_are_only_dummies(run, folder, tmp_path):
    (tmp_path / "new.svm").write_text("0 1:0.5\n0 2:1\n")
    code, out, err = run("predict", folder / "cancer.mm", tmp_path / "new.svm")
    assert code == 0
    assert len(out.split()) == 2
    assert "No accuracy" in err


def test_tables_are_matched_by_the_names_of_their_columns(run, answer, tmp_path):
    random = np.random.default_rng(1)
    X = random.normal(size=(120, 3))
    words = np.where(X[:, 0] - X[:, 2] > 0, "yes", "no")

    def write(name, order, labelled):
        columns = {"width": X[:, 0], "height": X[:, 1], "depth": X[:, 2], "target": words}
        order = [*order, "target"] if labelled else order
        rows = zip(*(columns[column] for column in order), strict=True)
        text = "\n".join([",".join(order), *(",".join(map(str, row)) for row in rows)])
        (tmp_path / name).write_text(text + "\n")
        return tmp_path / name

    train = write("train.csv", ["width", "height", "depth"], True)
    code, said = answer("train", train, "-o", tmp_path / "model.mm")
    assert (code, said["classes"]) == (0, ["no", "yes"])
    unlabelled = write("new.csv", ["depth", "width", "height"], False)
    code, out, err = run("predict", tmp_path / "model.mm", unlabelled)
    assert (code, err) == (0, "")
    assert np.mean(np.array(out.split()) == words) > 0.95
    missing = write("short.csv", ["depth", "width"], True)
    code, _, err = run("predict", tmp_path / "model.mm", missing)
    assert code == 2
    assert "lacks columns that the model was trained on: 'height'" in err
    assert answer("certify", tmp_path / "model.mm", train)[0] == 0
    assert "width" in run("info", tmp_path / "model.mm")[1]


# certify


def changed(folder, tmp_path, **changes):
    """The model of two classes with something else in it, and a checksum that fits."""
    saved = load_model(folder / "cancer.mm")
    save_model(dataclasses.replace(saved, **changes), tmp_path / "changed.mm")
    return tmp_path / "changed.mm"


def test_certify_shows_claimed_beside_recomputed(run, folder):
    code, out, _ = run("certify", folder / "cancer.mm", folder / "cancer.svm")
    assert code == 0
    for word in ("claimed", "recomputed", "primal", "dual", "relative gap", "Holds: "):
        assert word in out


@pytest.mark.parametrize(
    ("field", "factor", "reason"),
    [("primal", 0.999, "above the claimed"), ("dual", 1.0001, "below the claimed")],
)
def test_certify_finds_a_claim_that_is_too_good(answer, folder, tmp_path, field, factor, reason):
    claim = load_model(folder / "cancer.mm").claims[0]
    better = dataclasses.replace(claim, **{field: factor * getattr(claim, field)})
    code, said = answer("certify", changed(folder, tmp_path, claims=[better]), folder / "cancer.svm")
    assert (code, said["holds"]) == (1, False)
    assert any(reason in words for words in said["reasons"])


def test_certify_judges_the_intercept_of_the_file_and_not_a_better_one(answer, folder, tmp_path):
    saved = load_model(folder / "cancer.mm")
    b = saved.intercept + 0.1
    proofs = [dataclasses.replace(saved.certificates[0], b=float(b[0]))]
    proofs[0].__dict__.update(
        kkt_violation=saved.certificates[0].kkt_violation, row_classes=saved.certificates[0].row_classes
    )
    model = changed(folder, tmp_path, intercept=b, certificates=proofs)
    code, said = answer("certify", model, folder / "cancer.svm")
    assert code == 1
    assert "the objective at the file's w and b" in said["reasons"][0]


def test_certify_finds_multipliers_that_were_changed(answer, folder, tmp_path):
    saved = load_model(folder / "cancer.mm")
    old = saved.certificates[0]
    proof = dataclasses.replace(old, alpha=0.5 * old.alpha)
    proof.__dict__.update(kkt_violation=old.kkt_violation, row_classes=old.row_classes)
    code, said = answer("certify", changed(folder, tmp_path, certificates=[proof]), folder / "cancer.svm")
    assert code == 1
    assert any("below the claimed" in words for words in said["reasons"])
    assert any("claims a relative gap within" in words for words in said["reasons"])


def test_certify_names_other_data(run, answer, folder, tmp_path):
    code, said = answer("certify", folder / "cancer.mm", folder / "cancer.test.svm")
    assert (code, said["same_data"]) == (1, False)
    assert any("190 rows, and the model was trained on 379" in words for words in said["reasons"])
    lines = (folder / "cancer.svm").read_text().splitlines(keepends=True)
    lines[0] = (
        lines[0].replace("+1", "-1") if lines[0].startswith("+1") else lines[0].replace("-1", "+1", 1)
    )
    (tmp_path / "flipped.svm").write_text("".join(lines))
    code, out, _ = run("certify", folder / "cancer.mm", tmp_path / "flipped.svm")
    assert code == 1
    assert "Does not hold: " in out
    assert "their fingerprint differs" in out


def test_certify_says_that_sample_weights_are_not_in_the_file(answer, folder, tmp_path):
    problem = load_model(folder / "cancer.mm").problem | {"sample_weights": True}
    code, said = answer("certify", changed(folder, tmp_path, problem=problem), folder / "cancer.svm")
    assert code == 1
    assert "sample weights" in said["reasons"][0]


@pytest.mark.parametrize(("solver", "tol"), [(0, 0.05), (1, 0.05), (2, 0.05), (3, 0.05), (7, 0.05)])
def test_certify_measures_models_of_liblinear(answer, folder, tmp_path, solver, tol):
    liblinear = pytest.importorskip("liblinear.liblinearutil")
    y, x = liblinear.svm_read_problem(str(folder / "cancer.svm"))
    model = tmp_path / "liblinear.model"
    liblinear.save_model(str(model), liblinear.train(y, x, f"-s {solver} -c 0.5 -B 1 -q"))
    code, said = answer(
        "certify", model, folder / "cancer.svm", "-C", "0.5", "--tol", str(tol), "--max-time", "3"
    )
    problem = said["problems"][0]
    assert (code, said["writer"], said["intercept"]) == (0, "LIBLINEAR", "regularised")
    assert 0 <= problem["at_least_above_optimum"] <= problem["at_most_above_optimum"] <= tol
    code, said = answer("certify", model, folder / "cancer.svm")
    assert code == 2
    assert "Add -C" in said["error"]
    # Trained for another C, it is far from the optimum, and this is shown.
    code, said = answer("certify", model, folder / "cancer.svm", "-C", "50", "--max-time", "0.3")
    assert code == 1
    assert said["problems"][0]["at_least_above_optimum"] > 0.05


@pytest.mark.parametrize("data", ["cancer", "three"])
def test_certify_finds_the_support_vectors_of_libsvm_among_the_rows(answer, folder, tmp_path, data):
    libsvm = pytest.importorskip("libsvm.svmutil")
    y, x = libsvm.svm_read_problem(str(folder / f"{data}.svm"))
    model = tmp_path / "libsvm.model"
    libsvm.svm_save_model(str(model), libsvm.svm_train(y, x, "-t 0 -c 1 -e 1e-5 -q"))
    code, said = answer("certify", model, folder / f"{data}.svm", "-C", "1", "--max-time", "0")
    assert code == 0
    assert len(said["problems"]) == (1 if data == "cancer" else 3)
    for problem in said["problems"]:
        assert "support vectors" in problem["bound_from"]
        assert problem["at_most_above_optimum"] < 1e-4
    code, said = answer("certify", model, folder / f"{data}.svm")
    assert code == 2
    assert "largest multiplier is 1," in said["error"]


# compare


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_compare_draws_every_solver_that_applies(run, answer, folder, tmp_path, suffix):
    picture = tmp_path / f"picture.{suffix}"
    options = ["--max-time", "0.1", "--tol", "1e-3", "-o", picture]
    code, said = answer("compare", folder / "cancer.svm", *options, "--intercept", "regularised")
    assert code == 0
    assert [row["solver"] for row in said["solvers"]] == FOR_THE_HINGE
    for row in said["solvers"]:
        assert len(row["trace"]) > (0 if row["solver"] == "quadratic_program" else 3)
    start = {"png": b"\x89PNG", "svg": b"<?xml"}[suffix]
    assert picture.read_bytes().startswith(start)
    if suffix == "svg":
        assert "dual coordinate ascent" in picture.read_text()


def test_compare_says_why_a_solver_is_left_out_and_which_class_it_takes(run, folder, tmp_path):
    options = ["--max-time", "0.1", "-o", tmp_path / "p.png", "--loss", "squared_hinge"]
    code, out, _ = run("compare", folder / "three.svm", *options)
    assert code == 0
    assert "Left out: pegasos" in out
    assert "against the rest" in out
    code, out, _ = run("compare", folder / "three.svm", *options, "--class", "2")
    assert "class 2 against the rest" in out


# info


def test_info_of_data(run, answer, folder):
    code, said = answer("info", folder / "three.svm")
    assert (code, said["kind"]) == (0, "data")
    assert (said["rows"], said["columns"], said["empty_columns"]) == (150, 20, 1)
    assert sum(said["labels"].values()) == 150
    code, out, _ = run("info", folder / "three.svm")
    assert "1 empty" in out


def test_info_warns_of_columns_nine_orders_of_magnitude_apart(run, tmp_path):
    lines = [f"{1 if i % 2 else -1} 1:{i + 1} 2:{1e-9 * (i + 1)} 3:1\n" for i in range(9)]
    (tmp_path / "scales.svm").write_text("".join(lines))
    code, out, _ = run("info", tmp_path / "scales.svm")
    assert code == 0
    assert "nine orders of magnitude apart: column 1 reaches 9, column 2 only 9e-09" in out
    assert "3, 1 constant" in out


def test_info_warns_of_contradicting_rows_and_wrong_counting(run, tmp_path):
    (tmp_path / "rows.svm").write_text("1 1:2 3:1\n-1 1:2 3:1\n1 1:2 2:1\n-1 2:1\n-1\n")
    code, out, _ = run("info", tmp_path / "rows.svm", "--zero-based")
    assert code == 0
    assert "2 rows have the values of another row and a different label" in out
    assert "Leave --zero-based out" in out
    assert "5, 1 empty" in out


def test_info_of_models(run, answer, folder):
    code, said = answer("info", folder / "three.mm")
    assert (code, said["kind"], said["proof"]) == (0, "model", True)
    assert said["classes"] == [1.0, 2.0, 3.0]
    assert len(said["claims"]) == 3
    code, out, _ = run("info", folder / "cancer.mm")
    assert "hinge loss, C = 1, exact intercept" in out
    assert "To check them: maxmargin certify" in out


def test_survey_equals_what_numpy_says_of_the_whole(folder):
    random = np.random.default_rng(3)
    X = sparse.random_array((200, 15), density=0.2, rng=random, format="csr")
    X.data -= 0.5
    y = random.integers(0, 3, 200).astype(float)
    survey = Survey()
    for start in range(0, 200, 37):
        piece = X[start : start + 37]
        width = int(piece.indices.max()) + 1
        survey.add(DataSet(piece[:, :width], y[start : start + 37]))
    dense = X.toarray()
    assert survey.rows == 200
    assert survey.stored == np.count_nonzero(dense)
    assert survey.labels == {label: int((y == label).sum()) for label in np.unique(y)}
    assert survey.value_range == (dense.min(), dense.max())
    assert survey.empty_rows == np.count_nonzero(~dense.any(axis=1))
    np.testing.assert_array_equal(survey.scales, np.abs(dense).max(axis=0)[: survey.columns])
    empty = ~dense.any(axis=1)
    assert survey.contradictions() == (empty.sum() if len(set(y[empty])) > 1 else 0)


def test_contradictions_are_counted_exactly_where_rows_look_alike():
    random = np.random.default_rng(4)
    X = (random.random((3000, 12)) < 0.3).astype(float)  # few values, many equal sums of columns
    y = random.integers(0, 2, 3000).astype(float)
    labels_of_row = {}
    for row, label in zip((row.tobytes() for row in X), y, strict=True):
        labels_of_row.setdefault(row, []).append(label)
    expected = sum(len(labels) for labels in labels_of_row.values() if len(set(labels)) > 1)
    survey = Survey()
    for start in range(0, 3000, 700):
        survey.add(DataSet(sparse.csr_array(X[start : start + 700]), y[start : start + 700]))
    assert 0 < expected < 3000
    assert survey.contradictions() == expected


# what goes wrong


def hopeless(folder, tmp_path):
    """Arguments, and what the message must say."""
    data, model, out = folder / "cancer.svm", folder / "cancer.mm", tmp_path / "out"
    (tmp_path / "bad.svm").write_text("1 1:0.5\n-1 2:x\n")
    (tmp_path / "one.svm").write_text("1 1:0.5\n1 2:1\n")
    (tmp_path / "broken.mm").write_bytes(model.read_bytes()[:-10])
    (tmp_path / "empty.svm").write_text("")
    yield ["train", tmp_path / "no.svm", "-o", out], "no.svm"
    yield ["train", tmp_path / "bad.svm", "-o", out], "line 2"
    yield ["train", tmp_path / "empty.svm", "-o", out], "empty.svm"
    yield ["train", tmp_path / "one.svm", "-o", out], "All rows have the same label"
    yield ["train", data], "-o MODEL"
    yield ["train", data, "-o", tmp_path], "must name a file"
    yield ["train", data, "-o", data], "must not name a file that is read"
    yield ["predict", model, data, "-o", model], "must not name a file that is read"
    yield ["train", data, "-o", tmp_path / "no" / "model"], "folder that exists"
    yield ["train", data, "-o", out, "-C", "-1"], "-C must"
    yield ["train", data, "-o", out, "-C", "many"], "-C"
    yield ["train", data, "-o", out, "--max-time", "-1"], "inf sets no limit"
    yield ["train", data, "-o", out, "--loss", "epsilon"], "'epsilon'"
    yield ["train", data, "-o", out, "--solver", "magic"], "'magic'"
    yield ["train", data, "-o", out, "--intercept", "some"], "'some'"
    yield ["train", data, "-o", out, "--solver", "pegasos", "--loss", "logistic"], "pegasos"
    yield ["train", data, "-o", out, "--class-weight", "7:2"], "'7:2'"
    yield ["train", data, "-o", out, "--class-weight", "1:-2"], "at least 0"
    yield ["train", data, "-o", out, "--model-format", "onnx"], "'onnx'"
    yield ["train", folder / "three.svm", "-o", out, "--model-format", "libsvm"], "is for two classes"
    yield ["train", data, "-o", out, "--format", "xml"], "'xml'"
    yield ["train", data, "-o", out, "--columns", "3"], "3"
    yield ["train", data, "-o", out, "--test", tmp_path / "no.svm"], "no.svm"
    yield ["train", data, "-o", out, "--resume", tmp_path / "broken.mm"], "broken.mm"
    yield ["train", data, "-o", out, "--dance"], "--dance"
    yield ["predict", model, tmp_path / "no.svm"], "no.svm"
    yield ["predict", tmp_path / "no.mm", data], "no.mm"
    yield ["predict", data, data], "not a model file"
    yield ["predict", model, tmp_path / "bad.svm", "-o", out], "line 2"
    yield ["predict", model, data, "-o", tmp_path / "no" / "labels"], "folder that exists"
    yield ["certify", tmp_path / "broken.mm", data], "broken.mm"
    yield ["certify", model, tmp_path / "bad.svm"], "line 2"
    yield ["certify", model, data, "-C", "2"], "Leave -C out"
    yield ["certify", model, data, "--tol", "0"], "--tol"
    yield ["compare", data, "-o", tmp_path / "picture.bmp"], ".png or .svg"
    yield ["compare", data, "-o", tmp_path / "p.png", "--loss", "epsilon"], "'epsilon'"
    yield ["compare", data, "-o", tmp_path / "p.png", "--class", "7"], "'7'"
    yield ["compare", tmp_path / "one.svm", "-o", tmp_path / "p.png"], "two classes"
    yield ["info", tmp_path / "no.svm"], "no.svm"
    yield ["info", tmp_path], "folder"
    yield ["info", tmp_path / "broken.mm"], "broken.mm"
    yield ["demo", "-C", "-1"], "C must be a finite number"
    yield ["demo", "--loss", "epsilon"], "epsilon"
    yield ["dance"], "No such command"


def test_wrong_input_is_named_with_the_cure_and_exits_with_2(run, folder, tmp_path):
    for arguments, complaint in hopeless(folder, tmp_path):
        code, out, err = run(*arguments)
        assert (code, out) == (2, ""), arguments
        assert err.startswith("Error: "), arguments
        assert complaint in err, arguments
        assert err.count("\n") == 1, arguments
        code, out, err = run(*arguments, "--json")
        assert (code, err) == (2, ""), arguments
        assert complaint in json.loads(out)["error"], arguments
        assert not (tmp_path / "out").exists()


def test_bad_lines_can_be_skipped_and_are_counted(answer, folder, tmp_path):
    text = (folder / "cancer.svm").read_text()
    (tmp_path / "bad.svm").write_text(text + "1 3:x\nhello\n")
    code, said = answer("train", tmp_path / "bad.svm", "-o", tmp_path / "m", "--skip-bad-lines")
    assert (code, said["skipped"], said["rows"]) == (0, 2, 379)


# the small parts


def progress(seconds=0.0, estimate=math.nan, label=None):
    return Progress(step=1, seconds=seconds, certificate=None, tol=1e-4, estimate=estimate, label=label)


def test_the_time_left_follows_the_decay_and_never_exceeds_the_budget():
    left = TimeLeft(1e-6, math.inf)
    assert left.seconds is None
    for second in range(1, 5):
        left.saw(float(second), 10.0**-second)
    assert left.seconds == pytest.approx(2.0)
    bounded = TimeLeft(1e-6, 5.0)
    for second in range(1, 5):
        bounded.saw(float(second), 10.0**-second)
    assert bounded.seconds == pytest.approx(1.0)
    bounded.saw(4.5, math.nan)
    assert bounded.seconds == pytest.approx(0.5)


def test_the_gap_shown_is_the_smaller_of_certified_and_estimated():
    assert gap_now(progress()) == (math.inf, "certified")
    assert gap_now(progress(estimate=0.5)) == (0.5, "estimated")
    assert share_done(1e-2, 1e-4) == pytest.approx(0.5)
    assert share_done(math.inf, 1e-4) == 0.0
    assert share_done(1e-5, 1e-4) == 1.0
    assert 0.0 < share_done(1e-5, 0.0) < 1.0


def test_classes_are_done_when_their_thread_turns_to_another():
    classes = ClassesDone(4, math.inf)
    for label in (0, 0, 1, 1, 2):
        classes.saw(progress(label=label))
    assert classes.done == 2
    assert classes.seconds_left >= 0.0


def test_numbers_in_words():
    assert seconds_in_words(0.0123) == "0.012 s"
    assert seconds_in_words(200) == "3 min 20 s"
    assert seconds_in_words(7500) == "2 h 5 min"
    assert bytes_in_words(1536) == "1.5 KiB"
    assert some(list("abcdefg"), 3) == "a, b, c and 4 more"
    assert [label_text(label) for label in (1.0, np.float64(-1.0), 0.5, "cat")] == ["1", "-1", "0.5", "cat"]


def test_labels_are_compared_as_they_stand_in_files():
    codes = class_codes(np.array([1.0, -1.0, 3.0]), np.array(["-1", "1"]))
    assert codes.tolist() == [1, 0, -1]


def test_version(run):
    assert run("--version")[1].strip() == maxmargin.__version__


def test_each_help_has_an_example(run):
    for command in ("train", "choose", "predict", "certify", "compare", "info", "demo"):
        code, out, _ = run(command, "--help")
        assert code == 0
        assert f"maxmargin {command}" in out
        assert "Example" in out


# help, and how much is said

COMMANDS = ("train", "choose", "predict", "certify", "compare", "info", "demo", "reproduce")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_not_ragged_and_says_nothing_of_types(run, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERMINAL_WIDTH", "80")
    code, out, _ = run(command, "--help")
    assert code == 0
    assert "<bool>" not in out
    assert "<str>" not in out
    words = out.partition("╭")[0].splitlines()
    # A line that ends early is the last of its paragraph: the next word would not have fitted.
    for line, following in pairwise(words):
        if line.strip() and following.strip():
            assert len(line.rstrip()) + 1 + len(following.split()[0]) > 78, line


def test_options_stand_in_groups(run):
    out = run("train", "--help")[1]
    for group in ("Problem", "Training", "Data", "Tables", "Answer"):
        assert f"╭─ {group} " in out


def test_quiet_leaves_answers_and_warnings_alone(run, folder, tmp_path):
    assert run("train", folder / "cancer.svm", "-o", tmp_path / "m.mm", "-q") == (0, "", "")
    assert run("certify", tmp_path / "m.mm", folder / "cancer.svm", "-q") == (0, "", "")
    code, out, err = run("predict", tmp_path / "m.mm", folder / "cancer.test.svm", "-q")
    assert (code, len(out.split()), err) == (0, 190, "")
    code, out, err = run("train", folder / "cancer.svm", "-o", tmp_path / "m.mm", "-q", "--max-iter", "1")
    assert (code, out) == (3, "")
    assert "Not certified" in err
    assert "Certified" in run("train", folder / "cancer.svm", "-o", tmp_path / "m.mm")[1]


def test_verbose_tells_every_certificate(run, folder, tmp_path):
    options = ["--solver", "dual_coordinate_ascent", "--tol", "1e-6", "-v"]
    _, _, err = run("train", folder / "cancer.svm", "-o", tmp_path / "m.mm", *options)
    assert err.count("training: gap ") >= 2


def test_of_several_classes_the_one_whose_gap_matters_is_told(run, folder, tmp_path):
    _, out, _ = run("train", folder / "three.svm", "-o", tmp_path / "m.mm")
    proofs = load_model(tmp_path / "m.mm").certificates
    widest = max(range(3), key=lambda k: proofs[k].gap) + 1
    assert f"The gap that matters most is that of {widest} against the rest:\n{proofs[widest - 1]}" in out


def test_only_public_names_are_told():
    names = dir(maxmargin)
    assert {"LinearSVC", "Table", "files", "__version__"} <= set(names)
    assert not [name for name in names if name.startswith("_") and name != "__version__"]
    assert not {"annotations", "TYPE_CHECKING", "Any", "lazy_names", "tools", "core"} & set(names)
