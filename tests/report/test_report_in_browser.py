# SPDX-License-Identifier: BSD-3-Clause
"""The page in a real browser: nothing is said or asked for, nothing sticks out, and it can be printed."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_moons

from maxmargin import SVC, LinearSVC

HOSTILE = (
    "<script>document.title='broken'</script><img src='http://127.0.0.1:9/x' onerror='document.title=1'>"
)
WIDTHS = 360, 1280, 1920


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A kernel model whose columns and classes have names that want to run, and one of twelve classes."""
    folder = tmp_path_factory.mktemp("pages")
    X, y = make_moons(200, noise=0.3, random_state=0)
    table, labels = pd.DataFrame(X, columns=[HOSTILE, "east"]), np.where(y, HOSTILE, "a long name " * 20)
    SVC(C=10.0).fit(table[::2], labels[::2]).report(
        folder / "kernel.html", table[::2], labels[::2], test=(table[1::2], labels[1::2])
    )
    random = np.random.default_rng(0)
    wide, many = random.normal(size=(240, 8)), np.arange(240) % 12
    LinearSVC(loss="logistic").fit(wide, many).report(folder / "many.html", wide, many)
    return folder


@pytest.mark.parametrize("name", ["kernel", "many"])
def test_the_page_is_quiet_and_fits(chromium, pages, name):
    for scheme in ("light", "dark"):
        context = chromium.new_context(color_scheme=scheme, viewport={"width": WIDTHS[0], "height": 800})
        page, messages, requests = context.new_page(), [], []
        page.on("console", lambda message, messages=messages: messages.append(message.text))
        page.on("pageerror", lambda error, messages=messages: messages.append(str(error)))
        page.on("request", lambda request, requests=requests: requests.append(request.url))
        address = (pages / f"{name}.html").as_uri()
        page.goto(address)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert messages == []
        assert [url for url in requests if not url.startswith("data:")] == [address]
        assert page.title().startswith("Report on ")
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (paper == "rgb(255, 255, 255)") == (scheme == "light")
        context.close()


def test_the_page_can_be_read_without_seeing_it(chromium, pages):
    page = chromium.new_page()
    page.goto((pages / "kernel.html").as_uri())
    pictures = page.locator("svg[role=img]")
    assert pictures.count() >= 5
    for picture in pictures.all():
        label = picture.get_attribute("aria-labelledby")
        assert len(page.locator(f"#{label}").text_content()) > 20
    assert page.locator("th:not([scope])").count() == 0
    levels = page.eval_on_selector_all("h1, h2, h3", "all => all.map(each => +each.tagName[1])")
    assert levels[0] == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))
    repeated = "all => all.length - new Set(all.map(each => each.id)).size"
    assert page.eval_on_selector_all("[id]", repeated) == 0
    for link in page.locator("nav a").all():
        assert page.locator(link.get_attribute("href")).count() == 1
    page.close()


def test_the_page_can_be_printed(chromium, pages):
    page = chromium.new_page()
    page.goto((pages / "kernel.html").as_uri())
    printed = page.pdf(format="A4")
    assert printed.startswith(b"%PDF")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    page.close()
