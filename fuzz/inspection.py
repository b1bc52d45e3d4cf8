# SPDX-License-Identifier: BSD-3-Clause
"""One input under all oracles: exceptions, invariants, time and memory."""

from __future__ import annotations

import os
import time
import traceback
from pathlib import Path
from random import Random
from typing import NamedTuple

from fuzz.oracles import Broken
from fuzz.targets import Input, Target, Verdict

LIMIT = 2.0
"""Seconds of processor time that an input may take, all ways to read it together."""
_SANITIZED_EXCESS = 512 << 20  # what is freed stays for a while, and everything has walls around it
_THOROUGH = 20


class Finding(NamedTuple):
    """Something that should not be."""

    kind: str
    """exception, invariant, slow, memory; of processes that ended: hang, crash."""
    key: str
    """The same for inputs that find the same."""
    text: str
    """All that is known, such as the traceback."""


class Inspector:
    """Writes inputs to a file and has them checked."""

    def __init__(self, target: Target, folder: Path, limit: float = LIMIT) -> None:
        self.target, self.folder, self.limit = target, folder, limit
        self._excess = _SANITIZED_EXCESS if "asan" in os.environ.get("LD_PRELOAD", "") else 0

    def inspect(
        self, given: Input, random: Random, *, thorough: bool = False
    ) -> tuple[Verdict | None, Finding | None]:
        """What became of the input, or what was found."""
        path = self.folder / f"input{given.suffix}"
        for other in self.folder.glob("input*"):
            other.unlink()  # whoever looks into the folder after a crash finds one input
        path.write_bytes(given.content)
        state = random.getstate()
        verdict, finding = self._once(path, given, random, thorough)
        if finding is not None and finding.kind in ("slow", "memory"):
            # The first time pays for imports, and the machine may have been busy.
            random.setstate(state)
            verdict, finding = self._once(path, given, random, thorough)
        return verdict, finding

    def _once(
        self, path: Path, given: Input, random: Random, thorough: bool
    ) -> tuple[Verdict | None, Finding | None]:
        before = _memory("VmRSS") if _forget_peak() else 0
        begun = time.process_time()
        try:
            verdict = self.target.check(path, given, random, thorough=thorough)
        except Exception as error:
            return None, _found(error)
        seconds = time.process_time() - begun
        limit = self.limit * (_THOROUGH if thorough else 1)
        if seconds > limit:
            text = f"{seconds:.2f} s for {len(given.content)} bytes, of which {verdict.reason} came"
            return verdict, Finding("slow", f"slow {verdict.reason}", text)
        allowed = self.target.allowance(given) + self._excess
        grown = _memory("VmHWM") - before if before else 0
        if grown > allowed:
            text = f"{grown} bytes for {len(given.content)}, more than {allowed}: {verdict.reason}"
            return verdict, Finding("memory", f"memory {verdict.reason}", text)
        return verdict, None


def _found(error: Exception) -> Finding:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if f"{os.sep}maxmargin{os.sep}" in frame.filename] or frames
    place = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}"
    text = "".join(traceback.format_exception(error))
    if isinstance(error, Broken):
        return Finding("invariant", f"invariant {str(error)[:40]}", text)
    return Finding("exception", f"{type(error).__name__} at {place}", text)


def _forget_peak() -> bool:
    """Linux forgets the peak of a process on request; elsewhere memory is not watched."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def _memory(field: str) -> int:
    """Bytes; 0 where the system does not tell, which happens now and then."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return 1024 * int(line.split()[1])
    return 0
