# SPDX-License-Identifier: BSD-3-Clause
"""``maxmargin choose``: C by cross-validation, and the model of all rows at that C with its proof."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import maxmargin
from maxmargin import files
from maxmargin.command_line.shared import data_options, options
from maxmargin.command_line.shared.answer import Failure, in_words, one_interrupt, print_table
from maxmargin.command_line.shared.grid_search import GridSearch, check_ends
from maxmargin.command_line.shared.picture import check_picture, new_figure, write_picture
from maxmargin.command_line.shared.progress import Bars
from maxmargin.command_line.shared.solver_options import Options, configured, usual_loss
from maxmargin.files.data.labels import label_text
from maxmargin.tools.words import some

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from maxmargin.command_line.shared.fitting import Fitting

_LOW, _HIGH = 1e-4, 1e4
"""The ends of the grid of C, as in LinearSVCCV, unless the best is found at one of them."""
_MORE_VALUES = 3
"""Values of C that are added where the best is at an end."""
_MOST_WIDENINGS = 2
"""How often, at most: further out the model hardly changes any more."""
_FEWEST_ROWS = 1.0
"""Rows by which a score may differ, in the mean over the folds, and be as good as another."""


@in_words
def choose(
    data: options.DataFile,
    output: Annotated[Path, options.MODEL_OUTPUT],
    *,
    task: Annotated[
        str, typer.Option(help="classification, or regression: the labels are numbers.")
    ] = "classification",
    epsilons: Annotated[
        int | None,
        typer.Option(help="How many values of epsilon, in regression.", min=1, show_default="3"),
    ] = None,
    low: Annotated[
        float | None, typer.Option(help="The smallest C.", show_default="1e-4, or less where that is best")
    ] = None,
    high: Annotated[
        float | None, typer.Option(help="The largest C.", show_default="1e4, or more where that is best")
    ] = None,
    values: Annotated[
        int | None,
        typer.Option(
            help="How many values of C, on a logarithmic scale.", min=1, show_default="10; with a kernel 5"
        ),
    ] = None,
    gammas: Annotated[
        int | None,
        typer.Option(
            help="How many values of the kernel's gamma, around that of --gamma.", min=1, show_default="5"
        ),
    ] = None,
    folds: Annotated[int, typer.Option(help="Parts that are held out in turn.", min=2)] = 5,
    picture: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Score against C, PNG or SVG by its suffix.", show_default=False),
    ] = None,
    loss: Annotated[
        str | None,
        typer.Option(
            help="squared_hinge, hinge or logistic.",
            show_default="squared_hinge; hinge where the solver has no other",
        ),
    ] = None,
    solver: Annotated[str, typer.Option(help="auto, or a solver's name.")] = "auto",
    option: Options = None,
    kernel: options.KernelChoice,
    tol: Annotated[
        float | None,
        typer.Option(help="Relative gap to reach in every fit.", show_default="1e-4; with a kernel 1e-3"),
    ] = None,
    max_time: Annotated[float, typer.Option(help="Seconds for all fits; inf: no limit.")] = float("inf"),
    max_iter: Annotated[int, typer.Option(help="Steps of the solver, for each fit; -1: no limit.")] = -1,
    intercept: Annotated[
        str, typer.Option(help="exact (free), regularised (as LIBLINEAR has it) or none.")
    ] = "exact",
    class_weight: options.ClassWeight = None,
    test: options.TestFile = None,
    seed: Annotated[int, typer.Option(help="Of all random choices, those of the folds too.", min=0)] = 0,
    device: options.Device = None,
    reading: data_options.TrainingData,
    as_json: options.Json = False,
) -> int:
    """Choose C by cross-validation, and write the model of all rows at that C with its proof.

    With --kernel, C and gamma are chosen together. Every fit of every fold is certified; without a kernel
    those at the chosen C to a hundredth of --tol. Ctrl-C writes nothing: nothing is chosen yet. The exit
    codes are those of train.

    Example: maxmargin choose data.svm -o model.mm --picture choice.svg

    Example: maxmargin choose data.svm -o model.mm --low 0.01 --high 100 --values 20 --folds 10

    Example: maxmargin choose churn.csv --label churn -o model.mm --kernel gaussian

    Example: maxmargin choose prices.csv --label price --task regression -o model.mm
    """
    import numpy as np
    from sklearn.model_selection import StratifiedKFold

    from maxmargin.command_line.shared.fitting import Fitting, refuse
    from maxmargin.command_line.shared.report import Training, report

    options.check_files(output, data, test)
    reading.check(data)
    if picture is not None:
        check_picture("--picture", picture)
        options.check_writable(picture, data, test, output)
    if task not in ("classification", "regression"):
        raise Failure(f"--task must be classification or regression. Got {task!r} instead.")
    if epsilons is not None and task != "regression":
        raise Failure("--epsilons is for --task regression. Add that, or leave --epsilons out.")
    options.asked_card(device)
    if device == "cuda" and kernel.kernel is not None:
        raise Failure(
            "With --kernel, choose works on the CPU. Leave --device out, or --kernel: linear models take a "
            "GPU here, and train takes it for kernels, too."
        )
    work = Fitting(data, output, test, reading, as_json)
    if task == "regression":
        from maxmargin.command_line.shared import choose_regression as regression

        words = "is not for choose --task regression. Leave it out."
        exact = intercept == "exact"
        refuse(words, picture=picture, class_weight=class_weight, loss=loss, intercept=not exact)
        own = kernel.given(needs_kernel=True)
        if gammas is not None and not own:
            raise Failure("--gammas is for kernels. Got no kernel. Add --kernel gaussian, or leave it out.")
        common: dict[str, Any] = {"tol": tol or (1e-3 if own else 1e-4), "max_iter": max_iter}
        common["solver"] = configured(solver, option) or "auto"
        common |= {} if own else {"device": device}
        limit = options.seconds_or_none(max_time)
        tried = (low, high, values or (5 if own else 10), gammas, epsilons, folds, seed, limit, common)
        return regression.choose_regressor(work, regression.RegressionSearch(own, *tried))
    if kernel.kernel is not None:
        if picture is not None or intercept != "exact" or loss not in (None, "hinge"):
            raise Failure(
                "With --kernel, choose takes no --picture, no --loss but hinge, and no --intercept but "
                "exact. Leave these or --kernel out."
            )
        own = kernel.given(needs_kernel=True)
        search = GridSearch(own, low, high, values, gammas, folds, seed, options.seconds_or_none(max_time))
        parameters = {"tol": 1e-3 if tol is None else tol, "solver": configured(solver, option) or "auto"}
        parameters["max_iter"] = max_iter
        return _choose_with_kernel(work, search, parameters, class_weight)
    kernel.given(needs_kernel=True)
    if gammas is not None:
        raise Failure("--gammas is for kernels. Got no kernel. Add --kernel gaussian, or leave it out.")
    ends, values = _Ends(low, high), values or 10
    loss = loss or usual_loss(solver)
    model = maxmargin.LinearSVCCV(
        loss=loss,
        Cs=np.geomspace(ends.low, ends.high, values),
        cv=StratifiedKFold(folds, shuffle=True, random_state=seed),
        solver=configured(solver, option) or "auto",
        tol=1e-4 if tol is None else tol,
        max_iter=max_iter,
        max_time=options.seconds_or_none(max_time),
        random_state=seed,
        n_jobs=reading.threads,
        device=device,
        **options.intercept_options(intercept),
    )
    model._check_parameters()  # now, and not after an hour of reading
    with Bars(quiet=as_json) as bars:
        training_set = work.read(bars)
        data_set = training_set.data
        _check_folds(folds, data_set.y)
        classes = _weighted(model, class_weight, data_set.y)
        work.lap("read")
        problems = len(classes) if len(classes) > 2 else 1
        model.callback = bars.counting("choosing C", (folds + 1) * values * problems)
        with one_interrupt():
            warned = _fit(model, data_set)
            while (wider := ends.wider(model)) is not None:
                model.set_params(Cs=wider)
                warned = _fit(model, data_set)
            work.save_chosen(model.best_estimator_, training_set)
    choice = Choice(model, data_set.X.shape[0], picture, ends)
    warned += choice.doubts
    if picture is not None:
        choice.draw(picture, f"{data.name}: {loss.replace('_', ' ')} loss, {folds} folds")
    return report(Training(model.best_estimator_, work, training_set, warned, choice=choice))


def _weighted(estimator: Any, class_weight: str | None, y: NDArray[Any]) -> NDArray[Any]:
    """Tell the estimator of the weights that were asked for; returns the classes."""
    import numpy as np

    classes = np.unique(y)
    if class_weight is not None:
        estimator.set_params(class_weight=options.class_weight_of(class_weight, classes))
    return classes


def _choose_with_kernel(
    work: Fitting, search: GridSearch, parameters: dict[str, Any], class_weight: str | None
) -> int:
    """The same with C and gamma of a kernel."""
    import numpy as np

    from maxmargin.command_line.shared.report import Training, report

    estimator = maxmargin.SVC(
        **search.kernel, **parameters, n_jobs=work.reading.threads, random_state=search.seed
    )
    estimator._check_parameters()  # now, and not after an hour of reading
    with Bars(quiet=work.as_json) as bars:
        training_set = work.read(bars)
        data_set = training_set.data
        _check_folds(search.folds, data_set.y)
        _weighted(estimator, class_weight, data_set.y)
        work.lap("read")
        with one_interrupt():
            found = search.run(estimator, data_set.X, data_set.y, bars)
            if data_set.feature_names is not None:
                found.best.feature_names_in_ = np.array(data_set.feature_names, dtype=object)
            work.save_chosen(found.best, training_set)
    return report(Training(found.best, work, training_set, found.doubts, choice=found))


@dataclass
class _Ends:
    """The smallest and the largest C; where the best is at an end that nobody asked for, it moves."""

    asked_low: float | None
    asked_high: float | None
    widened: int = 0

    def __post_init__(self) -> None:
        check_ends(self.low, self.high)

    @property
    def low(self) -> float:
        return _LOW if self.asked_low is None else self.asked_low

    @property
    def high(self) -> float:
        return _HIGH if self.asked_high is None else self.asked_high

    def wider(self, model: maxmargin.LinearSVCCV) -> NDArray[Any] | None:
        """The grid with more values beyond the end at which the best is; None where that will not do."""
        import numpy as np

        end, ratio = at_end(model), float(model.Cs_[-1] / model.Cs_[0]) ** (1 / max(len(model.Cs_) - 1, 1))
        asked = {"--low": self.asked_low, "--high": self.asked_high}
        if end is None or asked[end] is not None or self.widened == _MOST_WIDENINGS:
            return None
        self.widened += 1
        steps = ratio ** np.arange(1, _MORE_VALUES + 1)
        if end == "--low":
            return np.concatenate([model.Cs_[0] / steps[::-1], model.Cs_])
        return np.concatenate([model.Cs_, model.Cs_[-1] * steps])


def at_end(model: maxmargin.LinearSVCCV) -> str | None:
    """The option of the end of the grid at which the best C is, if it is and others are worse."""
    scores = model.cv_results_["mean_test_score"]
    if len(scores) == 1 or scores.min() == scores.max():
        return None
    return {0: "--low", len(scores) - 1: "--high"}.get(model.best_index_)


def _check_folds(folds: int, labels: NDArray[Any]) -> None:
    """Every fold has to hold out rows of every class, and to leave some."""
    import numpy as np

    classes, counts = np.unique(labels, return_counts=True)
    fewest = int(np.argmin(counts))
    if counts[fewest] < folds:
        raise Failure(
            f"--folds must be at most as many as the smallest class has rows: class "
            f"{label_text(classes[fewest])} has {counts[fewest]}. Got {folds} instead."
        )


def _fit(model: maxmargin.LinearSVCCV, data_set: files.DataSet) -> list[str]:
    """Fit; what it warned of. How the model of all rows ended is said in words later."""
    import numpy as np

    from maxmargin.telling.doubts import DoubtfulModelWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(data_set.X, data_set.y)
    model.best_estimator_.set_params(callback=None)
    if data_set.feature_names is not None:
        model.best_estimator_.feature_names_in_ = np.array(data_set.feature_names, dtype=object)
    return [str(one.message) for one in caught if not issubclass(one.category, DoubtfulModelWarning)]


@dataclass(frozen=True)
class Choice:
    """How C was chosen."""

    model: maxmargin.LinearSVCCV
    rows: int
    picture: Path | None
    ends: _Ends

    @property
    def doubts(self) -> list[str]:
        """That the best C is at an end of the grid, if it is."""
        end = at_end(self.model)
        if end is None:
            return []
        what = "less" if end == "--low" else "more"
        widened = ", which was widened for it" if self.ends.widened else ""
        return [
            f"C = {self.model.C_:.4g} is at the end of the grid{widened}: {what} may be better still. "
            f"{'Lower' if end == '--low' else 'Raise'} {end}."
        ]

    @property
    def as_good(self) -> list[float]:
        """Other values of C whose score is not worse by more than a row."""
        scores = self.model.cv_results_["mean_test_score"]
        nearly = scores >= self.model.best_score_ - _FEWEST_ROWS / self.rows - 1e-12
        return [float(C) for C in self.model.Cs_[nearly] if C != self.model.C_]

    def as_json(self) -> dict[str, Any]:
        """One object."""
        results = self.model.cv_results_
        count = self.model.n_splits_
        return {
            "C": self.model.C_,
            "score": self.model.best_score_,
            "as_good": self.as_good,
            "folds": count,
            "values": [
                {
                    "C": float(C),
                    "mean_score": results["mean_test_score"][k],
                    "std_score": results["std_test_score"][k],
                    "scores": [results[f"split{i}_test_score"][k] for i in range(count)],
                    "max_relative_gap": results["max_relative_gap"][k],
                }
                for k, C in enumerate(self.model.Cs_)
            ],
            "picture": self.picture,
        }

    def print_words(self) -> None:
        """A table, and what was chosen."""
        best, names = self.model.best_index_, ("mean_test_score", "std_test_score", "max_relative_gap")
        values = [self.model.cv_results_[name] for name in names]
        print_table(
            f"Accuracy on held-out rows, {self.model.n_splits_} folds",
            ("C", "mean", "std", "largest rel. gap", ""),
            [
                (C, f"{100 * mean:.2f} %", f"{100 * std:.2f} %", gap, "best" if k == best else "")
                for k, (C, mean, std, gap) in enumerate(zip(self.model.Cs_, *values, strict=True))
            ],
            (".4g", "", "", ".1e"),
        )
        words = (
            f"C = {self.model.C_:.4g}: {100 * self.model.best_score_:.2f} % of the held-out rows are right."
        )
        if self.as_good:
            as_good = some([f"{C:.4g}" for C in self.as_good], 10)
            words += f" As good but for one row or none: C = {as_good}."
        typer.echo(words)
        if self.picture is not None:
            typer.echo(f"Score against C: {self.picture}")

    def draw(self, path: Path, title: str) -> None:
        """Write the picture."""
        from maxmargin.plot.styles import line

        results, C = self.model.cv_results_, self.model.Cs_
        mean, std = 100 * results["mean_test_score"], 100 * results["std_test_score"]
        figure, axes = new_figure(7.2, 4.4, title)
        axes.fill_between(
            C, mean - std, mean + std, color="0.9", linewidth=0, label="one deviation of the folds"
        )
        axes.plot(C, mean, label="mean of the folds", **line(0))
        axes.axvline(self.model.C_, color="0.45", linewidth=1.0, linestyle=(0, (4, 3)), zorder=1)
        axes.annotate(
            f" C = {self.model.C_:.4g}",
            (self.model.C_, 0.02),
            xycoords=("data", "axes fraction"),
            fontsize=9,
            color="0.35",
        )
        axes.set_xscale("log")
        axes.set_xlabel("C")
        axes.set_ylabel("accuracy on held-out rows (%)")
        axes.legend(fontsize=8)
        write_picture(path, figure)
