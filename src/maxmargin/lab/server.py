# SPDX-License-Identifier: BSD-3-Clause
"""The server of the laboratory: for this machine alone, and only for who holds the token.

It listens on the loopback address. A page of another origin cannot reach it: the Host must be its own, so
that no foreign name can be pointed here; the Origin of a socket must be its own, which browsers enforce;
and pages and socket ask for the token of the address. No request can name a file to be read, and the pages
may load nothing from elsewhere.
"""

from __future__ import annotations

import secrets
import socket
from importlib.resources import files
from importlib.resources.abc import Traversable
from urllib.parse import parse_qs

import anyio
import uvicorn
from anyio import to_thread
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from maxmargin.lab import tour
from maxmargin.lab.benches import benches
from maxmargin.lab.messages import LONGEST, reply

LOOPBACK = "127.0.0.1"
MOST_SOCKETS = 16
"""Pages that may be open at a time."""
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}

_REFUSED_BY_POLICY = 1008
_TRY_LATER = 1013
"""Codes with which a socket is closed."""


class Laboratory:
    """The application, behind its guard; ``token`` and ``port`` are those of its address."""

    def __init__(self, port: int, token: str) -> None:
        self.token = token
        self.hosts = {f"{name}:{port}" for name in (LOOPBACK, "localhost")}
        self.headers = _headers(port)
        self.files = _static_files()
        self.pictures = {each.stem: each.read_bytes() for each in tour.folder().glob("*.png")}
        benches()  # imported before the first page waits for them
        self.sockets = 0
        self.one_at_a_time = anyio.CapacityLimiter(1)
        self.routes = Starlette(
            routes=[
                Route("/", self._page),
                Route("/benches.json", self._benches),
                Route("/static/{path:path}", self._static),
                Route("/tour/{stem}.html", self._tour),
                Route("/tour/{stem}.png", self._picture),
                WebSocketRoute("/socket", self._socket),
            ]
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Every request passes here first."""
        if scope["type"] not in ("http", "websocket"):
            await self.routes(scope, receive, send)
            return
        refusal = self._refusal(scope)
        if refusal is None:
            await self.routes(scope, receive, send)
        elif scope["type"] == "http":
            await PlainTextResponse(refusal, 403, self.headers)(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": _REFUSED_BY_POLICY, "reason": refusal})

    def _refusal(self, scope: Scope) -> str | None:
        """Why a request is turned away; None: it is not."""
        given: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            given.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        hosts, origins = given.get("host", []), given.get("origin", [])
        if len(hosts) != 1 or hosts[0] not in self.hosts:
            return "The Host is not that of the laboratory."
        socket_wanted = scope["type"] == "websocket"
        if origins != [f"http://{hosts[0]}"] and (origins or socket_wanted):
            return "The Origin is not that of the laboratory."
        if socket_wanted or scope["path"] == "/" or scope["path"].endswith(".html"):
            tokens = parse_qs(scope["query_string"].decode("latin-1")).get("token", [])
            if len(tokens) != 1 or not secrets.compare_digest(tokens[0].encode(), self.token.encode()):
                return "The token is missing or wrong. Use the address that `maxmargin lab` printed."
        return None

    async def _page(self, request: Request) -> Response:
        return self._file("index.html")

    async def _static(self, request: Request) -> Response:
        return self._file(request.path_params["path"])

    def _file(self, path: str) -> Response:
        if path not in self.files:
            return self._missing()
        content, kind = self.files[path]
        return Response(content, headers=self.headers, media_type=kind)

    def _missing(self) -> Response:
        return PlainTextResponse("There is no such page.", 404, self.headers)

    async def _benches(self, request: Request) -> Response:
        listed = [
            {"name": name, "title": bench.title, "invitation": bench.invitation, "tour": bench.tour}
            for name, bench in benches().items()
        ]
        return JSONResponse(listed, headers=self.headers)

    async def _tour(self, request: Request) -> Response:
        stem = request.path_params["stem"]
        if stem not in tour.stems():
            return self._missing()
        text = await to_thread.run_sync(tour.page, stem, self.token)
        return Response(text, headers=self.headers, media_type=_TYPES[".html"])

    async def _picture(self, request: Request) -> Response:
        picture = self.pictures.get(request.path_params["stem"])
        if picture is None:
            return self._missing()
        return Response(picture, headers=self.headers, media_type=_TYPES[".png"])

    async def _socket(self, connection: WebSocket) -> None:
        """Answer messages, one after the other, until the page goes."""
        if self.sockets >= MOST_SOCKETS:
            await connection.close(_TRY_LATER)
            return
        self.sockets += 1
        try:
            await connection.accept()
            while True:
                text = await connection.receive_text()
                answer = await to_thread.run_sync(reply, text, limiter=self.one_at_a_time)
                await connection.send_text(answer)
        except (WebSocketDisconnect, KeyError):  # gone, or bytes in the place of text
            pass
        finally:
            self.sockets -= 1


def _headers(port: int) -> dict[str, str]:
    """What every answer carries: the page may load its own files, and nothing else from anywhere."""
    sockets = " ".join(f"ws://{name}:{port}" for name in (LOOPBACK, "localhost"))
    policy = {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self' data: blob:",
        "connect-src": f"'self' {sockets}",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    return {
        "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cache-Control": "no-store",
    }


def _static_files() -> dict[str, tuple[bytes, str]]:
    """All files of the page with their types, read once."""
    found: dict[str, tuple[bytes, str]] = {}

    def look(folder: Traversable, before: str) -> None:
        for each in folder.iterdir():
            if each.is_dir():
                look(each, f"{before}{each.name}/")
            elif (kind := _TYPES.get(f".{each.name.rpartition('.')[2]}")) is not None:
                found[before + each.name] = each.read_bytes(), kind

    look(files("maxmargin.lab") / "static", "")
    return found


class Server:
    """A laboratory on a port of its own; ``address`` is where its page is."""

    def __init__(self, port: int = 0) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self.socket.bind((LOOPBACK, port))
            self.socket.listen()  # from here on, who comes early waits
        except OSError:
            self.socket.close()
            raise
        self.port: int = self.socket.getsockname()[1]
        self.token = secrets.token_urlsafe(24)
        self.address = f"http://{LOOPBACK}:{self.port}/?token={self.token}"
        config = uvicorn.Config(
            Laboratory(self.port, self.token),
            ws="websockets-sansio",
            ws_max_size=4 * LONGEST,  # bytes: a character has at most four
            log_level="warning",
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=1,
        )
        self.uvicorn = uvicorn.Server(config)

    def run(self) -> None:
        """Serve until somebody ends it."""
        self.uvicorn.run(sockets=[self.socket])

    def end(self) -> None:
        """End it from another thread."""
        self.uvicorn.should_exit = True
