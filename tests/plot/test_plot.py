# SPDX-License-Identifier: BSD-3-Clause
"""The pictures show what the models say: checked against the models, artist by artist."""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from matplotlib.contour import ContourSet
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

from maxmargin import (
    SVC,
    SVR,
    LinearOneClassSVM,
    LinearSVC,
    LinearSVR,
    NuSVR,
    OneClassSVM,
    Problem,
    RowClass,
    Trace,
    plot,
    solve,
)
from maxmargin import path as path_along
from maxmargin.features import Squares


@pytest.fixture(autouse=True)
def _closed():
    yield
    pyplot.close("all")


def two_clouds(n=120, seed=0):
    random = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 3 == 0, 1, -1)
    return random.normal(size=(n, 2)) + 0.9 * y[:, None], y


def rings(n=150, seed=0):
    random = np.random.default_rng(seed)
    y = np.arange(n) % 2
    radius = 1.0 + 1.5 * y + 0.2 * random.normal(size=n)
    angle = random.uniform(0, 2 * np.pi, n)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), y


def lines_of(ax):
    """The contour lines by level: of each all its points."""
    contours = [c for c in ax.findobj(ContourSet) if not c.filled]
    return {
        level: path.vertices
        for contour in contours
        for level, path in zip(contour.levels, contour.get_paths(), strict=True)
    }


def scatters(ax):
    """The points by the name that the legend has for them."""
    named = [c for c in ax.collections if not c.get_label().startswith("_")]
    return {c.get_label(): np.asarray(c.get_offsets()) for c in named}


MODELS = {
    "linear": (two_clouds, lambda: LinearSVC(loss="hinge", random_state=0, C=0.5)),
    "kernel": (rings, lambda: SVC(C=2.0)),
    "pipeline": (
        rings,
        lambda: make_pipeline(StandardScaler(), Squares(), LinearSVC(loss="hinge", random_state=0)),
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_boundary_and_margin_are_level_sets_of_the_scores(name):
    data, make = MODELS[name]
    X, y = data()
    model = make().fit(X, y)
    ax = plot.decision_boundary(model, X, y)
    lines = lines_of(ax)
    assert set(lines) == {-1.0, 0.0, 1.0}
    spread = np.ptp(model.decision_function(X))
    for level, points in lines.items():
        np.testing.assert_allclose(model.decision_function(points), level, atol=2e-3 * spread)
    points = scatters(ax)
    for label in np.unique(y):
        np.testing.assert_array_equal(points[f"class {label}"], X[y == label])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x1", "x2")


def test_boundary_differs_without_colours():
    X, y = two_clouds()
    ax = plot.decision_boundary(LinearSVC(random_state=0).fit(X, y), X, y)
    (contour,) = [c for c in ax.findobj(ContourSet) if not c.filled]
    styles = dict(zip(contour.levels, contour.linestyles, strict=True))
    assert styles[-1.0] == styles[1.0] != styles[0.0]
    points = [c for c in ax.collections if str(c.get_label()).startswith("class")]
    shapes = {c.get_paths()[0].vertices.tobytes() for c in points}
    assert len(shapes) == 2, "a marker for each class"


def test_boundary_of_three_classes_and_names_of_columns():
    X, y = load_iris(return_X_y=True, as_frame=True)
    X = X.iloc[:, 2:]
    model = SVC().fit(X, y)
    ax = plot.decision_boundary(model, X, y)
    assert [ax.get_xlabel(), ax.get_ylabel()] == list(X.columns)
    lines = [c for c in ax.findobj(ContourSet) if not c.filled]
    points = np.vstack([path.vertices for c in lines for path in c.get_paths()])
    # Just beside a line between regions, more than one class is predicted.
    steps = 0.03 * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])
    near = [model.predict(pd.DataFrame(points + step, columns=X.columns)) for step in steps]
    assert (np.ptp(near, axis=0) > 0).mean() > 0.97
    assert len(scatters(ax)) == 3


