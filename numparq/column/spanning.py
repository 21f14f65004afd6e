"""Jobs that span row groups: for many small ones, whose chunks are walked over, and decoded, a good many at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..errors import ParquetError
from ..kernels.tables import C_END, C_ITEM_SIZE, C_OUT, C_START
from .chunks import RowSlice
from .decode import Job
from .jobs import SHARES, JobMaker, runs_of
from .side_by_side import SideBySideJob

__all__ = ["SpanningMaker"]

# Bytes that a job has at least, if there are so many.
SMALLEST_SPAN = 512 << 10


@dataclass(eq=False, repr=False)
class SpanningJob(SideBySideJob):
    """Small chunks of several row groups.

    Parameters
    ----------
    row_groups : list of int
        For each chunk the ordinal of its row group.
    """

    row_groups: list[int] = field(kw_only=True)

    def _placed(self, error: ParquetError, chunk: int) -> ParquetError:
        error.where.setdefault("row_group", self.row_groups[min(chunk, len(self.row_groups) - 1)])
        return super()._placed(error, chunk)


class SpanningMaker(JobMaker):
    """Makes jobs of small row groups: for columns of fixed storage, one for many; parameters as of `JobMaker`."""

    def jobs(self, slices: Sequence[RowSlice], wanted: Collection[int]) -> list[Job]:
        """Make the jobs for some columns and all slices; those of other columns are in the order of these.

        Raises
        ------
        ParquetError
            As `JobMaker.jobs` does.
        """
        targets = self._memory.targets
        chosen = [column for column in wanted if targets[column].storage != "null" or targets[column].nested]
        if not chosen:
            return []
        columns = np.array(chosen, np.intp)
        common = self._common(chosen)
        groups, others = self._groups(columns)
        tables = [self._tables.of_row_group(common, columns, rows) for rows in slices]
        made: list[Job] = []
        if groups:
            places = np.concatenate([group.places for group in groups])
            lanes = np.concatenate([group.lanes for group in groups])
            outputs = {int(columns[place]): group.output for group in groups for place in group.places.tolist()}
            made.extend(self._spans(columns[places], lanes, [table[places] for table in tables], slices, outputs))
        share = max(int((table[:, C_END] - table[:, C_START]).sum()) for table in tables)
        for rows, table in zip(slices, tables, strict=True):
            made.extend(self._variable(int(columns[place]), table[place : place + 1], rows, share) for place in others)
        return made

    def _spans(
        self, columns: np.ndarray, lanes: np.ndarray, tables: Sequence[np.ndarray], slices: Sequence[RowSlice],
        outputs: dict,
    ) -> Iterator[Job]:  # fmt: skip
        chunks = np.concatenate(tables)
        count = len(columns)
        firsts = np.repeat([rows.out for rows in slices], count)
        chunks[:, C_OUT] = (np.tile(lanes, len(slices)) * self._memory.num_rows + firsts) * chunks[:, C_ITEM_SIZE]
        row_groups = np.repeat([rows.row_group for rows in slices], count)
        order = chunks[:, C_START].argsort(kind="stable")
        chunks, owners, row_groups = chunks[order], np.tile(columns, len(slices))[order], row_groups[order]
        total = int((chunks[:, C_END] - chunks[:, C_START]).sum())
        share = max(total // (SHARES * self._context.crew.threads), SMALLEST_SPAN)
        for first, last in runs_of(chunks, share):
            run = np.ascontiguousarray(chunks[first:last])
            names, groups = owners[first:last].tolist(), row_groups[first:last].tolist()
            yield SpanningJob(
                self._context, groups[0], names, run, False, output=outputs[names[0]], outputs=outputs,
                row_groups=groups,
            )  # fmt: skip
