# SPDX-License-Identifier: BSD-3-Clause
"""How a training ended, in words and as an exit code; the time and the memory that it took."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from maxmargin.command_line.shared.answer import DONE, INTERRUPTED, NOT_REACHED
from maxmargin.tools.words import bytes_in_words, percent, seconds_in_words

if TYPE_CHECKING:
    from maxmargin.proof.model import Status

_ENDINGS = {
    "CERTIFIED": "Certified: the relative gap of {gap:.1e} is within the --tol of {tol:g}.",
    "NOT_PROVEN": (
        "Not proven: the relative distance of {gap:.1e} between the two values is within the --tol of "
        "{tol:g}, but the function is not shown to be a kernel on these rows, or its values are too large "
        "for float64, so that it bounds nothing. Use --kernel gaussian, or polynomial with --coef0 of at "
        "least 0 and scaled columns."
    ),
    "STEPS_SPENT": (
        "Not certified to --tol: after {steps} steps the relative gap is {gap:.1e}, above {tol:g}. "
        "Raise --max-iter, loosen --tol, choose another --solver, or scale the columns (maxmargin info "
        "{data} tells whether they differ)."
    ),
    "TIME_SPENT": (
        "Not certified to --tol: --max-time ran out after {steps} steps at a relative gap of {gap:.1e}, "
        "above {tol:g}. Raise --max-time, loosen --tol, or scale the columns (maxmargin info {data} "
        "tells whether they differ)."
    ),
    "INTERRUPTED": (
        "Interrupted after {steps} steps: the best certified model so far is written, with a relative gap "
        "of {gap:.1e} (--tol {tol:g})."
    ),
    "STOPPED": "Stopped after {steps} steps at a relative gap of {gap:.1e} (--tol {tol:g}).",
    "VALUES_ROUNDED": (
        "Not certified to --tol: after {steps} steps the relative gap is {gap:.1e}, above {tol:g}. The "
        "values of the kernel are so large, or --C is, that their rounding in float64 alone can change the "
        "objective by more than --tol. Scale the columns, or lower --C, --gamma or --degree."
    ),
    "RULE_FIRED": (
        "Not certified to --tol: after {steps} steps the solver had nothing left to gain, at a relative "
        "gap of {gap:.1e}, above {tol:g}: rounding error is in the way. Loosen --tol or scale "
        "the columns."
    ),
    "NO_GAIN": (
        "Not certified to --tol: after {steps} passes over the data the relative gap is {gap:.1e}, above "
        "{tol:g}, and the last passes have hardly lowered it. Raise --memory, so that more rows near the "
        "margin can be kept, loosen --tol, or scale the columns."
    ),
}


def ending(status: Status, gap: float, tol: float, steps: int, data: Path) -> tuple[str, int]:
    """How a training ended and what to do about it, and the exit code."""
    words = _ENDINGS[status.name].format(gap=gap, tol=tol, steps=steps, data=data)
    return words.replace("after 1 steps", "after 1 step"), code_of(status)


def code_of(status: Status) -> int:
    """The exit code."""
    return {"CERTIFIED": DONE, "INTERRUPTED": INTERRUPTED}.get(status.name, NOT_REACHED)


def peak_memory() -> int | None:
    """The most memory this process has held, in bytes; None where the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def time_and_memory(seconds: dict[str, float], memory: int | None) -> str:
    """What the command took."""
    spent = {name: f"{name} {seconds_in_words(time)}" for name, time in seconds.items()}
    if "certify" in spent:
        share = f", {percent(seconds['certify'] / seconds['train'])}" if seconds["train"] > 0 else ""
        spent["train"] += f" (of which {spent.pop('certify')}{share})"
    words = f"Time: {', '.join(spent.values())}."
    return words if memory is None else f"{words} Peak memory: {bytes_in_words(memory)}."
