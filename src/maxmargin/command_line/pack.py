# SPDX-License-Identifier: BSD-3-Clause
"""``maxmargin pack``: data files as one file that is read without parsing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from maxmargin.command_line.shared.answer import (
    DONE,
    INTERRUPTED,
    Failure,
    in_words,
    print_error,
    print_json,
)
from maxmargin.command_line.shared.data_options import Layout
from maxmargin.command_line.shared.options import Columns, Json, check_writable
from maxmargin.command_line.shared.progress import Bars
from maxmargin.command_line.shared.voice import VOICE
from maxmargin.tools.words import amount, bytes_in_words, counted


@in_words
def pack(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="DATA... OUT.mmd",
            help="Data files, folders or patterns, and at last the file to write.",
            show_default=False,
        ),
    ],
    *,
    reading: Layout,
    columns: Columns = None,
    dense: Annotated[
        bool, typer.Option("--dense", help="Write the rows of LIBSVM text as dense ones, zeros and all.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Pack data files into one: checked, checksummed, and read without parsing ever after.

    All columns of a table but the label must be numbers; they are packed as they are, not scaled. A packing
    that was stopped goes on where its last whole block ended, with the same command.

    Example: maxmargin pack big.svm.gz big.mmd

    Example: maxmargin pack 'folder/*.parquet' big.mmd --label churn
    """
    from maxmargin import files

    *sources, target = paths
    if not sources:
        raise Failure("pack needs data and a file to write. Got one name alone. Add OUT.mmd.")
    if target.suffix != ".mmd":
        raise Failure(
            f"The file to write must be called *.mmd. Got {target} instead, which is not overwritten."
        )
    check_writable(target)
    name = sources[0].name if len(sources) == 1 else amount(len(sources), "file")
    try:
        with Bars(quiet=as_json) as bars:
            done = files.pack(
                sources,
                target,
                dense=dense,
                columns=columns,
                progress=bars.reading(name),
                format=reading.format,
                **reading.given,
            )
    except KeyboardInterrupt:
        words = f"Interrupted: what is packed so far is kept in {target}.part. The same command goes on."
        print_error(words, as_json=as_json)
        return INTERRUPTED
    if as_json:
        print_json(
            {
                "output": target,
                "files": list(done.files),
                "rows": done.rows,
                "columns": done.columns,
                "values": done.stored,
                "blocks": done.blocks,
                "bytes": done.nbytes,
                "sparse": done.sparse,
                "weighted": done.weighted,
                "skipped": done.skipped,
                "rows_of_an_earlier_run": done.resumed,
                "fingerprint": done.fingerprint,
            }
        )
    elif not VOICE.quiet:
        kind = "sparse" if done.sparse else "dense"
        typer.echo(
            f"{target}: {done.rows} {kind} rows of {amount(done.columns, 'column')} from "
            f"{amount(len(done.files), 'file')}, {bytes_in_words(done.nbytes)} in "
            f"{amount(done.blocks, 'block')}."
        )
        if done.resumed:
            typer.echo(f"{done.resumed} of these rows had been packed by an earlier run.")
        if done.skipped:
            typer.echo(f"{counted(done.skipped, 'malformed line')} left out.")
    return DONE
