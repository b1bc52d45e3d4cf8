# SPDX-License-Identifier: BSD-3-Clause
"""Functions that are no kernels: nothing that is said about a fit with them claims a proof."""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import pytest

from maxmargin import SVC, Problem, Solution, Status, certify, solve
from maxmargin.estimators.summary import fitted_summary
from maxmargin.independent.arithmetic import Vector, sum_of
from maxmargin.independent.rows import KernelRows as KernelRowsInFractions
from maxmargin.independent.rows import PlainRows
from maxmargin.independent.values import ExactProblem, Proof
from maxmargin.kernels import Gaussian, KernelRows, Precomputed, Sigmoid, is_valid, validity
from problems import clouds


def fitted(X, y, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = SVC(kernel="sigmoid", gamma=0.5, coef0=-1.0, tol=0.9, **options).fit(X, y)
    return model, [str(warning.message) for warning in caught]


@pytest.mark.parametrize("n", [60, 1200])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_gap_within_tol_is_no_proof(n, classes, tmp_path):
    X, _ = clouds(n=n, d=3, seed=1)
    y = np.arange(n) % classes
    model, said = fitted(X, y, max_time=10.0)
    assert model.certificate_.relative_gap <= 0.9
    assert model.status_ is Status.NOT_PROVEN
    assert not model.certificate_.proven
    assert not any(certificate.proven for certificate in np.ravel(model.certificate_))
    assert len(said) == 1  # once is enough
    assert "no proof" in said[0]
    assert "proven=False" in repr(model.certificate_)
    page = fitted_summary(model)
    assert page.startswith("<div")
    assert "<strong>Not proven:</strong>" in page
    assert "no model can be below" not in page
    model.save(tmp_path / "model")
    loaded = SVC.load(tmp_path / "model")
    assert loaded.status_ is Status.NOT_PROVEN
    assert not loaded.certificate_.proven
    assert str(loaded.certificate_) == str(model.certificate_)


def sigmoid_fit(X, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = SVC(kernel="sigmoid", tol=0.9, **options).fit(X, np.where(X[:, 0] > 0, 1, -1))
    return model, [str(warning.message) for warning in caught]


def test_what_rounding_hides_is_not_called_proven():
    # As tanh(t) is about t - t^3 / 3, v'Kv is about -192 gamma^3 here. Float64 does not show it.
    X, v = np.array([[-1.0], [1.0], [3.0]]), [0, 3, -1]
    described = {"kernel": "sigmoid", "gamma": 1e-6, "coef0": 0.0}
    exact = KernelRowsInFractions([Vector.of(row) for row in X.tolist()], described)
    square = sum_of(score.times(v[i]) for i, score in enumerate(exact.scores(Vector.of(map(float, v)))))
    assert square.high < 0
    assert is_valid(Sigmoid(1e-6, 0.0), X)
    model, said = sigmoid_fit(X, gamma=1e-6)
    assert not model.certificate_.proven
    assert not model.status_.certified
    assert len(said) == 1
    assert said[0].startswith("Not shown to be a kernel: on 3 rows the smallest eigenvalue")
    assert "no proof" in said[0]


def test_a_matrix_that_is_positive_definite_beyond_rounding_proves():
    X = np.random.default_rng(0).choice([-1.0, 1.0], size=(30, 400))
    model, said = sigmoid_fit(X, gamma=1.0 / 400.0)
    assert model.certificate_.proven
    assert model.status_.certified
    assert said == []
    rows = PlainRows([Vector.of(row) for row in X.tolist()])
    problem = ExactProblem(
        KernelRowsInFractions(rows.vectors, {"kernel": "sigmoid", "gamma": 1.0 / 400.0, "coef0": 0.0}),
        np.where(X[:, 0] > 0, 1, -1).tolist(),
        [Fraction(1)] * 30,
    )
    proof = model.certificate_
    w, alpha = Vector.of(proof.w.tolist()), [Fraction(a) for a in proof.alpha.tolist()]
    exact = Proof(problem, w, Fraction(proof.b), alpha)
    assert exact.primal.high <= proof.primal
    assert exact.lower_bound >= proof.dual


def test_more_rows_than_are_looked_at_as_a_whole_prove_nothing(monkeypatch):
    X = np.random.default_rng(0).choice([-1.0, 1.0], size=(30, 400))
    monkeypatch.setattr(validity, "_MOST_SHOWN", 29)
    model, said = sigmoid_fit(X, gamma=1.0 / 400.0)
    assert not model.certificate_.proven
    assert "More than 29 rows are not looked at as a whole." in said[0]


def test_solve_believes_what_the_rows_are_known_to_be():
    X, y = clouds(n=40, d=2, seed=2)
    rows = KernelRows(X, Gaussian(0.5))
    assert solve(Problem.of(rows, y), tol=0.5).status is Status.CERTIFIED
    rows.kernel_is_none = True
    model = solve(Problem.of(rows, y), tol=0.5)
    assert model.status is Status.NOT_PROVEN
    assert "bounds nothing" in str(model)


def test_two_points_that_no_kernel_allows_are_noticed():
    # K = -1 on two rows: alpha = (1, 1) has |w|^2 = -4, so D = 2 + 2 and P = -2 + losses of 1 + 2 each.
    K, y = np.array([[-1.0, 1.0], [1.0, -1.0]]), np.array([1.0, -1.0])
    problem = Problem.of(KernelRows(K, Precomputed()), y)
    proof = certify(problem, Solution(alpha=np.ones(2)))
    assert proof.dual == pytest.approx(4.0)
    assert proof.primal == pytest.approx(4.0)
    assert proof.proven  # these two do not contradict, and nobody has looked at the matrix
    better = certify(problem, Solution(alpha=np.zeros(2)), known=proof)
    assert better.primal == pytest.approx(2.0)
    assert better.gap == 0.0
    assert not better.proven
    assert solve(problem, tol=1e-3).status is Status.NOT_PROVEN
