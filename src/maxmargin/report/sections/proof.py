# SPDX-License-Identifier: BSD-3-Clause
"""The proof, recomputed: in words, in numbers and in pictures, and how somebody else can check it."""

from __future__ import annotations

from maxmargin.command_line.shared.verdict import Verdict
from maxmargin.proof.of_files import Finding
from maxmargin.report import pictures
from maxmargin.report.facts import Facts
from maxmargin.report.markup import (
    Markup,
    code,
    figure,
    heading,
    joined,
    listed,
    name,
    paragraph,
    side_by_side,
    table,
)

_MOST_REASONS = 10
"""Reasons that are listed, at most."""
_MOST_LINES = 6
"""Runs that are drawn, at most: as many as there are colours."""


def proof_section(found: Facts) -> list[Markup]:
    """What was recomputed, whether that is what the model claims, and how to check it."""
    verdict = found.verdict
    if verdict is None:
        return [paragraph(found.no_proof), *_how_to_check(found)]
    if verdict.worst is None:
        return [*_nothing(found, verdict), *_how_to_check(found)]
    ordered = sorted(verdict.findings, key=lambda finding: (not finding.reasons, -finding.relative_gap))
    drawn = ordered[: pictures.MOST_PROBLEMS]
    parts = [_in_words(verdict, verdict.worst)]
    if verdict.reasons:
        parts += [paragraph("It does not hold:"), listed(verdict.reasons[:_MOST_REASONS])]
    parts.append(_values(found, verdict.worst))
    caption = f"The gap between the two values, and the {found.asked:g} that was asked for (tol)."
    figures = [figure(pictures.gaps(drawn, found.asked, "gaps"), caption)]
    if len(ordered) > 1:
        figures.insert(0, _problems(drawn, len(ordered) - len(drawn)))
    parts.append(side_by_side(figures, "tables"))
    return parts + _how_to_check(found)


def _nothing(found: Facts, verdict: Verdict) -> list[Markup]:
    """Where the data are not those that the proof is about."""
    parts = [
        paragraph("Nothing could be recomputed on these data:"),
        listed(verdict.reasons[:_MOST_REASONS]),
    ]
    if found.model.claims is not None:
        gap = max(claim.relative_gap for claim in found.model.claims)
        words = f"The model claims a relative gap of {gap:.1e}. That is repeated here, and not checked"
        parts.append(paragraph(f"{words}: for that, make the report with the data of the training."))
    return parts


def _in_words(verdict: Verdict, worst: Finding) -> Markup:
    several = len(verdict.findings) > 1
    start = joined("In ", name(worst.name), ", the problem with the widest gap, the") if several else "The"
    return paragraph(
        start,
        f" objective of this model is {worst.primal:.8g}. No w and b can bring it below "
        f"{worst.dual:.8g}. So the model is within {max(worst.primal - worst.dual, 0.0):.3g} of the best "
        f"one that there is, a relative gap of {worst.relative_gap:.2e}.",
    )


def _values(found: Facts, worst: Finding) -> Markup:
    """Each number with its meaning; claimed and recomputed, where anything is claimed."""
    claim = worst.claim
    asked = "The training was asked for" if claim is not None else "To be shown was"
    meanings = (
        "The objective of this model, computed from its w and b and the data. The best model's is not "
        "above it.",
        "A bound that the objective of no model is below, by weak duality. It comes from "
        f"{worst.bound_from}.",
        "Primal less dual: this model is at most so far above the best one.",
        f"The gap as a share of the primal value. {asked} {found.asked:g}, the tol.",
    )
    first = ("primal value", "dual value", "gap", "relative gap")
    rows = [[each] for each in first]
    for values in (claim, worst):
        if values is not None:
            gap = max(values.primal - values.dual, 0.0)
            texts = (
                f"{values.primal:.10g}",
                f"{values.dual:.10g}",
                f"{gap:.3e}",
                f"{values.relative_gap:.3e}",
            )
            for row, text in zip(rows, texts, strict=True):
                row.append(text)
    if claim is None:
        return table("The proof in numbers", ("value", "computed"), rows, meanings=meanings)
    caption = "The proof in numbers: what the model claims, and what was recomputed for this page"
    return table(caption, ("value", "claimed", "recomputed"), rows, meanings=meanings)


def _problems(drawn: list[Finding], left_out: int) -> Markup:
    more = f"; {left_out} more have narrower ones" if left_out else ""
    return table(
        f"Each problem, the widest gap first{more}",
        ("problem", "primal", "dual", "relative gap", "claimed gap"),
        (
            (
                name(each.name),
                f"{each.primal:.8g}",
                f"{each.dual:.8g}",
                f"{each.relative_gap:.1e}",
                "–" if each.claim is None else f"{each.claim.relative_gap:.1e}",
            )
            for each in drawn
        ),
    )


def _how_to_check(found: Facts) -> list[Markup]:
    parts = [heading("How to check it")]
    if not found.commands:
        return [
            *parts,
            paragraph(
                "The model was in memory. Saved in Python, it can be checked from two files by anybody:"
            ),
            code('model.save("model.mm", data=(X, y))', "maxmargin certify model.mm DATA"),
        ]
    parts.append(
        paragraph(
            "With the two files and maxmargin, this command recomputes both values from w, b, the "
            "multipliers and the data, and trusts neither file. It ends with exit code 0 if they hold, "
            "and says what does not."
        )
    )
    parts.append(code(found.commands[0]))
    if len(found.commands) > 1:
        words = (
            "This one does it in exact fractions, with a checker that shares no code with the rest: slow."
        )
        parts += [paragraph(words), code(found.commands[1])]
    return parts


def trace_section(found: Facts) -> list[Markup]:
    """The gap on its way down, as the training recorded it."""
    model = found.model
    traces = [trace for trace in model.traces or [] if len(trace)]
    if not traces:
        return [paragraph("The model has no record of its training.")]
    total = sum(map(len, traces))
    what = "certificate was" if total == 1 else "certificates were"
    # Runs of several problems go side by side, so that their times do not add up.
    time = f", the last after {traces[0][-1].seconds:.3g} s" if len(traces) == 1 else ""
    words = f"{total:,} {what} made, as the training recorded it{time}."
    named = sorted(
        zip(found.measures.problems, traces, strict=False), key=lambda pair: -pair[1][-1].relative_gap
    )
    drawn = pictures.trace(named[:_MOST_LINES], model.tol, "trace")
    if drawn is None:
        return [
            paragraph(f"{words} {'Each' if len(traces) > 1 else 'The'} run was proven once, at its end.")
        ]
    more = f" Drawn are those {_MOST_LINES} with the widest gaps." if len(named) > _MOST_LINES else ""
    return [figure(drawn, f"The relative gap that was proven after so many steps. {words}{more}")]
