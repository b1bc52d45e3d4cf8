# SPDX-License-Identifier: BSD-3-Clause
"""The data are read in place where ``Rows`` says so, and never trusted blindly."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from combinations import every_pair
from maxmargin import Problem, Rows, Solution, certify, core, solve
from maxmargin.problem.rows import RowSpace
from problems import LAYOUTS, clouds

X = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0], [0.0, 0.0, 0.0], [4.0, 5.0, 6.0]])
W = np.array([1.0, -2.0, 0.5])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_passes_over_the_rows(layout):
    rows = Rows(LAYOUTS[layout](X))
    assert (rows.count, rows.columns) == (4, 3)
    assert rows.stored == (12 if layout.startswith("dense") else 6)  # never made dense
    assert rows.dtype == (np.float32 if "float32" in layout else np.float64)
    np.testing.assert_array_equal(rows.scores(W), X @ W)
    coefficients = np.array([1.0, -1.0, 7.0, 0.25])
    np.testing.assert_array_equal(rows.combine(coefficients), coefficients @ X)
    groups = np.arange(len(coefficients)) % 2
    sums = [np.where(groups == group, coefficients, 0.0) @ X for group in range(3)]  # nobody is in the last
    np.testing.assert_array_equal(rows.combine_groups(coefficients, groups, 3), sums)
    np.testing.assert_array_equal(RowSpace.combine_groups(rows, coefficients, groups, 3), sums)
    np.testing.assert_array_equal(rows.squared_norms, np.sum(X**2, axis=1))


@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("stored", ["dense", "sparse"])
def test_passes_do_not_depend_on_threads(threads, stored):
    # 2^22 values are worth four threads; an odd number of rows makes uneven shares.
    random = np.random.default_rng(0)
    matrix = random.normal(size=(41_943, 100)).astype(np.float32)
    rows = Rows(matrix if stored == "dense" else sparse.csr_matrix(matrix))
    budget = core.Budget(np.inf, threads)
    w, coefficients = random.normal(size=100), random.normal(size=len(matrix))
    alone = core.Budget(np.inf, 1)
    for ours, expected in (
        (rows.scores(w, budget), rows.scores(w, alone)),
        (rows.combine(coefficients, budget), rows.combine(coefficients, alone)),
    ):
        np.testing.assert_allclose(ours, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("columns", [1, 7, 8, 9, 16, 20, 33, 100])
@pytest.mark.parametrize("count", [1, 8, 611])
def test_dense_rows_in_registers_have_the_sums_of_plain_ones(columns, count, kind):
    random = np.random.default_rng(columns)
    matrix = random.normal(size=(count, columns)).astype(kind)
    dense, plain = Rows(matrix), matrix.astype(np.float64)
    alone = core.Budget(np.inf, 1)
    for points in (0, 1, 3, 4, 6):
        w = random.normal(size=(points, columns))
        np.testing.assert_allclose(dense.scores_at(w), w @ plain.T, rtol=0, atol=1e-12)
        np.testing.assert_allclose(dense.squared_norms, (plain**2).sum(axis=1), rtol=1e-13)
    coefficients, groups = random.normal(size=count), random.integers(0, 3, count)
    expected = [coefficients[groups == g] @ plain[groups == g] for g in range(3)]
    found = dense.combine_groups(coefficients, groups, 3, alone)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    units, shifts, out = random.normal(size=(columns, 16)), random.normal(size=16), np.empty(count)
    core.projected_lengths(dense.stored_data, units, shifts, out)
    lengths = ((plain @ units - shifts) ** 2).sum(axis=1)
    np.testing.assert_allclose(out, lengths, rtol=1e-4 if kind == np.float32 else 1e-12)


@pytest.mark.parametrize("columns", [3, 8, 11])
@pytest.mark.parametrize("stored", ["dense", "sparse"])
def test_rows_far_from_the_margin_are_folded_into_the_bins_of_a_search(stored, columns):
    random, edges, width = np.random.default_rng(0), np.array([0.0, 1.0, 1.25]), 0.125
    matrix = random.normal(size=(200, columns)).astype(np.float32)
    rows = Rows(matrix if stored == "dense" else sparse.csr_matrix(matrix))
    margins = random.integers(-4, 16, 200) / 8.0  # some of them are edges, and some as far as the width
    y, costs = random.choice([-1.0, 1.0], 200), random.integers(0, 3, 200).astype(float)
    vectors, sums = np.zeros((8, columns)), np.zeros((8, 3))
    core.fold_rows(rows.compiled, y, costs, margins, rows.lengths, edges, width, vectors, sums)
    far = (np.abs(margins - 1.0) > width) & (costs > 0.0)
    places = np.searchsorted(edges, margins) + 4 * (y < 0.0)
    for place in range(8):
        ours = far & (places == place)
        np.testing.assert_allclose(vectors[place], costs[ours] @ matrix[ours], rtol=1e-12, atol=1e-12)
        expected = costs[ours].sum(), costs[ours] @ rows.lengths[ours], np.count_nonzero(ours)
        np.testing.assert_allclose(sums[place], expected, rtol=1e-12)


# ---- read in place or copied ---------------------------------------------------------------------


def columns_of_a_wider_matrix():
    wide = np.zeros((4, 6))
    wide[:, 2:5] = X
    return wide[:, 2:5]


IN_PLACE = {
    "dense C float64": lambda: X.copy(),
    "dense C float32": lambda: X.astype(np.float32),
    "columns of a wider matrix": columns_of_a_wider_matrix,
    "rows backwards": lambda: X[::-1].copy()[::-1],
    "every second row": lambda: np.repeat(X, 2, axis=0)[::2],
    "CSR float64 int32": lambda: LAYOUTS["CSR float64 int32"](X),
    "CSR float32 int64": lambda: LAYOUTS["CSR float32 int64"](X),
}
COPIED = {
    "dense F float64": lambda: np.asfortranarray(X),
    "every second column": lambda: np.repeat(X, 2, axis=1)[:, ::2],
    "dense int64": lambda: X.astype(np.int64),
    "dense float16": lambda: X.astype(np.float16),
    "dense of the other byte order": lambda: X.astype(X.dtype.newbyteorder()),
    "CSC": lambda: sparse.csc_matrix(X),
    "COO": lambda: sparse.coo_matrix(X),
    "CSR int64 values": lambda: sparse.csr_matrix(X.astype(np.int64)),
}


def values_of(matrix):
    return matrix.data if sparse.issparse(matrix) else matrix


@pytest.mark.parametrize("kind", IN_PLACE)
def test_read_in_place(kind):
    matrix = IN_PLACE[kind]()
    rows = Rows(matrix)
    np.testing.assert_array_equal(rows.scores(W), X @ W)
    values_of(matrix)[...] *= 2
    np.testing.assert_array_equal(rows.scores(W), 2 * X @ W)


@pytest.mark.parametrize("kind", COPIED)
def test_copied(kind):
    matrix = COPIED[kind]()
    rows = Rows(matrix)
    np.testing.assert_array_equal(rows.scores(W), X @ W)
    values_of(matrix)[...] *= 2
    np.testing.assert_array_equal(rows.scores(W), X @ W)


def test_the_matrix_may_be_forgotten():
    rows = Rows(np.full((1000, 50), 2.0))  # nobody else holds on to this array
    np.full((1000, 50), -1.0)
    np.testing.assert_array_equal(rows.scores(np.ones(50)), np.full(1000, 100.0))


@pytest.mark.parametrize("kind", ["unsorted", "duplicates"])
def test_uncanonical_rows_are_put_right_in_a_copy(kind):
    columns = {"unsorted": [2, 0, 1], "duplicates": [0, 0, 2]}[kind]
    matrix = sparse.csr_matrix((np.array([1.0, 2.0, 3.0]), columns, [0, 3]), shape=(1, 3))
    before = matrix.copy()
    expected = matrix.toarray() @ W
    rows = Rows(matrix)
    np.testing.assert_array_equal(rows.scores(W), expected)
    np.testing.assert_array_equal(matrix.indices, before.indices)  # the caller's stay as they were
    np.testing.assert_array_equal(matrix.data, before.data)


@pytest.mark.parametrize("part", ["data", "indices", "indptr"])
@pytest.mark.parametrize("step", [2, -1])
def test_csr_of_strided_arrays(part, step):
    # Legal in SciPy: the arrays of a CSR matrix may themselves be views with gaps, or backwards.
    matrix = sparse.csr_matrix(X)
    array = getattr(matrix, part)
    spread = np.zeros(2 * len(array) + 1, array.dtype)
    view = spread[::2][: len(array)] if step == 2 else spread[len(array) - 1 :: -1]
    view[...] = array
    setattr(matrix, part, view)
    np.testing.assert_array_equal(Rows(matrix).scores(W), X @ W)


def test_mixed_index_types():
    matrix = sparse.csr_matrix(X)
    matrix.indptr = matrix.indptr.astype(np.int64)
    np.testing.assert_array_equal(Rows(matrix).scores(W), X @ W)


def test_one_column_of_a_record_array():
    # Rows 12 bytes apart: not a multiple of the 8 bytes of a value.
    records = np.zeros(4, dtype=[("id", np.int32), ("x", np.float64)])
    records["x"] = X[:, 0]
    rows = Rows(records["x"].reshape(-1, 1))
    np.testing.assert_array_equal(rows.scores(np.ones(1)), X[:, 0])


@pytest.mark.parametrize("shape", [(3,), (2, 2, 2), ()])
def test_not_a_matrix(shape):
    with pytest.raises(ValueError, match=rf"array of {len(shape)} dimensions.*reshape"):
        Rows(np.ones(shape))


def test_vectors_of_the_wrong_length():
    for rows in (Rows(X), Rows(sparse.csr_matrix(X))):
        with pytest.raises(ValueError, match="per column"):
            rows.scores(np.ones(4))
        with pytest.raises(ValueError, match="per row"):
            rows.combine(np.ones(3))


# ---- malformed sparse matrices -------------------------------------------------------------------

VALUES, INDICES, OFFSETS = np.ones(6), [0, 2, 1, 0, 1, 2], [0, 2, 3, 3, 6]


def with_(array, position, value):
    changed = list(array)
    changed[position] = value
    return changed


MALFORMED = {
    "index too high": (VALUES, with_(INDICES, 5, 3), OFFSETS),
    "index far too high": (VALUES, with_(INDICES, 5, 2**31 - 1), OFFSETS),
    "index negative": (VALUES, with_(INDICES, 0, -1), OFFSETS),
    "offsets decrease": (VALUES, INDICES, [0, 3, 2, 3, 6]),
    "offset negative": (VALUES, INDICES, [0, -2, 3, 3, 6]),
    "offsets beyond the data": (VALUES, INDICES, [0, 2, 3, 3, 7]),
    "offsets far beyond the data": (VALUES, INDICES, [0, 2, 3, 3, 2**30]),
    "offset in the middle far beyond": (VALUES, INDICES, [0, 2**30, 3, 3, 6]),
    "first offset not 0": (VALUES, INDICES, [1, 2, 3, 3, 6]),
    "no offsets": (VALUES, INDICES, []),
    "too few values": (VALUES[:4], INDICES, OFFSETS),
}


@pytest.mark.parametrize("indices", [[2, 0, 1, 0, 1, 2], [0, 0, 1, 0, 1, 2]])
def test_core_tells_rows_out_of_order_or_with_a_column_twice(indices):
    assert core.Data.sparse(VALUES, np.array(INDICES, np.int32), np.array(OFFSETS, np.int32), 3).sorted
    assert not core.Data.sparse(VALUES, np.array(indices, np.int32), np.array(OFFSETS, np.int32), 3).sorted


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_core_tells_order_among_short_and_empty_rows(kind):
    random = np.random.default_rng(0)
    seen = set()
    for _ in range(300):
        rows = [np.sort(random.permutation(9)[: random.integers(4)]) for _ in range(random.integers(1, 12))]
        if random.uniform() < 0.5:
            longest = max(rows, key=len)
            longest[:] = random.choice([longest[::-1], longest[:1].repeat(len(longest))])
        expected = all((np.diff(row) > 0).all() for row in rows)
        seen.add(expected)
        indices = np.concatenate(rows).astype(kind)
        offsets = np.cumsum([0, *map(len, rows)]).astype(kind)
        assert core.Data.sparse(np.ones(len(indices)), indices, offsets, 9).sorted == expected
    assert seen == {True, False}


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_must_be_finite(bad):
    dense = np.eye(3)
    dense[1, 1] = bad
    for matrix in (dense, sparse.csr_matrix(dense), dense.astype(np.float32)):
        with pytest.raises(ValueError, match="Input X contains"):
            Rows(matrix)


@pytest.mark.parametrize("index_type", [np.int32, np.int64])
@pytest.mark.parametrize("kind", MALFORMED)
def test_core_refuses_malformed_rows(kind, index_type):
    values, indices, offsets = MALFORMED[kind]
    with pytest.raises(ValueError, match=r"."):
        core.Data.sparse(values, np.array(indices, index_type), np.array(offsets, index_type), 3)


def test_core_refuses_other_types():
    indices, offsets = np.array(INDICES, np.int32), np.array(OFFSETS, np.int32)
    with pytest.raises(ValueError, match="one type"):
        core.Data.sparse(VALUES, indices, offsets.astype(np.int64), 3)
    with pytest.raises(ValueError, match="int32 or int64"):
        core.Data.sparse(VALUES, indices.astype(np.int16), offsets.astype(np.int16), 3)
    with pytest.raises(ValueError, match="float32 or float64"):
        core.Data.sparse(VALUES.astype(np.float16), indices, offsets, 3)
    with pytest.raises(ValueError, match="float32 or float64"):
        core.Data.dense(np.ones((2, 2), np.int64))
    with pytest.raises(ValueError, match="contiguous"):
        core.Data.dense(np.ones((4, 4))[:, ::2])


def test_core_refuses_more_columns_than_it_can_number():
    indices, offsets = np.array(INDICES, np.int64), np.array(OFFSETS, np.int64)
    with pytest.raises(ValueError, match="no more than 2147483647 columns"):
        core.Data.sparse(VALUES, indices, offsets, 2**31)


def test_core_refuses_rows_out_of_range():
    data = Rows(X).compiled
    budget = core.Budget(np.inf, 1)
    for order in ([4], [-1]):
        with pytest.raises(ValueError, match="out of range"):
            core.dual_coordinate_ascent(
                data,
                False,
                np.zeros((4, 6)),
                np.array(order),
                np.zeros(3),
                bias=0,
                bias_curvature=0,
                relaxation=1,
                above=1,
                below=-1,
                budget=budget,
            )


TAMPER = """
import sys
import numpy as np
from scipy import sparse
from maxmargin import Rows
for tampering in sys.argv[1:]:
    matrix = sparse.csr_matrix(np.array([[1.0, 0, 2], [0, 3, 0], [0, 0, 0], [4, 5, 6]]))
    exec(tampering)
    try:
        Rows(matrix).scores(np.ones(3))
    except ValueError:
        print(tampering, flush=True)
