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

from .strings import default_string_array

# A tuple of strings, numbers and the like. Anything deeper is not a label, and could overflow Python's parser.
_ITEM = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|-?\w{1,30}(?:\.\w{0,30})?)"""
_TUPLE = re.compile(rf"\({_ITEM}(?:, ?{_ITEM})*,?\)", re.DOTALL)
_MAX_CACHED_LABELS = 256  # frames with more columns build their labels anew


def row_index(metadata: PandasMetadata | None, levels: dict[str, Any], num_rows: int) -> pd.Index:
    """Return the row index of finished columns (`levels`, by name in the file); by default a RangeIndex from 0.

    A RangeIndex in the metadata counts only if its length is `num_rows`: like pyarrow, selected rows are renumbered.
    """
    arrays, names = [], []
    for level in metadata.index if metadata is not None else ():
        if isinstance(level, RangeIndexLevel):
            if _range_length(level) == num_rows:
                arrays.append(pd.RangeIndex(level.start, level.stop, level.step, name=_hashable(level.name)))
                names.append(level.name)
        elif level in levels and metadata is not None:
            arrays.append(levels[level])
            names.append(metadata.index_name(level))
    if not arrays:
        return pd.RangeIndex.from_range(range(num_rows))
    if metadata is not None and metadata.is_written_by_numparq:  # keep the dtype: pandas would infer one for objects
        arrays = [
            array if isinstance(array, pd.Index) else pd.Index(array, dtype=array.dtype, copy=False) for array in arrays
        ]
    if len(arrays) > 1:
        return _multi_index(arrays, names)
    if isinstance(arrays[0], pd.RangeIndex):
        return arrays[0]
    try:
        return pd.Index(arrays[0], name=names[0], copy=False)
    except NotImplementedError as error:  # such as float16
        raise UnsupportedError(f"pandas cannot build an index of these values: {error}") from error


def _multi_index(arrays: list[Any], names: list[Any]) -> pd.MultiIndex:
    """Return a MultiIndex; UnsupportedError for levels that pandas cannot factorize, such as Arrow intervals."""
    try:
        return pd.MultiIndex.from_arrays(arrays, names=names)
    except (NotImplementedError, TypeError) as error:
        raise UnsupportedError(f"pandas cannot build an index of these levels: {error}") from error


def _range_length(level: RangeIndexLevel) -> int:
    distance = level.stop - level.start
    return max(0, -(-distance // level.step)) if level.step > 0 else max(0, -(distance // -level.step))


def _hashable(name: Any) -> Any:
    try:
        hash(name)
    except TypeError:
        return None
    return name


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


def frame_labels(metadata: PandasMetadata | None, names: list[str], extra: Sequence[str]) -> pd.Index:
    """Return the labels of the file's columns, followed by `extra` ones."""
    labels = column_labels(metadata, names)
    if not extra:
        return labels
    others = pd.Index(list(extra))
    return labels.append(others.astype(labels.dtype) if isinstance(labels.dtype, pd.StringDtype) else others)


def _labels_from_metadata(metadata: PandasMetadata, names: list[str]) -> pd.Index:
    """Return labels by the entries of the pandas metadata that all writers share."""
    labels = [metadata.label(name) for name in names] if metadata.has_columns else names
    levels = metadata.column_levels
    if len(levels) > 1:
        return _multi_labels(labels, levels)
    if not levels:
        return _plain_labels(labels)
    return _cast_level(_plain_labels(labels), levels[0]).rename(_hashable(levels[0].get("name")))


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
        tuples = [ast.literal_eval(label) for label in labels if _TUPLE.fullmatch(label)]
        if len(tuples) != len(labels) or any(type(item) is not tuple or len(item) != len(levels) for item in tuples):
            return _plain_labels(labels)
        index = pd.MultiIndex.from_tuples(tuples, names=[_hashable(level.get("name")) for level in levels])
        typed = [_cast_level(values, level) for values, level in zip(index.levels, levels, strict=True)]
        return pd.MultiIndex(typed, index.codes, names=index.names)
    except (ValueError, TypeError, SyntaxError):
        return _plain_labels(labels)


def _cast_level(labels: pd.Index, level: dict[str, Any]) -> pd.Index:
    """Cast labels, strings in the file, to their original type; unchanged if that fails."""
    pandas_type, numpy_type = level.get("pandas_type"), level.get("numpy_type")
    if not isinstance(pandas_type, str) or not isinstance(numpy_type, str):
        return labels
    text = pandas_type in ("unicode", "string") or "mixed" in pandas_type
    if text and numpy_type == "object" and labels.dtype == "str":
        return labels
    try:
        convert = _LABEL_TYPES.get(pandas_type.split("[")[0])
        if convert is not None:
            return convert(labels, level)
        return _as_dtype(_as_dtype(labels, "object" if text else pandas_type), numpy_type)
    except Exception:  # pandas raises various errors for labels or types that it cannot convert
        return labels


def _as_dtype(labels: pd.Index, dtype: str) -> pd.Index:
    return labels if labels.dtype == dtype else labels.astype(dtype)


def _timezone_labels(labels: pd.Index, level: dict[str, Any]) -> pd.Index:
    unit = np.datetime_data(np.dtype(level["numpy_type"]))[0]
    instants = pd.DatetimeIndex(pd.to_datetime(labels, utc=True, format="ISO8601"))
    return instants.tz_convert(level["metadata"]["timezone"]).as_unit(unit)


def _timedelta_labels(labels: pd.Index, level: dict[str, Any]) -> pd.Index:
    return pd.TimedeltaIndex(pd.to_timedelta(labels)).astype(level["numpy_type"])


def _boolean_labels(labels: pd.Index, level: dict[str, Any]) -> pd.Index:
    truth = {"True": True, "False": False}
    return pd.Index([truth[label] for label in labels]).astype(level["numpy_type"])


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
    "period": lambda labels, level: pd.PeriodIndex(labels, dtype=level["numpy_type"]),
}
