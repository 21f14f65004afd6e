"""Plan a rewrite: folders with a poor layout, their rows in pieces, the schema of new files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from numparq.dataset.discover.files import DatasetListing, list_files
from numparq.dataset.discover.open_files import open_files_unless_empty
from numparq.dataset.listing.file_filter import ListingOptions
from numparq.dataset.listing.files import DataFile
from numparq.dataset.prune.pruners import select_files
from numparq.dataset.schema_merge.fields import fields_of, to_arrow_field, to_schema_node
from numparq.dataset.splits.split import Split
from numparq.dataset.splits.table import SplitTable, split_table
from numparq.errors import SchemaError
from numparq.format.key_values.arrow import encode_arrow_schema
from numparq.format.open_file import OpenFile
from numparq.format.schema import Schema
from numparq.from_pandas.user_schema import UserColumn, UserSchema
from numparq.keys.part_keys import DatasetKeys
from numparq.typing import StorageOptions

from .keys import RewriteKeys
from .layout import DatasetFolder, FileLayout, TargetLayout, group_by_folder

if TYPE_CHECKING:
    from numparq.crypto.key import KeySource

_FILES_AT_ONCE = 1024  # files open together while their footers are read
NO_KEYS = RewriteKeys()


@dataclass(frozen=True, slots=True)
class RewritePiece:
    """Rows for one folder: the folder's name and the split that reads them."""

    folder: str
    split: Split


@dataclass(frozen=True)
class RewritePlan:
    """Folders of a dataset to rewrite, and those that keep their files.

    Attributes
    ----------
    unchanged : list of DatasetFolder
        Folders that stay unchanged.
    keys : tuple of str
        Partition columns.
    decryption : KeySource or None
        Keys of the files.
    """

    listing: DatasetListing
    folders: list[DatasetFolder]
    unchanged: list[DatasetFolder]
    keys: tuple[str, ...]
    decryption: KeySource | None = None

    @property
    def files(self) -> list[FileLayout]:
        """Files to replace."""
        return [file for folder in self.folders for file in folder.files]

    @property
    def paths(self) -> list[str]:
        """Paths of the files to replace."""
        return [file.file.path for file in self.files]

    def split(
        self, columns: Sequence[str] | None, split_bytes: int, storage_options: StorageOptions = None
    ) -> SplitTable:
        """Split the files to replace into splits of about `split_bytes`, without partition columns.

        `columns` None: all columns. `storage_options` are ignored if the listing has a filesystem.
        """
        return split_table(
            self.paths,
            columns,
            partitioning=None,
            table_format="parquet",  # the listing has chosen the files
            split_bytes=split_bytes,
            filesystem=self.listing.filesystem,
            storage_options=None if self.listing.filesystem is not None else storage_options,
            decryption=self.decryption,
        )


