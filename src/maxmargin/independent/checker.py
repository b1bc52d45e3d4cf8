# SPDX-License-Identifier: BSD-3-Clause
"""The verdict on a model file and a data file, both values recomputed in exact arithmetic."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

from maxmargin.independent.arithmetic import Vector
from maxmargin.independent.places import Place, wrong_place
from maxmargin.independent.readers import (
    Data,
    Model,
    Unreadable,
    class_of,
    label_text,
    read_data,
    read_model,
)
from maxmargin.independent.rows import KernelRows, NotAKernel, PlainRows, Rows, refuse_unproven
from maxmargin.independent.values import (
    LOSSES,
    ExactProblem,
    Proof,
    hard_margin_lower_bound,
    hard_margin_primal,
    relative_gap,
)


@dataclass(frozen=True)
class Part:
    """One of the problems that a model answers, with its answer and its claims."""

    title: str
    """Which classes it tells apart; empty where there are only two."""
    problem: ExactProblem
    w: Vector
    b: Fraction
    alpha: list[Fraction]
    claimed_primal: float
    claimed_dual: float
    hard: bool
    place: Place | None = None
    """Where the file says that the best point is."""


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
    model_path: Path, data_path: Path, *, label: str | None = None, zero_based: bool = False
) -> Verdict:
    """Judge a model by its own points; an ``Unreadable`` says why that is not possible."""
    model = read_model(model_path)
    described = model.description
    encoding = described.get("encoding")
    data = read_data(data_path, label=label, zero_based=zero_based, encoding=encoding)
    verdict = Verdict(model_path, data_path, _in_words(described))
    _refuse_unknown(described)
    try:
        if "kernel" in described:
            refuse_unproven(described["kernel"])
        parts = list(_parts(model, data))
    except (NotAKernel, _OtherData) as error:
        verdict.refusals.append(str(error))
        return verdict
    certified = described["status"] == "CERTIFIED"
    tol = Fraction(described["tol"]) if certified else None
    verdict.findings.extend(judge(part, tol) for part in parts)
    return verdict


def judge(part: Part, tol: Fraction | None) -> Finding:
    """Recompute both values of a problem; with ``tol``, the exact gap has to be within it."""
    problem = part.problem
    proof = Proof(problem, part.w, part.b, part.alpha)
    low: Fraction | None
    if part.hard:
        value = hard_margin_primal(problem, part.w, part.b)
        low, upper = (None, None) if value is None else value
        bound = hard_margin_lower_bound(problem, part.alpha)
    else:
        low, upper = proof.primal
        bound = proof.lower_bound
    finding = Finding(part.title, part.claimed_primal, part.claimed_dual, upper, bound, [])
    if low is None:
        if math.isfinite(part.claimed_primal):
            finding.reasons.append("the hyperplane does not separate the rows")
    elif not _at_least(part.claimed_primal, low):
        text = f"the objective is {_shown(low, up=False)}, above the claimed {part.claimed_primal!r}"
        finding.reasons.append(text)
    if bound is not None and not _at_least(-part.claimed_dual, -bound):
        text = f"the multipliers prove {_shown(bound, up=True)}, below the claimed {part.claimed_dual!r}"
        finding.reasons.append(text)
    if tol is not None and (finding.gap is None or finding.gap > tol):
        shown = _shown(finding.gap, up=True, digits=3)
        finding.reasons.append(f"the exact relative gap is {shown}, and {float(tol):g} is claimed")
    if part.place is not None and not part.hard:  # the places of hard margins are not looked into
        finding.reasons.extend(wrong_place(proof, part.place))
    return finding


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


# ---- the problems of a model --------------------------------------------------------------------------


class _OtherData(Exception):
    """Data that the model cannot be about."""


def _in_words(described: Mapping[str, Any]) -> str:
    stated = described["problem"]
    loss = "hard margin" if stated["C"] == "inf" else f"{stated['loss']} loss, C = {stated['C']!r}"
    kernel = f", {described['kernel']['kernel']} kernel" if "kernel" in described else ""
    kernel += ", l1 penalty" if stated["penalty"] == "l1" else ""
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
    known = stated["penalty"] in ("l2", "l1") and stated["loss"] in LOSSES
    if stated["penalty"] == "l1":  # with which nothing bounds how far the best model is
        known = known and stated["C"] != "inf" and "kernel" not in described
        known = known and described.get("optimum") is None
    if not known or stated["formulation"] != "separate":
        raise Unreadable("The model minimises another problem than the one whose dual is known here.")


def _parts(model: Model, data: Data) -> Iterator[Part]:
    described = model.description
    stated, classes = described["problem"], [label_text(value) for value in described["classes"]["values"]]
    codes = [class_of(label, classes) for label in data.labels]
    if -1 in codes:
        raise _OtherData(
            f"the data have a label that the model does not know: {data.labels[codes.index(-1)]}"
        )
    if described["rows"] != len(codes):
        raise _OtherData(
            f"the data have {len(codes)} rows, and the model was trained on {described['rows']}"
        )
    if stated["sample_weights"]:
        raise _OtherData("the model was trained with sample weights, which are not in its file")
    vectors = _aligned(data, described, model)
    with_kernel = "kernel" in described
    sides = _sides(len(classes), described["decision"])
    factors = _factors(stated["class_weight"], classes, codes)
    hard, places = stated["C"] == "inf", described.get("optimum")
    begin = 0
    for k, (first, second) in enumerate(sides):
        members = list(range(len(codes)))
        if len(sides) > 1 and second is not None:
            members = [i for side in (first, second) for i in members if codes[i] == side]
        own = [factors[codes[i]] for i in members]
        if second is None and not with_kernel:  # of linear problems, the rest has the factor 1
            own = [factor if codes[i] == first else 1.0 for i, factor in zip(members, own, strict=True)]
        rows: Rows = PlainRows([vectors[i] for i in members])
        if with_kernel:
            rows = KernelRows(rows.vectors, described["kernel"])
            w = _coefficients(model, k, (first, second), members, vectors)
            alpha = model.numbers("alpha")[begin : begin + len(members)]
            begin += len(members)
        else:
            w, alpha = Vector.of(model.lines("coef")[k]), model.lines("alpha")[k]
        problem = ExactProblem(
            rows,
            [1 if codes[i] == first else -1 for i in members],
            # C_i is the float64 product: that is what was minimised.
            [Fraction(1.0 * factor if hard else stated["C"] * factor) for factor in own],
            stated["loss"],
            stated["intercept"],
            Fraction(stated["intercept_scaling"]),
            penalty=stated["penalty"],
        )
        claim = described["claims"][k]
        yield Part(
            _title(classes, first, second),
            problem,
            w,
            Fraction(model.numbers("intercept")[k]),
            [Fraction(a) for a in alpha],
            float(claim["primal"]),
            float(claim["dual"]),
            hard,
            None if places is None else Place(**{name: float(end) for name, end in places[k].items()}),
        )


def _aligned(data: Data, described: Mapping[str, Any], model: Model) -> list[Vector]:
    """The rows with their columns in the model's order."""
    names = described["feature_names"]
    columns = described["vectors"]["columns"] if "kernel" in described else len(model.lines("coef")[0])
    if data.names is None or names is None or data.names == names:
        if data.columns > columns or (data.names is not None and data.columns != columns):
            raise _OtherData(f"the data have {data.columns} columns, and the model {columns}")
        return [Vector(row) for row in data.rows]
    if missing := [name for name in names if name not in data.names]:
        raise _OtherData(f"the data lack the column {missing[0]!r}")
    places = {data.names.index(name): k for k, name in enumerate(names)}
    return [Vector({places[c]: value for c, value in row.items() if c in places}) for row in data.rows]


