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
from numparq.prune.index_reader import BLOOM_FILTER, OFFSET_INDEX, IndexLocations

LAYOUT_KEY = "numparq.layout"
_SCHEMA_KEYS = ("ARROW:schema", "pandas", LAYOUT_KEY)
# Share of the target size below which a file is small, above which it is large.
_SMALL_FILE, _LARGE_FILE = 0.5, 2.0


@dataclass(frozen=True, slots=True)
class FileLayout:
    """Layout of a file, from its footer.

    Attributes
    ----------
    has_index : bool
        Whether all column chunks have an offset index.
    bloom_filters : frozenset of str
        Top-level columns of which any chunk has a Bloom filter.
    recorded_layout : dict or None
        Target layout recorded in the footer.
    key_values : tuple of (str, bytes)
        Other key-values of the footer, without the Arrow schema and the pandas metadata.
    is_encrypted : bool
        Whether any part of the file is encrypted.
    """

    file: DataFile
    num_bytes: int
    num_rows: int
    num_row_groups: int
    has_index: bool
    bloom_filters: frozenset[str]
    recorded_layout: dict[str, Any] | None
    key_values: tuple[tuple[str, bytes], ...] = ()
    is_encrypted: bool = False

    @classmethod
    def from_footer(cls, file: DataFile, opened: OpenFile) -> FileLayout:
        """Read the layout from the footer of an open file."""
        with error_context(file=file.name):
            footer = opened.footer
            leaves = list(opened.schema)
            chunks = [(group, leaf.index) for group in range(opened.num_row_groups) for leaf in leaves]
            places = IndexLocations.for_file(opened)
            indexed = len(places.locate(OFFSET_INDEX, chunks))
            filtered = {leaf for (_, leaf), _, _ in places.locate(BLOOM_FILTER, chunks)}
            columns = frozenset(leaf.path[0] for leaf in leaves if leaf.index in filtered)
            note = _parse_layout(footer.key_value_metadata.get(LAYOUT_KEY))
            keys = tuple((key, value) for key, value in footer.key_value_metadata.items() if key not in _SCHEMA_KEYS)
            is_encrypted = opened.encryption is not None
        size, has_index = opened.source.size, indexed == len(chunks)
        return cls(file, size, opened.num_rows, opened.num_row_groups, has_index, columns, note, keys, is_encrypted)


def _parse_layout(value: bytes | None) -> dict[str, Any] | None:
    try:
        note = json.loads(value) if value else None
    except ValueError:
        return None  # written by another program
    return note if isinstance(note, dict) else None


@dataclass(frozen=True)
class DatasetFolder:
    """Files of one directory of a dataset, in the order of their rows.

    `name` is the path within the dataset, with slashes; empty for the dataset's root.
    """

    name: str
    files: list[FileLayout]

    @property
    def num_rows(self) -> int:
        """Number of rows of all files."""
        return sum(file.num_rows for file in self.files)

    @property
    def num_bytes(self) -> int:
        """Size of all files in bytes."""
        return sum(file.num_bytes for file in self.files)


@dataclass(frozen=True)
class TargetLayout:
    """Target layout of the files of a rewrite.

    Attributes
    ----------
    sort_by, cluster_by : tuple of str
        Columns to sort by or to cluster by; at most one of the two is not empty.
    file_bytes : int
        Approximate size of a file.
    bloom_filters : tuple of str, or None
        Columns with Bloom filters; None: chosen by the data.
    options : tuple of (str, str)
        Writer options given by the user.
    """

    sort_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    file_bytes: int = 128 << 20
    bloom_filters: tuple[str, ...] | None = None
    options: tuple[tuple[str, str], ...] = ()

    @property
    def has_order(self) -> bool:
        """Whether a rewrite reorders rows."""
        return bool(self.sort_by or self.cluster_by)

    def to_json(self, job: str) -> str:
        """Return the JSON text that files written by the job `job` record in their footers."""
        return json.dumps({**self._as_dict(), "job": job}, sort_keys=True)

    def _as_dict(self) -> dict[str, Any]:
        words: dict[str, Any] = {"version": 1, "file_bytes": self.file_bytes, "options": dict(self.options)}
        for name in ("sort_by", "cluster_by", "bloom_filters"):
            value = getattr(self, name)
            words[name] = None if value is None else list(value)
        return words

    def matches(self, folder: DatasetFolder) -> bool:
        """Whether a folder has this layout already; True for a folder without rows."""
        if not folder.num_rows:
            return True
        return self._is_recorded(folder.files) or (not self.has_order and self._is_acceptable(folder.files))

    def _is_recorded(self, files: Sequence[FileLayout]) -> bool:
        """Whether one job wrote all the files for this layout."""
        jobs = set()
        words = self._as_dict()
        for file in files:
            if file.recorded_layout is None or {**file.recorded_layout, "job": ""} != {**words, "job": ""}:
                return False
            jobs.add(file.recorded_layout.get("job"))
        return len(jobs) == 1

    def _is_acceptable(self, files: Sequence[FileLayout]) -> bool:
        """Whether files without a recorded layout are good enough: page indexes, Bloom filters, sizes."""
        if self.options or not all(file.has_index for file in files):
            return False
        if not all(file.bloom_filters.issuperset(self.bloom_filters or ()) for file in files):
            return False
        small = sum(file.num_bytes < _SMALL_FILE * self.file_bytes for file in files)
        return small <= 1 and all(file.num_bytes <= _LARGE_FILE * self.file_bytes for file in files)


def group_by_folder(listing: DatasetListing, facts: Iterable[FileLayout]) -> list[DatasetFolder]:
    """Group files by directory, in the order of the first file of each."""
    found: dict[str, DatasetFolder] = {}
    start = len(listing.base.rstrip("/")) + 1
    for one in facts:
        name = one.file.path[start:].replace(os.sep, "/").rpartition("/")[0]
        found.setdefault(name, DatasetFolder(name, [])).files.append(one)
    return list(found.values())
