# SPDX-License-Identifier: BSD-3-Clause
"""Data files and model files: read with suspicion, written whole or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from maxmargin.tools.lazy_names import lazy_names

if TYPE_CHECKING:
    from maxmargin.files.data.fingerprints import fingerprint
    from maxmargin.files.data.libsvm import read_libsvm
    from maxmargin.files.data.reading import DataError, DataSet, read, stream
    from maxmargin.files.models.saved import load_model, save_model
    from maxmargin.files.models.stored import ModelError, SavedKernelModel, SavedModel, StoredModel

# Imported when they are first asked for, so that `maxmargin --help` waits for none of them.
_HOME = {
    "DataError": "data.reading",
    "DataSet": "data.reading",
    "ModelError": "models.stored",
    "SavedKernelModel": "models.stored",
    "SavedModel": "models.stored",
    "StoredModel": "models.stored",
    "fingerprint": "data.fingerprints",
    "load_model": "models.saved",
    "read": "data.reading",
    "read_libsvm": "data.libsvm",
    "save_model": "models.saved",
    "stream": "data.reading",
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
