"""Leaves that a file casts: decoded as its own types into memory of their own, then cast into rows of the frame's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from numparq.column.buffers import BinaryArray, DecodedColumn, concat_binary
from numparq.column.nested.arrays import StructArray, assemble
from numparq.column.nested.levels import NestedLeaf, concat_leaves
from numparq.errors import InvalidFileError, SchemaError, error_context
from numparq.format.arrow_type import ArrowType
from numparq.format.schema import Leaf
from numparq.to_pandas.dictionary import from_byte_strings
from numparq.to_pandas.frame import BlockLayout, allocate_blocks
from numparq.to_pandas.leaf import add_null_slots
from numparq.types.common_type import describe_type
from numparq.types.output_type import OutputType

from .cast_values import LeafValues, cast_values
from .leaf_casts import LeafCast
from .source_types import UnfitValues

if TYPE_CHECKING:
    from .file_reader import FileReader
    from .recovery.lost_rows import LostPiece

_NOTHING = OutputType("null", "nulls", ArrowType("null"))


class CastMemory:
    """Casts the leaves of a file into rows of a frame's memory, from row `first` on.

    Attributes
    ----------
    columns : dict of int to DecodedColumn
        What the file adds to the projected leaves that it casts.
    unfit : list of UnfitValues
        Values that do not fit; an error unless their rows are dropped.
    """

    def __init__(self, reader: FileReader, layout: BlockLayout, leaves: Sequence[Leaf], first: int) -> None:
        self._reader, self._layout, self._leaves = reader, layout, leaves
        self._rows = slice(first, first + reader.num_rows)
        self._types = reader.output_types
        self.columns: dict[int, DecodedColumn] = {}
        self.unfit: list[UnfitValues] = []

    def decode(self) -> None:
        """Decode and cast the leaves."""
        reader, count, first = self._reader, len(self._reader.leaves), len(self._reader.columns.positions)
        layout = allocate_blocks([_NOTHING] * first + self._types[first:count], reader.num_rows)
        decoded = reader.decode(layout, range(first, count))
        for column in reader.columns.cast:
            own = slice(column.leaves.start, column.leaves.stop)
            self._column = column
            with error_context(file=reader.file.source.name, column=column.name):
                for projected, cast in zip(column.projected, column.casts, strict=True):
                    if self._layout.targets[projected].nested:
                        pieces = self._cast_nested(projected, cast, decoded[own])
                        self.columns[projected] = DecodedColumn(arrays=pieces)
                    else:
                        self.columns[projected] = self._cast_flat(projected, decoded[own.start])

    def _cast(self, values: LeafValues, own: int, target: OutputType, rows: Callable[[], np.ndarray]) -> LeafValues:
        """Cast the values of the file's leaf `own`, none of them null; `rows` returns the row of each."""
        result, unfit, message = cast_values(values, self._types[own], target)
        if unfit is not None:
            message = self._hide_value(message, target)
            error = SchemaError(message, file=self._reader.file.source.name, column=self._column.name)
            self.unfit.append(UnfitValues(self._column.projected.start, rows()[unfit], error))
        return result

    def _hide_value(self, message: str, target: OutputType) -> str:
        """Return the message about values that do not fit, without a value if the column is encrypted."""
        file, name = self._reader.file, self._column.name
        encryption = None if file.footer.keys is None else file.encryption
        if encryption is None or not encryption.encrypts(name):
            return message
        return (
            f"a value cannot be stored as {describe_type(target.type)} without loss; values of encrypted columns are "
            "not shown"
        )

    # --- flat leaves --------------------------------------------------------------------------------------------------

    def _cast_flat(self, projected: int, column: DecodedColumn) -> DecodedColumn:
        target, num_rows = self._layout.targets[projected], self._reader.num_rows
        values: LeafValues
        present: np.ndarray | None
        if column.values is None:
            values, present = _join_pieces(column.arrays)
        else:
            present = column.validity != 0 if column.null_count and column.validity is not None else None
            values = column.values if present is None else column.values[present]
        rows = partial(np.arange, num_rows) if present is None else partial(np.flatnonzero, present)
        cast = self._cast(values, self._column.leaves.start, target, rows)
        if isinstance(cast, BinaryArray):
            array = add_null_slots(cast, None if present is None else present.view(np.uint8))
            return DecodedColumn(null_count=column.null_count, arrays=[array] if num_rows else [])
        out, validity = self._layout.values[projected], self._layout.validity[projected]
        assert out is not None
        if present is None:
            out[self._rows] = cast
        else:
            out[self._rows] = np.frombuffer(target.fill or bytes(out.itemsize), out.dtype)[0]
            out[self._rows][present] = cast
        if validity is not None:
            validity[self._rows] = 1 if present is None else present
        return DecodedColumn(null_count=column.null_count)

    # --- nested leaves ------------------------------------------------------------------------------------------------

    def _cast_nested(self, projected: int, cast: LeafCast, decoded: Sequence[DecodedColumn]) -> list[Any]:
        """Cast the arrays of a leaf, which are one for each row group; damaged ones in their intact parts."""
        needed, leaves, arrays, row = cast.leaves, self._reader.leaves, list[Any](), 0
        for pieces in zip(*(decoded[at].arrays for at in needed), strict=True):
            if all(isinstance(piece, NestedLeaf) for piece in pieces):
                arrays.append(self._cast_leaf(projected, cast, pieces, row))
                row += pieces[0].num_rows
                continue
            from .recovery.lost_rows import PartialLeaf, intact_parts

            own = [self._column.leaves[at] for at in needed]
            parts, num_rows = intact_parts(pieces, [leaves[at] for at in own], [self._types[at] for at in own])
            cast_parts = [
                (start, stop, self._cast_leaf(projected, cast, part, row + start)) for start, stop, part in parts
            ]
            arrays.append(PartialLeaf(cast_parts, num_rows, pieces[0].row_group))
            row += num_rows
        return arrays

    def _cast_leaf(self, projected: int, cast: LeafCast, pieces: Sequence[NestedLeaf], row: int) -> NestedLeaf:
        """Cast the levels and values of a leaf; `pieces` are those of `cast.leaves`, `row` their first in the file."""
        leaf, target, own = (
            self._leaves[projected],
            self._layout.targets[projected],
            self._column.leaves[cast.leaves[0]],
        )
        made = cast.cast_levels(pieces[0], leaf)
        if cast.variant is not None:
            made.values = [self._variant_values(cast, pieces)]
            return made
        made.values = concat_leaves([], leaf, target).values
        if not cast.has_values:
            return made
        values = pieces[0].values if isinstance(pieces[0].values, list) else [pieces[0].values]
        cast_parts, first = [], 0
        for part in values:
            rows = partial(_value_rows, made, leaf, row, first)
            cast_parts.append(self._cast(part, own, target, rows))
            first += len(part)
        if made.definition is not None and np.count_nonzero(made.definition == leaf.max_definition_level) != first:
            raise InvalidFileError("the column has nulls where its schema allows none")
        made.values = cast_parts if target.storage == "binary" else np.concatenate([made.values, *cast_parts])
        return made

    def _variant_values(self, cast: LeafCast, pieces: Sequence[NestedLeaf]) -> BinaryArray:
        """Return the encoded values of the VARIANTs that are there."""
        from numparq.to_pandas.variant.columns import VariantColumns

        own = [self._column.leaves[at] for at in cast.leaves]
        by_leaf = {self._reader.leaves[at].index: piece for at, piece in zip(own, pieces, strict=True)}
        types = {self._reader.leaves[at].index: self._types[at] for at in own}
        assert cast.variant is not None
        array = assemble(cast.variant, by_leaf)
        assert isinstance(array, StructArray)
        present = [1] * array.length if array.validity is None else array.validity.tolist()
        parts = zip(VariantColumns("bytes", types, array).to_objects(array), present, strict=True)
        return from_byte_strings([part["value"] for part, there in parts if there])


