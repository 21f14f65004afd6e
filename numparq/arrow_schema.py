"""The ``ARROW:schema`` key of a footer: the Arrow schema that a writer had, as pyarrow and others leave it behind.

The value is base64 of an encapsulated Arrow IPC message, whose Flatbuffer holds the schema. It is only a hint: it tells
time zones, durations, dictionary types and extension types that Parquet's own schema cannot express. Whatever is wrong
with it means "no hint", never an error.
"""

from __future__ import annotations

import binascii
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .flatbuffer import FlatbufferError, Table


@dataclass(frozen=True, slots=True)
class ArrowType:
    """The type of a column in Arrow's terms; only what the kind has is set.

    Parameters
    ----------
    kind : str
        One of ``null bool int float decimal date time timestamp duration interval utf8 large_utf8 utf8_view binary
        large_binary binary_view fixed_size_binary uuid``, or the kind of a nested type (``list``, ``struct``,
        ...).
    bit_width : int
        Of ``int``, ``float`` and ``decimal``.
    signed : bool
        Of ``int``.
    unit : str
        ``s ms us ns`` of ``time``, ``timestamp`` and ``duration``; ``D`` or ``ms`` of ``date``.
    timezone : str
        Of ``timestamp``; empty where it has none.
    precision, scale : int
        Of ``decimal``, in decimal digits.
    byte_width : int
        Of ``fixed_size_binary``; of ``fixed_size_list`` the number of elements.
    dictionary : DictionaryIndex or None
        Set where the column is dictionary-encoded; the rest is then the type of its values.
    extension, extension_metadata : str or None
        Name and parameters of the extension type that has this type as its storage.
    """

    kind: str
    bit_width: int = 0
    signed: bool = True
    unit: str = ""
    timezone: str = ""
    precision: int = 0
    scale: int = 0
    byte_width: int = 0
    dictionary: DictionaryIndex | None = None
    extension: str | None = None
    extension_metadata: str | None = None


@dataclass(frozen=True, slots=True)
class DictionaryIndex:
    """How a dictionary type encodes its codes, and whether its order means something."""

    bit_width: int = 32
    signed: bool = True
    ordered: bool = False


TIME_UNITS = ("s", "ms", "us", "ns")
_DATE_UNITS = ("D", "ms")
_FLOAT_BITS = (16, 32, 64)
_INT_BITS = (8, 16, 32, 64)
_TEXT_LIMIT = 1 << 16
_FIELDS, _CHILDREN = 1, 5  # field numbers: of a schema's fields, and of a field's children
_UNSOUND = (FlatbufferError, ValueError, IndexError, struct.error)
_MAX_KEYS = 64

# The members of Arrow's union of types, in order; 0 is none.
_TYPE_KINDS = (
    "",
    "null",
    "int",
    "float",
    "binary",
    "utf8",
    "bool",
    "decimal",
    "date",
    "time",
    "timestamp",
    "interval",
    "list",
    "struct",
    "union",
    "fixed_size_binary",
    "fixed_size_list",
    "map",
    "duration",
    "large_binary",
    "large_utf8",
    "large_list",
    "run_end_encoded",
    "binary_view",
    "utf8_view",
    "list_view",
    "large_list_view",
)


def _pick(choices: tuple, number: int) -> Any:
    """Look an enum's value up, where a negative one is as wrong as one too large."""
    if not 0 <= number < len(choices):
        raise FlatbufferError("an enum has a value that it does not define")
    return choices[number]


# Kinds with parameters: field numbers of their tables (int bitWidth 0, is_signed 1; decimal precision 0, scale 1,
# bitWidth 2; timestamp unit 0, timezone 1; the others' single field is 0).
_PARAMETERS: dict[str, Callable[[Table], dict]] = {
    "int": lambda table: {"bit_width": table.int32(0), "signed": bool(table.uint8(1))},
    "float": lambda table: {"bit_width": _pick(_FLOAT_BITS, table.int16(0))},
    "decimal": lambda table: {"precision": table.int32(0), "scale": table.int32(1), "bit_width": table.int32(2, 128)},
    "date": lambda table: {"unit": _pick(_DATE_UNITS, table.int16(0, 1))},
    "time": lambda table: {"unit": _pick(TIME_UNITS, table.int16(0, 1))},
    "timestamp": lambda table: {
        "unit": _pick(TIME_UNITS, table.int16(0)),
        "timezone": table.text(1, _TEXT_LIMIT) or "",
    },
    "duration": lambda table: {"unit": _pick(TIME_UNITS, table.int16(0, 1))},
    "fixed_size_binary": lambda table: {"byte_width": table.int32(0)},
    "fixed_size_list": lambda table: {"byte_width": table.int32(0)},
}


