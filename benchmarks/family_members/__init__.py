# SPDX-License-Identifier: BSD-3-Clause
"""The members, each with a function that gives its cases on all data sets, or on those that are named."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from benchmarks.family import Case
from benchmarks.family_members import crammer_singer, nu_svc, nu_svr, one_class_svm, rank_svm

MEMBERS: dict[str, Callable[[list[str] | None], Iterator[Case]]] = {
    "OneClassSVM": one_class_svm.cases,
    "NuSVC": nu_svc.cases,
    "NuSVR": nu_svr.cases,
    "crammer_singer": crammer_singer.cases,
    "RankSVM": rank_svm.cases,
}
