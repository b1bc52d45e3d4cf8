# SPDX-License-Identifier: BSD-3-Clause
"""The few array types that all modules speak of."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Indices = NDArray[np.int64]
