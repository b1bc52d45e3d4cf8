# SPDX-License-Identifier: BSD-3-Clause
"""What the options say about a file of data: how it is read, and what its columns become."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maxmargin import files
from maxmargin.command_line.shared.answer import Failure
from maxmargin.command_line.shared.options import (
    Categorical,
    Columns,
    Decimal,
    Delimiter,
    Drop,
    Format,
    Label,
    Missing,
    NoHeader,
    Numeric,
    Query,
    ReadingThreads,
    ScaleColumns,
    SkipBadLines,
    Threads,
    ZeroBased,
    listed,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from maxmargin.files.models.preparation import Preparation
    from maxmargin.gpu.cards import Card
    from maxmargin.tables.encoding import Encoded, Encoding
    from maxmargin.tables.kinds import Said
    from maxmargin.tables.reading import RawTable

_FEWEST_ROWS = 20
"""Rows below which a column may count them by chance."""


@dataclass(frozen=True)
class Layout:
    """How a data file is to be read, whatever its columns are."""

    format: Format = None
    label: Label = None
    query: Query = None
    delimiter: Delimiter = None
    decimal: Decimal = None
    no_header: NoHeader = False
    missing: Missing = None
    zero_based: ZeroBased = False
    skip_bad_lines: SkipBadLines = False
    threads: ReadingThreads = None

    @property
    def given(self) -> dict[str, Any]:
        """The options as ``files.read`` calls them."""
        delimiter = "\t" if self.delimiter in ("tab", "\\t") else self.delimiter
        if delimiter is not None and (len(delimiter) != 1 or delimiter in '\r\n"'):
            raise Failure(f"--delimiter must be one character, or tab. Got {delimiter!r} instead.")
        if self.decimal not in (None, ".", ","):
            raise Failure(f"--decimal must be . or a comma. Got {self.decimal!r} instead.")
        if self.decimal == "," and delimiter in (None, ","):
            raise Failure(
                "--decimal ',' needs values that are separated by another character. Say which, as in "
                "--delimiter ';'."
            )
        return {
            "label": self.label,
            "query": self.query,
            "delimiter": delimiter,
            "decimal": self.decimal or ".",
            "header": not self.no_header,
            "missing": tuple(listed(self.missing)),
            "zero_based": self.zero_based,
            "skip_bad_lines": self.skip_bad_lines,
            "threads": self.threads,
        }

    def stream(
        self,
        path: Path,
        *,
        width: int | None = None,
        labelled: bool = True,
        progress: Callable[[int, int], None] | None = None,
    ) -> Iterator[files.DataSet]:
        """The file piece by piece; with ``width``, as a model of so many features sees it.

        All columns of a table are read, since their names, not their places, say which the model knows.
        """
        options = self.given | {"labelled": labelled, "progress": progress, "format": self.format}
        if width is not None and self._is_without_names(os.fspath(path)):
            options |= {"columns": width, "ignore_extra": True}
        return files.stream(path, **options)

    def _is_without_names(self, path: str) -> bool:
        """Whether the columns of a file are known by their places alone."""
        from maxmargin.files.data.reading import about, file_format, open_file

        format = file_format(path, self.format)
        if format != "mmd":
            return format in ("libsvm", "npz")
        from maxmargin.files.data.packed import Packed

        with about(path), open_file(path) as file:
            return Packed(file).feature_names is None

    def stream_table(
        self,
        path: Path,
        encoding: Encoding | None = None,
        *,
        texts: set[str] | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Iterator[RawTable]:
        """A table piece by piece, as it is; labels may be missing."""
        from maxmargin.files.data.reading import Options
        from maxmargin.tables.reading import stream_raw

        self._check_table(path)
        options = Options.of(**self.given, labelled=False, progress=progress)
        return stream_raw(os.fspath(path), options, format=self.format, texts=texts, encoding=encoding)

    def is_table(self, path: Path) -> bool:
        """Whether a file is CSV, TSV or Parquet."""
        from maxmargin.tables.reading import is_table

        return is_table(path, self.format)

    def _check_table(self, path: Path) -> None:
        if not self.is_table(path):
            raise Failure(
                f"{path} must be a table: CSV, TSV or Parquet. The model was trained on the named columns "
                "of one. Give such a file, or say --format csv."
            )


@dataclass(frozen=True)
class Reading(Layout):
    """How a data file is to be read."""

    columns: Columns = None

    def read(
        self,
        path: Path,
        progress: Callable[[int, int], None] | None = None,
        encoding: Encoding | None = None,
        *,
        weighted: bool = False,
        labelled: bool = True,
    ) -> files.DataSet:
        """The data of the whole file; those of a table as the encoding of a model makes them.

        Where they need not be ``labelled``, y is None in files without labels.
        """
        if encoding is not None:
            self._check_table(path)
            raw = self.read_raw(path, progress, labelled=labelled, encoding=encoding)
            return raw.encoded(encoding)[0]
        given = self.given | {"format": self.format, "columns": self.columns, "labelled": labelled}
        data = files.read(path, progress=progress, **given)
        if data.weight is not None and not weighted:
            raise Failure(
                f"{path} has weights, which only train, predict and info know. Give data without."
            )
        return data

    def read_raw(
        self,
        path: Path,
        progress: Callable[[int, int], None] | None = None,
        *,
        labelled: bool = True,
        **known: Any,
    ) -> RawTable:
        """A whole table, as it is."""
        from maxmargin.files.data.reading import Options
        from maxmargin.tables.reading import read_raw

        options = Options.of(**self.given, progress=progress, labelled=labelled)
        return read_raw(os.fspath(path), options, format=self.format, **known)


@dataclass(frozen=True)
class TrainingData(Reading):
    """How a data file is to be read, what its columns become, and with how many threads."""

    threads: Threads = None
    drop: Drop = None
    categorical: Categorical = None
    numeric: Numeric = None
    scale: ScaleColumns = "auto"

    def check(self, path: Path) -> None:
        """Refuse now what makes no sense, and not after an hour of reading."""
        from maxmargin.tables.encoding import SCALES

        if self.scale not in ("auto", *SCALES):
            raise Failure(f"--scale must be auto, {', '.join(SCALES)}. Got {self.scale!r} instead.")
        if path.exists() and not self.is_table(path):
            for name in ("drop", "categorical", "numeric"):
                if getattr(self, name) is not None:
                    raise Failure(
                        f"--{name} is for tables, whose columns have names. Got {path} instead, which is "
                        "none. Give CSV, TSV or Parquet, or say --format csv."
                    )

    @property
    def said(self) -> Said:
        """What is said about the columns of a table."""
        from maxmargin.tables.kinds import Said

        return Said(*(tuple(listed(names)) for names in (self.drop, self.categorical, self.numeric)))

    def read_for_training(
        self,
        path: Path,
        progress: Callable[[int, int], None] | None = None,
        earlier: files.StoredModel | None = None,
        *,
        weighted: bool = False,
        labelled: bool = True,
    ) -> TrainingSet:
        """The data, and what became of their columns: anew, or as a model to go on from has it."""
        encoding = None if earlier is None else earlier.encoding
        if self.is_table(path):
            raw = self.read_raw(path, progress, labelled=labelled, said=self.said, encoding=encoding)
            found = TrainingSet.of_table(path, raw, self, encoding)
        else:
            found = TrainingSet(self.read(path, progress, weighted=weighted, labelled=labelled))
        if earlier is not None:
            return found.prepared(earlier.preparation)
        return found if self.is_table(path) else found.prepared(self.scaling(found.data.X))

    def scaling(self, X: Any) -> Preparation | None:
        """How the columns of a file that is not a table are scaled; None where they are not."""
        from sklearn.preprocessing import MaxAbsScaler, StandardScaler

        from maxmargin.files.models.preparation import Preparation, dense

        if self.scale in ("auto", "none"):
            return None
        if self.scale == "max-abs":
            return Preparation.of([MaxAbsScaler().fit(X)])
        return Preparation.of([StandardScaler().fit(dense(X) if hasattr(X, "indptr") else X)])

    def fitted(self, raw: RawTable) -> Encoding:
        """What becomes of the columns of a table, by the rows given."""
        scale: Any = "standard" if self.scale == "auto" else self.scale
        return raw.fitted(self.said, scale, tuple(listed(self.missing)))


@dataclass(frozen=True)
class TrainingSet:
    """What a model is trained on."""

    data: files.DataSet
    raw: RawTable | None = None
    """The table as it is, of which ``data`` were made."""
    encoding: Encoding | None = None
    encoded: Encoded | None = None
    preparation: Preparation | None = None
    """What columns of numbers went through after they were read."""
    unprepared: files.DataSet | None = None

    @property
    def as_read(self) -> files.DataSet:
        """The data before they were scaled, of which files keep the fingerprint."""
        return self.unprepared or self.data

    @cached_property
    def fingerprint(self) -> str:
        """By which the data are known again."""
        from maxmargin.files.data.fingerprints import fingerprint_of

        return fingerprint_of(self.as_read.X, self.as_read.y)

    def prepared(self, preparation: Preparation | None) -> TrainingSet:
        """The same with columns that are scaled, or go through feature maps."""
        if preparation is None:
            return self
        from maxmargin.files.models.stored import widened

        X = self.data.X
        if X.shape[1] > preparation.columns:
            raise Failure(
                f"The data must have at most the {preparation.columns} columns of the model to go on from. "
                f"Got {X.shape[1]} instead. Give the data that it was trained on."
            )
        names = self.data.feature_names if preparation.keeps_columns else None
        made = replace(self.data, X=preparation(widened(X, preparation.columns)), feature_names=names)
        return replace(self, data=made, preparation=preparation, unprepared=self.data)

    def through(self, features: Any, card: Card | None = None) -> TrainingSet:
        """The same through a feature map that was fitted to its rows, on a GPU if one is given."""
        from maxmargin.chunks.source import mapped_rows
        from maxmargin.files.models.preparation import Preparation

        steps = Preparation.of([features]).steps
        before = () if self.preparation is None else self.preparation.steps
        X = mapped_rows(features, self.data.X, card)
        made = replace(self.data, X=X, feature_names=None, encoding=None)
        return replace(self, data=made, preparation=Preparation((*before, *steps)), unprepared=self.as_read)

    @classmethod
    def of_table(
        cls, path: Path, raw: RawTable, reading: TrainingData, encoding: Encoding | None
    ) -> TrainingSet:
        """A table as it is encoded."""
        from maxmargin.files.data.reading import about

        with about(os.fspath(path)):
            encoding = encoding or reading.fitted(raw)
            data, encoded = raw.encoded(encoding)
        return cls(data, raw, encoding, encoded)

    @property
    def counting(self) -> list[str]:
        """The columns of a table that count its rows."""
        import numpy as np

        from maxmargin.tables.values import numbers_of

        if self.raw is None or self.encoding is None or self.raw.features.num_rows < _FEWEST_ROWS:
            return []
        numbers = [column.name for column in self.encoding.columns if column.kind == "number"]
        columns = ((name, self.raw.features.column(name).combine_chunks()) for name in numbers)
        return [name for name, held in columns if (np.diff(numbers_of(name, "number", held)) == 1).all()]

    def split(self, kept: Any, out: Any, reading: TrainingData) -> tuple[Any, Any]:
        """X of the rows kept and of those held out, which had no part in what becomes of the columns."""
        if self.raw is None:
            X = self.as_read.X
            scaling = None if self.preparation is None else reading.scaling(X[kept])
            return tuple(X[rows] if scaling is None else scaling(X[rows]) for rows in (kept, out))
        encoding = reading.fitted(self.raw.take(kept))
        return tuple(encoding.encode(self.raw.take(rows).features).X for rows in (kept, out))


def check_columns(training_set: TrainingSet, model_format: str) -> None:
    """Refuse now what the text of others has no room for."""
    if training_set.preparation is not None and model_format != "maxmargin":
        raise Failure(
            f"--model-format must be maxmargin for columns that are scaled. Got {model_format!r} instead, "
            "which has no room for that. Leave --scale out."
        )
    if training_set.data.encoding is not None and model_format != "maxmargin":
        raise Failure(
            f"--model-format must be maxmargin for a table whose columns are scaled, filled or made of "
            f"texts. Got {model_format!r} instead, which has no room for that. With a table of numbers "
            "alone, --scale none will do."
        )


def with_columns(estimator: Any, training_set: TrainingSet) -> Any:
    """What is to be saved: the estimator, with what became of the columns before it saw them."""
    from maxmargin.files.models.fitted import from_estimator

    data, preparation = training_set.as_read, training_set.preparation
    if data.encoding is None and preparation is None:
        return estimator
    return replace(
        from_estimator(estimator),
        encoding=data.encoding,
        preparation=preparation,
        feature_names=data.feature_names,
    )