class ArrowSchema:
    """The Arrow types of a file's top-level columns, each decoded when it is asked for.

    Parameters
    ----------
    value : str or bytes or None
        The value of the footer's ``ARROW:schema`` key, or None where there is none.
    num_fields : int
        How many top-level columns the file has; a schema with another number of them is not the file's, and ignored.
    """

    def __init__(self, value: str | bytes | None, num_fields: int) -> None:
        self._value = value
        self._num_fields = num_fields
        self._types: dict[int, ArrowType | None] = {}

    @cached_property
    def _schema(self) -> Table | None:
        """The table of the schema; None where there is no sound one of so many columns."""
        try:
            found = schema_table(self._value) if self._value is not None else None
            return found if found is not None and found.vector_length(_FIELDS) == self._num_fields else None
        except _UNSOUND:
            return None

    def type_of(self, position: int) -> ArrowType | None:
        """Give the Arrow type of a top-level column.

        Parameters
        ----------
        position : int
            Which of the file's top-level columns, from 0.

        Returns
        -------
        ArrowType or None
            None where the file has no (sound) Arrow schema.
        """
        if position not in self._types:
            hint = self.hint_of(position)
            self._types[position] = hint.type if hint is not None else None
        return self._types[position]

    def hint_of(self, position: int) -> ArrowHint | None:
        """Give what the schema says of a top-level column, and of what is in it.

        Parameters
        ----------
        position : int
            As in `type_of`.

        Returns
        -------
        ArrowHint or None
            None where the file has no (sound) Arrow schema.
        """
        if self._schema is None or not 0 <= position < self._num_fields:
            return None
        try:
            return ArrowHint(self._schema.vector_item(_FIELDS, position))
        except _UNSOUND:
            return None


class ArrowHint:
    """One field of an Arrow schema, decoded as far as it is asked for.

    Parameters
    ----------
    field : Table
        The field.
    """

    def __init__(self, field: Table) -> None:
        self._field = field

    @property
    def type(self) -> ArrowType | None:
        """Its type; None where it is none that there is."""
        try:
            return _field_type(self._field)
        except _UNSOUND:
            return None

    def children(self, count: int) -> list[ArrowHint] | None:
        """Give the fields within it, if there are so many; else None."""
        try:
            if self._field.vector_length(_CHILDREN) != count:
                return None
            return [ArrowHint(self._field.vector_item(_CHILDREN, number)) for number in range(count)]
        except _UNSOUND:
            return None


def schema_table(value: str | bytes) -> Table:
    """Unwrap base64, the message's frame and the message: what is left is the table of the schema.

    Raises
    ------
    FlatbufferError
        When the value is something else.
    """
    try:
        data = binascii.a2b_base64(value)
    except binascii.Error as error:
        raise FlatbufferError(str(error)) from error
    # A frame is a marker of four 0xFF bytes (absent before Arrow 0.15), then the length of the message.
    message = Table.root(data, 8 if data[:4] == b"\xff\xff\xff\xff" else 4)
    schema = message.table(2)
    if message.uint8(1) != 1 or schema is None:
        raise FlatbufferError("the message holds no schema")
    if schema.int16(0) != 0:
        raise FlatbufferError("the schema is big-endian")
    return schema


def _field_type(field: Table) -> ArrowType | None:
    """Decode one field: type tag 2, type 3, dictionary encoding 4, key-value metadata 6."""
    number = field.uint8(2)
    table = field.table(3)
    if not 0 < number < len(_TYPE_KINDS) or table is None:
        return None
    kind = _TYPE_KINDS[number]
    parameters = _PARAMETERS[kind](table) if kind in _PARAMETERS else {}
    encoding = field.table(4)
    if encoding is not None:
        parameters["dictionary"] = _dictionary_index(encoding)
    keys = {pair.text(0, _TEXT_LIMIT): pair for pair in field.vector_items(6, _MAX_KEYS)}
    if "ARROW:extension:name" in keys:
        parameters["extension"] = keys["ARROW:extension:name"].text(1, _TEXT_LIMIT)
        described = keys.get("ARROW:extension:metadata")
        parameters["extension_metadata"] = described.text(1, _TEXT_LIMIT) if described else None
    return ArrowType(kind, **parameters)


def _dictionary_index(encoding: Table) -> DictionaryIndex:
    ordered = bool(encoding.uint8(2))
    index = encoding.table(1)
    if index is None:
        return DictionaryIndex(ordered=ordered)
    if index.int32(0) not in _INT_BITS:
        raise FlatbufferError("an integer has a width that Arrow does not have")
    return DictionaryIndex(index.int32(0), bool(index.uint8(1)), ordered)
