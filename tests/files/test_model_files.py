# SPDX-License-Identifier: BSD-3-Clause
"""Model files: what is saved comes back, what is unsound is refused, and the peers agree."""

from __future__ import annotations

import json
import pickle
import struct
from dataclasses import replace

import joblib
import numpy as np
import pandas as pd
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, make_classification
from sklearn.preprocessing import scale

from combinations import every_pair
from maxmargin import LinearSVC, Status
from maxmargin.files import ModelError, SavedModel, fingerprint, load_model, save_model
from maxmargin.files.models.arrays import Array
from maxmargin.files.models.fitted import from_estimator
from maxmargin.files.models.safetensors import VERSION, _checksum
from maxmargin.solvers import LINEAR_SOLVERS, DualCoordinateAscent, Subgradient
from written_files import (
    PROBLEM,
    assert_refused_or_usable,
    assert_same_certificates,
    mutated,
    mutations,
    parts_of,
    replace_one_part,
    signed,
)


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X), y


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return scale(X) + 0.1, y


@pytest.fixture(scope="module")
def fitted(iris):
    return LinearSVC(loss="hinge", random_state=0).fit(*iris)


def assert_same_estimator(loaded, model, X):
    assert loaded.get_params() == model.get_params()
    assert loaded.classes_.dtype.kind == model.classes_.dtype.kind
    np.testing.assert_array_equal(loaded.classes_, model.classes_)
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert_same_certificates(loaded.certificate_, model.certificate_)
    assert repr(loaded.trace_) == repr(model.trace_)
    assert loaded.trace_ == model.trace_
    assert (loaded.status_, loaded.n_iter_, loaded.solver_) == (model.status_, model.n_iter_, model.solver_)
    assert loaded.n_features_in_ == model.n_features_in_


# Round trips of our own format


@every_pair(
    data=["cancer", "iris"],
    form=["none", "regularised", "exact"],
    loss=["hinge", "squared_hinge", "logistic"],
)
def test_what_is_saved_comes_back(tmp_path, request, data, loss, form):
    X, y = request.getfixturevalue(data)
    model = LinearSVC(
        loss=loss,
        fit_intercept=form != "none",
        regularize_intercept=form == "regularised",
        intercept_scaling=2.0,
        tol=1e-2,
        C=0.1,
        random_state=3,
    ).fit(X, y)
    model.save(tmp_path / "model")
    assert_same_estimator(LinearSVC.load(tmp_path / "model"), model, X)
    saved = load_model(tmp_path / "model")
    assert saved.problem == {
        **PROBLEM,
        "loss": loss,
        "C": 0.1,
        "intercept": form,
        "intercept_scaling": 2.0,
    }
    assert saved.format == "maxmargin"
    assert saved.writer.startswith("maxmargin")
    assert (saved.rows, saved.tol, saved.status) == (len(y), 1e-2, model.status_)
    np.testing.assert_array_equal(saved.predict(X), model.predict(X))
    np.testing.assert_array_equal(saved.predict(X[:, :3]), saved.predict(X * (np.arange(X.shape[1]) < 3)))


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["Straße", "b", "a longer name"]),
        np.array(["x", "y", "z"], object),
        np.array([-(2**62), 0, 2**62]),
        np.array([0, 200, 255], np.uint8),
        np.array([0.0, 2.0, -1e15]),
        np.array([0, 1, -7], np.float32),
    ],
    ids=lambda labels: str(labels.dtype),
)
def test_classes_of_every_kind(tmp_path, iris, labels):
    X, y = iris
    model = LinearSVC(C=0.1).fit(X, labels[y])
    model.save(tmp_path / "model")
    loaded = LinearSVC.load(tmp_path / "model")
    assert loaded.classes_.dtype == np.unique(labels).dtype
    assert_same_estimator(loaded, model, X)


def test_classes_that_are_true_or_false(tmp_path, cancer):
    X, y = cancer
    model = LinearSVC().fit(X, y == 1)
    model.save(tmp_path / "model")
    assert LinearSVC.load(tmp_path / "model").classes_.dtype == bool


