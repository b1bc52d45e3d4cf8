# SPDX-License-Identifier: BSD-3-Clause
"""The choice of C: what an explicit loop over folds and fits would choose, from certified fits."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys

import joblib
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import accuracy_score, f1_score, get_scorer, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import LinearSVC, LinearSVCCV, Status
from maxmargin.estimators.folds import Outcome, contenders, refine, settle
from maxmargin.proof.model import Certificates
from maxmargin.solvers import Newton
from scikit_learn import assert_passes

Cs = [0.001, 0.03, 1.0, 30.0]


@parametrize_with_checks([LinearSVCCV(Cs=3, cv=3), LinearSVCCV(loss="hinge", Cs=3, cv=3)])
def test_scikit_learn_checks(estimator, check):
    assert_passes(check, estimator)


def by_hand(model, X, y, cv, scorer, weights=None):
    """The scores by folds and values of C: copies of the rows, a cold fit each."""
    options = {k: v for k, v in model.get_params().items() if k in LinearSVC().get_params()}
    options["n_jobs"] = None
    scores = []
    for train, test in cv.split(X, y):
        its = None if weights is None else weights[train]
        each = [LinearSVC(**options, C=C).fit(X[train], y[train], its) for C in model.Cs]
        scores.append([scorer(one, X[test], y[test]) for one in each])
    return np.array(scores)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_scores_are_those_of_an_explicit_loop(breast_cancer, loss):
    X, y = breast_cancer
    cv = StratifiedKFold(4, shuffle=True, random_state=0)
    # So precise that no held-out row can be on the other side.
    model = LinearSVCCV(loss=loss, Cs=Cs, cv=cv, tol=1e-9, max_iter=100_000, random_state=0).fit(X, y)
    scores = by_hand(model, X, y, cv, get_scorer("accuracy"))
    for i, row in enumerate(scores):
        np.testing.assert_allclose(model.cv_results_[f"split{i}_test_score"], row)
    np.testing.assert_allclose(model.cv_results_["mean_test_score"], scores.mean(axis=0))
    np.testing.assert_allclose(model.cv_results_["std_test_score"], scores.std(axis=0))
    assert model.best_index_ == scores.mean(axis=0).argmax()
    assert Cs[model.best_index_] == model.C_
    assert model.best_score_ == pytest.approx(scores.mean(axis=0).max())
    assert model.cv_results_["max_relative_gap"].max() <= 1e-9


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 2.0, 1: 0.5, 2: 1.0}])
def test_several_classes_and_weights(class_weight):
    X, y = make_classification(
        300, 8, n_informative=6, n_classes=3, weights=[0.6, 0.3], random_state=0, flip_y=0.1
    )
    weights = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    cv = StratifiedKFold(3)
    options = dict(Cs=Cs, class_weight=class_weight, tol=1e-9, max_iter=100_000, random_state=0)
    model = LinearSVCCV(cv=cv, **options).fit(X, y, sample_weight=weights)
    scores = by_hand(model, X, y, cv, get_scorer("accuracy"), weights)
    got = np.array([model.cv_results_[f"split{i}_test_score"] for i in range(3)])
    np.testing.assert_allclose(got, scores)
    assert isinstance(model.certificate_, Certificates)
    assert model.coef_.shape == (3, 8)
    assert model.cv_results_["split0_relative_gap"].shape == (len(Cs),)


@pytest.mark.parametrize("regularize_intercept", [False, True])
def test_the_refit_is_a_fit_of_all_rows(digits, regularize_intercept):
    X, y = digits
    options = dict(tol=1e-7, max_iter=10_000, regularize_intercept=regularize_intercept, random_state=0)
    model = LinearSVCCV(Cs=[0.01, 0.1], cv=3, **options).fit(X, y)
    alone = LinearSVC(C=model.C_, **options).fit(X, y)
    for ours, theirs in zip(model.certificate_, alone.certificate_, strict=True):
        assert ours.primal == pytest.approx(theirs.primal, rel=2e-7)
    np.testing.assert_allclose(model.coef_, alone.coef_, atol=1e-3)
    np.testing.assert_array_equal(model.predict(X), model.best_estimator_.predict(X))
    assert model.status_ is Status.CERTIFIED
    assert model.n_iter_ >= 1
    assert len(model.trace_) == 10
    assert "asked for" not in model.solver_
    assert model.best_estimator_.get_params()["C"] == model.C_


def test_the_results_have_the_shape_of_grid_searchs(breast_cancer):
    X, y = breast_cancer
    ours = LinearSVCCV(Cs=Cs, cv=3, tol=1e-8, max_iter=10_000, random_state=0).fit(X, y)
    theirs = GridSearchCV(LinearSVC(tol=1e-8, max_iter=10_000, random_state=0), {"C": Cs}, cv=3).fit(X, y)
    assert set(theirs.cv_results_) <= set(ours.cv_results_)
    for name, values in theirs.cv_results_.items():
        if "time" not in name:
            np.testing.assert_allclose(
                np.asarray(ours.cv_results_[name], float) if name != "params" else 0.0,
                np.asarray(values, float) if name != "params" else 0.0,
            )
            assert type(ours.cv_results_[name]) is type(values)
        assert len(ours.cv_results_[name]) == len(Cs)
    assert ours.cv_results_["params"] == theirs.cv_results_["params"]
    assert ours.best_params_ == theirs.best_params_
    assert np.all(ours.cv_results_["mean_fit_time"] > 0)
    assert ours.n_splits_ == theirs.n_splits_


def test_equal_scores_go_to_the_smallest_C_whatever_the_order(breast_cancer):
    X, y = breast_cancer
    for values in ([1.0, 1e-3, 1e-2], [1e-3, 1e-2, 1.0]):
        model = LinearSVCCV(Cs=values, cv=2, scoring=lambda *_: 0.5).fit(X, y)
        assert model.C_ == 1e-3
        assert model.best_index_ == values.index(1e-3)
        np.testing.assert_array_equal(model.Cs_, values)
        np.testing.assert_array_equal(model.cv_results_["rank_test_score"], [1, 1, 1])
    shuffled = LinearSVCCV(Cs=Cs[::-1], cv=3, random_state=0).fit(X, y)
    sorted_ = LinearSVCCV(Cs=Cs, cv=3, random_state=0).fit(X, y)
    np.testing.assert_array_equal(
        shuffled.cv_results_["mean_test_score"][::-1], sorted_.cv_results_["mean_test_score"]
    )
    assert shuffled.C_ == sorted_.C_


def test_the_default_grid(breast_cancer):
    X, y = breast_cancer
    model = LinearSVCCV(Cs=5, cv=2).fit(X, y)
    np.testing.assert_allclose(model.Cs_, [1e-4, 1e-2, 1.0, 1e2, 1e4])


@pytest.mark.parametrize("backend", ["threading", "loky", "sequential"])
def test_back_ends_of_joblib(digits, backend):
    X, y = digits
    X, y = X[:600], y[:600]
    expected = LinearSVCCV(Cs=[0.01, 1.0], cv=3, n_jobs=1, random_state=0).fit(sparse.csr_matrix(X), y)
    with joblib.parallel_config(backend, n_jobs=2 if backend != "sequential" else 1):
        model = LinearSVCCV(Cs=[0.01, 1.0], cv=3, random_state=0).fit(sparse.csr_matrix(X), y)
    for i in range(3):
        name = f"split{i}_test_score"
        np.testing.assert_array_equal(model.cv_results_[name], expected.cv_results_[name])
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    "cv",
    [
        2,
        KFold(3, shuffle=True, random_state=0),
        ShuffleSplit(2, train_size=0.4, random_state=0),
        RepeatedStratifiedKFold(n_splits=2, n_repeats=2, random_state=0),
    ],
)
def test_splitters(breast_cancer, cv):
    X, y = breast_cancer
    ours = LinearSVCCV(Cs=Cs[:3], cv=cv, tol=1e-8, max_iter=10_000, random_state=0).fit(X, y)
    theirs = GridSearchCV(LinearSVC(tol=1e-8, max_iter=10_000, random_state=0), {"C": Cs[:3]}, cv=cv)
    theirs.fit(X, y)
    np.testing.assert_allclose(ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"])


def test_splits_as_lists_and_masks(breast_cancer):
    X, y = breast_cancer
    splits = list(StratifiedKFold(3).split(X, y))
    masks = [
        (np.isin(np.arange(len(y)), train), np.isin(np.arange(len(y)), test)) for train, test in splits
    ]
    first = LinearSVCCV(Cs=Cs[:2], cv=splits, random_state=0).fit(X, y)
    second = LinearSVCCV(Cs=Cs[:2], cv=masks, random_state=0).fit(X, y)
    np.testing.assert_array_equal(
        first.cv_results_["mean_test_score"], second.cv_results_["mean_test_score"]
    )


def f1_by_hand(model, X, y):
    return f1_score(y, model.predict(X), average="macro")


@pytest.mark.parametrize(
    "scoring", [None, "f1_macro", "balanced_accuracy", make_scorer(accuracy_score), f1_by_hand]
)
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_scoring(digits, scoring, layout):
    X, y = digits
    cv = StratifiedKFold(3)
    model = LinearSVCCV(Cs=[0.01, 1.0], cv=cv, scoring=scoring, tol=1e-6, random_state=0).fit(layout(X), y)
    scorer = get_scorer(scoring or "accuracy") if not callable(scoring) else scoring
    scores = by_hand(model, X, y, cv, scorer)
    np.testing.assert_allclose(model.cv_results_["mean_test_score"], scores.mean(axis=0))
    assert model.score(X, y) == pytest.approx(scorer(model, X, y))


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_score_of_the_chosen_C_is_that_of_the_optimum(loss):
    X, y = make_classification(3000, 30, n_informative=8, flip_y=0.2, random_state=3)
    cv = StratifiedKFold(3)
    model = LinearSVCCV(loss=loss, Cs=[1e-3, 0.01], cv=cv, tol=1e-3, solver="dual_coordinate_ascent")
    model.set_params(random_state=0, max_iter=10_000).fit(X, y)
    gaps = model.cv_results_["max_relative_gap"]
    assert gaps[model.best_index_] <= 1e-5 < gaps.max() <= 1e-3
    exact = LinearSVC(loss=loss, C=model.C_, tol=1e-9, max_iter=100_000)
    scores = [exact.fit(X[a], y[a]).score(X[b], y[b]) for a, b in cv.split(X, y)]
    assert model.best_score_ == pytest.approx(np.mean(scores), abs=4 / len(X))


def test_the_best_is_fitted_closer_until_it_stays_the_best():
    def outcome(C, score, gap, shortfall=""):
        return Outcome(C, score, 1.0, 0.5, gap, shortfall)

    rough = [
        [outcome(1, 0.90, 1e-4), outcome(2, 0.93, 1e-4), outcome(3, 0.92, 9e-7), outcome(4, 0.5, 1e-4)]
    ]
    closer = {1: outcome(2, 0.91, 1e-6, "cut short")}
    asked = []

    def again(place, folds, goal):
        asked.append((place, folds, float(f"{goal:.0e}")))
        return [[closer[place]] for _ in folds]

    settle(rough, 1e-4, again)
    assert asked == [(1, [0], 1e-6)]  # the second is close enough as it is, and then the best
    assert [at.score for at in rough[0]] == [0.90, 0.91, 0.92, 0.5]
    assert rough[0][1].shortfall == ""
    assert rough[0][1].fit_seconds == 2.0
    settle(rough, 1e-8, lambda place, folds, goal: [])  # no time: nothing changes, and it ends
    assert rough[0][2].relative_gap == 9e-7


def test_a_closer_fit_that_was_cut_short_is_not_taken():
    rough = [[Outcome(1.0, 0.9, 1.0, 0.5, 1e-4, "")]]
    settle(rough, 1e-4, lambda place, folds, goal: [[Outcome(1.0, 0.1, 1.0, 0.5, 1e-2, "no time")]])
    assert rough[0][0].score == 0.9
    assert rough[0][0].relative_gap == 1e-4


def test_only_contenders_are_fitted_closer_and_only_their_open_folds():
    def outcome(low, high, gap=1e-6):
        return Outcome(1.0, low, 1.0, 0.5, gap, "", (low, high))

    asked = []

    def again(place, folds, goal):
        asked.append((place, folds, float(f"{goal:.0e}")))
        score = [0.85, 0.86, 0.5][place]
        return [[outcome(score, score + (0.04 if goal > 1e-9 else 0.0), goal)] for _ in folds]

    outcomes = [
        [outcome(0.8, 0.9), outcome(0.84, 0.92), outcome(0.4, 0.6)],
        [outcome(0.85, 0.85), outcome(0.8, 0.9), outcome(0.5, 0.5)],
    ]
    assert contenders(outcomes) == [0, 1]
    refine(outcomes, 1e-4, again)
    assert asked == [(0, [0], 1e-8), (1, [0, 1], 1e-8), (0, [0], 1e-10), (1, [0, 1], 1e-10)]
    assert contenders(outcomes) == [1]
    assert outcomes[0][1].fit_seconds == 3.0
    refine(outcomes, 1e-4, again)
    assert len(asked) == 4  # one has won


def test_refining_ends_where_it_gains_nothing():
    outcomes = [[Outcome(C, 0.5, 1.0, 0.5, 1e-9, "", (0.4, 0.6)) for C in (1.0, 2.0)]]
    asked = []
    refine(outcomes, 1e-4, lambda place, folds, goal: asked.append(place) or [])
    assert asked == [0, 1]
    assert contenders(outcomes) == [0, 1]


def test_a_callable_is_given_a_model_and_the_held_out_rows(digits):
    X, y = digits
    seen = []

    def look(model, rows, labels):
        seen.append((model, rows, labels))
        return 0.0

    LinearSVCCV(Cs=[0.01, 1.0], cv=[(np.arange(1000), np.arange(1000, 1797))], scoring=look).fit(X, y)
    assert [model.C for model, _, _ in seen] == [0.01, 1.0, 0.01]  # the best once more, fitted closer
    assert all(isinstance(model, LinearSVC) for model, _, _ in seen)
    np.testing.assert_array_equal(seen[0][1], X[1000:])
    np.testing.assert_array_equal(seen[0][2], y[1000:])


def test_scores_of_two_classes_by_their_order(breast_cancer):
    X, y = breast_cancer
    labels = np.where(y == 1, "yes", "no")
    cv = StratifiedKFold(3)
    model = LinearSVCCV(Cs=Cs, cv=cv, scoring="roc_auc", tol=1e-8, max_iter=10_000, random_state=0)
    model.fit(X, labels)
    scores = by_hand(model, X, labels, cv, get_scorer("roc_auc"))
    np.testing.assert_allclose(model.cv_results_["mean_test_score"], scores.mean(axis=0), atol=1e-6)


def test_a_scorer_that_needs_probabilities_says_so(breast_cancer):
    with pytest.raises(AttributeError, match="predict_proba"):
        LinearSVCCV(Cs=[1.0], cv=2, scoring="neg_log_loss").fit(*breast_cancer)


def test_a_fold_without_a_class_is_named_with_the_cure():
    X, y = np.random.default_rng(0).normal(size=(30, 3)), np.repeat([0, 1, 2], 10)
    with pytest.raises(
        ValueError, match=r"Fold 0 of 3 trains on no row of class .*0.*Use fewer folds, strat"
    ):
        LinearSVCCV(cv=KFold(3)).fit(X, y)
    with pytest.raises(ValueError, match=r"trains on no row of class"):
        LinearSVCCV(cv=3).fit(X, y, sample_weight=(y > 0).astype(float))


def test_without_refit_there_are_results_and_no_model(breast_cancer):
    X, y = breast_cancer
    model = LinearSVCCV(Cs=Cs, cv=2, refit=False).fit(X, y)
    assert model.C_ in Cs
    with pytest.raises(NotFittedError):
        model.predict(X)
    assert not hasattr(model, "coef_")


def test_shortfalls_are_told_once(breast_cancer):
    X, y = breast_cancer
    model = LinearSVCCV(loss="hinge", Cs=Cs, cv=2, tol=1e-12, max_iter=2)
    with pytest.warns(ConvergenceWarning, match=r"\d of 8 fits of folds are not within tol") as caught:
        model.fit(X, y)
    assert len(caught) == 1
    assert np.isfinite(model.cv_results_["max_relative_gap"]).all()
    assert model.cv_results_["max_relative_gap"].max() > 1e-12


def test_a_refit_that_falls_short_is_told_too(breast_cancer):
    X, y = breast_cancer

    def stop_with_all_rows(progress):
        proof = progress.certificate
        return False if proof is None else bool(proof.problem.costs.min() > 0)

    model = LinearSVCCV(loss="hinge", Cs=[1.0], cv=2, tol=1e-6, n_jobs=1, callback=stop_with_all_rows)
    with pytest.warns(ConvergenceWarning, match="The model of all rows at C = 1: Budget spent"):
        model.fit(X, y)
    assert model.status_ is Status.STOPPED


def test_no_time_leaves_certified_fits(digits):
    X, y = digits
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = LinearSVCCV(Cs=Cs, cv=2, max_time=0.0).fit(X, y)
    assert all(np.isfinite(c.primal) and c.dual <= c.primal for c in model.certificate_)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_callback_sees_every_fit_and_can_end_all(breast_cancer, n_jobs):
    X, y = breast_cancer
    seen = []
    LinearSVCCV(Cs=Cs, cv=3, n_jobs=n_jobs, callback=seen.append).fit(X, y)
    assert len(seen) >= 4 * len(Cs)
    first = []

    def stop(progress):
        first.append(progress)
        return True

    with pytest.warns(ConvergenceWarning, match="callback"):
        LinearSVCCV(Cs=Cs, cv=3, n_jobs=n_jobs, tol=1e-12, callback=stop).fit(X, y)
    assert len(first) == 1


@pytest.mark.parametrize("where", ["path", "folds"])
def test_an_interrupt_counts_where_the_fit_is_certified_already(where):
    """It has to end all fits, not only the one that is done anyway."""
    X, y = make_classification(200, 10, random_state=0)
    tol, interrupts = 1e-4, []

    def interrupt(progress):
        in_folds = progress.certificate.problem.costs.min() == 0.0
        if not interrupts and in_folds == (where == "folds") and progress.relative_gap <= tol:
            interrupts.append(progress)  # one, as from a person
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        LinearSVCCV(Cs=[0.01, 1.0], cv=3, n_jobs=1, tol=tol, callback=interrupt).fit(X, y)
    assert len(interrupts) == 1


CHILD = """
import os, signal, sys, threading, time
import numpy as np
from maxmargin import LinearSVCCV

