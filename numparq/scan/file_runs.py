"""Run a step of a scan for each of its files: local ones in turn, remote ones concurrently."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from numparq.util.worker_pool import WorkerPool

if TYPE_CHECKING:
    from .file_reader import FileReader

# Files on an object store are read concurrently: most of their time is latency.
MAX_CONCURRENT_FILES = 16
_MAX_IN_MEMORY = 64 << 20


def runner_of(readers: Sequence[FileReader]) -> Callable[[Iterable[Any], Callable[[Any], None]], None]:
    """Return the function that runs a step for each item: concurrently if any of several files is remote."""
    are_remote = len(readers) > 1 and any(reader.file.source.is_remote for reader in readers)
    return _run_concurrently if are_remote else _run_in_turn


def keep_small_files(readers: Sequence[FileReader]) -> None:
    """Keep the bytes of the first joined files in memory from the selection of rows to their decoding."""
    num_bytes = 0
    for reader in readers:
        if reader.joined is not None:
            num_bytes += reader.file.source.size
            reader.keeps_bytes = num_bytes <= _MAX_IN_MEMORY


def select_first(readers: Sequence[FileReader], limit: int) -> list[FileReader]:
    """Select the first matching rows; return the readers that it takes."""
    needed: list[FileReader] = []
    for reader in readers:
        if limit <= 0 and needed:
            break
        reader.select(limit)
        limit -= reader.num_rows
        needed.append(reader)
    return needed


def _run_in_turn(items: Iterable[Any], do: Callable[[Any], None]) -> None:
    for item in items:
        do(item)


def _run_concurrently(items: Iterable[Any], do: Callable[[Any], None]) -> None:
    jobs = [partial(do, item) for item in items]
    with WorkerPool(min(MAX_CONCURRENT_FILES, len(jobs))) as pool:
        pool.run(jobs)
