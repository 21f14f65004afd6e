"""Structs, unions and enums of parquet.thrift as plain data, cached on disk so that warm starts parse nothing."""

from __future__ import annotations

import hashlib
import io
import json
from enum import IntEnum
from functools import lru_cache
from importlib import resources
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from numparq.util import disk_cache

_IDL = "parquet.thrift"  # in the folder thrift/ of the repository; builds bring it into this package
_FORM = b"numparq idl 1\n"  # cache version: change it when `_describe` changes
_SCALARS = {2: "bool", 3: "i8", 4: "double", 6: "i16", 8: "i32", 10: "i64", 11: "string", 18: "binary"}
_STRUCT, _LIST = 12, 15


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


def idl_text() -> str:
    """Return the text of the IDL: of the installed package, which may be a zip file, or of a source checkout."""
    packaged = resources.files(__package__).joinpath(_IDL)
    definition = packaged if packaged.is_file() else Path(__file__).parents[3] / "thrift" / _IDL
    return definition.read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def thrift_module() -> ModuleType:
    """Load the IDL with thriftpy2, as a module with a class for each struct and enum."""
    import thriftpy2

    return thriftpy2.load_fp(io.StringIO(idl_text()), module_name="numparq_parquet_thrift")


@lru_cache(maxsize=1)
def load_idl() -> Idl:
    """Return the IDL from the disk cache, or parse it with thriftpy2."""
    key = hashlib.sha256(_FORM + idl_text().encode()).digest()
    stored = disk_cache.load("idl", key)
    if stored is None:
        stored = json.dumps(_describe(thrift_module()), separators=(",", ":")).encode()
        disk_cache.store("idl", key, stored)
    plain = json.loads(stored)
    structs = {
        name: IdlStruct(name, union, tuple(IdlField(*field) for field in fields))
        for name, (union, fields) in plain["structs"].items()
    }
    return Idl(structs, plain["enums"])


def _describe(module: ModuleType) -> dict[str, dict[str, Any]]:
    """Return thriftpy2's classes as JSON values."""
    known = module.__thrift_meta__
    structs = {
        kind.__name__: (union, _fields(kind))
        for union, kinds in ((False, known["structs"]), (True, known["unions"]))
        for kind in kinds
    }
    return {"structs": structs, "enums": {kind.__name__: kind._NAMES_TO_VALUES for kind in known["enums"]}}


def _fields(kind: Any) -> list[IdlField]:
    defaults = dict(kind.default_spec)
    fields = []
    for field_id, (code, name, *about, required) in sorted(kind.thrift_spec.items()):
        element, refers = None, None
        if code == _LIST:
            inner = about[0] if isinstance(about[0], tuple) else (about[0],)
            element, refers = _kind(*inner)
            this = "list"
        else:
            this, refers = _kind(code, *about)
        fields.append(IdlField(field_id, name, this, element, refers, required, defaults[name]))
    return fields


def _kind(code: int, about: Any = None) -> tuple[str, str | None]:
    """Return the kind of a thriftpy2 type code, and its struct or enum."""
    if code == _STRUCT:
        return "struct", about.__name__
    return ("enum", about.__name__) if about is not None else (_SCALARS[code], None)


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
