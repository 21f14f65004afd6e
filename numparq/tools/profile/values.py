"""Decode a column chunk or its dictionary, and summarize the values: counts, bounds, order."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from numparq.column.read.chunk_table import ChunkTables
from numparq.column.read.context import ReadContext
from numparq.column.scratch import ThreadScratch
from numparq.errors import error_context
from numparq.expr.matchers.vectors import ColumnVector
from numparq.expr.sort_keys import key_domain
from numparq.format.column_order import leaf_order
from numparq.format.open_file import OpenFile
from numparq.format.page_bounds import compute_page_bounds
from numparq.format.physical_type import BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY, INT32
from numparq.format.schema import Leaf
from numparq.format.writer_quirks import page_quirks
from numparq.plan.read_plan import ReadPlan
from numparq.plan.row_ranges import RowRanges
from numparq.prune.dictionary_page import decode_dictionary, supports_dictionary
from numparq.scan.filter_columns import FilterColumns, stored_output_type
from numparq.util.worker_pool import WorkerPool

from .distinct import DistinctSketch, hash_stored_values
from .value_kind import ValueKind

_NS_OF_US = 1000


class ChunkValueSummary(NamedTuple):
    """Summary of the values of a column chunk or the entries of its dictionary.

    Attributes
    ----------
    num_non_null : int
        Number of non-null values, or of dictionary entries.
    low, high : key or None
        Smallest and largest value; None without values other than NaN, or if the type has no order.
    sketch : DistinctSketch
        Distinct values without NaNs.
    is_sorted : bool or None
        Whether values ascend; None for lists, dictionaries, and types without order.
    num_bytes, min_length, max_length : int
        Bytes of all values, of the shortest and of the longest one, for BYTE_ARRAY.
    """

    num_non_null: int
    nan_count: int
    low: Any
    high: Any
    sketch: DistinctSketch
    is_sorted: bool | None
    num_bytes: int = 0
    min_length: int | None = None
    max_length: int | None = None


def summarize_values(
    leaf: Leaf, kind: ValueKind, values: ColumnVector, *, is_dictionary: bool = False
) -> ChunkValueSummary:
    """Summarize the stored values of a chunk, or with `is_dictionary` the entries of its dictionary."""
    found = _NonNullValues(leaf, values)
    order = "numbers" if found.values.dtype.kind == "M" else leaf_order(leaf).kind
    keep = ~np.isnan(found.as_numbers) if kind.key_dtype == "float64" else None
    nans = 0 if keep is None else int((~keep).sum() if found.codes is None else (~keep)[found.codes].sum())
    low, high = (None, None) if order == "none" else _key_bounds(leaf, kind, found, keep)
    hashed = found.values if keep is None or keep.all() else found.as_numbers[keep].view(found.values.dtype)
    sketch = DistinctSketch.from_hashes(hash_stored_values(leaf, kind, hashed, found.starts, found.ends))
    asks_order = not (is_dictionary or leaf.max_repetition_level or order == "none")
    in_order = _is_sorted(leaf, kind, found, keep) if asks_order else None
    return ChunkValueSummary(found.count, nans, low, high, sketch, in_order, *found.lengths())


class _NonNullValues:
    """Non-null values of a chunk; with codes, the used dictionary entries and the entry of each value."""

    def __init__(self, leaf: Leaf, found: ColumnVector) -> None:
        self._leaf = leaf
        self.codes: np.ndarray | None = None
        self.starts: np.ndarray | None = None
        self.ends: np.ndarray | None = None
        self.values = found.values
        is_binary = leaf.physical == BYTE_ARRAY
        offsets = None if found.offsets is None else np.asarray(found.offsets, np.int64)
        if is_binary:
            assert offsets is not None
            self.starts, self.ends = offsets[:-1], offsets[1:]
        if leaf.is_nested:  # nested values are stored without nulls
            pass
        elif found.codes is not None:
            self._drop_unused_entries(found.codes)
        elif found.validity is not None:
            there = np.asarray(found.validity[: self._num_items], np.bool_)
            if is_binary:
                assert self.starts is not None
                assert self.ends is not None
                self.starts, self.ends = self.starts[there], self.ends[there]
            else:
                self.values = self._rows()[there]
        if not is_binary:
            self.values = np.ascontiguousarray(self._rows()).reshape(-1)
        if leaf.rebase is not None:
            self.values = self.values.copy()
            leaf.rebase.apply(self.values)
        self.count = self._num_items if self.codes is None else len(self.codes)

    def _drop_unused_entries(self, codes: np.ndarray) -> None:
        """Keep the entries that codes refer to, and renumber the codes."""
        assert self.starts is not None
        assert self.ends is not None
        named = np.bincount(codes[codes >= 0], minlength=len(self.starts)) > 0
        self.codes = (np.cumsum(named) - 1)[codes[codes >= 0]]
        self.starts, self.ends = self.starts[named], self.ends[named]

    def _rows(self) -> np.ndarray:
        """Return fixed-size values as an array with one item each."""
        values = self.values
        if self._leaf.physical == FIXED_LEN_BYTE_ARRAY and values.dtype == np.uint8:
            return values.view(f"V{self._leaf.type_length}") if self._leaf.type_length else values
        return values

    @property
    def _num_items(self) -> int:
        return len(self.starts) if self.starts is not None else len(self._rows())

    @property
    def as_numbers(self) -> np.ndarray:
        """Values as a numeric array, for types that are numbers in NumPy."""
        values, leaf = self.values, self._leaf
        if leaf.physical == FIXED_LEN_BYTE_ARRAY:
            return values.view("<f2")
        if values.dtype.kind == "M":
            return values.view(np.int64)
        is_unsigned = leaf.logical is not None and leaf.logical.kind == "INTEGER" and not leaf.logical.signed
        return values.view("u4" if leaf.physical == INT32 else "u8") if is_unsigned else values

    def lengths(self) -> tuple[int, int | None, int | None]:
        """Return the bytes of all values, of the shortest and of the longest one."""
        if self.starts is None or self.ends is None or not len(self.starts):
            return 0, None, None
        lengths = self.ends - self.starts
        total = lengths.sum() if self.codes is None else lengths[self.codes].sum()
        return int(total), int(lengths.min()), int(lengths.max())

    def plain_values(self) -> Iterator[bytes]:
        """Yield each value as bytes; with codes, each entry."""
        if self.starts is None or self.ends is None:
            yield from (bytes(item) for item in self.values.tolist())
            return
        data = memoryview(np.ascontiguousarray(self.values))  # type: ignore[arg-type]
        for start, end in zip(self.starts.tolist(), self.ends.tolist(), strict=True):
            yield bytes(data[start:end])


def _is_numeric(leaf: Leaf, found: _NonNullValues) -> bool:
    return found.values.dtype.kind == "M" or key_domain(leaf).kind in ("signed", "unsigned", "boolean", "float")


def _key_bounds(leaf: Leaf, kind: ValueKind, found: _NonNullValues, keep: np.ndarray | None) -> tuple[Any, Any]:
    """Return the keys of the smallest and the largest value."""
    if not _is_numeric(leaf, found):
        return _byte_string_bounds(leaf, found)
    numbers = found.as_numbers if keep is None else found.as_numbers[keep]
    if not len(numbers):
        return None, None
    low, high = numbers.min().item(), numbers.max().item()
    if found.values.dtype.kind == "M" and np.datetime_data(found.values.dtype)[0] == "us":
        return low * _NS_OF_US, high * _NS_OF_US
    return (low, high) if kind.key_dtype != "float64" else (float(low), float(high))


def _byte_string_bounds(leaf: Leaf, found: _NonNullValues) -> tuple[Any, Any]:
    count = len(found.starts) if found.starts is not None else len(found.values)
    if not count:
        return None, None
    data = np.ascontiguousarray(found.values).view(np.uint8)
    pages = compute_page_bounds(
        leaf_order(leaf),
        data,
        np.array([0, count], np.int64),
        starts=_contiguous(found.starts),
        ends=_contiguous(found.ends),
    )
    key = key_domain(leaf).key
    low, high = pages.min_values[0], pages.max_values[0]
    return (None if low is None else key(low)), (None if high is None else key(high))


def _contiguous(places: np.ndarray | None) -> np.ndarray | None:
    return None if places is None else np.ascontiguousarray(places, np.int64)


def _is_sorted(leaf: Leaf, kind: ValueKind, found: _NonNullValues, keep: np.ndarray | None) -> bool:
    """Whether no value is less than the one before."""
    if _is_numeric(leaf, found):
        numbers = found.as_numbers if keep is None else found.as_numbers[keep]
        return bool((numbers[1:] >= numbers[:-1]).all())
    key = key_domain(leaf).key
    if found.codes is None:
        return all(one <= two for one, two in pairwise(map(key, found.plain_values())))
    ranks = _ranks([key(item) for item in found.plain_values()])[found.codes]
    return bool((ranks[1:] >= ranks[:-1]).all())


def _ranks(keys: Sequence[Any]) -> np.ndarray:
    """Return the rank of each key; equal keys share one."""
    ranks, rank = np.zeros(len(keys), np.int64), 0
    order = sorted(range(len(keys)), key=keys.__getitem__)
    for before, place in pairwise(order):
        rank += operator.ne(keys[before], keys[place])
        ranks[place] = rank
    return ranks


def summarize_chunk(
    file: OpenFile, leaf: Leaf, kind: ValueKind, row_group: int, verify_crc: bool, threads: int
) -> ChunkValueSummary:
    """Decode a column chunk and summarize its values.

    Raise ParquetError if the chunk is damaged or not supported.
    """
    with error_context(file=file.source.name, row_group=row_group, column=leaf.name):
        tables = ChunkTables(file.footer, [leaf], [row_group], file.footer_start, file.multi_file_source)
        num_rows = tables.num_rows(row_group)
        if not num_rows:
            return summarize_values(leaf, kind, _empty_values(leaf))
        plan = ReadPlan.read_all([leaf.name], [num_rows], *tables.byte_ranges([row_group]), [row_group])
        faults = page_quirks(file.footer.created_by)
        with WorkerPool(threads) as crew:
            context = ReadContext(
                file.reader, [leaf.name], crew, verify_crc and faults.has_checksums, ThreadScratch(), faults.bit_packed
            )
            with closing(context):
                asked = FilterColumns(context, tables, [leaf])
                values = asked.decode(plan[row_group], RowRanges.all(num_rows), [0])[leaf.index]
                return summarize_values(leaf, kind, values)


def _empty_values(leaf: Leaf) -> ColumnVector:
    """Return the values of a chunk without rows."""
    dtype = stored_output_type(leaf).dtype
    if leaf.physical == BYTE_ARRAY:
        return ColumnVector(np.zeros(0, np.uint8), np.zeros(1, np.int64))
    return ColumnVector(np.zeros(0, dtype))


def summarize_dictionary(
    file: OpenFile, leaf: Leaf, kind: ValueKind, row_group: int, first_page: int
) -> ChunkValueSummary | None:
    """Decode the dictionary of a chunk that is dictionary-encoded throughout, and summarize its entries.

    Return None if no dictionary page can be read alone; `first_page` is the offset of the first data page.
    """
    if not supports_dictionary(leaf):
        return None
    with error_context(file=file.source.name, row_group=row_group, column=leaf.name):
        tables = ChunkTables(file.footer, [leaf], [row_group], file.footer_start)
        starts, ends = tables.byte_ranges([row_group])
        start, end = int(starts[0, 0]), int(ends[0, 0])
        if not start < first_page < end:
            return None
        (piece,) = file.reader.read_modules(np.array([[start, first_page - start]], np.int64))
        found = decode_dictionary(piece, row_group, 0, leaf, tables)
        if found is None:
            return None
        flat = ColumnVector(found.values, found.offsets)
        return summarize_values(leaf, kind, flat, is_dictionary=True)
