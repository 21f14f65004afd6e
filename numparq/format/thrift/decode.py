"""Decode Thrift structs into int64 words, and view them as records with the specification's names."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np

from numparq.errors import InvalidFileError, LimitError
from numparq.kernels import kernels
from numparq.kernels.status import NEED_ROOM, check_status
from numparq.kernels.thrift.wire import S_FIELD_POSITION, S_ROOM, S_TOP, STACK_WORDS

from .idl import enum_value
from .layout import FieldSlot, RecordLayout, ThriftLayout

_SHOWN_ELEMENTS = 6  # of a list, and
_SHOWN_BYTES = 40  # of bytes or a string, in a repr


def _bool(words: np.ndarray, word: int, data: np.ndarray) -> bool:
    return bool(words[word])


def _double(words: np.ndarray, word: int, data: np.ndarray) -> float:
    return struct.unpack("<d", struct.pack("<q", int(words[word])))[0]


def _binary(words: np.ndarray, word: int, data: np.ndarray) -> bytes:
    position, length = words[word : word + 2].tolist()
    return data[position : position + length].tobytes()


def _string(words: np.ndarray, word: int, data: np.ndarray) -> str:
    return _binary(words, word, data).decode("utf-8", "surrogateescape")


_SCALARS: dict[str, Callable[[np.ndarray, int, np.ndarray], Any]] = {
    "bool": _bool,
    "double": _double,
    "binary": _binary,
    "string": _string,
}


def decoder_stack(top: int, room: int) -> np.ndarray:
    """Make what the kernels work in.

    Parameters
    ----------
    top : int
        The arena's first free word.
    room : int
        Its words.

    Returns
    -------
    int64 array
    """
    stack = np.empty(STACK_WORDS, np.int64)
    stack[S_TOP], stack[S_ROOM] = top, room
    return stack


def read_record(data: np.ndarray, length: int, layout: ThriftLayout) -> np.ndarray:
    """Read a struct, and all in it that its layout wants.

    The arena is as large as the struct asks for: a list's elements have to fit in the bytes that are left before
    there is room made for them, so that a lying file gets at most a few dozen words for each of its bytes.

    Parameters
    ----------
    data : uint8 array
        The bytes.
    length : int
        How many of them may belong to it.
    layout : ThriftLayout
        The struct, or a projection of it.

    Returns
    -------
    int64 array
        The arena: the root's record, then the elements of lists.

    Raises
    ------
    InvalidFileError
        When the bytes are not such a struct.
    LimitError
        When it takes more memory than there is.
    """
    room = layout.words + length + 1024
    while True:
        try:
            arena = np.empty(room, np.int64)
        except MemoryError:
            raise LimitError("the metadata of the file takes more memory than there is") from None
        stack = decoder_stack(layout.words, room)
        status = kernels.read_thrift_struct(data, 0, length, layout.table, arena, 0, stack)
        if status != NEED_ROOM:
            break
        room *= 2
    if status < 0:
        try:
            check_status(status, InvalidFileError)
        except InvalidFileError as error:
            error.message += f", at byte {stack[S_FIELD_POSITION]:,} of {length:,}"
            raise
    return arena


class Record:
    """A struct or union of the format: its fields are attributes, under the names of the specification.

    A field that is not there is None, or the default that the format gives it. Structs within are `Record`, lists of
    them `RecordList`, enums `FormatEnum` (an int, where the value is not known), binaries bytes. A string that is
    not UTF-8 has lone surrogates in place of what is wrong. Two records are equal when all their fields are.

    Parameters
    ----------
    layout : RecordLayout
        How the record lies in words.
    words : int64 array
        The arena that it lies in.
    base : int
        Its first word there.
    data : uint8 array
        What was read; bytes and strings are taken from it.
    """

    __slots__ = ("_base", "_data", "_layout", "_words")

    def __init__(self, layout: RecordLayout, words: np.ndarray, base: int, data: np.ndarray) -> None:
        self._layout = layout
        self._words = words
        self._base = base
        self._data = data

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # while it is copied or unpickled
            raise AttributeError(name)
        slot = self._layout.slots.get(name)
        if slot is None:
            known = ", ".join(self._layout.slots)
            raise AttributeError(f"{self._layout.struct.name} has no field {name!r}; it has {known}")
        return self._value(slot) if self._has(slot) else slot.field.default

    def _has(self, slot: FieldSlot) -> bool:
        return bool(self._words[self._base] >> slot.field.id & 1)

    def _value(self, slot: FieldSlot) -> Any:
        field, word = slot.field, self._base + slot.word
        if slot.record is not None:
            if field.kind == "struct":
                return Record(slot.record, self._words, word, self._data)
            first, count = self._words[word : word + 2].tolist()
            return RecordList(slot.record, self._words, first, count, self._data)
        if field.kind != "list":
            return _scalar(field.kind, field.refers)(self._words, word, self._data)
        first, count = self._words[word : word + 2].tolist()
        assert field.element is not None
        read, step = _scalar(field.element, field.refers), 2 if field.element in ("binary", "string") else 1
        return [read(self._words, first + i * step, self._data) for i in range(count)]

    def which(self) -> str | None:
        """Name the field that is set, of a union; None where it is one that this version does not know.

        Returns
        -------
        str or None
            Of a struct, the first field that is set.
        """
        return next((name for name, slot in self._layout.slots.items() if self._has(slot)), None)

    def to_dict(self) -> dict[str, Any]:
        """Give all fields that are there as a plain dict, with dicts and lists in it.

        Returns
        -------
        dict of str to object
        """
        return {name: _plain(self._value(slot)) for name, slot in self._layout.slots.items() if self._has(slot)}

    def __dir__(self) -> list[str]:
        return [*self._layout.slots, "to_dict", "which"]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Record):
            return NotImplemented
        return self._layout.struct.name == other._layout.struct.name and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        fields = (
            f"{name}={_abbreviate(self._value(slot))}" for name, slot in self._layout.slots.items() if self._has(slot)
        )
        return f"{self._layout.struct.name}({', '.join(fields)})"


class RecordList(Sequence[Record]):
    """A list of structs, each made a `Record` when it is looked at."""

    __slots__ = ("_count", "_data", "_first", "_layout", "_words")

    def __init__(self, layout: RecordLayout, words: np.ndarray, first: int, count: int, data: np.ndarray) -> None:
        self._layout = layout
        self._words = words
        self._first = first
        self._count = count
        self._data = data

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> list[Record]: ...
    def __getitem__(self, index: int | slice) -> Record | list[Record]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self._count))]
        place = range(self._count)[index]
        return Record(self._layout, self._words, self._first + place * self._layout.words, self._data)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(_equal, self, other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return _abbreviate(self)


def root_record(layout: ThriftLayout, words: np.ndarray, data: np.ndarray) -> Record:
    """Look at what `kernels.read_thrift` has read.

    Parameters
    ----------
    layout : ThriftLayout
        What was wanted.
    words : int64 array
        The arena, with the root's record at its beginning.
    data : uint8 array
        What was read.

    Returns
    -------
    Record
        The root.
    """
    return Record(layout.record, words, 0, data)


def _equal(one: object, other: object) -> bool:
    return one == other


def _scalar(kind: str, refers: str | None) -> Callable[[np.ndarray, int, np.ndarray], Any]:
    """Find what makes a Python object of the words of a field."""
    if kind == "enum":
        assert refers is not None
        return lambda words, word, data: enum_value(refers, int(words[word]))
    return _SCALARS.get(kind, _integer)


def _integer(words: np.ndarray, word: int, data: np.ndarray) -> int:
    return int(words[word])


def _plain(value: Any) -> Any:
    if isinstance(value, Record):
        return value.to_dict()
    return [_plain(item) for item in value] if isinstance(value, (RecordList, list)) else value


def _abbreviate(value: Any) -> str:
    """Give the repr of a value, cut short where it is long."""
    if isinstance(value, (str, bytes)) and len(value) > _SHOWN_BYTES:
        return f"{value[:_SHOWN_BYTES]!r}... ({len(value):,} in all)"
    if isinstance(value, (RecordList, list)):
        shown = [_abbreviate(value[i]) for i in range(min(len(value), _SHOWN_ELEMENTS))]
        more = [f"... ({len(value):,} in all)"] if len(value) > _SHOWN_ELEMENTS else []
        return f"[{', '.join(shown + more)}]"
    return repr(value)
