# SPDX-License-Identifier: BSD-3-Clause
"""Fits on a cluster of Dask, with the same proof: ``pip install 'maxmargin[dask]'``.

``parts.py`` makes (X, y, weights) of each partition, ``passes.py`` runs the tasks of a fit over them, and
``linear_svc.py`` and ``linear_svc_cv.py`` are the estimators. What a fit asks of the rows is that of
``maxmargin.chunks``.
"""

try:
    from maxmargin.dask.passes import DaskPasses as DaskPasses
except ImportError as error:
    raise ImportError(
        f"maxmargin.dask needs Dask and its scheduler ({error}): pip install 'maxmargin[dask]'."
    ) from None
from maxmargin.dask.linear_svc import LinearSVC as LinearSVC
from maxmargin.dask.linear_svc_cv import LinearSVCCV as LinearSVCCV
