"""Peak memory of one read beyond its DataFrame, in a fresh process (Linux: VmHWM of /proc/self).

The peak is resident memory, anonymous and mapped, after a warm-up read of the small file, less the frame's bytes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from asv_benchmarks.counting_file import bytes_read
from asv_benchmarks.fresh_process import FreshProcessFailed, PeakMeter, in_fresh_process, print_result
from asv_benchmarks.readers import ReaderUnavailable, limit_threads, load
from asv_benchmarks.timing import attempt, describe

MB = 1_000_000


@dataclass(frozen=True)
class Peak:
    """Memory of one read in bytes, or the failure."""

    peak: int = 0
    frame: int = 0
    file_bytes: int | None = None
    file_requests: int | None = None
    failure: str | None = None

    @property
    def over(self) -> int:
        """Return the peak without the frame."""
        return self.peak - self.frame

    @property
    def within_bound(self) -> bool:
        """Whether the excess is at most 30 % of the frame and 64 MB."""
        return self.over <= 0.30 * self.frame + 64 * MB


def _objects_bytes(values: np.ndarray) -> int:
    """Return the bytes of an object array: pointers, and each distinct object once."""
    return values.nbytes + sum(sys.getsizeof(value) for value in {id(value): value for value in values.flat}.values())


def frame_bytes(frame: pd.DataFrame) -> int:
    """Return the bytes of a frame: blocks, Arrow buffers, distinct objects, index."""
    total = int(frame.index.memory_usage(deep=True))
    for position in range(frame.shape[1]):
        column = frame.iloc[:, position]
        if column.dtype == object:
            total += _objects_bytes(column.to_numpy())
        else:
            total += int(column.memory_usage(index=False, deep=True))
    return total


@dataclass(frozen=True)
class ReadTask:
    """What a process reads: a file, its columns (None means all), and before them a small file to warm up with.

    `dates` is ``"objects"`` or ``"datetime64"``, for readers that can choose.
    """

    path: str
    columns: Sequence[str] | None
    small: str
    threads: int
    dates: str = "objects"


def measure_here(name: str, task: ReadTask) -> Peak:
    """Measure in this process, which must be fresh."""
    try:
        reader = load(name, task.threads).with_dates(task.dates)
    except ReaderUnavailable as reason:
        return Peak(failure=str(reason))
    attempt(reader.read, Path(task.small), None)
    meter = PeakMeter()
    path, columns = Path(task.path), None if task.columns is None else list(task.columns)
    frame, failure = attempt(reader.read, path, columns)
    peak = meter.peak()
    if frame is None:
        return Peak(failure=failure)
    size = frame_bytes(frame)
    if name != "numparq":
        return Peak(peak, size)
    try:
        counted = bytes_read(path, columns, task.threads)
    except Exception as error:
        sys.stderr.write(f"reading through a file object failed: {describe(error)}\n")
        return Peak(peak, size)
    return Peak(peak, size, counted.bytes, counted.requests)


def measure(name: str, task: ReadTask) -> Peak:
    """Measure the reader of a name in a fresh process; `Peak.failure` is set if the process or the reader failed."""
    try:
        return Peak(**in_fresh_process("memory", {"name": name, **asdict(task)}))
    except FreshProcessFailed as error:
        return Peak(failure=str(error))


def answer(task_text: str) -> None:
    """Run a task given as JSON in the fresh process; print a `Peak` as JSON on the last line."""
    fields = json.loads(task_text)
    name, task = fields.pop("name"), ReadTask(**fields)
    limit_threads(task.threads)
    print_result(asdict(measure_here(name, task)))
