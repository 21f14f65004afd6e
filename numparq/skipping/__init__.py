"""Data-skipping stores: Parquet tables that say which files of a dataset a query need not open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numparq.util.lazy import lazy_names

if TYPE_CHECKING:
    from .description import StoreDescription
    from .indexes.definitions import BloomFilter, MinMax, ValueList
    from .refresh import StoreChange
    from .selection import StoreSelection
    from .store import Store

__all__ = [
    "BloomFilter",
    "MinMax",
    "Store",
    "StoreChange",
    "StoreDescription",
    "StoreSelection",
    "ValueList",
]

_MODULE_OF = {
    "BloomFilter": "indexes.definitions",
    "MinMax": "indexes.definitions",
    "Store": "store",
    "StoreChange": "refresh",
    "StoreDescription": "description",
    "StoreSelection": "selection",
    "ValueList": "indexes.definitions",
}

__getattr__, __dir__ = lazy_names(__name__, _MODULE_OF)
