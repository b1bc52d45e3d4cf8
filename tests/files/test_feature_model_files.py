# SPDX-License-Identifier: BSD-3-Clause
"""Files of linear models on monomials that were never written out."""

from __future__ import annotations

import dataclasses
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import scale

from maxmargin import SVC, LinearSVC, LinearSVCCV
from maxmargin.features import Monomials
from maxmargin.features.expansion import Expansion
from maxmargin.files import ModelError, SavedModel, fingerprint, load_model, save_model
from maxmargin.files.models.fitted import from_estimator
from written_files import (
    assert_refused_or_usable,
    assert_same_certificates,
    parts_of,
    replace_one_part,
    signed,
)

MAPS = {
    "plain": Monomials(2),
    "products": Monomials(2, interaction_only=True, include_bias=True),
    "kernel": Monomials(2, scaling="kernel", gamma=0.3, coef0=2.0),
    "homogeneous": Monomials(2, scaling="kernel", gamma=0.5, coef0=0.0),
}


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return scale(X) + 0.1, y


def lazy(X, monomials):
    """What the map gives with ``lazy=True``; the maps themselves write out, and are the oracle."""
    return clone(monomials.fit(X)).set_params(lazy=True).fit_transform(X)


@pytest.fixture(scope="module")
def fitted(iris):
    X, y = iris
    return LinearSVC(loss="hinge", C=0.1, random_state=0).fit(lazy(X, MAPS["kernel"]), y)


@pytest.fixture(scope="module")
def sound(fitted, tmp_path_factory):
    path = tmp_path_factory.mktemp("sound") / "model"
    fitted.save(path)
    return path


# Round trips


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("name", MAPS)
def test_what_is_saved_comes_back(tmp_path, iris, name, form):
    X, y = iris
    for labels in (y, y > 0):
        rows = lazy(form(X), MAPS[name])
        model = LinearSVC(C=0.5, random_state=3).fit(rows, labels)
        model.save(tmp_path / "model", data=(rows, labels))
        loaded = LinearSVC.load(tmp_path / "model")
        assert loaded.get_params() == model.get_params()
        assert loaded.expansion_ == model.expansion_ == rows.expansion
        assert loaded.n_features_in_ == model.n_features_in_ == rows.expansion.size
        assert_same_certificates(loaded.certificate_, model.certificate_)
        assert loaded.trace_ == model.trace_
        saved = load_model(tmp_path / "model")
        assert isinstance(saved, SavedModel)
        assert (saved.expansion, saved.features, saved.width) == (rows.expansion, 4, 4)
        assert saved.fingerprint == fingerprint(X, labels)
        # The oracle: the monomials written out, times the weights.
        written = MAPS[name].transform(X)
        expected = np.squeeze(written @ model.coef_.T + model.intercept_)
        for scores in (saved.decision_function(form(X)), loaded.decision_function(form(X))):
            np.testing.assert_allclose(scores, expected, rtol=1e-10, atol=1e-10)
        np.testing.assert_array_equal(saved.predict(form(X)), model.predict(rows))
        np.testing.assert_array_equal(loaded.predict(rows), model.predict(rows))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
def test_rows_of_any_width_and_type(sound, fitted, form):
    saved = load_model(sound)
    X = np.array([[1, 0, -2], [0, 0, 0], [3, 1, 1]])
    written = MAPS["kernel"].transform(np.pad(X, ((0, 0), (0, 1))).astype(float))
    expected = written @ fitted.coef_.T + fitted.intercept_
    for kind in (np.int64, np.float32, np.float64):
        np.testing.assert_allclose(saved.decision_function(form(X.astype(kind))), expected, rtol=1e-6)
    with pytest.raises(ValueError, match="at most the 4 features"):
        saved.predict(np.ones((2, 5)))


def test_the_end_of_a_pipeline_is_saved_with_its_features(tmp_path, iris):
    X, y = iris
    pipeline = make_pipeline(Monomials(2, scaling="kernel", lazy=True), LinearSVC(C=0.1)).fit(X, y)
    chosen = LinearSVCCV(Cs=[0.1, 1.0], cv=2).fit(lazy(X, MAPS["plain"]), y).best_estimator_
    for model, predicted in ((pipeline[-1], pipeline.predict(X)), (chosen, chosen.predict(X))):
        model.save(tmp_path / "model")
        np.testing.assert_array_equal(LinearSVC.load(tmp_path / "model").predict(X), predicted)
        np.testing.assert_array_equal(load_model(tmp_path / "model").predict(X), predicted)


