# SPDX-License-Identifier: BSD-3-Clause
"""The problems behind a model file, rebuilt from the data, and what the referee finds them worth.

Nothing in either file is trusted: the values that a model claims are only compared with those that are
computed here from its points (w, b, alpha) and the data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from maxmargin.proof.of_shares import with_share

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from maxmargin.files import SavedModel, StoredModel
    from maxmargin.files.models.saved import Claim
    from maxmargin.problem import Problem
    from maxmargin.problem.rows import Rows
    from maxmargin.proof.certificate import Certificate
    from maxmargin.proof.sure import Neighbourhood
    from maxmargin.reductions.class_problems import ClassProblems
    from maxmargin.solving.loop import Progress
    from maxmargin.types import Vector

ROUNDING = 1e-9
"""How far a sum of the same numbers in another order may be from what is claimed, relatively."""


@dataclass(frozen=True, eq=False)
class Part:
    """One of the problems that a model consists of, with the file's answer to it."""

    name: str
    """Which classes it tells apart; empty if there are only two."""
    problem: Problem
    w: Vector
    b: float
    claim: Claim | None
    alpha: Vector | None
    alpha_from: str = ""
    hard: bool = False
    """Whether it is a hard margin, C = inf."""
    place: Neighbourhood | None = None
    """Where the file says that the best point is."""
    shift: float = 0.0
    """What the file's point lowers the targets by, where the problem seeks that."""
    data: Any = None
    """The rows themselves, of one class without a kernel."""
    width: float = 0.0
    """Of a ranking with the hinge: over how much of the margin the multipliers of pairs rise."""


@dataclass(frozen=True)
class Finding:
    """What the referee found for one part."""

    name: str
    primal: float
    """The objective at the file's own w and b."""
    dual: float
    """The best lower bound on the optimum."""
    best_known: float
    """The best objective of any point seen: the optimum is not above it."""
    bound_from: str
    claim: Claim | None = None
    rounding: float = ROUNDING
    """How far recomputed values may be from those claimed, relatively."""
    lost: float = 0.0
    """And how far besides: what rounding takes from terms that cancel."""
    reasons: list[str] = field(default_factory=list[str])
    """Why what is claimed does not hold; empty if it does."""

    @property
    def relative_gap(self) -> float:
        """``(primal - dual) / |primal|``, of the file's own point."""
        from maxmargin.core import relative_gap

        return relative_gap(self.primal, self.dual)

    @property
    def at_most_above(self) -> float:
        """The objective is not further above the optimum than this share of the optimum."""
        return _above(self.primal, self.dual)

    @property
    def at_least_above(self) -> float:
        """Nor nearer than this."""
        return _above(self.primal, self.best_known)


def _above(primal: float, reference: float) -> float:
    excess = max(primal - reference, 0.0)
    if excess == 0.0:
        return 0.0
    return excess / abs(reference) if reference != 0.0 else math.inf


def parts(
    model: SavedModel, X: Any, codes: NDArray[Any], alphas: Alphas, *, C: float, class_weight: Any
) -> Iterator[Part]:
    """The problems of a linear model on these data, one at a time; ``codes`` are places in its classes."""
    import numpy as np

    from maxmargin.reductions.class_problems import ClassProblems

    rows = _rows_of(model, X)
    if model.is_joint:
        yield _joint_part(model, rows, codes, alphas, statement(model, C, class_weight))
        return
    problems = ClassProblems(codes=codes, rows=rows, **statement(model, C, class_weight))
    for k in range(len(problems)):
        w = np.zeros(rows.columns)  # LIBSVM's files end with the last column that a support vector has
        w[: model.coef.shape[1]] = model.coef[k]
        yield part_of(model, problems, k, w, alphas)


