# SPDX-License-Identifier: BSD-3-Clause
"""What the model is made of: the heaviest columns, or the support vectors that pull hardest."""

from __future__ import annotations

from typing import Any

from maxmargin.files import SavedModel
from maxmargin.report.facts import HEAVIEST, Facts
from maxmargin.report.markup import Markup, bar, name, paragraph, table
from maxmargin.tools.words import percent


def columns_section(found: Facts) -> list[Markup]:
    """The largest weights; empty for a model with a kernel."""
    model, spreads = found.model, found.spreads
    if not isinstance(model, SavedModel):
        return []
    several = len(model.coef) > 1
    longest = max((abs(each.weight) for each in found.heaviest), default=0.0) or 1.0
    headings = ["column", *(["problem"] if several else []), "weight", ""]
    headings += [] if spreads is None else ["spread", "weight × spread"]
    rows = []
    for each in found.heaviest:
        line: list[Any] = [name(each.name)]
        if several:
            line.append(name(found.measures.problems[each.problem]))
        line += [f"{each.weight:+.5g}", bar(abs(each.weight) / longest, minus=each.weight < 0)]
        if spreads is not None:
            spread = float(spreads[each.column])
            line += [f"{spread:.4g}", f"{each.weight * spread:+.4g}"]
        rows.append(line)
    total = model.coef.shape[1]
    caption = (
        f"The {len(rows)} largest weights of {total:,}"
        if total > len(rows)
        else "All weights, the largest first"
    )
    parts = [table(caption, headings, rows, words=(1, 3) if several else (2,))]
    if spreads is not None:
        words = (
            "A weight is what the score gains when the column grows by 1, so columns in other units "
            "have other weights. Times the spread, which is the standard deviation of the column in "
            "these data, it is what a usual change of the column is worth."
        )
        parts.append(paragraph(words, quiet=True))
    return parts


def support_section(found: Facts) -> list[Markup]:
    """The support vectors that pull hardest; empty where the file has none."""
    count, hardest = found.support
    if not count:
        return []
    longest, rows = max(each.pull for each in hardest) or 1.0, found.model.rows
    several = len(found.model.intercept) > 1
    lines = [
        (
            "–" if each.row is None else f"{each.row + 1:,}",
            name(each.label or "–"),
            f"{each.pull:.5g}",
            bar(each.pull / longest),
        )
        for each in hardest
    ]
    caption = (
        f"The {len(lines)} that pull hardest" if count > HEAVIEST else "All of them, the hardest pull first"
    )
    headings = ("row of the training, from 1", "class", "sum of alpha" if several else "alpha", "")
    return [
        paragraph(
            f"{count:,} support vectors{f' of {rows:,} rows, {percent(count / rows)}' if rows else ''}. "
            "Scores are sums over these rows alone."
        ),
        table(caption, headings, lines, words=(1, 3)),
    ]
