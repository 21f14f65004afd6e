"""Partition columns of a dataset: types and values from directory names, as arrays of a frame."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from numparq.column.buffers import BinaryArray, DecodedColumn
from numparq.dataset.listing.files import DataFile, PartitionIndex
from numparq.errors import SchemaError
from numparq.format.physical_type import BOOLEAN, DOUBLE, FIXED_LEN_BYTE_ARRAY, FLOAT, INT32, INT64
from numparq.format.schema import REQUIRED, Leaf
from numparq.to_pandas.columns import to_array
from numparq.types.choose import apply_dates, choose_output_type
from numparq.types.output_type import cast_stored
from numparq.types.schema_only import schema_only_type

from .partitioning import parse_partitioning
from .types import PartitionType, are_integers, infer_partition_type, parse_partition_type

if TYPE_CHECKING:
    from numparq.dataset.discover.files import DatasetListing

# A given type: inferred from the values, but the column is not a Categorical.
INFERRED = "inferred"


class DatasetPartitions:
    """Partition columns of a dataset, their types inferred from the values of all files, read or not.

    ``values`` are the texts of each file's partition by key; None is the null partition. ``types`` maps columns to what
    `parse_partition_type` takes, or to `INFERRED`; a column without one is a Categorical, as in pandas.
    ``categories`` names typed columns that are Categoricals too. ``files`` serve messages only.
    """

    def __init__(
        self,
        keys: Sequence[str],
        values: Sequence[tuple[str | None, ...]] | PartitionIndex,
        types: Mapping[str, Any] | None = None,
        categories: Collection[str] | None = None,
        files: Sequence[DataFile] | None = None,
    ) -> None:
        self.keys = tuple(keys)
        self.categories = tuple(categories or ())
        self._divided = values if isinstance(values, PartitionIndex) else PartitionIndex.from_values(values)
        self._files = files
        self._made: dict[str, _Column] = {}
        self._types: dict[str, tuple[PartitionType | None, bool]] = dict.fromkeys(self.keys, (None, True))
        for key, spec in (types or {}).items():
            if key not in self._types:
                known = ", ".join(map(repr, self.keys)) or "nothing"
                raise ValueError(f"partitioning has a type for {key!r}, but the files are partitioned by {known}")
            asked = key in self.categories
            given, is_category = (None, False) if spec is INFERRED else parse_partition_type(spec)
            self._types[key] = given, is_category or asked

    @classmethod
    def from_listing(
        cls, listing: DatasetListing, partitioning: Any = "hive", categories: Collection[str] | None = None
    ) -> DatasetPartitions:
        """Build the partition columns of a listing; ``categories`` may also name other columns."""
        how = parse_partitioning(partitioning)
        files = listing.files
        types: dict[str, Any] = dict.fromkeys(how.names, INFERRED) if listing.keys else {}
        if files and not listing.is_single_file:
            types |= how.types
        return cls(listing.keys, files.partition_index, types, categories, files)

    def leaf(self, key: str) -> Leaf:
        """Return a leaf column of a key's type, flat and OPTIONAL, to bind predicates to; its ordinal is negative."""
        return self._column(key).type.leaf(key, self.keys.index(key))

    def value(self, key: str, raw: str | None) -> Any:
        """Return the Python value of a key's text, None for a null; raise SchemaError if it does not fit the type."""
        stored = _stored(key, self._column(key).type, raw)
        return None if stored is None else self._column(key).type.value(stored)

    def advice(self, key: str) -> str:
        """Return how to read the integers of a column of text such as "01", as the end of a message; "" for others."""
        texts = {values[self.keys.index(key)] for values in self._divided.partitions} - {None}
        if self._types[key][0] is not None or not self._column(key).type.is_text or not are_integers(map(str, texts)):
            return ""
        return f"; its values are text, and partitioning={{{key!r}: 'int64'}} reads them as integers"

    def has_nulls(self, key: str) -> bool:
        """Whether any file is in the null partition of a column."""
        return bool((self._column(key).codes < 0).any())

    def column(
        self,
        key: str,
        files: Sequence[int] | np.ndarray,
        num_rows: Sequence[int] | np.ndarray,
        dtype_backend: str = "numpy",
        dates: str = "objects",
    ) -> Any:
        """Build a column of a frame: the rows of ``files`` (ordinals) in order, ``num_rows`` of each.

        Without a given type, it is a Categorical of all files' values. Typed integers are nullable if any file's is
        null.
        """
        column = self._column(key)
        codes = column.codes[np.asarray(files, np.intp)]
        if self._types[key][1]:
            rows = np.repeat(codes, num_rows)
            return _arrow_dictionary(column, rows) if dtype_backend == "pyarrow" else _categorical(column, rows, dates)
        distinct = column.finished(dtype_backend, self.has_nulls(key), dates)
        return _take_values(distinct, codes).repeat(np.asarray(num_rows, np.intp))

    def _column(self, key: str) -> _Column:
        if key not in self._made:
            self._made[key] = self._make(key)
        return self._made[key]

    def _make(self, key: str) -> _Column:
        place = self.keys.index(key)
        partitions, which = self._divided
        raws = [values[place] for values in partitions]
        kind = self._types[key][0] or infer_partition_type(raw for raw in dict.fromkeys(raws) if raw is not None)
        column = self._coded(key, kind, raws, self._example if self._files else None)
        column.codes = column.codes[which]
        return column

    def _example(self, partition: int) -> str:
        """Return the name of the first file in a partition."""
        assert self._files is not None
        return self._files[self._divided.first_file(partition)].name

    @staticmethod
    def _coded(
        key: str, kind: PartitionType, raws: Sequence[str | None], name_of: Callable[[int], str] | None = None
    ) -> _Column:
        """Parse texts, and number the distinct values in order of appearance; -1 is null."""
        stored: dict[str | None, Any] = {}
        for place, raw in enumerate(raws):
            if raw not in stored:
                try:
                    stored[raw] = _stored(key, kind, raw)
                except SchemaError as error:
                    if name_of is not None:
                        error.where.setdefault("file", name_of(place))
                    raise
        ordinals: dict[Any, int] = {}
        for item in stored.values():
            if item is not None:
                ordinals.setdefault(item, len(ordinals))
        numbers = {raw: -1 if item is None else ordinals[item] for raw, item in stored.items()}
        return _Column(kind, list(ordinals), np.array([numbers[raw] for raw in raws], np.int32))


