"""A shredded frame against the file that pyarrow writes for it."""

from __future__ import annotations

import base64
import json
import warnings

import pandas as pd
import pyarrow as pa

from numparq.format.key_values.arrow import arrow_schema_value
from numparq.format.schema_node import leaf_columns
from numparq.from_pandas.frame import shred_frame
from support.data.leaf_values import (
    PHYSICAL,
    leaf_to_list,
    logical_type_json,
    pyarrow_file,
    pyarrow_schema,
    stored_values,
)


def numparq_schema(apart):
    return [
        (
            ".".join(leaf.path),
            PHYSICAL[leaf.physical],
            leaf.type_length or 0,
            logical_type_json(leaf.logical),
            leaf.max_definition_level,
            leaf.max_repetition_level,
        )
        for leaf in leaf_columns([column.node for column in apart.columns])
    ]


def normalized_pandas_key(text):
    found = json.loads(text)
    assert found["creator"].pop("library")
    found["creator"].pop("version")
    found.pop("numparq_attrs", None)
    for entry in [*found["columns"], *found["column_indexes"]]:
        entry["metadata"] = drop_numparq_notes(entry["metadata"] or {}) or None
        try:
            pd.api.types.pandas_dtype(entry["numpy_type"])
        except (TypeError, NotImplementedError):  # pyarrow writes it, and does not read the file then
            entry["numpy_type"] = "object"
    found["index_columns"] = [
        drop_numparq_notes(level) if isinstance(level, dict) else level for level in found["index_columns"]
    ]
    return found


def drop_numparq_notes(entry):
    """Drop metadata that only numparq reads."""
    return {key: value for key, value in entry.items() if not key.startswith("numparq")}


def flatten_struct_columns(table):
    columns = []
    for column in table.columns:
        if pa.types.is_struct(column.type):
            columns += [column.flatten()[place] for place in range(column.type.num_fields)]
        else:
            columns.append(column)
    return columns


def rows_of(apart, start, stop):
    found = []
    for column in apart.columns:
        nodes = column.node.children or (column.node,)
        leaves = column.read_leaves(start, stop)
        found += [leaf_to_list(leaf, node, stop - start) for leaf, node in zip(leaves, nodes, strict=True)]
    return found


def assert_shredded_like_pyarrow(frame, **options):
    """Compare schema, metadata, ARROW:schema and the values of row ranges; return the shredded frame."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        apart = shred_frame(frame, **options)
        table = pa.Table.from_pandas(frame, preserve_index=options.get("index"))
    file = pyarrow_file(table)
    assert numparq_schema(apart) == [
        (path, kind, max(length or 0, 0), *rest) for path, kind, length, *rest in pyarrow_schema(file)
    ]
    assert normalized_pandas_key(apart.key_value_metadata["pandas"]) == normalized_pandas_key(
        table.schema.metadata[b"pandas"]
    )
    message = base64.b64decode(arrow_schema_value(apart.arrow_fields, apart.key_value_metadata))
    assert pa.ipc.read_schema(pa.py_buffer(message)).equals(table.schema.remove_metadata())
    assert apart.num_rows == len(frame)
    expected = [stored_values(column) for column in flatten_struct_columns(file.read())]
    assert rows_of(apart, 0, len(frame)) == expected
    for start in range(len(frame)):
        for stop in range(start, len(frame) + 1):
            assert rows_of(apart, start, stop) == [column[start:stop] for column in expected]
    return apart
