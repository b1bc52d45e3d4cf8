# SPDX-License-Identifier: BSD-3-Clause
"""NumPy in CuPy's place: each function of the CUDA programs, said once more in the plainest way.

What surrounds the programs (the solver, the rows, the estimators) can then be tested without a GPU; and
where there is one, the programs are compared with these functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from maxmargin.gpu.kernel_rows import CardData
from maxmargin.gpu.programs import Program
from maxmargin.kernels.base import Kernel

SET, LOOK, NEW_OF_A_SIDE, BINS = 1024, 4096, 256, 1024
LEAST_BEND = 1e-3


class OnCard(np.ndarray):
    """An array that says that it lies on a card."""

    __cuda_array_interface__ = None


class NumpyCard:
    """A card of the name ``numpy`` that knows the one kernel of its programs."""

    name = "numpy"
    arrays = np
    free_bytes = 10**9

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def put(self, values: Any, dtype: Any = None) -> Any:
        return np.array(values, dtype)

    def matrix(self, X: Any) -> Any:
        return X.toarray() if sparse.issparse(X) else self.put(X)

    def contiguous(self, values: Any, dtype: Any) -> Any:
        return np.ascontiguousarray(values, dtype)

    def data(self, X: Any, *, copied: bool = False) -> CardData:
        return CardData(self, X, copied=copied)

    def get(self, values: Any) -> Any:
        return np.array(values)

    def get_before(self, values: Any, work: Callable[[], None]) -> Any:
        known = self.get(values)
        work()
        return known

    def multiply_halves(self, first: Any, second: Any, out: Any, scale: float, *, add: bool) -> None:
        products = np.float32(scale) * (first.astype(np.float32) @ second.astype(np.float32).T)
        out[:] = out + products if add else products

    def multiply_bytes(self, first: Any, second: Any, out: Any) -> None:
        assert first.dtype == second.dtype == np.int8
        assert first.shape[1] % 16 == len(second) % 16 == 0
        out[:] = first.astype(np.int32) @ second.T.astype(np.int32)

    def send(self, values: Any, budget: Any) -> Any:
        return self.put(values, np.float64)

    receive = get

    def call(self, program: Program, function: str, blocks: Any, threads: int, *arguments: Any) -> None:
        assert function in program.source
        getattr(self, function)(*arguments)

    def values(self, X: Any, Z: Any) -> Any:
        return self.kernel(X.astype(np.float64), Z.astype(np.float64))

    # ---- scores in double precision -------------------------------------------------------------

    def expand(self, X, columns, numbers, targets, n, sources, coefficients, m, out):
        out[:] = self.values(X[targets], X[sources]) @ coefficients

    def fill_values(self, X, columns, numbers, rows, others, out):
        out[:] = self.values(X[:rows], X[rows:])

    def sum_values(self, products, squares, other_squares, others, numbers, coefficients, out):
        values = products.copy()
        self.finish(values, squares[:, np.newaxis] + other_squares - 2.0 * products)
        out[:] = values @ coefficients

    def values_of_bytes(self, products, width, shifts, other_shifts, squares, other_squares, *given):
        squared_unit, others, _, values = given
        whole = products[:, :others] + shifts[:, np.newaxis] + other_shifts
        values[:] = squared_unit * whole
        self.finish(values, squared_unit * (squares[:, np.newaxis] + other_squares - 2.0 * whole))

    # ---- passes over rows ---------------------------------------------------------------------------

    def row_products(self, X, count, columns, w, squares, out):
        X = X.astype(np.float64)
        out[:] = (X * X).sum(axis=1) if squares else X @ w

    def column_sums(self, X, count, columns, coefficients, partial):
        partial[:] = 0.0
        partial[0] = X.astype(np.float64).T @ coefficients

    # ---- working sets -----------------------------------------------------------------------------

    # The choice of working sets: all looks of a part at once.

    def find_extremes(self, begins, looks, alpha, f, y, costs, extremes, histogram):
        histogram[:] = 0
        for look, (part, first) in enumerate(looks):
            some = slice(begins[part] + first, min(begins[part] + first + LOOK, begins[part + 1]))
            slope, rises, falls = _slopes(alpha[some], f[some], y[some], costs[some])
            extremes[look] = (
                slope.max(where=rises, initial=-np.inf),
                (-slope).max(where=falls, initial=-np.inf),
            )

    def weigh_rows(
        self, begins, looks, firsts, alpha, f, y, costs, extremes, count, priced, price, bins, sums
    ):
        for part in range(len(begins) - 1):
            some = slice(begins[part], begins[part + 1])
            state = alpha[some], f[some], y[some], costs[some]
            middle = _middle(extremes[firsts[part] : firsts[part + 1]], price[0] if priced else None)
            for side, of_side in enumerate(_bins(*state, middle, count)):
                bins[part, side] = np.bincount(of_side[of_side >= 0], minlength=BINS)
        for look, (part, first) in enumerate(looks):
            some = slice(begins[part] + first, min(begins[part] + first + LOOK, begins[part + 1]))
            b = _middle(extremes[firsts[part] : firsts[part + 1]], price[0] if priced else None)[2]
            lacking = 1.0 - y[some] * (f[some] + b)
            gap = float((costs[some] * np.maximum(lacking, 0.0) - alpha[some] * lacking).sum())
            dual = float((alpha[some] - 0.5 * alpha[some] * y[some] * f[some]).sum())
            sums[look] = gap, dual, float((alpha[some] * y[some]).sum())

    def count_rows(
        self, begins, looks, firsts, alpha, f, y, costs, extremes, count, priced, price, bins, cuts, tallies
    ):
        for part in range(len(begins) - 1):
            for side in range(2):
                many, lowest = 0, BINS - 1
                while lowest >= 0 and many + bins[part, side, lowest] <= NEW_OF_A_SIDE:
                    many += bins[part, side, lowest]
                    lowest -= 1
                cuts[part, side], cuts[part, 2 + side] = lowest, NEW_OF_A_SIDE - many

    def place_rows(
        self,
        begins,
        looks,
        firsts,
        alpha,
        f,
        y,
        costs,
        extremes,
        count,
        priced,
        price,
        cuts,
        tallies,
        fresh,
        marked,
    ):
        for part in range(len(begins) - 1):
            some = slice(begins[part], begins[part + 1])
            middle = _middle(extremes[firsts[part] : firsts[part + 1]], price[0] if priced else None)
            take = np.zeros(len(y[some]), bool)
            for side, of_side in enumerate(
                _bins(alpha[some], f[some], y[some], costs[some], middle, count)
            ):
                lowest, room = cuts[part, side], cuts[part, 2 + side]
                take |= of_side > max(lowest, -1)
                if lowest >= 0:
                    take[np.flatnonzero(of_side == lowest)[:room]] = True
            places = np.flatnonzero(take)
            fresh[part, : len(places)], marked[some] = places, take

    def refill_sets(self, begins, firsts, extremes, priced, price, bins, sums, fresh, marked, sets, facts):
        for part in range(len(begins) - 1):
            up, down, b = _middle(extremes[firsts[part] : firsts[part + 1]], price[0] if priced else None)
            filled = int(np.minimum(bins[part].sum(axis=1), NEW_OF_A_SIDE).sum())
            own = marked[begins[part] : begins[part + 1]]
            kept = [place for place in sets[part] if place >= 0 and not own[place]]
            both = np.concatenate([fresh[part, :filled], kept]).astype(int)[:SET]
            sets[part] = -1
            sets[part, : len(both)] = both
            own[:] = 0
            gap, dual, balance = sums[firsts[part] : firsts[part + 1]].sum(axis=0)
            facts[part] = up, down, gap, dual, filled, len(both), b, balance

    def form_matrices(self, X, columns, numbers, begins, rows, sets, facts, matrices):
        for part in range(len(begins) - 1):
            size = int(facts[part, 5])
            which = rows[begins[part] + sets[part, :size]]
            matrices[part, :size, :size] = self.values(X[which], X[which])

    def gather_matrices(self, matrix, count, begins, rows, sets, matrices):
        for part in range(len(begins) - 1):
            which = rows[begins[part] + sets[part][sets[part] >= 0]]
            matrices[part, : len(which), : len(which)] = matrix[np.ix_(which, which)]

    def move_pairs(
        self,
        matrices,
        begins,
        sets,
        alpha,
        f,
        y,
        costs,
        share,
        least,
        most,
        changes,
        places,
        counts,
        priced,
        price,
    ):
        for part in range(len(begins) - 1):
            set_ = sets[part][sets[part] >= 0]
            at = begins[part] + set_
            K = matrices[part, : len(set_), : len(set_)].astype(np.float64)
            end, pairs = _moved(
                K, alpha[at], f[at], y[at], costs[at], share, least, most, price[0] if priced else None
            )
            change = ((end - alpha[at]) * y[at]).astype(np.float32)
            alpha[at] = end
            moved = np.flatnonzero(change)
            changes[part, : len(moved)], places[part, : len(moved)] = change[moved], set_[moved]
            counts[part] = pairs, len(moved)

    def update_scores(self, X, columns, numbers, begins, rows, places, changes, counts, tasks, f):
        for part in range(len(begins) - 1):
            many, own = counts[part, 1], slice(begins[part], begins[part + 1])
            sources = rows[begins[part] + places[part, :many]]
            f[own] += self.values(X[rows[own]], X[sources]) @ changes[part, :many]

    def update_from_matrix(self, matrix, count, begins, rows, places, changes, counts, tasks, f):
        for part in range(len(begins) - 1):
            many, own = counts[part, 1], slice(begins[part], begins[part + 1])
            sources = rows[begins[part] + places[part, :many]]
            f[own] += matrix[np.ix_(rows[own], sources)].astype(np.float64) @ changes[part, :many]

    def add_products(self, products, count, many, squares, other_squares, numbers, changes, f):
        values = products.astype(np.float64)
        self.finish(values, squares[:, np.newaxis] + other_squares - 2.0 * values)
        f += values @ changes[:many]

    def finish_values(self, products, squares, *given):
        """Products become values: of the solver's matrix, or of scores; both know their squares."""
        first, others = (0, given[0]) if given[0].ndim else (int(given[1]), squares)
        own = squares[first : first + len(products), np.newaxis]
        self.finish(products, own + others - 2.0 * products)

    def finish(self, products, squares):
        """Products and squares of differences become values of the kernel, in place."""
        (coefficient, factors), *rest = self.kernel.terms
        assert not rest
        ((common, shape, gamma, shift, degree),) = factors
        assert common == "product"
        if shape == "exponential":
            products[:] = coefficient * np.exp(-gamma * np.maximum(squares, 0.0))
        elif shape == "power":
            products[:] = coefficient * (gamma * products + shift) ** degree
        else:
            products[:] = coefficient * np.tanh(gamma * products + shift)


