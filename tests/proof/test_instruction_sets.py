# SPDX-License-Identifier: BSD-3-Clause
"""Bounds of every compiled core, on badly scaled problems, against the exact values of their own points.

A bound may differ from one instruction set to the next, since sums are computed in another order. It has to
be on the right side in each of them: plain and in twofold precision, linear and through a kernel, of single
problems and of many small ones.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from fractions import Fraction
from importlib.util import find_spec

import pytest

import claims_of_a_core
from benchmarks.exact_family import ShiftedProof
from claims_of_a_core import FORMS, KERNELS, MORE_FORMS, ROWS, SCALES, data
from maxmargin import _core_baseline
from maxmargin.independent.arithmetic import Vector
from maxmargin.independent.rows import KernelRows as ExactKernelRows
from maxmargin.independent.rows import PlainRows
from maxmargin.independent.values import ExactProblem, Proof

SETS = ("baseline", "avx2", "avx512")


def claims_of(name):
    """What the core of an instruction set claims, in a process of its own."""
    if name not in _core_baseline.instruction_sets():
        pytest.skip(f"this processor has no {name}")
    if find_spec(f"maxmargin._core_{name}") is None:
        pytest.skip(f"this build has no core for {name}")
    variables = {**os.environ, "MAXMARGIN_INSTRUCTION_SET": name, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-W", "ignore", claims_of_a_core.__file__]
    ended = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    used, products_are_rounded, *claims = json.loads(ended.stdout)
    assert used == name
    assert products_are_rounded, "the core was compiled with contraction, which twofold precision forbids"
    return claims


def exact_proof(claim):
    X, y = data(claim["scale"])
    vectors = [Vector.of(row) for row in X.tolist()]
    rows = PlainRows(vectors) if claim["kernel"] is None else ExactKernelRows(vectors, claim["kernel"])
    costs = [Fraction(claim["C"])] * ROWS
    labels = [int(label) for label in claim.get("y", y.tolist())]
    problem = ExactProblem(
        rows,
        labels,
        costs,
        claim["loss"],
        claim["intercept"],
        group=claim.get("group", 1),
        targets=[Fraction(p) for p in claim["targets"]] if "targets" in claim else None,
        penalty=claim.get("penalty", "l2"),
        total=Fraction(claim["total"]) if "total" in claim else None,
    )
    alpha = [Fraction(a) for a in claim["alpha"]]
    proof = ShiftedProof if problem.total is not None else Proof
    return proof(problem, Vector.of(claim["w"]), Fraction(claim["b"]), alpha, Fraction(claim["shift"]))


@pytest.mark.parametrize("name", SETS)
def test_bounds_are_on_the_right_side_in_every_core(name):
    # One test for all of it: a process of the tests starts each core once.
    claims = claims_of(name)
    for claim in claims:
        exact = exact_proof(claim)
        assert claim["primal"] >= exact.primal.low, claim
        assert claim["dual"] <= exact.lower_bound, claim
        if claim["scale"] == "usual":  # and they say something
            most, least = float(exact.primal.high), float(exact.lower_bound)
            assert claim["primal"] <= most + 1e-7 * abs(most), claim
            assert claim["dual"] >= least - 1e-7 * abs(least) - 1e-7, claim
    plain, twofold, many = ([c for c in claims if c["way"] == way] for way in ("plain", "twofold", "many"))
    assert len(many) == len(SCALES) * len(KERNELS)
    assert len(plain) == len(SCALES) * (len(FORMS) + len(MORE_FORMS) + len(KERNELS))
    both = list(zip(plain, twofold, strict=True))
    assert all(a["primal"] >= b["primal"] and a["dual"] <= b["dual"] for a, b in both)
    assert any(a["primal"] > b["primal"] for a, b in both)
