# SPDX-License-Identifier: BSD-3-Clause
"""The two functions that move models from and to files."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from maxmargin.files.models.stored import Claim, Format, ModelError, SavedModel, StoredModel
from maxmargin.files.whole import write_whole

if TYPE_CHECKING:
    from maxmargin.estimators.certified import Certified

__all__ = ["Claim", "ModelError", "SavedModel", "load_model", "save_model"]


def load_model(path: str | os.PathLike[str]) -> StoredModel:
    """Read a model file of maxmargin, LIBLINEAR or LIBSVM: which one, its first bytes tell.

    A linear model is a ``SavedModel``, one with a kernel a ``SavedKernelModel``.

    Nothing in the file is trusted: sizes are compared with the file's size before memory is taken, every
    number is looked at, and nothing is executed. Raises ModelError with the reason, or OSError where the
    file cannot be opened.
    """
    from maxmargin.files.models import liblinear, libsvm, safetensors

    readers: dict[str, Callable[[Any, int], StoredModel]] = {
        "maxmargin": safetensors.read_model,
        "liblinear": liblinear.read_model,
        "libsvm": libsvm.read_model,
    }
    with open(path, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ModelError(f"{path}: a model is read from a regular file, not from a pipe or a device.")
        try:
            format = _recognised(file.read(16))
            file.seek(0)
            return readers[format](file, status.st_size)
        except ModelError as error:
            reason = str(error)
            joint = ", " if reason.startswith("line ") else ": "
            raise ModelError(f"{os.fspath(path)}{joint}{reason}") from error


def _recognised(start: bytes) -> Format:
    """The format of a file that begins with these bytes."""
    if not start:
        raise ModelError("the file is empty.")
    if start.startswith(b"solver_type"):
        return "liblinear"
    if start.startswith(b"svm_type"):
        return "libsvm"
    pickled = start[:1] == b"\x80" and start[1:2] <= b"\x05"
    if start[8:9] == b"{" or (start[5:8] == b"\0\0\0" and not pickled):
        return "maxmargin"
    cure = "Models are read in maxmargin's own format and as LIBLINEAR or LIBSVM text."
    if pickled or start[:2] in (b"\x1f\x8b", b"PK", b"x\x9c"):
        cure = (
            "It may be a pickle, a joblib dump or an archive: these are never opened here, since reading a "
            "pickle runs what is in it. Write the model with its method save."
        )
    raise ModelError(f"this is not a model file: it begins with {bytes(start[:8])!r}. {cure}")


def save_model(
    model: StoredModel | Certified,
    path: str | os.PathLike[str],
    *,
    format: Format = "maxmargin",
    data: tuple[Any, Any] | str | None = None,
    proof: bool = True,
) -> None:
    """Write a model file, whole or not at all.

    model : what ``load_model`` gives, a fitted estimator of maxmargin, or a pipeline that ends with one,
        of a ``Table``, scikit-learn's scalers, one-hot encoders and column
        transformers, and feature maps; ``load_pipeline`` gives it back
    format : "maxmargin", which keeps everything, or the text of "liblinear" or "libsvm", which keeps what
        is needed to predict and says of the problem only what that text has room for.
    data : (X, y) of the training, or their fingerprint: others can then tell the data again.
    proof : False leaves the multipliers, margins, row classes and traces out, which makes the file small.
        What it claims to be worth stays in it, and can be proven anew with the data.
    """
    from maxmargin.files.models import fitted, liblinear, libsvm, safetensors

    writers = {"maxmargin": safetensors.writer, "liblinear": liblinear.writer, "libsvm": libsvm.writer}
    if format not in writers:
        names = ", ".join(map(repr, writers))
        raise ValueError(f"format must be one of {names}. Got {format!r} instead.")
    found = fitted.prepared(model, data, proof)
    if found.is_ranking and format != "maxmargin":
        raise ModelError(f"Ranking is not written as text of {format}. Use format='maxmargin'.")
    if format == "maxmargin" and found.has_nu and found.shares is None:
        raise ModelError(
            f"The text of {found.writer} does not say which nu the model was trained with, and a file of "
            "maxmargin says it. Keep the text, or train anew."
        )
    if format == "liblinear" and found.has_nu and not found.is_one_class:
        raise ModelError("LIBLINEAR has no model with a nu. Use format='libsvm' or format='maxmargin'.")
    if format == "maxmargin" and found.is_regression and found.problem["epsilon"] is None:
        raise ModelError(
            f"The text of {found.writer} does not say which epsilon the regressor was trained with, and a "
            "file of maxmargin says it. Keep the text, or train anew."
        )
    if format != "maxmargin" and (found.preparation is not None or found.encoding is not None):
        raise ModelError(
            f"A file of {format} weighs the columns of the data as they are, and this model has steps "
            "before it. Save it with format='maxmargin' instead."
        )
    write_whole(path, writers[format](found))
