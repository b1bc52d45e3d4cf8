# SPDX-License-Identifier: BSD-3-Clause
"""``maxmargin predict``: labels or scores of a file that need not fit in memory."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, cast

import typer

from maxmargin import files
from maxmargin.command_line.shared.answer import DONE, Failure, attributes, in_words, print_json
from maxmargin.command_line.shared.columns import made_up_in_words
from maxmargin.command_line.shared.data_options import Layout
from maxmargin.command_line.shared.options import DataFile, Json, ModelFile, asked_card, check_writable
from maxmargin.command_line.shared.progress import Bars
from maxmargin.command_line.shared.ranked import Ranked, measures_of, ranked_in_words
from maxmargin.command_line.shared.voice import VOICE
from maxmargin.files.data.labels import class_codes, label_text, numbers_of
from maxmargin.tools.words import counted, percent, some

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from maxmargin.gpu.cards import Card
    from maxmargin.tables.encoding import Encoded

_SURE, _OPEN = "sure", "open"
"""What ``--sure`` writes after a label."""


@in_words
def predict(
    model: ModelFile,
    data: DataFile,
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="OUT",
            help="Where to write; .gz and .zst are packed, - is stdout.",
            show_default="-",
        ),
    ] = None,
    scores: Annotated[
        bool, typer.Option("--scores", help="After each label the decision values, separated by tabs.")
    ] = False,
    sure: Annotated[
        bool,
        typer.Option("--sure", help="After each label sure, or open: a better fit might change the label."),
    ] = False,
    device: Annotated[
        str | None,
        typer.Option(help="cuda: a kernel model's scores are summed up on the GPU.", show_default="cpu"),
    ] = None,
    reading: Layout,
    as_json: Json = False,
) -> int:
    """Predict one label per line, or one number, piece by piece: the data need not fit in memory.

    Where the data have labels, the accuracy, the error of the numbers, or how well scores rank the rows of
    each query, is told on stderr. A file OUT is written whole or not at all.

    Example: maxmargin predict model.mm test.svm -o labels.txt
    """
    target = None if output is None or str(output) == "-" else output
    if target is not None:
        check_writable(target, data, model)
    card = asked_card(device)
    saved = files.load_model(model)
    if card is not None and not isinstance(saved, files.SavedKernelModel):
        raise Failure(f"--device cuda is for models with a kernel. {model} has none. Leave it out.")
    is_sure = sureness_of(saved, model) if sure else None
    tally, lines = Tally(), _Lines(scores=scores)
    rows: list[list[str]] = []
    with Bars(quiet=as_json or target is None) as bars:
        pieces = tally.of(predictions(saved, reading, data, bars.reading(data.name), is_sure, card))
        if target is not None:
            _write_file(target, pieces, lines)
        elif as_json:
            rows = [fields for piece in pieces for fields in lines.of(piece)]
        else:
            for piece in pieces:
                sys.stdout.write(lines.text(piece))
            sys.stdout.flush()
    if as_json:
        answer = tally.as_json() | {"model": model, "data": data, "output": target}
        if target is None:
            answer["labels"] = [row[0] if row else None for row in rows]
            if sure:
                answer["sure"] = [row.pop(1) == _SURE if row else None for row in rows]
            if scores:
                answer["scores"] = [[float(score) for score in row[1:]] if row else None for row in rows]
        print_json(answer)
    elif not VOICE.quiet:
        for sentence in tally.sentences(saved):
            typer.echo(sentence, err=True)
    return DONE


@dataclass(frozen=True)
class Piece:
    """Some rows of the data as the model sees them."""

    labels: NDArray[Any]
    """Predicted."""
    scores: NDArray[Any]
    """One row each; one column per problem."""
    known: int
    """Rows whose own label is one of the model's classes."""
    right: int
    unlabelled: int
    """Rows of data with labels that have none."""
    labelled: bool
    skipped: int
    dropped: int
    """Values in columns that the model does not have."""
    sure: NDArray[Any] | None = None
    """Whether the best model gives each row the same label, where that was asked."""
    gaps: tuple[int, ...] = ()
    """The rows of the file that were left out, counted from 0."""
    made_up: Encoded | None = None
    """What had to be filled in, of a table."""
    errors: NDArray[Any] | None = None
    """In regression, what each number is off by, where the data have theirs."""
    ranked: Ranked | None = None
    """In ranking, what the scores can be compared with, where the data have relevances."""
    outside: int = 0
    """Rows outside of the region of one class."""


def sureness_of(model: files.StoredModel, path: Path) -> Callable[[Any], NDArray[Any]]:
    """What tells of each row whether the best model gives it the same label."""
    from maxmargin.files.models.fitted import kinds_of, to_estimator
    from maxmargin.files.models.stored import widened

    if not (model.has_classes or model.is_one_class):
        raise Failure(f"--sure tells whether a label is that of the best model. {path} predicts numbers.")
    if model.optimum is None:
        raise Failure(
            f"--sure needs a model file that says where the best model is. {path} does not say it. Train "
            "the model with maxmargin train, whose files do."
        )
    kind = kinds_of(model)[-1 if isinstance(model, files.SavedKernelModel) else 0]
    estimator: Any = to_estimator(replace(model, encoding=None, preparation=None, feature_names=None), kind)
    return lambda X: estimator.is_sure(model.prepared(widened(X, model.features)))


