# SPDX-License-Identifier: BSD-3-Clause
"""``maxmargin reproduce``: the lectures' tables and figures, made again."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maxmargin.command_line.shared.answer import DONE, Failure, in_words, print_json, print_table
from maxmargin.command_line.shared.options import Json
from maxmargin.tools.words import seconds_in_words

if TYPE_CHECKING:
    from maxmargin.reproduce import Result


@in_words
def reproduce(
    parts: Annotated[
        list[str] | None,
        typer.Argument(metavar="PART", help="By name; by default all.", show_default=False),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="On subsamples: some 20 seconds, numbers that do not compare.")
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option(help="Folder of the data files.", show_default="MAXMARGIN_DATA, or ../shared/data"),
    ] = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for pages and pictures.")] = Path(
        "maxmargin-results"
    ),
    as_json: Json = False,
) -> int:
    """Make the lectures' tables and figures again, each beside what was published.

    Parts: subgradient, pegasos_bound, support_vectors (these need no files), shalev_shwartz2007, hsieh2008,
    chang2010_linear_gaussian, chang2010_degree2. Each writes a page and a picture.

    The files are NAME.train.npz and NAME.test.npz with X and y. They are not part of maxmargin: the data
    sets are those of LIBSVM's page, www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets, and mnist that of
    LeCun, Cortes and Burges. Without them, the parts that need them are left out.

    Example: maxmargin reproduce support_vectors pegasos_bound --output results
    """
    from maxmargin.reproduce import PARTS, Settings, missing, write

    names = _chosen(parts, list(PARTS))
    settings = Settings(quick, data, _teller(as_json))
    answers: dict[str, Any] = {}
    left_out: list[str] = []
    for name in names:
        part = PARTS[name]
        absent = missing(part.needs, data)
        if absent and not parts:
            left_out.append(f"{name}: there is no {', '.join(absent)}. Name their folder with --data.")
            continue
        started = time.perf_counter()
        result = part.run(settings)
        seconds = time.perf_counter() - started
        page, picture = write(output, name, part, result, quick=quick)
        answers[name] = {"seconds": seconds, "page": page, "picture": picture, **_values(result)}
        if not as_json:
            _print(part.title, result, page, seconds)
    if as_json:
        print_json({"quick": quick, "parts": answers, "left_out": left_out})
    for sentence in [] if as_json else left_out:
        typer.echo(f"Left out: {sentence}")
    return DONE


def _chosen(parts: list[str] | None, known: list[str]) -> list[str]:
    for name in parts or []:
        if name not in known:
            raise Failure(f"A part must be one of {', '.join(known)}. Got {name!r} instead.")
    return list(dict.fromkeys(parts or known))


def _teller(quiet: bool) -> Any:
    """What is being done, on stderr where that is a terminal."""
    if quiet or not sys.stderr.isatty():
        return lambda _: None
    return lambda text: typer.echo(f"... {text}", err=True)


def _values(result: Result) -> dict[str, Any]:
    tables = {table.title: table.records() for table in result.tables}
    return {"tables": tables, "findings": result.findings}


def _print(title: str, result: Result, page: Path, seconds: float) -> None:
    typer.echo(f"{title}\n{'=' * len(title)}")
    for table in result.tables:
        words = [isinstance(cell, str) for cell in table.rows[0]]
        print_table(table.title, table.headings, table.text_rows(), left=[*words, False].index(False))
    for finding in result.findings:
        typer.echo(f"* {finding}")
    typer.echo(f"{page}, in {seconds_in_words(seconds)}.\n")