def _joint_part(
    model: SavedModel, rows: Rows, codes: NDArray[Any], alphas: Alphas, stated: dict[str, Any]
) -> Part:
    """The one problem of all classes."""
    import numpy as np

    from maxmargin.reductions.joint_classes import JointClasses, joined

    problems = JointClasses(codes=codes, rows=rows, **stated)
    coef = np.zeros((len(model.coef), rows.columns))
    coef[:, : model.coef.shape[1]] = model.coef
    w = joined(coef, model.intercept, problems.constant)
    return replace(part_of(model, problems, 0, w, alphas), b=0.0)


@dataclass(frozen=True)
class Alphas:
    """The multipliers that a file has or leads to."""

    each: list[Any]
    """The multipliers of each problem; None where there are none."""
    origin: str
    of_all_rows: bool
    """Whether each has a number for every row of the data, and not only for those of its problem."""


def statement(model: StoredModel, C: float, class_weight: Any) -> dict[str, Any]:
    """What ``ClassProblems`` have to be told of a model, but for the data; labels are compared as text."""
    import numpy as np

    from maxmargin.files.data.labels import label_text

    if isinstance(class_weight, dict):
        class_weight = {label_text(label): float(factor) for label, factor in class_weight.items()}
    return {
        "labels": np.array([label_text(label) for label in model.classes]),
        "kind": model.kind,
        "C": C,
        "loss": model.problem["loss"],
        "intercept": model.problem["intercept"],
        "intercept_scaling": model.problem.get("intercept_scaling") or 1.0,
        "class_weight": class_weight,
        "penalty": model.problem.get("penalty", "l2"),
        "nu": model.problem.get("nu"),
    }


def part_of(model: StoredModel, problems: ClassProblems, k: int, w: Vector, alphas: Alphas) -> Part:
    """One of the problems with the file's answer to it, whose w is given."""
    import numpy as np

    alpha, members, problem = alphas.each[k], problems.members(k), problems.problem(k)
    if alpha is not None:
        alpha = alpha[members] if alphas.of_all_rows and members is not None else alpha
        alpha = np.concatenate([alpha, np.zeros(problem.rows.count - len(alpha))])  # rows of no cost
    b = float(model.intercept[k])
    problem, shift = with_share(model, k, problem, w, b)
    return Part(
        name=problems.title(k),
        problem=problem,
        w=w,
        b=b,
        shift=shift,
        claim=None if model.claims is None else model.claims[k],
        alpha=alpha,
        alpha_from=alphas.origin,
        hard=problems.hard,
        place=None if model.optimum is None else model.optimum[k],
    )


def regression_part(
    model: StoredModel, X: Any, values: NDArray[Any], *, C: float, rows: NDArray[Any] | None
) -> Part:
    """The problem of a regressor on these data, with its numbers; ``rows`` are its support vectors."""
    import numpy as np

    from maxmargin.files import SavedKernelModel
    from maxmargin.kernels.kernel_rows import KernelRows
    from maxmargin.problem import Intercept
    from maxmargin.problem.rows import RowSpace
    from maxmargin.reductions.regression import Regression

    alpha, origin = None, ""
    if isinstance(model, SavedKernelModel):
        plain = rows_of(X, keep_zeros=model.vectors is None)
        examples: RowSpace = KernelRows(plain, model.kernel)
        w = np.zeros(examples.count)
        w[_known(rows)] = model.coefficients[0]
        alpha, origin = np.maximum(np.column_stack([w, -w]), 0.0).ravel(), "the file's support vectors"
    else:
        examples = rows_of(X)
        w = np.array(model.coef[0])  # type: ignore[attr-defined]
    if model.certificates is not None:
        alpha, origin = model.certificates[0].alpha, "the file's multipliers"
    stated = model.problem
    form = Intercept(stated["intercept"]), stated["intercept_scaling"]
    regression = Regression(
        examples, values, C, stated["epsilon"] or 0.0, stated["loss"], *form, nu=stated.get("nu")
    )
    b = float(model.intercept[0])
    problem, shift = with_share(model, 0, regression.problem(), w, b)
    return Part(
        name="",
        problem=problem,
        w=w,
        b=b,
        shift=shift,
        claim=None if model.claims is None else model.claims[0],
        alpha=alpha,
        alpha_from=origin,
        place=None if model.optimum is None else model.optimum[0],
    )


