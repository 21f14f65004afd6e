"""The table of queries: file, rows, columns, and numparq's goals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from asv_benchmarks.files import columns_of, ensure
from asv_benchmarks.object_store import ObjectStore
from asv_benchmarks.queries import required_bytes
from asv_benchmarks.queries.files import KEYED, LISTED, MIXED, POINTS, SHUFFLED, SMALL_GROUPS, WIDE
from asv_benchmarks.queries.folders import (
    FOLDER,
    MANY_FILES,
    ONE_PARTITION,
    SMALL_FILES,
    Folder,
    SmallFiles,
    in_all_files,
    in_any_file,
)
from asv_benchmarks.queries.goals import Faster, Goal, ReadsOnly, Requests, RoundTrips
from asv_benchmarks.queries.predicates import Among, At, Term
from asv_benchmarks.queries.task import Task
from asv_benchmarks.tables import DRAWS
from asv_benchmarks.workloads import DataFile, first_middle_last

ALL = ("pyarrow", "dataset", "polars", "duckdb")


@dataclass(frozen=True)
class Query:
    """One thing to be asked.

    Attributes
    ----------
    name : str
        Its name in the tables.
    file : DataFile or DatasetFolder
        Whom it is asked.
    terms : tuple of Term
        What has to hold of the rows.
    goals : tuple of Goal
        What numparq has to reach.
    pick : callable, optional
        ``pick(names)`` chooses columns; without it all.
    remote : bool
        Whether the file is in a simulated object store.
    besides : tuple of str
        Contenders that run in this query only.
    peers : tuple of str
        Peers that it is asked of.
    unites : bool
        Whether some files of a folder lack columns that are wanted.
    """

    name: str
    file: DataFile | Folder | SmallFiles
    terms: tuple[Term, ...] = ()
    goals: tuple[Goal, ...] = ()
    pick: Callable[[Sequence[str]], list[str]] | None = None
    remote: bool = False
    besides: tuple[str, ...] = ()
    peers: tuple[str, ...] = ALL
    unites: bool = False

    def task(self, folder: Path, scale: float) -> Task:
        """Write the file if missing; return the query's task."""
        path = ensure(self.file, folder, scale)
        terms = tuple(term.on(path) for term in self.terms)
        store = ObjectStore() if self.remote else None
        return Task(path, columns_of(self, path), terms, store, self.file.is_folder, self.unites)


_POINT = (Term("key", "==", At(0.4321)),)
_ONE_PERCENT = (Term("key", ">=", At(0.4321)), Term("key", "<", At(0.4421)))

KEYS = {"int": "id", "string": "name", "timestamp": "at", "decimal": "amount"}


def _many_files() -> Iterator[Query]:
    """Yield filters over 2,000 small files: by a sorted key, a number, a string, and one that all rows match."""
    best = ("polars", "duckdb")
    terms = {
        "row": (Term("id", "==", 4_321), 2.0),
        "tenth": (Term("id", "<", 160_000), 1.3),
        "all": (Term("id", ">=", 0), 1.3),
        "unsorted": (Term("count", "<", 100), 1.3),
        "string": (Term("name", "==", "name-4321"), 1.3),
    }
    for name, (term, ratio) in terms.items():
        yield Query(f"many-files-{name}", MANY_FILES, (term,), (Faster(ratio, best),))


def _look_ups() -> Iterator[Query]:
    """Yield look-ups of a row by a key: sorted, of four types in five files, and unsorted in two of the files."""
    for layout, file in KEYED.items():
        for kind, column in KEYS.items():
            yield Query(f"row-{layout}-{kind}", file, (Term(column, "==", At(0.4321)),), (Faster(4.0, ALL),))
    for layout in ("default", "indexed"):
        for kind, column, times in (("int", "draw", 2.5), ("string", "code", 1.8)):
            terms = (Term(column, "==", At(0.4321)),)
            yield Query(f"unsorted-{layout}-{kind}", KEYED[layout], terms, (Faster(times, ALL),))


def _long_lists() -> Iterator[Query]:
    """Yield filters by lists of literals: five types, 100 to 1,000,000 values; SQL would have them as text."""
    for column in ("dense", "sparse", "name", "amount", "at"):
        for count in (100, 1_000, 10_000, 100_000, 1_000_000):
            terms = (Term(column, "in", Among(count)),)
            goal = Faster(1.5 if count >= 1_000 else 1.0, ("pyarrow", "dataset"))
            pick = partial(_only, column)
            yield Query(f"isin-{column}-{count}", LISTED, terms, (goal,), pick, peers=("pyarrow", "dataset", "polars"))


def _only(column: str, names: Sequence[str]) -> list[str]:
    return [column]


QUERIES: dict[str, Query] = {
    query.name: query
    for query in (
        Query("point", POINTS, _POINT, (Faster(8.0, ALL), ReadsOnly(required_bytes.for_sorted_key))),
        Query("range-1", POINTS, _ONE_PERCENT, (Faster(2.0, ALL), ReadsOnly(required_bytes.for_sorted_key))),
        Query(
            "absent-bloom",
            SHUFFLED,
            (Term("key", "==", At(0.5, plus=1)),),
            (Faster(1.0, ("duckdb",)), ReadsOnly(required_bytes.for_absent_key)),
        ),
        Query("scattered-0.003", MIXED, (Term("draw", "<", 3 * DRAWS // 100_000),), (Faster(1.2, ("polars",)),)),
        Query("scattered-1", MIXED, (Term("draw", "<", DRAWS // 100),), (Faster(1.2, ("polars",)),)),
        Query(
            "half", MIXED, (Term("draw", "<", DRAWS // 2),), (Faster(1 / 1.1, ("read-all",)),), besides=("read-all",)
        ),
        Query("point-store", POINTS, _POINT, (RoundTrips(5),), remote=True),  # the last: was it replaced?
        Query("wide-three-20", WIDE, (), (Faster(2.0, ("polars",)),), first_middle_last),
        Query("startswith-1", MIXED, (Term("name", "startswith", "item42"),)),
        Query("isin-100", MIXED, (Term("draw", "in", list(range(7, DRAWS, DRAWS // 100))),)),
        Query("city", MIXED, (Term("city", "==", "Port haven"),)),
        Query("partition", FOLDER, ONE_PARTITION, (Faster(3.0, ("pyarrow",)),), in_all_files),
        Query("partition-united", FOLDER, ONE_PARTITION, (), in_any_file, unites=True),
        Query(
            "partition-store",
            FOLDER,
            ONE_PARTITION,
            (RoundTrips(3), Requests(2, required_bytes.num_files), ReadsOnly(required_bytes.for_files)),
            in_all_files,
            remote=True,
        ),
        Query("whole-folder", FOLDER, (), (), in_all_files),
        *_look_ups(),
        *_long_lists(),
        Query("row-groups-1k", SMALL_GROUPS, (), (Faster(5.0, ("polars",)),)),
        Query("small-files", SMALL_FILES, (), (Faster(2.0, ("polars",)),)),
        *_many_files(),
    )
}
"""All queries by name, in the order in which they are run."""
