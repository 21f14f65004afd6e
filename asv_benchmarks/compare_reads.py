"""The runner's reads: compares times, peak memory, or start-up."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console

from asv_benchmarks import memory, report, startup
from asv_benchmarks.batches.files import BatchedFile
from asv_benchmarks.files import columns_of, ensure
from asv_benchmarks.frames import FrameToWrite
from asv_benchmarks.partitions.frames import PartitionedFrame
from asv_benchmarks.queries.queries import Query
from asv_benchmarks.readers import Reader, load, load_all
from asv_benchmarks.spark.queries import SparkQuery
from asv_benchmarks.timing import Outcome, time_in_turns
from asv_benchmarks.workloads import MEMORY_BOUND, WORKLOADS, Workload

COLD_REPEAT = 3


@dataclass(frozen=True)
class Settings:
    """Settings from the command line."""

    workloads: tuple[Workload, ...]
    peers: tuple[str, ...]
    folder: Path
    scale: float
    threads: int
    repeat: int
    check: bool
    json: Path | None
    frames: tuple[FrameToWrite, ...] = ()
    queries: tuple[Query, ...] = ()
    batched: tuple[BatchedFile, ...] = ()
    partitioned: tuple[PartitionedFrame, ...] = ()
    on_spark: tuple[SparkQuery, ...] = ()
    sync: bool = False

    def summary(self) -> dict[str, object]:
        """Return the settings that figures depend on."""
        return {"scale": self.scale, "threads": self.threads, "repeat": self.repeat}


def progress(text: str) -> None:
    """Print progress if a terminal is attached."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()


def prepare(settings: Settings, workload: Workload) -> tuple[Path, list[str] | None]:
    """Return the path of the workload's file, written if missing, and the columns to read."""
    progress(f"making the file of {workload.name}")
    path = ensure(workload.file, settings.folder, settings.scale)
    return path, columns_of(workload, path)


def time_workload(settings: Settings, workload: Workload, readers: list[Reader]) -> dict[str, Outcome]:
    """Time all readers on one workload, after comparing numparq's frame with pandas and pyarrow."""
    path, columns = prepare(settings, workload)
    progress(f"timing {workload.name}")
    readers = [reader.with_dates(workload.dates) for reader in readers]
    pandas = load("pyarrow", settings.threads).with_dates(workload.dates)
    expected = pandas.read(path, columns) if settings.check else None
    return time_in_turns(readers, path, columns, settings.repeat, expected)


def compare_times(out: Console, settings: Settings) -> bool:
    """Time all workloads and print the table.

    Returns
    -------
    bool
        False when numparq failed or gave back another frame than pyarrow somewhere.
    """
    readers, missing = load_all(["numparq", *settings.peers], settings.threads)
    results = {workload.name: time_workload(settings, workload, readers) for workload in settings.workloads}
    progress("")
    report.print_times(out, results, readers, missing)
    if settings.json:
        plain = {
            workload: {name: asdict(outcome) for name, outcome in outcomes.items()}
            for workload, outcomes in results.items()
        }
        versions = {reader.name: reader.version for reader in readers}
        report.save(settings.json, "times", {**settings.summary(), "versions": versions}, plain)
    own = [outcomes["numparq"] for outcomes in results.values() if "numparq" in outcomes]
    return not any(outcome.failure or outcome.difference for outcome in own)


def _peak_cells(peak: memory.Peak, bounded: bool) -> list[str]:
    if peak.failure:
        return ["failed", *[""] * 5]
    verdict = ("yes" if peak.within_bound else "[red]NO[/]") if bounded else ""
    share = f"{peak.over / peak.frame:.0%}" if peak.frame else "-"
    asked = "" if peak.file_bytes is None else f"{peak.file_bytes / memory.MB:,.2f} in {peak.file_requests:,}"
    return [f"{peak.frame / memory.MB:,.1f}", f"{peak.over / memory.MB:,.1f}", share, verdict, asked]


