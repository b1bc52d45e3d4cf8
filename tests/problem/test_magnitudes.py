# SPDX-License-Identifier: BSD-3-Clause
"""Numbers that float64 cannot square are refused by name, with the cure; all others have an answer."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from maxmargin import (
    SVC,
    SVR,
    DoubtfulModelWarning,
    LinearSVC,
    LinearSVR,
    LogisticRegression,
    NuSVC,
    NuSVR,
    OneClassSVM,
    Problem,
    RankSVM,
    solve,
    solve_hard_margin,
)
from maxmargin.proof.model import each_of
from maxmargin.solvers import LINEAR_SOLVERS
from maxmargin.tools.parameters import bytes_of


def drawn(rows=20, columns=2, seed=3):
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, columns))
    y = random.integers(0, 2, rows)
    y[:2] = 0, 1
    return X, y


@pytest.mark.parametrize("solver", ["subgradient", "stochastic_subgradient"])
def test_a_diverging_intercept_is_no_error(solver):
    X, y = drawn()
    model = LinearSVC(
        C=10.0, intercept_scaling=10.0, regularize_intercept=True, solver=solver, max_iter=100
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    assert np.isfinite(model.certificate_.primal)
    assert model.certificate_.primal <= 10.0 * len(y)  # no worse than zero


@pytest.mark.parametrize(
    ("model", "scale", "weight", "says"),
    [
        (SVC(C=1e300), 1.0, 1.0, "C times the weights .* Use a smaller C"),
        (LinearSVC(C=1e101), 1.0, 1.0, r"hard margin, C=numpy.inf"),
        (LinearSVC(), 1.0, 1e200, "smaller weights"),
        (LinearSVC(), 1e160, 1.0, "A row of X has the length .* Scale the features"),
        (LinearSVC(C=np.inf), 1e160, 1.0, "Scale the features"),
        (LinearSVC(C=np.inf), 1e-120, 1.0, "The longest row has the length .* Scale the features"),
        (SVC(kernel="linear"), 1e120, 1.0, "image of a row under the kernel .* smaller gamma"),
        (SVC(kernel="poly", gamma=1.0, degree=9), 1e30, 1.0, "image of a row under the kernel"),
        (LinearSVC(C=1e80), 1e80, 1.0, "their product, the length that w may have"),
        (
            LinearSVC(intercept_scaling=1e160, regularize_intercept=True),
            1.0,
            1.0,
            r"'intercept_scaling' parameter of LinearSVC must be a float in the range \[1e-100, 1e100\]",
        ),
    ],
)
def test_the_error_names_the_argument_and_the_cure(model, scale, weight, says):
    X, y = drawn()
    with pytest.raises(ValueError, match=says):
        model.fit(scale * X, y, sample_weight=np.full(len(y), weight))


def test_problems_are_checked_too():
    X, y = drawn()
    labels = np.where(y > 0, 1.0, -1.0)
    with pytest.raises(ValueError, match="above 0, from 1e-100 to 1e"):
        Problem.of(X, labels, intercept="regularised", intercept_scaling=1e160)
    with pytest.raises(ValueError, match="smaller weights"):
        Problem.of(X, labels, weights=np.full(len(y), 1e120))
    with pytest.raises(ValueError, match="Scale the features"):
        solve_hard_margin(Problem.of(1e-130 * X, labels))


def test_a_memory_beyond_all_counting_is_all_there_is():
    assert bytes_of(1.7e308) == 2**62
    X, y = drawn()
    assert SVC(cache_size=1e300, max_iter=100).fit(X, y).cache_use_.budget_bytes == 2**62


@pytest.mark.parametrize("name", LINEAR_SOLVERS)
def test_within_the_limits_every_solver_has_an_answer(name):
    draw = np.random.default_rng(len(name))
    for _ in range(6):
        X, y = drawn(seed=int(draw.integers(100)))
        scale, C, s = 10.0 ** draw.uniform([-90, -70, -90], [70, 70, 90])
        problem = Problem.of(
            scale * X,
            np.where(y > 0, 1.0, -1.0),
            C,
            loss=str(draw.choice(["hinge", "squared_hinge", "logistic"])),
            intercept="regularised",
            intercept_scaling=min(s, 1e70),
            weights=10.0 ** draw.uniform(-5, 5, len(y)),
        )
        solver = LINEAR_SOLVERS[name]() if name in LINEAR_SOLVERS else name
        if solver.accepts(problem) is not None:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            proof = solve(problem, solver, max_steps=20, max_time=1.0).certificate
        assert np.isfinite(proof.primal)
        assert proof.dual <= proof.primal * (1.0 + 1e-9)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "laplacian"])
def test_kernels_have_an_answer_within_the_limits(kernel):
    draw = np.random.default_rng(len(kernel))
    for _ in range(6):
        X, y = drawn(seed=int(draw.integers(100)))
        scale, C = 10.0 ** draw.uniform([-60, -60], [60, 60])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("error", RuntimeWarning)
            model = SVC(kernel=kernel, C=C, max_time=1.0, max_iter=200).fit(scale * X, y)
        for proof in each_of(model.certificate_):
            assert np.isfinite(proof.primal)


FAMILY = {
    "SVR": SVR(),
    "SVR without a tube": SVR(epsilon=0.0, kernel="linear"),
    "LinearSVR": LinearSVR(),
    "squared LinearSVR": LinearSVR(loss="squared_epsilon_insensitive"),
    "NuSVC": NuSVC(nu=0.2),
    "NuSVR": NuSVR(),
    "OneClassSVM": OneClassSVM(),
    "RankSVM": RankSVM(),
    "l1": LinearSVC(penalty="l1"),
    "l1, logistic": LogisticRegression(penalty="l1"),
    "all classes at once": LinearSVC(multi_class="crammer_singer"),
}


@pytest.mark.parametrize("name", FAMILY)
def test_the_whole_family_has_an_answer_or_names_the_cure(name):
    X, y = drawn(24, 3)
    y[:3] = 0, 1, 2  # three classes
    given = y == 1 if name == "NuSVC" else y + X[:, 0] if "SVR" in name else y
    extremes = [("C", 1e300), ("C", 1e-300), ("C", 1e-20), ("X", 1e150), ("X", 1e-150)]
    extremes += [("y", 1e150), ("y", 1e-150), ("epsilon", 1e300), ("epsilon", 1e-300)]
    for what, size in extremes:
        model = clone(FAMILY[name])
        if what in ("C", "epsilon"):
            if what not in model.get_params():
                continue
            model.set_params(**{what: size})
        elif what == "y" and "SVR" not in name:
            continue
        values = np.asarray(given, float) * (size if what == "y" else 1.0)
        before, refusal = time.process_time(), ""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", DoubtfulModelWarning)
            warnings.simplefilter("error", RuntimeWarning)
            try:
                model.fit(X * (size if what == "X" else 1.0), values)
            except ValueError as error:
                refusal = str(error)
        assert time.process_time() - before < 5.0, (what, size)
        if refusal:
            assert any(cure in refusal for cure in ("Use a smaller", "Scale", "Divide y", "Multiply y"))
            assert size != 1e-20
        else:
            assert np.isfinite(model.predict(X)).all()
            assert all(np.isfinite(proof.primal) for proof in each_of(model.certificate_))
            assert model.status_.certified or size != 1e-20
