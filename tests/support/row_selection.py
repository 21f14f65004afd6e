"""Reads of arbitrary rows of a file as filters need them: pages by offset index, or whole chunks."""

from __future__ import annotations

import datetime
import io
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import numparq
from numparq import ParquetFile
from numparq.column.jobs import selection_tasks  # noqa: F401  loaded late, and has sizes of its own
from numparq.column.read.row_selection import RowSelection, RowSlices
from numparq.format.open_file import OpenFile
from numparq.plan.chunk_pages import ChunkPages
from numparq.plan.row_ranges import RowRanges
from numparq.prune.planner import ReadPlanner
from numparq.scan.error_policy import RaiseOnDamage
from numparq.scan.options import ScanOptions
from numparq.scan.scan import Scan
from support.files.forged_metadata import FileParts

# How a chunk is found, by row group, leaf, and the locations of its offset index (int64, (pages, 3); None without one):
# by these, changed or not; None: as a whole.
Change = Callable[[int, int, np.ndarray | None], np.ndarray | None]
SIZES = ("WINDOW_BYTES", "BATCH_BYTES", "MIN_RUN_BYTES", "MIN_ROWS_PER_TASK", "MIN_SHARE_BYTES")


@contextmanager
def small_read_sizes(**given: int) -> Iterator[None]:
    """Patch windows, units and the like to the given sizes in every module that uses them."""
    with ExitStack() as stack:
        found = set()
        for name, module in list(sys.modules.items()):
            for size in given.keys() & vars(module).keys() if name.startswith("numparq.column") else ():
                stack.enter_context(mock.patch.object(module, size, given[size]))
                found.add(size)
        assert found == given.keys(), "there is no such size"
        yield


def by_offset_index(row_group: int, leaf: int, locations: np.ndarray | None) -> np.ndarray | None:
    """Use the offset index."""
    return locations


def whole_chunks(row_group: int, leaf: int, locations: np.ndarray | None) -> np.ndarray | None:
    """Read whole chunks."""
    return None


def page_locations(data: bytes) -> dict[tuple[int, int], np.ndarray]:
    """Return page locations by row group and leaf as an offset index has them; None if absent."""
    found = {}
    for place, indexes in FileParts(data).indexes.items():
        if indexes["OffsetIndex"] is not None:
            rows = [
                (one.offset, one.compressed_page_size, one.first_row_index)
                for one in indexes["OffsetIndex"].page_locations
            ]
            found[place] = np.array(rows, np.int64).reshape(-1, 3)
    return found


class _GivenRows:
    """Selects the given rows."""

    def __init__(
        self, data: bytes, file: OpenFile, rows: Mapping[int, RowRanges], change: Change, masked: bool
    ) -> None:
        self.file = file
        self.leaves = [file.schema.leaf(index) for index in range(file.schema.num_leaves)]
        self._rows = rows
        self._masked = masked
        self._change = change
        self._locations = page_locations(data)

    def select(self, read: Any, output_types: Any, limit: Any) -> RowSlices:
        """Return the rows, as `RaiseOnDamage` does."""
        leaves = self.leaves
        plan = ReadPlanner(self.file, leaves, read.chunk_tables).plan_rows(self._rows)
        found: list[RowSelection] = []
        out = 0
        for group in plan.build():
            wanted = self._rows[group.ordinal]
            if wanted:
                chunks = [
                    self._placed(group.ordinal, leaf.index, chunk)
                    for leaf, chunk in zip(leaves, group.chunks, strict=True)
                ]
                found.append(self._wanted(group.ordinal, wanted, out, chunks))
                out += wanted.count
        return RowSlices.of_selections(found) if found else RowSlices.single(0, 0, 0)

    def _wanted(self, row_group: int, rows: RowRanges, out: int, chunks: list[ChunkPages]) -> RowSelection:
        if not self._masked:
            return RowSelection(row_group, rows, out, rows.count, chunks)
        first, stop = int(rows.starts[0]), rows.stop
        mask = np.zeros(stop - first, np.uint8)
        mask[rows.indices() - first] = 1
        return RowSelection(row_group, RowRanges([(first, stop)]), out, rows.count, chunks, mask=mask)

    def _placed(self, row_group: int, leaf: int, whole: ChunkPages) -> ChunkPages:
        locations = self._locations.get((row_group, leaf))
        locations = self._change(row_group, leaf, None if locations is None else locations.copy())
        return whole if locations is None else ChunkPages(whole.start, whole.end, whole.num_rows, locations)


