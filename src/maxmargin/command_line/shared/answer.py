# SPDX-License-Identifier: BSD-3-Clause
"""How a command answers: in words or as one JSON object, with an exit code, never with a traceback.

At the end stands what Ctrl-C does while a model is trained and written.
"""

from __future__ import annotations

import functools
import inspect
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, redirect_stdout
from copy import copy
from dataclasses import fields, is_dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer
from typer.models import ArgumentInfo

from maxmargin.command_line.shared.voice import VOICE, speaking
from maxmargin.command_line.shared.words import as_options
from maxmargin.tools.plain_values import plain

KEYWORD = inspect.Parameter.KEYWORD_ONLY

# The exit codes; 130 is what shells report for Ctrl-C.
DONE = 0
DOES_NOT_HOLD = 1
WRONG_USAGE = 2
NOT_REACHED = 3
INTERRUPTED = 130

INTERCEPTS = {"exact": "exact intercept", "regularised": "regularised intercept", "none": "no intercept"}
"""The three forms of the intercept in words."""

WIDEST_TABLE = 1000
"""Characters. No table is as wide: it is the room of a table in a file or a pipe, which has no margin."""


class Failure(Exception):
    """What ends a command: one paragraph that says what is wrong and what to do."""


def in_words(command: Callable[..., int]) -> Callable[..., int]:
    """Turn everything that input can provoke into one paragraph on stderr, or one JSON object.

    The command returns its exit code. It is told of ``--json`` by its argument ``as_json``. An argument
    that is a dataclass stands for an option for each of its fields.
    """
    given = inspect.signature(command, eval_str=True).parameters.values()
    groups: dict[str, Any] = {each.name: each.annotation for each in given if is_dataclass(each.annotation)}

    @functools.wraps(command)
    def run(*, quiet: bool, verbose: bool, **options: Any) -> int:
        with speaking(quiet=quiet, verbose=verbose):
            return answered(options)

    def answered(options: dict[str, Any]) -> int:
        as_json = bool(options.get("as_json", False))
        for name, group in groups.items():
            options[name] = group(**{field.name: options.pop(field.name) for field in fields(group)})
        try:
            with _hushed(command.__name__, as_json=as_json):
                return command(**_with_standard_input(options))
        except KeyboardInterrupt:
            print_error("Interrupted: no file was written.", as_json=as_json)
            return INTERRUPTED
        except BrokenPipeError:
            _forget_stdout()
            return DONE
        except (Failure, ValueError, OSError, MemoryError, ImportError) as error:
            print_error(_words_of(error), as_json=as_json)
            return WRONG_USAGE

    parameters = [option for each in given for option in _options_of(each)]
    parameters += [
        inspect.Parameter(name, KEYWORD, annotation=kind, default=False) for name, kind in _VOICE
    ]
    run.__signature__ = inspect.Signature([_shown(each) for each in parameters])  # type: ignore[attr-defined]
    run.__doc__ = "\n\n".join(" ".join(part.split()) for part in (command.__doc__ or "").split("\n\n"))
    return run


@contextmanager
def _hushed(name: str, *, as_json: bool) -> Iterator[None]:
    """With -q, no words of commands whose answer is a file or an exit code; errors and warnings stay."""
    if not VOICE.quiet or as_json or name not in ("train", "choose", "certify"):
        yield
        return
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        yield


