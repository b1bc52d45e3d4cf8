# SPDX-License-Identifier: BSD-3-Clause
"""Problems that Hypothesis draws, and points to certify on them."""

from __future__ import annotations

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from maxmargin.problem.losses import LOSSES
from problems import INTERCEPTS, Case

losses = st.sampled_from(sorted(LOSSES))
intercepts = st.sampled_from(INTERCEPTS)


@st.composite
def cases(draw, losses=losses, two_classes=False):
    """Small problems with rows, weights and costs of very different sizes, ties and zeros."""
    n, d = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = random.normal(size=(n, d)) * 10.0 ** draw(st.integers(-2, 2))
    if draw(st.booleans()):
        X = np.round(X)  # ties, empty rows, zero columns
    y = random.choice([-1.0, 1.0], size=n)
    weights = random.integers(0, 4, size=n).astype(np.float64) if draw(st.booleans()) else None
    case = Case(
        "drawn",
        X,
        y,
        C=10.0 ** draw(st.integers(-4, 3)),
        weights=weights,
        loss=draw(losses),
        intercept=draw(intercepts),
        intercept_scaling=draw(st.sampled_from([1.0, 0.2, 7.0])),
    )
    assume(case.costs.sum() > 0)
    if two_classes:
        assume(len(set(y[case.costs > 0])) == 2)
    return case


def any_w(case, seed, size=1.0):
    random = np.random.default_rng(seed)
    return size * random.normal(size=case.X.shape[1]) / (1.0 + np.abs(case.X).max())
