"""Output of one nested column: types of its leaves, and the array built from them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from numparq.column.buffers import DecodedColumn
from numparq.column.nested.arrays import LeafArray, NestedArray, StructArray, assemble
from numparq.column.nested.levels import NestedLeaf, concat_leaves
from numparq.column.nested.nested_type import NestedType, find_hint, is_variant, leaf_arrow_types
from numparq.column.projection import NestedProjection
from numparq.errors import InvalidFileError, error_context
from numparq.format.arrow_type import ArrowType, DictionaryIndex
from numparq.format.key_values.arrow import ArrowHint
from numparq.format.schema import Leaf
from numparq.to_pandas.leaf import leaf_to_array
from numparq.types.choose import apply_dates, choose_nested_output_type, choose_output_type
from numparq.types.output_type import OutputType
from numparq.types.schema_only import schema_only_type

from .arrow import nested_to_arrow, widen_offsets
from .objects import NestedObjectBuilder

if TYPE_CHECKING:
    from numparq.format.file_reference import FileReferenceReader
    from numparq.to_pandas.variant.columns import VariantColumns

_COMPLEX = ("complex64", "complex128")
_SHAREABLE = ("text_objects", "bytes")  # conversions whose objects rows may share

_CLOSED = ("left", "right", "both", "neither")


class NestedOutput:
    """One nested column of a read; the attributes below are set after construction, apart from `leaf_slice`.

    Attributes
    ----------
    leaf_slice : slice
        Positions of its leaves among all leaves that are read.
    null_counts : mapping of int to int
        Known null counts of leaves, by ordinal, including rows that a filter drops.
    may_be_null : mapping of int to bool, or None
        For schema-only types, whether each leaf (by ordinal) may be null anywhere in the table; None: types by value.
    fetcher : FileReferenceReader or None
        Reads the bytes of FILE references; None keeps the references.
    variants : {"values", "bytes"}
        Form of VARIANTs in the output.
    dates : {"objects", "datetime64"}
        Output of dates, as in `read_parquet`.
    shares_entries : bool
        Whether strings and bytes are built once per dictionary entry and shared.
    """

    def __init__(
        self,
        column: NestedProjection,
        first_leaf: int,
        hint: ArrowHint | None,
        dtype_backend: str,
        pandas_dtype: Any = None,
        numpy_type: str | None = None,
    ) -> None:
        self.column = column
        self.leaf_slice = slice(first_leaf, first_leaf + len(column.leaves))
        self._type = hint.type if hint is not None else None
        self._backend = dtype_backend
        self._pandas_dtype = pandas_dtype
        self._numpy_type = numpy_type
        self._origins = leaf_arrow_types(column.full_type, hint)
        self._hint = find_hint(column.full_type, hint, column.type)
        self._whole_hint = hint
        self.fetcher: FileReferenceReader | None = None
        self.null_counts: Mapping[int, int] = {}
        self.may_be_null: Mapping[int, bool] | None = None
        self.variants = "values"
        self.dates = "objects"
        self.shares_entries = dtype_backend != "pyarrow" and column.type.leaf is None
        self._has_variants = _has_variants(column.type)

    def output_types(self) -> list[OutputType]:
        """Select the output type of each leaf; InvalidFileError if a leaf's type violates the specification."""
        found = []
        inside = self._leaves_in_variants()
        for leaf in self.column.leaves:
            with error_context(column=leaf.name):
                if leaf.index in inside:
                    target = choose_nested_output_type(leaf)
                else:
                    target = apply_dates(choose_nested_output_type(leaf, self._origins.get(leaf.index)), self.dates)
            if self.may_be_null is not None:
                target = schema_only_type(target, may_be_null=True)
            coded = self.shares_entries and target.array_kind in _SHAREABLE and leaf.index not in inside
            found.append(target.replace_all(keep_codes=coded and self.fetcher is None))
        return found

    def to_array(self, targets: Sequence[OutputType], buffers: Sequence[DecodedColumn]) -> Any:
        """Return the column's array; `output_types` and `buffers` are of all leaves read, other columns included.

        Raises InvalidFileError if the leaves are inconsistent.
        """
        by_leaf = self.output_types_by_leaf(targets)
        return self.build(self.assemble(self.leaf_pieces(targets, buffers), buffers), by_leaf)

    def output_types_by_leaf(self, targets: Sequence[OutputType]) -> dict[int, OutputType]:
        """Return the output types of the column's leaves, by ordinal."""
        found = {leaf.index: target for leaf, target in zip(self.column.leaves, targets[self.leaf_slice], strict=True)}
        if self.fetcher is not None:
            from .file_type import BYTES_LEAF

            found[BYTES_LEAF.index] = choose_nested_output_type(BYTES_LEAF, None)
        return found

    def leaf_pieces(self, targets: Sequence[OutputType], buffers: Sequence[DecodedColumn]) -> dict[int, NestedLeaf]:
        """Return levels and values of each leaf, by ordinal; parameters are those of `to_array`."""
        return {
            leaf.index: concat_leaves(buffer.arrays, leaf, target)
            for leaf, target, buffer in zip(
                self.column.leaves, targets[self.leaf_slice], buffers[self.leaf_slice], strict=True
            )
        }

    def assemble(self, pieces: dict[int, NestedLeaf], buffers: Sequence[DecodedColumn]) -> NestedArray:
        """Assemble the column's nested array, FILE references resolved."""
        return self.resolve_files(self.assemble_stored(pieces, buffers))

    def assemble_stored(self, pieces: dict[int, NestedLeaf], buffers: Sequence[DecodedColumn]) -> NestedArray:
        """Assemble the nested array as stored; InvalidFileError, with the row group, if the leaves are inconsistent."""
        try:
            return assemble(self.column.type, pieces)
        except InvalidFileError as error:
            raise self._with_row_group(error, buffers[self.leaf_slice]) from None

    def resolve_files(self, array: NestedArray) -> NestedArray:
        """Replace FILE references by their bytes if there is a `fetcher`."""
        if self.fetcher is None:
            return array
        from .file_type import resolve_references

        with error_context(column=self.column.full_type.name):
            return resolve_references(array, self.fetcher)

    def child(self, name: str, shape: NestedType, dtype_backend: str | None = None) -> NestedOutput:
        """Return the output of a node within this column, to be built from its nested array by `build`."""
        column = replace(self.column, name=name, type=shape)
        part = NestedOutput(column, self.leaf_slice.start, self._whole_hint, dtype_backend or self._backend)
        part.variants, part.dates, part.fetcher = self.variants, self.dates, self.fetcher
        return part

    def build(self, array: NestedArray, by_leaf: Mapping[int, OutputType]) -> Any:
        """Build the array of a nested array; `by_leaf` holds the output types of its leaves, by ordinal."""
        if isinstance(array, LeafArray):
            assert array.type.leaf is not None
            elsewhere = self.null_counts.get(array.type.leaf.index, 0)
            return leaf_to_array(array, self._flat_output_type(array, elsewhere), elsewhere)
        variants = self._variant_columns(array, by_leaf)
        if self._backend == "pyarrow":
            make = variants.to_arrow if variants else None
            with error_context(column=self.column.full_type.name):
                return nested_to_arrow(array, self._hint, self._arrow_leaf, make)
        for restore in (self._intervals, self._complex_numbers):
            found = restore(array) if isinstance(array, StructArray) else None
            if found is not None:
                return found
        with error_context(column=self.column.full_type.name):
            return NestedObjectBuilder(by_leaf, variants.to_objects if variants else None).build(array)

    def _leaves_in_variants(self) -> set[int]:
        """Return the ordinals of the leaves within VARIANTs, after checking the VARIANT groups."""
        if not self._has_variants:
            return set()
        from numparq.to_pandas.variant.columns import variant_leaves

        return set(variant_leaves(self.column.type))

    def _variant_columns(self, array: NestedArray, by_leaf: Mapping[int, OutputType]) -> VariantColumns | None:
        if not self._has_variants:
            return None
        from numparq.to_pandas.variant.columns import VariantColumns

        return VariantColumns(self.variants, by_leaf, array)

    def _with_row_group(self, error: InvalidFileError, buffers: Sequence[DecodedColumn]) -> InvalidFileError:
        """Add the column and the row group whose leaves are inconsistent to an error."""
        error.where["column"] = self.column.full_type.name
        for pieces in zip(*(buffer.arrays for buffer in buffers), strict=True):
            try:
                leaves = zip(self.column.leaves, pieces, strict=True)
                assemble(self.column.type, {leaf.index: piece for leaf, piece in leaves})
            except InvalidFileError:
                error.where["row_group"] = pieces[0].row_group
                if pieces[0].file is not None:
                    error.where["file"] = pieces[0].file
                break
        return error

    def _arrow_leaf(self, array: LeafArray) -> Any:
        """Return the Arrow-backed array of a leaf within a nested column."""
        return leaf_to_array(array, widen_offsets(self._flat_output_type(array, keep_dictionary=True), array))

    def _flat_output_type(
        self, array: LeafArray, nulls_elsewhere: int = 0, *, keep_dictionary: bool = False
    ) -> OutputType:
        """Select the output type of a leaf as if it were a flat column."""
        leaf = array.type.leaf
        assert leaf is not None
        nulls = max(array.length - array.num_values, nulls_elsewhere)
        flat = replace(leaf, max_definition_level=int(array.validity is not None or nulls > 0))
        origin = self._origins.get(leaf.index)
        if origin is not None and not keep_dictionary:
            origin = replace(origin, dictionary=None)
        target = choose_output_type(flat, origin, dtype_backend=self._backend, has_nulls=nulls > 0)
        target = apply_dates(target, self.dates)
        return target if self.may_be_null is None else self._schema_only_type(target, leaf, nulls)

    def _schema_only_type(self, target: OutputType, leaf: Leaf, nulls: int) -> OutputType:
        """Return the schema-only type of a leaf; InvalidFileError for nulls that the statistics exclude."""
        assert self.may_be_null is not None
        may_be_null = self.may_be_null.get(leaf.index, True)
        if nulls and not may_be_null and target.array_kind != "arrow":
            raise InvalidFileError("the column has nulls, but its statistics count none", column=leaf.name)
        target = schema_only_type(target, may_be_null=may_be_null)
        index = target.type.dictionary
        if index is not None and index.bit_width < 32:  # the schema does not bound the number of values
            target = replace(target, type=replace(target.type, dictionary=DictionaryIndex(ordered=index.ordered)))
        return target

    def _intervals(self, array: StructArray) -> Any:
        closed = interval_closed(self._type, self._pandas_dtype)
        if closed is None or not is_leaf_pair(self.column.type, "left", "right"):
            return None
        targets = [self._flat_output_type(child) for child in array.children if isinstance(child, LeafArray)]
        return interval_array(array, targets, closed)

    def _complex_numbers(self, array: StructArray) -> Any:
        if self._numpy_type not in _COMPLEX or not is_leaf_pair(self.column.type, "real", "imag"):
            return None
        return complex_array(array, np.dtype(self._numpy_type))


