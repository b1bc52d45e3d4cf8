# SPDX-License-Identifier: BSD-3-Clause
"""Parts from data files, in the order of the files and of their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from scipy import sparse

from maxmargin.files.data.reading import DataError, file_format, stream


def file_parts(
    paths: list[str], columns: int | None, label: str | None
) -> tuple[Callable[[], Iterator[Any]], int | None]:
    """What reads the files from the beginning at each call; how many rows they have is not known."""
    known = [columns]

    def parts() -> Iterator[Any]:
        if known[0] is None and any(file_format(path) == "libsvm" for path in paths):
            known[0] = _widest(paths, label)
        for path in paths:
            for data in stream(path, label=label, columns=known[0]):
                if data.encoding is not None:
                    raise DataError(
                        "a table with texts or missing values cannot be read in chunks",
                        "Encode it with maxmargin.Table first",
                        path=path,
                    )
                yield data.X, data.y

    return parts, None


def _widest(paths: list[str], label: str | None) -> int:
    """The number of columns of LIBSVM text, which one has to look through to know."""
    most = 1
    for path in paths:
        for data in stream(path, label=label):
            if sparse.issparse(data.X) or data.X.shape[0]:
                most = max(most, int(data.X.shape[1]))
    return most
