"""The folder of benchmark files, each written once and named by workload, generator version and scale."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import pyarrow.parquet as pq


def default_folder() -> Path:
    """Return ``NUMPARQ_BENCH_DATA``, or a folder among the user's temporary files."""
    user = os.environ.get("USER") or os.environ.get("USERNAME") or "user"
    return Path(os.environ.get("NUMPARQ_BENCH_DATA") or Path(tempfile.gettempdir()) / f"numparq-bench-{user}")


class Recipe(Protocol):
    """A file that can be generated, or a folder of files (`queries.folders`)."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> int: ...

    @property
    def suffix(self) -> str: ...

    def write(self, scale: float, path: Path) -> None: ...


def ensure(file: Recipe, folder: Path, scale: float) -> Path:
    """Path of `file` at `scale` in `folder`; written first where it is not there.

    Parameters
    ----------
    file : Recipe
        One of those in `workloads`, `queries.files` or `queries.folders`.
    folder : Path
        Made when missing.
    scale : float
        1.0 is the full size.

    Returns
    -------
    Path
        A whole file (or folder): it is written under another name and then renamed.
    """
    path = folder / f"{file.name}-v{file.version}-x{scale:g}{file.suffix}"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(f"{path.name}.{os.getpid()}.tmp")
        try:
            file.write(scale, unfinished)
            unfinished.replace(path)
        finally:
            remove(unfinished)
    return path


def remove(path: Path) -> None:
    """Remove a file or a folder, if it exists."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


class Picking(Protocol):
    """A workload or a query, whose ``pick`` chooses among a file's columns."""

    @property
    def pick(self) -> Callable[[Sequence[str]], list[str]] | None: ...


def columns_of(workload: Picking, path: Path) -> list[str] | None:
    """Return the columns that `workload` reads from `path` (from the first file of a folder); None means all."""
    if workload.pick is None:
        return None
    first = min(path.rglob("*.parquet")) if path.is_dir() else path
    return workload.pick(pq.read_schema(first).names)
