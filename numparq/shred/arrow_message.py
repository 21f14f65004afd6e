"""The ``ARROW:schema`` key of a footer, written: what Parquet's own schema cannot express, for pyarrow and others.

`numparq.arrow_schema` reads it, and tells what it is.
"""

from __future__ import annotations

import binascii
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count

from ..arrow_schema import TIME_UNITS, ArrowType, DictionaryIndex, schema_table
from ..flatbuffer import FlatbufferError
from .flatbuffer import ALIGNMENT, Place, Scalar, Table, Value, build
from .source import ArrowField

_SCHEMA_MESSAGE = 1
_VERSION_5 = 4  # metadata version of Arrow since 1.0
_MARKER = b"\xff\xff\xff\xff"
_FLOATS = {16: 0, 32: 1, 64: 2}

# Numbers of Arrow's union of types.
_TYPE_NUMBERS = {
    "null": 1, "int": 2, "float": 3, "binary": 4, "utf8": 5, "bool": 6, "decimal": 7, "date": 8, "time": 9,
    "timestamp": 10, "list": 12, "struct": 13, "fixed_size_binary": 15, "uuid": 15, "fixed_size_list": 16, "map": 17,
    "duration": 18, "large_binary": 19, "large_utf8": 20, "large_list": 21, "binary_view": 23, "utf8_view": 24,
}  # fmt: skip

_Fields = dict[int, Value | None]


def _int(bit_width: int, signed: bool) -> _Fields:
    return {0: Scalar("i", bit_width), 1: Scalar("B", int(signed))}


def _unit(arrow_type: ArrowType) -> Scalar:
    return Scalar("h", TIME_UNITS.index(arrow_type.unit))


# Kinds with parameters, by the field numbers of their tables.
_PARAMETERS: dict[str, Callable[[ArrowType], _Fields]] = {
    "int": lambda type_: _int(type_.bit_width, type_.signed),
    "float": lambda type_: {0: Scalar("h", _FLOATS[type_.bit_width])},
    "decimal": lambda type_: {
        0: Scalar("i", type_.precision),
        1: Scalar("i", type_.scale),
        2: Scalar("i", type_.bit_width),
    },
    "date": lambda type_: {0: Scalar("h", 0 if type_.unit == "D" else 1)},
    "time": lambda type_: {0: _unit(type_), 1: Scalar("i", 32 if type_.unit in ("s", "ms") else 64)},
    "timestamp": lambda type_: {0: _unit(type_), 1: type_.timezone or None},
    "duration": lambda type_: {0: _unit(type_)},
    "fixed_size_binary": lambda type_: {0: Scalar("i", type_.byte_width)},
    "uuid": lambda type_: {0: Scalar("i", 16)},
    "fixed_size_list": lambda type_: {0: Scalar("i", type_.byte_width)},
    "map": lambda type_: {0: Scalar("B", 0)},
}


def arrow_message(fields: Sequence[ArrowField], metadata: Mapping[str, str] | None = None) -> str:
    """Write the value of the ``ARROW:schema`` key.

    Parameters
    ----------
    fields : sequence of ArrowField
        The columns of the file.
    metadata : mapping of str to str, optional
        The schema's own: where there is an Arrow schema, pyarrow takes the ``pandas`` key from there.

    Returns
    -------
    str
        Base64 of an encapsulated IPC message that holds the schema.
    """
    numbers = count()
    return _message([_field(field, numbers) for field in fields], metadata or {})


def with_metadata(message: str | bytes, metadata: Mapping[str, str]) -> str | bytes:
    """Give the value of an ``ARROW:schema`` key, of whatever writer, with other metadata in it.

    Parameters
    ----------
    message : str or bytes
        The value.
    metadata : mapping of str to str
        What takes the place of the metadata that are in it.

    Returns
    -------
    str or bytes
        The new value; `message` itself, where that is no sound Arrow schema.
    """
    try:
        schema = schema_table(message)
        fields, old_metadata = schema.place(1), schema.place(2)
    except FlatbufferError:
        return message
    if not fields:
        return _message([], metadata)
    # Writers put what a vector refers to behind it; so metadata that lie before the fields can be left out.
    start = fields - fields % ALIGNMENT if 0 < old_metadata < fields else 0
    return _message(Place(fields - start), metadata, schema.data[start:])


def _message(fields: Value, metadata: Mapping[str, str], behind: bytes = b"") -> str:
    pairs = [Table({0: key, 1: value}) for key, value in metadata.items()]
    schema = Table({0: Scalar("h", 0), 1: fields, 2: pairs or None})
    message = build(Table({0: Scalar("h", _VERSION_5), 1: Scalar("B", _SCHEMA_MESSAGE), 2: schema}), behind)
    return binascii.b2a_base64(_MARKER + struct.pack("<i", len(message)) + message, newline=False).decode("ascii")


def _field(field: ArrowField, numbers: Iterator[int]) -> Table:
    arrow_type = field.type
    parameters = _PARAMETERS.get(arrow_type.kind, lambda type_: {})(arrow_type)
    return Table(
        {
            0: field.name,
            1: Scalar("B", int(field.nullable)),
            2: Scalar("B", _TYPE_NUMBERS[arrow_type.kind]),
            3: Table(parameters),
            4: _dictionary(arrow_type.dictionary, numbers) if arrow_type.dictionary is not None else None,
            5: [_field(child, numbers) for child in field.children],
            6: _extension(arrow_type),
        }
    )


def _dictionary(index: DictionaryIndex, numbers: Iterator[int]) -> Table:
    return Table(
        {
            0: Scalar("q", next(numbers)),
            1: Table(_int(index.bit_width, index.signed)),
            2: Scalar("B", int(index.ordered)),
        }
    )


def _extension(arrow_type: ArrowType) -> list[Table] | None:
    name = "arrow.uuid" if arrow_type.kind == "uuid" else arrow_type.extension
    if name is None:
        return None
    metadata = arrow_type.extension_metadata or ""
    pairs = {"ARROW:extension:name": name, "ARROW:extension:metadata": metadata}
    return [Table({0: key, 1: value}) for key, value in pairs.items()]
