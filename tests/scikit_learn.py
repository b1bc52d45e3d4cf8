# SPDX-License-Identifier: BSD-3-Clause
"""scikit-learn's own checks of an estimator."""

from __future__ import annotations

import warnings

from sklearn.exceptions import ConvergenceWarning


def assert_passes(check, estimator):
    """Run one of the checks that ``parametrize_with_checks`` gives."""
    with warnings.catch_warnings():
        # Some checks fit with one iteration, on hostile data, or with a class of a single row, where the
        # warning is right.
        warnings.simplefilter("ignore", ConvergenceWarning)
        # Others skip themselves, or take a matrix of random numbers for a kernel's.
        warnings.simplefilter("ignore", UserWarning)
        check(estimator)
