"""Partitioning schemes: directory names, Hive `key=value` or positional, parsed and formatted."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from urllib.parse import quote, unquote

from numparq.dataset.listing.patterns import HIVE_NULL
from numparq.errors import InvalidFileError, SchemaError

__all__ = ["Partitioning", "format_hive_path", "parse_hive_path", "parse_partitioning", "parse_positional_path"]

_OF_ARROW = {"HivePartitioning": "hive", "DirectoryPartitioning": "positions"}

# What in a key would end it, or its folder, or be taken for an escape; and what some system's names may not have.
_IN_KEYS = re.compile(r'[\x00-\x1f\x7f"*/:<=>?\\|%]')
# Of values, plain letters, digits and little else is left as it is. What is beyond ASCII and Latin-1's controls is as
# well: Spark and Hive take each byte of an escape for a character.
_IN_VALUES = re.compile("[^A-Za-z0-9._~\\-\xa0-\U0010ffff]")
_HIDDEN = ("_", ".")


def parse_hive_path(directory: str) -> dict[str, str | None]:
    """Find the partition that a directory is, by names of the form ``key=value`` (Hive's).

    Parameters
    ----------
    directory : str
        A path with ``/`` between its parts; those that are of another form do not count.

    Returns
    -------
    dict of str to (str or None)
        The values as text, percent-decoded, by key; None for the null partition.

    Raises
    ------
    InvalidFileError
        When a key or value is no text, or a key occurs twice.
    """
    found: dict[str, str | None] = {}
    if "=" not in directory:
        return found
    for segment in directory.split("/"):
        if "=" not in segment:
            continue
        key, value = _key_and_value(segment)
        if key in found:
            raise InvalidFileError(f"the directory names the partition key {key!r} twice")
        found[key] = value
    return found


def parse_positional_path(directory: str, count: int) -> list[str | None]:
    """Find the partition that a directory is, by the place of its parts: each is a value.

    Parameters
    ----------
    directory : str
        A path relative to the dataset's, with ``/`` between its parts.
    count : int
        How many partition keys there are; further parts do not count.

    Returns
    -------
    list of (str or None)
        As many values as there are parts, `count` at most.
    """
    segments = directory.split("/")[:count] if directory else []
    return [_value(segment) for segment in segments]


@lru_cache(maxsize=1024)  # a year has many days
def _key_and_value(segment: str) -> tuple[str, str | None]:
    key, _, value = segment.partition("=")
    return _decoded(key), _value(value)


def _value(text: str) -> str | None:
    value = _decoded(text)
    return None if value == HIVE_NULL else value


def _decoded(text: str) -> str:
    """Undo the escapes of a name; a "%" that begins none stays."""
    try:
        decoded = unquote(text, errors="strict") if "%" in text else text
        decoded.encode()
    except UnicodeError:
        raise InvalidFileError(f"the name of the partition {text!r} is no UTF-8 text") from None
    return decoded


@dataclass(frozen=True)
class Partitioning:
    """How the names of directories are values of columns.

    Parameters
    ----------
    kind : {"hive", "positions", "none"}
        By names of the form ``key=value``; by the places of the names; or not at all.
    names : tuple of str
        The columns, for ``"positions"``.
    types : mapping of str to Any
        Types that are given, by column, as `numparq.dataset.partitions.types.parse_partition_type` takes them.
    """

    kind: str = "hive"
    names: tuple[str, ...] = ()
    types: Mapping[str, Any] = field(default_factory=dict)

    def parse_path(self, directory: str) -> dict[str, str | None]:
        """Give the raw values that a directory stands for, by key."""
        if self.kind == "hive":
            return parse_hive_path(directory)
        return dict(zip(self.names, parse_positional_path(directory, len(self.names)), strict=False))


def parse_partitioning(value: Any) -> Partitioning:
    """Make sense of a ``partitioning`` argument.

    Parameters
    ----------
    value : str, None, sequence, mapping, or pyarrow.dataset.Partitioning
        - ``"hive"``: directories are named ``key=value``, and the types are inferred.
        - a mapping: the same, with the types of some or all keys.
        - a sequence of names, or of pairs of a name and a type: directories are named by the values alone, the first
          below the dataset's own by a value of the first column.
        - pyarrow's hive or directory partitioning that has a schema.
        - None: names of directories say nothing.

    Returns
    -------
    Partitioning

    Raises
    ------
    TypeError, ValueError
        For anything else.
    """
    if isinstance(value, Partitioning):
        return value
    if value is None:
        return Partitioning("none")
    if isinstance(value, str):
        if value != "hive":
            raise ValueError(f'partitioning is "hive", None, names or types of columns, not {value!r}')
        return Partitioning()
    if isinstance(value, Mapping):
        return Partitioning("hive", types=_named(value.items()))
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        pairs = [(item, None) if isinstance(item, str) else _pair(item) for item in value]
        names = tuple(name for name, _ in pairs)
        if len(set(names)) != len(names) or not names:
            raise ValueError(f"partitioning needs the names of columns, each once, not {value!r}")
        return Partitioning("positions", names, _named((name, kind) for name, kind in pairs if kind is not None))
    if type(value).__name__ in _OF_ARROW and hasattr(value, "schema"):
        kind = _OF_ARROW[type(value).__name__]
        types = {field.name: field.type for field in value.schema}
        return Partitioning(kind, tuple(types) if kind == "positions" else (), types)
    raise TypeError(f'partitioning is "hive", None, names or types of columns, not {type(value).__name__}')


def _pair(item: Any) -> tuple[str, Any]:
    if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str):
        return item
    raise TypeError(f"partitioning is a list of names, or of pairs of a name and a type; {item!r} is neither")


def _named(pairs: Any) -> dict[str, Any]:
    types = dict(pairs)
    for name in types:
        if not isinstance(name, str):
            raise TypeError(f"partitioning gives types of columns by their names, and {name!r} is no name")
    return types


def format_hive_path(keys: Sequence[str], values: Sequence[str | None]) -> str:
    """Name the folder of a partition.

    Parameters
    ----------
    keys : sequence of str
        The names of the partition columns.
    values : sequence of str or None
        The text of the value of each; None is the null partition.

    Returns
    -------
    str
        A path with slashes; empty where there are no keys. In values, ASCII that is no letter, digit, or one of
        ``-._~`` is escaped by ``%``.
    """
    return "/".join(
        f"{_key(key)}={HIVE_NULL if value is None else _escaped(key, value)}"
        for key, value in zip(keys, values, strict=True)
    )


def _key(key: str) -> str:
    if not key:
        raise SchemaError("a partition column needs a name")
    first = f"%{ord(key[0]):02X}" if key[0] in _HIDDEN else _IN_KEYS.sub(_percent, key[0])
    return first + _IN_KEYS.sub(_percent, key[1:])


def _percent(found: re.Match[str]) -> str:
    return f"%{ord(found[0]):02X}"


def _escaped(key: str, value: str) -> str:
    if value == "":
        raise SchemaError("an empty string cannot be told from a null in the name of a folder: replace it", column=key)
    if value == HIVE_NULL:
        raise SchemaError(f"{HIVE_NULL!r} stands for null in the name of a folder: replace it", column=key)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise SchemaError(f"the value {value!r} is not valid Unicode", column=key) from None
    return _IN_VALUES.sub(lambda found: quote(found[0], safe=""), value)
