"""FILE references: resolution, checksums, and the bytes they refer to (LogicalTypes.md, FILE)."""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from numparq.errors import InvalidFileError, LimitError, UnsupportedError
from numparq.io.sibling_files import split_sibling_path
from numparq.io.source import Source

__all__ = [
    "REFERENCE_FIELDS",
    "FileRange",
    "FileReferenceReader",
    "parse_checksum",
    "resolve_reference",
    "verify_checksum",
]

# The fields that the group may have: name -> what a value of it is. The first three say where the bytes are.
REFERENCE_FIELDS: dict[str, type] = {
    "uri": str,
    "offset": int,
    "size": int,
    "content_type": str,
    "checksum": str,
    "inline": bytes,
}

# algorithm -> hexadecimal digits of its digest, and what computes it. An ETAG is nothing that can be computed.
_ALGORITHMS: dict[str, tuple[int, Callable[[np.ndarray], str]]] = {
    "MD5": (32, lambda data: hashlib.md5(data.data, usedforsecurity=False).hexdigest()),
    "SHA-256": (64, lambda data: hashlib.sha256(data.data).hexdigest()),
    "CRC32": (8, lambda data: f"{zlib.crc32(data.data):08x}"),
    "CRC32C": (8, lambda data: f"{_crc32c(data):08x}"),
}
_EXACT = 1 << 53
_HEX = re.compile(r"[0-9a-fA-F]*")


@dataclass(frozen=True, slots=True)
class FileRange:
    """Where the bytes of a reference are.

    Parameters
    ----------
    uri : str or None
        The other file; None for the file that the reference is in.
    offset : int
        The first byte.
    size : int or None
        How many; None for all that there are.
    """

    uri: str | None
    offset: int
    size: int | None


def resolve_reference(reference: Mapping[str, Any]) -> bytes | FileRange:
    """Say what a reference stands for, by the table of section FILE, "Resolution".

    Parameters
    ----------
    reference : mapping of str to object
        The fields of the group; those that are absent, null or empty strings are not set.

    Returns
    -------
    bytes or Range
        The bytes themselves, where they are inline.

    Raises
    ------
    TypeError
        When it is no mapping, or a field is not of its type.
    InvalidFileError
        When it is a combination of fields that stands for nothing.
    """
    fields = _fields(reference)
    inline, uri, offset, size = (fields.get(name) for name in ("inline", "uri", "offset", "size"))
    if inline is not None:
        return inline
    if uri is None and offset is None:
        raise InvalidFileError("the FILE reference stands for nothing: it has neither inline nor uri nor offset")
    if offset is not None and size is None:
        raise InvalidFileError("the FILE reference has an offset and no size")
    for name, value in (("offset", offset), ("size", size)):
        if value is not None and value < 0:
            raise InvalidFileError(f"the FILE reference has a negative {name}, {value}")
    return FileRange(uri, offset or 0, size)


def _fields(reference: Mapping[str, Any]) -> dict[str, Any]:
    """Give the fields that are set."""
    if not isinstance(reference, Mapping):
        raise TypeError(f"a FILE reference is a dict of its fields, not {type(reference).__name__}")
    found = {}
    for name, kind in REFERENCE_FIELDS.items():
        value = reference.get(name)
        if value is None or value == "" or (isinstance(value, float) and value != value):  # NaN is a null, too
            continue
        # Arrow makes integers beside nulls floats.
        if isinstance(value, np.integer) or (isinstance(value, float) and abs(value) <= _EXACT and value.is_integer()):
            value = int(value)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise TypeError(f"the field {name} of a FILE reference is {kind.__name__}, not {type(value).__name__}")
        found[name] = value
    return found


def parse_checksum(checksum: str) -> tuple[str, str] | None:
    """Split a checksum into its algorithm and digest; None where it is of a sort that cannot be computed.

    Raises
    ------
    InvalidFileError
        When it is no checksum, or the digest none of its algorithm.
    """
    algorithm, colon, digest = checksum.partition(":")
    if not colon:
        raise InvalidFileError(f"the checksum {checksum[:100]!r} of the FILE reference does not say its algorithm")
    if algorithm not in _ALGORITHMS:
        return None
    length, _ = _ALGORITHMS[algorithm]
    if len(digest) != length or not _HEX.fullmatch(digest):
        raise InvalidFileError(f"the checksum {checksum[:100]!r} of the FILE reference has no {algorithm} digest")
    return algorithm, digest.lower()


