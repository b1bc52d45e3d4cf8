# SPDX-License-Identifier: BSD-3-Clause
"""The corpus holds, a short run finds nothing, and each oracle finds a reader broken on purpose."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import numpy as np
import pytest
from scipy import sparse

from fuzz import report, supervisor, targets
from fuzz.inspection import Inspector
from fuzz.mutations import mutated
from fuzz.oracles import reason
from fuzz.reference import rows_of
from fuzz.supervisor import Plan
from fuzz.targets import CORPUS, Input, target
from fuzz.worker import Counts, Task, work
from maxmargin.estimators import SVC, LinearSVC
from maxmargin.files.data import libsvm as libsvm_files
from maxmargin.files.data import reading as data_files
from maxmargin.files.models import saved as model_files

REPOSITORY = Path(__file__).resolve().parent.parent.parent
GOOD = Input(b"1 1:0.5 3:2\n-1 2:1\n1 1:1\n")
MODEL = (CORPUS / "model" / "own_three").read_bytes()


def inspected(name, folder, given, limit=60.0):
    return Inspector(target(name), folder, limit).inspect(given, Random(0))


# ---- the readers stand ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", targets.NAMES)
def test_the_corpus(name, tmp_path):
    chosen = target(name)
    if chosen.missing():
        pytest.skip(chosen.missing())
    inspector = Inspector(chosen, tmp_path, limit=60.0)
    reasons = set()
    for place, given in enumerate(chosen.corpus()):
        verdict, finding = inspector.inspect(given, Random(place))
        assert finding is None, finding.text
        reasons.add(verdict.reason)
    assert "read" in reasons
    assert len(reasons) > 12


def test_the_corpus_has_every_fault_of_text(tmp_path):
    chosen = target("libsvm")
    verdicts = [inspected("libsvm", tmp_path, given)[0].reason for given in chosen.corpus()]
    for fault, (problem, _) in libsvm_files._FAULTS.items():
        if fault != "line_too_long":  # of 64 MiB
            assert reason(data_files.DataError(problem), "") in verdicts, fault


FOUND = {
    "model/found_class_beyond_its_type": "'classes' of the description should be finite numbers",
    "model/found_classes_without_order": "should be all text or all numbers",
    "model/found_cost_beyond_floats": "'C' parameter .* Got 1000",
    "model/found_infinite_setting": "is beyond all floats",
    "model/found_infinite_step": "a step that is not a whole number",
    "model/found_number_beyond_floats": "'max_time' parameter .* Got 1000",
    "model/found_problem_unknown_to_liblinear": "the l1 penalty goes with the squared hinge",
    "model/found_zero_byte_in_class": "should not have zero bytes",
    "model/found_escape_in_description": r"the problem must state .* not \\x1b\[31m",
    "model/found_escape_in_header": r"unknown variant `F\\x7f64`",
    "model/found_long_parameter": r"'loss' parameter .* Got 'x{400,700}\.\.\.$",
    "model/found_kernel_no_jobs": "parameter 'n_jobs' has the value 0",
    "model/found_kernel_rows_of_a_given_matrix": "for 9 rows, the file speaks of 2147483648",
    "model/found_status_without_tol": "how the fit ended, but not with which tol, steps and solver",
    "npz/found_characters.npz": "the array 'y' holds texts that are none",
    "npz/found_surrogate.npz": "the array 'y' holds texts that are none",
    "npz/found_header_descr.npz": "the array 'X' has a header that cannot be read: tuple index",
    "npz/found_header_tokens.npz": "the array 'X' has a header that cannot be read: .*EOF",
    "npz/found_member_name.npz": r"there are \\x1b\[31m, y",
    "npz/found_signalling_nan.npz": "row 1 has a value or a label that is not finite",
    "tables/found_escape.csv": r"a row has 3 values, and the table 2 columns: '\\x1b\[31m,2,3'\. Correct",
    "tables/found_not_utf8.csv": r"the table is not in UTF-8: .*\\xac.* Save it as UTF-8",
}


def test_what_was_found_is_in_the_corpus():
    assert {str(path.relative_to(CORPUS)) for path in CORPUS.rglob("found*")} == set(FOUND)


@pytest.mark.parametrize("name", FOUND)
def test_what_was_found_is_refused_in_good_form(name):
    if name.startswith("tables"):
        pytest.importorskip("pyarrow")
    load = SVC.load if "kernel" in name else LinearSVC.load
    read = load if name.startswith("model") else data_files.read
    with pytest.raises((data_files.DataError, model_files.ModelError), match=FOUND[name]) as caught:
        read(CORPUS / name)
    assert str(caught.value).isprintable()


def test_the_corpus_is_small():
    assert sum(path.stat().st_size for path in CORPUS.rglob("*") if path.is_file()) < 300_000


@pytest.mark.parametrize("name", targets.NAMES)
def test_a_short_run_finds_nothing(name, tmp_path):
    if target(name).missing():
        pytest.skip(target(name).missing())
    counts = work(Task(name, "seed", 60.0, str(tmp_path), str(tmp_path / "findings"), 60.0, inputs=50))
    assert counts.inputs == 50
    assert counts.read + sum(counts.refused.values()) == 50
    assert not counts.findings
    assert not (tmp_path / "findings").exists()


def test_the_same_seed_makes_the_same_inputs():
    for name in ("libsvm", "model", "npz"):
        chosen = target(name)
        pool = chosen.corpus()
        one, other = ([chosen.mutate(random, pool) for _ in range(30)] for random in (Random(1), Random(1)))
        assert one == other
        assert len(set(one)) > 20


def test_mutants_are_bounded():
    random = Random(0)
    content = b"1 1:1\n" * 30_000
    assert all(len(mutated(content, random, [])) <= 180_000 for _ in range(50))


def test_the_reference_reads_text():
    text = b"1 1:2 3:4 # 5:6\n\n2 0:1\n-1 qid:3 9:1\n3:1\n"
    how = {"longest": 99, "zero_based": False, "dtype": np.float64}
    rows = rows_of(text, limit=5, drop=True, labelled=True, **how)
    assert (rows.labels, rows.rows) == ([1.0, -1.0], [[(0, 2.0), (2, 4.0)], []])
    assert (rows.skipped, rows.dropped, rows.first_bad) == (2, 1, 3)


# ---- each oracle finds what it is for ----------------------------------------------------------------


def broken_read(monkeypatch, change):
    """The reader of LIBSVM text gives what ``change`` makes of the right result."""
    right = libsvm_files.read_text
    monkeypatch.setattr(libsvm_files, "read_text", lambda *given, **more: change(right(*given, **more)))


def with_matrix(given, **parts):
    X = given.X.copy()
    for name, array in parts.items():
        setattr(X, name, array)
    return dataclasses.replace(given, X=X)


def not_canonical(data):
    indices = data.X.indices.copy()
    indices[:2] = indices[1::-1]
    return with_matrix(data, indices=indices)


CHANGES = {
    "increase": not_canonical,
    "value of X is not finite": lambda data: with_matrix(data, data=np.full_like(data.X.data, np.nan)),
    "label is not finite": lambda data: dataclasses.replace(data, y=data.y * np.inf),
    "not CSR": lambda data: dataclasses.replace(data, X=sparse.csc_array(data.X)),
    "labels for": lambda data: dataclasses.replace(data, y=data.y[:-1]),
    "type": lambda data: dataclasses.replace(data, X=data.X.astype(np.float32)),
    "as a stream": lambda data: with_matrix(data, data=2 * data.X.data),
    "the counts": lambda data: dataclasses.replace(data, skipped=data.skipped + 1),
}


@pytest.mark.parametrize("what", CHANGES)
def test_unsound_rows_are_found(what, monkeypatch, tmp_path):
    broken_read(monkeypatch, CHANGES[what])
    _, finding = inspected("libsvm", tmp_path, GOOD)
    assert finding.kind == "invariant"
    assert what in finding.text


def test_rows_that_the_reference_does_not_have_are_found(monkeypatch, tmp_path):
    def change(data):
        return with_matrix(data, data=2 * data.X.data)

    broken_read(monkeypatch, change)
    right = libsvm_files.stream_text
    monkeypatch.setattr(libsvm_files, "stream_text", lambda *a, **k: (change(d) for d in right(*a, **k)))
    _, finding = inspected("libsvm", tmp_path, GOOD)
    assert "against the reference" in finding.text


def test_blocks_and_threads_that_disagree_are_found(monkeypatch, tmp_path):
    broken_read(monkeypatch, not_canonical)
    monkeypatch.setattr(
        data_files, "read", lambda path, **options: next(data_files.stream(path, **options))
    )
    _, finding = inspected("libsvm", tmp_path, GOOD)
    assert "in blocks" in finding.text


def test_skipping_that_changes_a_good_file_is_found(monkeypatch, tmp_path):
    right = data_files.read

    def read(path, **options):
        data = right(path, **options)
        return dataclasses.replace(data, y=data.y + 1) if options.get("skip_bad_lines") else data

    monkeypatch.setattr(data_files, "read", read)
    monkeypatch.setattr(data_files, "stream", lambda path, **options: iter([read(path, **options)]))
    _, finding = inspected(
        "npz", tmp_path, Input((CORPUS / "npz" / "sound_dense.npz").read_bytes(), ".npz")
    )
    assert "skip_bad_lines changed a good file" in finding.text


def test_rows_that_cannot_be_read_again_are_found(monkeypatch, tmp_path):
    right = data_files.read

    def read(path, **options):
        data = right(path, **options)
        return dataclasses.replace(data, y=data.y + 1) if options.get("format") == "libsvm" else data

    monkeypatch.setattr(data_files, "read", read)
    _, finding = inspected("npz", tmp_path, Input((CORPUS / "npz" / "sound_csr.npz").read_bytes(), ".npz"))
    assert "read again, y differs" in finding.text


@pytest.mark.parametrize("error", [KeyError("x"), MemoryError(), OSError("x"), RecursionError(), Warning()])
def test_other_exceptions_are_found(error, monkeypatch, tmp_path):
    def read(path, **options):
        raise error

    monkeypatch.setattr(data_files, "read", read)
    _, finding = inspected("libsvm", tmp_path, GOOD)
    assert (finding.kind, type(error).__name__ in finding.key) == ("exception", True)
    monkeypatch.setattr(model_files, "load_model", read)
    _, finding = inspected("model", tmp_path, Input(MODEL))
    assert (finding.kind, type(error).__name__ in finding.key) == ("exception", True)


def test_exceptions_that_python_ignores_are_found(monkeypatch, tmp_path):
    class Bad:
        def __del__(self):
            raise KeyError

    right = data_files.read
    monkeypatch.setattr(data_files, "read", lambda *given, **more: Bad() and right(*given, **more))
    assert "an exception was ignored and printed" in inspected("libsvm", tmp_path, GOOD)[1].text


@pytest.mark.parametrize("message", ["no file is named", "{}: \x1b[31m", "{}: " + "long" * 2000])
def test_bad_messages_are_found(message, monkeypatch, tmp_path):
    def read(path, **options):
        error = data_files.DataError("x")
        error.args = (message.format(path),)
        raise error

    monkeypatch.setattr(data_files, "read", read)
    assert "a message" in inspected("libsvm", tmp_path, GOOD)[1].text


def test_slow_reading_is_found(monkeypatch, tmp_path):
    def read(path, **options):
        end = time.process_time() + 0.03
        while time.process_time() < end:
            pass
        raise data_files.DataError("slow", path=str(path))

    monkeypatch.setattr(data_files, "read", read)
    monkeypatch.setattr(data_files, "stream", read)
    given = Input((CORPUS / "npz" / "sound_dense.npz").read_bytes(), ".npz")
    assert inspected("npz", tmp_path, given, limit=0.05)[1].kind == "slow"
    assert inspected("npz", tmp_path, given, limit=60)[1] is None


@pytest.mark.skipif(sys.platform != "linux", reason="memory is watched on Linux alone")
def test_memory_that_the_file_does_not_justify_is_found(monkeypatch, tmp_path):
    right = model_files.load_model

    def load(path):
        np.ones(200 << 20, np.uint8)
        return right(path)

    chosen = target("model")
    monkeypatch.setattr(model_files, "load_model", load)
    inspector = Inspector(chosen, tmp_path, 60.0)
    inspector._excess = 0
    assert inspector.inspect(Input(MODEL), Random(0))[1].kind == "memory"


def test_a_model_that_changes_on_its_way_is_found(monkeypatch, tmp_path):
    right = model_files.load_model
    loads = iter(range(100))
    monkeypatch.setattr(
        model_files, "load_model", lambda path: dataclasses.replace(right(path), tol=float(next(loads)))
    )
    assert "saved and loaded, tol is" in inspected("model", tmp_path, Input(MODEL))[1].text


def test_an_unsound_model_is_found(monkeypatch, tmp_path):
    right = model_files.load_model

    def load(path):
        model = right(path)
        object.__setattr__(model, "coef", model.coef * np.nan)
        return model

    monkeypatch.setattr(model_files, "load_model", load)
    assert "was loaded although coef holds NaN" in inspected("model", tmp_path, Input(MODEL))[1].text


def test_an_estimator_that_predicts_otherwise_is_found(monkeypatch, tmp_path):
    right = LinearSVC.predict
    monkeypatch.setattr(LinearSVC, "predict", lambda self, X: (right(self, X) + 1) % 3)
    assert "predicts otherwise" in inspected("model", tmp_path, Input(MODEL))[1].text


# ---- processes ---------------------------------------------------------------------------------------

BROKEN_WORKER = """
import json, os, sys, time
from maxmargin.files.data import reading as data
right = data.read
def read(path, **options):
    if b"Q" in open(path, "rb").read():
        {action}
    return right(path, **options)
