# SPDX-License-Identifier: BSD-3-Clause
"""The lectures' tables and figures, made again: one part each, by name."""

from __future__ import annotations

from maxmargin.reproduce.base import Part, Result, Settings, Table
from maxmargin.reproduce.chang2010 import DEGREE_TWO, LINEAR_GAUSSIAN
from maxmargin.reproduce.data import MissingData, missing
from maxmargin.reproduce.hsieh2008 import PART as HSIEH
from maxmargin.reproduce.pages import page_text, write
from maxmargin.reproduce.pegasos_bound import PART as PEGASOS_BOUND
from maxmargin.reproduce.shalev_shwartz2007 import PART as SHALEV_SHWARTZ
from maxmargin.reproduce.subgradient import PART as SUBGRADIENT
from maxmargin.reproduce.support_vectors import PART as SUPPORT_VECTORS

PARTS: dict[str, Part] = {
    "subgradient": SUBGRADIENT,
    "pegasos_bound": PEGASOS_BOUND,
    "support_vectors": SUPPORT_VECTORS,
    "shalev_shwartz2007": SHALEV_SHWARTZ,
    "hsieh2008": HSIEH,
    "chang2010_linear_gaussian": LINEAR_GAUSSIAN,
    "chang2010_degree2": DEGREE_TWO,
}
"""All parts, in the order in which they are run: the short ones first."""

__all__ = ["PARTS", "MissingData", "Part", "Result", "Settings", "Table", "missing", "page_text", "write"]
