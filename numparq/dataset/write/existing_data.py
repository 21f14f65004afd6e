"""Existing data under a write: files kept or removed, and their schemas checked against new files."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from numparq.dataset.commit.record import CommitChanges
from numparq.dataset.commit.stage import Stage
from numparq.dataset.listing.files import DirectoryListing, FileEntry
from numparq.dataset.listing.patterns import COMMON_METADATA_FILE, METADATA_FILE
from numparq.dataset.partitions.partitioning import parse_hive_path
from numparq.dataset.partitions.text import CANONICAL_TEXT_RULES, canonical_text
from numparq.dataset.schema_merge.dataset_schema import check_one_table
from numparq.dataset.schema_merge.null_columns import has_no_values
from numparq.errors import DecryptionError, InvalidFileError, ParquetError, SchemaError, UnsupportedError
from numparq.file.append_schema import file_columns
from numparq.format.open_file import OpenFile
from numparq.from_pandas.user_schema import UserColumn
from numparq.io.sibling_bytes import read_small_source, sibling_path
from numparq.io.source import Source
from numparq.keys.material_file import material_name
from numparq.keys.part_keys import DatasetKeys

from .partition_frame import PartitionValues

_MOST_COMPARED = 16  # existing files that are opened at most to learn the types of columns

RemovalRule = Callable[[str, list[FileEntry], Sequence[str], Collection[PartitionValues]], list[str]]


def _none_there(
    base: str, files: list[FileEntry], keys: Sequence[str], written: Collection[PartitionValues]
) -> list[str]:
    check_empty(base, files)
    return []


def _nothing(base: str, files: list[FileEntry], keys: Sequence[str], written: Collection[PartitionValues]) -> list[str]:
    return []


def _matching(
    base: str, files: list[FileEntry], keys: Sequence[str], written: Collection[PartitionValues]
) -> list[str]:
    """Return the files of the written partitions; all files, if there are no partition columns."""
    start = _start(base)
    gone = []
    for entry in files:
        found = _partition(entry.path[start:])
        if tuple(found.get(key, "") for key in keys) in written:
            gone.append(entry.path)
    return gone


EXISTING_DATA_BEHAVIORS: dict[str, RemovalRule] = {
    "error": _none_there,
    "overwrite_or_ignore": _nothing,
    "delete_matching": _matching,
}


def _none_at_all(
    base: str, files: list[FileEntry], keys: Sequence[str], written: Collection[PartitionValues]
) -> list[str]:
    check_empty(base, files, _MODE_SAYS)
    return []


def _all(base: str, files: list[FileEntry], keys: Sequence[str], written: Collection[PartitionValues]) -> list[str]:
    return [entry.path for entry in files]


# Modes of `SharedJob.begin`; "replace" has a rule of its own (`ReplacedFiles`).
WRITE_MODES: dict[str, RemovalRule] = {
    "append": _nothing,
    "error": _none_at_all,
    "overwrite": _all,
    "delete_matching": _matching,
}

_BEHAVIOR_SAYS = (
    "existing_data_behavior='overwrite_or_ignore' (or append=True) adds to them, "
    "existing_data_behavior='delete_matching' replaces partitions"
)
_MODE_SAYS = "mode append adds to them, mode overwrite replaces them"


@dataclass(frozen=True, slots=True)
class ReplacedFiles:
    """Removal rule for known files, by path and version; raises InvalidFileError if one has changed or is gone."""

    versions: dict[str, str | None]
    version_of: Callable[[FileEntry], str | None]

    def __call__(
        self, base: str, files: list[FileEntry], keys: Sequence[str], written: Collection[PartitionValues]
    ) -> list[str]:
        """Return the paths of the files to remove."""
        there = {entry.path: entry for entry in files}
        for path, version in self.versions.items():
            if path not in there:
                raise InvalidFileError("a file to be replaced no longer exists; nothing was changed", file=path)
            if self.version_of(there[path]) != version:
                raise InvalidFileError(
                    "a file to be replaced was changed by another write; nothing was changed", file=path
                )
        return list(self.versions)


def find_replaced_files(stage: Stage, gone: Iterable[Any]) -> ReplacedFiles:
    """Return the rule that removes the files in ``gone``, with their current versions."""
    wanted = [stage.dataset_path(os.fsdecode(path)) for path in gone]
    there = {entry.path: entry for entry in stage.list_committed().files}
    for path in wanted:
        if path not in there:
            raise FileNotFoundError(errno.ENOENT, "a file to be replaced is not in the dataset", path)
    return ReplacedFiles({path: stage.file_version(there[path]) for path in wanted}, stage.file_version)


def check_empty(base: str, files: Sequence[FileEntry], advice: str = _BEHAVIOR_SAYS) -> None:
    """Raise FileExistsError if a dataset has files; the message ends with ``advice``."""
    if files:
        raise FileExistsError(errno.EEXIST, f"the dataset has files already; {advice}", base)


def check_keeps_nothing(keep_seconds: float) -> None:
    """Raise UnsupportedError if a write to a remote file system is to keep replaced files, which cannot be moved."""
    if keep_seconds:
        raise UnsupportedError(f"keep_replaced={keep_seconds:g} needs a local directory; object stores have versions")


def plan_changes(
    gone_of: RemovalRule,
    base: str,
    found: DirectoryListing,
    keys: Sequence[str],
    written: Collection[PartitionValues],
    kinds: Mapping[str, str] | None = None,
) -> CommitChanges:
    """Plan which existing files a commit removes, by rule ``gone_of``; ``written`` are the partitions that get rows.

    Raises FileExistsError if there may be no files, SchemaError if other partition columns would stay.
    """
    gone = gone_of(base, found.files, keys, _with_equal_partitions(base, found.files, keys, written, kinds or {}))
    going = set(gone)
    if written:
        _check_keys(base, [entry for entry in found.files if entry.path not in going], keys)
    # Metadata files of earlier writes would describe other files, or columns that are gone.
    start = _start(base)
    stale = [entry.path for entry in found.hidden if entry.path[start:] in (METADATA_FILE, COMMON_METADATA_FILE)]
    if found.hidden:
        materials = {sibling_path(path, material_name(path)) for path in gone}
        stale += [entry.path for entry in found.hidden if entry.path in materials]
    if not gone and not written:
        return CommitChanges()
    return CommitChanges(gone + stale)


def _check_keys(base: str, staying: list[FileEntry], keys: Sequence[str]) -> None:
    """Raise SchemaError if files that stay have other partition columns: no reader reads both together."""
    start = _start(base)
    for entry in staying:
        theirs = tuple(_partition(entry.path[start:]))
        if theirs != tuple(keys):
            shown = [", ".join(map(repr, names)) or "nothing" for names in (theirs, keys)]
            raise SchemaError(f"the dataset is partitioned by {shown[0]}, but the frame by {shown[1]}", file=entry.path)


def _with_equal_partitions(
    base: str,
    files: Sequence[FileEntry],
    keys: Sequence[str],
    written: Collection[PartitionValues],
    kinds: Mapping[str, str],
) -> Collection[PartitionValues]:
    """Return the written partitions, and existing ones with equal values, such as ``month=01`` for 1."""
    if not any(kinds.get(key) in CANONICAL_TEXT_RULES for key in keys):
        return written
    start = _start(base)
    there = set()
    for entry in files:
        found = _partition(entry.path[start:])
        there.add(tuple(found.get(key, "") for key in keys))

    def meant(values: PartitionValues) -> PartitionValues:
        return tuple(canonical_text(kinds.get(key, ""), text) for key, text in zip(keys, values, strict=True))

    wanted = set(map(meant, written))
    return {*written, *(values for values in there if meant(values) in wanted)}


def _partition(name: str) -> dict[str, str | None]:
    return parse_hive_path(name.rpartition("/")[0])


def _start(base: str) -> int:
    return len(base.rstrip("/")) + 1


def check_schemas_compatible(
    found: DirectoryListing,
    changes: CommitChanges,
    open_source: Callable[[str], Source],
    keys: DatasetKeys | None,
    new: Sequence[OpenFile],
    same_name: Callable[[str], str] = str,
) -> None:
    """Raise SchemaError if the new files cannot form one table, also with files that stay: see `_open_staying_files`.

    ``new`` holds one file for each set of columns; ``same_name`` maps names that readers treat as equal to one value.
    """
    if len(new) > 1:
        _check_one_table(new, same_name, "the written files do not form one table")
    try:
        with _open_staying_files(found, changes, open_source, keys) as staying:
            for file in staying:
                what = "the written files do not form one table with the existing ones"
                _check_one_table([file, *new], same_name, what)
    except (SchemaError, DecryptionError):
        raise
    except (ParquetError, FileNotFoundError):
        return  # a file that is damaged, or replaced since the listing, cannot be compared


class StoredColumns(NamedTuple):
    """Columns of existing files, to whose types new rows are fitted, and the key-value metadata of one."""

    columns: Sequence[UserColumn]
    key_value_metadata: Mapping[str, bytes]


def read_stored_columns(
    listing: DirectoryListing,
    changes: CommitChanges,
    open_source: Callable[[str], Source],
    keys: DatasetKeys | None,
) -> StoredColumns:
    """Return the columns with values of files that stay; none if all go, or if one is damaged."""
    columns: dict[str, UserColumn] = {}
    metadata: dict[str, bytes] = {}
    try:
        with _open_staying_files(listing, changes, open_source, keys) as staying:
            for file in reversed(staying):  # the first one counts
                metadata = dict(file.footer.key_value_metadata)
                typed = _typed_columns(file)
                stored = enumerate(file_columns(file.footer))
                columns |= {
                    column.node.name: column
                    for at, column in stored
                    if column.node.name in typed or not (has_no_values(file, at) or column.node.name in columns)
                }
    except DecryptionError:
        raise
    except (ParquetError, FileNotFoundError):
        return StoredColumns((), {})
    return StoredColumns(list(columns.values()), metadata)


@contextmanager
def _open_staying_files(
    listing: DirectoryListing,
    changes: CommitChanges,
    open_source: Callable[[str], Source],
    keys: DatasetKeys | None,
) -> Iterator[list[OpenFile]]:
    """Open one of the files that stay, and more while columns have only nulls in all of them.

    Raises DecryptionError, with advice, if one is encrypted with other keys.
    """
    removed, files = set(changes.gone), []
    paths = [entry.path for entry in listing.files if entry.path not in removed]
    with ExitStack() as stack:
        untyped: set[str] | None = None
        for path in paths[:_MOST_COMPARED]:
            file = _open_staying_file(stack.enter_context(closing(open_source(path))), path, open_source, keys)
            files.append(file)
            untyped = (set(file.schema.columns) if untyped is None else untyped) - _typed_columns(file)
            if not untyped:
                break
        yield files


def _open_staying_file(
    source: Source, path: str, open_source: Callable[[str], Source], keys: DatasetKeys | None
) -> OpenFile:
    def read_sibling(name: str) -> bytes:
        with closing(open_source(sibling_path(path, name))) as sibling:
            return read_small_source(sibling)

    try:
        return OpenFile(source, decryption=None if keys is None else keys.of(path).for_file(path, read_sibling))
    except DecryptionError as error:
        error.message = (
            f"the new files cannot be compared with an existing one: {error.message}; pass decryption= with the keys "
            "of the existing files to numparq.DatasetWriter or SharedJob.begin"
        )
        error.args = (error.message,)
        raise


def _typed_columns(file: OpenFile) -> set[str]:
    """Return the names of the columns that have values, and no field of nothing but nulls."""
    columns, schema = file.schema.columns, file.schema
    empty = {columns[at] for at in range(len(columns)) if has_no_values(file, at)}
    nulls = {columns[leaf.column] for leaf in schema if leaf.logical is not None and leaf.logical.kind == "UNKNOWN"}
    return set(columns) - empty - nulls


def _check_one_table(files: Sequence[OpenFile], same_name: Callable[[str], str], what: str) -> None:
    """Raise SchemaError, its message prefixed by ``what``, if files cannot form one table."""
    first, *others = files
    try:
        check_one_table(files)
        for other in others:
            _check_names(first.schema.columns, other.schema.columns, same_name)
    except SchemaError as error:
        error.where.pop("file", None)  # the path of a staged file would not help the user
        error.message = f"{what}: {error.message}"
        raise


def _check_names(old: Sequence[str], new: Sequence[str], same_name: Callable[[str], str]) -> None:
    """Raise SchemaError for a new column whose name readers treat as equal to another column's."""
    known = {same_name(name): name for name in old}
    for name in new:
        other = known.get(same_name(name), name)
        if name not in old and other != name:
            raise SchemaError(f"the existing column {other!r} has a name that readers treat as equal", column=name)
