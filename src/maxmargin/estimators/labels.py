# SPDX-License-Identifier: BSD-3-Clause
"""The classes in y."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets


def distinct_labels(targets: NDArray[Any]) -> NDArray[Any]:
    """The labels, sorted; raises where they are values of something continuous.

    Two whole numbers, the usual case, are recognised without sorting or hashing millions of labels.
    """
    if targets.dtype.kind in "iuf" and len(targets):
        low, high = targets.min(), targets.max()
        whole = targets.dtype.kind != "f" or (float(low).is_integer() and float(high).is_integer())
        if whole and bool(np.all((targets == low) | (targets == high))):
            return np.array([low, high] if low < high else [low], targets.dtype)
    if targets.dtype.kind not in "iub":
        check_classification_targets(targets)
    return np.unique(targets)
