# SPDX-License-Identifier: BSD-3-Clause
"""The page of every kind of model: whole, true, and harmless whatever the data are called."""

from __future__ import annotations

import json
import math
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning

from maxmargin import SVC, LinearSVC, LinearSVCCV
from maxmargin.features import Monomials
from maxmargin.files import load_model
from maxmargin.kernels import Gaussian
from maxmargin.proof.model import each_of
from maxmargin.report.of_estimators import page_about
from well_formed import read
from written_files import write_libsvm

IRIS = load_iris(return_X_y=True)
PLANE = make_moons(100, noise=0.25, random_state=0)
APART = np.array([[0.0, 0.0], [0.0, 1.0], [2.0, 0.0], [2.0, 1.0]]), np.array([0, 0, 1, 1])
KNOWN = """html head meta link title style body header h1 h2 h3 p main div strong dl dt dd span nav ul li a
    section table thead tbody tr th td bdi figure figcaption pre code br svg defs pattern path line text
    circle rect polyline footer"""
"""All elements of a page with points in the plane."""
HOSTILE = ["<script>alert(1)</script>", '"><img src=x onerror=alert(2)>', "a&b' --\u202e\x07"]


def matrix_of_values(X):
    return Gaussian(1.0)(X, X)


def lazily(X):
    return Monomials(2, lazy=True).fit_transform(X)


CASES = {
    "linear": (LinearSVC(loss="hinge"), PLANE),
    "three classes": (LinearSVC(), IRIS),
    "kernel": (SVC(C=10.0), PLANE),
    "pairs": (SVC(), IRIS),
    "against the rest": (SVC(multi_class="ovr"), IRIS),
    "sparse": (LinearSVC(), (sparse.csr_matrix(IRIS[0]), IRIS[1])),
    "sparse kernel": (SVC(), (sparse.csr_matrix(IRIS[0]), IRIS[1])),
    "float32": (LinearSVC(), (PLANE[0].astype(np.float32), PLANE[1])),
    "logistic": (LinearSVC(loss="logistic"), IRIS),
    "hard margin": (LinearSVC(C=math.inf), APART),
    "monomials": (LinearSVC(), (lazily(IRIS[0]), IRIS[1])),
    "precomputed": (SVC(kernel="precomputed"), (matrix_of_values(PLANE[0]), PLANE[1])),
    "chi-squared": (SVC(kernel="chi2"), (np.abs(PLANE[0]), PLANE[1])),
    "a constant column": (SVC(), (PLANE[0] * [1.0, 0.0], PLANE[1])),
    "weights of classes": (SVC(class_weight="balanced"), PLANE),
    "no intercept": (LinearSVC(fit_intercept=False), PLANE),
}


def page_of(path):
    """The page with its text, in which runs of white space are one blank."""
    found = read(path.read_text("utf-8"))
    found.words = " ".join(" ".join(found.text).split())
    return found


@pytest.mark.parametrize("kind", CASES)
def test_every_model_has_its_page(kind, tmp_path):
    estimator, (X, y) = CASES[kind]
    estimator.fit(X, y)
    estimator.report(tmp_path / "page.html", X, y)
    page = page_of(tmp_path / "page.html")
    assert "The proof holds" in page.words
    assert all(f"{proof.primal:.8g}" in page.words for proof in each_of(estimator.certificate_))
    assert f"{100 * estimator.score(X, y):.2f} %" in page.words
    assert page.tags.count("h1") == 1
    assert page.tags.count("svg") >= 2
    assert "script" not in page.tags
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]
    assert ("The plane" in page.words) == (kind not in ("precomputed",) and estimator.n_features_in_ == 2)
    assert ("Calibration" in page.words) == (kind == "logistic")
    assert ("Support vectors" in page.words) == isinstance(estimator, SVC)
    assert ("no better fit would change" in page.words) == (kind != "precomputed")


