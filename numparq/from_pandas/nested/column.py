"""Nested columns of a frame, shredded to leaf values by row ranges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from numparq.column.leaf_values import LeafValues, SourceColumn
from numparq.column.nested.shred import UnshreddedArray, shred
from numparq.errors import SchemaError, error_context
from numparq.format.key_values.arrow import ArrowField
from numparq.format.schema_node import SchemaNode
from numparq.from_pandas.cast.physical import to_physical
from numparq.types.arrow_fields import field_from_node, node_from_field

RowSlicer = Callable[[int, int], list[UnshreddedArray]]


def shredded_column(field: ArrowField, node: SchemaNode, slice_rows: RowSlicer) -> SourceColumn:
    """Return a nested column; `slice_rows` returns rows `start` to `stop` (exclusive) as consecutive nested arrays."""

    def shred_rows(start: int, stop: int) -> list[list[LeafValues]]:
        return [shred(node, array, to_physical) for array in slice_rows(start, stop)]

    def leaves(start: int, stop: int) -> list[LeafValues]:
        try:
            parts = shred_rows(start, stop)
        except SchemaError as error:
            raise _error_of_row(error, shred_rows, start, stop) from None
        return [_concat_leaves(list(several)) for several in zip(*parts, strict=True)]

    return SourceColumn(node, field, leaves)


def _error_of_row(error: SchemaError, shred_rows: Callable[[int, int], object], start: int, stop: int) -> SchemaError:
    """Return the error of the first row that cannot be shredded, found by halves, with its number."""
    while start < stop:
        middle = (start + stop + 1) // 2
        try:
            shred_rows(start, middle)
        except SchemaError as found:
            error = found
            if middle - start == 1:
                break
            stop = middle
        else:
            start = middle
    if start < stop and not error.message.startswith("row "):
        error.message = f"row {start}: {error.message}"
    return error


def nested_column(
    name: str, data: Any, node: SchemaNode | None = None, field: ArrowField | None = None
) -> SourceColumn:
    """Return the nested column of Python objects or Arrow data, of a given type or the inferred one.

    The field follows from the node if it is not given. Raises SchemaError if the type cannot be written or the data
    do not have it.
    """
    with error_context(column=name):
        node = None if node is None else replace(node, name=name)
        field = None if field is None else replace(field, name=name)
        if node is not None and field is None:
            field = field_from_node(node)
        if hasattr(data, "__arrow_array__") and not isinstance(data, np.ndarray):
            data = data.__arrow_array__()
        if hasattr(data, "buffers") or hasattr(data, "chunks"):
            field, take = _from_arrow(name, data, field)
        else:
            field, take = _from_objects(name, np.asarray(data, object), field)
        return shredded_column(field, node or node_from_field(field), take)


def _from_arrow(name: str, data: Any, field: ArrowField | None) -> tuple[ArrowField, RowSlicer]:
    from numparq.types.pyarrow import field_from_pyarrow

    from .arrow import cast_then_convert, nested_from_arrow, unify_dictionaries

    known = field_from_pyarrow(name, data.type)
    data = unify_dictionaries(data, known)
    as_it_is = field is None or replace(field, nullable=True) == known
    convert = nested_from_arrow if field is None or as_it_is else cast_then_convert(field, data.type)

    def take(start: int, stop: int) -> list[UnshreddedArray]:
        rows = data.slice(start, stop - start)
        chunks = [chunk for chunk in getattr(rows, "chunks", (rows,)) if len(chunk)]
        return [convert(chunk) for chunk in chunks or [_empty(data.type)]]

    return field or known, take


def _empty(data_type: Any) -> Any:
    import pyarrow as pa

    return pa.nulls(0, data_type)


def _from_objects(name: str, values: np.ndarray, field: ArrowField | None) -> tuple[ArrowField, RowSlicer]:
    from .infer import infer_field
    from .objects import nested_from_objects

    known = infer_field(name, values) if field is None else field
    return known, lambda start, stop: [nested_from_objects(values[start:stop], known, (name,))]


def _concat_leaves(parts: list[LeafValues]) -> LeafValues:
    """Concatenate parts of a shredded leaf; their dictionaries, if any, are the same."""
    if len(parts) == 1:
        return parts[0]
    definition, repetition = (
        [getattr(part, name) for part in parts] for name in ("definition_levels", "repetition_levels")
    )
    levels: dict[str, Any] = {
        "definition_levels": None if definition[0] is None else np.concatenate(definition),
        "repetition_levels": None if repetition[0] is None else np.concatenate(repetition),
    }
    if parts[0].codes is not None:
        codes = np.concatenate([part.codes for part in parts])
        return LeafValues(parts[0].values, parts[0].starts, parts[0].ends, codes=codes, **levels)
    if parts[0].starts is None:
        return LeafValues(np.concatenate([part.values for part in parts]), **levels)
    return LeafValues(*_concat_strings(parts), **levels)


def _concat_strings(parts: list[LeafValues]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Concatenate byte arrays, copying the data between each part's first and last byte."""
    data, starts, ends, room = [], [], [], 0
    for part in parts:
        assert part.starts is not None
        assert part.ends is not None
        if not len(part.starts):
            continue
        first, last = int(part.starts.min()), int(part.ends.max())
        data.append(part.values[first:last])
        starts.append(part.starts + (room - first))
        ends.append(part.ends + (room - first))
        room += last - first
    if not data:
        return np.zeros(0, np.uint8), np.zeros(0, np.int64), np.zeros(0, np.int64)
    return np.concatenate(data), np.concatenate(starts), np.concatenate(ends)
