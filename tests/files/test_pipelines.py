# SPDX-License-Identifier: BSD-3-Clause
"""Pipelines in one model file: saved, loaded without pickle, predicted from and certified; hostile ones."""

from __future__ import annotations

import contextlib
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, OneHotEncoder, StandardScaler

from maxmargin import (
    SVC,
    SVCCV,
    SVR,
    SVRCV,
    LinearSVC,
    LinearSVCCV,
    LinearSVR,
    Table,
    features,
    files,
    kernels,
)
from maxmargin.files.models.preparation import STEP_NAMES, Preparation, Step, UnsoundStep, _forms
from written_files import assert_refused_or_usable, parts_of, replace_one_part, write_libsvm

X, y = load_iris(return_X_y=True)

PIPELINES = {
    "standard scaler": [StandardScaler()],
    "only means": [StandardScaler(with_std=False)],
    "only deviations": [StandardScaler(with_mean=False)],
    "max abs": [MaxAbsScaler()],
    "two scalers and nothing": [MaxAbsScaler(), "passthrough", StandardScaler()],
    "a pipeline inside": [make_pipeline(StandardScaler(), features.Squares())],
    "buckets": [features.Buckets(), MaxAbsScaler()],
    "buckets of some": [features.Buckets({1: [3.0], 2: [2.0, 4.0]}, sparse_output=False)],
    "distances": [StandardScaler(), features.Distances(count=12)],
    "interactions": [features.Interactions(columns=[0, 2])],
    "log": [features.Log(columns=[1])],
    "monomials": [MaxAbsScaler(), features.Monomials(3, scaling="kernel", coef0=0.5)],
    "monomials on the way": [StandardScaler(), features.Monomials(2, lazy=True)],
    "monomials alone": [features.Monomials(2, lazy=True)],
    "nystroem": [StandardScaler(), features.Nystroem(20)],
    "nystroem of a sum": [features.Nystroem(20, kernels.Linear() + kernels.Gaussian(0.1))],
    "paraboloid": [features.Paraboloid()],
    "polar": [features.Polar(columns=[0, 1])],
    "polynomial sketch": [StandardScaler(), features.PolynomialSketch(2, columns=30)],
    "random fourier": [StandardScaler(), features.RandomFourier(40)],
    "squares": [features.Squares(center=3.0), StandardScaler()],
}


