# SPDX-License-Identifier: BSD-3-Clause
"""The part of ``maxmargin info`` that is about tables: what their columns hold, in two passes."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from maxmargin.command_line.shared.data_options import Reading
from maxmargin.command_line.shared.progress import Bars
from maxmargin.command_line.shared.survey import Survey
from maxmargin.command_line.shared.words import as_options
from maxmargin.files.data.reading import DataError, about
from maxmargin.tables.encoding import Column, Encoding
from maxmargin.tables.kinds import Kind, LeftOut, Said, Seen
from maxmargin.tables.reading import until_types_fit
from maxmargin.tools.words import some

_MOST_TEXTS = 5
"""Categories of a column that are named."""


def survey_table(path: Path, reading: Reading, *, quiet: bool) -> tuple[Survey, list[tuple[str, str]]]:
    """What is in a table as train makes numbers of it, unscaled; and each of its columns in words."""
    with Bars(quiet=quiet) as bars, about(os.fspath(path)):
        seen, texts = until_types_fit(lambda texts: (_seen(path, reading, texts, bars), texts), set())
        kinds = {name: _decided(one) for name, one in seen.items()}
        columns = [
            Column(name, kind, categories=tuple(sorted(seen[name].texts)))
            for name, kind in kinds.items()
            if not isinstance(kind, LeftOut)
        ]
        encoding = Encoding(tuple(columns), "none")
        survey = Survey()
        for raw in reading.stream_table(path, texts=texts, progress=bars.reading(path.name)):
            survey.add(raw.encoded(encoding)[0])
    return survey, [(name, _in_words(seen[name], kind, survey)) for name, kind in kinds.items()]


def _seen(path: Path, reading: Reading, texts: set[str], bars: Bars) -> dict[str, Seen]:
    seen: dict[str, Seen] = {}
    for raw in reading.stream_table(path, texts=texts, progress=bars.reading(path.name)):
        for name in raw.features.schema.names:
            for chunk in raw.features.column(name).chunks:
                seen.setdefault(name, Seen(name, decimal=raw.decimal)).add(chunk)
    return seen


def _decided(seen: Seen) -> Kind | LeftOut:
    """What becomes of a column; what train would refuse is told, too."""
    try:
        return seen.decide(Said())
    except DataError as error:
        return LeftOut(seen.name, f"train refuses it, since {as_options(str(error))}")


def _in_words(seen: Seen, kind: str | LeftOut, survey: Survey) -> str:
    if isinstance(kind, LeftOut):
        return kind.reason if kind.reason.startswith("train") else f"left out: {kind.reason}"
    missing = f", {seen.missing} missing" if seen.missing else ""
    if kind == "category":
        ordered = sorted(seen.texts.items(), key=lambda pair: -pair[1])
        return f"category: {some([f'{text} ({count})' for text, count in ordered], _MOST_TEXTS)}{missing}"
    assert survey.feature_names is not None
    place = survey.feature_names.index(seen.name)
    low, high = float(survey.lowest[place]), float(survey.highest[place])
    if survey.counts[place] + seen.missing < survey.rows:  # zeros are not stored
        low, high = min(low, 0.0), max(high, 0.0)
    if kind == "truth":
        return f"truth value, {int(survey.counts[place])} true{missing}"
    if kind == "date":
        return f"date from {_day(low)} to {_day(high)}{missing}"
    return f"number from {low:.6g} to {high:.6g}{missing}"


def _day(days: float) -> str:
    try:
        return str((datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=days)).date())
    except OverflowError:
        return f"day {days:.6g}"
