"""Column chunk metadata of a footer as arrays: sizes, codecs, encodings, counts, index offsets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from numparq.format.footer.file_metadata import Footer
from numparq.format.thrift.decode import read_record
from numparq.format.thrift.idl import enum_value
from numparq.format.thrift.layout import ThriftLayout, thrift_layout

_CHUNK, _META = "row_groups.columns", "row_groups.columns.meta_data"
_NUMBER_FIELDS = {
    "codec": f"{_META}.codec",
    "num_values": f"{_META}.num_values",
    "compressed": f"{_META}.total_compressed_size",
    "uncompressed": f"{_META}.total_uncompressed_size",
    "data_page": f"{_META}.data_page_offset",
    "dictionary_page": f"{_META}.dictionary_page_offset",
    "bloom_offset": f"{_META}.bloom_filter_offset",
    "bloom_length": f"{_META}.bloom_filter_length",
    "text_bytes": f"{_META}.size_statistics.unencoded_byte_array_data_bytes",
    "distinct_count": f"{_META}.statistics.distinct_count",
    "low_exact": f"{_META}.statistics.is_min_value_exact",
    "high_exact": f"{_META}.statistics.is_max_value_exact",
    "column_index": f"{_CHUNK}.column_index_offset",
    "offset_index": f"{_CHUNK}.offset_index_offset",
}
_LIST_FIELDS = (f"{_META}.encodings", f"{_META}.encoding_stats", f"{_META}.size_statistics.definition_level_histogram")
_ROW_GROUP_FIELDS = ("row_groups.sorting_columns",)
_DATA_PAGES = (0, 3)  # DATA_PAGE and DATA_PAGE_V2
_DICTIONARY_ENCODINGS = (2, 8)  # PLAIN_DICTIONARY and RLE_DICTIONARY


@lru_cache(maxsize=1)
def _fields() -> ThriftLayout:
    return thrift_layout("FileMetaData", *_NUMBER_FIELDS.values(), *_LIST_FIELDS, *_ROW_GROUP_FIELDS)


class ChunkMetadataTable:
    """What a footer says of its column chunks.

    ``facts[name]`` is an int64 array, (row groups, leaves), of one of the numbers above; -1 where it is absent.

    Parameters
    ----------
    footer : Footer
        The file's.

    Raises
    ------
    InvalidFileError
        When the footer is damaged where it describes chunks.
    """

    def __init__(self, footer: Footer) -> None:
        wanted = _fields()
        self._arena = read_record(footer.data, footer.length, wanted)
        self._groups = self._struct_list(self._arena[: wanted.words], wanted.slot("row_groups"), wanted, "row_groups")
        first = self._groups[:, wanted.slot(_CHUNK)]
        width = wanted.record_layout(_CHUNK).words
        starts = np.maximum(first, 0)[:, None] + np.arange(footer.num_leaves) * width
        self._chunks = self._arena[starts[..., None] + np.arange(width)]
        self._has_meta: np.ndarray = (self._chunks[..., 0] & wanted.bit(f"{_CHUNK}.meta_data")) != 0

    def _struct_list(self, record: np.ndarray, slot: int, wanted: ThriftLayout, path: str) -> np.ndarray:
        """Give the records of a list of structs."""
        width = wanted.record_layout(path).words
        first, count = record[slot : slot + 2].tolist()
        first = max(first, 0)
        records: np.ndarray = self._arena[first : first + count * width].reshape(count, width)
        return records

    def __getitem__(self, name: str) -> np.ndarray:
        values: np.ndarray = self._chunks[..., _fields().slot(_NUMBER_FIELDS[name])]
        return values

    @property
    def has_statistics(self) -> np.ndarray:
        """Which chunks have Statistics, with anything in them; bool."""
        present: np.ndarray = self._chunks[..., _fields().slot(f"{_META}.statistics")] > 0
        return present

    @property
    def has_metadata(self) -> np.ndarray:
        """Which chunks have metadata that can be read, as encrypted ones do not; bool."""
        return self._has_meta

    def count_encodings(self, leaf: int) -> Counter[str]:
        """Count the chunks of a leaf that have each encoding."""
        slot = _fields().slot(_LIST_FIELDS[0])
        found: Counter[int] = Counter()
        for first, count in self._chunks[:, leaf, slot : slot + 2].tolist():
            found.update(set(self._arena[max(first, 0) : max(first, 0) + count].tolist()))
        return Counter({_enum_name("Encoding", number): count for number, count in found.items()})

    def count_data_pages(self, leaf: int) -> list[Counter[int] | None]:
        """Count the data pages of each chunk of a leaf by their encodings (numbers); None where it does not tell."""
        wanted = _fields()
        slot, record = wanted.slot(_LIST_FIELDS[1]), wanted.record_layout(_LIST_FIELDS[1])
        places = [record.slots[name].word for name in ("page_type", "encoding", "count")]
        found: list[Counter[int] | None] = []
        for chunk in self._chunks[:, leaf]:
            stats = self._struct_list(chunk, slot, wanted, _LIST_FIELDS[1])[:, places].tolist()
            pages: Counter[int] = Counter()
            for kind, encoding, count in stats:
                if kind in _DATA_PAGES and count > 0:
                    pages[encoding] += count
            found.append(pages if stats else None)
        return found

    def count_non_null(self, leaf: int) -> np.ndarray:
        """Count the values of each chunk of a leaf that are no nulls, by its level histogram; -1 where it has none."""
        slot, found = _fields().slot(_LIST_FIELDS[2]), np.full(len(self._chunks), -1, np.int64)
        num_values = self["num_values"][:, leaf].tolist()
        for group, (first, count) in enumerate(self._chunks[:, leaf, slot : slot + 2].tolist()):
            levels = self._arena[max(first, 0) : max(first, 0) + count].tolist()
            if levels and min(levels) >= 0 and sum(levels) == num_values[group]:
                found[group] = levels[-1]
        return found

    def sorting_columns(self) -> list[list[tuple[int, bool]]]:
        """Give for each row group the leaves that it is said to be sorted by, and whether downwards."""
        wanted = _fields()
        record = wanted.record_layout(_ROW_GROUP_FIELDS[0])
        places = [record.slots[name].word for name in ("column_idx", "descending")]
        slot = wanted.slot(_ROW_GROUP_FIELDS[0])
        return [
            [
                (leaf, bool(down))
                for leaf, down in self._struct_list(group, slot, wanted, _ROW_GROUP_FIELDS[0])[:, places].tolist()
            ]
            for group in self._groups
        ]


def count_codecs(codecs: Sequence[int] | np.ndarray) -> Counter[str]:
    """Count codecs by their names."""
    return Counter(_enum_name("CompressionCodec", int(number)) for number in codecs)


def name_encodings(pages: Counter[int]) -> Counter[str]:
    """Name the encodings that pages are counted by."""
    return Counter({_enum_name("Encoding", number): count for number, count in pages.items()})


def has_only_dictionary(pages: Counter[int] | None) -> bool:
    """Tell whether all data pages of a chunk have indices into its dictionary, as its pages are counted."""
    return bool(pages) and not set(pages or ()) - set(_DICTIONARY_ENCODINGS)


def count_dictionary_pages(pages: Counter[int]) -> int:
    """Count the pages with indices into a dictionary."""
    return sum(count for encoding, count in pages.items() if encoding in _DICTIONARY_ENCODINGS)


@lru_cache(maxsize=256)
def _enum_name(enum: str, number: int) -> str:
    value: Any = enum_value(enum, number)
    return getattr(value, "name", str(value))
