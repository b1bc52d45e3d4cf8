# SPDX-License-Identifier: BSD-3-Clause
"""The sizes that decide which way a problem is solved, or in which form: each with its unit and its reason."""

from __future__ import annotations

SPLIT_FROM = 5_000
"""Rows of a kernel problem from which blocks are looked for that the kernel cannot couple."""

ALL_KERNEL_VALUES = 2_000
"""Rows up to which all values of a kernel are computed once: problems and certificates share them."""

SHARE_OF_CACHE = 0.5
"""Of ``cache_size``: the most that these may take of it."""

QUICK_ROWS = 1_000
"""Rows up to which a problem with a kernel is solved without working sets, in one compiled call."""

TINY_ROWS = 50
"""Rows up to which a problem with a kernel is solved to rounding error, so that equal problems (a row twice, a
row of weight two) give equal models."""

TINY_VALUES = 2_000
"""Stored values up to which a sweep takes microseconds: such linear problems are solved to rounding error, so
that equal problems give equal models."""

ONE_THREAD_VALUES = 50_000
"""Stored values up to which threads would cost more than the linear problems of a fit."""

MOST_ROUNDS = 100
FEW_ROUNDS = 20
STEPS_AFTER_COLUMNS = 200
FACTORED_ROWS = 4_000
ROWS_PER_STEP = 10
FEWEST_STEPS = 100
MOST_FACTOR_COLUMNS = 1_000
