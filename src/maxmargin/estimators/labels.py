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


def labels_and_codes(targets: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """The labels, sorted, and the place of every row's label among them; raises as ``distinct_labels``.

    Whole numbers need no check, which takes as long as a small fit; where there are many different ones,
    scikit-learn warns that they may be values.
    """
    whole = targets.dtype.kind in "iub"
    if not whole:
        check_classification_targets(targets)
    labels, codes = np.unique(targets, return_inverse=True)
    if whole and 2 * len(labels) > len(targets):
        check_classification_targets(targets)
    return labels, codes


def require_two(labels: NDArray[Any]) -> None:
    """Raises where there is nothing to tell apart."""
    if len(labels) < 2:
        raise ValueError(
            "Classifier can't train when only one class is present: the number of classes has to be "
            f"greater than one; got {len(labels)} class. Give y at least two different labels."
        )
