"""Read again without page indexes, where pages could not be read at the places that these name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from numparq.errors import ParquetError

if TYPE_CHECKING:
    from .file_reader import FileReader

_Result = TypeVar("_Result")


class IndexedScan(Protocol):
    """A scan that may read twice.

    Attributes
    ----------
    opened : sequence of FileReader
        Open readers of the current attempt.
    ignores_indexes : bool
        Whether this is the second attempt.
    """

    opened: Sequence[FileReader]
    ignores_indexes: bool


def doubts_indexes(scan: IndexedScan) -> bool:
    """Whether page indexes may be to blame for an error of the attempt."""
    return not scan.ignores_indexes and any(reader.context.doubts_indexes for reader in scan.opened)


def read_at_most_twice(scan: IndexedScan, read: Callable[[], _Result]) -> _Result:
    """Return what `read` returns, at the second attempt if need be."""
    try:
        result = read()
    except (ParquetError, MemoryError):
        if not doubts_indexes(scan):
            raise
    else:
        scan.opened = ()  # readers hold the predicate cache
        return result
    return read_without_indexes(scan, read)


def read_without_indexes(scan: IndexedScan, read: Callable[[], _Result]) -> _Result:
    """Return what `read` returns while the page indexes of all files of the failed attempt are ignored.

    If it succeeds, the indexes in doubt are wrong, and later reads ignore them. Else pages are damaged.
    """
    from numparq.prune.index_reader import ignore_page_indexes

    files = [(one.file, reader.context.doubts_indexes) for reader in scan.opened for one in reader.files]
    ignored_before = [ignore_page_indexes(file, True) for file, _ in files]
    scan.opened, scan.ignores_indexes, is_read = (), True, False
    try:
        result = read()
        is_read = True
        return result
    finally:
        scan.opened, scan.ignores_indexes = (), False
        for (file, is_doubted), was_ignored in zip(files, ignored_before, strict=True):
            if not was_ignored and not (is_read and is_doubted):
                ignore_page_indexes(file, False)
