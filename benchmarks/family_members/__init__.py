# SPDX-License-Identifier: BSD-3-Clause
"""The members, each with a function that gives its cases on all data sets, or on those that are named."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from benchmarks.family import Case
from benchmarks.family_members import (
    crammer_singer,
    l1,
    linear_svr,
    nu_svc,
    nu_svr,
    one_class_svm,
    probability,
    rank_svm,
    svc_cv,
    svr,
)

MEMBERS: dict[str, Callable[[list[str] | None], Iterator[Case]]] = {
    "LinearSVR": linear_svr.cases,
    "SVR": svr.cases,
    "OneClassSVM": one_class_svm.cases,
    "NuSVC": nu_svc.cases,
    "NuSVR": nu_svr.cases,
    "RankSVM": rank_svm.cases,
    "l1": l1.cases,
    "crammer_singer": crammer_singer.cases,
    "probability": probability.cases,
    "SVCCV": svc_cv.cases,
}
