# SPDX-License-Identifier: BSD-3-Clause
"""``python -m benchmarks linear``, ``kernel``, ``degree2`` and others: run from the repository's root."""

from __future__ import annotations

import argparse
import itertools
import shlex
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from benchmarks import (
    along_costs,
    choice,
    chunks,
    cluster,
    datasets,
    degree2,
    family,
    features,
    gpu,
    intelex,
    interrupts,
    kernel,
    machine,
    memory,
    noisy,
    pegasos,
    proofs,
    reading,
    sceptic,
    sceptic_page,
    search,
    small,
    sweep,
    wide,
)
from benchmarks.linear import compare
from benchmarks.objective import Objective
from benchmarks.picture import draw
from benchmarks.report import Measurements, markdown
from benchmarks.solvers import contestants
from benchmarks.solvers.base import MissingPackage
from maxmargin.gpu.cards import NoCardError

LOSSES = ("hinge", "squared_hinge")
Tell = Callable[[str], None]


def main(arguments: list[str] | None = None) -> int:
    """0, or 1 where something needed is missing, or something was found that must not be."""
    given = sys.argv[1:] if arguments is None else arguments
    options = _parser().parse_args(given)
    console = Console()
    if options.command == "linear":
        return _linear(options, _command(given), console)
    if options.command == "kernel":
        return _kernel(options, _command(given), console)
    if options.command == "search" and options.show is not None:
        search.show(options.seed, options.show)
        return 0
    return _write_page(options, _command(given), console)


def _linear(options: argparse.Namespace, command: str, console: Console) -> int:
    measured = Measurements(
        facts=machine.facts(),
        command=command,
        repeat=1 if options.quick else options.repeat,
        warning=machine.load_warning(),
    )
    for name, value in measured.facts.items():
        console.print(f"{name}: {value}", highlight=False)
    if measured.warning:
        console.print(f"[bold]Warning.[/bold] {measured.warning}", highlight=False)
    try:
        _measure(options, measured, console)
        if not measured.results:
            console.print("Nothing was measured: all data sets are missing.")
            return 1
        _write(options.output, options.page, measured, console)
    except MissingPackage as error:
        console.print(str(error), highlight=False, markup=False)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    linear = commands.add_parser("linear", help="seconds to equal quality against the peers")
    _add_options(linear, data=datasets.DEFAULT, losses=True, repeat=5)
    linear.add_argument("--C", type=_numbers, help="one or several, with commas, for all data")
    linear.add_argument("--longest", type=float, default=20.0, help="seconds: 0.4 of it ends a scan")
    linear.add_argument("--quick", action="store_true", help="one round, short scans, no memory")
    linear.add_argument("--page", default="linear", help="stem of the page and its picture")
    kernels = commands.add_parser("kernel", help="kernel SVMs: seconds to equal quality against the peers")
    kernel.add_options(kernels, _list_of)
    for name, page in PAGES.items():
        page.add_options(commands.add_parser(name, help=page.help))
    return parser


def _add_options(
    parser: argparse.ArgumentParser,
    *,
    data: tuple[str, ...] = (),
    offered: tuple[str, ...] = datasets.SELECTABLE,
    losses: bool = False,
    repeat: int | None = None,
    longest: float | None = None,
) -> None:
    """Those that many commands have: ``data`` and the numbers are defaults."""
    if data:
        parser.add_argument("--data", type=_list_of(offered), default=list(data))
    if losses:
        parser.add_argument("--loss", type=_list_of(LOSSES), default=list(LOSSES))
    if repeat is not None:
        parser.add_argument("--repeat", type=int, default=repeat, help="rounds; the best time counts")
    if longest is not None:
        parser.add_argument("--longest", type=float, default=longest, help="seconds for one fit")
    parser.add_argument("--output", type=Path, default=Path("docs/results"))


def _kernel(options: argparse.Namespace, command: str, console: Console) -> int:
    warning = machine.load_warning()
    if warning:
        console.print(f"[bold]Warning.[/bold] {warning}", highlight=False)
    with _progress(console) as progress:
        task = progress.add_task("", total=None)
        try:
            written = kernel.run(options, command, lambda text: progress.update(task, description=text))
        except MissingPackage as error:
            console.print(str(error), highlight=False, markup=False)
            return 1
    console.print(f"Written: {' and '.join(written)}.")
    return 0


