# SPDX-License-Identifier: BSD-3-Clause
"""Kernels by name and from files: what is written comes back, and nothing else is believed."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.kernels import (
    ChiSquared,
    Function,
    Gaussian,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Sigmoid,
)
from maxmargin.kernels.base import KERNEL_NAMES, kernel_from_name
from maxmargin.kernels.names import describe, from_description

KERNELS = [
    Linear(),
    Polynomial(4, 0.1, -2.5),
    Polynomial(0, 1.0, 0.0),
    Gaussian(1 / 3),
    Laplacian(1e-300),
    ChiSquared(7),
    Sigmoid(0.2, 0.1),
    Precomputed(),
    2.0 * Linear(),
    Linear() + 0.1 * Gaussian(1 / 3),
    (Linear() + Polynomial(2, 0.5, 1.0)) * (Laplacian(2.0) + 3.0 * ChiSquared(0.1)) * Sigmoid(0.1, 0.2),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_what_is_written_comes_back(kernel):
    text = json.dumps(describe(kernel), allow_nan=False)
    again = from_description(json.loads(text))
    assert again.terms == kernel.terms
    assert describe(again) == json.loads(text)
    if not isinstance(kernel, Precomputed):
        X = np.random.default_rng(0).random((5, 3))
        np.testing.assert_array_equal(again(X), kernel(X))


def test_values_of_numpy_become_plain():
    written = describe(Polynomial(np.int32(2), np.float32(0.5), np.int64(1)))
    assert written == {"kernel": "polynomial", "degree": 2, "gamma": 0.5, "coef0": 1.0}
    assert [type(value) for value in written.values()] == [str, int, float, float]


def test_names():
    assert kernel_from_name("linear") == Linear()
    assert kernel_from_name("poly", 2, 0.5, 1.0) == kernel_from_name("polynomial", 2, 0.5, 1.0)
    assert kernel_from_name("polynomial", 2, 0.5, 1.0) == Polynomial(2, 0.5, 1.0)
    assert kernel_from_name("rbf", gamma=0.5) == kernel_from_name("gaussian", gamma=0.5) == Gaussian(0.5)
    assert kernel_from_name("laplacian", gamma=0.5) == Laplacian(0.5)
    assert (
        kernel_from_name("chi2", gamma=0.5) == kernel_from_name("chi_squared", gamma=0.5) == ChiSquared(0.5)
    )
    assert kernel_from_name("sigmoid", gamma=0.5, coef0=1.0) == Sigmoid(0.5, 1.0)
    assert kernel_from_name("precomputed") == Precomputed()
    for name in KERNEL_NAMES:
        kernel_from_name(name)
    for wrong in ("cosine", "Linear", "", None, 3, ["rbf"]):
        with pytest.raises(ValueError, match=r"'kernel' parameter must be one of 'linear', .* instead"):
            kernel_from_name(wrong)
    with pytest.raises(ValueError, match="'gamma' parameter of Gaussian"):
        kernel_from_name("rbf", gamma=-1.0)


def test_what_cannot_be_written():
    with pytest.raises(ValueError, match=r"type Function cannot be written .*'precomputed'"):
        describe(Function(len))
    large = Linear() + Gaussian(1.0)
    for _ in range(10):
        large = large + large
    with pytest.raises(ValueError, match="more than 1000 terms"):
        describe(large)
    deep = Gaussian(1.0) * Gaussian(1.0)
    for _ in range(6):
        deep = deep * deep
    with pytest.raises(ValueError, match="more than 64 factors"):
        describe(deep)


SUM = describe(Linear() + 0.5 * Gaussian(0.25))


def changed(path, value):
    """``SUM`` with another value at a place, or with a key less if the value is ``KeyError``."""
    whole = copy.deepcopy(SUM)
    place = whole
    for key in path[:-1]:
        place = place[key]
    if value is KeyError:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return whole


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        [],
        "gaussian",
        {},
        {"kernel": "cosine"},
        {"kernel": ["gaussian"]},
        {"kernel": "gaussian"},
        {"kernel": "gaussian", "gamma": 1.0, "more": 1},
        {"kernel": "gaussian", "gamma": "1.0"},
        {"kernel": "gaussian", "gamma": True},
        {"kernel": "gaussian", "gamma": None},
        {"kernel": "gaussian", "gamma": -1.0},
        {"kernel": "gaussian", "gamma": float("nan")},
        {"kernel": "gaussian", "gamma": float("inf")},
        {"kernel": "gaussian", "gamma": 10**400},
        {"kernel": "polynomial", "degree": 2.0, "gamma": 1.0, "coef0": 0.0},
        {"kernel": "polynomial", "degree": 10**9, "gamma": 1.0, "coef0": 0.0},
        {"kernel": "polynomial", "degree": True, "gamma": 1.0, "coef0": 0.0},
        {"kernel": "sum"},
        {"kernel": "sum", "terms": []},
        {"kernel": "sum", "terms": {}},
        {"kernel": "sum", "terms": [None]},
        {"kernel": "sum", "terms": SUM["terms"] * 501},
        changed(["terms", 1, "coefficient"], 0.0),
        changed(["terms", 1, "coefficient"], -1.0),
        changed(["terms", 1, "coefficient"], "2"),
        changed(["terms", 1, "coefficient"], float("inf")),
        changed(["terms", 1, "coefficient"], KeyError),
        changed(["terms", 0, "factors"], []),
        changed(["terms", 0, "factors"], [{"kernel": "linear"}] * 65),
        changed(["terms", 0, "factors"], [{"kernel": "precomputed"}]),
        changed(["terms", 0, "factors", 0], SUM),
        changed(["terms", 0, "factors", 0, "kernel"], "x" * 10_000),
        changed(["words"], "Linear()"),
    ],
    ids=lambda wrong: repr(wrong)[:60],
)
def test_other_descriptions_are_refused(wrong):
    with pytest.raises(ValueError, match="must be") as caught:
        from_description(wrong)
    assert len(str(caught.value)) < 400


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from([*KERNEL_NAMES, "sum", "x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["kernel", "gamma", "degree", "coef0", "terms", "factors", "coefficient"]),
            inner,
        )
    ),
)


@given(plain)
@settings(max_examples=100)
def test_any_json_gives_a_kernel_or_a_sentence(value):
    try:
        kernel = from_description(value)
    except ValueError:
        return
    assert from_description(describe(kernel)).terms == kernel.terms
