"""Null counts of the leaves of a scan, by the footers of its files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from numparq.format.open_file import OpenFile
from numparq.format.schema import Leaf
from numparq.format.writer_quirks import leaf_may_be_null

from .file_columns import FileColumns

if TYPE_CHECKING:
    from .file_reader import FileReader
    from .unread_files import UnreadFiles


def file_may_have_nulls(file: OpenFile, leaves: Sequence[Leaf]) -> list[bool]:
    """Return for each leaf whether it may hold a null in any row group of a file."""
    counts = file.footer.chunks.read_table(range(file.num_row_groups), [leaf.index for leaf in leaves])["null_count"]
    none = (counts == 0).all(axis=0).tolist()
    created_by = file.footer.created_by
    return [
        leaf_may_be_null(leaf, 0 if are_none else None, created_by) for leaf, are_none in zip(leaves, none, strict=True)
    ]


def merge_may_be_null(readers: Sequence[FileReader | UnreadFiles], num_leaves: int) -> list[bool]:
    """Return for each projected leaf whether it may be null in any file."""
    merged = [False] * num_leaves
    for columns, some in _by_columns(readers).items():
        answers = list(map(any, zip(*(reader.may_be_null for reader in some), strict=True)))
        has_rows = any(reader.num_rows for reader in some)
        for leaf, answer in columns.by_projected_leaf(answers, True, has_rows).items():
            merged[leaf] = merged[leaf] or answer
    return merged


def merge_null_counts(readers: Sequence[FileReader | UnreadFiles], num_leaves: int) -> list[int | None]:
    """Return for each projected leaf 0 without nulls, 1 with nulls, and None if a file has no count."""
    merged: list[int | None] = [0] * num_leaves
    for columns, some in _by_columns(readers).items():
        counts = zip(*(reader.null_counts for reader in some), strict=True)
        answers = [None if None in column else int(any(column)) for column in counts]
        has_rows = any(reader.num_rows for reader in some)
        for leaf, count in columns.by_projected_leaf(answers, None, int(has_rows)).items():
            merged[leaf] = None if count is None or merged[leaf] is None else merged[leaf] or count
    return merged


def _by_columns(readers: Sequence[FileReader | UnreadFiles]) -> dict[FileColumns, list[FileReader | UnreadFiles]]:
    """Return the readers, those of files with the same columns together."""
    groups: dict[FileColumns, list[FileReader | UnreadFiles]] = {}
    for reader in readers:
        groups.setdefault(reader.columns, []).append(reader)
    return groups
