"""Values of a column chunk or entries of its dictionary, decoded: counts, bounds, order, distinct values."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from numparq.column.buffers import BinaryArray
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
from numparq.prune.dictionary_page import (
    decode_dictionary,
    first_data_pages,
    is_fully_dictionary_encoded,
    supports_dictionary,
)
from numparq.prune.key_intervals import NUMERIC_KINDS
from numparq.scan.filter_columns import FilterColumns, stored_output_type
from numparq.util.worker_pool import WorkerPool

from .distinct import DistinctSketch, hash_stored_values
from .distinct_values import distinct_numbers, distinct_strings
from .value_kind import value_kind

_NS_OF_US = 1000


class ReadOptions(NamedTuple):
    """Whether to verify page checksums, and the number of threads that decode a column chunk."""

    verify_crc: bool = True
    threads: int = 1


class ChunkValues:
    """Non-null values of a column chunk, or the entries of its dictionary; each property is computed when it is used.

    The arrays may be views of the thread's scratch, valid until it decodes again.

    Attributes
    ----------
    source : str
        ``"footer"`` for bounds that are all values, ``"dictionary"`` or ``"data"``.
    count : int
        Number of non-null values, or of entries.
    values : numpy.ndarray
        Values as stored, FIXED_LEN_BYTE_ARRAY as ``V{n}``, INT96 as timestamps; for BYTE_ARRAY uint8, the bytes.
    starts, ends : int64 array or None
        Where each BYTE_ARRAY value lies in the bytes; with `codes`, each dictionary entry that is used.
    codes : int array or None
        Entry of each value.
    """

    def __init__(self, leaf: Leaf, vector: ColumnVector, source: str = "data") -> None:
        self.leaf, self.source, self.values = leaf, source, vector.values
        self.codes: np.ndarray | None = None
        self.starts: np.ndarray | None = None
        self.ends: np.ndarray | None = None
        is_binary = leaf.physical == BYTE_ARRAY
        if is_binary:
            assert vector.offsets is not None
            offsets = np.ascontiguousarray(vector.offsets, np.int64)
            self.starts, self.ends = offsets[:-1], offsets[1:]
        if leaf.is_nested or source != "data":  # stored without nulls
            pass
        elif vector.codes is not None:
            self._drop_unused_entries(vector.codes)
        elif vector.validity is not None:
            self._drop_nulls(vector.validity)
        if not is_binary:
            self.values = np.ascontiguousarray(self._rows()).reshape(-1)
        if leaf.rebase is not None:
            self.values = self.values.copy()
            leaf.rebase.apply(self.values)
        self.count = self._num_items if self.codes is None else len(self.codes)

    @classmethod
    def from_bounds(cls, leaf: Leaf, bounds: Sequence[bytes]) -> ChunkValues:
        """Return the values of a chunk whose PLAIN bounds are all of them."""
        data = np.frombuffer(b"".join(bounds), np.uint8)
        if leaf.physical == BYTE_ARRAY:
            offsets = np.cumsum([0, *map(len, bounds)])
            return cls(leaf, ColumnVector(data, offsets), "footer")
        return cls(leaf, ColumnVector(data.view(_stored_dtype(leaf))), "footer")

    def _drop_unused_entries(self, codes: np.ndarray) -> None:
        """Keep the entries that codes refer to, and renumber the codes."""
        assert self.starts is not None
        assert self.ends is not None
        named = np.bincount(codes[codes >= 0], minlength=len(self.starts)) > 0
        self.codes = (np.cumsum(named) - 1)[codes[codes >= 0]]
        self.starts, self.ends = np.ascontiguousarray(self.starts[named]), np.ascontiguousarray(self.ends[named])

    def _drop_nulls(self, validity: np.ndarray) -> None:
        valid = np.asarray(validity[: self._num_items], np.bool_)
        if self.starts is None or self.ends is None:
            self.values = self._rows()[valid]
        else:
            self.starts, self.ends = np.ascontiguousarray(self.starts[valid]), np.ascontiguousarray(self.ends[valid])

    def _rows(self) -> np.ndarray:
        """Return fixed-size values as an array with one item each."""
        if self.leaf.physical == FIXED_LEN_BYTE_ARRAY and self.values.dtype == np.uint8 and self.leaf.type_length:
            return self.values.view(f"V{self.leaf.type_length}")
        return self.values

    @property
    def _num_items(self) -> int:
        return len(self._rows()) if self.starts is None else len(self.starts)

    # --- numbers -----------------------------------------------------------------------------------------------------

    @cached_property
    def has_order(self) -> bool:
        """Whether the values have bounds; INT96 have some as timestamps."""
        return self.values.dtype.kind == "M" or leaf_order(self.leaf).kind != "none"

    @cached_property
    def _is_numeric(self) -> bool:
        return self.values.dtype.kind == "M" or key_domain(self.leaf).kind in NUMERIC_KINDS

    @cached_property
    def _numbers(self) -> np.ndarray:
        """Values as a numeric array, for types that are numbers in NumPy."""
        values, leaf = self.values, self.leaf
        if leaf.physical == FIXED_LEN_BYTE_ARRAY:
            return values.view("<f2")
        if values.dtype.kind == "M":
            return values.view(np.int64)
        is_unsigned = leaf.logical is not None and leaf.logical.kind == "INTEGER" and not leaf.logical.signed
        return values.view("u4" if leaf.physical == INT32 else "u8") if is_unsigned else values

    @cached_property
    def _is_nan(self) -> np.ndarray | None:
        """Mask of NaNs; None without any."""
        if not key_domain(self.leaf).is_float:
            return None
        are_nan: np.ndarray = np.isnan(self._numbers)
        return are_nan if are_nan.any() else None

    @property
    def nan_count(self) -> int:
        """Number of NaNs."""
        return 0 if self._is_nan is None else int(self._is_nan.sum())

    @cached_property
    def _ordered_numbers(self) -> np.ndarray:
        return self._numbers if self._is_nan is None else self._numbers[~self._is_nan]

    # --- bounds and order --------------------------------------------------------------------------------------------

    @cached_property
    def bounds(self) -> tuple[Any, Any] | None:
        """Keys of the smallest and the largest value; None without values other than NaN, or without an order."""
        if not self.has_order:
            return None
        if not self._is_numeric:
            return self._byte_string_bounds()
        numbers = self._ordered_numbers
        if not len(numbers):
            return None
        low, high = numbers.min().item(), numbers.max().item()
        if self.values.dtype.kind == "M" and np.datetime_data(self.values.dtype)[0] == "us":
            return low * _NS_OF_US, high * _NS_OF_US
        if key_domain(self.leaf).is_float:
            return float(low) or -0.0, float(high) or 0.0
        return low, high

    def _byte_string_bounds(self) -> tuple[Any, Any] | None:
        if not self._num_items:
            return None
        data, pages = self.values.view(np.uint8), np.array([0, self._num_items], np.int64)
        bounds = compute_page_bounds(leaf_order(self.leaf), data, pages, starts=self.starts, ends=self.ends)
        low, high = bounds.min_values[0], bounds.max_values[0]
        key = key_domain(self.leaf).key
        return None if low is None or high is None else (key(low), key(high))

    @property
    def is_sorted(self) -> bool | None:
        """Whether no value is less than the one before; None for lists, dictionaries, and types without order."""
        if self.source != "data" or self.leaf.max_repetition_level or not self.has_order:
            return None
        if self._is_numeric:
            numbers = self._ordered_numbers
            return bool((numbers[1:] >= numbers[:-1]).all())
        keys = map(key_domain(self.leaf).key, self.to_bytes())
        if self.codes is None:
            return all(one <= two for one, two in pairwise(keys))  # up to the first that is not
        ranks = _ranks(list(keys))[self.codes]
        return bool((ranks[1:] >= ranks[:-1]).all())

    def lengths(self) -> tuple[int, int | None, int | None]:
        """Return the bytes of all BYTE_ARRAY values, of the shortest and of the longest one."""
        if self.starts is None or self.ends is None or not len(self.starts):
            return 0, None, None
        lengths = self.ends - self.starts
        total = lengths.sum() if self.codes is None else lengths[self.codes].sum()
        return int(total), int(lengths.min()), int(lengths.max())

    def to_bytes(self) -> Iterator[bytes]:
        """Yield each value as bytes; with codes, each entry."""
        if self.starts is None or self.ends is None:
            yield from (bytes(item) for item in self.values.tolist())
            return
        data = memoryview(np.ascontiguousarray(self.values))  # type: ignore[arg-type]
        for start, end in zip(self.starts.tolist(), self.ends.tolist(), strict=True):
            yield bytes(data[start:end])

    # --- distinct values ---------------------------------------------------------------------------------------------

    def sketch(self) -> DistinctSketch:
        """Return the sketch of the distinct values without NaNs."""
        values = self.values if self._is_nan is None else self._ordered_numbers.view(self.values.dtype)
        return DistinctSketch.from_hashes(
            hash_stored_values(self.leaf, value_kind(self.leaf), values, self.starts, self.ends)
        )

    def distinct(self, most: int) -> np.ndarray | BinaryArray | None:
        """Return the distinct values as `distinct_numbers` or `distinct_strings` does; None if more than `most`."""
        if self.starts is None or self.ends is None:
            return distinct_numbers(self.values, most)
        return distinct_strings(self.values, self.starts, self.ends, most)


def _ranks(keys: Sequence[Any]) -> np.ndarray:
    """Return the rank of each key; equal keys share one."""
    ranks, rank = np.zeros(len(keys), np.int64), 0
    order = sorted(range(len(keys)), key=keys.__getitem__)
    for before, position in pairwise(order):
        rank += operator.ne(keys[before], keys[position])
        ranks[position] = rank
    return ranks


def read_chunk(file: OpenFile, leaf: Leaf, row_group: int, options: ReadOptions) -> ChunkValues:
    """Decode a column chunk; raise ParquetError if it is damaged or not supported."""
    with error_context(file=file.source.name, row_group=row_group, column=leaf.name):
        tables = ChunkTables(file.footer, [leaf], [row_group], _data_end(file), file.multi_file_source)
        num_rows = tables.num_rows(row_group)
        if not num_rows:
            return empty_values(leaf)
        plan = ReadPlan.read_all([leaf.name], [num_rows], *tables.byte_ranges([row_group]), [row_group])
        quirks = page_quirks(file.footer.created_by)
        verify_crc = options.verify_crc and quirks.has_checksums
        with WorkerPool(options.threads) as pool:
            context = ReadContext(file.reader, [leaf.name], pool, verify_crc, ThreadScratch(), quirks.bit_packed)
            with closing(context):
                columns = FilterColumns(context, tables, [leaf])
                return ChunkValues(leaf, columns.decode(plan[row_group], RowRanges.all(num_rows), [0])[leaf.index])


def _data_end(file: OpenFile) -> int | np.ndarray:
    """Return the end of the file's data; of joined files, the bounds of each."""
    return file.footer_start if file.footer.data_bounds is None else file.footer.data_bounds


