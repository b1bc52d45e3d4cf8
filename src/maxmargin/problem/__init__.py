# SPDX-License-Identifier: BSD-3-Clause
"""What is to be solved: rows, a loss, costs and an intercept."""

from maxmargin.problem.problem import Intercept, Penalty, Problem

__all__ = ["Intercept", "Penalty", "Problem"]