def _stored(key: str, kind: PartitionType, raw: str | None) -> Any:
    """Return the stored value of a text; None for a null."""
    if raw is None or (not raw and not kind.is_text):
        return None
    try:
        return kind.parse(raw)
    except ValueError:
        raise SchemaError(f"partition value {raw!r} is not a valid {kind.name}", column=key) from None


@dataclass
class _Column:
    """A partition column: its distinct stored values, and the code of each file's value (-1 is null)."""

    type: PartitionType
    distinct: list[Any]
    codes: np.ndarray

    def finished(self, dtype_backend: str, may_be_null: bool, dates: str = "objects") -> Any:
        """Return the distinct values as an array of the column's output type."""
        leaf = self.type.leaf("", 0) if may_be_null else _required(self.type)
        target = choose_output_type(leaf, dtype_backend=dtype_backend, timezone=self.type.timezone)
        target = schema_only_type(apply_dates(target, dates), may_be_null=may_be_null)
        count = len(self.distinct)
        if target.storage == "binary":
            return to_array(target, DecodedColumn(arrays=[_binary(self.distinct)]), count)
        if self.type.physical == FIXED_LEN_BYTE_ARRAY:
            return to_array(target, DecodedColumn(np.frombuffer(b"".join(self.distinct), target.dtype)), count)
        return to_array(target, DecodedColumn(cast_stored(self.numbers(), target)), count)

    def numbers(self) -> np.ndarray:
        """Return the distinct values of a fixed-width type, as stored."""
        if self.type.physical in _FLOATS:
            return np.array(self.distinct, _FLOATS[self.type.physical])
        is_unsigned = self.type.logical is not None and self.type.logical.signed is False
        return np.array(self.distinct, np.uint64 if is_unsigned else np.int64).astype(_INTEGERS[self.type.physical])


_FLOATS = {FLOAT: np.float32, DOUBLE: np.float64}
_INTEGERS = {BOOLEAN: np.bool_, INT32: np.int32, INT64: np.int64}


def _required(kind: PartitionType) -> Leaf:
    leaf = kind.leaf("", 0)
    return Leaf(0, 0, leaf.path, leaf.physical, leaf.type_length, leaf.logical, 0, 0, REQUIRED)


def _binary(values: list[bytes]) -> BinaryArray:
    offsets = np.zeros(len(values) + 1, np.int64)
    np.cumsum([len(value) for value in values], out=offsets[1:])
    return BinaryArray(offsets, np.frombuffer(b"".join(values) + bytes(8), np.uint8))


def _take_values(distinct: Any, codes: np.ndarray) -> Any:
    """Take items of an array by code; -1 takes a null."""
    taken = pd.api.extensions.take(distinct, codes.astype(np.intp), allow_fill=True)
    if taken.dtype == object and distinct.dtype == object:
        taken[codes < 0] = None
    return taken


def _categorical(column: _Column, rows: np.ndarray, dates: str) -> pd.Categorical:
    values = column.finished("numpy", False, dates)
    if values.dtype.kind == "f" and np.isnan(values).any():  # NaN cannot be a category
        kept = ~np.isnan(values)
        values, rows = values[kept], np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1)[rows]
    dtype = pd.CategoricalDtype(pd.Index(values, dtype=values.dtype, copy=False))
    return pd.Categorical.from_codes(rows, dtype=dtype, validate=False)


def _arrow_dictionary(column: _Column, rows: np.ndarray) -> Any:
    from numparq.util.optional import import_pyarrow

    pa = import_pyarrow()
    values = pa.array(column.finished("pyarrow", True))
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    indices = pa.array(rows, pa.int32(), mask=rows < 0)
    return pd.arrays.ArrowExtensionArray(pa.chunked_array([pa.DictionaryArray.from_arrays(indices, values)]))
