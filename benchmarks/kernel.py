# SPDX-License-Identifier: BSD-3-Clause
"""``python -m benchmarks kernel``: kernel SVMs against the peers; writes kernel.md and kernel.png."""

from __future__ import annotations

import argparse
import pickle
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from benchmarks import datasets, kernel_data, kernel_prediction, kernel_process, kernel_small, machine
from benchmarks.kernel_picture import draw
from benchmarks.kernel_process import Asked
from benchmarks.kernel_report import KernelMeasurements, markdown
from benchmarks.kernel_rounds import compare
from benchmarks.solvers.kernel_contestants import SELECTABLE, kernel_contestants

PARTS = ("problems", "memory", "small", "prediction", "large")
LARGE = "covtype_binary_scale"
_PACKAGES = ("libsvm-official", "scikit-learn-intelex")
_CACHES = (1000.0, 100.0)
_TOL = 1e-3

Tell = Callable[[str], None]


def add_options(parser: argparse.ArgumentParser, list_of: Callable[[tuple[str, ...]], Any]) -> None:
    """What the command takes; ``list_of`` makes a reader of names with commas."""
    names = list(kernel_data.DEFAULT)
    parser.add_argument("--data", type=list_of(datasets.SELECTABLE), default=names, help="mnist is slow")
    parser.add_argument("--C", type=float, help="for all data; default: that of each")
    parser.add_argument("--gamma", type=float, help="for all data; default: that of each")
    parser.add_argument("--rows", type=int, help="at most so many rows of each data set, for a trial")
    parser.add_argument("--contestants", type=list_of(SELECTABLE), help="default: all that are fast enough")
    parser.add_argument("--parts", type=list_of(PARTS), default=list(PARTS))
    parser.add_argument("--repeat", type=int, default=3, help="rounds; the best time counts")
    parser.add_argument(
        "--longest", type=float, default=120.0, help="seconds of a fit that cut the scan of its contestant"
    )
    parser.add_argument("--reuse", action="store_true", help="parts that an earlier run measured likewise")
    parser.add_argument("--output", type=Path, default=Path("docs/results"))
    parser.add_argument("--page", default="kernel", help="stem of the page and its picture")


def run(options: argparse.Namespace, command: str, tell: Tell) -> list[str]:
    """Measure and write; the names of the files."""
    begun = time.perf_counter()
    facts = machine.facts(_PACKAGES)
    measured = KernelMeasurements(facts, command, options.repeat, options.longest, options.rows)
    keeper = _Keeper(facts, options.reuse, measured, tell)
    for part in options.parts:
        _MEASURES[part](options, measured, keeper, tell)
    measured.seconds = time.perf_counter() - begun + keeper.earlier
    options.output.mkdir(parents=True, exist_ok=True)
    picture = f"{options.page}.png"
    if measured.results:
        draw(measured.results, options.output / picture)
    page = options.output / f"{options.page}.md"
    page.write_text(markdown(measured, picture), encoding="utf-8")
    return [page.name, *([picture] if measured.results else [])]


def _problems(
    options: argparse.Namespace, measured: KernelMeasurements, keeper: _Keeper, tell: Tell
) -> None:
    for name in options.data:
        slow = kernel_data.SLOW.get(name, ())
        chosen = options.contestants or [each for each in SELECTABLE if each not in slow]

        def find(name: str = name, chosen: list[str] = chosen) -> Any:
            objective = kernel_data.objective(name, options.rows, options.C, options.gamma)
            players = kernel_contestants(chosen, machine.cores())
            told = f"{objective.title}: "
            return compare(
                objective, players, options.repeat, options.longest, lambda text: tell(told + text)
            )

        settings = options.rows, options.C, options.gamma, chosen, options.repeat
        keeper.add(measured.results, (name, *settings, options.longest), find)


def _memory(options: argparse.Namespace, measured: KernelMeasurements, keeper: _Keeper, tell: Tell) -> None:
    for name in options.data:
        for cache in _CACHES:
            asked = Asked(name, options.rows, options.C, options.gamma, _TOL, cache)
            tell(f"memory: {name}, cache of {cache:g} MB")
            keeper.add(measured.processes, asked, lambda asked=asked: _in_process(asked))


def _small(options: argparse.Namespace, measured: KernelMeasurements, keeper: _Keeper, tell: Tell) -> None:
    found: list[Any] = []
    keeper.add(found, ("small", options.repeat), lambda: kernel_small.measure(options.repeat, tell))
    measured.small = [fit for fits in found for fit in fits]


def _prediction(
    options: argparse.Namespace, measured: KernelMeasurements, keeper: _Keeper, tell: Tell
) -> None:
    for name in kernel_prediction.DATA:

        def find(name: str = name) -> Any:
            return kernel_prediction.measure(name, options.rows, options.repeat, tell)

        keeper.add(measured.predictions, ("prediction", name, options.rows, options.repeat), find)


def _large(options: argparse.Namespace, measured: KernelMeasurements, keeper: _Keeper, tell: Tell) -> None:
    tell(f"{LARGE}: one fit")
    asked = Asked(LARGE, options.rows, None, None, _TOL, _CACHES[0])
    keeper.add(measured.large, ("large", asked), lambda: _in_process(asked))


def _in_process(asked: Asked) -> kernel_process.Measured:
    datasets.find(asked.data)  # told here where it is missing
    return kernel_process.measure(asked)


_MEASURES = {
    "problems": _problems,
    "memory": _memory,
    "small": _small,
    "prediction": _prediction,
    "large": _large,
}


@dataclass
class _Keeper:
    """Keeps what was measured in the temporary folder, so that a run cut short need not begin again."""

    facts: dict[str, str]
    reuse: bool
    measured: KernelMeasurements
    tell: Tell
    earlier: float = 0.0
    """Seconds that reused parts took when they were measured."""

    def add(self, to: list[Any], settings: object, find: Callable[[], Any]) -> None:
        """Append what ``find`` measures, or what it measured under the same settings and versions."""
        told = repr((sorted(self.facts.items()), machine.newest_source(), settings))
        key = sha256(told.encode()).hexdigest()[:16]
        path = Path(tempfile.gettempdir()) / "maxmargin-benchmarks" / f"kernel-{key}.pickle"
        if self.reuse and path.exists():
            found, warning, seconds = pickle.loads(path.read_bytes())
            self.earlier += seconds
        else:
            warning, begun = machine.load_warning(), time.perf_counter()
            try:
                found = find()
            except datasets.MissingData as error:
                self.measured.skipped.append(str(error))
                return
            seconds = time.perf_counter() - begun
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(pickle.dumps((found, warning, seconds)))
        if warning and not self.measured.warnings:
            self.measured.warnings.append(warning)
        to.append(found)
