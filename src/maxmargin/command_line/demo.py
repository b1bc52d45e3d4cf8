# SPDX-License-Identifier: BSD-3-Clause
"""``maxmargin demo``: every solver on data that need no file."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maxmargin.command_line.shared.answer import DONE, in_words, print_json, print_table
from maxmargin.command_line.shared.options import Json, check_writable
from maxmargin.command_line.shared.progress import Bars

if TYPE_CHECKING:
    from maxmargin.problem import Problem
    from maxmargin.proof.model import Model


@in_words
def demo(
    C: Annotated[float, typer.Option("-C", help="Weight of the losses.")] = 1.0,
    loss: Annotated[str, typer.Option(help="hinge, squared_hinge or logistic.")] = "hinge",
    tol: Annotated[float, typer.Option(help="Relative gap to reach.")] = 1e-4,
    max_time: Annotated[float, typer.Option(help="Seconds for each solver.")] = 2.0,
    save_data: Annotated[
        Path | None,
        typer.Option(help="Write the data as LIBSVM text, and do nothing else: a file to try things on."),
    ] = None,
    as_json: Json = False,
) -> int:
    """Train with every solver on data that need no file, and prove each answer: a plane, then a kernel.

    Example: maxmargin demo --loss squared_hinge --tol 1e-6

    Example: maxmargin demo --save-data cancer.svm
    """
    if save_data is not None:
        return _save(save_data, as_json=as_json)

    from maxmargin.kernels.names import describe

    plane = _plane(C, loss, tol, max_time, quiet=as_json)
    curved = _curved(C, tol, max_time, quiet=as_json)
    if as_json:
        kernel = describe(curved.problem.rows.kernel)
        print_json({"C": C, "loss": loss, **plane.as_json(), "with_kernel": {**kernel, **curved.as_json()}})
    else:
        _print_answer(plane, tol)
        typer.echo("")
        _print_answer(curved, tol)
    return DONE


@dataclass(frozen=True)
class _Answer:
    """What every solver made of one problem."""

    title: str
    problem: Any
    rows: list[dict[str, Any]]
    auto: str
    left_out: list[str]

    def as_json(self) -> dict[str, Any]:
        return {"solvers": self.rows, "auto": self.auto, "left_out": self.left_out}


def _plane(C: float, loss: str, tol: float, max_time: float, *, quiet: bool) -> _Answer:
    """A linear problem."""
    from maxmargin import Problem
    from maxmargin.solvers import LINEAR_SOLVERS

    X, y, X_test, y_test = _breast_cancer()
    problem = Problem.of(X, y, C, loss=loss, intercept="regularised")
    title = f"Breast cancer: {X.shape[0]} rows, {X.shape[1]} columns"
    solve = partial(_solve_with_each, problem, list(LINEAR_SOLVERS), tol, max_time, quiet=quiet)
    return _answer(title, problem, *solve(), X_test, y_test)


def _curved(C: float, tol: float, max_time: float, *, quiet: bool) -> _Answer:
    """A problem with a kernel."""
    from maxmargin import Problem
    from maxmargin.kernels import Gaussian, KernelRows
    from maxmargin.solvers import SOLVERS

    X, y, X_test, y_test = _digits()
    kernel = Gaussian(0.1)
    problem = Problem.of(KernelRows(X, kernel), y, C)
    title = f"Digits 3 and 8, {kernel}, hinge loss: {X.shape[0]} rows, {X.shape[1]} columns"
    names = [name for name, solver in SOLVERS.items() if solver.takes_kernels]
    solve = partial(_solve_with_each, problem, names, tol, max_time, quiet=quiet)
    return _answer(title, problem, *solve(), kernel(X_test, X), y_test)


def _answer(
    title: str, problem: Problem, models: dict[str, Model], left_out: list[str], X_test: Any, y_test: Any
) -> _Answer:
    from maxmargin import choose_solver

    rows = [_row(name, model, X_test, y_test) for name, model in models.items()]
    _, reason = choose_solver(problem)
    return _Answer(title, problem, rows, reason, left_out)


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


def _digits() -> tuple[Any, Any, Any, Any]:
    """scikit-learn's digits 3 and 8, every third row for the test, grey from 0 to 1."""
    import numpy as np
    from sklearn.datasets import load_digits

    X, target = load_digits(return_X_y=True)
    chosen = (target == 3) | (target == 8)
    X, y = X[chosen] / 16.0, np.where(target[chosen] == 8, 1.0, -1.0)
    test = np.arange(len(y)) % 3 == 0
    return X[~test], y[~test], X[test], y[test]


