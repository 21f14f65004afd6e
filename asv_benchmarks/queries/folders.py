"""The queried folder of many small files: hive partitions by two keys, columns missing in some files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from asv_benchmarks import tables
from asv_benchmarks.queries.predicates import Term
from asv_benchmarks.queries.task import Task
from asv_benchmarks.workloads import SEED, SMALLEST

YEARS = tuple(range(2015, 2025))
REGIONS = tuple(f"r{number}" for number in range(10))
KEYS = ("year", "region")
LATER = ("count", "note")
SCHEMAS = 3

ONE_PARTITION = (Term("year", "==", 2020), Term("region", "==", "r3"))


@dataclass(frozen=True)
class Folder:
    """A folder of a hundred partitions, written by pyarrow.

    Attributes
    ----------
    name : str
        Stem of its name.
    files, rows : int
        Files in each partition, and rows of each file, at scale 1; there are never less than one of each schema.
    version : int
        Part of its name: raise it with every change of what it holds.
    """

    name: str
    files: int = 10
    rows: int = 2_000
    version: int = 1
    suffix: ClassVar[str] = ""
    is_folder: ClassVar[bool] = True

    def write(self, scale: float, path: Path) -> None:
        """Write the files below `path`."""
        files = max(SCHEMAS, round(self.files * scale))
        rows = max(SMALLEST, round(self.rows * scale))
        rng = np.random.default_rng(SEED)
        for number, target in enumerate(_places(path, files)):
            target.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(_table(rng, number, rows), target)


FOLDER = Folder("folder")


def _places(path: Path, files: int) -> Iterator[Path]:
    for year in YEARS:
        for region in REGIONS:
            for part in range(files):
                yield path / f"year={year}" / f"region={region}" / f"part-{part:03}.parquet"


def _table(rng: np.random.Generator, number: int, rows: int) -> pa.Table:
    """Return the rows of a numbered file: four, five and six columns in turn."""
    seconds = rng.integers(0, 10**6, rows).astype("m8[s]")
    columns = {
        "id": np.arange(rows) + number * rows,
        "value": rng.normal(size=rows),
        "kind": rng.choice(np.array(["bus", "car", "tram"]), rows),
        "at": (np.datetime64("2024-01-01", "s") + seconds).astype("M8[us]"),
        "count": rng.integers(0, 100, rows).astype("i4"),
        "note": rng.choice(np.array(["fine", "late"]), rows),
    }
    return pa.table(dict(list(columns.items())[: 4 + number % SCHEMAS]))


@dataclass(frozen=True)
class SmallFiles:
    """A folder of files of equal columns without partitions, written by pyarrow; fewer files at smaller scales."""

    name: str
    files: int = 100
    rows: int = 1_000
    version: int = 1
    suffix: ClassVar[str] = ""
    is_folder: ClassVar[bool] = True

    def write(self, scale: float, path: Path) -> None:
        """Write the files into `path`."""
        path.mkdir(parents=True)
        table = tables.eight_columns(np.random.default_rng(SEED), self.rows * max(SCHEMAS, round(self.files * scale)))
        for number, start in enumerate(range(0, len(table), self.rows)):
            pq.write_table(table.slice(start, self.rows), path / f"part-{number:05}.parquet")


SMALL_FILES, MANY_FILES = SmallFiles("small-files"), SmallFiles("many-files", 2_000, 800)


def in_all_files(names: Sequence[str]) -> list[str]:
    """Choose the columns of the first file that all files have, and the partition columns."""
    return [*names, *KEYS]


def in_any_file(names: Sequence[str]) -> list[str]:
    """Choose all columns, including those that the first file lacks."""
    return [*names, *LATER, *KEYS]


def wanted_files(task: Task) -> list[Path]:
    """Return the files of the one partition that a task selects."""
    partition = "/".join(f"{term.column}={term.value}" for term in task.terms)
    return sorted((task.path / partition).glob("*.parquet"))
