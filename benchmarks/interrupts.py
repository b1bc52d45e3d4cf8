# SPDX-License-Identifier: BSD-3-Clause
"""Ctrl-C at random moments of a fit: what is left of the model, and how late the fit ends.

The signal comes from another process, as that of a terminal does. Each fit is made once as a whole, to know
how long it takes; then again and again, with the signal at a moment that is drawn between its ends.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from traceback import extract_tb
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier

from benchmarks import machine
from benchmarks.chunks import drawn
from benchmarks.datasets import load
from benchmarks.report import table
from benchmarks.wide import load as load_wide
from maxmargin import (
    SVC,
    SVCCV,
    SVR,
    Chunks,
    LinearOneClassSVM,
    LinearSVC,
    LinearSVCCV,
    LinearSVR,
    NuSVC,
    NuSVR,
    OneClassSVM,
    RankSVM,
)
from maxmargin.chunks.survey import survey_of
from maxmargin.proof.model import Status, each_of
from maxmargin.tools.interrupts import held_back

LATE = 0.2
"""Seconds after Ctrl-C in which a fit should have ended."""
_ROUNDS = 4
"""Times as many draws as are wanted, at most: a signal that comes when the fit is over says nothing."""
_AT_ONCE = 0.005
"""Seconds that the sender may need for a signal. On a busy machine it can be made to wait between a look at
the clock and sending: such a draw says nothing."""
_SEEN = 50
"""Rows that the model has to answer for after every fit."""


@dataclass(frozen=True)
class Case:
    """A fit."""

    make: Callable[[], tuple[Any, Any, Any]]
    """The estimator, X and y."""
    chooses: bool = False
    """Whether it searches for C first: until that is chosen there is no model."""


@dataclass
class Outcome:
    """What became of the fits of one case."""

    name: str
    seconds: float
    """Of the whole fit."""
    draws: int = 0
    early: int = 0
    """Interrupted while the data were being checked: there is no model yet."""
    kept: int = 0
    """Interrupted, and fitted: the best certified model of each problem."""
    whole: int = 0
    """Certified all the same."""
    unchosen: int = 0
    """Interrupted during a search."""
    lost: list[str] = field(default_factory=list[str])
    """What was wrong with the others."""
    late: list[float] = field(default_factory=list[float])
    """Seconds from Ctrl-C to the end: of the clock, or of the processor if these are fewer."""
    clock: float = 0.0
    """The longest of these by the clock."""


def _of(estimator: Any, name: str, rows: int | None = None) -> Callable[[], tuple[Any, Any, Any]]:
    def make() -> tuple[Any, Any, Any]:
        data = load(name)
        return estimator, data.X[:rows], data.y[:rows]

    return make


def _chunks(estimator: Any, rows: int) -> Callable[[], tuple[Any, Any, Any]]:
    def make() -> tuple[Any, Any, Any]:
        return estimator, Chunks(list(drawn(rows)), rows=rows // 20), None

    return make


def _dense(estimator: Any, rows: int, columns: int) -> Callable[[], tuple[Any, Any, Any]]:
    def make() -> tuple[Any, Any, Any]:
        random = np.random.default_rng(0)
        X = random.normal(size=(rows, columns))
        return estimator, X, np.where(X.sum(axis=1) + random.normal(size=rows) > 0.0, 1, -1)

    return make


CASES = {
    "SVC, 26 classes": Case(_of(SVC(), "letter_scale", 6000)),
    "SVC, kernel='linear'": Case(_of(SVC(kernel="linear"), "a9a")),
    "SVC, probability=True": Case(_of(SVC(probability=True), "letter_scale", 1500)),
    "LinearSVC, 26 classes": Case(_of(LinearSVC(loss="hinge"), "letter_scale")),
    "LinearSVC, wide, C = 1000": Case(lambda: (LinearSVC(loss="hinge", C=1e3), *load_wide("counts"))),
    "LinearSVC, dense, solver='newton'": Case(_dense(LinearSVC(solver="newton"), 3000, 1000)),
    "LinearSVC, dense, solver='interior_point'": Case(
        _dense(LinearSVC(solver="interior_point", loss="hinge"), 3000, 1000)
    ),
    "LinearSVC, Crammer and Singer": Case(
        _of(LinearSVC(multi_class="crammer_singer"), "letter_scale", 6000)
    ),
    "LinearSVC, l1": Case(_of(LinearSVC(penalty="l1"), "imdb_tfidf")),
    "LinearSVC, l1, logistic": Case(_of(LinearSVC(penalty="l1", loss="logistic"), "imdb_tfidf")),
    "LinearSVR": Case(_of(LinearSVR(C=10.0), "cpusmall")),
    "SVR": Case(_of(SVR(C=100.0), "abalone")),
    "NuSVC": Case(_of(NuSVC(nu=0.3), "a9a", 6000)),
    "NuSVR": Case(_of(NuSVR(), "abalone")),
    "OneClassSVM": Case(_of(OneClassSVM(nu=0.2), "ijcnn1", 10_000)),
    "LinearOneClassSVM": Case(_of(LinearOneClassSVM(nu=0.1), "ijcnn1")),
    "RankSVM": Case(_of(RankSVM(), "cpusmall")),
    "LinearSVC, chunks, hinge": Case(_chunks(LinearSVC(loss="hinge"), 500_000)),
    "LinearSVC, chunks, squared hinge": Case(_chunks(LinearSVC(), 500_000)),
    "LinearSVCCV": Case(_of(LinearSVCCV(Cs=[0.01, 0.1, 1.0], cv=3), "a9a"), chooses=True),
    "LinearSVCCV, chunks": Case(_chunks(LinearSVCCV(Cs=[0.1, 1.0], cv=3), 200_000), chooses=True),
    "SVCCV": Case(_of(SVCCV(Cs=[1.0, 10.0], gammas=[0.1, 1.0], cv=3), "letter_scale", 1500), chooses=True),
}


class Sender:
    """Another process that sends Ctrl-C to this one."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.interrupts_process", str(os.getpid())],
            cwd=Path(__file__).resolve().parent.parent,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C of a terminal ends it with its parent
        )

    def __enter__(self) -> Sender:
        return self

    def __exit__(self, *_: Any) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        self._process.wait()

    def send_in(self, seconds: float) -> None:
        """Ask for a signal."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{seconds}\n")
        self._process.stdin.flush()

    def moment(self) -> tuple[float, float, float]:
        """The clock and this process' processor time before it was sent, and the clock after that."""
        assert self._process.stdout is not None
        before, processor, after = json.loads(self._process.stdout.readline())
        return before, processor, after


