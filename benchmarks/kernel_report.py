# SPDX-License-Identifier: BSD-3-Clause
"""The page of results with kernels, written wholly from what was measured."""

from __future__ import annotations

from dataclasses import dataclass, field

from benchmarks import machine
from benchmarks.kernel_prediction import Prediction
from benchmarks.kernel_process import Measured
from benchmarks.kernel_reference import TOLERANCE
from benchmarks.kernel_rounds import Result, Run, Score, Target
from benchmarks.kernel_small import SmallFit
from benchmarks.report import table
from benchmarks.solvers.kernel_base import CACHE_MEGABYTES, DEFAULT_SETTING, TIGHTER
from benchmarks.solvers.kernel_contestants import INTELEX, LIBSVM, OURS, OURS_ONE_THREAD, SCIKIT

_CONTESTANTS = (OURS, OURS_ONE_THREAD, LIBSVM, SCIKIT, INTELEX)
_PEERS = (LIBSVM, SCIKIT, INTELEX)


@dataclass
class KernelMeasurements:
    """All that one run of the program found."""

    facts: dict[str, str]
    command: str
    repeat: int
    longest: float
    rows: int | None
    warnings: list[str] = field(default_factory=list[str])
    results: list[Result] = field(default_factory=list[Result])
    small: list[SmallFit] = field(default_factory=list[SmallFit])
    predictions: list[Prediction] = field(default_factory=list[Prediction])
    processes: list[Measured] = field(default_factory=list[Measured])
    large: list[Measured] = field(default_factory=list[Measured])
    skipped: list[str] = field(default_factory=list[str])
    seconds: float = 0.0


def markdown(measured: KernelMeasurements, picture: str) -> str:
    """The whole page."""
    parts = [
        "# Kernel SVMs: seconds to equal quality",
        _how(measured),
        f"![Suboptimality against seconds]({picture})" if measured.results else "",
        _times(measured),
        _objectives(measured),
        _fits(measured),
        _references(measured),
        _large(measured),
        _processes(measured),
        _small(measured),
        _predictions(measured),
    ]
    page = "\n\n".join(part for part in parts if part) + "\n"
    return machine.with_note(page, measured.command, *measured.warnings)


_HOW = """\
## How it was measured

* {facts}.
* Everybody minimises `1/2 |w|^2 + C sum_i max(0, 1 - y_i (<w, phi(x_i)> + b))` with the Gaussian kernel
  `exp(-gamma |x - z|^2)` and a free intercept b. With more than two classes there is one problem for each
  pair of classes, and the measure is the sum of their objectives.
* A fit is marked by its multipliers alone. Outside the clock, plain NumPy recomputes in float64 the primal
  value P with the best b for them, and the dual value D, for which they are clipped to the box and balanced
  where rounding left them outside. Marks are the true suboptimality `(P - P*) / P*` and `(D* - D) / D*`,
  with P* = D* replaced by a lower bound from a certificate, asked for a relative gap of {tolerance:g} and
  recomputed by the same NumPy code; an error below the gap of that bound, told in a table below, means no
  more than that.
* Every contestant is scanned over its tolerance, and its time for a quality is that of its fastest fit that
  truly reaches it, as if the right setting had been known beforehand. That goes for ours too, though ours
  also proves its gap; the proof is inside the clock.
* maxmargin: the whole `SVC.fit` on the data as they are stored, `tol` from 1e-2 to 1e-6.
* LIBSVM: the C function `svm_train` alone (`-e` from 0.3 to 1e-3, its default); converting the data to its
  node format is not counted. It runs on all cores, or on one where a trial was faster so.
* scikit-learn SVC: the whole fit in float64, dense or sparse, whichever was faster in a trial; `tol` from
  0.3 to {tighter:g}, beyond its default; one thread, it has no more.
* scikit-learn-intelex SVC: the whole fit, float32 and dense, all cores; `tol` from 0.9 to {tighter:g}.
* All get a cache of {cache} MB.
* The contestants take turns. The first of {repeat} rounds scans all settings, the others repeat those that
  reach a quality and are, or could become, the fastest to do so; long fits are repeated less often, and a
  contestant whose fit took more than {longest:g} s went on to 1e-3 at once and ended there. Times are the
  best of these.
* The whole run took {minutes:.1f} minutes."""


