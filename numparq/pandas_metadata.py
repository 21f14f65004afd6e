"""The ``pandas`` key of a footer: what a frame's index, columns and dtypes were before it became a file.

The value is JSON, as pyarrow and fastparquet write it. It is only a hint: whatever is missing in it, or is not of the
form it should have, is left out.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from . import json_columns
from .dtype_notes import ATTRS, KEY, LABEL, Wanted, wanted_of
from .json_columns import JsonColumns

_PLAIN_DTYPE = re.compile(r"(u?int(8|16|32|64)|float(16|32|64)|bool|object|(datetime64|timedelta64)\[\w+\]|category)$")
_UNNAMED_INDEX = re.compile(r"__index_level_\d+__$")
_MAX_INDEX_LEVELS = 1000
_NOTHING: dict[str, Any] = {}


@dataclass(frozen=True, slots=True)
class RangeLevel:
    """An index that was a RangeIndex: kept as three numbers, not as a column."""

    start: int
    stop: int
    step: int
    name: Any


class PandasMetadata:
    """The pandas metadata of a file; of several, where they have the same: what can be changed is given away as a copy.

    Parameters
    ----------
    document : dict
        The parsed JSON.
    columns : JsonColumns or None
        Its ``columns``, where they are not in the document.
    attrs : dict or None
        ``DataFrame.attrs`` as pandas keeps them, under a key of their own.
    is_own : bool
        Whether numparq wrote the file, so that what pyarrow loses is to be restored.

    Attributes
    ----------
    index : tuple of (str or RangeLevel)
        The levels of the index: names of columns of the file, or ranges.
    index_fields : tuple of str
        Those of them that are columns of the file; a selection of columns has to read them along.
    column_levels : list of dict
        How the column labels were made: name, pandas type and NumPy type of each of their levels.
    attrs : dict
        What ``DataFrame.attrs`` was.
    """

    def __init__(
        self, document: dict, columns: JsonColumns | None = None, attrs: dict | None = None, is_own: bool = False
    ) -> None:
        self.is_own = is_own
        levels = _list(document.get("index_columns"))[:_MAX_INDEX_LEVELS]
        found = [_index_level(level, is_own) for level in levels]
        self.index = tuple(level for level in found if level is not None)
        self.index_fields = tuple(level for level in self.index if isinstance(level, str))
        self.column_levels = [level for level in _list(document.get("column_indexes")) if isinstance(level, dict)]
        self.attrs = attrs if attrs is not None else _dict(document.get("attributes"))
        if is_own:
            self.attrs = _dict(_noted(document, ATTRS, self.attrs))
        self._unparsed = columns
        self._columns = {} if columns is not None else _by_field(_list(document.get("columns")), self.index_fields)
        self._dtypes: dict[str, Any] = {}
        self._wanted: dict[str, Wanted | None] = {}

    @classmethod
    def parse(
        cls, value: str | bytes | None, attrs: str | bytes | None = None, is_own: bool = False
    ) -> PandasMetadata | None:
        """Parse the values of the footer's keys.

        Parameters
        ----------
        value : str or bytes or None
            Of the key ``pandas``; None where there is none.
        attrs : str or bytes or None
            Of the key ``PANDAS_ATTRS``, which pandas writes besides.
        is_own : bool
            Whether numparq wrote the file.

        Returns
        -------
        PandasMetadata or None
            None where there is neither, or nothing that can be understood.
        """
        document, columns = json_columns.parse(value)
        attributes = json_columns.parse_object(attrs)
        if document is None and attributes is None:
            return None
        return cls(document or {}, columns, attributes, is_own)

    @property
    def knows_columns(self) -> bool:
        """Whether anything is said about columns."""
        return bool(self._columns) or self._unparsed is not None

    def _entry(self, field: str) -> dict:
        """Give what is said about a column of the file; empty where nothing is."""
        unparsed = self._unparsed  # another thread may just have parsed it
        if unparsed is not None and field not in self._columns:
            entry = unparsed.find(field)
            if entry is None:
                self._columns = _by_field(_list(unparsed.all()), self.index_fields)
                self._unparsed = None
            else:
                self._columns[field] = entry
        return self._columns.get(field, _NOTHING)

    def label(self, field: str) -> Any:
        """Give the label that a column of the file had in the frame."""
        name = self._entry(field).get("name", field)
        return name if name is None or isinstance(name, str) else field

    def index_name(self, field: str) -> Any:
        """Give the name that an index level had; None for one without a name."""
        entry = self._entry(field)
        name = entry.get("name", field)
        if self.is_own and LABEL in _dict(entry.get("metadata")):
            name = self.exact_label(field)
            return name if name is None or name.__hash__ else None
        if name == field and _UNNAMED_INDEX.match(field):
            return None
        return name if name is None or isinstance(name, str) else field

    def exact_label(self, field: str) -> Any:
        """Give a column's label, or an index level's name, by what our own files note of those that are no strings."""
        entry = self._entry(field)
        metadata = _dict(entry.get("metadata"))
        if self.is_own and LABEL in metadata:
            return _noted(metadata, LABEL, entry.get("name", field))
        return entry.get("name", field)

    @property
    def level_notes(self) -> list[dict]:
        """What our own files note of the levels of the column labels; empty where there is nothing."""
        notes = [_dict(_dict(level.get("metadata")).get(KEY)) for level in self.column_levels]
        return notes if self.is_own and any(notes) else []

    def timezone(self, field: str) -> str | None:
        """Give the time zone that a column had, if it had one."""
        entry = self._entry(field)
        if entry.get("pandas_type") != "datetimetz":
            return None
        zone = _dict(entry.get("metadata")).get("timezone")
        return zone if isinstance(zone, str) else None

    def numpy_type(self, field: str) -> str | None:
        """Give the name of the dtype that a column or index level had; None where it is not said."""
        name = self._entry(field).get("numpy_type")
        return name if isinstance(name, str) else None

    def extension_dtype(self, field: str) -> Any:
        """Give the pandas extension dtype that a column had; None for a NumPy dtype, and for index levels.

        Returns
        -------
        pandas.api.extensions.ExtensionDtype or None
        """
        name = self._entry(field).get("numpy_type")
        if not isinstance(name, str) or _PLAIN_DTYPE.match(name) or field in self.index_fields:
            return None
        if name not in self._dtypes:
            self._dtypes[name] = _extension_dtype(name)
        return self._dtypes[name]

    def wanted(self, field: str) -> Wanted | None:
        """Give the dtype that a column or index level had, in files that numparq wrote; None where it is not known."""
        if field not in self._wanted:
            entry = self._entry(field)
            self._wanted[field] = wanted_of(entry) if entry else None
        return self._wanted[field]


def _extension_dtype(name: str) -> Any:
    if len(name) > 1000:
        return None
    try:
        dtype = pd.api.types.pandas_dtype(name)
    except Exception:  # whatever an extension's parser raises: the dtype is not known here
        return None
    return dtype if isinstance(dtype, pd.api.extensions.ExtensionDtype) else None


def _noted(notes: dict, key: str, otherwise: Any) -> Any:
    """Give the value that our own files have a note of; `otherwise` where there is none that can be understood."""
    if key not in notes:
        return otherwise
    from .scalar_notes import scalar_of

    try:
        return scalar_of(notes[key])
    except Exception:  # whatever is raised for a note that is none
        return otherwise


def _list(value: Any) -> list:
    return value if isinstance(value, list) else []


def _dict(value: Any) -> dict:
    return value if isinstance(value, dict) else {}


def _index_level(level: Any, is_own: bool = False) -> str | RangeLevel | None:
    if isinstance(level, str):
        return level
    if not isinstance(level, dict) or level.get("kind") != "range":
        return None
    start, stop, step = (_int(level.get(key)) for key in ("start", "stop", "step"))
    if start is None or stop is None or not step:
        return None
    name = _noted(level, LABEL, level.get("name")) if is_own else level.get("name")
    known = is_own and isinstance(name, Hashable)
    return RangeLevel(start, stop, step, name if known or isinstance(name, (str, int, float)) else None)


def _int(value: Any) -> int | None:
    return value if type(value) is int and abs(value) < 1 << 62 else None


def _by_field(columns: list, index_fields: tuple[str, ...]) -> dict[str, dict]:
    """Key the entries by the file's column names; files of before 2018 have none in the entries."""
    entries = [entry for entry in columns if isinstance(entry, dict)]
    found: dict[str, dict] = {}
    first_index = len(entries) - len(index_fields)
    for position, entry in enumerate(entries):
        field = entry.get("field_name")
        if field is None:
            field = entry.get("name")
            if position >= first_index >= 0:
                field = index_fields[position - first_index]
        if isinstance(field, str):
            found[field] = entry
    return found
