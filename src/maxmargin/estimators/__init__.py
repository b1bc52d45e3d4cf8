# SPDX-License-Identifier: BSD-3-Clause
"""Who asks: scikit-learn classes, one per file."""

from __future__ import annotations

from maxmargin.estimators.linear_svc import LinearSVC

__all__ = ["LinearSVC"]