def verify_checksum(checksum: str | None, data: np.ndarray) -> None:
    """Hold bytes against a checksum.

    Parameters
    ----------
    checksum : str or None
        Of the reference. ETAG and algorithms that are not known are passed over, as the specification asks.
    data : uint8 array
        The bytes.

    Raises
    ------
    InvalidFileError
        When they are not those; and as `parse_checksum`.
    """
    known = parse_checksum(checksum) if checksum else None
    if known is None:
        return
    algorithm, digest = known
    found = _ALGORITHMS[algorithm][1](data)
    if found != digest:
        raise InvalidFileError(f"the bytes of the FILE reference have the {algorithm} {found}, and it says {digest}")


def _crc32c(data: np.ndarray) -> int:
    from numparq.kernels import checksum_kernels

    return checksum_kernels.crc32c(data, len(data))


class _SiblingFiles(Protocol):
    """Opens files beside the one that is read; `numparq.io.multi_file_source.MultiFileSource` is one."""

    def place_of(self, path: str) -> tuple[int, int]:
        """Give the position of the first byte of a file, and its size."""

    def read_into(self, position: int, out: np.ndarray) -> None:
        """Fill `out`."""


class FileReferenceReader:
    """Gets the bytes of references.

    Parameters
    ----------
    source : Source
        The file that they are in.
    files : MultiFileSource or None
        What opens other files; None where nobody asked for that.
    verify_checksums : bool
        Whether bytes are held against the checksums that references have.
    """

    def __init__(self, source: Source, files: _SiblingFiles | None, verify_checksums: bool = True) -> None:
        self._source = source
        self._files = files
        self._verify = verify_checksums

    def place(self, where: FileRange) -> tuple[int, int]:
        """Find the bytes of a range: their position for `read`, and how many they are.

        Raises
        ------
        InvalidFileError
            When the file has no such bytes, or is none that may be opened.
        UnsupportedError
            For other files that nobody asked for, and URLs.
        """
        if where.uri is None:
            start, available = 0, self._source.size
        else:
            start, available = self._other(where.uri)
        size = available if where.size is None else where.size
        if where.offset > available or size > available - where.offset:
            what = "this file" if where.uri is None else repr(where.uri[:200])
            raise InvalidFileError(
                f"the FILE reference is to bytes {where.offset} to {where.offset + size} of {what}, which has only "
                f"{available}"
            )
        return start + where.offset, size

    def _other(self, uri: str) -> tuple[int, int]:
        split_sibling_path(uri)
        if self._files is None:
            raise UnsupportedError(
                f"the FILE reference is to another file, {uri[:200]!r}; with external_files=True, what lies below the "
                "folder of the file itself is read"
            )
        return self._files.place_of(uri)

    def read(self, position: int, out: np.ndarray, checksum: str | None) -> None:
        """Read the bytes from a position that `place` has found, and check them."""
        if len(out):
            (self._files or self._source).read_into(position, out)
        self.check(checksum, out)

    def check(self, checksum: str | None, data: np.ndarray) -> None:
        """Hold bytes against a checksum, if that is wanted."""
        if self._verify:
            verify_checksum(checksum, data)

    def bytes_of(self, reference: Mapping[str, Any]) -> bytes:
        """Get the bytes of a reference.

        Raises
        ------
        ParquetError
            When they cannot be had, or are not those that were meant.
        """
        where, checksum = resolve_reference(reference), _fields(reference).get("checksum")
        if isinstance(where, bytes):
            self.check(checksum, np.frombuffer(where, np.uint8))
            return where
        position, size = self.place(where)
        try:
            out = np.empty(size, np.uint8)
        except MemoryError:
            raise LimitError(f"there is not enough memory for the {size:,} bytes of a FILE reference") from None
        self.read(position, out, checksum)
        return out.tobytes()
