"""Times batched readers in turns on one file, after comparing their rows."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from asv_benchmarks.batches.files import BatchTask
from asv_benchmarks.batches.readers import BatchReader
from asv_benchmarks.timing import MIN_SECONDS, Outcome, add_time, attempt, take_turns


def time_in_turns(
    contenders: Sequence[BatchReader], task: BatchTask, repeat: int, min_seconds: float = MIN_SECONDS
) -> dict[str, Outcome]:
    """Time all contenders on one file, in turns, after one round in which their rows are compared.

    Parameters
    ----------
    contenders : sequence of Contender
        Those who take part.
    task : BatchTask
        The file.
    repeat : int
        Least number of timed rounds; short ones go on until `min_seconds` have passed.

    Returns
    -------
    dict of str to Outcome
        By the contenders' names; ``difference`` is held against the first peer.
    """
    sums: dict[str, pd.DataFrame | None] = {}
    outcomes: dict[str, Outcome] = {}
    for contender in contenders:
        sums[contender.name], failure = attempt(contender.checksum, task)
        outcomes[contender.name] = Outcome(failure=failure)
    _note_differences(sums, outcomes)

    def timed(contender: BatchReader, outcome: Outcome) -> None:
        add_time(outcome, contender.drain, task)

    take_turns(contenders, outcomes, timed, repeat, min_seconds)
    return outcomes


def _note_differences(sums: dict[str, pd.DataFrame | None], outcomes: dict[str, Outcome]) -> None:
    known = {name: one for name, one in sums.items() if one is not None}
    expected = next((one for name, one in known.items() if name != "numparq"), None)
    if expected is None:
        return
    for name, one in known.items():
        if int(one["rows"][0]) != int(expected["rows"][0]):
            outcomes[name].difference = f"{one['rows'][0]:,} rows instead of {expected['rows'][0]:,}"
        elif not one.equals(expected):
            outcomes[name].difference = "other values"
