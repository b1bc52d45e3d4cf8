# SPDX-License-Identifier: BSD-3-Clause
"""A linear support vector classifier for the collections of Dask that chooses its C."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from distributed import default_client
from sklearn.utils.validation import check_is_fitted

from maxmargin.dask.linear_svc import OWN, LinearSVC
from maxmargin.dask.parts import delayed_pieces
from maxmargin.dask.passes import passes_over
from maxmargin.estimators import LinearSVCCV as LocalLinearSVCCV
from maxmargin.estimators import parameter_types as takes
from maxmargin.estimators.chosen_in_passes import choose_in_passes
from maxmargin.solving.loop import Watch


@dataclass(eq=False, repr=False)
class LinearSVCCV(LocalLinearSVCCV):
    """``maxmargin.LinearSVCCV`` for Dask: all folds at every C are fitted in the same passes.

    ``client``, ``persist`` and ``memory`` are those of ``maxmargin.dask.LinearSVC``, and so is what ``fit``
    takes. All others are those of ``maxmargin.LinearSVCCV``, as its ``fit(Chunks(...))`` has them: folds
    are not stratified, ``cv`` is their number, and the score is the accuracy. The answers have the same
    bits for one worker, two or four, and for ``Chunks`` of the same rows.

    Examples
    --------
    >>> from dask import array
    >>> from distributed import Client
    >>> from maxmargin.dask import LinearSVCCV
    >>> client = Client(processes=False, dashboard_address=None)      # or the address of a scheduler
    >>> X = array.random.default_rng(0).normal(size=(4000, 5), chunks=(1000, 5))
    >>> model = LinearSVCCV(Cs=[0.1, 1.0], cv=3).fit(X, X[:, 0] > 0.5)
    >>> bool(model.cv_results_["max_relative_gap"].max() <= 1e-4)
    True
    >>> client.close()
    """

    _: KW_ONLY
    client: Any = None
    persist: takes.Flag = True
    memory: takes.Memory = None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit every fold at every C until the relative gap is at most ``tol``, and choose."""
        self._check_parameters()
        pieces, names = delayed_pieces(X, y, sample_weight)
        client = self.client if self.client is not None else default_client()
        self.__dict__.pop("feature_names_in_", None)
        passes = passes_over(client, X, pieces, persist=bool(self.persist))
        choose_in_passes(self, passes, self.memory)
        if names is not None:
            for one in (self, self.__dict__.get("best_estimator_")):
                if one is not None:
                    one.feature_names_in_ = np.array(names, dtype=object)
        return self

    def to_local(self) -> LocalLinearSVCCV:
        """The same model as a plain ``maxmargin.LinearSVCCV``, which knows nothing of Dask."""
        check_is_fitted(self, "C_")
        local = LocalLinearSVCCV()
        local.__dict__.update({name: value for name, value in vars(self).items() if name not in OWN})
        if self.refit:
            local.best_estimator_ = self.best_estimator_.to_local()
        return local

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The share of rows whose class is right."""
        return float(self._best().score(X, y, sample_weight))

    def _template(self, seed: int, watch: Watch) -> LinearSVC:
        own = ("Cs", "cv", "scoring", "refit", "score_bounds", "callback", "random_state")
        shared = {name: value for name, value in self.get_params(deep=False).items() if name not in own}
        callback = self.callback if self.callback is not None and not callable(self.callback) else watch
        return LinearSVC(**shared, random_state=seed, callback=callback)
