# SPDX-License-Identifier: BSD-3-Clause
"""``maxmargin compare``: every solver that applies, one table, and a picture of gap against seconds."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import maxmargin
from maxmargin import files
from maxmargin.command_line.shared import data_options, options
from maxmargin.command_line.shared.answer import (
    DONE,
    INTERCEPTS,
    Failure,
    attributes,
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
from maxmargin.command_line.shared.picture import check_picture, draw
from maxmargin.command_line.shared.progress import Bars
from maxmargin.command_line.shared.solver_options import Options, entrants
from maxmargin.files.data.labels import label_text
from maxmargin.tools.words import some

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from maxmargin.features import Monomials
    from maxmargin.features.expansion import Expansion
    from maxmargin.solvers import AnySolver


@in_words
def compare(
    data: options.DataFile,
    *,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="The picture, PNG or SVG by its suffix.")
    ] = Path("compare.png"),
    task: Annotated[
        str, typer.Option(help="classification, or regression: the labels are numbers.")
    ] = "classification",
    C: Annotated[float, typer.Option("-C", help="Weight of the losses.")] = 1.0,
    loss: Annotated[
        str | None,
        typer.Option(
            help="hinge, which every solver has, squared_hinge or logistic; in regression "
            "epsilon_insensitive or its square.",
            show_default="hinge, epsilon_insensitive",
        ),
    ] = None,
    epsilon: Annotated[
        float, typer.Option(help="In regression, how far a prediction may be off at no cost.")
    ] = 0.0,
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
    kernel: options.KernelChoice,
    features: options.Features = None,
    tol: Annotated[float, typer.Option(help="Relative gap to reach.")] = 1e-6,
    max_time: Annotated[float, typer.Option(help="Seconds for each solver.")] = 10.0,
    reading: data_options.TrainingData,
    as_json: options.Json = False,
) -> int:
    """Race every solver that takes the problem: one table, and gap against seconds as a picture.

    All solvers are certified at the same steps, each a quarter further than the last, and the time that
    this takes counts: `train` certifies less often.

    Example: maxmargin compare data.svm --loss squared_hinge --max-time 5 -o compare.svg

    Example: maxmargin compare data.svm --kernel gaussian --gamma 0.5

    Example: maxmargin compare data.svm --solver pegasos --solver subgradient --option polish=0

    Example: maxmargin compare prices.csv --label price --task regression --epsilon 0.5
    """
    from maxmargin.kernels.names import describe

    check_picture("-o", output)
    options.check_files(output, data)
    own = kernel.given(needs_kernel=features is None)
    asked = asked_features(features, own)
    solvers = {name: _certified_evenly(one) for name, one in _entrants(solver, option, own).items()}
    loss = loss or ("epsilon_insensitive" if task == "regression" else "hinge")
    stated = {"C": C, "loss": loss, "intercept": intercept}
    _check(task, stated, epsilon, positive)
    with Bars(quiet=as_json) as bars:
        data_set = reading.read_for_training(data, bars.reading(data.name)).data
        if task == "regression":
            problem = _regression(data_set, data, own, asked, stated | {"epsilon": epsilon})
            against, expansion = f", epsilon = {epsilon:g}", None
        else:
            problem, against, expansion = _problem(data_set, positive, own, asked, stated)
        _ = problem.rows.squared_norms  # shared by all solvers, so that the first one does not pay for it
        limits: dict[str, Any] = {
            "tol": tol,
            "max_steps": 10**9,
            "max_time": max_time,
            "threads": reading.threads,
        }
        models, left_out = race(problem, solvers, bars, **limits)
        bars.finish()
    title = f"{data.name}: {loss.replace('_', ' ')} loss, C = {C:g}, {INTERCEPTS[intercept]}{against}"
    seen: Any = problem.rows
    found = getattr(seen, "kernel", None)
    if found is not None:
        title += f", {found}"
    if expansion is not None:
        title += f", {features_in_words(expansion)}"
    draw(output, title, {name: model.trace for name, model in models.items()}, tol)
    rows = [_row(name, model) for name, model in models.items()]
    if as_json:
        data_of = getattr(seen, "data", seen)  # of a kernel's rows, those behind it
        size = {"rows": data_of.count, "columns": data_of.columns, "stored": seen.stored}
        answer = {"data": data, **size, **stated, "tol": tol}
        answer["options"] = option or []
        answer["kernel"] = None if found is None else describe(found)
        answer["feature_map"] = features_as_json(expansion)
        print_json(answer | {"solvers": rows, "left_out": left_out, "picture": output})
    else:
        _print_answer(title, tol, rows, left_out, output)
    return DONE


def _check(task: str, stated: dict[str, Any], epsilon: float, positive: str | None) -> None:
    """Refuse a problem that is stated wrongly at once, and not after an hour of reading."""
    import numpy as np

    from maxmargin.problem.regression import TUBE_LOSSES, regression_problem
    from maxmargin.proof.of_files import rows_of

    if task not in ("classification", "regression"):
        raise Failure(f"--task must be classification or regression. Got {task!r} instead.")
    if task == "regression":
        if stated["loss"] not in TUBE_LOSSES or positive is not None:
            raise Failure(
                f"With --task regression --loss must be one of {', '.join(TUBE_LOSSES)}, and there is no "
                f"--class. Got {stated['loss']!r} and {positive!r} instead."
            )
        regression_problem(rows_of(np.zeros((1, 1))), [1.0], **stated, epsilon=epsilon)
        return
    if epsilon:
        raise Failure("--epsilon is for --task regression. Add that, or leave --epsilon out.")
    maxmargin.Problem.of(rows_of(np.zeros((1, 1))), [1.0], **stated)


def _problem(
    data: files.DataSet,
    positive: str | None,
    kernel: dict[str, Any],
    asked: Monomials | None,
    stated: dict[str, Any],
) -> tuple[maxmargin.Problem, str, Expansion | None]:
    """The problem, the words that say which class is told from which, and the expansion, if any."""
    import numpy as np

    from maxmargin.proof.of_files import rows_of
    from maxmargin.reductions.class_problems import ClassProblems, KernelProblems
    from maxmargin.reductions.decompositions import OneAgainstRest

    labels, codes = np.unique(data.y, return_inverse=True)
    k, against = _one_class([label_text(label) for label in labels], codes, positive)
    X, kind = expanded(data.X, asked, None), OneAgainstRest(len(labels))
    if not kernel:
        problems = ClassProblems(labels, codes, rows_of(X), kind, **stated)
        return problems.problem(k), against, getattr(X, "expansion", None)
    seen = KernelProblems(labels, codes, rows_of(X), options.kernel_of(kernel, data.X), kind, **stated)
    seen.may_leave_out = 0.0  # solvers are to be compared on all pairs of rows
    return seen.problem(k), against, None


def _regression(
    data: files.DataSet, path: Path, kernel: dict[str, Any], asked: Monomials | None, stated: dict[str, Any]
) -> maxmargin.Problem:
    """The problem of a regression."""
    from maxmargin.command_line.shared.regression import numbers_to_predict
    from maxmargin.kernels.kernel_rows import KernelRows
    from maxmargin.problem.regression import regression_problem
    from maxmargin.problem.rows import RowSpace
    from maxmargin.proof.of_files import rows_of

    if asked is not None:
        raise Failure("--features is for --task classification. Leave it out.")
    rows: RowSpace = rows_of(data.X)
    if kernel:
        rows = KernelRows(rows_of(data.X), options.kernel_of(kernel, data.X))
    return regression_problem(rows, numbers_to_predict(data.y, path), **stated)


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


def ended(name: str, model: maxmargin.Model) -> dict[str, Any]:
    """How the run of a solver ended, in plain values."""
    return {
        "solver": name,
        "status": model.status.name.lower(),
        **attributes(model.certificate, "primal", "dual", "relative_gap"),
        "seconds": model.trace[-1].seconds if len(model.trace) else 0.0,
        "steps": model.steps,
    }


def _row(name: str, model: maxmargin.Model) -> dict[str, Any]:
    trace = [attributes(record, "seconds", "relative_gap") for record in model.trace]
    certifying = model.trace.certifying
    return ended(name, model) | {"message": model.message, "seconds_certifying": certifying, "trace": trace}


def _entrants(
    names: list[str] | None, given: list[str] | None, kernel: dict[str, Any]
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
    return entrants(chosen, given, cache_size=cache_size)


def race(
    problem: maxmargin.Problem,
    solvers: dict[str, AnySolver],
    bars: Bars,
    *,
    tol: float,
    max_time: float,
    **limits: Any,
) -> tuple[dict[str, maxmargin.Model], list[str]]:
    """The models of the solvers that take the problem, and why the others do not."""
    from maxmargin.solving.ways import refusal

    models: dict[str, maxmargin.Model] = {}
    refusals = {name: refusal(solver, problem) for name, solver in solvers.items()}
    for name in (name for name in solvers if refusals[name] is None):
        show = bars.solving(name, tol=tol, max_time=max_time)
        model = maxmargin.solve(problem, solvers[name], tol=tol, max_time=max_time, callback=show, **limits)
        if model.interrupted:
            raise KeyboardInterrupt
        models[name] = model
    return models, [reason for reason in refusals.values() if reason is not None]


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


_SHOWN = ("solver", "primal", "dual", "relative_gap", "seconds", "steps")
"""What the table shows of a run, beside how it ended."""


def _print_answer(
    title: str, tol: float, rows: list[dict[str, Any]], left_out: list[str], picture: Path
) -> None:
    print_table(
        title,
        ("solver", "primal", "dual", "rel. gap", "seconds", "steps", "ended"),
        [(*(row[key] for key in _SHOWN), row["status"].replace("_", " ")) for row in rows],
        ("", ".8g", ".8g", ".1e", ".3g"),
    )
    for refusal in left_out:
        typer.echo(f"Left out: {refusal}")
    if rows:
        best = max(row["dual"] for row in rows)
        typer.echo(f"No (w, b) can have an objective below {best:.8g}. Relative gap to reach: {tol:g}.")
        typer.echo(f"Relative gap against seconds: {picture}")
