"""Open a split's files, and check that they are unchanged since planning."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from typing import Any

from numparq.dataset.discover.files import DatasetListing
from numparq.dataset.discover.open_files import open_files
from numparq.dataset.listing.files import DataFile
from numparq.dataset.listing.remote import RemoteLister
from numparq.errors import InvalidFileError
from numparq.format.open_file import OpenFile

from .split import SplitPart

__all__ = ["footer_digest", "open_split_files", "stamp_file", "stamp_local_file"]

_CHANGED = "the file has changed since the table was divided into splits: divide it again"
_GONE = "the file is gone since the table was divided into splits"


def footer_digest(file: OpenFile) -> bytes:
    """Give what tells the footer of a file from others."""
    footer = file.footer
    return blake2b(footer.data[: footer.length].tobytes(), digest_size=16).digest()


def stamp_file(file: DataFile, opened: OpenFile) -> DataFile:
    """Note of a file, which is open, by what it is known again.

    Raises
    ------
    InvalidFileError
        When it has changed since it was opened.
    """
    stamp = _stamp(opened)
    opened.check_unchanged()
    return file._replace(size=opened.source.size) if stamp is None else stamp_local_file(file, *stamp)


def stamp_local_file(file: DataFile, size: int, modified: int) -> DataFile:
    """Note of a local file how large it is, and when it was modified, in nanoseconds.

    Its path is made absolute: another process may have another working directory. So is its name where that is another
    one, which it has when it has been moved to its place.
    """
    name = file.name if file.name == file.path else os.path.abspath(file.name)
    return file._replace(path=os.path.abspath(file.path), name=name, size=size, version=str(modified))


def _stamp(file: OpenFile) -> tuple[int, int] | None:
    """Give size and time of the last change of a local file."""
    return file.source.stamp() if hasattr(file.source, "stamp") else None


@contextmanager
def open_split_files(parts: Sequence[SplitPart], filesystem: Any) -> Iterator[list[OpenFile]]:
    """Open the files of a split, each once; they are closed at the end.

    Parameters
    ----------
    parts : sequence of SplitPart
        What the split has of each.
    filesystem : fsspec or pyarrow file system, or None
        Where they are; None for the local one.

    Raises
    ------
    FileNotFoundError
        When one of them is not there any more.
    InvalidFileError
        When one of them is not what was planned: by its size, time of change, ETag or footer.
    """
    planned = [part.file for part in parts]
    if filesystem is not None:
        _check_remote(planned, filesystem)
    try:
        files = open_files(DatasetListing(planned, filesystem=filesystem), planned)  # type: ignore[arg-type]
    except FileNotFoundError as error:
        raise _gone(planned, error) from None
    try:
        for part, file in zip(parts, files, strict=True):
            if not _is_planned(part, file):
                raise InvalidFileError(_CHANGED, file=part.file.name)
        yield files
    finally:
        for file in files:
            file.close()


def _is_planned(part: SplitPart, file: OpenFile) -> bool:
    """Say whether a file is the one that was planned, as far as it tells itself."""
    stamp = _stamp(file)
    if stamp is not None and (part.file.size, part.file.version) != (stamp[0], str(stamp[1])):
        return False
    return part.digest is None or part.digest == footer_digest(file)


def _check_remote(planned: Sequence[DataFile], filesystem: Any) -> None:
    """Ask a file system, and not what it remembers, whether files are those that were planned."""
    if hasattr(filesystem, "invalidate_cache"):
        for file in planned:
            filesystem.invalidate_cache(file.path)
    try:
        found = RemoteLister(filesystem).look_at_all([file.path for file in planned])
    except FileNotFoundError as error:
        raise _gone(planned, error) from None
    for file, entry in zip(planned, found, strict=True):
        if entry is None or _differ(file.size, entry.size) or _differ(file.version, entry.version):
            raise InvalidFileError(_CHANGED, file=file.name)


def _differ(one: object, other: object) -> bool:
    return one is not None and other is not None and one != other


def _gone(planned: Sequence[DataFile], error: FileNotFoundError) -> FileNotFoundError:
    """Say which file is gone."""
    told = str(error.filename or error)
    names = [file.name for file in planned if file.path in told or file.name in told]
    return FileNotFoundError(errno.ENOENT, _GONE, names[0] if names else told)
