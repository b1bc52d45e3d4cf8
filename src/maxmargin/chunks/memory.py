# SPDX-License-Identifier: BSD-3-Clause
"""How the memory of a fit is shared out."""

from __future__ import annotations

from dataclasses import dataclass, replace

from maxmargin.chunks.chunk import BYTES_BESIDE, ROWS_PER_COLUMN
from maxmargin.chunks.survey import Facts, Room, unsure_share
from maxmargin.solvers.sizes import CHUNK_COLUMNS
from maxmargin.tools.words import amount

TIMES_IN_MEMORY = 3
"""How many times a fit in memory holds the rows: as read, as a problem, and what a solver makes."""
_OF_SAMPLE, _OF_BAND = 1 / 5, 1 / 5
"""The shares of the memory that the sampled rows, and those of the band, may take. Both are
copied into one problem, twice, while the next pass has not begun."""
_OF_PACKED, _BESIDE_BAND = 1 / 4, 1 / 8
"""The share of the memory that all rows may take, packed; and with the hinge, whose band needs the rest: it
makes more passes where it has less."""
_OF_ALL = 0.8
"""The share of the memory that sample and band may take with the problems of both; the rest are chunks."""
_BYTES_SOLVED = 160
"""Bytes that a row takes beside its values while its problem is solved, where 115 to 170 were measured."""
_USUAL = 1 << 30
"""Bytes where the system does not tell what is free."""
_LARGEST_SAMPLE = 1 << 26
"""Bytes of a sample, at most: to solve its problem should take less than a pass."""
_LARGEST_OF_HINGE = 1 << 27
"""The same with the hinge. With half of it 3 x 10^6 rows of 100 columns take a pass more, and as many bytes
come from a cluster."""
_MOST_BAND = 0.25
"""The share of all rows in the band, at most: more of them make passes no fewer."""
_LEAST_BAND = 0.01
"""The share of all rows in the band of one of many problems, at least: with a third of that some did not
reach 1e-3, although fewer groups of problems would make fewer passes."""
_OF_PROBLEMS = 1 / 2
"""The share of the memory that Hessians, or vectors of wide data, may take, with the answers. The others
have the sample with its copies, and the chunks that are read."""
_ANSWER = 3
"""Vectors of a number for each column that a problem leaves: w, that of the multipliers, a row of coef_."""
_ROWS_PER_COLUMN = 100
"""The same as ``ROWS_PER_COLUMN`` where the first band has room for all rows that are unsure: these tell
the curvature themselves."""
_LEAST_ROWS = 64
"""Rows of a band, at least."""
_HESSIANS = 7
"""Hessians of a problem: of chunks that are at work or wait to be added, their sum, and its factor."""
_ZONES, _OF_ZONES = 27, 1 / 10
"""Hessians of a problem with the band whose zones are summed up: nine each for a chunk that is at work, for
one that waits to be added, and for their sum. And the share of the memory that they may take."""
_BYTES_OF_MULTIPLIERS, _VECTORS = 32, 16
"""What wide data take: the multipliers of each row, now, before and on their way, and so many vectors of a
number for each column."""
_TRIFLE = 1 << 24
"""Bytes that are nothing beside those of a program, where somebody sets a limit that no fit can keep."""


class TooLittleMemory(ValueError):
    """There is no room for what a fit needs beside the rows."""

    def __init__(self, limit: int, needed: int, facts: Facts, problems: int) -> None:
        super().__init__(
            f"memory must be at least {needed} for {amount(problems, 'problem')} of {facts.columns} "
            f"columns. Got {limit} instead. Raise it, or use fewer columns."
        )
        self.limit, self.needed = limit, needed
        self.problems, self.columns = problems, facts.columns


