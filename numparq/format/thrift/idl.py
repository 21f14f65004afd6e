"""Structs, unions and enums of parquet.thrift as plain data."""

from __future__ import annotations

import json
import pkgutil
from enum import IntEnum
from functools import lru_cache
from typing import Any, NamedTuple

# Written by tests/support/thrift_definition.py from thrift/parquet.thrift; a test compares them.
_TABLES = "parquet.json"


class IdlField(NamedTuple):
    """A field of a struct or union.

    Attributes
    ----------
    kind : str
        One of ``bool i8 i16 i32 i64 double binary string enum struct list``.
    element : str or None
        Kind of a list's elements.
    refers : str or None
        Struct or enum of the field, or of a list's elements.
    default : object
        None if the IDL has no default.
    """

    id: int
    name: str
    kind: str
    element: str | None
    refers: str | None
    required: bool
    default: Any


class IdlStruct(NamedTuple):
    """A struct or union, its fields by ascending id."""

    name: str
    union: bool
    fields: tuple[IdlField, ...]


class Idl(NamedTuple):
    """Structs and unions by name, and the values of enums by name."""

    structs: dict[str, IdlStruct]
    enums: dict[str, dict[str, int]]


@lru_cache(maxsize=1)
def load_idl() -> Idl:
    """Return the definition, from the tables in JSON beside this module."""
    plain = json.loads(pkgutil.get_data(__package__, _TABLES) or b"")  # of a folder, or of a zip file
    structs = {
        name: IdlStruct(name, union, tuple(IdlField(*field) for field in fields))
        for name, (union, fields) in plain["structs"].items()
    }
    return Idl(structs, plain["enums"])


class FormatEnum(IntEnum):
    """An enum of the format: an int whose repr is its name."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    def __str__(self) -> str:
        return self.name


@lru_cache(maxsize=32)
def enum_class(name: str) -> type[FormatEnum]:
    """Return the class of an enum by its IDL name."""
    make: Any = FormatEnum  # the functional API of Enum; Any, since type checkers take it for a look-up
    made: type[FormatEnum] = make(name, load_idl().enums[name])
    made.__module__ = __name__
    return made


def enum_value(name: str, number: int) -> int:
    """Return the member of an enum, or the number itself if the IDL has no such member."""
    members: Any = enum_class(name)._value2member_map_
    member: int = members.get(number, number)
    return member


def __getattr__(name: str) -> type[FormatEnum]:
    if name.startswith("_") or name not in load_idl().enums:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return enum_class(name)
