"""A file of each writer, and its read plan pruned step by step."""

from __future__ import annotations

import io
import struct

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq import col
from numparq.column.read.chunk_table import ChunkTables
from numparq.expr.bind import bind
from numparq.format.open_file import OpenFile
from numparq.plan.row_ranges import RowRanges
from numparq.prune.planner import ReadPlanner
from support.files.builder import from_bytes, to_bytes, with_footer

ROWS = 4000
STEP = 1000  # rows of a row group


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    rows = np.arange(ROWS)
    nulls = rng.random(ROWS) < 0.1
    return pd.DataFrame(
        {
            "k": rows,
            "n": pd.Series(rows // 7, dtype="Int64").mask(nulls),
            "x": np.where(rng.random(ROWS) < 0.02, np.nan, rng.random(ROWS) * rows),
            "s": [f"v{row // 3:05d}" for row in rows],
            "c": [f"c{row % 40 * 2}" for row in rows],
            "e": pd.array([None if 1200 <= row < 1900 else row for row in rows], "Int64"),
        }
    )


FRAME = frame()
WRITTEN = numparq.to_parquet(FRAME, row_group_size=STEP, max_rows_per_page=100, use_dictionary=["c"])

QUESTIONS = {
    "point": (col("k") == 1234, lambda d: d.k == 1234),
    "range": (col("k").between(1950, 2050), lambda d: d.k.between(1950, 2050)),
    "ends": ((col("k") < 30) | (col("k") >= 3980), lambda d: (d.k < 30) | (d.k >= 3980)),
    "nulls": (col("n") == 40, lambda d: (d.n == 40).fillna(False)),
    "no nulls": (col("n").is_null() & (col("k") < 500), lambda d: d.n.isna() & (d.k < 500)),
    "not": (~(col("x") < 3000), lambda d: d.x >= 3000),
    "float": ((col("x") > 3500) & (col("k") > 100), lambda d: (d.x > 3500) & (d.k > 100)),
    "string": (col("s") == "v00400", lambda d: d.s == "v00400"),
    "prefix": (col("s").startswith("v0012"), lambda d: d.s.str.startswith("v0012")),
    "like": (col("s").like("v012%7"), lambda d: d.s.str.match("v012.*7$")),
    "several": (col("k").isin([5, 777, 3333]), lambda d: d.k.isin([5, 777, 3333])),
    "two": ((col("k") > 1990) & (col("s") < "v00680"), lambda d: (d.k > 1990) & (d.s < "v00680")),
    "either": ((col("k") < 10) | (col("s") > "v01330"), lambda d: (d.k < 10) | (d.s > "v01330")),
    "code": (col("c") == "c3", lambda d: d.c == "c3"),
    "gap": (col("e").is_null(), lambda d: d.e.isna()),
    "no gap": (
        col("e").is_not_null() & (col("k") >= 1000) & (col("k") < 2000),
        lambda d: d.e.notna() & (d.k >= 1000) & (d.k < 2000),
    ),
    "none": (col("k") > 10**6, lambda d: d.k > 10**6),
    "all": (col("k") >= 0, lambda d: d.k >= 0),
}


class PlannedFile:
    """A file and its read plan."""

    def __init__(self, data, **options) -> None:
        self.file = OpenFile(data, **options)
        self.leaves = list(self.file.schema)
        groups = range(self.file.num_row_groups)
        tables = ChunkTables(self.file.footer, self.leaves, groups, self.file.footer_start)
        self.planner = ReadPlanner(self.file, self.leaves, tables)
        self.counts = self.file.footer.row_group_num_rows.tolist()
        self._all_rows = {group: RowRanges.all(self.counts[group]) for group in groups}
        self.whole = self.planner.plan_rows(self._all_rows).build()

    def count_requests(self) -> CountingSource:
        """Have the file read through a source that notes byte ranges and round trips."""
        self.file.source = CountingSource(self.file.source)
        self.file.reader = self.file.reader.at_source(self.file.source)
        return self.file.source

    def pruned(self, expression, rows=None):
        """Return the plan of all rows, or of some by row group, pruned."""
        plan = self.planner.plan_rows(rows or self._all_rows)
        self.planner.prune(plan, bind(expression, self.file.schema))
        return plan.build()

    def fully_matched(self, expression, row_groups=None):
        """Return the row groups whose rows all match by statistics, of all or of some."""
        bound = bind(expression, self.file.schema)
        row_groups = [*self._all_rows] if row_groups is None else row_groups
        return self.planner.match_row_groups(row_groups, bound)[1]

    def located(self, rows, *leaves):
        """Return the plan of some rows, with pages of all leaves, or of the first so many, and then more."""
        plan = self.planner.plan_rows(rows)
        for count in leaves or (len(self.leaves),):
            self.planner.locate_pages(plan, self.leaves[:count])
        return plan.build()

    def rows(self, plan) -> set[int]:
        starts = np.concatenate([[0], np.cumsum(self.counts)])
        return {int(row) for group in plan for row in group.rows.indices() + starts[group.ordinal]}


def pruning_steps(plan) -> set[str]:
    return {cut.level for cut in plan.cuts}


def by_pyarrow(**options) -> bytes:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pandas(FRAME), out, row_group_size=STEP, data_page_size=512, **options)
    return out.getvalue()


