# SPDX-License-Identifier: BSD-3-Clause
"""A primal-dual interior-point method for all classes at once, where columns are few (Mehrotra 1992).

    minimise    1/2 sum_k |w_k|^2 + sum_i C_i xi_i
    subject to  m_ik = <w_y - w_k, x_i> = 1 - xi_i + s_ik  for k != y = y_i,    s_ik >= 0,  xi_i >= 0

    1  v = sum of alpha_ik s_ik and gamma_i xi_i, per pair         gamma_i = C_i - sum_k alpha_ik
    2  q_ik = alpha_ik / s_ik,  H_i = diag(q_i) - q_i q_i' / (sum_k q_ik + gamma_i / xi_i)
    3  K = I + sum_i (E_i H_i E_i') (x) x_i x_i'          E_i: from rows of an example to its classes
    4  the step to v = 0, by K;  sigma = (v that it would leave / v)^3
    5  the step to sigma v that also answers for the products of the last one, by the same K
    6  while it leads too far from equal products to be long: draw them nearer, by the same K
    7  go along it, as far as everything stays positive

The number of steps hardly depends on C or on how rows are scaled, which sweeps of ``crammer_singer`` depend
on very much. K has a row for each column of each class, and is summed up by one product of matrices: the
entries of E_i H_i E_i' for every example, times the products of its columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from maxmargin.core import Budget
from maxmargin.problem import Problem
from maxmargin.problem.class_rows import ClassRows
from maxmargin.problem.rows import Matrix
from maxmargin.proof.solution import Solution
from maxmargin.solvers.base import Report, Solver, end_if_stopped
from maxmargin.tools.one_blas_thread import one_blas_thread
from maxmargin.types import Indices, Vector

_SHARE = 0.99
"""The share of the way to the nearest wall that a step takes."""
_VALUES_AT_ONCE = 1 << 21
"""Entries of the two factors of K that are formed at a time: 16 MiB."""
_CORRECTIONS = 4
"""Further directions in a step, at most, for which K serves again (Gondzio 1996)."""
_LONGER, _WORTH = 0.1, 1.01
"""How much longer a corrected step aims to be, and the factor by which it has to be."""
_LOWEST, _HIGHEST = 0.1, 10.0
"""The shares of their target beyond which products are drawn back to it."""
_NOTHING_LEFT = 1e-15
"""The share of the objective below which the products that are left are rounding."""

_ALL = slice(None)


class _Direction(NamedTuple):
    """A step, as the changes of all numbers."""

    w: Matrix
    alpha: Matrix
    s: Matrix
    xi: Vector
    gamma: Vector


@dataclass
class State:
    """A point inside of all walls."""

    rows: ClassRows
    which: Indices
    """The examples that have a cost."""
    X: Matrix
    """Their rows, with the constant feature."""
    own: Indices
    """The place of the own class of each of them, in a table of all classes."""
    others: Indices
    """The places of the other classes."""
    costs: Vector
    w: Matrix
    """One line for each column, one column for each class."""
    alpha: Matrix
    s: Matrix
    xi: Vector
    gamma: Vector
    gap: float = np.inf
    """All products together, as a share of the objective."""
    finished: bool = False

    def margins(self, w: Matrix) -> Matrix:
        """``<w_y - w_k, x_i>``."""
        scores = (self.X @ w).ravel()
        return scores[self.own][:, np.newaxis] - scores[self.others]

    def combined(self, alpha: Matrix) -> Matrix:
        """The w that multipliers lead to."""
        return self.X.T @ self.of_classes(alpha)

    def of_classes(self, alpha: Matrix, part: slice = _ALL) -> Matrix:
        """E_i alpha_i of some examples: the sum for the own class, the negative of each for the others."""
        alpha = alpha[part]
        out, first = np.empty(len(alpha) * self.rows.classes), (part.start or 0) * self.rows.classes
        out[self.others[part] - first] = -alpha
        out[self.own[part] - first] = alpha.sum(axis=1)
        return out.reshape(len(alpha), -1)


@dataclass(frozen=True)
class ClassInteriorPoint(Solver[State]):
    """Interior points for all classes at once."""

    name: ClassVar[str] = "class_interior_point"
    seed: int = 0
    """Without effect: nothing is drawn."""

    def accepts(self, problem: Problem) -> str | None:
        """Rows of several classes, and no others."""
        if isinstance(problem.rows, ClassRows):
            return None
        return (
            "class_interior_point solves problems of several classes at once. Use interior_point, or "
            "class_problem of maxmargin.problem.class_rows."
        )

    def init(self, problem: Problem, start: Solution | None) -> State:
        """The state in the middle between all walls, at w = 0, whatever the start."""
        rows = problem.rows
        assert isinstance(rows, ClassRows)
        costs = problem.costs[:: rows.classes - 1]
        which = np.flatnonzero(costs > 0)
        costs, X = costs[which], rows.examples.dense(which)
        if rows.constant != 0.0:
            X = np.column_stack([X, np.full(len(X), rows.constant)])
        first = rows.classes * np.arange(len(which))
        # All products are the same: s = 1 and xi = 2 for w = 0.
        alpha = np.repeat(2.0 * costs[:, np.newaxis] / (2 * rows.classes - 1), rows.classes - 1, axis=1)
        return State(
            rows,
            which,
            X,
            first + rows.codes[which],
            first[:, np.newaxis] + rows.others()[which],
            costs,
            np.zeros((rows.class_columns, rows.classes)),
            alpha,
            np.ones_like(alpha),
            np.full(len(costs), 2.0),
            0.5 * alpha[:, 0],
        )

    @one_blas_thread()
    def step(self, problem: Problem, state: State, budget: Budget) -> State:
        """Lines 1 to 7."""
        alpha, s, xi, gamma = state.alpha, state.s, state.xi, state.gamma
        pairs = alpha.size + xi.size
        v = float((alpha * s).sum() + gamma @ xi) / pairs  # 1
        margins = state.margins(state.w)
        lacking = state.combined(alpha) - state.w
        off_s = margins + xi[:, np.newaxis] - 1.0 - s
        off_gamma = state.costs - alpha.sum(axis=1) - gamma
        q, e = alpha / s, gamma / xi  # 2
        whole = q.sum(axis=1) + e
        try:
            factor = cho_factor(_system(state, q, whole, budget), lower=True, check_finite=False)  # 3
        except LinAlgError:
            state.finished = True
            return state

        def direction(of_s: Matrix, of_xi: Vector) -> _Direction:
            """The step that changes the products by so much, to first order."""
            g = of_xi / xi - off_gamma + (of_s / s).sum(axis=1) - (q * off_s).sum(axis=1)
            fixed = of_s / s - q * off_s - q * (g / whole)[:, np.newaxis]
            right = lacking + state.combined(fixed)
            w = cho_solve(factor, right.ravel(), check_finite=False).reshape(right.shape)
            moved = state.margins(w)
            d_xi = (g - (q * moved).sum(axis=1)) / whole
            d_s = moved + d_xi[:, np.newaxis] + off_s
            return _Direction(w, (of_s - alpha * d_s) / s, d_s, d_xi, (of_xi - gamma * d_xi) / xi)

        def products(along: _Direction, t: float) -> tuple[Matrix, Vector]:
            """What becomes of the products after so much of a step."""
            of_xi = (gamma + t * along.gamma) * (xi + t * along.xi)
            return (alpha + t * along.alpha) * (s + t * along.s), of_xi

        def reach(along: _Direction) -> float:
            """How much of a step fits in before one of the numbers is 0."""
            pairs = ((alpha, along.alpha), (s, along.s), (xi, along.xi), (gamma, along.gamma))
            fastest = max(float(np.max(-change / value)) for value, change in pairs)
            return 1.0 / fastest if fastest > 0.0 else np.inf

        foreseen = direction(-alpha * s, -gamma * xi)  # 4
        t = min(1.0, reach(foreseen))
        left_s, left_xi = products(foreseen, t)
        target = v * ((float(left_s.sum()) + float(left_xi.sum())) / (pairs * v)) ** 3
        of_s = target - alpha * s - foreseen.alpha * foreseen.s
        of_xi = target - gamma * xi - foreseen.gamma * foreseen.xi
        chosen = direction(of_s, of_xi)  # 5
        t = reach(chosen)
        for _ in range(_CORRECTIONS):  # 6
            if t >= 1.0:
                break
            there = products(chosen, min(1.0, t + _LONGER))
            of_s = of_s + _drawn_back(there[0], target)
            of_xi = of_xi + _drawn_back(there[1], target)
            corrected = direction(of_s, of_xi)
            longer = reach(corrected)
            if longer < _WORTH * t:
                break
            chosen, t = corrected, longer
        t = min(1.0, _SHARE * t)  # 7
        state.w = state.w + t * chosen.w
        state.alpha, state.s = alpha + t * chosen.alpha, s + t * chosen.s
        state.xi, state.gamma = xi + t * chosen.xi, gamma + t * chosen.gamma
        left = float((state.alpha * state.s).sum() + state.gamma @ state.xi)
        objective = 0.5 * float((state.w**2).sum()) + float(state.costs @ state.xi)
        state.gap = left / objective if objective > 0.0 else 0.0
        state.finished = not (t > 1e-8 and state.gap > _NOTHING_LEFT and np.isfinite(left))
        return state

    def solution(self, problem: Problem, state: State, budget: Budget) -> Solution:
        """Both points."""
        alpha = np.zeros((state.rows.examples.count, state.rows.classes - 1))
        alpha[state.which] = state.alpha
        return Solution(w=state.w.ravel(), alpha=alpha.ravel(), any_length=True)

    def report(self, state: State) -> Report:
        """The products are the gap, once both points are feasible."""
        return Report(state.gap, state.finished)


def _drawn_back(products: Matrix, target: float) -> Matrix:
    """What brings products nearer to their target, where they are far from it."""
    back = np.clip(products, _LOWEST * target, _HIGHEST * target) - products
    return np.maximum(back, -_HIGHEST * target)


def _system(state: State, q: Matrix, whole: Vector, budget: Budget) -> Matrix:
    """K, with a row for each class of each column.

    E_i H_i E_i' = diag(r + Q e_y) - e_y r' - r e_y' - (Q e_y - r)(Q e_y - r)' / whole, where r holds q_i in
    the places of the other classes, and Q is their sum.
    """
    classes, columns = state.rows.classes, state.X.shape[1]
    first, second = np.triu_indices(classes)
    left, right = np.triu_indices(columns)
    sums = np.zeros((len(first), len(left)))
    at_once = max(1, _VALUES_AT_ONCE // (len(first) + len(left)))
    for begin in range(0, len(q), at_once):
        end_if_stopped(budget)
        part = slice(begin, begin + at_once)
        X, apart = state.X[part], state.of_classes(q, part)
        products = apart[:, first] * apart[:, second]
        products /= -whole[part, np.newaxis]
        others, is_own = np.maximum(-apart, 0.0), apart > 0.0
        products -= np.where(is_own[:, first], others[:, second], 0.0)
        products -= np.where(is_own[:, second], others[:, first], 0.0)
        products[:, first == second] += np.abs(apart)
        sums += products.T @ (X[:, left] * X[:, right])
    K = np.zeros((columns, classes, columns, classes))
    K[left[np.newaxis], first[:, np.newaxis], right[np.newaxis], second[:, np.newaxis]] = sums
    K[right[np.newaxis], first[:, np.newaxis], left[np.newaxis], second[:, np.newaxis]] = sums
    K[left[np.newaxis], second[:, np.newaxis], right[np.newaxis], first[:, np.newaxis]] = sums
    K[right[np.newaxis], second[:, np.newaxis], left[np.newaxis], first[:, np.newaxis]] = sums
    system = K.reshape(columns * classes, columns * classes)
    system[np.diag_indices_from(system)] += 1.0
    return system
