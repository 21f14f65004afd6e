"""Decode jobs over many small row groups, and their scheduler."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from numparq.column.buffers import BinaryArray
from numparq.column.read.decode import decode_binary_chunks
from numparq.column.read.dictionary import EMPTY_DICTIONARY, all_have_indices, decode_binary_dictionaries
from numparq.column.read.output import FixedOutput
from numparq.column.read.pages import Pages
from numparq.column.read.row_selection import RowSlice
from numparq.errors import ParquetError
from numparq.kernels.enums import DICTIONARY_PAGE
from numparq.kernels.tables import (
    C_END,
    C_ITEM_SIZE,
    C_OUT,
    C_QUIRKS,
    C_START,
    C_VALIDITY,
    P_CHUNK,
    P_TYPE,
    PREFIX_CARRYOVER,
)

from .job import DecodeJob
from .schedule import MAX_COALESCED_BYTES, SHARES_PER_THREAD, JobScheduler, coalesce_chunks
from .slice import BinaryJob, MultiOutputJob

__all__ = ["MultiGroupScheduler"]

# Bytes that a job has at least, if there are so many.
MIN_JOB_BYTES = 512 << 10


@dataclass(eq=False, repr=False)
class _MultiGroupJob(DecodeJob):
    """Small chunks of several row groups, which lie in one window.

    Parameters
    ----------
    row_groups : list of int
        For each chunk the ordinal of its row group.
    """

    row_groups: list[int] = field(kw_only=True)

    def _add_location(self, error: ParquetError, chunk: int) -> ParquetError:
        error.where.setdefault("row_group", self.row_groups[min(chunk, len(self.row_groups) - 1)])
        return super()._add_location(error, chunk)


@dataclass(eq=False, repr=False)
class MultiGroupFixedJob(_MultiGroupJob, MultiOutputJob):
    """Such chunks of values of a fixed size; of any columns."""


@dataclass(eq=False, repr=False)
class MultiGroupBinaryJob(_MultiGroupJob, BinaryJob):
    """Such chunks of BYTE_ARRAY values, of one column and of rows that follow one another: they become one piece."""

    def __call__(self) -> None:
        """Decode the chunks."""
        for pages in self.page_windows():
            is_dictionary = pages.pages[:, P_TYPE] == DICTIONARY_PAGE
            dictionaries = self._dictionaries(Pages(pages.raw, pages.chunks, pages.pages[is_dictionary]))
            data = Pages(pages.raw, pages.chunks, pages.pages[~is_dictionary])
            with self.page_error_context(data):
                piece = decode_binary_chunks(data, dictionaries, self.size_hint, self.context.scratch)
            if self.utf8 and not all_have_indices(data):  # the strings of dictionaries are checked already
                self.check_utf8(piece, data)
            self.arrays.append(piece)

    def _dictionaries(self, pages: Pages) -> list[BinaryArray]:
        """Decode the dictionary of each chunk, and check its strings."""
        found = [EMPTY_DICTIONARY] * len(pages.chunks)
        with self.page_error_context(pages):
            made = list(decode_binary_dictionaries(pages, self.context.scratch))
        for number, (chunk, dictionary) in enumerate(zip(pages.pages[:, P_CHUNK].tolist(), made, strict=True)):
            if self.utf8:
                self.check_utf8(dictionary, Pages(pages.raw, pages.chunks, pages.pages[number : number + 1]))
            found[chunk] = dictionary
        return found


class MultiGroupScheduler(JobScheduler):
    """Makes the jobs of small row groups, one for many where it can be; parameters as of `JobScheduler`."""

    def build_jobs(self, slices: Sequence[RowSlice], wanted: Collection[int]) -> list[DecodeJob]:
        """Make the jobs for some columns and all slices; those of other columns are in the order of these.

        Raises
        ------
        ParquetError
            As `JobScheduler.jobs` does.
        """
        targets = self._memory.targets
        chosen = [column for column in wanted if targets[column].storage != "null" or targets[column].nested]
        if not chosen:
            return []
        columns = np.array(chosen, np.intp)
        common = self._template(chosen)
        groups, others = self._groups(columns)
        tables = [self._tables.row_group_table(common, columns, rows) for rows in slices]
        made: list[DecodeJob] = []
        if groups:
            places = np.concatenate([group.places for group in groups])
            lanes = np.concatenate([group.lanes for group in groups])
            outputs = {int(columns[place]): group.output for group in groups for place in group.places.tolist()}
            made.extend(self._spans(columns[places], lanes, [table[places] for table in tables], slices, outputs))
        for place in others:
            made.extend(self._alike(int(columns[place]), [table[place : place + 1] for table in tables], slices))
        return made

    def _alike(self, column: int, tables: Sequence[np.ndarray], slices: Sequence[RowSlice]) -> Iterator[DecodeJob]:
        """Make the jobs of a column that has no output: chunks of strings together, all others by themselves."""
        chunks, target = np.concatenate(tables), self._memory.targets[column]
        share = int((chunks[:, C_END] - chunks[:, C_START]).max())
        can_span = target.storage == "binary" and not target.nested
        for first, last in _runs_of_rows(chunks, slices) if can_span else pairwise(range(len(slices) + 1)):
            if last - first == 1:
                yield self._variable(column, tables[first], slices[first], share)
                continue
            run = np.ascontiguousarray(chunks[first:last])
            run[:, C_OUT] = 0
            run[:, C_VALIDITY] = [rows.out - slices[first].out for rows in slices[first:last]]
            hint = sum(self._tables.estimate_string_bytes(column, rows) for rows in slices[first:last])
            groups = [rows.row_group for rows in slices[first:last]]
            yield MultiGroupBinaryJob(
                self._context,
                groups[0],
                [column] * len(run),
                run,
                False,
                utf8=target.utf8,
                size_hint=hint + hint // 16,
                row_groups=groups,
            )

    def _spans(
        self,
        columns: np.ndarray,
        lanes: np.ndarray,
        tables: Sequence[np.ndarray],
        slices: Sequence[RowSlice],
        outputs: dict[int, FixedOutput],
    ) -> Iterator[DecodeJob]:
        chunks = np.concatenate(tables)
        count = len(columns)
        firsts = np.repeat([rows.out for rows in slices], count)
        chunks[:, C_OUT] = (np.tile(lanes, len(slices)) * self._memory.num_rows + firsts) * chunks[:, C_ITEM_SIZE]
        row_groups = np.repeat([rows.row_group for rows in slices], count)
        order = chunks[:, C_START].argsort(kind="stable")
        chunks, owners, row_groups = chunks[order], np.tile(columns, len(slices))[order], row_groups[order]
        total = int((chunks[:, C_END] - chunks[:, C_START]).sum())
        share = max(total // (SHARES_PER_THREAD * self._context.pool.threads), MIN_JOB_BYTES)
        for first, last in coalesce_chunks(chunks, share, self._context.max_gap):
            run = np.ascontiguousarray(chunks[first:last])
            names, groups = owners[first:last].tolist(), row_groups[first:last].tolist()
            yield MultiGroupFixedJob(
                self._context,
                groups[0],
                names,
                run,
                False,
                output=outputs[names[0]],
                outputs=outputs,
                row_groups=groups,
            )


def _runs_of_rows(chunks: np.ndarray, slices: Sequence[RowSlice]) -> Iterator[tuple[int, int]]:
    """Divide chunks of one column into runs of rows that follow one another, and that fit into a window."""
    starts, ends = chunks[:, C_START], chunks[:, C_END]
    firsts, counts = np.array([(rows.out, len(rows)) for rows in slices]).T
    bucket = (ends - starts[0]) // MAX_COALESCED_BYTES
    large = ends - starts > MAX_COALESCED_BYTES
    # Where strings go on from one page to the next, over the bounds of chunks even, each is decoded by itself.
    goes_on = (chunks[:, C_QUIRKS] & PREFIX_CARRYOVER) != 0
    apart = (starts[1:] < ends[:-1]) | (bucket[1:] != bucket[:-1]) | (firsts[1:] != firsts[:-1] + counts[:-1])
    alone = large | goes_on
    cuts = np.flatnonzero(apart | alone[1:] | alone[:-1]) + 1
    return pairwise([0, *cuts.tolist(), len(chunks)])
