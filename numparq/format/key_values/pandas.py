"""The `pandas` key: index, column labels and dtypes of the written DataFrame."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from numparq.format.arrow_type import ArrowType

from . import json_document
from .arrow import ArrowField
from .json_document import LazyPandasColumns
from .pandas_dtypes import (
    ATTRS_KEY,
    DTYPE_KEY,
    LABEL_KEY,
    DtypeEntry,
    DtypeSpec,
    column_dtype_spec,
    dtype_from_name,
    numpy_type_entry,
)
from .pandas_labels import add_level_note, label_from_json, label_note

_PLAIN_DTYPE = re.compile(r"(u?int(8|16|32|64)|float(16|32|64)|bool|object|(datetime64|timedelta64)\[\w+\]|category)$")
_UNNAMED_INDEX = re.compile(r"__index_level_\d+__$")
_MAX_INDEX_LEVELS = 1000
_MAX_ATTRS_DEPTH = 100
_NOTHING: dict[str, Any] = {}
_Entry = dict[str, Any]

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


@dataclass(frozen=True)
class RangeIndexLevel:
    """A RangeIndex, stored as three numbers and not as a column."""

    start: int
    stop: int
    step: int
    name: Any

    @cached_property
    def num_rows(self) -> int:
        """Number of labels, also of a range that is too long for `len`."""
        distance = self.stop - self.start
        return max(0, -(-distance // self.step)) if self.step > 0 else max(0, -(distance // -self.step))


class PandasMetadata:
    """The `pandas` key of a file, shared by files with the same value; mutable parts must be copied.

    Attributes
    ----------
    is_written_by_numparq : bool
        Whether numparq wrote the file and the key (it may keep another writer's); then dtypes and labels are restored.
    index : tuple of (str or RangeIndexLevel)
        Index levels: column names of the file, or ranges.
    index_fields : tuple of str
        The levels that are columns of the file; a projection must read them too.
    column_levels : list of dict
        Name, pandas type and NumPy type of each level of the column labels.
    attrs : dict
        ``DataFrame.attrs``.
    """

    def __init__(
        self,
        document: dict[str, Any],
        columns: LazyPandasColumns | None = None,
        attrs: dict[str, Any] | None = None,
        is_written_by_numparq: bool = False,
    ) -> None:
        is_written_by_numparq = is_written_by_numparq and _dict(document.get("creator")).get("library") == "numparq"
        self.is_written_by_numparq = is_written_by_numparq
        levels = _list(document.get("index_columns"))[:_MAX_INDEX_LEVELS]
        found = [_index_level(level, is_written_by_numparq) for level in levels]
        self.index = tuple(level for level in found if level is not None)
        self.index_fields = tuple(level for level in self.index if isinstance(level, str))
        self.column_levels = [level for level in _list(document.get("column_indexes")) if isinstance(level, dict)]
        self.attrs = attrs if attrs is not None else _dict(document.get("attributes"))
        if is_written_by_numparq:
            self.attrs = _dict(_decode_or_default(document, ATTRS_KEY, self.attrs))
        self.attrs = self.attrs if json_document.is_nested_at_most(self.attrs, _MAX_ATTRS_DEPTH) else {}
        self._unparsed = columns
        self._columns: dict[str, _Entry] = {}
        self._repeated: dict[str, list[_Entry]] = {}
        if columns is None:
            self._set_columns(_list(document.get("columns")))
        self._dtypes: dict[str, Any] = {}
        self._wanted: dict[str, DtypeSpec | None] = {}

    @classmethod
    def parse(
        cls, value: str | bytes | None, attrs: str | bytes | None = None, is_written_by_numparq: bool = False
    ) -> PandasMetadata | None:
        """Parse the keys ``pandas`` and ``PANDAS_ATTRS`` (written by pandas); None if neither is a JSON object."""
        document, columns = json_document.parse_pandas_json(value)
        attributes = json_document.parse_json_object(attrs)
        if document is None and attributes is None:
            return None
        return cls(document or {}, columns, attributes, is_written_by_numparq)

    @property
    def has_columns(self) -> bool:
        """Whether the document describes columns."""
        return bool(self._columns) or self._unparsed is not None

    def _parse_columns(self, unparsed: LazyPandasColumns) -> None:
        self._set_columns(_list(unparsed.parse_all()))
        self._unparsed = None

    def _set_columns(self, entries: list[Any]) -> None:
        found = _by_field(entries, self.index_fields)
        self._columns = {field: same[-1] for field, same in found.items()}
        self._repeated = {field: same for field, same in found.items() if len(same) > 1}

    def _entry(self, field: str) -> dict[str, Any]:
        """Return the entry of a column of the file; empty if there is none."""
        unparsed = self._unparsed  # local copy: another thread may set it to None
        if unparsed is not None and field not in self._columns:
            entry = unparsed.find(field)
            if entry is None:
                self._parse_columns(unparsed)
            else:
                self._columns[field] = entry
        return self._columns.get(field, _NOTHING)

    def labels(self, fields: Sequence[str]) -> list[Any]:
        """Return the columns' labels in the DataFrame, as text, None or NaN; equal names have theirs in order."""
        if len(set(fields)) < len(fields) and self._unparsed is not None:
            self._parse_columns(self._unparsed)
        repeated = {field: iter(entries) for field, entries in self._repeated.items() if fields.count(field) > 1}
        return [
            _text_label(next(repeated[field], {}) if field in repeated else self._entry(field), field)
            for field in fields
        ]

    def index_name(self, field: str) -> Any:
        """Return an index level's name; None if it has none."""
        entry = self._entry(field)
        name = entry.get("name", field)
        if self.is_written_by_numparq and LABEL_KEY in _dict(entry.get("metadata")):
            name = self.exact_label(field)
            return name if name is None or name.__hash__ else None
        if name == field and _UNNAMED_INDEX.match(field):
            return None
        return _text_label(entry, field)

    def exact_label(self, field: str) -> Any:
        """Return a label or index name with its original type, if numparq wrote it."""
        entry = self._entry(field)
        metadata = _dict(entry.get("metadata"))
        if self.is_written_by_numparq and LABEL_KEY in metadata:
            return _decode_or_default(metadata, LABEL_KEY, entry.get("name", field))
        return entry.get("name", field)

    @property
    def label_levels(self) -> list[dict[str, Any]]:
        """Notes by numparq on the levels of the column labels; empty if there are none."""
        notes = [_dict(_dict(level.get("metadata")).get(DTYPE_KEY)) for level in self.column_levels]
        return notes if self.is_written_by_numparq and any(notes) else []

    def timezone(self, field: str) -> str | None:
        """Return a column's time zone, or None."""
        entry = self._entry(field)
        if entry.get("pandas_type") != "datetimetz":
            return None
        zone = _dict(entry.get("metadata")).get("timezone")
        return zone if isinstance(zone, str) else None

    def numpy_type(self, field: str) -> str | None:
        """Return the dtype name of a column or index level, or None."""
        name = self._entry(field).get("numpy_type")
        return name if isinstance(name, str) else None

    def extension_dtype(self, field: str) -> Any:
        """Return a column's pandas extension dtype; None for NumPy dtypes and index levels."""
        name = self._entry(field).get("numpy_type")
        if not isinstance(name, str) or _PLAIN_DTYPE.match(name) or field in self.index_fields:
            return None
        if name not in self._dtypes:
            self._dtypes[name] = _extension_dtype(name)
        return self._dtypes[name]

    def dtype_spec(self, field: str) -> DtypeSpec | None:
        """Return the dtype of a column or index level as its entry describes it; None if unknown."""
        if field not in self._wanted:
            entry = self._entry(field)
            self._wanted[field] = column_dtype_spec(entry) if entry else None
        return self._wanted[field]


def _extension_dtype(name: str) -> Any:
    try:
        dtype = dtype_from_name(name)
    except Exception:  # extension dtypes' parsers may raise anything
        return None
    return dtype if isinstance(dtype, pd.api.extensions.ExtensionDtype) else None


def _decode_or_default(notes: dict[str, Any], key: str, otherwise: Any) -> Any:
    """Decode a value noted by numparq; `otherwise` if it is absent or invalid."""
    if key not in notes:
        return otherwise
    from .python_values import value_from_json

    try:
        return value_from_json(notes[key])
    except Exception:  # invalid notes may raise anything
        return otherwise


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _index_level(level: Any, is_written_by_numparq: bool = False) -> str | RangeIndexLevel | None:
    if isinstance(level, str):
        return level
    if not isinstance(level, dict) or level.get("kind") != "range":
        return None
    start, stop, step = (_int(level.get(key)) for key in ("start", "stop", "step"))
    if start is None or stop is None or not step:
        return None
    name = label_from_json(level.get("name"))
    name = _decode_or_default(level, LABEL_KEY, name) if is_written_by_numparq else name
    return RangeIndexLevel(start, stop, step, name if isinstance(name, Hashable) else None)


def _int(value: Any) -> int | None:
    return value if type(value) is int and abs(value) < 1 << 62 else None


def _text_label(entry: _Entry, field: str) -> Any:
    """Return the name in an entry: text, None or NaN (as pyarrow writes it); otherwise the column name of the file."""
    name = entry.get("name", field)
    return name if name is None or isinstance(name, str) or name != name else field


def _by_field(columns: list[Any], index_fields: tuple[str, ...]) -> dict[str, list[_Entry]]:
    """Group the entries by column name of the file; entries from before 2018 lack ``field_name``."""
    entries = [entry for entry in columns if isinstance(entry, dict)]
    found: dict[str, list[_Entry]] = {}
    first_index = len(entries) - len(index_fields)
    for position, entry in enumerate(entries):
        field = entry.get("field_name")
        if field is None:
            field = entry.get("name")
            if position >= first_index >= 0:
                field = index_fields[position - first_index]
        if isinstance(field, str):
            found.setdefault(field, []).append(entry)
    return found


def json_label(label: Any) -> Any:
    """Return a label that JSON can hold: itself, or its text."""
    if isinstance(label, float) and label != label:
        return None
    return label if label is None or isinstance(label, (str, int, float)) else str(label)


def pandas_type(field: ArrowField) -> str:
    """Return the ``pandas_type`` of a column."""
    arrow_type = field.type
    if arrow_type.dictionary is not None:
        return "categorical"
    if arrow_type.extension is not None:
        return "object"
    if arrow_type.kind in ("int", "float"):
        return _number_type(arrow_type)
    if arrow_type.kind == "timestamp":
        return "datetimetz" if arrow_type.timezone else "datetime"
    if arrow_type.kind == "list":
        return f"list[{pandas_type(field.children[0])}]"
    return _PANDAS_TYPES.get(arrow_type.kind, "object")


def _number_type(arrow_type: ArrowType) -> str:
    unsigned = arrow_type.kind == "int" and not arrow_type.signed
    return f"{'u' if unsigned else ''}{arrow_type.kind}{arrow_type.bit_width}"


def column_entry(dtype: DtypeEntry, name: str | None, field: ArrowField) -> dict[str, Any]:
    """Return the ``columns`` entry of a column or index level."""
    kind = "categorical" if dtype.is_categorical else pandas_type(field)
    numpy_type, metadata = dtype.numpy_type, dtype.metadata
    if kind == "decimal":
        numpy_type, metadata = "object", {"precision": field.type.precision, "scale": field.type.scale}
        if dtype.note is not None:
            metadata[DTYPE_KEY] = dtype.note
    return {
        "name": name,
        "field_name": field.name,
        "pandas_type": kind,
        "numpy_type": numpy_type,
        "metadata": metadata,
    }


def label_entries(columns: pd.Index) -> list[dict[str, Any]]:
    """Return the ``column_indexes`` of the column labels, one entry a level."""
    levels = columns.levels if isinstance(columns, pd.MultiIndex) else [columns]
    entries = []
    for level, name in zip(levels, columns.names, strict=True):
        numpy_type, metadata = numpy_type_entry(level.dtype)
        kind = _label_type(level)
        if "mixed" in kind:
            warnings.warn(
                "the column labels have different types; other readers see them as strings",
                UserWarning,
                stacklevel=2,
            )
        if kind == "unicode":
            metadata = {"encoding": "UTF-8"}
        entry = {
            "name": json_label(name),
            "field_name": json_label(name),
            "pandas_type": kind,
            "numpy_type": numpy_type,
            "metadata": metadata,
        }
        entries.append(add_level_note(entry, columns, level, name))
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
    """Return the ``index_columns`` entry of a RangeIndex, which needs no column."""
    numbers = {"start": level.start, "stop": level.stop, "step": level.step}
    entry = {"kind": "range", "name": json_label(level.name), **numbers}
    plain = level.name is None or type(level.name) in (str, int)
    note = None if plain else label_note(level.name)
    return entry if note is None else {**entry, LABEL_KEY: note[0]}


def encode_document(index: list[Any], labels: list[_Entry], columns: list[_Entry], attrs: _Entry) -> str:
    """Encode the value of the `pandas` key as JSON; the columns of the index come last."""
    from numparq.util.version import __version__

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
