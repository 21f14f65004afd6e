"""Arrow schema and tables of a scan, with string offsets as a requested schema has them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from numparq.column.buffers import DecodedColumn
from numparq.errors import InvalidFileError, UnsupportedError, error_context
from numparq.format.key_values.arrow import pyarrow_schema
from numparq.format.key_values.spark import drop_calendar
from numparq.format.open_file import OpenFile
from numparq.scan.projected_columns import ProjectedColumns
from numparq.to_pandas.arrow import to_arrow
from numparq.types.output_type import OutputType
from numparq.util.optional import import_pyarrow
from numparq.util.pluralize import pluralize

if TYPE_CHECKING:
    import pandas as pd

    from numparq.scan.scan import DecodedRows, Scan

_VIRTUAL = {"file": "string", "row_group": "int64", "row_number": "int64", "position": "int64"}

# pyarrow holds a schema's metadata three times while it imports them.
_MAX_METADATA_BYTES = 32 << 20

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
                _is_nullable(columns, place) or pa.types.is_null(array.type),  # pyarrow allows no other
                _field_metadata(file, columns.leaves[place].column, notes),
            )
            for (place, label), array in zip(labels, arrays, strict=True)
        ]
        fields += [pa.field(name, _virtual_type(name), False) for name in columns.virtual]
        self.schema = pa.schema(fields, _schema_metadata(file))

    @classmethod
    def of_scan(cls, scan: Scan) -> ArrowTableBuilder:
        """Return the builder of the tables of a scan."""
        projection, files = scan.projection, scan.selected
        others = projection.partition_arrays([], [])
        with error_context(file=files[0].file.source.name if len(files) == 1 else None):
            return cls(projection.schema_file, projection, scan.output_types, others)

    def to_table(self, rows: DecodedRows) -> Any:
        """Build a table of `schema` from decoded rows; a virtual column is an array or a constant str.

        Raises InvalidFileError for a null map key, UnsupportedError for values that do not fit the schema's type.
        """
        pa, num_rows = import_pyarrow(), rows.num_rows
        arrays = to_arrow_arrays(self._columns, rows.layout.targets, rows.buffers, num_rows, rows.arrays)
        arrays += [
            pa.repeat(value, num_rows) if isinstance(value, str) else _to_chunked_array(value).cast(_virtual_type(name))
            for name, value in rows.virtual
        ]
        return _to_table(arrays, self.schema, num_rows)


class ExplodedTableBuilder:
    """Builder of Arrow tables of one `schema` from frames of exploded rows, whose columns have Arrow's dtypes.

    `nothing` is such a frame without rows; `virtual` are the names of its virtual columns, `index` those of the columns
    that are its index, which come last.
    """

    def __init__(self, nothing: pd.DataFrame, virtual: Sequence[str], index: Sequence[str]) -> None:
        pa = import_pyarrow()
        self._virtual, self._index = virtual, index
        names = [*map(str, nothing.columns), *index]
        arrays = self._arrays(nothing)
        self.schema = pa.schema(
            [pa.field(_to_utf8(name), array.type) for name, array in zip(names, arrays, strict=True)]
        )

    def to_table(self, frame: pd.DataFrame) -> Any:
        """Build a table of `schema`."""
        return _to_table(self._arrays(frame), self.schema, len(frame))

    def _arrays(self, frame: pd.DataFrame) -> list[Any]:
        arrays = [_to_chunked_array(frame.iloc[:, place].array) for place in range(frame.shape[1])]
        for place, name in enumerate(frame.columns):
            if name in self._virtual:
                arrays[place] = arrays[place].cast(_virtual_type(name))
        levels = [frame.index.get_level_values(level).array for level in range(len(self._index))]
        return [*arrays, *map(_to_chunked_array, levels)]


def _to_table(arrays: Sequence[Any], schema: Any, num_rows: int) -> Any:
    pa = import_pyarrow()
    fitting = [_with_type(array, field) for array, field in zip(arrays, schema, strict=True)]
    if not fitting:
        return pa.table({"": pa.nulls(num_rows)}).replace_schema_metadata(schema.metadata).select([])
    return pa.Table.from_arrays(fitting, schema=schema)


def _virtual_type(name: str) -> Any:
    return getattr(import_pyarrow(), _VIRTUAL[name])()


def _with_type(array: Any, field: Any) -> Any:
    """Return an array of the type of its field; an error if the values contradict the hints that the type is from."""
    if array.type == field.type:
        return array
    types = import_pyarrow().types
    if types.is_dictionary(field.type) and types.is_dictionary(array.type):
        return _split_by_dictionary(array, field.type)
    if types.is_map(field.type) and not types.is_map(array.type):  # a null key came back as a list of pairs
        raise InvalidFileError("a map has a null key, which Arrow does not allow", column=field.name)
    raise UnsupportedError(
        f"values of type {array.type} do not fit the stream's type {field.type}; "
        'read the column with dtype_backend="pyarrow"',
        column=field.name,
    )


def _split_by_dictionary(array: Any, arrow_type: Any) -> Any:
    """Return a column whose dictionaries are too long for its index type as chunks with shorter ones."""
    pa = import_pyarrow()
    most = np.iinfo(arrow_type.index_type.to_pandas_dtype()).max + 1
    chunks, waiting = [], list(reversed(array.chunks))
    while waiting:
        chunk = waiting.pop()
        short = chunk.dictionary_decode().dictionary_encode()
        if len(short.dictionary) > most:
            half = len(chunk) // 2
            waiting += [chunk.slice(half), chunk.slice(0, half)]
            continue
        indices = short.indices.cast(arrow_type.index_type)
        chunks.append(pa.DictionaryArray.from_arrays(indices, short.dictionary, ordered=arrow_type.ordered))
    return pa.chunked_array(chunks, type=arrow_type)


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
    """Return the footer's key-value metadata, for the rows as read, without ``ARROW:schema``; None if empty.

    Warns of the longest values, and leaves them out, if all together exceed the limit.
    """
    keys = file.footer.key_value_metadata
    sizes = {key: size for key, size in keys.sizes().items() if key != "ARROW:schema"}
    total = sum(sizes.values())
    while total > _MAX_METADATA_BYTES:
        longest = max(sizes, key=sizes.__getitem__)
        size = sizes.pop(longest)
        total -= size
        warnings.warn(
            f"the value of key {longest!r:.100} has {pluralize(size, 'byte')} and is left out of the Arrow "
            "schema, whose metadata "
            f"are limited to {_MAX_METADATA_BYTES:,} bytes; read it from ParquetFile.metadata",
            UserWarning,
            stacklevel=2,
        )
    kept = drop_calendar({key: keys[key] for key in sizes})
    return {_to_bytes(key): _to_bytes(value) for key, value in kept.items()} or None


def _to_bytes(text: str | bytes) -> bytes:
    """Return a text of the file as bytes, those that are not UTF-8 included."""
    return text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text


def _writer_field_metadata(file: OpenFile) -> list[Any]:
    """Return the top-level fields' metadata from the writer's Arrow schema; empty without one."""
    schema = pyarrow_schema(file.footer.key_value_metadata.get("ARROW:schema"))
    if schema is None or len(schema) != len(file.schema.columns):
        return []
    return [field.metadata or {} for field in schema]


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
