# SPDX-License-Identifier: BSD-3-Clause
"""``maxmargin report``: one page about a model, its proof and its data, to hand to somebody else."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maxmargin import files
from maxmargin.command_line.certify import Judging, NoProof
from maxmargin.command_line.predict import aligned
from maxmargin.command_line.shared import data_options, options
from maxmargin.command_line.shared.answer import DOES_NOT_HOLD, DONE, Failure, in_words, print_json
from maxmargin.command_line.shared.progress import Bars
from maxmargin.command_line.shared.words import option_of
from maxmargin.tools.words import bytes_in_words

_NO_MATTER = {"threads", "max_time"}
"""Options that change nothing in what is found."""
_FOR_BOTH = {"label", "zero_based"}
"""Options that the independent checker has, too."""

if TYPE_CHECKING:
    from maxmargin.report.facts import Facts, Sample


@in_words
def report(
    model: options.ModelFile,
    data: options.DataFile,
    *,
    output: Annotated[
        Path,
        typer.Option(
            "-o", "--output", metavar="PAGE", help="Where to write the page, HTML.", show_default=False
        ),
    ],
    test: options.TestFile = None,
    judging: Judging,
    reading: data_options.Reading,
    as_json: options.Json = False,
) -> int:
    """Write one page about a model: what it is, the proof and how to check it, accuracy, pictures, data.

    The page is one file. It needs no script and asks for nothing from elsewhere, so it can be mailed,
    kept and printed. The proof is recomputed as certify does it, and the page says so where it fails.

    Exit code 0: written, and the proof holds; 1: written, and it does not, or there is none; 2: wrong
    input.

    Example: maxmargin report model.mm data.svm -o report.html

    Example: maxmargin report model.mm data.svm --test test.svm -o report.html
    """
    from maxmargin.files.whole import write_whole
    from maxmargin.report.facts import Facts, Source
    from maxmargin.report.page import page

    judging.check()
    options.check_files(output, model, data, test)
    saved = files.load_model(model)
    if saved.is_ranking:
        raise Failure(
            f"report does not write about rankings, and {model} is one. maxmargin predict tells its nDCG, "
            "maxmargin certify recomputes its proof, and maxmargin info says the rest."
        )
    weights = judging.weights(saved, model)
    with Bars(quiet=as_json) as bars:
        rows = _rows(saved, data, reading, bars)
        tested = None if test is None else _rows(saved, test, reading, bars)
        facts = Facts(
            Source(model.name, model),
            saved,
            rows,
            tested,
            commands=_checks(saved, model, data, judging, reading),
        )
        try:
            facts.judge(judging.verdict(saved, model, data), weights, judging.max_time, bars)
        except NoProof as reason:
            facts.no_proof = str(reason)
        bars.finish()
    text = page(facts).encode()
    write_whole(output, lambda file: file.write(text))
    if as_json:
        print_json(facts.as_json() | {"output": output})
    else:
        _print_words(facts, output, len(text))
    return DONE if facts.holds else DOES_NOT_HOLD


def _rows(model: files.StoredModel, path: Path, reading: data_options.Reading, bars: Bars) -> Sample:
    from maxmargin.report.facts import Sample, Source

    found = reading.read(path, bars.reading(path.name), model.encoding, labelled=not model.is_one_class)
    return Sample(Source(path.name, path), aligned(found, model, path), found.y, found.skipped)


def _checks(
    saved: files.StoredModel, model: Path, data: Path, judging: Judging, reading: data_options.Reading
) -> list[str]:
    """The commands that check the proof: with the options that were given here."""
    from maxmargin.files.data.reading import file_format
    from maxmargin.report.facts import command

    given = {
        option.name: value
        for group in (judging, reading)
        for option in fields(group)
        if (value := getattr(group, option.name)) != option.default and option.name not in _NO_MATTER
    }
    words: list[Any] = []
    for name, value in given.items():
        words.append(option_of(name))
        words += [] if value is True else [value]
    commands = [command("maxmargin", "certify", model, data, *words)]
    plain = file_format(str(data), reading.format) in ("libsvm", "csv") and data.suffix != ".zst"
    plain &= saved.encoding is None or file_format(str(data), reading.format) == "csv"
    if saved.certificates is not None and plain and given.keys() <= _FOR_BOTH:
        commands.append(command("maxmargin", "certify", "--independent", model, data, *words))
    return commands


def _print_words(facts: Facts, output: Path, size: int) -> None:
    from maxmargin.report.numbers import Numbers

    typer.echo(facts.no_proof if facts.verdict is None else facts.verdict.conclusion)
    where = "the training data" if facts.is_training_data else "the data given"
    for name, measures in ((where, facts.measures), ("the test data", facts.tested)):
        if measures is not None and measures.accuracy is not None:
            share = f"{100 * measures.accuracy:.2f} %, {measures.right} of {measures.rows} rows"
            typer.echo(f"Accuracy on {name}: {share}.")
        if isinstance(measures, Numbers) and measures.mean_absolute_error is not None:
            typer.echo(f"On {name} numbers are off by {measures.mean_absolute_error:.6g} in the mean.")
        if isinstance(measures, Numbers) and measures.model.is_one_class:
            typer.echo(f"Of {name}, {measures.outside} of {measures.rows} rows are outside.")
    typer.echo(f"Report: {output}, {bytes_in_words(size)}.")
