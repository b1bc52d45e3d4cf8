# SPDX-License-Identifier: BSD-3-Clause
"""Our classes in the place of scikit-learn's, for programs whose imports cannot be changed."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from sklearn import svm

import maxmargin
from maxmargin import estimators
from maxmargin.estimators import parameter_types as takes

logger = logging.getLogger("maxmargin")

_theirs: dict[str, Any] = {}
"""The classes of scikit-learn that ours stand for, by their names; empty while nothing is patched."""


@dataclass(eq=False, repr=False)
class LinearSVC(estimators.LinearSVC):
    """``maxmargin.LinearSVC`` with the intercept of scikit-learn's: regularised by default."""

    regularize_intercept: takes.Flag = True


@dataclass(eq=False, repr=False)
class LinearSVR(estimators.LinearSVR):
    """``maxmargin.LinearSVR`` with the intercept of scikit-learn's: regularised by default."""

    regularize_intercept: takes.Flag = True


_OF_THEIR_PROBLEM: dict[str, Any] = {"LinearSVC": LinearSVC, "LinearSVR": LinearSVR}
"""What stands for a class whose default is another problem than that of scikit-learn."""


def patch() -> None:
    """Put our classes in the place of those of ``sklearn.svm`` that have the same name.

    A later ``from sklearn.svm import SVC`` then imports ``maxmargin.SVC``. What was imported before stays
    what it was, and so do models that were pickled. ``unpatch`` takes it back; the logger "maxmargin" tells
    of both at level INFO. The problems are those of scikit-learn: ``LinearSVC`` and ``LinearSVR`` are ours
    with ``regularize_intercept=True`` as the default. ``tol`` is a relative gap all the same.

    >>> import maxmargin
    >>> maxmargin.patch()
    >>> from sklearn.svm import SVC
    >>> SVC is maxmargin.SVC
    True
    >>> maxmargin.unpatch()
    """
    ours = [name for name in svm.__all__ if name in maxmargin.__all__ and name not in _theirs]
    for name in ours:
        _theirs[name] = getattr(svm, name)
        setattr(svm, name, _OF_THEIR_PROBLEM.get(name, getattr(maxmargin, name)))
    if ours:
        logger.info("sklearn.svm has the %s of maxmargin until maxmargin.unpatch().", ", ".join(ours))


def unpatch() -> None:
    """Give ``sklearn.svm`` its own classes back."""
    if _theirs:
        logger.info("sklearn.svm has its own %s again.", ", ".join(_theirs))
    for name, own in _theirs.items():
        setattr(svm, name, own)
    _theirs.clear()
