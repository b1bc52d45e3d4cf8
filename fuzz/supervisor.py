# SPDX-License-Identifier: BSD-3-Clause
"""Several workers at a time, and new ones in the place of those that an input has ended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from fuzz.inspection import LIMIT, Finding
from fuzz.targets import suffixes
from fuzz.worker import HANGS_AFTER, Counts, Task, save

WORKER = (sys.executable, "-m", "fuzz.worker")
_REPOSITORY = Path(__file__).resolve().parent.parent
_MOST_STARTS = 50
_WAIT = 0.05
_START = 60.0  # a worker that has not ended so long after its time will not


@dataclass
class Plan:
    """What all workers of a run have in common."""

    seconds: float
    """For one target, by the clock."""
    seed: int
    workers: int
    findings: Path
    limit: float = LIMIT
    inputs: int | None = None
    """For each worker."""
    command: tuple[str, ...] = WORKER


def run(name: str, plan: Plan) -> Counts:
    """Fuzz one target; the counts of all workers together."""
    total = Counts()
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        begun = time.monotonic()
        crews = [_Crew(name, plan, Path(folder) / str(number), number) for number in range(plan.workers)]
        try:
            while any([crew.goes_on() for crew in crews]):
                time.sleep(_WAIT)
        finally:
            for crew in crews:
                crew.end()
        for crew in crews:
            total.add(crew.counts)
        total.seconds = time.monotonic() - begun
    return total


class _Crew:
    """A worker and its successors."""

    def __init__(self, name: str, plan: Plan, folder: Path, number: int) -> None:
        self.name, self.plan, self.folder, self.number = name, plan, folder, number
        self.counts, self.starts, self.ends = Counts(), 0, time.monotonic() + plan.seconds
        self._start()

    def _start(self) -> None:
        self.here = self.folder / str(self.starts)
        self.here.mkdir(parents=True)
        seed = f"{self.name} {self.plan.seed} {self.number} {self.starts}"
        self.starts += 1
        task = Task(
            target=self.name,
            seed=seed,
            seconds=max(0.0, self.ends - time.monotonic()),
            folder=str(self.here),
            findings=str(self.plan.findings.resolve()),
            limit=self.plan.limit,
            inputs=self.plan.inputs,
        )
        self.deadline = self.ends + _START + 5 * HANGS_AFTER * self.plan.limit
        with open(self.here / "output.txt", "w") as output:
            self.process = subprocess.Popen(
                [*self.plan.command, json.dumps(asdict(task))],
                cwd=_REPOSITORY,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    def goes_on(self) -> bool:
        """Whether there is still work; takes note of a worker that ended."""
        if self.process.poll() is None:
            if time.monotonic() > self.deadline:
                self.end()
            return True
        if self.here is None:
            return False
        told = self.here / "counts.json"
        if told.exists():
            self.counts.add(Counts.of(json.loads(told.read_text())))
        if self.process.returncode != 0:
            self._note_end()
            if self.starts < _MOST_STARTS and time.monotonic() < self.ends:
                self._start()
                return True
        self.here = None
        return False

    def _note_end(self) -> None:
        trace = self.here / "trace.txt"
        traced = trace.read_text(errors="replace") if trace.exists() else ""
        output = (self.here / "output.txt").read_text(errors="replace")[-20_000:]
        hangs = "Timeout" in traced or time.monotonic() > self.deadline
        kind = "hang" if hangs else "crash"
        text = f"the process ended with {self.process.returncode}\n\n{traced}\n{output}"
        self.counts.findings[f"{kind} of a worker"] += 1
        for path in self.here.glob("input*"):
            save(
                self.plan.findings, self.name, path.read_bytes(), suffixes(path), Finding(kind, kind, text)
            )
            return
        save(self.plan.findings, self.name, b"", "", Finding(kind, kind, text))

    def end(self) -> None:
        """Kill the worker if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
