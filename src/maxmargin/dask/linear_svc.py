# SPDX-License-Identifier: BSD-3-Clause
"""A linear support vector classifier for the collections of Dask."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from dask.base import is_dask_collection
from dask.delayed import Delayed, delayed
from distributed import Client, default_client
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from dask import array
from maxmargin.dask.parts import delayed_parts, delayed_pieces
from maxmargin.dask.passes import passes_over
from maxmargin.estimators import LinearSVC as LocalLinearSVC
from maxmargin.estimators import parameter_types as takes
from maxmargin.estimators.in_chunks import fit_passes
from maxmargin.tools.interrupts import Interrupts, held_back

OWN = ("client", "persist", "memory")
"""The parameters that the plain classifier does not have."""


@dataclass(eq=False, repr=False)
class LinearSVC(LocalLinearSVC):
    """``maxmargin.LinearSVC`` for Dask's arrays, dataframes and delayed parts: same problem, same proof.

    A partition is a chunk, so that the model has the same bits for one worker, two or four, and for
    ``maxmargin.Chunks`` of the same rows. Workers hold the partitions; points and sums travel, as results
    of Dask's tasks. If a worker is lost, Dask computes its partitions anew.

    Parameters
    ----------
    client : distributed.Client or None
        The cluster; None: the client that was made last, which is Dask's default.
    persist : bool
        Whether workers hold the partitions from pass to pass, on their disks where memory is short. Without
        it, partitions are read anew in every pass.
    memory : int or None
        Bytes that the process of the client may take for a sample and for rows near the margin; None: half
        of what is free there.

    All others are those of ``maxmargin.LinearSVC``; ``max_iter`` and ``n_iter_`` count passes. ``fit``
    takes Dask's arrays and dataframes (X, y, sample_weight), or a list of delayed (X, y) or (X, y, weights)
    parts alone, whose X may be sparse.

    Examples
    --------
    >>> from dask import array
    >>> from distributed import Client
    >>> from maxmargin.dask import LinearSVC
    >>> client = Client(processes=False, dashboard_address=None)      # or the address of a scheduler
    >>> X = array.random.default_rng(0).normal(size=(4000, 5), chunks=(1000, 5))
    >>> model = LinearSVC(loss="hinge").fit(X, X[:, 0] > 0.5)
    >>> bool(model.certificate_.relative_gap <= 1e-4)
    True
    >>> client.close()
    """

    _: KW_ONLY
    client: Any = None
    persist: takes.Flag = True
    memory: takes.Memory = None

    def _client(self) -> Client:
        return self.client if self.client is not None else default_client()

    def _fit_once(self, X: Any, y: Any, sample_weight: Any) -> Interrupts:
        pieces, names = delayed_pieces(X, y, sample_weight)
        with held_back() as interrupts:
            passes = passes_over(self._client(), X, pieces, persist=bool(self.persist))
            fit_passes(self, passes, self.memory)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        return interrupts

    def to_local(self) -> LocalLinearSVC:
        """The same model as a plain ``maxmargin.LinearSVC``, which knows nothing of Dask."""
        check_is_fitted(self)
        local = LocalLinearSVC()
        local.__dict__.update({name: value for name, value in vars(self).items() if name not in OWN})
        return local

    def decision_function(self, X: Any) -> Any:
        """``<w, x> + b`` of each row: lazily for Dask's collections, partition by partition."""
        check_is_fitted(self)
        several = len(self.classes_) > 2
        return self._lazily("decision_function", X, np.float64, (len(self.classes_),) if several else ())

    def predict(self, X: Any) -> Any:
        """The class of each row: lazily for Dask's collections, partition by partition."""
        check_is_fitted(self)
        return self._lazily("predict", X, self.classes_.dtype, ())

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The share of rows whose class is right."""
        local = self.to_local()
        if not (is_dask_collection(X) or _are_delayed(X)):
            return float(local.score(X, y, sample_weight))
        parts, _ = delayed_parts(X, y, sample_weight)
        model, client = delayed(local, pure=False), self._client()
        sums = client.gather(client.compute([delayed(_right)(model, part) for part in parts]))
        right, all_rows = np.sum(sums, axis=0)
        return float(right / all_rows)

    def _lazily(self, method: str, X: Any, dtype: Any, shape: tuple[int, ...]) -> Any:
        """What a method of the plain model says of each partition, when it is asked for."""
        local = self.to_local()
        if not (is_dask_collection(X) or _are_delayed(X)):
            return getattr(local, method)(X)
        told = (method, shape, dtype)
        if hasattr(X, "chunks"):
            X = X.rechunk({1: -1}) if len(X.chunks[1]) > 1 else X
            chunks = (X.chunks[0], *((width,) for width in shape))
            dropped = None if shape else 1
            meta = np.empty((0,) * (1 + len(shape)), dtype)
            return X.map_blocks(
                _of_rows, local, *told, dtype=dtype, chunks=chunks, drop_axis=dropped, meta=meta
            )
        model = delayed(local, pure=False)
        pieces = [
            delayed(_of_rows)(part, model, *told) for part in (X if _are_delayed(X) else X.to_delayed())
        ]
        if _are_delayed(X):
            return pieces
        # Of a dataframe nobody knows how many rows its partitions have.
        return array.concatenate([array.from_delayed(piece, (np.nan, *shape), dtype) for piece in pieces])


def _are_delayed(X: Any) -> bool:
    return isinstance(X, list) and len(X) > 0 and all(isinstance(part, Delayed) for part in X)


def _of_rows(
    X: Any, model: LocalLinearSVC, method: str, shape: tuple[int, ...], dtype: Any
) -> NDArray[Any]:
    """What a method of the model says of some rows; nothing of none."""
    if X.shape[0] == 0:
        return np.empty((0, *shape), dtype)
    return np.asarray(getattr(model, method)(X))


def _right(model: LocalLinearSVC, part: Any) -> tuple[float, float]:
    """The weight of the rows whose class is right, and that of all."""
    X, y, weight = part
    if not len(y):
        return 0.0, 0.0
    weight = np.ones(len(y)) if weight is None else weight
    return float(weight @ (model.predict(X) == y)), float(weight.sum())
