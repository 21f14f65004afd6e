"""Interleaved timing: readers take turns on one workload, so that machine noise hits them alike."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar

import pandas as pd

from asv_benchmarks.environment import CLOCK
from asv_benchmarks.readers import Reader

MIN_SECONDS = 3.0
MAX_ROUNDS = 200
TURN_SECONDS = 0.01


class Named(Protocol):
    """A participant with the name of its outcome."""

    @property
    def name(self) -> str: ...


Contender = TypeVar("Contender", bound=Named)


@dataclass
class Outcome:
    """Outcome of one reader on one workload: times in seconds, or the failure, and any wrong frame."""

    times: list[float] = field(default_factory=list)
    failure: str | None = None
    difference: str | None = None
    in_a_row: list[float] = field(default_factory=list)  # means of turns that go on, where they do

    @property
    def best(self) -> float | None:
        """Return the shortest time in seconds; None after a failure."""
        return min(self.times) if self.times and self.failure is None else None

    @property
    def repeated(self) -> Outcome:
        """Return the outcome of repeated turns, in which all but the first find warm caches."""
        return Outcome(self.in_a_row, self.failure)


def describe(error: BaseException) -> str:
    """Return one short line about an exception."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:160]}" if lines else type(error).__name__


def attempt(read: Callable[..., pd.DataFrame], *arguments: object) -> tuple[pd.DataFrame | None, str | None]:
    """Read once.

    Returns
    -------
    DataFrame or None
        None when the reader failed.
    str or None
        Why it failed.
    """
    try:
        return read(*arguments), None
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # polars' panics are no Exceptions
        return None, describe(error)


def difference(frame: pd.DataFrame, expected: pd.DataFrame) -> str | None:
    """Return how `frame` differs in values, dtypes, index or columns; None if equal."""
    try:
        pd.testing.assert_frame_equal(frame, expected, check_exact=True)
    except AssertionError as error:
        return " | ".join(line.strip()[:160] for line in str(error).splitlines() if line.strip())
    return None


def warm_up(
    readers: Sequence[Reader], path: Path, columns: list[str] | None, expected: pd.DataFrame | None
) -> dict[str, Outcome]:
    """Read once with each reader, untimed; compare numparq's frame with `expected` if given."""
    outcomes = {}
    for reader in readers:
        frame, failure = attempt(reader.read, path, columns)
        outcome = outcomes[reader.name] = Outcome(failure=failure)
        if frame is not None and expected is not None and reader.name == "numparq":
            outcome.difference = difference(frame, expected)
    return outcomes


def add_time(outcome: Outcome, read: Callable[..., pd.DataFrame], *arguments: object) -> None:
    """Add one time to `outcome`; releasing the frame is not timed."""
    gc.collect()
    start = CLOCK()
    frame, outcome.failure = attempt(read, *arguments)
    outcome.times.append(CLOCK() - start)
    del frame


def add_turn(outcome: Outcome, read: Callable[..., pd.DataFrame], *arguments: object) -> None:
    """Add one time to `outcome`, then repeat until TURN_SECONDS have passed and add the mean as well."""
    add_time(outcome, read, *arguments)
    turn = Outcome([outcome.times[-1]], outcome.failure)
    while turn.failure is None and sum(turn.times) < TURN_SECONDS:
        start = CLOCK()
        frame, turn.failure = attempt(read, *arguments)
        turn.times.append(CLOCK() - start)
        del frame
    outcome.failure = turn.failure
    outcome.in_a_row.append(sum(turn.times) / len(turn.times))


def take_turns(
    contenders: Sequence[Contender],
    outcomes: Mapping[str, Outcome],
    timed: Callable[[Contender, Outcome], None],
    repeat: int,
    min_seconds: float,
) -> None:
    """Call ``timed(contender, its outcome)`` in rounds, every second one reversed; failures drop out.

    Runs at least `repeat` rounds, and until `min_seconds` have passed.
    """
    started = time.perf_counter()
    for round_number in range(max(repeat, MAX_ROUNDS)):
        if round_number >= repeat and time.perf_counter() - started > min_seconds:
            break
        for contender in contenders if round_number % 2 == 0 else reversed(contenders):
            outcome = outcomes[contender.name]
            if outcome.failure is None:
                timed(contender, outcome)


def time_in_turns(
    readers: Sequence[Reader],
    path: Path,
    columns: list[str] | None,
    repeat: int,
    expected: pd.DataFrame | None = None,
    min_seconds: float = MIN_SECONDS,
) -> dict[str, Outcome]:
    """Time all readers on one file, in turns.

    Parameters
    ----------
    readers : sequence of Reader
        They take turns, in every second round backwards, so that none always follows the same neighbour.
    path : Path
        The file.
    columns : list of str or None
        What to read; None means all.
    repeat : int
        Least number of timed rounds; reads of a millisecond go on until `min_seconds` have passed.
    expected : DataFrame, optional
        What numparq has to give back; a difference is noted.

    Returns
    -------
    dict of str to Outcome
        By the readers' names. A reader that fails drops out, the others go on.
    """
    outcomes = warm_up(readers, path, columns, expected)

    def timed(reader: Reader, outcome: Outcome) -> None:
        add_time(outcome, reader.read, path, columns)

    take_turns(readers, outcomes, timed, repeat, min_seconds)
    return outcomes
