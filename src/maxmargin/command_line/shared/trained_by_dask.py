# SPDX-License-Identifier: BSD-3-Clause
"""``train --dask``: the workers of a cluster read the data and make the passes over them.

Tables are read by Dask's own readers, all other files by ours, a file for each partition. Paths must mean
the same files to the workers; tables may be elsewhere, as in s3://, where Dask can read that.
"""

from __future__ import annotations

import os
import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import maxmargin
from maxmargin import files
from maxmargin.command_line.shared import data_options
from maxmargin.command_line.shared.answer import Failure
from maxmargin.command_line.shared.in_chunks import Passing, TrainingChunks, for_a_fit
from maxmargin.command_line.shared.progress import Bars
from maxmargin.files.data.reading import COMPRESSED, Options, file_format
from maxmargin.files.data.several import data_files
from maxmargin.files.data.tables import label_among, refuse_twice

if TYPE_CHECKING:
    from maxmargin.chunks.survey import Facts

_PATIENCE = 10
"""Seconds for a scheduler to answer."""


class OnCluster:
    """Data that the workers of a cluster read."""

    fingerprint: str | None = None
    nbytes: int | None = None
    features: Any = None

    def __init__(self, chunking: TrainingChunks, reading: data_options.TrainingData, data: Path) -> None:
        if chunking.checkpoint is not None:
            raise Failure(
                "--checkpoint is for data that this process reads. Got --dask, too. Leave one of them out."
            )
        self.chunking, self.reading = chunking, reading
        self.source = _address(data)
        self.is_table = file_format(self.source, reading.format) in ("csv", "parquet")
        self.facts: Facts | None = None
        self.names: list[str] | None = None
        if self.is_table:
            self._check_table()
        elif "://" in self.source:
            raise Failure(
                f"Only tables are read from other places than folders. Got {data} instead. Give Parquet or "
                "CSV, or a path that all workers see."
            )

    def _check_table(self) -> None:
        """Refuse what is not offered for tables."""
        reading = self.reading
        if reading.scale != "none":
            raise Failure(
                "The columns of a table are scaled, which needs its rows in memory, but the workers of "
                "--dask read them. Say --scale none if all columns are numbers of similar size, or scale "
                "them before."
            )
        for name in ("categorical", "numeric", "skip_bad_lines"):
            if getattr(reading, name):
                raise Failure(
                    f"--{name.replace('_', '-')} is not known to the readers of --dask. Leave it out, and "
                    "give a table of numbers."
                )

    def fit(self, estimator: maxmargin.LinearSVC, bars: Bars, data: Path) -> list[str]:
        """Fit with progress; returns what the fit warned of beside not reaching its tolerance."""
        try:
            from maxmargin.dask import DaskPasses
        except ImportError as error:
            raise Failure(str(error)) from None
        from distributed import Client
        from sklearn.exceptions import ConvergenceWarning

        from maxmargin.dask.parts import delayed_parts
        from maxmargin.estimators.in_chunks import fit_passes

        bars.waiting("looking for the cluster")
        try:
            client = Client(self.chunking.dask, timeout=_PATIENCE, set_as_default=False)
        except (OSError, ValueError) as error:
            raise Failure(
                f"No scheduler of Dask answers at {self.chunking.dask}: {error}. Start one with "
                "'dask scheduler', or check the address."
            ) from None
        limit = float("inf") if estimator.max_time is None else float(estimator.max_time)
        estimator.callback = Passing(bars, f"training on {data.name}", estimator.tol, limit).passed
        with client, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            parts = self._tables() if self.is_table else self._files(client)
            passes = DaskPasses(client, delayed_parts(parts, None, None)[0])
            self.facts = fit_passes(estimator, passes, for_a_fit(self.chunking.limit))
        estimator.set_params(callback=None)
        if self.names is not None:
            estimator.feature_names_in_ = np.array(self.names, dtype=object)
        unheard = ConvergenceWarning, ResourceWarning, DeprecationWarning
        return [str(one.message) for one in caught if not issubclass(one.category, unheard)]

    def _tables(self) -> list[Any]:
        """A delayed (X, y) for each partition of the tables, and the names of their columns."""
        from dask.delayed import delayed

        frame = self._frame()
        names = [str(name) for name in frame.columns]
        if not names:
            raise Failure(f"Dask finds no table in {self.source}. Check the pattern.")
        refuse_twice(names)
        frame.columns = names
        reading = self.reading
        label = label_among(names, Options.of(label=reading.label, header=not reading.no_header))
        assert label is not None
        reading.said.check(names)
        dropped = reading.said.drop
        self.names = [name for name in names if name != label and name not in dropped]
        for name in self.names:
            if frame.dtypes[name].kind not in "biuf":
                raise Failure(
                    f"With --dask the columns of a table must be numbers. Column {name!r} is one of "
                    f"{frame.dtypes[name]}. Leave it out with --drop {name!r}, or encode it before."
                )
        part = delayed(_part_of_table)
        return [part(piece, self.names, label, k) for k, piece in enumerate(frame.to_delayed())]

    def _frame(self) -> Any:
        """The tables as Dask reads them."""
        try:
            from dask import dataframe
        except ImportError as error:
            raise Failure(
                f"Tables are read by Dask's dataframes ({error}): pip install 'dask[dataframe]'."
            ) from None
        reading, source = self.reading, self.source
        try:
            if file_format(source, reading.format) == "parquet":
                return dataframe.read_parquet(source)
            given, bare = reading.given, source.lower().removesuffix(".gz").removesuffix(".bz2")
            separator = given["delimiter"] or ("\t" if bare.endswith(".tsv") else ",")
            if os.path.isdir(source):
                source = os.path.join(source, "*")
            whole = {"blocksize": None} if source.endswith(COMPRESSED) else {}
            more: dict[str, Any] = {"sep": separator, "decimal": given["decimal"]}
            more |= {"header": "infer" if given["header"] else None, "na_values": list(given["missing"])}
            frame = dataframe.read_csv(source, **more, **whole)
        except (OSError, ValueError) as error:
            raise Failure(f"Dask cannot read {source}: {error}") from None
        if not given["header"]:
            frame.columns = [str(k + 1) for k in range(len(frame.columns))]
        return frame

    def _files(self, client: Any) -> list[Any]:
        """A delayed (X, y) or (X, y, weights) for each file."""
        from dask.delayed import delayed

        paths = data_files(self.source)
        given = {name: value for name, value in self.reading.given.items() if name != "query"}
        given |= {"format": self.reading.format, "columns": self.reading.columns, "threads": 1}
        if given["columns"] is None and any(file_format(p, given["format"]) == "libsvm" for p in paths):
            widths = client.gather(client.compute([delayed(_columns_of)(path, given) for path in paths]))
            given["columns"] = max(widths)
        return [delayed(_part_of_file)(path, given) for path in paths]


