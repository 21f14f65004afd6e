"""Prune many local files by statistics before they are opened, by their footers as one table."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from numparq.dataset.listing.files import DataFile, PartitionIndex
from numparq.errors import ParquetError
from numparq.expr.bound import filter_leaves
from numparq.expr.expression import Constant, Expression
from numparq.format.footer.footer_table import FooterTable
from numparq.format.footer.tail import TAIL_BYTES
from numparq.format.open_file import OpenFile
from numparq.format.unparsed_file import UnparsedFile
from numparq.io.small_files import UnloadedFileSource
from numparq.prune.match import containers_may_match
from numparq.prune.statistics import row_group_statistics
from numparq.scan.scan_file import ScanFile
from numparq.scan.unread_files import UnreadFiles

if TYPE_CHECKING:
    from numparq.dataset.discover.snapshot import DatasetSnapshot

    from .dataset_filter import DatasetFilter

# Fewer files are opened in the time that the table takes.
_MIN_FILES = 16


class UnopenedFiles:
    """Files of a dataset whose footers have been read together.

    Attributes
    ----------
    alike : dict of int to list of int
        The files to open, by ordinal, and the files whose columns are the same, itself included.
    """

    def __init__(self, snapshot: DatasetSnapshot, ordinals: Sequence[int]) -> None:
        self._snapshot = snapshot
        self._ordinals = np.array(ordinals, np.int64)
        self._files: list[DataFile] = list(snapshot.files.take(self._ordinals))
        self._table = FooterTable([file.path for file in self._files])
        # By first file, in the order of the dataset.
        groups = [*self._table.groups, *(np.array([at]) for at in self._table.unread)]
        self._groups = sorted(groups, key=lambda group: int(group[0]))
        self._is_known = {id(group) for group in self._table.groups}
        self.alike: Mapping[int, Sequence[int]] = {
            int(self._ordinals[group[0]]): self._ordinals[group].tolist() for group in self._groups
        }

    @classmethod
    def of(cls, snapshot: DatasetSnapshot, ordinals: Sequence[int]) -> UnopenedFiles | None:
        """Read the footers of files if these are local, and many are not open yet; else return None."""
        is_possible = snapshot.listing.filesystem is None and hasattr(os, "preadv")
        return cls(snapshot, ordinals) if is_possible and len(snapshot.unopened(ordinals)) >= _MIN_FILES else None

    def prune(self, filters: DatasetFilter) -> tuple[list[int], dict[int, np.ndarray]]:
        """Return the ordinals of the files that may match, and by first file the positions of the others."""
        if filters.predicate == Constant(True):
            return self._ordinals.tolist(), {}
        may_match = np.ones(len(self._ordinals), np.bool_)
        for group, first in zip(self._groups, self._snapshot.open_files([*self.alike]), strict=True):
            if id(group) in self._is_known:
                may_match[group] = self._match_group(first, group, filters)
        if not may_match.any():
            may_match[0] = True  # for the columns of an empty result
        has_rows = np.array(self._table.row_counts) > 0  # other files have no say in dtypes
        pruned = {int(group[0]): group[~may_match[group] & has_rows[group]] for group in self._groups}
        return self._ordinals[may_match].tolist(), {first: gone for first, gone in pruned.items() if len(gone)}

    def open(self, ordinals: Sequence[int]) -> list[OpenFile]:
        """Open files; small ones whose footers are known are not read yet."""
        opened, table, unparsed = self._snapshot.open_files([*self.alike]), self._table, {}
        chosen = {*ordinals}
        for group, model in zip(self._groups, opened, strict=True):
            for position in group.tolist() if id(group) in self._is_known else ():
                status, ordinal = table.statuses[position], int(self._ordinals[position])
                if status is not None and status.st_size <= TAIL_BYTES and ordinal in chosen:
                    file = self._files[position]
                    source = UnloadedFileSource(file.path, file.name, status)
                    unparsed[ordinal] = UnparsedFile(source, self._snapshot.coalescing, model, table, position)
        self._snapshot.add_opened(unparsed)
        return self._snapshot.open_files(ordinals)

    def _match_group(self, first: OpenFile, group: np.ndarray, filters: DatasetFilter) -> np.ndarray:
        """Return which files of a group may have matching rows; all, if a footer contradicts itself."""
        partitions, codes = PartitionIndex.from_files([self._files[at] for at in group.tolist()])
        may_match = np.ones(len(group), np.bool_)
        for code in range(len(partitions)) if filters.keys else [-1]:
            chosen = np.flatnonzero(codes == code) if code >= 0 else np.arange(len(group))
            bound = filters.bind_file(first, self._files[group[chosen[0]]])
            may_match[chosen] = self._match_files(first, group[chosen], bound)
        return may_match

    def _match_files(self, first: OpenFile, positions: np.ndarray, bound: Expression) -> np.ndarray:
        leaves = filter_leaves(bound)
        footer = self._table.join(first.footer, positions, [leaf.index for leaf in leaves])
        if footer is None or bound == Constant(True):
            return np.ones(len(positions), np.bool_)
        groups = range(len(footer.row_group_num_rows))
        statistics = {leaf.index: row_group_statistics(footer, leaf, groups) for leaf in leaves}
        may = containers_may_match(bound, statistics, len(groups)).copy()
        may &= footer.row_group_num_rows > 0
        owners = self._table.rows_of(positions)[1]
        return np.bincount(owners[may], minlength=len(positions)) > 0

    def firsts(self, pruned: Mapping[int, np.ndarray]) -> dict[int, ScanFile]:
        """Return the files that stand for the pruned ones."""
        ordinals = self._ordinals[[*pruned]].tolist()
        opened = zip(pruned, ordinals, self._snapshot.open_files(ordinals), strict=True)
        return {first: ScanFile(file, ordinal) for first, ordinal, file in opened}

    def unread_files(
        self, pruned: Mapping[int, np.ndarray], firsts: Mapping[int, ScanFile]
    ) -> list[UnreadFiles] | None:
        """Return what is known of the pruned files, with the columns of `firsts`; None if a footer is damaged."""
        unread = []
        for first, positions in pruned.items():
            columns = firsts[first].columns
            leaves = [*dict.fromkeys(leaf.index for leaf in columns.leaves)]
            footer = self._table.join(firsts[first].file.footer, positions, leaves)
            assert footer is not None
            try:
                unread.append(UnreadFiles.from_footer(columns, footer))
            except ParquetError:
                return None
        return unread

    def are_unchanged(self, files: Sequence[ScanFile]) -> bool:
        """Whether files are those whose footers were read."""
        positions = np.searchsorted(self._ordinals, [file.ordinal for file in files]).tolist()
        for file, status in zip(files, map(self._table.statuses.__getitem__, positions), strict=True):
            if status is not None and file.file.stamp != (status.st_size, status.st_mtime_ns):
                return False
        return True

    def ordinals_of(self, positions: Iterable[np.ndarray]) -> list[int]:
        """Return the ordinals of files at some positions, in order."""
        ordinals: list[int] = np.sort(self._ordinals[np.concatenate([np.empty(0, np.intp), *positions])]).tolist()
        return ordinals
