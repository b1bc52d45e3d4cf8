# SPDX-License-Identifier: BSD-3-Clause
"""How the ascent for all classes at once goes on from the end of a sweep along the way that it went.

    maximise over t    L(beta + t move),    L: the dual value that the sweeps of crammer_singer climb

As momentum.py has it for two classes: the move is that from the end of the last sweep but one to the end of
the last, and knows its change v of w.

    1  a class without multipliers of an example takes no part in its move, nor does an example give more in
       all than C_i: what its own class would take beyond is given back by the others in equal parts. What
       this changes goes out of v
    2  t = slope / curvature of L along the move, at most 1: else what rounding does to v would grow
    3  go by t, each example as far as its walls let it
    4  go from beta to the best point on the way to where this has led

L never falls: the set that an example's multipliers can be in is convex, so that all of the way lies in it,
and 4 is exact.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maxmargin import core
from maxmargin.problem.class_rows import ClassRows
from maxmargin.problem.rows import Matrix
from maxmargin.types import Vector


class LastClassMove:
    """The move from the end of the last sweep but one to that of the last; at first, of the last alone.

    ``moved`` is 1 for the examples that have moved since then; sweeps set it.
    """

    def __init__(self, multipliers: Matrix, w: Matrix, moved: NDArray[np.int8]) -> None:
        self._multipliers, self._w, self._moved = multipliers.copy(), w.copy(), moved
        moved[:] = 0

    def go_on(self, rows: ClassRows, costs: Vector, multipliers: Matrix, w: Matrix) -> float:
        """Change the multipliers and w, and return by how much L grew."""
        return core.go_on_with_classes(
            rows.data,
            rows.codes,
            costs,
            multipliers,
            self._moved,
            w,
            constant=rows.constant,
            multipliers_before=self._multipliers,
            w_before=self._w,
        )
