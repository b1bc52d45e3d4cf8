# SPDX-License-Identifier: BSD-3-Clause
"""Options that say in their annotation which values they take, and the error for all others.

The annotation of a dataclass's field, or of an argument of an estimator's ``__init__``, is the declaration:

    eta: Annotated[float, Range("(0, inf)"), "It is the size of the first step."] = 1.0
    order: Literal["epochs", "uniform"] = "epochs"
    sweeps: Natural | None = None

Solvers and kernels are checked when they are made, feature maps when they are fitted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import is_dataclass
from functools import cache
from inspect import signature
from numbers import Integral, Real
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints


class Range(NamedTuple):
    """The numbers of an interval, which is written as in mathematics: ``(0, 2]`` has 2 but not 0."""

    interval: str


class Expected(NamedTuple):
    """What an annotation stands for, where its own words would be hard to read."""

    words: str


AnyNumber = Annotated[float, Range("(-inf, inf)")]
Positive = Annotated[float, Range("(0, inf)")]
NotNegative = Annotated[float, Range("[0, inf)")]
Natural = Annotated[int, Range("[0, inf)")]
Count = Annotated[int, Range("[1, inf)")]
Seed = Annotated[int, Range(f"[0, {2**63 - 1}]"), "The same seed gives the same result."]


class Rule(NamedTuple):
    """Which values an option takes."""

    takes: Callable[[Any], bool]
    expected: str
    cure: str = ""


def check_options(owner: Any) -> None:
    """Raises ``ValueError`` for the first option of the object that has a value it does not take.

    A value that is the default itself is not looked at: nearly all are, and small fits make many objects.
    """
    values: dict[str, Any] = vars(owner)
    kind: Any = type(owner)
    for name, default in _defaults(kind):
        value = values.get(name, default)
        if value is not default:
            rule = rules(kind)[name]
            if not rule.takes(value):
                raise wrong(owner, name, value, rule.expected, rule.cure or f"The default is {default!r}.")


@cache
def _defaults(kind: type) -> tuple[tuple[str, Any], ...]:
    """The options in the order of ``__init__``, with those that a subclass hands on."""
    found: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        if "__init__" in vars(base) and base is not object:
            parameters = list(signature(base.__init__).parameters.values())[1:]  # type: ignore[misc]
            found |= {parameter.name: parameter.default for parameter in parameters}
    return tuple(found.items())


@cache
def rules(kind: type) -> dict[str, Rule]:
    """The rule of every option of a class, by its name."""
    declared: list[Any] = [kind] if is_dataclass(kind) else [base.__init__ for base in kind.__mro__[::-1]]  # type: ignore[misc]
    hints: dict[str, Any] = {}
    for annotated in declared:
        hints |= get_type_hints(annotated, include_extras=True)
    return {name: _rule(hints.get(name, Any)) for name, _ in _defaults(kind)}


def _rule(hint: Any) -> Rule:
    """The rule that an annotation declares.

    Among the notes of an ``Annotated`` a text is the cure, and a ``Literal`` says which values there are,
    where type checkers shall take any text.
    """
    within, words, cure = "[-inf, inf]", "", ""
    if get_origin(hint) is Annotated:
        notes, hint = hint.__metadata__, hint.__origin__
        for note in notes:
            match note:
                case Range(interval):
                    within = interval
                case Expected(text):
                    words = text
                case str(text):
                    cure = text
                case _ if get_origin(note) is Literal:
                    hint = note
    rule = _plain_rule(hint, within)
    return Rule(rule.takes, words or rule.expected, cure)


def _plain_rule(hint: Any, interval: str) -> Rule:
    kind = get_origin(hint) or hint
    if kind in (Union, UnionType):
        parts = [_rule(part) for part in get_args(hint)]
        expected = " or ".join(part.expected for part in parts)
        return Rule(lambda value: any(part.takes(value) for part in parts), expected)
    if kind is Literal:
        return _choice(get_args(hint))
    if kind is bool:
        return _choice([True, False])
    if kind is type(None):
        return _choice([None])._replace(expected="None")
    if kind in (int, float):
        return _numbers(interval, whole=kind is int)
    if kind is Callable:
        return Rule(callable, "a callable")
    if kind is Any or not isinstance(kind, type) or getattr(kind, "_is_protocol", False):
        return Rule(lambda value: True, "anything")  # whoever declares it so checks it
    return Rule(lambda value: isinstance(value, kind), f"a {kind.__name__}")


@cache
def _numbers(interval: str, whole: bool, cure: str = "") -> Rule:
    # Whole bounds stay exact.
    low, high = (int(end) if end.strip("- ").isdigit() else float(end) for end in interval[1:-1].split(","))
    has_low, has_high = interval[0] == "[", interval[-1] == "]"
    kind: Any = Integral if whole else Real
    convert: Any = int if whole else float

    def takes(value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, kind):
            return False
        try:
            number = convert(value)
        except OverflowError:  # an integer beyond all floats
            return False
        return low < number < high or (has_low and number == low) or (has_high and number == high)

    return Rule(takes, f"{'an int' if whole else 'a float'} in the range {interval}", cure)


def _choice(choices: Iterable[Any], cure: str = "") -> Rule:
    choices = list(choices)
    return Rule(lambda value: _is_among(value, choices), f"one of {', '.join(map(repr, choices))}", cure)


def _is_among(value: Any, choices: Iterable[Any]) -> bool:
    # By their identity, since 1 is not True and an array is not compared with a word.
    return any(value is choice or (isinstance(value, str) and value == choice) for choice in choices)


def wrong(owner: object, name: str, value: Any, expected: str, cure: str = "") -> ValueError:
    """The error of scikit-learn's form for a parameter, followed by what to do."""
    message = f"The {name!r} parameter of {type(owner).__name__} must be {expected}. Got {value!r} instead."
    return ValueError(f"{message} {cure}".rstrip())


def check_number(
    owner: object,
    name: str,
    *,
    above: float = -math.inf,
    at_least: float = -math.inf,
    cure: str = "",
) -> float:
    """A finite real number in the range."""
    low = f"[{at_least}" if at_least > -math.inf else f"({above}"
    return float(_checked(owner, name, _numbers(f"{low}, inf)", whole=False, cure=cure)))


def check_count(owner: object, name: str, at_least: int, cure: str = "") -> int:
    """A whole number of at least so many."""
    return int(_checked(owner, name, _numbers(f"[{at_least}, inf)", whole=True, cure=cure)))


def check_choice(owner: object, name: str, choices: Iterable[Any], cure: str = "") -> Any:
    """One of a few values."""
    value = getattr(owner, name)
    return value if _is_among(value, choices) else _checked(owner, name, _choice(choices, cure))


def _checked(owner: object, name: str, rule: Rule) -> Any:
    value = getattr(owner, name)
    if not rule.takes(value):
        raise wrong(owner, name, value, rule.expected, rule.cure)
    return value
