"""Row index and column labels, as the pandas metadata describes them."""

from __future__ import annotations

import ast
import datetime
import decimal
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from numparq.errors import UnsupportedError
from numparq.format.key_values.pandas import PandasMetadata, RangeIndexLevel
from numparq.format.key_values.pandas_dtypes import dtype_from_name
from numparq.format.key_values.pandas_labels import label_from_json
from numparq.format.key_values.time_zones import time_zone_from_text

from .numbers import NULLABLE_NAMES
from .strings import default_string_array

# A tuple of strings, numbers and the like. Anything deeper is not a label, and could overflow Python's parser.
_ITEM = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|-?\w{1,30}(?:\.\w{0,30})?)"""
_TUPLE = re.compile(rf"\({_ITEM}(?:, ?{_ITEM})*,?\)", re.DOTALL)
_MAX_LABEL = 1000  # characters of a label that dateutil and pandas parse
_MAX_CACHED_LABELS = 256  # frames with more columns build their labels anew


def row_index(metadata: PandasMetadata | None, levels: Sequence[tuple[str, Any]], num_rows: int) -> pd.Index:
    """Return the row index of finished columns (`levels`: names in the file, arrays); by default a RangeIndex from 0.

    A RangeIndex in the metadata counts only if its length is `num_rows`: like pyarrow, selected rows are renumbered.
    """
    arrays, names = ([], []) if metadata is None else _level_arrays(metadata, levels, num_rows)
    if metadata is None or not arrays:
        return pd.RangeIndex.from_range(range(num_rows))
    if len(arrays) == 1 and isinstance(arrays[0], pd.RangeIndex):
        return arrays[0]
    if metadata.is_written_by_numparq:  # keep the dtype: pandas would infer one for objects
        arrays = [
            array if isinstance(array, pd.Index) else pd.Index(array, dtype=array.dtype, copy=False) for array in arrays
        ]
    if len(arrays) > 1:
        return _multi_index(arrays, names)
    try:
        return pd.Index(arrays[0], name=names[0], copy=False)
    except NotImplementedError as error:  # such as float16
        raise UnsupportedError(f"pandas cannot build an index of these values: {error}") from error


def _level_arrays(
    metadata: PandasMetadata, levels: Sequence[tuple[str, Any]], num_rows: int
) -> tuple[list[Any], list[Any]]:
    """Return the arrays of the index levels and their names; columns of one name are levels in the file's order."""
    arrays, names = [], []
    by_name: dict[str, list[Any]] = {}
    for name, array in levels:
        by_name.setdefault(name, []).append(array)
    for level in metadata.index:
        if isinstance(level, RangeIndexLevel):
            if level.num_rows == num_rows:
                numbers = range(level.start, level.stop, level.step)
                is_plain = level.name is None  # pandas checks names at length
                arrays.append(
                    pd.RangeIndex.from_range(numbers) if is_plain else pd.RangeIndex(numbers, name=level.name)
                )
                names.append(level.name)
        elif by_name.get(level):
            arrays.append(by_name[level].pop(0))
            names.append(metadata.index_name(level))
    return arrays, names


def _multi_index(arrays: list[Any], names: list[Any]) -> pd.MultiIndex:
    """Return a MultiIndex; UnsupportedError for levels that pandas cannot factorize, such as Arrow intervals."""
    try:
        return pd.MultiIndex.from_arrays(arrays, names=names)
    except (NotImplementedError, TypeError) as error:
        raise UnsupportedError(f"pandas cannot build an index of these levels: {error}") from error


def column_labels(metadata: PandasMetadata | None, names: list[str]) -> pd.Index:
    """Return the column labels with the types that the metadata give them, or plain names if that fails."""
    if len(names) > _MAX_CACHED_LABELS:
        return _build_labels(metadata, names)
    return _cached_labels(metadata, tuple(names)).view()  # a view has its own names


@lru_cache(maxsize=64)
def _cached_labels(metadata: PandasMetadata | None, names: tuple[str, ...]) -> pd.Index:
    """Return labels shared by all frames with the same columns; an Index is immutable."""
    return _build_labels(metadata, list(names))


def _build_labels(metadata: PandasMetadata | None, names: list[str]) -> pd.Index:
    if metadata is None:
        return _plain_labels(names)
    found, notes = _labels_from_metadata(metadata, names), metadata.label_levels
    if not notes:
        return found
    from numparq.format.key_values.pandas_labels import restore_labels

    return restore_labels(found, list(map(metadata.exact_label, names)), notes)


def append_labels(labels: pd.Index, extra: list[str]) -> pd.Index:
    """Return the labels of the file's columns, followed by `extra` ones."""
    others = pd.Index(extra)
    return labels.append(others.astype(labels.dtype) if isinstance(labels.dtype, pd.StringDtype) else others)


def _labels_from_metadata(metadata: PandasMetadata, names: list[str]) -> pd.Index:
    """Return labels by the entries of the pandas metadata that all writers share."""
    labels = metadata.labels(names) if metadata.has_columns else names
    levels = metadata.column_levels
    if len(levels) > 1:
        return _multi_labels(labels, levels)
    if not levels:
        return _plain_labels(labels)
    return _cast_level(_plain_labels(labels), levels[0]).rename(label_from_json(levels[0].get("name")))


def _plain_labels(labels: list[Any]) -> pd.Index:
    """Return ``pd.Index(labels)``; for strings in a third of the time, which matters for small files."""
    if labels and all(type(label) is str for label in labels):
        return pd.Index(default_string_array(labels), copy=False)
    try:
        return pd.Index(labels)
    except UnicodeEncodeError:  # a name that is not valid UTF-8
        return pd.Index(labels, dtype=object)