@contextmanager
def _first_held() -> Iterator[list[float]]:
    """The moments from which Ctrl-C is held back: data are checked by then.

    That is when the block has been entered. Until its handler is in the place of Python's, some
    microseconds before, Ctrl-C ends ``fit`` as it does while data are checked: nothing has begun.
    """
    moments: list[float] = []
    enter = held_back.__enter__

    def entering(block: held_back) -> Any:
        entered = enter(block)
        moments.append(time.monotonic())
        return entered

    held_back.__enter__ = entering  # type: ignore[method-assign]
    try:
        yield moments
    finally:
        held_back.__enter__ = enter  # type: ignore[method-assign]


def measure(given: Any, tell: Callable[[str], None]) -> list[Outcome]:
    """All cases, or those that are named."""
    known = _known(given.batches)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with Sender() as sender:
            for number, name in enumerate(CASES):
                if name not in given.case or name in known:
                    continue
                random = np.random.default_rng([given.seed, number])
                known[name] = _of_case(name, given.draws, random, sender, tell)
                if given.batches is not None:
                    with given.batches.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(asdict(known[name])) + "\n")
    finally:
        signal.signal(signal.SIGINT, before)
    return [known[name] for name in CASES if name in given.case]


def _known(file: Path | None) -> dict[str, Outcome]:
    """What an earlier run has kept."""
    if file is None or not file.exists():
        return {}
    lines = file.read_text(encoding="utf-8").splitlines()
    return {outcome.name: outcome for outcome in (Outcome(**json.loads(line)) for line in lines)}


def _of_case(
    name: str, draws: int, random: np.random.Generator, sender: Sender, tell: Callable[[str], None]
) -> Outcome:
    case = CASES[name]
    tell(name)
    estimator, X, y = case.make()
    seconds = []
    for _ in range(2):  # the first imports what it needs
        whole, start = clone(estimator), time.monotonic()
        _fit(whole, X, y)
        seconds.append(time.monotonic() - start)
    outcome = Outcome(name, min(seconds))
    for _ in range(_ROUNDS * draws):
        if outcome.draws == draws:
            break
        tell(f"{name}: {outcome.draws} of {draws}")
        _draw(case, estimator, X, y, whole, random.uniform(0.0, outcome.seconds), sender, outcome)
    return outcome


def _fit(model: Any, X: Any, y: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)


