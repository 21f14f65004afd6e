"""Rows of a store: one a file, its cells as PLAIN values, built from summaries of the file's columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from numparq.column.buffers import BinaryArray
from numparq.errors import ParquetError, SchemaError, UnsupportedError
from numparq.expr.sort_keys import key_domain
from numparq.format.open_file import OpenFile
from numparq.format.physical_type import BYTE_ARRAY, DOUBLE, FLOAT
from numparq.format.schema import Leaf

from .cell_types import CellType, Conversion, cell_type, nan_of, with_one_zero
from .indexes.definitions import BloomFilter, GapList, IndexDefinition, MinMax, PrefixList, SuffixList, ValueList
from .own_metadata import FileColumnsRecord
from .spark_bloom import build_cell, hash_integers, hash_texts
from .summary.summarize import ColumnSummary, Wish, summarize_file, summarize_files

_EVERY = 1 << 40  # no limit of distinct values
BLOOM_TYPES = ("byte", "short", "integer", "long", "string")
_SUPPLEMENTARY, _PRIVATE = 0xF0, 0xEE

BoundsCell = tuple[bytes | None, bytes | None]
Cell = BoundsCell | list[bytes] | list[tuple[bytes, bytes]] | bytes | None


@dataclass
class StoreRow:
    """Row of a store.

    Attributes
    ----------
    object_name : str
        Id of the file.
    partitions : dict of str to (bytes or None)
        PLAIN values of the partition columns.
    cells : list
        One for each index: of MinMax both bounds, None for none; of ValueList PLAIN values; of BloomFilter bytes.
    columns : FileColumnsRecord or None
        Columns of the file, if they are known.
    """

    object_name: str
    partitions: dict[str, bytes | None] = field(default_factory=dict)
    cells: list[Cell] = field(default_factory=list)
    columns: FileColumnsRecord | None = None

    @property
    def num_bytes(self) -> int:
        """Approximate size."""
        return len(self.object_name) + sum(map(_cell_bytes, self.cells))


def _cell_bytes(cell: Cell) -> int:
    if isinstance(cell, bytes):
        return len(cell)
    return sum((2 * len(each[0]) if isinstance(each, tuple) else len(each or b"")) + 4 for each in cell or ())


class RowBuilder:
    """Builds the cells of files."""

    def __init__(self, definitions: Sequence[IndexDefinition]) -> None:
        self._definitions = definitions

    def summarize(self, files: Sequence[OpenFile]) -> list[dict[int, ColumnSummary] | ParquetError | OSError]:
        """Return the summaries that `build` needs of each file, or why there are none."""
        wishes: list[dict[int, Wish]] = []
        for file in files:
            try:
                wishes.append(self._wishes(self._leaves(file)))
            except ParquetError:  # `build` raises it
                wishes.append({})
        return summarize_files(files, wishes)

    def build(
        self, file: OpenFile, summaries: dict[int, ColumnSummary] | ParquetError | OSError
    ) -> tuple[list[Cell], list[CellType | None]]:
        """Return the cells of a file and the type of each index's values, None if the file lacks the column.

        Raises ParquetError if it cannot be read, or its values not be kept.
        """
        leaves = self._leaves(file)
        if isinstance(summaries, Exception):
            raise summaries
        cells: list[Cell] = []
        types: list[CellType | None] = []
        for definition, leaf in zip(self._definitions, leaves, strict=True):
            kind, cell = self._cell(file, definition, leaf, None if leaf is None else summaries[leaf.index])
            cells.append(cell)
            types.append(kind)
        return cells, types

    def _leaves(self, file: OpenFile) -> list[Leaf | None]:
        return [find_leaf(file, each.column) for each in self._definitions]

    def _wishes(self, leaves: Sequence[Leaf | None]) -> dict[int, Wish]:
        wishes: dict[int, Wish] = {}
        for definition, leaf in zip(self._definitions, leaves, strict=True):
            if leaf is None:
                continue
            known = wishes.get(leaf.index, Wish(bounds=False))
            has_bounds = known.bounds or isinstance(definition, MinMax)
            most = known.max_distinct if isinstance(definition, MinMax) else _EVERY
            wishes[leaf.index] = Wish(has_bounds, most)
        return wishes

    def _cell(
        self, file: OpenFile, definition: IndexDefinition, leaf: Leaf | None, summary: ColumnSummary | None
    ) -> tuple[CellType | None, Cell]:
        if leaf is None or summary is None:
            return None, _absent(definition)
        kind, convert = cell_type(leaf)
        if leaf.rebase is not None:
            raise UnsupportedError("values of Spark's legacy calendar have no place in a store", column=leaf.name)
        if isinstance(definition, MinMax):
            return kind, _bounds(file, leaf, summary, kind, convert)
        values = _plain_values(leaf, summary)
        if isinstance(definition, ValueList):
            return kind, _value_list(leaf, values, kind, convert)
        if isinstance(definition, GapList):
            return kind, _gap_list(leaf, values, kind, convert, definition.gaps)
        if isinstance(definition, PrefixList):
            return kind, _affix_list(leaf, values, kind, definition)
        if kind.spark not in BLOOM_TYPES:
            return kind, None  # says nothing
        items = [converted for value in values if (converted := convert(value)) is not None]
        return kind, _bloom_filter(definition, kind, items)


def _absent(definition: IndexDefinition) -> Cell:
    """Return the cell of a file without the column: it has only nulls."""
    if isinstance(definition, MinMax):
        return None, None
    if isinstance(definition, BloomFilter):
        return build_cell(hash_texts([]), definition.ndv or 1, definition.fpp)
    return []


def find_leaf(file: OpenFile, column: str) -> Leaf | None:
    """Return the leaf of a column, named regardless of case; None if the file has none.

    Raises SchemaError if two are named so, or it is not one value a row.
    """
    schema = file.schema
    key = column.lower()
    top = key.partition(".")[0]
    leaves = []
    for name, position in schema.positions.items():
        if name.lower() not in (top, key):
            continue
        if "." in name:
            raise SchemaError("a data-skipping store has no columns with dots in their names", column=name)
        leaves += [leaf for leaf in map(schema.leaf, schema.column_leaves(position)) if leaf.name.lower() == key]
    if len(leaves) > 1:
        raise SchemaError(f"several columns are named {column!r}, regardless of case", column=column)
    if leaves and leaves[0].max_repetition_level:
        raise SchemaError("a data-skipping store has no columns inside lists", column=column)
    return leaves[0] if leaves else None


# --- cells ------------------------------------------------------------------------------------------------------------


def _bounds(file: OpenFile, leaf: Leaf, summary: ColumnSummary, kind: CellType, convert: Conversion) -> BoundsCell:
    """Return both bounds; a NaN is the greatest value, as Spark orders it."""
    if not summary.has_values:
        return None, None
    low, high = summary.low, summary.high
    if kind.spark == "string" and low is not None and high is not None:
        low, high = _java_bounds(file, leaf, low, high)
    first = None if low is None else convert(low)
    last = None if high is None else convert(high)
    is_float = kind.physical in (FLOAT, DOUBLE)
    if is_float and summary.has_nans is not False:
        nan = nan_of(kind)
        return nan if low is None else first, nan
    if first is None or last is None:
        raise UnsupportedError("the least and the greatest value cannot be kept in a store", column=leaf.name)
    return first, last


def _java_bounds(file: OpenFile, leaf: Leaf, low: bytes, high: bytes) -> tuple[bytes, bytes]:
    """Return bounds in Java's order of strings, by UTF-16 units, which other readers compare by.

    It differs from the order of bytes only for characters beyond U+FFFF beside those from U+E000 on.
    """
    if max(high, default=0) < _SUPPLEMENTARY and max(low, default=0) < _PRIVATE:
        return low, high
    summary = summarize_file(file, {leaf.index: Wish(bounds=False, max_distinct=_EVERY)})[leaf.index]
    texts = [value.decode() for value in _plain_values(leaf, summary)]
    ordered = [min(texts, key=_utf16), max(texts, key=_utf16)]
    return ordered[0].encode(), ordered[1].encode()


def _utf16(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")


def _plain_values(leaf: Leaf, summary: ColumnSummary) -> list[bytes]:
    """Return distinct values as PLAIN bytes."""
    values = summary.values
    if values is None:
        raise UnsupportedError("the distinct values cannot be kept in a store", column=leaf.name)
    if isinstance(values, BinaryArray):
        data, offsets = values.data.tobytes(), values.offsets.tolist()
        return [data[start:end] for start, end in pairwise(offsets)]
    data, width = np.ascontiguousarray(values).tobytes(), values.dtype.itemsize
    return [data[at : at + width] for at in range(0, len(data), width)]


def _value_list(leaf: Leaf, values: Sequence[bytes], kind: CellType, convert: Conversion) -> list[bytes]:
    plain: dict[bytes, None] = {}
    for value in values:
        converted = convert(value)
        if converted is None:
            raise UnsupportedError("a value cannot be kept in a store", column=leaf.name)
        plain[with_one_zero(converted) if kind.physical in (FLOAT, DOUBLE) else converted] = None
    return list(plain)


def _gap_list(
    leaf: Leaf, values: Sequence[bytes], kind: CellType, convert: Conversion, gaps: int
) -> list[tuple[bytes, bytes]]:
    """Return intervals that hold all values, between the largest gaps; NaNs have one of their own."""
    domain = key_domain(leaf)
    if kind.physical == BYTE_ARRAY:
        raise UnsupportedError("a gap list holds numbers and times, not strings", column=leaf.name)
    converted = {}
    for value in values:
        plain = convert(value)
        if plain is None:
            raise UnsupportedError("a value cannot be kept in a store", column=leaf.name)
        converted[domain.key(value)] = plain
    keys = sorted(key for key in converted if not domain.is_float or domain.low <= key < domain.high)
    nan = [] if len(keys) == len(converted) else [(nan_of(kind), nan_of(kind))]
    widest = sorted(range(1, len(keys)), key=lambda at: keys[at - 1] - keys[at])[:gaps]
    cuts = [0, *sorted(widest), len(keys)]
    ends = [(converted[keys[start]], converted[keys[end - 1]]) for start, end in pairwise(cuts) if start < end]
    return ends + nan


def _affix_list(leaf: Leaf, values: Sequence[bytes], kind: CellType, definition: PrefixList) -> list[bytes]:
    """Return the first or last characters of all strings."""
    if kind.spark != "string":
        raise UnsupportedError(f"prefixes and suffixes are of strings, not of {kind.spark}", column=leaf.name)
    chosen = slice(-definition.length, None) if isinstance(definition, SuffixList) else slice(definition.length)
    return sorted({value.decode()[chosen].encode() for value in values})


def _bloom_filter(definition: BloomFilter, kind: CellType, items: Sequence[bytes]) -> bytes:
    if kind.physical == BYTE_ARRAY:
        hashes = hash_texts(items)
    else:
        hashes = hash_integers(np.frombuffer(b"".join(items), f"<i{4 if len(items) and len(items[0]) == 4 else 8}"))
    return build_cell(hashes, definition.ndv or max(len(items), 1), definition.fpp)


def common_type(types: Sequence[CellType]) -> CellType:
    """Return the type that most files have."""
    counts: dict[CellType, int] = {}
    for kind in types:
        counts[kind] = counts.get(kind, 0) + 1
    return max(counts, key=lambda kind: counts[kind])