def empty_values(leaf: Leaf) -> ChunkValues:
    """Return the values of a chunk without any."""
    if leaf.physical == BYTE_ARRAY:
        return ChunkValues(leaf, ColumnVector(np.zeros(0, np.uint8), np.zeros(1, np.int64)))
    return ChunkValues(leaf, ColumnVector(np.zeros(0, _stored_dtype(leaf))))


def _stored_dtype(leaf: Leaf) -> np.dtype:
    dtype = stored_output_type(leaf).dtype
    assert dtype is not None
    return dtype


def read_dictionary(file: OpenFile, leaf: Leaf, row_group: int) -> ChunkValues | None:
    """Decode the dictionary of a chunk whose data pages all have indices, by the footer; None if there is none.

    Writers may keep entries that no row has.
    """
    if not supports_dictionary(leaf) or not is_fully_dictionary_encoded(file, row_group, leaf):
        return None
    first_page = first_data_pages(file, [row_group], leaf).get(row_group)
    with error_context(file=file.source.name, row_group=row_group, column=leaf.name):
        tables = ChunkTables(file.footer, [leaf], [row_group], _data_end(file))
        starts, ends = tables.byte_ranges([row_group])
        start, end = int(starts[0, 0]), int(ends[0, 0])
        if first_page is None or not start < first_page < end:
            return None
        (page,) = file.reader.read_modules(np.array([[start, first_page - start]], np.int64))
        vector = decode_dictionary(page, row_group, 0, leaf, tables)
        return None if vector is None else ChunkValues(leaf, vector, "dictionary")
