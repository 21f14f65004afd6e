"""Where the pages of a column chunk are by its offset index (PageIndex.md): the way on behind a damaged page header."""

from __future__ import annotations

import numpy as np

from ..errors import LimitError, ParquetError
from ..io.source import Source
from ..kernels.tables import SLACK
from ..metadata.decode import read_record
from ..metadata.layout import layout
from ..metadata.records import Record

__all__ = ["PAGE_OFFSET", "PAGE_ROW", "PAGE_SIZE", "page_locations"]

# Columns of what `page_locations` gives.
PAGE_OFFSET, PAGE_SIZE, PAGE_ROW = range(3)
_FIELDS = ("page_locations.offset", "page_locations.compressed_page_size", "page_locations.first_row_index")


def page_locations(source: Source, chunk: Record, start: int, end: int, num_rows: int) -> np.ndarray | None:
    """Read the offset index of a column chunk.

    Parameters
    ----------
    source : Source
        The file.
    chunk : Record
        The ColumnChunk of the footer.
    start, end : int
        Between which positions of the file the chunk's pages are.
    num_rows : int
        Rows of its row group.

    Returns
    -------
    int64 array, (pages, 3), or None
        Of each data page the position of its header, its bytes with the header, and its first row within the row
        group. None where there is no offset index, or one that cannot be right: it is only a help.
    """
    position, length = chunk.offset_index_offset, chunk.offset_index_length
    if not position or not length or chunk.file_path or position < 0 or not 0 < length <= source.size - position:
        return None
    data = np.zeros(length + SLACK, np.uint8)
    try:
        source.read_into(position, data[:length])
        found = _locations(data, length)
    except LimitError:
        raise
    except ParquetError:
        return None
    return found if _is_possible(found, start, end, num_rows) else None


def _locations(data: np.ndarray, length: int) -> np.ndarray:
    wanted = layout("OffsetIndex", *_FIELDS)
    words = read_record(data, length, wanted)
    slot, record = wanted.slot("page_locations"), wanted.record_of("page_locations")
    first, count = max(int(words[slot]), 0), int(words[slot + 1])
    rows = words[first : first + count * record.words].reshape(count, record.words)
    return rows[:, [wanted.slot(field) for field in _FIELDS]]


def _is_possible(found: np.ndarray, start: int, end: int, num_rows: int) -> bool:
    """Tell whether pages can lie so: one behind the other within the chunk, their rows one behind the other."""
    if not len(found):
        return False
    offsets, sizes, rows = found.T
    if offsets[0] < start or (sizes <= 0).any() or (sizes > end - start).any() or (offsets > end).any():
        return False
    stops = offsets + sizes
    if (stops[:-1] > offsets[1:]).any() or stops[-1] > end:
        return False
    return bool(rows[0] == 0 and (np.diff(rows) >= 0).all() and rows[-1] <= num_rows)
