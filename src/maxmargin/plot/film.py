# SPDX-License-Identifier: BSD-3-Clause
"""A figure that changes from frame to frame: shown in a notebook, or saved as GIF, MP4 or a page."""

from __future__ import annotations

import base64
import io
import json
import os
import re
import tempfile
import uuid
from collections.abc import Callable
from importlib.resources import files as resources
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from matplotlib.animation import FFMpegWriter
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from maxmargin.files.whole import write_whole

_COLOURS = 96
"""Colours of all frames together: the eye sees no difference to more, and files are half as large."""
_ANY = 2**24
"""As many colours as there are."""
_PAUSE = 1.5
"""Seconds that the last frame of a GIF stays before it begins anew."""


class Film:
    """Frames of a figure, each drawn when it is asked for.

    In a notebook a film shows itself, with buttons to play, pause and step. ``save`` writes it to a file.
    """

    def __init__(
        self, width: float, height: float, build: Callable[[Figure], list[Callable[[], object]]], fps: float
    ) -> None:
        """A film of so many inches; ``build`` draws the first picture and answers with the frames."""
        if not fps > 0:
            raise ValueError(f"fps must be a number above 0, frames per second. Got {fps!r} instead.")
        # No window and no notebook shall show a figure that is not a film yet: so it is not pyplot's.
        self.figure = Figure(figsize=(width, height), layout="constrained")
        self._canvas: Any = FigureCanvasAgg(self.figure)
        self._frames = build(self.figure)
        self.fps = fps
        self._frames[-1]()
        self.figure.draw_without_rendering()
        # From now on the layout stays as it is: axes that jump would distract.
        self.figure.set_layout_engine("none")

    def __len__(self) -> int:
        return len(self._frames)

    def frame(self, k: int) -> Figure:
        """The figure as it is in the k-th frame; -1 is the last."""
        self._frames[k]()
        return self.figure

    def save(self, path: str | os.PathLike[str], *, dpi: float = 100) -> None:
        """Write the film, whole or not at all.

        Parameters
        ----------
        path : path
            By its end a GIF (``.gif``), a page with a player (``.html``), or a video (``.mp4``), for which
            the program ffmpeg is needed.
        dpi : float
            Pixels per inch.
        """
        writers = {".gif": self._write_gif, ".html": self._write_page, ".mp4": self._write_video}
        kind = Path(path).suffix.lower()
        if kind not in writers:
            raise ValueError(
                f"A film is saved as .gif, .html or .mp4. Got {os.fspath(path)!r} instead. Rename it."
            )
        if kind == ".mp4" and not FFMpegWriter.isAvailable():
            raise RuntimeError(
                "A video is written by the program ffmpeg, which was not found. Install it (apt, brew or "
                "conda install ffmpeg), or save the film as .gif or .html, which need nothing else."
            )
        write_whole(path, lambda file: writers[kind](file, dpi))

    def _pictures(self, dpi: float) -> list[Any]:
        """All frames as pictures of few colours."""
        from PIL import Image

        before = self.figure.dpi
        self.figure.set_dpi(dpi)
        try:
            drawn = []
            for k in range(len(self)):
                self.frame(k)
                self._canvas.draw()
                drawn.append(Image.fromarray(np.asarray(self._canvas.buffer_rgba())[..., :3].copy()))
        finally:
            self.figure.set_dpi(before)
        colours = Image.new("P", (1, 1))
        colours.putpalette([part for colour in _frequent(drawn[-1]) for part in colour])
        return [each.quantize(palette=colours, dither=Image.Dither.NONE) for each in drawn]

    def _write_gif(self, file: BinaryIO, dpi: float) -> None:
        first, *others = self._pictures(dpi)
        milliseconds = [round(1000.0 / self.fps)] * len(self)
        milliseconds[-1] += round(1000.0 * _PAUSE)
        first.save(
            file, "GIF", save_all=True, append_images=others, duration=milliseconds, loop=0, optimize=True
        )

    def _write_page(self, file: BinaryIO, dpi: float) -> None:
        page = (
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>maxmargin</title></head>'
            f"<body>{self._player(dpi, 'film')}</body></html>\n"
        )
        file.write(page.encode())

    def _player(self, dpi: float, name: str) -> str:
        """The frames as an element of a page, with buttons; no two on a page may have the same name."""
        pictures = self._pictures(dpi)
        parts = {
            "NAME": name,
            "WIDTH": str(pictures[0].width),
            "COUNT": str(len(pictures)),
            "LAST": str(len(pictures) - 1),
            "INTERVAL": str(round(1000.0 / self.fps)),
            "FRAMES": json.dumps([_encoded(each) for each in pictures]),
        }
        template = (resources("maxmargin.plot") / "player.html").read_text("utf-8")
        return re.sub("|".join(parts), lambda part: parts[part[0]], template)

    def _repr_html_(self) -> str:
        return self._player(self.figure.dpi, f"film-{uuid.uuid4().hex}")

    def _write_video(self, file: BinaryIO, dpi: float) -> None:
        with tempfile.TemporaryDirectory() as folder:
            video = Path(folder) / "film.mp4"
            # Players on the web know no other way to write colours.
            make: Any = FFMpegWriter
            writer = make(fps=self.fps, codec="h264", extra_args=["-pix_fmt", "yuv420p"])
            with writer.saving(self.figure, str(video), dpi):
                for k in range(len(self)):
                    self.frame(k)
                    writer.grab_frame()
            file.write(video.read_bytes())

    def __repr__(self) -> str:
        return (
            f"Film({len(self)} frames, {len(self) / self.fps:.3g} seconds; save it as .gif, .html or .mp4)"
        )


def _frequent(picture: Any) -> list[tuple[int, int, int]]:
    """The most frequent colours, unchanged, so that white stays white.

    One set of colours serves all frames: with one for each, the ground would flicker. Of colours that are
    nearly the same it has one, since Pillow, which looks the nearest up, rounds them.
    """
    apart: dict[tuple[int, int, int], tuple[int, int, int]] = {}
    for _, (red, green, blue) in sorted(picture.getcolors(_ANY), reverse=True):
        apart.setdefault((red >> 3, green >> 3, blue >> 3), (red, green, blue))
    return list(apart.values())[:_COLOURS]


def _encoded(picture: Any) -> str:
    """A picture as text."""
    stored = io.BytesIO()
    picture.save(stored, "PNG")
    return base64.b64encode(stored.getvalue()).decode()
