"""Where the footer says that the indexes and Bloom filters of column chunks lie."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from ..errors import ParquetError
from ..metadata.layout import Layout, layout
from ..opened import OpenedFile

__all__ = ["BLOOM_FILTER", "COLUMN_INDEX", "NOWHERE", "OFFSET_INDEX", "places_of"]

COLUMN_INDEX, OFFSET_INDEX, BLOOM_FILTER = "column_index", "offset_index", "bloom_filter"
NOWHERE = -1
_MAGIC_BYTES = 4
# Longer ones are not read: a million pages have an index of this size, and a decoded one takes ten times the memory.
_LONGEST = {COLUMN_INDEX: 64 << 20, OFFSET_INDEX: 64 << 20, BLOOM_FILTER: 129 << 20}
_STEMS = {COLUMN_INDEX: "column_index", OFFSET_INDEX: "offset_index", BLOOM_FILTER: "meta_data.bloom_filter"}


@lru_cache(maxsize=1)
def _wanted() -> tuple[Layout, dict[str, list[int]]]:
    """Give the layout of a chunk, and the words of each offset and length in it."""
    fields = {what: [f"{stem}_{which}" for which in ("offset", "length")] for what, stem in _STEMS.items()}
    wanted = layout("ColumnChunk", *(name for names in fields.values() for name in names))
    return wanted, {what: [wanted.slot(name) for name in names] for what, names in fields.items()}


def places_of(file: OpenedFile, what: str, row_groups: Sequence[int], leaves: Sequence[int]) -> np.ndarray:
    """Give where something of some column chunks lies.

    Parameters
    ----------
    file : OpenedFile
        The file; nothing but its footer is looked at.
    what : str
        COLUMN_INDEX, OFFSET_INDEX or BLOOM_FILTER.
    row_groups, leaves : sequence of int
        Ordinals, one of each a chunk.

    Returns
    -------
    int64 array, (chunks, 2)
        Position in the file, and length; the position is `NOWHERE` where there is nothing, where it would not lie
        within the file's data, and where the chunk is in another file. The length of a Bloom filter is 0 where the
        file does not tell.
    """
    wanted, slots = _wanted()
    try:
        words = file.footer.chunks.words(wanted, row_groups, leaves)
    except ParquetError:
        return np.full((len(row_groups), 2), (NOWHERE, 0), np.int64)
    found = words[:, slots[what]]
    start, length = found.T
    if what == BLOOM_FILTER:
        length[length < 0] = 0
    inside = (start >= _MAGIC_BYTES) & (start < file.footer_start) & (length <= _LONGEST[what])
    inside &= (length > 0) | (what == BLOOM_FILTER)
    inside &= length <= file.footer_start - np.where(inside, start, 0)
    inside &= words[:, 0] & wanted.bit("file_path") == 0
    found[~inside] = NOWHERE, 0
    return found
