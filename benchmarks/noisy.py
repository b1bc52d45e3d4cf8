# SPDX-License-Identifier: BSD-3-Clause
"""Kernels of thousands of rows with noisy labels and a very large C: does every fit end, and when?"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import machine
from benchmarks.report import table

GOAL = 10.0
"""Seconds of a fit."""
_TOL = 1e-3


class Case(NamedTuple):
    """One problem: the labels are the side of a plane on which a row lies, but for noise."""

    rows: int
    columns: int
    values: str
    noise: float
    """In units of how far the rows spread from the plane."""
    C: float
    gamma: float
    """In units of ``"scale"``."""


HARD = (
    Case(16393, 8, "normal", 3.0, 2.3e5, 0.10),
    Case(13990, 10, "normal", 1.0, 2.5e4, 0.37),
    Case(13378, 9, "whole", 0.3, 3.8e5, 0.28),
    Case(15855, 9, "normal", 3.0, 3.7e5, 0.18),
    Case(14541, 10, "whole", 3.0, 6e4, 0.13),
    Case(11205, 7, "normal", 3.0, 1.5e5, 0.33),
    Case(10895, 7, "uniform", 1.0, 5.2e5, 0.37),
)
"""The hardest of fifteen that a search found: many rows are free, and no factor has few columns."""


@dataclass(frozen=True)
class Fit:
    """One default fit."""

    case: Case
    seed: int
    seconds: float
    processor: float
    relative_gap: float
    status: str
    solver: str


def drawn(seed: int) -> Case:
    """A problem of 6,000 to 17,000 rows."""
    random = np.random.default_rng(seed)
    rows, columns = int(random.integers(6_000, 17_001)), int(random.integers(3, 11))
    values, noise = (
        str(random.choice(["whole", "uniform", "normal"])),
        float(random.choice([0.3, 1.0, 3.0])),
    )
    gamma = math.exp(random.uniform(math.log(0.01), math.log(0.5)))
    return Case(rows, columns, values, noise, math.exp(random.uniform(math.log(2e4), math.log(8e5))), gamma)


def data_of(case: Case, seed: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """The rows and labels of a problem."""
    random, size = np.random.default_rng(seed), (case.rows, case.columns)
    X = {
        "normal": lambda: random.normal(size=size),
        "uniform": lambda: random.uniform(size=size),
        "whole": lambda: random.integers(0, 20, size).astype(float),
    }[case.values]()
    scores = X @ random.normal(size=case.columns)
    scores = scores - np.median(scores) + case.noise * scores.std() * random.normal(size=case.rows)
    return X, np.where(scores > 0.0, 1.0, -1.0)


def measure(count: int, seed: int, longest: float, tell: Callable[[str], None]) -> list[Fit]:
    """The hard ones and so many that are drawn, each cut off after ``longest`` seconds."""
    cases = [(case, 0) for case in HARD] + [(drawn(n), n) for n in range(seed, seed + count)]
    fits = []
    for n, (case, own) in enumerate(cases):
        tell(f"{n + 1} of {len(cases)}: {case.rows} x {case.columns}")
        fits.append(_fit(case, own, longest))
    return fits


def _fit(case: Case, seed: int, longest: float) -> Fit:
    from maxmargin import SVC

    X, y = data_of(case, seed)
    gamma = case.gamma / (case.columns * X.var())
    model: Any = SVC(C=case.C, gamma=gamma, tol=_TOL, max_time=longest, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the status says whether it fell short
        wall, processor = time.perf_counter(), time.process_time()
        model.fit(X, y)
        spent = time.perf_counter() - wall, time.process_time() - processor
    gap = float(model.certificate_.relative_gap)
    return Fit(case, seed, *spent, gap, model.status_.name, model.solver_.partition(":")[0])


_HOW = """\
# Noisy labels at a very large C

Default fits of `SVC(C, gamma, tol=1e-3)` with the Gaussian kernel to rows whose labels are the side of a
plane but for noise: the seven hardest of fifteen problems that were found in a search, and {count} that are
drawn, of 6,000 to 17,000 rows, 3 to 10 columns of whole, uniform or normal numbers, C from 2e4 to 8e5 and
gamma from 0.01 to 0.5 in units of `"scale"`, log-uniformly. Noise is in units of how far the rows spread
from the plane. A fit is cut off after {longest:g} s. "Seconds" are those of the clock, "processor" those of
all cores together.
{facts}.

Fits that take more than {goal:g} s, or end uncertified, are in **bold**; `VALUES_ROUNDED` says that the
rounding of the kernel's values is all that is left. What the time goes to is on
[the page of limits](limits/kernels.md#noisy-labels-at-a-very-large-c)."""


def markdown(fits: list[Fit], longest: float) -> str:
    """The whole page."""
    facts = ", ".join(f"{name} {value}" for name, value in machine.facts().items())
    head = [
        "rows x columns",
        "noise",
        "C",
        "gamma",
        "seconds",
        "processor",
        "relative gap",
        "status",
        "last way",
    ]
    hard, others = fits[: len(HARD)], fits[len(HARD) :]
    how = _HOW.format(count=len(others), longest=longest, facts=facts, goal=GOAL)
    certified = sum(fit.status == "CERTIFIED" for fit in fits)
    quick = sum(fit.seconds <= GOAL for fit in fits)
    end = f"{certified} of {len(fits)} are certified, {quick} end within {GOAL:g} s."
    return (
        "\n\n".join(
            [
                how,
                "## The hardest",
                table(head, [_row(fit) for fit in hard]),
                "## Drawn",
                table(head, [_row(fit) for fit in others]),
                end,
            ]
        )
        + "\n"
    )


def _row(fit: Fit) -> list[str]:
    case = fit.case
    cells = [
        f"{case.rows:,} x {case.columns}, {case.values}",
        f"{case.noise:g}",
        f"{case.C:.1e}",
        f"{case.gamma:.2g}",
        f"{fit.seconds:.1f}",
        f"{fit.processor:.1f}",
        f"{fit.relative_gap:.1e}",
        f"`{fit.status}`",
        f"`{fit.solver}`",
    ]
    bold = fit.seconds > GOAL or fit.status not in ("CERTIFIED", "VALUES_ROUNDED")
    return [f"**{cell}**" for cell in cells] if bold else cells
