"""Faults of writers that are known, and that all readers live with: errors, but of these writers warnings.

Those which readers have to know of, to read such files at all, are in `column.writers`; these are read whoever wrote
them, so that only a report has to tell them apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..created_by import Version, writer_of

__all__ = ["KNOWN", "Fault", "check_of"]


@dataclass(frozen=True, slots=True)
class Fault:
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


_GO = ("parquet-go", "github.com/xitongsys/parquet-go", "github.com/fraugster/parquet-go",
       "github.com/segmentio/parquet-go", "github.com/parquet-go/parquet-go")  # fmt: skip

# By the check, a warning, that it is of known writers.
KNOWN: dict[str, Fault] = {
    "writer-bool": Fault("thrift-type", {"fastparquet-python": None}, "fastparquet does so where it infers nulls"),
    "writer-converted": Fault("thrift-enum", {"parquet-cpp": None}, "parquet-cpp's UNKNOWN of old"),
    "writer-variant": Fault("schema-variant", {"duckdb": (1, 6, 0)}, "as DuckDB up to 1.5 has them"),
    "writer-null-count": Fault("page-null-count",
                               {"parquet-cpp": None, "parquet-cpp-arrow": (12, 0, 0), "parquet-mr": (1, 18, 0)},
                               "not counted in columns without statistics, apache/arrow#34326, parquet-java#3585"),
    "writer-row-count": Fault("page-row-count",
                              {"parquet-cpp": None, "parquet-cpp-arrow": (12, 0, 0), **dict.fromkeys(_GO)},
                              "writers in Go leave it at 0, and parquet-cpp counted entries, apache/arrow#34086"),
    "writer-deltas": Fault("page-deltas", {"duckdb": None}, "DuckDB takes them as those of INT64"),
}  # fmt: skip


def check_of(check: str, message: str, created_by: str) -> tuple[str, str]:
    """Say which check a file fails: by a fault that its writer is not known for, one that is an error.

    Parameters
    ----------
    check : str
        Any check; those in `KNOWN` are looked up.
    message : str
        What is wrong.
    created_by : str
        What the footer says.

    Returns
    -------
    check, message : str
    """
    fault = KNOWN.get(check)
    if fault is None:
        return check, message
    writer = writer_of(created_by)
    if writer.name in fault.writers and writer.is_before(fault.writers[writer.name]):
        return check, f"{message} ({fault.why})"
    return fault.error, message
