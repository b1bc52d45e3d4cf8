# SPDX-License-Identifier: BSD-3-Clause
"""What ``train`` says at its end: the certificate in words, the accuracy, the time and the memory."""

from __future__ import annotations

import math
import warnings
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

import maxmargin
from maxmargin import core, files
from maxmargin.command_line.shared.answer import (
    INTERRUPTED,
    attributes,
    print_error,
    print_json,
    print_table,
)
from maxmargin.command_line.shared.columns import encoding_as_json
from maxmargin.command_line.shared.endings import code_of, ending, peak_memory
from maxmargin.command_line.shared.features import features_as_json, features_in_words
from maxmargin.command_line.shared.fitting import Fitting, about_data, about_fit, about_work
from maxmargin.command_line.shared.progress import Bars
from maxmargin.command_line.shared.words import column_name
from maxmargin.estimators.sureness import has_place, settled_of
from maxmargin.files.data.labels import problem_text, quoted_label
from maxmargin.kernels.names import describe
from maxmargin.proof.model import each_of
from maxmargin.telling.doubts import (
    ON_THE_COMMAND_LINE,
    column_scales,
    counting_doubts,
    majority_doubt,
    scale_doubts,
    separating_columns,
    separating_doubts,
)
from maxmargin.tools.words import percent

if TYPE_CHECKING:
    from maxmargin.command_line.choose import Choice
    from maxmargin.command_line.shared.data_options import TrainingSet
    from maxmargin.command_line.shared.grid_search import Found
    from maxmargin.features.expansion import Expansion

_CAN_GO_ON = ("STEPS_SPENT", "TIME_SPENT", "INTERRUPTED", "STOPPED")
_VALUES = ("primal", "dual", "relative_gap", "kkt_violation")
"""What is told of a certificate."""
_MOST_CLASSES = 10
"""Classes, or pairs of them, that are listed at most."""
_MOST_SURE_ROWS = 2000
"""Rows, at most, that are asked whether a better fit would change their class: a share is no more exact."""
_MOST_VALUES = 200_000_000
"""Values of a kernel, at most, that are computed to count the training rows that are right: seconds."""


