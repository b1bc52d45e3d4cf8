# SPDX-License-Identifier: BSD-3-Clause
"""Who asks: scikit-learn classes, one per file."""

from __future__ import annotations

from maxmargin.estimators.linear_one_class_svm import LinearOneClassSVM
from maxmargin.estimators.linear_svc import LinearSVC
from maxmargin.estimators.linear_svc_cv import LinearSVCCV
from maxmargin.estimators.linear_svr import LinearSVR
from maxmargin.estimators.logistic_regression import LogisticRegression
from maxmargin.estimators.nu_svc import NuSVC
from maxmargin.estimators.nu_svr import NuSVR
from maxmargin.estimators.one_class_svm import OneClassSVM
from maxmargin.estimators.rank_svm import RankSVM
from maxmargin.estimators.svc import SVC
from maxmargin.estimators.svc_cv import SVCCV
from maxmargin.estimators.svr import SVR
from maxmargin.estimators.svr_cv import SVRCV

__all__ = [
    "SVC",
    "SVCCV",
    "SVR",
    "SVRCV",
    "LinearOneClassSVM",
    "LinearSVC",
    "LinearSVCCV",
    "LinearSVR",
    "LogisticRegression",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
    "RankSVM",
]