def test_names_from_the_data_are_text_and_nothing_else(tmp_path):
    X, y = PLANE
    table = pd.DataFrame(X, columns=HOSTILE[:2])
    labels = np.array(HOSTILE, object)[np.arange(len(y)) % 3]
    for model in (LinearSVC(max_iter=20), SVC()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(table, labels)
        model.report(tmp_path / "page.html", table, labels, test=(table[:30], labels[:30]))
        text = (tmp_path / "page.html").read_text("utf-8")
        page = page_of(tmp_path / "page.html")
        assert not {"script", "img", "b"} & set(page.tags)
        assert HOSTILE[0] in page.words
        assert "\u202e" not in text
        assert "\x07" not in text
        assert "onerror=alert(2)>" not in text


@settings(max_examples=10)
@given(st.lists(st.text(min_size=1, max_size=60), min_size=4, max_size=4, unique=True))
def test_any_text_can_be_a_name(texts):
    X, y = APART
    table, labels = pd.DataFrame(X, columns=texts[:2]), np.array(texts[2:], object)[y]
    page = read(page_about(LinearSVC().fit(table, labels), table, labels))
    assert set(page.tags) == set(KNOWN.split())


def test_what_does_not_hold_is_said_first(tmp_path):
    X, y = PLANE
    model = LinearSVC().fit(X, y)
    model.report(tmp_path / "page.html", X + 0.1, y)
    words = page_of(tmp_path / "page.html").words
    assert "The proof does not hold on these data" in words
    assert "above the claimed" in words
    assert "no better fit would change" not in words  # that rests on the proof


def test_other_rows_are_measured_without_a_proof(tmp_path):
    X, y = PLANE
    model = LinearSVC().fit(X[::2], y[::2])
    model.report(tmp_path / "page.html", X[:40], y[:40])
    words = page_of(tmp_path / "page.html").words
    assert "the data have 40 rows, and the model was trained on 50" in words
    assert "Clopper and Pearson" in words
    assert "Nothing could be recomputed" in words


def test_training_rows_have_no_interval_and_test_rows_have_one(tmp_path):
    X, y = PLANE
    model = LinearSVC().fit(X[::2], y[::2])
    model.report(tmp_path / "page.html", X[::2], y[::2])
    assert "Clopper" not in page_of(tmp_path / "page.html").words
    model.report(tmp_path / "page.html", X[::2], y[::2], test=(X[1::2], y[1::2]))
    assert "Clopper" in page_of(tmp_path / "page.html").words
    model.report(tmp_path / "page.html", X[::2], y[::2], test=(X[::2], y[::2]))
    assert "Clopper" not in page_of(tmp_path / "page.html").words


def test_a_fit_that_fell_short_says_so(tmp_path):
    X, y = PLANE
    with pytest.warns(ConvergenceWarning):
        model = LinearSVC(loss="hinge", solver="pegasos", max_iter=30, random_state=0).fit(X, y)
    model.report(tmp_path / "page.html", X, y)
    page = page_of(tmp_path / "page.html")
    assert "the training ended before its tolerance" in page.words
    assert "The relative gap that was proven after so many steps" in page.words


def test_a_function_that_is_no_kernel_proves_nothing(tmp_path):
    X, y = PLANE
    with pytest.warns(UserWarning, match="No kernel"):
        model = SVC(kernel="sigmoid", gamma=1.0).fit(X, y)
    model.report(tmp_path / "page.html", X, y)
    words = page_of(tmp_path / "page.html").words
    assert "The proof does not hold on these data" in words
    assert "no better fit would change" not in words


def test_weights_of_rows_are_missed(tmp_path):
    X, y = PLANE
    model = LinearSVC().fit(X, y, sample_weight=1.0 + (y > 0))
    model.report(tmp_path / "page.html", X, y)
    words = page_of(tmp_path / "page.html").words
    assert "The proof could not be recomputed on these data" in words
    assert "trained with sample weights, which are not in its file" in words


def test_the_chosen_model_of_a_search_reports(tmp_path):
    X, y = PLANE
    LinearSVCCV(Cs=[0.1, 1.0], cv=3).fit(X, y).report(tmp_path / "page.html", X, y)
    assert "The proof holds" in page_of(tmp_path / "page.html").words


def test_a_loaded_model_reports(tmp_path):
    X, y = PLANE
    page = tmp_path / "page.html"
    model = LinearSVC(loss="hinge", regularize_intercept=True).fit(X, y)
    for words, options in {
        "The proof holds": {},
        "The distance from the best model is bounded": {"proof": False},
        "There is no proof": {"format": "liblinear"},
    }.items():
        model.save(tmp_path / "model", **options)
        LinearSVC.load(tmp_path / "model").report(page, X, y)
        assert words in page_of(page).words


def test_wrong_numbers_are_refused(tmp_path):
    X, y = PLANE
    model = LinearSVC().fit(X, y)
    wrong = X.copy()
    wrong[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        model.report(tmp_path / "page.html", X, y, test=(wrong, y))
    model.coef_ = model.coef_ + 1.0
    with pytest.raises(ValueError, match="changed since"):
        model.report(tmp_path / "page.html", X, y)
    assert not list(tmp_path.iterdir())


def test_data_of_another_width_are_refused(tmp_path):
    X, y = IRIS
    model = LinearSVC().fit(X, y)
    with pytest.raises(
        ValueError, match=r"with the 4 columns of the model\. Got 3 columns .* Give the data"
    ):
        model.report(tmp_path / "page.html", X[:, :3], y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.report(tmp_path / "page.html", X, y[:-1])
    assert not list(tmp_path.iterdir())


def test_a_table_is_taken_by_its_names(tmp_path):
    X, y = IRIS
    table = pd.DataFrame(X, columns=list("abcd"))
    model = LinearSVC().fit(table, y)
    model.report(tmp_path / "page.html", table[list("dcba")], y)
    assert "The proof holds" in page_of(tmp_path / "page.html").words
    with pytest.raises(ValueError, match="It lacks d"):
        model.report(tmp_path / "page.html", table[list("abc")], y)


def test_the_same_files_give_the_same_page(tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1000000000")
    X, y = PLANE
    model = LinearSVC().fit(X, y)
    for name in "ab":
        model.report(tmp_path / name, X, y)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert "2001-09-09 01:46 UTC" in page_of(tmp_path / "a").words


# The command


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Training data, test data, a model of them, and one without its proof."""
    folder = tmp_path_factory.mktemp("files")
    X, y = IRIS
    write_libsvm(folder / "train.svm", X[::2], y[::2])
    write_libsvm(folder / "test.svm", X[1::2], y[1::2])
    model = LinearSVC(loss="hinge").fit(X[::2], y[::2])
    model.save(folder / "model.mm", data=(X[::2], y[::2]))
    model.save(folder / "short.mm", data=(X[::2], y[::2]), proof=False)
    as_theirs = LinearSVC(loss="hinge", regularize_intercept=True).fit(X[::2], y[::2])
    as_theirs.save(folder / "liblinear", format="liblinear")
    return folder


def test_the_command_writes_the_page_and_its_numbers(folder, answer, tmp_path):
    page, files = tmp_path / "page.html", (folder / "model.mm", folder / "train.svm")
    code, said = answer("report", *files, "--test", folder / "test.svm", "-o", page)
    assert code == 0
    certified = answer("certify", *files)[1]
    assert said["proof"] == certified
    words = page_of(page).words
    for problem in certified["problems"]:
        assert f"{problem['primal']:.8g}" in words
    tested = answer("predict", folder / "model.mm", folder / "test.svm")[1]
    assert said["test_measures"]["accuracy"] == tested["accuracy"]
    assert said["test_measures"]["interval"][0] < tested["accuracy"] < said["test_measures"]["interval"][1]
    assert said["data"]["training_data"] is True
    assert said["data"]["fingerprint"] == load_model(folder / "model.mm").fingerprint
    assert said["data"]["fingerprint"] in words
    assert said["model"]["sha256"] in words
    assert said["commands"][0] in words
    assert json.dumps(said)


def test_the_commands_on_the_page_do_what_it_says(folder, run, answer, tmp_path):
    said = answer("report", folder / "model.mm", folder / "train.svm", "-o", tmp_path / "p")[1]
    assert len(said["commands"]) == 2
    for command in said["commands"]:
        code, out, _ = run(*command.split()[1:])
        assert code == 0
        assert "olds" in out


def test_the_command_says_what_it_found(folder, run, tmp_path):
    page = tmp_path / "page.html"
    code, out, _ = run("report", folder / "model.mm", folder / "train.svm", "-o", page)
    assert code == 0
    assert out.startswith("Holds: ")
    assert "Accuracy on the training data: " in out
    assert f"Report: {page}, " in out
    code, out, _ = run("report", folder / "model.mm", folder / "test.svm", "-o", page)
    assert code == 1
    assert out.startswith("Does not hold: ")


def test_a_file_without_its_proof_is_bounded_anew(folder, answer, tmp_path):
    page = tmp_path / "page.html"
    code, said = answer("report", folder / "short.mm", folder / "train.svm", "-o", page)
    assert code == 0
    assert said["measures"]["best_model_right_at_least"] is None  # it would rest on what the file says
    assert "The model has no record of its training" in page_of(page).words


def test_files_of_others_are_measured(folder, answer, tmp_path):
    page, files = tmp_path / "page.html", (folder / "liblinear", folder / "train.svm")
    code, said = answer("report", *files, "-o", page)
    assert code == 1
    assert "Add -C VALUE" in said["no_proof"]
    assert "There is no proof" in page_of(page).words
    code, said = answer("report", *files, "-C", "1", "-o", page)
    assert code == 0
    assert said["commands"] == [f"maxmargin certify {files[0]} {files[1]} -C 1.0"]
    assert "The distance from the best model is bounded" in page_of(page).words


def test_columns_of_a_table_are_explained(run, answer, tmp_path):
    rows = ["red,1.5,yes", "<b>green</b>,0.5,no", "red,2.5,yes", "<b>green</b>,-1.0,no", "red,,yes"]
    (tmp_path / "table.csv").write_text("\n".join(["colour,size,label", *rows, ""]))
    model, data, page = tmp_path / "model.mm", tmp_path / "table.csv", tmp_path / "page.html"
    assert run("train", data, "-o", model)[0] == 0
    code, said = answer("report", model, data, "--label", "label", "-o", page)
    assert code == 0
    checks = [f"maxmargin certify {how}{model} {data} --label label" for how in ("", "--independent ")]
    assert said["commands"] == checks
    assert run(*said["commands"][0].split()[1:])[0] == 0
    found = page_of(page)
    assert "category, a column for each of <b>green</b>, red" in found.words
    assert "b" not in found.tags
    assert [column["name"] for column in said["model"]["table"]["columns"]] == ["colour", "size"]


def test_files_that_do_not_say_their_cost_are_measured(answer, tmp_path):
    (tmp_path / "data.svm").write_text("1 1:1\n2 1:-1\n3 1:1\n1 1:2\n")
    corpus = Path(__file__).parent.parent.parent / "fuzz" / "corpus" / "model"
    page = tmp_path / "page.html"
    code, said = answer("report", corpus / "liblinear_l1", tmp_path / "data.svm", "-o", page)
    assert code == 1
    assert "needs the C" in said["no_proof"]
    assert said["measures"]["rows"] == 4
    assert "There is no proof" in page_of(page).words


def test_models_of_libsvm_take_data_with_more_columns(answer, tmp_path):
    X, y = IRIS
    SVC(kernel="linear").fit(X[:, :3], y).save(tmp_path / "linear.model", format="libsvm")
    SVC(gamma=0.5).fit(X[:, :3], y).save(tmp_path / "curved.model", format="libsvm")
    wide = np.hstack([X[:, :3], np.zeros((150, 1)), np.ones((150, 1)) * (np.arange(150) == 7)[:, None]])
    write_libsvm(tmp_path / "wide.svm", wide, y)
    for name in ("linear.model", "curved.model"):
        said = answer("report", tmp_path / name, tmp_path / "wide.svm", "-C", "1", "-o", tmp_path / "p")[1]
        predicted = answer("predict", tmp_path / name, tmp_path / "wide.svm")[1]
        assert said["measures"]["accuracy"] == predicted["accuracy"]


def test_wrong_use_writes_nothing(folder, run, tmp_path):
    model, data = folder / "model.mm", folder / "train.svm"
    (tmp_path / "narrow.csv").write_text("label,a\n0,1.0\n1,2.0\n")
    for wrong, words in {
        ("report", model, data, "-o", data): "-o must not name a file that is read",
        ("report", model, data, "-o", tmp_path / "no" / "page"): "Make",
        ("report", model, data, "--tol", "2", "-o", tmp_path / "page"): "--tol must be above 0",
        ("report", model, tmp_path / "narrow.csv", "-o", tmp_path / "page"): "feature columns of the model",
        ("report", model, data): "Missing option",
    }.items():
        code, _, err = run(*wrong)
        assert code == 2
        assert words in err
    assert [path.name for path in tmp_path.iterdir()] == ["narrow.csv"]
