# SPDX-License-Identifier: BSD-3-Clause
"""The state of a fit on the disk: what was killed goes on, and comes to the same bits."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import warnings
import zlib

import numpy as np
import pytest
from scipy import sparse

from maxmargin import Chunks, LinearSVC
from maxmargin.chunks.checkpoint import _HEADER, _MAGIC, Checkpoint
from maxmargin.files import DataError, pack

pytestmark = pytest.mark.usefixtures("in_passes")


def drawn(rows=6000, classes=2):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(rows, 6)) * np.linspace(1.0, 20.0, 6)
    scores = X @ generator.normal(size=(6, classes)) + 3.0 * generator.normal(size=(rows, classes))
    return X, scores.argmax(axis=1)


@pytest.fixture
def data(tmp_path):
    pack(lambda: [drawn()], tmp_path / "a.mmd")
    pack(lambda: [drawn(classes=3)], tmp_path / "three.mmd")
    return tmp_path


def fit(folder, name, loss="hinge", *, kept=True, passes=-1, tol=1e-5, **others):
    chunks = Chunks(
        folder / name, rows=500, memory=300_000, checkpoint=folder / "run.state" if kept else None
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return LinearSVC(loss=loss, tol=tol, max_iter=passes, **others).fit(chunks)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
@pytest.mark.parametrize("name", ["a.mmd", "three.mmd"])
def test_a_fit_that_was_stopped_goes_on_to_the_same_bits(data, loss, name):
    straight = fit(data, name, loss, kept=False)
    for passes in (1, 2, 3):
        stopped = fit(data, name, loss, passes=passes)
        assert stopped.n_iter_ <= passes + 1
    again = fit(data, name, loss)
    assert again.status_.certified
    assert again.n_iter_ == straight.n_iter_ > 2
    assert np.array_equal(again.coef_, straight.coef_)
    assert np.array_equal(again.intercept_, straight.intercept_)
    assert str(again.certificate_) == str(straight.certificate_)
    # What has ended is not done again, and a smaller tol goes on.
    reads = []
    fit(data, name, loss, callback=lambda progress: reads.append(progress))
    assert not reads


KILLED = """
import sys
from maxmargin import Chunks, LinearSVC

def told(progress):
    print(progress.step, flush=True)
    if progress.step == 3:
        import time
        time.sleep(60)

chunks = Chunks(sys.argv[1], rows=500, memory=300_000, checkpoint=sys.argv[2])
LinearSVC(loss="hinge", tol=1e-5, callback=told).fit(chunks)
"""


def test_a_killed_fit_goes_on(data):
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, data / "a.mmd", data / "run.state"],
        stdout=subprocess.PIPE,
        text=True,
    )
    for line in process.stdout:
        if int(line) == 3:
            break
    process.send_signal(signal.SIGKILL)
    process.communicate()
    steps = []
    again = fit(data, "a.mmd", callback=lambda progress: steps.append(progress.step))
    assert steps[0] == 4
    assert np.array_equal(again.coef_, fit(data, "a.mmd", kept=False).coef_)
    assert [file.name for file in data.iterdir() if "part" in file.name] == []


def test_a_state_of_something_else_is_refused(data):
    fit(data, "a.mmd", passes=2)
    with pytest.raises(DataError, match=r"run\.state: this state is that of a fit with other parameters"):
        fit(data, "a.mmd", C=2.0)
    with pytest.raises(DataError, match="a fit with other data"):
        fit(data, "three.mmd")
    X, y = drawn()
    pack(lambda: [(X + 1.0, y)], data / "a.mmd")
    with pytest.raises(DataError, match="a fit with other data"):
        fit(data, "a.mmd")


def test_a_damaged_state_is_refused(tmp_path):
    state = Checkpoint(tmp_path / "run.state", "data")
    state.save("problem", {"a": np.arange(300.0), "b": [1, 2.0, "x"]})
    content = (tmp_path / "run.state").read_bytes()
    assert state.load("problem")["b"] == [1, 2.0, "x"]
    generator = np.random.default_rng(0)
    for place in generator.integers(0, len(content), 60).tolist():
        damaged = bytearray(content)
        damaged[place] ^= 4
        (tmp_path / "run.state").write_bytes(damaged)
        with pytest.raises(DataError, match=r"run\.state: "):
            state.load("problem")
    (tmp_path / "run.state").write_bytes(content[:-1])
    with pytest.raises(DataError, match="checksum"):
        state.load("problem")


def test_what_a_state_can_hold(tmp_path):
    from scipy import sparse

    rows = sparse.random(4, 3, 0.5, format="csr", random_state=0)
    held = {
        "a": (1, 2.5, float("inf"), None),
        "b": [True, "x"],
        3: np.arange(4.0),
        "labels": np.array(["u", "vw"]),
    }
    state = Checkpoint(tmp_path / "s", "d")
    assert state.load("p") is None
    state.save("p", held | {"rows": rows})
    found = state.load("p")
    assert (found.pop("rows") != rows).nnz == 0
    assert np.array_equal(found.pop(3), held.pop(3))
    assert np.array_equal(found.pop("labels"), held.pop("labels"))
    assert found == held
    with pytest.raises(TypeError, match="Got object"):
        state.save("p", {"a": object()})


def test_every_kind_of_value_comes_back(tmp_path):
    rows = sparse.csr_matrix(np.array([[0.0, 2.0], [1.0, 0.0]]))
    state = {
        "numbers": [1, 0.1, float("inf"), None, True, np.float64(3.5)],
        "pair": (np.arange(3), np.array(["a", "bc"])),
        "rows": rows,
        "empty": np.empty((0, 3)),
    }
    Checkpoint(tmp_path / "a", "x").save("p", state)
    found = Checkpoint(tmp_path / "a", "x").load("p")
    assert found["numbers"] == [1, 0.1, float("inf"), None, True, 3.5]
    assert [part.tolist() for part in found["pair"]] == [[0, 1, 2], ["a", "bc"]]
    assert np.array_equal(found["rows"].toarray(), rows.toarray())
    assert found["empty"].shape == (0, 3)
    with pytest.raises(TypeError, match=r"made of numbers, texts and arrays\. Got object instead"):
        Checkpoint(tmp_path / "a", "x").save("p", {"it": object()})
    assert Checkpoint(tmp_path / "a", "x").load("p")["numbers"][0] == 1
    assert Checkpoint(tmp_path / "none", "x").load("p") is None


@pytest.mark.parametrize(
    ("described", "words"),
    [
        ({"tree": {"secret": 1}, "arrays": []}, "the state cannot be read: it has a 'secret'"),
        ({"tree": {"array": 0}, "arrays": [["|O", [1], 0]]}, "it has an array of |O"),
        ({"tree": {"array": 0}, "arrays": [["<f8", [-1], 0]]}, "it has an array of <f8"),
        ({"tree": {"array": 0}, "arrays": [["<f8", [10**12], 0]]}, "the file ends too early"),
        ({"tree": {"array": 0}, "arrays": [["<f8", [1], 5]]}, "the state does not match its checksum"),
        ({"tree": {"array": 3}, "arrays": []}, "the state cannot be read"),
        ({"tree": 3, "arrays": []}, "the state cannot be read"),
    ],
    ids=range(7),
)
def test_states_that_lie_are_refused(tmp_path, described, words):
    text = json.dumps(described).encode()
    content = _MAGIC + _HEADER.pack(len(text), zlib.crc32(text)) + text
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(DataError, match=re.escape(words)):
        Checkpoint(tmp_path / "a", "x").load("p")