data.read = read
from fuzz import targets, worker
target = targets.target("npz")
target.corpus = lambda: [targets.Input(b"Q", ".npz")]
worker.work(worker.Task(**json.loads(sys.argv[1])))
"""


@pytest.mark.parametrize(("action", "kind"), [("os.abort()", "crash"), ("time.sleep(100)", "hang")])
def test_processes_that_end_or_hang_are_found(action, kind, tmp_path):
    command = (sys.executable, "-c", BROKEN_WORKER.format(action=action))
    plan = Plan(0.1, 0, 1, tmp_path, limit=0.05, command=command)
    counts = supervisor.run("npz", plan)
    assert counts.findings == {f"{kind} of a worker": 1}
    (saved,) = tmp_path.glob(f"npz-{kind}-*.npz")
    assert saved.read_bytes() == b"Q"
    assert "in read" in saved.with_suffix(".txt").read_text()


def test_the_program(tmp_path):
    page = tmp_path / "fuzz.md"
    command = [sys.executable, "-m", "fuzz", "npz", "--seconds", "0.5", "--workers", "2", "--json"]
    command += ["--report", str(page), "--findings", str(tmp_path / "findings"), "--limit", "60"]
    answer = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    found = json.loads(answer.stdout)
    assert found["targets"]["npz"]["inputs"] > 0
    assert found["findings"] == 0
    text = page.read_text(encoding="utf-8")
    assert f"| npz | {found['targets']['npz']['seconds']:.0f} |" in text
    assert str(tmp_path) not in text


def test_findings_are_reported(monkeypatch, capsys, tmp_path):
    from fuzz import __main__ as program

    counts = Counts(inputs=3, read=1, seconds=1.0)
    counts.refuse("because")
    counts.findings["ValueError at somewhere.py:3"] = 1
    monkeypatch.setattr(program, "run", lambda name, plan: counts)
    page = tmp_path / "page.md"
    assert program.main(["npz", "--seconds", "1", "--report", str(page)]) == 1
    printed = capsys.readouterr()
    assert "npz: 3 inputs in 1 s, 1 read, 1 refused (because: 1), 1 findings" in printed.out
    assert "1 findings" in printed.err
    assert "* npz: ValueError at somewhere.py:3 (1 times)." in page.read_text()


def test_a_target_that_cannot_run_is_skipped(monkeypatch, capsys):
    from fuzz import __main__ as program

    monkeypatch.setattr(program, "run", lambda name, plan: Counts(inputs=1))
    monkeypatch.setattr(type(target("tables")), "missing", lambda self: "pyarrow is not installed")
    assert program.main(["all", "--seconds", "1"]) == 0
    printed = capsys.readouterr().out
    assert "tables: skipped, pyarrow is not installed" in printed
    assert printed.count("1 inputs") == 4


def test_many_reasons_are_counted_together():
    counts = Counts()
    for number in range(200):
        counts.refuse(f"reason {number}")
    assert sum(counts.refused.values()) == 200
    assert len(counts.refused) == 81
    assert "and 77 other reasons" in report.line("x", counts)