def read_rows(
    data: bytes, rows: Mapping[int, Any], change: Change = by_offset_index, *, masked: bool = False, **options: Any
) -> pd.DataFrame:
    """Read rows of all columns; rows are ranges or masks by row group ordinal."""
    file = OpenFile(data)
    try:
        wanted = {group: RowRanges.from_indices(np.asarray(some, np.int64)) for group, some in rows.items()}
        chosen = _GivenRows(data, file, wanted, change, masked)
        options["dtype_backend"] = options.get("dtype_backend") or "numpy"
        with mock.patch.object(RaiseOnDamage, "select", chosen.select):
            return Scan.of_file(file, None, ScanOptions(**options, row_range=(0, None))).read()
    finally:
        file.close()


def rows_of_file(data: bytes) -> list[int]:
    """Return the number of rows of each row group."""
    with ParquetFile(data) as file:
        return [int(group.num_rows) for group in file.metadata.row_groups]


def expected_rows(data: bytes, rows: Mapping[int, Any], **options: Any) -> pd.DataFrame:
    """Return the same rows from a full read."""
    starts = np.cumsum([0, *rows_of_file(data)])
    places = [starts[group] + np.sort(np.asarray(some, np.int64)) for group, some in rows.items()]
    whole = numparq.read_parquet(data, threads=1, **options)
    return whole.iloc[np.concatenate([np.empty(0, np.int64), *places])].reset_index(drop=True)


def random_rows(rng: np.random.Generator, num_rows: int) -> np.ndarray:
    """Draw rows, single or in runs; sometimes none, one, or all."""
    way = int(rng.integers(0, 6))
    if way == 0 or not num_rows:
        return np.flatnonzero(np.arange(num_rows) == (rng.integers(0, num_rows) if num_rows else 0))
    if way == 1:
        return np.arange(num_rows)
    if way == 2:
        first, stop = sorted(rng.integers(0, num_rows + 1, 2).tolist())
        return np.arange(first, stop)
    if way == 3:
        edges = np.repeat(rng.random(num_rows // 5 + 1) < 0.4, rng.integers(1, 12, num_rows // 5 + 1))
        return np.flatnonzero(edges[:num_rows])
    return np.flatnonzero(rng.random(num_rows) < rng.choice([0.03, 0.5, 0.95]))


SMALL = (
    {},
    {"WINDOW_BYTES": 1, "MIN_ROWS_PER_TASK": 1},
    {"WINDOW_BYTES": 300},
    {"MIN_ROWS_PER_TASK": 7, "BATCH_BYTES": 64},
    {"WINDOW_BYTES": 900, "MIN_RUN_BYTES": 100},
    {"BATCH_BYTES": 500},
)


def arrow_table(rows=500):
    rng = np.random.default_rng(5)
    numbers = rng.integers(-100, 100, rows)
    lists = [None if n % 9 == 0 else [None if k % 5 == 0 else k for k in range(n % 6)] for n in numbers.tolist()]
    moments = [datetime.datetime(2020, 1, 1) + datetime.timedelta(hours=int(n)) for n in numbers]
    nulls = rng.random(rows) < 0.3
    text = [f"text {n % 40}" for n in numbers]
    word_lists = [value and [f"w{k}" for k in value] for value in lists]
    structs = [None if value is None else {"a": len(value), "b": value} for value in lists]
    maps = [value and [(f"k{k}", k) for k in value] for value in lists]
    return pa.table(
        {
            "i1": pa.array(numbers, pa.int8()),
            "u2": pa.array(numbers + 100, pa.uint16()),
            "i4": pa.array(numbers, pa.int32()),
            "i8": pa.array(numbers, pa.int64(), mask=nulls),
            "f4": pa.array(numbers / 8, pa.float32(), mask=nulls),
            "f8": numbers / 8,
            "bool": pa.array(numbers > 0, mask=nulls),
            "text": pa.array(text, mask=nulls),
            "bytes": [value.encode() for value in text],
            "fixed": pa.array([b"%7d" % n for n in numbers], pa.binary(7)),
            "wide": pa.array([b"%16d" % n for n in numbers], pa.binary(16)),
            "moment": pa.array(moments, pa.timestamp("ns"), mask=nulls),
            "decimal": pa.array(numbers.tolist(), pa.decimal128(20, 2)),
            "nothing": pa.nulls(rows, pa.int32()),
            "no type": pa.nulls(rows),
            "list": pa.array(lists, pa.list_(pa.int64())),
            "words": pa.array(word_lists),
            "struct": pa.array(structs),
            "map": pa.array(maps, pa.map_(pa.string(), pa.int64())),
            "deep": pa.array([[value, [], value] for value in lists]),
            "one": pa.array([{"a": number} for number in numbers.tolist()]),
        }
    )


def write_by_pyarrow(table, **options):
    out = io.BytesIO()
    given = {
        "data_page_size": 200,
        "write_batch_size": 13,
        "row_group_size": 220,
        "write_page_index": True,
        "use_deprecated_int96_timestamps": "moment" in table.column_names,
    }
    pq.write_table(table, out, **given | options)
    return out.getvalue()
