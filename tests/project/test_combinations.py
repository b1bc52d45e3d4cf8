# SPDX-License-Identifier: BSD-3-Clause
"""The sample of combinations holds every pair that is possible, and few others twice."""

from __future__ import annotations

import itertools

import pytest

from combinations import every_pair

AXES = {
    "loss": ("hinge", "logistic"),
    "intercept": range(3),
    "layout": tuple("abcde"),
    "way": (len, max, min),
}


def not_both(loss, layout, **others):
    return (loss, layout) != ("hinge", "a")


def test_every_possible_pair_of_values_occurs():
    for possible in (None, not_both):
        names, chosen = every_pair(possible, **AXES).args
        assert names == list(AXES)
        combinations = [dict(zip(AXES, parameters.values, strict=True)) for parameters in chosen]
        for (one, these), (other, those) in itertools.combinations(AXES.items(), 2):
            met = {(combination[one], combination[other]) for combination in combinations}
            expected = set(itertools.product(these, those))
            if possible:
                expected.discard(("hinge", "a"))
            assert met == expected
        assert 15 <= len(combinations) <= 18  # 5 layouts with 3 ways, at least; 90 in all
        assert chosen == every_pair(possible, **AXES).args[1]


def test_names_are_those_of_the_values():
    one, other = ["a b", len], [pytest.param(1.5, id="much")]
    parameters = every_pair(one=one, other=other).args[1]
    assert [parameter.id for parameter in parameters] == ["a_b-much", "len-much"]
    assert [parameter.values for parameter in parameters] == [("a b", 1.5), (len, 1.5)]
