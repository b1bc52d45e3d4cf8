# SPDX-License-Identifier: BSD-3-Clause
"""Columns of a table, brought into the order of a model's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from maxmargin.command_line.shared.answer import Failure
from maxmargin.command_line.shared.words import some

if TYPE_CHECKING:
    from maxmargin.files import DataSet, StoredModel


def aligned(data: DataSet, model: StoredModel, path: Path) -> Any:
    """X with its columns in the order of the model's; refuses a table that lacks some of them."""
    ours, theirs = model.feature_names, data.feature_names
    if theirs is None or ours == theirs:
        return data.X
    if ours is None:
        if len(theirs) != model.features:
            raise Failure(
                f"{path} must have the {model.features} feature columns of the model. Got {len(theirs)} "
                "instead. Leave out or add columns so that they are those of the training data."
            )
        return data.X
    missing = [name for name in ours if name not in theirs]
    if missing:
        raise Failure(
            f"{path} must have the columns that the model was trained on. It lacks {some(missing)}. "
            "Add them or give the file that has them."
        )
    place = {name: position for position, name in enumerate(theirs)}
    return data.X[:, [place[name] for name in ours]]
