# SPDX-License-Identifier: BSD-3-Clause
"""A fit in chunks stays within its memory, and its sample stands for all rows alike."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from maxmargin import Chunks, LinearSVC
from maxmargin.chunks import memory, survey
from maxmargin.chunks.band import BandShare
from maxmargin.chunks.passes import LocalPasses
from maxmargin.chunks.survey import Room, survey_of
from maxmargin.files import pack
from peak_memory import needs_proc


def drawn(parts, rows=5000, columns=10):
    for seed in range(parts):
        generator = np.random.default_rng(seed)
        X = generator.normal(size=(rows, columns))
        yield X, X[:, 0] + 0.5 * generator.normal(size=rows) > 0


def test_a_sample_of_data_whose_size_is_not_known_stands_for_all_parts_alike():
    passes = LocalPasses(Chunks(lambda: drawn(40), rows=5000), 1)
    facts, sample = survey_of(passes, Room(400_000), 0)
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

path = sys.argv[1] if len(sys.argv) > 1 else None

def drawn(parts):
    for seed in range(parts):
        generator = np.random.default_rng(seed)
        X = generator.normal(size=(5000, 20))
        yield X, X[:, 0] + 0.5 * generator.normal(size=5000) > 0

for loss in ("hinge", "squared_hinge"):
    LinearSVC(loss=loss).fit(Chunks(lambda: drawn(2), memory=4_000_000))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for loss in ("hinge", "squared_hinge"):
    LinearSVC(loss=loss, tol=1e-3).fit(Chunks(path or (lambda: drawn(100)), memory=48_000_000))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the largest resident size is told in other units")
@pytest.mark.parametrize("packed", [False, True], ids=["function", "packed file"])
def test_a_fit_takes_no_more_than_its_memory(tmp_path, packed):
    command = [sys.executable, "-c", MEASURED]
    if packed:  # the blocks that are read count, too
        pack(lambda: drawn(100, columns=20), tmp_path / "rows.mmd")
        command.append(str(tmp_path / "rows.mmd"))
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    # The data have 80 MB; they are never held at once.
    assert 1024 * int(ran.stdout) <= 48_000_000


LIMITED = """
import resource, sys, warnings
from pathlib import Path
from maxmargin import Chunks, LinearSVC

path, loss, memory = sys.argv[1], sys.argv[2], int(sys.argv[3])
warnings.simplefilter("ignore")
# BLAS takes room for each of its threads at the first call of a fit in passes, and keeps it.
LinearSVC(loss=loss, tol=1e-2, n_jobs=1).fit(Chunks(path + ".small", memory=memory))
lines = Path("/proc/self/status").read_text().splitlines()
held = 1024 * int(next(line.split()[1] for line in lines if line.startswith("VmData")))
resource.setrlimit(resource.RLIMIT_DATA, (held + memory, held + memory))
try:
    bytearray(4 * memory)
    raise SystemExit("the limit is none")
except MemoryError:
    pass
model = LinearSVC(loss=loss, tol=1e-3, n_jobs=1).fit(Chunks(path, memory=memory))
print(model.status_.name, model.certificate_.rows_read)
"""


@needs_proc
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize(("rows", "columns", "memory"), [(5000, 20, 32_000_000), (20_000, 2, 16_000_000)])
def test_a_fit_ends_where_the_system_gives_no_more_than_its_memory(tmp_path, loss, rows, columns, memory):
    # 80 MB of values; and 32 MB of rows so short that what is held beside their values is more.
    pack(lambda: drawn(100, rows, columns), tmp_path / "rows.mmd")
    pack(lambda: drawn(12, rows, columns), tmp_path / "rows.mmd.small")
    command = [sys.executable, "-c", LIMITED, str(tmp_path / "rows.mmd"), loss, str(memory)]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.stdout == f"CERTIFIED {100 * rows}\n", ran.stderr


OF_MANY_COLUMNS = """
import sys, warnings
from pathlib import Path
import numpy as np
from scipy import sparse
from maxmargin import Chunks, LinearSVC

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line.split()[1] for line in lines if line.startswith("VmHWM")))

