# SPDX-License-Identifier: BSD-3-Clause
"""``python -m benchmarks linear``, ``kernel``, ``degree2`` and others: run from the repository's root."""

from __future__ import annotations

import argparse
import itertools
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from benchmarks import (
    along_costs,
    choice,
    datasets,
    degree2,
    features,
    kernel,
    machine,
    memory,
    pegasos,
    reading,
    small,
    sweep,
)
from benchmarks.linear import compare
from benchmarks.objective import Objective
from benchmarks.picture import draw
from benchmarks.report import Measurements, markdown
from benchmarks.solvers import contestants
from benchmarks.solvers.base import MissingPackage

LOSSES = ("hinge", "squared_hinge")
Tell = Callable[[str], None]


def main(arguments: list[str] | None = None) -> int:
    """0, or 1 where something needed is missing."""
    given = sys.argv[1:] if arguments is None else arguments
    options = _parser().parse_args(given)
    console = Console()
    if options.command == "choice":
        return _choice(options, _command(given), console)
    if options.command == "reading":
        return _reading(options, _command(given), console)
    if options.command == "kernel":
        return _kernel(options, _command(given), console)
    if options.command == "path":
        return _path(options, _command(given), console)
    if options.command == "small":
        return _small(options, _command(given), console)
    if options.command == "features":
        return _features(options, _command(given), console)
    if options.command == "sweep":
        return _sweep(options, _command(given), console)
    if options.command == "degree2":
        return _degree2(options, _command(given), console)
    measured = Measurements(
        facts=machine.facts(),
        command=_command(given),
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
    linear.add_argument("--data", type=_list_of(datasets.SELECTABLE), default=list(datasets.DEFAULT))
    linear.add_argument("--C", type=_numbers, help="one or several, with commas, for all data")
    linear.add_argument("--loss", type=_list_of(LOSSES), default=list(LOSSES))
    linear.add_argument("--repeat", type=int, default=5, help="rounds; the best time counts")
    linear.add_argument("--longest", type=float, default=20.0, help="seconds: 0.4 of it ends a scan")
    linear.add_argument("--quick", action="store_true", help="one round, short scans, no memory")
    linear.add_argument("--output", type=Path, default=Path("docs/results"))
    linear.add_argument("--page", default="linear", help="stem of the page and its picture")
    kernels = commands.add_parser("kernel", help="kernel SVMs: seconds to equal quality against the peers")
    kernel.add_options(kernels, _list_of)
    chosen = commands.add_parser("choice", help="the automatic choice of solver against the best one")
    chosen.add_argument("--data", type=_list_of(datasets.SELECTABLE), default=list(choice.DATA))
    chosen.add_argument("--loss", type=_list_of(LOSSES), default=list(LOSSES))
    chosen.add_argument("--repeat", type=int, default=3, help="rounds; the best time counts")
    chosen.add_argument("--longest", type=float, default=10.0, help="seconds for one fit")
    chosen.add_argument("--output", type=Path, default=Path("docs/results"))
    text = commands.add_parser("reading", help="LIBSVM text, against scikit-learn's reader")
    text.add_argument("--data", type=_list_of(datasets.SELECTABLE), default=list(reading.DATA))
    text.add_argument("--repeat", type=int, default=7, help="rounds; the best time counts")
    text.add_argument("--output", type=Path, default=Path("docs/results"))
    few = commands.add_parser("small", help="whole fits of at most 1,000 rows against scikit-learn's")
    few.add_argument("--loss", type=_list_of(LOSSES), default=list(LOSSES))
    few.add_argument("--kernel", type=_list_of(small.KERNELS), default=list(small.KERNELS))
    few.add_argument("--repeat", type=int, default=50, help="rounds; the best time counts")
    few.add_argument("--output", type=Path, default=Path("docs/results"))
    maps = commands.add_parser("features", help="monomials, Nystroem, and bounds on the exact kernel")
    maps.add_argument("--repeat", type=int, default=7, help="rounds; the best time counts")
    maps.add_argument("--output", type=Path, default=Path("docs/results"))
    swept = commands.add_parser("sweep", help="every C from 2^-15 to 2^15: certified, and how fast")
    swept.add_argument("--data", type=_list_of(datasets.SELECTABLE), default=list(sweep.DATA))
    swept.add_argument("--loss", type=_list_of(LOSSES), default=list(LOSSES))
    swept.add_argument("--longest", type=float, default=20.0, help="seconds for one fit")
    swept.add_argument("--output", type=Path, default=Path("docs/results"))
    squared = commands.add_parser("degree2", help="monomials of degree 2 that are not written out")
    squared.add_argument("--data", type=_list_of(tuple(degree2.CASES)), default=list(degree2.DATA))
    squared.add_argument("--repeat", type=int, default=5, help="rounds; the best time counts")
    squared.add_argument("--output", type=Path, default=Path("docs/results"))
    walked = commands.add_parser(
        "path", help="the path along C, and the choice of C against scikit-learn's"
    )
    walked.add_argument("--data", type=_list_of(datasets.SELECTABLE), default=list(along_costs.DATA))
    walked.add_argument("--loss", type=_list_of(LOSSES), default=list(LOSSES))
    walked.add_argument("--repeat", type=int, default=3, help="rounds; the best time counts")
    walked.add_argument("--no-search", action="store_true", help="leave out the choice of C: minutes")
    walked.add_argument("--output", type=Path, default=Path("docs/results"))
    return parser


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


def _choice(options: argparse.Namespace, command: str, console: Console) -> int:
    warning = machine.load_warning()
    with _progress(console) as progress:
        task = progress.add_task("", total=None)
        choices = choice.measure(
            options.data,
            options.loss,
            options.repeat,
            options.longest,
            lambda text: progress.update(task, description=text),
        )
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "choice.md").write_text(choice.markdown(choices, command, warning), encoding="utf-8")
    console.print("Written: choice.md.")
    return 0


