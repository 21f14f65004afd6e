"""A query made ready to be asked, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from asv_benchmarks.object_store import ObjectStore
from asv_benchmarks.querying.conditions import Term
from asv_benchmarks.timing import Outcome


@dataclass(frozen=True)
class Task:
    """A query made ready for a file that is there.

    Attributes
    ----------
    path : Path
        The file.
    columns : list of str or None
        What is wanted; None means all.
    terms : tuple of Term
        What has to hold of the rows.
    store : ObjectStore or None
        Where the file is to be read from; None means the local file.
    """

    path: Path
    columns: list[str] | None
    terms: tuple[Term, ...]
    store: ObjectStore | None = None


@dataclass(frozen=True)
class Asked:
    """What numparq asked of a file: bytes, requests, the bytes that opening it took, sequential round trips."""

    bytes: int
    requests: int
    tail_bytes: int
    round_trips: int | None = None


@dataclass(frozen=True)
class Answers:
    """What came of a query: of each contender, how many rows there are, and what numparq asked for (or why not)."""

    outcomes: Mapping[str, Outcome]
    num_rows: int | None = None
    asked: Asked | None = None
    failure: str | None = None