def _join_pieces(pieces: Sequence[Any]) -> tuple[BinaryArray, np.ndarray | None]:
    """Return the values of flat byte strings that are there, and which are; lost ones count as nulls."""
    present = [_presence(piece) for piece in pieces]
    arrays = []
    for piece, there in zip(pieces, present, strict=True):
        if isinstance(piece, BinaryArray):
            ends = np.append(True, there)
            arrays.append(BinaryArray(piece.offsets[ends], piece.data))
    whole = np.concatenate([np.empty(0, bool), *present])
    return concat_binary(arrays), None if whole.all() else whole


def _presence(piece: BinaryArray | LostPiece) -> np.ndarray:
    if not isinstance(piece, BinaryArray):
        return np.zeros(len(piece), bool)
    return np.ones(len(piece), bool) if piece.validity is None else piece.validity[: len(piece)] != 0


def _value_rows(piece: NestedLeaf, leaf: Leaf, first_row: int, first: int) -> np.ndarray:
    """Return the row of each value of a leaf from value `first` on; its rows begin with `first_row`."""
    rows = np.arange(piece.num_entries) if piece.repetition is None else np.cumsum(piece.repetition == 0) - 1
    if piece.definition is not None:
        rows = rows[piece.definition == leaf.max_definition_level]
    return first_row + rows[first:]
