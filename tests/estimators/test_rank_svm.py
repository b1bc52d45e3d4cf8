# SPDX-License-Identifier: BSD-3-Clause
"""``RankSVM``: what it answers, what it proves of it, and how rankings are measured."""

from __future__ import annotations

import itertools
import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import kendalltau
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import ndcg_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import RankSVM, Status
from maxmargin.estimators.ranking_measures import ranking_measures
from oracles.ranking_newton import pairs_of
from ranked_rows import ranked_rows
from scikit_learn import assert_passes

LOSSES = ["squared_hinge", "hinge"]
X, Y, QUERY, WEIGHTS = ranked_rows(n=120, d=5, levels=5, queries=6, seed=3)


@parametrize_with_checks([RankSVM(), RankSVM(loss="hinge")])
def test_scikit_learn_has_nothing_to_say_against(estimator, check):
    assert_passes(check, estimator)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_fit_is_proven_and_ranks(loss):
    model = RankSVM(C=0.1, loss=loss, tol=1e-6).fit(X, Y, QUERY)
    assert model.status_ is Status.CERTIFIED
    assert model.certificate_.relative_gap <= 1e-6
    assert model.certificate_.problem is None
    assert model.intercept_.tolist() == [0.0]
    assert "ranking_newton" in model.solver_
    np.testing.assert_allclose(model.predict(X), X @ model.coef_)
    np.testing.assert_array_equal(model.predict(X), model.decision_function(X))
    assert model.measures(X, Y, QUERY).ordered > 0.75
    assert model.score(X, Y, QUERY) > 0.9
    assert model.score(X, Y, QUERY, k=1) == model.measures(X, Y, QUERY, k=1).ndcg_at_k


@pytest.mark.parametrize("loss", LOSSES)
def test_layouts_orders_and_weights_make_no_difference(loss):
    model = RankSVM(C=0.1, loss=loss, tol=1e-9)
    plain = clone(model).fit(X, Y, QUERY)
    order = np.random.default_rng(0).permutation(len(Y))
    again = np.concatenate([np.arange(len(Y)), [5, 7, 7]])
    weights = np.bincount(again, minlength=len(Y)).astype(float)
    same = {
        "sparse": (plain, clone(model).fit(sparse.csr_matrix(X), Y, QUERY)),
        "another order": (plain, clone(model).fit(X[order], Y[order], QUERY[order])),
        "other numbers in the same order": (plain, clone(model).fit(X, np.exp(Y) - 7.0, QUERY)),
        "queries with names": (plain, clone(model).fit(X, Y, [f"q{q}" for q in QUERY])),
        "rows twice and thrice": (
            clone(model).fit(X[again], Y[again], QUERY[again]),
            clone(model).fit(X, Y, QUERY, sample_weight=weights),
        ),
        "rows of no weight": (
            clone(model).fit(X[:90], Y[:90], QUERY[:90]),
            clone(model).fit(X, Y, QUERY, (np.arange(len(Y)) < 90).astype(float)),
        ),
    }
    for name, (one, other) in same.items():
        np.testing.assert_allclose(one.coef_, other.coef_, atol=2e-4, err_msg=name)
    moved = clone(model).fit(X + 100.0, Y, QUERY)
    np.testing.assert_allclose(moved.coef_, plain.coef_, atol=2e-4, err_msg="an intercept cancels out")


def test_bounds_hold_what_the_best_model_predicts():
    rough = RankSVM(C=0.1, loss="hinge", tol=1e-2).fit(X, Y, QUERY)
    best = RankSVM(C=0.1, loss="hinge", tol=1e-9).fit(X, Y, QUERY)
    low, high = rough.prediction_bounds(X)
    assert ((low <= best.predict(X)) & (best.predict(X) <= high)).all()


