# SPDX-License-Identifier: BSD-3-Clause
"""A fit in chunks stays within its memory, and its sample stands for all rows alike."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from maxmargin import Chunks, LinearSVC
from maxmargin.chunks.passes import LocalPasses
from maxmargin.chunks.survey import survey_of


def drawn(parts, rows=5000):
    for seed in range(parts):
        generator = np.random.default_rng(seed)
        X = generator.normal(size=(rows, 10))
        yield X, X[:, 0] + 0.5 * generator.normal(size=rows) > 0


def test_a_sample_of_data_whose_size_is_not_known_stands_for_all_parts_alike():
    passes = LocalPasses(Chunks(lambda: drawn(40), rows=5000), 1)
    facts, sample = survey_of(passes, 400_000, 0)
    assert facts.rows == 200_000
    assert sample.count <= 6100
    assert sample.stands_for.sum() == pytest.approx(facts.rows, rel=0.1)
    # Leverage makes some rows rarer than others, but no chunk: weights of one size would be far apart.
    assert sample.stands_for.max() < 4.0 * np.median(sample.stands_for)


def test_the_hinge_converges_where_memory_holds_few_of_the_rows():
    model = LinearSVC(loss="hinge", tol=1e-3).fit(Chunks(lambda: drawn(40), memory=4_000_000))
    assert model.status_.certified
    assert model.n_iter_ <= 10


MEASURED = """
import resource, sys
import numpy as np
from maxmargin import Chunks, LinearSVC

def drawn(parts):
    for seed in range(parts):
        generator = np.random.default_rng(seed)
        X = generator.normal(size=(5000, 20))
        yield X, X[:, 0] + 0.5 * generator.normal(size=5000) > 0

for loss in ("hinge", "squared_hinge"):
    LinearSVC(loss=loss).fit(Chunks(lambda: drawn(2), memory=4_000_000))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for loss in ("hinge", "squared_hinge"):
    LinearSVC(loss=loss, tol=1e-3).fit(Chunks(lambda: drawn(100), memory=48_000_000))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the largest resident size is told in other units")
def test_a_fit_takes_no_more_than_its_memory():
    ran = subprocess.run([sys.executable, "-c", MEASURED], capture_output=True, text=True, check=True)
    # The data have 80 MB; they are never held at once.
    assert 1024 * int(ran.stdout) <= 48_000_000
