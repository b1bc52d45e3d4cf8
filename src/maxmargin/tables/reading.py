# SPDX-License-Identifier: BSD-3-Clause
"""Tables from files: as they are, then as the matrix that a model weighs, whole or piece by piece."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from maxmargin.files.data.reading import DataError, DataSet, Options, about, file_format, shown
from maxmargin.files.data.sheets import RaggedRows, Sheet
from maxmargin.files.data.tables import (
    counted_rows,
    label_among,
    label_array,
    load_pyarrow,
    parquet_batches,
    query_among,
    refuse_twice,
    require_modest_size,
)
from maxmargin.tables.encoding import Encoded, Encoding, Scale
from maxmargin.tables.kinds import Said, Seen, has_decimal_comma

T = TypeVar("T")
_NOT_A_NUMBER = re.compile(r"In CSV column #(\d+):.*conversion error.*invalid value '(.*)'", re.DOTALL)
"""What pyarrow says of a text among values that it took for something else."""


class _OtherText(DataError):
    """A text in a column whose first values were none."""

    def __init__(self, column: str, text: str) -> None:
        comma = "Say decimal=',' (--decimal ',' on the command line). " if has_decimal_comma(text) else ""
        super().__init__(
            f"column '{column}' should hold numbers, truth values or dates throughout, and has '{text}'",
            f"{comma}Correct the value, or say that it stands for a missing one with missing=... "
            "(--missing on the command line).",
        )
        self.name = column


@dataclass(frozen=True)
class RawTable:
    """Some rows of a table as they are, without the column of labels."""

    features: Any
    """A pyarrow table."""
    y: NDArray[Any] | None
    label: str | None
    skipped: int = 0
    gaps: list[int] = field(default_factory=list[int])
    """The rows of the file that were left out and not told of before, counted from 0."""
    decimal: str = "."
    """What stands before the decimals of numbers that are written as texts."""
    query: NDArray[Any] | None = None
    """The query of each row, where a column of them was asked for."""

    def take(self, rows: NDArray[Any]) -> RawTable:
        """Some of the rows."""
        y, query = (None if each is None else each[rows] for each in (self.y, self.query))
        return replace(self, features=self.features.take(rows), y=y, query=query)

    def seen(self) -> list[Seen]:
        """What its columns hold."""
        each = [Seen(name, decimal=self.decimal) for name in self.features.schema.names]
        for one in each:
            for chunk in self.features.column(one.name).chunks:
                one.add(chunk)
        return each

    def fitted(self, said: Said, scale: Scale, missing: tuple[str, ...] = ()) -> Encoding:
        """The encoding of a model that is trained on these rows."""
        said.check(self.features.schema.names)
        return Encoding.of(self.features, self.seen(), said, scale, label=self.label, missing=missing)

    def encoded(self, encoding: Encoding) -> tuple[DataSet, Encoded]:
        """The rows as the encoding makes them, and what it had to make up."""
        made = encoding.encode(self.features)
        kept = None if encoding.is_plain else encoding
        found = self.skipped, 0, tuple(self.gaps), kept, self.query
        return DataSet(made.X, self.y, encoding.names, *found), made


def is_table(path: str | os.PathLike[str], format: str | None) -> bool:
    """Whether a file is a table: CSV, TSV or Parquet."""
    return file_format(os.fspath(path), format) in ("csv", "parquet")


def read_raw(
    path: str,
    options: Options,
    *,
    format: str | None,
    said: Said | None = None,
    encoding: Encoding | None = None,
) -> RawTable:
    """The whole table."""
    with about(path):
        pyarrow = load_pyarrow()
        if file_format(path, format) == "parquet":
            require_modest_size(path)

    def read(texts: set[str]) -> RawTable:
        pieces = list(_pieces(path, options, format, texts, encoding))
        labels = [piece.y for piece in pieces if piece.y is not None]
        queries = [piece.query for piece in pieces if piece.query is not None]
        return RawTable(
            pyarrow.concat_tables([piece.features for piece in pieces]),
            np.concatenate(labels) if labels else None,
            pieces[0].label,
            sum(piece.skipped for piece in pieces),
            decimal=options.decimal,
            query=np.concatenate(queries) if queries else None,
        )

    texts = set() if said is None else {*said.categorical, *said.numeric}
    table = until_types_fit(read, texts, encoding)
    return table if said is None else _with_points(table, said.numeric)


def _with_points(table: RawTable, numbers: Iterable[str]) -> RawTable:
    """A table whose columns of numbers have decimal points where they are texts with decimal commas."""
    from pyarrow import compute, types

    features = table.features
    for place, (name, kind) in enumerate(zip(features.schema.names, features.schema.types, strict=True)):
        if table.decimal == "," and name in numbers and types.is_string(kind):
            # What has a point already is no number here, and stays none.
            plain = compute.replace_substring(features.column(name), ".", " ")
            features = features.set_column(place, name, compute.replace_substring(plain, ",", "."))
    return replace(table, features=features)


def until_types_fit(read: Callable[[set[str]], T], texts: set[str], encoding: Encoding | None = None) -> T:
    """What ``read`` gives, with those columns read as texts in which one was found among other values.

    With an encoding it is known what each column holds, and a text among numbers is refused.
    """
    while True:
        try:
            return read(texts)
        except _OtherText as error:
            if encoding is not None or error.name in texts:
                raise
            texts = {*texts, error.name}


def stream_raw(
    path: str,
    options: Options,
    *,
    format: str | None,
    texts: set[str] | None = None,
    encoding: Encoding | None = None,
) -> Iterator[RawTable]:
    """The table piece by piece; ``texts`` are columns whose values are to be taken as they are written."""
    return _pieces(path, options, format, texts or set(), encoding)


def _pieces(
    path: str, options: Options, format: str | None, texts: set[str], encoding: Encoding | None
) -> Iterator[RawTable]:
    if encoding is not None:
        options = replace(
            options,
            label=options.label or encoding.label,
            missing=(*encoding.missing, *options.missing),
        )
    with counted_rows(path) as read:
        for batch, gaps in _batches(path, options, format, texts, encoding):
            piece = replace(_piece(batch, gaps, options, read.rows), decimal=options.decimal)
            if encoding is not None:
                piece = _with_points(piece, {each.name for each in encoding.columns if each.lenient})
            read.rows += batch.num_rows
            yield piece


def _piece(batch: Any, gaps: list[int], options: Options, first: int) -> RawTable:
    """The rows of a batch, without those whose label is missing where labels are needed."""
    import pyarrow

    table = pyarrow.Table.from_batches([batch])
    names = list(table.schema.names)
    refuse_twice(names)
    label = label_among(names, options)
    if (name := query_among(names, options)) is not None:
        return _with_query(name, batch, gaps, options, first)
    if label is None:
        return RawTable(table, None, None, len(gaps), gaps)
    column = table.column(label).combine_chunks()
    table = table.drop_columns([label])
    missing = np.asarray(column.is_null().to_numpy(zero_copy_only=False))
    if missing.any() and not options.labelled:
        return RawTable(table, _some_labels(label, column, missing), label, len(gaps), gaps)
    if missing.any() and not options.skip_bad_lines:
        raise DataError(
            f"row {first + int(np.argmax(missing)) + 1} has no label in column '{label}'",
            "Fill it in, remove the row, or leave such rows out with skip_bad_lines=True (--skip-bad-lines "
            "on the command line).",
        )
    kept = np.flatnonzero(~missing)
    y = _stripped(label_array(label, column, kept))
    return RawTable(table.take(kept), y, label, len(gaps) + int(missing.sum()), gaps)


def _with_query(name: str, batch: Any, gaps: list[int], options: Options, first: int) -> RawTable:
    """The rows of a batch that has a column of queries, which is no feature; every row must have one."""
    column = batch.column(batch.schema.get_field_index(name))
    if column.null_count:
        row = first + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False))) + 1
        raise DataError(f"row {row} has no query in column '{name}'", "Fill it in, or remove the row.")
    query = _stripped(label_array(name, column, np.arange(len(column))))
    rest = batch.drop_columns([name])
    labels = label_among(list(rest.schema.names), options)
    if labels is not None and options.labelled and options.skip_bad_lines:
        query = query[~np.asarray(rest.column(labels).is_null().to_numpy(zero_copy_only=False))]
    return replace(_piece(rest, gaps, replace(options, query=None), first), query=query)


def _some_labels(label: str, column: Any, missing: NDArray[np.bool_]) -> NDArray[Any] | None:
    """Labels of which some are missing: an empty text, or NaN."""
    kept = np.flatnonzero(~missing)
    known = _stripped(label_array(label, column, kept))
    labels = np.full(len(missing), "" if known.dtype.kind == "U" else np.nan, np.result_type(known, "U1"))
    if known.dtype.kind != "U":
        labels = np.full(len(missing), np.nan)
    labels[kept] = known
    return labels if len(kept) else None


def _stripped(labels: NDArray[Any]) -> NDArray[Any]:
    """Texts without the spaces around them, as those of categories."""
    return np.char.strip(labels) if labels.dtype.kind == "U" else labels


def _batches(
    path: str, options: Options, format: str | None, texts: set[str], encoding: Encoding | None
) -> Iterator[tuple[Any, list[int]]]:
    """Batches, and the rows of the file that were left out since the last one, counted from 0."""
    if file_format(path, format) == "parquet":
        for batch, _ in parquet_batches(path, options):
            yield batch, []
        return
    from pyarrow import RecordBatch

    ragged = RaggedRows(options)
    if options.skip_bad_lines:
        options = replace(options, threads=1)  # only then it is known which lines are left out
    sheet = Sheet.of(path, options)
    schema = sheet.schema(options, ragged, texts_may_be_missing=True)
    refuse_twice([name.strip() for name in schema.names])
    wanted = _types(schema, options, texts, encoding)
    ragged.taken()
    names = [name.strip() for name in schema.names]
    reading = sheet.opened(options, ragged, wanted, texts_may_be_missing=True)
    with _naming(names), reading as (source, reader):
        for batch in reader:
            yield batch.rename_columns(names), ragged.taken()
            options.report(source.done, source.size)
        if gaps := ragged.taken():
            schema = reader.schema.empty_table().rename_columns(names).schema
            yield RecordBatch.from_pylist([], schema=schema), gaps


@contextmanager
def _naming(names: list[str]) -> Iterator[None]:
    """Say of a text that is not what its column holds which column that is."""
    try:
        yield
    except ValueError as error:
        if found := _NOT_A_NUMBER.search(str(error)):
            raise _OtherText(names[int(found[1])], shown(found[2].encode())) from None
        raise


def _types(schema: Any, options: Options, texts: set[str], encoding: Encoding | None) -> dict[str, Any]:
    """The types that columns of CSV are to be read as: numbers may have decimals only further on."""
    from pyarrow import float64, string, types

    columns = () if encoding is None else encoding.columns
    kinds = {column.name: column.kind for column in columns}
    texts = texts | {column.name for column in columns if column.lenient}
    label = label_among([name.strip() for name in schema.names], options)
    wanted: dict[str, Any] = {}
    for name, kind in zip(schema.names, schema.types, strict=True):
        known = kinds.get(name.strip())
        unsure = known is None and (types.is_integer(kind) or types.is_null(kind))
        if name.strip() in texts or known == "category":
            wanted[name] = string()
        elif name.strip() != label and (known == "number" or unsure):
            wanted[name] = float64()
    return wanted
