# SPDX-License-Identifier: BSD-3-Clause
"""What a run came to: a line for each target, an object, and docs/results/fuzz.md."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks import machine
from fuzz.worker import Counts
from maxmargin import core

_SHOWN_IN_A_LINE = 4


@dataclass
class Run:
    """One call of the program."""

    command: str
    workers: int
    seed: int
    counts: dict[str, Counts] = field(default_factory=dict[str, Counts])
    skipped: dict[str, str] = field(default_factory=dict[str, str])
    """Targets that could not run, and why."""

    @property
    def findings(self) -> int:
        return sum(sum(counts.findings.values()) for counts in self.counts.values())


def line(name: str, counts: Counts) -> str:
    """One target in one line."""
    refused = sum(counts.refused.values())
    common = counts.refused.most_common(_SHOWN_IN_A_LINE)
    reasons = ", ".join(f"{reason}: {count}" for reason, count in common)
    others = len(counts.refused) - len(common)
    more = f", and {others} other reasons" if others > 0 else ""
    return (
        f"{name}: {counts.inputs} inputs in {counts.seconds:.0f} s, {counts.read} read, {refused} refused "
        f"({reasons}{more}), {sum(counts.findings.values())} findings"
    )


def as_object(run: Run) -> dict[str, Any]:
    """Everything, for programs."""
    return {
        "workers": run.workers,
        "seed": run.seed,
        "sanitized": sanitized(),
        "skipped": run.skipped,
        "findings": run.findings,
        "targets": {
            name: {
                "inputs": counts.inputs,
                "read": counts.read,
                "refused": dict(counts.refused.most_common()),
                "findings": dict(counts.findings.most_common()),
                "signatures": counts.signatures,
                "seconds": round(counts.seconds, 1),
            }
            for name, counts in run.counts.items()
        },
    }


def sanitized() -> bool:
    """Whether the core that is imported here, as by the workers, was built with the address sanitizer."""
    module = import_module(f"maxmargin._core_{core.INSTRUCTION_SET}")
    return b"__asan_init" in Path(str(module.__file__)).read_bytes()


_PAGE = """\
# Fuzzing the readers

<!-- Written by `{command} --report docs/results/fuzz.md`; do not edit it. -->

## How to run it

```
python -m fuzz all --seconds 60                       # a fifth of it for each target, one worker
python -m fuzz libsvm --seconds 600 --workers 8       # one target, eight processes
python -m fuzz all --seconds 3600 --workers 16 --report docs/results/fuzz.md
```

The same seed makes the same inputs. `.ci/run` builds a core with the address and undefined-behaviour
sanitizers and fuzzes with it for a short while; `pytest` replays the corpus. Findings are saved to
`fuzz/findings`, each with its traceback, and the exit code is 1 if there is one. An input that finds
something is fixed together with a test, and goes into `fuzz/corpus`.

The targets are `libsvm` (text, plain and compressed), `model` (ours, LIBLINEAR's and LIBSVM's), `npz`,
`packed` (ours) and `tables` (CSV and Parquet, if pyarrow is there). Mutants are made of the files in
`fuzz/corpus` and of those mutants that led to a new outcome: bits, pieces and tokens are changed, files are
spliced, members of archives and headers of arrays are edited, and fields of our own formats are edited
under checksums that are made anew.

## What has to hold for every input

* Nothing comes out of a reader but a `DataError` or `ModelError`: no other exception, no warning, no crash,
  and no report of a sanitizer. Its message begins with the file's name, is short, and has nothing in it
  that a terminal would obey.
* No input takes more than {limit:g} s of processor time, or hangs.
* The peak of memory stays below a bound that the input's size gives.
* What is read is sound: CSR is canonical, values and labels are finite, shapes and counts agree.
* Blocks of any size, one thread or two, and a stream all give the same rows, or refuse for the same reason.
* `skip_bad_lines` changes nothing in a good file, and the rows written as LIBSVM text and read again are
  the same.
* LIBSVM text is what a second reader, of regular expressions and Python's `float`, says it is: the same
  rows to the last bit, the same lines skipped, the same first bad line.
* A model that was loaded is free of contradictions, predicts only classes that it has, is equal after
  saving and loading, and `LinearSVC.load` of the same file predicts the same and has a summary.

## What was found

{facts}; {workers} of the fuzzer at a time, seed {seed}, {core}.

{table}

{notes}## Why inputs were refused

{reasons}
"""


def page(run: Run, limit: float) -> str:
    """All of docs/results/fuzz.md."""
    chosen = ("processor", "cores", "Python", "maxmargin", "numpy", "scipy")
    known = machine.facts()
    facts = ", ".join(f"{name} {known[name]}" for name in chosen)
    rows = [
        [
            name,
            f"{round(counts.seconds, 1):.0f}",  # what the JSON says, rounded once more
            f"{counts.inputs:,}",
            f"{counts.read:,}",
            f"{sum(counts.refused.values()):,}",
            str(len(counts.refused)),
            str(sum(counts.findings.values())),
        ]
        for name, counts in run.counts.items()
    ]
    heads = ["target", "seconds", "inputs", "read", "refused", "reasons to refuse", "findings"]
    parts = [
        f"### {name}\n\n"
        + _table(
            ["reason", "inputs"],
            [[_cell(reason), f"{count:,}"] for reason, count in counts.refused.most_common()],
        )
        for name, counts in run.counts.items()
        if counts.refused
    ]
    notes = [f"* {name} was left out: {why}.\n" for name, why in run.skipped.items()]
    for name, counts in run.counts.items():
        notes += [f"* {name}: {_cell(key)} ({times} times).\n" for key, times in counts.findings.items()]
    return _PAGE.format(
        command=run.command,
        limit=limit,
        facts=facts[0].upper() + facts[1:],
        workers=f"{run.workers} processes" if run.workers > 1 else "one process",
        seed=run.seed,
        core="with the sanitized core" if sanitized() else "with the usual core",
        table=_table(heads, rows),
        notes="".join(notes) + "\n" if notes else "",
        reasons="\n\n".join(parts),
    )


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "\\<")


def _table(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
