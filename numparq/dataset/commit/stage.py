"""Protocols of writes to a dataset: a stage that tasks of several processes share, and a job of one process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from numparq.dataset.listing.files import DirectoryListing, FileEntry
from numparq.io.sink import Sink
from numparq.io.source import Source

from .record import CommitChanges
from .stream_batch import StreamBatch


class Job(Protocol):
    """A write by one process; its files count once it is committed.

    Attributes
    ----------
    id : str
        Unique id of the write.
    base : str
        Directory of the dataset.
    is_local : bool
        Whether it is on the local file system.
    """

    id: str
    base: str
    is_local: bool

    def list_files(self) -> DirectoryListing:
        """List the files of the dataset."""

    def open_source(self, path: str) -> Source:
        """Open a file of the dataset for reading."""

    def create_file(self, name: str) -> Sink:
        """Open a new file for writing; `name` is its path in the dataset."""

    def commit(self, changes_of: Callable[[DirectoryListing], CommitChanges]) -> None:
        """Add the new files and make the other changes, as one atomic change."""

    def abort(self) -> None:
        """Remove everything that was written, unless the commit has taken effect."""


class Stage(Protocol):
    """Staged files of one write, locally or remotely; it can be pickled, and all copies are equal.

    Attributes
    ----------
    id : str
        Unique id of the write.
    base : str
        Directory of the dataset.
    is_local : bool
        Whether it is on the local file system.
    """

    id: str
    base: str
    is_local: bool

    def path(self, number: str) -> str:
        """Return the path or URL of a staged file, by its name in the stage."""

    def create_file(self, number: str, name: str, synced: bool = False) -> Sink:
        """Open a new file for writing: its name in the stage (digits), and its path in the dataset for messages.

        If `synced`, completing the file makes it durable; otherwise the commit does.
        """

    def open_staged(self, number: str) -> Source:
        """Open a staged file for reading."""

    def remove(self, numbers: list[str]) -> None:
        """Remove staged files."""

    def list_files(self) -> DirectoryListing:
        """List the files of the dataset."""

    def list_committed(self) -> DirectoryListing:
        """List the files of the dataset while no commit runs."""

    def has_batch(self, batch: StreamBatch) -> bool:
        """Whether the dataset has a batch of a stream, or a later one."""

    def open_source(self, path: str) -> Source:
        """Open a file of the dataset for reading."""

    def file_version(self, entry: FileEntry) -> str | None:
        """Return a token that changes with the content of a file."""

    def dataset_path(self, path: str) -> str:
        """Return the path that listings of the dataset have for a file."""

    def write_marker(self, name: str) -> None:
        """Write an empty file into the dataset, outside any commit."""

    def commit(self, names: Mapping[str, str], changes_of: Callable[[DirectoryListing], CommitChanges]) -> None:
        """Move staged files into the dataset, and make the changes that `changes_of` returns, as one atomic change.

        `names` are the names in the stage by path in the dataset. `changes_of` gets a listing of the dataset.
        """

    @property
    def is_committed(self) -> bool:
        """Whether the commit has taken effect, but is not complete."""

    def abort(self) -> None:
        """Remove everything that was written, unless the commit has taken effect."""
