# SPDX-License-Identifier: BSD-3-Clause
"""The margin bench: its numbers are those of certify, and a drag is answered at once."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from maxmargin import (
    InseparableError,
    Problem,
    Solution,
    certify,
    certify_hard_margin,
    solve,
    solve_hard_margin,
)
from maxmargin.lab.benches.margin import outline
from maxmargin.lab.data import SETS, named_points
from maxmargin.lab.messages import reply

ASK = {"data": "outlier", "points": [], "C": 1.0, "loss": "hinge", "intercept": "exact", "hulls": True}
LATEST = 50.0
"""Milliseconds from a drag to its answer on the screen, of 95 answers in 100."""


def shown(**values):
    """The answer to a question."""
    message = {"id": 1, "bench": "margin", "want": "show", "ask": ASK | values}
    return json.loads(reply(json.dumps(message)))["answer"]


@pytest.mark.parametrize("intercept", ["exact", "regularised", "none"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_numbers_are_those_of_certify(loss, intercept):
    answer = shown(loss=loss, intercept=intercept, C=0.3)
    problem = Problem.of(*named_points("outlier"), 0.3, loss=loss, intercept=intercept)
    proof = certify(
        problem, Solution(w=np.array(answer["w"]), b=answer["b"], alpha=np.array(answer["alpha"]))
    )
    assert proof.primal == pytest.approx(answer["primal"], rel=1e-9)
    assert proof.dual == pytest.approx(answer["dual"], rel=1e-9)
    assert answer["gap"] <= 1e-8 * answer["primal"]
    assert answer["classes"] == proof.row_classes.tolist()


def test_the_hard_margin_and_the_nearest_points_of_the_hulls():
    answer = shown(C="inf")
    problem = Problem.of(*named_points("outlier"))
    proof = certify_hard_margin(problem, Solution(w=np.array(answer["w"]), alpha=np.array(answer["alpha"])))
    assert proof.primal == pytest.approx(answer["primal"], rel=1e-6)
    assert answer["hulls"]["distance"] == pytest.approx(2.0 * proof.margin, rel=1e-6)
    assert not answer["hulls"]["meet"]
    assert answer["cap"] is None


def test_classes_that_no_line_separates_come_with_the_proof():
    answer = shown(C="inf", data="overlapping")
    with pytest.raises(InseparableError) as error:
        solve_hard_margin(Problem.of(*named_points("overlapping")))
    assert answer["inseparable"] == error.value.certificate.statement
    first, second = answer["hulls"]["nearest"]
    assert first == pytest.approx(second, abs=1e-9)


def test_the_outline_of_points():
    square = [[0, 0], [1, 0], [1, 1], [0, 1]]
    found = outline(np.array([*square, [0.5, 0.5], [0.5, 0.0]]))
    assert sorted(found.tolist()) == sorted(square)
    assert outline(np.array([[1.0, 2.0], [1.0, 2.0]])).tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize("name", SETS)
def test_sets_have_both_classes_and_are_always_the_same(name):
    X, y = named_points(name)
    assert set(y) == {-1.0, 1.0}
    assert np.array_equal(SETS[name]()[0].round(2), X)
    assert np.abs(X[:, 0]).max() <= 4
    assert np.abs(X[:, 1]).max() <= 3


def test_the_page_shows_the_numbers_of_certify_after_a_drag(browse):
    with browse("margin") as opened:
        before = opened.numbers()
        opened.drag(0, 200, -150)
        numbers = opened.numbers()
        place = opened.page.url.partition("points=")[2]
    assert numbers["P"] != before["P"]
    rows = np.array([[float(value) for value in row.split(",")] for row in place.split(";")])
    proof = solve(Problem.of(rows[:, :2], rows[:, 2], 1.0), tol=1e-9).certificate
    for name, value in {"P": proof.primal, "D": proof.dual, "b": proof.b}.items():
        assert numbers[name] == pytest.approx(value, rel=1e-6, abs=1e-7)
    classes = np.bincount(proof.row_classes, minlength=4)
    assert [numbers[name] for name in ("on the margin", "inside the margin", "misclassified")] == list(
        classes[1:]
    )


def test_points_are_added_deleted_and_change_their_class(browse):
    with browse("margin?data=clouds") as opened:
        page, handles = opened.page, opened.page.locator(".handle")
        count = handles.count()
        box = page.locator(".plot svg").first.bounding_box()
        for tool, more in (("adds △", 1), ("adds ○", 2)):
            page.get_by_text(tool).click()
            page.mouse.click(box["x"] + 0.5 * box["width"], box["y"] + 0.1 * box["height"] * more)
            opened.settle()
            assert handles.count() == count + more
        page.get_by_text("deletes").click()
        handles.last.locator("path").last.click(force=True)
        opened.settle()
        assert handles.count() == count + 1
        page.get_by_text("moves").click()
        handles.first.focus()
        for key, wanted in (("+", count + 2), ("-", count + 3), ("Delete", count + 2)):
            page.keyboard.press(key)
            opened.settle()
            assert handles.count() == wanted
        page.keyboard.press("PageDown")
        words = page.evaluate("document.activeElement.getAttribute('aria-label')")
        page.keyboard.press(" ")
        opened.settle()
        assert page.evaluate("document.activeElement.getAttribute('aria-label')") != words


def test_pictures_are_saved(browse):
    with browse("margin?hulls=true") as opened:
        for name, beginning in (("SVG", b"<svg"), ("PNG", b"\x89PNG")):
            with opened.page.expect_download() as download:
                opened.page.get_by_role("button", name=name).click()
            content = Path(download.value.path()).read_bytes()
            assert content.startswith(beginning)
            assert len(content) > 5_000
            assert b"var(--" not in content


def test_a_drag_among_200_points_is_answered_at_once(browse):
    with browse("margin?data=many") as opened:
        opened.assert_quick("answer", LATEST, lambda: opened.drag(3, 120, 60, steps=60))


def test_a_finger_moves_the_point_and_not_the_page(browse):
    with browse("margin", has_touch=True, is_mobile=True) as opened:
        page = opened.page
        page.set_viewport_size({"width": 360, "height": 600})
        # Everything has its new place when two frames have been drawn.
        page.evaluate(
            "() => new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))"
        )
        opened.settle()
        box = page.locator(".handle").first.locator("path").last.bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        touch = page.context.new_cdp_session(page)
        for kind, moved in (
            ("touchStart", 0),
            *(("touchMove", 5 * k) for k in range(1, 9)),
            ("touchEnd", None),
        ):
            points = [] if moved is None else [{"x": x, "y": y - moved}]
            touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
        opened.settle()
        after = page.locator(".handle").first.locator("path").last.bounding_box()
        assert after["y"] + after["height"] / 2 == pytest.approx(y - 40, abs=2)
        assert page.evaluate("scrollY") == 0
        page.get_by_text("adds △").tap()
        page.evaluate("scrollTo(0, 0)")
        count, plot = page.locator(".handle").count(), page.locator(".plot svg").first.bounding_box()
        page.touchscreen.tap(plot["x"] + 0.5 * plot["width"], plot["y"] + 0.15 * plot["height"])
        opened.settle()
        assert page.locator(".handle").count() == count + 1
