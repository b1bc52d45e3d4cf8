# SPDX-License-Identifier: BSD-3-Clause
"""The classes that skops has to trust to load what it dumped of maxmargin."""

from __future__ import annotations

from importlib import import_module

_HOMES: dict[str, tuple[str, ...]] = {
    "estimators.linear_one_class_svm": ("LinearOneClassSVM",),
    "estimators.linear_svc": ("LinearSVC",),
    "estimators.linear_svc_cv": ("LinearSVCCV",),
    "estimators.linear_svr": ("LinearSVR",),
    "estimators.nu_svc": ("NuSVC",),
    "estimators.nu_svr": ("NuSVR",),
    "estimators.one_class_svm": ("OneClassSVM",),
    "estimators.rank_svm": ("RankSVM",),
    "estimators.logistic_regression": ("LogisticRegression",),
    "estimators.svc": ("SVC",),
    "estimators.svc_cv": ("SVCCV",),
    "estimators.svr": ("SVR",),
    "estimators.svr_cv": ("SVRCV",),
    "estimators.kept_callback": ("KeptCallback",),
    "features.exact_kernel.error_estimate": ("ErrorEstimate",),
    "features.expansion": ("Expansion",),
    "kernels.base": ("Combination",),
    "kernels.expansions": ("Among",),
    "kernels.cache_use": ("CacheUse",),
    "proof.certificate": ("Certificate", "Off", "SmallProof", "SmallProofs"),
    "proof.hard_margin": ("HardMarginCertificate",),
    "proof.model": ("Certificates", "PairCertificates", "Record", "Status", "Trace"),
    "proof.ranking": ("RankingCertificate",),
    "proof.sure": ("Neighbourhood",),
    "reductions.class_problems": ("ClassProblems", "KernelProblems"),
    "reductions.decompositions": ("TwoClasses", "OneAgainstRest", "OneAgainstOne"),
    "reductions.one_class": ("OneClass",),
    "reductions.ranking": ("Ranking",),
    "reductions.probabilities": ("Calibration", "Curve"),
    "reductions.regression": ("Regression",),
    "reductions.kernel_scores": ("KernelScores",),
    "tables.encoding": ("Column", "Encoding"),
    "tables.kinds": ("LeftOut",),
    "tables.transformer": ("Table",),
}
"""Where the classes are that a fitted estimator is made of, beside kernels, maps and solvers."""


def skops_types() -> list[str]:
    """The names of all classes that fitted estimators and maps of maxmargin are made of.

    For ``skops.io.load(file, trusted=maxmargin.files.skops_types())``: what else a file names, skops still
    refuses. They hold numbers and texts, and run nothing that a file says; so ``Pretrained``, which runs a
    network, is not among them.
    """
    from maxmargin import features
    from maxmargin.kernels.base import KINDS
    from maxmargin.solvers import SOLVERS

    maps = [getattr(features, name) for name in features.__all__]
    kinds = [kind for kind in maps if hasattr(kind, "transform") and kind is not features.Pretrained]
    kinds += [*(kind for kind, _ in KINDS.values()), *SOLVERS.values()]
    for home, names in _HOMES.items():
        module = import_module(f"maxmargin.{home}")
        kinds += [getattr(module, name) for name in names]
    return sorted({f"{kind.__module__}.{kind.__qualname__}" for kind in kinds})
