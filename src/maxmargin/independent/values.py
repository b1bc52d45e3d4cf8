# SPDX-License-Identifier: BSD-3-Clause
"""The exact objective of a point, and the exact lower bound that multipliers prove.

    P(w, b) = 1/2 |w|^2 + sum_i C_i loss(m_i)        (+ b^2 / (2 s^2) if b is regularised)
    m_i = y_i (<w, x_i> + b) + 1 - p_i

The targets p_i are 1 but in regression, whose examples have two rows each, the walls of its tube: the
lower one with y = 1 and the target value - epsilon, the upper one with -1 and -(value + epsilon). With the
l1 penalty, |w|_1 and |b| / s are in the places of 1/2 |w|^2 and b^2 / (2 s^2). With a nu, all targets are
lowered by a shift e that is sought, m_i has e besides, and P has T e, where T is a number that is given.

**The bound.** Every loss is convex, so for every margin m and every a in its box, C loss(m) >= gain(a) -
a m, where gain(a) = -C loss*(-a / C). With w(a) = sum_i a_i y_i x_i, t = sum_i a_i y_i and gain the sum of
all gain(a_i) - a_i (1 - p_i), adding this up over the rows gives, for every (w, b),

    P(w, b) >= gain - <w, w(a)> - b t + 1/2 |w|^2  >=  gain - 1/2 |w(a)|^2 - b t.

* b is a number that is given: that is the bound.
* b is regularised: as b^2 / (2 s^2) - b t >= -1/2 s^2 t^2, it is gain - 1/2 |w(a)|^2 - 1/2 s^2 t^2.
* b is free: t should be 0, but multipliers that are floats leave a trifle of it. Two ways deal with that,
  and the better of their bounds counts. First, the multipliers of the class with the larger sum are
  multiplied by the quotient of the two sums, a fraction: they stay in their boxes, and t is then 0.
  Second, the lemma below bounds b, and |b t| <= B |t|.

**Shares.** With a nu, the same sum gives P(w, b, e) >= gain - 1/2 |w(a)|^2 - b t + e (T - sum_i a_i), for
every e. So the bound is gain - 1/2 |w(a)|^2 for multipliers in their boxes with t = 0 and a sum of T: those
of each sign have to add up to T / 2, and to T where all rows are of one sign and b is 0. Sums of floats are
off by a trifle. Where one is too large, its multipliers are multiplied by the quotient; where it is too
small, each gets the same share of what it lacks to its wall. Both stay in their boxes.

**The l1 penalty.** There, P(w, b) >= gain - <w, w(a)> - b t + |w|_1 >= gain - b t where no entry of w(a)
is beyond 1, and if b is regularised P(w, b) >= gain where s |t| is not, either. Let q be the largest of
these numbers and 1. The gains are concave and 0 at 0, so multipliers that are divided by q have a gain of
at least gain / q, and they prove (gain - b t) / q or gain / q.

**Lemma.** With rows of both classes at positive cost, P has a minimiser (w*, b*) with |b*| <= B, where

    B = p + R sqrt(2 U)                         for the hinge and the squared hinge
    B = R sqrt(2 U)                             for the perceptron loss
    B = R sqrt(2 U) + |log(C_plus / C_minus)|   for the logistic loss.

With the l1 penalty, U stands in the place of sqrt(2 U).

R is the largest |x_i| of a row of positive cost, p the largest |p_i|, U any number that is not below the
best value, and C_plus and C_minus are the sums of the costs of each class.

Proof. A minimiser exists: P grows without bound in w and, with both classes there, in b. As losses are not
negative, 1/2 |w*|^2 <= P* <= U, so every score f_i = <w*, x_i> has |f_i| <= F = R sqrt(2 U). (With the
l1 penalty |w*| <= |w*|_1 <= U.)

For the hinge and the squared hinge, let b be above all y_i p_i - f_i, where margins are 1. Then the rows
with y_i = 1 have no loss, and that of the others is no larger at a smaller b. So b can be lowered to the
largest y_i p_i - f_i and P does not rise. In the same way a b below all of them can be raised to the
smallest. So some best b is at most p + F from 0. For the perceptron loss the same holds with -f_i in the
place of y_i p_i - f_i.

For the logistic loss, the derivative by b is 0 at b*. With s(z) = 1 / (1 + exp(-z)) that says that the
sum of C_i s(-(f_i + b*)) over the rows with y_i = 1 is the sum of C_i s(f_i + b*) over the others. With z
= b* - F the first is at most C_plus s(-z), the second at least C_minus s(z), so exp(-z) = s(-z) / s(z) >=
C_minus / C_plus and b* <= F + log(C_plus / C_minus). The other side is the same with the classes
exchanged.

Where only one class has rows of positive cost and b is free, w = 0 and a b that is large enough bring P as
near to 0 as one likes, so the best value is 0.

**Groups.** Where rows in turn share a hinge, C max(0, 1 - min m_i) is at least the sum of a_i (1 - m_i)
for all a_i that are not negative and add up to C at most, so the bound is the same with gain(a_i) = a_i.
So several classes are one problem: row (i, k) is x_i in the place of its own class, and -x_i in that of k.

**Hard margins.** Any (w, b) whose smallest margin m is positive becomes feasible when divided by m. For
multipliers that are not negative, with t = 0 where b is free, every feasible (w, b) has

    sum_i a_i  <=  sum_i a_i y_i (<w, x_i> + b)  =  <w, w(a)>  <=  |w| |w(a)|,

so 1/2 |w|^2 >= (sum_i a_i)^2 / (2 |w(a)|^2). A regularised b / s counts as a coordinate of w.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from maxmargin.independent.arithmetic import (
    Interval,
    Vector,
    exponential,
    logarithm,
    root_above,
    sum_of,
    total,
)
from maxmargin.independent.rows import Rows

ZERO = Fraction(0)
LOSSES = ("hinge", "squared_hinge", "logistic", "perceptron")


@dataclass(frozen=True)
class ExactProblem:
    """What is minimised, every number a fraction."""

    rows: Rows
    y: Sequence[int]
    """Labels, 1 or -1."""
    costs: Sequence[Fraction]
    """C_i, not negative."""
    loss: str = "hinge"
    intercept: str = "exact"
    """none (b is ``fixed``), regularised, or exact (free)."""
    scaling: Fraction = Fraction(1)
    """s, where b is regularised."""
    fixed: Fraction = ZERO
    """b, where there is none to be sought."""
    group: int = 1
    """How many rows in turn share one hinge, that of the smallest margin, and their cost."""
    targets: Sequence[Fraction] | None = None
    """p_i, of the hinge and the squared hinge; None where all of them are 1."""
    penalty: str = "l2"
    """l2, or l1 for rows without a kernel."""
    total: Fraction | None = None
    """T, what the multipliers add up to, where the targets have a shift that is sought."""

    @cached_property
    def counted(self) -> list[int]:
        """The rows of positive cost."""
        return [i for i, cost in enumerate(self.costs) if cost > 0]

    @property
    def one_class(self) -> bool:
        """Whether the rows of positive cost are all of one class."""
        return len({self.y[i] for i in self.counted}) < 2


@dataclass(frozen=True)
class Proof:
    """A point and multipliers, and what they prove: each value is computed once, when it is asked for."""

    problem: ExactProblem
    w: Vector
    b: Fraction
    alpha: Sequence[Fraction]
    shift: Fraction = ZERO

    @cached_property
    def scores(self) -> list[Interval]:
        """``<w, x_i>`` of each row."""
        return self.problem.rows.scores(self.w)

    @cached_property
    def primal(self) -> Interval:
        """An interval around P(w, b); a single number where nothing but fractions occurs."""
        return _objective(self.problem, self.w, self.b, self.scores, self.shift)

    @cached_property
    def boxed(self) -> list[Fraction]:
        """The multipliers, brought into their boxes."""
        return boxed(self.problem, self.alpha)

    @cached_property
    def w_of_alpha(self) -> Vector:
        """``w(a)`` of these multipliers."""
        return w_of_alpha(self.problem, self.boxed)

    @cached_property
    def lemma_bound(self) -> Fraction:
        """What these very multipliers prove: for a free b, by the lemma.

        It is below the best value by at least 1/2 |w(a) - w*|^2.
        """
        return _lemma_bound(self.problem, self.boxed, self.w_of_alpha, self.primal.high)

    @cached_property
    def lower_bound(self) -> Fraction:
        """A number that P is not below, whatever w and b are."""
        return _best_bound(self.problem, self.boxed, self.lemma_bound)


def primal(problem: ExactProblem, w: Vector, b: Fraction) -> Interval:
    """An interval around P(w, b)."""
    return _objective(problem, w, b, problem.rows.scores(w))


def lower_bound(problem: ExactProblem, alpha: Sequence[Fraction], upper: Fraction) -> Fraction:
    """A number that P(w, b) is not below, whatever w and b are; 0 is always one.

    ``upper`` is a number that the best P is not above. Multipliers outside of their boxes are brought to
    the nearest wall first.
    """
    alpha = boxed(problem, alpha)
    return _best_bound(problem, alpha, _lemma_bound(problem, alpha, w_of_alpha(problem, alpha), upper))


def _best_bound(problem: ExactProblem, alpha: Sequence[Fraction], by_lemma: Fraction) -> Fraction:
    """The best of three bounds: by the lemma, of balanced multipliers, and 0."""
    if problem.total is not None:  # 0 is no bound where e can be as low as one likes
        return by_lemma
    bound = max(by_lemma, ZERO)
    if problem.intercept == "exact" and not problem.one_class and _excess(problem, alpha):
        other = balanced(problem.y, alpha)
        bound = max(bound, _lemma_bound(problem, other, w_of_alpha(problem, other), ZERO))
    return bound


def _lemma_bound(problem: ExactProblem, alpha: Sequence[Fraction], w: Vector, upper: Fraction) -> Fraction:
    """What multipliers in their boxes prove, w being made of them."""
    bound, excess = _dual(problem, alpha, w), _excess(problem, alpha)
    if problem.total is not None:
        return bound
    if problem.penalty == "l1":
        return _l1_bound(problem, bound, excess, w, upper)
    if problem.intercept == "none":
        return bound - problem.fixed * excess
    if problem.intercept == "regularised":
        return bound - (problem.scaling * excess) ** 2 / 2
    if problem.one_class:
        return min(bound, ZERO)
    return bound - largest_intercept(problem, upper) * abs(excess) if excess else bound


def _l1_bound(
    problem: ExactProblem, gain: Fraction, excess: Fraction, w: Vector, upper: Fraction
) -> Fraction:
    """The same with the l1 penalty."""
    largest = max([Fraction(1), *w.magnitudes])
    if problem.intercept == "none":
        return (gain - problem.fixed * excess) / largest
    if problem.intercept == "regularised":
        return gain / max(largest, problem.scaling * abs(excess))
    if problem.one_class:
        return min(gain, ZERO)
    worth = largest_intercept(problem, upper) * abs(excess) if excess else ZERO
    return (gain - worth) / largest


def largest_intercept(problem: ExactProblem, upper: Fraction) -> Fraction:
    """B of the lemma: some best intercept is between -B and B."""
    longest = max(problem.rows.squared_length(i).high for i in problem.counted)
    most = max(min(upper, _objective_of_zero(problem)), ZERO)
    l1 = problem.penalty == "l1"
    bound = root_above(longest) * most if l1 else root_above(longest * 2 * most)
    if problem.loss in ("hinge", "squared_hinge"):
        targets = problem.targets
        return bound + (1 if targets is None else max(abs(targets[i]) for i in problem.counted))
    if problem.loss == "perceptron":
        return bound
    sums = [total(problem.costs[i] for i in problem.counted if problem.y[i] == y) for y in (1, -1)]
    quotient = logarithm(sums[0] / sums[1])
    return bound + max(abs(quotient.low), abs(quotient.high))


def _objective_of_zero(problem: ExactProblem) -> Fraction:
    """P(0, 0), or hardly more: an objective value that is reached where b is free."""
    margins = [ZERO] * len(problem.y) if problem.targets is None else [1 - p for p in problem.targets]
    losses = (_LOSSES[problem.loss](margins[i]).high * problem.costs[i] for i in problem.counted)
    return total(losses)


def balanced(y: Sequence[int], alpha: Sequence[Fraction]) -> list[Fraction]:
    """Multipliers whose sums of the two classes are equal: those of the larger one are made smaller."""
    sums = {label: total(a for a, own in zip(alpha, y, strict=True) if own == label) for label in (1, -1)}
    least = min(sums.values())
    return [a * (least / sums[label] if sums[label] else 0) for a, label in zip(alpha, y, strict=True)]


def hard_margin_primal(problem: ExactProblem, w: Vector, b: Fraction) -> Interval | None:
    """``1/2 |w|^2 / m^2`` with the smallest margin m; None where some margin is not above 0."""
    scores = problem.rows.scores(w)
    each = _margins(problem, scores, b)
    smallest = Interval(
        min(each[i].low for i in problem.counted), min(each[i].high for i in problem.counted)
    )
    if smallest.low <= 0:
        return None
    value = _regulariser(problem, w, b, scores)
    return Interval(value.low / smallest.high**2, value.high / smallest.low**2)


def hard_margin_lower_bound(problem: ExactProblem, alpha: Sequence[Fraction]) -> Fraction | None:
    """A number that no ``1/2 |w|^2`` of a separating (w, b) is below; None: there is no such (w, b)."""
    alpha = [max(a, ZERO) if cost > 0 else ZERO for a, cost in zip(alpha, problem.costs, strict=True)]
    if problem.intercept == "exact":
        alpha = balanced(problem.y, alpha)
    square = problem.rows.squared_norm(w_of_alpha(problem, alpha)).high
    if problem.intercept == "regularised":
        square += (problem.scaling * _excess(problem, alpha)) ** 2
    gain = total(alpha)
    if gain == 0:
        return ZERO
    return gain**2 / (2 * square) if square > 0 else None


def relative_gap(upper: Fraction, lower: Fraction) -> Fraction | None:
    """``(upper - lower) / upper``; None, which stands for infinity, where that is divided by 0."""
    if upper <= lower:
        return ZERO
    return (upper - lower) / abs(upper) if upper != 0 else None


def w_of_alpha(problem: ExactProblem, alpha: Sequence[Fraction]) -> Vector:
    """``w(a) = sum_i a_i y_i x_i``."""
    return problem.rows.combine([a * y for a, y in zip(alpha, problem.y, strict=True)])


def _objective(
    problem: ExactProblem, w: Vector, b: Fraction, scores: Sequence[Interval], shift: Fraction = ZERO
) -> Interval:
    each = _margins(problem, scores, b)
    if problem.total is not None:
        each = [margin.plus(shift) for margin in each]
    if problem.group > 1:
        each = [min(each[j : j + problem.group], key=lambda m: m.low) for j in _first_of_groups(problem)]
        costs = [problem.costs[j] for j in _first_of_groups(problem)]
        losses = sum_of(_loss("hinge", m).times(cost) for m, cost in zip(each, costs, strict=True))
        return sum_of([_regulariser(problem, w, b, scores), losses])
    losses = sum_of(_loss(problem.loss, each[i]).times(problem.costs[i]) for i in problem.counted)
    value = sum_of([_regulariser(problem, w, b, scores), losses])
    return value if problem.total is None else value.plus(problem.total * shift)


def _margins(problem: ExactProblem, scores: Sequence[Interval], b: Fraction) -> list[Interval]:
    """``y_i (<w, x_i> + b) + 1 - p_i``."""
    each = [score.plus(b).times(y) for score, y in zip(scores, problem.y, strict=True)]
    if problem.targets is None:
        return each
    return [margin.plus(1 - p) for margin, p in zip(each, problem.targets, strict=True)]


def _regulariser(problem: ExactProblem, w: Vector, b: Fraction, scores: Sequence[Interval]) -> Interval:
    if problem.penalty == "l1":
        beta = b / problem.scaling if problem.intercept == "regularised" else ZERO
        return Interval.exactly(total(w.magnitudes) + abs(beta))
    value = problem.rows.squared_norm(w, scores).times(Fraction(1, 2))
    if problem.intercept == "regularised":
        value = value.plus((b / problem.scaling) ** 2 / 2)
    return value


def _excess(problem: ExactProblem, alpha: Sequence[Fraction]) -> Fraction:
    """``t = sum_i a_i y_i``."""
    return total(a * y for a, y in zip(alpha, problem.y, strict=True))


def _dual(problem: ExactProblem, alpha: Sequence[Fraction], w: Vector) -> Fraction:
    """A lower bound on ``gain - 1/2 |w(a)|^2``, for multipliers in their boxes and their w.

    With the l1 penalty the gain alone.
    """
    gains = total(_GAINS[problem.loss](alpha[i], problem.costs[i]) for i in problem.counted)
    if problem.targets is not None:
        gains -= total(alpha[i] * (1 - problem.targets[i]) for i in problem.counted)
    return gains if problem.penalty == "l1" else gains - problem.rows.squared_norm(w).high / 2


def boxed(problem: ExactProblem, alpha: Sequence[Fraction]) -> list[Fraction]:
    """Each multiplier, or the wall of its box that is nearest to it."""
    walls = [None if problem.loss == "squared_hinge" and cost > 0 else cost for cost in problem.costs]
    above = [max(a, ZERO) for a in alpha]
    if problem.group > 1:
        return _shared(problem, above)
    if problem.total is not None:
        return _adding_up(problem, [min(a, cost) for a, cost in zip(above, problem.costs, strict=True)])
    return [a if wall is None else min(a, wall) for a, wall in zip(above, walls, strict=True)]


def _first_of_groups(problem: ExactProblem) -> range:
    return range(0, len(problem.costs), problem.group)


def _shared(problem: ExactProblem, alpha: list[Fraction]) -> list[Fraction]:
    """Multipliers whose sum over each group is at most its cost; where it is not, they are scaled to it."""
    out = []
    for j in _first_of_groups(problem):
        own, cost = alpha[j : j + problem.group], problem.costs[j]
        whole = total(own)
        out += own if whole <= cost else [a * cost / whole for a in own]
    return out


def _adding_up(problem: ExactProblem, alpha: list[Fraction]) -> list[Fraction]:
    """Multipliers in their boxes whose sum is the total; where b is free, each sign has half of it."""
    assert problem.total is not None
    free = problem.intercept == "exact"
    out = list(alpha)
    for sign in (1, -1) if free else (1,):
        own = [i for i, y in enumerate(problem.y) if not free or y == sign]
        wanted = problem.total / 2 if free else problem.total
        whole, room = total(alpha[i] for i in own), total(problem.costs[i] - alpha[i] for i in own)
        for i in own:
            if whole > wanted:
                out[i] = alpha[i] * wanted / whole
            elif whole < wanted:
                out[i] = alpha[i] + (problem.costs[i] - alpha[i]) * (wanted - whole) / room
    return out


def _loss(loss: str, margin: Interval) -> Interval:
    """The interval of the loss, which does not increase with the margin."""
    value = _LOSSES[loss]
    if margin.is_number:
        return value(margin.low)
    return Interval(value(margin.high).low, value(margin.low).high)


def _logistic_loss(m: Fraction) -> Interval:
    """``log(1 + exp(-m))``, or ``-m + log(1 + exp(m))`` where that has the smaller exponential."""
    power = exponential(-abs(m))
    value = logarithm(1 + power.low) if power.low else Interval.exactly(ZERO)
    # The slope of log(1 + p) is at most 1.
    value = Interval(value.low, value.high + (power.high - power.low))
    return value.plus(max(-m, ZERO))


def _logistic_gain(a: Fraction, cost: Fraction) -> Fraction:
    """A bound from below on ``-a log p - (C - a) log(1 - p)`` with p = a / C; 0 log 0 is 0.

    As ``-log q >= 1 - q`` for every q, this is precise for the smallest multipliers, too.
    """
    shares = [(part, part / cost) for part in (a, cost - a) if part > 0]
    return total(part * max(1 - share, -logarithm(share).high) for part, share in shares)


_LOSSES: dict[str, Callable[[Fraction], Interval]] = {
    "hinge": lambda m: Interval.exactly(max(1 - m, ZERO)),
    "squared_hinge": lambda m: Interval.exactly(max(1 - m, ZERO) ** 2),
    "perceptron": lambda m: Interval.exactly(max(-m, ZERO)),
    "logistic": _logistic_loss,
}
_GAINS: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "hinge": lambda a, cost: a,
    "squared_hinge": lambda a, cost: a - a * a / (4 * cost),
    "perceptron": lambda a, cost: ZERO,
    "logistic": _logistic_gain,
}
"""What ``gain`` says of a multiplier in its box and its cost, or a number below that."""
