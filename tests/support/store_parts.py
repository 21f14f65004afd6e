"""Parts of data-skipping stores with any cells, written by pyarrow."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from numparq.format.key_values.spark import ROW_METADATA, VERSION
from numparq.skipping import Store

SPARK_TYPES = {
    pa.int8(): "byte",
    pa.int16(): "short",
    pa.int32(): "integer",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.bool_(): "boolean",
    pa.date32(): "date",
}


def bounds(kind: pa.DataType, cells: Sequence[Any]) -> pa.Array:
    """Return MinMax cells: pairs, or None."""
    dicts = [None if cell is None else dict(zip(("min", "max"), cell, strict=True)) for cell in cells]
    return pa.array(dicts, pa.struct([("min", kind), ("max", kind)]))


def lists(kind: pa.DataType, cells: Sequence[Any]) -> pa.Array:
    """Return ValueList cells."""
    return pa.array(cells, pa.list_(pa.field("element", kind)))


def spark_type(kind: pa.DataType) -> Any:
    if pa.types.is_struct(kind):
        fields = [{"name": f.name, "type": spark_type(f.type), "nullable": True, "metadata": {}} for f in kind]
        return {"type": "struct", "fields": fields}
    if pa.types.is_list(kind):
        return {"type": "array", "elementType": spark_type(kind.value_type), "containsNull": True}
    return SPARK_TYPES.get(kind, "timestamp")


def schema_json(
    indexes: Mapping[str, tuple[str, str]], types: Mapping[str, pa.DataType], version: Any = 4, **about: Any
) -> str:
    """Return Spark's schema JSON; `indexes` maps columns of the store to name and column of an index."""
    own = {"tableIdentifier": "/data", **({} if version is None else {"version": version}), **about}
    fields = [{"name": "obj_name", "type": "string", "nullable": True, "metadata": own}]
    for column, kind in types.items():
        name = indexes.get(column)
        metadata = {} if name is None else {"index": {"name": name[0], "cols": [name[1]]}}
        fields.append({"name": column, "type": spark_type(kind), "nullable": True, "metadata": metadata})
    return json.dumps({"type": "struct", "fields": fields})


def write_part(
    folder: Path,
    indexes: Mapping[str, tuple[str, str]],
    columns: Mapping[str, pa.Array],
    names: Sequence[str | None] | None = None,
    **options: Any,
) -> Path:
    """Write a part; the files are named a, b, ... unless `names` are given."""
    count = len(next(iter(columns.values())))
    names = [f"/data/{chr(97 + at)}.csv#{at}" for at in range(count)] if names is None else names
    text = options.pop("schema", None) or schema_json(
        indexes, {name: array.type for name, array in columns.items()}, options.pop("version", 4)
    )
    keys = {ROW_METADATA: text, VERSION: options.pop("spark", "3.5.0"), **options.pop("keys", {})}
    table = pa.table({"obj_name": pa.array(names, pa.string()), **columns})
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{options.pop('name', 'part-0')}.parquet"
    pq.write_table(table.replace_schema_metadata(keys), path, **options)
    return path


def skipped(folder: Path, filters: Any) -> str:
    """Return the letters of the files that a store lets skip."""
    return "".join(path.rpartition("/")[2].partition(".")[0] for path in Store(folder).select(filters).skipped)
