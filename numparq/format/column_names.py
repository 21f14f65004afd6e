"""Names of the columns of a wide schema, found without decoding all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from .footer.file_metadata import SchemaElements

MAX_DECODED = 4096  # of more columns, names are decoded when all are asked for
_MAX_SOUGHT = 32  # names sought one by one: each takes a thirtieth of the time in which all are decoded


def column_positions(content: bytes, places: np.ndarray, decode: Callable[[], Sequence[str]]) -> Mapping[str, int]:
    """Return the position of each column by name, as `ColumnPositions` does; the first of equal names counts."""
    if len(places) > MAX_DECODED:
        return ColumnPositions(content, places, decode)
    return _first_positions(decode())


def _first_positions(names: Sequence[str]) -> dict[str, int]:
    return dict(zip(reversed(names), range(len(names) - 1, -1, -1), strict=True))


def read_names(schema: SchemaElements, starts: np.ndarray, lengths: np.ndarray) -> list[str]:
    """Return names by their positions and lengths in a schema."""
    if not len(starts):
        return []
    ends = starts + lengths
    first, end = int(starts.min()), int(ends.max())
    if end - first > 1 << 24:  # only in hostile files
        return [schema.text(*place) for place in zip(starts.tolist(), lengths.tolist(), strict=True)]
    text = schema.binary(first, end - first)
    places = zip((starts - first).tolist(), (ends - first).tolist(), strict=True)
    return [text[start:end].decode("utf-8", "surrogateescape") for start, end in places]


class ColumnPositions(Mapping[str, int]):
    """Position of each column by name; the first few names are sought in the bytes of the schema.

    Parameters
    ----------
    content : bytes
        The bytes that hold the names.
    places : int64 array, (columns, 2)
        Position and length of each name in `content`; position -1 where it is absent.
    decode : callable
        Returns all names.
    """

    def __init__(self, content: bytes, places: np.ndarray, decode: Callable[[], Sequence[str]]) -> None:
        self._content = np.frombuffer(content, np.uint8)
        self._starts, self._lengths = places[:, 0], np.where(places[:, 0] < 0, 0, places[:, 1])
        self._decode = decode
        self._found: dict[str, int | None] = {}

    @cached_property
    def _all(self) -> dict[str, int]:
        return _first_positions(self._decode())

    def __getitem__(self, name: str) -> int:
        if "_all" in self.__dict__ or len(self._found) >= _MAX_SOUGHT:
            return self._all[name]
        if name not in self._found:
            self._found[name] = self._find(name) if isinstance(name, str) else None
        position = self._found[name]
        if position is None:
            raise KeyError(name)
        return position

    def _find(self, name: str) -> int | None:
        try:
            wanted = name.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:  # no bytes decode to it
            return None
        if wanted.decode("utf-8", "surrogateescape") != name:
            return None
        left = np.flatnonzero(self._lengths == len(wanted))
        for offset in range(len(wanted) - 1, -1, -1):  # names mostly differ at their ends
            left = left[self._content.take(self._starts[left] + offset, mode="clip") == wanted[offset]]
        return int(left[0]) if len(left) else None

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)
