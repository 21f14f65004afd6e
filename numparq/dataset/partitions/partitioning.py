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

_OF_ARROW = {"HivePartitioning": "hive", "DirectoryPartitioning": "positions"}

# Characters escaped in keys: they would end the key or the directory name, begin an escape, or are illegal in names
# on some systems.
_IN_KEYS = re.compile(r'[\x00-\x1f\x7f"*/:<=>?\\|%]')
# Characters escaped in values. Non-ASCII text is not escaped: Spark and Hive decode each escaped byte as a character.
_IN_VALUES = re.compile("[^A-Za-z0-9._~\\-\xa0-\U0010ffff]")
_HIDDEN = ("_", ".")


def parse_hive_path(directory: str) -> dict[str, str | None]:
    """Parse a directory's Hive names ``key=value``: return percent-decoded text by key, None for the null partition.

    Segments of another form are skipped. Raises InvalidFileError if a key occurs twice or a name is not UTF-8.
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
    """Return the values of a relative directory path by position: its first ``count`` segments, or fewer."""
    segments = directory.split("/")[:count] if directory else []
    return [_value(segment) for segment in segments]


@lru_cache(maxsize=1024)  # a year of daily partitions fits
def _key_and_value(segment: str) -> tuple[str, str | None]:
    key, _, value = segment.partition("=")
    return _decoded(key), _value(value)


def _value(text: str) -> str | None:
    value = _decoded(text)
    return None if value == HIVE_NULL else value


def _decoded(text: str) -> str:
    """Undo percent-encoding; a "%" that begins no escape stays."""
    try:
        decoded = unquote(text, errors="strict") if "%" in text else text
        decoded.encode()
    except UnicodeError:
        raise InvalidFileError(f"the directory name {text!r} is not valid UTF-8") from None
    return decoded


@dataclass(frozen=True)
class Partitioning:
    """Scheme by which directory names are values of columns.

    Attributes
    ----------
    kind : {"hive", "positions", "none"}
        By names ``key=value``, by the position of names in the path, or not at all.
    names : tuple of str
        Columns of ``"positions"``.
    types : mapping of str to Any
        Types given for columns, as `parse_partition_type` takes them.
    """

    kind: str = "hive"
    names: tuple[str, ...] = ()
    types: Mapping[str, Any] = field(default_factory=dict)

    def parse_path(self, directory: str) -> dict[str, str | None]:
        """Return a directory's partition values as text, by key."""
        if self.kind == "hive":
            return parse_hive_path(directory)
        return dict(zip(self.names, parse_positional_path(directory, len(self.names)), strict=False))


def parse_partitioning(value: Any) -> Partitioning:
    """Parse ``partitioning``: "hive", a dict of Hive types, a list of names or (name, type) pairs, pyarrow's, or None.

    A list is positional. Raises TypeError or ValueError for anything else.
    """
    if isinstance(value, Partitioning):
        return value
    if value is None:
        return Partitioning("none")
    if isinstance(value, str):
        if value != "hive":
            raise ValueError(f'partitioning must be "hive", None, a list of names, or a dict of types, not {value!r}')
        return Partitioning()
    if isinstance(value, Mapping):
        return Partitioning("hive", types=_named(value.items()))
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        pairs = [(item, None) if isinstance(item, str) else _pair(item) for item in value]
        names = tuple(name for name, _ in pairs)
        if len(set(names)) != len(names) or not names:
            raise ValueError(f"partitioning must name one or more different columns, not {value!r}")
        return Partitioning("positions", names, _named((name, kind) for name, kind in pairs if kind is not None))
    if type(value).__name__ in _OF_ARROW and hasattr(value, "schema"):
        kind = _OF_ARROW[type(value).__name__]
        types = {field.name: field.type for field in value.schema}
        return Partitioning(kind, tuple(types) if kind == "positions" else (), types)
    raise TypeError(
        f'partitioning must be "hive", None, a list of names, or a dict of types, not {type(value).__name__}'
    )


def _pair(item: Any) -> tuple[str, Any]:
    if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str):
        return item
    raise TypeError(f"partitioning must list names, or pairs of a name and a type, not {item!r}")


def _named(pairs: Any) -> dict[str, Any]:
    types = dict(pairs)
    for name in types:
        if not isinstance(name, str):
            raise TypeError(f"partitioning must map names to types, but {name!r} is not a str")
    return types


def format_hive_path(keys: Sequence[str], values: Sequence[str | None]) -> str:
    """Return a partition's relative directory ``key=value/...``; empty without keys, None is the null partition.

    In values, ASCII other than letters, digits and ``-._~`` is percent-encoded.
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
        raise SchemaError(
            "an empty string cannot be a partition value, as readers take it for null; replace it", column=key
        )
    if value == HIVE_NULL:
        raise SchemaError(f"{HIVE_NULL!r} cannot be a partition value, as it stands for null; replace it", column=key)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise SchemaError(f"partition value {value!r} is not valid Unicode", column=key) from None
    return _IN_VALUES.sub(lambda found: quote(found[0], safe=""), value)
