"""The end of a file: magic numbers, footer length, and the footer by one or two requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from numparq.errors import InvalidFileError, LimitError
from numparq.io.local_source import BytesSource
from numparq.io.source import Source
from numparq.io.tail_source import TailSource
from numparq.util.byte_budget_cache import CachedFile, file_cache
from numparq.util.pluralize import pluralize

from .file_metadata import digest_end, parse_footer

if TYPE_CHECKING:
    from numparq.crypto.key import KeySource

    from .file_metadata import Footer

MAGIC, ENCRYPTED_MAGIC = b"PAR1", b"PARE"
TAIL_BYTES = 64 << 10  # first read from the end of a file; most footers are shorter
MIN_FILE_BYTES = 12
_FOOTER = "footer"  # key in the entry of a file


def buffer_tail(source: Source) -> Source:
    """Return a source that serves the last TAIL_BYTES from memory, read by one request.

    Sources in memory, and those that already buffer their tail, are returned as they are.
    """
    return source if isinstance(source, (BytesSource, TailSource)) else TailSource(source, min(source.size, TAIL_BYTES))


def read_footer(source: Source, keys: KeySource | None = None) -> tuple[Footer, int]:
    """Read the footer of a file and return it with its offset, by one request, or two if it is long.

    A footer that is longer than the tail is kept in the cache of files.
    InvalidFileError if the file is not Parquet, truncated, or damaged; DecryptionError if the footer is encrypted and
    `keys` lack its key, or if it does not authenticate.
    """
    if source.size < MIN_FILE_BYTES:
        raise InvalidFileError(
            f"the file has {pluralize(source.size, 'byte')}, but the smallest Parquet file has {MIN_FILE_BYTES}: "
            "it is truncated, or not a Parquet file"
        )
    tail = source.tail if isinstance(source, TailSource) else tail_bytes(source)
    magic, length = _end_of_file(source, tail)
    start = source.size - 8 - length
    tail = tail[:-8]
    try:
        if keys is not None or magic == ENCRYPTED_MAGIC:
            return _read_with_keys(source, tail, start, keys, magic == ENCRYPTED_MAGIC), start
        if length <= len(tail):
            return parse_footer(tail[len(tail) - length :], length), start
        identity = getattr(source, "file_identity", lambda: None)()
        entry = CachedFile() if identity is None else file_cache().entry((identity, digest_end(tail)))
        footer = entry.get(_FOOTER)
        if footer is None:
            footer = parse_footer(_long_footer(source, tail, start, length), length)
        entry.put_footer(_FOOTER, footer, footer.num_bytes)  # which grows with what reads derive
        return footer, start
    except InvalidFileError as error:
        error.message = f"the footer is damaged: {error.message}"
        raise


def _read_with_keys(source: Source, tail: np.ndarray, start: int, keys: KeySource | None, is_encrypted: bool) -> Footer:
    """Return the footer of an encrypted file; a long one is kept in the cache of files, for readers with these keys."""
    from .encrypted_footer import parse_encrypted_footer

    length = source.size - 8 - start
    if length <= len(tail):
        return parse_encrypted_footer(tail[len(tail) - length :], keys, is_encrypted)
    identity = getattr(source, "file_identity", lambda: None)()
    entry = CachedFile()
    if identity is not None and keys is not None:
        entry = file_cache().entry((identity, digest_end(tail), keys.identity))
    footer: Footer | None = entry.get(_FOOTER)
    if footer is None:
        footer = parse_encrypted_footer(_long_footer(source, tail, start, length), keys, is_encrypted)
    entry.put_footer(_FOOTER, footer, footer.num_bytes)
    return footer


def tail_bytes(source: Source) -> np.ndarray:
    """Return the last TAIL_BYTES of a file, or all that it has or buffers, by at most one request."""
    if isinstance(source, TailSource):
        return source.tail
    count = min(source.size, TAIL_BYTES)
    kept = source.view(source.size - count, count, 0)
    if kept is not None:
        return kept
    tail = np.empty(count, np.uint8)
    source.read_into(source.size - count, tail)
    return tail


def _long_footer(source: Source, tail: np.ndarray, start: int, length: int) -> np.ndarray:
    """Return the bytes of FileMetaData, of which `tail` is only the last part."""
    try:
        data = np.empty(length, np.uint8)
    except MemoryError:
        raise LimitError(f"not enough memory for the footer of {pluralize(length, 'byte')}") from None
    data[length - len(tail) :] = tail
    source.read_into(start, data[: length - len(tail)])
    return data


def _end_of_file(source: Source, tail: np.ndarray) -> tuple[bytes, int]:
    """Check both magic numbers; return them and the footer length."""
    last = tail[-4:].tobytes()
    if last not in (MAGIC, ENCRYPTED_MAGIC):
        begins = leading_magic(source) == MAGIC
        cause = "it begins like one, so it was truncated or never finished" if begins else "it is not a Parquet file"
        raise InvalidFileError(f"the file ends with {last!r} instead of {MAGIC!r}: {cause}")
    # The leading magic number of a remote file is not worth a request: no other byte depends on it.
    head = tail[:4].tobytes() if len(tail) == source.size else last if source.is_remote else leading_magic(source)
    if head != last:
        raise InvalidFileError(f"the file does not begin with {last!r}: it is damaged, or not a Parquet file")
    length = int.from_bytes(tail[-8:-4].tobytes(), "little")
    if length > source.size - MIN_FILE_BYTES:
        raise InvalidFileError(
            f"the footer claims {pluralize(length, 'byte')}, more than the file of "
            f"{pluralize(source.size, 'byte')} can hold: the end of the "
            "file is damaged"
        )
    return last, length


def leading_magic(source: Source) -> bytes:
    """Read the first four bytes."""
    head = np.empty(4, np.uint8)
    source.read_into(0, head)
    return head.tobytes()
