"""The folder of benchmark files: each made once, named by workload, generator version and scale."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import pyarrow.parquet as pq

from asv_benchmarks.workloads import DataFile


def default_folder() -> Path:
    """``NUMPARQ_BENCH_DATA``, or a folder among the user's temporary files."""
    user = os.environ.get("USER") or os.environ.get("USERNAME") or "user"
    return Path(os.environ.get("NUMPARQ_BENCH_DATA") or Path(tempfile.gettempdir()) / f"numparq-bench-{user}")


def ensure(file: DataFile, folder: Path, scale: float) -> Path:
    """Path of `file` at `scale` in `folder`; written first where it is not there.

    Parameters
    ----------
    file : DataFile
        One of those in `workloads` or `querying.files`.
    folder : Path
        Made when missing.
    scale : float
        1.0 is the full size.

    Returns
    -------
    Path
        A whole file: it is written under another name and then renamed.
    """
    path = folder / f"{file.name}-v{file.version}-x{scale:g}.parquet"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}.tmp")
        try:
            file.write(scale, unfinished)
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
    return path


class Picking(Protocol):
    """A workload or a query: ``pick`` chooses among a file's columns."""

    @property
    def pick(self) -> Callable[[Sequence[str]], list[str]] | None: ...


def columns_of(workload: Picking, path: Path) -> list[str] | None:
    """Names of the columns that `workload` reads of the file at `path`; None means all."""
    return None if workload.pick is None else workload.pick(pq.read_schema(path).names)