def _with_standard_input(options: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a command, with standard input in a file where one of them names it."""
    named = [name for name in ("model", "data", "file", "test") if str(options.get(name)) == "-"]
    if len(named) > 1:
        raise Failure("Only one file can be standard input. Got - twice. Save one of them as a file.")
    if not named:
        return options
    from maxmargin.command_line.shared.standard_input import kept

    format = getattr(options.get("reading"), "format", None)
    return options | {named[0]: kept(options[named[0]], format)}


_VOICE = (
    ("quiet", Annotated[bool, typer.Option("-q", "--quiet", help="Answers and warnings alone.")]),
    ("verbose", Annotated[bool, typer.Option("-v", "--verbose", help="Every certificate of a fit.")]),
)
_PANELS = {
    "Problem": "task C loss epsilon intercept class_weight kernel gamma degree coef0 features",
    "Choice": "low high values gammas folds picture",
    "Training": "solver option tol max_time max_iter seed resume cache_size device threads memory "
    "checkpoint",
    "Data": "label format columns zero_based skip_bad_lines dense test hold_out",
    "Tables": "drop categorical numeric scale missing delimiter decimal no_header",
    "Answer": "output scores sure no_proof model_format as_json quiet verbose",
}
"""The options of each part of the help."""
_TYPES = {bool: "", float: "NUMBER", int: "NUMBER", str: "TEXT", Path: "PATH"}
"""How the help calls what an option takes."""


def _shown(option: inspect.Parameter) -> inspect.Parameter:
    """The option in its part of the help, with words of our own for what it takes."""
    kind, info = get_args(option.annotation)
    info = copy(info)
    if not isinstance(info, ArgumentInfo):
        panels = [panel for panel, names in _PANELS.items() if option.name in names.split()]
        info.rich_help_panel = next(iter(panels), None)
    if info.metavar is None:
        plain = next((one for one in (kind, *get_args(kind)) if one in _TYPES), str)
        info.metavar = _TYPES[plain]
    return option.replace(annotation=Annotated[kind, info])


def _options_of(argument: inspect.Parameter) -> list[inspect.Parameter]:
    """What the command line offers for an argument: itself, or the fields of a group of options."""
    group, argument = argument.annotation, argument.replace(kind=KEYWORD)
    if not is_dataclass(group):
        return [argument]
    hints = get_type_hints(group, include_extras=True)
    return [
        argument.replace(name=field.name, default=field.default, annotation=hints[field.name])
        for field in fields(group)
    ]


def _words_of(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return f"The memory does not suffice. {as_options(str(error))}".strip()
    if isinstance(error, OSError) and error.strerror:
        # Only what is written to stdout has no name.
        return f"{error.filename or 'The answer could not be written'}: {error.strerror}."
    message = str(error) if isinstance(error, Failure) else as_options(str(error))
    if "maxmargin-" not in message:
        return message
    from maxmargin.command_line.shared.standard_input import in_its_name

    return in_its_name(message)


def _forget_stdout() -> None:
    """Whoever read our output has had enough of it; Python must not complain when it flushes the rest."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_error(message: str, *, as_json: bool) -> None:
    """One paragraph on stderr, or ``{"error": ...}`` on stdout."""
    paragraph = " ".join(message.split())
    if as_json:
        try:
            print_json({"error": paragraph})
            return
        except OSError:
            pass  # stdout itself is what is wrong
    typer.echo(f"Error: {paragraph}", err=True)


def print_json(answer: dict[str, Any]) -> None:
    """Exactly one object on stdout; numbers that JSON does not have become null."""
    typer.echo(json.dumps(plain(answer), indent=2, allow_nan=False))


def attributes(source: Any, *names: str) -> dict[str, Any]:
    """What has these names in an object; None where there is no such thing."""
    return {name: getattr(source, name, None) for name in names}


def print_table(
    title: str,
    headings: Sequence[str],
    rows: Iterable[Sequence[Any]],
    formats: Sequence[str] = (),
    *,
    left: int = 1,
) -> None:
    """A table on stdout whose first ``left`` columns are words and whose others are numbers.

    Formats are those of the cells of each column, for as many as need one.
    """
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False, show_edge=False)
    for position, heading in enumerate(headings):
        words = position < left or heading == "ended"
        table.add_column(escape(heading), justify="left" if words else "right", no_wrap=not words)
    for row in rows:
        cells = zip_longest(row, formats[: len(row)], fillvalue="")
        table.add_row(*(escape(format(cell, wanted)) for cell, wanted in cells))
    # Where no terminal sets a width, a table is as wide as it needs to be.
    terminal = sys.stdout.isatty()
    console = Console(width=None if terminal else WIDEST_TABLE, force_terminal=terminal, highlight=False)
    with console.capture() as captured:
        console.print(table)
    lines = captured.get().splitlines()
    typer.echo("\n".join([*([title] if title else []), *(line.rstrip() for line in lines)]) + "\n")


@contextmanager
def _interrupts_go_to(handler: Any) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread is told of signals
        return
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) == handler:
            signal.signal(signal.SIGINT, before)


def one_interrupt() -> AbstractContextManager[None]:
    """The first Ctrl-C ends the training; later ones are ignored, lest they take away what it leaves."""

    def interrupt(number: int, frame: object) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        raise KeyboardInterrupt

    return _interrupts_go_to(interrupt)


def no_interrupt() -> AbstractContextManager[None]:
    """Ctrl-C waits the moment that the writing of a finished model takes."""
    return _interrupts_go_to(signal.SIG_IGN)