random = np.random.default_rng(0)
X, y = random.standard_normal((5_000, 50)), random.integers(0, 2, 5_000)

def run(n_jobs, where):
    timer = threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT))

    def interrupt(progress):
        proof = progress.certificate
        in_folds = proof is not None and proof.problem.costs.min() == 0.0
        if in_folds == (where == "folds"):
            if not timer.ident:
                timer.start()
            time.sleep(0.5)

    model = LinearSVCCV(loss="hinge", Cs=[1e-3, 1.0], n_jobs=n_jobs, callback=interrupt, tol=1e-9)
    try:
        model.fit(X, y)
    except KeyboardInterrupt:
        print(n_jobs, where, "interrupted", hasattr(model, "coef_"))

for n_jobs in (1, 2):
    for where in ("path", "folds"):
        run(n_jobs, where)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGINT") or os.name == "nt", reason="needs POSIX signals")
def test_an_interrupt_ends_the_fit():
    child = subprocess.run(
        [sys.executable, "-c", CHILD], capture_output=True, text=True, timeout=60, check=False
    )
    expected = [f"{n_jobs} {where} interrupted False" for n_jobs in (1, 2) for where in ("path", "folds")]
    assert child.stdout.splitlines() == expected, child.stderr


@pytest.mark.parametrize(
    ("parameter", "value", "message"),
    [
        ("Cs", 0, "The 'Cs' parameter of LinearSVCCV must be an int"),
        ("Cs", [], "Give some values of C"),
        ("Cs", [1.0, -1.0], "Give some values of C"),
        ("Cs", [1.0, np.inf], "Give some values of C"),
        ("Cs", "many", "Give some values of C"),
        ("cv", [], r"The 'cv' parameter of LinearSVCCV must be .* Got \[\] instead. None takes 5"),
        ("n_jobs", 0, "n_jobs"),
        ("loss", "epsilon", "'squared_hinge', 'hinge', 'logistic'"),
        ("solver", "pegasos", "pegasos solves the hinge, not squared_hinge"),
        ("callback", "print", "callable"),
        ("tol", -1, "relative gap"),
    ],
)
def test_wrong_parameters_are_named_with_the_cure(parameter, value, message):
    with pytest.raises(ValueError, match=message):
        LinearSVCCV(**{parameter: value}).fit(np.arange(20.0)[:, None], [0, 1] * 10)


