"""What the texts of labels do not tell: labels that are no strings, or of a dtype that readers would not guess."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ..dtype_notes import KEY, LABEL, note_of
from ..scalar_notes import scalar_note

# Types of labels, as the metadata call them, that pyarrow raises an exception for.
_NOT_READ = {"categorical", "date", "datetime64", "interval", "period", "time", "timedelta", "timedelta64"}

Note = tuple[Any] | None  # a tuple of one, for a note may be None


def noted_labels(columns: pd.Index) -> list[Note]:
    """Describe column labels.

    Parameters
    ----------
    columns : pandas.Index
        Of the frame.

    Returns
    -------
    list of (tuple or None)
        For each label what `scalar_note` makes of it, in a tuple; None where the text of the label is enough.
    """
    if not _needs_notes(columns):
        return [None] * len(columns)
    return [noted_label(label) for label in columns]


def noted_label(label: Any) -> Note:
    """Describe one label, or the name of a level of an index; None where its text is enough, or all there can be."""
    if type(label) is str or label is None:
        return None if type(label) is str else (None,)
    try:
        return (scalar_note(label),)
    except (TypeError, ValueError):
        return None


def with_label(entry: dict[str, Any], note: Note) -> dict[str, Any]:
    """Add a label's note to the metadata's entry of a column."""
    if note is None:
        return entry
    return {**entry, "metadata": {**(entry["metadata"] or {}), LABEL: note[0]}}


def noted_level(entry: dict[str, Any], columns: pd.Index, level: pd.Index, name: Any) -> dict[str, Any]:
    """Add what is to be known of a level of the column labels to its entry.

    Parameters
    ----------
    entry : dict
        As pyarrow has it.
    columns, level : pandas.Index
        All labels, and those of the level.
    name : object
        The level's name.

    Returns
    -------
    dict
        Where pyarrow would fail to make labels of the dtype, it is told of strings, which is what it finds.
    """
    about: dict[str, Any] = {}
    if name is not None and type(name) not in (str, int, float, bool) and (note := noted_label(name)):
        about["name"] = note[0]
    if isinstance(columns, pd.RangeIndex):
        about["range"] = [columns.start, columns.stop, columns.step]
    if _needs_notes(columns):
        about["dtype"] = note_of(level.dtype)
        if isinstance(level.dtype, pd.CategoricalDtype):
            about["categories"] = [(noted_label(label) or (label,))[0] for label in level.dtype.categories]
        if entry["pandas_type"] in _NOT_READ or not _is_plain_level(level, columns):
            entry = {**entry, "pandas_type": "unicode", "numpy_type": "object", "metadata": {"encoding": "UTF-8"}}
    return {**entry, "metadata": {**(entry["metadata"] or {}), KEY: about}} if about else entry


def _needs_notes(columns: pd.Index) -> bool:
    if not isinstance(columns, pd.MultiIndex):
        return not _is_plain(columns)
    gaps = any((codes < 0).any() for codes in columns.codes)
    return gaps or not all(_is_plain(level) and _is_plain_level(level, columns) for level in columns.levels)


def _is_plain_level(level: pd.Index, columns: pd.Index) -> bool:
    """Whether pyarrow makes labels of the dtype, where it can: it fails for some beside others, or missing ones."""
    dtype = level.dtype
    if columns.nlevels == 1:
        return not (isinstance(dtype, pd.core.dtypes.dtypes.BaseMaskedDtype) and level.hasnans)
    gaps = any((codes < 0).any() for codes in columns.codes)  # type: ignore[attr-defined]
    return dtype.kind != "b" and not isinstance(dtype, pd.DatetimeTZDtype) and not (gaps and dtype.kind in "iuf")


def _is_plain(labels: pd.Index) -> bool:
    """Whether the labels come back from their texts and a dtype that all readers know."""
    dtype = labels.dtype
    if isinstance(dtype, np.dtype):
        return dtype.kind in "iufbM"
    if isinstance(dtype, pd.StringDtype):
        return note_of(dtype) == "str" and not labels.hasnans
    if isinstance(dtype, pd.DatetimeTZDtype):
        return note_of(dtype)["zone"] in (getattr(dtype.tz, "key", None), str(dtype.tz))
    return isinstance(dtype, pd.core.dtypes.dtypes.BaseMaskedDtype) and not labels.hasnans
