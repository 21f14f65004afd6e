"""Profile one column of one file: footer and page indexes first, data only where they do not suffice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from numparq.errors import ParquetError
from numparq.expr.sort_keys import key_domain
from numparq.format.column_order import leaf_order
from numparq.format.open_file import OpenFile
from numparq.format.physical_type import BYTE_ARRAY
from numparq.format.schema import Leaf
from numparq.format.writer_quirks import MIN_MAX, NULL_COUNT, statistics_quirks
from numparq.prune.index_reader import COLUMN_INDEX, OFFSET_INDEX
from numparq.prune.statistics import row_group_statistics
from numparq.util.pluralize import pluralize

from .bounds import trusted_key_bounds
from .chunk_metadata import (
    ChunkMetadataTable,
    count_codecs,
    count_dictionary_pages,
    has_only_dictionary,
    name_encodings,
)
from .distinct import DistinctSketch, hash_keys
from .lookups import prunable_row_groups
from .page_index import FilePageIndexes
from .partial_profile import PartialColumnProfile, ValueSummary
from .value_kind import ValueKind, type_names, value_kind
from .values import ChunkValueSummary, summarize_chunk, summarize_dictionary

UNKNOWN = -1


class ProfileOptions(NamedTuple):
    """Options for profiling a file.

    Attributes
    ----------
    data : bool or "auto"
        Whether to decode column chunks: all, none, or those whose footers and dictionaries do not suffice.
    verify_crc : bool
        Whether to verify page checksums.
    threads : int
        Number of threads that decode a chunk.
    """

    data: bool | str = "auto"
    verify_crc: bool = True
    threads: int = 1


class ColumnProfiler:
    """Profile of one column of one file, built when the object is made.

    The results are `partial` and `troubles`, the messages of what could not be read.
    """

    def __init__(
        self,
        file: OpenFile,
        ordinal: int,
        leaf: Leaf,
        chunk_metadata: ChunkMetadataTable,
        pages: FilePageIndexes,
        options: ProfileOptions,
    ) -> None:
        self._file, self._ordinal, self._leaf, self._facts, self._pages, self._how = (
            file,
            ordinal,
            leaf,
            chunk_metadata,
            pages,
            options,
        )
        self.partial = PartialColumnProfile((ordinal, leaf.index), is_nested=leaf.is_nested)
        self.troubles: list[str] = []
        self._groups = range(file.num_row_groups)
        self._num_values = np.maximum(chunk_metadata["num_values"][:, leaf.index], 0)
        self._profile_storage()
        try:
            self._kind: ValueKind = value_kind(leaf)
        except ParquetError as error:
            self.troubles.append(str(error))
            return
        self._profile_statistics()
        self._read_data()
        self._summarize()

    # --- storage ----------------------------------------------------------------------------------------------------

    def _profile_storage(self) -> None:
        part, facts, at = self.partial, self._facts, self._leaf.index
        part.types[type_names(self._leaf)] += len(self._groups)
        part.codecs += count_codecs(facts["codec"][facts.has_metadata[:, at], at])
        part.encodings += facts.count_encodings(at)
        part.chunks = len(self._groups)
        part.num_values = int(self._num_values.sum())
        part.compressed = int(np.maximum(facts["compressed"][:, at], 0).sum())
        part.uncompressed = int(np.maximum(facts["uncompressed"][:, at], 0).sum())
        part.with_statistics = int(facts.has_statistics[:, at].sum())
        part.with_column_index = self._pages.count_indexes(COLUMN_INDEX, self._leaf)
        part.with_offset_index = self._pages.count_indexes(OFFSET_INDEX, self._leaf)
        blooms = facts["bloom_offset"][:, at] > 0
        part.with_bloom, part.bloom_bytes = int(blooms.sum()), int(facts["bloom_length"][blooms, at].clip(0).sum())
        self._page_counts = facts.count_data_pages(at)
        told = [pages for pages in self._page_counts if pages]
        part.paged, part.pages = len(told), sum(sum(pages.values()) for pages in told)
        part.dictionary_pages = sum(map(count_dictionary_pages, told))
        part.page_encodings = name_encodings(sum(told, Counter()))

    # --- statistics -------------------------------------------------------------------------------------------------

    def _profile_statistics(self) -> None:
        leaf, facts, at = self._leaf, self._facts, self._leaf.index
        runs = row_group_statistics(self._file.footer, leaf, self._groups)
        self._bounds = trusted_key_bounds(runs, leaf, self._kind, key_domain(leaf))
        self._nulls = self._trusted_null_counts(runs.null_counts).copy()
        self._nans = runs.nan_counts.copy() if self._kind.key_dtype == "float64" else np.zeros_like(self._num_values)
        flags = facts["low_exact"][:, at], facts["high_exact"][:, at]
        # Without is_min_value_exact, bounds of fixed size are exact; those of BYTE_ARRAY may be truncated.
        self._low_exact, self._high_exact = (flag == 1 if leaf.physical == BYTE_ARRAY else flag != 0 for flag in flags)
        for bug in statistics_quirks(self._file.footer.created_by, leaf):
            if bug.name and {MIN_MAX, NULL_COUNT} & set(bug.untrusted) and self.partial.with_statistics:
                what = "bounds" if MIN_MAX in bug.untrusted else "null counts"
                self.partial.distrusted[f"{what}: {bug.why}"] += self.partial.with_statistics

    def _trusted_null_counts(self, said: np.ndarray) -> np.ndarray:
        """Return the null count of each chunk, `UNKNOWN` if it is not certain.

        For nested leaf columns, writers disagree on what counts as a null; level histograms are unambiguous.
        """
        leaf = self._leaf
        if not leaf.max_definition_level:
            return np.zeros_like(self._num_values)
        if not leaf.is_nested:
            return said
        present = self._facts.count_non_null(leaf.index)
        counted = np.where(present >= 0, self._num_values - present, UNKNOWN)
        return np.where((counted < 0) & self._file.is_written_by_numparq, said, counted)

    # --- data -------------------------------------------------------------------------------------------------------

    def _read_data(self) -> None:
        self._read: dict[int, ChunkValueSummary] = {}
        self._sketches: dict[int, tuple[DistinctSketch, bool]] = {}
        lengths = self._facts["text_bytes"][:, self._leaf.index].tolist()
        self._text: list[int | None] = [length if length >= 0 else None for length in lengths]
        for group in self._groups:
            try:
                self._read_group(group)
            except (ParquetError, OSError) as error:
                self.troubles.append(str(error))

    def _read_group(self, group: int) -> None:
        if self._how.data is not True or not self._num_values[group]:
            self._count_constant(group)
        if self._how.data == "auto" and group not in self._sketches and has_only_dictionary(self._page_counts[group]):
            first = int(self._facts["data_page"][group, self._leaf.index])
            found = summarize_dictionary(self._file, self._leaf, self._kind, group, first)
            if found is not None:
                self._add_dictionary(group, found)
        if not self._num_values[group]:
            return
        if self._how.data is True or (self._how.data == "auto" and self._needs_data(group)):
            found = summarize_chunk(self._file, self._leaf, self._kind, group, self._how.verify_crc, self._how.threads)
            self._add_values(group, found)

    def _is_empty(self, group: int) -> bool:
        return not self._num_values[group] or bool(self._nulls[group] == self._num_values[group])

    def _needs_data(self, group: int) -> bool:
        if self._is_empty(group):
            return False
        has_order = leaf_order(self._leaf).kind != "none"
        lacks_bounds = has_order and not self._bounds.known[group] and not self._is_all_nan(group)
        return bool(self._nulls[group] < 0 or self._nans[group] < 0 or lacks_bounds or group not in self._sketches)

    def _is_all_nan(self, group: int) -> bool:
        return bool(self._nans[group] > 0 and self._nans[group] == self._num_values[group] - self._nulls[group])

    def _count_constant(self, group: int) -> None:
        """Count a chunk that needs no reading: no values, or exact bounds that are equal, or bounds of booleans."""
        if self._is_empty(group):
            self._sketches[group] = DistinctSketch(), True
            return
        bounds, has_values = self._bounds, self._nulls[group] >= 0
        if not (bounds.known[group] and has_values and self._low_exact[group] and self._high_exact[group]):
            return
        low, high = bounds.lows[group], bounds.highs[group]
        if self._kind.key_dtype == "float64" or self._kind.name.startswith("bytes("):
            return  # a zero bound stands for -0.0 and 0.0, and chunks may have NaNs
        if low == high or self._kind.name == "bool":
            self._sketches[group] = DistinctSketch.from_hashes(hash_keys(self._kind, [low, high])), True

    def _add_dictionary(self, group: int, found: ChunkValueSummary) -> None:
        self._sketches[group] = found.sketch, False
        self.partial.min_length = _choose_present(min, self.partial.min_length, found.min_length)
        self.partial.max_length = _choose_present(max, self.partial.max_length, found.max_length)
        if not found.nan_count:
            self._nans[group] = 0
        if not self._bounds.known[group] and found.low is not None:
            self._set_bounds(group, found, exact=False)

    def _add_values(self, group: int, found: ChunkValueSummary) -> None:
        nulls = int(self._num_values[group]) - found.num_non_null
        if self._nulls[group] >= 0 and nulls != self._nulls[group]:
            self._report_contradiction(
                group, f"null_count is {self._nulls[group]:,}, but the column chunk has {pluralize(nulls, 'null')}"
            )
        bounds = self._bounds
        if (
            bounds.known[group]
            and found.low is not None
            and (found.low < bounds.lows[group] or found.high > bounds.highs[group])
        ):
            self._report_contradiction(group, "some values are outside the bounds")
        self._read[group] = found
        self._nulls[group], self._nans[group] = nulls, found.nan_count
        self._sketches[group] = found.sketch, True
        self._text[group] = found.num_bytes
        self._set_bounds(group, found, exact=True)

    def _report_contradiction(self, group: int, message: str) -> None:
        name = self._file.source.name
        error = ParquetError(f"the statistics are wrong: {message}", file=name, row_group=group, column=self._leaf.name)
        self.troubles.append(str(error))

    def _set_bounds(self, group: int, found: ChunkValueSummary, exact: bool) -> None:
        bounds = self._bounds
        bounds.known[group] = found.low is not None
        if found.low is not None:
            bounds.lows[group], bounds.highs[group] = found.low, found.high
            self._low_exact[group] = self._high_exact[group] = exact

    # --- summary ----------------------------------------------------------------------------------------------------

    def _summarize(self) -> None:
        part, nulls = self.partial, self._nulls
        known = nulls >= 0
        part.nulls, part.nulls_unknown = int(nulls[known].sum()), int(self._num_values[~known].sum())
        told = self._nans >= 0
        part.nans, part.nans_unknown = int(self._nans[told].sum()), int(self._non_null_counts()[~told].sum())
        self._add_lengths()
        orders = [found.is_sorted for found in self._read.values() if found.is_sorted is not None]
        part.read, part.in_order, part.out_of_order = len(self._read), sum(orders), len(orders) - sum(orders)
        part.kinds = {self._kind.name: self._kind}
        part.values = {self._kind.name: self._merge_values()}
        num_rows = self._file.footer.row_group_num_rows.tolist()
        chunks = [
            self._pages.summarize(group, self._leaf, rows) for group, rows in zip(self._groups, num_rows, strict=True)
        ]
        orders_of_pages = [chunk.order for chunk in chunks if chunk.order is not None]
        part.pages_in_order = sum(order != 0 for order in orders_of_pages)
        part.pages_out_of_order = len(orders_of_pages) - part.pages_in_order
        if self._groups:
            part.row_groups = {
                self._ordinal: prunable_row_groups(
                    self._kind, self._bounds, self._non_null_counts(), chunks, self._facts, self._leaf
                )
            }

    def _non_null_counts(self) -> np.ndarray:
        """Return the number of non-null values of each chunk; where nulls are unknown, of all values."""
        counts: np.ndarray = self._num_values - np.maximum(self._nulls, 0)
        return counts

    def _add_lengths(self) -> None:
        part = self.partial
        if self._leaf.physical != BYTE_ARRAY:
            return
        for group, length in enumerate(self._text):
            if length is not None and self._nulls[group] >= 0:
                part.text_bytes += length
                part.text_values += int(self._non_null_counts()[group])
        read = self._read.values()
        part.min_length = _choose_present(min, part.min_length, *(found.min_length for found in read))
        part.max_length = _choose_present(max, part.max_length, *(found.max_length for found in read))

    def _merge_values(self) -> ValueSummary:
        """Merge the bounds and sketches of all chunks."""
        found = ValueSummary()
        values = self._non_null_counts() - np.maximum(self._nans, 0)
        for group, count in enumerate(values.tolist()):
            sketch = self._sketches.get(group)
            is_known = bool(self._bounds.known[group]) and count > 0
            found = found + ValueSummary(
                self._bounds.lows[group] if is_known else None,
                self._bounds.highs[group] if is_known else None,
                bool(self._low_exact[group]) and is_known,
                bool(self._high_exact[group]) and is_known,
                count if is_known else 0,
                0 if is_known else count,
                DistinctSketch() if sketch is None else sketch[0],
                0 if sketch is None else count,
                count if sketch is None else 0,
                sketch is None or sketch[1],
            )
        return found


def _choose_present(choose: Callable[[Sequence[int]], int], *items: int | None) -> int | None:
    present = [item for item in items if item is not None]
    return choose(present) if present else None


def leaves_by_path(leaves: Sequence[Leaf]) -> dict[tuple[str, ...], Leaf]:
    """Return leaf columns by path; the first one wins for a repeated path."""
    return {leaf.path: leaf for leaf in reversed(leaves)}
