# SPDX-License-Identifier: BSD-3-Clause
"""Parts of the scripts that compute what a bench shows: "copy as Python"."""

from __future__ import annotations

from maxmargin.types import Vector

VALUES = """\
proof = model.certificate
print(f"P = {proof.primal:.10g}")
print(f"D = {proof.dual:.10g}")
print(f"gap = {proof.gap:.3g}")
print(f"b = {proof.b:.10g}")
print(f"support vectors = {len(proof.support)}")
"""
"""Prints the proof of ``model``."""


def points_as_code(X: Vector, y: Vector) -> str:
    """Lines that define X and y."""
    rows = [f"({one:.10g}, {two:.10g}, {label:+.0f})" for (one, two), label in zip(X, y, strict=True)]
    lines = "".join(f"    {', '.join(rows[start : start + 4])},\n" for start in range(0, len(rows), 4))
    return f"points = np.array([  # x1, x2, label\n{lines}])\nX, y = points[:, :2], points[:, 2]\n"


def number(value: float) -> str:
    """A number as Python reads it."""
    return "np.inf" if value == float("inf") else f"{value:.10g}"
