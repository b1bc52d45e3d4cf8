# SPDX-License-Identifier: BSD-3-Clause
"""What each row is to the solution, beside the same rule in plain Python."""

from itertools import product

import numpy as np
import pytest

from maxmargin import RowClass, core

MARGINS = (-np.inf, -2.0, -0.0, 0.0, 1e-300, 0.5, 0.98999, 0.99, 0.995, 1.0, 1.01, 1.0101, 5.0, np.inf)
COSTS = (0.0, 1e-300, 0.7, 3.0, np.inf)
SHARES = (0.0, 1e-12, 0.5, 1.0)


def expected(margin, alpha, cost):
    """The margin tells, but within a hundredth of 1 the multiplier does."""
    if not cost > 0.0:
        return RowClass.NOT_SUPPORT_VECTOR
    if margin <= 0.0:
        return RowClass.MISCLASSIFIED
    if margin < 0.99:
        return RowClass.INSIDE_MARGIN
    if not alpha > 0.0 or margin > 1.01:
        return RowClass.NOT_SUPPORT_VECTOR
    return RowClass.INSIDE_MARGIN if alpha >= cost else RowClass.ON_MARGIN


@pytest.mark.parametrize("by_margins", [False, True])
def test_each_row_is_what_its_margin_and_multiplier_say(by_margins):
    rows = [
        (margin, 0.0 if share == 0.0 else share * cost, cost)
        for margin, share, cost in product(MARGINS, SHARES, COSTS)
    ]
    random = np.random.default_rng(0)
    rows = [rows[place] for place in random.permutation(np.resize(np.arange(len(rows)), 1500))]
    margins, alpha, costs = (np.array(column) for column in zip(*rows, strict=True))
    found = np.empty(len(rows), np.int8)
    core.row_classes(margins, alpha, costs, by_margins, found)
    told = np.where(margins < 1.0, costs, 0.0) if by_margins else alpha
    assert found.tolist() == [expected(*row) for row in zip(margins, told, costs, strict=True)]
    assert len(set(found.tolist())) == (3 if by_margins else 4)
