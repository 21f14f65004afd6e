"""Sort key columns for Spark's range partitioning, beside the rows they sort."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from numparq.errors import SchemaError
from numparq.tools.optimize.hilbert import HilbertClustering

from .transport import ArrowTransport

_FOLDER = "folder"
_BATCH_ROWS = 1 << 16
# Types whose encoded form does not sort: casts to a sort key.
_SORTABLE: dict[Any, Callable[[Any], Any]] = {
    pa.uint8(): lambda array: array.cast(pa.int16()),
    pa.uint16(): lambda array: array.cast(pa.int32()),
    pa.uint32(): lambda array: array.cast(pa.int64()),
    pa.uint64(): lambda array: _ordered_uint64(array),
    pa.float16(): lambda array: array.cast(pa.float32()),
}


def _ordered_uint64(array: Any) -> Any:
    """Map uint64 values to int64 in the same order."""
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    words = array.fill_null(0).to_numpy(zero_copy_only=False) ^ np.uint64(1 << 63)
    mask = array.is_null().to_numpy(zero_copy_only=False)
    return pa.array(words.view(np.int64), mask=mask)


class RowPacker:
    """Layout of rows on their way through Spark: folder number, sort keys, then all columns encoded.

    Rows are sorted by `sort_columns`: nulls first, NaN last. Raises SchemaError if Spark cannot sort by a column.
    """

    def __init__(
        self,
        schema: pa.Schema,
        folders: Sequence[str],
        sort_by: Sequence[str] = (),
        clustering: HilbertClustering | None = None,
        cluster_by: Sequence[str] = (),
    ) -> None:
        self._carrier = ArrowTransport(schema)
        self.folders = list(folders)
        self._numbers = {folder: number for number, folder in enumerate(folders)}
        self._keys: list[tuple[str, Callable[[Any], Any]]] = []  # extra sort key columns
        self._clustering, self._cluster_by = clustering, tuple(cluster_by)
        self.sort_columns = [_FOLDER]
        fields = [(_FOLDER, pa.int32())]
        if clustering is not None:
            fields.append(("place", pa.int64()))
            self.sort_columns.append("place")
        for name in sort_by:
            self.sort_columns.append(self._sort_key(name, fields))
        self.schema = pa.schema([*fields, *self._carrier.encoded_schema])

    def _sort_key(self, name: str, fields: list[tuple[str, Any]]) -> str:
        place = self._carrier.schema.get_field_index(name)
        arrow_type = self._carrier.schema.field(place).type
        if t.is_nested(arrow_type) or t.is_decimal256(arrow_type) or t.is_null(arrow_type):
            raise SchemaError(f"rows cannot be sorted by values of Arrow type {arrow_type}", column=name)
        make = _SORTABLE.get(arrow_type)
        if make is None:
            return str(self._carrier.encoded_schema.field(place).name)
        self._keys.append((name, make))
        made = f"k{len(self._keys)}"
        fields.append((made, make(pa.array([], arrow_type)).type))
        return made

    def pack(self, table: pa.Table, folder: str) -> Iterator[pa.RecordBatch]:
        """Yield rows of a folder in the layout."""
        columns: list[Any] = [pa.array(np.full(table.num_rows, self._numbers[folder], np.int32))]
        if self._clustering is not None:
            columns.append(pa.array(self._clustering.positions([table.column(name) for name in self._cluster_by])))
        columns += [make(_values(table.column(name))) for name, make in self._keys]
        columns += self._carrier.encode(table)
        yield from pa.Table.from_arrays(columns, schema=self.schema).to_batches(_BATCH_ROWS)

    def unpack(self, batch: pa.RecordBatch) -> Iterator[tuple[str, pa.Table]]:
        """Yield the decoded rows of a batch, sorted by folder, folder by folder."""
        numbers = batch.column(0).to_numpy()
        ends = [*(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
        table = self._carrier.decode(batch.columns[len(self.schema) - len(self._carrier.encoded_schema) :])
        start = 0
        for end in ends:
            if end > start:
                yield self.folders[int(numbers[start])], table.slice(start, end - start)
            start = end


def _values(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(column.type.value_type) if t.is_dictionary(column.type) else column
