# SPDX-License-Identifier: BSD-3-Clause
"""Ctrl-C during a fit in chunks: before the rows are checked it is raised, and then a model is kept."""

from __future__ import annotations

import signal
import threading

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from maxmargin import Chunks, LinearSVC, Status
from maxmargin.tools import interrupts

pytestmark = [
    pytest.mark.usefixtures("ctrl_c", "in_passes"),
    pytest.mark.skipif(
        threading.current_thread() is not threading.main_thread(), reason="only the main thread has signals"
    ),
]
PARTS = 40


def interrupted_at(part, passes=1):
    """Chunks of which one, in one of the passes over them, comes with Ctrl-C; and what was read."""
    read = []

    def parts():
        begun = len(read) // PARTS + 1
        for number in range(PARTS):
            generator = np.random.default_rng(number)
            X = generator.normal(size=(200, 4))
            read.append(number)
            if begun == passes and number == part:
                signal.raise_signal(signal.SIGINT)
            yield X, (X[:, 0] + generator.normal(size=200) > 0.0).astype(int)

    return Chunks(parts, rows=200), read


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_rows_that_are_not_checked_make_no_model(loss):
    chunks, read = interrupted_at(5)
    model = LinearSVC(loss=loss, n_jobs=1)
    with pytest.raises(KeyboardInterrupt):
        model.fit(chunks)
    assert read == list(range(6))
    assert not hasattr(model, "coef_")
    assert interrupts._holding is None
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_later_pass_is_given_up_and_leaves_a_model(loss):
    chunks, read = interrupted_at(5, passes=2)
    model = LinearSVC(loss=loss, n_jobs=1, tol=1e-9)
    with pytest.warns(ConvergenceWarning, match="interrupted after 1 passes"):
        model.fit(chunks)
    assert model.status_ is Status.INTERRUPTED
    assert len(read) < PARTS + 10
    assert 0.0 <= model.certificate_.dual <= model.certificate_.primal
