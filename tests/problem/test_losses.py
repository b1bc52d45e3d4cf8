# SPDX-License-Identifier: BSD-3-Clause
"""Each loss against its definition: derivative, conjugate, box, KKT conditions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from maxmargin import core
from maxmargin.problem.losses import LOSSES
from oracles import DERIVATIVE, VALUE

MARGINS = np.array([-40.0, -3.0, -1.0, -0.1, 0.0, 0.3, 0.999, 1.0, 1.001, 2.5, 40.0])
KINKS = {"hinge": 1.0, "perceptron": 0.0}
every_loss = pytest.mark.parametrize("name", sorted(LOSSES))


def test_registry():
    assert set(LOSSES) == set(VALUE)
    for name, loss in LOSSES.items():
        assert loss.name == name
        assert repr(loss) == f"maxmargin.problem.losses.{name.upper()}"
        assert loss.smooth == (name not in KINKS)


@every_loss
def test_value_and_derivative_are_the_lectures(name):
    loss = LOSSES[name]
    np.testing.assert_allclose(loss.value(MARGINS), VALUE[name](MARGINS), rtol=1e-12, atol=1e-17)
    np.testing.assert_allclose(loss.derivative(MARGINS), DERIVATIVE[name](MARGINS), rtol=1e-12, atol=1e-17)


@every_loss
def test_derivative_is_a_subgradient(name):
    loss = LOSSES[name]
    for m in MARGINS:
        tangent = loss.value(m) + loss.derivative(m) * (MARGINS - m)
        assert np.all(loss.value(MARGINS) >= tangent - 1e-12)
    # Non-increasing: a larger margin never costs more.
    assert np.all(np.diff(loss.value(MARGINS)) <= 0)


@every_loss
def test_no_overflow_far_from_the_boundary(name):
    loss = LOSSES[name]
    far = np.array([-1e6, 1e6])
    assert np.all(np.isfinite(loss.value(far)))
    assert np.all(np.isfinite(loss.derivative(far)))
    assert loss.value(far)[1] == 0.0


def shares(name):
    """Multipliers inside and on the walls of the box, as shares of C."""
    return np.array([0.0, 0.01, 0.3, 0.5, 0.99, 1.0, *([4.0] if name == "squared_hinge" else [])])


@every_loss
@pytest.mark.parametrize("C", [0.01, 1.0, 50.0])
def test_dual_gain_is_the_conjugate(name, C):
    # -C loss*(-alpha / C) = min over m of alpha m + C loss(m)
    loss = LOSSES[name]
    costs = np.full(len(shares(name)), C)
    gains = loss.dual_gain(C * shares(name), costs)
    for share, gain in zip(shares(name), gains, strict=True):

        def term(m, share=share):
            return C * (share * m + float(loss.value(np.array(m))))

        search = minimize_scalar(term, bounds=(-60.0, 60.0), options={"xatol": 1e-10})
        found = min(search.fun, term(KINKS.get(name, 1.0)))
        assert gain == pytest.approx(found, rel=1e-6, abs=1e-8 * C)
        # A bound for every margin, which is all that weak duality needs.
        assert all(gain <= term(m) + 1e-9 * C for m in MARGINS)


@every_loss
def test_beyond_the_box_the_conjugate_is_infinite(name):
    loss = LOSSES[name]
    upper = loss.upper(np.array([2.0]))[0]
    if name == "squared_hinge":
        assert upper == np.inf
    else:
        assert upper == 2.0

        def term(m):
            return 2.0 * (1.1 * m + float(loss.value(np.array(m))))

        assert term(-1e6) < term(-1e5) - 1e4
    below = [-0.1 * m + float(loss.value(np.array(m))) for m in (1e2, 1e3, 1e4)]
    assert below[2] < below[1] < below[0]


@every_loss
def test_multiplier_is_minus_C_times_the_derivative(name):
    loss = LOSSES[name]
    costs = np.linspace(0.0, 3.0, len(MARGINS))
    multiplier = loss.multiplier(MARGINS, costs)
    np.testing.assert_allclose(multiplier, -costs * DERIVATIVE[name](MARGINS), rtol=1e-12, atol=1e-16)
    assert np.all(multiplier >= 0)
    assert np.all(multiplier <= loss.upper(costs))


@every_loss
def test_fenchel_young_is_tight_at_the_multiplier(name):
    # gain(alpha) = alpha m + C loss(m) where alpha = -C loss'(m): together they prove optimality.
    loss = LOSSES[name]
    costs = np.full(len(MARGINS), 0.7)
    alpha = loss.multiplier(MARGINS, costs)
    expected = alpha * MARGINS + costs * loss.value(MARGINS)
    np.testing.assert_allclose(loss.dual_gain(alpha, costs), expected, rtol=1e-9, atol=1e-12)


@every_loss
def test_kkt_holds_at_the_multiplier_and_fails_elsewhere(name):
    loss = LOSSES[name]
    margins = MARGINS[np.abs(MARGINS) < 5]
    costs = np.full(len(margins), 2.0)
    alpha = loss.multiplier(margins, costs)
    np.testing.assert_allclose(loss.kkt_violation(margins, alpha, costs), 0.0, atol=1e-14)
    # Away from the kink any other alpha is wrong, and by how much does not depend on the sign.
    away = np.abs(margins - KINKS.get(name, 1.0)) > 0.05
    other = np.where(alpha > 1.0, alpha - 0.5, alpha + 0.5)
    assert np.all(loss.kkt_violation(margins, other, costs)[away] > 1e-2)


@pytest.mark.parametrize("name", ["hinge", "perceptron"])
def test_any_alpha_is_right_at_the_kink(name):
    kink = np.full(3, KINKS[name])
    alpha = np.array([0.0, 0.4, 1.0])
    np.testing.assert_array_equal(LOSSES[name].kkt_violation(kink, alpha, np.ones(3)), 0.0)


@every_loss
def test_rows_of_cost_zero_do_not_count(name):
    loss = LOSSES[name]
    nothing = np.zeros(2)
    margins = np.array([-5.0, 5.0])
    assert np.all(loss.upper(nothing) == 0)
    assert np.all(loss.dual_gain(nothing, nothing) == 0)
    assert np.all(loss.multiplier(margins, nothing) == 0)
    np.testing.assert_array_equal(loss.kkt_violation(margins, nothing, nothing), 0.0)


def objective(name, costs):
    """The sums that the core has of a loss, without an intercept."""
    return core.Objective(name, np.ones(len(costs)), costs, "none", 0.0)


def some_rows():
    """Margins, multipliers and costs: a cost of 0, and multipliers on both walls, are among them."""
    random = np.random.default_rng(0)
    costs = random.uniform(0.1, 3.0, 200)
    costs[::7] = 0.0
    margins = np.concatenate([random.normal(1.0, 2.0, 196), [0.0, 1.0, -40.0, 40.0]])
    return margins, np.clip(random.uniform(-0.5, 1.5, 200), 0.0, 1.0) * costs, costs


@every_loss
def test_the_core_agrees_row_by_row(name):
    """Every function of losses.py has a twin in core/passes/losses.hpp, which adds up rows."""
    loss, (margins, alpha, costs) = LOSSES[name], some_rows()
    each = [slice(i, i + 1) for i in range(len(margins))]
    multipliers, derivative = np.empty(200), np.empty(200)
    objective(name, costs).multipliers(margins, multipliers)
    objective(name, np.ones(200)).multipliers(margins, derivative)
    twins = {
        "value": ([objective(name, np.ones(1)).loss_sum(margins[i]) for i in each], loss.value(margins)),
        "derivative": (-derivative, loss.derivative(margins)),
        "multiplier": (multipliers, loss.multiplier(margins, costs)),
        "dual_gain": (
            [objective(name, costs[i]).dual(alpha[i], 0.0, 0.0) for i in each],
            loss.dual_gain(alpha, costs),
        ),
        "kkt_violation": (
            [objective(name, costs[i]).largest_violation(margins[i], alpha[i]) for i in each],
            loss.kkt_violation(margins, alpha, costs),
        ),
    }
    for what, (compiled, written) in twins.items():
        np.testing.assert_allclose(compiled, written, rtol=1e-13, atol=1e-17, err_msg=what)


@every_loss
def test_the_core_adds_up(name):
    loss, (margins, alpha, costs) = LOSSES[name], some_rows()
    compiled = objective(name, costs)
    assert compiled.loss_sum(margins) == pytest.approx(float(costs @ loss.value(margins)), rel=1e-13)
    gain = compiled.dual(alpha, 0.0, 0.0)
    assert gain == pytest.approx(float(loss.dual_gain(alpha, costs).sum()), rel=1e-13)
    proposed = np.linspace(-10.0, 10.0, 200)
    inside = np.clip(proposed, 0.0, loss.upper(costs))
    compiled.make_feasible(proposed)
    np.testing.assert_array_equal(proposed, inside)
    for some in (slice(0, 50), slice(50, 120), slice(120, 200), slice(0, 0)):
        rows = margins[some], alpha[some], costs[some]
        worst = float(loss.kkt_violation(*rows).max(initial=0.0))
        found = objective(name, costs[some]).largest_violation(margins[some], alpha[some])
        assert found == pytest.approx(worst, rel=1e-14)


@every_loss
def test_the_core_sees_what_is_not_a_number(name):
    one = np.ones(3)
    assert np.isnan(objective(name, one).largest_violation(np.array([0.5, np.nan, 0.5]), one))


@pytest.mark.parametrize(
    "call",
    [
        lambda core, rows: core.loss_sum(rows),
        lambda core, rows: core.primal(rows, 0.0, 0.0, rows, 0.0),
        lambda core, rows: core.dual(rows, 0.0, 0.0),
        lambda core, rows: core.make_feasible(rows),
        lambda core, rows: core.multipliers(rows, rows),
        lambda core, rows: core.best_intercept(rows),
        lambda core, rows: core.take_best_intercept(rows),
        lambda core, rows: core.intercepts_without_loss(rows),
        lambda core, rows: core.largest_violation(rows, rows),
    ],
)
def test_the_core_refuses_rows_without_a_cost(call):
    with pytest.raises(ValueError, match="one number per row"):
        call(objective("hinge", np.zeros(2)), np.zeros(3))


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"loss": "huber"}, "unknown loss"),
        ({"intercept": "free"}, "unknown form of the intercept"),
        ({"labels": np.ones(3)}, "one number per row"),
    ],
)
def test_the_core_refuses_what_is_no_objective(wrong, why):
    good = {"loss": "hinge", "labels": np.ones(2), "costs": np.ones(2), "intercept": "none", "number": 0.0}
    with pytest.raises(ValueError, match=why):
        core.Objective(**(good | wrong))


def test_logistic_sums_are_right_to_some_roundings_from_one_end_of_numbers_to_the_other():
    # The bounds on rounding in proofs allow every term 16 of them.
    long = np.longdouble
    margins = np.concatenate(
        [np.linspace(-40.0, 40.0, 40_001), [-1e6, -700.0, 700.0], np.logspace(-300, 0, 500)]
    )
    m = margins.astype(long)
    exact = np.where(m < 0, -m, 0) + np.log1p(np.exp(-abs(m)))
    each = [slice(i, i + 1) for i in range(len(margins))]
    one = objective("logistic", np.ones(1))
    found = np.array([one.loss_sum(margins[i]) for i in each])
    assert float(np.max(abs(found - exact) / exact)) <= 16 * 2.0**-53
    # Where exp has no normal number, the loss is too large, never too small.
    assert 0.0 < one.loss_sum(np.array([1e4])) < 1e-300
    derivative = np.empty(len(margins))
    objective("logistic", np.ones(len(margins))).multipliers(margins, derivative)
    slope = np.where(m > 0, np.exp(-abs(m)) / (1 + np.exp(-abs(m))), 1 / (1 + np.exp(-abs(m))))
    assert float(np.max(abs(derivative - slope) / slope)) <= 16 * 2.0**-53
    alpha = np.concatenate(
        [np.linspace(0.0, 1.0, 4001)[1:-1], np.logspace(-290, -1, 800), 1.0 - np.logspace(-15, -1, 99)]
    )
    a = alpha.astype(long)
    entropy = -(a * np.log(a) + (1 - a) * np.log1p(-a))
    gains = np.array([one.dual(alpha[i : i + 1], 0.0, 0.0) for i in range(len(alpha))])
    # Of one row: the gain less what is allowed for its sum.
    assert np.all(gains <= entropy * (1 + 1e-18))
    assert float(np.max((entropy - gains) / entropy)) <= 64 * 2.0**-53
    for end in (0.0, 1.0):
        assert one.dual(np.array([end]), 0.0, 0.0) == 0.0
    assert 0.0 <= one.dual(np.array([1e-310]), 0.0, 0.0) <= 1e-307
