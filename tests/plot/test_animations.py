# SPDX-License-Identifier: BSD-3-Clause
"""Films show what the runs did, frame by frame, and are saved whole."""

from __future__ import annotations

import stat
import sys

import matplotlib

matplotlib.use("Agg")

import numpy as np
import pandas as pd
import pytest
from matplotlib.animation import FFMpegWriter
from matplotlib.contour import ContourSet
from PIL import Image

from figure_boxes import assert_nothing_is_hidden
from maxmargin import LinearSVC, Problem, plot, solve
from maxmargin import path as path_along
from maxmargin.kernels import Gaussian, KernelRows, Precomputed

RANDOM = np.random.default_rng(0)
Y = np.where(np.arange(30) % 2 == 0, 1, -1)
X = RANDOM.normal(size=(30, 2)) + 0.8 * Y[:, None]
PROBLEM = Problem.of(X, Y, 0.5)
KERNEL = Problem.of(KernelRows(X, Gaussian(1.0)), Y, 0.5)
CS = [1.0, 0.01, 0.1]


@pytest.fixture(scope="module")
def short():
    """A film of few and small frames, for files."""
    film = plot.animate(path_along(PROBLEM, CS), X, Y, fps=4)
    film.figure.set_dpi(40)
    return film


def boundary(ax):
    """The points of the line of score 0."""
    (lines,) = [c for c in ax.findobj(ContourSet) if not c.filled]
    paths = dict(zip(lines.levels, lines.get_paths(), strict=True))
    return paths[0.0].vertices


def offsets(ax, label):
    (found,) = [c for c in ax.collections if c.get_label() == label]
    return np.asarray(found.get_offsets())


def test_along_C_every_frame_is_the_model_of_its_C():
    models = path_along(PROBLEM, CS)
    film = plot.animate(models, X, Y)
    assert len(film) == 3
    for frame, k in enumerate(np.argsort(CS)):
        left, right = film.frame(frame).axes
        proof = models[int(k)].certificate
        np.testing.assert_allclose(boundary(left) @ proof.w + proof.b, 0.0, atol=1e-6)
        for kind, label in ((1, "on the margin"), (2, "inside the margin"), (3, "misclassified")):
            np.testing.assert_array_equal(offsets(left, label), X[proof.row_classes == kind])
        assert left.get_title(loc="left").startswith(f"C = {CS[k]:g}: ")
        assert right.lines[-1].get_xdata() == [CS[k], CS[k]]


@pytest.mark.parametrize("solver", ["pegasos", "interior_point"])
def test_every_frame_shows_the_iterate_of_its_step(solver):
    problem = Problem.of(X, Y, 0.5, intercept="none")
    run = plot.record(problem, solver, steps=7)
    film = plot.animate(run, X, Y)
    assert len(film) == len(run)
    for k in (2, -1):
        step = run.steps[k]
        left, right = film.frame(k).axes
        w, b = step.point
        np.testing.assert_allclose(boundary(left) @ w + b, 0.0, atol=1e-6 * (1 + np.abs(w).max()))
        if len(step.rows):
            np.testing.assert_array_equal(offsets(left, "in this step"), X[step.rows])
        heights = right.lines[0].get_ydata()
        assert len(heights) == k % len(run) + 1
        expected = (problem.primal(w, b) - run.best.dual) / run.best.primal
        assert heights[-1] == pytest.approx(max(expected, 1e-9))


def test_pairs_of_a_kernel_machine():
    run = plot.record(KERNEL, "sequential_minimal_optimization", steps=12)
    film = plot.animate(run, X, Y)
    left, right = film.frame(11).axes
    step = run.steps[11]
    alpha = step.solution.alpha
    np.testing.assert_array_equal(offsets(left, "in this step"), X[step.rows])
    np.testing.assert_array_equal(offsets(left, "alpha, by size"), X[alpha > 0])
    (rings,) = [c for c in left.collections if c.get_label() == "alpha, by size"]
    np.testing.assert_allclose(rings.get_sizes(), 30.0 + 120.0 * alpha[alpha > 0] / 0.5)
    w, b = step.point
    scores = Gaussian(1.0)(boundary(left), X) @ w + b
    np.testing.assert_allclose(scores, 0.0, atol=1e-3)
    assert [line.get_label() for line in right.lines] == ["objective", "dual value"]
    dual = right.lines[1].get_ydata()[-1]
    assert dual == pytest.approx((run.best.primal - KERNEL.dual(alpha)) / run.best.primal)


