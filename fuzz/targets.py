# SPDX-License-Identifier: BSD-3-Clause
"""What all targets have in common, and their registry."""

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib import import_module
from pathlib import Path
from random import Random
from typing import NamedTuple

CORPUS = Path(__file__).resolve().parent / "corpus"
NAMES = ("libsvm", "model", "npz", "packed", "tables")


class Input(NamedTuple):
    """The bytes of a file, and how its name ends."""

    content: bytes
    suffix: str = ""


class Verdict(NamedTuple):
    """What became of an input."""

    reason: str
    """"read", or the class of the refusal, with the options that are the default."""
    signature: tuple[str, ...]
    """What ways to read it came to, three parts or more: an input with a new one is worth keeping."""


class Target(ABC):
    """A family of readers: how to make files for them, and what has to hold for each file."""

    name: str

    def missing(self) -> str | None:
        """Why this target cannot run here, or None."""
        return None

    @abstractmethod
    def allowance(self, given: Input) -> int:
        """The memory, in bytes, that reading the input may take."""

    @abstractmethod
    def mutate(self, random: Random, pool: list[Input]) -> Input:
        """A new input made from those of the pool."""

    @abstractmethod
    def check(self, path: Path, given: Input, random: Random, *, thorough: bool) -> Verdict:
        """Read the file in several ways, or if ``thorough`` in all; raises what should not come out."""

    def corpus(self) -> list[Input]:
        """The committed inputs, in the order of their names."""
        files = sorted((CORPUS / self.name).iterdir())
        return [Input(file.read_bytes(), suffixes(file)) for file in files]


def suffixes(path: Path) -> str:
    """All of them: what tells the format of a compressed file."""
    return "".join(path.suffixes)


def target(name: str) -> Target:
    """By its name."""
    home = {"libsvm": "text", "model": "models", "npz": "matrices", "packed": "packed", "tables": "tables"}[
        name
    ]
    made: Target = import_module(f"fuzz.{home}").TARGET
    return made
