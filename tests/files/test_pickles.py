# SPDX-License-Identifier: BSD-3-Clause
"""Estimators in pickles, joblib's and skops' files, and in other processes; with callbacks of any kind."""

from __future__ import annotations

import copy
import io
import pickle
import warnings

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxmargin import (
    SVC,
    SVCCV,
    SVR,
    SVRCV,
    LinearSVC,
    LinearSVCCV,
    LinearSVR,
    LogisticRegression,
    features,
    files,
    kernels,
)
from maxmargin.estimators.summary import fitted_summary
from maxmargin.solvers import Newton

X, y = load_iris(return_X_y=True)
KINDS = [LinearSVC(), SVC(), LinearSVCCV(Cs=2, cv=2), LinearSVR(), SVR()]
AGAIN = {"pickle": lambda model: pickle.loads(pickle.dumps(model))}


def named(progress):
    """A callback that pickle finds by its name."""


def by_joblib(model):
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    return joblib.load(file)


AGAIN["joblib"] = by_joblib


def with_callback(kind, callback):
    return clone(kind).set_params(callback=callback)


@pytest.mark.parametrize("again", AGAIN)
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_lambda_as_callback_is_left_out_with_a_warning(kind, again):
    seen = []
    model = with_callback(kind, lambda progress: seen.append(progress)).fit(X, y)
    with pytest.warns(UserWarning, match=r"lambda.* is left out.* set_params\(callback=") as told:
        loaded = AGAIN[again](model)
    assert len(told) == len({id(model), id(getattr(model, "best_estimator_", model))})
    assert loaded.callback is None
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert model.callback is not None
    assert loaded.fit(X, y).status_.certified


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_function_with_a_name_is_kept(kind):
    model = with_callback(kind, named).fit(X, y)
    for loaded in (pickle.loads(pickle.dumps(model)), by_joblib(model)):
        assert loaded.callback is named


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_copies_keep_any_callback(kind):
    model = with_callback(kind, lambda progress: None)
    for other in (copy.copy(model), copy.deepcopy(model), clone(model)):
        assert other.callback is model.callback


def test_other_processes_get_any_callback():
    cloudpickle = pytest.importorskip("cloudpickle")
    stops = LinearSVC(loss="hinge", solver="dual_coordinate_ascent", callback=lambda progress: True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sent = pickle.loads(cloudpickle.dumps(stops))
    assert sent.callback(None) is True
    search = GridSearchCV(LinearSVC(callback=lambda progress: None), {"C": [1.0]}, cv=2)
    search.fit(X, y)
    with pytest.warns(UserWarning, match="is left out"):
        assert pickle.loads(pickle.dumps(search)).predict(X).tolist() == search.predict(X).tolist()


MODELS = {
    "LinearSVC": LinearSVC(),
    "a hard margin": LinearSVC(C=np.inf),
    "a configured solver": LinearSVC(solver=Newton(), class_weight={0: 1.0, 1: 2.0}),
    "SVC": SVC(),
    "other kernels": SVC(kernel=kernels.Gaussian(0.1) + kernels.Linear() * kernels.Polynomial(2)),
    "a precomputed kernel": SVC(kernel="precomputed"),
    "LinearSVCCV": LinearSVCCV(Cs=2, cv=2),
    "SVCCV": SVCCV(Cs=[1.0], gammas=[0.1], cv=2),
    "LogisticRegression": LogisticRegression(),
    "probabilities": SVC(probability=True),
    "random features": make_pipeline(StandardScaler(), features.RandomFourier(20), LinearSVC()),
    "a sample": make_pipeline(features.Nystroem(20, "laplacian"), LinearSVC()),
    "monomials": make_pipeline(features.Monomials(2, lazy=True), LinearSVC()),
    "columns": make_pipeline(features.Squares(), features.Buckets(sparse_output=False), LinearSVC()),
}


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", MODELS)
def test_skops_loads_what_it_dumps(name, classes):
    skops = pytest.importorskip("skops.io")
    if name == "a hard margin" and classes == 3:
        pytest.skip("the last two species of iris are not to be separated")
    rows, labels = X[y < classes], y[y < classes]
    if name == "a precomputed kernel":
        rows = kernels.Gaussian(1.0)(rows)
    model = clone(MODELS[name]).fit(rows, labels)
    model.predict(rows)
    data = skops.dumps(model)
    loaded = skops.loads(data, trusted=files.skops_types())
    np.testing.assert_array_equal(loaded.decision_function(rows), model.decision_function(rows))
    last = model[-1] if hasattr(model, "steps") else model
    again = loaded[-1] if hasattr(model, "steps") else loaded
    assert fitted_summary(again) == fitted_summary(last)
    assert again.status_ is last.status_
    if hasattr(model, "decision_bounds") and name != "a precomputed kernel":
        np.testing.assert_array_equal(loaded.decision_bounds(rows), model.decision_bounds(rows))
    loaded.fit(rows, labels)


@pytest.mark.parametrize(
    "kind", [LinearSVR(), SVR(), SVRCV(Cs=[1.0], epsilons=[0.1], gammas=[0.1])], ids=str
)
def test_skops_loads_regressors(kind):
    skops = pytest.importorskip("skops.io")
    model = clone(kind).fit(X, X[:, 0])
    loaded = skops.loads(skops.dumps(model), trusted=files.skops_types())
    np.testing.assert_array_equal(loaded.prediction_bounds(X), model.prediction_bounds(X))


def test_skops_leaves_a_lambda_out_too():
    skops = pytest.importorskip("skops.io")
    model = LinearSVC(callback=lambda progress: None).fit(X, y)
    with pytest.warns(UserWarning, match="is left out"):
        data = skops.dumps(model)
    assert skops.loads(data, trusted=files.skops_types()).callback is None
    with pytest.raises(Exception, match="Untrusted types"):
        skops.loads(data, trusted=[])


def test_what_is_trusted_is_there_and_runs_nothing():
    from importlib import import_module

    for name in files.skops_types():
        module, _, kind = name.rpartition(".")
        assert isinstance(getattr(import_module(module), kind), type)
        assert module.startswith("maxmargin.")
    assert not any("Pretrained" in name or "Function" in name for name in files.skops_types())