def _sides(classes: int, decision: str) -> list[tuple[int, int | None]]:
    """For each problem the class with label 1 and the one with label -1; None: all the others."""
    if classes == 2:
        return [(1, 0)]
    if decision == "one_vs_one":
        return list(combinations(range(classes), 2))
    return [(k, None) for k in range(classes)]


def _title(classes: list[str], first: int, second: int | None) -> str:
    if len(classes) == 2:
        return ""
    return f"{classes[first]} against {'the rest' if second is None else classes[second]}"


def _factors(class_weight: Any, classes: list[str], codes: list[int]) -> list[float]:
    """The factor on C of each class, in float64."""
    if class_weight is None:
        return [1.0] * len(classes)
    if class_weight == "balanced":
        return [float(len(codes)) / (len(classes) * float(codes.count(k))) for k in range(len(classes))]
    named = dict(zip(map(label_text, class_weight["labels"]), class_weight["factors"], strict=True))
    return [float(named.get(label, 1.0)) for label in classes]


def _coefficients(
    model: Model, k: int, sides: tuple[int, int | None], members: list[int], vectors: list[Vector]
) -> Vector:
    """W of a problem with a kernel, held by the coefficients of its rows.

    The support vectors have to be the rows that the file says they are: w is made of the vectors, and the
    proof is about the rows. Of pairs (i, j), a vector of class i has its coefficient in line j - 1 of the
    table, and one of class j in line i.
    """
    described = model.description
    table, support, stored = model.lines("coefficients"), model.numbers("support"), model.vectors()
    owners = [owner for owner, count in enumerate(described["counts"]) for _ in range(count)]
    place = {row: position for position, row in enumerate(members)}
    pairs = len(described["classes"]["values"]) > 2 and described["decision"] == "one_vs_one"
    first, second = sides
    w = {}
    for column, (row, owner) in enumerate(zip(support, owners, strict=True)):
        line = k
        if pairs:
            if owner not in sides:
                continue
            line = (second or 0) - 1 if owner == first else first
        if not 0 <= row < len(vectors) or stored[column] != vectors[row]:
            raise _OtherData(f"the support vector {column} of the model is not row {row} of the data")
        if coefficient := table[line][column]:
            if row not in place:
                raise _OtherData(
                    f"the support vector {column} of the model is of another class in the data"
                )
            w[place[row]] = coefficient
    return Vector(w)
