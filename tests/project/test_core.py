# SPDX-License-Identifier: BSD-3-Clause
"""The compiled core: instruction sets, random orders, budgets, and refusals of inconsistent arrays."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from maxmargin import Problem, core, solve
from maxmargin.problem.rows import Rows


def in_a_new_process(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, **environment}
    return subprocess.run(
        [sys.executable, "-c", code], env=variables, capture_output=True, text=True, timeout=120
    )


SOLVE = """
import numpy as np, maxmargin
random = np.random.default_rng(0)
X = random.normal(size=(200, 37)).astype(np.float32)
y = np.sign(X[:, 0] + random.normal(size=200))
print(repr(maxmargin.solve(maxmargin.Problem.of(X, y), tol=1e-10, max_steps=20000).certificate.primal))
"""


def test_every_instruction_set_gives_the_same_answer():
    offered = core._offered
    values = []
    for name in offered:
        result = in_a_new_process(SOLVE, MAXMARGIN_INSTRUCTION_SET=name)
        assert result.returncode == 0, result.stderr
        values.append(float(result.stdout))
    assert "baseline" in offered
    np.testing.assert_allclose(values, values[0], rtol=1e-9)


def test_an_instruction_set_that_is_not_there_is_refused():
    result = in_a_new_process("import maxmargin.core", MAXMARGIN_INSTRUCTION_SET="altivec")
    assert "offer baseline" in result.stderr


@pytest.mark.parametrize("flag", ["-ffast-math", "-funsafe-math-optimizations", "-ffinite-math-only"])
def test_flags_that_break_proofs_end_the_build(flag):
    compiler, folder = shutil.which("c++"), Path(__file__).parents[2] / "core"
    if compiler is None or not folder.is_dir():
        pytest.skip("there is no C++ compiler, or there are no sources")

    def compiled(*flags):
        command = [compiler, "-std=c++20", "-I", str(folder), *flags, "-fsyntax-only", "-x", "c++", "-"]
        text = '#include "twofold/arithmetic.hpp"\n#include "passes/proof.hpp"\n'
        return subprocess.run(command, input=text, capture_output=True, text=True, timeout=120)

    result = compiled(flag)
    assert result.returncode != 0
    assert "maxmargin proves its values" in result.stderr
    if flag == "-ffast-math":
        assert compiled("-ffp-contract=off").returncode == 0


def test_omp_num_threads_is_respected():
    code = "from maxmargin.core import default_threads; print(default_threads())"
    assert in_a_new_process(code, OMP_NUM_THREADS="3").stdout.strip() == "3"


def test_shuffles_are_permutations_and_depend_on_the_seed_alone():
    first, second, other = np.arange(1000), np.arange(1000), np.arange(1000)
    assert core.shuffle(first, 7) == core.shuffle(second, 7)
    core.shuffle(other, 8)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(np.sort(first), np.arange(1000))
    assert np.count_nonzero(first == other) < 20


def test_draws_are_uniform():
    draws = np.empty(100_000, np.int64)
    core.draw(draws, 10, 1)
    counts = np.bincount(draws, minlength=10)
    assert len(counts) == 10
    # Ten thousand each, standard deviation 95.
    assert np.abs(counts - 10_000).max() < 500


def test_shuffles_are_uniform():
    # Every value is equally likely in every place: 6 x 6 cells of 1000 each, deviation about 30.
    state = 3
    cells = np.zeros((6, 6))
    for _ in range(6000):
        order = np.arange(6)
        state = core.shuffle(order, state)
        cells[np.arange(6), order] += 1
    assert np.abs(cells - 1000).max() < 200


def test_weighted_quantile_minimises():
    random = np.random.default_rng(0)
    for ridge in (0.0, 0.5):
        for _ in range(50):
            values = random.normal(size=7).round(1)
            weights = random.integers(0, 3, 7).astype(float)
            if not weights.any():
                continue
            level = float(random.uniform(0, weights.sum()))
            low, high = core.weighted_quantile(values, weights, level, ridge)

            def value(t, v=values, w=weights, level=level, ridge=ridge):
                return ridge / 2 * t**2 + w @ np.maximum(0, t - v) - level * t

            grid = np.linspace(-9, 9, 3601)
            best = min(value(t) for t in grid)
            for t in (low, high, (low + high) / 2):
                assert value(t) <= best + 1e-9


def test_weighted_quantile_with_a_ridge_stays_between_its_neighbours():
    """Between two values nothing but the ridge counts; the sums of large weights leave rounding there."""
    random = np.random.default_rng(0)
    for _ in range(50):
        values = np.sort(random.normal(size=20)) * 1e-9 + 1.0
        weights = 10.0 ** random.uniform(0, 6, 20)
        for ridge in (1e-12, 1e-6):
            low, high = core.weighted_quantile(values, weights, float(weights[:7].sum()), ridge)
            assert values[6] <= low == high <= values[7]


@pytest.mark.parametrize("ridge", [0.0, 0.5, 300.0])
@pytest.mark.parametrize("order", ["shuffled", "sorted", "sample is unlike the rest", "few values"])
def test_weighted_quantile_of_many_values(order, ridge):
    random = np.random.default_rng(0)
    values = random.normal(size=20_000)
    weights = random.integers(0, 4, len(values)).astype(float)
    if order == "sorted":
        values.sort()
    elif order == "sample is unlike the rest":
        values[:: len(values) // 1024] += 100.0
    elif order == "few values":
        values = values.round(1)
    for share in (0.0, 1e-4, 0.3, 0.5, 0.9999, 1.0):
        level = float(np.floor(share * weights.sum()))
        low, high = core.weighted_quantile(values, weights, level, ridge)
        # The slope changes its sign there: not above the level just below, not below it just above.
        below, above = (weights[values < low - 1e-9].sum(), weights[values <= high + 1e-9].sum())
        assert ridge * low + below <= level + 1e-6 or (share == 0.0 and ridge == 0.0)
        assert (ridge and ridge * high) + above >= level - 1e-6
        if ridge == 0.0 and 0.0 < share < 1.0:
            # A flat stretch is the whole of it.
            inside = weights[(values > low + 1e-9) & (values < high - 1e-9)].sum()
            assert inside == 0.0
            assert (low < high) == (weights[values <= low].sum() == level)


def test_multipliers_are_brought_into_the_box_and_into_balance():
    random = np.random.default_rng(0)
    y = np.where(random.random(500) < 0.4, 1.0, -1.0)
    upper = random.uniform(0.5, 2.0, 500)
    proposed = random.uniform(-0.5, 2.5, 500)
    proposed[:3] = np.nan, np.inf, -np.inf
    alpha = proposed.copy()
    core.Objective("hinge", y, upper, "none", 0.0).make_feasible(alpha)
    np.testing.assert_array_equal(alpha, np.clip(np.nan_to_num(proposed), 0.0, upper))
    balanced = proposed.copy()
    core.Objective("hinge", y, upper, "exact", 0.0).make_feasible(balanced)
    assert abs(balanced @ y) <= 1e-12 * balanced.sum()
    assert np.all((balanced >= 0) & (balanced <= upper))
    # Here the free multipliers of the heavier class are enough, and nothing else moves but for rounding.
    heavier = y == np.sign(alpha @ y)
    free = (alpha > 0) & (alpha < upper)
    assert alpha[heavier & free].sum() > abs(alpha @ y)
    np.testing.assert_allclose(balanced[~(heavier & free)], alpha[~(heavier & free)], rtol=1e-14)
    kept = balanced[heavier & free] / alpha[heavier & free]
    np.testing.assert_allclose(kept, kept[0], rtol=1e-9)
    # No bound on one side, and nothing on the other: only zero is balanced.
    alone = np.array([3.0, 1.0])
    core.Objective("squared_hinge", np.ones(2), np.ones(2), "exact", 0.0).make_feasible(alone)
    np.testing.assert_array_equal(alone, [0.0, 0.0])


def test_a_deadline_ends_a_sweep_and_leaves_a_consistent_state():
    random = np.random.default_rng(0)
    X = random.normal(size=(20_000, 50))
    y = np.sign(X[:, 0] + random.normal(size=20_000))
    started = time.perf_counter()
    model = solve(Problem.of(X, y), "dual_coordinate_ascent", tol=0.0, max_steps=10**9, max_time=0.1)
    assert time.perf_counter() - started < 2.0
    assert model.status.name == "TIME_SPENT"
    assert model.certificate.dual <= model.certificate.primal


def test_inconsistent_arrays_are_refused():
    rows = Rows(np.eye(3))
    budget = core.Budget(np.inf, 1)
    with pytest.raises(ValueError, match="per column"):
        core.scores(rows.compiled, np.zeros(4), np.zeros(3), budget)
    with pytest.raises(ValueError, match="per row"):
        core.combine(rows.compiled, np.zeros(4), np.zeros(3), budget)
    for group in (-1, 2):
        with pytest.raises(ValueError, match="a group has no place"):
            core.combine_groups(
                rows.compiled, np.ones(3), np.array([0, 1, group]), np.zeros((2, 3)), budget
            )
    with pytest.raises(ValueError, match="every column"):
        core.combine_groups(rows.compiled, np.ones(3), np.zeros(3, np.int64), np.zeros((2, 4)), budget)
    for points, out, message in (
        (np.zeros((1, 4)), np.zeros((1, 3)), "every column"),
        (np.zeros((2, 3)), np.zeros((1, 3)), "every point and row"),
        (np.zeros((1, 3)), np.zeros((1, 2)), "every point and row"),
    ):
        with pytest.raises(ValueError, match=message):
            core.scores_at(rows.compiled, points, out, np.zeros(3), budget)
    y, one = np.array([True, False, True]).view(np.uint8), np.ones(1)
    with pytest.raises(ValueError, match="number per row"):
        core.TwoClasses(rows.compiled, "hinge", y[:2], 1.0, 1.0)
    classes = core.TwoClasses(rows.compiled, "hinge", y, 1.0, 1.0)
    for points, vectors, margins, message in (
        (np.zeros((1, 4)), np.zeros((2, 3)), np.zeros(3), "every point and column"),
        (np.zeros((2, 3)), np.zeros((2, 3)), np.zeros(3), "every point and column"),
        (np.zeros((1, 3)), np.zeros((1, 3)), np.zeros(3), "every label and column"),
        (np.zeros((1, 3)), np.zeros((2, 3)), np.zeros(2), "one margin per row"),
    ):
        with pytest.raises(ValueError, match=message):
            core.add_multipliers(rows.compiled, classes, points, one, one, 1.0, one, vectors, margins)
    for vectors, slopes, spreads, message in (
        (np.zeros((3, 3)), np.zeros((2, 4)), np.zeros(3), "every label and bin"),
        (np.zeros((4, 3)), np.zeros((2, 3)), np.zeros(3), "every point and label"),
        (np.zeros((4, 3)), np.zeros((2, 4)), np.zeros(2), "one number per row"),
    ):
        given = rows.compiled, classes, np.zeros((1, 3)), one, one, 1.0, one, 0.5, spreads, one
        with pytest.raises(ValueError, match=message):
            core.sort_rows(*given, vectors, np.zeros((4, 3)), slopes, np.zeros(3))
    with pytest.raises(ValueError, match="column and direction"):
        core.projected_lengths(rows.stored_data, np.zeros((3, 4)), np.zeros(16), np.zeros(3))
    few = Rows(sparse.csr_matrix(np.eye(3)))
    with pytest.raises(ValueError, match="dense rows"):
        core.projected_lengths(few.stored_data, np.zeros((3, 16)), np.zeros(16), np.zeros(3))
    options = dict(bias=0, bias_curvature=0, relaxation=1, above=1, below=-1, budget=budget)
    with pytest.raises(ValueError, match="out of range"):
        core.dual_coordinate_ascent(
            rows.compiled, False, np.ones((3, 6)), np.array([3]), np.zeros(3), **options
        )
    with pytest.raises(ValueError, match="six numbers"):
        core.dual_coordinate_ascent(
            rows.compiled, False, np.ones((3, 4)), np.array([0]), np.zeros(3), **options
        )
