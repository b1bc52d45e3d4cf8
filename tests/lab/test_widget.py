# SPDX-License-Identifier: BSD-3-Clause
"""The margin bench as a widget: the modules of the page, in a browser that plays the notebook."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

import maxmargin.lab
from maxmargin import Problem, solve
from maxmargin.lab.messages import reply

X = np.array([[10.0, 20.0], [12.0, 22.0], [30.0, 25.0], [28.0, 35.0], [20.0, 24.0]])
Y = np.array(["no", "no", "yes", "yes", "no"])

PLAY_THE_NOTEBOOK = """async ({ esm, traits }) => {
  const address = URL.createObjectURL(new Blob([esm], { type: "text/javascript" }));
  const { default: widget } = await import(address);
  const listeners = [];
  window.traits = traits;
  await widget.render({
    el: document.body.appendChild(document.createElement("div")),
    model: {
      get: (name) => traits[name],
      set: (name, value) => (traits[name] = value),
      save_changes: () => {},
      on: (_, listener) => listeners.push(listener),
      send: async (message) => {
        const answer = JSON.parse(await window.reply(JSON.stringify(message)));
        for (const listener of listeners) listener(answer);
      },
    },
  });
}"""


@pytest.fixture
def widget():
    pytest.importorskip("anywidget", reason="the widget needs the extra 'widget'")
    return maxmargin.lab.Margin(X, Y, C=0.5)


def test_it_holds_the_rows_and_answers(widget):
    assert np.array_equal(widget.X, X)
    assert list(widget.y) == list(Y)
    sent = []
    widget.send = sent.append
    ask = {
        "data": "clouds",
        "points": widget.state["points"],
        "C": 0.5,
        "loss": "hinge",
        "intercept": "exact",
    }
    message = {"id": 4, "bench": "margin", "want": "show", "ask": ask | {"hulls": False}}
    widget._handle_custom_msg(message, [])
    proof = solve(Problem.of(X, np.where(Y == "yes", 1.0, -1.0), 0.5), tol=1e-9).certificate
    assert sent[0]["id"] == 4
    assert sent[0]["answer"]["primal"] == pytest.approx(proof.primal)


def test_it_runs_in_the_browser(widget, chromium):
    page = chromium.new_page()
    said = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.expose_function("reply", reply)
    page.evaluate(
        PLAY_THE_NOTEBOOK, {"esm": widget._esm, "traits": {"info": widget.info, "state": widget.state}}
    )
    page.wait_for_selector(".bench[aria-busy=false]")
    shown = float(page.locator("[data-name=P]").get_attribute("data-value"))
    proof = solve(Problem.of(X, np.where(Y == "yes", 1.0, -1.0), 0.5), tol=1e-9).certificate
    assert shown == pytest.approx(proof.primal, rel=1e-6)
    page.locator(".handle").first.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_selector(".bench[aria-busy=false]")
    moved = json.loads(page.evaluate("JSON.stringify(traits.state.points)"))
    assert moved[0][0] > 10.0
    assert moved[1:] == widget.state["points"][1:]
    assert said == []
    page.close()


@pytest.mark.parametrize(
    ("rows", "labels", "sentence"),
    [
        (np.ones((3, 3)), [0, 1, 1], "Choose two columns"),
        (X * 1e4, Y, "Scale its columns"),
        (X, ["a"] * 5, "Got 1 labels"),
    ],
)
def test_what_it_cannot_show_is_refused_with_the_cure(widget, rows, labels, sentence):
    with pytest.raises(ValueError, match=sentence):
        maxmargin.lab.Margin(rows, labels)


def test_without_anywidget_the_cure_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "anywidget", None)
    monkeypatch.delitem(sys.modules, "maxmargin.lab.widget", raising=False)
    with pytest.raises(ImportError, match=r"pip install 'maxmargin\[widget\]'"):
        _ = maxmargin.lab.Margin
    with pytest.raises(AttributeError):
        _ = maxmargin.lab.Nonsense
