"""Profile one column of one file: storage by the footer, pages by their indexes, values by their summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from numparq.errors import ParquetError
from numparq.format.open_file import OpenFile
from numparq.format.physical_type import BYTE_ARRAY
from numparq.format.schema import Leaf
from numparq.format.thrift.idl import enum_value
from numparq.format.writer_quirks import MIN_MAX, NULL_COUNT, statistics_quirks
from numparq.kernels.enums import DATA_PAGE, DATA_PAGE_V2
from numparq.prune.index_reader import COLUMN_INDEX, OFFSET_INDEX
from numparq.prune.lookup_model import PrunableContainers
from numparq.skipping.summary.chunk_pages import FilePageIndexes
from numparq.skipping.summary.chunk_values import ChunkValues
from numparq.skipping.summary.column_climb import ColumnClimb, SummaryNeeds
from numparq.skipping.summary.distinct import DistinctSketch
from numparq.skipping.summary.value_kind import type_names
from numparq.skipping.summary.value_summary import ValueSummary, merge_max, merge_min

from .partial_profile import PartialColumnProfile

_DICTIONARY_ENCODINGS = ("PLAIN_DICTIONARY", "RLE_DICTIONARY")


class ChunkDigest(NamedTuple):
    """Figures of the values of a chunk, or of the entries of its dictionary."""

    sketch: DistinctSketch
    is_sorted: bool | None
    num_bytes: int
    min_length: int | None
    max_length: int | None

    @classmethod
    def from_values(cls, values: ChunkValues) -> ChunkDigest:
        """Compute the figures."""
        return cls(values.sketch(), values.is_sorted, *values.lengths())


def profile_column(
    file: OpenFile, ordinal: int, leaf: Leaf, pages: FilePageIndexes, needs: SummaryNeeds
) -> tuple[PartialColumnProfile, list[str]]:
    """Return the partial profile of one column of one file, and the messages of what could not be read."""
    partial = PartialColumnProfile((ordinal, leaf.index), is_nested=leaf.is_nested)
    partial.is_index = file.pandas_metadata is not None and leaf.path[0] in file.pandas_metadata.index_fields
    bloom_bytes = _add_storage(partial, file, leaf, pages)
    try:
        climb = ColumnClimb(file, leaf)
    except ParquetError as error:
        return partial, [str(error)]
    troubles = []
    for group in range(file.num_row_groups):
        try:
            climb.climb(group, needs)
        except (ParquetError, OSError) as error:
            troubles.append(str(error))
    _add_values(partial, file, climb)
    if file.num_row_groups:
        _add_row_groups(partial, file, climb, pages, bloom_bytes)
    return partial, troubles + [str(error) for error in climb.contradictions]


def _add_storage(partial: PartialColumnProfile, file: OpenFile, leaf: Leaf, pages: FilePageIndexes) -> np.ndarray:
    """Add what the footer says of the chunks; return the bytes of each Bloom filter, 0 without one."""
    counts, names = partial.counts, partial.names
    bloom_bytes = np.zeros(file.num_row_groups, np.int64)
    names["types"][type_names(leaf)] += file.num_row_groups
    counts["chunks"] = file.num_row_groups
    counts["with_column_index"] = pages.count_indexes(COLUMN_INDEX, leaf)
    counts["with_offset_index"] = pages.count_indexes(OFFSET_INDEX, leaf)
    for group in range(file.num_row_groups):
        metadata = file.footer.chunks.chunk_record(group, leaf.index).meta_data
        if metadata is None:  # encrypted
            continue
        counts["num_values"] += max(metadata.num_values or 0, 0)
        counts["compressed"] += max(metadata.total_compressed_size or 0, 0)
        counts["uncompressed"] += max(metadata.total_uncompressed_size or 0, 0)
        counts["with_statistics"] += metadata.statistics is not None and metadata.statistics.which() is not None
        if (metadata.bloom_filter_offset or 0) > 0:
            counts["with_bloom"] += 1
            counts["bloom_bytes"] += max(metadata.bloom_filter_length or 0, 0)
            bloom_bytes[group] = max(metadata.bloom_filter_length or 0, 1)
        names["codecs"][_enum_name("CompressionCodec", metadata.codec)] += 1
        names["encodings"].update({_enum_name("Encoding", encoding) for encoding in metadata.encodings or ()})
        if metadata.encoding_stats:
            _add_pages(partial, metadata.encoding_stats)
    for quirk in statistics_quirks(file.footer.created_by, leaf):
        if quirk.name and {MIN_MAX, NULL_COUNT} & set(quirk.untrusted) and counts["with_statistics"]:
            kind = "bounds" if MIN_MAX in quirk.untrusted else "null counts"
            names["distrusted"][f"{kind}: {quirk.why}"] += counts["with_statistics"]
    return bloom_bytes


def _add_pages(partial: PartialColumnProfile, encoding_stats: Sequence[Any]) -> None:
    pages: Counter[str] = Counter()
    for stat in encoding_stats:
        if stat.page_type in (DATA_PAGE, DATA_PAGE_V2) and stat.count > 0:
            pages[_enum_name("Encoding", stat.encoding)] += stat.count
    partial.names["page_encodings"] += pages
    partial.counts["paged"] += 1
    partial.counts["pages"] += sum(pages.values())
    partial.counts["dictionary_pages"] += sum(pages[name] for name in _DICTIONARY_ENCODINGS)


@lru_cache(maxsize=256)
def _enum_name(enum: str, number: int) -> str:
    value: Any = enum_value(enum, int(number))
    return getattr(value, "name", str(value))


def _add_values(partial: PartialColumnProfile, file: OpenFile, climb: ColumnClimb) -> None:
    counts, present = partial.counts, climb.num_present
    counts["nulls"] = int(climb.nulls[climb.nulls >= 0].sum())
    counts["nulls_unknown"] = int(np.maximum(climb.num_values, 0)[climb.nulls < 0].sum())
    counts["nans"] = int(climb.nans[climb.nans >= 0].sum())
    counts["nans_unknown"] = int(present[climb.nans < 0].sum())
    summary, is_binary = ValueSummary(), climb.leaf.physical == BYTE_ARRAY
    table = file.footer.chunks.read_table(range(file.num_row_groups), [climb.leaf.index])
    string_bytes = table["unencoded_byte_array_data_bytes"][:, 0]
    for group, count in enumerate((present - np.maximum(climb.nans, 0)).tolist()):
        digest, source = climb.distinct.get(group, (None, ""))
        is_read = digest is not None and source == "data"
        counts["read"] += is_read
        if is_read and digest.is_sorted is not None:
            counts["rows_in_order" if digest.is_sorted else "rows_out_of_order"] += 1
        num_bytes = digest.num_bytes if is_read else int(string_bytes[group])
        if is_binary and num_bytes >= 0 and climb.nulls[group] >= 0:
            counts["text_bytes"] += num_bytes
            counts["text_values"] += int(present[group])
        if is_binary and digest is not None and source != "footer":
            partial.min_length = merge_min(partial.min_length, digest.min_length)
            partial.max_length = merge_max(partial.max_length, digest.max_length)
        is_known = bool(climb.bounds.known[group]) and count > 0
        summary += ValueSummary(
            (climb.bounds.lows[group], not climb.low_exact[group]) if is_known else None,
            (climb.bounds.highs[group], bool(climb.high_exact[group])) if is_known else None,
            0 if is_known else count,
            count if digest is None else 0,
            DistinctSketch() if digest is None else digest.sketch,
            source != "dictionary",
        )
    counts["distinct_in_files"] = round(summary.sketch.count())
    partial.kinds, partial.values = {climb.kind.name: climb.kind}, {climb.kind.name: summary}


def _add_row_groups(
    partial: PartialColumnProfile,
    file: OpenFile,
    climb: ColumnClimb,
    indexes: FilePageIndexes,
    bloom_bytes: np.ndarray,
) -> None:
    num_rows, leaf = file.footer.row_group_num_rows.tolist(), climb.leaf
    chunks = [indexes.summarize(group, leaf, rows) for group, rows in enumerate(num_rows)]
    orders = [chunk.order for chunk in chunks if chunk.order is not None]
    partial.counts["pages_in_order"] = sum(order != 0 for order in orders)
    partial.counts["pages_out_of_order"] = orders.count(0)
    table = file.footer.chunks.read_table(range(file.num_row_groups), range(file.footer.num_leaves))
    sizes = np.maximum(table["total_compressed_size"], 0).sum(axis=1)
    num_pages, byte_share, page_share = np.array([chunk[:3] for chunk in chunks], np.float64).T
    ones = np.ones(len(sizes))
    ordinal = partial.position[0]
    partial.row_groups[ordinal] = PrunableContainers(
        *climb.footer_bounds,
        climb.num_present.astype(np.float64),
        np.stack([sizes, ones, num_pages], axis=1),
        np.stack([byte_share, ones, page_share], axis=1),
        bloom_bytes,
        np.full(len(sizes), ordinal),
    )
