"""Peak memory of one query beyond its DataFrame, in a fresh process, after a warm-up query."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from asv_benchmarks.fresh_process import FreshProcessFailed, PeakMeter, in_fresh_process, print_result
from asv_benchmarks.memory import Peak, frame_bytes
from asv_benchmarks.queries.queries import QUERIES
from asv_benchmarks.queries.readers import load_query_reader
from asv_benchmarks.readers import ReaderUnavailable, limit_threads
from asv_benchmarks.timing import attempt


def measure_here(query: str, contender: str, folder: Path, scale: float, threads: int) -> Peak:
    """Measure in this process, which must be fresh."""
    try:
        run = load_query_reader(contender, threads).run
    except ReaderUnavailable as reason:
        return Peak(failure=str(reason))
    task = QUERIES[query].task(folder, scale)
    attempt(run, task)
    meter = PeakMeter()
    frame, failure = attempt(run, task)
    peak = meter.peak()
    return Peak(failure=failure) if frame is None else Peak(peak, frame_bytes(frame))


def measure(query: str, contender: str, folder: Path, scale: float, threads: int) -> Peak:
    """Measure in a fresh process.

    Parameters
    ----------
    query : str
        Of `queries`.
    contender : str
        Of `readers`.
    folder : Path
        Where the files are.
    scale : float
        Their share of the full size.
    threads : int
        Number of threads.

    Returns
    -------
    Peak
        With `failure` set where the process or the contender did not get through.
    """
    task = {"query": query, "contender": contender, "folder": str(folder), "scale": scale, "threads": threads}
    try:
        return Peak(**in_fresh_process("queries.memory", task))
    except FreshProcessFailed as error:
        return Peak(failure=str(error))


def answer(task_text: str) -> None:
    """Run a task given as JSON in the fresh process; print a `Peak` as JSON on the last line."""
    task = json.loads(task_text)
    limit_threads(task["threads"])
    folder = Path(task["folder"])
    print_result(asdict(measure_here(task["query"], task["contender"], folder, task["scale"], task["threads"])))
