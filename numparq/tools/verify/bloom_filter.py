"""Check a Bloom filter: header, length, and every value of its column chunk (BloomFilter.md)."""

from __future__ import annotations

from typing import Any

import numpy as np

from numparq.errors import LimitError
from numparq.format.bloom_filter import BLOCK_BYTES, BloomFilter, hash_values
from numparq.format.physical_type import BOOLEAN
from numparq.format.schema import Leaf
from numparq.util.pluralize import pluralize

from .deviations import Findings, Location
from .modules import ModuleError
from .page_values import PageValues
from .stored_chunk import StoredChunk
from .thrift import ThriftDecodeError

_MAX_HEADER_BYTES = 1 << 10


class BloomFilterChecker:
    """Probes a Bloom filter for the values of a chunk, page by page, and counts those it denies."""

    def __init__(self, leaf: Leaf, bloom_filter: BloomFilter) -> None:
        self._leaf = leaf
        self._filter = bloom_filter
        self._num_probed = 0
        self.num_missing = 0

    def __call__(self, page: PageValues) -> None:
        """Probe for the values of a page; with a dictionary, for the entries that occur."""
        if not page.num_values:
            return
        hashes = hash_values(self._leaf, page.values, page.starts, page.ends)
        if page.codes is not None:
            hashes = hashes[np.unique(page.codes)]
        self._num_probed += len(hashes)
        self.num_missing += int(np.count_nonzero(~np.asarray(self._filter.might_contain(hashes), bool)))

    def report(self, findings: Findings, location: Location) -> None:
        """Add a deviation if the filter denied any value."""
        if self.num_missing:
            findings.add(
                "bloom-value",
                f"the Bloom filter lacks {self.num_missing:,} of {pluralize(self._num_probed, 'value')} of the "
                "column chunk: "
                "readers will not find them",
                location,
            )


def read_bloom_filter(
    chunk: StoredChunk, metadata: dict[str, Any], leaf: Leaf, data_end: int, findings: Findings, location: Location
) -> tuple[BloomFilterChecker | None, int]:
    """Read a chunk's Bloom filter; return its checker (None: missing or unusable) and its length in bytes (0: none)."""
    offset = metadata.get("bloom_filter_offset")
    if offset is None:
        return None, 0
    if not 4 <= offset < data_end:
        findings.add("bloom-place", f"bloom_filter_offset is {offset:,}, outside the data of the file", location)
        return None, 0
    noted: list[tuple[str, str]] = []
    try:
        header, start = chunk.read_struct(
            "BloomFilterHeader",
            offset,
            min(_MAX_HEADER_BYTES, data_end - offset),
            lambda check, text: noted.append((check, text)),
        )
    except ThriftDecodeError as error:
        findings.add(error.check or "bloom-header", f"the header of the Bloom filter cannot be read: {error}", location)
        return None, 0
    size = header.get("numBytes", 0)
    kinds = {**header.get("algorithm", {}), **header.get("hash", {}), **header.get("compression", {})}
    if noted or kinds.keys() != {"BLOCK", "XXHASH", "UNCOMPRESSED"} or size <= 0 or size % BLOCK_BYTES:
        reason = noted[0][1] if noted else f"{pluralize(size, 'byte')} of {', '.join(kinds)}"
        findings.add("bloom-header", f"the header of the Bloom filter is not valid: {reason}", location)
        return None, 0
    stored = size + chunk.bitset_overhead
    if stored > data_end - offset - start:
        findings.add(
            "bloom-place",
            f"the Bloom filter has {pluralize(size, 'byte')} by its header, and ends outside the data of the file",
            location,
        )
        return None, 0
    length = metadata.get("bloom_filter_length")
    if length is not None and length != start + stored:
        findings.add(
            "bloom-length",
            f"the Bloom filter has {pluralize(start + stored, 'byte')}, but bloom_filter_length is {length:,}",
            location,
        )
    if leaf.physical == BOOLEAN:
        findings.add("bloom-header", "the column has a Bloom filter, but BOOLEAN columns can have none", location)
        return None, start + stored
    try:
        bits = chunk.read_bitset(offset + start, size)
    except LimitError as error:
        findings.add("not-checked", error.message, location)
        return None, start + stored
    except ModuleError as error:
        findings.add(error.check, error.message, location)
        return None, start + stored
    findings.checked_counts["Bloom filters"] += 1
    return BloomFilterChecker(leaf, BloomFilter(bits)), start + stored