def _write_page(
    name: str,
    options: argparse.Namespace,
    console: Console,
    measure: Callable[[Tell], Any],
    markdown: Callable[[Any, str | None], str],
) -> int:
    """Measure with a line of progress, and write the page; a warning says that the machine was busy."""
    warning = machine.load_warning()
    with _progress(console) as progress:
        task = progress.add_task("", total=None)
        try:
            found = measure(lambda text: progress.update(task, description=text))
        except (datasets.MissingData, MissingPackage) as error:
            console.print(str(error), highlight=False, markup=False)
            return 1
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / f"{name}.md").write_text(markdown(found, warning), encoding="utf-8")
    console.print(f"Written: {name}.md.")
    return 0


def _reading(options: argparse.Namespace, command: str, console: Console) -> int:
    return _write_page(
        "reading",
        options,
        console,
        lambda tell: reading.measure(options.data, options.repeat, tell),
        lambda found, warning: reading.markdown(found, command, options.repeat, warning),
    )


def _path(options: argparse.Namespace, command: str, console: Console) -> int:
    def measure(tell: Tell) -> tuple[Any, Any]:
        chosen = (options.data, options.loss, options.repeat, tell)
        return along_costs.measure(*chosen), [] if options.no_search else along_costs.search(*chosen)

    return _write_page(
        "path",
        options,
        console,
        measure,
        lambda found, warning: along_costs.markdown(*found, command, options.repeat, warning),
    )


def _small(options: argparse.Namespace, command: str, console: Console) -> int:
    return _write_page(
        "small",
        options,
        console,
        lambda tell: small.measure(options.loss, options.kernel, options.repeat, tell),
        lambda found, warning: small.markdown(found, command, options.repeat, warning),
    )


def _features(options: argparse.Namespace, command: str, console: Console) -> int:
    return _write_page(
        "features",
        options,
        console,
        lambda tell: features.measure(options.repeat, tell),
        lambda found, warning: features.markdown(found, command, options.repeat, warning),
    )


def _sweep(options: argparse.Namespace, command: str, console: Console) -> int:
    return _write_page(
        "sweep",
        options,
        console,
        lambda tell: sweep.measure(options.data, options.loss, options.longest, tell),
        lambda found, warning: sweep.markdown(found, command, options.longest, warning),
    )


def _degree2(options: argparse.Namespace, command: str, console: Console) -> int:
    return _write_page(
        "degree2",
        options,
        console,
        lambda tell: degree2.run(options.data, options.repeat, tell),
        lambda found, warning: degree2.markdown(found, command, options.repeat, warning),
    )


def _command(given: list[str]) -> str:
    """As it was called, without the place of the output: pages name no paths."""
    kept = list(given)
    if "--output" in kept:
        place = kept.index("--output")
        del kept[place : place + 2]
    kept = [word for word in kept if not word.startswith("--output=")]
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