def drawn(rows, columns, classes, density):
    generator = np.random.default_rng(0)
    X = sparse.random(rows, columns, density, format="csr", random_state=1)
    return X, generator.integers(0, classes, rows)

warnings.simplefilter("ignore")
for loss in ("hinge", "squared_hinge"):
    LinearSVC(loss=loss).fit(Chunks(drawn(400, 20, 2, 1.0), rows=100))
rows, columns, classes, density = map(float, sys.argv[2].split())
data = drawn(int(rows), int(columns), int(classes), density)
Path("/proc/self/clear_refs").write_text("5")  # forget the peak of drawing them
before = peak()
memory = int(sys.argv[1])
LinearSVC(loss=sys.argv[3], tol=1e-3, max_iter=6, n_jobs=2).fit(Chunks(data, memory=memory))
print(peak() - before)
"""


@needs_proc
@pytest.mark.parametrize(
    ("memory", "shape", "loss"),
    [
        (90_000_000, (3000, 60_000, 20, 0.002), "squared_hinge"),
        (90_000_000, (8000, 700, 10, 0.2), "logistic"),
        (60_000_000, (8000, 700, 10, 0.2), "hinge"),
    ],
)
def test_what_solvers_of_several_classes_need_beside_the_rows_is_counted(memory, shape, loss):
    command = [sys.executable, "-c", OF_MANY_COLUMNS, str(memory), " ".join(map(str, shape)), loss]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(ran.stdout) <= 1.3 * memory


@pytest.mark.usefixtures("in_passes")
def test_classes_that_memory_has_no_room_for_at_once_come_one_after_the_other():
    X = sparse.random(600, 6000, 0.01, format="csr", random_state=0)
    y = np.random.default_rng(0).integers(0, 6, 600)

    def fitted(memory):
        model = LinearSVC(tol=1e-2).fit(Chunks((X, y), rows=150, memory=memory))
        assert model.status_.certified
        return model.n_iter_

    assert fitted(4_000_000) > fitted(100_000_000)


def test_too_little_memory_for_the_answers_is_refused_with_what_is_needed():
    X = sparse.random(50, 200_000, 1e-4, format="csr", random_state=0)
    y = np.arange(50) % 10
    with pytest.raises(ValueError, match=r"memory must be at least \d+ for 10 problems of 200000 columns"):
        LinearSVC().fit(Chunks((X, y), memory=20_000_000))


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_no_number_of_rows_is_refused_where_they_are_narrow(loss):
    facts, _ = survey_of(LocalPasses(Chunks(lambda: drawn(1))), Room(400_000), 0)
    for columns, nbytes in ((1, 4), (20, 80)):
        large = replace(facts, rows=10**11, columns=columns, nbytes=nbytes * 10**11)
        for limit in (10**7, 10**9):
            sampled = limit // 16 // nbytes
            assert memory.Memory(limit).together(large, sampled, loss, 2) >= 1


@pytest.mark.usefixtures("in_passes")
@pytest.mark.parametrize("noise", [0.2, 2.0])
def test_the_first_band_is_no_larger_than_the_sample_is_unsure_and_takes_no_more_passes(monkeypatch, noise):
    generator = np.random.default_rng(3)
    X = generator.normal(size=(40_000, 10)) * np.exp(generator.normal(size=10))
    y = X @ generator.normal(size=10) + noise * generator.standard_t(3, size=40_000) > 0.4
    held = []

    def fitted():
        model = LinearSVC(loss="hinge", tol=1e-3).fit(Chunks((X, y), rows=5000, memory=10**9))
        assert model.status_.certified
        return model.n_iter_

    whole = BandShare.band
    monkeypatch.setattr(BandShare, "band", lambda self: held.append(self.count) or whole(self))
    passes, first = fitted(), held[0]
    held.clear()
    monkeypatch.setattr(survey, "_SPREADS", 1e9)  # the band as wide as the memory allows
    assert passes <= fitted()
    assert first < held[0] / 2
