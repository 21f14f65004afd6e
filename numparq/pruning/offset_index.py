"""An OffsetIndex (PageIndex.md): where the pages of a chunk lie, as far as that fits the chunk."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ..errors import ParquetError
from ..metadata.decode import read_record
from ..metadata.layout import Layout, layout
from ..plan.pages import PAGE_OFFSET, PAGE_ROW, PAGE_SIZE, ChunkPages
from ..remembered import Kept

__all__ = ["OffsetIndex"]

_LOCATION = {PAGE_OFFSET: "offset", PAGE_SIZE: "compressed_page_size", PAGE_ROW: "first_row_index"}
_MOST_KEPT = 4


class OffsetIndex:
    """An OffsetIndex. Nothing changes it.

    Parameters
    ----------
    locations : int64 array, (pages, 3)
        As `ChunkPages` has them, not checked yet.
    """

    __slots__ = ("_pages", "locations")

    def __init__(self, locations: np.ndarray) -> None:
        self.locations = locations
        self._pages = Kept(_MOST_KEPT)

    @classmethod
    def read(cls, data: np.ndarray, length: int) -> OffsetIndex:
        """Decode one.

        Parameters
        ----------
        data : uint8 array
            Its bytes.
        length : int
            How many may belong to it.

        Raises
        ------
        InvalidFileError
            When the bytes are no OffsetIndex.
        """
        wanted, slot, width, slots = _words()
        words = read_record(data, length, wanted)
        first, count = words[slot : slot + 2].tolist()
        first = max(first, 0)
        return cls(words[first : first + count * width].reshape(count, width)[:, slots])

    def pages(self, whole: ChunkPages) -> ChunkPages | None:
        """Give the pages of a chunk, of which this is said to be the index.

        Parameters
        ----------
        whole : ChunkPages
            The chunk, as a single page.

        Returns
        -------
        ChunkPages or None
            None where it cannot be the index of all pages of such a chunk.
        """
        key = whole.start, whole.end, whole.num_rows
        return self._pages.get(key, lambda: _held_against(*key, self.locations))

    def is_one_page(self, whole: ChunkPages) -> bool:
        """Tell whether it has one page that is all of a chunk's data."""
        if len(self.locations) != 1:
            return False
        start, size, row = self.locations[0].tolist()
        return row == 0 and whole.start <= start < start + size == whole.end


def _held_against(start: int, end: int, num_rows: int, locations: np.ndarray) -> ChunkPages | None:
    if not len(locations):
        return None
    try:
        found = ChunkPages(start, end, num_rows, locations)
    except ParquetError:
        return None
    return found if found.is_complete else None


@lru_cache(maxsize=1)
def _words() -> tuple[Layout, int, int, list[int]]:
    """Give the layout of an OffsetIndex, where its list is, the words of a PageLocation, and which are wanted."""
    wanted = layout("OffsetIndex", *(f"page_locations.{name}" for name in _LOCATION.values()))
    record = wanted.record_of("page_locations")
    slots = [record.slots[_LOCATION[column]].word for column in sorted(_LOCATION)]
    return wanted, wanted.slot("page_locations"), record.words, slots
