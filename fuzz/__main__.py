# SPDX-License-Identifier: BSD-3-Clause
"""``python -m fuzz libsvm|model|npz|packed|tables|all --seconds 60``: run from the root of the repository.

The exit code is 1 if something was found. ``corpus`` in place of a target writes the corpus anew.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from pathlib import Path

from fuzz.inspection import LIMIT
from fuzz.report import Run, as_object, line, page
from fuzz.supervisor import Plan, run
from fuzz.targets import NAMES, target


def main(arguments: list[str] | None = None) -> int:
    """0, or 1 where something was found."""
    given = sys.argv[1:] if arguments is None else arguments
    options = _parser().parse_args(given)
    if options.target == "corpus":
        from fuzz.make_corpus import write_corpus

        print(f"{write_corpus()} bytes in the corpus")
        return 0
    done = Run(_command(given), options.workers, options.seed)
    names = NAMES if options.target == "all" else (options.target,)
    for name in names:
        why = target(name).missing()
        if why is not None:
            done.skipped[name] = why
            if not options.json:
                print(f"{name}: skipped, {why}")
    names = tuple(name for name in names if name not in done.skipped)
    for name in names:
        plan = Plan(
            options.seconds / len(names), options.seed, options.workers, options.findings, options.limit
        )
        done.counts[name] = run(name, plan)
        if not options.json:
            print(line(name, done.counts[name]), flush=True)
    if options.json:
        print(json.dumps(as_object(done)))
    if options.report is not None:
        options.report.write_text(page(done, options.limit), encoding="utf-8")
    if done.findings:
        print(f"{done.findings} findings: see {options.findings}", file=sys.stderr)
    return 1 if done.findings else 0


def _command(given: list[str]) -> str:
    """As it was called, without the places of the output: pages name no paths."""
    kept = list(given)
    for option in ("--report", "--findings"):
        if option in kept:
            place = kept.index(option)
            del kept[place : place + 2]
        kept = [word for word in kept if not word.startswith(f"{option}=")]
    return shlex.join(["python", "-m", "fuzz", *kept])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("target", choices=[*NAMES, "all", "corpus"])
    parser.add_argument("--seconds", type=float, default=60.0, help="in all, by the clock")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1, help="processes, each with a seed of its own")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds of processor time for an input")
    parser.add_argument("--findings", type=Path, default=Path(__file__).resolve().parent / "findings")
    parser.add_argument("--report", type=Path, help="write the results page to this file")
    parser.add_argument("--json", action="store_true", help="print one object instead of lines")
    return parser


if __name__ == "__main__":
    sys.exit(main())
