# SPDX-License-Identifier: BSD-3-Clause
"""The page of results, written wholly from what was measured."""

from __future__ import annotations

from dataclasses import dataclass, field

from benchmarks import machine
from benchmarks.linear import Result, Score
from benchmarks.memory import Memory
from benchmarks.pegasos import Rate
from benchmarks.reference import TOLERANCE
from benchmarks.solvers import (
    LIBLINEAR,
    LINEAR_SVC,
    OURS,
    OURS_ALL_CORES,
    OURS_FLOAT64,
    QUALITIES,
    SGD,
)

PEERS = (LIBLINEAR, LINEAR_SVC, SGD)


@dataclass
class Measurements:
    """All that one run of the program found."""

    facts: dict[str, str]
    command: str
    repeat: int
    warning: str | None = None
    results: list[Result] = field(default_factory=list[Result])
    rates: list[Rate] = field(default_factory=list[Rate])
    memory: list[Memory] = field(default_factory=list[Memory])
    skipped: list[str] = field(default_factory=list[str])
    seconds: float = 0.0


def markdown(measured: Measurements, picture: str) -> str:
    """The whole page."""
    parts = [
        "# Linear SVMs: seconds to equal quality",
        _how(measured),
        f"![Suboptimality against seconds]({picture})" if measured.results else "",
        *(_times(measured, quality) for quality in QUALITIES),
        _reached(measured),
        _variants(measured),
        _references(measured),
        _pegasos(measured),
        _memory(measured),
    ]
    page = "\n\n".join(part for part in parts if part) + "\n"
    return machine.with_note(page, measured.command, measured.warning)


_HOW = """\
## How it was measured

* {facts}.
* Everybody minimises `1/2 |w|^2 + 1/2 b^2 + C sum_i loss(y_i (<w, x_i> + b))`: the intercept is the
  weight of a constant feature of 1. With more than two classes there is one problem per class
  against the rest, and the measure is the sum of their objectives.
* maxmargin: the whole `LinearSVC.fit` on one thread, validation and proof included, with `tol` at the
  quality asked for: it ends when its own certificate shows a relative gap `(P - D) / P` of at most
  that, in every class. It does not know the optimum.
* The peers prove nothing. They get credit for the truth: `(P(w) - P*) / P*`, recomputed in float64
  outside the clock, with P* replaced by a lower bound from a separate certificate at a relative gap
  of {tolerance:g}, which the benchmark recomputes in plain SciPy. Their time is the smallest among
  the fits of a scan that reach the quality, as if the right setting had been known beforehand.
* LIBLINEAR: the C function `train` alone (`-s 3` hinge, `-s 1` squared hinge, `-B 1`, `-e` from 10
  to 1e-5); converting the data to its node format is not counted. Its dual solvers stop after 300
  iterations, whatever `-e` says.
* scikit-learn LinearSVC: the whole fit, `dual=True`, `tol` from 10 to 1e-5, and its default
  `max_iter=1000`.
* scikit-learn SGDClassifier: the whole fit, `alpha = 1 / (C n)`, 1 to 200 epochs, `tol=None`, its
  default learning rate, the constant feature appended.
* The peers read float64, so that they need not convert; ours reads the data as they are stored, and
  a table below has it on float64 too. The values are the same.
* The contestants take turns. The first of {repeat} rounds scans all settings, the others repeat
  those that reach a quality and are, or could become, the fastest to do so; fits of many seconds
  are repeated less often. Times are the best of these. Where it says *scan given up*, the peer's
  fits had become long and tighter settings were not tried; *not reached* means that they were.
* The whole run took {minutes:.1f} minutes."""


def _how(measured: Measurements) -> str:
    text = _HOW.format(
        facts="; ".join(f"{name} {value}" for name, value in measured.facts.items()),
        tolerance=TOLERANCE,
        repeat=measured.repeat,
        minutes=measured.seconds / 60,
    )
    return "\n".join([text, *(f"* {sentence}" for sentence in measured.skipped)])


def _times(measured: Measurements, quality: float) -> str:
    if not measured.results:
        return ""
    rows = []
    for result in measured.results:
        ours = result.scores[OURS].fastest(quality)
        cells = [_problem(result), _seconds_of(result.scores[OURS], quality)]
        if OURS_ALL_CORES in result.scores:
            cells.append(_seconds_of(result.scores[OURS_ALL_CORES], quality))
        for peer in PEERS:
            run = result.scores[peer].fastest(quality)
            ratio = f" ({run.seconds / ours.seconds:.2f}x)" if run and ours else ""
            cells.append(_seconds_of(result.scores[peer], quality) + ratio)
        rows.append(cells)
    heads = ["problem", f"{OURS}, one thread"]
    if OURS_ALL_CORES in measured.results[0].scores:
        heads.append(f"{OURS}, {measured.facts['cores']} threads")
    return (
        f"## Seconds to a quality of {quality:g}\n\n"
        "In parentheses: the peer's time over ours on one thread; above 1, ours is faster.\n\n"
        + table([*heads, *PEERS], rows)
    )


