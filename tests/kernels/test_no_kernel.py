# SPDX-License-Identifier: BSD-3-Clause
"""Functions that are no kernels: nothing that is said about a fit with them claims a proof."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from maxmargin import SVC, Problem, Solution, Status, certify, solve
from maxmargin.estimators.summary import fitted_summary
from maxmargin.kernels import Gaussian, KernelRows, Precomputed
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
