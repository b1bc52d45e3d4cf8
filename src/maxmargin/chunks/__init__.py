# SPDX-License-Identifier: BSD-3-Clause
"""Data that do not fit into memory: read chunk by chunk, as often as a fit needs, and proven the same.

``Chunks`` say where the rows are. ``Passes`` run one function over all chunks. What a fit asks of the rows
in one pass is an ``Ask``, and what a chunk answers a ``Share``: shares are added in the order of the
chunks, so that the sums have the same bits however many workers there are. ``band.py`` (hinge),
``newton.py`` (squared hinge, logistic) and ``added_ascent.py`` (many columns) are the methods; ``sums.py``
has what they prove, ``mapped.py`` rows seen through a feature map, ``packed_rows.py`` rows that are kept
in a few bits for each value.
"""

from maxmargin.chunks.chunk import Chunk as Chunk
from maxmargin.chunks.passes import LocalPasses as LocalPasses
from maxmargin.chunks.passes import Passes as Passes
from maxmargin.chunks.source import Chunks as Chunks
