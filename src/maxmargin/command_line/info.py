# SPDX-License-Identifier: BSD-3-Clause
"""``maxmargin info``: what is in a data file or a model file."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maxmargin.command_line.shared.answer import DONE, in_words, print_json
from maxmargin.command_line.shared.data_options import Reading
from maxmargin.command_line.shared.options import Json
from maxmargin.command_line.shared.progress import Bars
from maxmargin.command_line.shared.words import column_name
from maxmargin.files.data.labels import label_text, quoted_label
from maxmargin.tools.words import bytes_in_words, percent, some

if TYPE_CHECKING:
    from maxmargin.command_line.shared.survey import Survey

_MOST_LABELS = 10
"""Labels that are named with their counts."""
_NO_NAME = "''"
"""How a column without a name is shown."""
_MOST_COLUMNS, _WIDEST_NAME = 50, 30
"""Columns of a table that are told one by one, and the characters that their names are given."""


@in_words
def info(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A data file or a model file.", show_default=False)
    ],
    *,
    reading: Reading,
    as_json: Json = False,
) -> int:
    """Say what is in a data file or a model file, with warnings about what makes training hard.

    Data are read in one pass and need not fit in memory.

    Example: maxmargin info data.svm
    """
    from maxmargin.telling.doubts import IN_THE_DATA, scale_doubts

    if reading.format is None and _is_model(file):
        from maxmargin.command_line.shared.model_info import tell

        return tell(file, as_json=as_json)
    columns: list[tuple[str, str]] = []
    if reading.is_table(file):
        from maxmargin.command_line.shared.table_info import survey_table

        survey, columns = survey_table(file, reading, quiet=as_json)
        warnings = _label_warnings(survey)
    else:
        survey = _survey(file, reading, quiet=as_json)
        warnings = _label_warnings(survey)
        warnings += scale_doubts(survey.scales, partial(column_name, survey.feature_names), IN_THE_DATA)
    if survey.columns and (contradictions := survey.contradictions()):
        warnings.append(
            f"{contradictions} rows have the values of another row and a different label: no classifier "
            "gets all of them right."
        )
    if reading.zero_based and survey.columns > 1 and survey.counts[0] == 0:
        warnings.append("No index is 0: the file probably counts from 1. Leave --zero-based out.")
    if as_json:
        print_json(_as_json(file, survey, warnings) | {"table": dict(columns) or None})
    else:
        _print_words(file, survey, columns, warnings)
    return DONE


def _is_model(path: Path) -> bool:
    """Whether the first bytes are those of a model file."""
    if not path.is_file():
        return False  # the reader of data says what is wrong
    with open(path, "rb") as file:
        start = file.read(16)
    return start.startswith((b"solver_type", b"svm_type")) or start[8:9] == b"{"


def _survey(path: Path, reading: Reading, *, quiet: bool) -> Survey:
    from maxmargin.command_line.shared.survey import Survey

    survey = Survey()
    with Bars(quiet=quiet) as bars:
        for piece in reading.stream(path, labelled=False, progress=bars.reading(path.name)):
            survey.add(piece)
    return survey


def _label_warnings(survey: Survey) -> list[str]:
    if survey.too_many_labels or len(survey.labels) > max(100, survey.rows // 2):
        return ["There are almost as many labels as rows: these look like numbers to predict, not classes."]
    if len(survey.labels) == 1:
        return ["All rows have the same label: there is nothing to tell apart."]
    counts = sorted(survey.labels.values())
    if counts and counts[-1] >= 20 * counts[0]:
        return [
            f"The largest class has {counts[-1] / counts[0]:.0f} times as many rows as the smallest. "
            "Consider train --class-weight balanced."
        ]
    return []


def _as_json(path: Path, survey: Survey, warnings: list[str]) -> dict[str, Any]:
    low, high = survey.value_range
    return {
        "file": path,
        "kind": "data",
        "bytes": path.stat().st_size,
        "rows": survey.rows,
        "columns": survey.columns,
        "nonzeros": survey.stored,
        "density": _density(survey),
        "labels": {label_text(label): count for label, count in sorted(survey.labels.items())},
        "smallest_value": low,
        "largest_value": high,
        "empty_rows": survey.empty_rows,
        "empty_columns": len(survey.empty_columns),
        "constant_columns": [int(column) + 1 for column in survey.constant_columns[:1000]],
        "bytes_as_csr": survey.bytes_as_csr,
        "skipped": survey.skipped,
        "warnings": warnings,
    }


def _density(survey: Survey) -> float:
    return survey.stored / max(survey.rows * survey.columns, 1)


def _print_words(path: Path, survey: Survey, columns: list[tuple[str, str]], warnings: list[str]) -> None:
    low, high = survey.value_range
    lines = {
        "rows": f"{survey.rows}" + _of_these(survey.empty_rows, "empty"),
        "columns": f"{survey.columns}"
        + _of_these(len(survey.empty_columns), "empty")
        + _of_these(len(survey.constant_columns), "constant"),
        "nonzeros": f"{survey.stored}, {percent(_density(survey))} of all values",
        "labels": _labels(survey),
        "values": f"from {low:.6g} to {high:.6g}" if survey.stored else "all zero",
        "memory": f"{bytes_in_words(survey.bytes_as_csr)} as CSR in float64",
    }
    if survey.skipped:
        lines["left out"] = f"{survey.skipped} malformed lines"
    typer.echo(f"{path}: data, {bytes_in_words(path.stat().st_size)}")
    for name, words in lines.items():
        typer.echo(f"  {name:<10}{words}")
    if columns:
        typer.echo("Columns of the table, and what train makes of them:")
    width = min(max((len(name) for name, _ in columns), default=2), _WIDEST_NAME)
    for name, words in columns[:_MOST_COLUMNS]:
        typer.echo(f"  {name or _NO_NAME:<{width}}  {words}")
    if len(columns) > _MOST_COLUMNS:
        typer.echo(f"  and {len(columns) - _MOST_COLUMNS} more")
    for warning in warnings:
        typer.echo(f"Warning: {warning}")


def _of_these(count: int, what: str) -> str:
    return f", {count} {what}" if count else ""


def _labels(survey: Survey) -> str:
    if not survey.labels:
        return "none"
    ordered = sorted(survey.labels.items(), key=lambda pair: -pair[1])
    if survey.too_many_labels:
        return f"more than {len(ordered) - 1}"
    shown = [f"{quoted_label(label)} ({count})" for label, count in ordered]
    return some(shown, _MOST_LABELS)