def one_class_part(model: StoredModel, X: Any, *, rows: NDArray[Any] | None) -> Part:
    """The problem of one class on these data; ``rows`` are its support vectors."""
    import numpy as np

    from maxmargin.files import SavedKernelModel
    from maxmargin.kernels.kernel_rows import KernelRows
    from maxmargin.problem.rows import RowSpace
    from maxmargin.problem.shares import one_class_problem

    alpha, origin = None, ""
    data, nu = None, model.problem["nu"]
    if isinstance(model, SavedKernelModel):
        examples: RowSpace = KernelRows(rows_of(X, keep_zeros=model.vectors is None), model.kernel)
        w = np.zeros(examples.count)
        w[_known(rows)] = model.coefficients[0]
        alpha, origin = np.maximum(w, 0.0), "the file's support vectors"
    else:
        examples, data = rows_of(X), X
        w = np.array(model.coef[0])  # type: ignore[attr-defined]
    if model.certificates is not None:
        alpha, origin = model.certificates[0].alpha, "the file's multipliers"
    problem, shift = with_share(model, 0, one_class_problem(examples, nu), w, 0.0)
    return Part(
        name="",
        problem=problem,
        w=w,
        b=0.0,
        shift=shift,
        data=data,
        claim=None if model.claims is None else model.claims[0],
        alpha=alpha,
        alpha_from=origin,
        place=None if model.optimum is None else model.optimum[0],
    )


def _known(rows: NDArray[Any] | None) -> NDArray[Any]:
    if rows is None:
        raise ValueError(
            "The support vectors of the model must be rows of the data. Got data without some of them. "
            "Give the data of the training."
        )
    return rows


def ranking_part(
    model: StoredModel, X: Any, relevance: NDArray[Any], query: NDArray[Any] | None, *, C: float
) -> Part:
    """The problem of a ranking on these data; its multipliers follow from w and the file's width."""
    import numpy as np

    from maxmargin.problem.ranking import ranking_problem

    return Part(
        name="",
        problem=ranking_problem(rows_of(X), relevance, C, query=query, loss=model.problem["loss"]),
        w=np.array(model.coef[0]),  # type: ignore[attr-defined]
        b=0.0,
        claim=None if model.claims is None else model.claims[0],
        alpha=None,
        alpha_from="the margins of pairs",
        place=None if model.optimum is None else model.optimum[0],
        width=model.problem["width"],
    )


def _rows_of(model: SavedModel, X: Any) -> Rows:
    """The rows of the data as the model weighs them."""
    from maxmargin.features.lazy import LazyMonomials

    return rows_of(X if model.expansion is None else LazyMonomials(X, model.expansion))


def rows_of(X: Any, *, keep_zeros: bool = False) -> Rows:
    """The rows of a matrix of finite values, or of its monomials.

    It does not wait for scikit-learn, which ``Rows`` would ask.
    """
    import numpy as np

    from maxmargin import Rows
    from maxmargin.features.lazy import LazyMonomials

    base = X.base if isinstance(X, LazyMonomials) else X
    if not np.isfinite(base.data if hasattr(base, "indptr") else base).all():
        raise ValueError(
            "The data must be finite. Got NaN or infinite values instead. Correct or remove them."
        )
    return Rows(X, check_finite=False, keep_zeros=keep_zeros)


def judge_proof(part: Part, tol: float | None) -> Finding:
    """Recompute both values from the file's points; with ``tol``, the gap has to be within it."""
    certificate, primal = _certified(part)
    finding = Finding(
        part.name,
        primal,
        certificate.dual,
        certificate.primal,
        part.alpha_from,
        part.claim,
        _rounding(part),
        _lost_in_sums(part),
    )
    finding.reasons.extend(_contradictions(finding))
    if tol is not None and not finding.relative_gap <= tol * (1 + ROUNDING) + ROUNDING**1.5:
        finding.reasons.append(
            f"the file claims a relative gap within {tol:g}, and it is {finding.relative_gap:.2e}"
        )
    if part.place is not None and part.claim is not None and not _is_place(part, certificate):
        finding.reasons.append("the best model is not shown to be as near as the file says")
    return finding


