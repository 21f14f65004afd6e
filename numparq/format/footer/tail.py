"""Find and read the footer at the end of a file: magic numbers, length, one or two requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from numparq.errors import InvalidFileError, LimitError, UnsupportedError
from numparq.io.local_source import BytesSource
from numparq.io.source import Source
from numparq.io.tail_source import TailSource

from .file_metadata import parse_footer

if TYPE_CHECKING:
    from .file_metadata import Footer

MAGIC, ENCRYPTED_MAGIC = b"PAR1", b"PARE"
TAIL_BYTES = 64 << 10  # read at once from the end of a file, in the hope that the footer is not longer
_MIN_FILE_BYTES = 12


def buffer_tail(source: Source) -> Source:
    """Read the end of a file, in the hope that the footer is not longer, and what is of use besides, in front of it.

    Parameters
    ----------
    source : Source
        The file.

    Returns
    -------
    Source
        One in front of it, that gives the last TAIL_BYTES from memory; bytes are in memory anyway, and a TailSource
        keeps as many as it was told to.
    """
    return source if isinstance(source, (BytesSource, TailSource)) else TailSource(source, min(source.size, TAIL_BYTES))


def read_footer(source: Source) -> tuple[Footer, int]:
    """Read the footer of a file, by one request, or two when it is long.

    Parameters
    ----------
    source : Source
        The file.

    Returns
    -------
    footer : Footer
    start : int
        Where it begins: no page lies behind.

    Raises
    ------
    InvalidFileError
        When the file is no Parquet file, is cut off, or has a damaged footer.
    UnsupportedError
        When its footer is encrypted.
    """
    if source.size < _MIN_FILE_BYTES:
        raise InvalidFileError(
            f"the file has {source.size} bytes, and the smallest Parquet file has {_MIN_FILE_BYTES}: it is cut off, or "
            "no Parquet file"
        )
    tail = tail_bytes(source)
    length = _footer_length(source, tail)
    start = source.size - 8 - length
    is_there = length <= len(tail) - 8
    data = tail[len(tail) - 8 - length : -8] if is_there else _long_footer(source, tail[:-8], start, length)
    try:
        return parse_footer(data, length), start
    except InvalidFileError as error:
        error.message = f"the footer is damaged: {error.message}"
        raise


def tail_bytes(source: Source) -> np.ndarray:
    """Give the last bytes of a file: TAIL_BYTES, or as many as it has or keeps; by one request, if not in memory."""
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
    """Give the bytes of FileMetaData where `tail` is only the end of them."""
    try:
        data = np.empty(length, np.uint8)
    except MemoryError:
        raise LimitError(f"there is not enough memory for the footer, which has {length:,} bytes") from None
    data[length - len(tail) :] = tail
    source.read_into(start, data[: length - len(tail)])
    return data


def _footer_length(source: Source, tail: np.ndarray) -> int:
    """Check both magic numbers and the length between them."""
    last = tail[-4:].tobytes()
    if last == ENCRYPTED_MAGIC:
        raise UnsupportedError("the footer is encrypted, which numparq does not read yet")
    if last != MAGIC:
        begins = leading_magic(source) == MAGIC
        raise InvalidFileError(
            f"the file ends with {last!r} where a Parquet file has {MAGIC!r}: "
            + ("it begins like one, so it was cut off, or never finished" if begins else "it is no Parquet file")
        )
    # Of a remote file the head is looked at where it costs nothing: no other byte depends on it.
    if (not source.is_remote or len(tail) == source.size) and leading_magic(source) != MAGIC:
        raise InvalidFileError(f"the file does not begin with {MAGIC!r}: it is damaged, or no Parquet file")
    length = int.from_bytes(tail[-8:-4].tobytes(), "little")
    if length > source.size - _MIN_FILE_BYTES:
        raise InvalidFileError(
            f"the footer claims {length:,} bytes, more than the file of {source.size:,} has room for: its end is "
            "damaged"
        )
    return length


def leading_magic(source: Source) -> bytes:
    """Read the first four bytes."""
    head = np.empty(4, np.uint8)
    source.read_into(0, head)
    return head.tobytes()
