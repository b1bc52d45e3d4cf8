# SPDX-License-Identifier: BSD-3-Clause
"""The command as a user runs it: a process of its own, with signals, pipes, terminals and full disks."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from maxmargin.command_line import main
from maxmargin.files import load_model

pty = pytest.importorskip("pty")  # no terminals, no signals: Windows
COMMAND = [sys.executable, "-m", "maxmargin.command_line"]
SLOWER = 6.0 if "asan" in os.environ.get("LD_PRELOAD", "") else 1.0


def run(*arguments, **options):
    command = [*COMMAND, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Small data with a model, and data that keep a fit busy."""
    folder = tmp_path_factory.mktemp("files")
    for arguments in (["demo", "--save-data", "cancer.svm"], ["train", "cancer.svm", "-o", "cancer.mm"]):
        with pytest.raises(SystemExit) as ended:
            main([str(folder / one) if "cancer" in one else one for one in arguments] + ["--json"])
        assert ended.value.code == 0
    random = np.random.default_rng(0)
    X = random.standard_normal((20_000, 60), dtype=np.float32)
    noise = random.standard_normal((len(X), 4))
    np.savez(folder / "two.npz", X=X, y=np.where(X[:, 0] + noise[:, 0] > 0, 1.0, -1.0))
    np.savez(folder / "four.npz", X=X, y=np.argmax(X[:, :4] + noise, axis=1))
    return folder


def test_help_is_quick_and_imports_nothing_heavy():
    heavy = "{'numpy', 'scipy', 'sklearn', 'matplotlib', 'pyarrow', 'safetensors', 'zstandard'}"
    check = f"import sys, maxmargin.command_line; print(*{heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
    seconds = []
    for _ in range(3):
        before = os.times()
        done = run("--help")
        # Those of the processor: other work on the machine is no fault of ours.
        seconds.append(os.times().children_user - before.children_user)
        assert done.returncode == 0
        assert "certify" in done.stdout
    assert 0.0 < min(seconds) < 0.3 * SLOWER


