"""What variants become: Python objects, or one value in the binary encoding each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..column.nested_arrays import LeafArray
from ..errors import InvalidFileError
from ..targets import Target
from .encoding import decode_value, dictionary_of, fields_of
from .parts import array_bytes, object_bytes
from .shredding import MISSING
from .typed import shredded_type

__all__ = ["BytesMaker", "Dictionaries", "ObjectsMaker"]

_MOST_KEPT = 4096  # dictionaries at a time


class Dictionaries:
    """The names of fields of each variant; those of equal metadata are decoded once.

    Parameters
    ----------
    metadata : sequence of bytes or None
        The metadata of each variant.
    """

    def __init__(self, metadata: Sequence[bytes | None]) -> None:
        self._metadata = metadata
        self._names: dict[bytes, list[str]] = {}
        self._ids: dict[bytes, dict[str, int]] = {}

    def names(self, owner: int) -> list[str]:
        """Give the names of a variant, by their ids."""
        metadata = self._metadata[owner]
        assert metadata is not None
        found = self._names.get(metadata)
        if found is None:
            if len(self._names) >= _MOST_KEPT:
                self._names.clear()
            found = self._names[metadata] = dictionary_of(metadata)
        return found

    def ids(self, owner: int) -> dict[str, int]:
        """Give the ids of a variant's names; of equal names, the first."""
        metadata = self._metadata[owner]
        assert metadata is not None
        found = self._ids.get(metadata)
        if found is None:
            if len(self._ids) >= _MOST_KEPT:
                self._ids.clear()
            names = self.names(owner)
            ids = zip(reversed(names), range(len(names) - 1, -1, -1), strict=True)
            found = self._ids[metadata] = dict(ids)
        return found


class ObjectsMaker:
    """Makes Python objects, as `numparq.variant.decode` does."""

    null = None

    def __init__(self, dictionaries: Dictionaries, targets: Mapping[int, Target]) -> None:
        self._dictionaries = dictionaries
        self._targets = targets

    def stored(self, value: bytes, owner: int) -> Any:
        """Decode a value."""
        return decode_value(value, self._dictionaries.names(owner))

    def typed(self, array: LeafArray) -> list:
        """Make the objects of a leaf's values."""
        assert array.shape.leaf is not None
        return shredded_type(array.shape.leaf).objects(array, self._targets[array.shape.leaf.index])

    def array(self, items: list) -> list:
        """Give an array, which is the list that it comes as."""
        return items

    def object(self, names: Sequence[str], items: Sequence[Any], owner: int) -> dict[str, Any]:
        """Make a dict."""
        return {name: item for name, item in zip(names, items, strict=True) if item is not MISSING}

    def united(self, item: dict[str, Any], value: bytes, names: frozenset[str], owner: int) -> dict[str, Any]:
        """Put two dicts together, in the order of the bytes of their names."""
        rest = decode_value(value, self._dictionaries.names(owner))
        _check_apart(names, rest)
        return _sorted({**item, **rest}) if rest else item


class BytesMaker:
    """Makes values in the binary encoding, which go with the metadata that a variant has."""

    null = b"\0"

    def __init__(self, dictionaries: Dictionaries, targets: Mapping[int, Target]) -> None:
        self._dictionaries = dictionaries
        self._targets = targets

    def stored(self, value: bytes, owner: int) -> bytes:
        """Give a value as it is."""
        return value

    def typed(self, array: LeafArray) -> list[bytes]:
        """Encode a leaf's values."""
        assert array.shape.leaf is not None
        known = shredded_type(array.shape.leaf)
        return known.encoded(array, self._targets[array.shape.leaf.index], known.kind)

    def array(self, items: list[bytes]) -> bytes:
        """Encode an array."""
        return array_bytes(items)

    def object(self, names: Sequence[str], items: Sequence[Any], owner: int) -> bytes:
        """Encode an object."""
        ids = self._dictionaries.ids(owner)
        fields = [(name, item) for name, item in zip(names, items, strict=True) if item is not MISSING]
        try:
            return object_bytes([ids[name] for name, _ in fields], [item for _, item in fields])
        except KeyError as error:
            message = f"a shredded field {error.args[0]!r} is none of the names in the variant's metadata"
            raise InvalidFileError(message, row=owner) from None

    def united(self, item: bytes, value: bytes, names: frozenset[str], owner: int) -> bytes:
        """Encode an object of the fields of two."""
        known = self._dictionaries.names(owner)
        ours, theirs = _encoded_fields(item, known), _encoded_fields(value, known)
        _check_apart(names, theirs)
        fields = _sorted({**ours, **theirs})
        return self.object(list(fields), list(fields.values()), owner)


def _encoded_fields(value: bytes, names: Sequence[str]) -> dict[str, bytes]:
    """Take an encoded object apart."""
    fields = fields_of(value, 0, len(value), names)
    places = zip(fields.keys, fields.starts, fields.ends, strict=True)
    return {str(name): value[start:end] for name, start, end in places}


def _sorted(fields: dict[str, Any]) -> dict[str, Any]:
    """Put fields in the order of the bytes of their names."""
    return dict(sorted(fields.items(), key=lambda field: field[0].encode()))


def _check_apart(names: frozenset[str], stored: Mapping[str, Any]) -> None:
    """Refuse a stored field that has columns of its own."""
    if not names.isdisjoint(stored):
        name = min(names.intersection(stored))
        raise InvalidFileError(f"a variant's value has the field {name!r}, which is shredded")
