"""The work of a planned run of `optimize`: rows are written anew, verified, and committed in the place of the old."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ..dataset.checksum import Checksum
from ..dataset.clustering import Clustering, quantiles
from ..dataset.rewriting import Piece, binned, pieces_of
from ..dataset.splits import SplitTable, split_table
from ..dataset.writing import SharedJob
from ..dataset.writing.paths import job_id
from ..dataset.writing.task_writer import TaskMessage
from ..errors import InvalidFileError
from .optimize_choices import Choices, chosen
from .optimize_keys import files_of_old_calendars
from .optimize_moments import check_calendar, has_moments
from .optimize_pieces import TASK_BYTES, absolute, known_as, tasks_of, together
from .optimize_plan import Plan
from .optimize_report import LaidOut, OptimizeReport
from .optimize_sorting import sort_and_write
from .optimize_steps import Steps, job_text
from .optimize_tasks import Pilot, checksum_of, compacted, pilot_of, sampled

__all__ = ["Run"]

_MOST_PILOTS = 8
_SAMPLE_ROWS = 200_000  # of which the quantiles of columns are taken


class Run:
    """One run of `optimize`.

    Parameters
    ----------
    steps : Steps
        Of the run.
    plan : Plan
        What is to be done.
    path, out
        As of `optimize`.
    place : dict
        The arguments ``storage_options`` and ``filesystem``.
    """

    def __init__(self, steps: Steps, plan: Plan, path: Any, out: Any, place: dict[str, Any]) -> None:
        self._steps, self._plan, self._path, self._out, self._place = steps, plan, path, out, place

    def done(self, report: OptimizeReport) -> OptimizeReport:
        """Do it; gives the report, which has said till now what was there, with what has become of it."""
        self._check_calendars()
        choices = self._chosen()
        plan, bloom = self._plan, choices.bloom_filters
        mode = {"mode": "error"} if self._out is not None else {"mode": "replace", "gone": plan.rewriting.paths}
        options = {"row_group_bytes": choices.row_group_bytes,
                   **plan.writer_options(bloom, choices.encodings, job_id())}  # fmt: skip
        job = SharedJob.begin(self._path if self._out is None else self._out, **mode, **self._place, **options)
        try:
            checksum = self._checksum_of(plan.table, plan.pieces, "checksum before")
            messages = self._written(job, choices)
            after = self._verified(checksum, job, messages)
            with self._steps.step("commit"):
                job.commit(messages)
        except BaseException:
            job.abort()
            raise
        return replace(report, status="done", after=after, bloom_filters=bloom, checksum=checksum)

    def _check_calendars(self) -> None:
        """Refuse files whose days would be others beside those of the rest: Spark reads both by what a footer says."""
        rewriting, table = self._plan.rewriting, self._plan.table
        old = files_of_old_calendars(rewriting.files)
        if old and any(map(has_moments, table.schema)):
            with self._steps.step("calendars"):
                paths = [known_as(facts.file.path, rewriting) for facts in old]
                check = partial(check_calendar, table.reader.filesystem)
                self._steps.each(paths, check, f"days of {len(old):,} files of an old calendar")

    def _chosen(self) -> Choices:
        """Look at some rows, and decide what the data decide."""
        plan = self._plan
        step = max(len(plan.pieces) // _MOST_PILOTS, 1)
        some = plan.pieces[step // 2 :: step]
        with self._steps.step("sample"):
            trial = partial(pilot_of, plan.table.reader, plan.writer_options(()), plan.sort_by)
            pilots: list[Pilot] = self._steps.each(some, trial, f"a look at {len(some)} samples")
        return chosen(plan.wanted, pilots, plan.new.flat, plan.sort_by)

    def _checksum_of(self, table: SplitTable, pieces: Sequence[Piece], name: str) -> Checksum:
        with self._steps.step(name):
            text = f"{name}, {self._plan.num_rows:,} rows"
            return sum(self._steps.each(tasks_of(pieces), partial(checksum_of, table.reader), text), Checksum())

    def _written(self, job: SharedJob, choices: Choices) -> list[TaskMessage]:
        plan = self._plan
        reader, num_files = plan.table.reader, len(plan.rewriting.files)
        file_bytes = plan.wanted.file_bytes * 5 // 4  # of a range that is somewhat too large, one file is made
        if not (plan.sort_by or plan.cluster_by):
            bins = binned(plan.pieces, max(int(plan.wanted.file_bytes / choices.shrinkage), 1))
            with self._steps.step("writing"):
                tasks = list(enumerate(together(bins, TASK_BYTES)))
                write = partial(compacted, job, reader, file_bytes)
                return self._steps.each(tasks, write, f"writing {len(bins):,} files of {num_files:,}")
        packing = plan.packing(self._clustering() if plan.cluster_by else None)
        ranges = plan.num_files(sum(piece.split.num_bytes for piece in plan.pieces) * choices.shrinkage)
        with self._steps.step("sorting and writing"):
            text = job_text(f"sorting and writing {num_files:,} files as {ranges:,}")
            pieces = tasks_of(plan.pieces)
            return sort_and_write(self._steps.spark, job, reader, packing, pieces, ranges, file_bytes, text)

    def _clustering(self) -> Clustering:
        """Take the quantiles of a sample."""
        columns = list(self._plan.cluster_by)
        with self._steps.step("quantiles"):
            table = self._plan.rewriting.table(columns, TASK_BYTES, self._place["storage_options"])
            pieces = [Piece("", split) for split in table.splits]
            look = partial(sampled, table.reader, max(_SAMPLE_ROWS // max(len(pieces), 1), 1))
            found = self._steps.each(pieces, look, f"quantiles of {', '.join(columns)}")
        bounds = []
        for name in columns:
            chunks = [chunk for one in found for chunk in one.column(name).chunks]
            bounds.append(quantiles(_joined(chunks, table.arrow_schema.field(name).type), len(columns)))
        return Clustering(bounds)

    def _verified(self, before: Checksum, job: SharedJob, messages: Sequence[TaskMessage]) -> LaidOut:
        """Read what was written, hold it against what was there, and count it."""
        files = [file for message in messages for file in message.files]
        paths = job.staged(messages)
        table = split_table(paths, partitioning=None, split_bytes=TASK_BYTES, **self._place)
        names = {absolute(path): file.folder for path, file in zip(paths, files, strict=True)}
        by_name = {os.path.basename(path): folder for path, folder in names.items()}
        pieces = pieces_of(table, lambda path: by_name[os.path.basename(path)])
        after = self._checksum_of(table, pieces, "checksum after")
        if after != before or before.rows != self._plan.num_rows:
            raise InvalidFileError(
                f"the rows that were written are not those that were read: checksum {after} instead of {before}; "
                f"footers tell of {self._plan.num_rows:,} rows. Nothing was changed", file=os.fsdecode(self._path),
            )  # fmt: skip
        groups = {(part.file.path, group.row_group)
                  for piece in pieces for part in piece.split.parts for group in part.groups or ()}  # fmt: skip
        return LaidOut(len(files), len(groups), after.rows, sum(file.num_bytes for file in files))


def _joined(chunks: list[Any], arrow_type: Any) -> Any:
    import pyarrow as pa

    return pa.chunked_array(chunks, type=arrow_type)
