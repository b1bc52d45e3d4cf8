# SPDX-License-Identifier: BSD-3-Clause
"""The laboratory: a live page where every idea of the lectures can be touched. ``maxmargin lab`` opens it.

The solvers of the library answer, the page draws. In a notebook, ``from maxmargin.lab import Margin`` has
the first bench for rows of one's own. ``docs/lab.md`` says how to add a bench.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maxmargin.lab.widget import Margin as Margin

__all__ = ["Margin"]


def __getattr__(name: str) -> Any:
    if name != "Margin":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from maxmargin.lab.widget import Margin
    except ImportError as error:
        raise ImportError(
            f"Margin needs anywidget ({error}). Install it: python -m pip install 'maxmargin[widget]'"
        ) from error
    return Margin
