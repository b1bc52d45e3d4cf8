# SPDX-License-Identifier: BSD-3-Clause
"""The laboratory: a live page where every idea of the lectures can be touched. ``maxmargin lab`` opens it.

The solvers of the library answer, the page draws. ``docs/lab.md`` says how to add a bench.
"""
