# SPDX-License-Identifier: BSD-3-Clause
"""``--features``: monomials of degree 2 as the columns of a linear model, never written out."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from maxmargin import features, files
from maxmargin.command_line.shared.answer import Failure
from maxmargin.command_line.shared.kernel_features import FORMS, asked_kernel_features
from maxmargin.tools.words import bytes_in_words

if TYPE_CHECKING:
    from maxmargin.features.expansion import Expansion
    from maxmargin.features.lazy import LazyMonomials

_FORM = "monomials:2[,scaling=kernel][,gamma=NUMBER][,coef0=NUMBER][,interaction_only]"
_DEGREES = {0: "0 to 2", 1: "1 and 2", 2: "2"}


def asked_features(text: str | None, kernel_options: dict[str, Any]) -> features.Monomials | None:
    """The map that ``--features`` asks for, its settings checked; None where it is not given."""
    if text is None:
        return None
    if kernel_options:
        name = next(iter(kernel_options)).replace("_", "-")
        raise Failure(
            f"--features is for linear models, and --{name} for kernels. Got both. Leave one out: gamma "
            "and coef0 of the features stand in --features, as in monomials:2,scaling=kernel,gamma=0.5."
        )
    if asked_kernel_features(text, kernel_options, 0) is not None:
        raise Failure(f"Only train takes --features {text}. Here it must be {_FORM}.")
    name, _, rest = text.partition(":")
    degree, *settings = (part.strip() for part in rest.split(","))
    if name != "monomials":
        raise Failure(f"--features must be {_FORM}; or, for train, {FORMS}. Got {text!r} instead.")
    if degree != "2":
        raise Failure(
            f"--features monomials must have degree 2. Got {degree!r} instead. For other degrees use "
            "--kernel polynomial --degree, or in Python maxmargin.features.Monomials, written out."
        )
    monomials = features.Monomials(2, **_settings(settings, text))
    monomials._expansion(1)  # refuses wrong values now, and not after an hour of reading
    return monomials


def _settings(parts: list[str], text: str) -> dict[str, Any]:
    """The parameters of ``Monomials``; those of the kernel only with its scaling."""
    settings: dict[str, Any] = {}
    for part in parts:
        name, equals, value = part.partition("=")
        if name in settings:
            raise Failure(f"--features must have each setting once. Got {name} twice in {text!r}.")
        if part == "interaction_only":
            settings[name] = True
        elif name == "scaling" and value:
            settings[name] = value
        elif name in ("gamma", "coef0") and equals:
            try:
                settings[name] = float(value)
            except ValueError:
                raise Failure(f"{name} of --features must be a number. Got {value!r} instead.") from None
        else:
            raise Failure(f"--features must be {_FORM}. Got {part!r} in it instead.")
    of_kernel = [name for name in ("gamma", "coef0") if name in settings]
    if of_kernel and settings.get("scaling", "plain") == "plain":
        raise Failure(
            f"{of_kernel[0]} of --features is for scaling=kernel. Got plain scaling. Add scaling=kernel, "
            "or leave it out."
        )
    return settings


def expanded(
    X: Any, asked: features.Monomials | None, earlier: files.StoredModel | None, problems: int = 1
) -> LazyMonomials | Any:
    """X as a linear model is to see it: with the features asked for, or those of the earlier model.

    Refused are features that a model to go on from does not have, and more weights, for so many problems,
    than ``Monomials`` allows.
    """
    known: Expansion | None = getattr(earlier, "expansion", None)
    if asked is None and known is None:
        return X
    expansion = known if asked is None else asked._expansion(X.shape[1])
    assert expansion is not None
    if earlier is not None and expansion != known:
        theirs = "none" if known is None else features_in_words(known)
        raise Failure(
            f"--features must be those of the model to --resume ({theirs}). Got "
            f"{features_in_words(expansion)} instead. Leave --features out to go on with its own, or train "
            "anew without --resume."
        )
    if X.shape[1] != expansion.columns:
        raise Failure(
            f"The data must have the {expansion.columns} columns of the model to --resume. Got "
            f"{X.shape[1]} instead. Set their number with --columns, or train anew without --resume."
        )
    _refuse_too_large(expansion, problems)
    from maxmargin.features.lazy import LazyMonomials

    return LazyMonomials(X, expansion)


def _refuse_too_large(expansion: Expansion, problems: int) -> None:
    needed, limit = 8 * expansion.size * problems, features.Monomials().max_bytes
    if needed > limit:
        raise Failure(
            f"--features would make {expansion.size:,} columns out of {expansion.columns:,}, and their "
            f"weights alone would take {bytes_in_words(needed)}, more than the {bytes_in_words(limit)} "
            "allowed. Use --kernel polynomial --degree 2 instead, which has no weights, or fewer columns."
        )


def features_in_words(expansion: Expansion) -> str:
    """How many of which degrees, and how they are scaled."""
    words = (
        f"{expansion.size} monomials of degree {_DEGREES[expansion.lowest]} of {expansion.columns} columns"
    )
    if expansion.once:
        words += ", each column at most once"
    constant, single, double = expansion.scales
    gamma = double / math.sqrt(2.0)
    if expansion.shared_repeats and math.isclose(single, math.sqrt(2.0 * gamma * constant)):
        sum_of = f"{gamma:.6g} <x, z>" + (f" + {constant:.6g}" if constant else "")
        return f"{words}, scaled as ({sum_of})^2"
    if expansion.scales != (1.0, 1.0, 1.0) or expansion.shared_repeats:
        words += f", scaled by {constant:.6g}, {single:.6g} and {double:.6g}"
    return words


def features_as_json(expansion: Expansion | None) -> dict[str, Any] | None:
    """The features in plain values; None where the columns themselves are the features."""
    from maxmargin.files.models.description import described_features

    return None if expansion is None else described_features(expansion) | {"size": expansion.size}


def monomial_name(expansion: Expansion, position: int, names: list[str] | None) -> str:
    """The monomial at a position of coef, in the names of its columns, or in their numbers from 1."""
    factors = [
        names[column] if names is not None else str(column + 1) for column in _factors(expansion, position)
    ]
    if len(set(factors)) < len(factors):
        return f"{factors[0]}^2"
    return "*".join(factors) or "constant"


def _factors(expansion: Expansion, position: int) -> list[int]:
    """The columns whose product is at that position: the constant, the columns, then pairs in order."""
    columns = expansion.columns
    if expansion.lowest == 0:
        if position == 0:
            return []
        position -= 1
    if expansion.lowest <= 1:
        if position < columns:
            return [position]
        position -= columns
    first, apart = 0, int(expansion.once)
    while position >= (pairs := columns - first - apart):
        position -= pairs
        first += 1
    return [first, first + apart + position]
