# SPDX-License-Identifier: BSD-3-Clause
"""TorchKM, which fits kernel SVMs with all eigenvectors of the matrix, in PyTorch and double precision.

Its objective is ours over n C. It cross-validates in every fit, with one fold at the least.
"""

from __future__ import annotations

import importlib.util
import time
from typing import Any, NamedTuple

import numpy as np

from maxmargin.types import Vector

_STEPS = 100_000
"""Steps that it may take: its default of 1,000 ends earlier."""


class Answer(NamedTuple):
    """What it found, and how long that took, the copying to the card and the matrix included."""

    seconds: float
    coefficients: Vector
    """Of the rows."""
    b: float


def is_installed() -> bool:
    """Whether it can be measured."""
    return importlib.util.find_spec("torchkm") is not None


def fit(X: Any, y: Vector, C: float, gamma: float) -> Answer:
    """A fit with the Gaussian kernel of labels -1 and 1, at its default tolerance."""
    import torch
    from torchkm.cvksvm import cvksvm
    from torchkm.functions import rbf_kernel

    count = len(y)
    torch.zeros(1, device="cuda")
    begin = time.perf_counter()
    rows = torch.as_tensor(np.asarray(X, np.float64), device="cuda")
    model = cvksvm(
        Kmat=rbf_kernel(rows, 0.5 * gamma),
        y=torch.as_tensor(np.asarray(y, np.float64)),
        nlam=1,
        ulam=torch.tensor([0.5 / (count * C)]),
        foldid=torch.ones(count, dtype=torch.int64),
        nfolds=1,
        maxit=_STEPS,
        gamma=1e-8,
        device="cuda",
    )
    model.fit()
    found = model.alpmat[:, 0].cpu().numpy()
    return Answer(time.perf_counter() - begin, found[1:], float(found[0]))
