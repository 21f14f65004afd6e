"""The table of read workloads: file, pyarrow's write options, columns read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from asv_benchmarks import tables

GENERATOR_VERSION = 1
"""Version of the files of this table."""

SEED = 20_260
SMALLEST = 100

MILLION = 1_000_000

Kind = TypeVar("Kind")


@dataclass(frozen=True)
class DataFile:
    """A file of the benchmarks.

    Attributes
    ----------
    name : str
        Stem of the file's name.
    table : callable
        ``table(rng, size)`` makes the `pyarrow.Table`.
    size : int
        What ``table`` gets at scale 1: the number of rows (of columns for the wide table).
    options : mapping
        Keyword arguments of what writes it, `pyarrow.parquet.write_table`.
    version : int
        Part of the file's name: raise it with every change of what the file holds.
    """

    name: str
    table: Callable[[np.random.Generator, int], pa.Table]
    size: int
    options: Mapping[str, object] = field(default_factory=dict)
    version: int = GENERATOR_VERSION
    suffix: ClassVar[str] = ".parquet"
    is_folder: ClassVar[bool] = False

    def make(self, scale: float) -> pa.Table:
        """Return the table at `scale`, always with the same seed, so that files of one table hold equal data."""
        size = max(min(self.size, SMALLEST), round(self.size * scale))
        return self.table(np.random.default_rng(SEED), size)

    def write(self, scale: float, path: Path) -> None:
        """Write the table to `path`."""
        pq.write_table(self.make(scale), path, **self.options)


@dataclass(frozen=True)
class Workload:
    """A file, the columns read from it (``pick`` chooses among the file's columns), and what dates become."""

    name: str
    file: DataFile
    pick: Callable[[Sequence[str]], list[str]] | None = None
    dates: str = "objects"


def first_middle_last(names: Sequence[str]) -> list[str]:
    """Return three columns spread over the footer, so that a reader cannot stop early."""
    return [names[0], names[len(names) // 2], names[-1]]


def _plain(compression: str) -> dict[str, object]:
    return {"use_dictionary": False, "compression": compression}


def _encoded(compression: str, **encodings: str) -> dict[str, object]:
    return {**_plain(compression), "column_encoding": encodings}


_DELTA = _encoded("snappy", **dict.fromkeys(("key", "tick", "level", "cents"), "DELTA_BINARY_PACKED"))
_STRINGS = _encoded("snappy", address="DELTA_BYTE_ARRAY", comment="DELTA_LENGTH_BYTE_ARRAY")
_SPLIT = _encoded("zstd", **dict.fromkeys(("normal", "sensor", "tick", "level"), "BYTE_STREAM_SPLIT"))
_DICTIONARY: dict[str, object] = {"use_dictionary": True, "compression": "snappy"}
_WIDE = DataFile("wide", tables.wide, 5_000, {"row_group_size": tables.WIDE_ROWS // 10, "compression": "snappy"})

_DATES = DataFile("dates", tables.dates, 5 * MILLION, _DICTIONARY)

_OF_WHOLE_FILES = (
    DataFile("plain-none", tables.numbers, 5 * MILLION, _plain("none")),
    DataFile("plain-snappy", tables.numbers, 5 * MILLION, _plain("snappy")),
    DataFile("plain-zstd", tables.numbers, 5 * MILLION, _plain("zstd")),
    DataFile("dictionary-numbers", tables.repeated_numbers, 5 * MILLION, _DICTIONARY),
    DataFile("nulls-1", tables.nulls_1, 5 * MILLION, _plain("snappy")),
    DataFile("nulls-10", tables.nulls_10, 5 * MILLION, _plain("snappy")),
    DataFile("nulls-50", tables.nulls_50, 5 * MILLION, _plain("snappy")),
    DataFile("booleans", tables.booleans, 5 * MILLION, _plain("snappy")),
    DataFile("timestamps", tables.timestamps, 5 * MILLION, _plain("snappy")),
    _DATES,
    DataFile("strings-few", tables.few_strings, 2 * MILLION, _DICTIONARY),
    DataFile("strings-distinct", tables.distinct_strings, 2 * MILLION, _plain("snappy")),
    DataFile("lineitem-snappy", tables.lineitem, 3 * MILLION, {"compression": "snappy"}),
    DataFile("lineitem-zstd", tables.lineitem, 3 * MILLION, {"compression": "zstd"}),
    # pyarrow looks at the page size after every write batch: 1,024 values of 8 bytes are exactly one page.
    DataFile("pages-8k", tables.growing_keys, 5 * MILLION, {**_plain("snappy"), "data_page_size": 8_192}),
    DataFile("delta-ints", tables.delta_ints, 5 * MILLION, _DELTA),
    DataFile("delta-strings", tables.delta_strings, 2 * MILLION, _STRINGS),
    DataFile("split-zstd", tables.split_numbers, 5 * MILLION, _SPLIT),
    DataFile("lists", tables.int_lists, 1 * MILLION, {"compression": "snappy"}),
    DataFile("structs", tables.structs, 500_000, {"compression": "snappy"}),
    DataFile("small", tables.small, 100, {"compression": "snappy"}),
)

WORKLOADS: dict[str, Workload] = {
    workload.name: workload
    for workload in (
        *(Workload(file.name, file) for file in _OF_WHOLE_FILES),
        Workload("dates-datetime64", _DATES, dates="datetime64"),
        Workload("wide-whole", _WIDE),
        Workload("wide-three", _WIDE, first_middle_last),
    )
}
"""All workloads by name, in the order in which they are run."""

MEMORY_BOUND = frozenset({"plain-none", "plain-snappy", "plain-zstd", "nulls-1", "nulls-10", "nulls-50"})
"""The workloads on which the peak over the frame has a bound (30 % of the frame and 64 MB)."""


def select_workloads(only: str | None, table: Mapping[str, Kind]) -> list[Kind]:
    """Entries of a table that a comma-separated list names, or all of them.

    Raises
    ------
    ValueError
        When a name is not in the table.
    """
    names = list(table) if only is None else [name.strip() for name in only.split(",") if name.strip()]
    unknown = [name for name in names if name not in table]
    if unknown:
        raise ValueError(f"no workload named {', '.join(unknown)}; there are: {', '.join(table)}")
    return [table[name] for name in names]