def _draw(
    case: Case,
    estimator: Any,
    X: Any,
    y: Any,
    whole: Any,
    moment: float,
    sender: Sender,
    outcome: Outcome,
) -> None:
    """One fit with a signal; none is counted where that comes too late."""
    model, checking, where = clone(estimator), False, ""
    ended: tuple[float, float] | None = None
    with _first_held() as held:
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            sender.send_in(moment)
            _fit(model, X, y)
            ended = time.monotonic(), time.process_time()
            signal.signal(signal.SIGINT, _nothing)
        except KeyboardInterrupt as error:
            signal.signal(signal.SIGINT, _nothing)
            frames = extract_tb(error.__traceback__)
            checking = any(frame.name == survey_of.__name__ for frame in frames)
            where = f": KeyboardInterrupt in {frames[-1].name} of {Path(frames[-1].filename).name}"
    ended = ended or (time.monotonic(), time.process_time())
    sent = sender.moment()  # where the fit was faster than the signal, it comes now
    if sent[0] > ended[0] or sent[2] - sent[0] > _AT_ONCE:
        return
    outcome.draws += 1
    clock, processor = ended[0] - sent[0], ended[1] - sent[1]
    outcome.late.append(min(clock, processor))
    outcome.clock = max(outcome.clock, clock)
    fitted = hasattr(model, "certificate_")
    if not fitted and (checking or not held or sent[0] < held[0]):
        outcome.early += 1
    elif not fitted and case.chooses:
        outcome.unchosen += 1
    elif not fitted:
        outcome.lost.append(f"no model{where}")
    elif wrong := _what_is_wrong(model, whole, X):
        outcome.lost.append(wrong)
    elif model.status_ is Status.INTERRUPTED:
        outcome.kept += 1
    else:
        outcome.whole += 1


def _nothing(number: int, frame: Any) -> None:
    """The handler of a signal that comes too late."""


def _what_is_wrong(model: Any, whole: Any, X: Any) -> str:
    """Whether the model is one, and each of its problems has a proof; empty: all is well."""
    rows = next(iter(drawn(_SEEN)))[0] if isinstance(X, Chunks) else X[:_SEEN]
    answers: NDArray[Any] = model.predict(rows)
    if is_classifier(whole) and not np.isin(answers, whole.classes_).all():
        return "an answer that is no class"
    if not is_classifier(whole) and not np.isfinite(answers).all():
        return "an answer that is no number"
    proofs = list(each_of(model.certificate_))
    if len(proofs) != len(list(each_of(whole.certificate_))):
        return f"{len(proofs)} proofs"
    for proof in proofs:
        if not proof.dual <= proof.primal + 1e-9 * abs(proof.primal):
            return f"a dual value of {proof.dual!r} and a primal one of {proof.primal!r}"
    return ""


def failed(found: list[Outcome]) -> bool:
    """Whether a model was lost, or a fit ended too late."""
    return any(outcome.lost or max(outcome.late, default=0.0) > LATE for outcome in found)


_PAGE = """\
# Ctrl-C at random moments

{draws} fits, each with a Ctrl-C from another process at a moment that is drawn between its ends (seed
{seed}). While data are checked it ends `fit` without a model; from then on every fit leaves an estimator
with the best certified model of each of its problems, zero for those that had not begun. A search for C
leaves nothing, since nothing is chosen yet, but for the last fit on all rows. `late` is the time from the
signal to the end of `fit`, the most of all draws: of the processor, or of the clock if that is less, since
others may have used the machine; beside it the most by the clock. The goal is {late:g} s. {facts}."""


def markdown(given: Any, found: list[Outcome]) -> str:
    """The whole page."""
    heads = ["fit", "s", "draws", "while data are checked", "model kept", "certified all the same"]
    heads += ["nothing chosen", "lost", "late, s", "late by the clock, s"]
    rows = []
    for outcome in found:
        late = max(outcome.late, default=0.0)
        counts = (outcome.draws, outcome.early, outcome.kept, outcome.whole, outcome.unchosen)
        lost = len(outcome.lost)
        rows.append(
            [
                outcome.name,
                f"{outcome.seconds:.2g}",
                *map(str, counts),
                f"**{lost}**" if lost else "0",
                f"**{late:.2f}**" if late > LATE else f"{late:.2f}",
                f"{outcome.clock:.2f}",
            ]
        )
    facts = ", ".join(f"{name} {value}" for name, value in machine.facts().items())
    draws = sum(outcome.draws for outcome in found)
    parts = [_PAGE.format(draws=f"{draws:,}", seed=given.seed, late=LATE, facts=facts), table(heads, rows)]
    wrong = [f"* {outcome.name}: {text}" for outcome in found for text in sorted(set(outcome.lost))]
    if wrong:
        parts += ["What was lost:", "\n".join(wrong)]
    return "\n\n".join(parts) + "\n"
