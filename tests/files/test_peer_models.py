# SPDX-License-Identifier: BSD-3-Clause
"""Model text of LIBLINEAR and LIBSVM: the real programs and this package read each other's files."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from liblinear import liblinearutil
from libsvm import svmutil
from sklearn.datasets import make_classification

from combinations import every_pair
from maxmargin import LinearSVC
from maxmargin.files import ModelError, load_model, save_model
from peer_programs import ATOL, as_rows, data_of, liblinear_values, libsvm_values
from written_files import mutated, mutations

# LIBLINEAR


@every_pair(solver=range(8), bias=[-1, 0, 1, 2.5], classes=[2, 3])
def test_liblinear_writes_and_we_read(tmp_path, solver, bias, classes):
    X, y = data_of(classes)
    theirs = liblinearutil.train(y, as_rows(X), f"-s {solver} -B {bias} -c 0.3 -e 0.01 -q")
    path = tmp_path / "model"
    liblinearutil.save_model(str(path), theirs)
    ours = load_model(path)
    labels, values = liblinear_values(theirs, X)
    found = ours.decision_function(X)
    shared = min(values.shape[1], len(ours.coef))  # some versions give more columns, or fewer, than weights
    np.testing.assert_allclose(found.reshape(len(X), -1)[:, :shared], values[:, :shared], atol=ATOL)
    np.testing.assert_array_equal(ours.predict(X), labels)
    assert (ours.format, ours.writer) == ("liblinear", "LIBLINEAR")
    loss = {0: "logistic", 1: "squared_hinge", 2: "squared_hinge", 3: "hinge", 4: "hinge"}
    loss |= {5: "squared_hinge", 6: "logistic", 7: "logistic"}
    assert ours.problem["loss"] == loss[solver]
    assert ours.problem["C"] is None
    assert ours.problem["penalty"] == ("l1" if solver in (5, 6) else "l2")
    assert ours.problem["formulation"] == ("crammer_singer" if solver == 4 else "separate")
    assert ours.problem["intercept"] == ("regularised" if bias > 0 else "none")
    if bias > 0:
        assert ours.problem["intercept_scaling"] == bias
    loaded = LinearSVC.load(path)
    assert loaded.penalty == ours.problem["penalty"]
    np.testing.assert_array_equal(loaded.predict(X), labels)
    assert (np.diff(loaded.classes_) > 0).all()
    # And back again, in their own words.
    save_model(ours, tmp_path / "again", format="liblinear")
    again = liblinearutil.load_model(str(tmp_path / "again"))
    again_labels, again_values = liblinear_values(again, X)
    np.testing.assert_array_equal(again_labels, labels)
    np.testing.assert_allclose(again_values, values, atol=ATOL)
    first, second = path.read_text().split()[1], (tmp_path / "again").read_text().split()[1]
    equal = {"L2R_L2LOSS_SVC": "L2R_L2LOSS_SVC_DUAL", "L2R_LR_DUAL": "L2R_LR"}
    assert second == equal.get(first, first)


@every_pair(
    lambda loss, penalty, **_: loss != "hinge" or penalty == "l2",
    loss=["hinge", "squared_hinge", "logistic"],
    penalty=["l2", "l1"],
    form=["none", "regularised", "exact"],
    classes=[2, 4],
)
def test_we_write_and_liblinear_reads(tmp_path, loss, penalty, form, classes):
    X, y = data_of(classes)
    model = LinearSVC(
        penalty=penalty,
        loss=loss,
        fit_intercept=form != "none",
        regularize_intercept=form == "regularised",
        intercept_scaling=3.0,
        tol=0.1,
    ).fit(X, y)
    model.save(tmp_path / "model", format="liblinear")
    theirs = liblinearutil.load_model(str(tmp_path / "model"))
    labels, values = liblinear_values(theirs, X)
    np.testing.assert_array_equal(labels, model.predict(X))
    ours = model.decision_function(X).reshape(len(X), -1)
    np.testing.assert_allclose(values[:, : ours.shape[1]], ours, atol=ATOL)
    loaded = load_model(tmp_path / "model")
    np.testing.assert_array_equal(loaded.coef, model.coef_)
    np.testing.assert_allclose(loaded.intercept, model.intercept_, rtol=1e-15)


def test_a_liblinear_model_is_a_start(tmp_path):
    X, y = make_classification(600, 10, random_state=0)
    theirs = liblinearutil.train(np.where(y == 1, 1, -1), as_rows(X), "-s 3 -B 1 -e 1e-6 -q")
    liblinearutil.save_model(str(tmp_path / "model"), theirs)
    model = LinearSVC.load(tmp_path / "model").set_params(warm_start=True, tol=1e-3)
    assert model.regularize_intercept
    model.fit(X, np.where(y == 1, 1, -1))
    assert model.certificate_.relative_gap <= 1e-3


def test_a_liblinear_model_saved_as_ours(tmp_path):
    X, y = data_of(3)
    theirs = liblinearutil.train(y, as_rows(X), "-s 4 -q")
    liblinearutil.save_model(str(tmp_path / "model"), theirs)
    save_model(load_model(tmp_path / "model"), tmp_path / "ours")
    ours = load_model(tmp_path / "ours")
    np.testing.assert_array_equal(ours.predict(X), liblinear_values(theirs, X)[0])
    assert ours.problem["formulation"] == "crammer_singer"
    assert ours.problem["C"] is None


LIBLINEAR = "solver_type L2R_L1LOSS_SVC_DUAL\nnr_class 2\nlabel 1 -1\nnr_feature 2\nbias -1\nw\n0.5 \n-1 \n"
LIBLINEAR_ERRORS = [
    (
        "L2R_L1LOSS_SVC_DUAL",
        "PERCEPTRON",
        "line 1: the solver type 'PERCEPTRON' is not one of a classifier",
    ),
    ("L2R_L1LOSS_SVC_DUAL", "ONECLASS_SVM", "'rho'"),
    ("nr_class 2", "nr_class 1", "line 2: '1' is not a whole number from 2"),
    ("nr_class 2", "nr_class 3", "line 3: 'label' should have 3 values"),
    ("nr_class 2", "nr_class 9999999999999999999999", "line 2"),
    ("label 1 -1", "label 1 1", "line 3: a label occurs twice"),
    ("label 1 -1", "label 1 0.5", "line 3: '0.5' is not a whole number"),
    ("label 1 -1\n", "", "lacks 'label'"),
    ("nr_feature 2", "nr_feature 0", "line 4: '0' is not a whole number"),
    ("nr_feature 2", "nr_feature 3", "line 9: the file ends here|too short"),
    ("nr_feature 2", "nr_feature 1000000000000", "too short"),
    ("nr_feature 2", "nr_feature 1", "line 8: the model is complete"),
    ("bias -1", "bias nan", "line 5: 'nan' is not a finite number"),
    ("bias -1\nw\n0.5 \n-1", "bias 1e300\nw\n1\n1\n1e300", "intercept must hold 1 finite"),
    ("bias -1", "bias 1", "line 9: the file ends|too short"),
    ("bias -1", "bias -1\nbias -1", "line 6: 'bias' was given before, in line 5"),
    ("bias -1", "colour red", "line 5: 'colour red' is not a line of such a header"),
    ("0.5 ", "0.5 0.5 ", "line 7: 1 numbers should be here, not the 2"),
    ("0.5 ", "1_0 ", "line 7: '1_0' is not a finite number"),
    ("0.5 ", "1e999 ", "line 7: '1e999' is not a finite number"),
    ("0.5 ", "x\x00", "line 7"),
    ("L2R_L1LOSS_SVC_DUAL", "KERNEL", "line 1: the solver type 'KERNEL'"),
    ("\nw\n", "\n", "not a line of such a header"),
]


@pytest.mark.parametrize(("old", "new", "reason"), LIBLINEAR_ERRORS)
def test_unsound_liblinear_text(tmp_path, old, new, reason):
    assert old in LIBLINEAR
    (tmp_path / "model").write_text(LIBLINEAR)
    assert load_model(tmp_path / "model").coef.tolist() == [[0.5, -1.0]]
    (tmp_path / "model").write_text(LIBLINEAR.replace(old, new, 1))
    with pytest.raises(ModelError, match=reason) as caught:
        load_model(tmp_path / "model")
    assert str(caught.value).startswith(str(tmp_path / "model"))


def test_windows_lines_and_blank_ends(tmp_path):
    (tmp_path / "model").write_bytes(LIBLINEAR.replace("\n", "\r\n").encode() + b"\n \n")
    assert load_model(tmp_path / "model").classes.tolist() == [-1, 1]


@pytest.mark.parametrize("format", ["liblinear", "libsvm"])
@pytest.mark.parametrize("labels", [["a", "b"], [0.0, 2.0**40]])
def test_labels_that_are_not_whole_numbers_cannot_be_written(tmp_path, format, labels):
    X, y = data_of(2, labels=(0, 1))
    model = LinearSVC().fit(X, np.array(labels)[y])
    with pytest.raises(ModelError, match="whole numbers"):
        model.save(tmp_path / "model", format=format)
    assert not list(tmp_path.iterdir())


# LIBSVM


@pytest.mark.parametrize("classes", [2, 3, 4])
@pytest.mark.parametrize("options", ["", "-b 1", "-w7 3 -h 0"])
def test_libsvm_writes_and_we_read(tmp_path, classes, options):
    X, y = data_of(classes)
    theirs = svmutil.svm_train(y, as_rows(X), f"-s 0 -t 0 -c 0.7 -q {options}")
    path = str(tmp_path / "model")
    svmutil.svm_save_model(path, theirs)
    theirs = svmutil.svm_load_model(path)  # with the digits that the file keeps
    ours = load_model(path)
    labels, values = libsvm_values(theirs, X)
    np.testing.assert_allclose(ours.decision_function(X).reshape(len(X), -1), values, atol=ATOL)
    np.testing.assert_array_equal(ours.predict(X), labels)
    assert (ours.format, ours.writer) == ("libsvm", "LIBSVM")
    assert (ours.problem["loss"], ours.problem["intercept"], ours.problem["C"]) == ("hinge", "exact", None)
    assert ours.decision == ("one_vs_rest" if classes == 2 else "one_vs_one")
    if classes == 2:
        np.testing.assert_array_equal(LinearSVC.load(path).predict(X), labels)
    else:
        with pytest.raises(ModelError, match="pairs of classes"):
            LinearSVC.load(path)
    # Our own format keeps all of it but the support vectors.
    save_model(ours, tmp_path / "ours")
    np.testing.assert_array_equal(load_model(tmp_path / "ours").predict(X), labels)


def test_support_vectors_are_found_among_the_rows(tmp_path):
    X, y = data_of(3)
    C = 0.7
    theirs = svmutil.svm_train(y, as_rows(X), f"-s 0 -t 0 -c {C} -q")
    svmutil.svm_save_model(str(tmp_path / "model"), theirs)
    model = load_model(tmp_path / "model")
    support = model.support
    rows = support.vectors.toarray()
    for place in range(3):
        signed = support.coefficients_of(place)
        np.testing.assert_allclose(signed @ rows, model.coef[place, : rows.shape[1]], atol=ATOL)
        assert abs(signed.sum()) < 1e-9
        assert np.abs(signed).max() <= C * (1 + 1e-12)
    full = np.zeros((len(rows), 6))
    full[:, : rows.shape[1]] = rows
    for row, label in zip(full, support.classes[support.owners], strict=True):
        near = np.abs(X - row).max(axis=1) < 1e-6
        assert label in y[near]


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("intercept", [True, False])
def test_we_write_and_libsvm_reads(tmp_path, loss, intercept):
    X, y = data_of(2)
    model = LinearSVC(loss=loss, fit_intercept=intercept).fit(X, y)
    model.save(tmp_path / "model", format="libsvm")
    theirs = svmutil.svm_load_model(str(tmp_path / "model"))
    labels, values = libsvm_values(theirs, X)
    np.testing.assert_array_equal(labels, model.predict(X))
    np.testing.assert_allclose(values.ravel(), model.decision_function(X), atol=ATOL)
    np.testing.assert_array_equal(load_model(tmp_path / "model").predict(X), labels)


def test_a_model_of_zeros(tmp_path):
    X, y = data_of(2)
    model = LinearSVC(max_iter=100, tol=10.0).fit(X * 0.0, y)
    for format, values in (("libsvm", libsvm_values), ("liblinear", liblinear_values)):
        model.save(tmp_path / format, format=format)
        np.testing.assert_array_equal(load_model(tmp_path / format).predict(X[:, :1]), model.predict(X))
        load = svmutil.svm_load_model if format == "libsvm" else liblinearutil.load_model
        np.testing.assert_array_equal(values(load(str(tmp_path / format)), X)[0], model.predict(X))


def test_several_classes_cannot_be_written_as_libsvm(tmp_path):
    X, y = data_of(3)
    with pytest.raises(ModelError, match=r"one class from the rest.*format='liblinear'"):
        LinearSVC().fit(X, y).save(tmp_path / "model", format="libsvm")
    svmutil.svm_save_model(str(tmp_path / "pairs"), svmutil.svm_train(y, as_rows(X), "-t 0 -q"))
    pairs = load_model(tmp_path / "pairs")
    with pytest.raises(ModelError, match=r"pair.*format='maxmargin'"):
        save_model(pairs, tmp_path / "model", format="liblinear")
    save_model(pairs, tmp_path / "again", format="libsvm")
    np.testing.assert_array_equal(load_model(tmp_path / "again").coef, pairs.coef)
    save_model(pairs, tmp_path / "ours")  # which keeps no support vectors of a linear model
    with pytest.raises(ModelError, match=r"pair.*format='maxmargin'"):
        save_model(load_model(tmp_path / "ours"), tmp_path / "model", format="libsvm")


LIBSVM = (
    "svm_type c_svc\nkernel_type linear\nnr_class 2\ntotal_sv 2\nrho 0.25\nlabel 1 -1\nnr_sv 1 1\nSV\n"
    "0.5 1:1 3:2 \n-0.5 2:1 \n"
)
LIBSVM_ERRORS = [
    ("c_svc", "least_squares", "line 1: the SVM is of the type 'least_squares'. Those that can be read"),
    ("nr_class 2", "nr_class 3", "line 6: 'label' should have 3 values"),
    ("nr_class 2", "nr_class 4000000000000000000", "line 6: 'label' should have"),
    ("rho 0.25", "rho 0.25 1", "line 5: 'rho' should have 1 values"),
    ("rho 0.25", "rho inf", "line 5: 'inf' is not a finite number"),
    ("total_sv 2", "total_sv 3", "line 7: the classes' support vectors do not add up to 3"),
    ("total_sv 2", "total_sv 0", "line 4"),
    ("nr_sv 1 1", "nr_sv 2 -1", "line 7: '-1' is not a whole number"),
    ("total_sv 2", "total_sv 4000000000000", "add up"),
    ("0.5 1:1", "0.5 0:1", "line 9: '0' is not a whole number from 1"),
    ("3:2", "1:2", "line 9: '1' is not a whole number from 2"),
    ("3:2", "3", "line 9: '3' should be index:value"),
    ("3:2", "3:", "line 9: '' is not a finite number"),
    ("3:2", "3:nan", "line 9: 'nan'"),
    ("3:2", "2147483648:1", "line 9"),
    ("3:2", "2147483647:1", "does not justify"),
    ("-0.5 2:1 \n", "", "line 10: the file ends here"),
    ("-0.5 2:1 \n", "\n", "line 10: 1 coefficients should be here, not 0"),
    ("2:1 \n", "2:1 \n1 1:1\n", "line 11: the model is complete"),
    ("SV\n", "", "not a line of such a header"),
]


@pytest.mark.parametrize(("old", "new", "reason"), LIBSVM_ERRORS)
def test_unsound_libsvm_text(tmp_path, old, new, reason):
    assert old in LIBSVM
    (tmp_path / "model").write_text(LIBSVM)
    sound = load_model(tmp_path / "model")
    assert sound.coef.tolist() == [[0.5, -0.5, 1.0]]
    assert sound.intercept.tolist() == [-0.25]
    (tmp_path / "model").write_text(LIBSVM.replace(old, new, 1))
    with pytest.raises(ModelError, match=reason):
        load_model(tmp_path / "model")


def test_counts_that_the_file_cannot_hold(tmp_path):
    huge = LIBSVM.replace("total_sv 2", "total_sv 4000000000000").replace(
        "nr_sv 1 1", "nr_sv 1 3999999999999"
    )
    (tmp_path / "model").write_text(huge)
    with pytest.raises(ModelError, match="too short"):
        load_model(tmp_path / "model")


@pytest.mark.parametrize("text", [LIBLINEAR, LIBSVM], ids=["liblinear", "libsvm"])
@settings(max_examples=150)
@given(changes=mutations)
def test_mutations_of_the_texts(tmp_path_factory, text, changes):
    path = tmp_path_factory.getbasetemp() / "mutated text"
    path.write_bytes(mutated(text.encode(), changes))
    try:
        model = load_model(path)
    except ModelError:
        return
    assert np.isfinite(model.coef).all()
    assert np.isin(model.predict(np.ones((3, model.features))), model.classes).all()


digits = st.text("0123456789+-.e:_ \n\x00nai", max_size=6)


@pytest.mark.parametrize("text", [LIBLINEAR, LIBSVM], ids=["liblinear", "libsvm"])
@settings(max_examples=150)
@given(data=st.data())
def test_mutations_of_single_words(tmp_path_factory, text, data):
    words = text.split(" ")
    words[data.draw(st.integers(0, len(words) - 1))] = data.draw(digits)
    path = tmp_path_factory.getbasetemp() / "mutated words"
    path.write_text(" ".join(words))
    try:
        model = load_model(path)
    except ModelError:
        return
    assert np.isfinite(model.coef).all()
