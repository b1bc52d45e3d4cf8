# SPDX-License-Identifier: BSD-3-Clause
"""The command ``maxmargin``. Heavy imports wait until a command needs them, so that help is quick.

Exit codes: 0 done (``train``, ``choose``: certified; ``certify``, ``report``: holds), 1 ``certify``,
``report``: does not hold, 2 wrong usage or input that cannot be read, 3 ``train`` or ``choose`` ended
without reaching its tolerance (the model is written), 130 interrupted.
"""

from __future__ import annotations

import re
import sys
from typing import Annotated, Any

import typer
import typer.core

from maxmargin.command_line.certify import certify
from maxmargin.command_line.choose import choose
from maxmargin.command_line.compare import compare
from maxmargin.command_line.demo import demo
from maxmargin.command_line.info import info
from maxmargin.command_line.lab import lab
from maxmargin.command_line.pack import pack
from maxmargin.command_line.predict import predict
from maxmargin.command_line.report import report
from maxmargin.command_line.reproduce import reproduce
from maxmargin.command_line.shared.answer import WRONG_USAGE, print_error
from maxmargin.command_line.train import train

__all__ = ["app", "main"]

_WRONG_VALUE = re.compile(r"Invalid value for '([^']+)'(?: / '[^']+')*: Input should be (.*)", re.DOTALL)
_VALUES = {
    "a valid number": "a number",
    "a valid integer": "a whole number",
    "greater than or equal to": "at least",
    "less than or equal to": "at most",
}
"""What typer says of the values that an option takes, and we."""


def _without_types(options: list[Any]) -> list[Any]:
    """Options without what typer's help would say of them: that flags take truth values, and the like."""
    for option in options:
        if getattr(option, "is_flag", False):
            option.metavar = ""
        if option.param_type_name == "argument":  # its name says it: a list of texts is a word of Python
            option.display_type_rich = lambda **_: ""
        if option.name == "help" and len(options) > 5:
            option.rich_help_panel = "Answer"
    return options


class _Command(typer.core.TyperCommand):
    """A command whose help shows flags without what they take."""

    def get_params(self, ctx: Any) -> Any:
        """All options."""
        return _without_types(super().get_params(ctx))


class _Group(typer.core.TyperGroup):
    """The same for the command of all commands."""

    def get_params(self, ctx: Any) -> Any:
        """All options."""
        return _without_types(super().get_params(ctx))


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Support vector machines in which every fit comes with a proof.",
)
_COMMANDS = (train, choose, predict, certify, report, compare, info, pack, demo, lab, reproduce)
for command in _COMMANDS:
    app.command(cls=_Command)(command)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(version("maxmargin"))
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version and exit.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    pass


def main(arguments: list[str] | None = None) -> None:
    """Entry point: run the command and exit with its code, never with a traceback for wrong usage."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        code = app(given, prog_name="maxmargin", standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        code = 130
    except Exception as error:
        # typer's own errors of usage: of a class that its versions keep in different places.
        if not hasattr(error, "format_message"):
            raise
        code = WRONG_USAGE
        if message := error.format_message():
            message = _in_our_words(message.strip())
            sentence = f"{message}{'' if message[-1] in '.?' else '.'} {_where_to_look(given)}"
            print_error(sentence, as_json="--json" in given)
    sys.exit(code if isinstance(code, int) else 0)


def _in_our_words(message: str) -> str:
    """What typer says of a wrong value."""
    if not (found := _WRONG_VALUE.fullmatch(message)):
        return message
    wanted = found[2].partition(",")[0]
    for theirs, ours in _VALUES.items():
        wanted = wanted.replace(theirs, ours)
    return f"{found[1]} must be {wanted}."


def _where_to_look(arguments: list[str]) -> str:
    known = {command.__name__ for command in _COMMANDS}
    name = next((word for word in arguments if word in known), "")
    return f"See: {' '.join(filter(None, ('maxmargin', name, '--help')))}"
