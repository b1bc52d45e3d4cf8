# SPDX-License-Identifier: BSD-3-Clause
"""Small rankings: several queries, many or few relevances, ties, weights, a query with nothing to rank."""

from __future__ import annotations

import numpy as np


def ranked_rows(n=40, d=4, levels=4, queries=3, seed=0):
    """(X, y, query, weights), with rows of equal data, weights of 0 and a query of one relevance."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d)).round(2)
    X[1] = X[0]
    wish = X @ random.normal(size=d) + random.normal(size=n)
    y = np.floor(levels * wish.argsort().argsort() / n)
    query = random.integers(0, queries, n)
    y[query == queries - 1] = 1.0 if queries > 1 else y[query == queries - 1]
    weights = random.uniform(0.2, 2.0, n)
    weights[3] = 0.0
    return X, y, query, weights