"""


def test_tampered_matrix_is_refused_and_never_crashes():
    # In a process of its own: what fails here may take the interpreter along.
    tamperings = [
        "matrix.indices[5] = 99",
        "matrix.indptr[1], matrix.indptr[2] = 3, 2",
        "matrix.indptr[1] = -2",
        "matrix.indptr[1] = 10**6",
        "matrix.indptr[-1] = 50",
        "matrix.has_canonical_format; matrix.indptr[1] = 10**6",
    ]
    child = subprocess.run(
        [sys.executable, "-c", TAMPER, *tamperings], capture_output=True, text=True, timeout=60, check=False
    )
    assert child.stdout.splitlines() == tamperings, child.stderr  # each was refused
    assert child.returncode == 0, child.stderr


# ---- private columns -----------------------------------------------------------------------------


def wide_and_narrow(n=60, private=4, value_type=np.float64):
    """Rows with shared columns and ``private`` ones of their own, among 70,000, mostly empty columns.

    The second matrix is the same without the empty columns.
    """
    shared, y = clouds(n=n, d=6, seed=9)
    random = np.random.default_rng(10)
    own = np.zeros((n, n * private))
    for i in range(n):
        own[i, i * private : (i + 1) * private] = random.normal(size=private)
    # Thirds are rounded in float32, so that a float64 problem is not the float32 one.
    narrow = np.hstack([shared / 3.0, own]).astype(value_type)
    places = np.sort(random.choice(70_000, narrow.shape[1], replace=False))
    entries = sparse.coo_matrix(narrow)
    columns = random.permutation(places)[entries.col]
    wide = sparse.csr_matrix((entries.data, (entries.row, columns)), shape=(n, 70_000))
    return wide, narrow.astype(np.float64), y


def test_private_columns_are_left_out_exactly():
    wide, narrow, _ = wide_and_narrow(value_type=np.float32)
    compact, diagonal = Rows(wide).without_private_columns
    assert compact.columns == 6
    assert compact.count == 60
    np.testing.assert_allclose(diagonal, np.sum(narrow[:, 6:] ** 2, axis=1), rtol=1e-12)
    # The columns are numbered anew, so sums of them are compared in order of size.
    sums = np.empty(6)
    coefficients = np.random.default_rng(11).normal(size=60)
    core.combine(compact, coefficients, sums, core.Budget(np.inf, 1))
    np.testing.assert_allclose(np.sort(sums), np.sort(coefficients @ narrow[:, :6]), rtol=1e-6)


@pytest.mark.parametrize("shared", [65_535, 65_536])
def test_private_columns_are_left_out_whatever_the_width_of_an_index(shared):
    # Rows 0 and 1 share many columns, the most that a short index can tell apart and one more.
    random = np.random.default_rng(12)
    both, own = random.normal(size=(2, shared)), random.normal(size=(2, 5_000))
    wide = sparse.hstack([both, sparse.block_diag([own[:1], own[1:]])]).tocsr()
    compact, diagonal = Rows(wide).without_private_columns
    assert compact.columns == shared
    sums = np.empty(shared)
    core.combine(compact, np.array([1.0, -2.0]), sums, core.Budget(np.inf, 1))
    np.testing.assert_allclose(np.sort(sums), np.sort(both[0] - 2.0 * both[1]), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(diagonal, np.sum(own**2, axis=1), rtol=1e-12)


def test_private_columns_stay_where_leaving_them_out_would_not_pay():
    assert Rows(X).without_private_columns is None
    assert Rows(sparse.csr_matrix(X)).without_private_columns is None
    shared_only = sparse.random_array((50, 70_000), density=1e-5, rng=0, format="csr")
    shared_only = sparse.vstack([shared_only, shared_only]).tocsr()
    assert Rows(shared_only).without_private_columns is None


@every_pair(
    loss=["hinge", "squared_hinge"],
    intercept=["none", "regularised", "exact"],
    value_type=[np.float32, np.float64],
)
def test_private_columns_give_the_same_optimum(loss, intercept, value_type):
    wide, narrow, y = wide_and_narrow(value_type=value_type)
    ours = {"C": 0.3, "loss": loss, "intercept": intercept}
    problem, plain = Problem.of(wide, y, **ours), Problem.of(narrow, y, **ours)
    assert problem.rows.without_private_columns is not None
    # Tighter than float32 can tell: the last steps have to be on the data themselves.
    model = solve(problem, "dual_coordinate_ascent", tol=1e-11, max_steps=20_000)
    expected = solve(plain, "dual_coordinate_ascent", tol=1e-11, max_steps=20_000)
    assert model.status.certified
    assert expected.status.certified
    assert model.certificate.primal == pytest.approx(expected.certificate.primal, rel=1e-10)
    # The multipliers of one are a proof for the other.
    crossed = certify(plain, Solution(alpha=model.alpha))
    assert crossed.relative_gap < 1e-10


def test_a_matrix_without_rows_may_have_any_strides():
    none = np.lib.stride_tricks.as_strided(np.zeros(2), (0, 2), (0, 0))
    assert core.Data.dense(none).count == 0


def test_sparse_rows_in_single_precision_share_their_columns():
    matrix = sparse.random_array((50, 40), density=0.2, rng=13, format="csr") * (1.0 / 3.0)
    single = Rows(matrix).in_single_precision
    w, out = np.random.default_rng(13).normal(size=40), np.empty(50)
    core.scores(single, w, out, core.Budget(np.inf, 1))
    np.testing.assert_allclose(
        out, matrix.astype(np.float32).astype(np.float64) @ w, rtol=1e-12, atol=1e-14
    )
    assert np.abs(out - matrix @ w).max() > 1e-10


@pytest.mark.parametrize("scale", [1e-20, 1e20])
def test_values_that_single_precision_has_no_room_for_stay(scale):
    matrix = sparse.random_array((50, 40), density=0.2, rng=13, format="csr") * scale
    assert Rows(matrix).in_single_precision is None
    assert Rows(wide_and_narrow()[0] * scale).without_private_columns is None


def test_there_is_no_copy_of_what_is_short_already():
    matrix = sparse.random_array((50, 40), density=0.2, rng=13, format="csr")
    assert Rows(matrix.astype(np.float32)).in_single_precision is None
    assert Rows(X).in_single_precision is None
