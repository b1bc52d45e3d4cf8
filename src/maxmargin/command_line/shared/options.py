# SPDX-License-Identifier: BSD-3-Clause
"""The options that several commands share, and what they stand for."""

from __future__ import annotations

import math
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maxmargin.command_line.shared.answer import Failure
from maxmargin.files.data.labels import label_text, quoted_label
from maxmargin.tools.words import some

if TYPE_CHECKING:
    from maxmargin.gpu.cards import Card
    from maxmargin.kernels import Kernel

DataFile = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="LIBSVM text, CSV or TSV (also .gz, .bz2, .zst), .npz, .parquet or .mmd; - is stdin.",
        show_default=False,
    ),
]
ModelFile = Annotated[
    Path,
    typer.Argument(metavar="MODEL", help="Written by maxmargin, LIBLINEAR or LIBSVM.", show_default=False),
]
Format = Annotated[
    str | None,
    typer.Option("--format", help="libsvm, npz, csv, parquet or mmd; by default as the file's name says."),
]
Label = Annotated[
    str | None,
    typer.Option("--label", help="Column of the labels in a table; by default label, target, y or class."),
]
Query = Annotated[
    str | None,
    typer.Option(
        "--query",
        help="Column of a table that says which rows a ranking compares; LIBSVM text has qid:N.",
        show_default=False,
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        metavar="CHARACTER", help="Between the values of CSV.", show_default="a comma; a tab in .tsv"
    ),
]
Decimal = Annotated[
    str | None,
    typer.Option(metavar="CHARACTER", help="Before the decimals of CSV: . or ,", show_default="a point"),
]
NoHeader = Annotated[
    bool, typer.Option("--no-header", help="The first line of CSV is a row: columns are called 1, 2, ...")
]
Missing = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT,...", help="Texts of CSV that stand for no value.", show_default="NA, NaN, null, ..."
    ),
]
Drop = Annotated[
    str | None, typer.Option(metavar="NAME,...", help="Columns to leave out.", show_default=False)
]
Categorical = Annotated[
    str | None,
    typer.Option(
        metavar="NAME,...", help="Columns that hold categories, also as numbers.", show_default=False
    ),
]
Numeric = Annotated[
    str | None,
    typer.Option(
        metavar="NAME,...", help="Columns that hold numbers: texts count as no value.", show_default=False
    ),
]
ScaleColumns = Annotated[
    str,
    typer.Option(
        "--scale",
        metavar="HOW",
        help="Numbers: standard (mean 0, variance 1), max-abs (at most 1, zeros stay) or none; auto is "
        "standard for tables and none for other files.",
    ),
]
Columns = Annotated[
    int | None, typer.Option("--columns", help="Number of features; by default the largest index.", min=1)
]
ZeroBased = Annotated[bool, typer.Option("--zero-based", help="Indices in LIBSVM text begin at 0.")]
SkipBadLines = Annotated[
    bool, typer.Option("--skip-bad-lines", help="Leave malformed lines out and count them.")
]
ReadingThreads = Annotated[
    int | None, typer.Option("--threads", help="At most this many to read the file; all cores.", min=1)
]
Threads = Annotated[int | None, typer.Option("--threads", help="At most this many; all cores.", min=1)]
KernelName = Annotated[
    str | None,
    typer.Option(
        "--kernel",
        help="gaussian (rbf), polynomial (poly), sigmoid, laplacian, chi2 or linear.",
        show_default="none: a linear model",
    ),
]
Gamma = Annotated[
    str | None,
    typer.Option("--gamma", help="Of the kernel: scale, auto or a number.", show_default="scale"),
]
Degree = Annotated[int | None, typer.Option("--degree", help="Of the polynomial kernel.", show_default="3")]
Coef0 = Annotated[
    float | None,
    typer.Option("--coef0", help="Of the polynomial and the sigmoid kernel.", show_default="0"),
]
Features = Annotated[
    str | None,
    typer.Option(
        "--features",
        help="monomials:2: columns and their products, never written out. It may go on with "
        ",scaling=kernel ,gamma=G ,coef0=R or ,interaction_only (no spaces). train takes nystroem:1000 and "
        "random-fourier:1000, too: so many columns that stand for a kernel. These may go on with ,gamma=G "
        "and, the former, with ,kernel=gaussian (laplacian, poly, linear) ,degree=D ,coef0=R.",
        show_default="the columns alone",
    ),
]
CacheSize = Annotated[
    float | None,
    typer.Option("--cache-size", help="Memory for kernel values, in megabytes.", show_default="1000"),
]
Device = Annotated[
    str | None,
    typer.Option("--device", help="cuda: fit on the GPU.", show_default="cpu"),
]
ClassWeight = Annotated[
    str | None, typer.Option(help="balanced, or factors on C: LABEL:FACTOR,...", show_default="all 1")
]
TestFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Data to measure the accuracy on.", show_default=False)
]
MODEL_OUTPUT: Any = typer.Option(
    "-o", "--output", metavar="MODEL", help="Where to write the model.", show_default=False
)
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and no progress.")]


_KERNELS = {"gaussian": "rbf", "rbf": "rbf", "polynomial": "poly", "poly": "poly"}
_KERNELS |= {name: name for name in ("sigmoid", "laplacian", "chi2", "linear")}
"""What ``SVC`` calls the kernels."""


def asked_card(device: str | None) -> Card | None:
    """The GPU that is asked for; says at once what is missing, and not after an hour of reading."""
    if device not in (None, "cpu", "cuda"):
        raise Failure(f"--device must be cuda or cpu. Got {device!r} instead.")
    if device != "cuda":
        return None
    from maxmargin.gpu.cards import the_card

    return the_card()


