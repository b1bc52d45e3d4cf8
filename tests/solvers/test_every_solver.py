# SPDX-License-Identifier: BSD-3-Clause
"""Every solver of the registry on every problem that it accepts, in every layout of the data.

A new line in ``maxmargin.solvers.SOLVERS`` is tested here without touching this file. One more solver is
written outside of the package, and registered for these tests alone: nothing else has to know about it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from sklearn.datasets import load_iris

from combinations import every_pair
from maxmargin import (
    Intercept,
    LinearSVC,
    Problem,
    Solution,
    Status,
    certify,
    choose_solver,
    path,
    solve,
    solve_hard_margin,
)
from maxmargin.kernels import KernelRows, Linear
from maxmargin.solvers import SOLVERS
from maxmargin.solving import loop
from problems import CASES, HARD_DATA, INTERCEPTS, LAYOUTS, Case, clouds, every_case
from toy_solver import ToyGradient

BATTERY = SOLVERS | {ToyGradient.name: ToyGradient}


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    monkeypatch.setitem(SOLVERS, ToyGradient.name, ToyGradient)


# What a solver may do before its budget is spent: some are done after a few steps.
DONE_EARLY = (Status.RULE_FIRED, Status.CERTIFIED)

NOT_RANDOM = (
    "active_set",
    "coordinate_descent",
    "newton",
    "interior_point",
    "quadratic_program",
    "working_set",
    "sequential_minimal_optimization",
    "toy_gradient",
)
NO_OPTIMUM = ("perceptron",)
"""What seeks another thing than the optimum; its certificate has to say how far it is from that."""
ROUNDING = 1e-8  # of the referee's optimum and of our sums, relative to the objective
EASY = HARD_DATA["overlapping clouds"].with_(C=0.1)


@cache
def penalised(case: Case, name: str) -> Case:
    """The case with the penalty that the solver is for."""
    return case.with_(penalty="l1") if BATTERY[name].takes_l1 else case


def problem_of(case: Case, name: str, layout: str = "dense C float64") -> Problem:
    """The problem as the solver takes it: for one that is made for kernels, through the linear one."""
    problem = case.problem(layout)
    return (
        replace(problem, rows=KernelRows(problem.rows, Linear()))
        if BATTERY[name].needs_kernels
        else problem
    )


def suited(case: Case, name: str) -> Case:
    """The case with the hinge, or with the squared hinge for a solver that needs a smooth loss.

    A solver that does not have the intercept of the case gets another one.
    """
    for intercept in (case.intercept, "exact", "none"):
        for loss in ("hinge", "squared_hinge"):
            candidate = penalised(case.with_(loss=loss, intercept=intercept), name)
            if loss == "hinge" and BATTERY[name].takes_l1:
                continue
            if BATTERY[name]().accepts(problem_of(candidate, name)) is None:
                return candidate
    raise AssertionError(f"{name} takes no form of {case.name}")


def reference_for(name: str) -> str:
    """Another solver, for the same kind of problem."""
    if BATTERY[name].takes_l1:
        return name
    return "quadratic_program" if BATTERY[name].needs_kernels else "dual_coordinate_ascent"


# What a first-order method can prove on these data within the steps below; the rest of the cases are
# too ill-conditioned for them and only have to be honest about it.
REACHABLE = {
    "overlapping clouds",
    "empty rows",
    "zero column",
    "one feature",
    "weights with zeros",
    "C of 1e-6",
}
TOO_HARD_FOR_ASCENT = {"features over orders of magnitude", "C of 1e4"}


@cache
def takes(case: Case, name: str, layout: str | None = None) -> bool:
    """Whether a solver accepts a case; in one layout is in all."""
    if layout is not None:
        return takes(case, name)
    if BATTERY[name].takes_l1 and case.loss == "hinge":
        return False
    case = penalised(case, name)
    return BATTERY[name]().accepts(problem_of(case, name)) is None


def assert_valid(certificate, case):
    """primal >= true optimum >= dual, and so the gap bounds the true suboptimality."""
    slack = ROUNDING * (abs(case.optimum) or 1.0)
    assert certificate.primal >= case.optimum - slack
    assert certificate.dual <= case.optimum + slack
    assert certificate.primal - case.optimum <= certificate.gap + slack
    assert certificate.gap == max(certificate.primal - certificate.dual, 0.0)


@every_case(takes, name=BATTERY, layout=LAYOUTS)
def test_certificate_is_valid(name, data, loss, intercept, layout):
    case = penalised(CASES[data, loss, intercept], name)
    problem = problem_of(case, name, layout)
    model = solve(problem, name, tol=1e-3, max_steps=60)
    assert_valid(model.certificate, case)
    assert model.status.certified == (model.certificate.relative_gap <= 1e-3)
    # The values are those of the points that come with them. Where rounding is most of what is left, they
    # are computed again in twofold precision, and the bounds on rounding are narrower then.
    fresh = certify(problem, Solution(w=model.w, b=model.b, alpha=model.alpha))
    assert fresh.primal <= model.certificate.primal * (1 + 1e-9)
    assert fresh.primal == pytest.approx(model.certificate.primal, rel=1e-8)
    assert fresh.dual >= model.certificate.dual - 1e-9 * abs(model.certificate.dual) - 1e-12
    assert fresh.dual == pytest.approx(model.certificate.dual, rel=1e-8, abs=1e-12)
    if model.certificate.relative_gap <= 1e-3:
        assert model.certificate.primal <= case.optimum * (1 + 1e-3 + ROUNDING)


@every_case(lambda case: case.loss != "logistic" and case.name not in TOO_HARD_FOR_ASCENT)
def test_dual_coordinate_ascent_certifies_one_in_a_million(data, loss, intercept):
    case = CASES[data, loss, intercept]
    model = solve(case.problem(), "dual_coordinate_ascent", tol=1e-6, max_steps=20_000)
    assert model.status is Status.CERTIFIED
    assert model.certificate.primal == pytest.approx(case.optimum, rel=2e-6)
    assert_valid(model.certificate, case)


SECOND_ORDER = ["newton", "augmented_lagrangian", "interior_point", "coordinate_descent"]


@every_case(takes, name=SECOND_ORDER)
def test_second_order_certifies_every_case(name, data, loss, intercept):
    case = penalised(CASES[data, loss, intercept], name)
    model = solve(case.problem(), name, tol=1e-7, max_steps=200)
    assert_valid(model.certificate, case)
    assert model.status is Status.CERTIFIED
    assert model.certificate.primal == pytest.approx(case.optimum, rel=2e-7, abs=1e-12)


@every_pair(data=sorted(REACHABLE), intercept=["none", "regularised"], name=BATTERY)
def test_both_endings(name, intercept, data):
    case = suited(HARD_DATA[data].with_(intercept=intercept), name)
    problem = problem_of(case, name)
    if name not in NO_OPTIMUM:
        good = solve(problem, name, tol=2e-2, max_steps=1000)
        assert good.status is Status.CERTIFIED
        assert good.message.startswith("Certified")
    spent = solve(problem, name, tol=0.0, max_steps=2)
    assert spent.status in (Status.STEPS_SPENT, Status.RULE_FIRED, Status.CERTIFIED)
    if spent.status is Status.STEPS_SPENT:
        # The gap that was reached, and what to do about it.
        assert f"{spent.certificate.relative_gap:.1e}" in spent.message
        assert "2 steps" in spent.message
        assert "max_steps" in spent.message
        assert "loosen tol" in spent.message
    assert_valid(spent.certificate, case)


@pytest.mark.parametrize("name", BATTERY)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_agree(name, layout):
    case = suited(EASY.with_(intercept="regularised"), name)
    expected = solve(problem_of(case, name), name, tol=0.0, max_steps=5)
    model = solve(problem_of(case, name, layout), name, tol=0.0, max_steps=5)
    np.testing.assert_allclose(model.w, expected.w, rtol=1e-9, atol=1e-12)
    assert model.b == pytest.approx(expected.b, rel=1e-9, abs=1e-12)
    assert model.certificate.dual == pytest.approx(expected.certificate.dual, rel=1e-9)


@pytest.mark.parametrize("name", BATTERY)
def test_same_seed_same_result_bit_for_bit(name):
    problem = problem_of(suited(EASY, name), name, "CSR float32 int32")
    # On so few rows it makes no sweeps, which are what is random in it, unless it is told to.
    options = {"sweeps": 4} if name == "augmented_lagrangian" else {}
    runs = [solve(problem, BATTERY[name](seed=seed, **options), tol=0.0, max_steps=7) for seed in (3, 3, 4)]
    first, second, other = (np.concatenate([run.w, [run.b], run.alpha]) for run in runs)
    np.testing.assert_array_equal(first, second)
    assert [record[2:] for record in runs[0].trace] == [record[2:] for record in runs[1].trace]
    # Else the seed would be ignored. The full subgradient uses it for the polish of alpha alone, and some
    # have nothing random in them, or get to the same point to the last digit.
    if name not in NOT_RANDOM:
        assert np.any(first != other)


@pytest.mark.parametrize("name", BATTERY)
def test_threads_agree_to_rounding(name):
    # Large enough for two threads: a thread is worth 2^17 stored values.
    X, y = clouds(n=3_000 if BATTERY[name].needs_kernels else 30_000, d=80, seed=8)
    problem = problem_of(suited(EASY, name).with_(X=X, y=y, C=1e-4), name, "dense C float32")
    if BATTERY[name]().accepts(problem) is not None:
        return  # too large for it: it has no passes to share out
    one, two = (solve(problem, name, tol=0.0, max_steps=2, threads=count) for count in (1, 2))
    np.testing.assert_allclose(two.w, one.w, rtol=1e-9, atol=1e-12)
    assert two.certificate.primal == pytest.approx(one.certificate.primal, rel=1e-12)
    assert two.certificate.dual == pytest.approx(one.certificate.dual, rel=1e-9)


@pytest.mark.parametrize("name", BATTERY)
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_warm_start_begins_where_the_solution_is(name, intercept):
    case = suited(EASY.with_(intercept=intercept), name)
    problem = problem_of(case, name)
    done = solve(problem, reference_for(name), tol=1e-8, max_steps=20_000)
    starts = (
        Solution(w=done.w, b=done.b),
        Solution(alpha=done.alpha, b=done.b),
        Solution(w=done.w, b=done.b, alpha=done.alpha),
    )
    if problem.penalty == "l1":  # with which w does not follow from alpha
        with pytest.raises(ValueError, match="Give the solution a w"):
            solve(problem, name, start=starts[1])
        starts = (starts[0], starts[2], starts[2])
    for start in starts:
        # No step at all: the start alone is what gets certified.
        warm = solve(problem, name, tol=0.0, max_steps=0, start=start)
        assert_valid(warm.certificate, case)
        # Dual ascent keeps alpha only, and has to guess it from w.
        if start.alpha is not None or name != "dual_coordinate_ascent":
            assert warm.certificate.primal <= case.optimum * (1 + 1e-6)
        cold = solve(problem, name, tol=0.0, max_steps=0)
        assert warm.certificate.primal < cold.certificate.primal
    # And goes on from there.
    again = solve(problem, name, tol=1e-3, max_steps=500, start=starts[2])
    assert again.certificate.primal <= case.optimum * 1.05


@pytest.mark.parametrize("name", BATTERY)
def test_max_time(name):
    case = suited(EASY, name)
    problem = problem_of(case, name)
    model = solve(problem, name, tol=0.0, max_steps=10**9, max_time=0.05)
    # A rule of the solver's own may end it first: rounding leaves nothing to gain.
    assert model.status in (Status.TIME_SPENT, Status.RULE_FIRED, Status.CERTIFIED)
    if model.status is Status.TIME_SPENT:
        assert "max_time" in model.message
        assert model.trace[-1].seconds < 0.5
    assert_valid(model.certificate, case)
    at_once = solve(problem, name, tol=0.0, max_time=0.0)
    assert at_once.status is Status.TIME_SPENT
    assert at_once.steps == 0
    assert_valid(at_once.certificate, case)


@pytest.mark.parametrize("name", BATTERY)
def test_the_answer_is_never_worse_than_the_start(name):
    problem = problem_of(suited(EASY, name), name)
    best = solve(problem, reference_for(name), tol=1e-9, max_steps=2000)
    start = Solution(w=best.w, alpha=best.alpha)
    at_once = solve(problem, name, tol=1e-6, start=start)
    assert at_once.status is Status.CERTIFIED
    assert at_once.steps == 0
    later = solve(problem, name, tol=0.0, max_steps=3, start=start)
    assert later.certificate.primal <= best.certificate.primal * (1 + 1e-12)
    assert later.certificate.dual >= best.certificate.dual * (1 - 1e-12)


@pytest.mark.parametrize("name", BATTERY)
def test_callback_sees_every_certificate_and_may_stop(name):
    seen = []

    def stop_at_third(progress):
        seen.append(progress)
        return len(seen) == 3

    problem = problem_of(suited(EASY, name), name)
    model = solve(problem, name, tol=0.0, certify_every=2, callback=stop_at_third)
    steps = [progress.step for progress in seen]
    if model.status not in DONE_EARLY:
        assert model.status is Status.STOPPED
        assert steps == [2, 4, 6]
        assert "callback" in model.message
    assert steps[-1] == model.steps
    assert seen[-1].certificate is model.certificate
    assert [record.step for record in model.trace] == steps
    assert seen[-1].tol == 0.0


@pytest.mark.parametrize("name", BATTERY)
def test_callback_is_called_between_certificates_of_a_long_run(name, monkeypatch):
    monkeypatch.setattr(loop, "_SECONDS_BETWEEN_CALLS", 0.0)
    seen = []

    def stop_at_second(progress):
        seen.append(progress)
        return len(seen) == 2

    case = suited(EASY, name)
    problem = problem_of(case, name)
    model = solve(problem, name, tol=0.0, certify_every=100, callback=stop_at_second)
    if model.status not in DONE_EARLY:
        assert model.status is Status.STOPPED
        assert [progress.step for progress in seen] == [1, 2, 2]
        assert seen[0].certificate is None
        assert seen[0].relative_gap == np.inf
    assert seen[-1].certificate is model.certificate  # the last state is certified all the same
    assert model.trace.certifying > 0
    assert_valid(model.certificate, case)


@pytest.mark.parametrize("name", BATTERY)
def test_certify_every_and_a_trace_that_never_worsens(name):
    problem = problem_of(suited(EASY, name), name)
    model = solve(problem, name, tol=0.0, max_steps=10, certify_every=3)
    if model.status is Status.STEPS_SPENT:
        # The last one is of the last step, due or not.
        assert list(model.trace.column("step")) == [3, 6, 9, 10]
    assert np.all(np.diff(model.trace.column("primal")) <= 0)
    assert np.all(np.diff(model.trace.column("dual")) >= 0)
    assert np.all(np.diff(model.trace.column("seconds")) >= 0)
    assert model.trace[-1].relative_gap == model.certificate.relative_gap


@pytest.mark.parametrize("name", [n for n, s in BATTERY.items() if hasattr(s(), "stop_threshold")])
def test_stopping_rule_of_001_ends_the_run(name):
    model = solve(EASY.problem(), BATTERY[name](stop_threshold=1e3, polish=0), tol=0.0, max_steps=1000)
    assert model.status is Status.RULE_FIRED
    assert model.steps < 1000
    assert "stop_threshold" in model.message
    assert_valid(model.certificate, EASY)
    assert len(model.trace) > 0


@pytest.mark.parametrize("name", BATTERY)
def test_solver_refuses_with_a_sentence(name):
    for loss in ("hinge", "squared_hinge", "logistic", "perceptron"):
        case = suited(EASY, name).with_(loss=loss)
        if case.penalty == "l1" and loss in ("hinge", "perceptron"):
            with pytest.raises(ValueError, match=loss):
                case.problem()
            continue
        problem = problem_of(case, name)
        refusal = BATTERY[name]().accepts(problem)
        if refusal is None:
            model = solve(problem, name, tol=0.0, max_steps=1)
            assert model.steps <= 1
        else:
            assert loss in refusal
            with pytest.raises(ValueError, match=loss):
                solve(problem, name)


@pytest.mark.parametrize("name", ["pegasos", "stochastic_subgradient"])
def test_batch_has_to_fit(name):
    with pytest.raises(ValueError, match="batch of 41"):
        solve(EASY.problem(), BATTERY[name](batch=41))


@every_pair(C=[0.25, 1.0, 8.0], tol=[1e-4, 0.0], intercept=INTERCEPTS)
def test_augmented_lagrangian_does_not_take_an_unbalanced_dual_for_a_bound(C, tol, intercept):
    # While b is far off, multipliers out of balance seem to be worth more than the optimum. Kept as the
    # best ones, they closed the gap on paper, and many runs with an exact intercept ended there.
    X, codes = load_iris(return_X_y=True)
    problem = Problem.of(X[:, 2:], np.where(codes == 2, 1.0, -1.0), C, intercept=intercept)
    for seed in range(20):
        model = solve(problem, SOLVERS["augmented_lagrangian"](seed=seed), tol=tol)
        assert model.certificate.relative_gap <= max(tol, 1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_augmented_lagrangian_begins_again_where_rounding_stops_it(seed):
    # So stiff a system leaves no direction of descent after a dozen steps, at gaps of up to 1.
    X, codes = load_iris(return_X_y=True)
    problem = Problem.of(X[:, 2:] - 50.0, np.where(codes == 0, 1.0, -1.0), 2.0**29, intercept="regularised")
    model = solve(problem, SOLVERS["augmented_lagrangian"](seed=seed), tol=1e-3)
    assert model.status.certified


@pytest.mark.parametrize("seed", [1, 2, 5])
def test_an_exact_intercept_does_not_creep_at_a_small_cost(seed):
    # Hardly a row is free, so none answers to the pull on b. With a fixed reach it takes 135 to 734 sweeps,
    # and as many certificates if the imbalance does not show in the estimate.
    random = np.random.default_rng(seed)
    columns = (1000 * random.random((600, 10)) ** 2).astype(int)
    X = np.zeros((600, 1000))
    np.add.at(X, (np.arange(600)[:, np.newaxis], columns), 1.0)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    scores = X @ random.normal(size=1000)
    y = np.where(scores + 0.5 * random.normal(size=600) > np.median(scores), 1.0, -1.0)
    model = solve(Problem.of(X, y, 0.02), "dual_coordinate_ascent", tol=1e-4, max_steps=1000)
    assert model.status.certified
    assert model.steps <= 80
    assert len(model.trace) <= 10


def test_unknown_solver_names_the_known_ones():
    with pytest.raises(ValueError, match="dual_coordinate_ascent") as caught:
        solve(EASY.problem(), "smo_please")
    assert "smo_please" in str(caught.value)


@pytest.mark.parametrize("tol", [-1e-3, float("nan")])
def test_tol_is_checked(tol):
    with pytest.raises(ValueError, match="tol must be"):
        solve(EASY.problem(), tol=tol)


@pytest.mark.parametrize(
    "argument",
    [{"certify_every": 0}, {"threads": -1}],
    ids=lambda argument: next(iter(argument)),
)
def test_arguments_of_solve_are_checked(argument):
    with pytest.raises(ValueError, match=next(iter(argument))):
        solve(EASY.problem(), **argument)


@pytest.mark.parametrize("name", BATTERY)
def test_nothing_that_counts(name):
    """All weights zero: a sentence, or the answer w = 0; no accident of arithmetic."""
    model, refusal = None, "nothing said"
    try:
        model = solve(suited(EASY, name).with_(weights=np.zeros(len(EASY.y))).problem(), name)
    except ValueError as error:
        refusal = str(error)
    if model is None:
        assert "weights" in refusal
    else:
        assert model.certificate.primal == model.certificate.dual == 0.0


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic", "perceptron"])
def test_automatic_choice_is_accepted_and_explained(loss):
    problem = EASY.with_(loss=loss).problem()
    solver, reason = choose_solver(problem, tol=0.5)
    assert solver.accepts(problem) is None
    name = "dual_coordinate_ascent" if solver.name == "hand_over" else solver.name
    assert reason.startswith(f"{name}: ")
    assert solve(problem, tol=0.5).solver == reason


def test_registry_names_are_the_solvers_own():
    for name, solver in SOLVERS.items():
        assert solver.name == name
        if solver is not ToyGradient:
            assert solver.__module__ == f"maxmargin.solvers.{name}"


@pytest.mark.parametrize("asked", ["toy_gradient", ToyGradient(gradients=40)], ids=["name", "object"])
def test_a_solver_from_outside_is_taken_wherever_one_is(asked):
    case = suited(EASY, "toy_gradient")
    assert solve(case.problem(), asked).solver == "toy_gradient: asked for."
    (model,) = path(case.problem(), [case.C], solver=asked)
    assert model.status is Status.CERTIFIED
    X, codes = load_iris(return_X_y=True)
    several = LinearSVC(solver=asked, loss="hinge", fit_intercept=False, C=0.01).fit(X, codes)
    assert several.status_ is Status.CERTIFIED
    assert several.solver_.startswith("toy_gradient: ")
    separable = Problem.of([[1.0, 2.0], [-2.0, -1.0]], [1.0, -1.0], intercept="none")
    assert solve_hard_margin(separable, asked).status is Status.CERTIFIED


@pytest.mark.parametrize("intercept", ["none", "regularised"])
def test_pegasos_stays_below_its_bound(intercept):
    # 002's guarantee, in expectation: true on average over seeds, with room to spare.
    case = EASY.with_(intercept=intercept)
    problem = case.problem()
    suboptimalities, bounds = [], []
    for seed in range(10):
        solver = SOLVERS["pegasos"](seed=seed, polish=0)
        model = solve(problem, solver, tol=0.0, max_steps=20, certify_every=20)
        assert model.steps == 20
        suboptimalities.append(model.certificate.primal - case.optimum)
        bounds.append(model.notes["bound"])
    T = 20 * len(case.y)
    s_squared = 1.0 if intercept == "regularised" else 0.0
    X_squared = np.max(np.sum(case.X**2, axis=1)) + s_squared
    lambda_ = 1 / case.costs.sum()
    by_hand = 2 * X_squared * np.log(T + 1) / (lambda_ * T) / lambda_
    np.testing.assert_allclose(bounds, by_hand)
    assert np.mean(suboptimalities) <= by_hand


def test_pegasos_gives_no_bound_where_there_is_none():
    exact = solve(EASY.with_(intercept="exact").problem(), "pegasos", max_steps=2)
    assert exact.certificate.problem.intercept is Intercept.EXACT
    assert "bound" not in exact.notes


@pytest.mark.parametrize("name", BATTERY)
def test_one_row_and_one_class(name):
    # Degenerate, but every solver ends in a proof or in an honest gap.
    for X, y in (([[2.0, 1.0]], [1.0]), ([[1.0], [2.0], [3.0]], [-1.0, -1.0, -1.0])):
        for intercept in INTERCEPTS:
            case = suited(Case("degenerate", np.array(X), np.array(y), intercept=intercept), name)
            if case.intercept == "exact":
                # b alone takes all rows beyond the margin, so w = 0 costs nothing.
                case = case.with_(known_optimum=0.0)
            model = solve(problem_of(case, name), name, tol=1e-4, max_steps=50)
            assert_valid(model.certificate, case)
            assert model.status.certified or name != "dual_coordinate_ascent"


@pytest.mark.parametrize("name", [name for name, solver in BATTERY.items() if solver.needs_kernels])
def test_without_a_kernel_the_cure_is_named(name):
    with pytest.raises(ValueError, match="KernelRows"):
        solve(suited(EASY, name).problem(), name)
