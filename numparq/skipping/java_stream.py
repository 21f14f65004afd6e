"""The Java stream around a Bloom filter in a store: its header, parsed by the grammar for these classes alone."""

from __future__ import annotations

import struct
from collections.abc import Sequence

_MAGIC = b"\xac\xed\x00\x05"
_OBJECT, _CLASS, _STRING, _REFERENCE, _NULL, _END = b"s", b"r", b"t", b"q", b"p", b"x"
_SERIALIZABLE, _WRITES_BLOCKS = 2, 3
_HANDLE_BYTES = 4
_MOST_FIELDS, _MOST_CLASSES = 100, 5
_NAMES = (
    "io.xskipper.index.metadata.BloomFilterMetaData",  # versions 3 and 4
    "com.ibm.metaindex.metadata.index.types.BloomFilterMetaData",  # versions 1 and 2
)
_PARENT, _PARENT_ID = "io.xskipper.index.metadata.MetadataType", 0x603F5D1B7B764446
_FILTER, _FILTER_ID = "org.apache.spark.util.sketch.BloomFilterImpl", 0x8303774076CEABF6
_FILTER_FIELD = ("L", "bloomFilter", "Lorg/apache/spark/util/sketch/BloomFilter;")
_FILTER_FIELDS = (("I", "numHashFunctions", ""), ("L", "bits", "Lorg/apache/spark/util/sketch/BitArray;"))
_BLOCK, _LONG_BLOCK = 1024, 255


class _NotThisStreamError(Exception):
    """The bytes are not the header of such a stream."""


class _Class:
    """Class descriptor: name, flags, and type codes of the fields, those of its parents too."""

    def __init__(self, name: str, flags: int, fields: str, has_parent: bool) -> None:
        self.name, self.flags, self.fields, self.has_parent = name, flags, fields, has_parent


class _Header:
    """Cursor over the header of a stream."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.position = 0

    def take(self, count: int) -> bytes:
        """Return the next bytes."""
        part = self._data[self.position : self.position + count]
        if len(part) < count:
            raise _NotThisStreamError
        self.position += count
        return part

    def expect(self, expected: bytes) -> None:
        """Consume bytes that must be next."""
        if self.take(len(expected)) != expected:
            raise _NotThisStreamError

    def text(self) -> str:
        """Return a string of the stream, which is ASCII for these classes."""
        return self.take(int.from_bytes(self.take(2), "big")).decode("ascii", "replace")

    def object_class(self) -> _Class:
        """Return the class of an object, with the fields of its parents."""
        self.expect(_OBJECT)
        name, flags, fields, count = "", _SERIALIZABLE, "", 0
        while (mark := self.take(1)) == _CLASS and count < _MOST_CLASSES:
            of_class, of_flags, of_fields = self._class()
            if not count:
                name, flags = of_class, of_flags
            elif of_flags != _SERIALIZABLE:
                raise _NotThisStreamError
            fields += of_fields
            count += 1
        if mark != _NULL or not count:
            raise _NotThisStreamError
        return _Class(name, flags, fields, count > 1)

    def _class(self) -> tuple[str, int, str]:
        name = self.text()
        self.take(8)  # serial version, which differs between versions of Spark
        (flags,) = self.take(1)
        count = int.from_bytes(self.take(2), "big")
        if count > _MOST_FIELDS:
            raise _NotThisStreamError
        fields = ""
        for _ in range(count):
            code = self.take(1).decode("latin-1")
            self.text()
            if code in "L[":
                kind = self.take(1)
                if kind == _STRING:
                    self.text()
                elif kind == _REFERENCE:
                    self.take(_HANDLE_BYTES)
                else:
                    raise _NotThisStreamError
            fields += code
        self.expect(_END)
        return name, flags, fields


def parse_header(data: bytes) -> int:
    """Return the length of the header before the filter's block data; 0 if the bytes are not such a stream."""
    header = _Header(data)
    try:
        header.expect(_MAGIC)
        outer = header.object_class()
        if outer.name not in _NAMES or outer.flags != _SERIALIZABLE or outer.fields != "L":
            return 0
        inner = header.object_class()
    except _NotThisStreamError:
        return 0
    # Another class, such as BloomFilterImplV2, has other hashes.
    is_filter = inner.name == _FILTER and inner.flags == _WRITES_BLOCKS and not inner.has_parent
    return header.position if is_filter else 0


def _text(value: str) -> bytes:
    return struct.pack(">H", len(value)) + value.encode("ascii")


def _descriptor(name: str, serial: int, flags: int, fields: Sequence[tuple[str, str, str]], parent: bytes) -> bytes:
    head = _CLASS + _text(name) + serial.to_bytes(8, "big") + bytes([flags]) + struct.pack(">H", len(fields))
    body = b"".join(
        code.encode() + _text(field) + (_STRING + _text(kind) if kind else b"") for code, field, kind in fields
    )
    return head + body + _END + parent


_HEADER = (
    _MAGIC
    + _OBJECT
    + _descriptor(
        _NAMES[0], 1, _SERIALIZABLE, [_FILTER_FIELD], _descriptor(_PARENT, _PARENT_ID, _SERIALIZABLE, [], _NULL)
    )
    + _OBJECT
    + _descriptor(_FILTER, _FILTER_ID, _WRITES_BLOCKS, _FILTER_FIELDS, _NULL)
)


def format_stream(payload: bytes) -> bytes:
    """Return the stream of a filter's payload, as Xskipper writes it in versions 3 and 4."""
    blocks = [payload[start : start + _BLOCK] for start in range(0, len(payload), _BLOCK)]
    framed = (
        (b"z" + struct.pack(">i", len(block)) if len(block) > _LONG_BLOCK else b"w" + bytes([len(block)])) + block
        for block in blocks
    )
    return _HEADER + b"".join(framed) + _END


def renew_header(cell: bytes) -> bytes | None:
    """Return a cell with the header of the latest version; None if its own cannot be read."""
    length = parse_header(cell)
    return _HEADER + cell[length:] if length else None