def test_feature_names(tmp_path, iris):
    X, y = iris
    frame = pd.DataFrame(X, columns=["length", "width", "größe", "4"])
    model = LinearSVC().fit(frame, y)
    model.save(tmp_path / "model")
    loaded = LinearSVC.load(tmp_path / "model")
    assert loaded.feature_names_in_.tolist() == list(frame.columns)
    np.testing.assert_array_equal(loaded.predict(frame), model.predict(frame))
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame[["width", "length", "größe", "4"]])


@pytest.mark.parametrize("solver", [DualCoordinateAscent(relaxation=1.1, bias_reach=0.02), "subgradient"])
def test_parameters_come_back(tmp_path, iris, solver):
    X, y = iris
    model = LinearSVC(
        solver=solver,
        class_weight={0: 2.0, np.int64(1): 0.5},
        random_state=np.int64(7),
        max_time=50.0,
        verbose=0,
        warm_start=True,
        n_jobs=1,
        tol=0.2,
    ).fit(X, y)
    model.save(tmp_path / "model")
    loaded = LinearSVC.load(tmp_path / "model")
    assert loaded.get_params() == model.get_params()
    assert load_model(tmp_path / "model").problem["class_weight"] == {0: 2.0, 1: 0.5}


def test_infinite_options_of_a_solver_come_back(tmp_path, cancer):
    solver = DualCoordinateAscent(bias_reach=np.inf)
    model = LinearSVC(regularize_intercept=True, solver=solver, tol=0.1).fit(*cancer)
    model.save(tmp_path / "model")
    assert LinearSVC.load(tmp_path / "model").solver == solver


class Unregistered(Subgradient):
    """A solver of somebody's own."""


def test_what_cannot_be_saved_comes_back_as_the_default(tmp_path, cancer):
    model = LinearSVC(
        callback=lambda progress: None,
        random_state=np.random.RandomState(0),
        solver=Unregistered(),
        tol=0.1,
    ).fit(*cancer)
    model.save(tmp_path / "model")
    loaded = LinearSVC.load(tmp_path / "model")
    assert (loaded.callback, loaded.random_state, loaded.solver) == (None, None, "auto")


def test_the_problem_is_that_of_the_fit(tmp_path, cancer):
    X, y = cancer
    model = LinearSVC(C=0.5, tol=1e-3).fit(X, y, sample_weight=np.where(y == 1, 2.0, 1.0))
    model.set_params(C=3.0, loss="hinge", tol=1e-9)
    model.save(tmp_path / "model")
    saved = load_model(tmp_path / "model")
    assert saved.problem["C"] == 0.5
    assert saved.problem["loss"] == "squared_hinge"
    assert saved.problem["sample_weights"] is True
    assert saved.tol == 1e-3
    assert saved.parameters["C"] == 3.0
    LinearSVC(C=0.5).fit(X, y, sample_weight=np.ones(len(y))).save(tmp_path / "unweighted")
    assert load_model(tmp_path / "unweighted").problem["sample_weights"] is False


def test_numbers_changed_after_the_fit_have_no_proof(tmp_path, cancer):
    model = LinearSVC().fit(*cancer)
    model.coef_ = model.coef_ * 2.0
    with pytest.raises(ValueError, match="changed since"):
        model.save(tmp_path / "model")
    del model.certificate_
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(load_model(tmp_path / "model").coef, model.coef_)


def test_without_proof_the_file_is_small_and_keeps_the_claims(tmp_path, cancer):
    X, y = cancer
    model = LinearSVC(random_state=0).fit(X, y)
    model.save(tmp_path / "whole")
    model.save(tmp_path / "small", proof=False)
    assert (tmp_path / "small").stat().st_size < 3000 < (tmp_path / "whole").stat().st_size
    saved = load_model(tmp_path / "small")
    assert saved.certificates is None
    assert saved.traces is None
    assert saved.rows == len(y)
    assert saved.status is Status.CERTIFIED
    assert saved.claims[0].primal == model.certificate_.primal
    assert saved.claims[0].relative_gap == model.certificate_.relative_gap
    loaded = LinearSVC.load(tmp_path / "small")
    assert not hasattr(loaded, "certificate_")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    again = loaded.set_params(warm_start=True).fit(X, y)
    assert again.certificate_.relative_gap <= again.tol


