# SPDX-License-Identifier: BSD-3-Clause
"""Options that say in their annotation which values they take, and the error for all others.

The annotation of a dataclass's field, or of an argument of an estimator's ``__init__``, is the declaration:

    eta: Annotated[float, Range("(0, inf)"), "It is the size of the first step."] = 1.0
    order: Literal["epochs", "uniform"] = "epochs"
    sweeps: Natural | None = None

Solvers and kernels are checked when they are made, feature maps and estimators when they are fitted. What
has been checked is ``changed`` without another look.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import is_dataclass
from functools import cache
from inspect import signature
from numbers import Integral, Real
from types import UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

T = TypeVar("T")


class Range(NamedTuple):
    """The numbers of an interval, which is written as in mathematics: ``(0, 2]`` has 2 but not 0."""

    interval: str


class Expected(NamedTuple):
    """What an annotation stands for, where its own words would be hard to read."""

    words: str


class Check(NamedTuple):
    """A test of its own, where no type says which values there are; and what it lets pass, in words."""

    takes: Callable[[Any], bool]
    words: str


AnyNumber = Annotated[float, Range("(-inf, inf)")]
Positive = Annotated[float, Range("(0, inf)")]
NotNegative = Annotated[float, Range("[0, inf)")]
Natural = Annotated[int, Range("[0, inf)")]
Count = Annotated[int, Range("[1, inf)")]
Seed = Annotated[int, Range(f"[0, {2**63 - 1}]"), "The same seed gives the same result."]

_MOST_BYTES = 2.0**62
"""Bytes: more than any memory has, and a number that the core can count to."""


class Rule(NamedTuple):
    """Which values an option takes, and the cure for others."""

    takes: Callable[[Any], bool]
    expected: str
    cure: str = ""


def wrong(owner: object, name: str, value: Any, expected: str, cure: str = "") -> ValueError:
    """The error of scikit-learn's form for a parameter, followed by what to do."""
    message = f"The {name!r} parameter of {type(owner).__name__} must be {expected}. Got {value!r} instead."
    return ValueError(f"{message} {cure}".rstrip())


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


def check_choice(owner: object, name: str, choices: Iterable[Any], cure: str = "") -> None:
    """Raises ``ValueError`` for a parameter that has none of a few values that are not known beforehand."""
    value = getattr(owner, name)
    if not _is_among(value, choices):
        raise wrong(owner, name, value, _one_of(choices), cure)


@cache
def _defaults(kind: type) -> tuple[tuple[str, Any], ...]:
    """The options in the order of ``__init__``, with those that a subclass hands on."""
    found: dict[str, Any] = {}
    for base in reversed(kind.__mro__[:-1]):
        if "__init__" in vars(base):
            parameters = list(signature(base.__init__).parameters.values())[1:]  # type: ignore[misc]
            found |= {parameter.name: parameter.default for parameter in parameters}
    return tuple(found.items())


@cache
def rules(kind: type) -> dict[str, Rule]:
    """The rule of every option of a class, by its name."""
    makers: list[Any] = [base.__init__ for base in reversed(kind.__mro__)]  # type: ignore[misc]
    hints: dict[str, Any] = {}
    for annotated in [kind] if is_dataclass(kind) else makers:
        hints |= get_type_hints(annotated, include_extras=True)
    return {name: _rule(hints.get(name, Any)) for name, _ in _defaults(kind)}


def _rule(hint: Any) -> Rule:
    """The rule that an annotation declares.

    Among the notes of an ``Annotated`` a text is the cure, and a ``Literal`` says which values there are,
    where type checkers shall take any text.
    """
    interval, words, cure = "[-inf, inf]", "", ""
    own: Check | None = None
    if get_origin(hint) is Annotated:
        notes, hint = hint.__metadata__, hint.__origin__
        for note in notes:
            if isinstance(note, Range):
                interval = note.interval
            elif isinstance(note, Expected):
                words = note.words
            elif isinstance(note, Check):
                own = note
            elif isinstance(note, str):
                cure = note
            else:
                hint = note
    takes, expected = own or _takes(hint, interval)
    return Rule(takes, words or expected, cure)


def _takes(hint: Any, interval: str) -> tuple[Callable[[Any], bool], str]:
    """The test of a type without notes, and its words; numbers are those of the interval."""
    kind = get_origin(hint) or hint
    if kind in (Union, UnionType):
        parts = [_rule(part) for part in get_args(hint)]
        words = " or ".join(part.expected for part in parts)
        return lambda value: any(part.takes(value) for part in parts), words
    if kind is Literal or kind is bool:
        choices = get_args(hint) or (True, False)
        return lambda value: _is_among(value, choices), _one_of(choices)
    if kind is type(None):
        return lambda value: value is None, "None"
    if kind in (int, float):
        words = f"{'an int' if kind is int else 'a float'} in the range {interval}"
        return _is_within(interval, kind), words
    if kind is Callable:
        return callable, "a callable"
    if kind is Any or not isinstance(kind, type) or getattr(kind, "_is_protocol", False):
        return lambda value: True, "anything"  # whoever declares it so checks it
    return lambda value: isinstance(value, kind), f"a {kind.__name__}"


def _is_within(interval: str, kind: Any) -> Callable[[Any], bool]:
    # Whole bounds stay exact.
    low, high = (int(end) if end.strip("- ").isdigit() else float(end) for end in interval[1:-1].split(","))
    has_low, has_high = interval[0] == "[", interval[-1] == "]"
    numbers: Any = Integral if kind is int else Real

    def takes(value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, numbers):
            return False
        try:
            number = kind(value)
        except OverflowError:  # an integer beyond all floats
            return False
        return low < number < high or (has_low and number == low) or (has_high and number == high)

    return takes


def _is_among(value: Any, choices: Iterable[Any]) -> bool:
    # By their identity, since 1 is not True and an array is not compared with a word.
    return any(value is choice or (isinstance(value, str) and value == choice) for choice in choices)


def _one_of(choices: Iterable[Any]) -> str:
    return f"one of {', '.join(map(repr, choices))}"


def bytes_of(megabytes: float) -> int:
    """The bytes of so many megabytes, or all that can be counted."""
    return int(min(1e6 * megabytes, _MOST_BYTES))


def changed(original: T, **fields: Any) -> T:
    """A copy as ``dataclasses.replace`` makes it, at a fifth of the cost: small fits make a dozen of them.

    ``__init__`` is not run, and what cached properties know goes along: for changes that they do not depend
    on.
    """
    copy = object.__new__(type(original))
    copy.__dict__.update(original.__dict__)
    copy.__dict__.update(fields)
    return copy
