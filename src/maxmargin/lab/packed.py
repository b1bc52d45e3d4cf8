# SPDX-License-Identifier: BSD-3-Clause
"""Matrices that are only looked at, in few characters."""

from __future__ import annotations

from base64 import b64encode

import numpy as np

from maxmargin.types import Vector

_STEPS = 65535
"""Steps between the lowest and the highest value: what two bytes can tell apart."""


def packed(matrix: Vector) -> dict[str, object]:
    """The matrix in steps of 1 / 65535 of its range; ``unpacked`` in drawing.js reads it."""
    low, high = float(matrix.min()), float(matrix.max())
    steps = np.round((matrix - low) * (_STEPS / (high - low) if high > low else 0.0)).astype("<u2")
    return {
        "columns": matrix.shape[1],
        "low": low,
        "high": high,
        "steps": b64encode(steps.tobytes()).decode(),
    }
