"""Writer quirks by `created_by`: defects of pages, statistics and indexes, and what verification tolerates."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from numparq.kernels.enums import BIT_PACKED
from numparq.kernels.tables import (
    ALWAYS_COMPRESSED,
    ARRAY_FILLERS,
    BIT_PACKED_LOW,
    PREFIX_CARRYOVER,
    UNKNOWN_END,
)

from .column_order import leaf_order
from .physical_type import BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY
from .schema import Leaf

Version = tuple[int, ...]

# "parquet-mr version 1.8.0-SNAPSHOT (build 1234)", "DuckDB version v1.1.0 (build 1234)", "ClickHouse v25.3.2.39"
_RELEASE = re.compile(r"\sv?(\d+)(?:\.(\d+))?(?:\.(\d+))?([^\s(]*)")
_VERSION = re.compile(r"\bversion\b")
_MAX_CREATED_BY = 1000

_LONGEST_DICTIONARY_HEADER = 100


@dataclass(frozen=True, slots=True)
class PageQuirks:
    """Defects of a writer's pages.

    Attributes
    ----------
    missing_bytes : int
        By how much total_compressed_size may be too small.
    has_checksums : bool
        Whether the CRC field of its page headers is valid.
    bit_packed : int
        Bit order of BIT_PACKED levels: `BIT_PACKED` or `BIT_PACKED_LOW`.
    page_flags, string_flags : int
        Flags for the kernels (C_QUIRKS) of all column chunks, and of chunks with strings.
    """

    missing_bytes: int = 0
    has_checksums: bool = True
    bit_packed: int = BIT_PACKED
    page_flags: int = 0
    string_flags: int = 0


# Writer (`ApplicationVersion.name`), first sound release (None: none), quirks before it. The first match counts.
_PAGE_QUIRKS: tuple[tuple[str, Version | None, PageQuirks], ...] = (
    # The chunk size lacked the header of the dictionary page (PARQUET-816); the next quirk applies as well.
    (
        "parquet-mr",
        (1, 2, 9),
        PageQuirks(_LONGEST_DICTIONARY_HEADER, page_flags=UNKNOWN_END, string_flags=PREFIX_CARRYOVER),
    ),
    # The first string of a DELTA_BYTE_ARRAY page shares a prefix with the last of the previous page (PARQUET-246).
    ("parquet-mr", (1, 8, 0), PageQuirks(string_flags=PREFIX_CARRYOVER)),
    ("", None, PageQuirks(string_flags=PREFIX_CARRYOVER)),  # may be the same writer (PARQUET-297)
    # Data pages v2 are compressed although their header denies it (ARROW-10353).
    ("parquet-cpp", None, PageQuirks(page_flags=ALWAYS_COMPRESSED)),
    # Every page header has a CRC of 0.
    ("parquet.jl", None, PageQuirks(has_checksums=False)),
    # A null ARRAY(n) has n entries at the level of the null, which continue the list.
    ("duckdb", None, PageQuirks(page_flags=ARRAY_FILLERS)),
    # BIT_PACKED levels have the bit order of the RLE/bit-packing hybrid (IMPALA-3006).
    ("impala", None, PageQuirks(bit_packed=BIT_PACKED_LOW)),
)

# Metadata that may be untrusted. MIN_MAX is min_value and max_value in column chunks, pages and column indexes.
MIN_MAX, DEPRECATED_MIN_MAX, NULL_COUNT = "min_max", "deprecated_min_max", "null_count"
COLUMN_INDEX, OFFSET_INDEX = "column_index", "offset_index"

# Name of a set of columns -> whether a leaf column with a kind of order belongs to it.
_COLUMNS: dict[str, Callable[[Leaf, str], bool]] = {
    "all": lambda leaf, kind: True,
    "bytes": lambda leaf, kind: leaf.physical in (BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY),
    "of any length": lambda leaf, kind: leaf.physical == BYTE_ARRAY,
    "not signed": lambda leaf, kind: kind in ("bytes", "unsigned", "decimal"),
    "unsigned": lambda leaf, kind: kind == "unsigned",
    "float": lambda leaf, kind: kind == "float",
    "decimal": lambda leaf, kind: leaf.logical is not None and leaf.logical.kind == "DECIMAL",
    "decimal bytes": lambda leaf, kind: kind == "decimal",
    "decimal bytes of any length": lambda leaf, kind: kind == "decimal" and leaf.physical == BYTE_ARRAY,
    "in lists": lambda leaf, kind: leaf.max_repetition_level > 0,
}

_BOTH = (MIN_MAX, DEPRECATED_MIN_MAX)


@dataclass(frozen=True, slots=True)
class StatisticsQuirk:
    """A known defect of a writer's statistics or indexes.

    Attributes
    ----------
    name : str
        Writer, as `ApplicationVersion.name`; empty for all writers.
    fixed_in : tuple of int, or None
        First release without the defect; None if there is none, or versions do not tell.
    columns : str
        Affected columns, a key of `_COLUMNS`.
    untrusted : tuple of str
        Untrusted metadata, such as `MIN_MAX`.
    why : str
        Issue and symptom.
    """

    name: str
    fixed_in: Version | None
    columns: str
    untrusted: tuple[str, ...]
    why: str


STATISTICS_QUIRKS: tuple[StatisticsQuirk, ...] = (
    StatisticsQuirk("", None, "not signed", (DEPRECATED_MIN_MAX,), "PARQUET-686: bytes were compared as signed"),
    StatisticsQuirk("parquet-mr", (1, 8, 0), "bytes", _BOTH, "PARQUET-251: buffers of the bounds were reused"),
    StatisticsQuirk("parquet-mr", (1, 10, 0), "not signed", _BOTH, "PARQUET-686, PARQUET-1494"),
    StatisticsQuirk("parquet-cpp", (1, 3, 0), "not signed", _BOTH, "PARQUET-686"),
    StatisticsQuirk("parquet-cpp", (1, 4, 0), "float", _BOTH, "PARQUET-1225: a NaN hides later values"),
    StatisticsQuirk("parquet-cpp", None, "decimal bytes", _BOTH, "PARQUET-1655: each byte was compared as signed"),
    StatisticsQuirk("parquet-cpp-arrow", (4, 0, 0), "decimal bytes", _BOTH, "PARQUET-1655"),
    StatisticsQuirk(
        "parquet-cpp-arrow", None, "in lists", (NULL_COUNT,), "apache/arrow#51097: empty lists are not counted"
    ),
    StatisticsQuirk("parquet-rs", (5, 2, 0), "bytes", _BOTH, "apache/arrow-rs#641: shorter values were ordered first"),
    StatisticsQuirk("parquet-rs", (13, 0, 0), "decimal bytes", _BOTH, "apache/arrow-rs#1532: compared unsigned"),
    StatisticsQuirk(
        "parquet-rs", (13, 0, 0), "unsigned", _BOTH, "apache/arrow-rs#1532: compared signed, without a logical type"
    ),
    StatisticsQuirk("parquet-rs", None, "decimal bytes of any length", _BOTH, "apache/arrow-rs#10860, #11073"),
    StatisticsQuirk(
        "parquet-rs", (43, 0, 0), "all", (OFFSET_INDEX,), "apache/arrow-rs#4459: no pages if all values are null"
    ),
    StatisticsQuirk(
        "parquet-rs", (53, 0, 0), "all", (COLUMN_INDEX,), "apache/arrow-rs#6310: empty bounds after null pages"
    ),
    StatisticsQuirk(
        "arrow2 - native rust implementation of arrow", None, "all", _BOTH, "pola-rs/polars#7842: too small a maximum"
    ),
    StatisticsQuirk("polars", None, "all", (NULL_COUNT,), "pola-rs/polars#29321: multiplied by the number of pages"),
    StatisticsQuirk("polars", None, "unsigned", _BOTH, "pola-rs/polars#15323: compared signed"),
    StatisticsQuirk("polars", None, "decimal bytes", _BOTH, "pola-rs/polars#29347: compared unsigned"),
    StatisticsQuirk("duckdb", None, "in lists", (NULL_COUNT,), "duckdb/duckdb#24936: not counted after a full page"),
    StatisticsQuirk("clickhouse", (25, 8, 0), "decimal bytes", _BOTH, "ClickHouse/ClickHouse#83754: compared unsigned"),
    StatisticsQuirk(
        "clickhouse", (25, 8, 0), "in lists", (OFFSET_INDEX,), "ClickHouse/ClickHouse#83876: first rows count elements"
    ),
    StatisticsQuirk(
        "clickhouse", (26, 5, 0), "of any length", (COLUMN_INDEX,), "ClickHouse/ClickHouse#103334: long bounds empty"
    ),
    StatisticsQuirk("github.com/parquet-go/parquet-go", None, "decimal bytes", _BOTH, "parquet-go/parquet-go#592"),
    StatisticsQuirk("github.com/segmentio/parquet-go", None, "decimal bytes", _BOTH, "parquet-go/parquet-go#592"),
    # Two programs use this name: apache/arrow-go, and xitongsys/parquet-go, which writes no version.
    StatisticsQuirk("parquet-go", (18, 1, 0), "unsigned", _BOTH, "apache/arrow-go#209: wrong initial minimum"),
    StatisticsQuirk(
        "parquet-go", (1, 0, 0), "all", (OFFSET_INDEX,), "xitongsys/parquet-go#547: sizes before compression"
    ),
    StatisticsQuirk("hyparquet", None, "decimal", _BOTH, "hyparam/hyparquet-writer#38: bounds of other numbers"),
)

_GO = (
    "parquet-go",
    "github.com/xitongsys/parquet-go",
    "github.com/fraugster/parquet-go",
    "github.com/segmentio/parquet-go",
    "github.com/parquet-go/parquet-go",
)


@dataclass(frozen=True, slots=True)
class ToleratedDefect:
    """A defect that verification reports as a warning if the writer is known for it.

    Attributes
    ----------
    error : str
        Check that files of other writers fail.
    writers : mapping of str to tuple of int, or None
        Known writers, as `ApplicationVersion.name`, and the first sound release of each (None: no known one).
    why : str
        Explanation for the report.
    """

    error: str
    writers: Mapping[str, Version | None]
    why: str


# Warning -> error, for null counts of columns in lists that are too small.
LIST_NULL_COUNTS = {
    "writer-list-page-nulls": "page-null-count",
    "writer-list-nulls": "stats-null-count",
    "writer-list-index-nulls": "column-index-null-counts",
}
_LIST_NULL_WRITERS: Mapping[str, Version | None] = {
    "parquet-cpp": None,
    "parquet-cpp-arrow": (26, 0, 0),
    "duckdb": None,
}

# Keyed by the check that reports the warning.
TOLERATED_DEFECTS: dict[str, ToleratedDefect] = {
    "writer-bool": ToleratedDefect(
        "thrift-type", {"fastparquet-python": None}, "fastparquet does so when it infers nulls"
    ),
    "writer-converted": ToleratedDefect("thrift-enum", {"parquet-cpp": None}, "old parquet-cpp wrote UNKNOWN"),
    "writer-variant": ToleratedDefect("schema-variant", {"duckdb": (1, 6, 0)}, "as DuckDB up to 1.5 writes them"),
    "writer-null-count": ToleratedDefect(
        "page-null-count",
        {"parquet-cpp": None, "parquet-cpp-arrow": (12, 0, 0), "parquet-mr": (1, 18, 0)},
        "not counted in columns without statistics, apache/arrow#34326, parquet-java#3585",
    ),
    **{
        warning: ToleratedDefect(error, _LIST_NULL_WRITERS, "too small in lists, apache/arrow#51097, duckdb#24936")
        for warning, error in LIST_NULL_COUNTS.items()
    },
    "writer-row-count": ToleratedDefect(
        "page-row-count",
        {"parquet-cpp": None, "parquet-cpp-arrow": (12, 0, 0), **dict.fromkeys(_GO)},
        "Go writers leave it at 0, and parquet-cpp counted values, apache/arrow#34086",
    ),
    "writer-padding": ToleratedDefect(
        "page-bytes", {"fastparquet-python": None}, "fastparquet adds eight zero bytes to every data page"
    ),
    "writer-array": ToleratedDefect("page-levels", {"duckdb": None}, "as DuckDB writes null values of type ARRAY"),
    "writer-levels": ToleratedDefect("page-levels-plain", {"parquet-mr": None}, "as parquet-java writes version 2"),
    "writer-size-statistics": ToleratedDefect(
        "encrypted-statistics",
        {"parquet-cpp-arrow": None, "parquet-mr": None},
        "Arrow and parquet-java leave them in plaintext footers",
    ),
    "writer-deltas": ToleratedDefect("page-deltas", {"duckdb": None}, "DuckDB encodes them as INT64 deltas"),
}


class ApplicationVersion(NamedTuple):
    """Name and version of a writer.

    Attributes
    ----------
    name : str
        Lower case; empty if unknown.
    version : tuple of int, or None
        Major, minor, patch, and 1, or 0 for a pre-release (``1.8.0-SNAPSHOT``, ``1.6.0rc3``); None if unknown.
    """

    name: str
    version: Version | None

    def is_before(self, release: Version | None) -> bool:
        """Whether the version is, or may be (unknown), older than a release; always for None."""
        return release is None or self.version is None or self.version < (*release, 1)


@lru_cache(maxsize=256)
def parse_created_by(created_by: str | None) -> ApplicationVersion:
    """Parse the footer's `created_by` into name and version."""
    text = (created_by or "")[:_MAX_CREATED_BY].strip().lower()
    release = _RELEASE.search(text)
    if release is None:
        return ApplicationVersion(_VERSION.split(text, maxsplit=1)[0].strip(), None)
    *numbers, suffix = release.groups(default="0")
    name = text[: release.start()].rstrip()
    before = name.removesuffix("version")
    if before != before.rstrip():  # "version" is a word of its own
        name = before.rstrip()
    return ApplicationVersion(name, (*map(int, numbers), int(not suffix or suffix[0] in ".+")))


