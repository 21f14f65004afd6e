"""Arrow data of other libraries (polars, duckdb, pyarrow) through the Arrow C stream interface, shredded by tables."""

from __future__ import annotations

import binascii
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeGuard

import pandas as pd

from numparq.errors import SchemaError, UnsupportedError
from numparq.format.key_values.arrow import ArrowField
from numparq.types.pyarrow import field_from_pyarrow, field_to_pyarrow
from numparq.typing import ArrowStream
from numparq.util.optional import import_pyarrow
from numparq.util.text import is_utf8

from .frame import ShreddedFrame, shred_frame

if TYPE_CHECKING:
    import pyarrow as pa

_ARROW_KEY = "ARROW:schema"
_TOO_DEEP = "Recursion level in ArrowSchema struct exceeded"  # beyond 64 levels, in Arrow 26
_STORED_KINDS = {"utf8_view": "large_utf8", "binary_view": "large_binary"}


def is_arrow_data(data: object) -> TypeGuard[ArrowStream]:
    """Whether an object offers its rows as Arrow data, and is no DataFrame or Series."""
    if isinstance(data, (pd.DataFrame, pd.Series)):
        return False
    return hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")


def read_tables(data: ArrowStream, num_rows: int, index: bool | None = None) -> Iterator[pa.Table]:
    """Yield the rows of Arrow data as tables of multiples of `num_rows` rows; the last has the rest, and may be empty.

    Raises ImportError without pyarrow, TypeError for a single column, ValueError for ``index=True``.
    """
    if index:
        raise ValueError("Arrow data has no index to write; omit index=True")
    pa = import_pyarrow("writing Arrow data needs")
    reader = _open_stream(data)
    batches: list[Any] = []
    buffered, is_empty = 0, True
    for batch in reader:
        batches.append(batch)
        buffered += len(batch)
        if buffered >= num_rows:
            table = pa.Table.from_batches(batches, reader.schema)
            buffered %= num_rows
            yield table.slice(0, len(table) - buffered)
            batches = table.slice(len(table) - buffered).to_batches() if buffered else []
            is_empty = False
    if batches or is_empty:
        yield pa.Table.from_batches(batches, reader.schema)


def read_table(data: ArrowStream) -> pa.Table:
    """Return Arrow data as one table."""
    return _open_stream(data).read_all()


def _open_stream(data: ArrowStream) -> pa.RecordBatchReader:
    pa = import_pyarrow("writing Arrow data needs")
    if isinstance(data, (pa.Table, pa.RecordBatch)):  # at any depth; Arrow's C interface takes 64 levels
        table = data if isinstance(data, pa.Table) else pa.Table.from_batches([data])
        return table.to_reader()
    try:
        if hasattr(data, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(data)
        batch = pa.record_batch(data)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        if _TOO_DEEP in str(error):
            raise UnsupportedError(f"the data are nested deeper than Arrow's C interface takes ({error})") from error
        kind = f"{type(data).__module__}.{type(data).__qualname__}"
        raise TypeError(f"df must be a table, not a {kind}; put a single column into a table ({error})") from error
    return pa.RecordBatchReader.from_batches(batch.schema, [batch])


def without_views(table: pa.Table) -> pa.Table:
    """Return a table with the views and runs of its columns materialised, whose rows pyarrow cannot take."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for place, field in enumerate(table.schema):
        column = table.column(place)
        if isinstance(field.type, pa.RunEndEncodedType):
            column = pa.chunked_array([pc.run_end_decode(chunk) for chunk in column.chunks], field.type.value_type)
        stored = field_from_pyarrow(field.name, column.type)
        if (plain := _without_views(stored)) != stored:
            column = column.cast(field_to_pyarrow(plain))
        if column.type != field.type:
            table = table.set_column(place, field.with_type(column.type), column)
    return table


def _without_views(field: ArrowField) -> ArrowField:
    kind = _STORED_KINDS.get(field.type.kind, field.type.kind)
    return replace(field, type=replace(field.type, kind=kind), children=tuple(map(_without_views, field.children)))


def arrow_to_frame(table: pa.Table) -> pd.DataFrame:
    """Return a frame of Arrow dtypes on the memory of a table."""
    return table.to_pandas(types_mapper=pd.ArrowDtype, ignore_metadata=True)


def shred_table(table: pa.Table, schema: object = None) -> ShreddedFrame:
    """Shred a table; without a `schema`, types, nullability and metadata of its own are kept."""
    shredded = shred_frame(arrow_to_frame(table), False, table.schema if schema is None else schema)
    return arrow_key_values(shredded, table.schema, is_own=schema is None)


def arrow_key_values(shredded: ShreddedFrame, schema: pa.Schema, *, is_own: bool) -> ShreddedFrame:
    """Replace the key-value metadata of a shredded frame by those of the Arrow schema that its rows came with.

    If that is the file's schema too (`is_own`), it is also the value of ``ARROW:schema``, with the metadata of fields.
    Metadata that are not UTF-8 are in this value only, as polars refuses files that have them beside it.
    """
    pairs = schema.metadata or {}
    metadata = {key.decode(): value for key, value in pairs.items() if is_utf8(key) and is_utf8(value)}
    if len(metadata) < len(pairs) and not is_own:
        key = next(key for key, value in pairs.items() if not (is_utf8(key) and is_utf8(value)))
        raise SchemaError(f"the Arrow metadata of the key {key!r} are not UTF-8, as Parquet requires; drop them")
    metadata.pop(_ARROW_KEY, None)
    encoded = binascii.b2a_base64(schema.serialize().to_pybytes(), newline=False).decode() if is_own else None
    return replace(shredded, key_value_metadata=metadata, arrow_schema=encoded)
