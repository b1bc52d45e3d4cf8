# SPDX-License-Identifier: BSD-3-Clause
"""Data sets of the tests of estimators."""

from __future__ import annotations

import pytest
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import scale


@pytest.fixture(scope="session")
def breast_cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X), y


@pytest.fixture(scope="session")
def digits():
    X, y = load_digits(return_X_y=True)
    return X / 16.0, y
