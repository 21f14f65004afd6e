"""Which statistics of which writers are not to be trusted: one table of known bugs, by writer and column.

Whoever skips by statistics has to leave out what is named here. What all writers of the past had wrong together is in
the first rows. A bound that is too wide is no bug: it costs skipping, never rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from ..created_by import Version, writer_of
from ..schema import BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY, Leaf
from .order import order_of

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


@dataclass(frozen=True, slots=True)
class Bug:
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


_BOTH = (MIN_MAX, DEPRECATED_MIN_MAX)

BUGS: tuple[Bug, ...] = (
    Bug("", None, "not signed", (DEPRECATED_MIN_MAX,), "PARQUET-686: bytes were compared as signed ones"),
    Bug("parquet-mr", (1, 8, 0), "bytes", _BOTH, "PARQUET-251: buffers were used again under the bounds"),
    Bug("parquet-mr", (1, 10, 0), "not signed", _BOTH, "PARQUET-686, PARQUET-1494"),
    Bug("parquet-cpp", (1, 3, 0), "not signed", _BOTH, "PARQUET-686"),
    Bug("parquet-cpp", (1, 4, 0), "float", _BOTH, "PARQUET-1225: a NaN hides what comes after it"),
    Bug("parquet-cpp", None, "decimal bytes", _BOTH, "PARQUET-1655: each byte was compared as a signed one"),
    Bug("parquet-cpp-arrow", (4, 0, 0), "decimal bytes", _BOTH, "PARQUET-1655"),
    Bug("parquet-cpp-arrow", None, "in lists", (NULL_COUNT,), "apache/arrow#51097: empty lists are not counted"),
    Bug("parquet-rs", (5, 2, 0), "bytes", _BOTH, "apache/arrow-rs#641: shorter was less"),
    Bug("parquet-rs", (13, 0, 0), "decimal bytes", _BOTH, "apache/arrow-rs#1532: compared unsigned"),
    Bug("parquet-rs", (13, 0, 0), "unsigned", _BOTH, "apache/arrow-rs#1532: compared signed, without a logical type"),
    Bug("parquet-rs", None, "decimal bytes of any length", _BOTH, "apache/arrow-rs#10860, #11073"),
    Bug("parquet-rs", (43, 0, 0), "all", (OFFSET_INDEX,), "apache/arrow-rs#4459: no pages, where all is null"),
    Bug("parquet-rs", (53, 0, 0), "all", (COLUMN_INDEX,), "apache/arrow-rs#6310: empty bounds behind pages of nulls"),
    Bug("arrow2 - native rust implementation of arrow", None, "all", _BOTH, "pola-rs/polars#7842: too small a maximum"),
    Bug("polars", None, "all", (NULL_COUNT,), "pola-rs/polars#29321: times the number of pages"),
    Bug("polars", None, "unsigned", _BOTH, "pola-rs/polars#15323: compared signed"),
    Bug("polars", None, "decimal bytes", _BOTH, "pola-rs/polars#29347: compared unsigned"),
    Bug("duckdb", None, "in lists", (NULL_COUNT,), "duckdb/duckdb#24936: not counted behind a full page"),
    Bug("clickhouse", (25, 8, 0), "decimal bytes", _BOTH, "ClickHouse/ClickHouse#83754: compared unsigned"),
    Bug("clickhouse", (26, 5, 0), "of any length", (COLUMN_INDEX,), "ClickHouse/ClickHouse#103334: long is empty"),
    Bug("github.com/parquet-go/parquet-go", None, "decimal bytes", _BOTH, "parquet-go/parquet-go#592"),
    Bug("github.com/segmentio/parquet-go", None, "decimal bytes", _BOTH, "parquet-go/parquet-go#592"),
    # Two programs call themselves so; the older one gives no version.
    Bug("parquet-go", (18, 1, 0), "unsigned", _BOTH, "apache/arrow-go#209: it begins with a wrong least value"),
    Bug("parquet-go", (1, 0, 0), "all", (OFFSET_INDEX,), "xitongsys/parquet-go#547: sizes before compression"),
    Bug("hyparquet", None, "decimal", _BOTH, "hyparam/hyparquet-writer#38: not the stored numbers"),
)  # fmt: skip


def bugs_of(created_by: str | None, leaf: Leaf) -> list[Bug]:
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
        Out of `BUGS`.
    """
    writer, kind = writer_of(created_by), order_of(leaf).kind
    return [
        bug
        for bug in BUGS
        if bug.name in ("", writer.name) and (not bug.name or writer.is_before(bug.before))
        if _COLUMNS[bug.columns](leaf, kind)
    ]


@lru_cache(maxsize=1024)
def distrusted(created_by: str | None, leaf: Leaf) -> frozenset[str]:
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
    return frozenset(what for bug in bugs_of(created_by, leaf) for what in bug.what)