@dataclass(frozen=True)
class Page:
    """A command that measures something and writes one page."""

    help: str
    add_options: Callable[[argparse.ArgumentParser], None]
    measure: Callable[[argparse.Namespace, Tell], Any]
    markdown: Callable[[argparse.Namespace, Any], str]
    """From the options and what was measured."""
    failed: Callable[[Any], bool] = lambda found: False
    """Whether what was measured must not be."""
    page: str = ""
    """The name of the page; empty: that of the command."""


def _write_page(options: argparse.Namespace, command: str, console: Console) -> int:
    """Measure with a line of progress, and write the page."""
    page = PAGES[options.command]
    warning = machine.load_warning()
    with _progress(console) as progress:
        task = progress.add_task("", total=None)
        try:
            found = page.measure(options, lambda text: progress.update(task, description=text))
        except (datasets.MissingData, MissingPackage, NoCardError) as error:
            console.print(str(error), highlight=False, markup=False)
            return 1
    options.output.mkdir(parents=True, exist_ok=True)
    file = options.output / f"{page.page or options.command}.md"
    text = machine.with_note(page.markdown(options, found), command, warning)
    file.write_text(text, encoding="utf-8")
    console.print(f"Written: {file.name}.")
    return 1 if page.failed(found) else 0


def _add_choice_options(parser: argparse.ArgumentParser) -> None:
    _add_options(parser, data=choice.DATA, losses=True, repeat=3, longest=10.0)
    parser.add_argument("--shapes", type=int, default=200, help="how many problems are drawn")
    parser.add_argument("--seed", type=int, default=2, help="of these")
    parser.add_argument("--batches", type=Path, help="a file that keeps what was measured, to go on from")


def _add_intelex_options(parser: argparse.ArgumentParser) -> None:
    _add_options(parser, data=intelex.DATA, repeat=3, longest=60.0)
    parser.add_argument("--rows", type=int, default=20_000, help="of larger data sets as many are drawn")
    parser.add_argument("--fits", type=Path, help="a file that keeps what was measured, to go on from")


def _add_noisy_options(parser: argparse.ArgumentParser) -> None:
    _add_options(parser, longest=60.0)
    parser.add_argument("--count", type=int, default=30, help="how many problems are drawn")
    parser.add_argument("--seed", type=int, default=0, help="of the first of them")


def _add_dask_options(parser: argparse.ArgumentParser) -> None:
    _add_options(parser, repeat=3)
    parser.add_argument(
        "--no-spark", action="store_true", help="leave out the peer, which needs pyspark and Java"
    )


def _add_small_options(parser: argparse.ArgumentParser) -> None:
    _add_options(parser, losses=True, repeat=50)
    parser.add_argument("--kernel", type=_list_of(small.KERNELS), default=list(small.KERNELS))


def _add_gpu_options(parser: argparse.ArgumentParser) -> None:
    _add_options(parser, data=gpu.DATA, repeat=3)
    parser.add_argument("--thundersvm", help="ThunderSVM's library, to be measured beside", metavar="FILE")


def _add_wide_options(parser: argparse.ArgumentParser) -> None:
    _add_options(parser, data=wide.DATA, offered=wide.DATA, losses=True, longest=30.0)
    parser.add_argument("--batches", type=Path, help="a file that keeps every fit, to go on from")


def _add_chunks_options(parser: argparse.ArgumentParser) -> None:
    _add_options(parser, data=chunks.DATA, offered=chunks.OFFERED, losses=True)
    parser.add_argument("--batches", type=Path, help="a file that keeps every fit, to go on from")


def _add_path_options(parser: argparse.ArgumentParser) -> None:
    _add_options(parser, data=along_costs.DATA, losses=True, repeat=3)
    parser.add_argument("--no-search", action="store_true", help="leave out the choice of C: minutes")


def _add_sceptic_options(parser: argparse.ArgumentParser) -> None:
    _add_options(parser)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long fits are drawn")
    parser.add_argument("--seed", type=int, default=0, help="of all that is drawn")
    parser.add_argument("--first", type=int, default=0, help="the number of the first fit")
    parser.add_argument("--processes", type=int, default=2, help="that fit and examine side by side")
    parser.add_argument("--batches", type=Path, help="a file that keeps what was found, to go on from")


def _add_sceptic_kinds(parser: argparse.ArgumentParser) -> None:
    _add_sceptic_options(parser)
    words = "fits of the usual estimators, or of NuSVC, NuSVR, OneClassSVM, Crammer-Singer and RankSVM"
    parser.add_argument("--kinds", choices=("usual", "family"), default="usual", help=words)