def listed(text: str | None) -> list[str]:
    """The names of a list with commas; one that holds a comma stands in quotes, as in CSV."""
    import csv

    return [] if text is None else [name.strip() for name in next(csv.reader([text]), [])]


@dataclass(frozen=True)
class KernelChoice:
    """The options of kernels."""

    kernel: KernelName = None
    gamma: Gamma = None
    degree: Degree = None
    coef0: Coef0 = None
    cache_size: CacheSize = None

    def given(self, *, needs_kernel: bool) -> dict[str, Any]:
        """The options given, as ``SVC`` calls them; ``needs_kernel`` refuses them without a kernel."""
        options = {name: value for name, value in vars(self).items() if value is not None}
        if options and self.kernel is None and needs_kernel:
            name = next(iter(options)).replace("_", "-")
            raise Failure(
                f"--{name} is for kernels. Got no kernel. Add --kernel gaussian, or leave it out."
            )
        if self.kernel is not None:
            if self.kernel not in _KERNELS:
                raise Failure(
                    f"--kernel must be one of {', '.join(_KERNELS)}. Got {self.kernel!r} instead."
                )
            options["kernel"] = _KERNELS[self.kernel]
        if self.gamma is not None and self.gamma not in ("scale", "auto"):
            try:
                options["gamma"] = float(self.gamma)
            except ValueError:
                words = f"--gamma must be scale, auto or a number. Got {self.gamma!r} instead."
                raise Failure(words) from None
        return options


def check_files(path: Path, *inputs: Path | None) -> None:
    """Refuse now what could not be written or read later."""
    check_writable(path, *inputs)
    for file in filter(None, inputs):
        check_readable(file)


def check_writable(path: Path, *inputs: Path | None) -> None:
    """Refuse now what could not be written later, perhaps after an hour, or would replace an input."""
    if any(file is not None and file.exists() and path.exists() and path.samefile(file) for file in inputs):
        raise Failure(f"-o must not name a file that is read. Got {path} instead. Choose another name.")
    if str(path) == "-":
        raise Failure("-o must name a file. Got - instead: standard output takes the answer in words.")
    if path.exists() and not path.is_file():
        raise Failure(
            f"-o must name a file. Got {path} instead, which is something else. Choose another name."
        )
    folder = path.parent
    if not folder.is_dir():
        raise Failure(
            f"-o must name a file in a folder that exists. Got {path} instead. Make {folder} first."
        )
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise Failure(
            f"{path} cannot be written: {error.strerror}. Choose a folder that you may write to."
        ) from None


def check_readable(path: Path) -> None:
    """Refuse now what could not be opened later; a pipe is left alone, since it can be read only once."""
    from maxmargin.files.data.reading import open_file

    if path.is_file() or path.is_dir() or not path.exists():
        open_file(os.fspath(path)).close()


def kernel_of(options: dict[str, Any], X: Any) -> Kernel:
    """The kernel that the options of ``KernelChoice`` stand for on X."""
    import numpy as np

    from maxmargin.estimators.named_kernels import find_gamma
    from maxmargin.kernels.base import kernel_from_name

    given: dict[str, Any] = {"gamma": "scale", "degree": 3, "coef0": 0.0} | options
    needs_gamma = given["kernel"] != "linear"
    gamma = find_gamma(given["gamma"], X, np.ones(X.shape[0])) if needs_gamma else 1.0
    return kernel_from_name(given["kernel"], given["degree"], gamma, given["coef0"])


_INTERCEPTS = {
    "exact": {"fit_intercept": True, "regularize_intercept": False},
    "regularised": {"fit_intercept": True, "regularize_intercept": True},
    "none": {"fit_intercept": False, "regularize_intercept": False},
}


def intercept_options(name: str) -> dict[str, Any]:
    """The parameters of ``LinearSVC`` that --intercept stands for."""
    if name not in _INTERCEPTS:
        raise Failure(f"--intercept must be exact, regularised or none. Got {name!r} instead.")
    return _INTERCEPTS[name]


def seconds_or_none(max_time: float) -> float | None:
    """What --max-time stands for: None sets no limit."""
    if not max_time >= 0:
        raise Failure(
            f"--max-time must be a number of at least 0. Got {max_time:g} instead. It counts seconds; inf "
            "sets no limit."
        )
    return None if math.isinf(max_time) else max_time


def class_weight_of(text: str, labels: Any) -> Any:
    """The word "balanced", or a factor for each label; 1 for those that are not named."""
    if text == "balanced":
        return text
    classes = {label_text(label): label for label in labels}
    weights: dict[Any, float] = {}
    for part in re.findall(r",?((?:[^,:]*,)*?[^,]*:[^,]*|[^,]+)", text):  # a label may have commas in it
        name, _, factor = part.rpartition(":")
        name = name.strip().removeprefix("+") if name.strip() not in classes else name.strip()
        try:
            weights[classes[name]] = float(factor)
        except (KeyError, ValueError):
            raise Failure(
                f"--class-weight must be balanced or LABEL:FACTOR,... Got {part!r} instead. The labels are "
                f"{some(list(map(quoted_label, labels)), 10)}."
            ) from None
    if not all(0 <= factor < float("inf") for factor in weights.values()):
        raise Failure(f"--class-weight must have finite factors of at least 0. Got {text!r} instead.")
    return {label: weights.get(label, 1.0) for label in classes.values()}
