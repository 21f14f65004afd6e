"""Arrow schema and tables of a scan, with string offsets as a requested schema has them."""

from __future__ import annotations

import binascii
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from numparq.column.buffers import DecodedColumn
from numparq.errors import InvalidFileError, UnsupportedError, error_context
from numparq.format.open_file import OpenFile
from numparq.scan.projected_columns import ProjectedColumns
from numparq.to_pandas.arrow import to_arrow
from numparq.types.output_type import OutputType
from numparq.util.optional import import_pyarrow

__all__ = ["ArrowTableBuilder", "negotiate_schema", "to_arrow_arrays"]

_VIRTUAL = {"file": "string", "row_group": "int64", "row_number": "int64"}

_NOTHING: Mapping[int, Any] = MappingProxyType({})


def to_arrow_arrays(
    columns: ProjectedColumns,
    output_types: Sequence[OutputType],
    buffers: Sequence[DecodedColumn],
    num_rows: int,
    made: Mapping[int, Any] = _NOTHING,
) -> list[Any]:
    """Return a pyarrow.ChunkedArray for each column of a read with ``dtype_backend="pyarrow"``.

    The arrays own the decoded memory: do not write to it. `made` holds finished columns by first leaf position.
    """
    nested = {column.leaf_slice.start: column for column in columns.nested}
    arrays = []
    for place, label in enumerate(columns.labels):
        if label is None:
            continue
        with error_context(column=label):
            if place in made:
                arrays.append(_to_chunked_array(made[place]))
            elif place in nested:
                arrays.append(_to_chunked_array(nested[place].to_array(output_types, buffers)))
            else:
                arrays.append(to_arrow(output_types[place], buffers[place], num_rows))
    return arrays


def _to_chunked_array(array: Any) -> Any:
    """Cast a finished column to a pyarrow.ChunkedArray."""
    pa = import_pyarrow()
    array = array.__arrow_array__() if hasattr(array, "__arrow_array__") else pa.array(array, from_pandas=True)
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


class ArrowTableBuilder:
    """Builder of Arrow tables of one `schema`, from leaves with schema-only types (``dtype_backend="pyarrow"``).

    `made` holds empty columns that are decoded otherwise, by first leaf position.
    """

    def __init__(
        self,
        file: OpenFile,
        columns: ProjectedColumns,
        output_types: Sequence[OutputType],
        made: Mapping[int, Any] = _NOTHING,
    ) -> None:
        self._columns = columns
        pa = import_pyarrow()
        nothing = [_empty_buffer(target) for target in output_types]
        arrays = to_arrow_arrays(columns, output_types, nothing, 0, made)
        labels = [(place, label) for place, label in enumerate(columns.labels) if label is not None]
        notes = _writer_field_metadata(file)
        fields = [
            pa.field(
                _to_utf8(label),
                array.type,
                _is_nullable(columns, place),
                _field_metadata(file, columns.leaves[place].column, notes),
            )
            for (place, label), array in zip(labels, arrays, strict=True)
        ]
        fields += [pa.field(name, getattr(pa, _VIRTUAL[name])(), False) for name in columns.virtual]
        self.schema = pa.schema(fields, _schema_metadata(file))

    def to_table(
        self,
        output_types: Sequence[OutputType],
        buffers: Sequence[DecodedColumn],
        num_rows: int,
        virtual: Mapping[str, Any],
        made: Mapping[int, Any] = _NOTHING,
    ) -> Any:
        """Build a table of `schema` from decoded columns; a virtual column is an array or a constant str.

        Raises InvalidFileError for a null map key, UnsupportedError for values that do not fit the schema's type.
        """
        pa = import_pyarrow()
        arrays = to_arrow_arrays(self._columns, output_types, buffers, num_rows, made)
        arrays += [
            pa.repeat(value, num_rows) if isinstance(value, str) else _to_chunked_array(value)
            for value in virtual.values()
        ]
        fitting = [_cast_to_field(array, field) for array, field in zip(arrays, self.schema, strict=True)]
        if not fitting:
            return pa.table({"": pa.nulls(num_rows)}).replace_schema_metadata(self.schema.metadata).select([])
        return pa.Table.from_arrays(fitting, schema=self.schema)


def _cast_to_field(array: Any, field: Any) -> Any:
    """Cast an array to the type of a field."""
    if array.type == field.type:
        return array
    types = import_pyarrow().types
    if types.is_map(field.type) and not types.is_map(array.type):  # a null key came back as a list of pairs
        raise InvalidFileError("a map has a null key, which Arrow does not allow", column=field.name)
    try:
        return array.cast(field.type)
    except (import_pyarrow().ArrowException, NotImplementedError) as error:
        raise UnsupportedError(
            f"values of type {array.type} cannot be cast to the column's type {field.type}: {error}", column=field.name
        ) from error


def _empty_buffer(target: OutputType) -> DecodedColumn:
    """Return a decoded column without rows."""
    if target.nested or target.dtype is None or target.storage != "fixed":
        return DecodedColumn()
    return DecodedColumn(np.empty(0, target.dtype))


def _is_nullable(columns: ProjectedColumns, place: int) -> bool:
    for column in columns.nested:
        if column.leaf_slice.start == place:
            return column.column.type.nullable
    return columns.leaves[place].max_definition_level > 0


def _to_utf8(name: str) -> str:
    """Return a name as UTF-8, with replacement characters for bytes that are not."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _schema_metadata(file: OpenFile) -> dict[Any, Any] | None:
    """Return the footer's key-value metadata without ``ARROW:schema``; None if empty."""
    keys = {key: value for key, value in file.footer.key_value_metadata.items() if key != "ARROW:schema"}
    return {key: value for key, value in keys.items() if value is not None} or None


def _writer_field_metadata(file: OpenFile) -> list[Any]:
    """Return the top-level fields' metadata from the writer's Arrow schema; empty without one."""
    pa = import_pyarrow()
    value = file.footer.key_value_metadata.get("ARROW:schema")
    try:
        schema = pa.ipc.read_schema(pa.py_buffer(binascii.a2b_base64(value))) if value is not None else None
    except (pa.ArrowException, ValueError, OSError):
        return []
    fields = [] if schema is None else list(schema)
    return [field.metadata or {} for field in fields] if len(fields) == len(file.schema.columns) else []


def _field_metadata(file: OpenFile, position: int, notes: Sequence[Any]) -> dict[Any, Any] | None:
    """Return the metadata of a top-level field, its field id included; None for a partition column."""
    if position < 0:
        return None
    field_id = file.schema.field_id(file.schema.column_element(position))
    found = dict(notes[position]) if position < len(notes) else {}
    if field_id is not None:
        found[b"PARQUET:field_id"] = str(field_id).encode()
    return found or None


def negotiate_schema(schema: Any, requested: Any) -> Any:
    """Return `schema` with strings and bytes of the offset width that `requested` (a PyCapsule) has.

    A request with other names or another order is ignored.
    """
    pa = import_pyarrow()
    wanted = pa.Schema._import_from_c_capsule(requested)
    if wanted.names != schema.names:
        return schema
    families = [[getattr(pa, name)(), getattr(pa, f"large_{name}")()] for name in ("string", "binary")]
    fields = []
    for field, other in zip(schema, wanted, strict=True):
        free = any(field.type in family and other.type in family for family in families)
        fields.append(field.with_type(other.type) if free else field)
    return pa.schema(fields, schema.metadata)
