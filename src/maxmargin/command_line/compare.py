# SPDX-License-Identifier: BSD-3-Clause
"""``maxmargin compare``: every solver that applies, one table, and a picture of gap against seconds."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maxmargin.command_line.shared.answer import (
    DONE,
    INTERCEPTS,
    Failure,
    in_words,
    print_json,
    print_table,
)
from maxmargin.command_line.shared.features import (
    asked_features,
    expanded,
    features_as_json,
    features_in_words,
)
from maxmargin.command_line.shared.options import (
    CacheSize,
    Coef0,
    Columns,
    DataFile,
    Degree,
    Features,
    Format,
    Gamma,
    Json,
    KernelName,
    Label,
    Reading,
    SkipBadLines,
    Threads,
    ZeroBased,
    check_readable,
    check_writable,
    kernel_of,
    kernel_options,
)
from maxmargin.command_line.shared.picture import check_picture, draw
from maxmargin.command_line.shared.progress import Bars
from maxmargin.command_line.shared.solver_options import Options, entrants
from maxmargin.command_line.shared.words import some
from maxmargin.files.data.labels import label_text, labels_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from maxmargin.features import Monomials
    from maxmargin.features.expansion import Expansion
    from maxmargin.problem import Problem
    from maxmargin.proof.model import Model
    from maxmargin.solvers import AnySolver
    from maxmargin.solving.loop import Progress


@in_words
def compare(
    data: DataFile,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="The picture, PNG or SVG by its suffix.")
    ] = Path("compare.png"),
    C: Annotated[float, typer.Option("-C", help="Weight of the losses.")] = 1.0,
    loss: Annotated[str, typer.Option(help="hinge, squared_hinge or logistic.")] = "hinge",
    intercept: Annotated[str, typer.Option(help="exact, regularised or none.")] = "exact",
    positive: Annotated[
        str | None,
        typer.Option("--class", help="Of several classes, the one to tell from the rest: the largest."),
    ] = None,
    solver: Annotated[
        list[str] | None,
        typer.Option(help="Only this one; may be given several times.", show_default="all"),
    ] = None,
    option: Options = None,
    kernel: KernelName = None,
    gamma: Gamma = None,
    degree: Degree = None,
    coef0: Coef0 = None,
    cache_size: CacheSize = None,
    features: Features = None,
    tol: Annotated[float, typer.Option(help="Relative gap to reach.")] = 1e-6,
    max_time: Annotated[float, typer.Option(help="Seconds for each solver.")] = 10.0,
    format: Format = None,
    label: Label = None,
    columns: Columns = None,
    zero_based: ZeroBased = False,
    skip_bad_lines: SkipBadLines = False,
    threads: Threads = None,
    as_json: Json = False,
) -> int:
    """Race every solver that takes the problem: one table, and gap against seconds as a picture.

    All solvers are certified at the same steps, each a quarter further than the last, and the time that
    this takes counts: `train` certifies less often.

    Example: maxmargin compare data.svm --loss squared_hinge --max-time 5 -o compare.svg

    Example: maxmargin compare data.svm --kernel gaussian --gamma 0.5

    Example: maxmargin compare data.svm --solver pegasos --solver subgradient --option polish=0
    """
    check_picture("-o", output)
    check_writable(output, data)
    check_readable(data)
    reading = Reading(format, label, columns, zero_based, skip_bad_lines, threads)
    own = kernel_options(kernel, gamma, degree, coef0, cache_size, needs_kernel=features is None)
    asked = asked_features(features, own)
    solvers = _entrants(solver, option, own)
    with Bars(quiet=as_json) as bars:
        problem, against, expansion = _read_problem(
            data, reading, bars, C, loss, intercept, positive, own, asked
        )
        runs, left_out = _race(problem, solvers, bars, tol=tol, max_time=max_time, threads=threads)
        bars.finish()
    title = f"{data.name}: {loss.replace('_', ' ')} loss, C = {C:g}, {INTERCEPTS[intercept]}{against}"
    found: Any = getattr(problem.rows, "kernel", None)
    if found is not None:
        title += f", {found}"
    if expansion is not None:
        title += f", {features_in_words(expansion)}"
    rows = [run.row() for run in runs]
    from maxmargin.kernels.names import describe as described

    draw(output, title, [(run.name, *run.curve()) for run in runs], tol)
    if as_json:
        data_of = getattr(problem.rows, "data", problem.rows)  # of a kernel's rows, those behind it
        size = {"rows": data_of.count, "columns": data_of.columns, "stored": problem.rows.stored}
        answer = {"data": data, **size, "C": C, "loss": loss, "intercept": intercept, "tol": tol}
        answer["options"] = option or []
        answer["kernel"] = None if found is None else described(found)
        answer["feature_map"] = features_as_json(expansion)
        print_json(answer | {"solvers": rows, "left_out": left_out, "picture": output})
    else:
        _print_answer(title, tol, rows, left_out, output)
    return DONE


def _read_problem(
    path: Path,
    reading: Reading,
    bars: Bars,
    C: float,
    loss: str,
    intercept: str,
    positive: str | None,
    kernel: dict[str, Any],
    asked: Monomials | None,
) -> tuple[Problem, str, Expansion | None]:
    """The problem, the words that say which class is told from which, and the expansion, if any."""
    import numpy as np

    from maxmargin import Problem
    from maxmargin.proof.of_files import rows_of
    from maxmargin.reductions.class_problems import ClassProblems, KernelProblems, OneAgainstRest

    # Small enough to be wrong at once, so looked at before a large file is read.
    Problem.of(rows_of(np.zeros((1, 1))), [1.0], C, loss=loss, intercept=intercept)
    data = reading.read(path, bars.reading(path.name))
    labels, codes = np.unique(labels_of(data), return_inverse=True)
    k, against = _one_class([label_text(label) for label in labels], codes, positive)
    X = expanded(data.X, asked, None)
    kind = OneAgainstRest(len(labels))
    options: dict[str, Any] = {"C": C, "loss": loss, "intercept": intercept}
    rows = rows_of(X)
    if kernel:
        seen = KernelProblems(labels, codes, rows, kernel_of(kernel, data.X), kind, **options)
        seen.may_leave_out = 0.0  # solvers are to be compared on all pairs of rows
        return seen.problem(k), against, None
    return (
        ClassProblems(labels, codes, rows, kind, **options).problem(k),
        against,
        getattr(X, "expansion", None),
    )


def _one_class(texts: list[str], codes: NDArray[Any], wanted: str | None) -> tuple[int, str]:
    """The class that is told from the rest, and the words that say so."""
    import numpy as np

    if len(texts) < 2:
        raise Failure(
            f"The data must have at least two classes. Got only rows of class {texts[0]} instead. "
            "Give a file with rows of another class as well."
        )
    if wanted is not None and wanted not in texts:
        raise Failure(f"--class must be one of the labels {some(texts, 10)}. Got {wanted!r} instead.")
    if wanted is None and len(texts) == 2:
        return 1, ""
    chosen = int(np.argmax(np.bincount(codes))) if wanted is None else texts.index(wanted)
    rest = "the rest" if len(texts) > 2 else texts[1 - chosen]
    return chosen, f", class {texts[chosen]} against {rest}"


@dataclass(frozen=True)
class _Run:
    name: str
    model: Model

    def row(self) -> dict[str, Any]:
        certificate, trace = self.model.certificate, self.model.trace
        seconds, gaps = self.curve()
        return {
            "solver": self.name,
            "status": self.model.status.name.lower(),
            "message": self.model.message,
            "primal": certificate.primal,
            "dual": certificate.dual,
            "relative_gap": certificate.relative_gap,
            "seconds": trace[-1].seconds if len(trace) else 0.0,
            "seconds_certifying": trace.certifying,
            "steps": self.model.steps,
            "trace": [{"seconds": s, "relative_gap": g} for s, g in zip(seconds, gaps, strict=True)],
        }

    def curve(self) -> tuple[list[float], list[float]]:
        records = list(self.model.trace)
        return [record.seconds for record in records], [record.relative_gap for record in records]


def _entrants(
    names: list[str] | None, options: list[str] | None, kernel: dict[str, Any]
) -> dict[str, AnySolver]:
    """The solvers that are asked for, or all that take the kernel or none; with the options they have."""
    from maxmargin.solvers import LINEAR_SOLVERS, SOLVERS

    cache_size = kernel.pop("cache_size", None)
    every = list(LINEAR_SOLVERS)
    if kernel:
        every = [name for name in SOLVERS if SOLVERS[name].takes_kernels]
    for name in names or []:
        if name not in every:
            raise Failure(f"--solver must be one of {', '.join(every)} here. Got {name!r} instead.")
    chosen = [name for name in every if not names or name in names]
    return entrants(chosen, options, cache_size=cache_size)


def _race(
    problem: Problem,
    solvers: dict[str, AnySolver],
    bars: Bars,
    *,
    tol: float,
    max_time: float,
    threads: int | None,
) -> tuple[list[_Run], list[str]]:
    from maxmargin import solve

    runs: list[_Run] = []
    left_out: list[str] = []
    # Shared by all solvers, so that the first one does not pay for it.
    _ = problem.rows.squared_norms
    for name, solver in solvers.items():
        refusal = solver.accepts(problem)
        if refusal is not None:
            left_out.append(refusal)
            continue
        show: Callable[[Progress], None] | None = bars.solving(name, tol=tol, max_time=max_time)
        model = solve(
            problem,
            _certified_evenly(solver),
            tol=tol,
            max_steps=10**9,
            max_time=max_time,
            callback=show,
            threads=threads,
        )
        runs.append(_Run(name, model))
        if model.status.name == "INTERRUPTED":
            raise KeyboardInterrupt
    return runs, left_out


def _certified_evenly(solver: AnySolver) -> AnySolver:
    """The solver, one step at a time and silent about its gap.

    ``solve`` then certifies at steps that grow by a quarter. With its estimate a solver is certified when
    it is about to be done: best for a fit, and a curve of two points.
    """
    kind, options = type(solver), vars(solver)
    changes = {
        "report": lambda self, state: kind.report(self, state)._replace(gap=math.nan),
        "at_once": lambda self, tol: self,
    }
    silent: type[AnySolver] = type(kind.__name__, (kind,), changes)
    return silent(**options)


def _print_answer(
    title: str, tol: float, rows: list[dict[str, Any]], left_out: list[str], picture: Path
) -> None:
    print_table(
        title,
        ("solver", "primal", "dual", "rel. gap", "seconds", "steps", "ended"),
        [
            (
                row["solver"],
                f"{row['primal']:.8g}",
                f"{row['dual']:.8g}",
                f"{row['relative_gap']:.1e}",
                f"{row['seconds']:.3g}",
                str(row["steps"]),
                row["status"].replace("_", " "),
            )
            for row in rows
        ],
    )
    for refusal in left_out:
        typer.echo(f"Left out: {refusal}")
    if rows:
        best = max(row["dual"] for row in rows)
        typer.echo(f"No (w, b) can have an objective below {best:.8g}. Relative gap to reach: {tol:g}.")
        typer.echo(f"Relative gap against seconds: {picture}")