def test_curves_grow_to_those_of_convergence():
    names = ("dual_coordinate_ascent", "pegasos")
    runs = {name: solve(PROBLEM, name, max_steps=10, certify_every=1, tol=0.0) for name in names}
    film = plot.animate(runs, against="steps")
    (ax,) = film.frame(-1).axes
    for line, run in zip(ax.lines, runs.values(), strict=True):
        np.testing.assert_array_equal(line.get_xdata(), run.trace.column("step"))
        np.testing.assert_array_equal(line.get_ydata(), run.trace.column("relative_gap"))
    film.frame(len(film) // 2)
    assert all(0 < len(line.get_xdata()) < 10 for line in ax.lines)
    assert "steps" in ax.get_title(loc="left")
    assert len(plot.animate(runs["pegasos"].trace)) == len(film)
    assert len(plot.animate(LinearSVC(random_state=0).fit(X, Y))) == len(film)


def test_long_runs_have_some_of_their_steps_with_the_last():
    film = plot.animate(plot.record(PROBLEM, "pegasos", steps=400), X, Y)
    assert len(film) == 150
    assert "step 400 of 400" in film.frame(-1).axes[0].get_title(loc="left")
    assert "step 1 of 400" in film.frame(0).axes[0].get_title(loc="left")


def test_nothing_moves_but_what_is_meant_to():
    run = plot.record(KERNEL, "sequential_minimal_optimization", 6)
    film = plot.animate(run, X, Y, greyscale=True)
    places = []
    for k in (0, 5):
        figure = film.frame(k)
        assert_nothing_is_hidden(figure)
        places.append([(ax.get_position().bounds, ax.get_xlim(), ax.get_ylim()) for ax in figure.axes])
    assert places[0] == places[1]
    film.figure.canvas.draw()
    pixels = np.asarray(film.figure.canvas.buffer_rgba())[..., :3].astype(int)
    assert np.ptp(pixels, axis=-1).max() <= 1, "greys alone"


def test_names_of_columns_and_classes_are_those_of_the_data():
    frame = pd.DataFrame(X, columns=["width", "height"])
    words = np.where(Y == 1, "apple", "pear")  # the positive class comes first in the alphabet
    film = plot.animate(path_along(PROBLEM, CS), frame, words)
    ax = film.frame(0).axes[0]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("width", "height")
    np.testing.assert_array_equal(offsets(ax, "class apple"), X[Y == 1])


def test_a_gif_has_all_frames(short, tmp_path):
    short.save(tmp_path / "film.gif", dpi=40)
    with Image.open(tmp_path / "film.gif") as picture:
        assert picture.n_frames == 3
        assert picture.info["duration"] == 250
        assert picture.info["loop"] == 0
        assert picture.size == (384, 184)
        assert picture.convert("RGB").getpixel((0, 0)) == (255, 255, 255)
    first = (tmp_path / "film.gif").read_bytes()
    short.save(tmp_path / "film.gif", dpi=40)
    assert (tmp_path / "film.gif").read_bytes() == first, "the same run gives the same file"


def test_a_notebook_shows_a_player(short):
    first, second = short._repr_html_(), short._repr_html_()
    assert first.count("iVBOR") == 3, "three pictures"
    assert first != second, "two players on one page have two names"
    assert repr(short) == "Film(3 frames, 0.75 seconds; save it as .gif, .html or .mp4)"


def test_a_page_plays_the_film(short, tmp_path, chromium):
    short.save(tmp_path / "film.html", dpi=40)
    page = chromium.new_context(reduced_motion="reduce").new_page()
    page.goto((tmp_path / "film.html").as_uri())
    assert page.locator("output").inner_text() == "1 of 3"
    page.get_by_role("button", name="One frame back").click()
    assert page.locator("output").inner_text() == "3 of 3"
    page.get_by_role("button", name="One frame on").click()
    page.get_by_role("button", name="Play").click()
    page.wait_for_function("document.querySelector('output').textContent === '2 of 3'")
    page.get_by_role("button", name="Pause").click()
    page.get_by_role("slider").fill("2")
    assert page.locator("img").get_attribute("alt") == "3 of 3"
    assert page.locator("img").evaluate("image => image.complete && image.naturalWidth") == 384
    page.context.close()


def test_a_video_is_written_by_ffmpeg(short, tmp_path, monkeypatch):
    # It takes the frames as it would, and writes how many bytes they had.
    program = tmp_path / "ffmpeg"
    program.write_text(
        f"#!{sys.executable}\nimport sys\n"
        "open(sys.argv[-1], 'w').write(f'{len(sys.stdin.buffer.read())} {sys.argv[1:]}')\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setitem(matplotlib.rcParams, "animation.ffmpeg_path", str(program))
    assert FFMpegWriter.isAvailable()
    short.save(tmp_path / "film.mp4", dpi=40)
    size, _, options = (tmp_path / "film.mp4").read_text().partition(" ")
    assert int(size) == 3 * 384 * 184 * 4
    assert "yuv420p" in options


def test_what_cannot_be_saved_is_told_with_the_cure(short, tmp_path, monkeypatch):
    monkeypatch.setitem(matplotlib.rcParams, "animation.ffmpeg_path", str(tmp_path / "nothing"))
    with pytest.raises(RuntimeError, match=r"ffmpeg.*not found.*Install.*\.gif"):
        short.save(tmp_path / "film.mp4")
    with pytest.raises(ValueError, match=r"\.gif, \.html or \.mp4.*Rename"):
        short.save(tmp_path / "film.avi")
    with pytest.raises(OSError, match="folder does not exist"):
        short.save(tmp_path / "none" / "film.gif", dpi=20)
    assert not list(tmp_path.iterdir()), "nothing is left behind"


def test_what_cannot_be_shown_is_told_with_the_cure():
    models = path_along(PROBLEM, CS)
    with pytest.raises(ValueError, match=r"animate\(run, X, y\)"):
        plot.animate(models)
    with pytest.raises(ValueError, match=r"30 rows of the run's problem.*Got 20 rows"):
        plot.animate(models, X[:20], Y[:20])
    with pytest.raises(ValueError, match="in the same order"):
        plot.animate(models, X, Y[np.argsort(X[:, 0])])
    with pytest.raises(ValueError, match="2 columns"):
        plot.animate(models, np.hstack([X, X]), Y)
    with pytest.raises(ValueError, match="fps must be"):
        plot.animate(models, X, Y, fps=0)
    with pytest.raises(ValueError, match="Fit the estimator"):
        plot.animate(LinearSVC())
    given = Problem.of(KernelRows(X @ X.T, Precomputed()), Y)
    for problem in (given, Problem.of(np.hstack([X, X]), Y)):
        with pytest.raises(ValueError, match="without a feature map"):
            plot.animate(path_along(problem, [1.0]), X, Y)