def _has_variants(shape: NestedType) -> bool:
    return is_variant(shape) or any(map(_has_variants, shape.children))


def is_leaf_pair(shape: NestedType, first: str, second: str) -> bool:
    """Whether a column is a struct of exactly two leaves of these names."""
    names = [child.name for child in shape.children if child.leaf is not None]
    return shape.kind == "struct" and len(shape.children) == 2 and names == [first, second]


def interval_closed(arrow_type: ArrowType | None, pandas_dtype: Any) -> str | None:
    """Return the closed side of intervals by Arrow extension type or pandas dtype; None for other columns."""
    if arrow_type is not None and arrow_type.extension == "pandas.interval":
        try:
            closed = json.loads(arrow_type.extension_metadata or "")["closed"]
        except (ValueError, TypeError, KeyError, RecursionError):
            return None
        return closed if closed in _CLOSED else None
    return pandas_dtype.closed if isinstance(pandas_dtype, pd.IntervalDtype) else None


def interval_array(array: StructArray, targets: list[OutputType], closed: str) -> Any:
    """Return an interval array of left and right; None if pandas refuses them, as when one ends before it starts.

    `targets` are the output types of both sides as flat columns.
    """
    left, right = (leaf_to_array(side, target) for side, target in zip(_leaves(array), targets, strict=True))
    try:
        return pd.arrays.IntervalArray.from_arrays(left, right, closed)
    except (ValueError, TypeError):
        return None


def complex_array(array: StructArray, dtype: np.dtype) -> np.ndarray:
    """Return complex numbers of real and imaginary parts; a null is NaN."""
    out = np.full(array.length, complex(np.nan, np.nan), dtype)
    for part, leaf in zip((out.real, out.imag), _leaves(array), strict=True):
        present = slice(None) if leaf.validity is None else leaf.validity.view(bool)
        part[present] = leaf.values
    return out


def _leaves(array: StructArray) -> list[LeafArray]:
    return [child for child in array.children if isinstance(child, LeafArray)]
