"""Cast Arrow arrays to another Arrow type without loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from numparq.errors import SchemaError

__all__ = ["cast_arrow"]


def cast_arrow(array: Any, dtype: pd.ArrowDtype) -> Any:
    """Give a column as one of another Arrow type.

    Parameters
    ----------
    array : pandas.arrays.ArrowExtensionArray or another array
        The column.
    dtype : pandas.ArrowDtype
        Its new dtype.

    Returns
    -------
    pandas.arrays.ArrowExtensionArray

    Raises
    ------
    SchemaError
        When a value does not fit.
    """
    import pyarrow as pa

    wanted = dtype.pyarrow_dtype
    data = array.__arrow_array__() if hasattr(array, "__arrow_array__") else pa.array(array, from_pandas=True)
    chunks = data.chunks if isinstance(data, pa.ChunkedArray) else [data]
    try:
        made = [_as_type(chunk, wanted) for chunk in chunks]
    except (pa.ArrowException, NotImplementedError) as error:
        raise SchemaError(f"Arrow type {data.type} cannot be cast to {wanted} without loss: {error}") from error
    return pd.arrays.ArrowExtensionArray(pa.chunked_array(made, type=wanted))


def _as_type(array: Any, wanted: Any) -> Any:
    import pyarrow as pa

    if array.type == wanted:
        return array
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), wanted)
    if isinstance(wanted, pa.BaseExtensionType):
        storage = array.storage if isinstance(array.type, pa.BaseExtensionType) else array
        return pa.ExtensionArray.from_storage(wanted, _as_type(storage, wanted.storage_type))
    if isinstance(array.type, pa.BaseExtensionType):
        return _as_type(array.storage, wanted)
    if pa.types.is_dictionary(array.type) and not pa.types.is_dictionary(wanted):
        return _as_type(array.dictionary_decode(), wanted)
    rule = next((rule for test, rule in _rules() if test(wanted) and test(array.type)), None)
    if rule is None and pa.types.is_fixed_size_list(wanted):  # pyarrow may crash when it casts other lists to these
        raise pa.ArrowInvalid(f"not all lists have {wanted.list_size} elements")
    if rule is None:
        return array.cast(wanted)
    return rule(pa.concat_arrays([array]) if array.offset else array, wanted)


def _struct(array: Any, wanted: Any) -> Any:
    import pyarrow as pa

    fields = [wanted.field(number) for number in range(wanted.num_fields)]
    children = []
    for field in fields:
        place = array.type.get_field_index(field.name)
        found = pa.nulls(len(array), field.type) if place < 0 else _as_type(array.field(place), field.type)
        children.append(found)
    if not fields:
        return array.cast(wanted)
    return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null())


def _list(array: Any, wanted: Any) -> Any:
    import pyarrow as pa

    kind = pa.LargeListArray if pa.types.is_large_list(wanted) else pa.ListArray
    offsets = array.offsets.cast(pa.int64() if kind is pa.LargeListArray else pa.int32())
    values = _as_type(array.values, wanted.value_type)
    return kind.from_arrays(offsets, values, type=wanted, mask=array.is_null())


def _fixed_size_list(array: Any, wanted: Any) -> Any:
    import pyarrow as pa

    if array.type.list_size != wanted.list_size:
        raise pa.ArrowInvalid(f"the lists have {array.type.list_size} elements, not {wanted.list_size}")
    values = _as_type(array.values, wanted.value_type)
    return pa.Array.from_buffers(wanted, len(array), array.buffers()[:1], array.null_count, children=[values])


def _map(array: Any, wanted: Any) -> Any:
    import pyarrow as pa

    keys, items = _as_type(array.keys, wanted.key_type), _as_type(array.items, wanted.item_type)
    entries = pa.StructArray.from_arrays([keys, items], fields=[wanted.key_field, wanted.item_field])
    buffers = array.buffers()[:2]
    return pa.Array.from_buffers(wanted, len(array), buffers, array.null_count, children=[entries])


def _rules() -> list[tuple[Callable[[Any], bool], Callable[[Any, Any], Any]]]:
    """Give the groups: what tells one, and what converts it."""
    from pyarrow import types

    return [
        (types.is_struct, _struct),
        (types.is_map, _map),
        (types.is_fixed_size_list, _fixed_size_list),
        (lambda kind: types.is_list(kind) or types.is_large_list(kind), _list),
    ]