@dataclass(frozen=True)
class Training:
    """What was trained from what, and where it lies."""

    estimator: maxmargin.LinearSVC | maxmargin.SVC
    work: Fitting
    training_set: TrainingSet
    warned: list[str]
    """What the fit warned of, beside not reaching its tolerance."""
    blocks: int | None = None
    """The number of blocks of rows that the kernel cannot couple, in the problem that has most; None where
    nothing tells."""
    choice: Choice | Found | None = None
    """How C was chosen, where it was."""
    held_out: tuple[int, int] | None = None
    """How many of the rows held out a model of the others gets right, and how many these are."""

    @property
    def data_set(self) -> files.DataSet:
        """The rows, as the model saw them."""
        return self.training_set.data

    @property
    def certificates(self) -> list[maxmargin.Certificate]:
        """One per problem."""
        return list(each_of(self.estimator.certificate_))

    @property
    def worst(self) -> maxmargin.Certificate:
        """What the model as a whole is worth."""
        return max(self.certificates, key=lambda certificate: certificate.relative_gap)

    @property
    def telling(self) -> tuple[Any, maxmargin.Certificate]:
        """The problem whose gap matters most, and its proof.

        That is the widest relative gap where one is above tol. Else it is the widest gap in value: a class
        that is told apart at no cost has a gap of some percent of nothing.
        """
        each = list(zip(self.labels, self.certificates, strict=True))
        if self.worst.relative_gap > self.estimator.tol:
            return max(each, key=lambda one: one[1].relative_gap)
        return max(each, key=lambda one: one[1].gap)

    @property
    def traces(self) -> list[maxmargin.Trace]:
        """One per problem."""
        each = self.estimator.trace_
        return each if isinstance(each, list) else [each]

    @cached_property
    def counts(self) -> list[int]:
        """The number of rows of each class."""
        return [int(np.count_nonzero(self.data_set.y == label)) for label in self.estimator.classes_]

    @cached_property
    def right(self) -> tuple[int, int]:
        """How many training rows the model gets right, and of how many: with a kernel perhaps of some."""
        if len(self.certificates) == 1:
            count = len(self.data_set.y)
            worst = self.worst.margins.reshape(count, -1).min(axis=1)  # several rows of one example
            return int(np.count_nonzero(worst > 0)), count
        X, y, rows = self.data_set.X, self.data_set.y, np.arange(self.data_set.X.shape[0])
        if hasattr(self.estimator, "support_") and len(rows) * len(self.estimator.support_) > _MOST_VALUES:
            rows = np.linspace(0, len(rows) - 1, _MOST_SURE_ROWS).astype(np.intp)
            X, y = X[rows], y[rows]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the columns are in the order of their names
            return int(np.count_nonzero(self.estimator.predict(X) == y)), len(rows)

    @cached_property
    def doubts(self) -> list[str]:
        """What the fit warned of, and what makes the model useless whatever its proof says."""
        data, (right, of) = self.data_set, self.right
        name = partial(column_name, data.feature_names)
        doubts = scale_doubts(column_scales(data.X), name, ON_THE_COMMAND_LINE, large=False)
        if self.estimator.class_weight is None:
            counts = [round(count * of / len(data.y)) for count in self.counts]
            doubts += majority_doubt(right, counts, ON_THE_COMMAND_LINE)
        separating = [name(column) for column in separating_columns(data.X, data.y)]
        if data.encoding is not None:
            owners = [f"'{column.name}'" for column in data.encoding.columns for _ in column.names]
            places = dict(zip(map(name, range(data.X.shape[1])), owners, strict=True))
            separating = list(dict.fromkeys(places[column] for column in separating))
        counting = [f"'{column}'" for column in self.training_set.counting]
        doubts += separating_doubts([column for column in separating if column not in counting])
        doubts += counting_doubts(counting)
        return [*self.warned, *doubts]

    @cached_property
    def sure(self) -> tuple[int, int]:
        """How many of some training rows have the class that the best model gives them, and of how many."""
        X = self.data_set.X
        rows = np.linspace(0, X.shape[0] - 1, min(X.shape[0], _MOST_SURE_ROWS)).astype(np.intp)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the columns are in the order of their names
            return int(self.estimator.is_sure(X[rows]).sum()), len(rows)

    @cached_property
    def settled(self) -> tuple[int, int]:
        """Rows that are proven to be no support vectors at the optimum of ``worst``, and to be at C."""
        settled = settled_of(self.estimator)[
            [proof is self.worst for proof in self.certificates].index(True)
        ]
        return int(settled.idle.sum()), int(settled.at_cost.sum())

    @property
    def ending(self) -> str:
        """How the training ended, and what to do about it."""
        gap, tol = self.worst.relative_gap, self.estimator.tol
        words, _ = ending(self.estimator.status_, gap, tol, self.steps, self.work.data)
        if self.estimator.status_.name not in _CAN_GO_ON or self.work.model_format != "maxmargin":
            return words
        return f"{words} To go on from here: maxmargin train {self.work.data} --resume {self.work.target}"

    @property
    def steps(self) -> int:
        """The steps of the solver; with several problems, the largest number of them."""
        return int(np.max(self.estimator.n_iter_))

    @property
    def expansion(self) -> Expansion | None:
        """The expansion that makes the features, where they are not the columns themselves."""
        return getattr(self.estimator, "expansion_", None)

    @property
    def columns(self) -> int:
        """The columns of the data, before they go through a feature map."""
        return int((self.training_set.as_read if self.before else self.data_set).X.shape[1])

    @property
    def before(self) -> list[str]:
        """The names of the steps that columns of numbers go through before the model."""
        preparation = self.training_set.preparation
        return [] if preparation is None else [step.name for step in preparation.steps]

    @property
    def labels(self) -> list[Any]:
        """What each problem tells apart: None for two classes, else a class or a pair of classes."""
        if len(self.certificates) == 1:
            return [None]
        return list(getattr(self.estimator.certificate_, "pairs", self.estimator.classes_))

    @property
    def code(self) -> int:
        """The exit code."""
        return code_of(self.estimator.status_)


def report(training: Training) -> int:
    """Say how it went, on stdout; returns the exit code."""
    try:
        return _report(training)
    except KeyboardInterrupt:
        words = f"Interrupted: the model is trained and written to {training.work.target}."
        print_error(words, as_json=training.work.as_json)
        return INTERRUPTED


