"""VARIANT columns of Python values, encoded unshredded as each row group is written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from numparq.column.leaf_values import SourceColumn
from numparq.column.nested.shred import UnshreddedArray
from numparq.errors import SchemaError
from numparq.from_pandas.user_schema import UserColumn

from .column import nested_column, shredded_column
from .objects import nested_from_objects

_PARTS = {"metadata", "value"}


def variant_column(name: str, data: Any, user_column: UserColumn) -> SourceColumn:
    """Return the VARIANT column of values that `numparq.variant.encode` takes; None, NaT and NA are nulls.

    If all are dicts of ``metadata`` and ``value`` bytes, or Arrow structs of both, they are taken as encoded.
    """
    if _is_struct_of_parts(data.dtype):
        return nested_column(name, data, user_column.node)
    values = np.asarray(data, object)
    nulls = _null_mask(values) if str(data.dtype) == "object" else np.asarray(pd.isna(data))
    if not nulls.all() and all(map(_is_encoded, values[~nulls])):
        return nested_column(name, data, user_column.node)

    def take(start: int, stop: int) -> list[UnshreddedArray]:
        rows = np.full(stop - start, None, object)
        for row in np.flatnonzero(~nulls[start:stop]).tolist():
            rows[row] = _encode(values[start + row], start + row)
        return [nested_from_objects(rows, user_column.field, (name,))]

    return shredded_column(user_column.field, user_column.node, take)


def _is_struct_of_parts(dtype: Any) -> bool:
    data_type: Any = getattr(dtype, "pyarrow_dtype", None)
    return str(data_type).startswith("struct<") and {field.name for field in data_type} == _PARTS


def _null_mask(values: np.ndarray) -> np.ndarray:
    """Return a bool mask of the nulls; NaN is none, since a VARIANT can hold it."""
    return np.fromiter((value is None or value is pd.NaT or value is pd.NA for value in values), bool, len(values))


def _is_encoded(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() == _PARTS
        and all(isinstance(part, (bytes, bytearray)) for part in value.values())
    )


def _encode(value: Any, row: int) -> dict[str, bytes]:
    from numparq.format.variant.encoder import encode

    try:
        metadata, encoded = encode(value)
    except (TypeError, ValueError) as error:
        raise SchemaError(f"row {row} cannot be encoded as VARIANT: {error}") from error
    return {"metadata": metadata, "value": encoded}
