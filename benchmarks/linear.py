# SPDX-License-Identifier: BSD-3-Clause
"""The round robin: every contestant at every setting, in turn, on one problem after the other."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from benchmarks.objective import Objective
from benchmarks.reference import Reference, reference
from benchmarks.solvers import QUALITIES, Contestant
from benchmarks.solvers.maxmargin_solvers import trace

_TIGHT_ENOUGH = 1e-7
_NEARLY_FASTEST = 1.5
_REPEAT_SECONDS = 6.0
_TOO_LONG = "two fits in a row took more than"

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Run:
    """One timed fit, marked."""

    setting: float
    seconds: float
    suboptimality: float
    """``(P(w) - P*) / P*``, recomputed outside the clock."""
    certified_gap: float | None

    def reaches(self, quality: float) -> bool:
        """By the truth; a fit that proves its quality has to have been asked for it and to prove it."""
        if self.certified_gap is None:
            return self.suboptimality <= quality
        return self.setting == quality and self.certified_gap <= quality


@dataclass
class Score:
    """All runs of one contestant on one problem."""

    contestant: str
    setting_name: str
    runs: list[Run] = field(default_factory=list[Run])
    scan_ended: str | None = None
    """Why the scan left out tighter settings, in words."""
    gave_up: bool = False
    """Whether those settings could have helped: they were left out because they take long."""

    def fastest(self, quality: float) -> Run | None:
        """The fastest run that reaches the quality."""
        return min(
            (run for run in self.runs if run.reaches(quality)),
            key=lambda run: run.seconds,
            default=None,
        )

    @property
    def best(self) -> Run:
        """The run that came closest, the fastest of equals."""
        return min(self.runs, key=lambda run: (run.suboptimality, run.seconds))

    def best_per_setting(self) -> list[Run]:
        """The fastest run at each setting, in the order of the settings."""
        fastest: dict[float, Run] = {}
        for run in self.runs:
            if run.setting not in fastest or run.seconds < fastest[run.setting].seconds:
                fastest[run.setting] = run
        return list(fastest.values())

    def contending(self) -> list[float]:
        """Settings that could be the fastest for some quality if they were measured again."""
        chosen: set[float] = set()
        for quality in QUALITIES:
            fastest = self.fastest(quality)
            if fastest is None:
                continue
            limit = _NEARLY_FASTEST * fastest.seconds
            for run in self.runs:
                if run.reaches(quality) and run.seconds <= limit:
                    chosen.add(run.setting)
        return [run.setting for run in self.best_per_setting() if run.setting in chosen]


@dataclass
class Result:
    """One problem: its reference and the scores, in the order of the contestants."""

    data: str
    described: str
    classes: int
    loss: str
    C: float
    reference: Reference
    scores: dict[str, Score]
    trace: list[tuple[float, float]]
    """Seconds and certified gap of ours after every step; empty for several classes."""
    seconds: float = 0.0


def compare(
    objective: Objective,
    contestants: list[Contestant],
    repeat: int,
    longest: float,
    tell: Tell,
) -> Result:
    """All contestants on one problem.

    The first round scans the settings of each, from loose to tight; the others repeat those that
    are, or could become, the fastest for some quality. Contestants take turns in every round.
    """
    begun = time.perf_counter()
    tell("lower bound on P*")
    bound = reference(objective)
    scores: dict[str, Score] = {}
    for contestant in contestants:
        tell(f"{contestant.name}: preparing the data")
        contestant.prepare(objective)
        scores[contestant.name] = Score(contestant.name, contestant.setting_name)
    _scan(objective, bound, contestants, scores, longest, tell)
    spent = {name: 0.0 for name in scores}
    for number in range(2, repeat + 1):
        schedule = {each.name: scores[each.name].contending() for each in contestants}
        for place in range(max(map(len, schedule.values()))):
            for contestant in contestants:
                name = contestant.name
                # Long fits are measured well enough by fewer repetitions.
                if place < len(schedule[name]) and spent[name] < _REPEAT_SECONDS:
                    tell(f"{name}: round {number}")
                    run = _measure(objective, bound, contestant, schedule[name][place])
                    scores[name].runs.append(run)
                    spent[name] += run.seconds
    tell("certificate after every step")
    traced = trace(objective, _TIGHT_ENOUGH) if objective.problems == 1 else []
    return Result(
        data=objective.data.name,
        described=objective.data.describe(),
        classes=len(objective.data.classes),
        loss=objective.loss,
        C=objective.C,
        reference=bound,
        scores=scores,
        trace=traced,
        seconds=time.perf_counter() - begun,
    )


def _scan(
    objective: Objective,
    bound: Reference,
    contestants: list[Contestant],
    scores: dict[str, Score],
    longest: float,
    tell: Tell,
) -> None:
    waiting = list(contestants)
    for place in range(max(len(each.settings) for each in contestants)):
        for contestant in list(waiting):
            score = scores[contestant.name]
            if place >= len(contestant.settings):
                waiting.remove(contestant)
                continue
            setting = contestant.settings[place]
            tell(f"{contestant.name}: {contestant.setting_name} {setting:g}")
            score.runs.append(_measure(objective, bound, contestant, setting))
            reason = _reason_to_end(score, longest)
            if reason is not None and place + 1 < len(contestant.settings):
                score.scan_ended = reason or None
                score.gave_up = reason.startswith(_TOO_LONG)
                waiting.remove(contestant)


def _reason_to_end(score: Score, longest: float) -> str | None:
    last = score.runs[-1]
    if last.certified_gap is not None:
        return None
    if last.suboptimality <= _TIGHT_ENOUGH:
        return ""
    # Three equal answers in a row: a cap on iterations decides, not the setting.
    capped = last.setting < 1e-2 and len({run.suboptimality for run in score.runs[-3:]}) == 1
    if capped:
        return f"a smaller {score.setting_name} changes nothing any more"
    # Two long fits in a row, because one alone may be an accident of the machine.
    if len(score.runs) > 1 and all(run.seconds > 0.4 * longest for run in score.runs[-2:]):
        return f"{_TOO_LONG} {0.4 * longest:g} s each"
    return None


def _measure(objective: Objective, bound: Reference, contestant: Contestant, setting: float) -> Run:
    fit = contestant.fit(setting)
    suboptimality = bound.suboptimality(objective.primal(fit.W, fit.b))
    return Run(setting, fit.seconds, suboptimality, fit.certified_gap)
