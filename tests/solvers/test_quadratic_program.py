# SPDX-License-Identifier: BSD-3-Clause
"""The problem handed to a solver off the shelf: both forms, the limits, and life without Clarabel."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from maxmargin import Problem, Status, core, solve
from maxmargin.solvers import QuadraticProgram, quadratic_program
from problems import CASES, INTERCEPTS, Case, clouds, every_case


@every_case(lambda case, form: case.loss != "logistic", form=["primal", "dual"])
def test_both_forms_solve_every_case_in_one_step(data, loss, intercept, form):
    case = CASES[data, loss, intercept]
    model = solve(case.problem(), QuadraticProgram(form=form), tol=1e-7)
    assert model.steps == 1
    assert model.status is Status.CERTIFIED
    assert model.certificate.primal == pytest.approx(case.optimum, rel=2e-7)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_both_forms_have_the_same_answer(loss, intercept):
    X, y = clouds(n=50, d=6, seed=7)
    weights = np.random.default_rng(7).integers(0, 4, len(y)).astype(np.float64)
    case = Case("both", X, y, C=0.7, weights=weights, loss=loss, intercept=intercept, intercept_scaling=1.7)
    problem = case.problem()
    answers = []
    for form in ("primal", "dual"):
        solver = QuadraticProgram(form=form)
        state = solver.step(problem, solver.init(problem, None), core.ALL_CORES)
        assert solver.report(state).finished
        answers.append(solver.solution(problem, state, core.ALL_CORES))
    primal, dual = answers
    np.testing.assert_allclose(primal.w, dual.w, atol=1e-5)
    np.testing.assert_allclose(primal.alpha, dual.alpha, atol=1e-4)
    assert primal.b == pytest.approx(dual.b, abs=1e-5)
    # The solver's own b, not the certificate's: the sign of a multiplier is easily taken for the other.
    w, b, _ = case.referee
    np.testing.assert_allclose(primal.w, w, atol=1e-5)
    assert primal.b == pytest.approx(b, abs=1e-5)


def test_form_is_chosen_by_size():
    def chosen(count, columns, stored_per_row, **options):
        X = sparse.random(count, columns, stored_per_row / columns, format="csr", random_state=0)
        problem = Problem.of(X, np.where(np.arange(count) % 2, 1.0, -1.0))
        solver = QuadraticProgram(**options)
        form = solver._chosen_form(problem)
        assert (form is None) == (solver.accepts(problem) is not None)
        return form

    assert chosen(100, 20, 5) == "primal"
    assert chosen(20, 100, 5) == "dual"
    assert chosen(20, 100, 5, form="primal") == "primal"
    assert chosen(100, 20, 5, form="dual") == "dual"
    assert chosen(3000, 4000, 5) == "primal"  # too many rows for the dual
    assert chosen(1000, 900, 250) == "dual"  # too many values for the primal
    assert chosen(3000, 1000, 100) is None
    assert chosen(3000, 10, 5, form="dual") is None


def test_large_problems_are_refused_with_the_numbers():
    X, y = clouds(n=2001, d=4)
    refusal = QuadraticProgram(form="dual").accepts(Problem.of(X, y))
    assert refusal is not None
    assert "2001 rows" in refusal
    assert "interior_point" in refusal


def test_without_clarabel_the_cure_is_named(monkeypatch):
    monkeypatch.setattr(quadratic_program, "find_spec", lambda name: None)
    X, y = clouds()
    with pytest.raises(ValueError, match=r"pip install 'maxmargin\[qp\]'"):
        solve(Problem.of(X, y), "quadratic_program")


def test_time_is_passed_on():
    X, y = clouds(n=1500, d=100, seed=5)
    model = solve(Problem.of(X, y), QuadraticProgram(form="dual"), tol=1e-6, max_time=0.2)
    assert model.steps == 1
    assert model.status in (Status.RULE_FIRED, Status.CERTIFIED)
    assert model.certificate.gap >= 0.0
    assert model.trace[-1].seconds < 10.0
