"""Times writers in turns on one frame, each time to a new folder, after pyarrow has read back their files."""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd

from asv_benchmarks.environment import CLOCK
from asv_benchmarks.files import remove
from asv_benchmarks.partitions.frames import PartitionedFrame
from asv_benchmarks.partitions.writers import PartsWriter
from asv_benchmarks.queries.timing import difference
from asv_benchmarks.timing import MIN_SECONDS, Outcome, describe, take_turns


@dataclass
class Parts(Outcome):
    """Outcome of one writer on one frame, with number and bytes of files."""

    files: int | None = None
    size: int | None = None


def attempt_write(writer: PartsWriter, kind: PartitionedFrame, frame: pd.DataFrame, folder: Path) -> str | None:
    """Write once; return the failure, or None."""
    try:
        writer.write(frame, folder, kind.codec, list(kind.keys))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # polars' panics are no Exceptions
        return describe(error)
    return None


def written(writer: PartsWriter, kind: PartitionedFrame, frame: pd.DataFrame, folder: Path) -> Parts:
    """Write once, untimed, and check that pyarrow reads the frame in any order."""
    outcome = Parts(failure=attempt_write(writer, kind, frame, folder))
    if outcome.failure is None:
        files = list(folder.rglob("*.parquet"))
        outcome.files, outcome.size = len(files), sum(file.stat().st_size for file in files)
        outcome.difference = _difference_read_back(kind, frame, folder)
    remove(folder)
    return outcome


def _difference_read_back(kind: PartitionedFrame, frame: pd.DataFrame, folder: Path) -> str | None:
    try:
        found = pd.read_parquet(folder, engine="pyarrow", columns=list(frame.columns))
    except Exception as error:
        return describe(error)
    return difference(found, frame)


def race_writers(
    writers: Sequence[PartsWriter],
    kind: PartitionedFrame,
    frame: pd.DataFrame,
    folder: Path,
    repeat: int,
    min_seconds: float = MIN_SECONDS,
) -> dict[str, Parts]:
    """Time all writers on one frame, in turns.

    Parameters
    ----------
    writers : sequence of PartsWriter
        They take turns, in every second round backwards.
    kind : PartitionedFrame
        What the frame is.
    frame : DataFrame
        The frame, in memory.
    folder : Path
        Where a folder is made, and removed.
    repeat : int
        Least number of timed rounds; short ones go on until `min_seconds` have passed.

    Returns
    -------
    dict of str to Parts
        By the writers' names. A writer that fails drops out, the others go on.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="parts-", dir=folder) as temporary:
        target = Path(temporary, "frame")
        outcomes = {writer.name: written(writer, kind, frame, target) for writer in writers}
        take_turns(writers, outcomes, partial(_timed, kind, frame, target), repeat, min_seconds)
    return outcomes


def _timed(kind: PartitionedFrame, frame: pd.DataFrame, folder: Path, writer: PartsWriter, outcome: Outcome) -> None:
    """Add one time to `outcome`; the files are removed at once."""
    gc.collect()
    start = CLOCK()
    outcome.failure = attempt_write(writer, kind, frame, folder)
    outcome.times.append(CLOCK() - start)
    remove(folder)
