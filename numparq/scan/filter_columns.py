"""Filter columns, decoded as stored values for the predicate and reused by the predicate cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from numparq.column.buffers import BinaryArray, DecodedColumn, DictionaryArray, concat_binary
from numparq.column.jobs.match_sink import FilterValues, MatchedRows, MatchSink
from numparq.column.jobs.predicate_cache import CachedBinary, CachedFixed
from numparq.column.jobs.schedule import TaskScheduler, decode_columns
from numparq.column.nested.levels import NestedLeaf
from numparq.column.read.chunk_table import ChunkTables
from numparq.column.read.context import ReadContext
from numparq.column.read.row_selection import RowSelection, RowSlices
from numparq.column.read.take import dictionary_decode
from numparq.column.scratch import Scratch
from numparq.errors import LimitError, UnsupportedError
from numparq.expr.evaluate import evaluate
from numparq.expr.expression import Expression
from numparq.expr.matchers.vectors import ColumnVector
from numparq.format.arrow_type import ArrowType
from numparq.format.physical_type import BOOLEAN, BYTE_ARRAY, DOUBLE, FIXED_LEN_BYTE_ARRAY, FLOAT, INT32, INT64, INT96
from numparq.format.schema import Leaf, leaf_ordinal
from numparq.kernels.tables import INT96_NS, INT96_US
from numparq.plan.row_group_plan import RowGroupPlan
from numparq.plan.row_ranges import RowRanges
from numparq.types.output_type import UTF8_KINDS, OutputType
from numparq.types.parquet_type import infer_arrow_type
from numparq.util.pluralize import pluralize

_DTYPES = {BOOLEAN: "u1", INT32: "i4", INT64: "i8", FLOAT: "f4", DOUBLE: "f8"}
_NO_TYPE = ArrowType("null")
_INT96_OUT_OF_RANGE = "no moments"  # `finish` of the type that follows microseconds: INT96 values that fit neither
_MAX_ENTRIES = 1 << 31  # positions are 32-bit


@lru_cache(maxsize=1024)
def stored_output_type(leaf: Leaf) -> OutputType:
    """Return the output type of a filter column: values as stored, INT96 as timestamps."""
    common: dict[str, Any] = {"array_kind": "", "type": _NO_TYPE, "physical": leaf.physical, "nested": leaf.is_nested}
    if leaf.physical == BYTE_ARRAY:
        # UTF-8 is checked while decoding, where an error can name the page.
        common["utf8"] = infer_arrow_type(leaf.physical, leaf.type_length, leaf.logical, None).kind in UTF8_KINDS
        storage = "binary" if leaf.is_nested else "dictionary"
        return OutputType(storage, dtype=None if leaf.is_nested else np.dtype("i4"), **common)
    common["nulls"] = "refuse" if leaf.is_nested else "mask"
    if leaf.physical == INT96:
        none = OutputType("null", **{**common, "array_kind": _INT96_OUT_OF_RANGE})
        coarse = OutputType("fixed", dtype=np.dtype("M8[us]"), conversion=INT96_US, on_inexact=none, **common)
        return OutputType("fixed", dtype=np.dtype("M8[ns]"), conversion=INT96_NS, on_inexact=coarse, **common)
    fixed = f"V{leaf.type_length or 0}" if leaf.physical == FIXED_LEN_BYTE_ARRAY else _DTYPES[leaf.physical]
    return OutputType("fixed", dtype=np.dtype(fixed), **common)


class FilterBuffers:
    """Memory that filter columns are decoded to: the thread's scratch, reused for each batch of row groups."""

    def __init__(self, leaves: Sequence[Leaf], num_rows: int, scratch: Scratch) -> None:
        nothing: list[Any] = [None] * len(leaves)
        self.num_rows = num_rows
        self.targets: list[OutputType] = nothing.copy()
        self.values: list[np.ndarray | None] = nothing.copy()
        self.validity: list[np.ndarray | None] = nothing.copy()
        self.blocks: list[np.ndarray] = []
        self.block_of: list[int | None] = nothing
        self.row_of: list[int | None] = nothing
        self._scratch = scratch
        self._leaves = leaves

    def reallocate(self, position: int, target: OutputType) -> None:
        """Set a column's output type; allocate buffers for flat columns of fixed storage.

        Raises UnsupportedError for INT96 values outside the range of microseconds.
        """
        self.targets[position] = target
        if target.array_kind == _INT96_OUT_OF_RANGE:
            message = "the column cannot be filtered: it has INT96 values outside the range of timestamps"
            raise UnsupportedError(message, column=self._leaves[position].name)
        if target.storage == "fixed" and target.dtype is not None and not target.nested:
            size = self.num_rows * target.dtype.itemsize
            self.values[position] = self._scratch.buffer(f"asked {position}", size)[:size].view(target.dtype)
            self.validity[position] = self._scratch.buffer(f"asked validity {position}", self.num_rows)[: self.num_rows]


