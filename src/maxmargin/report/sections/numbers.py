# SPDX-License-Identifier: BSD-3-Clause
"""How far the numbers of a regressor are off, and which share of the rows a region leaves outside."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin.report import pictures
from maxmargin.report.facts import Facts
from maxmargin.report.markup import Markup, facts, figure, heading, paragraph
from maxmargin.report.numbers import Numbers
from maxmargin.report.sections.naming import in_percent, measured


def errors_section(found: Facts) -> list[Markup]:
    """The errors on all data, and predictions beside the truth; empty for other tasks."""
    parts: list[Markup] = []
    for k, (where, measures, _) in enumerate(measured(found)):
        if not (isinstance(measures, Numbers) and measures.model.is_regression):
            continue
        if found.tested is not None:
            parts.append(heading(f"On {where}"))
        if measures.values is None:
            parts.append(paragraph("The labels are no numbers, so there is nothing to compare."))
            continue
        parts.append(facts(_lines(measures)))
        words = f"Rows of {where}: what is predicted against the true number. On the line they are equal."
        if measures.epsilon:
            words += " Between the dashed lines is the tube, whose errors cost nothing."
        if measures.rows > pictures.MOST_ROWS:
            words += f" {pictures.MOST_ROWS:,} of {measures.rows:,} rows are drawn, evenly taken."
        parts.append(figure(pictures.predictions(measures, f"predictions{k}"), words))
    return parts


def _lines(measures: Numbers) -> list[tuple[str, Any]]:
    median, errors = measures.of_the_median, measures.errors
    assert median is not None
    assert errors is not None
    lines: list[tuple[str, Any]] = [
        ("off by, in the mean", f"{measures.mean_absolute_error:.6g}"),
        ("root mean square", f"{measures.root_mean_squared_error:.6g}"),
        ("for comparison", f"always to say {median[0]:.6g} would be off by {median[1]:.6g}"),
    ]
    if measures.explained is not None:
        lines.append(("R²", f"{measures.explained:.4f} of the variance is predicted"))
    if measures.epsilon is not None:
        within = int(np.count_nonzero(np.abs(errors) <= measures.epsilon))
        share = in_percent(within / max(measures.rows, 1))
        words = f"{within:,} of {measures.rows:,} rows, {share}, are off by at most {measures.epsilon:.6g}"
        lines.append(("within the tube", words))
    return lines


def region_section(found: Facts) -> list[Markup]:
    """How many rows are outside of the region of one class; empty for other tasks."""
    lines: list[tuple[str, Any]] = []
    for where, measures, _ in measured(found):
        if isinstance(measures, Numbers) and measures.model.is_one_class:
            share = in_percent(measures.outside / max(measures.rows, 1))
            lines.append((where, f"{measures.outside:,} of {measures.rows:,} rows are outside, {share}"))
    nu = found.model.problem.get("nu")
    if not lines:
        return []
    words = "" if nu is None else f" On the training data that is a share of at most nu = {nu:g}."
    return [paragraph(f"A row is outside where its score is below 0.{words}"), facts(lines)]
