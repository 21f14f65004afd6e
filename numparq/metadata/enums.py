"""The enums of the IDL as `enum.IntEnum` classes, made when they are first asked for: ``enums.Encoding.PLAIN``."""

from __future__ import annotations

from enum import IntEnum
from functools import lru_cache
from typing import Any

from .idl import load_idl


class FormatEnum(IntEnum):
    """An enum of the format: an int, that shows itself by its name."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    def __str__(self) -> str:
        return self.name


@lru_cache(maxsize=32)
def enum_class(name: str) -> type[FormatEnum]:
    """Give the class of an enum, by its name in the IDL."""
    make: Any = FormatEnum  # called like this, an enum without members gives one that has some
    made = make(name, load_idl().enums[name])
    made.__module__ = __name__
    return made


def enum_value(name: str, number: int) -> int:
    """Give the member of an enum, or the number itself where the IDL has no such member.

    Parameters
    ----------
    name : str
        The enum's name in the IDL.
    number : int
        What stood in the file.

    Returns
    -------
    FormatEnum or int
    """
    members: Any = enum_class(name)._value2member_map_
    return members.get(number, number)


def __getattr__(name: str) -> type[FormatEnum]:
    if name.startswith("_") or name not in load_idl().enums:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return enum_class(name)
