"""Column labels in the `pandas` key: notes on what their text does not determine, both ways."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from numparq.util.pluralize import pluralize

from .pandas_dtypes import DTYPE_KEY, LABEL_KEY, dtype_from_json, dtype_to_json
from .python_values import value_from_json, value_to_json

# Label types (`pandas_type`) for which pyarrow raises an exception.
_UNREADABLE_TYPES = {"categorical", "date", "datetime64", "interval", "period", "time", "timedelta", "timedelta64"}

LabelNote = tuple[Any] | None  # a tuple of one, since a note may be None


def restore_labels(found: pd.Index, labels: list[Any], notes: list[dict[str, Any]]) -> pd.Index:
    """Restore column labels from exact labels and level notes; `found` if the notes add nothing or are invalid."""
    try:
        if all("dtype" in note for note in notes):
            found = _index(labels, notes).set_names(list(found.names))
        elif "range" in notes[0] and isinstance(found.dtype, np.dtype):
            whole = pd.RangeIndex(*notes[0]["range"], name=found.name)
            found = whole if len(whole) == len(found) and (whole == found).all() else found
        names = [
            value_from_json(note["name"]) if "name" in note else name
            for note, name in zip(notes, found.names, strict=True)
        ]
        return found.set_names(names)
    except Exception:  # pandas may raise anything for invalid labels
        return found


def _index(labels: list[Any], notes: list[dict[str, Any]]) -> pd.Index:
    dtypes = [_dtype(note) for note in notes]
    if len(notes) == 1:
        return pd.Index(labels, dtype=dtypes[0], tupleize_cols=False)
    if any(type(label) is not tuple or len(label) != len(notes) for label in labels):
        raise ValueError(f"labels of {pluralize(len(notes), 'level')} must be tuples of that length")
    made = [_level_codes([label[number] for label in labels], dtype) for number, dtype in enumerate(dtypes)]
    return pd.MultiIndex([values for values, _ in made], [codes for _, codes in made], verify_integrity=False)


def _level_codes(labels: list[Any], dtype: Any) -> tuple[pd.Index, list[int]]:
    """Return a level's distinct values without missing ones, and the code of each label."""
    missing = [label is None or label is pd.NA or label is pd.NaT or label != label for label in labels]
    places: dict[Any, int] = {}
    codes = [
        -1 if gap else places.setdefault((type(label), label), len(places))
        for label, gap in zip(labels, missing, strict=True)
    ]
    return pd.Index([label for _, label in places], dtype=dtype, tupleize_cols=False), codes


def _dtype(note: dict[str, Any]) -> Any:
    if "categories" not in note:
        return dtype_from_json(note["dtype"])
    categories = list(map(value_from_json, note["categories"]))
    inner = dtype_from_json(note["dtype"]["categories"])
    return pd.CategoricalDtype(pd.Index(categories, dtype=inner), ordered=bool(note["dtype"]["ordered"]))


def label_from_json(name: Any, depth: int = 8) -> Any:
    """Return a level name that another writer put into JSON as it is: a list was a tuple; None if it is no label."""
    if isinstance(name, list) and depth:
        return tuple(label_from_json(item, depth - 1) for item in name)
    return None if isinstance(name, (dict, list)) else name


def label_notes(columns: pd.Index) -> list[LabelNote]:
    """Return the note of each column label, a tuple of one JSON value; None if its text suffices."""
    if not _needs_notes(columns):
        return [None] * len(columns)
    return [label_note(label) for label in columns]


def label_note(label: Any) -> LabelNote:
    """Return the note of a label or level name; None if its text suffices or no note can be made."""
    if type(label) is str or label is None:
        return None if type(label) is str else (None,)
    try:
        return (value_to_json(label),)
    except (TypeError, ValueError):
        return None


def add_label_note(entry: dict[str, Any], note: LabelNote) -> dict[str, Any]:
    """Return a ``columns`` entry with a label's note added."""
    if note is None:
        return entry
    return {**entry, "metadata": {**(entry["metadata"] or {}), LABEL_KEY: note[0]}}


def add_level_note(entry: dict[str, Any], columns: pd.Index, level: pd.Index, name: Any) -> dict[str, Any]:
    """Return a ``column_indexes`` entry with the note of a level added.

    Levels of dtypes that make pyarrow fail are declared as strings, which is what it finds.
    """
    about: dict[str, Any] = {}
    if name is not None and (type(name) not in (str, int, float, bool) or name != name) and (note := label_note(name)):
        about["name"] = note[0]
    if isinstance(columns, pd.RangeIndex):
        about["range"] = [columns.start, columns.stop, columns.step]
    if _needs_notes(columns):
        about["dtype"] = dtype_to_json(level.dtype)
        if isinstance(level.dtype, pd.CategoricalDtype):
            about["categories"] = [(label_note(label) or (label,))[0] for label in level.dtype.categories]
        if entry["pandas_type"] in _UNREADABLE_TYPES or not _is_plain_level(level, columns):
            entry = {**entry, "pandas_type": "unicode", "numpy_type": "object", "metadata": {"encoding": "UTF-8"}}
    return {**entry, "metadata": {**(entry["metadata"] or {}), DTYPE_KEY: about}} if about else entry


def _needs_notes(columns: pd.Index) -> bool:
    if not isinstance(columns, pd.MultiIndex):
        return not _is_plain(columns)
    gaps = any((codes < 0).any() for codes in columns.codes)
    return gaps or not all(_is_plain(level) and _is_plain_level(level, columns) for level in columns.levels)


def _is_plain_level(level: pd.Index, columns: pd.Index) -> bool:
    """Whether pyarrow can restore the level; it fails for some dtypes with other levels or missing labels."""
    dtype = level.dtype
    if columns.nlevels == 1:
        return not (isinstance(dtype, pd.core.dtypes.dtypes.BaseMaskedDtype) and level.hasnans)
    gaps = any((codes < 0).any() for codes in columns.codes)
    return dtype.kind != "b" and not isinstance(dtype, pd.DatetimeTZDtype) and not (gaps and dtype.kind in "iuf")


def _is_plain(labels: pd.Index) -> bool:
    """Whether text and standard dtype name determine the labels."""
    dtype = labels.dtype
    if isinstance(dtype, np.dtype):
        return dtype.kind in "iufbM"
    if isinstance(dtype, pd.StringDtype):
        return dtype_to_json(dtype) == "str" and not labels.hasnans
    if isinstance(dtype, pd.DatetimeTZDtype):
        return dtype_to_json(dtype)["zone"] in (getattr(dtype.tz, "key", None), str(dtype.tz))
    return isinstance(dtype, pd.core.dtypes.dtypes.BaseMaskedDtype) and not labels.hasnans
