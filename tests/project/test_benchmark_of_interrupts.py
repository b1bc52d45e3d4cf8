# SPDX-License-Identifier: BSD-3-Clause
"""``python -m benchmarks interrupts``: that it tells models that are kept from those that are lost."""

from __future__ import annotations

import signal
import threading
import time

import numpy as np
import pytest

from benchmarks import interrupts
from benchmarks.__main__ import main
from maxmargin import LinearSVC
from maxmargin.tools.interrupts import held_back

pytestmark = pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(), reason="only the main thread has signals"
)
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(4000, 40))
Y = np.where(X[:, 0] + RANDOM.normal(size=4000) > 0.0, 1, -1)


def work(seconds, held=None):
    """Use the processor for so long, or until Ctrl-C."""
    start = time.process_time()
    while time.process_time() - start < seconds and not (held is not None and held.came):
        pass


class Loses(LinearSVC):
    """Ctrl-C takes the model from it."""

    def fit(self, X, y):
        with held_back() as held:
            work(0.1, held)
        if held.came:
            raise KeyboardInterrupt
        return super().fit(X, y)


class Waits(LinearSVC):
    """It works on after Ctrl-C."""

    def fit(self, X, y):
        with held_back() as held:
            work(0.1, held)
            work(0.4 * held.came)
            return super().fit(X, y)


def of(estimator):
    return interrupts.Case(lambda: (estimator, X, Y))


def lines(page):
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if "|" in line]


def test_the_page_counts_what_became_of_the_models(tmp_path, monkeypatch):
    cases = {"whole": of(LinearSVC(loss="hinge", solver="dual_coordinate_ascent", tol=1e-9, max_iter=300))}
    monkeypatch.setattr(interrupts, "CASES", cases)
    before = signal.getsignal(signal.SIGINT)
    assert main(["interrupts", "--draws", "4", "--output", str(tmp_path)]) == 0
    assert signal.getsignal(signal.SIGINT) is before
    page = (tmp_path / "interrupts.md").read_text()
    (row,) = [cells for cells in lines(page) if cells[0] == "whole"]
    draws, early, kept, whole, unchosen, lost = map(int, row[2:8])
    assert draws == 4 == early + kept + whole
    assert kept > 0
    assert unchosen == lost == 0
    assert "What was lost" not in page


def test_models_that_are_lost_and_fits_that_are_late_are_found(tmp_path, monkeypatch):
    monkeypatch.setattr(interrupts, "CASES", {"loses": of(Loses()), "waits": of(Waits())})
    assert main(["interrupts", "--draws", "2", "--output", str(tmp_path)]) == 1
    page = (tmp_path / "interrupts.md").read_text()
    loses, waits = (cells for cells in lines(page) if cells[0] in ("loses", "waits"))
    assert loses[7] == "**2**"
    assert "* loses: no model" in page
    assert waits[7] == "0"
    assert waits[8].startswith("**0.4")


def test_a_search_that_has_not_chosen_loses_nothing(tmp_path, monkeypatch):
    case = interrupts.Case(lambda: (Loses(), X, Y), chooses=True)
    monkeypatch.setattr(interrupts, "CASES", {"loses": case})
    assert main(["interrupts", "--draws", "1", "--output", str(tmp_path)]) == 0
    (row,) = [cells for cells in lines((tmp_path / "interrupts.md").read_text()) if cells[0] == "loses"]
    assert row[6:8] == ["1", "0"]