def _address(data: Path) -> str:
    """The data as the workers find them; a path has lost one of the strokes of an address."""
    text = os.fspath(data)
    elsewhere = re.match(r"([a-z][a-z0-9+]+):/+(.*)", text)
    if elsewhere is None:
        return os.path.abspath(text)
    scheme, rest = elsewhere.groups()
    return f"/{rest}" if scheme == "file" else f"{scheme}://{rest}"


def _part_of_table(frame: Any, names: list[str], label: str, number: int) -> tuple[Any, Any]:
    """X and y of one partition."""
    column = frame[label]
    if column.isna().any():
        raise ValueError(
            f"Partition {number} has a row without a label in column {label!r}. Leave such rows out."
        )
    y = np.asarray(column)
    if y.dtype.kind not in "biuf":
        y = np.array([str(each) for each in y], dtype=str)
    return frame[names].to_numpy(dtype=np.float64, na_value=np.nan), y


def _part_of_file(path: str, given: dict[str, Any]) -> tuple[Any, ...]:
    """X, y and perhaps weights of one file."""
    data = _read(path, given)
    return (data.X, data.y) if data.weight is None else (data.X, data.y, data.weight)


def _columns_of(path: str, given: dict[str, Any]) -> int:
    """The largest index of a file."""
    return int(_read(path, given).X.shape[1])


def _read(path: str, given: dict[str, Any]) -> Any:
    try:
        return files.read(path, **given)
    except files.DataError as error:
        raise ValueError(str(error)) from None  # which travels
