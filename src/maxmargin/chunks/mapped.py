# SPDX-License-Identifier: BSD-3-Clause
"""Rows seen through a feature map, in every pass anew: the map learns from rows drawn from every chunk.

    1  first pass: what the data are, and a sample of rows
    2  the map learns from a part of the sample in which all rows of the data are equally likely
    3  the sample goes through the map; so does every chunk, in all passes that follow

The mapped rows are never all there at once, and the first pass is that of the fit, too. A proof is about
the problem on the mapped rows, as it is in memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from scipy import sparse

from maxmargin.chunks.memory import Memory
from maxmargin.chunks.passes import LocalPasses
from maxmargin.chunks.source import Chunks, mapped_rows, rows_for
from maxmargin.chunks.survey import Room, Sample, survey_of
from maxmargin.features.dense_maps import in_double

if TYPE_CHECKING:
    from maxmargin.features.base import FeatureMap

Map = TypeVar("Map", bound="FeatureMap")


def learned(chunks: Chunks, seed: int, learn: Callable[[Any], Map]) -> tuple[Map, Chunks]:
    """What ``learn`` makes of drawn rows, and the chunks as that map makes them.

    Raises ValueError where memory has no room for as many rows as the map wants to keep.
    """
    memory = Memory.of(chunks.memory)
    facts, sample = survey_of(LocalPasses(chunks), Room(memory.sample_bytes), seed)
    rows = _equally_likely(sample, seed)
    features = learn(in_double(rows))
    kept = getattr(features, "sample_", rows).shape[0]
    wanted = min(int(getattr(features, "count", kept)), facts.rows)
    if hasattr(features, "sample_") and kept < wanted:
        raise ValueError(
            f"The map keeps {wanted} rows. Got memory = {memory.limit}, with room to draw {kept}. "
            "Raise memory, or ask for fewer."
        )
    names = chunks.feature_names
    if names is not None:
        features.feature_names_in_ = np.array(names, dtype=object)
    made = mapped_rows(features, sample.X[:1])
    row_bytes = made.shape[1] * made.itemsize
    most = max(1, memory.sample_bytes // row_bytes)
    if sample.count > most:
        sample = sample.thinned(most / sample.count, seed)
    sample = replace(sample, X=mapped_rows(features, sample.X))
    mapped = chunks.mapped(features, rows_for(row_bytes, chunks.memory))
    assert mapped.chunk_rows is not None
    longest = np.sqrt(np.einsum("ij,ij->i", sample.X, sample.X, dtype=np.float64).max(initial=0.0))
    facts = replace(
        facts,
        columns=made.shape[1],
        stored=facts.rows * made.shape[1],
        nbytes=facts.rows * row_bytes,
        is_sparse=False,
        largest_length=float(longest),
        chunks=-(-facts.rows // mapped.chunk_rows),
        largest_chunk=min(facts.rows, mapped.chunk_rows) * row_bytes,
    )
    mapped.surveyed = facts, sample
    return features, mapped


def _equally_likely(sample: Sample, seed: int) -> Any:
    """Rows of a sample, of which those are left out that were likelier to be drawn than others."""
    chance = sample.stands_for / sample.stands_for.max(initial=1.0)
    return sample.X[np.random.default_rng([seed, sample.count, 1]).random(sample.count) < chance]


def digest_of(features: FeatureMap) -> str:
    """A short text that other maps do not have."""
    found = hashlib.sha256(repr(sorted(features.get_params().items())).encode())
    for name, value in sorted(vars(features).items()):
        if sparse.issparse(value):
            value = np.concatenate([value.data, value.indices, value.indptr])
        if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
            found.update(name.encode() + np.ascontiguousarray(value).tobytes())
    return found.hexdigest()[:16]
