# SPDX-License-Identifier: BSD-3-Clause
"""How many Python files one has to open to follow a fit from its call to its certificate.

A small fit is followed through every file. One that goes through the loop is followed up to the contracts:
what a solver does inside a step (also the one that hands over to another), or a kernel for a value, is a
thought of its own, so that each of these two counts as one file; the checks in tools/, the door to the
compiled core and what is told of a model once it is proven are not counted.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest
from sklearn.datasets import load_iris, make_classification

import maxmargin
from maxmargin import SVC, LinearSVC

HOME = Path(maxmargin.__file__).parent
LIMITS = {LinearSVC: 15, SVC: 16}
IRIS = load_iris(return_X_y=True)
TWO = IRIS[0][:100], IRIS[1][:100]
MEDIUM = make_classification(5000, 40, n_informative=10, random_state=0)


def visited(model, X, y):
    """The files of the package in which a function ran during a fit; an import alone does not count."""
    seen = set()

    def look(frame, event, argument):
        if frame.f_code.co_name != "<module>":
            seen.add(frame.f_code.co_filename)

    threading.setprofile(look)
    sys.setprofile(look)
    try:
        model.fit(X, y)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    files = (Path(name) for name in seen if name.startswith(str(HOME)))
    return sorted(str(file.relative_to(HOME)) for file in files)


def rooms(files):
    """The files up to the contracts of solvers and kernels."""
    closed = {"solving/hand_over.py": "solvers/", "solvers/": "solvers/", "kernels/": "kernels/"}
    kept = {next((closed[room] for room in closed if file.startswith(room)), file) for file in files}
    aside = "tools/", "telling/", "core.py"
    return sorted(file for file in kept if not file.startswith(aside))


@pytest.mark.parametrize("data", [TWO, IRIS], ids=["two classes", "three classes"])
@pytest.mark.parametrize("kind", LIMITS)
def test_a_small_fit_is_followed_in_few_files(kind, data):
    files = visited(kind(), *data)
    assert "proof/certificate.py" in files
    assert len(files) <= LIMITS[kind], files


@pytest.mark.parametrize("kind", LIMITS)
def test_a_fit_through_the_loop_is_followed_in_few_files(kind):
    files = visited(kind(), *MEDIUM)
    assert "solving/loop.py" in files
    assert len(rooms(files)) <= LIMITS[kind], rooms(files)