@pytest.mark.parametrize("classes", [2, 3])
def test_a_loaded_model_is_a_start(tmp_path, classes):
    X, y = make_classification(600, 10, n_informative=6, n_classes=classes, random_state=0)
    model = LinearSVC(loss="hinge", C=10.0, tol=1e-6, max_iter=100_000, random_state=0).fit(X, y)
    model.save(tmp_path / "model")
    loaded = LinearSVC.load(tmp_path / "model").set_params(warm_start=True, tol=1e-5).fit(X, y)
    assert loaded.n_iter_ < model.n_iter_ / 10
    assert loaded.certificate_.relative_gap <= 1e-5


def test_fingerprint_of_the_data(tmp_path, cancer):
    X, y = cancer
    model = LinearSVC().fit(X, y)
    model.save(tmp_path / "model", data=(X, y))
    assert load_model(tmp_path / "model").fingerprint == fingerprint(X, y)
    with pytest.raises(ValueError, match="569 rows"):
        model.save(tmp_path / "model", data=(X[1:], y[1:]))


def test_a_fingerprint_can_be_given(tmp_path, cancer):
    LinearSVC().fit(*cancer).save(tmp_path / "model", data="blake2b:abc")
    assert load_model(tmp_path / "model").fingerprint == "blake2b:abc"


