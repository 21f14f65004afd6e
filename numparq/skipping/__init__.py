"""Data-skipping stores: Parquet tables that say which files of a dataset a query need not open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numparq.util.lazy import lazy_names

if TYPE_CHECKING:
    from .description import StoreDescription
    from .indexes.definitions import BloomFilter, GapList, MinMax, PrefixList, SuffixList, ValueList
    from .refresh import StoreChange
    from .selection import StoreSelection
    from .store import Store

__all__ = [
    "BloomFilter",
    "GapList",
    "MinMax",
    "PrefixList",
    "Store",
    "StoreChange",
    "StoreDescription",
    "StoreSelection",
    "SuffixList",
    "ValueList",
]

_MODULE_OF = {
    "BloomFilter": "indexes.definitions",
    "GapList": "indexes.definitions",
    "MinMax": "indexes.definitions",
    "PrefixList": "indexes.definitions",
    "Store": "store",
    "StoreChange": "refresh",
    "StoreDescription": "description",
    "StoreSelection": "selection",
    "SuffixList": "indexes.definitions",
    "ValueList": "indexes.definitions",
}

__getattr__, __dir__ = lazy_names(__name__, _MODULE_OF)
