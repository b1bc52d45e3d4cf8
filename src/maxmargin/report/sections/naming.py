# SPDX-License-Identifier: BSD-3-Clause
"""What several sections call things."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from maxmargin.report.facts import Facts, Sample, Source
from maxmargin.report.markup import Markup, hash_text, joined, name
from maxmargin.report.measures import Measures
from maxmargin.report.numbers import Numbers
from maxmargin.tools.words import bytes_in_words

MOST_CLASSES = 15
"""Classes that are listed; of more, the worst ones."""


def data_name(found: Facts) -> str:
    """What to call the data."""
    return "the training data" if found.is_training_data else "the data given"


def of_classes(found: Facts) -> Iterator[tuple[str, Measures, Sample]]:
    """The same, of a model with classes; nothing of others."""
    for where, measures, rows in measured(found):
        if isinstance(measures, Measures):
            yield where, measures, rows


def measured(found: Facts) -> Iterator[tuple[str, Measures | Numbers, Sample]]:
    """The name of all data that the model was measured on."""
    yield data_name(found), found.measures, found.data
    if found.tested is not None and found.test is not None:
        yield "the test data", found.tested, found.test


def in_percent(share: float | None) -> str:
    """A share in per cent: two digits after the point, but never rounded to nothing or to all."""
    if share is None:
        return "–"
    for digits in (2, 4, 6):
        text = f"{100 * share:.{digits}f}"
        if share in (0.0, 1.0) or 0.0 < float(text) < 100.0:
            return f"{text}\N{NO-BREAK SPACE}%"
    return f"{100 * share:.12g}\N{NO-BREAK SPACE}%"


def file_facts(source: Source) -> Markup:
    """The name of a file with what tells it from others; or where it was instead."""
    if source.digest is None or source.bytes is None:
        return joined(name(source.name), "" if source.path else ", in memory")
    size: Any = f", {bytes_in_words(source.bytes)}, SHA-256 "
    return joined(name(source.name), size, hash_text(source.digest))
