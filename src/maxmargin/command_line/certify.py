# SPDX-License-Identifier: BSD-3-Clause
"""``maxmargin certify``: recompute a model's proof from two files with the referee alone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maxmargin.command_line.shared.answer import DOES_NOT_HOLD, DONE, Failure, in_words, print_json
from maxmargin.command_line.shared.columns import aligned
from maxmargin.command_line.shared.options import (
    Columns,
    DataFile,
    Format,
    Json,
    Label,
    ModelFile,
    Reading,
    ReadingThreads,
    SkipBadLines,
    ZeroBased,
    check_readable,
    class_weight_of,
)
from maxmargin.command_line.shared.progress import Bars
from maxmargin.command_line.shared.words import some
from maxmargin.files.data.labels import class_codes, label_text, labels_of
from maxmargin.files.models.support_vectors import (
    are_rows,
    found_rows,
    multipliers,
    with_support_vectors,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from maxmargin.command_line.shared.verdict import Verdict
    from maxmargin.files import DataSet, SavedKernelModel, StoredModel
    from maxmargin.proof.of_files import Finding, Part


_SMALLEST_GAP = 1e-9
"""A gap below this is rounding as much as anything else."""


@in_words
def certify(
    model: ModelFile,
    data: DataFile,
    C: Annotated[
        float | None,
        typer.Option(
            "-C", help="For files of LIBLINEAR and LIBSVM, which do not keep it.", show_default=False
        ),
    ] = None,
    class_weight: Annotated[
        str | None,
        typer.Option(
            help="For files of LIBLINEAR and LIBSVM: balanced, or LABEL:FACTOR,...", show_default="all 1"
        ),
    ] = None,
    tol: Annotated[
        float | None,
        typer.Option(help="Relative gap to show where the file claims none.", show_default="1e-2"),
    ] = None,
    max_time: Annotated[
        float, typer.Option(help="Seconds to look for a lower bound where the file has none.")
    ] = 60.0,
    independent: Annotated[
        bool,
        typer.Option(
            "--independent",
            help="Judge with a checker in exact arithmetic that shares no code with the rest: slow.",
        ),
    ] = False,
    format: Format = None,
    label: Label = None,
    columns: Columns = None,
    zero_based: ZeroBased = False,
    skip_bad_lines: SkipBadLines = False,
    threads: ReadingThreads = None,
    as_json: Json = False,
) -> int:
    """Recompute primal, dual and gap from the two files, and say whether the model's claims hold.

    Neither file is trusted. Models without proof and those of LIBLINEAR and LIBSVM are measured instead:
    at most, and at least, so far above the optimum. Models with a kernel are taken as well.

    With --independent, a checker of its own recomputes the values as fractions, without any rounding.

    Exit code 0: it holds, or is within --tol of the optimum; 1: it does not, or is not; 2: wrong input.

    Example: maxmargin certify model.mm data.svm

    Example: maxmargin certify liblinear.model data.svm -C 1
    """
    from maxmargin.command_line.shared.verdict import Verdict
    from maxmargin.files import load_model

    if independent:
        given = C, class_weight, tol, format, columns
        if any(option is not None for option in given) or skip_bad_lines:
            raise Failure(
                "--independent takes --label, --zero-based and --json alone: it judges what a model of "
                "maxmargin claims, and reads LIBSVM text and CSV. Leave the other options out."
            )
        return _judge_independently(model, data, label, zero_based, as_json=as_json)
    if tol is not None and not 0 < tol < 1:
        raise Failure(f"--tol must be above 0 and below 1. Got {tol:g} instead. It is a relative gap.")
    check_readable(data)
    saved = load_model(model)
    cost = _cost(saved, model, C)
    _check_problem(saved, model)
    reading = Reading(format, label, columns, zero_based, skip_bad_lines, threads)
    with Bars(quiet=as_json) as bars:
        data_set = reading.read(data, bars.reading(data.name))
        verdict = Verdict(model, data, saved, cost, tol=_gap_to_show(saved, tol))
        X, codes = _as_the_model_sees_it(saved, data_set, data, verdict)
        if X is not None:
            weight = saved.problem.get("class_weight")
            if class_weight is not None:
                _refuse_for_own(saved, model, "--class-weight")
                weight = class_weight_of(class_weight, saved.classes)
            verdict.findings.extend(_findings(saved, X, codes, cost, weight, verdict, max_time, bars))
        bars.finish()
    return verdict.tell(as_json=as_json)


def _judge_independently(
    model: Path, data: Path, label: str | None, zero_based: bool, *, as_json: bool
) -> int:
    """The verdict of the checker that shares nothing with the rest."""
    from maxmargin.independent.checker import check

    verdict = check(model, data, label=label, zero_based=zero_based)
    if as_json:
        print_json(verdict.as_json())
    else:
        typer.echo("\n".join(verdict.lines))
    return DONE if verdict.holds else DOES_NOT_HOLD


def _cost(model: StoredModel, path: Path, given: float | None) -> float:
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
    least = ""
    vectors = with_support_vectors(model)
    if vectors is not None:
        largest = abs(vectors.coefficients).max(initial=0.0)
        least = f" (its largest multiplier is {largest:.6g}, so C was at least that)"
    raise Failure(
        f"certify needs the C that {path} was trained with. Files of {model.writer} do not keep it{least}. "
        "Add -C VALUE."
    )


def _refuse_for_own(model: StoredModel, path: Path, option: str) -> None:
    if model.format == "maxmargin":
        raise Failure(
            f"{option} is for files of LIBLINEAR and LIBSVM. {path} says itself what was minimised. "
            f"Leave {option} out."
        )


def _check_problem(model: StoredModel, path: Path) -> None:
    """Refuse models of problems that are not the one whose dual is known here."""
    if model.problem.get("penalty", "l2") != "l2":
        raise Failure(
            f"certify proves models with the l2 penalty. {path} has the l1 penalty, another problem with "
            "another dual. It can be used with maxmargin predict."
        )
    if model.problem.get("formulation", "separate") != "separate":
        raise Failure(
            f"certify proves one class against the rest and one against one. {path} has Crammer "
            "and Singer's formulation, another problem with another dual. It can be used with maxmargin "
            "predict."
        )


def _gap_to_show(model: StoredModel, given: float | None) -> float:
    """The gap that decides: the file's own claim, else the one asked for, else one per cent."""
    if model.status is not None and model.status.certified and model.tol is not None:
        return max(model.tol, _SMALLEST_GAP)
    return 1e-2 if given is None else given


