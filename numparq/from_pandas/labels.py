"""Columns and index levels of a frame that become columns of the file, and their names."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from numparq.errors import SchemaError
from numparq.format.key_values.pandas import range_entry
from numparq.format.key_values.pandas_labels import LabelNote, label_note, label_notes

from .column_values import ColumnValues
from .dictionary import lookup_values
from .user_schema import UserSchema


def label_text(label: Any) -> Any:
    """Give a label as pyarrow writes it: a str, or None for a missing one.

    Parameters
    ----------
    label : object
        Bytes are decoded as UTF-8; the items of a tuple are turned to text one by one, and the tuple then.
    """
    if isinstance(label, str):
        return label
    if isinstance(label, bytes):
        return label.decode("utf-8", "replace")
    if isinstance(label, tuple):
        return str(tuple(map(label_text, label)))
    if label is None or (isinstance(label, float) and label != label):
        return None
    return str(label)


def unique_names(labels: Sequence[Any]) -> list[str]:
    """Name the columns of a file.

    Parameters
    ----------
    labels : sequence
        The labels of a frame's columns.

    Returns
    -------
    list of str
        Their texts, where need be with ``_1``, ``_2``, ... behind, so that no two are the same: few readers know what
        to do about that. The pandas metadata keep the labels as they were.

    Raises
    ------
    SchemaError
        When a label is no Unicode text.
    """
    wanted = [str(label_text(label)) for label in labels]
    taken, names = set(wanted), []
    seen: set[str] = set()
    for name in wanted:
        _check_unicode(name)
        if name in seen:
            name = unused_name(name, taken)
            taken.add(name)
        seen.add(name)
        names.append(name)
    return names


def unused_name(name: str, taken: set[str]) -> str:
    """Give the first of ``name_1``, ``name_2``, ... that is not taken."""
    number = 1
    while f"{name}_{number}" in taken:
        number += 1
    return f"{name}_{number}"


def _check_unicode(name: str) -> None:
    try:
        name.encode()
    except UnicodeEncodeError:
        raise SchemaError(f"the column name {name!r} is no Unicode text") from None


def index_level_name(level: pd.Index, number: int, taken: Collection[Any]) -> str:
    """Name the column that a level of the index becomes.

    Parameters
    ----------
    level : pandas.Index
        The level.
    number : int
        Which of the levels it is, from 0.
    taken : collection of str
        Names of the other columns of the file.

    Returns
    -------
    str
        The level's own name; ``__index_level_0__`` and so on where it has none, or one that is taken.
    """
    name = label_text(level.name)
    if name is not None and name not in taken:
        _check_unicode(name)
        return name
    while f"__index_level_{number}__" in taken:
        number += 1
    return f"__index_level_{number}__"


@dataclass(frozen=True, slots=True)
class FrameColumn:
    """What becomes a column.

    Parameters
    ----------
    name : str
        In the file.
    label : str or None
        In the frame, as text.
    values : pandas.Series, pandas.Index or IndexLevel
        The values.
    note : tuple or None
        What that text does not tell of the label.
    """

    name: str
    label: str | None
    values: Any
    note: LabelNote = None


class IndexLevel:
    """A level of a MultiIndex, whose values are not spread out; like an Index as far as that is needed.

    Parameters
    ----------
    index : pandas.MultiIndex
        The index.
    number : int
        Which of its levels.
    """

    def __init__(self, index: pd.MultiIndex, number: int) -> None:
        self._codes = index.codes[number]
        self._values = index.levels[number]
        self._spread = lambda: index.get_level_values(number)
        self.name = index.names[number]
        self.dtype = self._values.dtype

    def __len__(self) -> int:
        return len(self._codes)

    @property
    def array(self) -> Any:
        """The values, spread out."""
        return self._spread().array

    def source(self, source_of: Callable[[Any], ColumnValues]) -> ColumnValues:
        """Give the source of the level.

        Parameters
        ----------
        source_of : callable
            Gives the source of an array of a pandas dtype.
        """
        codes, values = self._codes, source_of(self._values.array)
        if values.children:  # structs: complex numbers, intervals as objects
            return source_of(self.array)
        return lookup_values(lambda start, stop: codes[start:stop].astype(np.int32), values, len(self._values))


def _index_levels(index: pd.Index) -> list[Any]:
    """Give the levels of an index: those of a MultiIndex as they are kept, where nulls and structs allow that."""
    if not isinstance(index, pd.MultiIndex):
        return [index]
    return [
        index.get_level_values(number) if _needs_values(values, codes) else IndexLevel(index, number)
        for number, (values, codes) in enumerate(zip(index.levels, index.codes, strict=True))
    ]


def _needs_values(values: pd.Index, codes: np.ndarray) -> bool:
    """Whether a level's dtype is another than that of its values: of integers and booleans beside nulls."""
    if len(values) == 0 or isinstance(values.dtype, (pd.IntervalDtype, pd.CategoricalDtype)):
        return True
    return isinstance(values.dtype, np.dtype) and values.dtype.kind not in "fMm" and bool((codes < 0).any())


def frame_columns(
    df: pd.DataFrame, index: bool | None, reserved: Collection[str] = ()
) -> tuple[list[FrameColumn], list[Any]]:
    """List what of a frame becomes columns.

    Parameters
    ----------
    df : pandas.DataFrame
        The frame.
    index : bool or None
        As in `numparq.from_pandas.frame.shred_frame`.
    reserved : collection of str
        Names that no level of the index gets.

    Returns
    -------
    parts : list of FrameColumn
        Its columns, then levels of its index.
    levels : list of (str or dict)
        For each level of the index that is written: the name of its column, or what the metadata say of a range.
    """
    names = unique_names(list(df.columns))
    notes = label_notes(df.columns)
    parts = [
        FrameColumn(name, label_text(label), values, note)
        for name, note, (label, values) in zip(names, notes, df.items(), strict=True)
    ]
    levels: list[Any] = []
    if index is False:
        return parts, levels
    strange = [name for name in df.index.names if name is not None and not isinstance(name, str)]
    if strange:
        warnings.warn(
            f"names of the index that are no strings become strings to other readers: {strange}",
            UserWarning,
            stacklevel=4,
        )
    taken = {part.label for part in parts} | set(names) | set(reserved)
    for number, level in enumerate(_index_levels(df.index)):
        if isinstance(level, pd.RangeIndex) and index is None:
            levels.append(range_entry(level))
            continue
        name = index_level_name(level, number, taken)
        taken.add(name)
        levels.append(name)
        parts.append(
            FrameColumn(name, label_text(level.name), level, None if level.name is None else label_note(level.name))
        )
    return parts, levels


def select_by_schema(
    parts: list[FrameColumn], levels: list[Any], user_schema: UserSchema, num_rows: int
) -> tuple[list[FrameColumn], list[Any]]:
    """Choose, and put in order, the columns that a schema names.

    Parameters
    ----------
    parts, levels : list
        As `frame_columns` gives them.
    user_schema : UserSchema
        What columns the file has.
    num_rows : int
        Rows of the frame; one without rows need not have the columns.

    Raises
    ------
    SchemaError
        When the frame lacks a column.
    """
    known = {part.name: part for part in parts}
    found = []
    for name in user_schema.columns:
        if name in known:
            found.append(known[name])
        elif num_rows:
            raise SchemaError("the frame has no such column, which the schema names", column=name)
        else:
            found.append(FrameColumn(name, name, pd.Series([], dtype=object)))
    return found, [level for level in levels if isinstance(level, dict) or level in user_schema.columns]