def test_budgets_callbacks_and_warm_starts():
    seen = []
    model = RankSVM(C=10.0, loss="hinge", tol=1e-8, callback=seen.append).fit(X, Y, QUERY)
    assert seen[-1].certificate.relative_gap <= 1e-8
    for budget, status in (
        ({"max_iter": 1}, Status.STEPS_SPENT),
        ({"max_time": 0.0}, Status.TIME_SPENT),
        ({"callback": lambda progress: True}, Status.STOPPED),
    ):
        short = clone(model).set_params(**{"callback": None, "tol": 1e-12, **budget})
        with pytest.warns(ConvergenceWarning, match="Budget spent"):
            short.fit(X, Y, QUERY)
        assert short.status_ is status
    warm = clone(model).set_params(warm_start=True, callback=None).fit(X, Y, QUERY)
    gap, steps = warm.certificate_.relative_gap, warm.n_iter_
    warm.fit(X, Y, QUERY)
    assert warm.certificate_.relative_gap <= gap
    assert warm.n_iter_ < steps
    assert pickle.loads(pickle.dumps(warm)).predict(X).tolist() == warm.predict(X).tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert RankSVM(verbose=0).fit(X, Y).status_.certified


def test_interrupts_keep_the_best_so_far():
    steps = itertools.count()

    def interrupt(progress):
        if next(steps) == 1:
            raise KeyboardInterrupt

    model = RankSVM(C=10.0, loss="hinge", tol=1e-12, callback=interrupt)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model.fit(X, Y, QUERY)
    assert model.status_ is Status.INTERRUPTED
    assert model.certificate_.relative_gap < 1.0


def test_data_without_anything_to_rank_are_refused():
    with pytest.raises(ValueError, match="two rows of one query with different relevances"):
        RankSVM().fit(X, np.ones(len(Y)))
    with pytest.raises(ValueError, match="Look at query"):
        RankSVM().fit(X, Y, np.arange(len(Y)))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        RankSVM().fit(X, Y, QUERY[:-1])
    with pytest.raises(ValueError, match="'loss' parameter of RankSVM"):
        RankSVM(loss="logistic").fit(X, Y, QUERY)


@pytest.mark.parametrize("k", [1, 3, 10, 1000])
def test_ndcg_is_that_of_scikit_learn_query_by_query(k):
    random = np.random.default_rng(1)
    scores = random.normal(size=len(Y)).round(1)  # with ties
    told = [q for q in np.unique(QUERY) if len(np.unique(Y[q == QUERY])) > 1]
    theirs = [ndcg_score([Y[q == QUERY]], [scores[q == QUERY]], k=k) for q in told]
    found = ranking_measures(Y, scores, QUERY, k)
    assert found.ndcg_at_k == pytest.approx(np.mean(theirs), rel=1e-12)
    assert found.queries == len(told)
    whole = [ndcg_score([Y[q == QUERY]], [scores[q == QUERY]]) for q in told]
    assert found.ndcg == pytest.approx(np.mean(whole), rel=1e-12)


def test_pairs_in_order_are_counted_exactly():
    scores = np.random.default_rng(2).normal(size=len(Y)).round(1)
    i, j = pairs_of(Y, QUERY)
    m = scores[i] - scores[j]
    found = ranking_measures(Y, scores, QUERY)
    assert found.pairs == len(i)
    assert found.ordered == pytest.approx(np.mean((m > 0) + 0.5 * (m == 0)), rel=1e-14)
    assert found.kendall_tau == pytest.approx(2 * found.ordered - 1, rel=1e-13)
    # Without ties it is Kendall's tau of a single query.
    distinct = np.random.default_rng(3).permutation(30).astype(float)
    tau = ranking_measures(np.arange(30.0), distinct).kendall_tau
    assert tau == pytest.approx(kendalltau(np.arange(30.0), distinct).statistic, rel=1e-12)


def test_negative_relevances_and_wrong_arguments():
    y = np.array([-2.0, -1.0, 3.0])
    assert ranking_measures(y, y).ndcg == 1.0
    assert 0.0 < ranking_measures(y, -y).ndcg < 1.0
    with pytest.raises(ValueError, match="nothing to rank"):
        ranking_measures(np.ones(3), y)
    with pytest.raises(ValueError, match="k must be at least 1"):
        ranking_measures(y, y, k=0)
    with pytest.raises(ValueError, match="one finite score"):
        ranking_measures(y, [np.nan, 0.0, 1.0])
