# SPDX-License-Identifier: BSD-3-Clause
"""The manual pages of the command, made from its help texts: ``python -m docs.man`` writes docs/man.

The build installs them into share/man/man1. It cannot make them, since it has none of the packages that the
command imports; so they lie here, and a test compares them with the help texts.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main

from maxmargin import command_line

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "man"


def escaped(text: str) -> str:
    """A line as roff wants it: nothing in it is a command, and hyphens can be copied into a shell."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text[:1] in (".", "'") else text


def bold(words: str) -> str:
    """Words in bold inside a line."""
    return f"\\fB{escaped(words)}\\fR"


def title(name: str) -> str:
    """The first line of a page. It has no date, so that the same help gives the same page."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return f'.TH {escaped(name.upper())} 1 "" "maxmargin {project["version"]}" "User Commands"'


def option_lines(parameter: Any) -> Iterator[str]:
    """One argument or option: its names, what it takes, what it does and what holds without it."""
    takes = "" if getattr(parameter, "is_flag", False) else parameter.metavar or "TEXT"
    names = sorted(parameter.opts, key=len) if parameter.param_type_name == "option" else []
    value = f"\\fI{escaped(takes)}\\fR" if takes else ""
    yield ".TP"
    yield " ".join(filter(None, (", ".join(map(bold, names)), value)))
    default = parameter.show_default
    if default is True:
        default = None if takes == "" or parameter.default is None else str(parameter.default)
    told = f" The default is: {default}." if default else ""
    yield escaped(f"{parameter.help or ''}{told}")


def command_page(name: str, command: Any) -> str:
    """The page of one command."""
    paragraphs = [" ".join(part.split()) for part in (command.help or "").split("\n\n")]
    examples = [part.removeprefix("Example: ") for part in paragraphs if part.startswith("Example: ")]
    codes = [part for part in paragraphs if part.startswith("Exit code")]
    about = [part for part in paragraphs[1:] if part not in codes and not part.startswith("Example: ")]
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    groups: dict[str, list[Any]] = {}
    for each in command.params:
        if each.param_type_name == "option" and not each.hidden:
            groups.setdefault(each.rich_help_panel or "Options", []).append(each)
    lines = [title(f"maxmargin-{name}"), ".SH NAME"]
    lines.append(f"{escaped(f'maxmargin-{name}')} \\- {escaped(paragraphs[0].rstrip('.'))}")
    given = [f"\\fI{escaped(each.metavar or each.name.upper())}\\fR" for each in arguments]
    shown = [part if each.required else f"[{part}]" for part, each in zip(given, arguments, strict=True)]
    lines += [".SH SYNOPSIS", " ".join([bold(f"maxmargin {name}"), "[\\fIOPTIONS\\fR]", *shown])]
    if about:
        lines.append(".SH DESCRIPTION")
        lines += "\n.PP\n".join(map(escaped, about)).split("\n")
    if arguments:
        lines.append(".SH ARGUMENTS")
        lines += [line for each in arguments for line in option_lines(each)]
    lines.append(".SH OPTIONS")
    for panel, options in groups.items():
        if len(groups) > 1:
            lines.append(f".SS {escaped(panel)}")
        lines += [line for each in options for line in option_lines(each)]
    if codes:
        lines += [".SH EXIT STATUS", *map(escaped, codes)]
    if examples:
        lines += [".SH EXAMPLES", ".nf", *map(escaped, examples), ".fi"]
    lines += [".SH SEE ALSO", ".BR maxmargin (1)"]
    return "\n".join(lines) + "\n"


def main_page(group: Any) -> str:
    """The page of the command of all commands."""
    lines = [title("maxmargin"), ".SH NAME", f"maxmargin \\- {escaped(group.help.rstrip('.'))}"]
    lines += [".SH SYNOPSIS", f"{bold('maxmargin')} \\fICOMMAND\\fR [\\fIARGUMENTS\\fR]", ".SH COMMANDS"]
    for name, command in group.commands.items():
        first = (command.help or "").partition("\n\n")[0]
        lines += [".TP", f".BR {escaped(f'maxmargin-{name}')} (1)", escaped(" ".join(first.split()))]
    lines.append(".SH OPTIONS")
    lines += [line for each in group.params if each.name == "version" for line in option_lines(each)]
    lines += [".TP", bold("--install-completion"), "Have the shell complete commands and options."]
    codes = (command_line.__doc__ or "").partition("Exit codes: ")[2].replace("``", "")
    lines += [".SH EXIT STATUS", escaped(" ".join(codes.split()))]
    return "\n".join(lines) + "\n"


def pages() -> dict[str, str]:
    """All pages by the names of their files."""
    group: Any = typer.main.get_command(command_line.app)
    found = {"maxmargin.1": main_page(group)}
    return found | {
        f"maxmargin-{name}.1": command_page(name, command) for name, command in group.commands.items()
    }


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
        print(f"Wrote docs/man/{name}.")