def test_saved_models_can_be_saved_again(tmp_path, fitted, iris):
    save_model(fitted, tmp_path / "one", data="blake2b:abc")
    save_model(load_model(tmp_path / "one"), tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert_same_estimator(LinearSVC.load(tmp_path / "two"), fitted, iris[0])


def test_the_file_is_safetensors(tmp_path, fitted):
    fitted.save(tmp_path / "model")
    arrays = safetensors.numpy.load_file(tmp_path / "model")
    np.testing.assert_array_equal(arrays["coef"], fitted.coef_)
    np.testing.assert_array_equal(arrays["alpha"], [c.alpha for c in fitted.certificate_])
    assert arrays["row_classes"].dtype == np.int8


def test_pickle_and_joblib(tmp_path, fitted, iris):
    assert_same_estimator(pickle.loads(pickle.dumps(fitted)), fitted, iris[0])
    joblib.dump(fitted, tmp_path / "dump")
    assert_same_estimator(joblib.load(tmp_path / "dump"), fitted, iris[0])
    fitted.save(tmp_path / "model")
    loaded = LinearSVC.load(tmp_path / "model")
    assert_same_estimator(pickle.loads(pickle.dumps(loaded)), fitted, iris[0])
    assert clone(loaded).get_params() == fitted.get_params()


def test_an_unfitted_estimator_cannot_be_saved(tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        LinearSVC().save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_an_unknown_format_is_refused(tmp_path, fitted):
    with pytest.raises(ValueError, match=r"format must be one of 'maxmargin', 'liblinear', 'libsvm'"):
        fitted.save(tmp_path / "model", format="onnx")


# Refusals


@pytest.fixture(scope="module")
def sound(fitted, tmp_path_factory):
    path = tmp_path_factory.mktemp("sound") / "model"
    fitted.save(path)
    return path


def test_a_file_signed_anew_is_read(sound, tmp_path, fitted, iris):
    signed(tmp_path / "model", *parts_of(sound))
    assert_same_estimator(LinearSVC.load(tmp_path / "model"), fitted, iris[0])


DESCRIPTIONS = {
    "status": ("DONE", "should be one of CERTIFIED"),
    "steps": (-1, "whole number"),
    "tol": (-1.0, "tol must be"),
    "rows": (149, "150 to 150 rows, the file of 149"),
    "decision": ("one_vs_all", "decision must be"),
    "feature_names": (["a", "b"], "2 feature names for 4"),
    "classes": ({"type": "int64", "values": [1, 2, 2]}, "two different classes"),
    "library": (7, "should be text"),
    "problem": ({**PROBLEM, "loss": "huber"}, "loss must be one of"),
    "parameters": ([], "should be a JSON object"),
    "claims": (None, "proof but does not say"),
    "traces": ([], "trace"),
    "certificates": ([], "another number of problems"),
    "solver": (["x"], "should be text"),
    "fingerprint": (1, "should be text"),
    "optimum": (
        [{"radius": -1.0, "low": 0.0, "high": 0.0, "scaling": 0.0}] * 3,
        "a radius and an interval",
    ),
}


@pytest.mark.parametrize("name", DESCRIPTIONS)
def test_an_unsound_description_is_refused(sound, tmp_path, name):
    value, reason = DESCRIPTIONS[name]
    texts, description, arrays = parts_of(sound)
    assert name in description
    signed(tmp_path / "model", texts, {**description, name: value}, arrays)
    with pytest.raises(ModelError, match=reason):
        load_model(tmp_path / "model")


def test_every_field_is_needed_and_no_other_known(sound, tmp_path):
    texts, description, arrays = parts_of(sound)
    assert set(DESCRIPTIONS) == set(description)
    for name in description:
        signed(tmp_path / "model", texts, {k: v for k, v in description.items() if k != name}, arrays)
        if name == "optimum":  # which files of earlier versions lack
            assert load_model(tmp_path / "model").optimum is None
            continue
        with pytest.raises(ModelError, match=f"lacks '{name}'"):
            load_model(tmp_path / "model")
    signed(tmp_path / "model", texts, {**description, "more": 1}, arrays)
    with pytest.raises(ModelError, match="unknown field 'more'"):
        load_model(tmp_path / "model")


ARRAYS = {
    "coef": [
        (np.full((3, 4), np.nan), "NaN"),
        (np.ones((2, 4)), "2 rows|another number"),
        (None, "missing"),
    ],
    "intercept": [(np.ones(2), "3 finite"), (np.ones((3, 1)), "shape"), (np.full(3, np.inf), "3 finite")],
    "alpha": [(np.full((3, 150), -1.0), "not negative"), (np.ones((3, 4)), "4 to 150"), (None, "missing")],
    "margins": [(np.full((3, 150), np.nan), "NaN"), (np.ones((2, 150)), "another number")],
    "row_classes": [(np.full((3, 150), 4, np.int8), "does not exist"), (np.ones((3, 150)), "type float64")],
    "w_of_alpha": [(np.ones((5, 4)), "w_of_alpha"), (None, "missing")],
    "trace": [(np.ones((1, 5)), "trace"), (None, "missing")],
    "more": [(np.ones(3), "does not speak of")],
}


@pytest.mark.parametrize(
    ("name", "value", "reason"), [(n, v, r) for n, cases in ARRAYS.items() for v, r in cases]
)
def test_an_unsound_array_is_refused(sound, tmp_path, name, value, reason):
    texts, description, arrays = parts_of(sound)
    arrays[name] = value
    if value is None:
        del arrays[name]
    signed(tmp_path / "model", texts, description, arrays)
    with pytest.raises(ModelError, match=reason):
        load_model(tmp_path / "model")


def test_a_type_of_array_that_is_not_ours(sound, tmp_path):
    texts, description, arrays = parts_of(sound)
    arrays["coef"] = arrays["coef"].astype(np.float32)
    signed(tmp_path / "model", texts, description, arrays)
    with pytest.raises(ModelError, match="'coef' has the type float32"):
        load_model(tmp_path / "model")
    arrays["coef"] = arrays["coef"].astype(np.float16)
    signed(tmp_path / "model", texts, description, arrays)
    with pytest.raises(ModelError, match="type F16, not one of F64, F32, I64, I32, I8"):
        load_model(tmp_path / "model")


def test_the_proof_is_about_the_models_intercept(sound, tmp_path):
    texts, description, arrays = parts_of(sound)
    arrays["intercept"] = arrays["intercept"] + 1.0
    signed(tmp_path / "model", texts, description, arrays)
    with pytest.raises(ModelError, match="about the intercept"):
        load_model(tmp_path / "model")


def test_a_claim_that_contradicts_itself(sound, tmp_path):
    texts, description, arrays = parts_of(sound)
    description["claims"][1]["relative_gap"] = 1e-12
    signed(tmp_path / "model", texts, description, arrays)
    with pytest.raises(ModelError, match="states a relative gap of 1e-12"):
        load_model(tmp_path / "model")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("C", -1.0),
        ("C", "one"),
        ("callback", "print"),
        ("more", 1),
        ("random_state", "x"),
        ("n_jobs", 1.5),
        ("warm_start", "yes"),
        ("verbose", None),
        ("solver", "simplex"),
        ("solver", {"name": "simplex"}),
        ("solver", {"name": "pegasos", "batch": "many"}),
        ("solver", {"name": "pegasos", "more": 1}),
    ],
)
def test_an_unsound_parameter_is_refused(sound, tmp_path, name, value):
    texts, description, arrays = parts_of(sound)
    description["parameters"][name] = value
    signed(tmp_path / "model", texts, description, arrays)
    with pytest.raises(ModelError, match=r"parameter|solver"):
        LinearSVC.load(tmp_path / "model")


