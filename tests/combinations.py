# SPDX-License-Identifier: BSD-3-Clause
"""A sample of the combinations of several parameters in which every two values meet.

A fault rarely needs more than two particular values at a time: a loss and an intercept, a layout and a way
to solve. The full product of five parameters tries each such pair dozens of times, the sample about once.
"""

from __future__ import annotations

import itertools
from heapq import heapify, heapreplace

import pytest


def every_pair(possible=None, /, **axes):
    """Parametrise a test by combinations that hold every pair of values of every two axes.

    An axis is the name of a parameter and its values; one whose name does not show in ``str`` comes as
    ``pytest.param(value, id=name)``. A combination for which ``possible``, called with the parameters by
    name, is false does not count. The same axes give the same combinations every time.
    """
    named = [[_named(value) for value in values] for values in axes.values()]
    combinations, pairs, bit = [], [], {}
    for places in itertools.product(*(range(len(values)) for values in named)):
        values, names = zip(*(named[axis][place] for axis, place in enumerate(places)), strict=True)
        if possible is None or possible(**dict(zip(axes, values, strict=True))):
            combinations.append(pytest.param(*values, id="-".join(names)))
            numbers = (
                bit.setdefault(pair, len(bit)) for pair in itertools.combinations(enumerate(places), 2)
            )
            pairs.append(sum(1 << number for number in numbers))
    return pytest.mark.parametrize(list(axes), [combinations[place] for place in _covering(pairs)])


def _covering(sets):
    """The places of sets whose union is that of all, each of which adds the most to those before it.

    A set is a number: its bits say what it holds.
    """
    # What a set adds can only become less. So one whose count is up to date and still the largest is the
    # best of all; of equals, the first.
    waiting = [(-one.bit_count(), place) for place, one in enumerate(sets)]
    heapify(waiting)
    held = 0
    chosen = []
    while waiting and waiting[0][0] < 0:
        count, place = waiting[0]
        added = (sets[place] & ~held).bit_count()
        if added == -count:
            held |= sets[place]
            chosen.append(place)
            added = 0
        heapreplace(waiting, (-added, place))
    return chosen


def _named(value):
    """A value and what it is called in the name of a test."""
    if isinstance(value, type(pytest.param())):
        return value.values[0], value.id
    return value, getattr(value, "__name__", None) or str(value).replace(" ", "_")
