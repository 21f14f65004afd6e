"""The layout of dataset folders, judged by footers: sort order, file size, page indexes, Bloom filters."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from numparq.dataset.discover.files import DatasetListing
from numparq.dataset.listing.files import DataFile
from numparq.errors import error_context
from numparq.format.open_file import OpenFile
from numparq.prune.index_locations import BLOOM_FILTER, OFFSET_INDEX, IndexLocations

__all__ = ["LAYOUT_KEY", "DatasetFolder", "FileLayout", "TargetLayout", "group_by_folder"]

LAYOUT_KEY = "numparq.layout"
_SCHEMA_KEYS = ("ARROW:schema", "pandas", LAYOUT_KEY)
# Files of less than such a share of the wanted size are small, those of more than so many times it are large.
_SMALL_FILE, _LARGE_FILE = 0.5, 2.0


@dataclass(frozen=True, slots=True)
class FileLayout:
    """What is known of a file.

    Parameters
    ----------
    file : DataFile
        Where it is.
    num_bytes, num_rows, num_row_groups : int
        What it has.
    has_index : bool
        Whether all column chunks of its rows have an offset index.
    bloom_filters : frozenset of str
        The top-level columns of which a chunk has a Bloom filter.
    note : dict or None
        What it says of the layout that it was written for.
    keys : tuple of (str, bytes)
        What its footer says besides, but for what tells of columns in words of Arrow and pandas.
    """

    file: DataFile
    num_bytes: int
    num_rows: int
    num_row_groups: int
    has_index: bool
    bloom_filters: frozenset[str]
    note: dict[str, Any] | None
    keys: tuple[tuple[str, bytes], ...] = ()

    @classmethod
    def of(cls, file: DataFile, opened: OpenFile) -> FileLayout:
        """Look at a footer.

        Raises
        ------
        InvalidFileError
            When it is damaged.
        """
        with error_context(file=file.name):
            footer = opened.footer
            leaves = list(opened.schema)
            chunks = [(group, leaf.index) for group in range(opened.num_row_groups) for leaf in leaves]
            places = IndexLocations.for_file(opened)
            indexed = len(places.of(OFFSET_INDEX, chunks))
            filtered = {leaf for (_, leaf), _, _ in places.of(BLOOM_FILTER, chunks)}
            columns = frozenset(leaf.path[0] for leaf in leaves if leaf.index in filtered)
            note = _parse_layout(footer.key_value_metadata.get(LAYOUT_KEY))
            keys = tuple((key, value) for key, value in footer.key_value_metadata.items() if key not in _SCHEMA_KEYS)
        size = opened.source.size
        return cls(file, size, opened.num_rows, opened.num_row_groups, indexed == len(chunks), columns, note, keys)


def _parse_layout(value: bytes | None) -> dict[str, Any] | None:
    try:
        note = json.loads(value) if value else None
    except ValueError:
        return None  # whatever it is, it is not ours
    return note if isinstance(note, dict) else None


@dataclass(frozen=True)
class DatasetFolder:
    """The files of one directory of a dataset: those of one partition.

    Parameters
    ----------
    name : str
        Its path in the dataset, with slashes, as it is named there; empty for the dataset's own directory.
    files : list of FileLayout
        In the order of their rows.
    """

    name: str
    files: list[FileLayout]

    @property
    def num_rows(self) -> int:
        """Rows of all files."""
        return sum(file.num_rows for file in self.files)

    @property
    def num_bytes(self) -> int:
        """Bytes of all files."""
        return sum(file.num_bytes for file in self.files)


@dataclass(frozen=True)
class TargetLayout:
    """How files are to be laid out.

    Parameters
    ----------
    sort_by, cluster_by : tuple of str
        The columns that rows are in the order of, or are brought together by; one of both is empty, or both are.
    file_bytes : int
        What a file is to have, about.
    bloom_filters : tuple of str, or None
        The columns that are to have Bloom filters; None where the data decide.
    options : dict
        Of the writer, as far as they are given.
    """

    sort_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    file_bytes: int = 128 << 20
    bloom_filters: tuple[str, ...] | None = None
    options: tuple[tuple[str, str], ...] = ()

    @property
    def has_order(self) -> bool:
        """Whether rows change their places."""
        return bool(self.sort_by or self.cluster_by)

    def note(self, job: str) -> str:
        """Give what files say that are written for it.

        Parameters
        ----------
        job : str
            What tells the job that writes them from others.
        """
        return json.dumps({**self._words(), "job": job}, sort_keys=True)

    def _words(self) -> dict[str, Any]:
        words: dict[str, Any] = {"version": 1, "file_bytes": self.file_bytes, "options": dict(self.options)}
        for name in ("sort_by", "cluster_by", "bloom_filters"):
            value = getattr(self, name)
            words[name] = None if value is None else list(value)
        return words

    def has(self, folder: DatasetFolder) -> bool:
        """Say whether a folder is laid out like that.

        Parameters
        ----------
        folder : DatasetFolder
            With all of its files.

        Returns
        -------
        bool
            Also True where there are no rows, which cannot lie badly.
        """
        if not folder.num_rows:
            return True
        return self._is_recorded(folder.files) or (not self.has_order and self._is_acceptable(folder.files))

    def _is_recorded(self, files: Sequence[FileLayout]) -> bool:
        """Whether one job wrote all files for this layout."""
        jobs = set()
        words = self._words()
        for file in files:
            if file.note is None or {**file.note, "job": ""} != {**words, "job": ""}:
                return False
            jobs.add(file.note.get("job"))
        return len(jobs) == 1

    def _is_acceptable(self, files: Sequence[FileLayout]) -> bool:
        """Whether files that nobody wrote for a layout are as good as if somebody had."""
        if self.options or not all(file.has_index for file in files):
            return False
        if not all(file.bloom_filters.issuperset(self.bloom_filters or ()) for file in files):
            return False
        small = sum(file.num_bytes < _SMALL_FILE * self.file_bytes for file in files)
        return small <= 1 and all(file.num_bytes <= _LARGE_FILE * self.file_bytes for file in files)


def group_by_folder(listing: DatasetListing, facts: Iterable[FileLayout]) -> list[DatasetFolder]:
    """Put files together by the directories that they are in.

    Parameters
    ----------
    listing : DatasetListing
        Of a directory.
    facts : iterable of FileLayout
        Of its files, in their order.

    Returns
    -------
    list of Folder
        In the order of their first files.
    """
    found: dict[str, DatasetFolder] = {}
    start = len(listing.base.rstrip("/")) + 1
    for one in facts:
        name = one.file.path[start:].replace(os.sep, "/").rpartition("/")[0]
        found.setdefault(name, DatasetFolder(name, [])).files.append(one)
    return list(found.values())
