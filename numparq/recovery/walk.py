"""The pages of one column chunk, walked one by one: those whose headers are whole, and what is lost with the others.

Which loss follows from which damage is what the format says under "Error recovery": behind a damaged page header the
rest of the chunk is lost, for nothing says where the next page is. An offset index does say it; then the walk goes from
location to location, and what is damaged costs its own page only.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..column.pages import PageWalk
from ..column.scratch import allocate
from ..errors import CorruptPageError, LimitError, ParquetError
from ..io.source import Source
from ..kernels.pages import SCAN_IN_CHUNK, SCAN_POS, SCAN_VALUES
from ..kernels.tables import (
    C_END,
    C_NUM_VALUES,
    C_ROW_START,
    C_ROW_STOP,
    C_START,
    DATA_PAGE_V2,
    DICTIONARY_PAGE,
    P_BODY,
    P_COMPRESSED,
    P_HEADER,
    P_IN_CHUNK,
    P_NUM_VALUES,
    P_ROW,
    P_TYPE,
    PAGE_FIELDS,
    SLACK,
)
from ..metadata.decode import read_record
from ..metadata.layout import layout
from .locations import PAGE_OFFSET, PAGE_ROW, PAGE_SIZE
from .lost import LostRows

__all__ = ["WalkedChunk", "walk_pages"]

_ALL_ROWS = 1 << 60
_NO_PAGES = np.empty((0, PAGE_FIELDS), np.int64)


@dataclass
class WalkedChunk:
    """What a walk over the pages of a column chunk has found.

    Attributes
    ----------
    raw : uint8 array
        The chunk's bytes, and SLACK behind.
    dictionary : int64 array, (0 or 1, PAGE_FIELDS)
        The row of the page table of the dictionary page.
    no_dictionary : ParquetError or None
        What is wrong with the dictionary page, if there is one and it is damaged.
    pages : int64 array, (pages, PAGE_FIELDS)
        The data pages whose headers are whole, in order.
    spans : int64 array, (pages, 2), or None
        Of each of them the first row and the one behind the last, counted within the row group; None where only the
        levels could tell.
    lost : list of LostRows
        The rows of pages that the walk did not find.
    doubt : ParquetError or None
        What is wrong where the headers do not add up: one of them is, and so are the rows of all pages behind it.
    end : ParquetError or None
        What the walk ended at, where the rows behind cannot be told without the levels.
    """

    raw: np.ndarray
    dictionary: np.ndarray = field(default_factory=lambda: _NO_PAGES)
    no_dictionary: ParquetError | None = None
    pages: np.ndarray = field(default_factory=lambda: _NO_PAGES)
    spans: np.ndarray | None = None
    lost: list[LostRows] = field(default_factory=list)
    doubt: ParquetError | None = None
    end: ParquetError | None = None


def walk_pages(
    source: Source, chunk: np.ndarray, num_rows: int, locations: np.ndarray | None = None, repeated: bool = False
) -> WalkedChunk:
    """Walk over the pages of a column chunk as far as its damages allow it.

    Parameters
    ----------
    source : Source
        The file.
    chunk : int64 array, (1, CHUNK_FIELDS)
        The chunk table, as `ChunkTables.of_row_group` makes it. Pages without a row that is wanted are left out.
    num_rows : int
        Rows of the row group.
    locations : int64 array, (pages, 3), or None
        What `page_locations` gives.
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
    raw = source.view(start, length, SLACK)
    if raw is None:
        raw = allocate(length + SLACK)
        source.read_into(start, raw[:length])
    chunk = chunk.copy()
    chunk[0, C_START], chunk[0, C_END] = 0, length
    walked = WalkedChunk(raw)
    if locations is not None:
        locations = locations.copy()
        locations[:, PAGE_OFFSET] -= start
        _by_locations(walked, source, chunk, num_rows, locations, repeated)
    else:
        _one_by_one(walked, source, chunk, num_rows, repeated)
    return walked


def _one_by_one(walked: WalkedChunk, source: Source, chunk: np.ndarray, num_rows: int, repeated: bool) -> None:
    """Walk from header to header; behind a damaged one there is no way on."""
    wanted = int(chunk[0, C_ROW_START]), int(chunk[0, C_ROW_STOP])
    walk = PageWalk(source, chunk)
    walk.chunks[0, [C_ROW_START, C_ROW_STOP]] = -1, _ALL_ROWS
    end, num_values = int(chunk[0, C_END]), int(chunk[0, C_NUM_VALUES])
    trouble: ParquetError | None = None
    try:
        walk.scan(walked.raw, end)
    except LimitError:
        raise
    except ParquetError as error:
        trouble = error
    _take(walked, walk.found)
    seen, position = int(walk.state[SCAN_VALUES]), int(walk.state[SCAN_POS])
    passed_over = int(walk.state[SCAN_IN_CHUNK]) > len(walk.found)
    if trouble is not None and passed_over and seen <= num_values:
        seen = _cut_at_gap(walked, seen)
        trouble = CorruptPageError("the page header is of no known type, and the others do not have all values")
    elif trouble is not None and (position >= end or seen > num_values):
        walked.doubt = trouble
        seen = num_rows
    if not repeated:
        first = walked.pages[:, P_ROW]
        walked.spans = np.stack([first, first + walked.pages[:, P_NUM_VALUES]], axis=1)
        _keep_wanted(walked, *wanted)
    elif (rows := _rows_by_headers(walked)) is not None:
        stops = np.cumsum([0, *rows])
        walked.spans = np.stack([stops[:-1], stops[1:]], axis=1)
        seen = int(stops[-1])
        if trouble is None and seen != num_rows:
            walked.doubt = CorruptPageError("the rows of the page headers are not those of the row group")
    if trouble is None or walked.doubt is not None:
        return
    if walked.spans is None:
        walked.end = trouble
    else:
        walked.lost.append(LostRows(min(seen, num_rows), num_rows, trouble))


