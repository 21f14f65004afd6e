"""Check the encodings and the encoding_stats of a column chunk against its pages (ColumnMetaData)."""

from __future__ import annotations

from collections import Counter
from typing import Any

from numparq.format.schema import Leaf
from numparq.format.thrift.idl import enum_value
from numparq.kernels.enums import BIT_PACKED, DATA_PAGE, DATA_PAGE_V2, PLAIN, PLAIN_DICTIONARY, RLE

from .deviations import Findings, Location
from .pages import CheckedPage, PageChecker


def check_encodings(
    metadata: dict[str, Any], leaf: Leaf, pages: PageChecker, findings: Findings, location: Location
) -> None:
    """Compare the encodings and encoding_stats of a ColumnMetaData with the pages, all of which were walked."""
    counts: Counter[tuple[int, int]] = Counter()
    levels: set[int] = set()
    for page in pages.pages:
        about = page.stored.type_header
        counts[page.stored.header["type"], about["encoding"]] += 1
        levels |= _level_encodings(page, leaf)
    findings.add_all(_listing_defects(metadata, pages, {encoding for _, encoding in counts}, levels), location)
    dictionary = pages.dictionary_page
    if dictionary is not None and "encoding" in dictionary.type_header:
        counts[dictionary.header["type"], dictionary.type_header["encoding"]] += 1
    stats = metadata.get("encoding_stats")
    if stats is None:
        return
    said: Counter[tuple[int, int]] = Counter()
    for entry in stats:
        said[entry.get("page_type", -1), entry.get("encoding", -1)] += entry.get("count", 0)
    if +said != counts:
        same_encodings = _ignore_page_version(said) == _ignore_page_version(counts)
        findings.add(
            "encoding-stats-version" if same_encodings else "chunk-encoding-stats",
            f"encoding_stats list {_describe_counts(said)}, but the pages are {_describe_counts(counts)}",
            location,
        )


def _listing_defects(
    metadata: dict[str, Any], pages: PageChecker, used: set[int], levels: set[int]
) -> list[tuple[str, str]]:
    """Compare the listed encodings with those of data pages, levels and the dictionary page."""
    listed, dictionary = set(metadata.get("encodings", ())), pages.dictionary_page
    both = (PLAIN, PLAIN_DICTIONARY)  # synonyms in a dictionary page
    beside = levels if dictionary is None or listed & set(both) else {*levels, PLAIN}
    unused = listed - used - {RLE, BIT_PACKED} - set(both if dictionary is not None else ())
    kinds = (
        ("chunk-encodings", used - listed, "used by data pages but not listed"),
        ("chunk-encodings-beside", beside - listed - used, "used by levels or the dictionary page but not listed"),
        ("chunk-encodings-unused", unused if pages.pages else set(), "listed but used by no page"),
    )
    return [(check, f"encodings {what}: {_encoding_names(wrong)}") for check, wrong, what in kinds if wrong]


def _level_encodings(page: CheckedPage, leaf: Leaf) -> set[int]:
    if not page.num_entries or page.stored.header["type"] != DATA_PAGE:
        return set()  # levels of version 2 are always RLE, which need not be listed
    about, found = page.stored.type_header, set()
    if leaf.max_definition_level:
        found.add(about.get("definition_level_encoding", RLE))
    if leaf.max_repetition_level:
        found.add(about.get("repetition_level_encoding", RLE))
    return found


def _encoding_names(encodings: set[int]) -> str:
    return ", ".join(str(enum_value("Encoding", encoding)) for encoding in sorted(encodings))


def _ignore_page_version(counts: Counter[tuple[int, int]]) -> Counter[tuple[int, int]]:
    """Count data pages of versions 1 and 2 as one page type."""
    found: Counter[tuple[int, int]] = Counter()
    for (kind, encoding), count in counts.items():
        found[DATA_PAGE if kind == DATA_PAGE_V2 else kind, encoding] += count
    return +found


def _describe_counts(counts: Counter[tuple[int, int]]) -> str:
    parts = (
        f"{count:,} {enum_value('PageType', kind)!s} in {enum_value('Encoding', encoding)!s}"
        for (kind, encoding), count in sorted(counts.items())
        if count
    )
    return ", ".join(parts) or "none"
