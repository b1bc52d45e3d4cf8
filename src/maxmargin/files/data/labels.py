# SPDX-License-Identifier: BSD-3-Clause
"""Labels as they stand in files, and which of a model's classes each is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray


def label_text(label: Any) -> str:
    """A label as it stood in its file: whole numbers without a decimal point."""
    if hasattr(label, "item"):
        label = label.item()
    if isinstance(label, float) and label.is_integer() and abs(label) < 2**53:
        return str(int(label))
    return str(label)


def quoted_label(label: Any) -> str:
    """The same within a sentence: a text that has spaces or commas in it stands in quotes."""
    text = label_text(label)
    return f"'{text}'" if " " in text or "," in text else text


def numbers_of(labels: NDArray[Any]) -> NDArray[Any] | None:
    """Labels as the numbers that a regression is about; None where one of them is not a finite number."""
    import numpy as np

    try:
        values = np.asarray(labels, np.float64)
    except (TypeError, ValueError):
        return None
    return values if np.isfinite(values).all() else None


def problem_text(label: Any) -> str:
    """Which problem it is: a class against the rest, or a pair of classes."""
    return " against ".join(map(quoted_label, label)) if isinstance(label, tuple) else quoted_label(label)


def class_codes(labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[Any]:
    """For each label the position of its class, -1 where there is none.

    Compared as text, since the same labels are numbers in one kind of file and words in another.
    """
    import numpy as np

    found, inverse = np.unique(labels, return_inverse=True)
    position = {label_text(label): k for k, label in enumerate(classes)}
    codes = np.array([position.get(label_text(label), -1) for label in found], np.int64)
    return codes[inverse.ravel()]
