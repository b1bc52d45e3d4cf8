# SPDX-License-Identifier: BSD-3-Clause
"""Three walks of people who are new here, each from beginning to end without a stumble.

One puts our classes into pipelines that were made for scikit-learn's, one teaches a course, and one has
files and a shell. Warnings are errors, as in all tests.
"""

from __future__ import annotations

import gzip
import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn import svm
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, make_blobs, make_circles
from sklearn.ensemble import BaggingClassifier, StackingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.inspection import permutation_importance
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import maxmargin
from maxmargin import SVC, InseparableError, LinearSVC, Problem, path, plot, solve
from maxmargin.features import Monomials
from maxmargin.solvers import Pegasos


def customers(count):
    """Customers with texts, numbers and holes, and who left."""
    pandas = pytest.importorskip("pandas")
    draw = np.random.default_rng(0)
    table = pandas.DataFrame(
        {
            "age": np.where(draw.random(count) < 0.1, np.nan, draw.integers(18, 90, count)),
            "charges": draw.gamma(4.0, 15.0, count),
            "contract": draw.choice(["month", "year"], count),
            "city": draw.choice(["Lyon", "Oslo", "Turin"], count),
        }
    )
    leaves = table["charges"] / 30 + 2.0 * (table["contract"] == "month") + draw.normal(0, 1, count) > 3.5
    return table, np.where(leaves, "left", "stayed")


def test_classes_of_scikit_learn_replaced_in_ordinary_pipelines():
    X, y = customers(300)
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    columns = make_column_transformer(
        (numbers, ["age", "charges"]), (OneHotEncoder(handle_unknown="ignore"), ["contract", "city"])
    )

    # The same pipeline with theirs and with ours: as good, and ours is proven.
    accuracy = {}
    for name, classifier in {
        "theirs": svm.LinearSVC(random_state=0),
        "ours": LinearSVC(),
        "their kernel": svm.SVC(),
        "our kernel": SVC(),
    }.items():
        accuracy[name] = cross_val_score(make_pipeline(clone(columns), classifier), X, y, cv=3).mean()
    assert accuracy["ours"] == pytest.approx(accuracy["theirs"], abs=0.02)
    assert accuracy["our kernel"] == pytest.approx(accuracy["their kernel"], abs=0.02)

    # A search over C, with names as ever; the best model has its proof, and can be kept.
    search = GridSearchCV(make_pipeline(columns, SVC()), {"svc__C": [0.1, 1.0, 10.0]}, cv=3).fit(X, y)
    best = search.best_estimator_
    assert best[-1].certificate_.relative_gap <= best[-1].tol
    assert best[-1].classes_.tolist() == ["left", "stayed"]
    again = pickle.loads(pickle.dumps(best))
    np.testing.assert_array_equal(again.predict(X), best.predict(X))

    # Unknown categories, one row, the names of columns: all as they were.
    strange = X.head(1).assign(city="Quito")
    assert best.predict(strange)[0] in ("left", "stayed")
    assert best[:-1].get_feature_names_out()[0] == "pipeline__age"
    shares = permutation_importance(best, X, y, n_repeats=2, random_state=0).importances_mean
    assert X.columns[shares.argmax()] in ("charges", "contract")

    # Inside other estimators: probabilities, stacks and bags.
    numeric = numbers.fit_transform(X[["age", "charges"]])
    calibrated = CalibratedClassifierCV(LinearSVC(), cv=3).fit(numeric, y)
    assert calibrated.predict_proba(numeric).sum(axis=1) == pytest.approx(1.0)
    stack = StackingClassifier([("line", LinearSVC()), ("curve", SVC())], cv=3).fit(numeric, y)
    bag = BaggingClassifier(LinearSVC(), n_estimators=3, random_state=0).fit(numeric, y)
    majority = max(np.mean(y == label) for label in ("left", "stayed"))
    assert min(stack.score(numeric, y), bag.score(numeric, y)) > majority

    # Texts, which are sparse.
    texts = ["cheap pills now", "meeting at noon", "pills pills cheap", "noon meeting notes"] * 5
    spam = make_pipeline(TfidfVectorizer(), LinearSVC()).fit(texts, [1, 0, 1, 0] * 5)
    assert spam.predict(["cheap meeting pills", "notes of noon"]).tolist() == [1, 0]


