# SPDX-License-Identifier: BSD-3-Clause
"""One problem at many values of C, each solved from its neighbour and each certified.

    1  for C in ascending order:
    2      (w, alpha) = the last solution;      t = the multiple of alpha that is worth most at this C
    3      if the gap between w and t alpha is within tol, that is the answer
    4      solve from (w, t alpha)

Lines 2 and 3 need no pass over the data: the margins of w are known, sum_i t alpha_i y_i x_i is t times
what is known, and any multiple of a balanced alpha is balanced. Where alpha hardly depends on C any more
(separable data), or w (data that overlap, C large), they are all there is to do.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.certificate import Certificate
from maxmargin.choose import find_solver
from maxmargin.core import Budget, default_threads
from maxmargin.loop import Callback, Progress, _check_arguments, solve
from maxmargin.model import Model, Status, Trace
from maxmargin.problem import Intercept, Problem
from maxmargin.solution import Solution
from maxmargin.solvers import AnySolver
from maxmargin.types import Vector


@dataclass(frozen=True, eq=False)
class Path(Sequence[Model]):
    """The models of ``path``, in the order in which the values of C were given."""

    C: Vector
    """The values of C."""
    models: tuple[Model, ...]
    seconds: float
    """Of the whole path."""

    @property
    def primal(self) -> Vector:
        """The objective at each C."""
        return np.array([model.certificate.primal for model in self.models])

    @property
    def dual(self) -> Vector:
        """The lower bound on it at each C."""
        return np.array([model.certificate.dual for model in self.models])

    @property
    def gaps(self) -> Vector:
        """The relative gap at each C."""
        return np.array([model.certificate.relative_gap for model in self.models])

    @property
    def steps(self) -> Vector:
        """The steps taken at each C."""
        return np.array([model.steps for model in self.models], np.float64)

    @property
    def certified(self) -> bool:
        """Whether every model is within tol."""
        return all(model.status.certified for model in self.models)

    @overload
    def __getitem__(self, index: int) -> Model: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Model]: ...
    def __getitem__(self, index: int | slice) -> Model | Sequence[Model]:
        return self.models[index]

    def __len__(self) -> int:
        return len(self.models)

    def __str__(self) -> str:
        lines = ["         C         primal           dual  relative gap  steps"]
        for C, model in zip(self.C, self.models, strict=True):
            proof = model.certificate
            values = f"{C:10.4g} {proof.primal:14.8g} {proof.dual:14.8g}"
            lines.append(f"{values} {proof.relative_gap:13.1e} {model.steps:6d}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"Path({len(self)} values of C, largest relative gap {self.gaps.max():.1e})"


def path(
    problem: Problem,
    Cs: ArrayLike,
    *,
    solver: str | AnySolver = "auto",
    tol: float = 1e-4,
    max_steps: int | None = None,
    max_time: float | None = None,
    threads: int | None = None,
    callback: Callback | None = None,
    direction: Literal["up", "down"] = "up",
) -> Path:
    """Solve the problem at every C of ``Cs``, each to a relative gap of ``tol``, each with its proof.

    Parameters
    ----------
    problem : Problem
        Its costs count as weights: C_i = C cost_i. So build it with C = 1, the default.
    Cs : array
        Values of C, in any order; the models come back in the same.
    solver : str or Solver
        For all of them; "auto" chooses for the largest C.
    tol : float
        Relative gap ``(primal - dual) / |primal|`` to reach at every C.
    max_steps : int, optional
        Steps of the solver at one C.
    max_time : float, optional
        Seconds for the whole path.
    threads : int, optional
        At most this many; by default OMP_NUM_THREADS or all the processor's cores.
    callback : callable, optional
        Called with a ``Progress`` as by ``solve``; its ``label`` is the C. A true answer ends the path.
    direction : "up" or "down"
        From the smallest C to the largest, which is the cheaper way on most data, or back.

    Where the path ends early, by max_time, Ctrl-C or the callback, the values of C that are left answer
    with what they would have started from: that is certified too, and its gap says how far it may be off.
    """
    started = time.perf_counter()
    _check_arguments(tol, max_steps, max_time, None, threads)
    values = _checked(Cs)
    if direction not in ("up", "down"):
        raise ValueError(f"direction must be 'up' or 'down'. Got {direction!r} instead.")
    configured, reason = find_solver(solver, problem.with_costs_times(values.max()), tol)
    budget = Budget(float("inf") if max_time is None else max_time, threads or default_threads())
    teller = _Teller(callback)
    models: dict[int, Model] = {}
    last: tuple[float, Certificate] | None = None
    end: Status | None = None
    order = np.argsort(values, kind="stable")
    for k in order if direction == "up" else order[::-1]:
        C = float(values[k])
        here = problem.with_costs_times(C)
        known = None
        if last is not None:
            try:
                known = carried_over(last[1], here, C / last[0])
            except KeyboardInterrupt:
                end = Status.INTERRUPTED
                known = carried_over(last[1], here, C / last[0])
        if end is not None and known is not None:
            status = Status.within_tol(known) if known.relative_gap <= tol else end
            model = Model(known, Trace(), status, tol, 0, reason, {})
        else:
            model = solve(
                here,
                configured,
                tol=tol,
                max_steps=max_steps,
                start=None if known is None else start_of(known),
                known=known,
                callback=teller.at(C),
                budget=budget,
            )
            model = replace(model, solver=model.story or reason)
            if teller.stopped:
                end = Status.STOPPED
            elif budget.spent:
                end = Status.INTERRUPTED if budget.stopped else Status.TIME_SPENT
        models[int(k)] = model
        last = C, model.certificate
    return Path(values, tuple(models[k] for k in range(len(values))), time.perf_counter() - started)


def _checked(Cs: ArrayLike) -> Vector:
    values = np.array(Cs, dtype=np.float64)
    if values.ndim != 1 or not len(values):
        raise ValueError(f"Cs must be a list of values of C. Got an array of shape {values.shape} instead.")
    wrong = values[~(np.isfinite(values) & (values > 0))]
    if len(wrong):
        raise ValueError(f"Every C must be a finite number above 0. Got {wrong[0]} instead.")
    return values


class _Teller:
    """Tells a callback the C, and remembers whether it wanted to stop: a certified model does not say."""

    def __init__(self, callback: Callback | None) -> None:
        self.callback = callback
        self.stopped = False

    def at(self, C: float) -> Callback | None:
        callback = self.callback
        if callback is None:
            return None

        def tell(progress: Progress) -> bool:
            self.stopped |= bool(callback(replace(progress, label=C)))
            return self.stopped

        return tell


def start_of(known: Certificate) -> Solution:
    """Its points, with the margins that it knows."""
    return Solution(w=known.w, b=known.b, alpha=known.alpha, margins=known.margins)


def carried_over(certificate: Certificate, problem: Problem, factor: float) -> Certificate:
    """What a certificate proves of the same problem with all costs times ``factor``: without any pass.

    The point w stays, and so does b unless it is regularised. Of the multiples of alpha that are inside
    the box, the one is taken that is worth most.
    """
    w, b, margins = certificate.w, certificate.b, certificate.margins
    if problem.intercept is Intercept.REGULARISED:
        scores = problem.y * margins - b
        b = problem.best_intercept(scores)
        margins = problem.y * (scores + b)
    primal = problem.regulariser(w, b) + problem.loss_sum(margins)
    alpha, w_of_alpha = certificate.alpha, certificate.w_of_alpha
    multiple = factor
    if problem.loss.name in ("hinge", "squared_hinge"):
        # D(t alpha) = t linear - t^2 quadratic
        linear = problem.linear_gain(alpha)
        quadratic = linear - problem.dual_of(alpha, w_of_alpha)
        room = np.divide(problem.upper, alpha, out=np.full(len(alpha), np.inf), where=alpha > 0)
        multiple = min(float(room.min()), max(0.0, 0.5 * linear / quadratic) if quadratic > 0 else factor)
    alpha = np.minimum(multiple * alpha, problem.upper)  # beyond it by rounding at most
    w_of_alpha = multiple * w_of_alpha
    dual = min(problem.dual_of(alpha, w_of_alpha), primal)
    return Certificate(problem, w, b, primal, alpha, dual, certificate.alpha_from, margins, w_of_alpha)
