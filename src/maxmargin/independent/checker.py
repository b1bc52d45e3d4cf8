# SPDX-License-Identifier: BSD-3-Clause
"""The verdict on a model file and a data file, both values recomputed in exact arithmetic."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from maxmargin.independent.arithmetic import Vector
from maxmargin.independent.parts import TUBE_LOSSES, OtherData, Part, parts_of
from maxmargin.independent.places import wrong_place
from maxmargin.independent.ranking import LOSSES as RANKING_LOSSES
from maxmargin.independent.ranking import ranking_of
from maxmargin.independent.readers import COMMAS, Data, Model, Sheet, Unreadable, read_data, read_model
from maxmargin.independent.rows import NotAKernel, refuse_unproven
from maxmargin.independent.values import (
    LOSSES,
    Proof,
    hard_margin_lower_bound,
    hard_margin_primal,
    relative_gap,
)


@dataclass(frozen=True)
class Finding:
    """What was found for one problem. None stands for an infinite value."""

    title: str
    claimed_primal: float
    claimed_dual: float
    primal: Fraction | None
    """The exact objective at the model's w and b, or a number hardly above it."""
    dual: Fraction | None
    """What the multipliers prove: no objective is below this."""
    reasons: list[str]
    """Why the claims do not hold; empty where they do."""

    @property
    def gap(self) -> Fraction | None:
        """The exact relative gap."""
        if self.primal is None or self.dual is None:
            return None
        return relative_gap(self.primal, self.dual)


@dataclass
class Verdict:
    """What is said about the two files."""

    model: Path
    data: Path
    problem: str = ""
    """What was minimised, in words."""
    findings: list[Finding] = field(default_factory=list[Finding])
    refusals: list[str] = field(default_factory=list[str])
    """Why nothing could be recomputed, or proves nothing."""

    @property
    def reasons(self) -> list[str]:
        """Why the claims do not hold."""
        titled = [(f"{each.title}: " if each.title else "", each.reasons) for each in self.findings]
        return self.refusals + [start + reason for start, reasons in titled for reason in reasons]

    @property
    def holds(self) -> bool:
        """Whether everything that the model claims is true."""
        return not self.reasons

    @property
    def lines(self) -> list[str]:
        """All of it in words."""
        lines = [f"{self.model}, {self.problem}; on {self.data}, in exact arithmetic."]
        for each in self.findings:
            lines.append(f"{each.title}:" if each.title else "The values:")
            lines.append(
                f"  primal  claimed {each.claimed_primal!r}, exactly {_shown(each.primal, up=True)}"
            )
            lines.append(f"  dual    claimed {each.claimed_dual!r}, exactly {_shown(each.dual, up=False)}")
            lines.append(f"  relative gap {_shown(each.gap, up=True, digits=3)}")
        verdict = "Holds: every claim is true." if self.holds else "Does not hold: "
        return [*lines, verdict + "; ".join(self.reasons) + ("" if self.holds else ".")]

    def as_json(self) -> dict[str, Any]:
        """All of it in plain values."""
        return {
            "model": str(self.model),
            "data": str(self.data),
            "independent": True,
            "holds": self.holds,
            "reasons": self.reasons,
            "problems": [
                {
                    "name": each.title or None,
                    "claimed": {"primal": each.claimed_primal, "dual": each.claimed_dual},
                    "primal": rounded(each.primal, up=True),
                    "dual": rounded(each.dual, up=False),
                    "relative_gap": rounded(each.gap, up=True),
                    "reasons": each.reasons,
                }
                for each in self.findings
            ],
        }


def check(
    model_path: Path,
    data_path: Path,
    *,
    label: str | None = None,
    zero_based: bool = False,
    sheet: Sheet = COMMAS,
    query: str | None = None,
) -> Verdict:
    """Judge a model by its own points; an ``Unreadable`` says why that is not possible."""
    model = read_model(model_path)
    described = model.description
    encoding = described.get("encoding")
    given: dict[str, Any] = {"label": label, "query": query, "encoding": encoding, "sheet": sheet}
    labelled = described["decision"] != "one_class"
    data = read_data(data_path, zero_based=zero_based, labelled=labelled, **given)
    verdict = Verdict(model_path, data_path, _in_words(described))
    _refuse_unknown(described)
    certified = described["status"] == "CERTIFIED"
    tol = Fraction(described["tol"]) if certified else None
    try:
        if described["decision"] == "ranking":
            verdict.findings.append(judge_ranking(model, data, tol))
            return verdict
        if "kernel" in described:
            refuse_unproven(described["kernel"])
        parts = list(parts_of(model, data))
    except (NotAKernel, OtherData) as error:
        verdict.refusals.append(str(error))
        return verdict
    verdict.findings.extend(judge(part, tol) for part in parts)
    return verdict


def judge(part: Part, tol: Fraction | None) -> Finding:
    """Recompute both values of a problem; with ``tol``, the exact gap has to be within it."""
    problem = part.problem
    proof = Proof(problem, part.w, part.b, part.alpha, part.shift)
    low: Fraction | None
    if part.hard:
        value = hard_margin_primal(problem, part.w, part.b)
        low, upper = (None, None) if value is None else value
        bound = hard_margin_lower_bound(problem, part.alpha)
    else:
        low, upper = proof.primal
        bound = proof.lower_bound
    finding = Finding(part.title, part.claimed_primal, part.claimed_dual, upper, bound, [])
    finding.reasons.extend(_contradictions(finding, low, tol))
    if part.place is not None and not part.hard:  # the places of hard margins are not looked into
        finding.reasons.extend(wrong_place(proof, part.place))
    return finding


