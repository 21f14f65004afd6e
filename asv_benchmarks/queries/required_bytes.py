"""The bytes that a query requires, computed from the data and the page positions, without numparq's planner."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from asv_benchmarks import page_index
from asv_benchmarks.queries.folders import wanted_files
from asv_benchmarks.queries.predicates import mask_of
from asv_benchmarks.queries.task import Task

BLOCK = 32
"""Bytes of a Bloom filter's block."""


@dataclass(frozen=True)
class Bounds:
    """How many bytes a query may ask for.

    What lies within the end of the file, which is read along with the footer, need not be asked for again, but may be:
    where one request fetches it together with what is before it.
    """

    least: int
    most: int


def _bounds(path: Path, tail_bytes: int, ranges: Sequence[page_index.Range]) -> Bounds:
    """Return bounds from the bytes at the file's end and the ranges."""
    tail_start = path.stat().st_size - tail_bytes
    before_tail = sum(max(0, min(stop, tail_start) - start) for start, stop in ranges)
    return Bounds(tail_bytes + before_tail, tail_bytes + sum(stop - start for start, stop in ranges))


def _row_groups(path: Path) -> list[Any]:
    import numparq

    with numparq.ParquetFile(path) as file:
        return list(file.metadata.row_groups)


def _name(chunk: Any) -> str:
    return ".".join(chunk.meta_data.path_in_schema)


def _divided(row_groups: Sequence[Any], rows: tuple[int, int]) -> Iterator[tuple[Any, int, int]]:
    """Return the row groups with some of the rows, and the rows within each."""
    first = 0
    for group in row_groups:
        start, stop = max(0, rows[0] - first), min(group.num_rows, rows[1] - first)
        if start < stop:
            yield group, start, stop
        first += group.num_rows


def for_sorted_key(task: Task, tail_bytes: int) -> Bounds:
    """Return bounds: the footer, and for row groups with matching rows the indexes, their pages and dictionaries.

    The condition is on a sorted column without duplicates, so statistics leave no other row groups or pages. The offset
    indexes and the condition column's column index are needed, or none if all rows of the row group match.
    """
    key = task.terms[0].column
    table = pq.read_table(task.path, columns=[key])
    at = np.flatnonzero(_holds(table[key].to_numpy(), task))
    ranges: list[page_index.Range] = []
    with task.path.open("rb") as raw:
        for group, start, stop in _divided(_row_groups(task.path), (int(at[0]), int(at[-1]) + 1)):
            for chunk in group.columns:
                if task.columns is not None and _name(chunk) not in (*task.columns, key):
                    continue
                ranges += page_index.pages(raw, chunk, start, stop)
                if stop - start < group.num_rows:
                    ranges.append(page_index.offset_index(chunk))
                    ranges += [page_index.column_index(chunk)] if _name(chunk) == key else []
    return _bounds(task.path, tail_bytes, ranges)


def _holds(values: np.ndarray, task: Task) -> np.ndarray:
    return mask_of(pd.DataFrame({task.terms[0].column: values}), task.terms).to_numpy()


def for_absent_key(task: Task, tail_bytes: int) -> Bounds:
    """Return bounds: the footer, and the Bloom filter's header and one block per row group."""
    key = task.terms[0].column
    ranges = []
    with task.path.open("rb") as raw:
        for group in _row_groups(task.path):
            place = next(chunk.meta_data for chunk in group.columns if _name(chunk) == key)
            start = place.bloom_filter_offset
            _, header = page_index.thrift_struct(raw, start, place.bloom_filter_length, "BloomFilterHeader")
            ranges.append((start, start + header + BLOCK))
    return _bounds(task.path, tail_bytes, ranges)


def for_files(task: Task, tail_bytes: int) -> Bounds:
    """Return bounds for one partition of small files: at most the whole files."""
    return Bounds(0, sum(path.stat().st_size for path in wanted_files(task)))


def num_files(task: Task) -> int:
    """Return the number of files in the selected partition."""
    return len(wanted_files(task))