def _add_interrupts_options(parser: argparse.ArgumentParser) -> None:
    _add_options(parser)
    parser.add_argument("--draws", type=int, default=100, help="fits with a Ctrl-C, of each case")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    cases = list(interrupts.CASES)
    parser.add_argument("--case", nargs="+", choices=cases, default=cases, help="some of the fits")
    parser.add_argument("--batches", type=Path, help="a file that keeps what was found, to go on from")


def _add_search_options(parser: argparse.ArgumentParser) -> None:
    _add_sceptic_options(parser)
    parser.add_argument("--show", type=int, help="make the fit of this number again, and nothing else")


def _measure_path(options: argparse.Namespace, tell: Tell) -> tuple[Any, Any]:
    chosen = (options.data, options.loss, options.repeat, tell)
    return along_costs.measure(*chosen), [] if options.no_search else along_costs.search(*chosen)


PAGES = {
    "choice": Page(
        "the automatic choice of solver against the best one",
        _add_choice_options,
        choice.measure,
        choice.markdown,
    ),
    "family": Page(
        "the members beside LinearSVC and SVC, against the best of the peers",
        family.add_options,
        family.measure,
        family.markdown,
    ),
    "reading": Page(
        "LIBSVM text, against scikit-learn's reader",
        partial(_add_options, data=reading.DATA, repeat=7),
        lambda given, tell: reading.measure(given.data, given.repeat, tell),
        lambda given, found: reading.markdown(found, given.repeat),
    ),
    "small": Page(
        "whole fits of at most 1,000 rows against scikit-learn's",
        _add_small_options,
        lambda given, tell: small.measure(given.loss, given.kernel, given.repeat, tell),
        lambda given, found: small.markdown(found, given.repeat),
    ),
    "intelex": Page(
        "kernel fits of thousands of rows against scikit-learn-intelex",
        _add_intelex_options,
        lambda given, tell: intelex.measure(
            given.data, given.rows, given.longest, given.repeat, given.fits, tell
        ),
        lambda given, found: intelex.markdown(found, given.rows, given.longest, given.repeat),
    ),
    "dask": Page(
        "fits on Dask's workers, beside Spark's LinearSVC",
        _add_dask_options,
        lambda given, tell: cluster.measure(given.repeat, not given.no_spark, tell),
        lambda given, found: cluster.markdown(found, given.repeat),
    ),
    "chunks": Page(
        "packed data read in chunks, beside SGDClassifier.partial_fit",
        _add_chunks_options,
        lambda given, tell: chunks.measure(given.data, given.loss, given.batches, tell),
        lambda given, found: chunks.markdown(found),
        page="scale",
    ),
    "features": Page(
        "monomials, Nystroem, and bounds on the exact kernel",
        partial(_add_options, repeat=7),
        lambda given, tell: features.measure(given.repeat, tell),
        lambda given, found: features.markdown(found, given.repeat),
    ),
    "gpu": Page(
        "kernel fits and predictions on a GPU",
        _add_gpu_options,
        lambda given, tell: gpu.measure(given.data, given.repeat, given.thundersvm, tell),
        lambda given, found: gpu.markdown(found, given.repeat),
    ),
    "sweep": Page(
        "every C from 2^-15 to 2^15: certified, and how fast",
        partial(_add_options, data=sweep.DATA, losses=True, longest=20.0),
        lambda given, tell: sweep.measure(given.data, given.loss, given.longest, tell),
        lambda given, found: sweep.markdown(found, given.longest),
    ),
    "wide": Page(
        "wide sparse data at every C, beside scikit-learn",
        _add_wide_options,
        lambda given, tell: wide.measure(given.data, given.loss, given.longest, tell, given.batches),
        lambda given, found: wide.markdown(found, given.longest),
    ),
    "noisy": Page(
        "kernels of thousands of rows with noisy labels and a very large C: do fits end?",
        _add_noisy_options,
        lambda given, tell: noisy.measure(given.count, given.seed, given.longest, tell),
        lambda given, found: noisy.markdown(found, given.longest),
    ),
    "degree2": Page(
        "monomials of degree 2 that are not written out",
        partial(_add_options, data=degree2.DATA, offered=tuple(degree2.CASES), repeat=5),
        lambda given, tell: degree2.run(given.data, given.repeat, tell),
        lambda given, found: degree2.markdown(found, given.repeat),
    ),
    "proofs": Page(
        "bounds on rounding, and rows left out one at a time",
        partial(_add_options, data=proofs.DATA, losses=True, repeat=3),
        lambda given, tell: proofs.measure(given.data, given.loss, given.repeat, tell),
        lambda given, found: proofs.markdown(found, given.repeat),
    ),
    "sceptic": Page(
        "proofs of random fits, recomputed in exact arithmetic",
        _add_sceptic_kinds,
        lambda given, tell: sceptic.measure(
            given.minutes,
            given.seed,
            given.first,
            given.processes,
            tell,
            given.batches,
            work=sceptic.examine_family if given.kinds == "family" else sceptic.examine_numbers,
        ),
        lambda given, found: sceptic_page.markdown(found),
        lambda found: bool(found.total.findings),
    ),
    "search": Page(
        "default fits of random problems: uncertified, untrue, slow",
        _add_search_options,
        lambda given, tell: search.measure(
            given.minutes, given.seed, given.first, given.processes, tell, given.batches
        ),
        lambda given, found: search.markdown(found),
        lambda found: any(name == "untrue" for name, _ in found.total.findings),
    ),
    "interrupts": Page(
        "Ctrl-C at random moments of a fit: models kept, and how late the fits end",
        _add_interrupts_options,
        interrupts.measure,
        interrupts.markdown,
        interrupts.failed,
    ),
    "path": Page(
        "the path along C, and the choice of C against scikit-learn's",
        _add_path_options,
        _measure_path,
        lambda given, found: along_costs.markdown(*found, given.repeat),
    ),
}


