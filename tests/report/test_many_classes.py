# SPDX-License-Identifier: BSD-3-Clause
"""The page of a model with more classes than a table has room for, and of data whose labels it lacks."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix

from maxmargin import LinearSVC
from well_formed import read

CLASSES = 18
Y = np.repeat(np.arange(CLASSES), 4)


@pytest.fixture(scope="module")
def model():
    """Points on a circle, a class each, of which two classes are the same."""
    place = np.where(Y == 1, 0, Y)
    X = np.c_[np.cos(place / 3.0), np.sin(place / 3.0)]
    return LinearSVC(C=100.0, tol=1e-2).fit(X, Y), X


def words_of(model, X, y, folder):
    model.report(folder / "page.html", X, y)
    return " ".join(" ".join(read((folder / "page.html").read_text("utf-8")).text).split())


def test_the_most_frequent_confusions_are_listed(model, tmp_path):
    model, X = model
    words = words_of(model, X, Y, tmp_path)
    counts = confusion_matrix(Y, model.predict(X))
    np.fill_diagonal(counts, 0)
    assert f"The most frequent confusions of {CLASSES} classes on the training data" in words
    true, predicted = np.unravel_index(counts.argmax(), counts.shape)
    assert f"{true} taken for {predicted} {counts.max()}" in words
    assert "the lowest recall first; 3 more are not shown" in words


def test_no_confusion_and_no_known_label(model, tmp_path):
    model, X = model
    right = model.predict(X) == Y
    words = words_of(model, X[right], Y[right], tmp_path)
    assert "is taken for another class" in words
    words = words_of(model, X, Y + 100, tmp_path)
    assert "None of the labels is one of the model's classes, so there is no accuracy to tell." in words