def _how(measured: KernelMeasurements) -> str:
    text = _HOW.format(
        facts="; ".join(f"{name} {value}" for name, value in measured.facts.items()),
        tolerance=TOLERANCE,
        cache=CACHE_MEGABYTES,
        tighter=TIGHTER,
        repeat=measured.repeat,
        longest=measured.longest,
        minutes=measured.seconds / 60,
    )
    lines = []
    if measured.rows is not None:
        lines.append(f"* **Not the whole data**: at most {measured.rows:,} rows of each, drawn at random.")
    return "\n".join([text, *lines, *(f"* {sentence}" for sentence in measured.skipped)])


def _times(measured: KernelMeasurements) -> str:
    if not measured.results:
        return ""
    shown = _shown(measured)
    rows = []
    for result in measured.results:
        for target, what in zip(result.targets(), _WHAT, strict=False):
            ours = result.scores[OURS].fastest(target) if OURS in result.scores else None
            cells = [result.title, f"{what}: {target.measure} {target.quality:.1e}"]
            rows.append(cells + [_seconds(result.scores.get(name), target, ours) for name in shown])
    return (
        "## Seconds to equal quality\n\n"
        "In parentheses: the peer's time over ours on all cores; above 1, ours is faster. The second pair\n"
        f"of qualities is what LIBSVM reaches at its default `-e {DEFAULT_SETTING:g}`.\n\n"
        + table(["problem", "true suboptimality", *shown], rows)
    )


_WHAT = ("0.001", "0.001", "LIBSVM's default", "LIBSVM's default")


def _seconds(score: Score | None, target: Target, ours: Run | None) -> str:
    if score is None:
        return "not run"
    run = score.fastest(target)
    if run is None:
        closest = min(getattr(each, f"{target.measure}_error") for each in score.runs)
        return f"not reached: {closest:.1e}"
    ratio = f" ({run.seconds / ours.seconds:.2f}x)" if ours and score.contestant in _PEERS else ""
    return f"{run.seconds:.3g} s{ratio}"


def _objectives(measured: KernelMeasurements) -> str:
    rows = []
    for result in measured.results:
        for name, setting in ((OURS, 1e-3), (OURS, 1e-6), *((peer, DEFAULT_SETTING) for peer in _PEERS)):
            run = result.scores[name].at(setting) if name in result.scores else None
            if run is None:
                continue
            own = "" if run.own_dual is None else _digits(run.own_dual)
            how = f"{name}, {result.scores[name].setting_name} {setting:g}"
            rows.append([result.title, how, _digits(run.primal), _digits(run.dual), own])
    if not rows:
        return ""
    return (
        "## Objective values\n\n"
        "P with the best b, and D, recomputed. The last column is the value that LIBSVM itself prints,\n"
        "with its sign turned.\n\n" + table(["problem", "fit", "P", "D", "D as told"], rows)
    )


def _fits(measured: KernelMeasurements) -> str:
    rows = []
    for result in measured.results:
        for score in result.scores.values():
            for run in score.best_per_setting():
                proven = "" if run.certified_gap is None else f"{run.certified_gap:.1e}"
                cells = [result.title, score.contestant, f"{score.setting_name} {run.setting:g}"]
                cells += [f"{run.seconds:.3g}", f"{run.primal_error:.1e}", f"{run.dual_error:.1e}", proven]
                rows.append(cells)
    if not rows:
        return ""
    heads = ["problem", "contestant", "setting", "seconds", "primal error", "dual error", "gap it proved"]
    left_out = [
        f"* {result.title}, {score.contestant}: {score.setting_name} "
        f"{', '.join(f'{setting:g}' for setting in score.skipped)}."
        for result in measured.results
        for score in result.scores.values()
        if score.skipped
    ]
    more = "\n\nSettings left out, because the fits are long:\n\n" + "\n".join(left_out) if left_out else ""
    return "## All fits\n\nThe fastest at each setting.\n\n" + table(heads, rows) + more


def _references(measured: KernelMeasurements) -> str:
    rows = []
    for result in measured.results:
        bound = result.reference
        gap = f"{bound.relative_gap:.1e}"
        if bound.relative_gap > 1e-7:
            gap += " (the best it could prove)"
        cells = [result.title, result.described, str(result.problems), f"{bound.lower:.10g}", gap]
        rows.append(cells)
    heads = ["problem", "data", "pairs of classes", "lower bound on P*", "its relative gap"]
    return "## The problems\n\n" + table(heads, rows) if rows else ""


