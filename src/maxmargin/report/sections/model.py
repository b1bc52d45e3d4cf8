# SPDX-License-Identifier: BSD-3-Clause
"""What was trained: the problem that was solved, and how."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from maxmargin.command_line.shared.columns import column_in_words, encoding_in_words
from maxmargin.command_line.shared.features import features_in_words
from maxmargin.files import SavedKernelModel, SavedModel
from maxmargin.files.data.labels import label_text
from maxmargin.report.facts import Facts
from maxmargin.report.markup import Markup, facts, name, names, paragraph, sentence, table
from maxmargin.report.sections.naming import MOST_CLASSES, file_facts

_MOST_COLUMNS = 30
"""Columns of a table that are listed."""
_LOSSES = {
    "hinge": "hinge, max(0, 1 - m)",
    "squared_hinge": "squared hinge, max(0, 1 - m)²",
    "logistic": "logistic, log(1 + exp(-m))",
}
_INTERCEPTS = {
    "exact": "exact: b is free",
    "regularised": "regularised: b is in the penalty, like one more entry of w",
    "none": "none: b is not fitted",
}


def model_section(found: Facts) -> list[Markup]:
    """The objective in words, and everything that settles it."""
    model = found.model
    hard = model.problem.get("C") == math.inf
    lines: list[tuple[str, Any]] = [
        ("classes", names([label_text(c) for c in model.classes], MOST_CLASSES))
        if model.has_classes
        else ("task", model.decision.replace("_", " "))
    ]
    lines += _problem(found, hard=hard)
    if isinstance(model, SavedModel) and model.has_classes and len(model.coef) == 1 and model.coef.any():
        margin = 1.0 / float(np.linalg.norm(model.coef[0]))
        lines.append(("margin", f"{margin:.6g} on each side of the plane, 1 / |w|"))
    if model.rows is not None:
        lines.append(("trained on", f"{model.rows:,} rows"))
    if model.solver is not None:
        lines.append(("solver", sentence(model.solver)))
    if model.status is not None:
        ended = model.status.name.lower().replace("_", " ")
        lines.append(("ended", ended if model.steps is None else f"{ended}, after {model.steps} steps"))
    lines += [
        ("file" if found.source.path else "from", file_facts(found.source)),
        ("written by", name(model.writer)),
    ]
    return [paragraph(_objective(found, hard=hard)), facts(lines), *_columns_of_the_table(found)]


def _columns_of_the_table(found: Facts) -> list[Markup]:
    """What became of the columns of a table, where they were not numbers already."""
    encoding = found.model.encoding
    if encoding is None:
        return []
    left_out = len(encoding.columns) - _MOST_COLUMNS
    more = f"; {left_out} more are not shown" if left_out > 0 else ""
    caption = f"Columns of the table{more}"
    rows = [(name(each.name), sentence(column_in_words(each))) for each in encoding.columns[:_MOST_COLUMNS]]
    words = [paragraph(sentence(text)) for text in encoding_in_words(encoding)]
    return [*words, table(caption, ("column", "what it is to the model"), rows, words=(1,))]


def _objective(found: Facts, *, hard: bool) -> str:
    if hard:
        return (
            "The model minimises 1/2 |w|² over all w and b for which every row has a margin y (<w, x> + "
            "b) of at least 1: the widest margin with every row on its side."
        )
    if found.model.is_regression:
        words = (
            "The model minimises 1/2 |w|² plus C times the sum of the losses of all rows, over all w and "
            "b. A loss is what a prediction <w, x> + b is off by beyond epsilon, or its square."
        )
        more = " Epsilon is sought, too, and costs nu C for each row." if found.model.has_nu else ""
        return words + more
    if found.model.is_one_class:
        return (
            "The model minimises 1/2 |w|² less nu n rho plus the losses of all n rows, over all w and rho. "
            "The loss of a row is max(0, rho - <w, x>): what it lacks for being inside."
        )
    if found.model.has_nu:
        return (
            "The model minimises 1/2 |w|² less nu n rho plus the losses of all n rows, over all w, b and "
            "rho, in units in which rho is 1. The loss of a row is max(0, rho - y (<w, x> + b))."
        )
    if found.model.problem.get("penalty", "l2") != "l2":
        return "The model minimises the sum of all |w_j| plus C times the losses of all rows."
    return (
        "The model minimises 1/2 |w|² plus C times the sum of the losses of all rows, over all w and b. "
        "A loss is a function of the margin m = y (<w, x> + b) of a row, where y is 1 for one class and "
        "-1 for the other."
    )


def _problem(found: Facts, *, hard: bool) -> list[tuple[str, Any]]:
    """What was minimised."""
    model, problem = found.model, found.model.problem
    lines: list[tuple[str, Any]] = []
    if hard:
        lines.append(("C", "infinite: a hard margin"))
    else:
        lines.append(("loss", _LOSSES.get(problem["loss"], problem["loss"].replace("_", " "))))
        if not model.has_nu or model.is_regression:
            lines.append(("C", _cost(found)))
        if model.has_nu:
            lines.append(("nu", "not in the file" if problem["nu"] is None else f"{problem['nu']:g}"))
        elif model.is_regression and problem["epsilon"] is not None:
            lines.append(("epsilon", f"{problem['epsilon']:g}"))
    lines.append(("intercept", _INTERCEPTS[problem["intercept"]]))
    if problem.get("formulation") == "crammer_singer":
        lines.append(("formulation", "Crammer and Singer's"))
    elif len(model.classes) > 2:
        pairs = model.decision == "one_vs_one"
        words = "one problem for each pair" if pairs else "one problem for each class against the rest"
        lines.append(("several classes", f"{words}, {len(model.intercept)} in all"))
    if isinstance(model, SavedKernelModel):
        lines.append(("kernel", sentence(str(model.kernel))))
    elif isinstance(model, SavedModel) and model.expansion is not None:
        lines.append(("features", features_in_words(model.expansion)))
    if (weight := problem.get("class_weight")) is not None:
        factors = [weight] if isinstance(weight, str) else [f"{key}: {f:g}" for key, f in weight.items()]
        lines.append(("class weights", names(factors, MOST_CLASSES)))
    if problem.get("sample_weights"):
        lines.append(("sample weights", "yes; they are not in the file"))
    return lines


def _cost(found: Facts) -> str:
    stated = found.model.problem.get("C")
    if stated is not None:
        return f"{stated:g}"
    given = "not in the file"
    return given if found.verdict is None else f"{found.verdict.C:g}, as given for this report: {given}"