def test_a_course_on_support_vector_machines(tmp_path, run):
    pyplot = pytest.importorskip("matplotlib.pyplot")

    # First lecture: the margin. Two clouds, a line between them, and how wide the street is.
    X, y = make_blobs(60, centers=[[-2, 0], [2, 0]], cluster_std=0.6, random_state=1)
    hard = LinearSVC(C=np.inf).fit(X, y)
    soft = LinearSVC(loss="hinge", C=0.1).fit(X, y)
    assert 2 / np.linalg.norm(hard.coef_) < 2 / np.linalg.norm(soft.coef_)
    with pytest.raises(InseparableError):
        LinearSVC(C=np.inf).fit([[0.0], [1.0], [2.0]], [0, 1, 0])

    # A picture for the slides.
    figure, ax = pyplot.subplots()
    plot.support_vectors(soft, X, y, ax=plot.decision_boundary(soft, X, y, ax=ax))
    figure.savefig(tmp_path / "margin.png")
    pyplot.close(figure)
    assert (tmp_path / "margin.png").stat().st_size > 5_000

    # Second lecture: the dual. Weak duality holds on the way, and strong duality at the end.
    X, y = load_breast_cancer(return_X_y=True)
    X, signs = StandardScaler().fit_transform(X), 2.0 * y - 1.0
    problem = Problem.of(X, signs, C=1.0, loss="hinge", intercept="exact")
    model = solve(problem, "interior_point", tol=1e-8)
    assert all(point.dual <= model.certificate.primal for point in model.trace)
    alpha, margins = model.alpha, model.certificate.margins
    assert np.all(margins[alpha < 1e-6] > 1 - 1e-3), "complementary slackness: no multiplier, no violation"
    assert np.all(margins[alpha > 1 - 1e-6] < 1 + 1e-3), "and a full one only inside the margin"
    np.testing.assert_allclose((alpha * signs) @ X, model.w, atol=1e-4)

    # Third lecture: algorithms. All find the same value, and each proves how far it came.
    regularised = Problem.of(X, signs, C=0.1, loss="hinge", intercept="regularised")
    best = solve(regularised, "auto", tol=1e-6).certificate
    reach = {"dual_coordinate_ascent": 1e-4, "subgradient": 1e-2, Pegasos(batch=8): 1e-1}
    for solver, tol in reach.items():
        proof = solve(regularised, solver, tol=tol, max_time=2).certificate
        assert proof.dual <= best.primal
        assert proof.primal >= best.dual
        assert proof.relative_gap <= tol

    # Fourth lecture: C, along which the street gets narrower.
    lengths = [np.linalg.norm(each.w) for each in path(problem, [0.01, 0.1, 1.0])]
    assert lengths == sorted(lengths)

    # Fifth lecture: kernels. No line separates two rings. A kernel does, and so do its monomials.
    X, y = make_circles(120, factor=0.4, noise=0.05, random_state=0)
    assert LinearSVC().fit(X, y).score(X, y) < 0.7
    kernel = SVC(kernel="poly", degree=2, gamma=1.0, coef0=1.0, tol=1e-6).fit(X, y)
    written_out = make_pipeline(
        Monomials(2, scaling="kernel", gamma=1.0, coef0=1.0), LinearSVC(loss="hinge", tol=1e-6)
    ).fit(X, y)
    assert kernel.score(X, y) == written_out.score(X, y) == 1.0
    np.testing.assert_allclose(kernel.decision_function(X), written_out.decision_function(X), atol=1e-2)

    # Homework: a table and a figure of the lectures, made again.
    code, out, _ = run("reproduce", "support_vectors", "--quick", "--output", tmp_path)
    assert code == 0
    assert "misclassified" in out
    assert (tmp_path / "reproduce_support_vectors.png").exists()


def test_files_and_a_shell(tmp_path, run, answer, monkeypatch):
    monkeypatch.chdir(tmp_path)

    # A table, as somebody sent it: what is in it?
    code, out, _ = run("demo", "--save-data", "churn.csv")
    assert "Next: maxmargin train churn.csv --label churn" in out
    code, out, _ = run("info", "churn.csv", "--label", "churn")
    assert code == 0
    assert "category: month" in out
    assert "19 missing" in out

    # Train: what was done to the columns, how good it is, and how good that is.
    code, out, _ = run("train", "churn.csv", "--label", "churn", "-o", "model.mm", "--hold-out", "0.2")
    assert code == 0
    for words in ("Certified", "Left out: 'customer'", "Held-out accuracy", "Always to say no would give"):
        assert words in out
    given = ["churn.csv", "--label", "churn", "--test", "churn.test.csv"]
    code, out, _ = run("choose", *given, "-o", "chosen.mm")
    assert code == 0
    assert "Test accuracy" in out

    # A colleague checks it from the two files, twice, and gets a page to read.
    assert run("certify", "model.mm", "churn.csv")[0] == 0
    assert run("certify", "--independent", "model.mm", "churn.csv")[0] == 0
    assert run("report", "model.mm", "churn.csv", "-o", "report.html")[0] == 0
    assert "<html" in (tmp_path / "report.html").read_text()

    # And notices where a file is another one.
    lines = (tmp_path / "churn.csv").read_text().splitlines()
    (tmp_path / "other.csv").write_text("\n".join(lines[:1] + lines[2:] + lines[1:2]) + "\n")
    code, out, _ = run("certify", "model.mm", "other.csv")
    assert code == 1
    assert "these are not the data that the model was trained on" in out

    # Predictions, one for each row whatever it has; packed, through a pipe of a real shell.
    new = [lines[0], "C9999,,two years,Quito,2024-01-01,true,,", *lines[1:4]]
    with gzip.open("new.csv.gz", "wt") as file:
        file.write("\n".join(new) + "\n")
    told = subprocess.run(
        f"{sys.executable} -m maxmargin predict model.mm - -q < new.csv.gz",
        shell=True,
        capture_output=True,
        text=True,
        check=True,
    )
    assert len(told.stdout.split()) == 4
    assert set(told.stdout.split()) <= {"yes", "no"}
    loaded = maxmargin.LinearSVC.load("model.mm")
    assert loaded.classes_.tolist() == ["no", "yes"]

    # What goes wrong is told with the cure, and the cure works.
    semicolons = (tmp_path / "churn.csv").read_text().replace(",", ";")
    (tmp_path / "churn_de.csv").write_text(semicolons)
    code, _, err = run("train", "churn_de.csv", "--label", "churn", "-o", "de.mm")
    assert code == 2
    assert "--delimiter ';'" in err
    code, found = answer("train", "churn_de.csv", "--label", "churn", "--delimiter", ";", "-o", "de.mm")
    assert (code, found["certified"]) == (0, True)
    code, _, err = run("train", "churn.csv", "-o", "none.mm")
    assert code == 2
    assert "--label" in err
