"""The ``partitioning`` argument: how the names of directories are values of columns, and of which types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .names import partition_values, segment_keys

__all__ = ["Partitioning", "as_partitioning"]


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
        Types that are given, by column, as `numparq.dataset.partition_types.as_type` takes them.
    """

    kind: str = "hive"
    names: tuple[str, ...] = ()
    types: Mapping[str, Any] = field(default_factory=dict)

    def keys_of(self, directory: str) -> dict[str, str | None]:
        """Give the raw values that a directory stands for, by key."""
        if self.kind == "hive":
            return segment_keys(directory)
        return dict(zip(self.names, partition_values(directory, len(self.names)), strict=False))


def as_partitioning(value: Any) -> Partitioning:
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


_OF_ARROW = {"HivePartitioning": "hive", "DirectoryPartitioning": "positions"}


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
