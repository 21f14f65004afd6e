"""The pages that follow each other in a file whose footer is gone: each begins where the one before ends."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass

from ..io.source import Source
from ..kernels.tables import DATA_PAGE, DATA_PAGE_V2, DICTIONARY_PAGE
from .deviations import NOWHERE, Findings
from .footer import read_bytes
from .stored import StoredPage, has_negative_counts, stored_pages
from .thrift import Unreadable, read_struct

__all__ = ["Walk", "walk_pages"]

_KINDS = (DATA_PAGE, DICTIONARY_PAGE, DATA_PAGE_V2)
_BLOCK = 1 << 16
_LONGEST_METADATA = 1 << 16


@dataclass(frozen=True)
class Walk:
    """Pages one behind the other.

    Parameters
    ----------
    pages : list of StoredPage
        Those that are whole: header and body are there, and the checksum, where there is one, is that of the body.
    breaks : set of int
        Positions in `pages` in front of which a column chunk ends for certain: its metadata stand there.
    end : int
        Where the last of them ends, and what belongs to it.
    reason : str
        Why there is no other behind it.
    num_checksums : int
        How many have one.
    """

    pages: list[StoredPage]
    breaks: set[int]
    end: int
    reason: str
    num_checksums: int


def walk_pages(source: Source, start: int, progress: Callable[[int], None] = lambda count: None) -> Walk:
    """Find the pages from a place on, as far as they are whole.

    Between pages there may be zeros, with which writers align row groups, and the metadata of the column chunk that
    ends there, which old writers put behind it.

    Parameters
    ----------
    source : Source
        The file.
    start : int
        Where to begin: behind the magic number, or behind the footer of a checkpoint.
    progress : callable
        Called with the bytes of each page.

    Returns
    -------
    Walk
    """
    pages: list[StoredPage] = []
    breaks: set[int] = set()
    position, checksums, reason = start, 0, ""
    while not reason:
        findings = Findings()
        for page in stored_pages(source, position, source.size, source.size, (), findings, NOWHERE):
            trouble = "its header is damaged" if page is None or findings.deviations else _trouble(source, page)
            if page is None or trouble:
                break
            pages.append(page)
            checksums += page.header.get("crc") is not None
            progress(page.end - position)
            position = page.end
        else:
            reason = "the file ends"
            break
        behind = _behind_zeros(source, position)
        if behind == position:
            behind = _behind_metadata(source, position) or position
            breaks.add(len(pages))
        if behind == position:
            reason = f"at byte {position:,} there is none, or {trouble}"
        position = behind
    return Walk(pages, breaks, position, reason, checksums)


def _trouble(source: Source, page: StoredPage) -> str:
    """Say what speaks against a page; empty where nothing does."""
    if page.header["type"] not in _KINDS:
        return "it is of a type that there is not"
    if has_negative_counts(page.about):
        return "its header is damaged"
    crc = page.header.get("crc")
    if crc is not None and zlib.crc32(read_bytes(source, page.body, page.end - page.body)) != crc & 0xFFFFFFFF:
        return "its checksum is that of other bytes"
    return ""


def _behind_zeros(source: Source, position: int) -> int:
    while position < source.size:
        data = read_bytes(source, position, min(_BLOCK, source.size - position))
        left = data.lstrip(b"\0")
        if left:
            return position + len(data) - len(left)
        position += len(data)
    return position


def _behind_metadata(source: Source, position: int) -> int | None:
    """Give where the metadata of a column chunk end that stand here; None where there are none."""
    data = read_bytes(source, position, min(_LONGEST_METADATA, source.size - position))
    for name in ("ColumnChunk", "ColumnMetaData"):
        noted: list[str] = []
        try:
            found, end = read_struct(name, data, lambda check, text, noted=noted: noted.append(check))  # type: ignore[misc]
        except Unreadable:
            continue
        if not noted and (name == "ColumnMetaData" or "meta_data" in found):
            return position + end
    return None
