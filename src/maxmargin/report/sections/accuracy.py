# SPDX-License-Identifier: BSD-3-Clause
"""How often the model is right, what that says of new rows, and what is proven of the best model."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin.report.facts import Facts
from maxmargin.report.markup import Markup, facts, heading, joined, name, paragraph, side_by_side, table
from maxmargin.report.measures import LEVEL, Measures, interval
from maxmargin.report.sections.naming import MOST_CLASSES, in_percent, of_classes


def accuracy_section(found: Facts) -> list[Markup]:
    """The accuracy on all data, with intervals, confusions, and what becomes of each class."""
    parts: list[Markup] = []
    for where, measures, _ in of_classes(found):
        if found.tested is not None:
            parts.append(heading(f"On {where}"))
        if measures.accuracy is None:
            words = "None of the labels is one of the model's classes, so there is no accuracy to tell."
            parts.append(paragraph(words))
            continue
        parts.append(_shares(found, measures))
        few = len(measures.labels) <= MOST_CLASSES
        confusions = _confusion(measures, where) if few else _frequent_confusions(measures, where)
        new = found.interval_of(measures) is not None
        parts.append(side_by_side([confusions, _classes(measures, where, new=new)], "tables"))
    return parts


def _shares(found: Facts, measures: Measures) -> Markup:
    rows, (label, share) = measures.rows, measures.largest_class
    lines: list[tuple[str, Any]] = [
        ("right", f"{measures.right:,} of {rows:,} rows, {in_percent(measures.accuracy)}"),
        (
            "for comparison",
            joined("always naming ", name(label), f" would be right for {in_percent(share)}"),
        ),
    ]
    if measures.known < rows:
        lines.append(("unknown labels", f"{rows - measures.known:,} rows; they count as wrong"))
    lines.append(("interval for new rows", _interval(found, measures)))
    if measures.sure is not None:
        low, high = measures.sure.right, rows - measures.sure.wrong
        right = f"at least {low:,} and at most {high:,} of these rows"
        right += f", {in_percent(low / rows)} to {in_percent(high / rows)}"
        if low == high:
            right = f"exactly {low:,} of these rows, {in_percent(low / rows)}"
        why = "That is proven: the gap bounds how far its scores are from these (is_sure)."
        lines.append(("the best model", f"is right for {right}. {why}"))
    return facts(lines)


def _interval(found: Facts, measures: Measures) -> str:
    ends = found.interval_of(measures)
    if ends is None:
        return (
            "none, since the model was fitted to these rows: it is usually better on them than on new "
            "ones. A report with test data has one."
        )
    words = (
        f"{in_percent(ends[0])} to {in_percent(ends[1])}, Clopper and Pearson's exact interval at the "
        f"level {100 * LEVEL:g} %. It is about rows that are drawn independently, like those the model is "
        "used on, and that it was not fitted to."
    )
    unknown = found.verdict is None or found.verdict.same_data is None
    if measures is found.measures and unknown:
        words += " Whether the model was fitted to these rows is not known."
    return words


def _confusion(measures: Measures, where: str) -> Markup:
    """A square table whose cells are darker the larger their share of the line is."""
    labels, counts = measures.labels, measures.confusion
    lines: list[tuple[Markup, list[int]]] = [
        (name(label), line) for label, line in zip(labels, counts[:-1].tolist(), strict=True)
    ]
    if counts[-1].any():
        lines.append((Markup("<em>other labels</em>"), counts[-1].tolist()))
    rows = []
    for k, (label, line) in enumerate(lines):
        total = max(sum(line), 1)
        kinds = ["right" if j == k else "wrong" for j in range(len(line))]
        cells = [
            (f' class="{kind}" style="--share:{100 * count / total:.0f}%"', f"{count:,}")
            for kind, count in zip(kinds, line, strict=True)
        ]
        rows.append((label, *cells))
    caption = f"Confusions on {where}: a line for each true class, a column for each predicted one"
    return table(caption, ("true class", *map(name, labels)), rows, kind="confusion")


def _frequent_confusions(measures: Measures, where: str) -> Markup:
    counts = measures.confusion[:-1].copy()
    np.fill_diagonal(counts, 0)
    width, labels = counts.shape[1], measures.labels
    order = np.argsort(-counts, axis=None, kind="stable")[:MOST_CLASSES]
    rows = [
        (joined(name(labels[at // width]), " taken for ", name(labels[at % width])), f"{counts.flat[at]:,}")
        for at in order.tolist()
        if counts.flat[at]
    ]
    if not rows:
        return paragraph(f"No row of {where} is taken for another class.")
    caption = f"The most frequent confusions of {width} classes on {where}"
    return table(caption, ("true and predicted class", "rows"), rows)


def _classes(measures: Measures, where: str, *, new: bool) -> Markup:
    """Recall and precision of each class; intervals where the rows can be new ones."""
    classes = measures.of_classes
    left_out = len(classes) - MOST_CLASSES
    more = ""
    if left_out > 0:
        classes = sorted(classes, key=lambda each: 2.0 if each.recall is None else each.recall)[
            :MOST_CLASSES
        ]
        more = f", the lowest recall first; {left_out} more are not shown"
    headings = ["class", "rows", "predicted", "right", "recall", "precision"]
    if new:
        headings.append(f"{100 * LEVEL:g} % interval of the recall")
    rows = []
    for each in classes:
        numbers = [f"{count:,}" for count in (each.rows, each.predicted, each.right)]
        line = [name(each.label), *numbers, in_percent(each.recall), in_percent(each.precision)]
        if new:
            low, high = interval(each.right, each.rows) if each.rows else (0.0, 1.0)
            line.append(f"{in_percent(low)} to {in_percent(high)}")
        rows.append(line)
    caption = (
        f"Each class on {where}{more}. Recall: the share of its rows that are recognised. Precision: the "
        "share of the rows called so that are."
    )
    return table(caption, headings, rows)
