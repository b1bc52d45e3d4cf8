# SPDX-License-Identifier: BSD-3-Clause
"""The problems with a nu behind a model file: what nu leaves open, by the file or from its points.

Our own files say the costs of each problem, what its multipliers add up to, and the shift of its targets.
The text of LIBSVM says none of them. In regression and for one class, costs are C and 1. Classes are told
apart in units of rho, so that the shift is -1, and multipliers add up to nu n cost: that tells the cost.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from maxmargin.files import StoredModel
    from maxmargin.problem import Problem
    from maxmargin.reductions.class_problems import ClassProblems
    from maxmargin.types import Vector

_ROUNDING = 1e-12
"""How far, relatively, a file's total may be from nu times the costs: a sum in another order."""


class OtherShares(Exception):
    """A file whose numbers are not those of its nu; the message says which."""


def set_scales(model: StoredModel, problems: ClassProblems) -> None:
    """Give the problems of a classifier with a nu their costs."""
    if problems.nu is None:
        return
    for k in range(len(problems)):
        if model.shares is not None:
            problems.scales[k] = model.shares[k].cost
            continue
        signed = model.coefficients_of(k)  # type: ignore[attr-defined]
        weights = float(problems.part(k).weights.sum())
        cost = float(abs(signed).sum()) / (problems.nu * weights)
        if not cost > 0.0:
            raise OtherShares("the model has no support vectors, so its rho is not known")
        problems.scales[k] = cost


def with_share(model: StoredModel, k: int, problem: Problem, w: Vector, b: float) -> tuple[Problem, float]:
    """The problem with the file's total, and the shift of the file's point."""
    if problem.total is None:
        return problem, 0.0
    if model.shares is None:
        if model.is_one_class:
            return problem, float(model.intercept[0])
        return problem, -1.0 if model.has_classes else best_shift(problem, w, b)
    share = model.shares[k]
    if not abs(share.total - problem.total) <= _ROUNDING * problem.total:
        raise OtherShares(
            f"the file's multipliers add up to {share.total:.10g}, and with its nu they would have to add "
            f"up to {problem.total:.10g}"
        )
    from maxmargin.problem.problem import checked_total

    return replace(problem, total=checked_total(problem, share.total)), share.shift


def best_shift(problem: Problem, w: Vector, b: float) -> float:
    """The shift that is best for a point: below it lies as much cost as the multipliers add up to."""
    import numpy as np

    assert problem.total is not None
    lacking = 1.0 - problem.margins(w, b)
    order = np.argsort(-lacking)
    place = int(np.searchsorted(np.cumsum(problem.costs[order]), problem.total))
    return float(lacking[order[min(place, len(order) - 1)]])
