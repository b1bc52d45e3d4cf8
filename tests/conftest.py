# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of more than one file: the command in this process, in words and as JSON; a browser; Ctrl-C."""

from __future__ import annotations

import json
import os
import shutil
import signal
from dataclasses import replace

import pytest
from hypothesis import settings

# A process of the tests has one core. Threads of BLAS and of OpenMP on it would wait for each other by
# spinning. This comes before the imports of NumPy, LIBSVM and others, which read it once.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import numpy as np

from maxmargin.command_line import main
from saved_models import SavedModels

# The same examples in every run, and no clock: the tests also run under the sanitizers.
settings.register_profile("maxmargin", deadline=None, derandomize=True, database=None)
settings.load_profile("maxmargin")


SAVED = SavedModels()
SAVED.watch()


def pytest_sessionfinish(session):
    """A process of the tests hands its counts to the one that tells them."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["saved"] = [dict(SAVED.counts), SAVED.seconds]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error):
    """They are added up here."""
    counts, seconds = getattr(node, "workeroutput", {}).get("saved", [{}, 0.0])
    SAVED.counts.update(counts)
    SAVED.seconds += seconds


def pytest_terminal_summary(terminalreporter):
    """How many saved models were judged, and why others were not."""
    if SAVED.counts:
        terminalreporter.write_line(SAVED.lines())


@pytest.fixture(autouse=True)
def same_draws_in_every_run():
    """Estimators without a ``random_state`` draw a seed from NumPy's generator: it begins anew here."""
    np.random.seed(0)  # noqa: NPY002


@pytest.fixture
def run(capsys):
    """Exit code, stdout and stderr of a command."""

    def run(*arguments):
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        output = capsys.readouterr()
        assert "Traceback" not in output.err
        return ended.value.code, output.out, output.err

    return run


@pytest.fixture
def answer(run):
    """The JSON answer, and the exit code."""

    def answer(*arguments):
        code, out, err = run(*arguments, "--json")
        assert err == ""
        return code, json.loads(out)

    return answer


@pytest.fixture(scope="session")
def chromium():
    """The system's Chromium, driven by Playwright; without one, tests skip and say so."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright drives the browser")
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("there is no Chromium on this machine: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def ctrl_c():
    """Python's own handler of SIGINT, which whatever runs the tests may have replaced."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def in_passes(monkeypatch):
    """Fits of chunks are made in passes, though all rows would have room in memory."""
    from maxmargin.chunks.memory import Memory

    room = Memory.room.fget
    monkeypatch.setattr(Memory, "room", property(lambda self: replace(room(self), whole=0)))