@pytest.mark.parametrize("name", PIPELINES)
def test_what_is_loaded_answers_as_what_was_saved(name, tmp_path):
    pipeline = make_pipeline(*PIPELINES[name], LinearSVC(random_state=0)).fit(X, y)
    path = tmp_path / "model.mm"
    files.save_model(pipeline, path, data=(X, y))
    expected = pipeline.decision_function(X)
    stored = files.load_model(path)
    assert stored.features == 4
    np.testing.assert_allclose(stored.decision_function(X), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(stored.predict(X), pipeline.predict(X))
    loaded = files.load_pipeline(path)
    np.testing.assert_allclose(loaded.decision_function(X), expected, rtol=1e-12, atol=1e-12)
    assert str(loaded[-1].certificate_) == str(pipeline[-1].certificate_)
    assert (
        loaded[-1].is_sure(loaded[:-1].transform(X)).sum()
        == pipeline[-1].is_sure(pipeline[:-1].transform(X)).sum()
    )
    files.save_model(loaded, tmp_path / "again.mm", data=(X, y))
    assert (tmp_path / "again.mm").read_bytes() == path.read_bytes()
    loaded.fit(X, y)


def test_every_step_has_been_tried():
    tried = set()
    for steps in PIPELINES.values():
        fitted = make_pipeline(*steps, LinearSVC(C=1e-3)).fit(X, y)
        held = files.models.fitted.from_estimator(fitted).preparation
        tried |= {step.name for step in held.steps} if held is not None else set()
    assert tried == set(STEP_NAMES) == set(_forms())


@pytest.mark.parametrize(
    "last",
    [
        SVC(),
        SVC(kernel="linear"),
        LinearSVCCV(Cs=2, cv=2),
        SVCCV(Cs=[1.0], gammas=[0.1], cv=2),
        GridSearchCV(SVC(), {"C": [1.0, 2.0]}, cv=2),
    ],
    ids=repr,
)
def test_other_classifiers(last, tmp_path):
    pipeline = make_pipeline(StandardScaler(), features.Squares(), last).fit(X, y)
    files.save_model(pipeline, tmp_path / "model.mm")
    loaded = files.load_pipeline(tmp_path / "model.mm")
    np.testing.assert_array_equal(loaded.predict(X), pipeline.predict(X))
    np.testing.assert_array_equal(files.load_model(tmp_path / "model.mm").predict(X), pipeline.predict(X))


@pytest.mark.parametrize(
    "last", [LinearSVR(), SVR(), SVRCV(Cs=[1.0], epsilons=[0.1], gammas=[0.1])], ids=repr
)
def test_regressors(last, tmp_path):
    pipeline = make_pipeline(StandardScaler(), features.Squares(), last).fit(X, X[:, 0])
    files.save_model(pipeline, tmp_path / "model.mm")
    for read in (files.load_model, files.load_pipeline):
        np.testing.assert_allclose(read(tmp_path / "model.mm").predict(X), pipeline.predict(X), rtol=1e-9)


def test_sparse_rows_and_float32(tmp_path):
    rows = sparse.csr_matrix(np.where(X > 2, X, 0.0))
    steps = [MaxAbsScaler(), features.RandomFourier(20), StandardScaler()]
    for data in (rows, rows.astype(np.float32), X.astype(np.float32)):
        for before in (steps, [features.Nystroem(10)], [MaxAbsScaler()]):
            pipeline = make_pipeline(*before, LinearSVC()).fit(data, y)
            files.save_model(pipeline, tmp_path / "model.mm")
            stored = files.load_model(tmp_path / "model.mm")
            np.testing.assert_allclose(
                stored.decision_function(data), pipeline.decision_function(data), rtol=1e-4, atol=1e-4
            )


@pytest.fixture
def frame():
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    cities = np.array(["Oslo", "Turin", "Lyon"])[(y + np.arange(150) % 2) % 3]
    return pandas.DataFrame({"length": X[:, 0], "city": cities, "width": X[:, 1], "depth": X[:, 2]})


COLUMNS = {
    "named": make_column_transformer(
        (StandardScaler(), ["width", "length"]), (OneHotEncoder(handle_unknown="ignore"), ["city"])
    ),
    "by place, the rest as it is": make_column_transformer(
        (OneHotEncoder(), [1]), (MaxAbsScaler(), slice(2, 3)), remainder="passthrough"
    ),
    "by type": make_column_transformer(
        (StandardScaler(with_mean=False), make_column_selector(dtype_include=float)),
        (make_pipeline(OneHotEncoder()), ["city"]),
    ),
    "some left out": make_column_transformer(("passthrough", ["depth"]), ("drop", ["length"])),
}


@pytest.mark.parametrize("then", [[], [MaxAbsScaler()], [features.RandomFourier(20)]], ids=str)
@pytest.mark.parametrize("name", COLUMNS)
def test_column_transformers(name, then, frame, tmp_path):
    then = [StandardScaler(with_mean=False) if isinstance(step, MaxAbsScaler) else step for step in then]
    pipeline = make_pipeline(COLUMNS[name], *then, LinearSVC()).fit(frame, y)
    files.save_model(pipeline, tmp_path / "model.mm")
    shuffled = frame[["depth", "city", "width", "length"]]
    for answer in (files.load_model(tmp_path / "model.mm"), files.load_pipeline(tmp_path / "model.mm")):
        np.testing.assert_allclose(
            answer.decision_function(shuffled), pipeline.decision_function(frame), rtol=1e-9, atol=1e-9
        )


def test_a_one_hot_encoder_alone_and_a_table(frame, tmp_path):
    texts = frame[["city"]].copy()
    texts.loc[3, "city"] = None
    for first, rows in ((OneHotEncoder(), texts), (Table(), frame)):
        pipeline = make_pipeline(first, StandardScaler(with_mean=False), SVC()).fit(rows, y)
        files.save_model(pipeline, tmp_path / "model.mm")
        stored, loaded = (read(tmp_path / "model.mm") for read in (files.load_model, files.load_pipeline))
        np.testing.assert_array_equal(stored.predict(rows), pipeline.predict(rows))
        expected = pipeline.decision_function(rows)
        np.testing.assert_allclose(loaded.decision_function(rows), expected, rtol=1e-9, atol=1e-9)


def test_names_of_columns_are_kept(frame, tmp_path):
    numbers = frame[["length", "width", "depth"]]
    pipeline = make_pipeline(StandardScaler(), LinearSVC()).fit(numbers, y)
    files.save_model(pipeline, tmp_path / "model.mm")
    stored = files.load_model(tmp_path / "model.mm")
    assert stored.feature_names == ["length", "width", "depth"]
    expected = pipeline.decision_function(numbers)
    np.testing.assert_array_equal(stored.decision_function(numbers[["depth", "length", "width"]]), expected)
    loaded = files.load_pipeline(tmp_path / "model.mm")
    assert list(loaded.feature_names_in_) == ["length", "width", "depth"]
    np.testing.assert_array_equal(loaded.decision_function(numbers), expected)


@pytest.mark.parametrize(
    ("pipeline", "words"),
    [
        (make_pipeline(PCA(), LinearSVC()), "Got a PCA"),
        (make_pipeline(MinMaxScaler(), LinearSVC()), "Got a MinMaxScaler"),
        (make_pipeline(StandardScaler(), LogisticRegression()), "The last step is a LogisticRegression"),
        (
            make_pipeline(features.Nystroem(5, kernels.Function(lambda A, B: A @ B.T)), LinearSVC()),
            "no code",
        ),
    ],
    ids=["another map", "another scaler", "another classifier", "a function"],
)
def test_what_has_no_room_in_a_file_is_refused(pipeline, words, tmp_path):
    pipeline.fit(X, y)
    with pytest.raises(files.ModelError, match=words):
        files.save_model(pipeline, tmp_path / "model.mm")
    assert not list(tmp_path.iterdir())


def test_tables_that_have_no_room_in_a_file_are_refused(frame, tmp_path):
    numbered = frame.assign(city=y % 2)
    for first, rows, words in (
        (make_column_transformer((SimpleImputer(), ["width"])), frame, "SimpleImputer inside"),
        (make_column_transformer((OneHotEncoder(), ["city"])), numbered, "are numbers"),
        (make_column_transformer((OneHotEncoder(drop="first"), ["city"])), frame, "drops or joins"),
        (
            make_column_transformer((StandardScaler(), ["width"]), (MaxAbsScaler(), ["width"])),
            frame,
            "a column twice",
        ),
        (make_column_transformer((StandardScaler(), [0, 1])), X, "fitted to a data frame"),
    ):
        pipeline = make_pipeline(first, LinearSVC()).fit(rows, y)
        with pytest.raises(files.ModelError, match=words):
            files.save_model(pipeline, tmp_path / "model.mm")


def test_who_loads_the_classifier_alone_is_told_of_the_rest(tmp_path):
    files.save_model(make_pipeline(StandardScaler(), LinearSVC()).fit(X, y), tmp_path / "model.mm")
    with pytest.raises(files.ModelError, match=r"steps before the model.*load_pipeline\(path\)"):
        LinearSVC.load(tmp_path / "model.mm")
    with pytest.raises(files.ModelError, match="has steps before it"):
        files.save_model(files.load_model(tmp_path / "model.mm"), tmp_path / "text", format="liblinear")


STEPS = {
    "other columns": Step("max_abs_scaler", 5, {}, {"scale_": np.ones(5)}),
    "a zero": Step("max_abs_scaler", 4, {}, {"scale_": np.zeros(4)}),
    "nothing to divide by": Step("max_abs_scaler", 4, {}, {}),
    "not finite": Step("max_abs_scaler", 4, {}, {"scale_": np.array([1.0, np.nan, 1.0, 1.0])}),
    "a number for a flag": Step(
        "standard_scaler", 4, {"with_mean": 1, "with_std": False}, {"mean_": np.ones(4)}
    ),
    "no means": Step("standard_scaler", 4, {"with_mean": True, "with_std": False}, {}),
    "an unknown parameter": Step("log", 4, {"code": "x"}, {"columns_": np.array([0])}),
    "no such column": Step("log", 4, {}, {"columns_": np.array([4])}),
    "a column twice": Step("squares", 4, {}, {"columns_": np.array([1, 1]), "centers_": np.zeros(2)}),
    "fewer centers": Step("squares", 4, {}, {"columns_": np.array([1, 2]), "centers_": np.zeros(1)}),
    "three of two": Step("polar", 4, {}, {"columns_": np.array([0, 1, 2])}),
    "edges that fall": Step(
        "buckets",
        4,
        {"sparse_output": True},
        {"columns_": np.array([0]), "edge_counts_": np.array([2]), "flat_edges_": np.array([2.0, 1.0])},
    ),
    "edges that are not there": Step(
        "buckets",
        4,
        {"sparse_output": True},
        {"columns_": np.array([0]), "edge_counts_": np.array([2**62]), "flat_edges_": np.array([2.0])},
    ),
    "a degree beyond all": Step(
        "monomials",
        4,
        {"degree": 10**9, "interaction_only": False, "scaling": "plain", "gamma": 1.0, "coef0": 1.0}
        | {"include_bias": "auto", "max_bytes": 10},
        {},
    ),
    "a kernel that is none": Step(
        "nystroem",
        4,
        {"kernel": {"kernel": "bogus"}},
        {"sample_": np.ones((2, 4)), "projection_": np.ones((2, 2))},
    ),
    "a name for a kernel": Step(
        "nystroem", 4, {"kernel": "rbf"}, {"sample_": np.ones((2, 4)), "projection_": np.ones((2, 2))}
    ),
    "rows that do not fit": Step(
        "nystroem",
        4,
        {"kernel": {"kernel": "linear"}},
        {"sample_": np.ones((2, 4)), "projection_": np.ones((3, 2))},
    ),
    "a negative gamma": Step("random_fourier", 4, {"gamma": -1.0}, {"directions_": np.ones((4, 2))}),
    "a place outside": Step(
        "polynomial_sketch",
        4,
        {"degree": 1, "gamma": 1.0, "coef0": 1.0, "columns": 3},
        {"places_": np.full((1, 5), 3), "signs_": np.ones((1, 5))},
    ),
}


@pytest.mark.parametrize("name", STEPS)
def test_unsound_steps_are_refused(name):
    first = Step("standard_scaler", 4, {"with_mean": False, "with_std": False}, {})
    with pytest.raises(UnsoundStep):
        _ = Preparation((first, STEPS[name])).transformers


def test_files_that_lie_about_their_steps_are_refused(tmp_path):
    path = tmp_path / "model.mm"
    pipeline = make_pipeline(StandardScaler(), features.RandomFourier(6), LinearSVC()).fit(X, y)
    files.save_model(pipeline, path)
    stored = files.load_model(path)
    one = Preparation(stored.preparation.steps[:1])
    with pytest.raises(files.ModelError, match="weighs 6 columns, and the steps before it make 4"):
        type(stored)(**vars(stored) | {"preparation": one})
    description = json.loads(files.models.description.described(stored, 13))
    for change, words in (
        ({"name": "os.system"}, "the name of a step"),
        ({"columns": -1}, "a whole number"),
        ({"parameters": {"with_mean": [1]}}, "text or a number"),
        ({"arrays": [1]}, "text"),
    ):
        other = json.loads(json.dumps(description))
        other["preparation"][0] |= change
        with pytest.raises(files.ModelError, match=words):
            files.models.description.read_description(json.dumps(other), 13)


def test_the_command_line_predicts_certifies_and_tells(run, answer, tmp_path):
    data, model = tmp_path / "iris.svm", tmp_path / "model.mm"
    write_libsvm(data, X, y)
    pipeline = make_pipeline(StandardScaler(), features.RandomFourier(40, gamma=0.1), LinearSVC()).fit(X, y)
    files.save_model(pipeline, model, data=(sparse.csr_matrix(X), y.astype(float)))
    code, out, _ = run("certify", model, data)
    assert code == 0, out
    assert "Holds" in out
    assert "columns scaled to mean 0 and variance 1, random fourier" in out
    code, out, _ = run("predict", model, data, "--sure")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == [str(label) for label in pipeline.predict(X)]
    code, out, _ = run("info", model)
    assert "before    columns scaled to mean 0 and variance 1, random fourier" in out
    code, out, err = run("certify", "--independent", model, data)
    assert code == 2
    assert "scalers or feature maps before it" in err + out
    code, out, _ = run("report", model, data, "-o", tmp_path / "report.html")
    assert code == 0


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A file with all kinds of steps that one after the other can be."""
    steps = [
        StandardScaler(),
        features.Squares(columns=[1]),
        features.Buckets(3, columns=[0]),
        MaxAbsScaler(),
    ]
    steps += [
        features.Interactions(columns=[0, 1]),
        features.Nystroem(6),
        features.PolynomialSketch(columns=9),
    ]
    steps += [
        features.Distances(count=5),
        features.RandomFourier(8),
        features.Paraboloid(),
        features.Polar([0, 1]),
    ]
    steps += [features.Monomials(2, scaling="kernel")]
    path = tmp_path_factory.mktemp("pipelines") / "model.mm"
    files.save_model(make_pipeline(*steps, LinearSVC(C=0.1)).fit(X, y), path)
    return path


class Whole:
    """What loads all of a file."""

    load = staticmethod(files.load_pipeline)


@settings(max_examples=60)
@given(data=st.data())
def test_mutations_with_a_right_checksum(sound, data):
    texts, description, arrays = parts_of(sound)
    if data.draw(st.booleans()):
        replace_one_part(description["preparation"], data)
    else:
        name = data.draw(st.sampled_from(sorted(name for name in arrays if "step" in name)))
        changed = arrays[name].copy()
        changed.flat[data.draw(st.integers(0, changed.size - 1))] = data.draw(
            st.sampled_from([0, -1, 2**31, 2**62, 1e-300, 1e300, np.nan, np.inf])
            if changed.dtype.kind == "f"
            else st.sampled_from([0, -1, 5, 2**31, 2**62])
        )
        arrays[name] = changed if data.draw(st.booleans()) else changed[:-1]
    with contextlib.suppress(ValueError):  # values that a step makes infinite, the next one refuses
        assert_refused_or_usable(sound.with_name("mutated"), texts, description, arrays, Whole)
