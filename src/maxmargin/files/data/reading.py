# SPDX-License-Identifier: BSD-3-Clause
"""Data files of every format, whole or in chunks; whatever is wrong with one is a ``DataError``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

if TYPE_CHECKING:
    from maxmargin.tables.encoding import Encoding

FORMATS = ("libsvm", "npz", "csv", "parquet", "mmd")
_SUFFIXES = {".npz": "npz", ".csv": "csv", ".tsv": "csv", ".parquet": "parquet", ".mmd": "mmd"}
COMPRESSED = (".gz", ".bz2", ".zst")
"""Suffixes of compressed text, which come after that of the format."""
_LONGEST_TEXT = 60
"""Characters of a file that a message shows: enough to find the place."""
_LONGEST_REASON = 600
"""Characters of a reason, since it may quote from a hostile file."""

P = ParamSpec("P")
T = TypeVar("T")
Progress = Callable[[int, int], None]
"""Called now and then with the bytes of the file that are done and the bytes it has."""


class DataError(ValueError):
    """A data file that cannot be read: which, where, why, and what to do about it.

    ``line`` and ``column``, in bytes, count from one and are those of text; what does not apply is None.
    Readers leave the path to ``about``.
    """

    def __init__(
        self,
        problem: str,
        cure: str | None = None,
        *,
        path: str | None = None,
        line: int | None = None,
        column: int | None = None,
        text: str | None = None,
    ) -> None:
        super().__init__(problem)
        self.line, self.column, self.text = line, column, text
        self._problem, self._cure = printable(problem), cure
        self.speak_of(path)

    def speak_of(self, path: str | None) -> None:
        """Say that it is this file."""
        self.path = path
        place = [("", path), ("line ", self.line), ("column ", self.column)]
        where = ", ".join(f"{word}{part}" for word, part in place if part is not None)
        message = f"{where}: {self._problem}" if where else self._problem
        message += "" if self.text is None else f": '{self.text}'"
        self.args = (message if self._cure is None else f"{message}. {printable(self._cure)}",)


@contextmanager
def about(path: str) -> Iterator[None]:
    """Whatever is wrong with data is wrong with those of this file."""
    try:
        yield
    except DataError as error:
        error.speak_of(path)
        raise


@dataclass(frozen=True, eq=False)
class DataSet:
    """What a data file holds, or a chunk of it."""

    X: Any
    """A matrix with one row per example: dense, or CSR with sorted indices and none twice."""
    y: Any
    """The labels, an array; None only where labels are optional and the file has none."""
    feature_names: list[str] | None = None
    """The names of a table's columns but the label."""
    skipped: int = 0
    """Bad lines that were left out."""
    dropped: int = 0
    """Values that were left out because they lie beyond the columns asked for."""
    gaps: tuple[int, ...] = ()
    """Rows of the file that were left out, counted from 0, as far as they are known; none with labels."""
    encoding: Encoding | None = None
    """What became of the columns of a table that is not one of plain numbers."""
    query: Any = None
    """The query of each row: ``qid:N`` of LIBSVM text, -1 for a line without; the array ``query`` of .npz;
    the column asked for of a table. None where no row has one."""
    weight: Any = None
    """The factor of each row on C, which packed data may have; None: all of them are 1."""


@dataclass(frozen=True)
class Options:
    """The keyword arguments of ``read`` and ``stream``, checked."""

    dtype: np.dtype[Any]
    label: str | None = None
    query: str | None = None
    columns: int | None = None
    zero_based: bool = False
    skip_bad_lines: bool = False
    ignore_extra: bool = False
    labelled: bool = True
    threads: int | None = None
    progress: Progress | None = None
    delimiter: str | None = None
    header: bool = True
    missing: tuple[str, ...] = ()
    decimal: str = "."

    @classmethod
    def of(cls, *, dtype: DTypeLike = np.float64, **others: Any) -> Options:
        """Raises ValueError for values that make no sense."""
        options = cls(np.dtype(dtype), **others)
        if options.dtype not in (np.float32, np.float64):
            raise ValueError(f"dtype must be float32 or float64. Got {options.dtype} instead.")
        for name in ("columns", "threads"):
            value = getattr(options, name)
            if value is not None and not 0 < value < 2**63:
                raise ValueError(f"{name} must be a positive integer or None. Got {value!r} instead.")
        if options.delimiter is not None and (len(options.delimiter) != 1 or options.delimiter in '\r\n"'):
            raise ValueError(f"delimiter must be one character. Got {options.delimiter!r} instead.")
        if options.decimal not in (".", ","):
            raise ValueError(f"decimal must be '.' or ','. Got {options.decimal!r} instead.")
        return options

    def report(self, done: int, size: int | None) -> None:
        """Tell whoever wants to know how many bytes are done; pipes, of no size, tell nothing."""
        if self.progress is not None and size is not None:
            self.progress(done, size)


