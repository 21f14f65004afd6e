"""`numparq demo`: write a file, read all and parts of it, compare with pandas and pyarrow."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from numparq.api.write import to_parquet
from numparq.expr.column import col
from numparq.file.readable_file import ReadableFile
from numparq.scan.options import ScanOptions
from numparq.util.pluralize import agree_noun, agree_verb, pluralize

from .plan import page_map, wrap_line

ROW_GROUPS = 8


def demo(file: str, rows: int) -> None:
    """Write a new file of taxi rides, read all of it and small parts, and print times and bytes."""
    if os.path.lexists(file):
        raise FileExistsError(f"{file} already exists; remove it, or name another file: numparq demo FILE")
    console = Console(highlight=False)
    if not _has_pyarrow():
        console.print("pyarrow is not installed: numparq runs without comparison")
    _compare_write(console, make_rides(rows), file)
    with ReadableFile(file) as parquet:
        size, row_groups = parquet.source.size / 1e6, parquet.num_row_groups
        console.print(
            f"[bold]{size:.1f} MB, {pluralize(parquet.num_rows, 'row')}, {row_groups} "
            f"{agree_noun(row_groups, 'row group')}[/]"
        )
        console.print(str(parquet.schema), markup=False)
    first, stop = rows // 2, rows // 2 + rows // 100
    console.print("\n[bold]read the whole file[/]")
    _compare_read(console, file, {}, lambda: pd.read_parquet(file, engine="pyarrow"))
    console.print(f"\n[bold]read two columns, rows {first:,} to {stop:,}[/]")
    columns = ["pickup", "fare"]
    _compare_read(
        console,
        file,
        {"columns": columns, "row_range": (first, stop)},
        lambda: pd.read_parquet(file, engine="pyarrow", columns=columns).iloc[first:stop],
    )
    _read_filtered(console, file)
    console.print(f"\nthe file stays here: {file}", markup=False, soft_wrap=True)


def _has_pyarrow() -> bool:
    return find_spec("pyarrow") is not None


def _compare_write(console: Console, frame: pd.DataFrame, path: str) -> None:
    """Write the file and print the time next to that of pandas with pyarrow."""
    size = max(len(frame) // ROW_GROUPS, 1)
    console.print(f"[bold]write {len(frame):,} rides[/]")
    own = _best_time(lambda: to_parquet(frame, path, row_group_size=size), 3)
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_row("numparq", f"{own * 1e3:.1f} ms", f"{os.path.getsize(path) / 1e6:.2f} MB, page indexes and checksums")
    if _has_pyarrow():
        with tempfile.TemporaryDirectory() as folder:
            peer = os.path.join(folder, "by_pyarrow.parquet")
            other = _best_time(lambda: frame.to_parquet(peer, engine="pyarrow", row_group_size=size), 3)
            larger = f"{os.path.getsize(peer) / 1e6:.2f} MB"
        table.add_row(
            "pandas with pyarrow", f"{other * 1e3:.1f} ms", f"{larger}; numparq took {own / other:.0%} of that"
        )
    console.print(table)
    console.print()


def make_rides(rows: int) -> pd.DataFrame:
    """Return a frame of random taxi rides: times, numbers with gaps, booleans and strings."""
    random = np.random.default_rng(2026)
    seconds = np.sort(random.integers(0, 31_536_000, rows))
    zones = np.array([f"zone {number}" for number in range(260)], dtype=object)
    frame = pd.DataFrame(
        {
            "ride": np.arange(rows),
            "pickup": np.datetime64("2026-01-01", "us") + seconds * np.timedelta64(1, "s"),
            "zone": zones[random.integers(0, len(zones), rows)],
            "passengers": random.integers(1, 7, rows).astype("int8"),
            "fare": np.round(random.gamma(3.0, 6.0, rows), 2),
            "tip": np.round(random.gamma(1.0, 3.0, rows), 2),
            "shared": random.random(rows) < 0.1,
            "note": np.array([None, "lost and found"], dtype=object)[(random.random(rows) < 0.02).astype(int)],
        }
    )
    frame.loc[random.random(rows) < 0.2, "tip"] = np.nan
    return frame.astype({"zone": "str", "note": "str"})


def _compare_read(console: Console, path: str, options: dict[str, Any], peer: Callable[[], pd.DataFrame]) -> None:
    """Read with numparq and with pandas; print times and bytes read, and check that the frames are equal."""
    with ReadableFile(path) as file:
        ours = file.read(**options)
        read, size = file.source.num_bytes, file.source.size

    def numparq() -> pd.DataFrame:
        with ReadableFile(path) as file:
            return file.read(**options)

    own = _best_time(numparq)
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_row(
        "numparq", f"{own * 1e3:.1f} ms", f"{read / 1e6:.2f} MB read, {max(1 - read / size, 0):.0%} of the file skipped"
    )
    if _has_pyarrow():
        pd.testing.assert_frame_equal(ours.reset_index(drop=True), peer().reset_index(drop=True))
        other = _best_time(peer)
        table.add_row(
            "pandas with pyarrow",
            f"{other * 1e3:.1f} ms",
            f"numparq took {own / other:.0%} of that; the frames are equal",
        )
    console.print(table)


def _read_filtered(console: Console, path: str) -> None:
    """Read the rows that satisfy a filter and print the read plan."""
    columns, days = ["ride", "fare", "tip"], ("2026-07-01", "2026-07-08")
    wanted = (col("pickup") >= days[0]) & (col("pickup") < days[1]) & (col("fare") > 60)
    tuples = [("pickup", ">=", pd.Timestamp(days[0])), ("pickup", "<", pd.Timestamp(days[1])), ("fare", ">", 60)]
    console.print(f"\n[bold]read three columns of the rows that match[/] {wanted}")
    _compare_read(
        console,
        path,
        {"columns": columns, "filters": wanted},
        lambda: pd.read_parquet(path, engine="pyarrow", columns=columns, filters=tuples),
    )
    with ReadableFile(path) as file:
        plan = file.plan(columns, ScanOptions(filters=wanted))
        found = len(file.read(columns, wanted))
    console.print("the read plan, before any value is decoded:")
    for line in (*plan.explain().splitlines(), "pages: read (#), skipped (.)"):
        console.print(wrap_line(line, console), markup=False, soft_wrap=True)
    for row in page_map(plan, console.width):
        console.print(row, soft_wrap=True)
    console.print(f"{found:,} of the {pluralize(plan.num_rows, 'planned row')} {agree_verb(found, 'match')} the filter")


def _best_time(read: Callable[[], object], times: int = 5) -> float:
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        read()
        taken.append(time.perf_counter() - began)
    return min(taken)
