# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of more than one file: the command in this process, in words and as JSON."""

from __future__ import annotations

import json
import os

import pytest

# A process of the tests has one core. Two threads of BLAS on it would wait for each other by spinning.
# This comes before the first import of NumPy, which reads it once.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from maxmargin.command_line import main


@pytest.fixture
def run(capsys):
    """Exit code, stdout and stderr of a command."""

    def run(*arguments):
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        output = capsys.readouterr()
        assert "Traceback" not in output.err
        return ended.value.code, output.out, output.err

    return run


@pytest.fixture
def answer(run):
    """The JSON answer, and the exit code."""

    def answer(*arguments):
        code, out, err = run(*arguments, "--json")
        assert err == ""
        return code, json.loads(out)

    return answer
