"""Known defects of writers by `created_by`: pages, statistics and indexes, and what verification tolerates."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from numparq.kernels.enums import BIT_PACKED
from numparq.kernels.tables import ALWAYS_COMPRESSED, BIT_PACKED_LOW, PREFIX_CARRYOVER

from .column_order import leaf_order
from .physical_type import BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY
from .schema import Leaf

__all__ = ["TOLERATED_DEFECTS", "ToleratedDefect", "resolve_check"]

Version = tuple[int, ...]

# "parquet-mr version 1.8.0-SNAPSHOT (build 1234)", "DuckDB version v1.1.0 (build 1234)", "ClickHouse v25.3.2.39"
_FORM = re.compile(r"\s*(.*?)(?:\s+version)?\s+v?(\d+)(?:\.(\d+))?(?:\.(\d+))?([^\s(]*)", re.IGNORECASE)
_NAME = re.compile(r"\s*(.*?)\s*(?:\bversion\b.*)?$", re.IGNORECASE | re.DOTALL)

_LONGEST_DICTIONARY_HEADER = 100


@dataclass(frozen=True, slots=True)
class PageQuirks:
    """What is wrong in the files of a writer.

    Parameters
    ----------
    missing_bytes : int
        By how much total_compressed_size may be too small.
    has_checksums : bool
        Whether the CRCs of its pages are to be taken for such.
    bit_packed : int
        How its levels in the encoding BIT_PACKED lie: `BIT_PACKED`, or `BIT_PACKED_LOW`.
    page_flags, string_flags : int
        What is wrong with all pages, and with those of strings, as C_FAULTS has it.
    """

    missing_bytes: int = 0
    has_checksums: bool = True
    bit_packed: int = BIT_PACKED
    page_flags: int = 0
    string_flags: int = 0


# The writer (`Writer.name`), the first release that is sound (None: none is), and what is wrong before. The first one
# that fits is taken.
_PAGE_QUIRKS: tuple[tuple[str, Version | None, PageQuirks], ...] = (
    # The header of the dictionary page was left out of the chunk's size (PARQUET-816); see the next one, too.
    ("parquet-mr", (1, 2, 9), PageQuirks(_LONGEST_DICTIONARY_HEADER, string_flags=PREFIX_CARRYOVER)),
    # The first string of a page has a prefix in common with the last one of the page before (PARQUET-246).
    ("parquet-mr", (1, 8, 0), PageQuirks(string_flags=PREFIX_CARRYOVER)),
    ("", None, PageQuirks(string_flags=PREFIX_CARRYOVER)),  # it may have been the same writer (PARQUET-297)
    # Pages of version 2 say that they are not compressed, and are (ARROW-10353).
    ("parquet-cpp", None, PageQuirks(page_flags=ALWAYS_COMPRESSED)),
    # Every page says 0.
    ("parquet.jl", None, PageQuirks(has_checksums=False)),
    # The bits of the deprecated encoding were packed in the order of the hybrid one (IMPALA-3006).
    ("impala", None, PageQuirks(bit_packed=BIT_PACKED_LOW)),
)

# What may be distrusted. MIN_MAX is min_value and max_value wherever they stand: in chunks, pages and column indexes.
MIN_MAX, DEPRECATED_MIN_MAX, NULL_COUNT = "min_max", "deprecated_min_max", "null_count"
COLUMN_INDEX, OFFSET_INDEX = "column_index", "offset_index"

# Names of columns that a bug is about -> which they are, by the kind of their order.
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
    """A bug of a writer.

    Parameters
    ----------
    name : str
        The writer's, as `Writer.name`; empty for all writers.
    before : tuple of int, or None
        The release that was the first without it; None: there is none, or versions cannot be told apart.
    columns : str
        The columns that it is about.
    what : tuple of str
        What is wrong of them.
    why : str
        Where it is reported, and what happens.
    """

    name: str
    before: Version | None
    columns: str
    what: tuple[str, ...]
    why: str


STATISTICS_QUIRKS: tuple[StatisticsQuirk, ...] = (
    StatisticsQuirk("", None, "not signed", (DEPRECATED_MIN_MAX,), "PARQUET-686: bytes were compared as signed ones"),
    StatisticsQuirk("parquet-mr", (1, 8, 0), "bytes", _BOTH, "PARQUET-251: buffers were used again under the bounds"),
    StatisticsQuirk("parquet-mr", (1, 10, 0), "not signed", _BOTH, "PARQUET-686, PARQUET-1494"),
    StatisticsQuirk("parquet-cpp", (1, 3, 0), "not signed", _BOTH, "PARQUET-686"),
    StatisticsQuirk("parquet-cpp", (1, 4, 0), "float", _BOTH, "PARQUET-1225: a NaN hides what comes after it"),
    StatisticsQuirk(
        "parquet-cpp", None, "decimal bytes", _BOTH, "PARQUET-1655: each byte was compared as a signed one"
    ),
    StatisticsQuirk("parquet-cpp-arrow", (4, 0, 0), "decimal bytes", _BOTH, "PARQUET-1655"),
    StatisticsQuirk(
        "parquet-cpp-arrow", None, "in lists", (NULL_COUNT,), "apache/arrow#51097: empty lists are not counted"
    ),
    StatisticsQuirk("parquet-rs", (5, 2, 0), "bytes", _BOTH, "apache/arrow-rs#641: shorter was less"),
    StatisticsQuirk("parquet-rs", (13, 0, 0), "decimal bytes", _BOTH, "apache/arrow-rs#1532: compared unsigned"),
    StatisticsQuirk(
        "parquet-rs", (13, 0, 0), "unsigned", _BOTH, "apache/arrow-rs#1532: compared signed, without a logical type"
    ),
    StatisticsQuirk("parquet-rs", None, "decimal bytes of any length", _BOTH, "apache/arrow-rs#10860, #11073"),
    StatisticsQuirk(
        "parquet-rs", (43, 0, 0), "all", (OFFSET_INDEX,), "apache/arrow-rs#4459: no pages, where all is null"
    ),
    StatisticsQuirk(
        "parquet-rs", (53, 0, 0), "all", (COLUMN_INDEX,), "apache/arrow-rs#6310: empty bounds behind pages of nulls"
    ),
    StatisticsQuirk(
        "arrow2 - native rust implementation of arrow", None, "all", _BOTH, "pola-rs/polars#7842: too small a maximum"
    ),
    StatisticsQuirk("polars", None, "all", (NULL_COUNT,), "pola-rs/polars#29321: times the number of pages"),
    StatisticsQuirk("polars", None, "unsigned", _BOTH, "pola-rs/polars#15323: compared signed"),
    StatisticsQuirk("polars", None, "decimal bytes", _BOTH, "pola-rs/polars#29347: compared unsigned"),
    StatisticsQuirk("duckdb", None, "in lists", (NULL_COUNT,), "duckdb/duckdb#24936: not counted behind a full page"),
    StatisticsQuirk("clickhouse", (25, 8, 0), "decimal bytes", _BOTH, "ClickHouse/ClickHouse#83754: compared unsigned"),
    StatisticsQuirk(
        "clickhouse", (26, 5, 0), "of any length", (COLUMN_INDEX,), "ClickHouse/ClickHouse#103334: long is empty"
    ),
    StatisticsQuirk("github.com/parquet-go/parquet-go", None, "decimal bytes", _BOTH, "parquet-go/parquet-go#592"),
    StatisticsQuirk("github.com/segmentio/parquet-go", None, "decimal bytes", _BOTH, "parquet-go/parquet-go#592"),
    # Two programs call themselves so; the older one gives no version.
    StatisticsQuirk(
        "parquet-go", (18, 1, 0), "unsigned", _BOTH, "apache/arrow-go#209: it begins with a wrong least value"
    ),
    StatisticsQuirk(
        "parquet-go", (1, 0, 0), "all", (OFFSET_INDEX,), "xitongsys/parquet-go#547: sizes before compression"
    ),
    StatisticsQuirk("hyparquet", None, "decimal", _BOTH, "hyparam/hyparquet-writer#38: not the stored numbers"),
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
    """A fault of writers.

    Parameters
    ----------
    error : str
        The check that others fail by it.
    writers : mapping of str to tuple of int, or None
        The names of those who are known for it, as `Writer.name`, and the first release of each that is sound (None:
        there is none, or none is known).
    why : str
        Who is known for what.
    """

    error: str
    writers: Mapping[str, Version | None]
    why: str


# By the check, a warning, that it is of known writers.
TOLERATED_DEFECTS: dict[str, ToleratedDefect] = {
    "writer-bool": ToleratedDefect(
        "thrift-type", {"fastparquet-python": None}, "fastparquet does so where it infers nulls"
    ),
    "writer-converted": ToleratedDefect("thrift-enum", {"parquet-cpp": None}, "parquet-cpp's UNKNOWN of old"),
    "writer-variant": ToleratedDefect("schema-variant", {"duckdb": (1, 6, 0)}, "as DuckDB up to 1.5 has them"),
    "writer-null-count": ToleratedDefect(
        "page-null-count",
        {"parquet-cpp": None, "parquet-cpp-arrow": (12, 0, 0), "parquet-mr": (1, 18, 0)},
        "not counted in columns without statistics, apache/arrow#34326, parquet-java#3585",
    ),
    "writer-row-count": ToleratedDefect(
        "page-row-count",
        {"parquet-cpp": None, "parquet-cpp-arrow": (12, 0, 0), **dict.fromkeys(_GO)},
        "writers in Go leave it at 0, and parquet-cpp counted entries, apache/arrow#34086",
    ),
    "writer-deltas": ToleratedDefect("page-deltas", {"duckdb": None}, "DuckDB takes them as those of INT64"),
}


class ApplicationVersion(NamedTuple):
    """A program that writes Parquet.

    Attributes
    ----------
    name : str
        In lower case; empty where the file does not say it.
    version : tuple of int, or None
        Major, minor, patch, and 1, or 0 of what came before that release (``1.8.0-SNAPSHOT``, ``1.6.0rc3``). None
        where the file does not say it.
    """

    name: str
    version: Version | None

    def is_before(self, release: Version | None) -> bool:
        """Tell whether a version is older than a release; an unknown one may be, and all are where that is None."""
        return release is None or self.version is None or self.version < (*release, 1)


@lru_cache(maxsize=256)
def parse_created_by(created_by: str | None) -> ApplicationVersion:
    """Take `created_by` apart.

    Parameters
    ----------
    created_by : str or None
        What the footer says.

    Returns
    -------
    ApplicationVersion
    """
    text = (created_by or "")[:1000]
    match = _FORM.match(text)
    if match is None:
        name = _NAME.match(text)
        return ApplicationVersion(name.group(1).lower() if name else "", None)
    suffix = match.group(5)
    numbers = (int(number or 0) for number in match.group(2, 3, 4))
    return ApplicationVersion(match.group(1).lower(), (*numbers, int(not suffix or suffix[0] in ".+")))


@lru_cache(maxsize=256)
def page_quirks(created_by: str | None) -> PageQuirks:
    """Look up what is wrong in the files of a writer.

    Parameters
    ----------
    created_by : str or None
        What the footer says. A version that is not given is taken for the oldest.

    Returns
    -------
    PageQuirks
    """
    writer = parse_created_by(created_by)
    found = (faults for name, sound, faults in _PAGE_QUIRKS if name == writer.name and writer.is_before(sound))
    return next(found, PageQuirks())


def statistics_quirks(created_by: str | None, leaf: Leaf) -> list[StatisticsQuirk]:
    """List the known bugs of a writer that a column's statistics may suffer from.

    Parameters
    ----------
    created_by : str or None
        What the footer says.
    leaf : Leaf
        The column.

    Returns
    -------
    list of Bug
        Out of `STATISTICS_QUIRKS`.
    """
    writer, kind = parse_created_by(created_by), leaf_order(leaf).kind
    return [
        bug
        for bug in STATISTICS_QUIRKS
        if bug.name in ("", writer.name) and (not bug.name or writer.is_before(bug.before))
        if _COLUMNS[bug.columns](leaf, kind)
    ]


@lru_cache(maxsize=1024)
def untrusted_statistics(created_by: str | None, leaf: Leaf) -> frozenset[str]:
    """Say what of a column's statistics is not to be trusted.

    Parameters
    ----------
    created_by : str or None
        What the footer says.
    leaf : Leaf
        The column.

    Returns
    -------
    frozenset of str
        Any of ``"min_max"`` (min_value and max_value, of chunks, pages and column indexes), ``"deprecated_min_max"``
        (min and max), ``"null_count"``, ``"column_index"`` and ``"offset_index"``.
    """
    return frozenset(what for bug in statistics_quirks(created_by, leaf) for what in bug.what)


def resolve_check(check: str, message: str, created_by: str) -> tuple[str, str]:
    """Say which check a file fails: by a fault that its writer is not known for, one that is an error.

    Parameters
    ----------
    check : str
        Any check; those in `TOLERATED_DEFECTS` are looked up.
    message : str
        What is wrong.
    created_by : str
        What the footer says.

    Returns
    -------
    check, message : str
    """
    fault = TOLERATED_DEFECTS.get(check)
    if fault is None:
        return check, message
    writer = parse_created_by(created_by)
    if writer.name in fault.writers and writer.is_before(fault.writers[writer.name]):
        return check, f"{message} ({fault.why})"
    return fault.error, message