def _is_place(part: Part, certificate: Certificate) -> bool:
    """Whether the claims prove that the best point is where the file says it is."""
    import numpy as np

    from maxmargin.proof.ranking import RankingCertificate
    from maxmargin.proof.sure import Side, neighbourhood
    from maxmargin.tools.parameters import changed

    problem, claim, place = part.problem, part.claim, part.place
    assert claim is not None
    assert place is not None
    if isinstance(certificate, RankingCertificate):
        shown = replace(certificate, primal=claim.primal, dual=claim.dual).place
        return place.radius >= (1.0 - ROUNDING) * shown.radius and place[1:] == shown[1:]
    assert part.alpha is not None
    values: dict[str, Any] = {"primal": claim.primal, "dual": claim.dual, "alpha": part.alpha}
    values["margins"] = problem.margins(part.w, part.b, part.shift)
    values["shift"] = part.shift
    values["w_of_alpha"] = problem.rows.combine(part.alpha * problem.y)
    per_length, constant = problem.rows.score_error(part.w)
    side = Side(
        problem.y,
        problem.costs,
        problem.rows.lengths,
        problem.loss.name,
        problem.intercept,
        problem.intercept_scaling,
        per_length * problem.rows.lengths + constant,
        problem.rows.has_kernel,
        part.hard,
        problem.targets,
        problem.group,
        problem.total,
    )
    shown = neighbourhood(changed(certificate, w=part.w, b=part.b, **values), side)
    ends = np.abs([shown.low, shown.high])
    size = ROUNDING * (1.0 + float(ends.max(where=np.isfinite(ends), initial=0.0)))
    inside = place.low <= shown.low + size and place.high >= shown.high - size
    # Both radii allow for the rounding of w_of_alpha, which was summed up in another order for the file.
    off = 2.0 * problem.rows.combined_error(part.alpha)
    near = place.radius + off >= (1.0 - ROUNDING) * shown.radius
    return inside and near and place.scaling >= shown.scaling


def _certified(part: Part) -> tuple[Certificate, float]:
    """The referee's certificate, and the objective at the file's own w and b."""
    from maxmargin import Solution, certify
    from maxmargin.proof.hard_margin import certify_hard_margin, primal_at

    point = Solution(w=part.w, b=part.b, alpha=part.alpha, width=part.width)
    if part.hard:
        return certify_hard_margin(part.problem, point), primal_at(part.problem, part.w, part.b)
    certificate, value = certify(part.problem, point), part.problem.primal(part.w, part.b, part.shift)
    if certificate.b == part.b and getattr(certificate, "shift", 0.0) == part.shift:
        value = min(value, certificate.primal)  # of the same point, and where it pays in twofold precision
    return certificate, value


def _lost_in_sums(part: Part) -> float:
    """What rounding may take from the values of a problem with a nu, whose terms cancel.

    The term of the shift is negative, and may be far larger than the sum of all. Twice what the bounds on
    rounding of both values are: once for what is claimed, and once for what is recomputed.
    """
    problem = part.problem
    if problem.total is None:
        return 0.0
    margins = problem.margins(part.w, part.b, part.shift)
    upper = problem.primal_of(part.w, part.b, margins, shift=part.shift)
    plain = problem.plain_value(part.w, part.b, margins, part.shift)
    of_norm = problem.rows.squared_norm(part.w) - problem.rows.plain_squared_norm(part.w)
    lost = max(upper - plain, 0.0) + abs(of_norm)
    if part.alpha is not None:
        combined = problem.rows.combine(part.alpha * problem.y)
        lost += abs(problem.dual_size(part.alpha, combined) - problem.plain_dual_size(combined))
    return 2.0 * lost


