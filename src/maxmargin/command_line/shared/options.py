# SPDX-License-Identifier: BSD-3-Clause
"""The options that several commands share, and what they mean for reading a file."""

from __future__ import annotations

import math
import os
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maxmargin import files
from maxmargin.command_line.shared.answer import Failure
from maxmargin.files.data.labels import label_text, quoted_label
from maxmargin.tools.words import some

if TYPE_CHECKING:
    from collections.abc import Iterator

    from maxmargin.files.models.preparation import Preparation
    from maxmargin.kernels import Kernel
    from maxmargin.tables.encoding import Encoded, Encoding
    from maxmargin.tables.kinds import Said
    from maxmargin.tables.reading import RawTable

DataFile = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="LIBSVM text, CSV or TSV (also .gz, .bz2, .zst), .npz, .parquet or .mmd; - is stdin.",
        show_default=False,
    ),
]
ModelFile = Annotated[
    Path,
    typer.Argument(metavar="MODEL", help="Written by maxmargin, LIBLINEAR or LIBSVM.", show_default=False),
]
Format = Annotated[
    str | None,
    typer.Option("--format", help="libsvm, npz, csv, parquet or mmd; by default as the file's name says."),
]
Label = Annotated[
    str | None,
    typer.Option("--label", help="Column of the labels in a table; by default label, target, y or class."),
]
Query = Annotated[
    str | None,
    typer.Option(
        "--query",
        help="Column of a table that says which rows a ranking compares; LIBSVM text has qid:N.",
        show_default=False,
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        metavar="CHARACTER", help="Between the values of CSV.", show_default="a comma; a tab in .tsv"
    ),
]
Decimal = Annotated[
    str | None,
    typer.Option(metavar="CHARACTER", help="Before the decimals of CSV: . or ,", show_default="a point"),
]
NoHeader = Annotated[
    bool, typer.Option("--no-header", help="The first line of CSV is a row: columns are called 1, 2, ...")
]
Missing = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT,...", help="Texts of CSV that stand for no value.", show_default="NA, NaN, null, ..."
    ),
]
Drop = Annotated[
    str | None, typer.Option(metavar="NAME,...", help="Columns to leave out.", show_default=False)
]
Categorical = Annotated[
    str | None,
    typer.Option(
        metavar="NAME,...", help="Columns that hold categories, also as numbers.", show_default=False
    ),
]
Numeric = Annotated[
    str | None,
    typer.Option(
        metavar="NAME,...", help="Columns that hold numbers: texts count as no value.", show_default=False
    ),
]
ScaleColumns = Annotated[
    str,
    typer.Option(
        "--scale",
        metavar="HOW",
        help="Numbers: standard (mean 0, variance 1), max-abs (at most 1, zeros stay) or none; auto is "
        "standard for tables and none for other files.",
    ),
]
Columns = Annotated[
    int | None, typer.Option("--columns", help="Number of features; by default the largest index.", min=1)
]
ZeroBased = Annotated[bool, typer.Option("--zero-based", help="Indices in LIBSVM text begin at 0.")]
SkipBadLines = Annotated[
    bool, typer.Option("--skip-bad-lines", help="Leave malformed lines out and count them.")
]
ReadingThreads = Annotated[
    int | None, typer.Option("--threads", help="At most this many to read the file; all cores.", min=1)
]
Threads = Annotated[int | None, typer.Option("--threads", help="At most this many; all cores.", min=1)]
KernelName = Annotated[
    str | None,
    typer.Option(
        "--kernel",
        help="gaussian (rbf), polynomial (poly), sigmoid, laplacian, chi2 or linear.",
        show_default="none: a linear model",
    ),
]
Gamma = Annotated[
    str | None,
    typer.Option("--gamma", help="Of the kernel: scale, auto or a number.", show_default="scale"),
]
Degree = Annotated[int | None, typer.Option("--degree", help="Of the polynomial kernel.", show_default="3")]
Coef0 = Annotated[
    float | None,
    typer.Option("--coef0", help="Of the polynomial and the sigmoid kernel.", show_default="0"),
]
Features = Annotated[
    str | None,
    typer.Option(
        "--features",
        help="monomials:2: columns and their products, never written out. It may go on with "
        ",scaling=kernel ,gamma=G ,coef0=R or ,interaction_only (no spaces). train takes nystroem:1000 and "
        "random-fourier:1000, too: so many columns that stand for a kernel. These may go on with ,gamma=G "
        "and, the former, with ,kernel=gaussian (laplacian, poly, linear) ,degree=D ,coef0=R.",
        show_default="the columns alone",
    ),
]
CacheSize = Annotated[
    float | None,
    typer.Option("--cache-size", help="Memory for kernel values, in megabytes.", show_default="1000"),
]
Device = Annotated[
    str | None,
    typer.Option("--device", help="cuda: train with a kernel on the GPU.", show_default="cpu"),
]
ClassWeight = Annotated[
    str | None, typer.Option(help="balanced, or factors on C: LABEL:FACTOR,...", show_default="all 1")
]
TestFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Data to measure the accuracy on.", show_default=False)
]
MODEL_OUTPUT: Any = typer.Option(
    "-o", "--output", metavar="MODEL", help="Where to write the model.", show_default=False
)
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and no progress.")]


_FEWEST_ROWS = 20
"""Rows below which a column may count them by chance."""
_KERNELS = {"gaussian": "rbf", "rbf": "rbf", "polynomial": "poly", "poly": "poly"}
_KERNELS |= {name: name for name in ("sigmoid", "laplacian", "chi2", "linear")}
"""What ``SVC`` calls the kernels."""


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

    def through(self, features: Any) -> TrainingSet:
        """The same through a feature map that was fitted to its rows."""
        from maxmargin.features.dense_maps import in_double
        from maxmargin.files.models.preparation import Preparation

        steps = Preparation.of([features]).steps
        before = () if self.preparation is None else self.preparation.steps
        X = features.transform(in_double(self.data.X))
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


