"""Existing data under a write: files kept or removed, and their schemas checked against new files."""

from __future__ import annotations

import errno
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

from numparq.dataset.commit.record import CommitChanges
from numparq.dataset.listing.files import DirectoryListing, FileEntry
from numparq.dataset.listing.patterns import COMMON_METADATA_FILE, METADATA_FILE
from numparq.dataset.partitions.partitioning import parse_hive_path
from numparq.dataset.partitions.text import CANONICAL_TEXT_RULES, canonical_text
from numparq.dataset.schema_merge.dataset_schema import DatasetSchema
from numparq.errors import InvalidFileError, ParquetError, SchemaError
from numparq.format.open_file import OpenFile
from numparq.io.source import Source

from .partition_frame import PartitionValues

__all__ = [
    "EXISTING_DATA_BEHAVIORS",
    "WRITE_MODES",
    "RemovalRule",
    "ReplacedFiles",
    "check_empty",
    "check_schemas_compatible",
    "plan_changes",
]

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
    """Give the files of the partitions that were written: all, where there are no partitions."""
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


# The same as those who write with several processes say it.
WRITE_MODES: dict[str, RemovalRule] = {
    "append": _nothing,
    "error": _none_at_all,
    "overwrite": _all,
    "delete_matching": _matching,
}

_BEHAVIOR_SAYS = (
    "existing_data_behavior says what is to become of them: 'overwrite_or_ignore' (or append=True) adds to them, "
    "'delete_matching' replaces partitions"
)
_MODE_SAYS = "the mode says what is to become of them: append adds to them, overwrite replaces them"


@dataclass(frozen=True, slots=True)
class ReplacedFiles:
    """What goes are these files, as they were at a time before, and nothing goes if one of them is another by now.

    Parameters
    ----------
    versions : dict of str to (str or None)
        By their paths, what was known of each.
    version_of : callable
        Says the same of a file now.
    """

    versions: dict[str, str | None]
    version_of: Callable[[FileEntry], str | None]

    def __call__(
        self, base: str, files: list[FileEntry], keys: Sequence[str], written: Collection[PartitionValues]
    ) -> list[str]:
        """Give their paths."""
        there = {entry.path: entry for entry in files}
        for path, version in self.versions.items():
            if path not in there:
                raise InvalidFileError(
                    "a file that is to be replaced is not there any more; nothing was changed", file=path
                )
            if self.version_of(there[path]) != version:
                raise InvalidFileError(
                    "a file that is to be replaced was changed meanwhile; nothing was changed", file=path
                )
        return list(self.versions)


def check_empty(base: str, files: Sequence[FileEntry], advice: str = _BEHAVIOR_SAYS) -> None:
    """Raise FileExistsError when a dataset has files; the message says what to do."""
    if files:
        raise FileExistsError(errno.EEXIST, f"the dataset has files already; {advice}", base)


def plan_changes(
    gone_of: RemovalRule,
    base: str,
    found: DirectoryListing,
    keys: Sequence[str],
    written: Collection[PartitionValues],
    kinds: Mapping[str, str] | None = None,
) -> CommitChanges:
    """Say what is to be changed of what is there.

    Parameters
    ----------
    gone_of : callable
        One of `EXISTING_DATA_BEHAVIORS` or `WRITE_MODES`, or a `ReplacedFiles`.
    base : str
        The dataset's folder.
    found : DirectoryListing
        What it has.
    keys : sequence of str
        The names of the partition columns.
    written : collection of tuple of (str or None)
        The partitions that there are rows for.
    kinds : mapping of str to str, optional
        Of partition columns, as far as they are known, the kinds of types that their values are of.

    Raises
    ------
    FileExistsError
        When there are files, and there may be none.
    SchemaError
        When those that stay are partitioned by other columns.
    """
    gone = gone_of(base, found.files, keys, _with_equal_partitions(base, found.files, keys, written, kinds or {}))
    going = set(gone)
    if written:
        _check_keys(base, [entry for entry in found.files if entry.path not in going], keys)
    # Both would speak of other files than there are, or of columns that these do not have.
    start = _start(base)
    stale = [entry.path for entry in found.hidden if entry.path[start:] in (METADATA_FILE, COMMON_METADATA_FILE)]
    if not gone and not written:
        return CommitChanges()
    return CommitChanges(gone + stale)


def _check_keys(base: str, staying: list[FileEntry], keys: Sequence[str]) -> None:
    """Refuse to put files beside others that are partitioned by other columns: no reader reads them together."""
    start = _start(base)
    for entry in staying:
        theirs = tuple(_partition(entry.path[start:]))
        if theirs != tuple(keys):
            shown = [", ".join(map(repr, names)) or "nothing" for names in (theirs, keys)]
            raise SchemaError(f"the dataset is partitioned by {shown[0]}, and the frame by {shown[1]}", file=entry.path)


def _with_equal_partitions(
    base: str,
    files: Sequence[FileEntry],
    keys: Sequence[str],
    written: Collection[PartitionValues],
    kinds: Mapping[str, str],
) -> Collection[PartitionValues]:
    """Give partitions, and those that are there and have the same values, as ``month=01`` where 1 is written."""
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
    new: Sequence[OpenFile],
    same_name: Callable[[str], str] = str,
) -> None:
    """Refuse to put files beside others that no table can have together; one of those there stands for all.

    Parameters
    ----------
    found : DirectoryListing
        What the dataset has.
    changes : CommitChanges
        What of it goes.
    open_source : callable
        Opens one of its files.
    new : sequence of OpenFile
        Of the files that come, one with each choice of columns.
    same_name : callable
        Gives the same for names of columns that are one to whom the dataset is for.

    Raises
    ------
    SchemaError
        When their columns do not go together.
    """
    if len(new) > 1:
        _check_together(new, same_name, "files of the write do not go together")
    going = set(changes.gone)
    staying = next((entry.path for entry in found.files if entry.path not in going), None)
    if staying is None:
        return
    try:
        with closing(open_source(staying)) as source:
            _check_together(
                [OpenFile(source), *new], same_name, "what is written does not go with the files that are there"
            )
    except SchemaError:
        raise
    except (ParquetError, FileNotFoundError):
        return  # what cannot be read, or has been replaced since it was listed, says nothing


def _check_together(files: Sequence[OpenFile], same_name: Callable[[str], str], what: str) -> None:
    """Refuse files that no table can have together; `what` says so."""
    first, *others = files
    try:
        DatasetSchema.of(files)
        for other in others:
            _check_names(first.schema.columns, other.schema.columns, same_name)
    except SchemaError as error:
        error.where.pop("file", None)  # where a new file lies, or that it is none yet, tells nobody anything
        error.message = f"{what}: {error.message}"
        raise


def _check_names(old: Sequence[str], new: Sequence[str], same_name: Callable[[str], str]) -> None:
    """Refuse names that are other ones and yet the same: the dataset would have both columns."""
    known = {same_name(name): name for name in old}
    for name in new:
        other = known.get(same_name(name), name)
        if name not in old and other != name:
            raise SchemaError(f"their column is called {other!r}, and readers are to take both for one", column=name)