def test_a_newer_format_says_so(sound, tmp_path):
    texts, description, arrays = parts_of(sound)
    newer = VERSION + 1
    signed(tmp_path / "model", {**texts, "version": str(newer)}, description, arrays)
    with pytest.raises(
        ModelError, match=rf"format version {newer}.*Upgrade with: pip install --upgrade maxmargin"
    ):
        load_model(tmp_path / "model")


@pytest.mark.parametrize("version", ["", "0", "-1", "1.5", "٣", "9" * 5000])
def test_a_version_that_is_none(sound, tmp_path, version):
    texts, description, arrays = parts_of(sound)
    signed(tmp_path / "model", {**texts, "version": version}, description, arrays)
    with pytest.raises(ModelError, match="format version"):
        load_model(tmp_path / "model")


def test_an_edited_file_is_refused(sound, tmp_path):
    content = bytearray(sound.read_bytes())
    content[-2000] ^= 1
    (tmp_path / "model").write_bytes(content)
    with pytest.raises(ModelError, match="damaged or edited"):
        load_model(tmp_path / "model")
    (tmp_path / "model").write_bytes(sound.read_bytes().replace(b"CERTIFIED", b"STOPPED  "))
    with pytest.raises(ModelError, match="damaged or edited"):
        load_model(tmp_path / "model")


def test_a_truncated_file_is_refused(sound, tmp_path):
    content = sound.read_bytes()
    for size in (0, 1, 7, 8, 9, 100, 2000, len(content) // 2, len(content) - 1):
        (tmp_path / "model").write_bytes(content[:size])
        with pytest.raises(ModelError, match=r"cut off|empty|not a model|damaged"):
            load_model(tmp_path / "model")
    (tmp_path / "model").write_bytes(content + b"\0")
    with pytest.raises(ModelError, match="cut off or damaged"):
        load_model(tmp_path / "model")


@pytest.mark.parametrize("length", [2**63 - 1, 2**64 - 1, 10**9, 2**33])
def test_the_length_of_the_header_is_not_believed(tmp_path, length):
    (tmp_path / "model").write_bytes(struct.pack("<Q", length) + b'{"a":1}')
    with pytest.raises(ModelError, match="the file ends after 15"):
        load_model(tmp_path / "model")


def test_shapes_that_overflow(tmp_path):
    header = {"coef": {"dtype": "F64", "shape": [2**40, 2**40], "data_offsets": [0, 8]}}
    encoded = json.dumps(header).encode()
    (tmp_path / "model").write_bytes(struct.pack("<Q", len(encoded)) + encoded + bytes(8))
    with pytest.raises(ModelError, match="damaged"):
        load_model(tmp_path / "model")


def test_deep_json(sound, tmp_path):
    texts, _, arrays = parts_of(sound)
    sums = {n: Array({"f8": "F64", "i1": "I8"}[a.dtype.str[1:]], a.shape, [a]) for n, a in arrays.items()}
    texts["model"] = "[" * 100_000
    texts["checksum"] = _checksum(texts, {n: (s.type, s.shape, s.bytes()) for n, s in sums.items()})
    (tmp_path / "model").write_bytes(safetensors.numpy.save(arrays, texts))
    with pytest.raises(ModelError, match="not JSON"):
        load_model(tmp_path / "model")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b"hello", "not a model file"),
        (b"+1 1:0.5 2:1\n-1 1:1\n", "not a model file"),
        (pickle.dumps({"coef": 1}), "never opened"),
        (b"\x1f\x8b\x08rest", "never opened"),
    ],
)
def test_other_files(tmp_path, content, reason):
    (tmp_path / "model").write_bytes(content)
    with pytest.raises(ModelError, match=reason) as caught:
        load_model(tmp_path / "model")
    assert str(tmp_path / "model") in str(caught.value)


