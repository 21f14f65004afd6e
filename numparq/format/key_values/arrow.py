"""The `ARROW:schema` key, read and written: Arrow types as hints for what Parquet's schema cannot express."""

from __future__ import annotations

import binascii
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import count
from typing import Any

from numparq.format.arrow_type import TIME_UNITS, ArrowType, DictionaryIndex
from numparq.format.schema import Leaf
from numparq.util.pluralize import pluralize

from .flatbuffer import (
    ALIGNMENT,
    AppendedPosition,
    Base64Bytes,
    FlatbufferError,
    FlatbufferTable,
    FlatbufferValue,
    ScalarField,
    TableFields,
    build_flatbuffer,
)
from .time_zones import full_offset, is_zone_name

_DATE_UNITS = ("D", "ms")
_FLOAT_BITS = (16, 32, 64)
_INT_BITS = (8, 16, 32, 64)
_TEXT_LIMIT = 1 << 16
_FIELDS, _CHILDREN = 1, 5  # field numbers of a schema's fields and a field's children
_DECODE_ERRORS = (FlatbufferError, ValueError, IndexError, struct.error)
_MAX_KEYS = 64
_MIN_LAZY_BYTES = 64 << 10

# Members of Arrow's Type union by number; 0 is none.
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

# Parameters of kinds by field number (int bitWidth 0, is_signed 1; decimal precision 0, scale 1, bitWidth 2; timestamp
# unit 0, timezone 1; single fields are 0).
_PARAMETER_READERS: dict[str, Callable[[FlatbufferTable], dict[str, Any]]] = {
    "int": lambda table: {"bit_width": table.int32(0), "signed": bool(table.uint8(1))},
    "float": lambda table: {"bit_width": _enum_value(_FLOAT_BITS, table.int16(0))},
    "decimal": lambda table: {"precision": table.int32(0), "scale": table.int32(1), "bit_width": table.int32(2, 128)},
    "date": lambda table: {"unit": _enum_value(_DATE_UNITS, table.int16(0, 1))},
    "time": lambda table: {"unit": _enum_value(TIME_UNITS, table.int16(0, 1))},
    "timestamp": lambda table: {
        "unit": _enum_value(TIME_UNITS, table.int16(0)),
        "timezone": table.text(1, _TEXT_LIMIT) or "",
    },
    "duration": lambda table: {"unit": _enum_value(TIME_UNITS, table.int16(0, 1))},
    "fixed_size_binary": lambda table: {"byte_width": table.int32(0)},
    "fixed_size_list": lambda table: {"byte_width": table.int32(0)},
}

_SCHEMA_MESSAGE = 1
_VERSION_5 = 4  # MetadataVersion V5, since Arrow 1.0
_MARKER = b"\xff\xff\xff\xff"
_FLOATS = {16: 0, 32: 1, 64: 2}

# Numbers of Arrow's Type union.
_TYPE_NUMBERS = {
    "null": 1,
    "int": 2,
    "float": 3,
    "binary": 4,
    "utf8": 5,
    "bool": 6,
    "decimal": 7,
    "date": 8,
    "time": 9,
    "timestamp": 10,
    "list": 12,
    "struct": 13,
    "fixed_size_binary": 15,
    "uuid": 15,
    "fixed_size_list": 16,
    "map": 17,
    "duration": 18,
    "large_binary": 19,
    "large_utf8": 20,
    "large_list": 21,
    "binary_view": 23,
    "utf8_view": 24,
}

_Fields = dict[int, FlatbufferValue | None]

# Parameters of kinds by field number.
_PARAMETER_TABLES: dict[str, Callable[[ArrowType], _Fields]] = {
    "int": lambda type_: _int(type_.bit_width, type_.signed),
    "float": lambda type_: {0: ScalarField("h", _FLOATS[type_.bit_width])},
    "decimal": lambda type_: {
        0: ScalarField("i", type_.precision),
        1: ScalarField("i", type_.scale),
        2: ScalarField("i", type_.bit_width),
    },
    "date": lambda type_: {0: ScalarField("h", 0 if type_.unit == "D" else 1)},
    "time": lambda type_: {0: _unit(type_), 1: ScalarField("i", 32 if type_.unit in ("s", "ms") else 64)},
    "timestamp": lambda type_: {0: _unit(type_), 1: type_.timezone or None},
    "duration": lambda type_: {0: _unit(type_)},
    "fixed_size_binary": lambda type_: {0: ScalarField("i", type_.byte_width)},
    "uuid": lambda type_: {0: ScalarField("i", 16)},
    "fixed_size_list": lambda type_: {0: ScalarField("i", type_.byte_width)},
    "map": lambda type_: {0: ScalarField("B", 0)},
}


def _no_parameters(arrow_type: ArrowType) -> _Fields:
    return {}


def _enum_value(choices: tuple[Any, ...], number: int) -> Any:
    """Return an enum's value; FlatbufferError if it is out of range, negative included."""
    if not 0 <= number < len(choices):
        raise FlatbufferError("an enum has a value that it does not define")
    return choices[number]


