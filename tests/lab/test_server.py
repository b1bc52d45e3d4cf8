# SPDX-License-Identifier: BSD-3-Clause
"""The server of the laboratory turns away who is not its own page, and what is not a question."""

from __future__ import annotations

import http.client
import json
import re

import pytest

from maxmargin.lab.messages import LONGEST, reply

ASK = {"data": "outlier", "points": [], "C": 1.0, "loss": "hinge", "intercept": "exact", "hulls": False}
QUESTION = {"id": 1, "bench": "margin", "want": "show", "ask": ASK}


def fetch(server, path, **headers):
    """Status, headers and text of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode(errors="replace")
    finally:
        connection.close()


def test_it_listens_on_the_loopback_address_alone(server):
    assert server.socket.getsockname()[0] == "127.0.0.1"


def test_the_page_needs_the_token(server):
    assert fetch(server, f"/?token={server.token}")[0] == 200
    for path in ("/", "/?token=", "/?token=wrong", f"/?token={server.token}&token={server.token}"):
        assert fetch(server, path)[0] == 403


def test_another_host_or_origin_is_turned_away(server):
    path = f"/?token={server.token}"
    for headers in (
        {"Host": "example.org"},
        {"Host": f"example.org:{server.port}"},
        {"Origin": "http://example.org"},
    ):
        status, _, text = fetch(server, path, **headers)
        assert status == 403
        assert "laboratory" in text
    assert fetch(server, path, Host=f"localhost:{server.port}")[0] == 200
    assert fetch(server, "/static/main.js", Host="example.org")[0] == 403


def test_pages_may_load_nothing_from_elsewhere(server):
    for path in (f"/?token={server.token}", "/static/main.js", "/static/none", "/benches.json"):
        headers = fetch(server, path)[1]
        policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
        assert policy["default-src"] == "'none'"
        assert policy["script-src"] == policy["style-src"] == "'self'"
        assert headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    "path", ["../server.py", "..%2fserver.py", "%2fetc/passwd", "benches/../../server.py", ""]
)
def test_only_the_files_of_the_page_are_served(server, path):
    assert fetch(server, f"/static/{path}")[0] == 404


def connect(server, *, token=None, origin=None, host="127.0.0.1"):
    """A socket to the laboratory."""
    from websockets.sync.client import connect

    return connect(
        f"ws://{host}:{server.port}/socket?token={server.token if token is None else token}",
        origin=f"http://{host}:{server.port}" if origin is None else origin,
        open_timeout=5,
    )


def ask(socket, message):
    socket.send(message if isinstance(message, str | bytes) else json.dumps(message))
    return json.loads(socket.recv(timeout=5))


def test_a_socket_answers_its_own_page_alone(server):
    from websockets.exceptions import InvalidStatus

    with connect(server) as socket:
        assert ask(socket, QUESTION)["answer"]["gap"] < 1e-6
    for wrong in (
        {"token": "wrong"},
        {"origin": "http://example.org"},
        {"origin": f"http://localhost:{server.port}"},
    ):
        with pytest.raises(InvalidStatus), connect(server, **wrong):
            pass


def test_a_socket_that_is_given_nonsense_answers_on_or_closes(server):
    from websockets.exceptions import ConnectionClosed

    with connect(server) as socket:
        assert "JSON" in ask(socket, "nonsense")["error"]
        assert "characters" in ask(socket, "x" * (LONGEST + 1))["error"]
        assert ask(socket, QUESTION)["id"] == 1
    for too_much in (b"bytes", "x" * (5 * LONGEST)):
        with connect(server) as socket, pytest.raises(ConnectionClosed):
            ask(socket, too_much)


def test_there_is_an_end_to_open_pages(server, monkeypatch):
    from websockets.exceptions import InvalidStatus

    monkeypatch.setattr("maxmargin.lab.server.MOST_SOCKETS", 0)
    with pytest.raises(InvalidStatus), connect(server):
        pass


WRONG = {
    "no object": ([], "object with exactly"),
    "too little": ({"id": 1}, "object with exactly"),
    "another name": (QUESTION | {"more": 1}, "object with exactly"),
    "number": (QUESTION | {"id": "1"}, "'id'"),
    "bench": (QUESTION | {"bench": "../margin"}, "'bench' must be one of"),
    "bench, no word": (QUESTION | {"bench": ["margin"]}, "'bench' must be one of"),
    "want": (QUESTION | {"want": "__class__"}, "'want' must be one of"),
    "ask": (QUESTION | {"ask": 3}, "must be an object"),
    "missing": (QUESTION | {"ask": {}}, "'data' is missing"),
    "unknown": (QUESTION | {"ask": ASK | {"path": "/etc/passwd"}}, "Nothing is known of 'path'"),
    "set": (QUESTION | {"ask": ASK | {"data": "/etc/passwd"}}, "'data' must be one of"),
    "C": (QUESTION | {"ask": ASK | {"C": -1}}, "'C' must be a number from"),
    "C, a truth": (QUESTION | {"ask": ASK | {"C": True}}, "'C' must be a number from"),
    "C, huge": (QUESTION | {"ask": ASK | {"C": 10**400}}, "'C' must be a number from"),
    "flag": (QUESTION | {"ask": ASK | {"hulls": 1}}, "'hulls' must be true or false"),
    "points": (QUESTION | {"ask": ASK | {"points": 3}}, "'points' must be a list"),
    "many points": (QUESTION | {"ask": ASK | {"points": [[0, 0, 1]] * 501}}, "at most 500 rows"),
    "short point": (QUESTION | {"ask": ASK | {"points": [[0, 0]]}}, "rows of 3 numbers"),
    "far point": (QUESTION | {"ask": ASK | {"points": [[1e9, 0, 1]]}}, "rows of 3 numbers"),
    "label": (QUESTION | {"ask": ASK | {"points": [[0, 0, 2]]}}, "must be -1 or 1"),
    "one class": (QUESTION | {"ask": ASK | {"points": [[0, 0, 1]], "C": "inf"}}, "both labels"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_messages_are_refused_with_a_sentence(case):
    message, sentence = WRONG[case]
    answer = json.loads(reply(json.dumps(message)))
    assert sentence in answer["error"]
    assert "answer" not in answer


@pytest.mark.parametrize("text", ["", "{", "[" * 50_000, '{"id": NaN}', "\0", '"\\ud800"'])
def test_what_is_not_json_is_refused(text):
    assert "message must" in json.loads(reply(text))["error"]


def test_a_bench_that_fails_says_so_and_no_more(monkeypatch, caplog):
    from maxmargin.lab import messages

    monkeypatch.setattr(messages, "_answer", lambda message: 1 / 0)
    answer = json.loads(reply(json.dumps(QUESTION)))
    assert answer == {"id": 1, "error": "The bench failed at this; the terminal says where."}
    assert "ZeroDivisionError" in caplog.text


def test_the_tour_is_shown_with_its_pictures_and_links(server):
    from maxmargin.lab import tour

    assert len(tour.stems()) == 35
    for stem in tour.stems():
        text = tour.page(stem, "token")
        assert " style=" not in text, "a strict policy forbids it"
        for path in re.findall(r'(?:href|src)="([^"]*)"', text):
            assert re.match(r"\.\./static/|\.\./\?token=|https://", path) or re.match(
                r"[\w]+\.(html\?token=token|png)(#[\w-]+)?$", path
            ), path
    assert "<math" in tour.page("14_lagrangian", "token")
    assert fetch(server, f"/tour/04_margins.html?token={server.token}")[0] == 200
    assert fetch(server, "/tour/04_margins.png")[0] == 200
    assert fetch(server, "/tour/04_margins.html")[0] == 403
    for path in (f"/tour/none.html?token={server.token}", "/tour/none.png", "/tour/pictures.py"):
        assert fetch(server, path)[0] == 404
