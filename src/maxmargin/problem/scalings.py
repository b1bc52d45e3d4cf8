# SPDX-License-Identifier: BSD-3-Clause
"""Conversions between ``C`` and the other scalings of the lectures, all of one and the same problem.

| lecture                 | objective there                          | C here         |
|-------------------------|------------------------------------------|----------------|
| 000, 004                | 1/2 w'w + C sum loss                     | C              |
| 003                     | 1/2 w'w + (c / n) sum loss               | c / n          |
| 001, 002 (Pegasos)      | lambda / 2 w'w + (1 / n) sum loss        | 1 / (lambda n) |
| 003 (subgradient part)  | lambda w'w + (1 / n) sum loss            | 1 / (2 lambda n) |
"""

from __future__ import annotations


def C_from_mean_cost(c: float, n: int) -> float:
    """003: ``1/2 w'w + (c / n) sum loss``."""
    return c / n


def C_from_half_lambda(lambda_: float, n: int) -> float:
    """001 and 002, Pegasos: ``lambda / 2 w'w + (1 / n) sum loss``."""
    return 1.0 / (lambda_ * n)


def C_from_lambda(lambda_: float, n: int) -> float:
    """003, subgradient part: ``lambda w'w + (1 / n) sum loss``."""
    return 1.0 / (2.0 * lambda_ * n)


def mean_cost_from_C(C: float, n: int) -> float:
    """The ``c`` of 003 that goes with ``C``."""
    return C * n


def half_lambda_from_C(C: float, n: int) -> float:
    """The ``lambda`` of 001 and 002 that goes with ``C``."""
    return 1.0 / (C * n)


def lambda_from_C(C: float, n: int) -> float:
    """The ``lambda`` of 003's subgradient part that goes with ``C``."""
    return 1.0 / (2.0 * C * n)
