# SPDX-License-Identifier: BSD-3-Clause
"""HTML as a browser would read it, with an error where a browser would guess."""

from __future__ import annotations

from html.parser import HTMLParser


class Checker(HTMLParser):
    """Keeps the text, and sees that every element that is opened is closed in turn."""

    VOID = frozenset({"br", "img", "input", "meta", "link", "hr"})

    def __init__(self):
        super().__init__()
        self.open, self.text, self.tags = [], [], []

    def handle_starttag(self, tag, attrs):
        assert len({name for name, _ in attrs}) == len(attrs)
        self.tags.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def read(html):
    checker = Checker()
    checker.feed(html)
    checker.close()
    assert checker.open == []
    return checker