def _cut_at_gap(walked: WalkedChunk, seen: int) -> int:
    """Leave out the data pages behind the first that was passed over, for its type is none known; the values left."""
    ordinals = walked.pages[:, P_IN_CHUNK]
    behind = ordinals != np.arange(len(ordinals)) + len(walked.dictionary)
    if behind.any():
        seen = int(walked.pages[np.argmax(behind), P_ROW])
        walked.pages = walked.pages[: np.argmax(behind)]
    return seen


def _keep_wanted(walked: WalkedChunk, start: int, stop: int) -> None:
    """Leave out the pages without a row that is wanted."""
    assert walked.spans is not None
    wanted = (walked.spans[:, 0] < stop) & (walked.spans[:, 1] > start)
    walked.pages, walked.spans = walked.pages[wanted], walked.spans[wanted]


def _take(walked: WalkedChunk, table: np.ndarray) -> None:
    """Divide a page table into the dictionary page and the data pages."""
    first = int(len(table) > 0 and table[0, P_TYPE] == DICTIONARY_PAGE)
    walked.dictionary, walked.pages = table[:first].copy(), table[first:].copy()


def _rows_by_headers(walked: WalkedChunk) -> list[int] | None:
    """Give num_rows of each page; None where there are pages of version 1, or of writers in Go, which do not count."""
    if not (walked.pages[:, P_TYPE] == DATA_PAGE_V2).all():
        return None
    rows = [_rows_of(walked.raw, page) for page in walked.pages]
    counted = all(count > 0 or page[P_NUM_VALUES] == 0 for count, page in zip(rows, walked.pages, strict=True))
    return rows if counted else None


def _rows_of(raw: np.ndarray, page: np.ndarray) -> int:
    """Give num_rows of the header of a page of version 2, which the page table has no place for."""
    wanted = layout("PageHeader", "data_page_header_v2.num_rows")
    header = raw[int(page[P_HEADER]) : int(page[P_BODY])]
    return max(int(read_record(header, len(header), wanted)[wanted.slot("data_page_header_v2.num_rows")]), 0)


def _by_locations(
    walked: WalkedChunk, source: Source, chunk: np.ndarray, num_rows: int, locations: np.ndarray, repeated: bool
) -> None:
    """Go from one location of the offset index to the next."""
    before = int(locations[0, PAGE_OFFSET])
    one_page = _OnePage(walked.raw, source, chunk)
    if before:
        try:
            _take(walked, one_page.at(0, before))
        except LimitError:
            raise
        except ParquetError as error:
            walked.no_dictionary = error
    pages, spans = [], []
    stops = [*locations[1:, PAGE_ROW].tolist(), num_rows]
    wanted = (0, num_rows) if repeated else (int(chunk[0, C_ROW_START]), int(chunk[0, C_ROW_STOP]))
    for number, (location, stop) in enumerate(zip(locations.tolist(), stops, strict=True)):
        first = location[PAGE_ROW]
        if first >= wanted[1] or stop <= wanted[0]:
            continue
        try:
            page = one_page.at(location[PAGE_OFFSET], location[PAGE_SIZE])
            _check_page(page, location, stop - first, repeated)
        except LimitError:
            raise
        except ParquetError as error:
            walked.lost.append(LostRows(first, stop, error))
            continue
        page[0, P_ROW], page[0, P_IN_CHUNK] = first, number + len(walked.dictionary)
        pages.append(page)
        spans.append((first, stop))
    walked.pages = np.concatenate([_NO_PAGES, *pages])
    walked.spans = np.array(spans, np.int64).reshape(-1, 2)


class _OnePage:
    """Reads the header of the one page that is between two positions of a chunk."""

    def __init__(self, raw: np.ndarray, source: Source, chunk: np.ndarray) -> None:
        self._raw = raw
        self._walk = PageWalk(source, chunk.copy())
        self._walk.chunks[0, C_NUM_VALUES] = -1  # no more than the first page
        self._walk.chunks[0, [C_ROW_START, C_ROW_STOP]] = -1, _ALL_ROWS

    def at(self, position: int, size: int) -> np.ndarray:
        """Give its row of the page table."""
        walk = self._walk
        walk.chunks[0, [C_START, C_END]] = position, position + size
        walk.state[:] = 0
        walk.state[SCAN_POS] = position
        walk.scan(self._raw, position + size)
        return walk.found.copy()


def _check_page(page: np.ndarray, location: list[int], num_rows: int, repeated: bool) -> None:
    """Refuse what is no data page, or not the one that the offset index tells of."""
    if not len(page) or page[0, P_TYPE] == DICTIONARY_PAGE:
        raise CorruptPageError("the header is not that of a data page, where the offset index has one")
    if page[0, P_BODY] + page[0, P_COMPRESSED] != location[PAGE_OFFSET] + location[PAGE_SIZE]:
        raise CorruptPageError("the page header has another size than the offset index")
    if not repeated and page[0, P_NUM_VALUES] != num_rows:
        raise CorruptPageError("the page header has another number of values than the offset index has rows")
