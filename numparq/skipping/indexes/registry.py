"""The table of indexes: readers of their cells by name."""

from __future__ import annotations

from collections.abc import Mapping

from .bloom_filter import BloomFilterCells
from .index import CellReader
from .minmax import MinMaxCells
from .value_list import ValueListCells

CELL_READERS: Mapping[str, CellReader] = {
    "minmax": MinMaxCells(),
    "valuelist": ValueListCells(),
    "bloomfilter": BloomFilterCells(),
}