def _save(path: Path, *, as_json: bool) -> int:
    """The rows for training under this name, those for the test under one with ``.test`` in it."""
    test_path = path.with_name(f"{path.stem}.test{path.suffix}")
    for each in (path, test_path):
        check_writable(each)
    X, y, X_test, y_test = _breast_cancer()
    _write_libsvm(path, X, y)
    _write_libsvm(test_path, X_test, y_test)
    if as_json:
        print_json({"data": path, "rows": len(y), "test_data": test_path, "test_rows": len(y_test)})
    else:
        typer.echo(
            f"Wrote {path} with {len(y)} rows and {test_path} with {len(y_test)}: scikit-learn's breast "
            f"cancer data, {X.shape[1]} columns scaled to unit variance.\n"
            f"Next: maxmargin train {path} -o model.mm --test {test_path}"
        )
    return DONE


def _write_libsvm(path: Path, X: Any, y: Any) -> None:
    from maxmargin.files.whole import write_whole

    lines = (
        f"{label:+.0f} "
        + " ".join(f"{index}:{value:.6g}" for index, value in enumerate(row, start=1))
        + "\n"
        for label, row in zip(y, X, strict=True)
    )
    write_whole(path, lambda file: file.writelines(line.encode() for line in lines))


def _solve_with_each(
    problem: Problem, names: list[str], tol: float, max_time: float, *, quiet: bool
) -> tuple[dict[str, Model], list[str]]:
    """The models of the solvers that take the problem, and why the others do not."""
    from maxmargin import solve
    from maxmargin.solvers import SOLVERS

    refusals = {name: SOLVERS[name]().accepts(problem) for name in names}
    models: dict[str, Model] = {}
    with Bars(quiet=quiet) as bars:
        for name in (name for name in names if refusals[name] is None):
            show = bars.solving(name, tol=tol, max_time=max_time)
            models[name] = solve(
                problem, name, tol=tol, max_steps=1_000_000, max_time=max_time, callback=show
            )
    return models, [refusal for refusal in refusals.values() if refusal is not None]


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


def _print_answer(answer: _Answer, tol: float) -> None:
    print_table(
        f"{answer.title}, relative gap to reach {tol:g}",
        ("solver", "primal", "dual", "rel. gap", "seconds", "test acc.", "ended"),
        [
            (
                row["solver"],
                f"{row['primal']:.6g}",
                f"{row['dual']:.6g}",
                f"{row['relative_gap']:.1e}",
                f"{row['seconds']:.3f}",
                f"{100 * row['test_accuracy']:.1f} %",
                row["status"].replace("_", " "),
            )
            for row in answer.rows
        ],
    )
    for row in answer.rows:
        if "bound" in row["notes"]:
            bound, gap = row["notes"]["bound"], row["primal"] - row["dual"]
            typer.echo(
                f"{row['solver']}: theory bounds its expected suboptimality by {bound:.3g} after so many "
                f"steps; measured, it is at most {gap:.3g}."
            )
    for refusal in answer.left_out:
        typer.echo(f"Left out: {refusal}")
    typer.echo("No (w, b) can have an objective below the largest dual value in the table.")
    typer.echo(f"auto takes {answer.auto}")
