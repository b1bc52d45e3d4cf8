# SPDX-License-Identifier: BSD-3-Clause
"""``certify`` and ``certify --independent`` on every kind of saved model, sound and tampered with."""

from __future__ import annotations

import ast
import copy
import json
import math
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris
from typer.testing import CliRunner

import maxmargin.independent
import saved_models
from maxmargin import SVC, SVR, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM
from maxmargin.command_line import app
from maxmargin.independent.checker import rounded
from maxmargin.independent.readers import Unreadable, class_of, read_data
from written_files import parts_of, signed, write_libsvm

IRIS = load_iris(return_X_y=True)
ROWS = np.r_[0:12, 50:62, 100:112]
THREE = IRIS[0][ROWS], IRIS[1][ROWS]
TWO = THREE[0][12:], THREE[1][12:]
APART = THREE[0][:24], THREE[1][:24]
WIDTHS = THREE[0][:, :3], THREE[0][:, 3] + 0.25

KINDS = {
    "hinge": (LinearSVC(loss="hinge", C=0.7, random_state=0), TWO),
    "squared hinge, regularised": (LinearSVC(regularize_intercept=True, intercept_scaling=0.5), TWO),
    "no intercept": (LinearSVC(fit_intercept=False, loss="hinge", random_state=0), TWO),
    "logistic": (LinearSVC(loss="logistic"), TWO),
    "one against the rest": (LinearSVC(loss="hinge", class_weight="balanced", random_state=0), THREE),
    "weights of classes": (LinearSVC(class_weight={1: 2.5}), THREE),
    "hard margin": (LinearSVC(C=math.inf, random_state=0), APART),
    "gaussian, pairs": (SVC(C=10.0, class_weight="balanced"), THREE),
    "polynomial, pairs": (SVC(kernel="poly", coef0=1.0), THREE),
    "gaussian, two classes": (SVC(tol=1e-6), TWO),
    "linear kernel, rest": (SVC(kernel="linear", multi_class="ovr"), THREE),
    "regression": (LinearSVR(epsilon=0.1, C=3.0, random_state=0), WIDTHS),
    "squares outside of a tube, regularised": (
        LinearSVR(epsilon=0.1, loss="squared_epsilon_insensitive", regularize_intercept=True),
        WIDTHS,
    ),
    "gaussian, regression": (SVR(C=10.0, epsilon=0.05), WIDTHS),
    "nu, two classes": (NuSVC(nu=0.3), TWO),
    "nu, pairs": (NuSVC(nu=0.25, kernel="poly", coef0=1.0, degree=2), THREE),
    "nu, regression": (NuSVR(nu=0.4, C=3.0), WIDTHS),
    "one class": (OneClassSVM(nu=0.3, tol=1e-6), TWO),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model and its data of every kind."""
    place = tmp_path_factory.mktemp("independent")
    for name, (model, (X, y)) in KINDS.items():
        copy.deepcopy(model).fit(X, y).save(place / f"{name}.mm", data=(X, y))
        write_libsvm(place / f"{name}.svm", X, y)
    return place


def answer(*arguments):
    result = CliRunner().invoke(app, [*map(str, arguments), "--json"], standalone_mode=False)
    return result.return_value, json.loads(result.stdout)


def both(model, data, *more):
    return answer("certify", model, data, *more), answer("certify", model, data, "--independent", *more)


@pytest.mark.parametrize("name", KINDS)
def test_both_find_that_sound_models_hold(folder, name):
    (code, said), (own_code, own) = both(folder / f"{name}.mm", folder / f"{name}.svm")
    assert (code, said["reasons"]) == (0, [])
    assert (own_code, own["reasons"]) == (0, [])
    for theirs, ours in zip(said["problems"], own["problems"], strict=True):
        assert theirs["name"] == ours["name"]
        assert ours["primal"] == pytest.approx(theirs["primal"], rel=1e-9)
        assert ours["dual"] == pytest.approx(theirs["dual"], rel=1e-9)


def test_the_rounding_of_a_radius_is_no_reason_to_refuse_a_model(tmp_path):
    # Where the gap is 1e-13, the distance of w from w_of_alpha is nothing but rounding.
    model = LinearSVC().fit(*IRIS)
    model.save(tmp_path / "model.mm")
    write_libsvm(tmp_path / "data.svm", *IRIS)
    for code, said in both(tmp_path / "model.mm", tmp_path / "data.svm"):
        assert (code, said["reasons"]) == (0, [])


@pytest.mark.parametrize("exactly", [True, False])
def test_saving_a_model_that_does_not_hold_fails_a_test(folder, tmp_path, exactly):
    X, y = TWO
    other = saved_models.write_csv(tmp_path / "other.csv", 1.1 * X, y, None)
    with pytest.raises(AssertionError, match="does not find that a saved model holds"):
        saved_models.judge(folder / "hinge.mm", other, exactly=exactly)
    watched = saved_models.SavedModels()
    assert watched._look_at(LinearSVC(), folder / "hinge.mm").startswith("fitted elsewhere")


def tampered(folder, tmp_path, name, change):
    texts, described, arrays = parts_of(folder / f"{name}.mm")
    arrays = {key: value.copy() for key, value in arrays.items()}
    change(described, arrays)
    signed(tmp_path / "tampered.mm", texts, described, arrays)
    return both(tmp_path / "tampered.mm", folder / f"{name}.svm")


def claim_better(field, factor):
    def change(described, arrays):
        claim = described["claims"][0]
        claim[field] += (factor - 1.0) * abs(claim[field])
        claim["relative_gap"] = max((claim["primal"] - claim["dual"]) / abs(claim["primal"]), 0.0)

    return change


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize(("field", "factor"), [("primal", 1 - 1e-4), ("dual", 1 + 1e-4)])
def test_both_find_claims_that_are_too_good(folder, tmp_path, name, field, factor):
    (code, _), (own_code, own) = tampered(folder, tmp_path, name, claim_better(field, factor))
    assert (code, own_code) == (1, 1)
    word = "above the claimed" if field == "primal" else "below the claimed"
    assert any(word in reason for reason in own["reasons"])


@pytest.mark.parametrize("name", KINDS)
def test_both_find_other_multipliers(folder, tmp_path, name):
    def change(described, arrays):
        alpha = arrays["alpha"].reshape(-1)
        alpha[alpha.argmin()] += alpha.max()

    (code, _), (own_code, own) = tampered(folder, tmp_path, name, change)
    assert (code, own_code) == (1, 1)
    assert any("the multipliers prove" in reason for reason in own["reasons"])


def test_both_find_other_weights(folder, tmp_path):
    def change(described, arrays):
        arrays["coef"][0] *= 1.01

    (code, _), (own_code, _) = tampered(folder, tmp_path, "logistic", change)
    assert (code, own_code) == (1, 1)

    def turn(described, arrays):
        arrays["coef"][0] *= -1.0

    (code, _), (own_code, own) = tampered(folder, tmp_path, "hard margin", turn)
    assert (code, own_code) == (1, 1)
    assert "the hyperplane does not separate the rows" in own["reasons"]


@pytest.mark.parametrize("name", [name for name in KINDS if name != "hard margin"])
def test_both_find_a_best_model_that_is_said_to_be_nearer_than_it_is_shown_to_be(folder, tmp_path, name):
    def nearer(described, arrays):
        described["optimum"][0]["radius"] = 0.0

    (code, said), (own_code, own) = tampered(folder, tmp_path, name, nearer)
    assert (code, own_code) == (1, 1)
    assert "the best model is not shown to be as near as the file says" in said["reasons"][0]
    assert "the best w is not shown to be as near as the file says" in own["reasons"][0]


@pytest.mark.parametrize("name", ["hinge", "logistic", "weights of classes", "gaussian, two classes"])
@pytest.mark.parametrize("end", ["low", "high"])
def test_both_find_intercepts_that_are_left_out(folder, tmp_path, name, end):
    def narrower(described, arrays):
        place, b = described["optimum"][0], described["certificates"][0]["b"]
        place[end] = b + (1e-3 if end == "low" else -1e-3)
        place["high" if end == "low" else "low"] = b + (1.0 if end == "low" else -1.0)

    (code, _), (own_code, own) = tampered(folder, tmp_path, name, narrower)
    assert (code, own_code) == (1, 1)
    assert f"the {end} end that the file names" in own["reasons"][0]


@pytest.mark.parametrize("name", ["nu, two classes", "nu, regression", "one class"])
@pytest.mark.parametrize("end", ["low", "high"])
def test_both_find_levels_that_are_left_out(folder, tmp_path, name, end):
    def narrower(described, arrays):
        place, b = described["optimum"][0], float(arrays["intercept"][0])
        place[end] = b + (1e-3 if end == "low" else -1e-3)
        place["high" if end == "low" else "low"] = b + (1.0 if end == "low" else -1.0)

    (code, _), (own_code, own) = tampered(folder, tmp_path, name, narrower)
    assert (code, own_code) == (1, 1)
    assert "between the ends that the file names" in own["reasons"][0]


@pytest.mark.parametrize("name", ["nu, two classes", "nu, regression", "one class"])
def test_both_find_a_total_that_is_not_that_of_nu(folder, tmp_path, name):
    def other(described, arrays):
        described["problem"]["nu"] = described["parameters"]["nu"] = 0.29

    for code, said in tampered(folder, tmp_path, name, other):
        assert code == 1
        assert "add up to" in said["reasons"][0]


@pytest.mark.parametrize("name", ["nu, two classes", "nu, regression"])
def test_both_find_another_shift(folder, tmp_path, name):
    def other(described, arrays):
        described["shares"][0]["shift"] += 0.1

    for code, said in tampered(folder, tmp_path, name, other):
        assert code == 1
        assert "above the claimed" in said["reasons"][0]


def test_other_support_vectors_are_found(folder, tmp_path):
    def change(described, arrays):
        arrays["vectors"][0] += 1.0

    _, (code, own) = tampered(folder, tmp_path, "gaussian, two classes", change)
    assert code == 1
    assert "is not row" in own["reasons"][0]


def test_a_function_that_is_not_a_kernel_proves_nothing(folder, tmp_path):
    def change(described, arrays):
        described["kernel"] = {"kernel": "sigmoid", "gamma": 1.0, "coef0": -1.0}

    (code, _), (own_code, own) = tampered(folder, tmp_path, "gaussian, two classes", change)
    assert (code, own_code) == (1, 1)
    assert "not known to be a kernel" in own["reasons"][0]


def test_other_data_are_told(folder, tmp_path):
    lines = (folder / "hinge.svm").read_text().splitlines(keepends=True)
    cases = {
        "rows": "".join(lines[:-1]),
        "label": "".join([*lines[:-1], "7" + lines[-1][1:]]),
        "columns": "".join([*lines[:-1], lines[-1].rstrip() + " 9:1\n"]),
    }
    for word, text in cases.items():
        (tmp_path / "other.svm").write_text(text)
        code, own = answer("certify", folder / "hinge.mm", tmp_path / "other.svm", "--independent")
        assert code == 1
        assert word in own["reasons"][0]


def refused(*arguments):
    code, said = answer("certify", *arguments, "--independent")
    assert code == 2
    return said["error"]


def test_what_cannot_be_judged_is_refused_with_a_sentence(folder, tmp_path):
    X, y = TWO
    model = SVC(kernel="precomputed").fit(X @ X.T, y)
    model.save(tmp_path / "given.mm")
    write_libsvm(tmp_path / "given.svm", X @ X.T, y)
    assert "The kernel of the model is precomputed" in refused(
        tmp_path / "given.mm", tmp_path / "given.svm"
    )
    data = folder / "hinge.svm"
    LinearSVC().fit(X, y).save(tmp_path / "small.mm", proof=False)
    assert "without its proof" in refused(tmp_path / "small.mm", data)
    (tmp_path / "damaged.mm").write_bytes((folder / "hinge.mm").read_bytes()[:-1] + b"\7")
    assert "checksum" in refused(tmp_path / "damaged.mm", data)
    (tmp_path / "other.mm").write_bytes(b"solver_type L2R_L1LOSS_SVC_DUAL\n")
    assert "not a model of maxmargin" in refused(tmp_path / "other.mm", data)
    assert "cannot be read" in refused(tmp_path / "nowhere.mm", data)
    assert "LIBSVM text and CSV" in refused(folder / "hinge.mm", tmp_path / "data.npz")
    assert "Leave the other options out" in refused(folder / "hinge.mm", data, "-C", "1")
    (tmp_path / "bad.svm").write_text("1 1:2 3\n")
    assert "line 1" in refused(folder / "hinge.mm", tmp_path / "bad.svm")


def test_tables_are_read_too(folder, tmp_path):
    pandas = pytest.importorskip("pandas")
    X, y = TWO
    table = pandas.DataFrame(X, columns=["a", "b", "c", "d"])
    colour = np.where(y == 1, "red", "blue")
    LinearSVC(loss="hinge", random_state=0).fit(table, colour).save(tmp_path / "m.mm")
    turned = table[["d", "a", "c", "b"]].assign(colour=colour)
    turned.to_csv(tmp_path / "data.csv", index=False)
    model = tmp_path / "m.mm"
    (code, _), (own_code, own) = both(model, tmp_path / "data.csv", "--label", "colour")
    assert (code, own_code, own["reasons"]) == (0, 0, [])
    assert "no column holds the labels" in refused(model, tmp_path / "data.csv")


def test_the_verdict_in_words(folder):
    files = [str(folder / f"gaussian, pairs{ending}") for ending in (".mm", ".svm")]
    arguments = ["certify", *files, "--independent"]
    said = CliRunner().invoke(app, arguments, standalone_mode=False).stdout
    assert "0 against 1:" in said
    assert said.rstrip().endswith("Holds: every claim is true.")


def test_numbers_are_rounded_to_the_safe_side():
    third = Fraction(1, 3)
    assert Fraction(rounded(third, up=False)) < third < Fraction(rounded(third, up=True))
    assert rounded(Fraction(1, 2), up=True) == rounded(Fraction(1, 2), up=False) == 0.5
    assert rounded(None, up=True) == math.inf


def test_text_is_read_as_the_other_reader_reads_it(tmp_path):
    path = tmp_path / "data.svm"
    path.write_text("# two rows\n+1 qid:3 2:1e-3 5:-.5 # end\n\n-1.0\n")
    data = read_data(path)
    assert data.labels == ["1", "-1"]
    assert data.rows == [{1: 1e-3, 4: -0.5}, {}]
    assert data.columns == 5
    assert read_data(path, zero_based=True).columns == 6
    for wrong in ("1 0:1\n", "1 1:1 1:2\n", "1 1:nan\n", "1 1:1_0\n", "x 1:1\n"):
        path.write_text(wrong)
        with pytest.raises(Unreadable):
            read_data(path)
    assert class_of("1.0", ["0", "1"]) == 1
    assert class_of("red", ["0", "1"]) == -1


def test_the_checker_shares_nothing():
    """Its modules import the standard library and each other, and running it loads nothing else."""
    home = Path(maxmargin.independent.__file__).parent
    for file in home.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module]
            for name in names:
                inside = name.startswith("maxmargin.independent.")
                assert inside or name.split(".")[0] in sys.stdlib_module_names, (file.name, name)
    loaded = "[name in sys.modules for name in ('numpy', 'maxmargin.core')]"
    code = f"import sys, maxmargin.independent.checker; print(*{loaded})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
