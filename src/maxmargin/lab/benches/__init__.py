# SPDX-License-Identifier: BSD-3-Clause
"""The benches: one Python file that answers, and one JavaScript file of the same stem that draws.

Every module of this folder that holds a ``BENCH`` is one; nothing else names them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from maxmargin.lab.asked import Asked

Answer = Mapping[str, Any]

SECONDS = 1.0
"""What a solver may take for one answer. The solvers of these small problems need some thousandths."""


@dataclass(frozen=True)
class Bench:
    """What a bench says of itself, and who answers."""

    order: int
    """Its place among the others."""
    title: str
    invitation: str
    """One sentence or two: what to try."""
    tour: str
    """The stem of the page of the tour that explains it."""
    answers: Mapping[str, Callable[[Asked], Answer]]
    """Who answers what is wanted. "show" is what the page draws, "script" the same as {"script": text}."""


@cache
def benches() -> dict[str, Bench]:
    """All benches by name, in their order."""
    modules = {each.name: import_module(f"{__name__}.{each.name}") for each in iter_modules(__path__)}
    found = {name: module.BENCH for name, module in modules.items() if hasattr(module, "BENCH")}
    return dict(sorted(found.items(), key=lambda each: each[1].order))
