"""Interleaved timing of writers: the same frame to a local file, removed after each turn."""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq

from asv_benchmarks.environment import CLOCK
from asv_benchmarks.frames import FrameToWrite
from asv_benchmarks.timing import MIN_SECONDS, Outcome, describe, difference, take_turns
from asv_benchmarks.writers import Writer


@dataclass
class Written(Outcome):
    """Outcome of one writer on one frame, with its file size in bytes."""

    size: int | None = None


def attempt_write(writer: Writer, frame: pd.DataFrame, path: Path, kind: FrameToWrite) -> str | None:
    """Write once; return the failure, or None."""
    try:
        writer.write(frame, path, kind.codec, kind.row_group_size)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # polars' panics are no Exceptions
        return describe(error)
    return None


def _wrong_shape(path: Path, frame: pd.DataFrame) -> str | None:
    """Return a message if the file has other rows or columns than the frame."""
    found = pq.read_metadata(path)
    shape = (found.num_rows, found.num_columns)
    return None if shape == frame.shape else f"wrote {shape[0]:,} rows of {shape[1]:,} columns"


def warm_up(writers: Sequence[Writer], kind: FrameToWrite, frame: pd.DataFrame, path: Path) -> dict[str, Written]:
    """Write once with each, untimed; numparq's file, read by pyarrow, has to be the frame.

    Parameters
    ----------
    writers : sequence of Writer
        Who writes.
    kind : FrameToWrite
        What the frame is.
    frame : DataFrame
        The frame.
    path : Path
        Where to; nothing is there afterwards.

    Returns
    -------
    dict of str to Written
        By the writers' names, with the files' sizes, without times.
    """
    outcomes = {}
    for writer in writers:
        outcome = outcomes[writer.name] = Written(failure=attempt_write(writer, frame, path, kind))
        if outcome.failure is None:
            outcome.size = path.stat().st_size
            if writer.name == "numparq":
                outcome.difference = _difference_read_back(kind, frame, path)
            else:
                outcome.failure = _wrong_shape(path, frame)
        path.unlink(missing_ok=True)
    return outcomes


def _difference_read_back(kind: FrameToWrite, frame: pd.DataFrame, path: Path) -> str | None:
    try:
        return difference(kind.read_back(path), frame)
    except Exception as error:
        return describe(error)


def _timed(frame: pd.DataFrame, kind: FrameToWrite, path: Path, writer: Writer, outcome: Outcome) -> None:
    """Add one time to `outcome`; the file is removed at once, so that the disk is idle later."""
    gc.collect()
    start = CLOCK()
    outcome.failure = attempt_write(writer, frame, path, kind)
    outcome.times.append(CLOCK() - start)
    path.unlink(missing_ok=True)


def race_writers(
    writers: Sequence[Writer],
    kind: FrameToWrite,
    frame: pd.DataFrame,
    folder: Path,
    repeat: int,
    min_seconds: float = MIN_SECONDS,
) -> dict[str, Written]:
    """Time all writers on one frame, in turns.

    Parameters
    ----------
    writers : sequence of Writer
        They take turns, in every second round backwards.
    kind : FrameToWrite
        What the frame is.
    frame : DataFrame
        The frame, in memory.
    folder : Path
        Where a folder of files is made, and removed.
    repeat : int
        Least number of timed rounds; short ones go on until `min_seconds` have passed.

    Returns
    -------
    dict of str to Written
        By the writers' names. A writer that fails drops out, the others go on.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="written-", dir=folder) as written:
        path = Path(written, "frame.parquet")
        outcomes = warm_up(writers, kind, frame, path)
        take_turns(writers, outcomes, partial(_timed, frame, kind, path), repeat, min_seconds)
    return outcomes
