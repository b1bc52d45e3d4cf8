# SPDX-License-Identifier: BSD-3-Clause
"""Thirty binary orders of magnitude of C: does every fit end with its proof, and in what time?"""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks import datasets, machine
from benchmarks.report import table

DATA = ("a9a", "ijcnn1", "mnist38", "imdb_tfidf", "news20_binary_like")
EXPONENTS = (*range(-15, 0, 2), 0, *range(1, 16, 2))
"""Of 2."""
_ALLOWED = 10.0
"""Times the fit at C = 1."""
_SHORT = 0.5
"""A fit of fewer seconds is taken twice, and the better time counts."""


@dataclass(frozen=True)
class Fit:
    """One fit of the default estimator."""

    data: str
    loss: str
    exponent: int
    seconds: float
    """Of the processor, on one thread."""
    relative_gap: float
    certified: bool
    solver: str
    """What ran and why."""


def measure(names: list[str], losses: list[str], longest: float, tell: Callable[[str], None]) -> list[Fit]:
    """All values of C for all data and losses, each fit cut off after ``longest`` seconds."""
    fits = []
    for name in names:
        data = datasets.load(name)
        for loss, exponent in itertools.product(losses, EXPONENTS):
            tell(f"{name}, {loss}, C = 2^{exponent}")
            fit = _fit(data, loss, exponent, longest)
            if fit.seconds < _SHORT:
                fit = min(fit, _fit(data, loss, exponent, longest), key=lambda one: one.seconds)
            fits.append(fit)
    return fits


def _fit(data: datasets.DataSet, loss: str, exponent: int, longest: float) -> Fit:
    from maxmargin import LinearSVC

    model: Any = LinearSVC(loss=loss, C=2.0**exponent, max_time=longest, random_state=0, n_jobs=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the gap says whether it fell short
        start = time.process_time()
        model.fit(data.X, data.y)
        seconds = time.process_time() - start
    gap = float(model.certificate_.relative_gap)
    return Fit(data.name, loss, exponent, seconds, gap, model.status_.certified, model.solver_)


_HOW = """\
# A sweep of C

Seconds of `LinearSVC(loss, C, n_jobs=1)` with C from 2^-15 to 2^15, everything else at its default: to a
certified relative gap of 1e-4 within 1000 steps, and cut off after {longest:g} s. Seconds of the processor,
which others on the machine disturb less. A gap in the place of seconds: the fit ended with this one.
{facts}.

No fit should end uncertified, or take more than ten times as long as the one at C = 1. Those that do are in
**bold**, and listed below the tables."""


def markdown(fits: list[Fit], longest: float) -> str:
    """The whole page."""
    facts = ", ".join(f"{name} {value}" for name, value in machine.facts().items())
    parts = [_HOW.format(longest=longest, facts=facts)]
    at_one = {(fit.data, fit.loss): fit.seconds for fit in fits if fit.exponent == 0}
    for loss in dict.fromkeys(fit.loss for fit in fits):
        of_loss = [fit for fit in fits if fit.loss == loss]
        names = list(dict.fromkeys(fit.data for fit in of_loss))
        cells = {(fit.data, fit.exponent): _cell(fit, at_one) for fit in of_loss}
        rows = [[f"2^{exponent}", *(cells[name, exponent] for name in names)] for exponent in EXPONENTS]
        slowest = [max(fit.seconds for fit in of_loss if fit.data == name) for name in names]
        ratios = [f"{most / at_one[name, loss]:.1f}x" for name, most in zip(names, slowest, strict=True)]
        rows.append(["slowest, of C = 1", *ratios])
        parts += [f"## {loss.replace('_', ' ').capitalize()}", table(["C", *names], rows)]
    parts += ["## Which, and what ran", _notes(fits, at_one)]
    return "\n\n".join(parts) + "\n"


def _exceptional(fit: Fit, at_one: dict[tuple[str, str], float]) -> bool:
    return not fit.certified or fit.seconds > _ALLOWED * at_one[fit.data, fit.loss]


def _cell(fit: Fit, at_one: dict[tuple[str, str], float]) -> str:
    text = f"{fit.seconds:.3g}" if fit.certified else f"gap {fit.relative_gap:.1e}"
    return f"**{text}**" if _exceptional(fit, at_one) else text


def _notes(fits: list[Fit], at_one: dict[tuple[str, str], float]) -> str:
    lines = [
        f"* {fit.data}, {fit.loss.replace('_', ' ')}, C = 2^{fit.exponent}: {fit.seconds:.3g} s, "
        f"{fit.seconds / at_one[fit.data, fit.loss]:.1f} times C = 1, gap {fit.relative_gap:.1e}. "
        f"{fit.solver}"
        for fit in fits
        if _exceptional(fit, at_one)
    ]
    return "\n".join(lines) or "None."
