# SPDX-License-Identifier: BSD-3-Clause
"""Values in JSON's own types."""

from __future__ import annotations

import math
from typing import Any


def plain(value: Any) -> Any:
    """The value as JSON has it: arrays become lists, numbers that JSON does not have become null."""
    if hasattr(value, "tolist"):  # NumPy's arrays and numbers
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)