def predictions(
    model: files.StoredModel,
    reading: Layout,
    path: Path,
    progress: Callable[[int, int], None] | None,
    is_sure: Callable[[Any], NDArray[Any]] | None = None,
    card: Card | None = None,
) -> Iterator[Piece]:
    """The predictions for a file, piece by piece in its order."""
    import numpy as np

    for data, made_up in _pieces(model, reading, path, progress):
        X = aligned(data, model, path)
        found = model.decision_function(X, card=card)
        labels = model.classes_of(found)
        known, right, unlabelled, errors = 0, 0, 0, None
        if model.is_regression:
            values = None if data.y is None else _some_numbers(data.y)
            errors = None if values is None else (labels - values)[~np.isnan(values)]
        elif data.y is not None and not model.is_ranking:
            classes = np.array([-1, 1]) if model.is_one_class else model.classes
            codes = class_codes(data.y, classes)
            known = int(np.count_nonzero(codes >= 0))
            right = int(np.count_nonzero((codes >= 0) & (classes[codes] == labels)))
            unlabelled = int(
                np.count_nonzero(data.y == "" if data.y.dtype.kind == "U" else data.y != data.y)
            )
        scores = found.reshape(len(labels), -1)
        dropped = data.dropped + len(labels) * (data.X.shape[1] - X.shape[1])
        sure = None if is_sure is None else is_sure(X)
        counts = known, right, unlabelled, data.y is not None, data.skipped, dropped
        ranked = None
        if model.is_ranking and data.y is not None and (found_numbers := _some_numbers(data.y)) is not None:
            ranked = Ranked(found_numbers, labels, data.query)
        outside = int(np.count_nonzero(labels < 0)) if model.is_one_class else 0
        yield Piece(labels, scores, *counts, sure, data.gaps, made_up, errors, ranked, outside)


def _some_numbers(labels: NDArray[Any]) -> NDArray[Any] | None:
    """The numbers that labels are, NaN where one is missing; None where they are no numbers."""
    import numpy as np

    missing = labels != labels
    values = numbers_of(labels[~missing])
    if values is None or not len(values):
        return None
    found = np.full(len(labels), np.nan)
    found[~missing] = values
    return found


def _pieces(
    model: files.StoredModel,
    reading: Layout,
    path: Path,
    progress: Callable[[int, int], None] | None,
) -> Iterator[tuple[files.DataSet, Encoded | None]]:
    """The data piece by piece; those of a table as the model's encoding makes them, and what it made up."""
    encoding = model.encoding
    if encoding is None:
        for data in reading.stream(path, width=model.width, labelled=False, progress=progress):
            yield data, None
        return
    from maxmargin.files.data.reading import about

    with about(os.fspath(path)):
        for raw in reading.stream_table(path, encoding, progress=progress):
            yield raw.encoded(encoding)


def aligned(data: files.DataSet, model: files.StoredModel, path: Path) -> Any:
    """X with its columns in the order of the model's; refuses a table that lacks some of them."""
    ours, theirs = model.feature_names, data.feature_names
    if theirs is None or ours == theirs:
        return data.X
    if ours is None:
        if len(theirs) != model.features:
            raise Failure(
                f"{path} must have the {model.features} feature columns of the model. Got {len(theirs)} "
                "instead. Leave out or add columns so that they are those of the training data."
            )
        return data.X
    missing = [name for name in ours if name not in theirs]
    if missing:
        raise Failure(
            f"{path} must have the columns that the model was trained on. It lacks {some(missing)}. "
            "Add them or give the file that has them."
        )
    place = {name: position for position, name in enumerate(theirs)}
    return data.X[:, [place[name] for name in ours]]


class _Lines:
    """The lines of an answer, one for each row of the data: where a row was left out, it is empty."""

    def __init__(self, *, scores: bool) -> None:
        self._scores = scores
        self._written = 0
        self._gaps: list[int] = []

    def of(self, piece: Piece) -> Iterator[list[str]]:
        """The fields of each line, the label first."""
        self._gaps = sorted([*self._gaps, *piece.gaps])
        for fields in self._fields(piece):
            yield from self._empty()
            self._written += 1
            yield fields
        yield from self._empty()

    def _empty(self) -> Iterator[list[str]]:
        while self._gaps and self._gaps[0] <= self._written:
            self._gaps.pop(0)
            self._written += 1
            yield []

    def _fields(self, piece: Piece) -> Iterator[list[str]]:
        rows = [[label_text(label)] for label in piece.labels.tolist()]
        if piece.sure is not None:
            for row, sure in zip(rows, piece.sure.tolist(), strict=True):
                row.append(_SURE if sure else _OPEN)
        if self._scores:
            for row, values in zip(rows, piece.scores.tolist(), strict=True):
                row += map(repr, values)
        return iter(rows)

    def text(self, piece: Piece) -> str:
        """The lines of a piece."""
        return "".join("\t".join(fields) + "\n" for fields in self.of(piece))