def compare_memory(out: Console, settings: Settings) -> bool:
    """Measure the peak of each reader on each workload, each in its own process, and print the table.

    Returns
    -------
    bool
        False when numparq failed, or went over its bound on a workload that has one.
    """
    readers, missing = load_all(["numparq", *settings.peers], settings.threads)
    small = ensure(WORKLOADS["small"].file, settings.folder, settings.scale)
    title = "peak memory over the frame itself (bound: 30 % of the frame + 64 MB); bytes asked of a file object"
    heads = ["reader", "frame MB", "over MB", "over %", "in bound", "MB read in requests"]
    made = report.table(out, "workload", heads)
    results: dict[str, dict[str, memory.Peak]] = {}
    for workload in settings.workloads:
        path, columns = prepare(settings, workload)
        task = memory.ReadTask(str(path), columns, str(small), settings.threads, workload.dates)
        results[workload.name] = {}
        for reader in readers:
            progress(f"measuring {reader.name} on {workload.name}")
            peak = memory.measure(reader.name, task)
            results[workload.name][reader.name] = peak
            made.add_row(workload.name, reader.name, *_peak_cells(peak, workload.name in MEMORY_BOUND))
    progress("")
    report.notes(out, [title])
    out.print(made)
    report.notes(out, (f"{name}: left out, {reason}" for name, reason in missing.items()))
    report.notes(out, report.failures(results))
    if settings.json:
        plain = {workload: {name: asdict(peak) for name, peak in peaks.items()} for workload, peaks in results.items()}
        report.save(settings.json, "memory", settings.summary(), plain)
    own = {workload: peaks["numparq"] for workload, peaks in results.items() if "numparq" in peaks}
    return all(not peak.failure and (name not in MEMORY_BOUND or peak.within_bound) for name, peak in own.items())


def _print_wall_times(out: Console, title: str, outcomes: Mapping[str, startup.WallTimes]) -> None:
    made = report.table(out, "process", ["best ms", "median ms"])
    for name, outcome in outcomes.items():
        seconds = (outcome.best, outcome.median)
        made.add_row(name, *("failed" if value is None else f"{value * 1e3:,.1f}" for value in seconds))
    report.notes(out, [title])
    out.print(made)
    report.notes(out, (f"{name}: {outcome.failure}" for name, outcome in outcomes.items() if outcome.failure))


def compare_startup(out: Console, settings: Settings) -> bool:
    """Time fresh processes on the small file, and numparq's with an empty kernel cache on the lineitem file.

    Returns
    -------
    bool
        False when one of the processes failed.
    """
    repeat = max(settings.repeat, 10)
    small = startup.small_file(prepare(settings, WORKLOADS["small"])[0], repeat)
    lineitem = startup.empty_cache(prepare(settings, WORKLOADS["lineitem-snappy"])[0], COLD_REPEAT)
    progress("")
    _print_wall_times(out, f"fresh processes, 100 rows, {repeat} each", small)
    own, other = small["numparq"], small["pyarrow"]
    if own.best is not None and other.best is not None:
        ratios = f"best {own.best / other.best:.2f}, median {own.median / other.median:.2f}"
        report.notes(out, [f"numparq / pyarrow: {ratios} (bound: 1.3)"])
    _print_wall_times(out, f"fresh processes of numparq, lineitem, kernel cache, {COLD_REPEAT} each", lineitem)
    warm, empty = lineitem["warm"], lineitem["empty"]
    if warm.best is not None and empty.best is not None:
        extra = f"best {empty.best - warm.best:.2f} s, median {empty.median - warm.median:.2f} s"
        report.notes(out, [f"extra time with an empty cache: {extra} (bound: 8 s)"])
    if settings.json:
        plain = {
            "small": {name: asdict(outcome) for name, outcome in small.items()},
            "lineitem": {name: asdict(outcome) for name, outcome in lineitem.items()},
        }
        report.save(settings.json, "startup", settings.summary(), plain)
    return not any(outcome.failure for outcome in (*small.values(), *lineitem.values()))