@dataclass(frozen=True)
class Memory:
    """The bytes that a fit may take."""

    limit: int

    @classmethod
    def of(cls, limit: int | None) -> Memory:
        """The limit that is given, or half of what is free."""
        return cls(limit if limit is not None else free_memory() // 2)

    @property
    def sample_bytes(self) -> int:
        """Bytes of the sample."""
        return min(_LARGEST_SAMPLE, int(_OF_SAMPLE * self.limit))

    def packed_bytes(self, loss: str) -> int:
        """Bytes that all rows may take, packed."""
        return int((_BESIDE_BAND if loss == "hinge" else _OF_PACKED) * self.limit)

    def without(self, nbytes: int) -> Memory:
        """What is left beside something else."""
        return Memory(self.limit - nbytes)

    @property
    def room(self) -> Room:
        """What the first pass may take along: a sample, or all rows where a fit of them has room."""
        return Room(self.sample_bytes, self.limit // TIMES_IN_MEMORY)

    def room_of_hinge(self, tol: float) -> Room:
        """The same for the hinge, whose sample is no larger than it is worth."""
        most = min(_LARGEST_OF_HINGE, int(_OF_SAMPLE * self.limit))
        return replace(self.room, sample=most, hinge_tol=tol)

    def together(self, facts: Facts, sampled: int, loss: str, problems: int) -> int:
        """How many of so many problems, each with its share of the memory, are fitted in the same passes.

        It depends on the data and the limit alone, so that the number of workers changes no bit. Raises
        TooLittleMemory where there is no room for one.
        """
        answers = _ANSWER * 8 * facts.columns * problems
        row, most = BYTES_BESIDE + facts.nbytes / facts.rows, problems
        if facts.columns > CHUNK_COLUMNS:
            own = _BYTES_OF_MULTIPLIERS * facts.rows + _VECTORS * 8 * facts.columns
        elif loss == "hinge":
            own, band = int(_LEAST_ROWS * row), max(_LEAST_ROWS, _LEAST_BAND * facts.rows) * row
            most = int(_OF_BAND * self.limit / band)
        else:
            own = _HESSIANS * 8 * (facts.columns + 1) ** 2
        if own + answers > max(_OF_PROBLEMS * self.limit, _TRIFLE):
            raise TooLittleMemory(self.limit, int((own + answers) / _OF_PROBLEMS) + 1, facts, problems)
        room = _OF_PROBLEMS * self.limit - answers
        return max(1, min(most, int(room / (own + BYTES_BESIDE * sampled))))

    def band_rows(self, facts: Facts, sampled: int, problems: int, zoned: bool) -> int:
        """Rows of the band, for each of so many problems."""
        values = facts.nbytes / facts.rows
        held, solved = values + BYTES_BESIDE, values + _BYTES_SOLVED
        if facts.columns > CHUNK_COLUMNS:
            room = int(_OF_BAND / 2.0 * self.limit / held / problems)  # the vectors need room, too
        else:
            # All bands are held, and one problem is solved, which without zones has the sample, too.
            taken = held if zoned else held + solved
            room = int((_OF_ALL * self.limit - taken * sampled) / (held * problems + solved))
        return max(_LEAST_ROWS, min(room, int(_MOST_BAND * facts.rows)))

    def has_room_for_zones(self, facts: Facts, sampled: int, problems: int, short: bool) -> bool:
        """Whether passes with the band sum up curvatures, for each of so many problems.

        ``short`` tells that the first band has no room for all rows that are unsure.
        """
        needed = _ZONES * 8 * (facts.columns + 1) ** 2 * problems
        few = sampled < (ROWS_PER_COLUMN if short else _ROWS_PER_COLUMN) * facts.columns
        return few and needed <= max(_OF_ZONES * self.limit, _TRIFLE)


def unsure_rows(facts: Facts, sampled: int) -> int:
    """Rows that may be on the other side of the margin at the best point of all rows.

    More of them would have to be solved for, and on a cluster to travel, for nothing.
    """
    return max(64, int(unsure_share(facts.columns, sampled) * facts.rows))


def free_memory() -> int:
    """Bytes that the system could give."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return _USUAL
