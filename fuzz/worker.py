# SPDX-License-Identifier: BSD-3-Clause
"""One process that mutates and checks until its time is over; ``fuzz.supervisor`` starts and watches it.

What it knows goes to files in its folder all the time, since any input may end the process.
"""

from __future__ import annotations

import faulthandler
import hashlib
import json
import math
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from fuzz.inspection import LIMIT, Finding, Inspector
from fuzz.targets import Input, target

_MOST_KEPT = 400
_OTHERS = "other reasons"
_MOST_REASONS = 80
_SAVED_OF_A_KEY = 3
_TELL_EVERY = 1.0
HANGS_AFTER = 10  # times the limit on processor time, by the clock


@dataclass
class Task:
    """What a worker is to do."""

    target: str
    seed: str
    seconds: float
    folder: str
    findings: str
    limit: float = LIMIT
    inputs: int | None = None
    """End after so many, even if there is time left."""


@dataclass
class Counts:
    """What a worker has done."""

    inputs: int = 0
    read: int = 0
    refused: Counter[str] = field(default_factory=Counter[str])
    findings: Counter[str] = field(default_factory=Counter[str])
    signatures: int = 0
    seconds: float = 0.0

    def add(self, other: Counts) -> None:
        self.inputs += other.inputs
        self.read += other.read
        self.refused += other.refused
        self.findings += other.findings
        self.signatures = max(self.signatures, other.signatures)
        self.seconds += other.seconds

    def refuse(self, reason: str) -> None:
        known = reason in self.refused or len(self.refused) < _MOST_REASONS
        self.refused[reason if known else _OTHERS] += 1

    @classmethod
    def of(cls, stored: dict[str, Any]) -> Counts:
        return cls(
            **{**stored, "refused": Counter(stored["refused"]), "findings": Counter(stored["findings"])}
        )


def work(task: Task) -> Counts:
    """Check the corpus, then mutants of it and of those that did something new."""
    chosen, folder = target(task.target), Path(task.folder)
    inspector = Inspector(chosen, folder, task.limit)
    random = Random(task.seed)
    counts, known, tried = Counts(), set[tuple[str, ...]](), set[tuple[str, ...]]()
    pool = chosen.corpus()
    kept: list[Input] = []
    begun = told = time.monotonic()
    watched = -math.inf
    waiting = random.sample(pool, len(pool))
    with open(folder / "trace.txt", "w") as trace:
        faulthandler.enable(trace)
        while counts.seconds < task.seconds and counts.inputs != task.inputs:
            mutant = not waiting
            given = chosen.mutate(random, kept if kept and random.random() < 0.5 else pool)
            given = given if mutant else waiting.pop()
            if time.monotonic() - watched > task.limit / 2:  # a new watch costs as much as a small input
                watched = time.monotonic()
                faulthandler.dump_traceback_later(HANGS_AFTER * task.limit, exit=True, file=trace)
            verdict, finding = inspector.inspect(given, random)
            if verdict is not None and verdict.signature not in known:
                known.add(verdict.signature)
                if mutant and len(kept) < _MOST_KEPT:
                    kept.append(given)
                if mutant and verdict.signature[:2] not in tried:
                    tried.add(verdict.signature[:2])
                    finding = finding or inspector.inspect(given, random, thorough=True)[1]
            counts.inputs += 1
            if verdict is not None and verdict.reason == "read":
                counts.read += 1
            elif verdict is not None:
                counts.refuse(verdict.reason)
            if finding is not None:
                counts.findings[finding.key] += 1
                if counts.findings[finding.key] <= _SAVED_OF_A_KEY:
                    save(Path(task.findings), task.target, given.content, given.suffix, finding)
            now = time.monotonic()
            counts.seconds, counts.signatures = now - begun, len(known)
            if now - told > _TELL_EVERY:
                told = now
                _tell(folder, counts)
        faulthandler.cancel_dump_traceback_later()
        faulthandler.disable()  # it would write to a file that is closed
    _tell(folder, counts)
    return counts


def _tell(folder: Path, counts: Counts) -> None:
    new = folder / "counts.new"
    new.write_text(json.dumps(vars(counts)))  # a Counter is a dictionary for JSON
    new.replace(folder / "counts.json")  # whole, also if the process ends now


def save(folder: Path, name: str, content: bytes, suffix: str, finding: Finding) -> Path:
    """The input, and beside it what it found."""
    folder.mkdir(parents=True, exist_ok=True)
    mark = hashlib.blake2b(content + suffix.encode(), digest_size=6).hexdigest()
    path = folder / f"{name}-{finding.kind}-{mark}{suffix}"
    path.write_bytes(content)
    (folder / f"{name}-{finding.kind}-{mark}.txt").write_text(
        finding.text, encoding="utf-8", errors="replace"
    )
    return path


if __name__ == "__main__":
    work(Task(**json.loads(sys.argv[1])))