def test_pickle_clone_pipeline_and_files(breast_cancer, tmp_path):
    X, y = breast_cancer
    model = LinearSVCCV(Cs=Cs, cv=2, random_state=0).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert str(again.certificate_) == str(model.certificate_)
    assert clone(model).get_params() == model.get_params()
    assert "relative gap" in model._repr_html_()
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(LinearSVC.load(tmp_path / "model").predict(X), model.predict(X))
    assert make_pipeline(StandardScaler(), LinearSVCCV(Cs=2, cv=2)).fit(X, y).score(X, y) > 0.9


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_value_of_C_may_come_twice(breast_cancer, loss):
    X, y = breast_cancer
    model = LinearSVCCV(loss=loss, Cs=[1.0, 0.1, 1.0, 1.0], cv=2, tol=1e-6, max_iter=10**5).fit(X, y)
    scores = model.cv_results_["mean_test_score"]
    assert scores[0] == scores[2] == scores[3]
    assert model.cv_results_["max_relative_gap"].max() <= 1e-6


def test_a_configured_solver_serves_all_fits(breast_cancer):
    X, y = breast_cancer
    model = LinearSVCCV(Cs=Cs, cv=2, solver=Newton(sweeps=0)).fit(X, y)
    assert model.solver_.startswith("newton")


