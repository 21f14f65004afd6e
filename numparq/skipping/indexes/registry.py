"""The table of indexes: readers of their cells by name, those of other packages too."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points

from .affix_list import PrefixListCells, SuffixListCells
from .bloom_filter import BloomFilterCells
from .gap_list import GapListCells
from .index import CellReader
from .minmax import MinMaxCells
from .value_list import ValueListCells

ENTRY_POINTS = "numparq.skipping_indexes"  # group of a package's metadata: name of an index -> class like these
CELL_READERS: Mapping[str, CellReader] = {
    "minmax": MinMaxCells(),
    "valuelist": ValueListCells(),
    "bloomfilter": BloomFilterCells(),
    "gaplist": GapListCells(),
    "prefixlist": PrefixListCells(),
    "suffixlist": SuffixListCells(),
}


@cache
def cell_reader(name: str) -> CellReader | None:
    """Return the reader of an index's cells; None for an unknown index, whose cells say nothing."""
    if name in CELL_READERS:
        return CELL_READERS[name]
    for entry in entry_points(group=ENTRY_POINTS, name=name):
        reader: CellReader = entry.load()()
        return reader
    return None
