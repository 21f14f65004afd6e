"""Cast Arrow arrays to another Arrow type without loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from numparq.errors import SchemaError

__all__ = ["cast_arrow"]


def cast_arrow(array: Any, dtype: pd.ArrowDtype) -> Any:
    """Cast a column to another Arrow type, as an ArrowExtensionArray; SchemaError if a value does not fit."""
    import pyarrow as pa

    target = dtype.pyarrow_dtype
    data = array.__arrow_array__() if hasattr(array, "__arrow_array__") else pa.array(array, from_pandas=True)
    chunks = data.chunks if isinstance(data, pa.ChunkedArray) else [data]
    try:
        cast_chunks = [_as_type(chunk, target) for chunk in chunks]
    except (pa.ArrowException, NotImplementedError) as error:
        raise SchemaError(f"Arrow type {data.type} cannot be cast to {target} without loss: {error}") from error
    return pd.arrays.ArrowExtensionArray(pa.chunked_array(cast_chunks, type=target))


def _as_type(array: Any, target: Any) -> Any:
    import pyarrow as pa

    if array.type == target:
        return array
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), target)
    if isinstance(target, pa.BaseExtensionType):
        storage = array.storage if isinstance(array.type, pa.BaseExtensionType) else array
        return pa.ExtensionArray.from_storage(target, _as_type(storage, target.storage_type))
    if isinstance(array.type, pa.BaseExtensionType):
        return _as_type(array.storage, target)
    if pa.types.is_dictionary(array.type) and not pa.types.is_dictionary(target):
        return _as_type(array.dictionary_decode(), target)
    rule = next((rule for test, rule in _rules() if test(target) and test(array.type)), None)
    if rule is None and pa.types.is_fixed_size_list(target):  # pyarrow may crash when it casts other lists to these
        raise pa.ArrowInvalid(f"not all lists have {target.list_size} elements")
    if rule is None:
        return array.cast(target)
    return rule(pa.concat_arrays([array]) if array.offset else array, target)


def _struct(array: Any, target: Any) -> Any:
    import pyarrow as pa

    fields = [target.field(number) for number in range(target.num_fields)]
    children = []
    for field in fields:
        position = array.type.get_field_index(field.name)
        child = pa.nulls(len(array), field.type) if position < 0 else _as_type(array.field(position), field.type)
        children.append(child)
    if not fields:
        return array.cast(target)
    return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null())


def _list(array: Any, target: Any) -> Any:
    import pyarrow as pa

    kind = pa.LargeListArray if pa.types.is_large_list(target) else pa.ListArray
    offsets = array.offsets.cast(pa.int64() if kind is pa.LargeListArray else pa.int32())
    values = _as_type(array.values, target.value_type)
    return kind.from_arrays(offsets, values, type=target, mask=array.is_null())


def _fixed_size_list(array: Any, target: Any) -> Any:
    import pyarrow as pa

    if array.type.list_size != target.list_size:
        raise pa.ArrowInvalid(f"the lists have {array.type.list_size} elements, not {target.list_size}")
    values = _as_type(array.values, target.value_type)
    return pa.Array.from_buffers(target, len(array), array.buffers()[:1], array.null_count, children=[values])


def _map(array: Any, target: Any) -> Any:
    import pyarrow as pa

    keys, items = _as_type(array.keys, target.key_type), _as_type(array.items, target.item_type)
    entries = pa.StructArray.from_arrays([keys, items], fields=[target.key_field, target.item_field])
    buffers = array.buffers()[:2]
    return pa.Array.from_buffers(target, len(array), buffers, array.null_count, children=[entries])


def _rules() -> list[tuple[Callable[[Any], bool], Callable[[Any, Any], Any]]]:
    """Return the casts of nested types: a test of the type, and the function."""
    from pyarrow import types

    return [
        (types.is_struct, _struct),
        (types.is_map, _map),
        (types.is_fixed_size_list, _fixed_size_list),
        (lambda kind: types.is_list(kind) or types.is_large_list(kind), _list),
    ]
