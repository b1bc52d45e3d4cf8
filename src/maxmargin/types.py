# SPDX-License-Identifier: BSD-3-Clause
"""The few types that all modules speak of."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Indices = NDArray[np.int64]
Tell = Callable[[], object]
"""Called now and then by what takes long."""