def test_one_person_trains_and_another_checks_the_proof(folder, tmp_path):
    model = tmp_path / "model.mm"
    done = run("train", folder / "cancer.svm", "-o", model, "--test", folder / "cancer.test.svm")
    assert done.returncode == 0
    assert done.stderr == ""
    assert "No (w, b) can bring it below" in done.stdout
    done = run("certify", model, folder / "cancer.svm")
    assert done.returncode == 0
    assert "Holds: " in done.stdout
    done = run("certify", model, folder / "cancer.test.svm")
    assert done.returncode == 1
    assert "Does not hold: " in done.stdout
    done = run("predict", model, folder / "cancer.test.svm", "-o", tmp_path / "labels.txt")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("Accuracy: ")
    assert len((tmp_path / "labels.txt").read_text().split()) == 190
    picture = tmp_path / "picture.png"
    done = run("compare", folder / "cancer.svm", "-o", picture, "--max-time", "0.1", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["picture"] == str(picture)
    assert picture.stat().st_size > 10_000


@pytest.mark.parametrize(
    "arguments",
    [
        ("train", "no.svm", "-o", "model.mm"),
        ("predict", "no.mm", "no.svm"),
        ("certify", "no.mm", "no.svm"),
        ("compare", "no.svm"),
        ("info", "no.svm"),
        ("demo", "--save-data", "no/where.svm"),
        ("dance",),
    ],
    ids=lambda arguments: arguments[0],
)
def test_errors_are_one_paragraph_and_exit_with_2(arguments, tmp_path):
    done = run(*arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Error: ")
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_errors_as_json(tmp_path):
    done = run("info", "no.svm", "--json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, "")
    assert list(json.loads(done.stdout)) == ["error"]


def test_a_reader_that_has_had_enough_is_no_error(folder):
    command = " ".join([*COMMAND, "predict", str(folder / "cancer.mm"), str(folder / "two.npz")])
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command} | head -n 1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout in ("1\n", "-1\n")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
@pytest.mark.parametrize("option", [(), ("--json",)], ids=["words", "json"])
def test_an_answer_that_cannot_be_written_is_an_error(folder, option):
    with open("/dev/full", "w") as full:
        command = [*COMMAND, "info", str(folder / "cancer.mm"), *option]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("Error: The answer could not be written")
    assert done.stderr.count("\n") == 1


class OnTerminal:
    """The command with its stderr on a terminal, where it shows its progress."""

    def __init__(self, *arguments):
        self.terminal, end = pty.openpty()
        command = [*COMMAND, *map(str, arguments)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=end, text=True)
        os.close(end)
        self.shown = ""

    def wait_for(self, words):
        deadline = time.monotonic() + 60
        while words not in self.shown and time.monotonic() < deadline:
            if not self._read(0.1) and self.process.poll() is not None:
                break
        assert words in self.shown, self.shown

    def _read(self, seconds):
        if not select.select([self.terminal], [], [], seconds)[0]:
            return False
        try:
            part = os.read(self.terminal, 65536)
        except OSError:  # the other end is closed
            return False
        self.shown += part.decode(errors="replace")
        return bool(part)

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)

    def end(self):
        """The exit code and what was said on stdout."""
        said, _ = self.process.communicate(timeout=60)
        while self._read(0.0):
            pass
        os.close(self.terminal)
        return self.process.returncode, said


BUSY = (
    "--tol",
    "1e-12",
    "--max-time",
    "60",
    "--max-iter",
    "100000000",
    "--solver",
    "stochastic_subgradient",
)


def test_interrupted_training_with_a_kernel_writes_a_model_that_holds(answer, folder, tmp_path):
    model, data = tmp_path / "model.mm", tmp_path / "few.npz"
    with np.load(folder / "four.npz") as whole:
        np.savez(data, X=whole["X"][:4000], y=whole["y"][:4000])
    options = ("--kernel", "gaussian", "-C", "1e6", "--tol", "1e-14", "--max-time", "60")
    options += ("--solver", "sequential_minimal_optimization")
    training = OnTerminal("train", data, "-o", model, *options)
    training.wait_for(": gap ")  # some pair has begun: many seconds before the last one ends
    training.interrupt()
    code, said = training.end()
    assert code == 130
    assert "Interrupted after" in training.shown
    assert "Kernel: Gaussian" in said
    code, found = answer("certify", model, data)
    assert (code, found["holds"]) == (0, True)


def test_interrupted_training_writes_a_model_that_holds_and_can_be_resumed(answer, folder, tmp_path):
    data, model = folder / "four.npz", tmp_path / "model.mm"
    training = OnTerminal("train", data, "-o", model, *BUSY)
    training.wait_for("certified")
    training.interrupt()
    code, said = training.end()
    assert code == 130
    assert "Interrupted after" in training.shown
    assert "--resume" in training.shown
    assert "The objective is" in said
    code, found = answer("certify", model, data)
    assert (code, found["holds"]) == (0, True)
    before = load_model(model).claims
    options = ("--tol", "0.05", "--solver", "auto", "--max-time", "60")
    assert answer("train", data, "--resume", model, *options)[0] == 0
    after = load_model(model).claims
    assert all(new.dual >= 0.999 * old.dual for new, old in zip(after, before, strict=True))
    assert max(claim.relative_gap for claim in after) <= 0.05


def test_impatience_does_not_cost_the_model(answer, folder, tmp_path):
    model = tmp_path / "model.mm"
    training = OnTerminal("train", folder / "two.npz", "-o", model, *BUSY)
    training.wait_for("certified")
    while training.process.poll() is None:
        training.interrupt()
        time.sleep(0.002)
    assert training.end()[0] == 130
    assert answer("certify", model, folder / "two.npz")[0] == 0
    assert [path.name for path in tmp_path.iterdir()] == ["model.mm"]


def test_interrupted_reading_writes_nothing(tmp_path):
    pipe, model = tmp_path / "pipe.svm", tmp_path / "model.mm"
    os.mkfifo(pipe)
    training = OnTerminal("train", pipe, "-o", model)
    with open(pipe, "w") as text:
        text.write("1 1:0.5\n-1 2:0.5\n")
        text.flush()
        training.wait_for("reading")
        training.interrupt()
        code, said = training.end()
    assert (code, said) == (130, "")
    assert "Interrupted: no file was written." in training.shown
    assert not model.exists()


def test_progress_shows_the_gap_and_the_time_left_on_a_terminal_only(folder, tmp_path):
    slow = ("--solver", "dual_coordinate_ascent", "--max-time", "0.5", "-C", "1e4")
    arguments = ("train", folder / "two.npz", "-o", tmp_path / "model.mm", *BUSY[:-4], *slow)
    training = OnTerminal(*arguments)
    training.wait_for(" s left")
    code, _ = training.end()
    assert code == 3
    assert "reading two.npz" in training.shown
    assert "Not certified to --tol: " in training.shown
    quiet = OnTerminal(*arguments, "--json")
    code, said = quiet.end()
    assert (code, quiet.shown) == (3, "")
    assert json.loads(said)["status"] == "time_spent"


def test_a_kill_in_the_midst_of_writing_leaves_the_old_model(folder, tmp_path):
    model = tmp_path / "model.mm"
    model.write_bytes((folder / "cancer.mm").read_bytes())
    # The moment before the renaming, when all is written and nothing is safe.
    killed = (
        "import os, signal, sys; os.fsync = lambda file: os.kill(os.getpid(), signal.SIGKILL);"
        "from maxmargin.command_line import main; main(sys.argv[1:])"
    )
    arguments = ["train", str(folder / "cancer.svm"), "-o", str(model), "-C", "7"]
    done = subprocess.run([sys.executable, "-c", killed, *arguments], capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL
    assert model.read_bytes() == (folder / "cancer.mm").read_bytes()


@pytest.mark.parametrize("command", ["train", "predict", "compare"])
def test_a_full_disk_is_told_and_leaves_the_old_file(folder, tmp_path, command):
    resource = pytest.importorskip("resource")
    target = tmp_path / "old.png"
    target.write_text("old")
    arguments = {
        "train": ("train", folder / "cancer.svm", "-o", target),
        "predict": ("predict", folder / "cancer.mm", folder / "two.npz", "-o", target),
        "compare": ("compare", folder / "cancer.svm", "-o", target, "--max-time", "0.05"),
    }[command]

    def no_room():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    # matplotlib keeps a list of fonts, which it could not write either.
    environment = os.environ | {"MPLCONFIGDIR": str(folder)}
    done = run(*arguments, preexec_fn=no_room, env=environment)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Could not be written" in done.stderr
    assert "Traceback" not in done.stderr
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["old.png"]
