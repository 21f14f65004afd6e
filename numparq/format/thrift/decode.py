"""Thrift structs decoded into int64 words, and records that view them by the specification's names."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np

from numparq.errors import InvalidFileError, LimitError
from numparq.kernels.kernel_groups import kernels
from numparq.kernels.status import NEED_ROOM, check_status
from numparq.kernels.thrift.wire import S_FIELD_POSITION, S_ROOM, S_TOP, STACK_WORDS

from .encode import encode_struct
from .idl import enum_value
from .layout import FieldSlot, RecordLayout, ThriftLayout, thrift_layout

_MAX_ELEMENTS = 6  # elements of a list in a repr
_MAX_STRUCT = 100  # characters of a struct within another one
_LINE = 120
_MAX_BYTES = 40  # bytes or characters in a repr


def _bool(words: np.ndarray, word: int, data: np.ndarray) -> bool:
    return bool(words[word])


def _double(words: np.ndarray, word: int, data: np.ndarray) -> float:
    number: float = struct.unpack("<d", struct.pack("<q", int(words[word])))[0]
    return number


def _binary(words: np.ndarray, word: int, data: np.ndarray) -> bytes:
    position, length = words[word : word + 2].tolist()
    return data[position : position + length].tobytes()


def _string(words: np.ndarray, word: int, data: np.ndarray) -> str:
    position, length = words[word : word + 2].tolist()
    return str(data[position : position + length].data, "utf-8", "surrogateescape")


_SCALARS: dict[str, Callable[[np.ndarray, int, np.ndarray], Any]] = {
    "bool": _bool,
    "double": _double,
    "binary": _binary,
    "string": _string,
}


def decoder_stack(top: int, room: int) -> np.ndarray:
    """Return the stack of the decoding kernels, for an arena of `room` words with `top` as its first free word."""
    stack = np.empty(STACK_WORDS, np.int64)
    stack[S_TOP], stack[S_ROOM] = top, room
    return stack


def read_record(data: np.ndarray, length: int, layout: ThriftLayout) -> np.ndarray:
    """Decode a struct of at most `length` bytes into an arena: the root's record, then the elements of lists (int64).

    Lists reserve words only for elements that fit the remaining bytes, so a hostile file gets few words a byte.
    """
    room = layout.words + length + 1024
    while True:
        try:
            arena = np.empty(room, np.int64)
        except MemoryError:
            raise LimitError("not enough memory for the metadata of the file") from None
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
    arena.resize(stack[S_TOP], refcheck=False)
    return arena


class Record:
    """A struct or union of the format; its fields are attributes, named as in the specification.

    An absent field is None or the format's default. Unknown enum values are ints, invalid UTF-8 lone surrogates.
    """

    __slots__ = ("_base", "_data", "_layout", "_words")

    def __init__(self, layout: RecordLayout, words: np.ndarray, base: int, data: np.ndarray) -> None:
        self._layout = layout
        self._words = words
        self._base = base
        self._data = data

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # slots are still unset while it is copied or unpickled
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
        """Return the name of a union's field (a struct's first one); None if it is unknown."""
        return next((name for name, slot in self._layout.slots.items() if self._has(slot)), None)

    def to_dict(self) -> dict[str, Any]:
        """Return all present fields as a dict of plain values, dicts and lists."""
        return {name: _plain(self._value(slot)) for name, slot in self._layout.slots.items() if self._has(slot)}

    def __dir__(self) -> list[str]:
        return [*self._layout.slots, "to_dict", "which"]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Record):
            return NotImplemented
        return self._layout.struct.name == other._layout.struct.name and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        name = self._layout.struct.name
        return _decode_record, (name, encode_struct(name, self.to_dict()))

    def __repr__(self) -> str:
        line = self._line()
        return line if len(line) <= _LINE else _block(f"{self._layout.struct.name}(", self._fields(), ")")

    def _line(self) -> str:
        return f"{self._layout.struct.name}({', '.join(self._fields())})"

    def _fields(self) -> list[str]:
        """Return the present fields as texts; of long structs and of lists of structs only names and numbers."""
        return [
            f"{name}={_abbreviate(self._value(slot))}" for name, slot in self._layout.slots.items() if self._has(slot)
        ]


class RecordList(Sequence[Record]):
    """A list of structs, each wrapped in a `Record` on access."""

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

    def __reduce__(self) -> tuple[type[list[Record]], tuple[list[Record]]]:
        return list, ([*self],)

    def __repr__(self) -> str:
        lines = [self[i]._line() for i in range(min(len(self), _MAX_ELEMENTS))]
        more = [f"... ({len(self):,} in all)"] if len(self) > _MAX_ELEMENTS else []
        shorter = [line if len(line) <= _LINE else f"{line[:_LINE]}..." for line in lines]
        return _block("[", shorter + more, "]") if shorter else "[]"


def root_record(layout: ThriftLayout, words: np.ndarray, data: np.ndarray) -> Record:
    """Return the root's record at the start of an arena from `read_record`."""
    return Record(layout.record, words, 0, data)


def _decode_record(struct: str, data: bytes) -> Record:
    """Return the record of an encoded struct."""
    layout, values = thrift_layout(struct), np.frombuffer(data, np.uint8)
    return root_record(layout, read_record(values, len(values), layout), values)


def _equal(one: object, other: object) -> bool:
    return one == other


def _scalar(kind: str, refers: str | None) -> Callable[[np.ndarray, int, np.ndarray], Any]:
    """Return the function that reads a field's Python value from its words."""
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


def _block(start: str, lines: list[str], end: str) -> str:
    """Return items one a line, between brackets."""
    return "\n".join([start, *(f"    {line}," for line in lines), end])


def _abbreviate(value: Any) -> str:
    """Return a value's repr, shortened if it is long."""
    if isinstance(value, (str, bytes)) and len(value) > _MAX_BYTES:
        return f"{value[:_MAX_BYTES]!r}... ({len(value):,} in all)"
    if isinstance(value, RecordList):
        return f"<{len(value):,} {value._layout.struct.name}>"
    if isinstance(value, Record):
        line = value._line()
        return line if len(line) <= _MAX_STRUCT else f"{value._layout.struct.name}(...)"
    if isinstance(value, list):
        elements = [_abbreviate(value[i]) for i in range(min(len(value), _MAX_ELEMENTS))]
        more = [f"... ({len(value):,} in all)"] if len(value) > _MAX_ELEMENTS else []
        return f"[{', '.join(elements + more)}]"
    return repr(value)
