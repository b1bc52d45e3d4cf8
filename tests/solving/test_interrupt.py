# SPDX-License-Identifier: BSD-3-Clause
"""Ctrl-C comes back at once, with the best certified model so far and nothing lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")

# A run under the sanitizers is several times slower, and so is what an interrupt waits for.
SLOWER = 6.0 if "asan" in os.environ.get("LD_PRELOAD", "") else 1.0
LIMIT = 0.5 * SLOWER

# Seconds are those of the processor where these are fewer: other work on the machine is no fault of ours.
INTERRUPTED = """
import json, os, signal, sys, threading, time, warnings
import numpy as np
from maxmargin import LinearSVC, Problem, solve

wait, runs = json.loads(sys.argv[1])

def interrupted(fit):
    sent = []

    def interrupt():
        sent.extend([time.perf_counter(), time.process_time()])
        os.kill(os.getpid(), signal.SIGINT)

    threading.Timer(wait, interrupt).start()
    answer = fit()
    return answer, min(time.perf_counter() - sent[0], time.process_time() - sent[1])
"""


def answers_of(child, wait, runs):
    """What a process of its own says of each run, one line of JSON each."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED + child, json.dumps([wait * SLOWER, runs])],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return zip(runs, map(json.loads, done.stdout.splitlines()), strict=True)


# The rows are windows into one buffer, so that the problem is large and its data are not.
SOLVE = """
for name, rows, every in runs:
    random = np.random.default_rng(0)
    buffer = random.standard_normal(rows + 199, dtype=np.float32)
    X = np.lib.stride_tricks.sliding_window_view(buffer, 200)
    problem = Problem.of(X, np.where(random.random(rows) < 0.5, 1.0, -1.0))
    model, seconds = interrupted(
        lambda: solve(problem, name, tol=0.0, max_steps=10**9, certify_every=every)
    )
    proof = model.certificate
    values = proof.relative_gap, proof.primal, problem.primal(model.w, model.b)
    print(json.dumps([model.status.name, model.message, seconds, *values]))
"""


def test_interrupt_returns_a_certified_model_at_once():
    runs = [
        ("dual_coordinate_ascent", 400_000, 10**9),  # before the first certificate
        ("dual_coordinate_ascent", 1_500_000, 10**9),  # in the middle of a long sweep
        ("dual_coordinate_ascent", 400_000, 2),  # with one to fall back on
        ("pegasos", 100_000, 10**9),
        ("stochastic_subgradient", 100_000, 10**9),
        ("subgradient", 100_000, 10**9),
        ("augmented_lagrangian", 100_000, 10**9),
        ("interior_point", 100_000, 10**9),
    ]
    for run, (status, message, seconds, gap, said, primal) in answers_of(SOLVE, 0.4, runs):
        assert status == "INTERRUPTED", run
        assert 0.0 < gap <= 1.0, run
        assert said == pytest.approx(primal, rel=1e-9), run
        assert "interrupted" in message, run
        assert seconds < LIMIT, run


FIT = """
for classes, jobs in runs:
    random = np.random.default_rng(0)
    X = random.standard_normal((60_000, 60), dtype=np.float32)
    y = np.argmax(X[:, :classes] + random.standard_normal((len(X), classes)), axis=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # By name: the automatic choice would be done before anybody could interrupt it.
        model = LinearSVC(
            loss="hinge", tol=0.0, max_iter=10**9, n_jobs=jobs, solver="dual_coordinate_ascent"
        )
        _, seconds = interrupted(lambda: model.fit(X, y))
    gap = model.certificate_.relative_gap
    print(json.dumps([model.status_.name, str(caught[-1].message), seconds, gap, len(model.coef_)]))
"""


def test_an_interrupted_fit_keeps_the_best_model_and_says_so():
    for run, (status, message, seconds, gap, models) in answers_of(FIT, 0.7, [(2, 1), (4, 1), (4, 2)]):
        assert status == "INTERRUPTED", run
        assert models == (1 if run[0] == 2 else run[0]), run
        assert 0.0 < gap <= 1.0, run
        assert "best certified model so far is kept" in message, run
        assert seconds < LIMIT, run
