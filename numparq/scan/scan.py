"""Read files into one frame: find rows, allocate once, decode each file in place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd

from numparq.column.buffers import DecodedColumn
from numparq.column.scratch import ThreadScratch
from numparq.errors import LimitError, ParquetError, error_context
from numparq.to_pandas.frame import BlockLayout, allocate_blocks
from numparq.to_pandas.numbers import unmasked
from numparq.to_pandas.strings import default_string_array
from numparq.types.output_type import OutputType
from numparq.util.arguments import thread_count
from numparq.util.progress import ProgressBar
from numparq.util.worker_pool import WorkerPool

from .file_columns import FileColumns
from .file_reader import FileReader
from .joined_files import divide_into_runs
from .memory import check_memory_limit, decoded_bytes, scratch_limit
from .options import ScanOptions
from .projected_columns import ProjectedColumns
from .scan_file import ScanFile
from .shared_memory import SharedMemory, concat_columns, merge_category_orders

if TYPE_CHECKING:
    from numparq.plan.read_plan import ReadPlan

    from .file_rows import FileRowReader
    from .recovery.skip_damaged import SkipDamaged

__all__ = ["DecodedRows", "Scan"]

_Unit = TypeVar("_Unit")

# Files on an object store that are read side by side: what they wait for is mostly answers.
SIDE_BY_SIDE = 16


class DecodedRows(NamedTuple):
    """Rows of many files, decoded; `made_columns` are finished arrays by the position of their first leaf."""

    num_rows: int
    layout: BlockLayout
    buffers: list[DecodedColumn]
    virtual: dict[str, Any]
    made_columns: dict[int, Any]


class Scan:
    """A read of files.

    Parameters
    ----------
    table : ProjectedColumns
        The columns.
    files : sequence of ScanFile
        All files that any part of the read may be of: they decide the dtypes.
    columns : mapping of int to FileColumns
        Of each file, by its ordinal.
    options : ScanOptions
        Other options of the read.
    skip : SkipDamaged, optional
        Error policy; by default damage raises.

    Attributes
    ----------
    empty_files : list of ScanFile
        What is decoded where no row is left, for its categories.
    """

    def __init__(
        self,
        table: ProjectedColumns,
        files: Sequence[ScanFile],
        columns: Mapping[int, FileColumns],
        options: ScanOptions,
        skip: SkipDamaged | None = None,
    ) -> None:
        self.table = table
        self._choices = options
        self._skip = skip
        limit = options.memory_limit
        self._scratch_limit = None if limit is None else scratch_limit(limit, thread_count(options.threads))
        self._columns = columns
        self._apart = next((own.apart for own in columns.values()), ())
        self._runs: dict[ScanFile, FileReader] = {}
        self.empty_files: list[ScanFile] = []
        self._files = files

    @cached_property
    def may_be_null(self) -> list[bool]:
        """Whether each leaf of the table may be null in a file, by the footers."""
        found = [False] * len(self.table.leaves)
        for columns, rows in self._rows_by_columns().items():
            answers = list(map(any, zip(*(one.may_be_null for one in rows), strict=True)))
            has_rows = any(one.num_rows for one in rows)
            for place, answer in columns.table_answers(answers, True, has_rows).items():
                found[place] = found[place] or answer
        return found

    @property
    def _null_counts(self) -> list[int | None]:
        """For each leaf of the table, 0 without nulls, 1 with nulls, and None if a file does not count them."""
        found: list[int | None] = [0] * len(self.table.leaves)
        for columns, rows in self._rows_by_columns().items():
            counts = zip(*(one.null_counts for one in rows), strict=True)
            answers = [None if None in column else int(any(column)) for column in counts]
            has_rows = any(one.num_rows for one in rows)
            for place, count in columns.table_answers(answers, None, int(has_rows)).items():
                found[place] = None if count is None or found[place] is None else found[place] or count
        return found

    def _rows_by_columns(self) -> dict[FileColumns, list[FileRowReader]]:
        """Return the rows of all files, those with the same columns together."""
        found: dict[FileColumns, list[FileRowReader]] = {}
        for reader in self._readers(self._files):
            found.setdefault(reader.columns, []).append(reader.rows)
            self._runs[reader.selections[0]] = reader
        return found

    @cached_property
    def output_types(self) -> list[OutputType]:
        """Schema-only type of each leaf of the table, the same for all parts of a stream."""
        return self.table.schema_only_types(self.may_be_null)

    def set_shares(self, threads: int, scratch_limit: int | None) -> None:
        """Limit the decoding threads, and the scratch buffers of each."""
        self._choices = replace(self._choices, threads=threads)
        self._scratch_limit = scratch_limit

    def file_reader(self, wanted: ScanFile) -> FileReader:
        """Return the reader of a file in a stream, to look at: what its rows take, say."""
        reader = self._made([wanted])
        reader.set_output_types(self.output_types)
        return reader

    def file_rows(self, wanted: ScanFile) -> FileRowReader:
        """Return the rows of a file, to plan them; output types, by the footers of all files, are not set."""
        return self._made([wanted]).rows

    def _readers(self, files: Sequence[ScanFile], limit: int | None = None) -> list[FileReader]:
        """Return single-use readers of files; whole files are joined."""
        made = []
        for run in divide_into_runs(files, self._columns, self._skip is None and limit is None):
            known = self._runs.pop(run[0], None)
            made.append(known if known is not None and known.selections == run else self._made(run))
        return made

    def _made(self, run: Sequence[ScanFile]) -> FileReader:
        policy = None if self._skip is None else self._skip.file_policy(run[0].file)
        return FileReader(run, self._columns[run[0].ordinal], self.table, self._choices, policy)

    def read(self, files: Sequence[ScanFile], limit: int | None = None) -> pd.DataFrame:
        """Read the rows of some files into one frame, with the dtypes that one file of all these rows would have.

        At most `limit` rows, of those that satisfy the predicate.
        """
        null_counts = self._null_counts
        types = self.table.output_types(null_counts)
        is_filtered = self._choices.filters is not None or bool(self._choices.runtime_filters)
        rows = self._decoded(files, limit, types, null_counts if is_filtered else [])
        if self._choices.dtype_backend == "numpy":  # columns that were cast have schema-only types so far
            for at in (self.table.leaf_slices[position].start for position in self._apart):
                if at in rows.made_columns and types[at].array_kind not in ("masked", "masked_floats"):
                    rows.made_columns[at] = unmasked(rows.made_columns[at])
        frame = self.to_frame(rows)
        if self._skip is not None and not is_filtered and self._choices.explode is None:
            self._skip.relabel(frame, self.table.metadata)
        return frame

    def count(self, files: Sequence[ScanFile]) -> int:
        """Count the rows that `read` would give, without decoding more than what their conditions ask."""
        parts = self._readers(files)
        with self._begun(parts, self.output_types) as each:
            each(parts, lambda part: part.select(None))
            return sum(part.rows.num_rows for part in parts)

    def plans(self, files: Sequence[ScanFile]) -> list[tuple[str, ReadPlan]]:
        """Plan each file's part: its name, and what is decoded, or looked through for rows that satisfy a condition."""
        return [(wanted.file.source.name, self._made([wanted]).rows.plan()) for wanted in files]

    def to_frame(self, rows: DecodedRows) -> pd.DataFrame:
        """Make the frame of rows that are decoded."""
        return self.table.to_frame(rows.layout, rows.buffers, list(rows.virtual.items()), rows.made_columns)

    def decode(self, files: Sequence[ScanFile], limit: int | None = None) -> DecodedRows:
        """Decode rows as one part of a stream; parameters as of `read`.

        Raises InvalidFileError for nulls that the statistics exclude, because other parts have another dtype.
        """
        null_counts = [int(may) or None for may in self.may_be_null]
        return self._decoded(files, limit, self.output_types, null_counts)

    def read_unit(
        self, files: Sequence[ScanFile], limit: int | None, convert: Callable[[DecodedRows], _Unit]
    ) -> tuple[int, int, _Unit]:
        """Decode and convert rows as one part of a stream; return their number, their bytes as decoded, and the result.

        Damage that the policy skips is a reason to do it again.
        """

        def attempt() -> tuple[int, int, _Unit]:
            with error_context(file=files[0].file.source.name if len(files) == 1 else None):
                rows = self.decode(files, limit)
                return rows.num_rows, decoded_bytes(rows.layout, rows.buffers), convert(rows)

        if self._skip is None:
            return attempt()
        groups = {one.file.source.name: [rows.row_group for rows in one.slices] for one in files}
        return self._skip.read_unit(attempt, groups)

    def _decoded(
        self,
        files: Sequence[ScanFile],
        limit: int | None,
        types: Sequence[OutputType],
        null_counts: Sequence[int | None],
    ) -> DecodedRows:
        """Decode rows as output types; `null_counts` are those of rows that a filter may have dropped, if any."""
        table = self.table
        parts = self._readers(files, limit)
        try:
            with self._begun(parts, types) as each:
                parts = self._found(parts, each, limit)
                self._check_memory(parts)
                starts = list(accumulate([part.rows.num_rows for part in parts], initial=0))
                memory = SharedMemory(allocate_blocks(types, starts[-1], table.index_leaves))
                shared = _decode_shared(parts, memory, starts, each)
                if self._apart:
                    each(parts, lambda part: part.decode_cast_columns())
        except ParquetError:  # a LimitError is a MemoryError, too
            raise
        except MemoryError as error:
            what = f"{len(files):,} files into one frame; use numparq.Dataset.iter_batches"
            if len(files) == 1:
                what = f"{sum(part.rows.num_rows for part in parts):,} rows of {len(table.names)} columns"
            raise LimitError(f"not enough memory to read {what}") from error
        layout = memory.layout
        buffers = concat_columns(layout, shared)
        merge_category_orders(layout, shared, [[0, *accumulate(part.counts[:-1])] for part in parts])
        if null_counts:
            table.restore_null_counts(buffers, null_counts)
        if self._skip is None:
            arrays = [part.arrays_to_cast() for part in parts]
        else:
            files_of = [
                (part.rows, start, part.columns.leaf_positions()) for part, start in zip(parts, starts, strict=False)
            ]
            layout, buffers, kept = self._skip.drop_lost(table, layout, buffers, files_of, limit)
            arrays = [part.arrays_to_cast(rows) for part, rows in zip(parts, kept, strict=True)]
        counts = [count for part in parts for count in part.counts]
        made = self._cast_arrays(parts, arrays) if self._apart else {}
        made |= self.partition_arrays([one.ordinal for part in parts for one in part.selections], counts)
        return DecodedRows(sum(counts), layout, buffers, dict(self._virtual(parts, counts)), made)

    def _check_memory(self, parts: Sequence[FileReader]) -> None:
        """Refuse rows that take more memory than is allowed."""
        limit = self._choices.memory_limit
        if limit is not None:
            check_memory_limit(
                [(part.memory_estimate(self.table.virtual), part.rows.selections.parts) for part in parts],
                thread_count(self._choices.threads),
                limit,
            )

    @contextmanager
    def _begun(
        self, parts: Sequence[FileReader], types: Sequence[OutputType]
    ) -> Iterator[Callable[[Iterable[Any], Any], None]]:
        """Get all parts ready; gives what does something for each of them, side by side where they are remote."""
        threads = thread_count(self._choices.threads)
        local = ThreadScratch(self._scratch_limit)
        with ExitStack() as stack:
            progress = stack.enter_context(ProgressBar(self._choices.progress, "reading", "bytes"))
            crew = stack.enter_context(WorkerPool(threads))
            are_remote = len(parts) > 1 and any(part.file.source.is_remote for part in parts)
            outer = stack.enter_context(WorkerPool(min(SIDE_BY_SIDE, len(parts)))) if are_remote else None
            for part in parts:
                part.open(types, crew, local, progress)
            stack.callback(_close_all, parts)

            def each(wanted: Iterable[Any], do: Callable[[Any], None]) -> None:
                if outer is not None:
                    outer.run([lambda part=part: do(part) for part in wanted])  # type: ignore[misc]
                    return
                for part in wanted:
                    do(part)

            yield each

    def _found(self, parts: list[FileReader], each: Callable[..., None], limit: int | None) -> list[FileReader]:
        """Find the rows of all parts; with a limit, of as many as it takes."""
        if limit is None or self._skip is not None:  # only intact rows count, which decoding finds
            each(parts, lambda part: part.select(None))
            return parts
        found: list[FileReader] = []
        for part in parts:
            if limit <= 0:
                break
            part.select(limit)
            limit -= part.rows.num_rows
            found.append(part)
        return found

    def partition_arrays(self, ordinals: Sequence[int], counts: Sequence[int]) -> dict[int, Any]:
        """Build the columns that no file holds, for so many rows of each file, by leaf position: here none."""
        return {}

    def _cast_arrays(self, parts: Sequence[FileReader], arrays: Sequence[dict[int, Any]]) -> dict[int, Any]:
        """Cast the columns that each file has decoded apart, by position of their first leaf: here there are none."""
        return {}

    def _virtual(self, parts: Sequence[FileReader], counts: Sequence[int]) -> list[tuple[str, Any]]:
        """Make the virtual columns asked for."""
        made: list[tuple[str, Any]] = []
        for name in self.table.virtual:
            if name == "file":
                files = default_string_array([one.file.source.name for part in parts for one in part.selections])
                made.append((name, files.take(np.arange(len(counts)).repeat(counts))))
            else:
                arrays = [part.virtual_column(name) for part in parts]
                made.append((name, np.concatenate(arrays) if arrays else np.empty(0, np.int64)))
        return made


def _decode_shared(
    parts: Sequence[FileReader],
    memory: SharedMemory,
    starts: Sequence[int],
    each: Callable[[Iterable[Any], Any], None],
) -> list[dict[int, DecodedColumn]]:
    """Decode all files into the table's memory, and leaves whose type a later file has changed once more."""
    found: list[dict[int, DecodedColumn]] = [{} for _ in parts]

    def decode(place: int) -> None:
        found[place].update(parts[place].decode(memory, starts[place]))

    while outdated := [place for place, part in enumerate(parts) if part.is_outdated(memory)]:
        each(outdated, decode)
    return found


def _close_all(parts: Sequence[FileReader]) -> None:
    for part in parts:
        part.rows.close()