@lru_cache(maxsize=256)
def page_quirks(created_by: str | None) -> PageQuirks:
    """Return the page quirks of a writer; an unknown version counts as the oldest."""
    writer = parse_created_by(created_by)
    found = (faults for name, sound, faults in _PAGE_QUIRKS if name == writer.name and writer.is_before(sound))
    return next(found, PageQuirks())


def statistics_quirks(created_by: str | None, leaf: Leaf) -> list[StatisticsQuirk]:
    """Return the statistics quirks of a writer, by its `created_by`, that affect a leaf column, `leaf`."""
    writer, kind = parse_created_by(created_by), leaf_order(leaf).kind
    return [
        bug
        for bug in STATISTICS_QUIRKS
        if bug.name in ("", writer.name) and (not bug.name or writer.is_before(bug.fixed_in))
        if _COLUMNS[bug.columns](leaf, kind)
    ]


@lru_cache(maxsize=1024)
def untrusted_statistics(created_by: str | None, leaf: Leaf) -> frozenset[str]:
    """Return which metadata of a leaf column, `leaf`, is untrusted for a writer, by its `created_by`.

    Any of ``"min_max"``, ``"deprecated_min_max"``, ``"null_count"``, ``"column_index"``, ``"offset_index"``.
    """
    return frozenset(what for bug in statistics_quirks(created_by, leaf) for what in bug.untrusted)


def null_count_check(error: str, is_in_list: bool, declared: int, actual: int) -> str:
    """Return the check for a null count that differs from the data: a warning of known writers, or `error`."""
    is_quirk = is_in_list and 0 <= declared < actual
    return next((warning for warning, other in LIST_NULL_COUNTS.items() if is_quirk and other == error), error)


def resolve_check(check: str, message: str, created_by: str) -> tuple[str, str]:
    """Return check and message to report: the warning for a writer known for the defect, else its error."""
    fault = TOLERATED_DEFECTS.get(check)
    if fault is None:
        return check, message
    writer = parse_created_by(created_by)
    if writer.name in fault.writers and writer.is_before(fault.writers[writer.name]):
        return check, f"{message} ({fault.why})"
    return fault.error, message


def leaf_may_be_null(leaf: Leaf, null_count: int | None, created_by: str | None) -> bool:
    """Whether a leaf column may hold a null, given its null count (None: unknown) and the writer.

    False for REQUIRED leaves, and where a trusted writer counts none.
    """
    if not leaf.max_definition_level:
        return False
    return null_count != 0 or NULL_COUNT in untrusted_statistics(created_by, leaf)
