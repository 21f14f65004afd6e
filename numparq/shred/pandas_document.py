"""The ``pandas`` key of a footer, written: index, column labels and dtypes of a frame, as pyarrow writes them.

`numparq.pandas_metadata` reads it.
"""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
import pandas as pd

from ..arrow_schema import ArrowType
from ..dtype_notes import ATTRS, KEY, LABEL, needed_note
from ..scalar_notes import scalar_note
from .label_notes import noted_label, noted_level
from .labels import json_label
from .moments import zone_name
from .source import ArrowField

_PANDAS_TYPES = {
    "null": "empty",
    "bool": "bool",
    "date": "date",
    "time": "time",
    "binary": "bytes",
    "fixed_size_binary": "bytes",
    "utf8": "unicode",
    "decimal": "decimal",
}


def pandas_type(field: ArrowField) -> str:
    """Name the type of a column as the metadata do.

    Parameters
    ----------
    field : ArrowField
        The column in Arrow's terms.
    """
    arrow_type = field.type
    if arrow_type.dictionary is not None:
        return "categorical"
    if arrow_type.extension is not None:
        return "object"
    if arrow_type.kind in ("int", "float"):
        return _number_name(arrow_type)
    if arrow_type.kind == "timestamp":
        return "datetimetz" if arrow_type.timezone else "datetime"
    if arrow_type.kind == "list":
        return f"list[{pandas_type(field.children[0])}]"
    return _PANDAS_TYPES.get(arrow_type.kind, "object")


def _number_name(arrow_type: ArrowType) -> str:
    unsigned = arrow_type.kind == "int" and not arrow_type.signed
    return f"{'u' if unsigned else ''}{arrow_type.kind}{arrow_type.bit_width}"


def column_entry(values: Any, name: str | None, field: ArrowField) -> dict[str, Any]:
    """Describe a column, or a level of the index that is a column of the file.

    Parameters
    ----------
    values : pandas.Series or pandas.Index
        Its values; only their dtype counts.
    name : str or None
        Its label in the frame.
    field : ArrowField
        What it is in the file.

    Returns
    -------
    dict
        An item of ``columns``.
    """
    dtype = values.dtype
    numpy_type, metadata = _dtype_entry(dtype)
    note = needed_note(dtype)
    kind = "categorical" if isinstance(dtype, pd.CategoricalDtype) else pandas_type(field)
    if kind == "decimal":
        numpy_type, metadata = "object", {"precision": field.type.precision, "scale": field.type.scale}
    if note is not None:
        metadata = {**(metadata or {}), KEY: note}
        numpy_type = _readable(numpy_type, dtype)
    return {
        "name": name,
        "field_name": field.name,
        "pandas_type": kind,
        "numpy_type": numpy_type,
        "metadata": metadata,
    }


def _readable(numpy_type: str, dtype: Any) -> str:
    """Give a name that others can make a dtype of, lest they do not read the file at all."""
    try:
        pd.api.types.pandas_dtype(numpy_type)
    except (TypeError, ValueError, NotImplementedError):
        return str(dtype.subtype) if isinstance(dtype, pd.SparseDtype) else "object"
    return numpy_type


def _dtype_entry(dtype: Any) -> tuple[str, dict | None]:
    if isinstance(dtype, pd.CategoricalDtype):
        size = len(dtype.categories)
        codes = next((name for name in ("int8", "int16", "int32") if size <= np.iinfo(name).max), "int64")
        return codes, {"num_categories": size, "ordered": bool(dtype.ordered)}
    if isinstance(dtype, pd.DatetimeTZDtype):
        return f"datetime64[{dtype.unit}]", {"timezone": zone_name(dtype.tz)}
    return str(dtype), None


def label_entries(columns: pd.Index) -> list[dict[str, Any]]:
    """Describe the column labels, level by level.

    Parameters
    ----------
    columns : pandas.Index
        Of the frame.

    Returns
    -------
    list of dict
        The value of ``column_indexes``.
    """
    levels = columns.levels if isinstance(columns, pd.MultiIndex) else [columns]
    entries = []
    for level, name in zip(levels, columns.names, strict=True):
        numpy_type, metadata = _dtype_entry(level.dtype)
        kind = _label_type(level)
        if "mixed" in kind:
            warnings.warn("the column labels are of different types: to other readers, they are strings",
                          UserWarning, stacklevel=2)  # fmt: skip
        if kind == "unicode":
            metadata = {"encoding": "UTF-8"}
        entry = {"name": json_label(name), "field_name": json_label(name), "pandas_type": kind,
                 "numpy_type": numpy_type, "metadata": metadata}  # fmt: skip
        entries.append(noted_level(entry, columns, level, name))
    return entries


def _label_type(level: pd.Index) -> str:
    dtype = level.dtype
    scalar = dtype.type
    if isinstance(scalar, type) and issubclass(scalar, (np.bool_, np.integer, np.float32, np.float64)):
        return np.dtype(scalar).name
    if isinstance(dtype, pd.DatetimeTZDtype):
        return "datetimetz"
    if isinstance(dtype, np.dtype) and dtype.kind == "M":
        return str(dtype)
    inferred = pd.api.types.infer_dtype(level, skipna=False)
    return "unicode" if inferred == "string" else inferred


def range_entry(level: pd.RangeIndex) -> dict[str, Any]:
    """Describe a RangeIndex, which needs no column."""
    entry = {
        "kind": "range",
        "name": json_label(level.name),
        "start": level.start,
        "stop": level.stop,
        "step": level.step,
    }
    plain = level.name is None or type(level.name) in (str, int)
    note = None if plain else noted_label(level.name)
    return entry if note is None else {**entry, LABEL: note[0]}


def document(index: list[Any], labels: list[dict], columns: list[dict], attrs: dict) -> str:
    """Write the metadata.

    Parameters
    ----------
    index : list of (str or dict)
        The levels of the index: names of columns of the file, or what `range_entry` gave.
    labels : list of dict
        What `label_entries` gave.
    columns : list of dict
        What `column_entry` gave for each column, those of the index last.
    attrs : dict
        What `attrs_entries` gave.

    Returns
    -------
    str
        JSON.
    """
    from .. import __version__

    return json.dumps(
        {
            "index_columns": index,
            "column_indexes": labels,
            "columns": columns,
            **attrs,
            "creator": {"library": "numparq", "version": __version__},
            "pandas_version": pd.__version__,
        }
    )


def attrs_entries(attrs: dict) -> dict[str, Any]:
    """Describe ``DataFrame.attrs``.

    Returns
    -------
    dict
        Entries of the document: what others read, which is nothing where JSON cannot express it, and what it was,
        where that is another thing. There is a warning where both cannot be told.
    """
    try:
        text = json.dumps(attrs)
    except (TypeError, ValueError, RecursionError) as error:
        text, why = None, error
    if text is not None and _same(json.loads(text), attrs):
        return {"attributes": attrs}
    try:
        return {"attributes": json.loads(text or "{}"), ATTRS: scalar_note(attrs)}
    except (TypeError, ValueError, RecursionError):
        if text is None:
            warnings.warn(f"DataFrame.attrs cannot be written: {why}", UserWarning, stacklevel=3)
        return {"attributes": json.loads(text or "{}")}


def _same(found: Any, value: Any) -> bool:
    try:
        return bool(found == value)
    except ValueError:  # an array among the values
        return False
