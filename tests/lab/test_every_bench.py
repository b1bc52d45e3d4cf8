# SPDX-License-Identifier: BSD-3-Clause
"""What holds for every bench, in a real browser: it opens, its controls and points move, its script runs.

A bench that is added is tested here without a word more; what only it shows has a file of its own.
"""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

from maxmargin.lab.benches import benches
from maxmargin.lab.tour import anchor

NAMES = list(benches())
ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize("name", NAMES)
def test_a_bench_has_its_files_and_its_words(name):
    bench = benches()[name]
    assert (ROOT / "src/maxmargin/lab/static/benches" / f"{name}.js").exists()
    assert (ROOT / "docs/tour" / f"{bench.tour}.md").exists()
    assert bench.invitation.endswith(".")
    assert {"show", "script"} <= set(bench.answers)
    assert [each.order for each in benches().values()].count(bench.order) == 1


@pytest.mark.parametrize("name", NAMES)
def test_the_documentation_shows_the_bench(name):
    bench = benches()[name]
    page = (ROOT / "docs/lab.md").read_text()
    assert f"### {bench.title}\n" in page
    assert f"(lab/{name}.png)" in page
    assert (ROOT / "docs/lab" / f"{name}.png").stat().st_size < 80_000
    explains = (ROOT / "docs/tour" / f"{bench.tour}.md").read_text()
    assert f"](../lab.md#{anchor(bench.title)})" in explains
    assert f"(../lab/{name}.png)" in explains


MOVE_EVERY_CONTROL = """async () => {
  const bench = document.querySelector(".bench"), refusal = document.querySelector(".refusal");
  const tell = (input, kind) => input.dispatchEvent(new Event(kind, { bubbles: true }));
  const refused = [];
  for (const control of [...document.querySelectorAll(".control")].filter((each) => each.offsetParent)) {
    const set = async (input, name, value) => {
      input[name] = value;
      tell(input, "input");
      tell(input, "change");
      await new Promise((next) => setTimeout(next));
      while (bench.getAttribute("aria-busy") === "true") await new Promise((next) => setTimeout(next, 1));
      if (!refusal.hidden) refused.push(`${control.dataset.control} ${value}: ${refusal.textContent}`);
    };
    for (const input of control.querySelectorAll("input[type=range]")) {
      for (const place of [0, input.max, Math.round(input.max / 3)]) await set(input, "value", place);
    }
    for (const input of control.querySelectorAll("select")) {
      for (const option of input.options) await set(input, "value", option.value);
    }
    for (const input of control.querySelectorAll("input[type=radio]")) await set(input, "checked", true);
    for (const input of control.querySelectorAll("input[type=checkbox]")) {
      await set(input, "checked", !input.checked);
    }
  }
  return refused;
}"""
"""Every control that is seen goes through its values, the others of which are refused by nobody."""


@pytest.mark.parametrize("name", NAMES)
def test_a_bench_opens_and_everything_on_it_moves(browse, name):
    with browse(name) as opened:
        page, numbers = opened.page, opened.numbers()
        assert numbers
        script = opened.script()
        assert page.evaluate(MOVE_EVERY_CONTROL) == []
        page.get_by_role("button", name="Start over").click()
        opened.settle()
        assert page.url.endswith(f"#{name}")
        assert opened.numbers() == numbers
        if page.locator(".handle").count():
            move_a_point(opened)
        for width in (360, 1920):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, "nothing is cut off"
            page.get_by_role("button", name="Present").click()
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (
                "nor where it is presented"
            )
            page.get_by_role("button", name="Present").click()
    printed = run(script)
    shared = set(printed) & set(numbers)
    assert shared, "the script computes what is shown"
    for each in shared:
        assert numbers[each] == pytest.approx(printed[each], rel=1e-6, abs=1e-8), each


def move_a_point(opened):
    """By mouse and by keyboard; undo takes it back, and a link brings it back."""
    page, start = opened.page, opened.page.url
    opened.drag(0, 30, -20)
    moved, numbers = page.url, opened.numbers()
    assert moved != start, "the state is in the address"
    page.keyboard.press("ArrowLeft")
    opened.settle()
    assert page.url != moved, "the keyboard moves points"
    page.keyboard.press("Control+z")
    opened.settle()
    assert page.url == moved
    assert opened.numbers() == numbers
    page.get_by_role("button", name="Undo").click()
    opened.settle()
    assert page.url == start
    page.evaluate("address => { location.href = address }", moved)
    page.wait_for_function("numbers => document.querySelector('[data-name]')", arg=None)
    opened.settle()
    assert opened.numbers() == numbers, "a link brings the state back"


def run(script):
    """The numbers that a script prints as ``name = value``, by name."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(script, "script", "exec"), {})
    found = re.findall(r"^([^=\n]+?) = ([-+.\deinf]+)$", output.getvalue(), re.MULTILINE)
    return {name: float(value) for name, value in found}


def test_the_tour_opens_from_a_bench(browse):
    with browse("margin") as opened, opened.page.context.expect_page() as other:
        opened.page.get_by_role("link", name="The tour explains it.").click()
        page = other.value
        said = []
        page.on("console", lambda message: said.append(message.text))
        page.locator("h1").last.wait_for()  # a page that is still on its way cannot be loaded again
        page.reload()
        assert page.locator("h1").last.text_content() == "4. Hard and soft margin"
        assert page.locator("img").evaluate("image => image.complete && image.naturalWidth > 0")
        assert said == []