def plain_output_type(leaf: Leaf) -> OutputType:
    """Return the output type of a filter column without dictionary codes."""
    target = stored_output_type(leaf)
    return target if target.storage != "dictionary" else replace(target, storage="binary", dtype=None)


def _match_values(step: Expression, leaf: Leaf, some: FilterValues, out: np.ndarray) -> None:
    """Write whether values match a predicate."""
    validity = np.zeros(len(out), np.uint8) if some.are_null else None
    vector = ColumnVector(
        some.values, some.offsets, validity, are_prefixed=some.are_prefixed, runs=some.runs, stored=some.dtype
    )
    evaluate(step, {leaf.index: vector}, len(out), out)


class FilterColumns:
    """Decoder of the filter columns; `leaves` are all columns read."""

    def __init__(self, context: ReadContext, chunk_tables: ChunkTables, leaves: Sequence[Leaf]) -> None:
        self._context = context
        self._tables = chunk_tables
        self._leaves = leaves

    def match(
        self, step: Expression, selections: list[RowSelection], positions: Sequence[int], num_projected: int
    ) -> tuple[np.ndarray, dict[int, ColumnVector], dict[int, CachedFixed | CachedBinary]]:
        """Return which rows match a predicate of the columns at `positions`, and their values.

        Several selections, whose output rows follow one another, need flat columns. The first `num_projected` leaves
        are projected.

        Returns
        -------
        answers : numpy.ndarray
            bool, one item a row.
        values : dict of int to ColumnVector
            The columns' values in all rows, by leaf ordinal; views of this thread's scratch, valid until it decodes
            again.
        matched : dict of int to CachedFixed or CachedBinary
            In place of them, the values that match of the one column, if it is projected: by its position.
        """
        leaf, rows = self._leaves[positions[0]], selections[0]
        is_whole = len(selections) == 1 and rows.row_ranges.count == rows.chunk_pages[0].num_rows
        if is_whole and len(positions) == 1 and not leaf.is_nested and leaf.physical != INT96:
            found = self._match_chunk(step, rows, positions[0], positions[0] < num_projected)
            return found.answers, {}, {positions[0]: join_values(found.values)} if found.values else {}
        values = {}
        for place, column in self._decode(selections, positions).items():
            values[self._leaves[place].index] = column_vector(self._leaves[place], column)
        last = selections[-1]
        return evaluate(step, values, last.out + last.row_ranges.count), values, {}

    def _match_chunk(self, step: Expression, rows: RowSelection, position: int, keeps_values: bool) -> MatchedRows:
        """Match all rows of a row group by the values of one column, where they are decompressed."""
        leaf, count = self._leaves[position], rows.row_ranges.count
        memory = FilterBuffers(self._leaves, count, self._context.local.get())
        memory.targets[position] = plain_output_type(leaf)
        scheduler = TaskScheduler(self._context, self._tables, self._leaves, memory)
        sink = MatchSink(memory.targets[position], partial(_match_values, step, leaf), keeps_values)
        scheduler.match_sink = sink
        scheduler.run(scheduler.build_tasks(RowSlices.single(rows.row_group, 0, count), [position]))
        found: MatchedRows = sink.arrays[0]
        return found

    def decode(self, group: RowGroupPlan, rows: RowRanges, positions: Sequence[int]) -> dict[int, ColumnVector]:
        """Decode rows (at least one) of the columns at `positions`; return vectors by leaf ordinal.

        The vectors are views of this thread's scratch, valid until it decodes again.
        """
        found = self._decode([RowSelection(group.ordinal, rows, 0, rows.count, group.chunks)], positions)
        return {self._leaves[place].index: column_vector(self._leaves[place], found[place]) for place in found}

    def _decode(self, selections: list[RowSelection], positions: Sequence[int]) -> dict[int, DecodedColumn]:
        last = selections[-1]
        num_rows = last.out + last.row_ranges.count
        memory = FilterBuffers(self._leaves, num_rows, self._context.local.get())
        context, tables, leaves = self._context, self._tables, self._leaves
        for place in positions:
            target = stored_output_type(leaves[place])
            # Several dictionaries would have to become one.
            if target.storage == "dictionary" and (
                len(selections) > 1 or not tables.has_dictionary(place, last.row_group)
            ):
                target = plain_output_type(leaves[place])
            memory.reallocate(place, target)
        if len(selections) == 1 and num_rows == last.chunk_pages[0].num_rows:
            selected = RowSlices.single(last.row_group, 0, num_rows)
        else:
            selected = RowSlices.of_selections(selections)
        scheduler = TaskScheduler(context, tables, leaves, memory)
        scheduler.splits_arrays = False
        return decode_columns(scheduler, memory, partial(iter, [selected]), positions)