def _noise(rows, count):
    """A number from 0 to 1 of each row in a round."""
    with np.errstate(over="ignore"):
        bits = rows.astype(np.uint32) * np.uint32(2654435761) + np.uint32(count) * np.uint32(2246822519)
        bits = (bits ^ (bits >> np.uint32(15))) * np.uint32(2246822519)
        bits = (bits ^ (bits >> np.uint32(13))) * np.uint32(3266489917)
    return ((bits ^ (bits >> np.uint32(16))) >> np.uint32(8)).astype(np.float32) / np.float32(2**24)


def _slopes(alpha, f, y, costs):
    """The slopes of the dual by beta, and which beta may rise and fall."""
    slope = (y.astype(np.float64) - f).astype(np.float32)
    return slope, np.where(y > 0, alpha < costs, alpha > 0), np.where(y > 0, alpha > 0, alpha < costs)


def _middle(extremes, price):
    """The extremes of a part, and b."""
    up, down = extremes[:, 0].max(), -extremes[:, 1].max()
    middle = down if np.isinf(up) else up if np.isinf(down) else 0.5 * (float(up) + float(down))
    return up, down, middle if price is None else price


def _bins(alpha, f, y, costs, middle, count):
    """The bin of every row's violation on each side, -1 where it has none."""
    up, down, b = middle
    slope, rises, falls = _slopes(alpha, f, y, costs)
    for allowed, violation, most in (
        (rises, slope - np.float32(b), up - np.float32(b)),
        (falls, np.float32(b) - slope, np.float32(b) - down),
    ):
        bins, violators = np.full(len(y), -1), allowed & (violation > 0)
        width = np.float32(max(most, 1e-30))
        share = violation[violators] / width + np.float32(0.5) * _noise(np.flatnonzero(violators), count)
        bins[violators] = np.minimum(BINS - 1, (share * np.float32(BINS / 1.5)).astype(int))
        yield bins


