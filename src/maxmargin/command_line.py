# SPDX-License-Identifier: BSD-3-Clause
"""The command ``maxmargin``. Heavy imports wait until a command needs them, so that help is quick."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Callable

    from maxmargin.loop import Progress
    from maxmargin.model import Model
    from maxmargin.problem import Problem

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Support vector machines in which every fit comes with a proof.",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(version("maxmargin"))
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version and exit.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    pass


@app.command()
def demo(
    C: Annotated[float, typer.Option("-C", help="Weight of the losses.")] = 1.0,
    loss: Annotated[str, typer.Option(help="hinge, squared_hinge or logistic.")] = "hinge",
    tol: Annotated[float, typer.Option(help="Relative gap to reach.")] = 1e-4,
    max_time: Annotated[float, typer.Option(help="Seconds for each solver.")] = 2.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Train with every solver on data that need no file, and prove each answer.

    Example: maxmargin demo --loss squared_hinge --tol 1e-6
    """
    from maxmargin import Problem, choose_solver
    from maxmargin.solvers import SOLVERS

    X, y, X_test, y_test = _breast_cancer()
    try:
        problem = Problem.of(X, y, C, loss=loss, intercept="regularised")
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    refusals = {name: solver().accepts(problem) for name, solver in SOLVERS.items()}
    names = [name for name, refusal in refusals.items() if refusal is None]
    models = _solve_with_each(problem, names, tol, max_time, quiet=as_json)
    rows = [_row(name, model, X_test, y_test) for name, model in models.items()]
    _, reason = choose_solver(problem)
    left_out = [refusal for refusal in refusals.values() if refusal is not None]
    if as_json:
        typer.echo(json.dumps({"C": C, "loss": loss, "solvers": rows, "auto": reason}, indent=2))
    else:
        _print_table(problem, tol, rows, reason, left_out)


def _breast_cancer() -> tuple[Any, Any, Any, Any]:
    """scikit-learn's breast cancer data, every third row for the test, features of unit variance."""
    import numpy as np
    from sklearn.datasets import load_breast_cancer

    X, target = load_breast_cancer(return_X_y=True)
    y = np.where(target == 1, 1.0, -1.0)
    test = np.arange(len(y)) % 3 == 0
    mean, deviation = X[~test].mean(axis=0), X[~test].std(axis=0)
    X = (X - mean) / deviation
    return X[~test], y[~test], X[test], y[test]


def _solve_with_each(
    problem: Problem, names: list[str], tol: float, max_time: float, *, quiet: bool
) -> dict[str, Model]:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    from maxmargin import solve

    columns = (
        TextColumn("{task.description:<24}"),
        BarColumn(),
        TextColumn("{task.fields[gap]}"),
        TimeElapsedColumn(),
    )
    models: dict[str, Model] = {}
    with Bars(*columns, console=Console(stderr=True), transient=True, disable=quiet) as bars:
        for name in names:
            bar = bars.add_task(name, total=1.0, gap="")
            show = _shower(bars, bar, tol)
            models[name] = solve(
                problem, name, tol=tol, max_steps=1_000_000, max_time=max_time, callback=show
            )
    return models


def _shower(bars: Any, bar: Any, tol: float) -> Callable[[Progress], None]:
    from math import log

    def show(progress: Progress) -> None:
        # A gap shrinks by factors, so the bar's length is its logarithm.
        gap = min(max(progress.relative_gap, 1e-16), 1.0)
        done = min(1.0, log(gap) / log(tol)) if 0 < tol < 1 else 0.0
        bars.update(bar, completed=done, gap=f"relative gap {gap:.1e}")

    return show


def _row(name: str, model: Model, X_test: Any, y_test: Any) -> dict[str, Any]:
    import numpy as np

    certificate = model.certificate
    predicted = np.where(X_test @ model.w + model.b > 0, 1.0, -1.0)
    return {
        "solver": name,
        "status": model.status.name.lower(),
        "primal": certificate.primal,
        "dual": certificate.dual,
        "relative_gap": certificate.relative_gap,
        "seconds": model.trace[-1].seconds if len(model.trace) else 0.0,
        "steps": model.steps,
        "test_accuracy": float((predicted == y_test).mean()),
        "notes": model.notes,
    }


def _print_table(
    problem: Problem, tol: float, rows: list[dict[str, Any]], reason: str, left_out: list[str]
) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console()
    title = f"{problem.rows.count} rows, {problem.rows.columns} columns, relative gap to reach {tol:.0e}"
    table = Table(title=title, box=box.SIMPLE_HEAD, padding=(0, 0), collapse_padding=True)
    table.add_column("solver", no_wrap=True)
    for heading in ("primal", "dual", "rel. gap", "seconds", "test acc."):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("ended", no_wrap=True)
    for row in rows:
        table.add_row(
            row["solver"],
            f"{row['primal']:.6g}",
            f"{row['dual']:.6g}",
            f"{row['relative_gap']:.1e}",
            f"{row['seconds']:.3f}",
            f"{100 * row['test_accuracy']:.1f} %",
            row["status"].replace("_", " "),
        )
    console.print(table)
    for row in rows:
        if "bound" in row["notes"]:
            bound, gap = row["notes"]["bound"], row["primal"] - row["dual"]
            console.print(
                f"{row['solver']}: theory bounds its expected suboptimality by {bound:.3g} after so many "
                f"steps; measured, it is at most {gap:.3g}."
            )
    for refusal in left_out:
        console.print(f"Left out: {refusal}")
    console.print("No (w, b) can have an objective below the largest dual value in the table.")
    console.print(f"auto takes {reason}")


def main() -> None:
    """Entry point."""
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
