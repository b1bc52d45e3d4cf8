# SPDX-License-Identifier: BSD-3-Clause
"""Ctrl-C comes back at once, with the best certified model so far and nothing lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

# A run under the sanitizers is several times slower, and so is what an interrupt waits for.
SLOWER = 6.0 if "asan" in os.environ.get("LD_PRELOAD", "") else 1.0
LIMIT = 0.5 * SLOWER

# Seconds are those of the processor where these are fewer: other work on the machine is no fault of ours.
# The rows are windows into one buffer, so that the problem is large and its data are not.
CHILD = """
import os, signal, sys, threading, time
import numpy as np
from maxmargin import Problem, Status, solve

name, rows, every, wait = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
random = np.random.default_rng(0)
buffer = random.standard_normal(rows + 199, dtype=np.float32)
X = np.lib.stride_tricks.sliding_window_view(buffer, 200)
problem = Problem.of(X, np.where(random.random(rows) < 0.5, 1.0, -1.0))
sent = []

def interrupt():
    sent.extend([time.perf_counter(), time.process_time()])
    os.kill(os.getpid(), signal.SIGINT)

threading.Timer(wait, interrupt).start()
model = solve(problem, name, tol=0.0, max_steps=10**9, certify_every=every)
elapsed = min(time.perf_counter() - sent[0], time.process_time() - sent[1])
gap = model.certificate.relative_gap
print(model.status.name, gap, elapsed, problem.primal(model.w, model.b))
print(model.certificate.primal, model.message)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGINT") or os.name == "nt", reason="needs POSIX signals")
@pytest.mark.parametrize(
    ("name", "rows", "certify_every"),
    [
        ("dual_coordinate_ascent", 400_000, 10**9),  # before the first certificate
        ("dual_coordinate_ascent", 1_500_000, 10**9),  # in the middle of a long sweep
        ("dual_coordinate_ascent", 400_000, 2),  # with one to fall back on
        ("pegasos", 100_000, 10**9),
        ("stochastic_subgradient", 100_000, 10**9),
        ("subgradient", 100_000, 10**9),
        ("augmented_lagrangian", 200_000, 10**9),
        ("interior_point", 100_000, 10**9),
    ],
)
def test_interrupt_returns_a_certified_model_at_once(name, rows, certify_every):
    wait = 0.7 * SLOWER
    child = subprocess.run(
        [sys.executable, "-c", CHILD, name, str(rows), str(certify_every), str(wait)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert child.returncode == 0, child.stderr
    first, second = child.stdout.splitlines()
    status, gap, elapsed, primal = first.split()
    assert status == "INTERRUPTED"
    assert 0.0 < float(gap) <= 1.0
    assert float(primal) == pytest.approx(float(second.split()[0]), rel=1e-9)
    assert "interrupted" in second
    assert float(elapsed) < LIMIT


FIT = """
import os, signal, sys, threading, time, warnings
import numpy as np
from maxmargin import LinearSVC

classes, jobs, wait = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
random = np.random.default_rng(0)
X = random.standard_normal((60_000, 60), dtype=np.float32)
y = np.argmax(X[:, :classes] + random.standard_normal((len(X), classes)), axis=1)
sent = []

def interrupt():
    sent.extend([time.perf_counter(), time.process_time()])
    os.kill(os.getpid(), signal.SIGINT)

threading.Timer(wait, interrupt).start()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    # By name: the automatic choice would be done before anybody could interrupt it.
    model = LinearSVC(
        loss="hinge", tol=0.0, max_iter=10**9, n_jobs=jobs, solver="dual_coordinate_ascent"
    ).fit(X, y)
elapsed = min(time.perf_counter() - sent[0], time.process_time() - sent[1])
print(elapsed, model.status_.name, model.coef_.shape[0])
print(model.certificate_.relative_gap, caught[-1].message)
"""


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
@pytest.mark.parametrize(("classes", "jobs"), [(2, 1), (4, 1), (4, 2)])
def test_an_interrupted_fit_keeps_the_best_model_and_says_so(classes, jobs):
    arguments = [str(classes), str(jobs), str(1.0 * SLOWER)]
    child = subprocess.run(
        [sys.executable, "-c", FIT, *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    assert child.returncode == 0, child.stderr
    first, second = child.stdout.splitlines()
    elapsed, status, models = first.split()
    assert status == "INTERRUPTED"
    assert int(models) == (1 if classes == 2 else classes)
    assert 0.0 < float(second.split()[0]) <= 1.0
    assert "best certified model so far is kept" in second
    assert float(elapsed) < LIMIT
