# SPDX-License-Identifier: BSD-3-Clause
"""Parts of the scripts that compute what a bench shows: "copy as Python"."""

from __future__ import annotations

from maxmargin.types import Vector

PROOF = """\
print(f"P = {proof.primal:.10g}")
print(f"D = {proof.dual:.10g}")
print(f"gap = {proof.gap:.10g}")
"""
"""Prints the values of ``proof``."""
VALUES = f"""\
proof = model.certificate
{PROOF}print(f"b = {{proof.b:.10g}}")
print(f"support vectors = {{len(proof.support)}}")
"""
"""Prints the proof of ``model``."""
CORNER = (4.0, 3.0)
"""Added to all points for the chi-squared kernel, which takes no negative values: the lower left corner of
the plane that is shown becomes its origin."""


def points_as_code(X: Vector, y: Vector, from_corner: bool = False) -> str:
    """Lines that define X and y; with ``from_corner`` X as the chi-squared kernel sees it."""
    rows = [f"({one:.10g}, {two:.10g}, {label:+.0f})" for (one, two), label in zip(X, y, strict=True)]
    lines = "".join(f"    {', '.join(rows[start : start + 4])},\n" for start in range(0, len(rows), 4))
    moved = f" + {CORNER}  # the kernel takes no negative values" if from_corner else ""
    return f"points = np.array([  # x1, x2, label\n{lines}])\ny = points[:, 2]\nX = points[:, :2]{moved}\n"


def number(value: float) -> str:
    """A number as Python reads it."""
    return "np.inf" if value == float("inf") else f"{value:.10g}"