def _reached(measured: Measurements) -> str:
    if not measured.results:
        return ""
    rows = []
    for result in measured.results:
        for quality in QUALITIES:
            cells = [_problem(result), f"{quality:g}"]
            ours = result.scores[OURS].fastest(quality) or result.scores[OURS].best
            cells.append(f"{ours.certified_gap:.1e} / {ours.suboptimality:.1e}")
            for peer in PEERS:
                score = result.scores[peer]
                run = score.fastest(quality) or score.best
                cells.append(f"{run.suboptimality:.1e} ({score.setting_name} {run.setting:g})")
            rows.append(cells)
    heads = [
        "problem",
        "quality",
        f"{OURS}: certified / true",
        *(f"{peer}: true" for peer in PEERS),
    ]
    ends = _scans_cut_short(measured)
    return (
        "## What those fits reached\n\n"
        "Ours: the gap that the fit proved, and the true suboptimality, which it cannot know.\n"
        "The peers: the true suboptimality and the setting that gave it; the best one where the\n"
        "quality was not reached.\n\n" + table(heads, rows) + (f"\n\n{ends}" if ends else "")
    )


def _scans_cut_short(measured: Measurements) -> str:
    lines = [
        f"* {_problem(result)}, {score.contestant}: the scan ended at {score.setting_name} "
        f"{score.best_per_setting()[-1].setting:g}, because {score.scan_ended}."
        for result in measured.results
        for score in result.scores.values()
        if score.scan_ended is not None
    ]
    return "Scans that ended early:\n\n" + "\n".join(lines) if lines else ""


def _variants(measured: Measurements) -> str:
    if not measured.results or OURS_FLOAT64 not in measured.results[0].scores:
        return ""
    rows = []
    for result in measured.results:
        cells = [_problem(result)]
        for quality in QUALITIES:
            cells += [_seconds_of(result.scores[name], quality) for name in (OURS, OURS_FLOAT64)]
        rows.append(cells)
    heads = [f"{quality:g}, {kind}" for quality in QUALITIES for kind in ("as stored", "float64")]
    return (
        "## Ours with float64 input\n\nSeconds on one thread; the same numbers, stored in "
        "twice the space.\n\n" + table(["problem", *heads], rows)
    )


def _references(measured: Measurements) -> str:
    rows = []
    for result in measured.results:
        gap = result.reference.relative_gap
        note = "" if gap <= 1.01 * TOLERANCE else " (the best reached in the time given)"
        lower = f"{result.reference.lower:.10g}"
        rows.append([_problem(result), result.described, lower, f"{gap:.1e}{note}"])
    heads = ["problem", "data", "lower bound on P*", "its relative gap"]
    return "## The problems\n\n" + table(heads, rows) if rows else ""


def _pegasos(measured: Measurements) -> str:
    rows = [[rate.variant, f"{rate.rows_per_second / 1e6:.1f}"] for rate in measured.rates]
    if not rows:
        return ""
    return "## Pegasos: rows per second\n\nSteps on one row each, a9a, hinge, one thread.\n\n" + table(
        ["variant", "million rows per second"], rows
    )


def _memory(measured: Measurements) -> str:
    rows = []
    for each in measured.memory:
        above = each.above_loaded
        beyond = None if above is None else above - each.answer
        sizes = (each.input, each.float32_copy, above, each.answer, beyond)
        cells = ["unknown" if size is None else f"{size / 2**20:.1f}" for size in sizes]
        rows.append([each.data, each.dtype, *cells])
    if not rows:
        return ""
    heads = ["data", "input", "input, MiB", "one float32 CSR copy", "peak of the fit", "of it the answer"]
    heads += ["of it the work"]
    return (
        "## Peak memory of a fit\n\n"
        "MiB of resident memory above the input, in a process of its own; hinge, quality 1e-3, one\n"
        "thread. The answer is what stays: coef_, and the certificate's numbers for every row. The\n"
        "work should need no more than one float32 CSR copy.\n\n" + table(heads, rows)
    )


def _problem(result: Result) -> str:
    return f"{result.data}, {result.loss.replace('_', ' ')}, C = {result.C:g}"


def _seconds_of(score: Score, quality: float) -> str:
    run = score.fastest(quality)
    if run is not None:
        return f"{run.seconds:.3g} s"
    best = score.best
    if best.certified_gap is not None:
        return f"not certified: gap {best.certified_gap:.1e} after {best.seconds:.3g} s"
    above = f"{100 * best.suboptimality:.2g} % above"
    if best.suboptimality > 10:
        above = f"{best.suboptimality + 1:.1e} times P*"
    verdict = "scan given up" if score.gave_up else "not reached"
    return f"{verdict}: {above} after {best.seconds:.3g} s"


def table(heads: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