class ArrowSchema:
    """Arrow types of a file's top-level columns, decoded on demand from the value of ``ARROW:schema``.

    A schema whose number of fields is not `num_fields`, the file's number of columns, is ignored.
    """

    def __init__(self, value: str | bytes | memoryview | None, num_fields: int) -> None:
        self._value = value
        self._num_fields = num_fields
        self._types: dict[int, ArrowType | None] = {}

    @cached_property
    def _schema(self) -> FlatbufferTable | None:
        """The schema table; None if it is absent, damaged, or has another number of fields."""
        try:
            found = decode_schema_message(self._value) if self._value is not None else None
            return found if found is not None and found.vector_length(_FIELDS) == self._num_fields else None
        except _DECODE_ERRORS:
            return None

    def field_type(self, position: int) -> ArrowType | None:
        """Return the Arrow type of a top-level column; None without a valid Arrow schema."""
        if position not in self._types:
            hint = self.field_hint(position)
            self._types[position] = hint.type if hint is not None else None
        return self._types[position]

    def field_hint(self, position: int) -> ArrowHint | None:
        """Return the Arrow field of a top-level column with its children; None without a valid Arrow schema."""
        if self._schema is None or not 0 <= position < self._num_fields:
            return None
        try:
            return ArrowHint(self._schema.vector_item(_FIELDS, position))
        except _DECODE_ERRORS:
            return None


class ArrowHint:
    """One field of an Arrow schema, decoded on demand."""

    def __init__(self, field: FlatbufferTable) -> None:
        self._field = field

    @property
    def type(self) -> ArrowType | None:
        """The field's type; None if it is invalid or unknown."""
        try:
            return _field_type(self._field)
        except _DECODE_ERRORS:
            return None

    def children(self, count: int) -> list[ArrowHint] | None:
        """Return the child fields; None if there are not `count` of them."""
        try:
            if self._field.vector_length(_CHILDREN) != count:
                return None
            return [ArrowHint(self._field.vector_item(_CHILDREN, number)) for number in range(count)]
        except _DECODE_ERRORS:
            return None


def decode_schema_message(value: str | bytes | memoryview) -> FlatbufferTable:
    """Decode base64, IPC frame and message down to the schema table; FlatbufferError if any is invalid."""
    data: bytes | Base64Bytes | None = _lazily_decoded(value)
    try:
        data = data or binascii.a2b_base64(value)
    except binascii.Error as error:
        raise FlatbufferError(str(error)) from error
    # A frame is four 0xFF bytes (absent before Arrow 0.15), then the message length.
    message = FlatbufferTable.root(data, 8 if data[:4] == b"\xff\xff\xff\xff" else 4)
    schema = message.table(2)
    if message.uint8(1) != 1 or schema is None:
        raise FlatbufferError("the message holds no schema")
    if schema.int16(0) != 0:
        raise FlatbufferError("the schema is big-endian")
    return schema


def _lazily_decoded(value: str | bytes | memoryview) -> Base64Bytes | None:
    """Return a large value to be decoded in parts; None if it has other characters between, by the frame's length."""
    if isinstance(value, str) or len(value) < _MIN_LAZY_BYTES or len(value) % 4:
        return None
    data = Base64Bytes(memoryview(value))
    frame = data[:8]
    is_whole = frame[:4] == _MARKER and 8 + int.from_bytes(frame[4:], "little") == len(data)
    return data if is_whole else None


def _field_type(field: FlatbufferTable) -> ArrowType | None:
    """Decode a field: type tag 2, type 3, dictionary encoding 4, key-value metadata 6."""
    number = field.uint8(2)
    table = field.table(3)
    if not 0 < number < len(_TYPE_KINDS) or table is None:
        return None
    kind = _TYPE_KINDS[number]
    parameters = _PARAMETER_READERS[kind](table) if kind in _PARAMETER_READERS else {}
    if parameters.get("timezone"):
        parameters["timezone"] = full_offset(parameters["timezone"])
    encoding = field.table(4)
    if encoding is not None:
        parameters["dictionary"] = _dictionary_index(encoding)
    keys = {pair.text(0, _TEXT_LIMIT): pair for pair in field.vector_items(6, _MAX_KEYS)}
    if "ARROW:extension:name" in keys:
        parameters["extension"] = keys["ARROW:extension:name"].text(1, _TEXT_LIMIT)
        described = keys.get("ARROW:extension:metadata")
        parameters["extension_metadata"] = described.text(1, _TEXT_LIMIT) if described else None
    return ArrowType(kind, **parameters)


def _dictionary_index(encoding: FlatbufferTable) -> DictionaryIndex:
    ordered = bool(encoding.uint8(2))
    index = encoding.table(1)
    if index is None:
        return DictionaryIndex(ordered=ordered)
    if index.int32(0) not in _INT_BITS:
        raise FlatbufferError(f"dictionary indices have {pluralize(index.int32(0), 'bit')}, not 8, 16, 32 or 64")
    return DictionaryIndex(index.int32(0), bool(index.uint8(1)), ordered)


