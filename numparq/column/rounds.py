"""Columns decoded, and decoded once more as something else where their values do not allow what was tried first."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Protocol

from ..kernels.tables import C_NULL_COUNT
from ..targets import Target, retarget
from .buffer import ColumnBuffer
from .jobs import JobMaker, Memory

__all__ = ["decode_rounds"]


class Replaceable(Memory, Protocol):
    """Memory in which a column can be moved to where another target takes it."""

    def replace(self, position: int, target: Target) -> None:
        """Have a column decoded as another target; what it held is void."""


def decode_rounds(
    maker: JobMaker, memory: Replaceable, turns: Callable[[], Iterable[Sequence[Any]]], columns: Collection[int]
) -> dict[int, ColumnBuffer]:
    """Decode columns into memory.

    Parameters
    ----------
    maker : JobMaker
        Makes the jobs.
    memory : Replaceable
        Where the maker has them decode to.
    turns : callable
        Gives the rows that are decoded together, as `JobMaker.jobs` takes them; as often as it is called.
    columns : collection of int
        The columns, by their positions among those read.

    Returns
    -------
    dict of int to ColumnBuffer
        By position.
    """
    done: dict[int, ColumnBuffer] = {}
    wanted: Collection[int] = columns
    while wanted:
        made = {column: ColumnBuffer(memory.values[column], memory.validity[column]) for column in wanted}
        failed: dict[int, int] = {}
        for rows in turns():
            jobs = maker.jobs(rows, wanted)
            maker.run(jobs)
            for job in jobs:
                failed.update(job.failed)
                for column, nulls in zip(job.columns, job.chunks[:, C_NULL_COUNT].tolist(), strict=True):
                    made[column].null_count += nulls
                made[job.columns[0]].pieces.extend(job.pieces)
        for column, status in failed.items():
            memory.replace(column, retarget(memory.targets[column], status))
            del made[column]
        done |= made
        wanted = failed
    return done
