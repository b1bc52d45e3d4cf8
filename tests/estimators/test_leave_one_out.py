# SPDX-License-Identifier: BSD-3-Clause
"""The leave-one-out accuracy: what is decided is true, and most of it without another fit."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from combinations import every_pair
from maxmargin import LinearSVC
from maxmargin.estimators import leave_one_out as module


def drawn(seed, classes=2, n=50, noise=0.6):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3)) + 0.5
    position = X[:, 0] - 0.5 + noise * random.normal(size=n)
    return X, np.digitize(position, [0.0] if classes == 2 else [-0.5, 0.5])


def truth(model, X, y):
    """Whether each row is right when a model is fitted without it, to the last digit."""
    closer, right = copy.deepcopy(model).set_params(tol=1e-10, max_iter=10_000), []
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        right.append(closer.fit(X[rest], y[rest]).predict(X[[i]])[0] == y[i])
    return np.array(right)


@every_pair(
    loss=["squared_hinge", "hinge", "logistic"],
    form=["exact", "regularised", "none"],
    classes=[2, 3],
    C=[0.01, 1.0],
)
def test_it_is_the_accuracy_of_refits(loss, form, classes, C):
    X, y = drawn(len(loss) + classes, classes)
    model = LinearSVC(loss=loss, C=C, random_state=0, tol=1e-3)
    model.set_params(fit_intercept=form != "none", regularize_intercept=form == "regularised").fit(X, y)
    right = truth(model, X, y)
    answer = model.leave_one_out(sparse.csr_matrix(X), y)
    assert answer.low <= right.mean() <= answer.high
    assert answer.high - answer.low < 0.05
    known = answer.right >= 0
    assert (answer.right[known] == right[known]).all()
    assert sum(answer.decided.values()) == len(y)
    short = model.leave_one_out(X, y, max_time=1e-9)
    assert short.low <= right.mean() <= short.high
    assert short.decided["by a fit"] == 0


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", "logistic"])
def test_rows_far_from_the_margin_need_no_fit(loss, monkeypatch):
    X, y = drawn(0, n=300)
    X[:, 0] += np.where(y > 0, 3.0, -3.0)
    model = LinearSVC(loss=loss, C=0.1, random_state=0).fit(X, y)
    fitted = []
    monkeypatch.setattr(module._Search, "_by_fits", lambda _, i: fitted.append(i))
    answer = model.leave_one_out(X, y)
    margins = np.where(y > 0, 1.0, -1.0) * model.decision_function(X)
    far = (margins > 1.2) | (margins < -0.2)
    assert far.sum() > 200
    assert (answer.right[far] == (margins > 0)[far]).all()
    assert not far[fitted].any()
    if loss != "hinge":
        assert len(fitted) <= 3
        assert answer.decided["by curvature"] > 0


def test_the_only_row_of_a_class_is_wrong_without_it():
    X, y = drawn(1, n=40)
    y[7] = 5
    answer = LinearSVC(random_state=0).fit(X, y).leave_one_out(X, y)
    assert answer.right[7] == 0
    assert answer.decided["alone in its class"] == 1


def test_rows_without_weight_are_as_the_model_has_them():
    X, y = drawn(2, n=60)
    weights = np.ones(60)
    weights[:20] = 0.0
    model = LinearSVC(random_state=0, tol=1e-8).fit(X, y, sample_weight=weights)
    answer = model.leave_one_out(X, y)
    assert (answer.right[:20] == (model.predict(X) == y)[:20]).all()


def test_it_says_what_it_found():
    X, y = drawn(3)
    model = LinearSVC(random_state=0).fit(X, y)
    assert "The leave-one-out accuracy is " in str(model.leave_one_out(X, y))
    assert " to " in str(model.leave_one_out(X, y, max_time=1e-9)) or model.leave_one_out(X, y).low == 1.0


def test_what_it_cannot_do_is_refused():
    X, y = drawn(4, noise=0.0)
    model = LinearSVC(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="the rows and labels of the fit, 50 of them"):
        model.leave_one_out(X[1:], y[1:])
    with pytest.raises(ValueError, match="the rows and labels of the fit"):
        model.leave_one_out(X, 1 - y)
    with pytest.raises(ValueError, match="'max_time' parameter of leave_one_out must be None or a float"):
        model.leave_one_out(X, y, max_time=0)
    X[:, 0] += np.where(y > 0, 1.0, -1.0)
    with pytest.raises(ValueError, match="needs a finite C"):
        LinearSVC(C=np.inf).fit(X, y).leave_one_out(X, y)


def test_an_interrupted_fit_ends_the_search(monkeypatch):
    X, y = drawn(5, noise=1.5)
    model = LinearSVC(loss="hinge", C=10.0, random_state=0).fit(X, y)
    fits = []

    def solve(problem, **options):
        fits.append(problem)
        solved = real(problem, **options)
        return replace(solved, interrupted=True) if len(fits) == 3 else solved

    real = module.solve
    monkeypatch.setattr(module, "solve", solve)
    monkeypatch.setattr(module._Search, "_by_multipliers", lambda _: None)  # it would leave nothing to fit
    assert model.leave_one_out(X, y).decided["open"] > 0
    assert len(fits) == 3
