"""The output type of a leaf column, chosen by Arrow type, dtype backend, nulls and pandas metadata."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pandas as pd

from numparq.format.arrow_type import ArrowType, DictionaryIndex
from numparq.format.key_values.time_zones import is_zone_name, warn_of_unknown_zone
from numparq.kernels.enums import BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY, INT64
from numparq.typing import AnyDtypeBackend, DtypeBackend
from numparq.util.arguments import did_you_mean

from .dtype_backends import (
    NULLABLE_TYPES,
    NUMPY_TYPES,
    datetime64_from_dates,
    period_dtype,
    pyarrow_output_type,
    restore_pandas_type,
)
from .output_type import LeafType, OutputType
from .parquet_type import infer_arrow_type

if TYPE_CHECKING:
    from numparq.format.logical_type import LogicalType
    from numparq.format.schema import Leaf

DTYPE_BACKENDS = ("numpy", "numpy_nullable", "pyarrow")


def needs_arrow_hint(leaf: Leaf, dtype_backend: str) -> bool:
    """Whether ``ARROW:schema`` can change the output type of a leaf column; otherwise it need not be decoded."""
    return dtype_backend != "numpy" or leaf.physical in (INT64, BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY)


def choose_output_type(
    leaf: Leaf,
    hint: ArrowType | None = None,
    *,
    dtype_backend: str = "numpy",
    has_nulls: bool = False,
    pandas_dtype: Any = None,
    timezone: str | None = None,
    categorical: bool = False,
) -> OutputType:
    """Choose the output type of a flat leaf column; InvalidFileError if its type violates the specification.

    `has_nulls` is only a hint; `pandas_dtype` and `timezone` come from the pandas metadata.
    """
    optional = leaf.max_definition_level > 0
    zone = timezone or (hint.timezone if hint is not None else "")
    if zone and not is_zone_name(zone):
        warn_of_unknown_zone(zone)
        timezone = "UTC"
    return _choose(
        leaf.physical,
        leaf.type_length,
        leaf.logical,
        hint,
        dtype_backend,
        optional,
        optional and has_nulls,
        pandas_dtype,
        timezone,
        categorical,
    )


def choose_nested_output_type(leaf: Leaf, hint: ArrowType | None = None) -> OutputType:
    """Choose the output type for the values of a nested leaf column, without nulls, in NumPy.

    Strings become objects and UUIDs bytes; no leaf becomes a Categorical.
    """
    if hint is not None:
        hint = replace(hint, dictionary=None, extension=None)
    target = choose_output_type(replace(leaf, max_definition_level=0), hint)
    target = replace(target, array_kind=_FINISH_NESTED.get(target.array_kind, target.array_kind))
    return target.replace_all(nested=True, shares_block=False)


def resolve_dtype_backend(dtype_backend: DtypeBackend) -> AnyDtypeBackend:
    """Return the checked `dtype_backend`; pandas' "no default" marker means "numpy"."""
    if "no_default" in str(dtype_backend):
        return "numpy"
    if dtype_backend not in DTYPE_BACKENDS:
        close = did_you_mean(dtype_backend, DTYPE_BACKENDS)
        raise ValueError(f"dtype_backend must be 'numpy_nullable' or 'pyarrow', not {dtype_backend!r}{close}")
    return dtype_backend


def apply_dates(target: OutputType, dates: str) -> OutputType:
    """Return an output type with dates as datetime64 if the option `dates` says so; Arrow data stays as it is."""
    if dates == "objects":
        return target
    if target.entry_type is not None:
        return replace(target, entry_type=apply_dates(target.entry_type, dates))
    return datetime64_from_dates(target) if target.array_kind == "dates" else target


# `finish` of nested leaf columns where it differs from flat ones.
_FINISH_NESTED = {"text": "text_objects", "uuids": "bytes"}


@lru_cache(maxsize=4096)
def _choose(
    physical: int,
    type_length: int | None,
    logical: LogicalType | None,
    hint: ArrowType | None,
    dtype_backend: str,
    optional: bool,
    nulls_expected: bool,
    pandas_dtype: Any,
    timezone: str | None,
    categorical: bool,
) -> OutputType:
    if dtype_backend not in DTYPE_BACKENDS:
        close = did_you_mean(dtype_backend, DTYPE_BACKENDS)
        raise ValueError(f"dtype_backend must be one of {', '.join(DTYPE_BACKENDS)}, not {dtype_backend!r}{close}")
    arrow_type = infer_arrow_type(physical, type_length, logical, hint)
    if categorical and arrow_type.kind in ("utf8", "large_utf8", "binary", "large_binary") and not arrow_type.extension:
        arrow_type = replace(arrow_type, dictionary=arrow_type.dictionary or DictionaryIndex())
    unit = ""
    if timezone and arrow_type.kind == "timestamp" and timezone != arrow_type.timezone:
        unit = "" if arrow_type.unit == "ns" else "ns"  # as pyarrow does when it corrects a time zone
        arrow_type = replace(arrow_type, timezone=timezone)
    column = LeafType(arrow_type, physical, type_length or 0, optional, nulls_expected)
    if categorical and arrow_type.dictionary is None:
        # The Categorical is made from decoded values; nullable dtypes keep integer categories despite nulls.
        return _backend_output_type(column, "numpy_nullable", None).replace_all(
            categorical=True, shares_block=False, unit=unit
        )
    return _backend_output_type(column, dtype_backend, pandas_dtype).replace_all(unit=unit)


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
    if column.type.dictionary is None or isinstance(pandas_dtype, pd.ArrowDtype):
        target = restore_pandas_type(column, pandas_dtype)
        if target is not None:
            return target
    return NUMPY_TYPES[kind](column)
