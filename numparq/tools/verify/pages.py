"""Check the pages of a column chunk: checksums, counts, encodings, levels, values."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from numparq.column.encodings import ENCODING_PHYSICAL_TYPES
from numparq.column.scratch import Scratch, allocate
from numparq.errors import LimitError
from numparq.format.column_order import ColumnOrder
from numparq.format.page_bounds import compute_page_bounds
from numparq.format.schema import Leaf
from numparq.format.statistics import ValueBounds
from numparq.format.thrift.idl import enum_value, load_idl
from numparq.format.writer_quirks import PageQuirks, null_count_check
from numparq.io.source import Source
from numparq.kernels.enums import (
    BYTE_ARRAY,
    DATA_PAGE,
    DATA_PAGE_V2,
    DICTIONARY_PAGE,
    PLAIN,
    PLAIN_DICTIONARY,
    UNCOMPRESSED,
)
from numparq.kernels.tables import SLACK
from numparq.util.pluralize import agree_verb, pluralize

from .deviations import Findings, Location
from .modules import ModuleError
from .page_decoder import PageDecodeError, PageDecoder
from .page_values import PageDictionary, PageValues
from .page_walk import NOT_COUNTED, StoredPage, has_negative_counts
from .schema_elements import check_value_range
from .statistics import ActualStatistics, BoundsChecker, check_statistics, int96_bounds
from .stored_chunk import StoredChunk

_PAGE_COST = 4096  # minimum cost of a page in the budget
_HEADER_STRUCTS = {
    DATA_PAGE: "DataPageHeader",
    DICTIONARY_PAGE: "DictionaryPageHeader",
    DATA_PAGE_V2: "DataPageHeaderV2",
}


@dataclass
class DecodeBudget:
    """Bytes and values that may still be decoded; limits the time that a hostile file can take."""

    remaining: int

    def spend(self, amount: int) -> bool:
        """Spend `amount`; return whether the budget covered it."""
        self.remaining -= amount
        return self.remaining >= 0


@dataclass
class CheckedPage:
    """Data page with what was decoded of it; None for what could not be.

    Attributes
    ----------
    num_entries : int
        Entries by the page header.
    first_row : int or None
        First row within the row group.
    num_values : int or None
        Non-null values.
    definition_histogram, repetition_histogram : list of int or None
        Histograms of the levels.
    num_byte_array_bytes : int or None
        Total bytes of BYTE_ARRAY values.
    begins_row : bool
        Whether the first entry begins a row.
    """

    stored: StoredPage
    num_entries: int
    first_row: int | None = None
    num_rows: int | None = None
    num_values: int | None = None
    bounds: ValueBounds | None = None
    definition_histogram: list[int] | None = None
    repetition_histogram: list[int] | None = None
    num_byte_array_bytes: int | None = None
    begins_row: bool = True

    @property
    def is_in_list(self) -> bool:
        """Whether the column has repetition levels; False for a page that was not decoded."""
        return len(self.repetition_histogram or ()) > 1

    @property
    def null_count(self) -> int | None:
        """Number of entries without a value."""
        return None if self.num_values is None else self.num_entries - self.num_values


@dataclass
class PageChecker:
    """Checks the pages of one column chunk.

    Attributes
    ----------
    quirks : PageQuirks
        Known quirks of the writer.
    collectors : list
        Callables that get the values of each decoded page.
    pages : list of CheckedPage
        Data pages so far.
    sizes : (int, int)
        Bytes of all pages as stored and uncompressed, headers included.
    """

    source: Source
    chunk: StoredChunk
    leaf: Leaf
    order: ColumnOrder
    codec: int
    location: Location
    findings: Findings
    scratch: Scratch
    budget: DecodeBudget
    quirks: PageQuirks
    collectors: list[Any] = field(default_factory=list)
    pages: list[CheckedPage] = field(default_factory=list)
    dictionary_page: StoredPage | None = None
    sizes: tuple[int, int] = (0, 0)
    _dictionary: PageDictionary | None = None
    _next_row: int | None = 0
    _added: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._decoder = PageDecoder(self.leaf, self.codec, self.scratch, self.quirks)
        self._bounds = BoundsChecker(self.order, self.findings, subject="the statistics in the page header")

    def check(self, page: StoredPage) -> None:
        """Check a page and record its sizes and, for a data page, its values."""
        place = self.location._replace(page=page.ordinal)
        header_size = page.body_offset - page.offset
        self.sizes = (
            self.sizes[0] + page.end - page.offset,
            self.sizes[1] + header_size + page.header["uncompressed_page_size"],
        )
        self.findings.checked_counts["pages"] += 1
        size = page.end - page.body_offset
        if not self.budget.spend(_PAGE_COST + size):
            return
        try:
            raw = allocate(size + SLACK)
            self.source.read_into(page.body_offset, raw[:size])
            raw[size:] = 0
            self._check_crc(page, raw[:size], place)
            if page.header["type"] == DICTIONARY_PAGE:
                self._check_dictionary_page(page, raw, place)
            elif page.header["type"] in (DATA_PAGE, DATA_PAGE_V2):
                self._check_data_page(page, raw, place)
        except MemoryError as error:
            message = error.message if isinstance(error, LimitError) else "not enough memory to check the page"
            self.findings.add("not-checked", message, place)

    def _check_crc(self, page: StoredPage, body: np.ndarray, location: Location) -> None:
        crc = page.header.get("crc")
        if crc is None:
            return
        if crc == 0 and not self.quirks.has_checksums:
            self._add_once("writer-checksum", "the checksum is 0, as Parquet.jl writes it for every page", location)
            return
        self.findings.checked_counts["checksums"] += 1
        actual = zlib.crc32(body.data)
        if crc & 0xFFFFFFFF != actual:
            self.findings.add(
                "page-crc",
                f"the checksum in the header is {crc & 0xFFFFFFFF:08x}, but the bytes have {actual:08x}: "
                "the page is damaged",
                location,
            )

    def _add_once(self, check: str, message: str, location: Location) -> None:
        """Add a deviation that all pages of a writer share only for the first page of the chunk."""
        if check not in self._added:
            self._added.add(check)
            self.findings.add(check, message, location)

    def _check_dictionary_page(self, page: StoredPage, raw: np.ndarray, location: Location) -> None:
        about = page.type_header
        if self.dictionary_page is not None or self.pages:
            self.findings.add(
                "page-dictionary",
                "the dictionary page is not the first page of the column chunk, or not its only dictionary page",
                location,
            )
            return
        self.dictionary_page = page
        if about.get("encoding") not in (PLAIN, PLAIN_DICTIONARY):
            self.findings.add(
                "page-encoding", f"the dictionary page has encoding {_encoding(about)} instead of PLAIN", location
            )
            return
        if not self._has_counts(page, location) or not self._may_decode(page, about):
            return
        try:
            self._dictionary = self._decoder.decode_dictionary_page(self._open_body(page, raw, location), page.header)
        except (PageDecodeError, ModuleError) as trouble:
            self.findings.add(trouble.check, trouble.message, location)
            return
        if self._dictionary.num_unread:
            message = (
                f"{pluralize(self._dictionary.num_unread, 'byte')} "
                f"{agree_verb(self._dictionary.num_unread, 'follow')} the entries of the dictionary"
            )
            self.findings.add("writer-padding", message, location)
        if about.get("is_sorted"):
            self._check_sorted(self._dictionary, location)

    def _check_sorted(self, dictionary: PageDictionary, location: Location) -> None:
        if self.order.kind == "none" or dictionary.count < 2:
            return
        each = compute_page_bounds(
            self.order,
            dictionary.values,
            np.arange(dictionary.count + 1),
            starts=dictionary.starts,
            ends=dictionary.ends,
        )
        keys = [self.order.sort_key(value) for value in each.min_values if value is not None]
        if any(after < before for before, after in pairwise(keys)):
            self.findings.add("dictionary-sorted", "is_sorted is true, but the dictionary is not sorted", location)

    # --- data pages ---------------------------------------------------------------------------------------------------

    def _check_data_page(self, page: StoredPage, raw: np.ndarray, location: Location) -> None:
        about = page.type_header
        if not self._has_counts(page, location):
            self._skip_page()
            return
        facts = CheckedPage(page, about["num_values"], self._next_row)
        self.pages.append(facts)
        self._check_sizes(page, location)
        if self.leaf.physical not in ENCODING_PHYSICAL_TYPES.get(about["encoding"], ()):
            name = enum_value("Type", self.leaf.physical)
            self.findings.add("page-encoding", f"{name!s} values cannot have encoding {_encoding(about)}", location)
            self._skip_page()
            return
        if not self._may_decode(page, about):
            self._skip_page()
            return
        try:
            body = self._open_body(page, raw, location)
            values = self._decoder.decode_data_page(body, page.header, self._dictionary)
        except (PageDecodeError, ModuleError) as trouble:
            if trouble.check != "page-dictionary" or self.dictionary_page is None:  # damage: reported before
                self.findings.add(trouble.check, trouble.message, location)
            self._skip_page()
            return
        self._record_values(facts, values)
        self._check_values(facts, values, location)
        for watcher in self.collectors:
            watcher(values)

    def _open_body(self, page: StoredPage, raw: np.ndarray, location: Location) -> np.ndarray:
        """Return a page's body of its stored bytes; ModuleError if it cannot be decrypted."""
        return self.chunk.open_body(
            raw,
            page.header,
            page.ordinal,
            page.body_offset,
            lambda check, text: self._add_once(check, text, location),
        )

    def _has_counts(self, page: StoredPage, location: Location) -> bool:
        """Check that a page header has its required fields (reported before) and no negative counts."""
        about = page.type_header
        required = [
            item.name for item in load_idl().structs[_HEADER_STRUCTS[page.header["type"]]].fields if item.required
        ]
        if any(name not in about for name in required):
            return False
        if has_negative_counts(about):
            self.findings.add("page-counts", "a count in the page header is negative", location)
            return False
        return True

    def _may_decode(self, page: StoredPage, type_header: dict[str, Any]) -> bool:
        return self.budget.spend(page.header["uncompressed_page_size"] + type_header["num_values"])

    def _skip_page(self) -> None:
        self._decoder.skip_page()
        self._next_row = None

    def _check_sizes(self, page: StoredPage, location: Location) -> None:
        header = page.header
        stored, plain = header["compressed_page_size"], header["uncompressed_page_size"]
        if self.codec == UNCOMPRESSED and stored != plain:
            self.findings.add(
                "page-uncompressed-size",
                f"the page has no compression, but {pluralize(stored, 'byte')} compressed and {plain:,} uncompressed",
                location,
            )

    def _record_values(self, facts: CheckedPage, values: PageValues) -> None:
        leaf = self.leaf
        facts.num_rows, facts.num_values = values.num_rows, values.num_values
        facts.begins_row = (
            values.repetition_levels is None or not values.num_entries or values.repetition_levels[0] == 0
        )
        if facts.first_row is not None and not facts.begins_row:
            facts.first_row -= 1
        if self._next_row is not None:
            self._next_row += values.num_rows
        facts.bounds = _page_bounds(values, self.order)
        facts.definition_histogram = values.definition_histogram(leaf.max_definition_level)
        facts.repetition_histogram = values.repetition_histogram(leaf.max_repetition_level)
        if leaf.physical == BYTE_ARRAY and values.starts is not None and values.ends is not None:
            lengths = values.ends - values.starts
            facts.num_byte_array_bytes = int((lengths if values.codes is None else lengths[values.codes]).sum())

    def _check_values(self, facts: CheckedPage, values: PageValues, location: Location) -> None:
        about = facts.stored.type_header
        nulls = values.num_entries - values.num_values
        if "num_nulls" in about and about["num_nulls"] != nulls:
            check = null_count_check("page-null-count", facts.is_in_list, about["num_nulls"], nulls)
            if check == "page-null-count" and about["num_nulls"] in (0, NOT_COUNTED):
                check = "writer-null-count"
            self.findings.add(
                check, f"num_nulls is {about['num_nulls']:,}, but the page has {pluralize(nulls, 'null')}", location
            )
        if "num_rows" in about and about["num_rows"] != values.num_rows:
            check = "writer-row-count" if about["num_rows"] in (0, values.num_entries) else "page-row-count"
            self.findings.add(
                check,
                f"num_rows is {about['num_rows']:,}, but {pluralize(values.num_rows, 'row')} "
                f"{agree_verb(values.num_rows, 'begin')} in the page",
                location,
            )
        for check, message in values.deviations:
            self._add_once(check, message, location)
        empty = _count_empty_decimals(self.leaf, values)
        if empty:
            self._add_once(
                "page-decimal",
                f"{pluralize(empty, 'value')} {agree_verb(empty, 'have')} no bytes, and "
                f"{agree_verb(empty, 'are')} read as 0",
                location,
            )
        if facts.stored.header["type"] == DATA_PAGE_V2 and not facts.begins_row:
            self.findings.add("page-row-start", "the page continues a row of the previous page", location)
        assert facts.bounds is not None
        check_value_range(self.leaf, self.order, facts.bounds, self.findings, location)
        if "statistics" in about:
            truth = ActualStatistics(facts.bounds, nulls)
            check_statistics(about["statistics"], truth, self._bounds, self.leaf, location)


def _page_bounds(values: PageValues, order: ColumnOrder) -> ValueBounds:
    if order.kind == "int96":
        return int96_bounds(values.values, values.codes)
    found = compute_page_bounds(
        order,
        values.values,
        np.array([0, values.num_values]),
        starts=values.starts,
        ends=values.ends,
        codes=values.codes,
    )
    nans = None if found.nan_counts is None else found.nan_counts[0]
    return ValueBounds(found.min_values[0], found.max_values[0], nans)


def _count_empty_decimals(leaf: Leaf, values: PageValues) -> int:
    """Count the values without bytes of a DECIMAL."""
    is_decimal = leaf.logical is not None and leaf.logical.kind == "DECIMAL" and leaf.physical == BYTE_ARRAY
    if not is_decimal or values.starts is None or values.ends is None:
        return 0
    are_empty = values.starts == values.ends
    return int(np.count_nonzero(are_empty if values.codes is None else are_empty[values.codes]))


def _encoding(type_header: dict[str, Any]) -> str:
    return str(enum_value("Encoding", type_header.get("encoding", -1)))
