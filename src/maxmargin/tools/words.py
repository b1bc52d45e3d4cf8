# SPDX-License-Identifier: BSD-3-Clause
"""Numbers and lists as people write them."""

from __future__ import annotations

import math
from collections.abc import Sequence

_COUNTS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def seconds_in_words(seconds: float) -> str:
    """``0.0123 s``, ``12 s``, ``3 min 20 s``, ``2 h 5 min``."""
    if seconds < 10:
        return f"{seconds:.2g} s" if seconds < 1 else f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def bytes_in_words(count: float) -> str:
    """``812 bytes``, ``1.5 KiB``, ``3.2 GiB``."""
    if count < 1024:
        return f"{count:.0f} bytes"
    for unit in ("KiB", "MiB", "GiB"):
        count /= 1024
        if count < 1024:
            return f"{count:.3g} {unit}" if count < 1000 else f"{count:.0f} {unit}"
    return f"{count / 1024:.3g} TiB"


def percent(share: float) -> str:
    """A share of one to about three digits: ``0.0123 %``, ``97.4 %``."""
    if not math.isfinite(share):
        return "an unknown share"
    return f"{100 * share:.3g} %"


def count_in_words(count: int) -> str:
    """Small numbers as words."""
    return _COUNTS[count] if 0 <= count < len(_COUNTS) else str(count)


def counted(count: int, what: str) -> str:
    """``1 line was``, ``2 lines were``."""
    return f"1 {what} was" if count == 1 else f"{count} {what}s were"


def amount(count: int, what: str, several: str = "") -> str:
    """``1 line``, ``2 lines``; ``several`` is the plural where that is not one with an s."""
    return f"1 {what}" if count == 1 else f"{count} {several or what + 's'}"


def some(names: Sequence[str], most: int = 5) -> str:
    """``a, b, c and 12 more``."""
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"
