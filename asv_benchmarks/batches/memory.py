"""Peak memory of a batched read in a fresh process, after a warm-up read of a small file.

The peak is resident memory including batches and mapped files, relative to the start of the read.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from asv_benchmarks.batches.files import BATCHED
from asv_benchmarks.batches.readers import load_batch_reader
from asv_benchmarks.fresh_process import FreshProcessFailed, PeakMeter, in_fresh_process, print_result
from asv_benchmarks.readers import ReaderUnavailable, limit_threads
from asv_benchmarks.timing import describe


@dataclass(frozen=True)
class BatchPeak:
    """Peak memory in bytes, numparq's limit, and the rows; or the failure."""

    peak: int = 0
    limit: int = 0
    rows: int = 0
    file_size: int = 0
    failure: str | None = None

    @property
    def within_limit(self) -> bool:
        """Whether the peak is at most the limit."""
        return self.peak <= self.limit


def measure_here(batched: str, contender: str, folder: Path, scale: float, threads: int) -> BatchPeak:
    """Measure in this process, which must be fresh."""
    task = BATCHED[batched].task(folder, scale)
    try:
        reader = load_batch_reader(contender, threads)
        reader.drain(BATCHED[batched].small(folder, scale))
        meter = PeakMeter()
        rows = reader.drain(task)
        return BatchPeak(meter.peak(), task.limit, rows, task.path.stat().st_size)
    except ReaderUnavailable as reason:
        return BatchPeak(failure=str(reason))
    except Exception as error:
        return BatchPeak(failure=describe(error))


def measure(batched: str, contender: str, folder: Path, scale: float, threads: int) -> BatchPeak:
    """Measure in a fresh process.

    Parameters
    ----------
    batched, contender : str
        Of `files` and `readers`.
    folder : Path
        Where the files are; they are made before.
    scale : float
        Their share of the full size.
    threads : int
        Number of threads.

    Returns
    -------
    BatchPeak
        With `failure` set where the process or the contender did not get through.
    """
    made = BATCHED[batched]
    made.small(folder, scale)
    task = {"batched": batched, "contender": contender, "folder": str(folder), "scale": scale, "threads": threads}
    try:
        return BatchPeak(**in_fresh_process("batches.memory", task))
    except FreshProcessFailed as error:
        return BatchPeak(failure=str(error))


def answer(task_text: str) -> None:
    """Run a task given as JSON in the fresh process; print a `BatchPeak` as JSON on the last line."""
    task = json.loads(task_text)
    limit_threads(task["threads"])
    folder = Path(task["folder"])
    print_result(asdict(measure_here(task["batched"], task["contender"], folder, task["scale"], task["threads"])))