def _multi_labels(labels: list[Any], levels: list[dict[str, Any]]) -> pd.Index:
    """Return a MultiIndex of labels that are reprs of tuples, or plain labels if they are not."""
    try:
        tuples = [_tuple_label(label) for label in labels if _TUPLE.fullmatch(label)]
        if len(tuples) != len(labels) or any(type(item) is not tuple or len(item) != len(levels) for item in tuples):
            return _plain_labels(labels)
        index = pd.MultiIndex.from_tuples(tuples, names=[label_from_json(level.get("name")) for level in levels])
        typed = [_cast_level(values, level) for values, level in zip(index.levels, levels, strict=True)]
        return pd.MultiIndex(typed, index.codes, names=index.names)
    except (ValueError, TypeError, SyntaxError):
        return _plain_labels(labels)


def _tuple_label(text: str) -> tuple[Any, ...]:
    """Return the tuple whose repr is a text that `_TUPLE` matches; pyarrow writes NaN in it as ``nan``."""
    return tuple(np.nan if item == "nan" else ast.literal_eval(item) for item in re.findall(_ITEM, text[1:-1]))


def _cast_level(labels: pd.Index, level: dict[str, Any]) -> pd.Index:
    """Cast labels, strings in the file, to their original type; unchanged if that fails."""
    pandas_type, numpy_type = level.get("pandas_type"), level.get("numpy_type")
    if not isinstance(pandas_type, str) or not isinstance(numpy_type, str):
        return labels
    text = pandas_type in ("unicode", "string") or "mixed" in pandas_type
    if text and numpy_type == "object" and labels.dtype == "str":
        return labels
    if any(len(label) > _MAX_LABEL for label in labels if isinstance(label, str)):
        return labels
    try:
        if numpy_type in _MASKED_DTYPES and (labels == "<NA>").any():
            return _masked_labels(labels, numpy_type)
        convert = _LABEL_TYPES.get(pandas_type.split("[")[0])
        if convert is not None:
            return convert(labels, level)
        return _as_dtype(_as_dtype(labels, "object" if text else pandas_type), numpy_type)
    except Exception:  # pandas raises various errors for labels or types that it cannot convert
        return labels


def _as_dtype(labels: pd.Index, name: str) -> pd.Index:
    if labels.dtype == name:  # "string", too: pandas' default dtype equals that name, and is kept, as by pyarrow
        return labels
    return labels.astype(dtype_from_name(name))


def _timezone_labels(labels: pd.Index, level: dict[str, Any]) -> pd.Index:
    unit = np.datetime_data(np.dtype(level["numpy_type"]))[0]
    instants = pd.DatetimeIndex(pd.to_datetime(labels, utc=True, format="ISO8601"))
    return instants.tz_convert(time_zone_from_text(level["metadata"]["timezone"])).as_unit(unit)


def _timedelta_labels(labels: pd.Index, level: dict[str, Any]) -> pd.Index:
    return _as_dtype(pd.TimedeltaIndex(pd.to_timedelta(labels)), level["numpy_type"])


def _boolean_labels(labels: pd.Index, level: dict[str, Any]) -> pd.Index:
    truth = {"True": True, "False": False}
    return _as_dtype(pd.Index([truth[label] for label in labels]), level["numpy_type"])


# Dtypes whose missing labels pyarrow writes as the text of pd.NA.
_MASKED_DTYPES = {"string", "boolean", *NULLABLE_NAMES.values()}


def _masked_labels(labels: pd.Index, name: str) -> pd.Index:
    present = labels.where(labels != "<NA>")
    if name == "string":
        return present
    dtype = dtype_from_name(name)
    return pd.Index(dtype.construct_array_type()._from_sequence_of_strings(present.array, dtype=dtype))


def _interval_labels(labels: pd.Index, dtype: Any) -> pd.Index:
    bounds = [re.split(", ", label[1:-1]) for label in labels]
    left, right = (pd.Index(side).astype(dtype.subtype) for side in zip(*bounds, strict=True))
    return pd.IntervalIndex.from_arrays(left, right, dtype.closed)


_LABEL_TYPES: dict[str, Callable[[pd.Index, dict[str, Any]], pd.Index]] = {
    "empty": lambda labels, level: _as_dtype(_as_dtype(labels, "object"), level["numpy_type"]),
    "bytes": lambda labels, level: labels.map(lambda label: label.encode()),
    "datetimetz": _timezone_labels,
    "datetime": lambda labels, level: _as_dtype(_as_dtype(labels, "datetime64[ns]"), level["numpy_type"]),
    "timedelta": _timedelta_labels,
    "timedelta64": _timedelta_labels,
    "bool": _boolean_labels,
    "boolean": _boolean_labels,
    "date": lambda labels, level: pd.Index(list(map(datetime.date.fromisoformat, labels)), dtype=object),
    "decimal": lambda labels, level: pd.Index([decimal.Decimal(label) for label in labels]),
    "integer": lambda labels, level: _as_dtype(_as_dtype(labels, "int64"), level["numpy_type"]),
    "floating": lambda labels, level: _as_dtype(_as_dtype(labels, "float64"), level["numpy_type"]),
    "string": lambda labels, level: _as_dtype(labels, level["numpy_type"]),
    "unicode": lambda labels, level: _as_dtype(labels, level["numpy_type"]),
    "time": lambda labels, level: pd.Index(list(map(datetime.time.fromisoformat, labels)), dtype=object),
    "interval": lambda labels, level: _interval_labels(labels, dtype_from_name(level["numpy_type"])),
    "period": lambda labels, level: pd.PeriodIndex(labels, dtype=dtype_from_name(level["numpy_type"])),
}
