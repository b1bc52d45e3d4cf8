# SPDX-License-Identifier: BSD-3-Clause
"""What all feature maps share: how they read data, and what they tell scikit-learn about themselves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from maxmargin.kernels.base import HIGHEST_DEGREE
from maxmargin.problem.rows import in_numpy, lies_on_card
from maxmargin.tools.parameters import NotNegative, Range, check_options

if TYPE_CHECKING:
    from maxmargin.chunks import Chunks
    from maxmargin.gpu.cards import Card

KernelDegree = Annotated[int, Range(f"[1, {HIGHEST_DEGREE}]")]
KernelShift = Annotated[NotNegative, "With a negative one the function is not a kernel."]


class FeatureMap(TransformerMixin, BaseEstimator, ABC):
    """A map phi from rows to rows; float32 stays float32, sparse rows are read as CSR.

    The annotations of the parameters say which values they take, and ``fit`` checks them. A map learns in
    ``_learn``, maps in ``_map`` and names columns in ``_names``.

    ``Chunks`` go through a fitted map chunk by chunk, in every pass anew.
    """

    learns_from_a_sample: ClassVar[bool] = False
    """Whether rows that are drawn from ``Chunks`` tell ``fit`` as much as all of them."""

    @abstractmethod
    def _learn(self, X: Any) -> None:
        """Sets the fitted attributes; the parameters have been checked one by one."""

    @abstractmethod
    def _map(self, X: Any) -> Any:
        """The matrix with phi(x) for every row of X."""

    @abstractmethod
    def _names(self, given: Sequence[str]) -> Sequence[str]:
        """The names of the columns of phi(x), from those of x."""

    def _map_on_card(self, card: Card, X: Any) -> Any:
        """The same of rows that lie on a GPU; a map that can do so says how."""
        raise ValueError(
            f"{type(self).__name__} maps rows on the CPU. Give it arrays of NumPy and leave device out, or "
            "use RandomFourier or Nystroem, which map rows on a GPU, too."
        )

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learns what the map needs; y is not used. Rows that lie on a GPU are copied from there."""
        if self._are_chunks(X):
            self._learn_in_a_pass(X)
            return self
        if lies_on_card(X):
            from maxmargin.gpu.cards import on_host

            X = on_host(X)
        self._read_and_learn(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """phi(x) for every row of the X that it learns from, which is read and checked once."""
        if self._are_chunks(X):
            return self._learn_in_a_pass(X)
        if lies_on_card(X):
            return self.fit(X, y).transform(X)
        return self._map(self._read_and_learn(X))

    def transform(self, X: Any) -> Any:
        """phi(x) for every row of X; of rows that lie on a GPU there, in their kind."""
        check_is_fitted(self)
        if self._are_chunks(X):
            return X.mapped(self)
        if lies_on_card(X):
            from maxmargin.gpu.maps import mapped

            return mapped(self, X)
        return self._map(self._read(X, reset=False))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """A name for every column of phi(x)."""
        check_is_fitted(self)
        given = _check_feature_names_in(self, input_features)
        return np.array(self._names(given), dtype=object)

    @staticmethod
    def _are_chunks(X: Any) -> bool:
        from maxmargin.estimators.linear_svc import are_chunks

        return are_chunks(X)

    def _learn_in_a_pass(self, chunks: Chunks) -> Chunks:
        """Learn from rows that are drawn from every chunk; the chunks as this map makes them."""
        if not self.learns_from_a_sample:
            raise ValueError(
                f"{type(self).__name__} learns from all rows, and Chunks have only some in memory. Fit it "
                "to rows in memory and give transform(Chunks(...)) to the classifier, or use Nystroem, "
                "RandomFourier or PolynomialSketch."
            )
        from maxmargin.chunks.mapped import learned

        check_options(self)
        return learned(chunks, int(getattr(self, "seed", 0)), self.fit)[1]

    def _read_and_learn(self, X: Any) -> Any:
        check_options(self)
        X = self._read(X, reset=True)
        self._learn(X)
        return X

    def _read(self, X: Any, *, reset: bool) -> Any:
        formats = "csr" if self.__sklearn_tags__().input_tags.sparse else False
        X = in_numpy(X)
        return validate_data(self, X, reset=reset, accept_sparse=formats, dtype=[np.float64, np.float32])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
