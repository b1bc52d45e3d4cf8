# SPDX-License-Identifier: BSD-3-Clause
"""What one visit of the rows of a chunk finds: the same as one sum after the other."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from maxmargin.chunks.band import BandAsk, Zoning
from maxmargin.chunks.chunk import Chunk
from maxmargin.chunks.curvature import Spread
from maxmargin.chunks.newton import NewtonAsk
from maxmargin.chunks.statement import Stated
from maxmargin.chunks.sums import DualSums, losses_of
from maxmargin.problem import Intercept
from maxmargin.problem.rows import Rows

KINDS = ("float32", "float64", "sparse")


def drawn(kind, columns, count, weighted=False, points=3):
    """A chunk, a function that makes its share in a problem with a loss, and some points."""
    random = np.random.default_rng(columns)
    X = random.normal(size=(count, columns)).astype("float32" if kind == "float32" else "float64")
    weight = random.integers(0, 3, count) / 2.0 if weighted else None
    chunk = Chunk(sparse.csr_array(X) if kind == "sparse" else X, random.random(count) < 0.4, weight)

    def part(loss):
        stated = Stated(1, (2.0, 0.5), 0.75, loss, Intercept.EXACT)
        return stated.on(Rows(chunk.X, keep_zeros=True), chunk.y, chunk.weight)

    w = random.normal(size=columns) / np.sqrt(columns)
    where = [(w + 0.1 * k * random.normal(size=columns), 0.1 * k) for k in range(points)]
    return chunk, part, tuple(where)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
@pytest.mark.parametrize("columns", [2, 8, 20, 33])
@pytest.mark.parametrize(("count", "weighted"), [(1, False), (300, True), (611, False)])
def test_multipliers_are_added_up_while_scores_are_known(kind, loss, columns, count, weighted):
    chunk, part, points = drawn(kind, columns, count, weighted)
    part = part(loss)
    problem = part.problem
    share = NewtonAsk(points, True).share(part, chunk)
    margins = [problem.margins_of(problem.rows.scores(w), b) for w, b in points]
    exact = [problem.objective.loss_sum(own) for own in margins]
    bounds = [losses_of(problem, w, b, own) for (w, b), own in zip(points, margins, strict=True)]
    np.testing.assert_allclose(share.losses, bounds, rtol=1e-12)
    assert (share.losses >= np.array(exact) * (1.0 - 1e-15)).all()
    expected = DualSums.of(problem, problem.multipliers(margins[0]))
    size = float(expected.totals.sum())
    np.testing.assert_allclose(share.dual.vectors, expected.vectors, rtol=0, atol=1e-12 * size)
    np.testing.assert_allclose(share.dual.totals, expected.totals, rtol=1e-13)
    np.testing.assert_allclose(share.dual.gains, expected.gains, rtol=0, atol=1e-12 * size)
    assert share.dual.off == pytest.approx(expected.off, rel=1e-9)
    assert 0.0 <= share.dual.totals_off <= 1e-12 * size
    assert share.dual.longest == pytest.approx(problem.rows.largest_length, rel=1e-14)
    assert share.dual.longest >= np.sqrt(problem.rows.squared_norms.max())
    hessian = NewtonAsk(points, True).share(part, chunk).hessian
    assert np.array_equal(hessian, share.hessian)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("columns", [3, 20])
@pytest.mark.parametrize("spread", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_are_sorted_while_scores_are_known(kind, columns, spread, weighted):
    chunk, part, points = drawn(kind, columns, 611, weighted)
    part, edges, width = part("hinge"), np.array([0.0, 0.5, 1.0, 1.7]), 0.25
    problem, zoning = part.problem, None
    if spread:
        zoning = Zoning(Spread.of_hessian(np.eye(columns + 1), True, 0), 1.0, 0)
    share = BandAsk(points, width, edges, 1000, zoning).share(part, chunk)
    plain = chunk.X.toarray() if kind == "sparse" else chunk.X.astype(np.float64)
    margins = [problem.margins_of(plain @ w, b) for w, b in points]
    sorted_by = margins[0]
    if spread:
        sorted_by = 1.0 + (margins[0] - 1.0) / zoning.spread.of(part.rows)
    near = (np.abs(sorted_by - 1.0) <= width) & (problem.costs > 0.0)
    band, folds = share.bands[0], share.folds
    kept = band.X.toarray() if kind == "sparse" else band.X
    np.testing.assert_array_equal(kept, plain[near].astype(kept.dtype))
    np.testing.assert_array_equal(band.y, problem.y[near])
    np.testing.assert_array_equal(band.costs, problem.costs[near])
    np.testing.assert_allclose(band.margins, sorted_by[near], rtol=1e-12)
    places = np.searchsorted(edges, sorted_by) + 5 * (problem.y < 0.0)
    for place in range(10):
        ours = ~near & (places == place) & (problem.costs > 0.0)
        np.testing.assert_allclose(folds.vectors[place], problem.costs[ours] @ plain[ours], atol=1e-11)
        assert folds.costs[place] == pytest.approx(problem.costs[ours].sum(), rel=1e-12)
        assert folds.counts[place] == np.count_nonzero(ours)
    for slope, own in zip(share.slopes, margins, strict=True):
        for side, label in zip(slope, (1.0, -1.0), strict=True):
            lost = np.where((own < 1.0) & (problem.y == label), problem.costs, 0.0)
            np.testing.assert_allclose(side, np.append(lost @ plain, lost.sum()), rtol=0, atol=1e-10)
    assert (share.zones is None) is not spread