def listed(text: str | None) -> list[str]:
    """The names of a list with commas; one that holds a comma stands in quotes, as in CSV."""
    import csv

    return [] if text is None else [name.strip() for name in next(csv.reader([text]), [])]


@dataclass(frozen=True)
class KernelChoice:
    """The options of kernels."""

    kernel: KernelName = None
    gamma: Gamma = None
    degree: Degree = None
    coef0: Coef0 = None
    cache_size: CacheSize = None

    def given(self, *, needs_kernel: bool) -> dict[str, Any]:
        """The options given, as ``SVC`` calls them; ``needs_kernel`` refuses them without a kernel."""
        options = {name: value for name, value in vars(self).items() if value is not None}
        if options and self.kernel is None and needs_kernel:
            name = next(iter(options)).replace("_", "-")
            raise Failure(
                f"--{name} is for kernels. Got no kernel. Add --kernel gaussian, or leave it out."
            )
        if self.kernel is not None:
            if self.kernel not in _KERNELS:
                raise Failure(
                    f"--kernel must be one of {', '.join(_KERNELS)}. Got {self.kernel!r} instead."
                )
            options["kernel"] = _KERNELS[self.kernel]
        if self.gamma is not None and self.gamma not in ("scale", "auto"):
            try:
                options["gamma"] = float(self.gamma)
            except ValueError:
                words = f"--gamma must be scale, auto or a number. Got {self.gamma!r} instead."
                raise Failure(words) from None
        return options


def check_files(path: Path, *inputs: Path | None) -> None:
    """Refuse now what could not be written or read later."""
    check_writable(path, *inputs)
    for file in filter(None, inputs):
        check_readable(file)


def check_writable(path: Path, *inputs: Path | None) -> None:
    """Refuse now what could not be written later, perhaps after an hour, or would replace an input."""
    if any(file is not None and file.exists() and path.exists() and path.samefile(file) for file in inputs):
        raise Failure(f"-o must not name a file that is read. Got {path} instead. Choose another name.")
    if str(path) == "-":
        raise Failure("-o must name a file. Got - instead: standard output takes the answer in words.")
    if path.exists() and not path.is_file():
        raise Failure(
            f"-o must name a file. Got {path} instead, which is something else. Choose another name."
        )
    folder = path.parent
    if not folder.is_dir():
        raise Failure(
            f"-o must name a file in a folder that exists. Got {path} instead. Make {folder} first."
        )
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise Failure(
            f"{path} cannot be written: {error.strerror}. Choose a folder that you may write to."
        ) from None


def check_readable(path: Path) -> None:
    """Refuse now what could not be opened later; a pipe is left alone, since it can be read only once."""
    from maxmargin.files.data.reading import open_file

    if path.is_file() or path.is_dir() or not path.exists():
        open_file(os.fspath(path)).close()


def kernel_of(options: dict[str, Any], X: Any) -> Kernel:
    """The kernel that the options of ``KernelChoice`` stand for on X."""
    import numpy as np

    from maxmargin.estimators.named_kernels import find_gamma
    from maxmargin.kernels.base import kernel_from_name

    given: dict[str, Any] = {"gamma": "scale", "degree": 3, "coef0": 0.0} | options
    needs_gamma = given["kernel"] != "linear"
    gamma = find_gamma(given["gamma"], X, np.ones(X.shape[0])) if needs_gamma else 1.0
    return kernel_from_name(given["kernel"], given["degree"], gamma, given["coef0"])


_INTERCEPTS = {
    "exact": {"fit_intercept": True, "regularize_intercept": False},
    "regularised": {"fit_intercept": True, "regularize_intercept": True},
    "none": {"fit_intercept": False, "regularize_intercept": False},
}


def intercept_options(name: str) -> dict[str, Any]:
    """The parameters of ``LinearSVC`` that --intercept stands for."""
    if name not in _INTERCEPTS:
        raise Failure(f"--intercept must be exact, regularised or none. Got {name!r} instead.")
    return _INTERCEPTS[name]


def seconds_or_none(max_time: float) -> float | None:
    """What --max-time stands for: None sets no limit."""
    if not max_time >= 0:
        raise Failure(
            f"--max-time must be a number of at least 0. Got {max_time:g} instead. It counts seconds; inf "
            "sets no limit."
        )
    return None if math.isinf(max_time) else max_time


def class_weight_of(text: str, labels: Any) -> Any:
    """The word "balanced", or a factor for each label; 1 for those that are not named."""
    if text == "balanced":
        return text
    classes = {label_text(label): label for label in labels}
    weights: dict[Any, float] = {}
    for part in re.findall(r",?((?:[^,:]*,)*?[^,]*:[^,]*|[^,]+)", text):  # a label may have commas in it
        name, _, factor = part.rpartition(":")
        name = name.strip().removeprefix("+") if name.strip() not in classes else name.strip()
        try:
            weights[classes[name]] = float(factor)
        except (KeyError, ValueError):
            raise Failure(
                f"--class-weight must be balanced or LABEL:FACTOR,... Got {part!r} instead. The labels are "
                f"{some(list(map(quoted_label, labels)), 10)}."
            ) from None
    if not all(0 <= factor < float("inf") for factor in weights.values()):
        raise Failure(f"--class-weight must have finite factors of at least 0. Got {text!r} instead.")
    return {label: weights.get(label, 1.0) for label in classes.values()}
