# SPDX-License-Identifier: BSD-3-Clause
"""Scores: how they are distributed, which margins and probabilities they give, and those of the plane."""

from __future__ import annotations

from maxmargin.kernels import Precomputed
from maxmargin.reductions.decompositions import OneAgainstOne
from maxmargin.report import pictures
from maxmargin.report.facts import Facts
from maxmargin.report.markup import Markup, figure, name, paragraph, side_by_side, table
from maxmargin.report.measures import LEVEL, ON_MARGIN, Measures
from maxmargin.report.sections.naming import of_classes


def scores_section(found: Facts) -> list[Markup]:
    """A histogram, and the rows of each problem by their margins."""
    figures, tables = [], []
    logistic = found.model.problem["loss"] == "logistic"
    for k, (where, measures, _) in enumerate(of_classes(found)):
        if measures.known:
            caption = _meaning(measures, where, logistic=logistic)
            figures.append(figure(pictures.scores(measures, f"scores{k}"), *caption))
            if measures.row_counts:
                tables.append(_row_counts(measures, where, logistic=logistic))
    if not found.model.has_classes:
        return []
    if not figures:
        return [paragraph("No label is one of the model's classes: there are no margins.")]
    words = (
        "Counted by the margins of this model on the data; nothing is taken from its multipliers. On "
        f"the margin means within {ON_MARGIN:g} of 1, since computed margins are hardly ever exactly 1."
    )
    notes = [paragraph(words, quiet=True)] if tables and not logistic else []
    return [side_by_side(figures), *tables, *notes]


def _meaning(measures: Measures, where: str, *, logistic: bool) -> list[str | Markup]:
    if len(measures.model.kind) > 1:
        pairs = isinstance(measures.model.kind, OneAgainstOne)
        meaning = "wins all its pairs" if pairs else "is ahead of all others"
        return [f"Rows of {where}. Above 0 their own class {meaning}."]
    dashed = "" if logistic else " Dashed: the ends of the margin, -1 and 1."
    words = f"Scores of the rows of {where}. Above 0 a row is called "
    return [words, name(measures.labels[1]), ", else ", name(measures.labels[0]), f".{dashed}"]


def _row_counts(measures: Measures, where: str, *, logistic: bool) -> Markup:
    counts, left_out = measures.row_counts, len(measures.row_counts) - pictures.MOST_PROBLEMS
    more = ""
    if left_out > 0:
        counts = sorted(counts, key=lambda each: -each.misclassified)[: pictures.MOST_PROBLEMS]
        more = f", the most misclassified first; {left_out} more problems are not shown"
    headings = ["problem", "beyond the margin (above 1)", "on the margin (1)", "inside (0 to 1)"]
    rows: list[list[str | int]] = [
        [each.beyond, each.on, each.inside, each.misclassified] for each in counts
    ]
    if logistic:  # a margin of 1 is nothing special
        headings = ["problem", "right side (above 0)"]
        rows = [[each.beyond + each.on + each.inside, each.misclassified] for each in counts]
    named = [name(each.name or "all rows") for each in counts]
    lines = [[label, *(f"{count:,}" for count in row)] for label, row in zip(named, rows, strict=True)]
    return table(f"Rows of {where} by their margin{more}", [*headings, "misclassified (at most 0)"], lines)


def calibration_section(found: Facts) -> list[Markup]:
    """What the probabilities of the logistic loss are worth; empty for other losses."""
    figures, lines = [], []
    for k, (where, measures, _) in enumerate(of_classes(found)):
        if (calibration := measures.calibration) is None:
            continue
        pooled = " Each row counts once for each class: is it of that class, or of the rest?"
        caption = f"Probabilities on {where}. On the dashed line they are what was seen."
        picture = pictures.reliability(calibration, f"reliability{k}")
        figures.append(figure(picture, caption + (pooled if calibration.pooled else "")))
        lines.append((where, f"{calibration.brier:.4f}", f"{calibration.log_loss:.4f}"))
    if not figures:
        return []
    problem, note = found.model.problem, ""
    if problem.get("class_weight") is not None or problem.get("sample_weights"):
        note = " The training weighed rows unequally: these are the probabilities of data weighed so."
    caption = (
        "Brier score: the mean squared error of the probability; always saying 1/2 gives 0.25. "
        f"Intervals in the pictures are Clopper and Pearson's at the level {100 * LEVEL:g} %."
    )
    return [
        paragraph(
            "With the logistic loss a score stands for a probability, 1 / (1 + exp(-score)). The "
            f"penalty on w draws them towards that of the intercept alone.{note}"
        ),
        side_by_side(figures),
        table(caption, ("on", "Brier score", "mean log loss"), lines),
    ]


def plane_section(found: Facts) -> list[Markup]:
    """Rows of two columns as points; empty where there are more, or only values of a kernel."""
    given = isinstance(getattr(found.model, "kernel", None), Precomputed)
    if not found.model.has_classes or given or found.model.features != 2 or found.data.X.shape[1] != 2:
        return []
    figures = []
    for k, (where, measures, rows) in enumerate(of_classes(found)):
        words = f"Rows of {where}, and what the model calls each place."
        if len(found.model.kind) == 1:
            words += " The line is the boundary; dashed are the ends of the margin."
        if measures.rows > pictures.MOST_ROWS:
            words += f" {pictures.MOST_ROWS:,} of {measures.rows:,} rows are drawn, evenly taken."
        figures.append(figure(pictures.plane(measures, rows.X, f"plane{k}"), words))
    return [side_by_side(figures)]
