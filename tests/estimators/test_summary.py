# SPDX-License-Identifier: BSD-3-Clause
"""What notebooks show: scikit-learn's picture, and the certificate once there is one."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import sklearn
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

from maxmargin import SVC, LinearSVC
from maxmargin.estimators.summary import fitted_summary
from well_formed import read


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X), y


def test_a_fit_shows_its_certificate(cancer):
    model = LinearSVC(loss="hinge", random_state=0).fit(*cancer)
    certificate = model.certificate_
    html = model._repr_html_()
    text = " ".join(read(fitted_summary(model)).text)
    assert html.endswith(fitted_summary(model))
    assert "sk-top-container" in html
    assert "Certified" in text
    assert f"within tol = {model.tol:.1e}" in text
    assert f"{certificate.primal:.8g}" in text
    assert f"{certificate.dual:.8g}" in text
    assert f"{certificate.relative_gap:.2e}" in text
    assert f"{certificate.kkt_violation:.2e}" in text
    assert model.solver_ in text
    counts = np.bincount(certificate.row_classes, minlength=4)
    assert (
        f"569 rows: {counts[0]} no support vectors, {counts[1]} on the margin, {counts[2]} inside it, "
        f"{counts[3]} misclassified."
    ) in text


def test_the_bundle_and_the_page_are_the_same(cancer):
    model = LinearSVC(random_state=0).fit(*cancer)
    bundle = model._repr_mimebundle_()
    assert bundle["text/plain"] == repr(model)
    assert fitted_summary(model) in bundle["text/html"]
    with sklearn.config_context(display="text"):
        assert set(model._repr_mimebundle_()) == {"text/plain"}
        assert not hasattr(model, "_repr_html_")


def test_an_unfitted_estimator_shows_the_usual():
    model = LinearSVC()
    assert fitted_summary(model) == ""
    assert "maxmargin-certificate" not in model._repr_html_()
    assert "maxmargin-certificate" not in model._repr_mimebundle_()["text/html"]
    assert "LinearSVC" in model._repr_html_()


def test_a_run_that_fell_short_says_so_and_what_to_do(cancer):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LinearSVC(max_iter=1, tol=1e-9).fit(*cancer)
    text = " ".join(read(fitted_summary(model)).text)
    assert "Budget spent" in text
    assert "Raise max_iter" in text


def test_several_classes_the_worst_first():
    X, y = load_iris(return_X_y=True)
    names = np.array(
        ["<b>&amp;</b>", "two", "a name that is longer than anyone would want to read in a table"]
    )
    model = LinearSVC(random_state=0).fit(X, names[y])
    html = fitted_summary(model)
    page = read(html)
    assert page.tags.count("tr") == 4
    assert "b" not in page.tags
    assert "<b>&amp;</b>" in page.text
    assert any(part.endswith("...") for part in page.text)
    gaps = [c.relative_gap for c in model.certificate_]
    places = [html.index(f"{c.primal:.8g}") for c in model.certificate_]
    assert np.argsort(places).tolist() == np.argsort(-np.array(gaps), kind="stable").tolist()


def test_many_classes_are_cut(cancer):
    X, _ = cancer
    labels = np.arange(len(X)) % 13
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LinearSVC(max_iter=2, tol=0.5).fit(X, labels)
    page = read(fitted_summary(model))
    assert page.tags.count("tr") == 11
    assert "and 3 more classes, none with a larger relative gap." in page.text


def test_a_loaded_model_shows_the_same(cancer, tmp_path):
    model = LinearSVC(random_state=0).fit(*cancer)
    model.save(tmp_path / "model")
    assert fitted_summary(LinearSVC.load(tmp_path / "model")) == fitted_summary(model)
    model.save(tmp_path / "small", proof=False)
    assert fitted_summary(LinearSVC.load(tmp_path / "small")) == ""


def test_parameters_set_after_the_fit_do_not_change_what_is_shown(cancer):
    model = LinearSVC(random_state=0).fit(*cancer)
    before = fitted_summary(model)
    assert fitted_summary(model.set_params(tol=1e-12)) == before


@pytest.mark.parametrize("of", [LinearSVC(random_state=0), SVC()], ids=["LinearSVC", "SVC"])
def test_inside_a_pipeline_it_is_unfolded_from_the_box_of_the_estimator(cancer, of):
    pipeline = make_pipeline(StandardScaler(), of)
    assert "maxmargin-certificate" not in pipeline._repr_html_()
    html, model = pipeline.fit(*cancer)._repr_html_(), pipeline[-1]
    assert html.count(fitted_summary(model)) == 1
    assert f"certified, relative gap {model.certificate_.relative_gap:.1e}" in html
    searched = GridSearchCV(make_pipeline(StandardScaler(), of), {}, cv=2).fit(*cancer)
    assert fitted_summary(searched.best_estimator_[-1]) in searched._repr_html_()
    assert model._repr_html_().count(fitted_summary(model)) == 1
