# SPDX-License-Identifier: BSD-3-Clause
"""``--features nystroem:COUNT`` and ``random-fourier:COUNT``: a kernel, nearly, as columns of their own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from maxmargin import features
from maxmargin.command_line.shared.answer import Failure

FORMS = (
    "nystroem:COUNT[,kernel=NAME][,gamma=NUMBER][,degree=NUMBER][,coef0=NUMBER] or "
    "random-fourier:COUNT[,gamma=NUMBER]"
)
_KERNELS = ("gaussian", "laplacian", "poly", "linear")
_SETTINGS: dict[str, dict[str, type]] = {
    "nystroem": {"kernel": str, "gamma": float, "degree": int, "coef0": float},
    "random-fourier": {"gamma": float},
}


@dataclass(frozen=True)
class KernelFeatures:
    """A map that stands for a kernel, before it has seen rows."""

    name: str
    count: int
    seed: int
    settings: dict[str, Any] = field(default_factory=dict[str, Any])

    def made(self, gamma: float) -> features.Nystroem | features.RandomFourier:
        """The map, not fitted."""
        given = {"gamma": gamma, "seed": self.seed} | self.settings
        if self.name == "nystroem":
            return features.Nystroem(self.count, **given)
        return features.RandomFourier(self.count, **given)

    def learnt_from(self, X: Any) -> features.Nystroem | features.RandomFourier:
        """The map fitted to rows; without a gamma it has that of gamma="scale" on them."""
        from maxmargin.estimators.named_kernels import find_gamma
        from maxmargin.features.dense_maps import in_double

        X = in_double(X)
        return self.made(find_gamma(self.settings.get("gamma", "scale"), X, None)).fit(X)


def asked_kernel_features(
    text: str | None, kernel_options: dict[str, Any], seed: int
) -> KernelFeatures | None:
    """What ``--features`` asks for, its settings checked; None where it asks for no map of a kernel."""
    name, _, rest = (text or "").partition(":")
    if name not in _SETTINGS:
        return None
    if kernel_options:
        option = next(iter(kernel_options)).replace("_", "-")
        raise Failure(
            f"--features is for linear models, and --{option} for kernels. Got both. Leave one out: the "
            f"kernel's own settings stand in --features, as in {name}:1000,gamma=0.5."
        )
    count, *parts = (part.strip() for part in rest.split(","))
    if not count.isdecimal() or not 1 <= int(count) <= 1_000_000:
        raise Failure(
            f"--features {name} must have a number of columns, as in {name}:1000. Got {count!r} instead."
        )
    asked = KernelFeatures(name, int(count), seed, _settings(name, parts))
    from maxmargin.tools.parameters import check_options

    map_ = asked.made(1.0)
    check_options(map_)  # refuses wrong values now, and not after an hour of reading
    if name == "random-fourier" and asked.count % 2:
        raise Failure(
            f"--features random-fourier must have an even number of columns. Got {count} instead. A cosine "
            "and a sine come together."
        )
    return asked


def _settings(name: str, parts: list[str]) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for part in parts:
        setting, _, value = part.partition("=")
        kind = _SETTINGS[name].get(setting)
        if kind is None:
            known = ", ".join(_SETTINGS[name])
            raise Failure(f"--features {name} has the settings {known}. Got {part!r} instead.")
        if setting in settings:
            raise Failure(f"--features must have each setting once. Got {setting} twice.")
        try:
            settings[setting] = kind(value)
        except ValueError:
            raise Failure(f"{setting} of --features must be a number. Got {value!r} instead.") from None
    if settings.get("kernel", "gaussian") not in _KERNELS:
        raise Failure(
            f"kernel of --features must be one of {', '.join(_KERNELS)}. Got {settings['kernel']!r} "
            "instead."
        )
    return settings


def error_in_words(map_: Any) -> str:
    """How well the columns stand for the kernel, as far as pairs of rows tell."""
    error = map_.error_estimate_
    if not error.pairs:
        return ""
    return (
        f"The features' inner products are off by {error.absolute:.2g} from the kernel, as {error.pairs} "
        "pairs of rows tell; the proof is about the problem on the features."
    )
