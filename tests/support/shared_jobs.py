"""Commit jobs shared by several tests, on a small dataset."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pandas as pd

import numparq
from numparq.dataset.discover.files import list_files
from numparq.dataset.write.shared_job import SharedJob
from numparq.dataset.write.task_writer import TaskMessage
from numparq.errors import InvalidFileError


def frame(first: int, count: int = 4, keys: int = 2) -> pd.DataFrame:
    numbers = np.arange(first, first + count)
    return pd.DataFrame({"key": numbers % keys, "n": numbers})


def write_by_task(job: SharedJob, task: str, first: int, count: int = 4) -> TaskMessage:
    """Write rows in a task with a pickled copy of the job, as another process would."""
    with pickle.loads(pickle.dumps(job)).task(task) as writer:
        writer.write(frame(first, count))
    return pickle.loads(pickle.dumps(writer.message))


def write_numbers(folder: Path, count: int = 4, **options: object) -> None:
    numparq.to_parquet(frame(0, count), folder, partition_cols=["key"], **options)


def read_numbers(folder: Path) -> list[int]:
    """Return the numbers that numparq reads."""
    try:
        listing = list_files(folder)
    except (InvalidFileError, FileNotFoundError):
        return []
    return sorted(n for file in listing.files for n in numparq.read_parquet(file.path)["n"].tolist())


def visible_files(folder: Path) -> list[str]:
    """Return the files that plain directory readers see, without names in dot or underscore."""
    names = [str(path.relative_to(folder)) for path in Path(folder).rglob("*.parquet")]
    return sorted(name for name in names if not any(part[0] in "._" for part in name.split("/")))


def staged_leftovers(folder: Path) -> list[str]:
    """Return the files that a failed job leaves."""
    return sorted(path.name for path in Path(folder).iterdir() if path.name[0] in "._")
