"""Checkpoints: the last complete footer of a truncated file (README of the format, "Error recovery")."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np

from numparq.errors import InvalidFileError, ParquetError, error_context
from numparq.format.thrift.decode import decoder_stack
from numparq.format.thrift.layout import ThriftLayout, thrift_layout
from numparq.io.local_source import FileSource
from numparq.io.source import Source
from numparq.kernels.kernel_groups import kernels

from .file_metadata import Footer
from .tail import MAGIC, leading_magic

_BLOCK = 1 << 20  # bytes per backward read
_TAIL = 8  # bytes of footer length and magic number
_HEADER = 1 << 16  # bytes read for a page header
_MAX_READ_FACTOR = 3  # limit on bytes of false candidates, in file sizes: a hostile file must not take quadratic time


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A complete footer inside a file.

    Attributes
    ----------
    end : int
        Size of the file that ends with this footer.
    num_rows, num_row_groups : int
        Rows and row groups of that file.
    """

    end: int
    num_rows: int
    num_row_groups: int


def find_last_footer(path: str | os.PathLike[str]) -> Checkpoint:
    """Return the last complete footer of a local file, whatever follows it; InvalidFileError if it has none.

    See `_chunks_fit` for what a footer must fulfil, so that a Parquet file stored as a value does not count.
    """
    source = FileSource(path)
    try:
        with error_context(file=source.name):
            return find_last_footer_in(source)
    finally:
        source.close()


def find_last_footer_in(source: Source) -> Checkpoint:
    """Return the last complete footer of an open file, as `find_last_footer` does."""
    if source.size < len(MAGIC) or leading_magic(source) != MAGIC:
        raise InvalidFileError(f"the file does not begin with {MAGIC!r}: it is not a Parquet file")
    budget = _MAX_READ_FACTOR * source.size + _BLOCK
    end = source.size
    while (end := _magic_before(source, end)) > 0:
        length = _footer_length(source, end)
        if length is not None:
            budget -= length
            if budget < 0:
                raise InvalidFileError(
                    f"the search for a footer stopped: false footers hold over {_MAX_READ_FACTOR} times the bytes "
                    "of the file"
                )
            found = _checkpoint(source, end, length)
            if found is not None:
                return found
        end -= 1
    raise InvalidFileError(
        "the file has no complete footer: its writer stopped before the first checkpoint, or made none"
    )


def _magic_before(source: Source, end: int) -> int:
    """Return the end of the last magic number that ends at or before `end`, or 0."""
    while end >= len(MAGIC) + _TAIL:
        start = max(end - _BLOCK, 0)
        found = _read(source, start, end - start).rfind(MAGIC)
        if found >= 0:
            return start + found + len(MAGIC)
        if not start:
            break
        end = start + len(MAGIC) - 1
    return 0


def _read(source: Source, position: int, length: int) -> bytes:
    data = np.empty(length, np.uint8)
    source.read_into(position, data)
    return data.tobytes()


def _footer_length(source: Source, end: int) -> int | None:
    """Return the length of the footer that ends at `end`; None if it does not fit or no struct begins there."""
    if end < len(MAGIC) + _TAIL:
        return None
    length = int.from_bytes(_read(source, end - _TAIL, 4), "little")
    start = end - _TAIL - length
    if length < 2 or start < len(MAGIC):
        return None
    return length if _read(source, start, 1)[0] & 15 else None


def _checkpoint(source: Source, end: int, length: int) -> Checkpoint | None:
    """Read a candidate footer; None if it does not describe this file."""
    start = end - _TAIL - length
    data = np.empty(length, np.uint8)
    source.read_into(start, data)
    if _struct_end(thrift_layout("FileMetaData", "num_rows"), data) != length:
        return None
    try:
        footer = Footer(data, length)
        fits = _chunks_fit(source, footer, start)
    except ParquetError:
        return None
    groups = footer.row_group_num_rows
    return Checkpoint(end, int(groups.sum()), len(groups)) if fits else None


def _struct_end(wanted: ThriftLayout, data: np.ndarray) -> int:
    """Return the end of the struct that begins the bytes, or a negative status if it is damaged."""
    words = np.empty(wanted.words, np.int64)
    return kernels.read_thrift_struct(data, 0, len(data), wanted.table, words, 0, decoder_stack(len(words), len(words)))


# --- whether a footer describes the file around it ------------------------------------------------------------------


def _chunks_fit(source: Source, footer: Footer, end: int) -> bool:
    """Whether all column chunks lie before the footer, and the last row group has pages and ends at it.

    numparq and other writers lay out a row group, its indexes and the footers after it without gaps.
    """
    num_groups = len(footer.row_group_num_rows)
    if not num_groups or not footer.num_leaves:
        return True
    facts = footer.chunks.read_table(range(num_groups), range(footer.num_leaves))
    first, dictionary = facts["data_page_offset"], facts["dictionary_page_offset"]
    starts = np.where((dictionary > 0) & (dictionary < first), dictionary, first)
    sizes = facts["total_compressed_size"]
    if (starts < len(MAGIC)).any() or (sizes < 0).any() or (starts > end).any() or (sizes > end - starts).any():
        return False
    if not _only_footers_follow(source, max(_last_end(footer), int((starts + sizes).max())), end):
        return False
    return all(
        _page_begins(source, start, size) for start, size in zip(starts[-1].tolist(), sizes[-1].tolist(), strict=True)
    )


def _last_end(footer: Footer) -> int:
    """Return the end of the last page index or Bloom filter of the last row group."""
    found = 0
    for column in range(footer.num_leaves):
        chunk = footer.chunks.chunk_record(len(footer.row_group_num_rows) - 1, column)
        meta = chunk.meta_data
        places = [
            (chunk.column_index_offset, chunk.column_index_length),
            (chunk.offset_index_offset, chunk.offset_index_length),
            (meta and meta.bloom_filter_offset, meta and meta.bloom_filter_length),
        ]
        found = max([found, *(offset + length for offset, length in places if offset and length)])
    return found


def _only_footers_follow(source: Source, position: int, end: int) -> bool:
    """Whether only earlier footers lie between a position and the footer at `end`."""
    while position < end:
        if end < len(MAGIC) + _TAIL:
            return False
        tail = _read(source, end - _TAIL, _TAIL)
        if tail[4:] != MAGIC:
            return False
        end -= _TAIL + int.from_bytes(tail[:4], "little")
    return position == end


def _page_begins(source: Source, start: int, size: int) -> bool:
    """Whether a column chunk begins with a page header whose page fits into it."""
    if not size:
        return True
    data = np.empty(min(size, _HEADER), np.uint8)
    source.read_into(start, data)
    wanted = thrift_layout("PageHeader", "compressed_page_size")
    words = np.empty(wanted.words, np.int64)
    end = kernels.read_thrift_struct(data, 0, len(data), wanted.table, words, 0, decoder_stack(len(words), len(words)))
    if end < 0:
        return False
    return 0 <= int(words[wanted.slot("compressed_page_size")]) <= size - end
