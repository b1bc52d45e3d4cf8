# SPDX-License-Identifier: BSD-3-Clause
"""A cluster of two processes for all tests here: to start one takes longer than most of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def cluster_of() -> Callable[[int], Any]:
    """A cluster of so many workers, each a process."""
    distributed = pytest.importorskip("distributed")

    def made(workers: int) -> Any:
        return distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            silence_logs=50,
            host="127.0.0.1",
        )

    return made


@pytest.fixture(scope="session")
def address(cluster_of: Callable[[int], Any]) -> Iterator[str]:
    """Where the cluster of two is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with cluster_of(2) as cluster:
            yield cluster.scheduler_address