def read(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    label: str | None = None,
    query: str | None = None,
    columns: int | None = None,
    zero_based: bool = False,
    skip_bad_lines: bool = False,
    ignore_extra: bool = False,
    labelled: bool = True,
    dtype: DTypeLike = np.float64,
    threads: int | None = None,
    progress: Progress | None = None,
    delimiter: str | None = None,
    header: bool = True,
    missing: tuple[str, ...] = (),
    decimal: str = ".",
) -> DataSet:
    """Read a whole data file.

    Args:
        path: LIBSVM text, also compressed (.gz, .bz2, .zst); .npz with ``X``, ``y`` or ``data``,
            ``indices``, ``indptr``, ``shape``, ``y``; .csv, .tsv or .parquet with a label column; .mmd,
            which ``pack`` writes.
        format: "libsvm", "npz", "csv", "parquet" or "mmd"; None goes by the name and the first bytes.
        label: Name of a table's label column; None looks for label, target, y and class.
        query: Name of a table's column that says which rows are compared in a ranking; it is no feature.
        columns: Number of columns of X. LIBSVM text does not say; None takes the largest index.
        zero_based: Whether the indices of LIBSVM text begin at 0 instead of 1.
        skip_bad_lines: Leave bad lines out and count them, instead of raising DataError.
        ignore_extra: Leave out what lies beyond ``columns``, instead of raising DataError.
        labelled: Whether every row must have a label. If not, y is None where a file has none, and NaN
            for a line of LIBSVM text that begins with its first value.
        dtype: float64 or float32.
        threads: None takes all cores.
        progress: Called now and then with the bytes done and the bytes in all.
        delimiter: What separates the values of CSV; None takes a comma, and a tab for .tsv.
        header: Whether the first line of CSV names the columns. If not, their names are 1, 2, ...
        missing: Texts of CSV that stand for missing values, beside NA, NaN, null and the like.
        decimal: What stands before the decimals of numbers in CSV: a point, or a comma.
    """
    options = Options.of(
        label=label,
        query=query,
        columns=columns,
        zero_based=zero_based,
        skip_bad_lines=skip_bad_lines,
        ignore_extra=ignore_extra,
        labelled=labelled,
        dtype=dtype,
        threads=threads,
        progress=progress,
        delimiter=delimiter,
        header=header,
        missing=missing,
        decimal=decimal,
    )
    read_all, _ = _reader(os.fspath(path), format)
    return read_all(os.fspath(path), options)


def _with_options_of(read: Callable[P, Any]) -> Callable[[Callable[..., T]], Callable[P, T]]:
    """For type checkers: the function takes the arguments of ``read``."""
    return lambda function: function


@_with_options_of(read)
def stream(path: str | os.PathLike[str], *, format: str | None = None, **options: Any) -> Iterator[DataSet]:
    """Read a data file in chunks of a few MB, in its order, in memory that does not grow with it.

    The arguments are those of ``read``. Without ``columns``, a chunk of LIBSVM text has as many columns
    as its own largest index asks for.
    """
    checked = Options.of(**options)
    _, in_chunks = _reader(os.fspath(path), format)
    return in_chunks(os.fspath(path), checked)


def _reader(
    path: str, format: str | None
) -> tuple[Callable[[str, Options], DataSet], Callable[[str, Options], Iterator[DataSet]]]:
    """What reads such a file whole, and what reads it in chunks; imported only when a file is read."""
    from maxmargin.files.data import libsvm, npz, packed, tables

    chosen = file_format(path, format)
    if chosen == "mmd":
        return packed.read_packed, packed.stream_packed
    if chosen == "npz":
        return npz.read_npz, npz.stream_npz
    if chosen == "libsvm":
        return libsvm.read_text, libsvm.stream_text
    return partial(tables.read_table, format=chosen), partial(tables.stream_table, format=chosen)


