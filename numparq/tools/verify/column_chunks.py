"""Check a column chunk: offsets, counts, encodings and statistics against its pages (ColumnMetaData)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from numparq.column.scratch import Scratch
from numparq.errors import ParquetError
from numparq.format.column_order import ColumnOrder
from numparq.format.page_bounds import PageBounds
from numparq.format.schema import Leaf
from numparq.format.statistics import ValueBounds, merge_page_bounds
from numparq.format.thrift.idl import enum_value
from numparq.format.writer_quirks import PageQuirks
from numparq.io.sibling_files import SiblingFiles
from numparq.io.source import Source
from numparq.util.pluralize import agree_verb, pluralize

from .bloom_filter import read_bloom_filter
from .deviations import Findings, Location
from .encoding_stats import check_encodings
from .page_index import check_column_index, check_offset_index, read_page_index
from .page_values import DistinctValueCounter
from .page_walk import read_page, walk_chunk_pages
from .pages import CheckedPage, DecodeBudget, PageChecker
from .statistics import ActualStatistics, BoundsChecker, check_size_statistics, check_statistics
from .stored_chunk import PlainChunk, SealedChunk, StoredChunk

MAX_DECODED_PER_BYTE = 256  # decoded bytes and values for each byte of the file
_MAGIC_BYTES = 4

FileRegion = tuple[int, int, str, Location]  # begin, end, description, location


@dataclass
class ColumnChunkChecker:
    """Checks one column chunk.

    Attributes
    ----------
    data_end : int
        End of the data, where the footer begins; in an external file, its size.
    num_rows : int
        Rows of the row group.
    chunk : dict
        ColumnChunk struct.
    quirks : PageQuirks
        Known quirks of the writer.
    regions : dict of str to list of FileRegion
        Byte ranges in use by file path (empty: the file itself); those of the chunk are added.
    collectors : list
        Callables that get each decoded page.
    sibling_files : SiblingFiles or None
        Opener of external column chunks; None: they are not checked.
    sealed : SealedChunk or None
        The chunk's modules, if it is encrypted.
    """

    source: Source
    data_end: int
    leaf: Leaf
    order: ColumnOrder
    num_rows: int
    chunk: dict[str, Any]
    quirks: PageQuirks
    location: Location
    findings: Findings
    scratch: Scratch
    budget: DecodeBudget
    regions: dict[str, list[FileRegion]]
    collectors: list[Any] = field(default_factory=list)
    sibling_files: SiblingFiles | None = None
    sealed: SealedChunk | None = None
    _excess: int = field(default=0, init=False)  # bytes behind the last page that total_compressed_size counts

    def run(self) -> None:
        """Check the metadata of the chunk, then its pages, statistics, indexes and Bloom filter."""
        facts = self.chunk.get("meta_data")
        if facts is None:
            self._add("chunk-metadata", "the footer has no metadata of the column chunk")
            return
        if facts.get("type") != self.leaf.physical:
            types = [str(enum_value("Type", number)) for number in (facts.get("type", -1), self.leaf.physical)]
            self._add("chunk-type", f"the column chunk has physical type {types[0]}, but the schema has {types[1]}")
            return
        if tuple(facts.get("path_in_schema", ())) != self.leaf.path:
            path = ".".join(facts.get("path_in_schema", ()))
            self._add(
                "chunk-path",
                f"path_in_schema is {path!r}, but the schema has column {self.leaf.name!r} here",
            )
        with self._open_chunk_file() as source:
            bounds = None if source is None else self._byte_range(facts)
            if bounds is not None:
                self._check_pages(facts, *bounds)

    def _add(self, check: str, message: str) -> None:
        self.findings.add(check, message, self.location)

    @contextmanager
    def _open_chunk_file(self) -> Iterator[Source | None]:
        """Open the file of the chunk; yield None if it cannot be opened or is not to be checked."""
        path = self.chunk.get("file_path")
        if not path:
            yield self.source
            return
        if self.sibling_files is None:
            self._add(
                "not-checked", f"the column chunk is in another file, {path!r}; external_files=True checks it, too"
            )
            yield None
            return
        try:
            source = self.sibling_files.open(path)
        except ParquetError as error:
            self._add("chunk-file", error.message)
            yield None
            return
        try:
            if path not in self.regions:
                self.regions[path] = []
                self.budget.remaining += MAX_DECODED_PER_BYTE * source.size
            self.source, self.data_end = source, source.size
            yield source
        finally:
            source.close()

    def _add_region(self, begin: int, end: int, what: str) -> None:
        """Record a byte range of the chunk."""
        self.regions.setdefault(self.chunk.get("file_path", ""), []).append((begin, end, what, self.location))

    def _byte_range(self, metadata: dict[str, Any]) -> tuple[int, int] | None:
        """Return the chunk's byte range by the footer; None if the footer has no valid one."""
        first, size = metadata.get("data_page_offset"), metadata.get("total_compressed_size")
        if first is None or size is None or "codec" not in metadata or "num_values" not in metadata:
            return None  # reported as thrift-required
        dictionary = metadata.get("dictionary_page_offset")
        start = first
        if dictionary == 0:
            self._add(
                "dictionary-offset-legacy",
                "dictionary_page_offset is 0, as some writers store it without a dictionary page",
            )
        elif dictionary is not None and (dictionary < first or first == 0):
            start = dictionary
        if first == 0 and not metadata["num_values"] and (start or not size):
            self._add("data-offset-legacy", "data_page_offset is 0, as some writers store it without data pages")
            if not start:
                return None
        end = start + size
        if start < _MAGIC_BYTES or size < 0 or end > self.data_end:
            self._add(
                "chunk-place",
                f"the column chunk is at bytes {start:,} to {end:,} by the footer, but the data of the file "
                f"end at {self.data_end:,}",
            )
            if not _MAGIC_BYTES <= start < self.data_end or size < 0:
                return None
            end = min(end, self.data_end)
        if size:
            self._add_region(start, end, "the pages")
        return start, end

    # --- pages --------------------------------------------------------------------------------------------------------

    @property
    def _stored(self) -> StoredChunk:
        return self.sealed or PlainChunk(self.source)

    def _check_pages(self, metadata: dict[str, Any], start: int, end: int) -> None:
        offsets = self._read_index("OffsetIndex")
        columns = self._read_index("ColumnIndex")
        bloom, length = read_bloom_filter(
            self._stored, metadata, self.leaf, self.data_end, self.findings, self.location
        )
        if length:
            place = metadata["bloom_filter_offset"]
            self._add_region(place, place + length, "the Bloom filter")
        distinct = DistinctValueCounter(self.leaf) if "distinct_count" in metadata.get("statistics", {}) else None
        watchers = [*self.collectors, *(each for each in (bloom, distinct) if each is not None)]
        pages = PageChecker(
            self.source,
            self._stored,
            self.leaf,
            self.order,
            metadata["codec"],
            self.location,
            self.findings,
            self.scratch,
            self.budget,
            self.quirks,
            watchers,
        )
        resume = sorted(location.get("offset", 0) for location in offsets["page_locations"]) if offsets else []
        complete = self._walk_pages(pages, start, end, resume)
        whole = complete and self._check_counts(metadata, pages)
        if complete:
            self._check_offsets(metadata, pages, start)
            check_encodings(metadata, self.leaf, pages, self.findings, self.location)
        self._check_statistics(metadata, pages, distinct, whole)
        if bloom is not None:
            bloom.report(self.findings, self.location)
        if complete:  # a skipped page would shift all items
            self._check_indexes(offsets, columns, pages)

    def _read_index(self, struct: str) -> dict[str, Any] | None:
        found = read_page_index(struct, self._stored, self.chunk, self.data_end, self.findings, self.location)
        if found is not None:
            stem = "column_index" if struct == "ColumnIndex" else "offset_index"
            offset = self.chunk[f"{stem}_offset"]
            self._add_region(offset, offset + self.chunk[f"{stem}_length"], f"the {stem.replace('_', ' ')}")
        return found

    def _walk_pages(self, pages: PageChecker, start: int, end: int, resume: list[int]) -> bool:
        """Check the pages; return whether all page headers were readable."""
        furthest = min(end + self.quirks.missing_bytes, self.data_end)
        walk = walk_chunk_pages(self._stored, start, furthest, self.data_end, resume, self.findings, self.location)
        complete = True
        wanted, entries = self.chunk["meta_data"]["num_values"], 0
        for page in walk:
            if page is None:
                complete = False
                continue
            if page.offset >= end and entries >= wanted:
                break  # all values found: the footer's size misses no page (PARQUET-816)
            before = len(pages.pages)
            pages.check(page)
            entries += sum(facts.num_entries for facts in pages.pages[before:])
            if entries >= wanted and page.end < end and not self._is_page(page.ordinal + 1, page.end, end):
                self._end_at(start, end, page.end)
                break
            if self.budget.remaining < 0:
                self._add(
                    "not-checked", "the file declares far more data than its size allows; the rest was not checked"
                )
                return False
        return complete

    def _is_page(self, ordinal: int, position: int, end: int) -> bool:
        """Whether a whole page, the chunk's `ordinal`-th, begins at a position of the chunk, which ends at `end`."""
        quiet = Findings()
        page = read_page(self._stored, position, self.data_end, quiet, self.location._replace(page=ordinal))
        return page is not None and page.end <= end and not quiet.deviations

    def _end_at(self, start: int, end: int, position: int) -> None:
        """End the chunk, whose size counts the bytes to `end`, behind its last page."""
        self._excess = end - position
        self._add(
            "chunk-bytes",
            f"{pluralize(self._excess, 'byte')} {agree_verb(self._excess, 'follow')} the last page, by the "
            "size of the column chunk",
        )
        regions = self.regions[self.chunk.get("file_path", "")]
        at = regions.index((start, end, "the pages", self.location))
        regions[at] = start, position, "the pages", self.location

    def _check_counts(self, metadata: dict[str, Any], pages: PageChecker) -> bool:
        """Compare counts and sizes with those of the pages; return whether all pages could be decoded."""
        found = sum(page.num_entries for page in pages.pages)
        if found != metadata["num_values"]:
            self._add(
                "chunk-values",
                f"num_values is {metadata['num_values']:,}, but the pages have {pluralize(found, 'value')}",
            )
        whole = all(page.num_values is not None for page in pages.pages)
        rows = sum(page.num_rows or 0 for page in pages.pages)
        if whole and rows != self.num_rows:
            self._add(
                "chunk-rows",
                f"the row group has {pluralize(self.num_rows, 'row')}, but {rows:,} "
                f"{agree_verb(rows, 'begin')} in the pages",
            )
        stored, plain = pages.sizes
        for name, check, actual in (
            ("total_compressed_size", "chunk-compressed-size", stored),
            ("total_uncompressed_size", "chunk-uncompressed-size", plain),
        ):
            said = metadata.get(name)
            if said is None or said in (actual, actual + self._excess):
                continue
            message = f"{name} is {said:,}, but the pages have {pluralize(actual, 'byte')}"
            if 0 <= actual - said <= self.quirks.missing_bytes:
                self._add("size-legacy", f"{message} (PARQUET-816)")
            else:
                self._add(check, message)
        return whole

    def _check_offsets(self, metadata: dict[str, Any], pages: PageChecker, start: int) -> None:
        if pages.pages:
            first = pages.pages[0].stored
            said = metadata["data_page_offset"]
            dictionary = pages.dictionary_page
            if dictionary is not None and said == dictionary.offset and not metadata.get("dictionary_page_offset"):
                self._add(
                    "dictionary-offset-legacy",
                    "data_page_offset is the offset of the dictionary page, as some writers store it",
                )
            elif said != first.offset and first.ordinal <= 1:
                self._add(
                    "chunk-data-offset",
                    f"data_page_offset is {said:,}, but the first data page begins at {first.offset:,}",
                )
        wanted = metadata.get("dictionary_page_offset")
        actual = None if pages.dictionary_page is None else pages.dictionary_page.offset
        if wanted and wanted != actual and (actual is not None or wanted != start or pages.pages):
            there = "the column chunk has none" if actual is None else f"the page begins at {actual:,}"
            self._add("chunk-dictionary-offset", f"dictionary_page_offset is {wanted:,}, but {there}")

    # --- statistics and indexes ---------------------------------------------------------------------------------------

    def _check_statistics(
        self, metadata: dict[str, Any], pages: PageChecker, distinct: DistinctValueCounter | None, whole: bool
    ) -> None:
        """Compare the chunk's statistics with the pages; unless all were decoded, only the bounds."""
        known = [page for page in pages.pages if page.bounds is not None and page.num_values is not None]
        check = BoundsChecker(self.order, self.findings)
        bounds = _merge_bounds(self.order, known)
        nulls = sum(page.num_entries - (page.num_values or 0) for page in known)
        stats = metadata.get("statistics")
        if stats is not None and whole:
            count = None if distinct is None else distinct.count
            check_statistics(stats, ActualStatistics(bounds, nulls, count), check, self.leaf, self.location)
        elif stats is not None and self.order.kind != "none":
            check.check(stats.get("min_value"), stats.get("max_value"), bounds, self.location)
        sizes = metadata.get("size_statistics")
        if sizes is None or not whole:
            return
        definition = [sum(level) for level in zip(*(page.definition_histogram or () for page in known), strict=False)]
        repetition = [sum(level) for level in zip(*(page.repetition_histogram or () for page in known), strict=False)]
        total = sum(page.num_byte_array_bytes or 0 for page in known)
        check_size_statistics(
            sizes,
            self.leaf,
            definition or [0] * (self.leaf.max_definition_level + 1),
            repetition or [0] * (self.leaf.max_repetition_level + 1),
            total,
            self.findings,
            self.location,
        )

    def _check_indexes(
        self, offsets: dict[str, Any] | None, columns: dict[str, Any] | None, pages: PageChecker
    ) -> None:
        if columns is not None and "offset_index_offset" not in self.chunk:
            self._add("column-index-alone", "the column chunk has a column index but no offset index")
        if offsets is not None:
            self.findings.checked_counts["offset indexes"] += 1
            check_offset_index(offsets, self.leaf, pages.pages, self.findings, self.location)
        if columns is not None:
            self.findings.checked_counts["column indexes"] += 1
            check_column_index(columns, self.leaf, pages.pages, BoundsChecker(self.order, self.findings), self.location)


def _merge_bounds(order: ColumnOrder, pages: list[CheckedPage]) -> ValueBounds:
    """Return the common bounds of pages."""
    each = [page.bounds for page in pages if page.bounds is not None]
    nans = [bounds.nan_count or 0 for bounds in each] if order.is_float else None
    return merge_page_bounds(
        PageBounds(
            order,
            [page.num_values or 0 for page in pages],
            [bounds.min_value for bounds in each],
            [bounds.max_value for bounds in each],
            nans,
        )
    )
