# SPDX-License-Identifier: BSD-3-Clause
"""Tables in Python: a transformer from a frame to the matrix that a model weighs."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from maxmargin.files.data.tables import load_pyarrow, refuse_twice
from maxmargin.tables.encoding import SCALES, Scale
from maxmargin.tables.kinds import Said
from maxmargin.tables.reading import RawTable
from maxmargin.tools.parameters import wrong


class Table(TransformerMixin, BaseEstimator):
    """What ``maxmargin train`` does with a table, as a scikit-learn transformer.

    Numbers are scaled and their missing values filled with the median, texts become a column for each
    category, dates days, truth values 0 and 1. What a column holds is found, or said by the parameters.
    With a classifier of maxmargin in a ``Pipeline`` it is saved as one model:
    ``maxmargin.files.save_model(pipeline, "model.mm")``.

    Parameters
    ----------
    scale : "standard", "max-abs" or "none"
        Numbers and dates: to mean 0 and variance 1, to at most 1 in size, or as they are.
    drop, categorical, numeric : names of columns
        To be left out; to be categories, though they look like numbers or have many texts; to be numbers,
        so that texts among them count as missing.

    Attributes
    ----------
    encoding_ : Encoding
        What becomes of each column.
    left_out_ : dict
        The columns that the matrix does not have, and why.
    """

    def __init__(
        self,
        scale: Scale = "standard",
        *,
        drop: tuple[str, ...] = (),
        categorical: tuple[str, ...] = (),
        numeric: tuple[str, ...] = (),
    ) -> None:
        self.scale = scale
        self.drop = drop
        self.categorical = categorical
        self.numeric = numeric

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find out what the columns of a pandas or polars frame, or of a pyarrow table, hold."""
        if self.scale not in SCALES:
            raise wrong(self, "scale", self.scale, f"one of {', '.join(map(repr, SCALES))}")
        table = RawTable(arrow_table(X), None, None)
        said = Said(*(_names(names) for names in (self.drop, self.categorical, self.numeric)))
        self.encoding_ = table.fitted(said, self.scale)
        self.left_out_ = {column.name: column.reason for column in self.encoding_.left_out}
        self.n_features_in_ = len(table.features.schema.names)
        self.feature_names_in_ = np.array(table.features.schema.names, object)
        return self

    def transform(self, X: Any) -> Any:
        """The rows as a matrix, dense or CSR; texts that were not there in ``fit`` have zeros alone."""
        check_is_fitted(self, "encoding_")
        return self.encoding_.encode(arrow_table(X)).X

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """The names of the columns of the matrix: ``age``, ``city=Paris``."""
        check_is_fitted(self, "encoding_")
        return np.array(self.encoding_.names, object)


def _names(names: Any) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def arrow_table(frame: Any) -> Any:
    """A pandas or polars frame, or what else pyarrow takes, as its table; without pandas' index."""
    pyarrow = load_pyarrow()
    if isinstance(frame, pyarrow.Table | pyarrow.RecordBatch):
        return pyarrow.table(frame) if isinstance(frame, pyarrow.RecordBatch) else frame
    if hasattr(frame, "iloc"):
        refuse_twice([str(name) for name in frame.columns])
        return pyarrow.Table.from_pandas(frame, preserve_index=False)
    if hasattr(frame, "__arrow_c_stream__") or isinstance(frame, dict):
        return pyarrow.table(frame)
    raise ValueError(
        f"X must be a table: a pandas or polars frame, a pyarrow table, or a dictionary of columns. Got "
        f"{type(frame).__name__} instead. Arrays of numbers need no Table: give them to the classifier."
    )
