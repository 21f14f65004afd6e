"""Times query readers in turns, compares their rows, and counts numparq's requests."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import pandas as pd

from asv_benchmarks.object_store import round_trips
from asv_benchmarks.queries import predicates
from asv_benchmarks.queries.queries import Query
from asv_benchmarks.queries.readers import QueryReader, load_query_reader
from asv_benchmarks.queries.task import IoCounts, QueryOutcome, Task
from asv_benchmarks.timing import MIN_SECONDS, Outcome, add_turn, attempt, describe, take_turns


def count_io(task: Task, threads: int) -> IoCounts | None:
    """Query once with numparq and count at its source or object store; None for local folders."""
    import numparq

    if task.store is not None:
        return count_store_io(load_query_reader("numparq", threads), task)
    if task.is_folder:
        return None
    with task.path.open("rb") as cold, numparq.ParquetFile(cold) as file:  # of a file object, nothing is in the cache
        tail_bytes = file._file.source.num_bytes
        file.read(task.columns, filters=predicates.for_numparq(task.terms), threads=threads)
        return IoCounts(file._file.source.num_bytes, file._file.source.num_requests, tail_bytes)


def count_store_io(contender: QueryReader, task: Task) -> IoCounts:
    """Query once with a reader and count at the object store."""
    assert task.store is not None
    task.store.requests.clear()
    contender.run(task)
    done = list(task.store.requests)
    return IoCounts(sum(request.bytes for request in done), len(done), 0, round_trips(done))


def difference(frame: pd.DataFrame, expected: pd.DataFrame) -> str | None:
    """Return how `frame` differs in rows or values, ignoring order, dtypes and index.

    The first column of queried files has unique values, or keeps its order with all readers.
    """
    if list(frame.columns) != list(expected.columns):
        return f"columns {list(frame.columns)} instead of {list(expected.columns)}"
    if len(frame) != len(expected):
        return f"{len(frame)} rows instead of {len(expected)}"
    orders = [np.argsort(one.iloc[:, 0].to_numpy(), kind="stable") for one in (frame, expected)]
    for name in frame.columns:
        mine, theirs = (_values(one[name])[order] for one, order in zip((frame, expected), orders, strict=True))
        if not np.array_equal(mine, theirs):
            return f"other values in column {name}"
    return None


def _values(column: pd.Series) -> np.ndarray:
    """Return values, with None for missing ones, and decimals as duckdb has them."""
    if column.dtype == object and len(column) and isinstance(column.iloc[0], Decimal):
        return column.to_numpy(np.float64)
    if isinstance(column.dtype, np.dtype) and not column.hasnans:
        return column.to_numpy()
    return column.astype(object).where(column.notna(), None).to_numpy()


def warm_up(contenders: Sequence[QueryReader], task: Task) -> tuple[dict[str, Outcome], int | None]:
    """Ask each once, untimed, and hold its rows against those of the first peer that gave any.

    Returns
    -------
    dict of str to Outcome
        By the contenders' names.
    int or None
        The number of rows; None when all peers failed.
    """
    outcomes: dict[str, Outcome] = {}
    expected: pd.DataFrame | None = None
    peers_first = sorted(contenders, key=lambda contender: contender.name == "numparq")
    for contender in peers_first:
        frame, failure = attempt(contender.run, task)
        outcome = outcomes[contender.name] = Outcome(failure=failure)
        if frame is None:
            continue
        if expected is None:
            expected = frame
        outcome.difference = difference(frame, expected)
    in_order = {contender.name: outcomes[contender.name] for contender in contenders}
    return in_order, None if expected is None else len(expected)


def readers_for(contenders: Sequence[QueryReader], query: Query) -> list[QueryReader]:
    """Return the readers that take part in a query."""
    everywhere = [contender for contender in contenders if contender.name in ("numparq", *query.peers)]
    besides = [contender for contender in contenders if contender.name in query.besides]
    return [
        contender
        for contender in (*everywhere, *besides)
        if (contender.takes_stores or not query.remote) and (contender.unites or not query.unites)
    ]


def time_in_turns(
    contenders: Sequence[QueryReader], task: Task, threads: int, repeat: int, min_seconds: float = MIN_SECONDS
) -> QueryOutcome:
    """Time all contenders on one query, in turns, after one round in which their rows are compared.

    Parameters
    ----------
    contenders : sequence of Contender
        Those who take part.
    task : Task
        The query.
    threads : int
        Of numparq, for counting what it asks for.
    repeat : int
        Least number of timed rounds; short queries go on until `min_seconds` have passed.

    Returns
    -------
    Answers
    """
    outcomes, num_rows = warm_up(contenders, task)

    def timed(contender: QueryReader, outcome: Outcome) -> None:
        add_turn(outcome, contender.run, task)

    take_turns(contenders, outcomes, timed, repeat, min_seconds)
    good = [contender for contender in contenders if outcomes[contender.name].failure is None]
    of_store = {} if task.store is None else {contender.name: count_store_io(contender, task) for contender in good}
    if "numparq" not in outcomes or outcomes["numparq"].failure:
        return QueryOutcome(outcomes, num_rows, asked_of_store=of_store)
    try:
        return QueryOutcome(
            outcomes, num_rows, of_store.get("numparq") or count_io(task, threads), asked_of_store=of_store
        )
    except Exception as error:
        return QueryOutcome(outcomes, num_rows, failure=describe(error), asked_of_store=of_store)
