# SPDX-License-Identifier: BSD-3-Clause
"""Model files of ``NuSVC``, ``NuSVR`` and ``OneClassSVM``: ours, LIBSVM's, and what ``certify`` finds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from libsvm import svmutil
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file, load_iris, make_moons

from maxmargin import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from maxmargin.files import ModelError, load_model, load_pipeline, save_model
from maxmargin.files.models.fitted import from_estimator
from maxmargin.files.models.stored import Share
from peer_programs import ATOL, as_rows, libsvm_values

X, Y = make_moons(60, noise=0.3, random_state=0)
VALUES = np.sin(2.0 * X[:, 0]) + 0.1 * X[:, 1]
IRIS, SPECIES = (part[::3] for part in load_iris(return_X_y=True))
MEMBERS = {
    "two classes": (NuSVC(nu=0.4), X, Y, "-s 1 -n 0.4"),
    "pairs": (NuSVC(nu=0.2, gamma=0.3), IRIS, SPECIES, "-s 1 -n 0.2"),
    "regression": (NuSVR(nu=0.3, C=2.0, tol=1e-4), X, VALUES, "-s 4 -n 0.3 -c 2"),
    "one class": (OneClassSVM(nu=0.25), X + 2.0, Y, "-s 2 -n 0.25"),
}


@pytest.fixture(params=MEMBERS)
def member(request, tmp_path):
    """A fitted member with its rows and labels, and a file of these."""
    model, rows, labels, peer = MEMBERS[request.param]
    dump_svmlight_file(rows, labels, str(tmp_path / "data.svm"), zero_based=False)
    fitted = type(model)(**model.get_params()).fit(rows, labels)
    return fitted, rows, labels, peer


def answers(model, rows):
    return model.predict(rows) if isinstance(model, NuSVR) else model.decision_function(rows)


def bounds(model, rows):
    return model.prediction_bounds(rows) if isinstance(model, NuSVR) else model.decision_bounds(rows)


def what_libsvm_says(path, rows):
    """Labels and values by LIBSVM's own predictor.

    Its Python module gives ``nu_svc`` room for one value, whatever the number of classes; the same lines
    are a file of ``c_svc``.
    """
    text = path.read_text().replace("svm_type nu_svc", "svm_type c_svc", 1)
    other = path.with_suffix(".other")
    other.write_text(text)
    return libsvm_values(svmutil.svm_load_model(str(other)), rows)


def test_a_file_keeps_the_model_and_its_proof(member, tmp_path, run):
    model, rows, labels, _ = member
    path, again = tmp_path / "model.mm", tmp_path / "again.mm"
    model.save(path)
    saved, loaded = load_model(path), type(model).load(path)
    np.testing.assert_array_equal(answers(loaded, rows), answers(model, rows))
    np.testing.assert_array_equal(saved.predict(rows), model.predict(rows))
    np.testing.assert_array_equal(bounds(loaded, rows), bounds(model, rows))
    assert str(loaded.certificate_) == str(model.certificate_)
    assert loaded.get_params() == model.get_params()
    assert [loaded.status_, saved.rows] == [model.status_, len(rows)]
    loaded.save(again)
    assert again.read_bytes() == path.read_bytes()
    np.testing.assert_array_equal(load_pipeline(path)[-1].predict(rows), model.predict(rows))
    warm = loaded.set_params(warm_start=True).fit(rows, labels)
    assert warm.certificate_.relative_gap <= warm.tol
    code, out, _ = run("info", path)
    assert code == 0
    assert f"nu = {model.nu:g}" in out
    code, out, _ = run("predict", path, tmp_path / "data.svm")
    assert (code, len(out.split())) == (0, len(rows))


def test_a_file_without_proof_is_measured(member, tmp_path, run):
    model, rows, _, _ = member
    model.save(tmp_path / "model.mm", proof=False)
    loaded = type(model).load(tmp_path / "model.mm")
    np.testing.assert_array_equal(answers(loaded, rows), answers(model, rows))
    if isinstance(model, NuSVR):
        assert loaded.epsilon_ == model.epsilon_
    code, out, _ = run("certify", tmp_path / "model.mm", tmp_path / "data.svm")
    assert (code, "Holds" in out) == (0, True)
    loaded.save(tmp_path / "again.mm", proof=False)
    assert load_model(tmp_path / "again.mm").shares == load_model(tmp_path / "model.mm").shares


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
def test_libsvm_writes_and_we_read_and_judge(member, tmp_path, run, kernel):
    model, rows, labels, peer = member
    path = tmp_path / "their.model"
    kind = {"linear": 0, "poly": 1, "rbf": 2}[kernel]
    theirs = svmutil.svm_train(labels, as_rows(rows), f"{peer} -t {kind} -g 0.3 -r 1 -e 1e-6 -q")
    svmutil.svm_save_model(str(path), theirs)
    said, values = what_libsvm_says(path, rows)
    found, loaded = load_model(path), type(model).load(path)
    np.testing.assert_array_equal(found.predict(rows), loaded.predict(rows))
    if isinstance(model, NuSVR):
        np.testing.assert_allclose(found.predict(rows), said, atol=1e-5)
    else:
        # LIBSVM calls a score of 0 outside, and writes 8 digits of each number.
        clear = np.abs(values).min(axis=1) > 1e-4
        np.testing.assert_array_equal(found.predict(rows)[clear], said[clear])
    with pytest.raises(ModelError, match="does not say which nu"):
        save_model(found, tmp_path / "ours.mm")
    data, cost = tmp_path / "data.svm", ["-C", 2] if isinstance(model, NuSVR) else []
    code, out, _ = run("certify", path, data, "--nu", model.nu, *cost)
    assert (code, "Within --tol" in out) == (0, True)
    assert run("certify", path, data, "--nu", 0.5 * model.nu, *cost)[0] == 1
    code, _, err = run("certify", path, data, *cost)
    assert (code, "--nu" in err) == (2, True)
    assert "nu is not in the file" in run("info", path)[1]


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
def test_we_write_and_libsvm_reads(member, tmp_path, kernel):
    model, rows, labels, _ = member
    path = tmp_path / "our.model"
    model.set_params(kernel=kernel, gamma=0.3, coef0=1.0).fit(rows, labels)
    model.save(path, format="libsvm")
    said, values = what_libsvm_says(path, rows)
    found = load_model(path)
    if isinstance(model, NuSVR):
        np.testing.assert_allclose(said, model.predict(rows), atol=ATOL)
        np.testing.assert_allclose(found.predict(rows), model.predict(rows), atol=ATOL)
        return
    ours = model.set_params(decision_function_shape="ovo") if isinstance(model, NuSVC) else model
    scores = ours.decision_function(rows).reshape(len(rows), -1)
    sign = -1.0 if isinstance(model, NuSVC) and scores.shape[1] == 1 else 1.0  # LIBSVM's first class
    np.testing.assert_allclose(np.abs(values), np.abs(sign * scores), atol=1e-9)
    np.testing.assert_allclose(found.decision_function(rows).reshape(len(rows), -1), scores, atol=1e-9)
    with pytest.raises(ModelError, match="LIBLINEAR has no"):
        model.save(path, format="liblinear")


def test_sparse_rows_and_given_matrices_are_kept(member, tmp_path):
    model, rows, labels, _ = member
    for kernel, given in (("rbf", sparse.csr_matrix(rows)), ("precomputed", rows @ rows.T)):
        fitted = model.set_params(kernel=kernel).fit(given, labels)
        fitted.save(tmp_path / "model.mm")
        loaded = type(model).load(tmp_path / "model.mm")
        np.testing.assert_array_equal(answers(loaded, given), answers(fitted, given))


def test_every_class_loads_its_own_files(tmp_path):
    path = tmp_path / "model.mm"
    NuSVC(nu=0.3).fit(X, Y).save(path)
    for kind in (SVC, SVR, OneClassSVM, NuSVR):
        with pytest.raises(ModelError, match=r"classification with a nu. Load it with NuSVC\.load"):
            kind.load(path)
    OneClassSVM().fit(X).save(path)
    with pytest.raises(
        ModelError, match=r"one class with a nu. Load it with LinearOneClassSVM\.load or One"
    ):
        SVC.load(path)
    SVC().fit(X, Y).save(path)
    with pytest.raises(ModelError, match=r"of classification. Load it with LinearSVC\.load or SVC\.load"):
        NuSVC.load(path)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"shares": None}, "does not say what its multipliers add up to"),
        ({"problem": {"nu": 1.5}}, "nu must be a number above 0 and at most 1"),
        ({"problem": {"intercept": "exact"}}, "no intercept but the shift"),
        ({"problem": {"loss": "squared_hinge"}}, "loss must be one of"),
        ({"intercept": np.array([0.5])}, "the shift of its targets"),
        ({"classes": np.array([0, 1])}, "one problem, and no classes"),
    ],
)
def test_an_unsound_model_is_refused(changes, sentence):
    saved = from_estimator(OneClassSVM(nu=0.3).fit(X))
    if "problem" in changes:
        changes = {"problem": saved.problem | changes["problem"]}
    with pytest.raises(ModelError, match=sentence):
        replace(saved, **changes)


def test_predict_says_which_rows_are_sure(tmp_path, run):
    dump_svmlight_file(X, Y, str(tmp_path / "data.svm"), zero_based=False)
    model = OneClassSVM(nu=0.2, tol=1e-8).fit(X)
    model.save(tmp_path / "model.mm")
    code, out, err = run("predict", tmp_path / "model.mm", tmp_path / "data.svm", "--sure")
    assert code == 0
    sure = np.array([line.split()[1] == "sure" for line in out.strip().splitlines()])
    np.testing.assert_array_equal(sure, model.is_sure(X))
    assert "Sure:" in err + out


@pytest.mark.parametrize(
    ("estimator", "fields", "said"),
    [
        (OneClassSVM(), {"class_weight": "balanced"}, "one class has no class_weight"),
        (OneClassSVM(), {"intercept": "exact"}, "no intercept but the shift"),
        (NuSVC(nu=0.1), {"C": np.inf}, "a finite C"),
        (NuSVC(nu=0.1), {"loss": "squared_hinge"}, "minimises the hinge"),
        (NuSVC(nu=0.1), {"nu": 2.0}, "above 0 and at most 1"),
        (NuSVR(), {"epsilon": 0.5}, "epsilon is sought"),
        (NuSVC(nu=0.1), {"shares": [Share(1.0, 1.0, 0.0)] * 2}, "there are 2 shares for 3 problems"),
        (NuSVC(nu=0.1), {"shares": [Share(-1.0, 1.0, 0.0)] * 3}, "a share has a cost"),
        (SVC(), {"shares": [Share(1.0, 1.0, 0.0)] * 3}, "shares, and no nu"),
        (SVC(), {"class_weight": "none"}, "class_weight is 'none'"),
    ],
)
def test_what_contradicts_itself_is_refused(estimator, fields, said):
    saved = from_estimator(clone(estimator).fit(*load_iris(return_X_y=True)))
    shares = {name: value for name, value in fields.items() if name == "shares"}
    stated = {name: value for name, value in fields.items() if name != "shares"}
    with pytest.raises(ModelError, match=said):
        replace(saved, problem=saved.problem | stated, **shares)
