# SPDX-License-Identifier: BSD-3-Clause
"""Data files and model files: read with suspicion, written whole or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from maxmargin.tools.lazy_names import lazy_names

if TYPE_CHECKING:
    from maxmargin.files.data.fingerprints import fingerprint as fingerprint
    from maxmargin.files.data.libsvm import read_libsvm as read_libsvm
    from maxmargin.files.data.libsvm import write_libsvm as write_libsvm
    from maxmargin.files.data.packing import PackedSource as PackedSource
    from maxmargin.files.data.packing import pack as pack
    from maxmargin.files.data.reading import DataError as DataError
    from maxmargin.files.data.reading import DataSet as DataSet
    from maxmargin.files.data.reading import read as read
    from maxmargin.files.data.reading import stream as stream
    from maxmargin.files.models.pipelines import load_pipeline as load_pipeline
    from maxmargin.files.models.saved import load_model as load_model
    from maxmargin.files.models.saved import save_model as save_model
    from maxmargin.files.models.skops import skops_types as skops_types
    from maxmargin.files.models.stored import ModelError as ModelError
    from maxmargin.files.models.stored import SavedKernelModel as SavedKernelModel
    from maxmargin.files.models.stored import SavedModel as SavedModel
    from maxmargin.files.models.stored import StoredModel as StoredModel

# Imported when they are first asked for, so that `maxmargin --help` waits for none of them.
_NAMES = {
    "data.fingerprints": ["fingerprint"],
    "data.libsvm": ["read_libsvm", "write_libsvm"],
    "data.packing": ["PackedSource", "pack"],
    "data.reading": ["DataError", "DataSet", "read", "stream"],
    "models.pipelines": ["load_pipeline"],
    "models.saved": ["load_model", "save_model"],
    "models.skops": ["skops_types"],
    "models.stored": ["ModelError", "SavedKernelModel", "SavedModel", "StoredModel"],
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}

__all__ = list(_HOME)

__getattr__, __dir__ = lazy_names(__name__, _HOME)
