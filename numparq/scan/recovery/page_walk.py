"""Tolerant page walk over a column chunk: by page headers, or by the offset index."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from numparq.column.read.page_headers import HeaderScan
from numparq.column.read.page_walk import PageEvent, walk_chunk
from numparq.column.read.pages import stored_ends
from numparq.crypto.aad import ModuleId, ModuleType
from numparq.errors import CorruptPageError, ParquetError
from numparq.format.module_reader import ModuleReader
from numparq.format.page_index import OffsetIndex
from numparq.format.thrift.decode import Record, read_record
from numparq.format.thrift.layout import thrift_layout
from numparq.kernels.enums import DATA_PAGE_V2, DICTIONARY_PAGE
from numparq.kernels.tables import (
    C_END,
    C_FIRST_IS_DICTIONARY,
    C_NUM_VALUES,
    C_ROW_START,
    C_ROW_STOP,
    C_START,
    P_BODY,
    P_CRC,
    P_HEADER,
    P_IN_CHUNK,
    P_NUM_VALUES,
    P_ROW,
    P_SEALED,
    P_TYPE,
    PAGE_FIELDS,
    PLAINTEXT_OFFSET,
    SLACK,
    TAG_BYTES,
)
from numparq.plan.chunk_pages import ChunkPages

from .losses import LostRows, catch_damage

if TYPE_CHECKING:
    from numparq.format.encryption import FileDecryption

_ALL_ROWS = 1 << 60
_NO_PAGES = np.empty((0, PAGE_FIELDS), np.int64)


def read_chunk_pages(
    reader: ModuleReader, chunk: Record, ordinals: tuple[int, int], byte_range: tuple[int, int], num_rows: int
) -> ChunkPages | None:
    """Read the offset index of a ColumnChunk, whose pages lie in a byte range, in a row group of `num_rows` rows.

    `ordinals` are those of its row group and leaf.

    None without an offset index. Raises ParquetError for an inconsistent one.
    """
    position, length = chunk.offset_index_offset, chunk.offset_index_length
    if not position or not length or chunk.file_path or position < 0 or not 0 < length <= reader.source.size - position:
        return None
    (stored,) = reader.read_modules(np.array([[position, length]], np.int64))
    data = reader.plaintext(stored, ModuleId(ModuleType.OFFSET_INDEX, *ordinals))
    locations = OffsetIndex.read(data, len(data) - SLACK).locations
    return ChunkPages(*byte_range, num_rows, locations) if len(locations) else None


@dataclass
class WalkedChunk:
    """Pages of a column chunk, as far as a walk over them came.

    Attributes
    ----------
    raw : uint8 array
        The chunk's bytes, and SLACK bytes after them.
    keys : FileDecryption or None
        Keys of an encrypted file.
    dictionary : int64 array, (0 or 1, PAGE_FIELDS)
        The row of the page table of the dictionary page.
    dictionary_error : ParquetError or None
        Error of the dictionary page, if it is damaged.
    pages : int64 array, (pages, PAGE_FIELDS)
        The data pages with intact headers, in order.
    row_ranges : int64 array, (pages, 2), or None
        First row and exclusive end of each of them within the row group; None if only the levels have them.
    lost : list of LostRows
        The rows of all other pages.
    inconsistency : ParquetError or None
        Error of headers that are inconsistent: one is wrong, and with it the rows of all pages after it.
    end_error : ParquetError or None
        Error that ended the walk, if only the levels have the rows after it.
    """

    raw: np.ndarray
    keys: FileDecryption | None = None
    dictionary: np.ndarray = field(default_factory=lambda: _NO_PAGES)
    dictionary_error: ParquetError | None = None
    pages: np.ndarray = field(default_factory=lambda: _NO_PAGES)
    row_ranges: np.ndarray | None = None
    lost: list[LostRows] = field(default_factory=list)
    inconsistency: ParquetError | None = None
    end_error: ParquetError | None = None

    @property
    def are_headers_sound(self) -> bool:
        """Whether the header of each page was found, and they are consistent."""
        return not self.lost and (self.dictionary_error, self.inconsistency, self.end_error) == (None, None, None)


def walk_pages(
    reader: ModuleReader, chunk: np.ndarray, num_rows: int, located: ChunkPages | None = None, repeated: bool = False
) -> WalkedChunk:
    """Walk over the pages of a column chunk, as far as its damage allows.

    Parameters
    ----------
    reader : ModuleReader
        Reader of the file.
    chunk : int64 array, (1, CHUNK_FIELDS)
        The chunk table. Pages without a selected row are left out.
    num_rows : int
        Rows of the row group.
    located : ChunkPages or None
        The chunk's pages by `read_chunk_pages`.
    repeated : bool
        Whether the leaf is in a list, so that a row may have any number of values.

    Returns
    -------
    WalkedChunk

    Raises
    ------
    OSError, LimitError
        When the bytes cannot be read, or take more memory than there is.
    """
    start, length = int(chunk[0, C_START]), int(chunk[0, C_END] - chunk[0, C_START])
    if length:
        (raw,) = reader.read_modules(np.array([[start, length]], np.int64))
        if reader.keys is not None:
            raw = raw.copy()  # encrypted pages are decrypted in place
    else:
        raw = np.zeros(SLACK, np.uint8)
    chunk = chunk.copy()
    chunk[0, C_START], chunk[0, C_END] = 0, length
    walked = WalkedChunk(raw, reader.keys)
    if located is not None:
        _walk_locations(walked, chunk, located, start, repeated)
    else:
        _walk_headers(walked, chunk, num_rows, repeated)
    return walked


def _walk_headers(walked: WalkedChunk, chunk: np.ndarray, num_rows: int, repeated: bool) -> None:
    """Walk from header to header, up to a damaged one."""
    selected = int(chunk[0, C_ROW_START]), int(chunk[0, C_ROW_STOP])
    chunk[0, [C_ROW_START, C_ROW_STOP]] = -1, _ALL_ROWS
    scan = HeaderScan(chunk, walked.keys)
    end, num_values = int(chunk[0, C_END]), int(chunk[0, C_NUM_VALUES])
    found = catch_damage(scan.scan, walked.raw, end, 0)
    trouble = found if isinstance(found, ParquetError) else None
    _split_dictionary(walked, scan.page_table)
    seen, position = scan.num_values_in_chunk, scan.position
    passed_over = scan.num_pages_in_chunk > len(scan.page_table)
    if trouble is not None and passed_over and seen <= num_values:
        seen = _drop_after_gap(walked, seen)
        trouble = CorruptPageError("the page type is unknown, and the other pages lack some of the values")
    elif trouble is not None and (position >= end or seen > num_values):
        walked.inconsistency = trouble
        seen = num_rows
    if trouble is not walked.inconsistency:
        seen = _drop_unverified_end(walked, seen)
    if not repeated:
        first = walked.pages[:, P_ROW]
        walked.row_ranges = np.stack([first, first + walked.pages[:, P_NUM_VALUES]], axis=1)
        _keep_selected(walked, *selected)
    elif (rows := _rows_by_headers(walked)) is not None:
        stops = np.cumsum([0, *rows])
        walked.row_ranges = np.stack([stops[:-1], stops[1:]], axis=1)
        seen = int(stops[-1])
        if trouble is None and seen != num_rows:
            walked.inconsistency = CorruptPageError(
                "the rows of the page headers do not match the rows of the row group"
            )
    if trouble is None or walked.inconsistency is not None:
        return
    if walked.row_ranges is None:
        walked.end_error = trouble
    else:  # an empty range, if all values are there, and bytes follow them
        walked.lost.append(LostRows(min(seen, num_rows), num_rows, trouble))


def _drop_unverified_end(walked: WalkedChunk, seen: int) -> int:
    """Drop the last page if neither a checksum nor a tag confirms where it begins and ends; return the values left."""
    if not len(walked.pages) or walked.pages[-1, P_CRC] >= 0 or walked.pages[-1, P_SEALED]:
        return seen
    seen = int(walked.pages[-1, P_ROW])
    walked.pages = walked.pages[:-1]
    return seen


def _drop_after_gap(walked: WalkedChunk, seen: int) -> int:
    """Drop the data pages after the first one of unknown type; return the values left."""
    ordinals = walked.pages[:, P_IN_CHUNK]
    behind = ordinals != np.arange(len(ordinals)) + len(walked.dictionary)
    if behind.any():
        seen = int(walked.pages[np.argmax(behind), P_ROW])
        walked.pages = walked.pages[: np.argmax(behind)]
    return seen


def _keep_selected(walked: WalkedChunk, start: int, stop: int) -> None:
    """Drop the pages without a selected row."""
    assert walked.row_ranges is not None
    is_selected = (walked.row_ranges[:, 0] < stop) & (walked.row_ranges[:, 1] > start)
    walked.pages, walked.row_ranges = walked.pages[is_selected], walked.row_ranges[is_selected]


def _split_dictionary(walked: WalkedChunk, table: np.ndarray) -> None:
    """Divide a page table into the dictionary page and the data pages."""
    first = int(len(table) > 0 and table[0, P_TYPE] == DICTIONARY_PAGE)
    walked.dictionary, walked.pages = table[:first].copy(), table[first:].copy()


def _rows_by_headers(walked: WalkedChunk) -> list[int] | None:
    """Return num_rows of each page; None for pages of version 1, or of writers in Go, which do not count."""
    if not (walked.pages[:, P_TYPE] == DATA_PAGE_V2).all():
        return None
    rows = [_rows_of(walked.raw, page) for page in walked.pages]
    counted = all(count > 0 or page[P_NUM_VALUES] == 0 for count, page in zip(rows, walked.pages, strict=True))
    return rows if counted else None


def _rows_of(raw: np.ndarray, page: np.ndarray) -> int:
    """Return num_rows of the header of a page of version 2, which is not in the page table."""
    layout = thrift_layout("PageHeader", "data_page_header_v2.num_rows")
    header = raw[int(page[P_HEADER]) : int(page[P_BODY])]
    if page[P_SEALED]:  # a module, and the length and nonce of the next one
        header = header[PLAINTEXT_OFFSET : -PLAINTEXT_OFFSET - TAG_BYTES]
    return max(int(read_record(header, len(header), layout)[layout.slot("data_page_header_v2.num_rows")]), 0)


def _walk_locations(walked: WalkedChunk, chunk: np.ndarray, located: ChunkPages, start: int, repeated: bool) -> None:
    """Read the page at each location of the offset index, which count from `start` on, and the dictionary page."""
    offsets, sizes, firsts = (located.locations - [start, 0, 0]).T.tolist()
    nexts = [*firsts[1:], located.num_rows]
    # A row may begin on one page of a list and continue on the next, which then has the same first row.
    stops = located.row_stops.tolist() if repeated else nexts
    rows = dict(zip(offsets, zip(firsts, stops, nexts, strict=True), strict=True))
    ends = {0: offsets[0]} | {offset: offset + size for offset, size in zip(offsets, sizes, strict=True)}

    ordinals = {position: number for number, position in enumerate(sorted(ends))}

    def read_page(position: int, _: int) -> PageEvent:
        if position not in ends:
            return PageEvent(position)  # a gap
        span = rows[position][:2] if position in rows else None
        scan = partial(_scan_page, walked, chunk, position, ends[position], ordinals[position])
        return _read_located(scan, (position, ends[position]), span, repeated)

    selected = (0, located.num_rows) if repeated else (int(chunk[0, C_ROW_START]), int(chunk[0, C_ROW_STOP]))
    pages, spans, number = [_NO_PAGES], [], 0
    for event in walk_chunk(read_page, 0, int(chunk[0, C_END]), offsets):
        if event.start == 0 and 0 not in rows:
            walked.dictionary_error = event.error
            _split_dictionary(walked, _NO_PAGES if event.page is None else event.page)
        if event.start not in rows:
            continue
        first, stop, following = rows[event.start]
        if event.page is not None and event.page[0, P_NUM_VALUES] == 0:  # pyarrow 26 writes such pages of lists
            stop = following
        if event.error is not None:
            walked.lost.append(LostRows(first, stop, event.error))
        elif first < selected[1] and max(stop, first + 1) > selected[0]:  # an empty page may be damaged, too
            before = len(walked.dictionary) or int(chunk[0, C_FIRST_IS_DICTIONARY])
            event.page[0, P_ROW], event.page[0, P_IN_CHUNK] = first, number + before
            pages.append(event.page)
            spans.append((first, stop))
        number += 1
    walked.pages, walked.row_ranges = np.concatenate(pages), np.array(spans, np.int64).reshape(-1, 2)


def _read_located(
    scan: Callable[[], np.ndarray], place: tuple[int, int], rows: tuple[int, int] | None, repeated: bool
) -> PageEvent:
    """Read the page between two positions by `scan`: a data page with some rows, or the dictionary page (None)."""
    found: np.ndarray | ParquetError = catch_damage(scan)
    if rows is not None and not isinstance(found, ParquetError):
        defect = _page_defect(found, place[1], rows, repeated)
        found = found if defect is None else defect
    if isinstance(found, ParquetError):
        return PageEvent(place[0], error=found)
    return PageEvent(place[0], found, place[1])


def _scan_page(walked: WalkedChunk, chunk: np.ndarray, position: int, end: int, ordinal: int) -> np.ndarray:
    """Return the row of the page table of the one page between two positions of a chunk, with its ordinal there."""
    one_page = chunk.copy()
    one_page[0, [C_START, C_END]] = position, end
    one_page[0, C_NUM_VALUES] = -1  # no more than the first page
    one_page[0, [C_ROW_START, C_ROW_STOP]] = -1, _ALL_ROWS
    scan = HeaderScan(one_page, walked.keys, ordinal)
    scan.scan(walked.raw, end, position)
    return scan.page_table


def _page_defect(page: np.ndarray, end: int, rows: tuple[int, int], repeated: bool) -> CorruptPageError | None:
    """Return the error of a page that is not the data page of the offset index, with these rows (exclusive end)."""
    if not len(page) or page[0, P_TYPE] == DICTIONARY_PAGE:
        return CorruptPageError("the header is not that of a data page, but the offset index locates one here")
    if stored_ends(page, page[0, P_SEALED])[0] != end:
        return CorruptPageError("the page header and the offset index differ in size")
    if not repeated and page[0, P_NUM_VALUES] != rows[1] - rows[0]:
        return CorruptPageError("the page header has another number of values than the rows of the offset index")
    return None