def _large(measured: KernelMeasurements) -> str:
    if not measured.large:
        return ""
    heads = ["problem", "data", "tol", "seconds", "gap it proved", "P", "D", "support vectors"]
    heads += ["peak of the fit, MB", "largest difference"]
    rows = [
        [
            each.title,
            each.described,
            f"{each.asked.tol:g}",
            f"{each.seconds:.1f}",
            f"{each.relative_gap:.1e}",
            _digits(each.primal),
            _digits(each.dual),
            f"{each.support:,}",
            _megabytes(each.peak),
            f"{each.largest_difference:.1e}",
        ]
        for each in measured.large
    ]
    return (
        "## A large problem\n\n"
        "One fit of ours on all cores; the values are those of its certificate. The last column compares\n"
        "its scores of 100 rows with plain NumPy.\n\n" + table(heads, rows)
    )


def _processes(measured: KernelMeasurements) -> str:
    if not measured.processes:
        return ""
    heads = ["problem", "cache_size, MB", "peak of the fit, MB", "input, MB", "seconds", "working sets"]
    heads += ["kernel rows computed", "support vectors"]
    rows = [
        [
            each.title,
            f"{each.asked.cache_size:g}",
            _megabytes(each.peak),
            f"{each.input / 1e6:.1f}",
            f"{each.seconds:.3g}",
            _count(each.rounds),
            _count(each.computed_rows),
            f"{each.support:,}",
        ]
        for each in measured.processes
    ]
    return (
        "## Memory and work of a fit\n\n"
        "Ours, all cores, `tol=1e-3`, each in a process of its own; 1 MB is a million bytes. The peak is\n"
        "resident memory above what was there before the fit: the cache, and copies of the data. Rows of\n"
        "the kernel matrix on a part of the problem count too; one computed twice counts twice.\n\n"
        + table(heads, rows)
    )


def _small(measured: KernelMeasurements) -> str:
    if not measured.small:
        return ""
    rows = [
        [
            each.title,
            each.described,
            f"{each.ours:.2f}",
            f"{each.scikit:.2f} ({each.scikit / each.ours:.2f}x)",
            f"{each.our_error:.1e}",
            f"{each.scikit_error:.1e}",
        ]
        for each in measured.small
    ]
    heads = ["problem", "data", "maxmargin, ms", f"{SCIKIT}, ms", "maxmargin: primal error"]
    heads += [f"{SCIKIT}: primal error"]
    return (
        "## Small problems\n\n"
        "Milliseconds of the processor for a whole fit with the default `tol` of both, the best of many\n"
        "in turn.\n\n" + table(heads, rows)
    )


def _predictions(measured: KernelMeasurements) -> str:
    if not measured.predictions:
        return ""
    rows = [
        [
            each.title,
            f"{each.queries:,}",
            f"{each.support:,}",
            f"{each.ours:.3g}",
            f"{each.ours_one_thread:.3g}",
            f"{each.scikit:.3g}, {each.scikit_form} ({each.scikit / each.ours:.1f}x)",
            str(each.different),
            f"{100 * each.accuracy:.2f} %",
        ]
        for each in measured.predictions
    ]
    heads = ["model", "test rows", "support vectors", f"{OURS}, s", "one thread, s", f"{SCIKIT}, s"]
    heads += ["answers that differ", "accuracy"]
    return (
        "## Prediction\n\n"
        "Seconds of `predict` for all test rows. scikit-learn's SVC has the same support vectors and\n"
        "coefficients, in float64.\n\n" + table(heads, rows)
    )


def _shown(measured: KernelMeasurements) -> list[str]:
    ran = {name for result in measured.results for name in result.scores}
    return [name for name in _CONTESTANTS if name in ran]


def _digits(value: float) -> str:
    """Seven significant digits, without an exponent."""
    whole = len(str(int(abs(value))))
    return f"{value:.{max(0, 7 - whole)}f}"


def _count(number: int) -> str:
    """Nothing is counted where problems are so small that no working sets are needed."""
    return f"{number:,}" if number else "none"


def _megabytes(size: int | None) -> str:
    return "unknown" if size is None else f"{size / 1e6:.1f}"
