# SPDX-License-Identifier: BSD-3-Clause
"""The data, what tells them from others, and what the report was made with."""

from __future__ import annotations

from typing import Any

from maxmargin.files.data.labels import numbers_of
from maxmargin.report.facts import Facts, Sample
from maxmargin.report.markup import Markup, facts, hash_text, heading, joined, name
from maxmargin.report.sections.naming import MOST_CLASSES, file_facts
from maxmargin.tools.words import percent


def data_section(found: Facts) -> list[Markup]:
    """Each data set with its fingerprint, and the versions."""
    same: list[tuple[str, Any]] = [("those of the training?", _same(found))]
    if found.model.fingerprint is not None and not found.is_training_data:
        same.append(("the training's fingerprint", hash_text(found.model.fingerprint)))
    parts = [heading("The data"), facts(_lines(found, found.data) + same)]
    if found.test is not None:
        parts += [heading("The test data"), facts(_lines(found, found.test))]
    made = found.made.strftime("%Y-%m-%d %H:%M:%S UTC")
    return [*parts, heading("Versions"), facts([*found.versions.items(), ("report made", made)])]


def _lines(found: Facts, rows: Sample) -> list[tuple[str, Any]]:
    count, columns = rows.X.shape
    labels = rows.label_counts()
    named = [
        part for label, number in labels[:MOST_CLASSES] for part in (", ", name(label), f" ({number:,})")
    ]
    more = len(labels) - MOST_CLASSES
    skipped = f"; {rows.skipped:,} malformed lines were left out" if rows.skipped else ""
    return [
        ("file" if rows.source.path else "from", file_facts(rows.source)),
        ("rows", f"{count:,}{skipped}"),
        ("columns", f"{columns:,}{', with names' if found.model.feature_names is not None else ''}"),
        ("values not 0", f"{rows.stored:,}, {percent(rows.density)} of all"),
        ("labels", _of_numbers(rows) or joined(*named[1:], f" and {more} more" if more > 0 else "")),
        ("fingerprint", hash_text(rows.fingerprint)),
    ]


def _of_numbers(rows: Sample) -> str:
    """The range of labels that are numbers; empty for classes."""
    if not rows.of_numbers:
        return ""
    values = None if rows.y is None else numbers_of(rows.y)
    if values is None or not len(values):
        return "none that matter"
    return f"numbers from {values.min():.6g} to {values.max():.6g}"


def _same(found: Facts) -> str:
    kept, rows = found.model.fingerprint, found.model.rows
    if rows is not None and rows != found.data.X.shape[0]:
        return f"no: the training had {rows:,} rows"
    if kept is None:
        words = "the model names no fingerprint"
        return f"{words}, but its proof holds on them" if found.is_training_data else f"not known: {words}"
    if kept == found.data.fingerprint:
        return "yes: they have the fingerprint that the model names"
    return "no: the model names another fingerprint"
