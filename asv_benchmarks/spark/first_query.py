"""The runner's ``--spark --startup``: times of the first query of a session, each in a fresh process."""

from __future__ import annotations

import json
import statistics
from typing import Any

from rich.console import Console

from asv_benchmarks import report
from asv_benchmarks.compare_reads import Settings, progress
from asv_benchmarks.environment import CLOCK
from asv_benchmarks.files import ensure
from asv_benchmarks.fresh_process import in_fresh_process, print_result
from asv_benchmarks.spark.queries import QUERIES
from asv_benchmarks.spark.session import plain_session, session

FIRST = ("aggregate", "sums", "look-up", "count")
SESSIONS = {"numparq": session, "native": plain_session}


def answer(task: str) -> None:
    """Time one query in a new session; Spark's reader gets one that numparq has not configured."""
    asked = json.loads(task)
    query = QUERIES[asked["query"]]
    with SESSIONS[asked["way"]](asked["threads"]) as spark:
        start = CLOCK()
        query.ways[asked["way"]](spark, asked["path"], asked["num_rows"])
        print_result({"seconds": CLOCK() - start})


def _median(name: str, way: str, settings: Settings) -> float:
    query = QUERIES[name]
    task: dict[str, Any] = {
        "query": name,
        "way": way,
        "path": str(ensure(query.folder, settings.folder, settings.scale)),
        "num_rows": query.folder.rows_of_file(settings.scale) * query.folder.files,
        "threads": settings.threads,
    }
    progress(f"timing {name}, {way}")
    return statistics.median(
        in_fresh_process("spark.first_query", task)["seconds"] for _ in range(max(1, settings.repeat))
    )


def compare_first_queries(out: Console, settings: Settings) -> bool:
    """Print the median times of first queries, and native / numparq.

    Returns
    -------
    bool
        True: what fails raises.
    """
    made = report.table(out, "first query", ["numparq ms", "native ms", "native / numparq"])
    results: dict[str, dict[str, float]] = {}
    for query in settings.on_spark:
        if query.name in FIRST:
            times = results[query.name] = {way: _median(query.name, way, settings) for way in SESSIONS}
            shown = [f"{seconds * 1e3:,.0f}" for seconds in times.values()]
            made.add_row(query.name, *shown, report.shown_ratio(times["native"] / times["numparq"]))
    progress("")
    report.notes(out, ["median times of the first query of a session, without the start of the session"])
    out.print(made)
    if settings.json:
        report.save(settings.json, "spark startup", settings.summary(), results)
    return True