def test_the_number_of_folds_side_by_side_changes_nothing(digits):
    X, y = digits
    one = LinearSVCCV(Cs=[0.01, 1.0], cv=3, n_jobs=1, random_state=3).fit(X, y)
    two = LinearSVCCV(Cs=[0.01, 1.0], cv=3, n_jobs=2, random_state=3).fit(X, y)
    np.testing.assert_array_equal(one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"])
    np.testing.assert_allclose(one.coef_, two.coef_, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("classes", [2, 3])
def test_scores_at_the_optimum_are_inside_the_bounds(loss, classes):
    random = np.random.default_rng(classes)
    X = random.normal(size=(150, 4))
    y = np.digitize(X[:, 0] + 0.5 * random.normal(size=150), [0.0] if classes == 2 else [-0.5, 0.5])
    given = {"loss": loss, "Cs": [1e-3, 0.1, 10.0], "cv": 3, "random_state": 0, "max_iter": 10_000}
    best = LinearSVCCV(tol=1e-10, **given).fit(X, y)
    assert not hasattr(best, "contenders_")
    for tol in (1e-1, 1e-5):
        model = LinearSVCCV(tol=tol, score_bounds=True, **given).fit(X, y)
        found = model.cv_results_
        for i in range(3):
            low, high = (found[f"split{i}_test_score_{end}"] for end in ("low", "high"))
            exact = best.cv_results_[f"split{i}_test_score"]
            assert ((low <= exact) & (exact <= high)).all()
        assert best.C_ in model.contenders_
        assert model.C_ in model.contenders_
        assert (found["mean_test_score_low"] <= found["mean_test_score"]).all()
        worse = found["mean_test_score_high"] < found["mean_test_score_low"].max()
        assert (np.isin(model.Cs_, model.contenders_) == ~worse).all()
        # The contenders were fitted until it was clear which of them is the best.
        assert model.choice_ in ("proven", "tied")
        assert model.C_ == best.C_
        assert (model.choice_ == "proven") == (len(model.contenders_) == 1)
    assert (found["mean_test_score_high"] - found["mean_test_score_low"]).max() < 0.1


def test_what_cannot_be_told_apart_is_said():
    """Two values of C at which every fold has the same rows right, and one that no time is left for."""
    random = np.random.default_rng(1)
    X = random.normal(size=(60, 2))
    y = X[:, 0] > 0
    X[:, 0] += np.where(y, 3.0, -3.0)
    tied = LinearSVCCV(Cs=[1.0, 0.5], cv=3, tol=1e-2, score_bounds=True, random_state=0).fit(X, y)
    assert tied.choice_ == "tied"
    assert tied.C_ == 0.5
    assert tied.contenders_.tolist() == [1.0, 0.5]
    X, y = random.normal(size=(200, 3)), random.normal(size=200) > 0
    given = {"Cs": [0.9, 1.0], "cv": 3, "loss": "hinge", "score_bounds": True, "random_state": 0}
    with pytest.warns(ConvergenceWarning):
        short = LinearSVCCV(tol=1e-9, max_iter=1, solver="dual_coordinate_ascent", **given).fit(X, y)
    assert short.choice_ == "open"
    assert len(short.contenders_) == 2


def test_bounds_are_on_the_accuracy():
    with pytest.raises(ValueError, match=r"score_bounds.*Only the accuracy is bounded"):
        LinearSVCCV(scoring="f1", score_bounds=True).fit([[0.0], [1.0]], [0, 1])
