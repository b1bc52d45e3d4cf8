# SPDX-License-Identifier: BSD-3-Clause
"""The sizes that decide which way a problem is solved, or in which form: each with its unit and its reason."""

from __future__ import annotations

SPLIT_FROM = 5_000
"""Rows of a kernel problem from which blocks are looked for that the kernel cannot couple."""