def _first_of_the_largest(values):
    """The first of those that are the largest but for the last ten bits of a single number."""
    bits = values.astype(np.float32).view(np.uint32)
    ordered = np.where(bits & 0x80000000, ~bits, bits | np.uint32(0x80000000))
    return int((ordered & ~np.uint32(SET - 1)).argmax())


def _moved(K, alpha, f, y, costs, share, least, most, price):
    """Multipliers after pairs of them have moved, and how many have."""
    slope = y.astype(np.float64) - f
    rise, fall = np.where(y > 0, costs - alpha, alpha), np.where(y > 0, alpha, costs - alpha)
    own, enough = np.diag(K), None
    way, felt, bend = np.zeros(len(y)), np.zeros(len(y)), 0.0  # the last way, K times it, and its curvature
    pairs = 0
    while pairs < most:
        candidates = np.where(rise > 0, slope, -np.inf)
        i = _first_of_the_largest(candidates)
        up, down = candidates[i], np.where(fall > 0, slope, np.inf).min()
        if price is not None:
            if price > up:
                up, i = price, -1
            down = min(down, price)
        enough = max(least, share * (up - down)) if enough is None else enough
        if not up - down > enough:
            break
        with_i, of_i = (K[i], own[i]) if i >= 0 else (np.zeros(len(y)), 0.0)
        leads, curves = up - slope, np.maximum(of_i + own - 2.0 * with_i, 1e-12)
        gains = np.where((fall > 0) & (leads > 0), leads**2 / curves, -np.inf)
        j = _first_of_the_largest(gains)
        lead, curve = leads[j], curves[j]
        if price is not None and i >= 0 and up > price and (up - price) ** 2 / max(of_i, 1e-12) > gains[j]:
            j, lead, curve = -1, up - price, max(of_i, 1e-12)
        pair, with_pair, most_of_pair = np.zeros(len(y)), with_i.copy(), np.inf
        if i >= 0:
            pair[i], most_of_pair = 1.0, rise[i]
        if j >= 0:
            pair[j], most_of_pair = -1.0, min(most_of_pair, fall[j])
            with_pair -= K[j]
        turn = -(felt @ pair) / bend if bend > 0 else 0.0
        bent = curve + turn * (felt @ pair)
        if bent > LEAST_BEND * curve and turn != 0:
            far = lead / bent * (turn * way + pair)
            turn = 0.0 if ((far > rise) | (-far > fall)).any() else turn
        else:
            turn = 0.0
        step, bend = lead / bent, bent
        if turn == 0:
            step, bend = min(lead / curve, most_of_pair), curve if lead / curve <= most_of_pair else 0.0
        way, felt = turn * way + pair, turn * felt + with_pair
        rise, fall, slope = rise - step * way, fall + step * way, slope - step * felt
        pairs += 1
    left, used = np.where(y > 0, rise, fall), np.where(y > 0, fall, rise)
    return np.where(left <= 0, costs, np.clip(used, 0.0, costs)), pairs
