# SPDX-License-Identifier: BSD-3-Clause
"""Maps whose columns have no better names than numbers."""

from __future__ import annotations

from collections.abc import Sequence

from maxmargin.features.base import FeatureMap


class NumberedMap(FeatureMap):
    """Names its columns after its class: distances0, distances1, ... Subclasses set ``_n_features_out``."""

    _n_features_out: int

    def _names(self, given: Sequence[str]) -> Sequence[str]:
        prefix = type(self).__name__.lower()
        return [f"{prefix}{j}" for j in range(self._n_features_out)]
