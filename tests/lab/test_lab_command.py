# SPDX-License-Identifier: BSD-3-Clause
"""``maxmargin lab``: it opens where it should, and says what is missing."""

from __future__ import annotations

import socket
import sys

import pytest

pytest.importorskip("uvicorn", reason="the laboratory needs the extra 'lab'")


@pytest.fixture
def opened(monkeypatch):
    """The addresses that were opened in a browser; the server itself ends at once."""
    addresses = []
    monkeypatch.setattr("typer.launch", addresses.append)
    monkeypatch.setattr("uvicorn.Server.run", lambda self, sockets: [each.close() for each in sockets])
    return addresses


def test_it_says_its_address_and_opens_the_browser(run, opened):
    code, out, err = run("lab")
    assert (code, err) == (0, "")
    assert opened[0] in out
    assert opened[0].startswith("http://127.0.0.1:")


def test_a_copied_link_is_opened_at_the_new_address(run, opened):
    run("lab", "http://127.0.0.1:1/?token=old#margin?C=10")
    assert opened[0].endswith("#margin?C=10")
    assert "old" not in opened[0]
    run("lab", "margin", "--no-open")
    assert len(opened) == 1


def test_ctrl_c_is_how_it_ends(run, opened, monkeypatch):
    def interrupted(self, sockets):
        sockets[0].close()
        raise KeyboardInterrupt

    monkeypatch.setattr("uvicorn.Server.run", interrupted)
    assert run("lab")[0] == 0


def test_what_is_wrong_is_said_with_the_cure(run, opened, monkeypatch):
    code, _, err = run("lab", "nonsense")
    assert code == 2
    assert "Choose one of margin" in err
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, _, err = run("lab", "--port", taken.getsockname()[1])
    assert code == 2
    assert "Leave --port out" in err
    monkeypatch.setitem(sys.modules, "maxmargin.lab.server", None)
    code, _, err = run("lab")
    assert code == 2
    assert "python -m pip install 'maxmargin[lab]'" in err
