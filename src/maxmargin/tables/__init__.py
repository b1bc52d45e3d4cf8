# SPDX-License-Identifier: BSD-3-Clause
"""What the columns of a table become, so that a model can weigh them: found, said, kept with the model."""

from __future__ import annotations
