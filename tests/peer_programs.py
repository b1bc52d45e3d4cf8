# SPDX-License-Identifier: BSD-3-Clause
"""Data for LIBLINEAR and LIBSVM, and what their models say of them."""

from __future__ import annotations

import numpy as np
from liblinear import liblinearutil
from libsvm import svmutil
from scipy import sparse
from sklearn.datasets import make_classification

ATOL = 1e-10


def data_of(classes, seed=0, labels=(7, -3, 12, 5)):
    X, y = make_classification(
        90, 6, n_informative=4, n_classes=classes, n_clusters_per_class=1, random_state=seed, flip_y=0.2
    )
    X[:, 4] = 0.0
    return X, np.array(labels)[y]


def as_rows(X):
    return sparse.csr_matrix(X)


def liblinear_values(model, X):
    labels, _, values = liblinearutil.predict([], as_rows(X), model, "-q")
    return np.array(labels), np.array(values)


def libsvm_values(model, X):
    labels, _, values = svmutil.svm_predict([], as_rows(X), model, "-q")
    return np.array(labels), np.array(values)