def column_vector(leaf: Leaf, buffer: DecodedColumn) -> ColumnVector:
    """Return decoded values as the vector that `evaluate` takes."""
    if leaf.is_nested:
        return _nested_values(leaf, buffer.arrays)
    if buffer.values is not None:
        return ColumnVector(buffer.values, validity=buffer.validity if buffer.null_count else None)
    return _string_values(buffer.arrays)


def _string_values(pieces: list[BinaryArray | DictionaryArray]) -> ColumnVector:
    """Return the vector of strings: dictionary codes if all rows share one dictionary."""
    if len(pieces) == 1 and isinstance(pieces[0], DictionaryArray):
        coded = pieces[0]
        return ColumnVector(coded.dictionary.data, coded.dictionary.offsets, codes=coded.codes)
    one = concat_binary([_to_binary(piece) for piece in pieces])
    return ColumnVector(one.data, one.offsets, one.validity)


def _to_binary(piece: BinaryArray | DictionaryArray) -> BinaryArray:
    return piece if isinstance(piece, BinaryArray) else dictionary_decode(piece)


def join_values(pieces: Sequence[CachedFixed | BinaryArray | DictionaryArray]) -> CachedFixed | CachedBinary:
    """Join the values of matching rows; codes if all are of the chunk's one dictionary."""
    fixed = [piece for piece in pieces if isinstance(piece, CachedFixed)]
    if fixed:
        validity = None
        if any(piece.validity is not None for piece in fixed):
            ones = [
                np.ones(len(piece.values), np.uint8) if piece.validity is None else piece.validity for piece in fixed
            ]
            validity = np.concatenate(ones)
        return CachedFixed(np.concatenate([piece.values for piece in fixed]), validity)
    coded = [piece for piece in pieces if isinstance(piece, DictionaryArray)]
    if len(coded) == len(pieces):
        return CachedBinary(DictionaryArray(np.concatenate([piece.codes for piece in coded]), coded[0].dictionary))
    return CachedBinary(concat_binary([_to_binary(piece) for piece in pieces]))  # type: ignore[arg-type]


def _nested_values(leaf: Leaf, pieces: Sequence[NestedLeaf]) -> ColumnVector:
    """Return the vector of a nested leaf: dense values, placed by its levels."""
    (piece,) = pieces
    count = piece.num_entries
    if count >= _MAX_ENTRIES:
        raise LimitError(
            f"a row group has {pluralize(count, 'entry')} of the column; filters need fewer than {_MAX_ENTRIES:,}",
            column=leaf.name,
        )
    definition = np.zeros(count, np.uint8) if piece.definition is None else piece.definition[:count]
    there = definition == leaf.max_definition_level
    values = _dense_values(piece)
    if piece.repetition is None:
        codes = np.where(there, np.cumsum(there) - 1, -1).astype(np.int32)
        levels = {level: definition >= level for level in range(1, leaf.max_definition_level)}
        validity = None if there.all() else there
        return replace(values, codes=codes, levels=levels, validity=validity)
    starts = np.flatnonzero(piece.repetition[:count] == 0)
    before = np.concatenate([[0], np.cumsum(there)])
    heads = definition[starts]
    levels = {level: heads >= level for level in range(1, leaf.max_definition_level + 1)}
    return replace(values, list_offsets=before[np.append(starts, count)], levels=levels)


def _dense_values(piece: NestedLeaf) -> ColumnVector:
    if isinstance(piece.values, np.ndarray):
        return ColumnVector(piece.values)
    one = concat_binary([_to_binary(part) for part in piece.values])
    return ColumnVector(one.data, one.offsets)


def cacheable_values(leaf: Leaf, values: ColumnVector) -> CachedFixed | CachedBinary | None:
    """Return decoded filter values for the predicate cache, uncopied; None for nested and INT96 leaves."""
    if leaf.is_nested or leaf.physical == INT96:
        return None
    if leaf.physical != BYTE_ARRAY:
        return CachedFixed(values.values, values.validity)
    assert values.offsets is not None
    if values.codes is not None:
        return CachedBinary(DictionaryArray(values.codes, BinaryArray(values.offsets, values.values)))
    return CachedBinary(BinaryArray(values.offsets, values.values, values.validity))


def leaf_positions(leaves: Sequence[Leaf], asked: Sequence[Leaf]) -> Mapping[int, int]:
    """Return the position among all leaves read for each filter leaf, by leaf ordinal."""
    wanted = set(map(leaf_ordinal, asked))
    return {leaf.index: place for place, leaf in enumerate(leaves) if leaf.index in wanted}
