"""Structs of one kind with the same fields, encoded many at a time from records of int64 words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from numparq.kernels.kernel_groups import writing_kernels
from numparq.kernels.status import BAD_VALUE, NEED_ROOM, check_status
from numparq.kernels.thrift import encode as operations
from numparq.kernels.thrift.encode import ABSENT

from .idl import IdlField, load_idl
from .layout import WIRE_TYPES

_LISTS = {
    **dict.fromkeys(("i16", "i32", "enum", "i64"), operations.INTEGERS),
    "bool": operations.BOOLEANS,
    "binary": operations.BYTE_STRINGS,
    "string": operations.BYTE_STRINGS,
}
_SCALARS = {"bool": operations.BOOLEAN, "binary": operations.BYTES, "string": operations.BYTES}
_MAX_DEPTH = 8
_NO_ITEMS, _NO_DATA = np.zeros(1, np.int64), np.zeros(1, np.uint8)


class RecordStrings:
    """Byte strings that records refer to by position and length."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._places: dict[bytes, tuple[int, int]] = {}
        self._size = 0

    def add(self, value: bytes | None) -> tuple[int, int]:
        """Return position and length of a byte string, the same for equal ones; (ABSENT, 0) for None."""
        if value is None:
            return ABSENT, 0
        found = self._places.get(value)
        if found is None:
            found = self._places[value] = self._size, len(value)
            self._parts.append(value)
            self._size += len(value)
        return found

    def array(self) -> np.ndarray:
        """Return all of them as one array."""
        return np.frombuffer(b"".join(self._parts), np.uint8) if self._size else _NO_DATA


class StructTemplate:
    """Fields of a struct, by dotted paths in the order of their ids, and the words of its record.

    Numbers and bools have one word, ABSENT without a value. All others have two: byte strings, and `encoded` fields,
    position and length of their bytes; lists, first item and length. A byte string in a list has two items, a struct
    one for each field. A nested struct without any value is absent.
    """

    def __init__(self, struct: str, fields: Sequence[str], encoded: Sequence[str] = ()) -> None:
        self._struct = struct
        self._operations: list[tuple[int, int, int, int]] = []
        self._slots: dict[str, int] = {}
        self.num_words = 0
        open_: list[IdlField] = []  # the structs around the last field
        for path in fields:
            *outer, name = path.split(".")
            while [field.name for field in open_] != outer[: len(open_)]:
                self._operations.append((operations.END, open_.pop().id, 0, 0))
            for group in outer[len(open_) :]:
                open_.append(_find_field(open_[-1].refers if open_ else struct, group))
                self._operations.append((operations.BEGIN, open_[-1].id, 0, 0))
            self._slots[path] = self.num_words
            self._add(_find_field(open_[-1].refers if open_ else struct, name), path in encoded)
        self._operations += [(operations.END, field.id, 0, 0) for field in reversed(open_)]
        self._table = np.array(self._operations, np.int64).reshape(-1)

    def slot(self, path: str) -> int:
        """Return the first word of a field."""
        return self._slots[path]

    def _add(self, field: IdlField, encoded: bool) -> None:
        """Add the operation of a field that is no struct, or encoded already."""
        kind, wire_type = _SCALARS.get(field.kind, operations.INTEGER), WIRE_TYPES[field.kind]
        inner: list[tuple[int, int, int, int]] = []
        if encoded:
            kind = operations.RAW
        elif field.kind == "list" and field.element == "struct":
            fields = load_idl().structs[field.refers or ""].fields
            inner = [(operations.INTEGER, each.id, 0, WIRE_TYPES[each.kind]) for each in fields]
            kind, wire_type = operations.STRUCTS, len(fields)
        elif field.kind == "list":
            kind, wire_type = _LISTS[field.element or ""], WIRE_TYPES[field.element or ""]
        self._operations += [(kind, field.id, self.num_words, wire_type), *inner]
        self.num_words += 1 if kind in (operations.INTEGER, operations.BOOLEAN) else 2

    def encode(
        self, words: Sequence[int], items: Sequence[int], strings: RecordStrings
    ) -> tuple[memoryview, list[int]]:
        """Encode records, one after another; return their bytes, and the end of each.

        Raises ValueError for an integer that does not fit its field.
        """
        records = np.array(words, np.int64)
        elements = np.array(items, np.int64) if items else _NO_ITEMS
        count, data = len(records) // self.num_words, strings.array()
        ends, stack = np.empty(count, np.int64), np.empty(_MAX_DEPTH * operations.FRAME_WORDS, np.int64)
        room, status = 5 * (len(records) + len(elements)) + 2 * len(data) + 64, NEED_ROOM
        while status == NEED_ROOM:
            out = np.empty(room, np.uint8)
            status = writing_kernels.write_thrift_structs(
                self._table,
                len(self._operations),
                records,
                self.num_words,
                elements,
                data,
                count,
                stack,
                out,
                room,
                ends,
            )
            room *= 2
        if status == BAD_VALUE:
            raise ValueError(f"a number does not fit its field of {self._struct}")
        return memoryview(out.data)[: check_status(status)], ends.tolist()


class StructRecords:
    """Records of one template, with the items of their lists and their byte strings."""

    def __init__(self, template: StructTemplate) -> None:
        self.template = template
        self.words: list[int] = []
        self.items: list[int] = []
        self.strings = RecordStrings()

    def encode(self) -> Iterator[memoryview]:
        """Yield the encoded structs."""
        if not self.words:
            return
        data, ends = self.template.encode(self.words, self.items, self.strings)
        start = 0
        for end in ends:
            yield data[start:end]
            start = end


def _find_field(struct: str | None, name: str) -> IdlField:
    return next(field for field in load_idl().structs[struct or ""].fields if field.name == name)
