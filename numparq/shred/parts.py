"""The parts of a frame that become columns of a file: its columns, and levels of its index."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..errors import SchemaError
from .coded import looked_up
from .given import GivenSchema
from .label_notes import Note, noted_label, noted_labels
from .labels import field_names, index_name, text_of
from .pandas_document import range_entry
from .source import Source


@dataclass(frozen=True, slots=True)
class Part:
    """What becomes a column.

    Parameters
    ----------
    name : str
        In the file.
    label : str or None
        In the frame, as text.
    values : pandas.Series, pandas.Index or Level
        The values.
    note : tuple or None
        What that text does not tell of the label.
    """

    name: str
    label: str | None
    values: Any
    note: Note = None


class Level:
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

    def source(self, source_of: Callable[[Any], Source]) -> Source:
        """Give the source of the level.

        Parameters
        ----------
        source_of : callable
            Gives the source of an array of a pandas dtype.
        """
        codes, values = self._codes, source_of(self._values.array)
        if values.children:  # structs: complex numbers, intervals as objects
            return source_of(self.array)
        return looked_up(lambda start, stop: codes[start:stop].astype(np.int32), values, len(self._values))


def _levels(index: pd.Index) -> list[Any]:
    """Give the levels of an index: those of a MultiIndex as they are kept, where nulls and structs allow that."""
    if not isinstance(index, pd.MultiIndex):
        return [index]
    return [
        index.get_level_values(number) if _is_to_be_spread(values, codes) else Level(index, number)
        for number, (values, codes) in enumerate(zip(index.levels, index.codes, strict=True))
    ]


def _is_to_be_spread(values: pd.Index, codes: np.ndarray) -> bool:
    """Whether a level's dtype is another than that of its values: of integers and booleans beside nulls."""
    if len(values) == 0 or isinstance(values.dtype, (pd.IntervalDtype, pd.CategoricalDtype)):
        return True
    return isinstance(values.dtype, np.dtype) and values.dtype.kind not in "fMm" and bool((codes < 0).any())


def parts_of(df: pd.DataFrame, index: bool | None, reserved: Collection[str] = ()) -> tuple[list[Part], list[Any]]:
    """List what of a frame becomes columns.

    Parameters
    ----------
    df : pandas.DataFrame
        The frame.
    index : bool or None
        As in `numparq.shred.take_apart`.
    reserved : collection of str
        Names that no level of the index gets.

    Returns
    -------
    parts : list of Part
        Its columns, then levels of its index.
    levels : list of (str or dict)
        For each level of the index that is written: the name of its column, or what the metadata say of a range.
    """
    names = field_names(list(df.columns))
    notes = noted_labels(df.columns)
    parts = [Part(name, text_of(label), values, note)
             for name, note, (label, values) in zip(names, notes, df.items(), strict=True)]  # fmt: skip
    levels: list[Any] = []
    if index is False:
        return parts, levels
    strange = [name for name in df.index.names if name is not None and not isinstance(name, str)]
    if strange:
        warnings.warn(f"names of the index that are no strings become strings to other readers: {strange}",
                      UserWarning, stacklevel=4)  # fmt: skip
    taken = {part.label for part in parts} | set(names) | set(reserved)
    for number, level in enumerate(_levels(df.index)):
        if isinstance(level, pd.RangeIndex) and index is None:
            levels.append(range_entry(level))
            continue
        name = index_name(level, number, taken)
        taken.add(name)
        levels.append(name)
        parts.append(Part(name, text_of(level.name), level, None if level.name is None else noted_label(level.name)))
    return parts, levels


def chosen(parts: list[Part], levels: list[Any], given: GivenSchema, num_rows: int) -> tuple[list[Part], list[Any]]:
    """Choose, and put in order, the columns that a schema names.

    Parameters
    ----------
    parts, levels : list
        As `parts_of` gives them.
    given : GivenSchema
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
    for name in given.columns:
        if name in known:
            found.append(known[name])
        elif num_rows:
            raise SchemaError("the frame has no such column, which the schema names", column=name)
        else:
            found.append(Part(name, name, pd.Series([], dtype=object)))
    return found, [level for level in levels if isinstance(level, dict) or level in given.columns]
