# SPDX-License-Identifier: BSD-3-Clause
"""The installed command, run as a user runs it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import maxmargin
from maxmargin.solvers import SOLVERS


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "maxmargin.command_line", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_demo_proves_every_solver():
    result = run("demo", "--json", "--max-time", "0.3")
    assert result.returncode == 0, result.stderr
    answer = json.loads(result.stdout)
    assert [row["solver"] for row in answer["solvers"]] == list(SOLVERS)
    best_dual = max(row["dual"] for row in answer["solvers"])
    for row in answer["solvers"]:
        assert row["primal"] >= best_dual
        assert row["test_accuracy"] > 0.9
    assert answer["auto"].startswith("dual_coordinate_ascent")


def test_demo_prints_a_table_and_what_auto_takes():
    result = run("demo", "--max-time", "0.3", "--loss", "squared_hinge")
    assert result.returncode == 0, result.stderr
    for word in ("primal", "dual", "rel. gap", "seconds", "test acc.", "auto takes", "Left out: pegasos"):
        assert word in result.stdout


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("demo", "--loss", "epsilon"), "epsilon"),
        (("demo", "-C", "-1"), "C must be a finite number"),
        (("dance",), "No such command"),
    ],
)
def test_wrong_input_is_named_and_exits_with_2(arguments, complaint):
    result = run(*arguments)
    assert result.returncode == 2
    assert complaint in result.stderr
    assert "Traceback" not in result.stderr


def test_version():
    assert run("--version").stdout.strip() == maxmargin.__version__
