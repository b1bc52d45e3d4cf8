# SPDX-License-Identifier: BSD-3-Clause
"""``maxmargin demo``: every solver on data that need no file."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

import maxmargin
from maxmargin.command_line.compare import ended, race
from maxmargin.command_line.shared.answer import DONE, in_words, print_json, print_table
from maxmargin.command_line.shared.options import Json, check_writable
from maxmargin.command_line.shared.progress import Bars

if TYPE_CHECKING:
    from maxmargin.kernels import Kernel


@in_words
def demo(
    C: Annotated[float, typer.Option("-C", help="Weight of the losses.")] = 1.0,
    loss: Annotated[
        str, typer.Option(help="hinge, which every solver has, squared_hinge or logistic.")
    ] = "hinge",
    tol: Annotated[float, typer.Option(help="Relative gap to reach.")] = 1e-4,
    max_time: Annotated[float, typer.Option(help="Seconds for each solver.")] = 2.0,
    save_data: Annotated[
        Path | None,
        typer.Option(
            help="Write the data as LIBSVM text, and do nothing else: a file to try things on. With a name "
            "that ends in .csv, a made-up table of customers."
        ),
    ] = None,
    as_json: Json = False,
) -> int:
    """Train with every solver on data that need no file, and prove each answer: a plane, then a kernel.

    Example: maxmargin demo --loss squared_hinge --tol 1e-6

    Example: maxmargin demo --save-data cancer.svm

    Example: maxmargin demo --save-data churn.csv
    """
    if save_data is not None:
        return _save(save_data, as_json=as_json)

    from maxmargin.kernels import Gaussian
    from maxmargin.kernels.names import describe

    kernel = Gaussian(0.1)
    trials = _plane(C, loss), _curved(C, kernel)
    plane, curved = (_raced(trial, tol, max_time, quiet=as_json) for trial in trials)
    if as_json:
        print_json({"C": C, "loss": loss, **plane, "with_kernel": {**describe(kernel), **curved}})
    else:
        _print_answer(trials[0].title, plane, tol)
        typer.echo("")
        _print_answer(trials[1].title, curved, tol)
    return DONE


@dataclass(frozen=True)
class _Trial:
    """A problem for every solver, and rows to try their answers on."""

    title: str
    problem: maxmargin.Problem
    names: list[str]
    X_test: Any
    y_test: Any


def _plane(C: float, loss: str) -> _Trial:
    """A linear problem."""
    from maxmargin.solvers import LINEAR_SOLVERS

    X, y, X_test, y_test = _breast_cancer()
    problem = maxmargin.Problem.of(X, y, C, loss=loss, intercept="regularised")
    title = f"Breast cancer: {X.shape[0]} rows, {X.shape[1]} columns"
    return _Trial(title, problem, list(LINEAR_SOLVERS), X_test, y_test)


def _curved(C: float, kernel: Kernel) -> _Trial:
    """A problem with a kernel."""
    from maxmargin.kernels import KernelRows
    from maxmargin.solvers import SOLVERS

    X, y, X_test, y_test = _digits()
    title = f"Digits 3 and 8, {kernel}, hinge loss: {X.shape[0]} rows, {X.shape[1]} columns"
    names = [name for name, solver in SOLVERS.items() if solver.takes_kernels]
    return _Trial(
        title, maxmargin.Problem.of(KernelRows(X, kernel), y, C), names, kernel(X_test, X), y_test
    )


def _raced(trial: _Trial, tol: float, max_time: float, *, quiet: bool) -> dict[str, Any]:
    """What every solver made of a problem, and what "auto" would take."""
    import numpy as np

    from maxmargin.solvers import SOLVERS

    solvers = {name: SOLVERS[name]() for name in trial.names}
    with Bars(quiet=quiet) as bars:
        models, left_out = race(
            trial.problem, solvers, bars, tol=tol, max_steps=1_000_000, max_time=max_time
        )
    rows = []
    for name, model in models.items():
        predicted = np.where(trial.X_test @ model.w + model.b > 0, 1.0, -1.0)
        accuracy = float((predicted == trial.y_test).mean())
        rows.append(ended(name, model) | {"test_accuracy": accuracy, "notes": model.notes})
    return {"solvers": rows, "auto": maxmargin.choose_solver(trial.problem)[1], "left_out": left_out}


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
    from maxmargin.files.whole import write_whole

    test_path = path.with_name(f"{path.stem}.test{path.suffix}")
    for each in (path, test_path):
        check_writable(each)
    label = ""
    if path.suffix.lower() == ".csv":
        header, *lines = _customers()
        parts = [[header, *lines[:_CUSTOMERS]], [header, *lines[_CUSTOMERS:]]]
        counts, label = [len(part) - 1 for part in parts], " --label churn"
        what = "made-up customers of a telephone company, and whether they left it."
    else:
        X, y, X_test, y_test = _breast_cancer()
        parts = [_libsvm_lines(X, y), _libsvm_lines(X_test, y_test)]
        counts = [len(part) for part in parts]
        what = f"scikit-learn's breast cancer data, {X.shape[1]} columns scaled to unit variance."
    for where, part in zip((path, test_path), parts, strict=True):
        write_whole(where, partial(_write_lines, part))
    if as_json:
        print_json({"data": path, "rows": counts[0], "test_data": test_path, "test_rows": counts[1]})
    else:
        typer.echo(
            f"Wrote {path} with {counts[0]} rows and {test_path} with {counts[1]}: {what}\n"
            f"Next: maxmargin train {path}{label} -o model.mm --test {test_path}"
        )
    return DONE


def _write_lines(lines: list[str], file: BinaryIO) -> None:
    file.writelines(f"{line}\n".encode() for line in lines)


_CUSTOMERS, _TEST_CUSTOMERS = 600, 200
"""Rows of the made-up table, and of the one for the test."""


def _customers() -> list[str]:
    """The lines of a table whose last column hangs on the others and on chance."""
    from datetime import date, timedelta

    import numpy as np

    random = np.random.default_rng(0)
    lines = ["customer,age,contract,city,since,paperless,charges,churn"]
    contracts, cities = ("month", "one year", "two years"), ("Berlin", "Lyon", "Oslo", "Turin")
    for number in range(_CUSTOMERS + _TEST_CUSTOMERS):
        age, contract = int(random.integers(18, 85)), int(random.integers(3))
        city, days = int(random.integers(4)), int(random.integers(2500))
        paperless, charges = bool(random.random() < 0.6), float(random.gamma(4.0, 15.0))
        score = 1.2 - 1.5 * contract + 0.02 * (charges - 60) - days / 1200 + 0.8 * (city == 3)
        left = score + random.logistic() > 0
        text_age = "" if random.random() < 0.03 else str(age)
        text_city = "NA" if random.random() < 0.03 else cities[city]
        since = date(2018, 1, 1) + timedelta(days=days)
        fields = (
            f"C{number:04d}",
            text_age,
            contracts[contract],
            text_city,
            str(since),
            str(paperless).lower(),
        )
        lines.append(",".join([*fields, f"{charges:.2f}", "yes" if left else "no"]))
    return lines


def _libsvm_lines(X: Any, y: Any) -> list[str]:
    return [
        f"{label:+.0f} " + " ".join(f"{index}:{value:.6g}" for index, value in enumerate(row, start=1))
        for label, row in zip(y, X, strict=True)
    ]


def _print_answer(title: str, answer: dict[str, Any], tol: float) -> None:
    rows = answer["solvers"]
    print_table(
        f"{title}, relative gap to reach {tol:g}",
        ("solver", "primal", "dual", "rel. gap", "seconds", "test acc.", "ended"),
        [
            (
                *(row[key] for key in ("solver", "primal", "dual", "relative_gap", "seconds")),
                f"{100 * row['test_accuracy']:.1f} %",
                row["status"].replace("_", " "),
            )
            for row in rows
        ],
        ("", ".6g", ".6g", ".1e", ".3f"),
    )
    for row in rows:
        if "bound" in row["notes"]:
            bound, gap = row["notes"]["bound"], row["primal"] - row["dual"]
            typer.echo(
                f"{row['solver']}: theory bounds its expected suboptimality by {bound:.3g} after so many "
                f"steps; measured, it is at most {gap:.3g}."
            )
    for refusal in answer["left_out"]:
        typer.echo(f"Left out: {refusal}")
    typer.echo("No (w, b) can have an objective below the largest dual value in the table.")
    typer.echo(f"auto takes {answer['auto']}")