def file_format(path: str, wanted: str | None = None) -> str:
    """The format of a file: the one wanted, else what its name says, else what its first bytes say."""
    if wanted is not None:
        if wanted not in FORMATS:
            raise ValueError(f"format must be one of {', '.join(FORMATS)}. Got {wanted!r} instead.")
        return wanted
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    if suffixes and suffixes[-1] in _SUFFIXES:
        return _SUFFIXES[suffixes[-1]]
    if not os.path.isfile(path):  # missing, or a pipe whose first bytes must not be taken away
        return "libsvm"
    with open_file(path) as file:
        magic = file.read(4)
    return {b"PK\x03\x04": "npz", b"PAR1": "parquet", b"maxm": "mmd"}.get(magic, "libsvm")


def open_file(path: str) -> Any:
    """The file, opened for bytes without a buffer; a DataError says why that is not possible."""
    try:
        return open(path, "rb", buffering=0)
    except FileNotFoundError:
        cure = "Check the path; it is relative to the folder in which the program runs."
        raise DataError("there is no such file", cure, path=path) from None
    except IsADirectoryError:
        raise DataError("this is a folder", "Name a file in it.", path=path) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise DataError(f"the file cannot be opened: {reason}", path=path) from error


def checked(
    X: Any,
    y: NDArray[Any] | None,
    first: int,
    options: Options,
    query: NDArray[Any] | None = None,
    weight: NDArray[Any] | None = None,
) -> DataSet:
    """Rows whose values and labels are finite, with the columns asked for; ``first`` rows came before."""
    bad = _bad_rows(X, y)
    if weight is not None:
        wrong = ~(np.isfinite(weight) & (weight >= 0.0))
        if wrong.any() and not options.skip_bad_lines:
            place = int(np.argmax(wrong))
            problem = f"row {first + place + 1} has the weight {weight[place]}"
            raise DataError(problem, "Weights are finite and not negative: remove the row or correct it.")
        bad |= wrong
    skipped = int(bad.sum())
    if skipped and not options.skip_bad_lines:
        problem = f"row {first + int(np.argmax(bad)) + 1} has a value or a label that is not finite"
        raise DataError(problem, "Remove the row or replace the value.")
    if skipped:
        X, y = X[~bad], None if y is None else y[~bad]
        query = None if query is None else query[~bad]
        weight = None if weight is None else weight[~bad]
    X, dropped = _with_columns(X, options)
    gaps = () if options.labelled else tuple((first + np.flatnonzero(bad)).tolist())
    return DataSet(X, y, None, skipped, dropped, gaps, query=query, weight=weight)


def _bad_rows(X: Any, y: NDArray[Any] | None) -> NDArray[np.bool_]:
    bad = np.zeros(X.shape[0], np.bool_)
    if sparse.issparse(X):
        wrong = np.flatnonzero(~np.isfinite(X.data))
        bad[np.searchsorted(X.indptr, wrong, side="right") - 1] = True
    else:
        bad |= ~np.isfinite(X).all(axis=1)
    if y is not None and y.dtype.kind == "f":
        bad |= ~np.isfinite(y)
    return bad


def _with_columns(X: Any, options: Options) -> tuple[Any, int]:
    """X with the columns asked for, and the number of values that were left out for it."""
    columns = X.shape[1] if options.columns is None else options.columns
    if columns == X.shape[1]:
        return X, 0
    if columns < X.shape[1] and options.ignore_extra:
        kept = X[:, :columns]
        left_out = X.nnz - kept.nnz if sparse.issparse(X) else X.size - kept.size
        return kept, left_out
    if columns > X.shape[1] and sparse.issparse(X):
        return sparse.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], columns)), 0
    cure = "Take another file, or say ignore_extra=True to leave later columns out."
    raise DataError(f"there are {X.shape[1]} columns, and {columns} were asked for", cure)


def shown(text: bytes) -> str:
    """Text of a file for a message: short, and with nothing in it that a terminal would obey."""
    escaped = _escaped(text[: _LONGEST_TEXT + 4].decode("utf-8", "backslashreplace"))
    if len(escaped) > _LONGEST_TEXT:
        return escaped[:_LONGEST_TEXT] + "..."
    return escaped if len(text) <= _LONGEST_TEXT + 4 else escaped + "..."


def printable(reason: str) -> str:
    """A sentence that may quote from a file or from another library, as short and as harmless."""
    reason = reason.strip()
    cut = _escaped(reason[:_LONGEST_REASON])
    return cut if len(reason) <= _LONGEST_REASON else f"{cut}..."


def _escaped(text: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