def _write_file(path: Path, pieces: Iterator[Piece], lines: _Lines) -> None:
    from maxmargin.files.whole import write_whole

    def write(file: BinaryIO) -> None:
        with compressed(path, file) as packed:
            for piece in pieces:
                packed.write(lines.text(piece).encode())

    write_whole(path, write)


@contextmanager
def compressed(path: Path, file: BinaryIO) -> Iterator[BinaryIO]:
    """What writes into the file, compressed where its name ends in .gz or .zst."""
    if path.suffix.lower() == ".gz":
        import gzip

        with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
            yield cast(BinaryIO, packed)
    elif path.suffix.lower() == ".zst":
        import zstandard

        with zstandard.ZstdCompressor().stream_writer(file, closefd=False) as packed:
            yield cast(BinaryIO, packed)
    else:
        yield file


class Tally:
    """What is said about all pieces together."""

    def __init__(self) -> None:
        self.rows = self.known = self.right = self.unlabelled = 0
        self.skipped = self.dropped = self.outside = 0
        self.labelled = False
        self.sure: int | None = None
        self.filled, self.unseen = Counter[str](), Counter[str]()
        self.compared, self.absolute, self.squared = 0, 0.0, 0.0
        self.ranked: list[Ranked] = []

    def of(self, pieces: Iterator[Piece]) -> Iterator[Piece]:
        """The pieces, which are counted as they pass."""
        for piece in pieces:
            self.rows += len(piece.labels)
            self.known += piece.known
            self.right += piece.right
            self.unlabelled += piece.unlabelled
            self.skipped += piece.skipped
            self.dropped += piece.dropped
            self.outside += piece.outside
            self.labelled |= piece.labelled
            if piece.sure is not None:
                self.sure = (self.sure or 0) + int(piece.sure.sum())
            if piece.errors is not None:
                self.compared += len(piece.errors)
                self.absolute += float(abs(piece.errors).sum())
                self.squared += float((piece.errors**2).sum())
            if piece.ranked is not None:
                self.ranked.append(piece.ranked)
            if piece.made_up is not None:
                for counted, more in (
                    (self.filled, piece.made_up.filled),
                    (self.unseen, piece.made_up.unseen),
                ):
                    counted.update({name: counted.get(name, 0) + count for name, count in more.items()})
            yield piece

    @property
    def accuracy(self) -> float | None:
        """None where no row has a label that the model knows, as in files with dummies for labels."""
        return self.right / self.judged if self.known else None

    @property
    def judged(self) -> int:
        """Rows whose label can be compared with the predicted one."""
        return self.rows - self.unlabelled

    @property
    def mean_absolute_error(self) -> float | None:
        """That of a regression's numbers; None where there are none to compare them with."""
        return self.absolute / self.compared if self.compared else None

    @property
    def root_mean_squared_error(self) -> float | None:
        """The same of the other usual measure."""
        return (self.squared / self.compared) ** 0.5 if self.compared else None

    def as_json(self) -> dict[str, Any]:
        """One object."""
        right = self.right if self.known else None
        counts = attributes(self, "rows", "accuracy", "skipped")
        if self.compared:
            counts |= attributes(self, "mean_absolute_error", "root_mean_squared_error")
        if (found := measures_of(self.ranked)) is not None:
            counts |= {"ranking": found._asdict()}
        counts |= {"filled_values": self.filled, "unseen_texts": self.unseen}
        return counts | {"right": right, "dropped_values": self.dropped, "sure_rows": self.sure}

    def sentences(self, model: files.StoredModel) -> Iterator[str]:
        """The same in words."""
        if self.accuracy is not None:
            yield f"Accuracy: {100 * self.accuracy:.2f} %, {self.right} of {self.judged} rows."
            if self.unlabelled:
                yield f"{counted(self.unlabelled, 'row')} not counted: no label is given."
        elif self.compared:
            yield (
                f"Off by {self.mean_absolute_error:.6g} in the mean, root mean square "
                f"{self.root_mean_squared_error:.6g}, on {self.compared} rows."
            )
        elif (found := measures_of(self.ranked)) is not None:
            yield ranked_in_words(found)
        elif self.labelled and self.rows and model.has_classes:
            yield "No accuracy: none of the labels in the data is one of the model's classes."
        if self.known and self.known < self.judged:
            unknown = self.judged - self.known
            rows = "1 row has a label" if unknown == 1 else f"{unknown} rows have labels"
            yield f"{rows} that the model does not know; counted as wrong."
        if self.sure is not None and self.rows:
            count = f"{percent(self.sure / self.rows)}, {self.sure} of {self.rows} rows"
            yield f"Sure: {count} have the label that the best model gives them."
        if self.dropped:
            yield (
                f"{self.dropped} values in columns that the model does not have were left out; it was "
                f"trained on {model.features} columns."
            )
        if self.skipped:
            empty = "its line in the answer is" if self.skipped == 1 else "their lines in the answer are"
            yield f"{counted(self.skipped, 'malformed line')} left out: {empty} empty."
        if self.filled or self.unseen:
            yield from made_up_in_words(self.filled, self.unseen)
