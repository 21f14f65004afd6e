"""Run numparq against its peers on the same files: ``python -m asv_benchmarks.peers`` (see README.md)."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from asv_benchmarks import compare_reads, compare_writes, report
from asv_benchmarks.batches import compare as batch_modes
from asv_benchmarks.batches.files import BATCHED
from asv_benchmarks.files import default_folder
from asv_benchmarks.frames import FRAMES
from asv_benchmarks.partitions import compare as partition_modes
from asv_benchmarks.partitions.frames import PARTITIONED
from asv_benchmarks.queries import compare as query_modes
from asv_benchmarks.queries.queries import QUERIES
from asv_benchmarks.readers import PEERS, limit_threads, peers_named
from asv_benchmarks.spark import compare as spark_modes
from asv_benchmarks.spark import first_query
from asv_benchmarks.spark.queries import QUERIES as SPARK_QUERIES
from asv_benchmarks.workloads import WORKLOADS, select_workloads


@dataclass(frozen=True)
class Subject:
    """A subject of measurement: its field of `compare_reads.Settings`, its table of entries, and its modes."""

    field: str
    table: Mapping[str, Any]
    modes: Mapping[str, Callable[[Console, compare_reads.Settings], bool]]


READING = {
    "times": compare_reads.compare_times,
    "memory": compare_reads.compare_memory,
    "startup": compare_reads.compare_startup,
}
WRITING = {"times": compare_writes.compare_writing, "memory": compare_writes.compare_write_memory}
QUERYING = {"times": query_modes.compare_queries, "memory": query_modes.compare_query_memory}
BATCHING = {"times": batch_modes.compare_batches, "memory": batch_modes.compare_batch_memory}
PARTITIONING = {"times": partition_modes.compare_partitioned}
ON_SPARK = {"times": spark_modes.compare_on_spark, "startup": first_query.compare_first_queries}

SUBJECTS = {
    "read": Subject("workloads", WORKLOADS, READING),
    "write": Subject("frames", FRAMES, WRITING),
    "queries": Subject("queries", QUERIES, QUERYING),
    "batches": Subject("batched", BATCHED, BATCHING),
    "partitions": Subject("partitioned", PARTITIONED, PARTITIONING),
    "spark": Subject("on_spark", SPARK_QUERIES, ON_SPARK),
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m asv_benchmarks.peers", description="numparq against its peers")
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--memory",
        dest="mode",
        action="store_const",
        const="memory",
        help="peak memory over the frame, each read (write, ...) in a fresh process",
    )
    which.add_argument(
        "--startup",
        dest="mode",
        action="store_const",
        const="startup",
        help="wall time of fresh processes, with a warm and an empty kernel cache; with --spark, first queries",
    )
    which.add_argument("--list", dest="mode", action="store_const", const="list", help="print the workloads' names")
    subject = parser.add_mutually_exclusive_group()
    subject.add_argument(
        "--write",
        dest="subject",
        action="store_const",
        const="write",
        help="writing instead of reading: times and sizes, or --memory",
    )
    subject.add_argument(
        "--queries",
        dest="subject",
        action="store_const",
        const="queries",
        help="reading with filters: times, bytes asked and goals, or --memory",
    )
    subject.add_argument(
        "--batches",
        dest="subject",
        action="store_const",
        const="batches",
        help="reading in batches, with a limit on memory: times, or --memory",
    )
    subject.add_argument(
        "--partitions",
        dest="subject",
        action="store_const",
        const="partitions",
        help="writing into partitions: times, files and bytes",
    )
    subject.add_argument(
        "--spark",
        dest="subject",
        action="store_const",
        const="spark",
        help="reading and writing on Spark, beside Spark itself: times, goals, or --startup (wants Java 17)",
    )
    parser.add_argument("--only", metavar="NAME,...", help="workloads to run; without it all")
    parser.add_argument("--peers", metavar="NAME,...", help=f"of {', '.join(PEERS)}; without it all")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the full size (default 1.0)")
    parser.add_argument("--threads", type=int, default=2, help="threads of each (default 2)")
    parser.add_argument("--repeat", type=int, default=5, help="least number of timed rounds (default 5)")
    parser.add_argument("--data", type=Path, default=default_folder(), help="folder of the files (default %(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every time and the versions to a file")
    parser.add_argument(
        "--check",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="hold numparq's frame against that of pandas with pyarrow (default: yes)",
    )
    parser.add_argument(
        "--sync", action="store_true", help="with --write, --partitions: peers wait for the disk too, as numparq does"
    )
    parser.set_defaults(mode="times", subject="read")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one mode.

    Parameters
    ----------
    arguments : sequence of str, optional
        The command line; by default that of the process.

    Returns
    -------
    int
        0, or 1 when numparq failed, differed from its peers, or missed what does not depend on the machine.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    subject = SUBJECTS[options.subject]
    if options.mode == "list":
        sys.stdout.write("\n".join(subject.table) + "\n")
        return 0
    if options.mode not in subject.modes:
        parser.error(f"there is no --{options.mode} of this")
    try:
        what = {
            **{one.field: () for one in SUBJECTS.values()},
            subject.field: tuple(select_workloads(options.only, subject.table)),
        }
        peers = peers_named(options.peers)
    except ValueError as error:
        parser.error(str(error))
    limit_threads(options.threads)
    warnings.simplefilter("ignore")  # peers warn of pandas' deprecations, between the lines of the table
    settings = compare_reads.Settings(
        **what,
        peers=tuple(peers),
        folder=options.data.absolute(),
        scale=options.scale,
        threads=options.threads,
        repeat=options.repeat,
        check=options.check,
        json=options.json,
        sync=options.sync,
    )
    return 0 if subject.modes[options.mode](report.console(), settings) else 1


if __name__ == "__main__":
    sys.exit(main())
