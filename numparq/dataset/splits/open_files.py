"""Open a split's files, and check that they are unchanged since planning."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from numparq.dataset.discover.expected_parts import ANOTHER_VERSION, fingerprint
from numparq.dataset.discover.files import DatasetListing
from numparq.dataset.discover.open_files import open_files
from numparq.dataset.listing.files import DataFile
from numparq.dataset.listing.remote import RemoteLister
from numparq.errors import InvalidFileError
from numparq.format.key_values.spark import SparkCalendar
from numparq.format.open_file import OpenFile
from numparq.keys.part_keys import DatasetKeys

from .split import SplitPart

_CHANGED = "the file has changed since the table was divided into splits; divide it again"
_GONE = "the file was removed since the table was divided into splits; divide it again"


def stamp_file(file: DataFile, opened: OpenFile) -> DataFile:
    """Return an open file with the size and version that identify it, as they were when it was opened."""
    if opened.stamp is None or opened.source.is_remote:
        return file._replace(size=opened.source.size)
    return stamp_local_file(file, *opened.stamp)


def stamp_local_file(file: DataFile, size: int, modified: int) -> DataFile:
    """Return a local file with its size, its modification time in nanoseconds as version, and absolute path and name.

    Another process may have another working directory. The name differs from the path if the file is still staged.
    """
    name = file.name if file.name == file.path else os.path.abspath(file.name)
    return file._replace(path=os.path.abspath(file.path), name=name, size=size, version=str(modified))


@contextmanager
def open_split_files(
    parts: Sequence[SplitPart],
    filesystem: Any,
    calendar: SparkCalendar | None = None,
    keys: DatasetKeys | None = None,
) -> Iterator[list[OpenFile]]:
    """Open the files of a split until the context ends, with the keys of the dataset; `calendar` as of `OpenFile`.

    Raises FileNotFoundError, or InvalidFileError if size, modification time, ETag or footer changed since planning.
    """
    planned = [part.file for part in parts]
    if filesystem is not None:
        _check_remote(planned, filesystem)
    try:
        listing = DatasetListing(planned, filesystem=filesystem)  # type: ignore[arg-type]
        files = open_files(listing, planned, calendar=calendar, keys=keys)
    except FileNotFoundError as error:
        raise _gone(planned, error) from None
    try:
        for part, file in zip(parts, files, strict=True):
            if not _is_planned(part, file):
                raise InvalidFileError(_CHANGED, file=part.file.name)
            if part.fingerprint is not None and part.fingerprint != fingerprint(file):
                raise InvalidFileError(ANOTHER_VERSION, file=part.file.name)
        yield files
    finally:
        for file in files:
            file.close()


def check_unchanged(parts: Iterable[SplitPart], filesystem: Any) -> None:
    """Raise what `open_split_files` does if files are gone or have changed, without opening them: footers go unseen."""
    planned = list({part.file.path: part.file for part in parts}.values())
    if filesystem is not None:
        _check_remote(planned, filesystem)
        return
    for file in planned:
        try:
            status = os.stat(file.path)
        except FileNotFoundError as error:
            raise _gone([file], error) from None
        if (file.size, file.version) != (status.st_size, str(status.st_mtime_ns)):
            raise InvalidFileError(_CHANGED, file=file.name)


def _is_planned(part: SplitPart, file: OpenFile) -> bool:
    """Whether an open file is the planned one, by size, modification time and footer."""
    stamp = file.stamp
    if (
        stamp is not None
        and not file.source.is_remote
        and (part.file.size, part.file.version) != (stamp[0], str(stamp[1]))
    ):
        return False
    return part.digest is None or part.digest == file.footer.content_digest


def _check_remote(planned: Sequence[DataFile], filesystem: Any) -> None:
    """Check sizes and versions of remote files against the plan."""
    try:
        found = RemoteLister(filesystem).stat_all([file.path for file in planned])
    except FileNotFoundError as error:
        raise _gone(planned, error) from None
    for file, entry in zip(planned, found, strict=True):
        if entry is None or _differ(file.size, entry.size) or _differ(file.version, entry.version):
            raise InvalidFileError(_CHANGED, file=file.name)


def _differ(one: object, other: object) -> bool:
    return one is not None and other is not None and one != other


def _gone(planned: Sequence[DataFile], error: FileNotFoundError) -> FileNotFoundError:
    """Return an error that names the missing file."""
    told = str(error.filename or error)
    names = [file.name for file in planned if file.path in told or file.name in told]
    return FileNotFoundError(errno.ENOENT, _GONE, names[0] if names else told)
