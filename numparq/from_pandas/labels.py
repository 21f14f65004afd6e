"""Columns and index levels of a frame that become columns of the file, and their names."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from numparq.errors import SchemaError
from numparq.format.key_values.pandas import range_entry
from numparq.format.key_values.pandas_labels import LabelNote, label_note, label_notes
from numparq.util.text import is_utf8

from .column_values import ColumnValues
from .dictionary import lookup_values
from .user_schema import UserSchema


def label_text(label: Any) -> Any:
    """Return a label as pyarrow writes it: a str, or None if missing; bytes are decoded as UTF-8, in tuples too."""
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
    """Return the column names of a file: the labels as text, duplicates numbered ``_1``, ``_2``, ...

    Few readers support duplicate names; the pandas metadata keep the labels. SchemaError for text that is not Unicode.
    """
    wanted = [str(label_text(label)) for label in labels]
    taken, names = set(wanted), []
    if len(taken) == len(wanted) and "".join(wanted).isascii():
        return wanted
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
    """Return the first of ``name_1``, ``name_2``, ... that is not taken."""
    number = 1
    while f"{name}_{number}" in taken:
        number += 1
    return f"{name}_{number}"


def _check_unicode(name: str) -> None:
    if not is_utf8(name):
        raise SchemaError(f"the column name {name!r} cannot be encoded as UTF-8; rename the column")


def index_level_name(level: pd.Index, number: int, taken: Collection[Any]) -> str:
    """Return the column name of an index level: its own, or ``__index_level_0__`` and so on if missing or taken."""
    name: str | None = label_text(level.name)
    if name is not None and name not in taken:
        _check_unicode(name)
        return name
    while f"__index_level_{number}__" in taken:
        number += 1
    return f"__index_level_{number}__"


class FrameColumn(NamedTuple):
    """A column or index level of the frame that becomes a column of the file.

    Attributes
    ----------
    values : array, Index or IndexLevel
        Values of all rows.
    label : str or None
        Label in the frame, as text.
    note : tuple or None
        The part of the label that its text does not express.
    """

    name: str
    label: str | None
    values: Any
    note: LabelNote = None


def level_values(index: pd.Index, number: int) -> pd.Index:
    """Return a level's values for all rows by its number, which pandas would take for a name that is an integer."""
    return index.set_names([None] * index.nlevels).get_level_values(number).rename(index.names[number])


class IndexLevel:
    """A level of a MultiIndex as codes and distinct values; behaves like an Index as far as needed here."""

    def __init__(self, index: pd.MultiIndex, number: int) -> None:
        self._codes = index.codes[number]
        self._values = index.levels[number]
        self._spread: Callable[[], pd.Index] = lambda: level_values(index, number)
        self.name = index.names[number]
        self.dtype = self._values.dtype

    def __len__(self) -> int:
        return len(self._codes)

    @property
    def array(self) -> Any:
        """Values of all rows."""
        return self._spread().array

    def column_values(self, source_of: Callable[[Any], ColumnValues]) -> ColumnValues:
        """Return the values of the level; `source_of` returns those of an array of a pandas dtype."""
        codes, values = self._codes, source_of(self._values.array)
        if values.children:  # structs: complex numbers, intervals
            return source_of(self.array)
        return lookup_values(lambda start, stop: codes[start:stop].astype(np.int32), values, len(self._values))


def _index_levels(index: pd.Index) -> list[Any]:
    """Return the levels of an index; those of a MultiIndex as codes and values where nulls and dtypes allow that."""
    if not isinstance(index, pd.MultiIndex):
        return [index]
    return [
        level_values(index, number) if _needs_values(values, codes) else IndexLevel(index, number)
        for number, (values, codes) in enumerate(zip(index.levels, index.codes, strict=True))
    ]


def _needs_values(values: pd.Index, codes: np.ndarray) -> bool:
    """Whether all rows of a level must be built, as nulls change the dtype of its values or the dtype needs it."""
    if len(values) == 0 or isinstance(values.dtype, (pd.IntervalDtype, pd.CategoricalDtype)):
        return True
    return isinstance(values.dtype, np.dtype) and values.dtype.kind not in "fMm" and bool((codes < 0).any())


def frame_columns(
    df: pd.DataFrame, index: bool | None, reserved: Collection[str] = ()
) -> tuple[list[FrameColumn], list[Any]]:
    """Return the columns of a frame, then its index levels, and an entry for each index level written.

    The entry is the level's column name, or the metadata of a RangeIndex that is not stored as a column.
    """
    labels = list(df.columns)
    names = unique_names(labels)
    notes = label_notes(df.columns)
    parts = [
        FrameColumn(name, label_text(label), values, note)
        for name, label, values, note in zip(names, labels, df._iter_column_arrays(), notes, strict=True)
    ]
    levels: list[Any] = []
    if index is False:
        return parts, levels
    strange = [name for name in df.index.names if name is not None and not isinstance(name, str)]
    if strange:
        warnings.warn(
            f"other readers turn index names that are not strings into strings: {strange}",
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
    """Select the columns that a schema names, in its order; parameters and result are those of `frame_columns`.

    Raises SchemaError if the frame lacks a column, unless it has no rows.
    """
    known = {part.name: part for part in parts}
    found = []
    for name in user_schema.columns:
        if name in known:
            found.append(known[name])
        elif num_rows:
            raise SchemaError("the schema names a column that the DataFrame does not have", column=name)
        else:
            found.append(FrameColumn(name, name, np.empty(0, object)))
    return found, [level for level in levels if isinstance(level, dict) or level in user_schema.columns]