def _as_the_model_sees_it(
    model: StoredModel, data: DataSet, path: Path, verdict: Verdict
) -> tuple[Any, NDArray[Any]]:
    """X of the model's width, and the codes of the labels; X is None where no proof can be about it."""
    from maxmargin.files import fingerprint

    labels = labels_of(data)
    X = aligned(data, model, path) if data.feature_names is not None else data.X
    rows, columns = X.shape
    if columns < model.features and hasattr(X, "resize") and hasattr(X, "indptr"):
        X.resize((rows, model.features))  # LIBSVM text whose last columns are empty
    codes = class_codes(labels, model.classes)
    if model.fingerprint is not None:
        verdict.same_data = fingerprint(X, labels) == model.fingerprint
    strange = sorted({label_text(label) for label in labels[codes < 0]})
    if strange:
        verdict.refuse(f"the data have labels that the model does not know: {some(strange)}")
    if X.shape[1] != model.features and model.format != "libsvm" and model.width is not None:
        verdict.refuse(f"the data have {columns} columns, and the model {model.features}")
    if model.rows is not None and model.rows != rows:
        verdict.refuse(f"the data have {rows} rows, and the model was trained on {model.rows}")
    if model.problem.get("sample_weights"):
        verdict.refuse(
            "the model was trained with sample weights, which are not in its file: these two files alone "
            "do not say what was minimised"
        )
    return (None if verdict.refusals else X), codes


def _findings(
    model: StoredModel,
    X: Any,
    codes: NDArray[Any],
    C: float,
    class_weight: Any,
    verdict: Verdict,
    max_time: float,
    bars: Bars,
) -> list[Finding]:
    from maxmargin.proof.of_files import judge_alone, judge_proof

    count = len(model.intercept)
    claimed = model.status is not None and model.status.certified
    deadline = time.monotonic() + max_time
    findings = []
    for k, part in enumerate(_parts(model, X, codes, C, class_weight, verdict)):
        if model.certificates is not None:
            findings.append(judge_proof(part, verdict.tol if claimed else None))
        else:
            needed = verdict.tol
            if part.claim is not None and not claimed:
                # It never claimed more than this gap.
                needed = max(part.claim.relative_gap, _SMALLEST_GAP)
            share = max(0.0, deadline - time.monotonic()) / (count - k)
            show = bars.solving(f"bounding {part.name}".rstrip(), tol=needed / 10, max_time=share)
            findings.append(judge_alone(part, needed, share, show))
    return findings


def _parts(
    model: StoredModel, X: Any, codes: NDArray[Any], C: float, class_weight: Any, verdict: Verdict
) -> Iterator[Part]:
    """The problems of the model, with the multipliers that its file has or leads to."""
    from maxmargin.files import SavedKernelModel, SavedModel
    from maxmargin.proof.of_files import Alphas, parts
    from maxmargin.proof.of_kernel_files import OtherCounts, doubt, kernel_parts

    alphas = Alphas([None] * len(model.intercept), "", of_all_rows=True)
    vectors = with_support_vectors(model)
    rows = None if vectors is None else _rows_of_vectors(vectors, X, codes, verdict)
    if model.certificates is not None:
        each = [proof.alpha for proof in model.certificates]
        alphas = Alphas(each, "the file's multipliers", of_all_rows=False)
    elif vectors is not None and rows is not None:
        each = multipliers(vectors, rows, X.shape[0])
        origin = "the file's support vectors, found again among the rows of the data"
        alphas = Alphas(each, origin, of_all_rows=True)
    if not isinstance(model, SavedKernelModel):
        assert isinstance(model, SavedModel)
        yield from parts(model, X, codes, alphas, C=C, class_weight=class_weight)
        return
    if reason := doubt(model.kernel, X):
        verdict.refuse(reason)
    try:
        yield from kernel_parts(model, X, codes, alphas, C=C, class_weight=class_weight, rows=rows)
    except OtherCounts:
        verdict.refuse("the data have other numbers of rows of each class than the model was trained on")


def _rows_of_vectors(
    model: SavedKernelModel, X: Any, codes: NDArray[Any], verdict: Verdict
) -> NDArray[Any] | None:
    """The row of each support vector, as the file says or as found in the data."""
    rows = model.support
    if rows is None or not are_rows(model, X, codes, rows):
        rows = found_rows(model, X, codes)
        verdict.vectors_found = rows is not None
    return rows
