"""numparq's goals in a query, and whether they hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from asv_benchmarks.queries.required_bytes import Bounds
from asv_benchmarks.queries.task import QueryOutcome, Task
from asv_benchmarks.ratios import best_peer


@dataclass(frozen=True)
class Verdict:
    """What came of a goal.

    Attributes
    ----------
    measured : str
        The figure, in words.
    holds : bool or None
        None where there is no figure: numparq failed, or there was nobody to compare it with.
    """

    measured: str
    holds: bool | None


UNKNOWN = Verdict("-", None)


class Goal(Protocol):
    """A goal: ``wanted`` is its text; if ``is_strict``, a miss fails the run (no time goal is strict)."""

    @property
    def wanted(self) -> str: ...

    @property
    def is_strict(self) -> bool: ...

    def judge(self, task: Task, answers: QueryOutcome) -> Verdict: ...


@dataclass(frozen=True)
class Faster:
    """The best of some peers takes at least `times` numparq's time."""

    times: float
    than: tuple[str, ...]
    is_strict = False

    @property
    def wanted(self) -> str:
        whom = self.than[0] if len(self.than) == 1 else "best peer"
        return f"{whom} / numparq: at least {self.times:.2f}"

    def judge(self, task: Task, answers: QueryOutcome) -> Verdict:
        best = best_peer(answers.outcomes, "numparq", self.than)
        if best is None:
            return UNKNOWN
        return Verdict(f"{best.ratio:.2f} ({best.peer})", best.ratio >= self.times)


@dataclass(frozen=True)
class ReadsOnly:
    """numparq reads exactly the required bytes.

    ``needed(task, tail_bytes)`` returns bounds on them, given the bytes of the file's end that are read at once.
    """

    needed: Callable[[Task, int], Bounds]
    is_strict = True
    wanted = "only needed bytes are read"

    def judge(self, task: Task, answers: QueryOutcome) -> Verdict:
        asked = answers.asked
        if asked is None:
            return UNKNOWN
        bounds = self.needed(task, asked.tail_bytes)
        shown = f"{asked.bytes:,} of {bounds.least:,} to {bounds.most:,}"
        return Verdict(shown, bounds.least <= asked.bytes <= bounds.most)


@dataclass(frozen=True)
class RoundTrips:
    """numparq needs at most so many sequential requests on an object store."""

    most: int
    is_strict = True

    @property
    def wanted(self) -> str:
        return f"at most {self.most} sequential round trips"

    def judge(self, task: Task, answers: QueryOutcome) -> Verdict:
        asked = answers.asked
        if asked is None or asked.round_trips is None:
            return UNKNOWN
        return Verdict(f"{asked.round_trips} ({asked.requests} requests)", asked.round_trips <= self.most)


@dataclass(frozen=True)
class Requests:
    """On an object store, numparq makes at most `more` requests beyond the selected files, ``files(task)``."""

    more: int
    files: Callable[[Task], int]
    is_strict = True

    @property
    def wanted(self) -> str:
        return f"a request for each wanted file, and at most {self.more} more"

    def judge(self, task: Task, answers: QueryOutcome) -> Verdict:
        if answers.asked is None:
            return UNKNOWN
        files = self.files(task)
        return Verdict(f"{answers.asked.requests} for {files} files", answers.asked.requests <= files + self.more)


@dataclass(frozen=True)
class Judged:
    """A goal with its verdict."""

    goal: Goal
    verdict: Verdict

    @property
    def fails_the_run(self) -> bool:
        """Whether a strict goal was missed."""
        return self.goal.is_strict and self.verdict.holds is False
