# SPDX-License-Identifier: BSD-3-Clause
"""The page and the picture of a part."""

from __future__ import annotations

import os
from pathlib import Path

from maxmargin import core
from maxmargin.files.whole import write_whole
from maxmargin.reproduce.base import Part, Result, Table


def write(folder: Path, name: str, part: Part, result: Result, *, quick: bool) -> tuple[Path, Path]:
    """Write ``reproduce_<name>.md`` and its PNG, each whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    page, picture = folder / f"reproduce_{name}.md", folder / f"reproduce_{name}.png"
    # No date inside, so that the same run gives the same file.
    save = result.figure.savefig
    write_whole(picture, lambda file: save(file, format="png", dpi=110, metadata={"Software": None}))
    text = page_text(name, part, result, quick=quick)
    write_whole(page, lambda file: file.write(text.encode()))
    return page, picture


def page_text(name: str, part: Part, result: Result, *, quick: bool) -> str:
    """The page in Markdown."""
    command = f"maxmargin reproduce {name}{' --quick' if quick else ''}"
    parts = [f"# {part.title}", f"<!-- Written by `{command}`; do not edit it. -->"]
    if quick:
        parts.append("**Quick run on subsamples: the numbers are not comparable with the published ones.**")
    parts += [part.source(), result.about, f"Measured on {_machine()}."]
    for table in result.tables:
        parts += [f"## {table.title}", _markdown(table)]
    parts += [f"![{part.title}](reproduce_{name}.png)"]
    parts += ["\n".join(f"* {finding}" for finding in result.findings)]
    return "\n\n".join(filter(None, parts)) + "\n"


def _markdown(table: Table) -> str:
    lines = [tuple(table.headings), ("---",) * len(table.headings), *table.text_rows()]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _machine() -> str:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{cores} cores, instruction set {vars(core)['INSTRUCTION_SET']}"