def _report(training: Training) -> int:
    work = training.work
    if training.choice is None:  # else that of one fit of many would be told
        # Classes side by side certify side by side: their sum can exceed the time of training.
        certifying = sum(trace.certifying for trace in training.traces)
        work.seconds["certify"] = min(certifying, work.seconds["train"])
    found = None if training.code == INTERRUPTED else work.tested()
    tested = None if found is None else (found.right, found.judged)
    with Bars(quiet=work.as_json) as bars:
        bars.waiting("proving what the model is worth")
        if has_place(training.estimator):
            _ = training.sure, training.settled
        _ = training.doubts
    memory = peak_memory()
    if work.as_json:
        print_json(_as_json(training, tested, memory))
    else:
        _print_words(training, tested, memory)
    return training.code


def _as_json(training: Training, tested: tuple[int, int] | None, memory: int | None) -> dict[str, Any]:
    estimator, worst = training.estimator, training.worst
    X = training.data_set.X
    return {
        "model": training.work.target,
        "status": estimator.status_.name.lower(),
        "message": training.ending,
        "certified": estimator.status_.certified,
        "warnings": training.doubts,
        **attributes(worst, *_VALUES),
        **attributes(estimator, "tol", "C"),
        "hard_margin": math.isinf(estimator.C),
        "loss": getattr(estimator, "loss", "hinge"),
        **kernel_as_json(training),
        "feature_map": features_as_json(training.expansion),
        "table": encoding_as_json(training.training_set.as_read.encoding),
        "before": training.before,
        "solver": estimator.solver_,
        "steps": training.steps,
        "rows": X.shape[0],
        "columns": training.columns,
        "stored": int(getattr(X, "nnz", X.size)),
        "skipped": training.data_set.skipped,
        "classes": list(estimator.classes_),
        "certificates": [
            {"class": label, "support_vectors": len(certificate.support)}
            | attributes(certificate, *_VALUES, "b_interval", "margin", "margin_bound")
            for label, certificate in zip(training.labels, training.certificates, strict=True)
        ],
        **({} if training.choice is None else {"choice": training.choice.as_json()}),
        **_sure_as_json(training),
        "training_accuracy": training.right[0] / training.right[1],
        "training_rows": training.right[1],
        "majority_share": max(training.counts) / sum(training.counts),
        "held_out_accuracy": training.held_out and training.held_out[0] / training.held_out[1],
        "held_out_rows": training.held_out and training.held_out[1],
        "test_accuracy": tested[0] / tested[1] if tested else None,
        "test_rows": tested[1] if tested else None,
        "seconds": training.work.seconds,
        "peak_memory_bytes": memory,
    }


def _print_words(training: Training, tested: tuple[int, int] | None, memory: int | None) -> None:
    X, work = training.data_set.X, training.work
    first = f"{work.data}: {X.shape[0]} rows, {training.columns} columns, {_classes(training)}."
    about_data(first, training.training_set, training.choice)
    if len(training.certificates) > 1:
        _print_classes(training)
    about_fit(training.doubts, training.ending, training.code)
    label, proof = training.telling
    if label is not None:
        rest = "" if isinstance(label, tuple) else " against the rest"
        typer.echo(f"The gap that matters most is that of {problem_text(label)}{rest}:")
    typer.echo(str(proof))
    if words := kernel_in_words(training):
        typer.echo(words)
    if training.expansion is not None:
        typer.echo(f"Features: {features_in_words(training.expansion)}; never written out.")
    for sentence in _what_is_sure(training):
        typer.echo(sentence)
    typer.echo(f"{_accuracy('Training', training.right)} {_majority(training)}")
    if training.held_out is not None:
        rows = f"a model of the other {training.right[1] - training.held_out[1]} rows"
        typer.echo(f"{_accuracy('Held-out', training.held_out)} Predicted by {rows}.")
    if tested is not None:
        typer.echo(_accuracy("Test", tested))
    typer.echo("\n".join(about_work(training.estimator.solver_, work.seconds, memory, work.target)))


