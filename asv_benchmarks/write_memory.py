"""Peak memory of one write beyond the DataFrame, in a fresh process.

The frame is loaded and the writer warmed up with its first rows before the measurement. The peak is compared with the
frame's bytes in the file's largest row group.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow.parquet as pq

from asv_benchmarks.frames import FRAMES, FrameToWrite
from asv_benchmarks.fresh_process import FreshProcessFailed, PeakMeter, in_fresh_process, print_result
from asv_benchmarks.memory import frame_bytes
from asv_benchmarks.readers import ReaderUnavailable, limit_threads
from asv_benchmarks.write_timing import attempt_write
from asv_benchmarks.writers import load_writer

WARM_UP_ROWS = 1_000


@dataclass(frozen=True)
class WritePeak:
    """Memory of one write, in bytes, or why there is none.

    Attributes
    ----------
    over : int
        Highest resident memory during the write, less that before it.
    frame : int
        What the frame holds.
    row_group : int
        What the rows of the file's largest row group hold in the frame.
    rows : int
        How many those are.
    size : int
        Of the file.
    failure : str or None
        Why there is nothing.
    """

    over: int = 0
    frame: int = 0
    row_group: int = 0
    rows: int = 0
    size: int = 0
    failure: str | None = None

    @property
    def within_bound(self) -> bool:
        """Whether the peak is at most one row group of the frame."""
        return self.over <= self.row_group


def measure_here(name: str, kind: FrameToWrite, source: Path, target: Path, threads: int) -> WritePeak:
    """Measure in this process, which must be fresh; `target` is overwritten."""
    try:
        writer = load_writer(name, threads)
    except ReaderUnavailable as reason:
        return WritePeak(failure=str(reason))
    frame = kind.load(source)
    failure = attempt_write(writer, frame.head(WARM_UP_ROWS), target, kind)
    target.unlink(missing_ok=True)
    meter = PeakMeter()
    failure = failure or attempt_write(writer, frame, target, kind)
    over = meter.peak()
    if failure is not None:
        return WritePeak(failure=failure)
    metadata = pq.read_metadata(target)
    rows = max((metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)), default=0)
    return WritePeak(over, frame_bytes(frame), frame_bytes(frame.iloc[:rows]), rows, target.stat().st_size)


def measure_write(name: str, kind: FrameToWrite, source: Path, folder: Path, threads: int) -> WritePeak:
    """Measure in a fresh process.

    Parameters
    ----------
    name : str
        Writer, of `writers`.
    kind : FrameToWrite
        The frame, one of `FRAMES`.
    source : Path
        The file that it is made of.
    folder : Path
        Where a folder for what is written is made, and removed.
    threads : int
        Number of threads.

    Returns
    -------
    WritePeak
        With `failure` set where the process or the writer did not get through.
    """
    with tempfile.TemporaryDirectory(prefix="written-", dir=folder) as written:
        target = str(Path(written, "frame.parquet"))
        task = {"name": name, "kind": kind.name, "source": str(source), "target": target, "threads": threads}
        try:
            return WritePeak(**in_fresh_process("write_memory", task))
        except FreshProcessFailed as error:
            return WritePeak(failure=str(error))


def answer(task_text: str) -> None:
    """Run a task given as JSON in the fresh process; print a `WritePeak`."""
    task = json.loads(task_text)
    limit_threads(task["threads"])
    source, target = Path(task["source"]), Path(task["target"])
    print_result(asdict(measure_here(task["name"], FRAMES[task["kind"]], source, target, task["threads"])))