def test_a_safetensors_file_of_others(tmp_path):
    safetensors.numpy.save_file({"coef": np.ones((1, 2))}, tmp_path / "model")
    with pytest.raises(ModelError, match="not one that maxmargin wrote"):
        load_model(tmp_path / "model")


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_model(tmp_path / "model")
    with pytest.raises(IsADirectoryError):
        load_model(tmp_path)
    with pytest.raises(ModelError, match="regular file"):
        load_model("/dev/null")


# Mutations: nothing but a ModelError, or the same model


@pytest.mark.parametrize("head", [None, 3000])
@settings(max_examples=150)
@given(changes=mutations)
def test_mutations_of_our_format(sound, fitted, iris, head, changes):
    path = sound.with_name("mutated")
    path.write_bytes(mutated(sound.read_bytes(), changes, head))
    try:
        loaded = LinearSVC.load(path)
    except ModelError:
        return
    assert_same_estimator(loaded, fitted, iris[0])


@settings(max_examples=200)
@given(data=st.data())
def test_mutations_with_a_right_checksum(sound, data):
    texts, description, arrays = parts_of(sound)
    replace_one_part(description, data)
    assert_refused_or_usable(sound.with_name("mutated"), texts, description, arrays, LinearSVC)


# A model in memory is as sound as one from a file


def test_a_saved_model_is_checked_when_it_is_made(fitted):
    saved = from_estimator(fitted)
    for changes in (
        {"coef": saved.coef[:2]},
        {"coef": saved.coef.astype(np.float32)},
        {"classes": saved.classes[:2]},
        {"rows": 3},
        {"problem": {}},
        {"problem": {**saved.problem, "C": 0.0}},
        {"problem": {**saved.problem, "class_weight": {1: -1.0}}},
        {"traces": []},
    ):
        with pytest.raises(ModelError):
            replace(saved, **changes)


def test_prediction_looks_at_the_shape(fitted):
    saved = from_estimator(fitted)
    with pytest.raises(ValueError, match="at most the 4 features"):
        saved.predict(np.ones((2, 5)))
    with pytest.raises(ValueError, match="matrix"):
        saved.predict(np.ones(4))


def test_votes_are_those_of_pairs():
    model = SavedModel(
        coef=np.array([[1.0], [-1.0], [1.0]]),
        intercept=np.zeros(3),
        classes=np.array([5, 3, 4]),
        decision="one_vs_one",
        problem=PROBLEM,
    )
    # Positive x: 5 over 3, 4 over 5, 3 over 4: one vote each, and the first class is taken.
    assert model.predict([[1.0]]).tolist() == [5]
    assert model.predict([[0.0]]).tolist() == [4]


def test_every_registered_solver_can_be_saved(tmp_path):
    X, y = make_classification(60, 4, random_state=0)
    for name, solver in LINEAR_SOLVERS.items():
        loss = "squared_hinge" if name == "newton" or solver.takes_l1 else "hinge"
        penalty = "l1" if solver.takes_l1 else "l2"
        model = LinearSVC(penalty, loss, solver=solver(seed=5), tol=0.5).fit(X, y)
        model.save(tmp_path / "model")
        assert LinearSVC.load(tmp_path / "model").solver == solver(seed=5)