def plan_rewrite(
    path: Any,
    target: TargetLayout,
    *,
    where: Any = None,
    force: bool = False,
    table_format: str = "auto",
    storage_options: dict[str, Any] | None = None,
    filesystem: Any = None,
    rewrite_keys: RewriteKeys = NO_KEYS,
) -> RewritePlan:
    """Read all footers of a dataset directory and plan which folders to rewrite (with `force`: all that have rows).

    `where` selects folders by partition columns. Raise ValueError if it needs other columns, if `path` is no directory,
    or if files are encrypted and nothing tells how to write new ones.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise ValueError(f"path must be the directory of a dataset, not {path!r}")
    listing = list_files(
        path, options=ListingOptions(table_format), storage_options=storage_options, filesystem=filesystem
    )
    if not listing.is_directory:
        kind = "a file" if listing.is_single_file else "a pattern"
        raise ValueError(f"path must be the directory of a dataset, but {os.fsdecode(path)!r} is {kind}")
    files = list(listing.files) if where is None else select_files(listing, "hive", where)
    keys = None
    if rewrite_keys.decryption is not None:
        keys = DatasetKeys.of_dataset(rewrite_keys.decryption, listing.base, listing.filesystem is None)
    folders = group_by_folder(listing, _read_layouts(listing, files, keys))
    fine = [
        folder
        for folder in folders
        if not folder.num_rows or (not force and target.matches(folder) and rewrite_keys.suits(folder.files))
    ]
    left = {folder.name for folder in fine}
    chosen = [folder for folder in folders if folder.name not in left]
    rewrite_keys.check(file for folder in chosen for file in folder.files)
    return RewritePlan(listing, chosen, fine, listing.keys, rewrite_keys.decryption)


def _read_layouts(listing: DatasetListing, files: Sequence[DataFile], keys: DatasetKeys | None) -> Iterator[FileLayout]:
    known: dict[
        tuple[tuple[str, bytes], ...], tuple[tuple[str, bytes], ...]
    ] = {}  # files mostly share the same key-values: one object for all
    for start in range(0, len(files), _FILES_AT_ONCE):
        some = list(files[start : start + _FILES_AT_ONCE])
        opened = open_files_unless_empty(listing, some, keys=keys)
        present = [(file, made) for file, made in zip(some, opened, strict=True) if made is not None]
        try:
            for file, made in present:
                facts = FileLayout.from_footer(file, made)
                yield replace(facts, key_values=known.setdefault(facts.key_values, facts.key_values))
        finally:
            for _, made in present:
                made.close()


# --- pieces -----------------------------------------------------------------------------------------------------------


def split_by_folder(table: SplitTable, folder_of: Callable[[str], str]) -> list[RewritePiece]:
    """Divide splits at folder boundaries; pieces keep the order of the rows.

    `folder_of` returns the folder of a file by its path in the splits.
    """
    pieces = []
    for split in table.splits:
        parts: dict[str, list[Any]] = {}
        for part in split.parts:
            parts.setdefault(folder_of(part.file.path), []).append(part)
        for folder, some in parts.items():
            whole = len(parts) == 1
            size = split.num_bytes if whole else split.num_bytes * len(some) // len(split.parts)
            pieces.append(RewritePiece(folder, Split(tuple(some), _num_rows(some), size)))
    return pieces


def _num_rows(parts: Sequence[Any]) -> int | None:
    if any(part.groups is None for part in parts):
        return None
    return sum(int(group.stop - group.start) for part in parts for group in part.groups)


def bin_pieces(pieces: Sequence[RewritePiece], bytes_each: int) -> list[list[RewritePiece]]:
    """Group pieces into bins of about `bytes_each`, of about equal size within a folder; no bin has two folders."""
    bins: list[list[RewritePiece]] = []
    folders: dict[str, list[RewritePiece]] = {}
    for piece in pieces:
        folders.setdefault(piece.folder, []).append(piece)
    for some in folders.values():
        total = sum(piece.split.num_bytes for piece in some)
        count = max(-(-total // max(bytes_each, 1)), 1)
        made: dict[int, list[RewritePiece]] = {}
        before = 0
        for piece in some:
            middle = before + piece.split.num_bytes // 2
            made.setdefault(min(middle * count // max(total, 1), count - 1), []).append(piece)
            before += piece.split.num_bytes
        bins += made.values()
    return bins


# --- output schema ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OutputSchema:
    """Merged schema of the new files, with the key-values that describe it.

    Attributes
    ----------
    schema : UserSchema
        Parquet and Arrow type of each column.
    key_values : dict of str to (str or bytes)
        Footer key-values: pandas metadata and, if the files had it, the Arrow schema.
    leaf_columns : dict of str to Leaf
        Columns with a single leaf, by which rows can be sorted.
    """

    schema: UserSchema
    key_values: dict[str, str | bytes]
    leaf_columns: dict[str, Any]

    @classmethod
    def from_schema_file(cls, schema_file: OpenFile) -> OutputSchema:
        """Take the schema from the merged schema file; raise SchemaError for a group without fields."""
        fields = fields_of(schema_file)
        for name, field in zip(schema_file.schema.columns, fields, strict=True):
            if field is None:
                raise SchemaError("a group without fields cannot be written", column=name)
        known = [field for field in fields if field is not None]
        stored = schema_file.footer.key_value_metadata
        keys: dict[str, str | bytes] = {}
        notes = _drop_range_index(stored["pandas"]) if "pandas" in stored else None
        if notes is not None:
            keys["pandas"] = notes
        if "ARROW:schema" in stored:
            inner = {} if notes is None else {"pandas": notes}
            keys["ARROW:schema"] = encode_arrow_schema([to_arrow_field(field) for field in known], inner)
        columns = {field.name: UserColumn(to_schema_node(field), to_arrow_field(field)) for field in known}
        return cls(UserSchema(columns, is_complete=True), keys, _leaf_columns(schema_file.schema))


def _leaf_columns(schema: Schema) -> dict[str, Any]:
    leaves = ((name, schema.flat_leaf(place)) for place, name in enumerate(schema.columns))
    return {name: leaf for name, leaf in leaves if leaf is not None}


def _drop_range_index(notes: bytes) -> str | None:
    """Drop a range index from pandas metadata: it describes one of the old files. None if malformed."""
    try:
        document = json.loads(notes)
        kept = [level for level in document.get("index_columns", []) if not isinstance(level, dict)]
    except (ValueError, AttributeError, TypeError):
        return None
    return json.dumps({**document, "index_columns": kept})
