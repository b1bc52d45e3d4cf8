# SPDX-License-Identifier: BSD-3-Clause
"""``--option NAME=VALUE``: the options of a solver on the command line.

Which options there are, and which values they take, is what the solver itself declares.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maxmargin.command_line.shared.answer import Failure

if TYPE_CHECKING:
    from maxmargin.solvers import AnySolver
    from maxmargin.tools.parameters import Rule

Options = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="NAME=VALUE",
        help="An option of the solver, such as batch=16; may be given several times.",
        show_default="those of the solver",
    ),
]
_WORDS = {"true": True, "false": False, "none": None}


def configured(solver: str | None, given: list[str] | None, **known: Any) -> str | AnySolver | None:
    """The solver with the options that were given for it, or its name where none were.

    ``known`` are options for which the command has names of its own; a solver without them is not told.
    """
    from maxmargin.solvers import SOLVERS

    if not given:
        return solver
    if solver not in SOLVERS:
        raise Failure(
            f"--option needs the --solver that it is an option of: one of {', '.join(SOLVERS)}. "
            f"Got {'none' if solver is None else repr(solver)} instead."
        )
    if any(text.partition("=")[0] == "seed" for text in given):
        raise Failure(
            "--option seed must be given as --seed, from which a seed for every problem is drawn."
        )
    return entrants([solver], given, **known)[solver]


def usual_loss(solver: str | None, model_format: str = "maxmargin") -> str:
    """The loss where none is asked for: that of LinearSVC, unless only the hinge is known there."""
    from maxmargin import Problem
    from maxmargin.solvers import SOLVERS

    if model_format == "libsvm":
        return "hinge"
    if solver in SOLVERS:
        smooth, sharp = (
            Problem.of([[1.0], [-1.0]], [1.0, -1.0], 1.0, loss=loss) for loss in ("squared_hinge", "hinge")
        )
        if SOLVERS[solver]().accepts(smooth) is not None and SOLVERS[solver]().accepts(sharp) is None:
            return "hinge"
    return "squared_hinge"


def entrants(names: list[str], given: list[str] | None, **known: Any) -> dict[str, AnySolver]:
    """Solvers by their names, each with those of the options that it has; one of them has to have each."""
    from maxmargin.solvers import SOLVERS
    from maxmargin.tools.parameters import rules

    offered = {name: rules(SOLVERS[name]) for name in names}
    texts = _texts(given or [], list(dict.fromkeys(option for name in names for option in offered[name])))
    solvers = {}
    for name in names:
        own = {k: v for k, v in known.items() if v is not None and k in offered[name]}
        for option in texts.keys() & offered[name].keys():
            own[option] = _value(name, option, texts[option], offered[name][option])
        solvers[name] = SOLVERS[name](**own)
    return solvers


def _texts(given: list[str], known: list[str]) -> dict[str, str]:
    """What was given, by the names of options that are known."""
    texts: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or name not in known:
            raise Failure(
                f"--option must be NAME=VALUE, with one of the names {', '.join(known)}. "
                f"Got {text!r} instead."
            )
        if name in texts:
            raise Failure(f"--option {name} must be given once. Got {texts[name]!r} and {value!r} instead.")
        texts[name] = value
    return texts


def _value(solver: str, name: str, text: str, rule: Rule) -> Any:
    """What the text means to the option: the first of its readings that the option takes."""
    for value in _readings(text):
        if rule.takes(value):
            return value
    raise Failure(
        f"--option {name} of {solver} must be {rule.expected}. Got {text!r} instead. {rule.cure}".rstrip()
    )


def _readings(text: str) -> Iterator[Any]:
    """The text itself, a number, true, false or none, and numbers separated by commas."""
    yield text
    if text.lower() in _WORDS:
        yield _WORDS[text.lower()]
    for number in (int, float):
        try:
            yield number(text)
        except ValueError:
            continue
    try:
        yield tuple(float(part) for part in text.split(","))
    except ValueError:
        return
