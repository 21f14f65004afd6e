"""Check column indexes and offset indexes against the pages (PageIndex.md)."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

from numparq.format.page_index import ASCENDING, DESCENDING
from numparq.format.schema import Leaf
from numparq.format.writer_quirks import null_count_check
from numparq.util.pluralize import agree_noun, pluralize

from .deviations import Findings, Location
from .pages import CheckedPage
from .statistics import BoundsChecker
from .stored_chunk import StoredChunk
from .thrift import ThriftDecodeError

_MAX_INDEX_BYTES = 1 << 30


def read_page_index(
    struct: str, stored: StoredChunk, chunk: dict[str, Any], data_end: int, findings: Findings, location: Location
) -> dict[str, Any] | None:
    """Read the ColumnIndex or OffsetIndex of a column chunk; None if missing or unusable.

    `data_end` is the offset of the footer.
    """
    stem = {"ColumnIndex": "column_index", "OffsetIndex": "offset_index"}[struct]
    offset, length = chunk.get(f"{stem}_offset"), chunk.get(f"{stem}_length")
    if offset is None and length is None:
        return None
    if (
        offset is None
        or length is None
        or offset < 4
        or length <= 0
        or offset + length > data_end
        or length > _MAX_INDEX_BYTES
    ):
        findings.add(
            "index-place",
            f"{stem}_offset is {offset} and {stem}_length is {length}: not a byte range in the data of the file",
            location,
        )
        return None
    noted: list[tuple[str, str]] = []
    try:
        found, end = stored.read_struct(struct, offset, length, lambda check, text: noted.append((check, text)))
    except ThriftDecodeError as error:
        findings.add(error.check or "thrift-struct", f"the {stem.replace('_', ' ')} cannot be read: {error}", location)
        return None
    for check, text in noted:
        findings.add(check, text, location)
    if end != length:
        findings.add(
            "index-place",
            f"the {stem.replace('_', ' ')} has {pluralize(end, 'byte')}, but {stem}_length is {length:,}",
            location,
        )
    return None if any(check == "thrift-required" for check, _ in noted) else found


def check_offset_index(
    index: dict[str, Any], leaf: Leaf, pages: list[CheckedPage], findings: Findings, place: Location
) -> None:
    """Compare an OffsetIndex with the data pages of its chunk."""
    locations = index["page_locations"]
    if len(locations) != len(pages):
        findings.add(
            "index-pages",
            f"the offset index has {pluralize(len(locations), 'page')}, but the column chunk has {len(pages):,}",
            place,
        )
        return
    for location, page in zip(locations, pages, strict=True):
        stored = page.stored
        here = place._replace(page=stored.ordinal)
        facts = (
            ("offset-index-offset", "offset", stored.offset, "begins at {:,}"),
            ("offset-index-size", "compressed_page_size", stored.end - stored.offset, "has {:,} bytes"),
            ("offset-index-row", "first_row_index", page.first_row, "begins with row {:,}"),
        )
        for check, field, value, text in facts:
            if value is not None and location.get(field) != value:
                said = f"{field} is {location.get(field):,} in the offset index"
                findings.add(check, f"{said}, but the page {text.format(value)}", here)
        if not page.begins_row and "data_page_header_v2" not in stored.header:
            findings.add(
                "page-row-start", "the page continues a row of the previous page, which an offset index forbids", here
            )
    _check_value_bytes(index, pages, findings, place)


def _check_value_bytes(index: dict[str, Any], pages: list[CheckedPage], findings: Findings, location: Location) -> None:
    said = index.get("unencoded_byte_array_data_bytes")
    if not said:
        return
    if len(said) != len(pages):
        findings.add(
            "index-pages",
            f"the offset index has value sizes of {pluralize(len(said), 'page')}, but the column chunk has "
            f"{len(pages):,}",
            location,
        )
        return
    for size, page in zip(said, pages, strict=True):
        if page.num_byte_array_bytes is not None and page.num_byte_array_bytes != size:
            findings.add(
                "offset-index-bytes",
                f"unencoded_byte_array_data_bytes is {size:,} in the offset index, "
                f"but the values have {pluralize(page.num_byte_array_bytes, 'byte')}",
                location._replace(page=page.stored.ordinal),
            )


# --- column index -----------------------------------------------------------------------------------------------------


def check_column_index(
    index: dict[str, Any], leaf: Leaf, pages: list[CheckedPage], check: BoundsChecker, location: Location
) -> None:
    """Compare a ColumnIndex with the data pages of its chunk."""
    findings = check.findings
    lists = [name for name in ("null_pages", "min_values", "max_values", "null_counts", "nan_counts") if name in index]
    wrong = [name for name in lists if len(index[name]) != len(pages)]
    if wrong:
        findings.add(
            "index-pages",
            f"the column index has {len(index[wrong[0]]):,} {wrong[0]}, but the chunk has "
            f"{pluralize(len(pages), 'data page')}",
            location,
        )
        return
    bounds = replace(
        check,
        subject="the column index",
        min_check="column-index-min",
        max_check="column-index-max",
        bound_check="column-index-bound",
    )
    for number, page in enumerate(pages):
        _check_page(index, number, page, bounds, location._replace(page=page.stored.ordinal))
    _check_order(index, bounds, location)
    for kind, most in (("repetition", leaf.max_repetition_level), ("definition", leaf.max_definition_level)):
        _check_histograms(index, kind, most + 1, pages, findings, location)


def _check_page(
    index: dict[str, Any], number: int, page: CheckedPage, check: BoundsChecker, location: Location
) -> None:
    findings, is_null = check.findings, index["null_pages"][number]
    low, high = index["min_values"][number], index["max_values"][number]
    if page.num_values is not None and is_null != (page.num_values == 0):
        values = "has no values" if page.num_values == 0 else f"has {pluralize(page.num_values, 'value')}"
        said = "true" if is_null else "false"
        findings.add(
            "column-index-null-pages", f"null_pages is {said} in the column index, but the page {values}", location
        )
    elif is_null:
        if low or high:
            findings.add("column-index-bound", "the column index has bounds for a page without values", location)
    elif page.bounds is not None and check.order.kind != "none":
        check.check(low, high, page.bounds, location)
    counts = (
        ("null_counts", "column-index-null-counts", "null", page.null_count),
        ("nan_counts", "column-index-nan-counts", "NaN", page.bounds and page.bounds.nan_count),
    )
    for name, which, noun, actual in counts:
        if name in index and index[name][number] < 0:
            findings.add(
                "stats-unknown",
                f"the column index declares {index[name][number]} {agree_noun(index[name][number], noun)}; an "
                "unknown count should be absent",
                location,
            )
        elif name in index and actual is not None and index[name][number] != actual:
            if name == "null_counts":
                which = null_count_check(which, page.is_in_list, index[name][number], actual)
            findings.add(
                which,
                f"the column index declares {pluralize(index[name][number], noun)}, but the page has {actual:,}",
                location,
            )


def _check_order(index: dict[str, Any], check: BoundsChecker, location: Location) -> None:
    """Check that the bounds of non-null pages follow the boundary order."""
    wanted = index["boundary_order"]
    if wanted not in (ASCENDING, DESCENDING) or check.order.kind == "none":
        return
    pages = [number for number, is_null in enumerate(index["null_pages"]) if not is_null]
    for name in ("min_values", "max_values"):
        values = [index[name][number] for number in pages]
        if check.order.width and any(len(value) != check.order.width for value in values):
            return  # reported as column-index-bound
        for place_of, (one, other) in zip(pages[1:], pairwise(values), strict=True):
            if check.exceeds(one, other, wanted == ASCENDING):
                direction = "ascending" if wanted == ASCENDING else "descending"
                check.findings.add(
                    "column-index-order",
                    f"boundary_order of the column index is {direction}, but item {place_of} of {name} is out of order",
                    location,
                )
                return


def _check_histograms(
    index: dict[str, Any], kind: str, size: int, pages: list[CheckedPage], findings: Findings, location: Location
) -> None:
    counts = index.get(f"{kind}_level_histograms")
    if not counts:
        return
    if len(counts) != size * len(pages):
        findings.add(
            "index-pages",
            f"{kind}_level_histograms in the column index have {pluralize(len(counts), 'item')} instead of "
            f"{size * len(pages):,}",
            location,
        )
        return
    for number, page in enumerate(pages):
        actual = getattr(page, f"{kind}_histogram")
        if actual is not None and counts[number * size : (number + 1) * size] != actual:
            findings.add(
                "column-index-histograms",
                f"the {kind} level histogram in the column index differs from the levels of the page",
                location._replace(page=page.stored.ordinal),
            )
