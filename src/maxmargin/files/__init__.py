# SPDX-License-Identifier: BSD-3-Clause
"""Data files and model files: read with suspicion, written whole or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from maxmargin.lazy_names import lazy_names

if TYPE_CHECKING:
    from maxmargin.files.data import DataError, DataSet, read, stream
    from maxmargin.files.fingerprints import fingerprint
    from maxmargin.files.kernel_model import SavedKernelModel
    from maxmargin.files.libsvm import read_libsvm
    from maxmargin.files.model import ModelError, SavedModel, load_model, save_model
    from maxmargin.files.stored import StoredModel

# Imported when they are first asked for, so that `maxmargin --help` waits for none of them.
_HOME = {
    "DataError": "data",
    "DataSet": "data",
    "ModelError": "model",
    "SavedKernelModel": "kernel_model",
    "SavedModel": "model",
    "StoredModel": "stored",
    "fingerprint": "fingerprints",
    "load_model": "model",
    "read": "data",
    "read_libsvm": "libsvm",
    "save_model": "model",
    "stream": "data",
}

__all__ = [
    "DataError",
    "DataSet",
    "ModelError",
    "SavedKernelModel",
    "SavedModel",
    "StoredModel",
    "fingerprint",
    "load_model",
    "read",
    "read_libsvm",
    "save_model",
    "stream",
]

__getattr__, __dir__ = lazy_names(__name__, _HOME)