def test_saved_models_can_be_saved_again(tmp_path, sound):
    save_model(load_model(sound), tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == sound.read_bytes()


def test_without_proof_the_features_stay(tmp_path, fitted, iris):
    fitted.save(tmp_path / "model", proof=False)
    loaded = LinearSVC.load(tmp_path / "model")
    assert loaded.expansion_ == fitted.expansion_
    again = loaded.set_params(warm_start=True).fit(lazy(iris[0], MAPS["kernel"]), iris[1])
    assert again.certificate_.relative_gap <= again.tol


def test_a_model_of_columns_has_no_expansion(tmp_path, fitted, iris):
    LinearSVC().fit(*iris).save(tmp_path / "model")
    assert not hasattr(LinearSVC.load(tmp_path / "model"), "expansion_")
    assert load_model(tmp_path / "model").expansion is None
    fitted.save(tmp_path / "model")
    with pytest.raises(ModelError, match=r"LinearSVC\.load"):
        SVC.load(tmp_path / "model")


@pytest.mark.parametrize("format", ["liblinear", "libsvm"])
def test_the_text_of_others_has_no_room_for_features(tmp_path, fitted, format):
    with pytest.raises(ModelError, match=r"weighs the columns of the data.*format='maxmargin'"):
        fitted.save(tmp_path / "model", format=format)
    assert not list(tmp_path.iterdir())


# Refusals


def test_only_such_files_have_the_newer_format(sound, tmp_path, iris):
    texts, description, arrays = parts_of(sound)
    assert texts["version"] == "3"
    LinearSVC().fit(*iris).save(tmp_path / "plain")
    plain = parts_of(tmp_path / "plain")
    assert plain[0]["version"] == "1"
    assert "features" not in plain[1]
    # Who reads version 1 alone refuses the field; what is said to have features must have them.
    signed(tmp_path / "model", {**texts, "version": "1"}, description, arrays)
    with pytest.raises(ModelError, match="unknown field 'features'"):
        load_model(tmp_path / "model")
    signed(tmp_path / "model", {**plain[0], "version": "3"}, *plain[1:])
    with pytest.raises(ModelError, match="lacks 'features'"):
        load_model(tmp_path / "model")


FEATURES = [
    ("map", "splines", "should be monomials"),
    ("map", None, "should be text"),
    ("columns", 5, "5 columns have 21 such monomials, and coef weighs 15"),
    ("columns", 0, "at least one column"),
    ("columns", -4, "whole number"),
    ("columns", 4.0, "whole number"),
    ("columns", True, "whole number"),
    ("columns", 10**12, "coef weighs 15"),
    ("columns", 2**63, "whole number"),
    ("columns", 10**400, "whole number"),
    ("lowest", 1, "4 columns have 14 such"),
    ("lowest", 3, "degree 0, 1 or 2"),
    ("lowest", -1, "whole number"),
    ("scales", [1.0, 1.0], "degree 2, not of degree 1"),
    ("scales", [1.0, 1.0, 1.0, 1.0], "degree 2, not of degree 3"),
    ("scales", [], "degree 2, not of degree -1"),
    ("scales", [1.0, "nan", 1.0], "finite number"),
    ("scales", [1.0, "inf", 1.0], "finite number"),
    ("scales", [1.0, 1.0, -1.0], "not negative"),
    ("scales", 1.0, "a list"),
    ("once", True, "4 columns have 11 such"),
    ("once", 1, "true or false"),
    ("shared_repeats", None, "true or false"),
    ("more", 1, "unknown field 'more'"),
]


@pytest.mark.parametrize(("name", "value", "reason"), FEATURES)
def test_unsound_features_are_refused(sound, tmp_path, name, value, reason):
    texts, description, arrays = parts_of(sound)
    description["features"][name] = value
    signed(tmp_path / "model", texts, description, arrays)
    tracemalloc.start()
    with pytest.raises(ModelError, match=reason):
        load_model(tmp_path / "model")
    assert tracemalloc.get_traced_memory()[1] < 2**22
    tracemalloc.stop()


@pytest.mark.parametrize("value", [None, [], "monomials", {}])
def test_features_must_be_said(sound, tmp_path, value):
    texts, description, arrays = parts_of(sound)
    signed(tmp_path / "model", texts, {**description, "features": value}, arrays)
    with pytest.raises(ModelError, match=r"'features' of the description (should be a JSON object|lacks)"):
        load_model(tmp_path / "model")
    for name in description["features"]:
        rest = {key: part for key, part in description["features"].items() if key != name}
        signed(tmp_path / "model", texts, {**description, "features": rest}, arrays)
        with pytest.raises(ModelError, match=f"lacks '{name}'"):
            load_model(tmp_path / "model")


def test_weights_must_be_those_of_the_monomials(sound, tmp_path):
    texts, description, arrays = parts_of(sound)
    arrays["coef"] = np.ascontiguousarray(arrays["coef"][:, :4])
    signed(tmp_path / "model", texts, description, arrays)
    with pytest.raises(ModelError, match="15 such monomials, and coef weighs 4"):
        load_model(tmp_path / "model")
    signed(tmp_path / "model", texts, {**description, "feature_names": list("abc")}, parts_of(sound)[2])
    with pytest.raises(ModelError, match="3 feature names for 4 columns"):
        load_model(tmp_path / "model")


def test_a_saved_model_is_checked_when_it_is_made(fitted):
    saved = from_estimator(fitted)
    for expansion in (Expansion(4, 0, (1.0, 1.0, np.nan)), Expansion(4, 1, (1.0, 1.0, 1.0))):
        with pytest.raises(ModelError):
            dataclasses.replace(saved, expansion=expansion)


@settings(max_examples=150)
@given(data=st.data())
def test_mutations_with_a_right_checksum(sound, data):
    texts, description, arrays = parts_of(sound)
    replace_one_part(description["features"] if data.draw(st.booleans()) else description, data)
    assert_refused_or_usable(sound.with_name("mutated"), texts, description, arrays, LinearSVC)
