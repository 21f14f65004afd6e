"""Files of a stream's source, by names that are the same wherever the query runs."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from numparq.dataset.discover.files import DatasetListing, list_files
from numparq.dataset.listing.file_filter import ListingOptions, stat_files
from numparq.dataset.listing.files import FileEntry
from numparq.dataset.listing.local import LocalLister
from numparq.dataset.listing.patterns import has_wildcard
from numparq.dataset.listing.remote import RemoteLister
from numparq.io.filesystem import resolve_paths

from .stream_offset import StreamFile

if TYPE_CHECKING:
    from numparq.spark.scan.request import ReadRequest

__all__ = ["StreamFiles"]

_TRIES = 3
# Files that Hadoop is copying to their place.
_COPYING = "._COPYING_"


class StreamFiles:
    """Lists the committed files of a source; names are relative to a folder, or else paths."""

    def __init__(self, request: ReadRequest) -> None:
        self._request = request
        paths = [request.path] if isinstance(request.path, (str, os.PathLike)) else list(request.path)
        names = resolve_paths(paths, request.storage_options, request.filesystem).paths
        self._has_pattern = any(map(has_wildcard, names))
        is_folder = len(names) == 1 and not self._has_pattern
        self._start = names[0].rstrip("/") + "/" if is_folder else ""

    def find(self) -> list[StreamFile]:
        """List the files; none for a pattern that no file matches.

        Raises FileNotFoundError for a missing folder, ValueError for one file, UnsupportedError for a table of another
        system.
        """
        for tries_left in reversed(range(_TRIES)):
            try:
                return self._list()
            except FileNotFoundError:  # a file was removed since the listing
                if not tries_left:
                    raise
        raise AssertionError

    def _list(self) -> list[StreamFile]:
        request = self._request
        try:
            listing = list_files(
                request.path,
                partitioning=None,
                options=ListingOptions(request.table_format, request.file_filter, may_be_empty=True),
                storage_options=request.storage_options,
                filesystem=request.filesystem,
            )
        except FileNotFoundError:
            if not self._has_pattern:
                raise
            return []
        if listing.is_single_file:
            raise ValueError(f"a stream reads a folder or a pattern, but {request.path!r} is a file")
        entries = [entry for entry in _entries(listing) if not entry.path.endswith(_COPYING)]
        lister = LocalLister() if listing.filesystem is None else RemoteLister(listing.filesystem)
        stats = stat_files(entries, lister)
        return [
            StreamFile(entry.path.removeprefix(self._start), modified, size)
            for entry, (modified, size) in zip(entries, stats, strict=True)
        ]

    def request_of(self, names: Iterable[str]) -> ReadRequest:
        """Return the request of some files, all of which must exist."""
        paths = frozenset(self._start + name for name in names)
        return replace(self._request, file_filter=replace(self._request.file_filter, paths=paths))


def _entries(listing: DatasetListing) -> list[FileEntry]:
    """Return the entries of a listing's files by their committed paths."""
    if listing.filesystem is None:  # a local file may still be at a staged path
        return [FileEntry(file.name, staged_path=file.path) for file in listing.files]
    return [FileEntry(file.path, file.size, file.version, file.modified) for file in listing.files]