def kernel_as_json(training: Training) -> dict[str, Any]:
    """What is known of the kernel, if there is one."""
    estimator: Any = training.estimator
    if not hasattr(estimator, "kernel_"):
        return {"kernel": None}
    return {
        "kernel": describe(estimator.kernel_),
        "support_vectors": len(estimator.support_),
        "held_as": _held_as(training),
        "blocks": training.blocks,
        "cache": {**asdict(estimator.cache_use_), "hit_share": estimator.cache_use_.hit_share},
    }


def kernel_in_words(training: Training) -> str:
    """The kernel, the support vectors, and how the rows were held; empty without a kernel."""
    estimator: Any = training.estimator
    if not hasattr(estimator, "kernel_"):
        return ""
    count, blocks = training.blocks, ""
    if count is not None:
        blocks = " in one block" if count == 1 else f" in {count} blocks that the kernel cannot couple"
    return (
        f"Kernel: {estimator.kernel_}; {len(estimator.support_)} support vectors; rows held as "
        f"{_held_as(training)}{blocks}.\n{estimator.cache_use_}"
    )


def _held_as(training: Training) -> str:
    """The encoding in which the core holds rows of these data for this kernel."""
    estimator: Any = training.estimator
    rows = maxmargin.Rows(training.data_set.X, check_finite=False)
    return core.kernel_encoding(estimator.kernel_.compiled, rows.stored_data)


def _what_is_sure(training: Training) -> list[str]:
    """What the proof says of the best model; with the l1 penalty, which columns this one uses."""
    if not has_place(training.estimator):
        used = columns_used(training.estimator.coef_)
        return [
            f"Columns: {used} of {training.estimator.coef_.shape[1]} have a weight; the others have none."
        ]
    count, of = training.sure
    words = [
        f"Sure: {percent(count / of)} of {of} training rows have the class that the best model gives them."
    ]
    idle, at_cost = training.settled
    if idle or at_cost:
        also = f", and {at_cost} are at C" if at_cost else ""
        words.append(f"Settled: at the optimum {idle} rows are no support vectors{also}.")
    return words


def _sure_as_json(training: Training) -> dict[str, Any]:
    if not has_place(training.estimator):
        used = columns_used(training.estimator.coef_)
        return {"penalty": "l1", "columns_used": used, "sure_share": None}
    return {
        "sure_share": training.sure[0] / training.sure[1],
        "proven_idle_rows": training.settled[0],
        "proven_rows_at_cost": training.settled[1],
    }


def columns_used(coef: Any) -> int:
    """How many columns have a weight in some problem."""
    return int(np.count_nonzero(np.any(coef != 0.0, axis=0)))


def _classes(training: Training) -> str:
    labels = training.estimator.classes_
    if len(labels) > _MOST_CLASSES:
        return f"{len(labels)} classes"
    each = (f"{quoted_label(label)} ({n})" for label, n in zip(labels, training.counts, strict=True))
    return f"classes {', '.join(each)}"


def _print_classes(training: Training) -> None:
    """The classes with the widest gaps; the certificate in words that follows is of the first."""
    each = zip(training.labels, training.certificates, strict=True)
    ordered = sorted(each, key=lambda entry: -entry[1].relative_gap)
    shown = ordered[:_MOST_CLASSES]
    pairs = isinstance(training.labels[0], tuple)
    what = "Each pair of classes" if pairs else "Each class against the rest"
    left_out = f" ({len(ordered) - len(shown)} more are not shown)" if len(ordered) > len(shown) else ""
    print_table(
        f"{what}, the widest gap first{left_out}",
        ("pair" if pairs else "class", "primal", "dual", "rel. gap", "support vectors"),
        [
            (problem_text(label), proof.primal, proof.dual, proof.relative_gap, len(proof.support))
            for label, proof in shown
        ],
        ("", ".8g", ".8g", ".1e"),
    )


def _accuracy(kind: str, counted: tuple[int, int]) -> str:
    right, count = counted
    return f"{kind} accuracy: {100 * right / count:.2f} %, {right} of {count} rows."


def _majority(training: Training) -> str:
    """What the answer that is always the same gets right."""
    largest = int(np.argmax(training.counts))
    label = quoted_label(training.estimator.classes_[largest])
    share = training.counts[largest] / sum(training.counts)
    return f"Always to say {label} would give {100 * share:.2f} %."