def by_polars() -> bytes:
    out = io.BytesIO()
    pytest.importorskip("polars").from_pandas(FRAME).write_parquet(out, row_group_size=STEP, data_page_size=512)
    return out.getvalue()


def by_duckdb(path) -> bytes:
    duckdb = pytest.importorskip("duckdb")
    source = FRAME  # noqa: F841  (which duckdb finds by its name)
    duckdb.sql("from source").write_parquet(str(path / "d.parquet"), row_group_size=2048)
    return (path / "d.parquet").read_bytes()


WRITERS = {
    "numparq": lambda path: WRITTEN,
    "numparq, Bloom filters": lambda path: numparq.to_parquet(
        FRAME, row_group_size=STEP, max_rows_per_page=64, bloom_filter_options={"s": True, "k": True}
    ),
    "pyarrow": lambda path: by_pyarrow(),
    "pyarrow, page index": lambda path: by_pyarrow(write_page_index=True, use_dictionary=["c"]),
    "pyarrow, no statistics": lambda path: by_pyarrow(write_statistics=False),
    "polars": lambda path: by_polars(),
    "duckdb": by_duckdb,
}


class CountingSource:
    """Records the ranges read from a source, and the number of calls."""

    is_remote = False

    def __init__(self, source) -> None:
        self._source, self.ranges, self.trips = source, [], 0

    def read_ranges(self, ranges):
        ranges = [tuple(map(int, pair)) for pair in ranges]
        self.ranges += ranges
        self.trips += 1
        return self._source.read_ranges(ranges)

    def __getattr__(self, name):
        return getattr(self._source, name)


def with_changed_indexes(change, data=WRITTEN, **more) -> bytes:
    """Change indexes in place: `change` gets the column's number and its indexes; None removes one."""
    (length,) = struct.unpack("<I", data[-8:-4])
    body = bytearray(data[: -8 - length])
    footer, _ = from_bytes("FileMetaData", data[-8 - length : -8])
    names = {"column_index": "ColumnIndex", "offset_index": "OffsetIndex"}
    for group in footer.row_groups:
        for place, chunk in enumerate(group.columns):
            found = {
                name: from_bytes(struct_name, bytes(body[getattr(chunk, f"{name}_offset") :]))[0]
                for name, struct_name in names.items()
            }
            change(place, found)
            for name, index in found.items():
                written = index if isinstance(index, (bytes, type(None))) else to_bytes(index)
                setattr(chunk, f"{name}_offset", None if written is None else len(body))
                setattr(chunk, f"{name}_length", None if written is None else len(written))
                body += written or b""
    for name, value in more.items():
        setattr(footer, name, value)
    return with_footer(bytes(body), footer)
