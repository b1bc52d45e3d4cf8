# SPDX-License-Identifier: BSD-3-Clause
"""The round robin with kernels: every contestant at every setting, in turn, on one problem."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from benchmarks.kernel_objective import KernelObjective
from benchmarks.kernel_reference import kernel_reference
from benchmarks.reference import Reference
from benchmarks.solvers.kernel_base import DEFAULT_SETTING, KernelContestant
from benchmarks.solvers.kernel_contestants import LIBSVM

_QUALITY = 1e-3
_NEARLY_FASTEST = 1.5
_REPEAT_SECONDS = 30.0

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Run:
    """One timed fit, marked."""

    setting: float
    seconds: float
    primal: float
    dual: float
    primal_error: float
    """``(P - P*) / P*``, recomputed outside the clock."""
    dual_error: float
    """``(D* - D) / D*``, with the lower bound on P* for D*."""
    certified_gap: float | None
    own_dual: float | None


class Target(NamedTuple):
    """A quality to reach, by one of the two measures."""

    measure: str
    """"primal" or "dual"."""
    quality: float

    def met_by(self, run: Run) -> bool:
        """By the truth, whatever the fit proved."""
        error = run.primal_error if self.measure == "primal" else run.dual_error
        return error <= self.quality


@dataclass
class Score:
    """All runs of one contestant on one problem."""

    contestant: str
    setting_name: str
    runs: list[Run] = field(default_factory=list[Run])
    skipped: list[float] = field(default_factory=list[float])
    """Settings that were left out, because the fits are long."""

    def fastest(self, target: Target) -> Run | None:
        """The fastest run that reaches the quality."""
        reaching = (run for run in self.runs if target.met_by(run))
        return min(reaching, key=lambda run: run.seconds, default=None)

    def at(self, setting: float) -> Run | None:
        """The fastest run at a setting."""
        there = (run for run in self.runs if run.setting == setting)
        return min(there, key=lambda run: run.seconds, default=None)

    def best_per_setting(self) -> list[Run]:
        """The fastest run at each setting, in the order of the settings."""
        found = (self.at(setting) for setting in dict.fromkeys(run.setting for run in self.runs))
        return [run for run in found if run is not None]

    def contending(self, targets: list[Target]) -> list[float]:
        """Settings that could be the fastest for some target if they were measured again."""
        chosen: set[float] = set()
        for target in targets:
            fastest = self.fastest(target)
            if fastest is not None:
                limit = _NEARLY_FASTEST * fastest.seconds
                chosen |= {run.setting for run in self.runs if target.met_by(run) and run.seconds <= limit}
        return [run.setting for run in self.best_per_setting() if run.setting in chosen]


@dataclass
class Result:
    """One problem: its reference and the scores, in the order of the contestants."""

    title: str
    described: str
    problems: int
    """Pairs of classes."""
    reference: Reference
    scores: dict[str, Score]
    seconds: float = 0.0

    def targets(self) -> list[Target]:
        """1e-3, and what LIBSVM reaches at its default, by both measures."""
        found = [Target("primal", _QUALITY), Target("dual", _QUALITY)]
        default = self.scores[LIBSVM].at(DEFAULT_SETTING) if LIBSVM in self.scores else None
        if default is not None:
            found += [Target("primal", default.primal_error), Target("dual", default.dual_error)]
        return found


def compare(
    objective: KernelObjective, contestants: list[KernelContestant], repeat: int, longest: float, tell: Tell
) -> Result:
    """All contestants on one problem.

    The first round scans the settings of each, from loose to tight; a contestant whose fit takes more than
    ``longest`` seconds goes on to 1e-3 at once and ends there. The other rounds repeat those that are, or
    could become, the fastest for some target. Contestants take turns in every round.
    """
    begun = time.perf_counter()
    tell("lower bound on P*")
    bound = kernel_reference(objective)
    scores: dict[str, Score] = {}
    for contestant in contestants:
        tell(f"{contestant.name}: preparing the data")
        contestant.prepare(objective)
        scores[contestant.name] = Score(contestant.name, contestant.setting_name)
    result = Result(objective.title, objective.data.describe(), len(objective.pairs), bound, scores)
    for contestant, setting in _scan(contestants, scores, longest):
        tell(f"{contestant.name}: {contestant.setting_name} {setting:g}")
        scores[contestant.name].runs.append(_measure(objective, bound, contestant, setting))
    spent = dict.fromkeys(scores, 0.0)
    for number in range(2, repeat + 1):
        schedule = {name: score.contending(result.targets()) for name, score in scores.items()}
        for place in range(max(map(len, schedule.values()))):
            for contestant in contestants:
                name = contestant.name
                # Long fits are measured well enough by fewer repetitions.
                if place < len(schedule[name]) and spent[name] < _REPEAT_SECONDS:
                    tell(f"{name}: round {number}")
                    run = _measure(objective, bound, contestant, schedule[name][place])
                    scores[name].runs.append(run)
                    spent[name] += run.seconds
    result.seconds = time.perf_counter() - begun
    return result


def _scan(
    contestants: list[KernelContestant], scores: dict[str, Score], longest: float
) -> Iterator[tuple[KernelContestant, float]]:
    waiting = {each.name: list(each.settings) for each in contestants}
    while any(waiting.values()):
        for contestant in contestants:
            settings, score = waiting[contestant.name], scores[contestant.name]
            if settings:
                yield contestant, settings.pop(0)
                if score.runs[-1].seconds > longest:
                    score.skipped += [each for each in settings if each != DEFAULT_SETTING]
                    settings[:] = [each for each in settings if each == DEFAULT_SETTING]


def _measure(
    objective: KernelObjective, bound: Reference, contestant: KernelContestant, setting: float
) -> Run:
    fit = contestant.fit(setting)
    primal, dual = objective.values(fit.answer)
    return Run(
        setting,
        fit.seconds,
        primal,
        dual,
        bound.suboptimality(primal),
        max(0.0, (bound.lower - dual) / bound.lower),
        fit.certified_gap,
        fit.own_dual,
    )
