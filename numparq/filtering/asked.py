"""The columns that a filter asks, decoded as they are stored, for `numparq.predicate.evaluate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from ..arrow_schema import ArrowType
from ..column.buffer import BinaryPiece, ColumnBuffer, DictionaryPiece
from ..column.chunks import ChunkTables, RowSlice
from ..column.context import Context
from ..column.few import FewRows
from ..column.kept import KeptFixed, KeptStrings
from ..column.nested import NestedPiece
from ..column.rounds import decode_rounds
from ..column.scratch import Scratch
from ..column.selecting import SelectingMaker
from ..column.taking import entries_of
from ..column.wanted import WantedRows
from ..errors import LimitError, UnsupportedError
from ..kernels.tables import INT96_NS, INT96_US, SLACK
from ..logical import resolve
from ..plan.row_group_plan import RowGroupPlan
from ..plan.row_ranges import RowRanges
from ..predicate.evaluate import Values
from ..schema import BOOLEAN, BYTE_ARRAY, DOUBLE, FIXED_LEN_BYTE_ARRAY, FLOAT, INT32, INT64, INT96, Leaf, ordinal_of
from ..targets import UTF8_KINDS, Target

__all__ = ["AskedColumns", "kept", "ordinals"]

_DTYPES = {BOOLEAN: "u1", INT32: "i4", INT64: "i8", FLOAT: "f4", DOUBLE: "f8"}
_NO_TYPE = ArrowType("null")
_NO_MOMENTS = "no moments"  # what is left to try of INT96 values that do not fit microseconds
_MOST_ENTRIES = 1 << 31  # which places of 32 bits can tell apart


@lru_cache(maxsize=1024)
def stored_target(leaf: Leaf) -> Target:
    """Choose how a leaf is decoded to be tested: as its values are stored, INT96 as moments.

    Parameters
    ----------
    leaf : Leaf
        The column, or what is within one.

    Returns
    -------
    Target
    """
    common: dict[str, Any] = {"finish": "", "type": _NO_TYPE, "physical": leaf.physical, "nested": leaf.is_nested}
    if leaf.physical == BYTE_ARRAY:
        # Strings are checked here, where it is known which page they are of.
        common["utf8"] = resolve(leaf.physical, leaf.type_length, leaf.logical, None).kind in UTF8_KINDS
        storage = "binary" if leaf.is_nested else "dictionary"
        return Target(storage, dtype=None if leaf.is_nested else np.dtype("i4"), **common)
    common["nulls"] = "refuse" if leaf.is_nested else "mask"
    if leaf.physical == INT96:
        none = Target("null", **{**common, "finish": _NO_MOMENTS})
        coarse = Target("fixed", dtype=np.dtype("M8[us]"), conversion=INT96_US, on_inexact=none, **common)
        return Target("fixed", dtype=np.dtype("M8[ns]"), conversion=INT96_NS, on_inexact=coarse, **common)
    fixed = f"V{leaf.type_length or 0}" if leaf.physical == FIXED_LEN_BYTE_ARRAY else _DTYPES[leaf.physical]
    return Target("fixed", dtype=np.dtype(fixed), **common)


@dataclass
class _Memory:
    """The memory that the columns asked are decoded to: buffers of the thread, used again for each row group."""

    num_rows: int
    targets: list[Target]
    values: list[np.ndarray | None]
    validity: list[np.ndarray | None]
    blocks: list[np.ndarray]
    block_of: list[int | None]
    row_of: list[int | None]
    scratch: Scratch
    leaves: Sequence[Leaf]

    @classmethod
    def of(cls, leaves: Sequence[Leaf], num_rows: int, scratch: Scratch) -> _Memory:
        nothing: list[Any] = [None] * len(leaves)
        return cls(num_rows, nothing.copy(), nothing.copy(), nothing.copy(), [], nothing, nothing, scratch, leaves)

    def replace(self, position: int, target: Target) -> None:
        """Find room for a column, if it is of fixed storage and not nested."""
        self.targets[position] = target
        if target.finish == _NO_MOMENTS:
            message = "there are INT96 values that are no timestamps: the column cannot be filtered by"
            raise UnsupportedError(message, column=self.leaves[position].name)
        if target.storage == "fixed" and target.dtype is not None and not target.nested:
            size = self.num_rows * target.dtype.itemsize
            self.values[position] = self.scratch.take(f"asked {position}", size)[:size].view(target.dtype)
            self.validity[position] = self.scratch.take(f"asked validity {position}", self.num_rows)[: self.num_rows]


class _InOnePiece(SelectingMaker):
    """Makes jobs that give the strings, or the nested values, of a row group in one piece."""

    def _parts(self, column: int, rows: WantedRows, parts: int) -> int:
        return super()._parts(column, rows, parts) if self._memory.values[column] is not None else 1


class AskedColumns:
    """Decodes the leaves that a filter asks.

    Parameters
    ----------
    context : Context
        Of the read.
    tables : ChunkTables
        The chunks of all columns read.
    leaves : sequence of Leaf
        All columns read.
    """

    def __init__(self, context: Context, tables: ChunkTables, leaves: Sequence[Leaf]) -> None:
        self._context = context
        self._tables = tables
        self._leaves = leaves

    def values(self, group: RowGroupPlan, rows: RowRanges, places: Sequence[int]) -> dict[int, Values]:
        """Decode some columns in some rows of a row group.

        Parameters
        ----------
        group : RowGroupPlan
            The row group; where its pages are.
        rows : RowRanges
            The rows, within the row group; at least one.
        places : sequence of int
            The columns: positions among all that are read.

        Returns
        -------
        dict of int to Values
            By the ordinals of the leaves. What is in them lasts until this thread decodes again.
        """
        memory = _Memory.of(self._leaves, rows.count, self._context.scratch)
        for place in places:
            memory.replace(place, self._target(place, group.ordinal))
        context, tables, leaves = self._context, self._tables, self._leaves
        part: WantedRows | RowSlice
        if rows.count == group.num_rows:
            part, found = RowSlice(group.ordinal, 0, group.num_rows, 0), {}
        else:
            part = WantedRows(group.ordinal, rows, 0, group.chunks)
            few = FewRows(context, tables, leaves, memory, part)
            found = {} if context.source.is_remote else few.decode(places)
        if len(found) < len(places):
            left = [place for place in places if place not in found]
            found |= decode_rounds(_InOnePiece(context, tables, leaves, memory), memory, lambda: [[part]], left)
        return {leaves[place].index: _made(leaves[place], buffer) for place, buffer in found.items()}

    def _target(self, place: int, row_group: int) -> Target:
        """Choose how a column is decoded: without a dictionary there are no codes, and they are not tried."""
        target = stored_target(self._leaves[place])
        has_codes = target.storage == "dictionary" and self._tables.has_dictionary(place, row_group)
        return target if has_codes or target.storage != "dictionary" else replace(target, storage="binary", dtype=None)


def _made(leaf: Leaf, buffer: ColumnBuffer) -> Values:
    """Make of what a leaf was decoded to what `evaluate` takes."""
    if leaf.is_nested:
        return _nested(leaf, buffer.pieces)
    if buffer.values is not None:
        return Values(buffer.values, validity=buffer.validity if buffer.null_count else None)
    return _strings(buffer.pieces)


def _strings(pieces: list[BinaryPiece | DictionaryPiece]) -> Values:
    """Make them of strings: of codes, where all rows have codes of one dictionary."""
    if len(pieces) == 1 and isinstance(pieces[0], DictionaryPiece):
        coded = pieces[0]
        return Values(coded.dictionary.data, coded.dictionary.offsets, codes=coded.codes)
    one = joined([_plain(piece) for piece in pieces])
    return Values(one.data, one.offsets, one.validity)


def _plain(piece: BinaryPiece | DictionaryPiece) -> BinaryPiece:
    return piece if isinstance(piece, BinaryPiece) else entries_of(piece)


def joined(pieces: Sequence[BinaryPiece]) -> BinaryPiece:
    """Put pieces one behind the other.

    Parameters
    ----------
    pieces : sequence of BinaryPiece
        Any number.

    Returns
    -------
    BinaryPiece
    """
    if len(pieces) == 1:
        return pieces[0]
    sizes = [int(piece.offsets[-1]) for piece in pieces]
    moved = np.cumsum([0, *sizes])
    data = np.empty(int(moved[-1]) + SLACK, np.uint8)
    offsets = [np.zeros(1, np.int64)]
    for piece, size, start in zip(pieces, sizes, moved.tolist(), strict=False):
        data[start : start + size] = piece.data[:size]
        offsets.append(piece.offsets[1:] + start)
    validity = None
    if any(piece.validity is not None for piece in pieces):
        parts = [np.ones(len(piece), np.uint8) if piece.validity is None else piece.validity[: len(piece)]
                 for piece in pieces]  # fmt: skip
        validity = np.concatenate(parts)
    return BinaryPiece(np.concatenate(offsets), data, validity)


def _nested(leaf: Leaf, pieces: Sequence[NestedPiece]) -> Values:
    """Make them of a leaf of structs or lists: its values dense, and by its levels where they belong."""
    (piece,) = pieces
    count = piece.num_entries
    if count >= _MOST_ENTRIES:
        raise LimitError(f"there are {count:,} entries in a row group, too many to be filtered by", column=leaf.name)
    definition = np.zeros(count, np.uint8) if piece.definition is None else piece.definition[:count]
    there = definition == leaf.max_definition_level
    values = _dense(piece)
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


def _dense(piece: NestedPiece) -> Values:
    if isinstance(piece.values, np.ndarray):
        return Values(piece.values)
    if not piece.values:
        return Values(np.zeros(SLACK, np.uint8), np.zeros(1, np.int64))
    one = joined([_plain(part) for part in piece.values])
    return Values(one.data, one.offsets)


def kept(leaf: Leaf, values: Values) -> KeptFixed | KeptStrings | None:
    """Give what was decoded of a leaf as values to be kept; None where they are not as they are stored.

    Parameters
    ----------
    leaf : Leaf
        The leaf.
    values : Values
        As `AskedColumns.values` gives them; nothing is copied.
    """
    if leaf.is_nested or leaf.physical == INT96:
        return None
    if leaf.physical != BYTE_ARRAY:
        return KeptFixed(values.values, values.validity)
    assert values.offsets is not None
    if values.codes is not None:
        return KeptStrings(DictionaryPiece(values.codes, BinaryPiece(values.offsets, values.values)))
    return KeptStrings(BinaryPiece(values.offsets, values.values, values.validity))


def ordinals(leaves: Sequence[Leaf], asked: Sequence[Leaf]) -> Mapping[int, int]:
    """Give for each leaf asked, by its ordinal, the position among all leaves that are read."""
    wanted = set(map(ordinal_of, asked))
    return {leaf.index: place for place, leaf in enumerate(leaves) if leaf.index in wanted}