def _command(given: list[str]) -> str:
    """As it was called, without files and folders: pages name no paths."""
    kept = list(given)
    for option in ("--output", "--batches"):
        if option in kept:
            place = kept.index(option)
            del kept[place : place + 2]
        kept = [word for word in kept if not word.startswith(f"{option}=")]
    return shlex.join(["python", "-m", "benchmarks", *kept])


def _list_of(choices: tuple[str, ...]):
    def names(text: str) -> list[str]:
        chosen = text.split(",")
        unknown = [name for name in chosen if name not in choices]
        if unknown:
            raise argparse.ArgumentTypeError(
                f"{', '.join(unknown)} is not offered; choose from {', '.join(choices)}"
            )
        return chosen

    return names


def _numbers(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]


def _measure(options: argparse.Namespace, measured: Measurements, console: Console) -> None:
    start = time.perf_counter()
    longest = min(2.0, options.longest) if options.quick else options.longest
    with _progress(console) as progress:
        costs = {name: options.C or datasets.COSTS.get(name, (1.0,)) for name in options.data}
        task = progress.add_task("", total=len(options.loss) * sum(map(len, costs.values())))
        for name in options.data:
            try:
                data = datasets.load(name)
            except datasets.MissingData as error:
                measured.skipped.append(str(error))
                progress.console.print(str(error), highlight=False)
                progress.advance(task, len(options.loss) * len(costs[name]))
                continue
            for C, loss in itertools.product(costs[name], options.loss):
                title = f"{name}, {loss}, C = {C:g}"

                def tell(text: str, title: str = title) -> None:
                    progress.update(task, description=f"{title}: {text}")

                objective = Objective(data, loss, C)
                players = contestants(machine.cores())
                result = compare(objective, players, measured.repeat, longest, tell)
                measured.results.append(result)
                progress.console.print(f"{title}: {result.seconds:.0f} s in all", highlight=False)
                progress.advance(task)
        _side_measures(options, measured, progress, task)
    measured.seconds = time.perf_counter() - start


def _side_measures(options, measured: Measurements, progress: Progress, task) -> None:
    if options.page != "linear":
        return
    progress.update(task, description="Pegasos: rows per second")
    try:
        measured.rates = pegasos.rates(datasets.load("a9a"), 1.0, measured.repeat)
    except datasets.MissingData as error:
        measured.skipped.append(f"Pegasos was not timed: {error}")
    for name in () if options.quick else memory.DATA:
        for dtype in ("float32", "float64"):
            progress.update(task, description=f"memory: {name}, {dtype}")
            try:
                datasets.find(name)
            except datasets.MissingData as error:
                measured.skipped.append(f"Memory was not measured: {error}")
                break
            measured.memory.append(memory.measure(name, dtype))


def _progress(console: Console) -> Progress:
    columns = (
        SpinnerColumn(),
        BarColumn(20),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    return Progress(*columns, console=console, transient=True)


def _write(folder: Path, page: str, measured: Measurements, console: Console) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    draw(measured.results, folder / f"{page}.png")
    (folder / f"{page}.md").write_text(markdown(measured, f"{page}.png"), encoding="utf-8")
    console.print(f"Written: {page}.md and {page}.png, in {measured.seconds / 60:.1f} minutes.")


if __name__ == "__main__":
    sys.exit(main())
