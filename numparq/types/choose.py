"""Choose the output type of a leaf column by Arrow type, dtype backend, nulls and pandas metadata."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import pandas as pd

from numparq.format.arrow_type import ArrowType, DictionaryIndex
from numparq.kernels.enums import BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY, INT64

from .dtype_backends import NULLABLE_TYPES, NUMPY_TYPES, PANDAS_TYPES, period_dtype, pyarrow_output_type
from .output_type import LeafType, OutputType
from .parquet_type import infer_arrow_type

__all__ = ["choose_nested_output_type", "choose_output_type", "needs_arrow_hint"]

DTYPE_BACKENDS = ("numpy", "numpy_nullable", "pyarrow")


def needs_arrow_hint(leaf: Any, dtype_backend: str) -> bool:
    """Say whether the type by ``ARROW:schema`` can make a difference for a column; else it need not be decoded.

    Parameters
    ----------
    leaf, dtype_backend
        As in `choose_output_type`.
    """
    return dtype_backend != "numpy" or leaf.physical in (INT64, BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY)


def choose_output_type(
    leaf: Any,
    origin: ArrowType | None = None,
    *,
    dtype_backend: str = "numpy",
    null_count: int | None = None,
    pandas_dtype: Any = None,
    timezone: str | None = None,
    categorical: bool = False,
) -> OutputType:
    """Choose how to decode a flat leaf column.

    Parameters
    ----------
    leaf : numparq.format.schema.Leaf
        The column; its ``physical``, ``type_length``, ``logical`` and ``max_definition_level`` count.
    origin : ArrowType or None
        Its type by the footer's ``ARROW:schema``.
    dtype_backend : {"numpy", "numpy_nullable", "pyarrow"}
        As in pandas.
    null_count : int or None
        How many nulls the statistics promise for the rows to read; None where they do not say. Only a hint.
    pandas_dtype : pandas.api.extensions.ExtensionDtype or None
        The extension dtype that the footer's pandas metadata gives the column.
    timezone : str or None
        The time zone that the footer's pandas metadata gives the column.
    categorical : bool
        Whether the caller wants a Categorical.

    Returns
    -------
    OutputType

    Raises
    ------
    InvalidFileError
        When the type of the column breaks the specification.
    """
    optional = leaf.max_definition_level > 0
    return _choose(
        leaf.physical,
        leaf.type_length,
        leaf.logical,
        origin,
        dtype_backend,
        optional,
        optional and bool(null_count),
        pandas_dtype,
        timezone,
        categorical,
    )


def choose_nested_output_type(leaf: Any, origin: ArrowType | None = None) -> OutputType:
    """Choose how to decode the values of a leaf of a nested column: those that are there, as they are in NumPy.

    Parameters
    ----------
    leaf, origin
        As in `choose_output_type`.

    Returns
    -------
    OutputType
        Strings are to become objects, UUIDs bytes, and nothing a Categorical.

    Raises
    ------
    InvalidFileError
        As in `choose_output_type`.
    """
    if origin is not None:
        origin = replace(origin, dictionary=None, extension=None)
    target = choose_output_type(replace(leaf, max_definition_level=0), origin)
    target = replace(target, finish=_FINISH_NESTED.get(target.finish, target.finish))
    return target.along(nested=True, block=False)


# How values within nested columns are finished where that is not as in flat ones: strings are objects, UUIDs bytes.
_FINISH_NESTED = {"text": "text_objects", "uuids": "bytes"}


@lru_cache(maxsize=4096)
def _choose(
    physical: int,
    type_length: int | None,
    logical: Any,
    origin: ArrowType | None,
    dtype_backend: str,
    optional: bool,
    nulls_expected: bool,
    pandas_dtype: Any,
    timezone: str | None,
    categorical: bool,
) -> OutputType:
    if dtype_backend not in DTYPE_BACKENDS:
        raise ValueError(f"dtype_backend must be one of {', '.join(DTYPE_BACKENDS)}, not {dtype_backend!r}")
    arrow_type = infer_arrow_type(physical, type_length, logical, origin)
    if categorical and arrow_type.kind in ("utf8", "large_utf8", "binary", "large_binary") and not arrow_type.extension:
        arrow_type = replace(arrow_type, dictionary=arrow_type.dictionary or DictionaryIndex())
    unit = ""
    if timezone and arrow_type.kind == "timestamp" and timezone != arrow_type.timezone:
        unit = "" if arrow_type.unit == "ns" else "ns"  # the unit that pyarrow gives a column whose zone it corrects
        arrow_type = replace(arrow_type, timezone=timezone)
    column = LeafType(arrow_type, physical, type_length or 0, optional, nulls_expected)
    if categorical and arrow_type.dictionary is None:
        # Made of the values once they are decoded; nullable ones, so that the categories are integers beside nulls too.
        return _backend_output_type(column, "numpy_nullable", None).along(categorical=True, block=False, unit=unit)
    return _backend_output_type(column, dtype_backend, pandas_dtype).along(unit=unit)


def _backend_output_type(column: LeafType, dtype_backend: str, pandas_dtype: Any) -> OutputType:
    kind, extension = column.type.kind, column.type.extension
    if dtype_backend == "pyarrow":
        return pyarrow_output_type(column, None)
    if extension == "pandas.period":
        pandas_dtype = period_dtype(column.type) or pandas_dtype
    if dtype_backend == "numpy_nullable" and kind in NULLABLE_TYPES and extension is None:
        target = NULLABLE_TYPES[kind](column)
        if target is not None:
            return target
    if isinstance(pandas_dtype, pd.ArrowDtype):
        return pyarrow_output_type(column, pandas_dtype)
    if pandas_dtype is not None and column.type.dictionary is None:
        for dtype_class, restore in PANDAS_TYPES:
            target = restore(column, pandas_dtype) if isinstance(pandas_dtype, dtype_class) else None
            if target is not None:
                return target
    return NUMPY_TYPES[kind](column)
