# SPDX-License-Identifier: BSD-3-Clause
"""Kernels of things that are not rows of numbers (003, 004): text, sets, distributions and functions.

A kernel is a similarity with a phi behind it. Each of these is a plain function that returns the matrix of
all values; ``SVC`` takes it as it is, and the things with it.
"""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin import SVC


def shared_words(texts, others, k=3):
    """Text and DNA: phi counts the words of k letters, the kernel those that two texts share."""

    def counts(text):
        words = [text[i : i + k] for i in range(len(text) - k + 1)]
        return {word: words.count(word) for word in words}

    left, right = [counts(text) for text in texts], [counts(text) for text in others]
    return np.array([[sum(n * b.get(word, 0) for word, n in a.items()) for b in right] for a in left])


def intersection(sets, others):
    """Sets: phi has a coordinate for every element, so |A and B| is an inner product."""
    return np.array([[len(a & b) for b in others] for a in sets])


def jaccard(sets, others):
    """Sets: |A and B| / |A or B|, the same without an advantage for large sets."""
    return np.array([[len(a & b) / len(a | b) for b in others] for a in sets])


def bhattacharyya(histograms, others):
    """Distributions: phi(p) = sqrt(p), of length 1; the kernel is 1 for equal and 0 for disjoint ones."""
    return np.sqrt(np.asarray(histograms)) @ np.sqrt(np.asarray(others)).T


def expected_likelihood(normals, others):
    """Distributions: phi(p) = p, and the integral of p q; of two normal ones it is a normal density."""
    (m, s), (n, t) = (np.transpose(part) for part in (normals, others))
    variance = s[:, None] ** 2 + t**2
    return np.exp(-((m[:, None] - n) ** 2) / (2 * variance)) / np.sqrt(2 * np.pi * variance)


GRID = np.linspace(0.0, 1.0, 101)


def inner_product(functions, others):
    """Functions on [0, 1]: phi(f) = f, and the integral of f g, here by its values on a grid."""
    values, other_values = ([f(GRID) for f in part] for part in (functions, others))
    return np.asarray(values) @ np.asarray(other_values).T / len(GRID)


def things(name, n, random):
    """n examples and their labels."""
    y = np.arange(n) % 2
    if name == "text":
        motif = ["GATTACA", "CCATGGC"]
        ends = ["".join(random.choice(list("ACGT"), 8)) for _ in range(2 * n)]
        return [ends[2 * i] + motif[y[i]] + ends[2 * i + 1] for i in range(n)], y
    if name in ("sets", "jaccard"):
        usual = [("bread", "milk", "egg", "flour"), ("nail", "hammer", "saw", "glue")]
        others = ["salt", "lamp", "soap"]
        return [{*random.choice(usual[label], 2, replace=False), random.choice(others)} for label in y], y
    if name == "histograms":
        steepness = np.where(y == 1, 1.0, -1.0)[:, None] * np.linspace(-1, 1, 12)
        return random.dirichlet(np.ones(12), n) * 0.5 + 0.5 * np.exp(steepness) / np.exp(steepness).sum(
            axis=1, keepdims=True
        ), y
    if name == "normals":
        return np.column_stack([0.5 * random.normal(size=n), np.where(y == 1, 2.0, 0.3)]), y
    slopes = np.where(y == 1, 1.0, -1.0) * random.uniform(0.5, 1.5, n)
    return [
        lambda t, a=a, c=c: a * t + c * np.sin(9 * t)
        for a, c in zip(slopes, random.normal(size=n), strict=True)
    ], y


KERNELS = {
    "text": shared_words,
    "sets": intersection,
    "jaccard": jaccard,
    "histograms": bhattacharyya,
    "normals": expected_likelihood,
    "functions": inner_product,
}


@pytest.mark.parametrize("name", KERNELS)
def test_things_are_told_apart_with_a_proof(name):
    kernel, random = KERNELS[name], np.random.default_rng(0)
    X, y = things(name, 40, random)
    X_test, y_test = things(name, 40, random)
    model = SVC(kernel=kernel, C=10.0).fit(X, y)
    assert model.certificate_.relative_gap <= 1e-3
    assert model.certificate_.proven
    assert model.score(X_test, y_test) >= 0.9
    # The same problem by its matrices, since nothing but the values counts.
    given = SVC(kernel="precomputed", C=10.0).fit(kernel(X, X), y)
    np.testing.assert_allclose(
        model.decision_function(X_test), given.decision_function(kernel(X_test, X)), atol=1e-9
    )


@pytest.mark.parametrize("name", KERNELS)
def test_similarities_are_kernels(name):
    X, _ = things(name, 30, np.random.default_rng(1))
    K = KERNELS[name](X, X)
    np.testing.assert_allclose(K, K.T)
    assert np.linalg.eigvalsh(K.astype(float)).min() >= -1e-9 * np.abs(K).max()


def test_values_by_hand():
    assert shared_words(["GATTACA"], ["ATTAC", "GATGATGAT"]).tolist() == [[3, 3]]
    assert jaccard([{1, 2, 3}], [{2, 3, 4}, {5}, {1, 2, 3}]).tolist() == [[0.5, 0.0, 1.0]]
    assert bhattacharyya([[0.5, 0.5, 0.0]], [[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]) == pytest.approx(
        np.array([[1.0, 0.0]])
    )
    t = np.linspace(-10.0, 10.0, 20001)
    p, q = (
        np.exp(-((t - m) ** 2) / (2 * s**2)) / np.sqrt(2 * np.pi) / s for m, s in ((0.0, 1.0), (1.0, 0.5))
    )
    assert expected_likelihood([(0.0, 1.0)], [(1.0, 0.5)])[0, 0] == pytest.approx(np.sum(p * q) * 1e-3)
    ours = inner_product([lambda t: t], [lambda t: 1.0 - t])[0, 0]
    assert ours == pytest.approx(1.0 / 6.0, abs=0.01)
