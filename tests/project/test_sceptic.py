# SPDX-License-Identifier: BSD-3-Clause
"""``python -m benchmarks sceptic``: that it can find what it looks for, and says how to see it again."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from functools import partial
from operator import mul

import numpy as np
import pytest

from benchmarks import quick_fractions, sceptic, sceptic_cases
from benchmarks.__main__ import PAGES
from benchmarks.sceptic import Found, examine, examine_numbers, judge, smaller
from benchmarks.sceptic_cases import Case
from benchmarks.sceptic_draws import KINDS, draw
from benchmarks.sceptic_family import FAMILY, draw_family
from benchmarks.sceptic_page import markdown
from benchmarks.sceptic_runs import run
from maxmargin.independent import arithmetic

X = np.array([[2.0, 1.0], [1.0, 2.0], [0.0, 0.5], [-1.0, -1.0], [0.5, -2.0], [1.0, 1.0]])
Y = np.array([1, 1, 1, -1, -1, -1])
CALLS = {
    "linear": {"loss": "logistic", "C": 1.0, "random_state": 0, "n_jobs": 1},
    "kernel": {"kernel": "poly", "degree": 2, "coef0": 1.0, "C": 1.0, "n_jobs": 1},
    "problem": {"C": 1.0, "loss": "squared_hinge", "intercept": "regularised", "kernel": "none"},
    "regression": {"kernel": "rbf", "C": 1.0, "epsilon": 0.1, "n_jobs": 1},
    "hard margin": {"loss": "hinge", "C": math.inf, "random_state": 0, "n_jobs": 1},
    "path": {"loss": "hinge", "intercept": "exact", "low": 0.1, "high": 1.0, "tol": 1e-2},
    "cross-validation": {"loss": "hinge", "Cs": [0.1, 1.0], "cv": 2, "random_state": 0, "n_jobs": 1},
    "nu classification": {"kernel": "rbf", "nu": 0.6, "n_jobs": 1},
    "nu regression": {"kernel": "linear", "nu": 0.5, "C": 2.0, "n_jobs": 1},
    "one class": {"kernel": "rbf", "nu": 0.4, "n_jobs": 1},
    "joint classes": {"loss": "hinge", "multi_class": "crammer_singer", "C": 1.0, "n_jobs": 1},
    "ranking": {"loss": "squared_hinge", "C": 1.0, "n_jobs": 1},
}


def case_of(kind):
    rows = X.copy()
    if kind == "hard margin":
        rows[:, 0] += 5.0 * Y
    labels = np.array([0, 1, 2, 0, 1, 2]) if kind == "joint classes" else Y
    return Case(kind, rows, labels, CALLS[kind])


@pytest.mark.parametrize("kind", [*KINDS, *FAMILY])
def test_values_that_are_moved_to_the_wrong_side_are_found(kind):
    outcome = run(case_of(kind))
    assert not outcome.refused
    assert outcome.claims
    for claim in outcome.claims:
        some = partial(mul, abs(claim.primal))
        # What float64 can have added is taken off first.
        values = {"primal": claim.primal + some(1e-9), "dual": claim.dual - some(1e-9)}
        wide = replace(claim, **values, tol=claim.tol * 1.001 + 1e-8)
        assert list(judge(wide)) == []
        names = {fault.name for fault in judge(replace(wide, primal=claim.primal - some(1e-6)))}
        assert names == {"primal too low"}
        names = {fault.name for fault in judge(replace(wide, dual=claim.primal + some(0.01)))}
        assert names == {"dual too high", "dual above primal"}
        others = [a * 9 / 10 + claim.problem.costs[0] / 100 for a in claim.alpha]
        names = {fault.name for fault in judge(replace(wide, alpha=others, certified=True, tol=1e-9))}
        assert "gap above tol" in names
        names = {fault.name for fault in judge(replace(wide, certified=True, proven=False))}
        assert names == {"certified, not proven"}
        assert {fault.name for fault in judge(replace(wide, is_kernel=False))} == {"not a kernel"}
        if claim.place is not None and not claim.hard:
            nearer = replace(wide, place=claim.place._replace(radius=0.0))
            assert "wrong place" in {fault.name for fault in judge(nearer)}
        if claim.scores is not None and not claim.hard:
            low, high = claim.scores
            middle = [(a + b) / 2 for a, b in zip(low, high, strict=True)]
            for ends in ((middle, high), (low, middle)):
                assert {fault.name for fault in judge(replace(wide, scores=ends))} == {"narrow bounds"}
        if claim.settled is not None and not claim.hard:
            every, none = [True] * len(claim.alpha), [False] * len(claim.alpha)
            for rows in ((every, none), (none, every)):
                assert {fault.name for fault in judge(replace(wide, settled=rows))} == {"open row"}


def test_a_hyperplane_that_does_not_separate_is_found():
    (claim,) = run(case_of("hard margin")).claims
    turned = replace(claim, problem=replace(claim.problem, y=[-y for y in claim.problem.y]))
    assert {fault.name for fault in judge(turned)} == {"false separation"}


def test_false_inseparability_and_crashes_are_found(monkeypatch):
    def refuse(case):
        return sceptic_cases.Outcome(inseparable=True)

    monkeypatch.setattr(sceptic, "run", refuse)
    assert [fault.name for fault in examine(case_of("hard margin"), Found())] == ["false inseparability"]
    crossed = Case("hard margin", X, np.array([1, -1, 1, -1, 1, -1]), CALLS["hard margin"])
    assert examine(crossed, Found()) == []

    def fail(case):
        raise ZeroDivisionError("of all things")

    monkeypatch.setattr(sceptic, "run", fail)
    (fault,) = examine(case_of("linear"), Found())
    assert fault.name == "crash"
    assert "of all things" in fault.text


def test_a_finding_is_shown_with_few_rows(monkeypatch):
    def third_row(case, found):
        wrong = (X[2] == case.X).all(axis=1).any()
        return [sceptic.Fault("warning", 0.0, "the third row")] if wrong else []

    monkeypatch.setattr(sceptic, "examine", third_row)
    less = smaller(case_of("linear"), "warning")
    assert len(less.y) == 2
    assert (X[2] == less.X).all(axis=1).any()
    lines = less.code().splitlines()
    assert lines[-1] == "LinearSVC(loss='logistic', C=1.0, random_state=0, n_jobs=1).fit(X, y)"
    made = {"np": np}
    exec("\n".join(lines[:-1]), made)
    np.testing.assert_array_equal(made["X"], less.X)


def test_the_same_seed_draws_the_same_fits():
    first, again, other = draw(0, 5), draw(0, 5), draw(1, 5)
    np.testing.assert_array_equal(first.X, again.X)
    assert first.options == again.options
    assert first.code() != other.code()
    assert {draw(0, number).kind for number in range(100)} == set(KINDS)
    assert {draw_family(0, number).kind for number in range(100)} == set(FAMILY)
    # A run of a million fits goes on with the numbers that it began with.
    assert float(draw(18, 0).X[0, 0]) == pytest.approx(6.589288088008449)


def test_quick_fractions_are_the_same_fractions():
    pytest.importorskip("gmpy2")
    others = quick_fractions.replacements()
    quick = others[Fraction]
    for function, low, high in ((arithmetic.exponential, -690, 0), (arithmetic.logarithm, 1e-12, 4)):
        for x in np.random.default_rng(0).uniform(low, high, size=20).tolist():
            # More digits than the functions are computed with.
            number = Fraction(x) + Fraction(1, 3**300)
            (low_end, high_end), quicker = function(number), others[function](quick(number))
            assert low_end <= quicker.high
            assert quicker.low <= high_end
            assert 0 < quicker.high - quicker.low <= Fraction(1, 2**238)
    cases = [case_of(kind) for kind in [*KINDS, *FAMILY]]
    # Claims that are a little too good, so that both have something to find.
    claims = [
        replace(claim, primal=claim.primal - 0.1 * abs(claim.primal))
        for case in cases
        for claim in run(case).claims
    ]
    found = [[fault[:2] for fault in judge(claim)] for claim in claims]
    assert all(found)
    undo = quick_fractions.take()
    try:
        assert sceptic.Fraction is quick
        again = [
            replace(claim, primal=claim.primal - 0.1 * abs(claim.primal))
            for case in cases
            for claim in run(case).claims
        ]
        assert isinstance(again[0].b, quick)
        faults = [[fault[:2] for fault in judge(claim)] for claim in again]
    finally:
        undo()
    assert sceptic.Fraction is Fraction
    for ours, theirs in zip(found, faults, strict=True):
        assert [name for name, _ in ours] == [name for name, _ in theirs]
        assert [size for _, size in ours] == pytest.approx([size for _, size in theirs], rel=1e-12)


def test_the_page_counts_every_fit_of_every_batch(tmp_path):
    file = tmp_path / "batches"
    batches = sceptic.Batches(file)
    found = examine_numbers(0, range(4))
    assert sum(found.fits.values()) == 4
    assert found.seconds > 0
    found.findings["crash", "path"] += 1
    found.shown.append((sceptic.Fault("crash", math.inf, "text"), "lines"))
    batches.add(0, 0, found)
    batches.add(0, 600, examine_numbers(0, range(600, 603)))
    with file.open("a") as torn:
        torn.write('{"seed": 0, "first": 200, "fou')  # stopped here
    again = sceptic.Batches(file)
    assert again.total == batches.total
    again.add(1, 0, examine_numbers(1, range(1)))
    last = sceptic.measure(0.0, 0, 0, 1, print, file)
    assert last.total == again.total
    assert last.total != batches.total
    assert list(itertools.islice(last.open_from(0, 0), 3)) == [200, 400, 800]
    page = markdown(last)
    assert "8 fits with" in page
    assert "seed 0 and 1" in page
    assert all(words in page for words in sceptic.FINDINGS.values())
    assert PAGES["sceptic"].failed(last)
    assert not PAGES["sceptic"].failed(sceptic.Batches())
