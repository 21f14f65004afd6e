"""`numparq spark demo`: optimize many small files and compare the bytes a point look-up reads."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from rich.table import Table

from numparq.dataset.discover.snapshot import DatasetSnapshot
from numparq.dataset.scan.query import DatasetQuery
from numparq.expr.column import col
from numparq.expr.expression import Expression
from numparq.io.opened_path import OpenedPath
from numparq.scan.options import ScanOptions
from numparq.spark.session import open_session
from numparq.util.pluralize import agree_noun, pluralize

from .spark import print_report
from .terminal import open_console

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_USERS = 100_000
_START = "2026-01-01 00:00:00"


def demo(path: str, files: int, rows: int, master: str | None, conf: list[str]) -> None:
    """Write a new dataset of many small files, optimize it, and compare the bytes of point look-ups."""
    if os.path.lexists(path):
        raise FileExistsError(f"{path} already exists; remove it, or name another directory: numparq spark demo DIR")
    from numparq.spark.optimization.optimize import optimize

    console = open_console()
    path = os.path.abspath(path)  # the JVM may have another working directory
    with open_session(master, conf, "numparq spark demo") as spark:
        console.print(
            f"Spark {spark.version} ({spark.sparkContext.master}) writes {pluralize(files, 'file')}, "
            f"{pluralize(rows, 'event')}"
        )
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
    console.print(f"the dataset stays here: {path}", markup=False, soft_wrap=True)


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
    from numparq.api.read import read_parquet

    return read_parquet(path, ["event", "user"], nrows=1).iloc[0]


def measure_lookup(path: str, filters: Expression) -> tuple[int, int]:
    """Read the matching rows of a dataset with cold caches; return their number and the bytes read.

    The bytes include footers and indexes.
    """
    contents = DatasetSnapshot(OpenedPath(path), "hive", None, None, "name", None, "auto")
    try:
        query = DatasetQuery(contents, (), None, ScanOptions(filters=filters))
        frame = query.scan.read()
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
        assert found == rows, f"{what}: {rows} {agree_noun(rows, 'row')} before, {found} after"
        table.add_row(what, f"{rows:,}", f"{old:,}", f"{new:,}", f"{new / old:.2%}")
    return table
