"""A query prepared for a file, and its outcome."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from asv_benchmarks.object_store import ObjectStore
from asv_benchmarks.queries.predicates import Term
from asv_benchmarks.timing import Outcome


@dataclass(frozen=True)
class Task:
    """A query made ready for a file that is there.

    Attributes
    ----------
    path : Path
        The file, or the folder of files.
    columns : list of str or None
        What is wanted; None means all.
    terms : tuple of Term
        What has to hold of the rows.
    store : ObjectStore or None
        Where the file is to be read from; None means the local file.
    is_folder : bool
        Whether it is a folder, with hive partitions.
    unites : bool
        Whether some files of the folder lack columns that are wanted.
    """

    path: Path
    columns: list[str] | None
    terms: tuple[Term, ...]
    store: ObjectStore | None = None
    is_folder: bool = False
    unites: bool = False


@dataclass(frozen=True)
class IoCounts:
    """Counts of a read: bytes, requests, bytes to open, sequential round trips."""

    bytes: int
    requests: int
    tail_bytes: int
    round_trips: int | None = None


@dataclass(frozen=True)
class QueryOutcome:
    """What came of a query.

    Attributes
    ----------
    outcomes : mapping of str to Outcome
        By contender.
    num_rows : int or None
        How many rows there are.
    asked : DatasetFilterColumn or None
        What numparq asked for; of local folders it is not counted.
    failure : str or None
        Why it was not counted.
    asked_of_store : mapping of str to DatasetFilterColumn
        Where there is an object store: what each contender asked of it.
    """

    outcomes: Mapping[str, Outcome]
    num_rows: int | None = None
    asked: IoCounts | None = None
    failure: str | None = None
    asked_of_store: Mapping[str, IoCounts] = field(default_factory=dict)
