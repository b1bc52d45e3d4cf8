# SPDX-License-Identifier: BSD-3-Clause
"""What a part of the reproduction is given, and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from maxmargin.reproduce.data import Data, load

Cell = str | int | float | None
"""None is shown as a dash: nothing was published, or nothing was run."""


@dataclass(frozen=True)
class Settings:
    """How a part is to be run."""

    quick: bool = False
    """Whether to use subsamples and small budgets, which show that a part works, not what was published."""
    folder: Path | None = None
    """The folder of the data files."""
    tell: Callable[[str], None] = lambda _: None
    """A function that is told what is being done now."""

    def of(self, full: Any, quick: Any) -> Any:
        """The value for a full run, or the one for a quick run."""
        return quick if self.quick else full

    def load(self, name: str) -> Data:
        """A data set, a subsample of it where the run is quick."""
        self.tell(f"reading {name}")
        return load(name, self.folder, rows=2_000 if self.quick else None)


@dataclass(frozen=True)
class Table:
    """One table, with plain values."""

    title: str
    headings: Sequence[str]
    rows: list[tuple[Cell, ...]]
    formats: Mapping[str, str] = field(default_factory=dict[str, str])
    """How numbers of a column are written; four digits by default."""

    def text_rows(self) -> list[tuple[str, ...]]:
        """The rows as they are shown."""
        return [
            tuple(self._text(name, cell) for name, cell in zip(self.headings, row, strict=True))
            for row in self.rows
        ]

    def records(self) -> list[dict[str, Cell]]:
        """The rows as JSON has them."""
        return [dict(zip(self.headings, row, strict=True)) for row in self.rows]

    def _text(self, heading: str, cell: Cell) -> str:
        if cell is None:
            return "-"
        if isinstance(cell, float):
            return format(cell, self.formats.get(heading, ".4g"))
        return str(cell)


@dataclass(frozen=True)
class Result:
    """What a part found."""

    about: str
    """What was done, in one paragraph."""
    tables: list[Table]
    findings: list[str]
    """What the numbers say, one sentence or two each."""
    figure: Figure


LECTURES = {
    "000": "*Statistical Machine Learning*, lecture 4, Christoph Lampert",
    "001": "*Advanced Topics in Machine Learning*, 1, Lars Schmidt-Thieme",
    "002": "*Lecture 20*, Support Vector Machine Analysis",
    "003": "*Support Vector Machine*, Mengye Ren",
    "004": "*SVM - soft margins*, *The SMO-Algorithm*, *Kernels*",
}
"""What the numbers of the lectures stand for, title and author as the texts give them."""


@dataclass(frozen=True)
class Part:
    """One table or figure of the lectures."""

    title: str
    run: Callable[[Settings], Result]
    needs: tuple[str, ...] = ()
    """Data sets without which it cannot run."""
    lectures: tuple[str, ...] = ()
    """Those that it is of, by their numbers."""

    def source(self) -> str:
        """The lectures, each with its title, as a sentence; empty where it is of none."""
        if not self.lectures:
            return ""
        return f"From {' and '.join(f'lecture {name} ({LECTURES[name]})' for name in self.lectures)}."


def new_figure(rows: int, columns: int, width: float = 4.2, height: float = 3.3) -> tuple[Figure, Any]:
    """A figure that no window will show, and its Axes as a matrix."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False)