@pytest.mark.parametrize("name", MODELS)
def test_support_vectors_are_those_of_the_certificate(name):
    data, make = MODELS[name]
    X, y = data()
    model = make().fit(X, y)
    ax = plot.support_vectors(model, X, y)
    proof = (model[-1] if name == "pipeline" else model).certificate_
    words = {1: "on the margin", 2: "inside the margin", 3: "misclassified"}
    drawn = {label.rsplit(" (", 1)[0]: points for label, points in scatters(ax).items()}
    for kind, text in words.items():
        expected = X[proof.row_classes == kind]
        np.testing.assert_array_equal(drawn.get(text, np.empty((0, 2))), expected)
    margins = np.where(y == np.unique(y)[1], 1, -1) * model.decision_function(X)
    assert np.all(margins[proof.row_classes == RowClass.MISCLASSIFIED] <= 0)


def artists(ax):
    """What is drawn, in words: kinds of artists, names, and how many points each has."""
    shapes = [(type(c).__name__, c.get_label(), len(c.get_offsets())) for c in ax.collections]
    return shapes, [line.get_label() for line in ax.lines], legend_of(ax), ax.get_xlabel(), ax.get_ylabel()


def legend_of(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


@pytest.mark.parametrize("data", [two_clouds, lambda: load_iris(return_X_y=True)], ids=["two", "three"])
def test_support_vectors_are_one_picture_with_and_without_axes(data):
    X, y = data()
    X = X[:, -2:]
    model = LinearSVC(loss="hinge", random_state=0).fit(X, y)
    alone = plot.support_vectors(model, X, y)
    _, given = pyplot.subplots()
    assert plot.support_vectors(model, X, y, given) is given
    assert artists(given) == artists(alone)
    added = plot.decision_boundary(model, X, y)
    plot.support_vectors(model, X, y, added)
    assert artists(added) == artists(alone), "to the picture of the boundary the marks are added"
    names = legend_of(alone)
    assert len(names) == len(set(names))
    assert names[: len(model.classes_)] == [f"class {label}" for label in model.classes_]
    assert "boundary" in names
    assert ("margin" in names) == (len(model.classes_) == 2)


@pytest.mark.parametrize("make", [lambda: SVC(C=3.0), lambda: LinearSVC(random_state=0)])
def test_support_vectors_of_three_classes(make):
    X, y = load_iris(return_X_y=True)
    X = X[:, 2:]
    model = make().fit(X, y)
    points = next(
        p for label, p in scatters(plot.support_vectors(model, X, y)).items() if "support" in label
    )
    if isinstance(model, SVC):
        expected = np.sort(model.support_)
    else:
        expected = np.flatnonzero(np.sum([c.alpha for c in model.certificate_], axis=0) > 0)
    np.testing.assert_array_equal(points, X[expected])


def test_margins_are_counted():
    X, y = load_breast_cancer(return_X_y=True)
    model = LinearSVC(loss="hinge", random_state=0).fit(scale(X), y)
    ax = plot.margins(model, scale(X), y)
    margins = np.where(y == 1, 1, -1) * model.decision_function(scale(X))
    counts = [sum(bar.get_height() for bar in group) for group in ax.containers]
    assert counts == [(margins <= 0).sum(), ((margins > 0) & (margins < 1)).sum(), (margins >= 1).sum()]
    assert [line.get_xdata()[0] for line in ax.lines] == [0.0, 1.0]
    assert len({group[0].get_hatch() for group in ax.containers}) == 3
    assert ax.get_ylabel() == "rows"
    sparse_ax = plot.margins(
        LinearSVC(loss="hinge", random_state=0).fit(sparse.csr_matrix(scale(X)), y), scale(X), y
    )
    assert len(sparse_ax.containers) == 3


def test_margins_that_spread_far_have_few_bars():
    X, y = two_clouds()
    ax = plot.margins(LinearSVC(C=1e4, random_state=0).fit(1e3 * X, y), 1e6 * X, y)
    assert len(ax.containers[0]) <= 62


def test_convergence_draws_the_trace():
    X, y = load_breast_cancer(return_X_y=True)
    model = LinearSVC(loss="hinge", random_state=0, solver="pegasos", max_iter=30, tol=0.5).fit(scale(X), y)
    (line,) = plot.convergence(model).lines
    np.testing.assert_array_equal(line.get_xdata(), model.trace_.column("seconds"))
    np.testing.assert_array_equal(line.get_ydata(), model.trace_.column("relative_gap"))
    pipeline = make_pipeline(StandardScaler(), LinearSVC(random_state=0)).fit(X, y)
    (line,) = plot.convergence(pipeline, against="steps").lines
    np.testing.assert_array_equal(line.get_xdata(), pipeline[-1].trace_.column("step"))


def test_convergence_of_several_runs():
    X, y = two_clouds()
    problem = Problem.of(X, y, 1.0)
    names = ("dual_coordinate_ascent", "subgradient")
    runs = {name: solve(problem, name, max_steps=20, certify_every=1, tol=0) for name in names}
    best = solve(problem, tol=1e-9).certificate.primal
    ax = plot.convergence(runs, best=best)
    assert ax.get_ylabel() == "relative suboptimality"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == list(names)
    for line, model in zip(ax.lines, runs.values(), strict=True):
        expected = np.maximum((model.trace.column("primal") - best) / best, 1e-16)
        np.testing.assert_allclose(line.get_ydata(), expected)
    assert len({(line.get_linestyle(), line.get_marker()) for line in ax.lines}) == 2
    several = LinearSVC(random_state=0).fit(*load_iris(return_X_y=True))
    assert len(plot.convergence(several).lines) == 3
    assert len(plot.convergence(list(runs.values())).lines) == 2


def test_path_draws_coefficients_rows_and_gaps():
    X, y = load_breast_cancer(return_X_y=True)
    Cs = np.array([1.0, 0.01, 0.1])
    models = path_along(Problem.of(scale(X), 2.0 * y - 1), Cs)
    ax = plot.path(models)
    assert len(ax.lines) == X.shape[1]
    named = [line for line in ax.lines if not line.get_label().startswith("_")]
    assert len(named) == 6
    for line in named:
        j = int(line.get_label()[1:]) - 1
        np.testing.assert_array_equal(line.get_xdata(), np.sort(Cs))
        np.testing.assert_array_equal(line.get_ydata(), [models[k].w[j] for k in np.argsort(Cs)])
    tops = [band.get_paths()[0].vertices[:, 1].max() for band in plot.path(models, show="rows").collections]
    support = max(np.mean(model.alpha > 0) for model in models)
    assert tops[-1] == pytest.approx(support)
    line, between = plot.path(models, show="gaps").lines
    np.testing.assert_allclose(line.get_ydata(), np.maximum(models.gaps[np.argsort(Cs)], 1e-16))
    assert max(between.get_ydata()) == pytest.approx(models.largest_gap, rel=0.01)
    assert (min(between.get_xdata()), max(between.get_xdata())) == pytest.approx((min(Cs), max(Cs)))


def test_given_axes_are_used():
    X, y = two_clouds()
    model = LinearSVC(random_state=0).fit(X, y)
    _, axes = pyplot.subplots(1, 4)
    models = path_along(Problem.of(X, y), [0.1, 1.0])
    assert plot.decision_boundary(model, X, y, ax=axes[0]) is axes[0]
    assert plot.margins(model, X, y, ax=axes[1]) is axes[1]
    assert plot.convergence(model, ax=axes[2]) is axes[2]
    assert plot.path(models, ax=axes[3]) is axes[3]
    assert len(pyplot.get_fignums()) == 1


def test_search_and_others_classifiers():
    X, y = two_clouds()
    search = GridSearchCV(LinearSVC(loss="hinge", random_state=0), {"C": [0.1, 1.0]}, cv=3).fit(X, y)
    assert scatters(plot.support_vectors(search, X, y))
    other = LogisticRegression().fit(X, y)
    assert 0.0 in lines_of(plot.decision_boundary(other, X, y))
    with pytest.raises(ValueError, match="Fit LinearSVC"):
        plot.support_vectors(other, X, y)


def test_wrong_input_is_told_with_the_cure():
    X, y = two_clouds()
    model = LinearSVC(random_state=0).fit(X, y)
    wide = LinearSVC(random_state=0).fit(np.hstack([X, X]), y)
    with pytest.raises(NotFittedError):
        plot.decision_boundary(LinearSVC(random_state=0), X, y)
    with pytest.raises(ValueError, match=r"2 columns.*Got 4 instead.*margins"):
        plot.decision_boundary(wide, np.hstack([X, X]), y)
    with pytest.raises(ValueError, match="decision_function"):
        plot.margins(LinearRegression().fit(X, y), X, y)
    with pytest.raises(ValueError, match="one label for each of the 120 rows"):
        plot.decision_boundary(model, X, y[:5])
    with pytest.raises(ValueError, match=r"among the classes.*Got 7 instead"):
        plot.margins(model, X, np.where(y == 1, 7, y))
    with pytest.raises(ValueError, match="two classes"):
        plot.margins(LinearSVC(random_state=0).fit(X, np.arange(120) % 3), X, y)
    with pytest.raises(ValueError, match="training data"):
        plot.support_vectors(model, X[:50], y[:50])
    with pytest.raises(ValueError, match="matrix"):
        plot.decision_boundary(model, X[0], y)
    with pytest.raises(ValueError, match="Fit the estimator"):
        plot.convergence(LinearSVC(random_state=0))
    with pytest.raises(ValueError, match="empty"):
        plot.convergence(Trace())
    with pytest.raises(ValueError, match="against"):
        plot.convergence(model, against="hours")
    with pytest.raises(ValueError, match=r"maxmargin\.path"):
        plot.path([model])
    with pytest.raises(ValueError, match="show"):
        plot.path(path_along(Problem.of(X, y), [1.0]), show="all")


@pytest.mark.parametrize("columns", [1, 3])
def test_tube_tells_rows_within_it_from_others(columns):
    random = np.random.default_rng(0)
    X = random.normal(size=(50, columns))
    y = 3.0 * X[:, 0] + random.normal(size=50)
    for model in (LinearSVR(epsilon=0.8), make_pipeline(StandardScaler(), SVR(epsilon=0.8)), NuSVR(nu=0.3)):
        predicted = model.fit(X, y).predict(X)
        ax = plot.tube(model, X, y)
        within, outside = ax.collections[1:]
        inside = np.abs(y - predicted) <= getattr(model, "epsilon_", 0.8)
        across = X[:, 0] if columns == 1 else predicted
        np.testing.assert_allclose(within.get_offsets(), np.column_stack([across, y])[inside])
        assert len(outside.get_offsets()) == np.count_nonzero(~inside) > 0
        (line,) = ax.lines
        place = line.get_xdata()
        expected = model.predict(place[:, np.newaxis]) if columns == 1 else place
        np.testing.assert_allclose(line.get_ydata(), expected)
        assert f"outside of it ({np.count_nonzero(~inside)})" in ax.get_legend_handles_labels()[1]
        pyplot.close(ax.figure)


def test_tube_refuses_others_with_the_cure():
    X, y = two_clouds()
    with pytest.raises(ValueError, match=r"must be a fitted regressor with an epsilon. Got SVC"):
        plot.tube(SVC().fit(X, y), X, y)
    with pytest.raises(ValueError, match="one number for each of the"):
        plot.tube(SVR().fit(X, X[:, 0]), X, y[:-1])


def test_the_region_of_one_class_has_its_rows_inside_and_a_ring_for_each_support_vector():
    rows = np.random.default_rng(0).normal(size=(80, 2))
    model = OneClassSVM(nu=0.2).fit(rows)
    ax = plot.region(model, rows)
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    outside = int((model.predict(rows) == -1).sum())
    assert f"outside ({outside})" in texts
    assert f"inside ({80 - outside})" in texts
    assert f"support vector ({len(model.support_)})" in texts
    assert "boundary" in texts
    half = LinearOneClassSVM(nu=0.2).fit(rows + 3.0)
    texts = [text.get_text() for text in plot.region(half, rows + 3.0).get_legend().get_texts()]
    assert f"support vector ({len(half.certificate_.support)})" in texts
    with pytest.raises(ValueError, match="must be a fitted OneClassSVM"):
        plot.region(LinearSVC().fit(rows, rows[:, 0] > 0), rows)
