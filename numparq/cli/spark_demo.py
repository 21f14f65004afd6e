"""`numparq spark demo`: optimize many small files and compare the bytes a point look-up reads."""

from __future__ import annotations

import errno
import os
import tempfile
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from numparq.dataset.discover.snapshot import DatasetSnapshot
from numparq.dataset.scan.query import DatasetQuery
from numparq.expr.expression import Expression, col
from numparq.scan.options import ScanOptions
from numparq.spark.session import open_session

from .spark import print_report

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["demo", "measure_lookup", "write_events"]

_USERS = 100_000
_START = "2026-01-01 00:00:00"


def demo(files: int, rows: int, keep: str | None, master: str | None, conf: list[str]) -> None:
    """Write a dataset of many small files, optimize it, and compare the bytes of point look-ups."""
    if keep and os.path.lexists(keep):
        raise FileExistsError(errno.EEXIST, "the path already exists; name a new directory", keep)
    from numparq.spark.optimization.optimize import optimize

    console = Console(highlight=False)
    with tempfile.TemporaryDirectory() as folder, open_session(master, conf, "numparq spark demo") as spark:
        path = keep or os.path.join(folder, "events")
        console.print(f"Spark {spark.version} ({spark.sparkContext.master}) writes {files:,} files, {rows:,} events")
        write_events(spark, path, files, rows)
        wanted = _sample_event(path)
        looks: dict[str, Expression] = {
            "one user": col("user") == wanted["user"],
            "one event": col("event") == wanted["event"],
        }
        before = {what: measure_lookup(path, filters) for what, filters in looks.items()}
        console.print("numparq optimizes them: sorted by user and time, Bloom filters where they help")
        print_report(optimize(spark, path, sort_by=["user", "time"]))
        after = {what: measure_lookup(path, filters) for what, filters in looks.items()}
    console.print(_comparison_table(before, after))
    if keep:
        console.print(f"the dataset is kept in {keep}")


def write_events(spark: SparkSession, path: str, files: int, rows: int) -> None:
    """Write events with Spark in order of time to `files` files in a new directory."""
    made = spark.range(0, rows, 1, files).selectExpr(
        "xxhash64(id) AS event",
        f"CAST(pmod(xxhash64(id, 1), {_USERS}) AS int) AS user",
        f"timestamp_seconds(unix_timestamp('{_START}') + id * 7 + pmod(xxhash64(id, 2), 3600)) AS time",
        "round(pmod(xxhash64(id, 3), 100000) / 100, 2) AS amount",
        "concat('item ', pmod(xxhash64(id, 4), 5000)) AS item",
        "element_at(array('AT', 'BR', 'CL', 'DE', 'EE', 'FI'), 1 + int(pmod(xxhash64(id, 5), 6))) AS country",
    )
    made.write.parquet(path)


def _sample_event(path: str) -> Any:
    from numparq.api import read_parquet

    return read_parquet(path, ["event", "user"], nrows=1).iloc[0]


def measure_lookup(path: str, filters: Expression) -> tuple[int, int]:
    """Read the matching rows of a dataset with cold caches; return their number and the bytes read.

    The bytes include footers and indexes.
    """
    contents = DatasetSnapshot(path, "hive", None, None, "name", None, None, None)
    try:
        query = DatasetQuery(contents, (), None, ScanOptions(filters=filters))
        frame = query.scan.read(query.file_selections, None)
        opened = contents.open_files(range(len(contents.files)))
        return len(frame), sum(file.source.num_bytes for file in opened)
    finally:
        contents.close()


def _comparison_table(before: dict[str, tuple[int, int]], after: dict[str, tuple[int, int]]) -> Table:
    table = Table(box=None, pad_edge=False)
    for title in ("look-up", "rows", "bytes read before", "bytes read after", "share"):
        table.add_column(title, justify="left" if title == "look-up" else "right")
    for what, (rows, old) in before.items():
        found, new = after[what]
        assert found == rows, f"{what}: {rows} rows before, {found} after"
        table.add_row(what, f"{rows:,}", f"{old:,}", f"{new:,}", f"{new / old:.2%}")
    return table
