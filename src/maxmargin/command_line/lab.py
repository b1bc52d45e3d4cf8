# SPDX-License-Identifier: BSD-3-Clause
"""``maxmargin lab``: a live page where the ideas of the lectures can be touched."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

import typer

from maxmargin.command_line.shared.answer import DONE, Failure, in_words


@in_words
def lab(
    bench: Annotated[
        str, typer.Argument(help="The bench to begin with, or a link that the page has copied.")
    ] = "",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of this machine; 0: a free one.")] = 0,
    open_browser: Annotated[bool, typer.Option("--open/--no-open", help="Open the browser.")] = True,
) -> int:
    """Open the laboratory in the browser: drag a point, and the solvers answer. Ctrl-C ends it.

    Example: maxmargin lab

    Example: maxmargin lab kernels --no-open --port 8800
    """
    try:
        from maxmargin.lab.server import Server
    except ImportError as error:
        raise Failure(
            f"The laboratory needs Starlette, Uvicorn and websockets ({error}). "
            "Install them: python -m pip install 'maxmargin[lab]'"
        ) from error
    from maxmargin.lab.benches import benches

    # Of a link that was copied, what counts is behind the #: token and port are those of this run.
    place = bench.rpartition("#")[2]
    name = place.partition("?")[0]
    if name and name not in benches():
        raise Failure(f"There is no bench {name!r}. Choose one of {', '.join(benches())}.")
    try:
        server = Server(port)
    except OSError as error:
        cure = "Leave --port out, or give another."
        raise Failure(f"Port {port} cannot be had: {error.strerror}. {cure}") from error
    address = f"{server.address}#{place}" if place else server.address
    typer.echo(f"The laboratory is at {address}\nCtrl-C ends it.")
    if open_browser:
        typer.launch(address)
    with suppress(KeyboardInterrupt):  # which is how it ends
        server.run()
    return DONE
