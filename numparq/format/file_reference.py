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
from numparq.util.pluralize import agree_noun, pluralize

# Fields of the group -> Python type. The first three locate the bytes.
REFERENCE_FIELDS: dict[str, type] = {
    "uri": str,
    "offset": int,
    "size": int,
    "content_type": str,
    "checksum": str,
    "inline": bytes,
}

# Algorithm -> hexadecimal digits of its digest, and its function. An ETAG cannot be computed.
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
    """Byte range of a reference.

    Attributes
    ----------
    uri : str or None
        Other file; None for the file that holds the reference.
    size : int or None
        Number of bytes; None for all.
    """

    uri: str | None
    offset: int
    size: int | None


def resolve_reference(reference: Mapping[str, Any]) -> bytes | FileRange:
    """Return a reference's inline bytes or its byte range (LogicalTypes.md, FILE, "Resolution").

    Null and "" fields count as unset. TypeError for a wrong field type, InvalidFileError for a wrong combination.
    """
    fields = _fields(reference)
    inline, uri, offset, size = (fields.get(name) for name in ("inline", "uri", "offset", "size"))
    if inline is not None:
        content: bytes = inline
        return content
    if uri is None and offset is None:
        raise InvalidFileError("the FILE reference is empty: inline, uri and offset are all unset")
    if offset is not None and size is None:
        raise InvalidFileError("the FILE reference has an offset but no size")
    for name, value in (("offset", offset), ("size", size)):
        if value is not None and value < 0:
            raise InvalidFileError(f"the FILE reference has a negative {name}, {value}")
    return FileRange(uri, offset or 0, size)


def _fields(reference: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that are set."""
    if not isinstance(reference, Mapping):
        raise TypeError(f"a FILE reference must be a dict of its fields, not {type(reference).__name__}")
    found = {}
    for name, kind in REFERENCE_FIELDS.items():
        value = reference.get(name)
        if value is None or value == "" or (isinstance(value, float) and value != value):  # NaN is a null
            continue
        # Arrow converts integer columns with nulls to floats.
        if isinstance(value, np.integer) or (isinstance(value, float) and abs(value) <= _EXACT and value.is_integer()):
            value = int(value)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise TypeError(f"field {name} of a FILE reference must be {kind.__name__}, not {type(value).__name__}")
        found[name] = value
    return found


def parse_checksum(checksum: str) -> tuple[str, str] | None:
    """Split a checksum into algorithm and digest; None if the algorithm cannot be computed.

    InvalidFileError if the algorithm is missing or the digest is malformed.
    """
    algorithm, colon, digest = checksum.partition(":")
    if not colon:
        raise InvalidFileError(f"the checksum {checksum[:100]!r} of the FILE reference names no algorithm")
    if algorithm not in _ALGORITHMS:
        return None
    length, _ = _ALGORITHMS[algorithm]
    if len(digest) != length or not _HEX.fullmatch(digest):
        raise InvalidFileError(
            f"the checksum {checksum[:100]!r} of the FILE reference lacks the {length} hex digits of {algorithm}"
        )
    return algorithm, digest.lower()


def verify_checksum(checksum: str | None, data: np.ndarray) -> None:
    """Verify bytes (uint8) against a checksum; InvalidFileError if they differ.

    ETAG and unknown algorithms are ignored, as the specification requires.
    """
    known = parse_checksum(checksum) if checksum else None
    if known is None:
        return
    algorithm, digest = known
    found = _ALGORITHMS[algorithm][1](data)
    if found != digest:
        raise InvalidFileError(
            f"the bytes of the FILE reference have the {algorithm} checksum {found}, but the reference states {digest}"
        )


def _crc32c(data: np.ndarray) -> int:
    from numparq.kernels.kernel_groups import checksum_kernels

    return checksum_kernels.crc32c(data, len(data))


class _SiblingFiles(Protocol):
    """Opens sibling files; `numparq.io.multi_file_source.MultiFileSource` is one."""

    def add_file(self, path: str) -> tuple[int, int]:
        """Return a file's first position, and its size."""

    def read_into(self, position: int, out: np.ndarray) -> None:
        """Read bytes from a position into `out`."""


class FileReferenceReader:
    """Reads and verifies the bytes of FILE references; `files` is None unless other files are allowed.

    `is_encrypted` refuses references into the file itself: no module of an encrypted file holds such bytes.
    """

    def __init__(
        self, source: Source, files: _SiblingFiles | None, verify_checksums: bool = True, is_encrypted: bool = False
    ) -> None:
        self._source = source
        self._files = files
        self._verify, self._is_encrypted = verify_checksums, is_encrypted

    def locate(self, where: FileRange) -> tuple[int, int]:
        """Return the position (for `read`) and size of a byte range.

        InvalidFileError if the file lacks the bytes or is forbidden; UnsupportedError for URLs, unrequested files, and
        bytes of an encrypted file.
        """
        if where.uri is None and self._is_encrypted:
            raise UnsupportedError(
                "the FILE reference points to bytes of this file, which is encrypted: they are in no module, nothing "
                "authenticates them"
            )
        if where.uri is None:
            start, available = 0, self._source.size
        else:
            start, available = self._other(where.uri)
        size = available if where.size is None else where.size
        if where.offset > available or size > available - where.offset:
            what = "this file" if where.uri is None else repr(where.uri[:200])
            raise InvalidFileError(
                f"the FILE reference points to bytes {where.offset} to {where.offset + size} of {what}, which has only "
                f"{available} {agree_noun(available, 'byte')}"
            )
        return start + where.offset, size

    def _other(self, uri: str) -> tuple[int, int]:
        split_sibling_path(uri)
        if self._files is None:
            raise UnsupportedError(
                f"the FILE reference points to another file, {uri[:200]!r}; pass external_files=True to read files "
                "below the directory of this file"
            )
        return self._files.add_file(uri)

    def read(self, position: int, out: np.ndarray, checksum: str | None) -> None:
        """Read and verify the bytes at a position from `locate`."""
        if len(out):
            (self._files or self._source).read_into(position, out)
        self.check(checksum, out)

    def check(self, checksum: str | None, data: np.ndarray) -> None:
        """Verify bytes against a checksum if verification is on."""
        if self._verify:
            verify_checksum(checksum, data)

    def read_reference(self, reference: Mapping[str, Any]) -> bytes:
        """Return the verified bytes of a reference."""
        where, checksum = resolve_reference(reference), _fields(reference).get("checksum")
        if isinstance(where, bytes):
            self.check(checksum, np.frombuffer(where, np.uint8))
            return where
        position, size = self.locate(where)
        try:
            out = np.empty(size, np.uint8)
        except MemoryError:
            raise LimitError(f"not enough memory for the {pluralize(size, 'byte')} of a FILE reference") from None
        self.read(position, out, checksum)
        return out.tobytes()
