# SPDX-License-Identifier: BSD-3-Clause
"""``maxmargin certify``: recompute a model's proof from two files with the referee alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maxmargin import files
from maxmargin.command_line.shared import data_options, options
from maxmargin.command_line.shared.answer import DOES_NOT_HOLD, DONE, Failure, in_words, print_json
from maxmargin.command_line.shared.in_chunks import Chunking, can_be_judged_in_chunks
from maxmargin.command_line.shared.progress import Bars

if TYPE_CHECKING:
    from maxmargin.command_line.shared.verdict import Verdict


class NoProof(Failure):
    """Why nothing can be said about how good a model is, though it can predict."""


@dataclass(frozen=True)
class Judging:
    """What has to be said of a model whose file does not say it, and how much is to be shown."""

    C: Annotated[
        float | None,
        typer.Option(
            "-C", help="For files of LIBLINEAR and LIBSVM, which do not keep it.", show_default=False
        ),
    ] = None
    class_weight: Annotated[
        str | None,
        typer.Option(
            help="For files of LIBLINEAR and LIBSVM: balanced, or LABEL:FACTOR,...", show_default="all 1"
        ),
    ] = None
    tol: Annotated[
        float | None,
        typer.Option(help="Relative gap to show where the file claims none.", show_default="1e-2"),
    ] = None
    epsilon: Annotated[
        float | None,
        typer.Option(
            help="The width of the tube in training, for regressors of LIBLINEAR and LIBSVM.",
            show_default=False,
        ),
    ] = None
    nu: Annotated[
        float | None,
        typer.Option(help="The nu of the training, for files of LIBSVM that have one.", show_default=False),
    ] = None
    max_time: Annotated[
        float, typer.Option(help="Seconds to look for a lower bound where the file has none.")
    ] = 60.0

    def check(self) -> None:
        """Refuse now what could not be shown later."""
        if self.tol is not None and not 0 < self.tol < 1:
            raise Failure(
                f"--tol must be above 0 and below 1. Got {self.tol:g} instead. It is a relative gap."
            )

    def verdict(self, saved: files.StoredModel, model: Path, data: Path) -> Verdict:
        """The verdict that is to be found; raises NoProof where there can be none."""
        from maxmargin.command_line.shared.verdict import SMALLEST_GAP, Verdict

        cost, tol = _cost(saved, model, self.C), self.tol
        saved = self._with_nu(self._with_epsilon(saved, model), model)
        if saved.status is not None and saved.status.certified and saved.tol is not None:
            tol = max(saved.tol, SMALLEST_GAP)  # the file's own claim decides
        return Verdict(model, data, saved, cost, tol=1e-2 if tol is None else tol)

    def _with_epsilon(self, saved: files.StoredModel, model: Path) -> files.StoredModel:
        """A regressor with its epsilon, from the file or from the command line, never from both."""
        if self.epsilon is not None:
            if not saved.is_regression:
                raise Failure(f"--epsilon is for regressors. {model} is none. Leave it out.")
            _refuse_for_own(saved, model, "--epsilon")
            if saved.has_nu:
                raise Failure(
                    f"--epsilon must not be given where there is a nu, as in {model}. Leave it out."
                )
        if not saved.is_regression or saved.has_nu or saved.problem["epsilon"] is not None:
            return saved
        if self.epsilon is None or not 0 <= self.epsilon < float("inf"):
            raise Failure(
                f"The file {model} does not say which epsilon the regressor was trained with. Give it with "
                "--epsilon, a number of at least 0 (-p of LIBLINEAR and LIBSVM)."
            )
        return replace(saved, problem=saved.problem | {"epsilon": float(self.epsilon)})

    def _with_nu(self, saved: files.StoredModel, model: Path) -> files.StoredModel:
        """A model with its nu, from the file or from the command line, never from both."""
        if self.nu is not None:
            if not saved.has_nu:
                raise Failure(
                    f"--nu is for models that were trained with one. {model} is none. Leave it out."
                )
            _refuse_for_own(saved, model, "--nu")
        if not saved.has_nu or saved.problem["nu"] is not None:
            return saved
        if self.nu is None or not 0 < self.nu <= 1:
            raise Failure(
                f"The file {model} does not say which nu the model was trained with. Give it with --nu, a "
                "number above 0 and at most 1 (-n of LIBSVM)."
            )
        return replace(saved, problem=saved.problem | {"nu": float(self.nu)})

    def weights(self, saved: files.StoredModel, model: Path) -> Any:
        """The factors on C, from the file or from the command line, never from both."""
        if self.class_weight is None:
            return saved.problem.get("class_weight")
        _refuse_for_own(saved, model, "--class-weight")
        return options.class_weight_of(self.class_weight, saved.classes)


@in_words
def certify(
    model: options.ModelFile,
    data: options.DataFile,
    *,
    judging: Judging,
    independent: Annotated[
        bool,
        typer.Option(
            "--independent",
            help="Judge with a checker in exact arithmetic that shares no code with the rest: slow.",
        ),
    ] = False,
    chunking: Chunking,
    reading: data_options.Reading,
    as_json: options.Json = False,
) -> int:
    """Recompute primal, dual and gap from the two files, and say whether the model's claims hold.

    Neither file is trusted. Models without proof and those of LIBLINEAR and LIBSVM are measured instead:
    at most, and at least, so far above the optimum. Models with a kernel are taken as well.

    Data that need more than --memory, and several files, are read in chunks: linear classifiers are then
    judged in passes over the data.

    With --independent, a checker of its own recomputes the values as fractions, without any rounding.

    Exit code 0: it holds, or is within --tol of the optimum; 1: it does not, or is not; 2: wrong input.

    Example: maxmargin certify model.mm data.svm

    Example: maxmargin certify liblinear.model data.svm -C 1
    """
    if independent:
        given = judging.C, judging.class_weight, judging.tol, judging.nu, reading.format, reading.columns
        if any(option is not None for option in given) or reading.skip_bad_lines or reading.missing:
            raise Failure(
                "--independent takes --label, --query, --delimiter, --decimal, --no-header, --zero-based "
                "and --json alone: it judges what a model of maxmargin claims, and reads LIBSVM text and "
                "CSV. Leave the other options out."
            )
        return _judge_independently(model, data, reading, as_json=as_json)
    judging.check()
    saved = files.load_model(model)
    verdict, weight = judging.verdict(saved, model, data), judging.weights(saved, model)
    if can_be_judged_in_chunks(saved) and _reason(saved, chunking, data, reading) is not None:
        chunks = chunking.chunks(data, reading, reading.columns or saved.width, None)
        with Bars(quiet=as_json) as bars:
            verdict.look_at_chunks(chunks, weight, judging.max_time, bars)
            bars.finish()
        return verdict.tell(as_json=as_json)
    options.check_readable(data)
    with Bars(quiet=as_json) as bars:
        labelled = not saved.is_one_class
        data_set = reading.read(data, bars.reading(data.name), saved.encoding, labelled=labelled)
        bars.waiting("recomputing the proof")
        verdict.look_at(data_set, weight, judging.max_time, bars)
        bars.finish()
    return verdict.tell(as_json=as_json)


def _reason(
    saved: files.StoredModel, chunking: Chunking, data: Path, reading: data_options.Reading
) -> str | None:
    """Why the data are read in chunks, if they are."""
    made = 0 if saved.preparation is None else saved.own_features
    return chunking.reason(data, reading, made)


def _judge_independently(model: Path, data: Path, reading: data_options.Reading, *, as_json: bool) -> int:
    """The verdict of the checker that shares nothing with the rest."""
    from maxmargin.independent.checker import check
    from maxmargin.independent.readers import Sheet

    sheet = Sheet(*(reading.given[name] for name in ("delimiter", "decimal", "header")))
    columns = {"label": reading.label, "query": reading.query}
    verdict = check(model, data, **columns, zero_based=reading.zero_based, sheet=sheet)
    if as_json:
        print_json(verdict.as_json())
    else:
        typer.echo("\n".join(verdict.lines))
    return DONE if verdict.holds else DOES_NOT_HOLD


def _cost(model: files.StoredModel, path: Path, given: float | None) -> float:
    """C, from the file or from the command line, never from both."""
    stated = model.problem.get("C")
    if given is not None:
        if stated is not None:
            _refuse_for_own(model, path, "-C")
        if not given > 0:
            raise Failure(f"-C must be a number above 0. Got {given:g} instead.")
        return given
    if stated is not None:
        return float(stated)
    from maxmargin.files.models.support_vectors import with_support_vectors

    least = ""
    vectors = with_support_vectors(model)
    if vectors is not None:
        largest = abs(vectors.coefficients).max(initial=0.0)
        least = f" (its largest multiplier is {largest:.6g}, so C was at least that)"
    raise NoProof(
        f"certify needs the C that {path} was trained with. Files of {model.writer} do not keep it{least}. "
        "Add -C VALUE."
    )


def _refuse_for_own(model: files.StoredModel, path: Path, option: str) -> None:
    if model.format == "maxmargin":
        raise Failure(
            f"{option} is for files of LIBLINEAR and LIBSVM. {path} says itself what was minimised. "
            f"Leave {option} out."
        )