def pyarrow_schema(value: str | bytes | None) -> Any:
    """Return ``ARROW:schema`` as pyarrow reads it; None without the key, pyarrow or a valid schema."""
    if value is None:
        return None
    try:
        import pyarrow as pa

        return pa.ipc.read_schema(pa.py_buffer(binascii.a2b_base64(value)))
    except Exception:  # extension types' parsers may raise anything
        return None


def pyarrow_field_type(schema: Any, leaf: Leaf) -> Any:
    """Return pyarrow's type of a top-level column by its `pyarrow_schema`; None if that is None or lacks it."""
    if schema is None or leaf.column >= len(schema) or schema.field(leaf.column).name != leaf.name:
        return None
    found = schema.field(leaf.column).type
    zone = getattr(getattr(found, "value_type", found), "tz", None)
    return found if zone is None or is_zone_name(zone) else None


@dataclass(frozen=True, slots=True)
class ArrowField:
    """A column as ``ARROW:schema`` describes it.

    Attributes
    ----------
    type : ArrowType
        Nested kinds are ``list``, ``large_list``, ``fixed_size_list``, ``struct`` and ``map``.
    children : tuple of ArrowField
        A list's item, a map's entries (a struct of key and value), or a struct's fields.
    """

    name: str
    type: ArrowType
    children: tuple[ArrowField, ...] = ()
    nullable: bool = True


def _int(bit_width: int, signed: bool) -> _Fields:
    return {0: ScalarField("i", bit_width), 1: ScalarField("B", int(signed))}


def _unit(arrow_type: ArrowType) -> ScalarField:
    return ScalarField("h", TIME_UNITS.index(arrow_type.unit))


def encode_arrow_schema(fields: Sequence[ArrowField], metadata: Mapping[str, str] | None = None) -> str:
    """Encode the value of ``ARROW:schema``: an IPC message in base64.

    `metadata` is the schema's own: pyarrow takes the ``pandas`` key from there if there is an Arrow schema.
    """
    numbers = count()
    return _message([_field(field, numbers) for field in fields], metadata or {})


def replace_metadata(message: str | bytes, metadata: Mapping[str, str]) -> str | bytes:
    """Return an ``ARROW:schema`` value of any writer with other metadata; unchanged if it is invalid."""
    try:
        schema = decode_schema_message(message)
        fields, old_metadata = schema.field_position(1), schema.field_position(2)
    except FlatbufferError:
        return message
    if not fields:
        return _message([], metadata)
    # Writers put what a vector refers to after it, so old metadata before the fields can be dropped.
    start = fields - fields % ALIGNMENT if 0 < old_metadata < fields else 0
    return _message(AppendedPosition(fields - start), metadata, schema.data[start:])


def _message(fields: FlatbufferValue, metadata: Mapping[str, str], behind: bytes = b"") -> str:
    pairs = [TableFields({0: key, 1: value}) for key, value in metadata.items()]
    schema = TableFields({0: ScalarField("h", 0), 1: fields, 2: pairs or None})
    message = build_flatbuffer(
        TableFields({0: ScalarField("h", _VERSION_5), 1: ScalarField("B", _SCHEMA_MESSAGE), 2: schema}), behind
    )
    return binascii.b2a_base64(_MARKER + struct.pack("<i", len(message)) + message, newline=False).decode("ascii")


def _field(field: ArrowField, numbers: Iterator[int]) -> TableFields:
    arrow_type = field.type
    parameters = _PARAMETER_TABLES.get(arrow_type.kind, _no_parameters)(arrow_type)
    return TableFields(
        {
            0: field.name,
            1: ScalarField("B", int(field.nullable)),
            2: ScalarField("B", _TYPE_NUMBERS[arrow_type.kind]),
            3: TableFields(parameters),
            4: _dictionary(arrow_type.dictionary, numbers) if arrow_type.dictionary is not None else None,
            5: [_field(child, numbers) for child in field.children],
            6: _extension(arrow_type),
        }
    )


def _dictionary(index: DictionaryIndex, numbers: Iterator[int]) -> TableFields:
    return TableFields(
        {
            0: ScalarField("q", next(numbers)),
            1: TableFields(_int(index.bit_width, index.signed)),
            2: ScalarField("B", int(index.ordered)),
        }
    )


def _extension(arrow_type: ArrowType) -> list[TableFields] | None:
    name = "arrow.uuid" if arrow_type.kind == "uuid" else arrow_type.extension
    if name is None:
        return None
    metadata = arrow_type.extension_metadata or ""
    pairs = {"ARROW:extension:name": name, "ARROW:extension:metadata": metadata}
    return [TableFields({0: key, 1: value}) for key, value in pairs.items()]


def arrow_schema_value(fields: Sequence[ArrowField], metadata: Mapping[str, str | bytes]) -> str:
    """Encode the value of ``ARROW:schema``, cached, with the footer's other text keys as its metadata."""
    return _cached_arrow_schema(
        tuple(fields), tuple((key, text) for key, text in metadata.items() if isinstance(text, str))
    )


@lru_cache(maxsize=4)  # the files of a dataset, possibly thousands, share one schema
def _cached_arrow_schema(fields: tuple[ArrowField, ...], metadata: tuple[tuple[str, str], ...]) -> str:
    return encode_arrow_schema(fields, dict(metadata))