def judge_ranking(model: Model, data: Data, tol: Fraction | None) -> Finding:
    """Recompute both values of a ranking from all its pairs; with ``tol``, the gap has to be within it."""
    ranking, described = ranking_of(model, data), model.description
    scores = [Fraction(score) for score in model.numbers("margins")]
    if len(scores) != len(data.rows):
        raise OtherData("the model does not have a score for each row")
    primal = ranking.primal(Vector.of(model.lines("coef")[0]))
    bound = ranking.lower_bound(scores, described["problem"]["width"])
    claim, places = described["claims"][0], described.get("optimum")
    finding = Finding("", float(claim["primal"]), float(claim["dual"]), primal, bound, [])
    finding.reasons.extend(_contradictions(finding, primal, tol))
    # The objective grows by half the squared distance from its best point, at least.
    if places is not None and not _at_least(float(places[0]["radius"]) ** 2, 2 * (primal - bound)):
        finding.reasons.append("the best model is not shown to be as near as the file says")
    return finding


def _contradictions(finding: Finding, low: Fraction | None, tol: Fraction | None) -> Iterator[str]:
    """Why the claims are not true; the exact objective is at least ``low``."""
    primal, dual, bound = finding.claimed_primal, finding.claimed_dual, finding.dual
    if low is None:
        if math.isfinite(primal):
            yield "the hyperplane does not separate the rows"
    elif not _at_least(primal, low):
        yield f"the objective is {_shown(low, up=False)}, above the claimed {primal!r}"
    if bound is not None and not _at_least(-dual, -bound):
        yield f"the multipliers prove {_shown(bound, up=True)}, below the claimed {dual!r}"
    if tol is not None and (finding.gap is None or finding.gap > tol):
        shown = _shown(finding.gap, up=True, digits=3)
        yield f"the exact relative gap is {shown}, and {float(tol):g} is claimed"


def _at_least(claimed: float, exact: Fraction) -> bool:
    if math.isfinite(claimed):
        return Fraction(claimed) >= exact
    return claimed == math.inf


def rounded(number: Fraction | None, *, up: bool) -> float:
    """The nearest float64 that is not below the number, or not above it; None is infinite."""
    if number is None:
        return math.inf
    nearest = float(number)
    if up and Fraction(nearest) < number:
        return math.nextafter(nearest, math.inf)
    if not up and Fraction(nearest) > number:
        return math.nextafter(nearest, -math.inf)
    return nearest


def _shown(number: Fraction | None, *, up: bool, digits: int = 17) -> str:
    return f"{rounded(number, up=up):.{digits}g}"


def _in_words(described: Mapping[str, Any]) -> str:
    stated = described["problem"]
    loss = "hard margin" if stated["C"] == "inf" else f"{stated['loss']} loss, C = {stated['C']!r}"
    kernel = f", {described['kernel']['kernel']} kernel" if "kernel" in described else ""
    kernel += ", l1 penalty" if stated["penalty"] == "l1" else ""
    if "nu" in stated:
        loss = (
            f"{loss}, nu = {stated['nu']!r}"
            if stated["C"] != 1.0
            else f"{stated['loss']} loss, nu = {stated['nu']!r}"
        )
    return f"{loss}, intercept {stated['intercept']}{kernel}"


def _refuse_unknown(described: Mapping[str, Any]) -> None:
    """Refuse what this checker does not know how to judge."""
    stated = described["problem"]
    if described.get("certificates") is None:
        raise Unreadable(
            "The model was saved without its proof. Use maxmargin certify without --independent, which "
            "looks for one."
        )
    if "preparation" in described:
        raise Unreadable(
            "The model has scalers or feature maps before it, which this checker does not know. Use "
            "maxmargin certify without --independent."
        )
    if "features" in described:
        raise Unreadable(
            "The model weighs features that are formed from the columns, which this checker does not know. "
            "Use maxmargin certify without --independent."
        )
    if described.get("kernel", {}).get("kernel") == "precomputed":
        raise Unreadable(
            "The kernel of the model is precomputed: its values are taken as they are given, and there is "
            "nothing to recompute them from. Use maxmargin certify without --independent."
        )
    others: dict[str, Any] = {"regression": TUBE_LOSSES, "ranking": RANKING_LOSSES}
    losses = others.get(described["decision"], LOSSES)
    if "nu" in stated:
        sought = described["decision"] == "regression" and stated["loss"] == "epsilon_insensitive"
        sought = sought and stated["epsilon"] == 0.0
        form = "none" if described["decision"] == "one_class" else "exact"
        if not (sought or stated["loss"] == "hinge") or stated["intercept"] != form or stated["C"] == "inf":
            raise Unreadable(
                "The model minimises another problem with a nu than those that are known here."
            )
    joint = stated["formulation"] == "crammer_singer" and stated["loss"] == "hinge"
    known = joint or (stated["formulation"] == "separate" and stated["loss"] in losses)
    if stated["penalty"] != "l2":  # with the l1 penalty nothing bounds how far the best model is
        known = known and stated["penalty"] == "l1" and stated["C"] != "inf" and "kernel" not in described
        known = known and described["decision"] not in others and not joint
        known = known and described.get("optimum") is None
    if not known:
        raise Unreadable("The model minimises another problem than those whose dual is known here.")