def _rounding(part: Part) -> float:
    """How far values may be off; a hard margin by as much as its smallest margin is."""
    from maxmargin.proof.hard_margin import rounding

    return ROUNDING + (4.0 * rounding(part.problem, part.w, part.b) if part.hard else 0.0)


def _slack(finding: Finding, claim: Claim) -> float:
    return finding.rounding * min(abs(finding.primal), abs(claim.primal)) + finding.lost


def _contradictions(finding: Finding) -> Iterator[str]:
    claim = finding.claim
    if claim is None:
        return
    slack = _slack(finding, claim)
    if not finding.primal <= claim.primal + slack:
        yield (
            f"the objective at the file's w and b is {finding.primal:.10g}, which is "
            f"{finding.primal - claim.primal:.3g} above the claimed {claim.primal:.10g}"
        )
    if not finding.dual >= claim.dual - slack:
        yield (
            f"the dual value of the file's multipliers is {finding.dual:.10g}, which is "
            f"{claim.dual - finding.dual:.3g} below the claimed {claim.dual:.10g}"
        )


def _solver_of(part: Part) -> Callable[..., Any]:
    """What solves the problem of a part."""
    from maxmargin import solve, solve_hard_margin
    from maxmargin.reductions.one_class_on_columns import solve_one_class

    if part.data is not None:
        return partial(solve_one_class, X=part.data)
    return solve_hard_margin if part.hard else solve


def judge_alone(
    part: Part,
    tol: float,
    max_time: float,
    callback: Callable[[Progress], None] | None,
) -> Finding:
    """Bound how far the file's point can be from the optimum, without multipliers that one could trust.

    First by the multipliers that the file or its margins suggest, then by solving the problem here to a
    tenth of ``tol``, as long as ``max_time`` lasts.
    """
    from maxmargin import Solution

    certificate, primal = _certified(part)
    bound_from = part.alpha_from if part.alpha is not None else "the margins"
    if _above(primal, certificate.dual) > tol / 10:
        start = Solution(w=part.w, b=part.b, alpha=certificate.alpha, width=part.width)
        solved = _solver_of(part)(
            part.problem,
            tol=tol / 10,
            max_steps=10**9,
            max_time=max_time,
            start=start if part.data is None else replace(start, b=part.shift),
            callback=callback,
        )
        if solved.interrupted:
            raise KeyboardInterrupt
        if solved.certificate.dual > certificate.dual:
            bound_from = f"solving the problem here ({solved.solver.split(':')[0]})"
        best = solved.certificate
    else:
        best = certificate
    dual = max(certificate.dual, best.dual)
    best_known = min(certificate.primal, best.primal, primal)
    slack = _rounding(part), _lost_in_sums(part)
    finding = Finding(part.name, primal, dual, best_known, bound_from, part.claim, *slack)
    finding.reasons.extend(unconfirmed(finding, tol, max_time))
    return finding


def unconfirmed(finding: Finding, tol: float, max_time: float) -> Iterator[str]:
    """Why a model without multipliers is not shown to be what its file claims, or to be within tol."""
    claim = finding.claim
    slack = 0.0 if claim is None else _slack(finding, claim)
    if claim is not None and finding.primal > claim.primal + slack:
        yield (
            f"the objective at the file's w and b is {finding.primal:.10g}, which is "
            f"{finding.primal - claim.primal:.3g} above the claimed {claim.primal:.10g}"
        )
    if claim is not None and claim.dual > finding.best_known + slack:
        yield (
            f"the file claims that no objective is below {claim.dual:.10g}, and one of "
            f"{finding.best_known:.10g} was found"
        )
    if finding.relative_gap > tol:
        if finding.at_least_above > tol:
            yield f"the objective is at least {100 * finding.at_least_above:.3g} % above the optimum"
        else:
            yield (
                f"a relative gap of {tol:g} could not be shown within --max-time {max_time:g} s; what is "
                f"shown is {finding.relative_gap:.2e}"
            )
