"""What the tasks of `optimize` do: look at a sample, write rows, make checksums. Nothing of Spark is in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..dataset.checksum import Checksum, checksum
from ..dataset.rewriting import Piece
from ..dataset.splits import SplitReader
from ..dataset.writing import SharedJob
from ..dataset.writing.gathering import as_frame
from ..dataset.writing.task_writer import TaskMessage, TaskWriter
from ..reader import ParquetFile
from ..schema import INT96
from ..writer import ParquetWriter
from .optimize_moments import check_microseconds
from .session import begin_task

__all__ = ["FOLDER", "ColumnSample", "Pilot", "RolledWriter", "checksum_of", "compacted", "pilot_of", "sampled"]

FOLDER = "\0folder"  # the column that says, for checksums, which folder rows are in
_PILOT_ROWS = 65_536
# What the writer does not choose by itself, for readers are slower with it, but that all of them know.
_ENCODINGS = ("BYTE_STREAM_SPLIT", "DELTA_BYTE_ARRAY")
_COUNTED = (pa.types.is_integer, pa.types.is_string, pa.types.is_large_string, pa.types.is_binary,
            pa.types.is_large_binary, pa.types.is_fixed_size_binary, pa.types.is_decimal)  # fmt: skip


class ColumnSample(NamedTuple):
    """How many values some rows of a column have, and how many different ones."""

    values: int
    distinct: int


@dataclass
class Pilot:
    """What some rows showed.

    Parameters
    ----------
    rows : int
        How many.
    source_bytes, arrow_bytes, new_bytes : float
        What their column chunks take in the files that are there, they in memory, and the column chunks of new files.
    columns : dict of str to ColumnSample
        Of the columns whose values readers look for one by one.
    sizes : dict of str to dict of str to int
        By encoding (empty: the writer's choice) and leaf, by its dotted path: the bytes that its chunks have.
    """

    rows: int = 0
    source_bytes: float = 0
    arrow_bytes: float = 0
    new_bytes: float = 0
    columns: dict[str, ColumnSample] = field(default_factory=dict)
    sizes: dict[str, dict[str, int]] = field(default_factory=dict)


def pilot_of(reader: SplitReader, options: dict[str, Any], sort_by: Sequence[str], piece: Piece) -> Pilot:
    """Read some rows of a piece, write them into memory, and say what that showed.

    Parameters
    ----------
    reader : SplitReader
        Of the table.
    options : dict
        Of the writer.
    sort_by : sequence of str
        What rows will be sorted by.
    piece : Piece
        The rows.
    """
    begin_task()
    table = next(iter(reader.tables(piece.split, _PILOT_ROWS)))
    if not table.num_rows:
        return Pilot()
    table = _in_order(table, sort_by)
    trials = {"": _trial(table, options)}
    if "column_encoding" not in options and not options.get("use_byte_stream_split"):
        trials |= {name: _trial(table, {**options, "column_encoding": name}) for name in _ENCODINGS}
    share = table.num_rows / max(piece.split.num_rows or table.num_rows, 1)
    columns = {
        name: ColumnSample(len(values) - values.null_count, pc.count_distinct(values).as_py())
        for name, values in zip(table.column_names, table.columns, strict=True)
        if any(test(values.type) for test in _COUNTED)
    }
    return Pilot(table.num_rows, piece.split.num_bytes * share, table.nbytes, sum(trials[""].values()), columns, trials)


def _trial(table: pa.Table, options: dict[str, Any]) -> dict[str, int]:
    """Write rows into memory: the bytes of each leaf."""
    with ParquetWriter(None, threads=1, **options) as writer:
        writer.write(as_frame(table), index=False)
    with ParquetFile(writer.getvalue()) as file:
        groups = np.arange(file.num_row_groups)
        return {".".join(leaf.path): int(file.footer.chunks["total_compressed_size"][groups, leaf.index].sum())
                for leaf in file.schema}  # fmt: skip


def _in_order(table: pa.Table, sort_by: Sequence[str]) -> pa.Table:
    """Sort rows, where Arrow can: for a look at what that does to sizes."""
    try:
        return table.sort_by([(name, "ascending") for name in sort_by]) if sort_by else table
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError):  # of extension types, it is the latter
        return table


def sampled(reader: SplitReader, rows: int, piece: Piece) -> pa.Table:
    """Give some rows of a piece, from all over it.

    Parameters
    ----------
    reader : SplitReader
        Of the columns that are wanted.
    rows : int
        How many, about.
    piece : Piece
        The rows.
    """
    begin_task()
    step = max((piece.split.num_rows or rows) // max(rows, 1), 1)
    taken, first = [], step // 2
    for table in reader.tables(piece.split):
        places = range(first, table.num_rows, step)
        taken.append(table.take(pa.array(places, pa.int64())))
        first = first + len(places) * step - table.num_rows
    return pa.concat_tables(taken).combine_chunks()


def checksum_of(reader: SplitReader, pieces: Sequence[Piece]) -> Checksum:
    """Give the checksum of rows, of all their values and the folders that they are in.

    Parameters
    ----------
    reader : SplitReader
        Of the table.
    pieces : sequence of Piece
        The rows.

    Raises
    ------
    UnsupportedError
        When there are INT96 timestamps with nanoseconds, which tables do not have.
    """
    begin_task()
    total = Checksum()
    fine = sorted({leaf.path[0] for leaf in reader.schema if leaf.physical == INT96})
    for piece in pieces:
        if fine:
            check_microseconds(piece, fine, reader.filesystem)
        total += checksum(_with_folder(table, piece.folder) for table in reader.tables(piece.split))
    return total


def _with_folder(table: pa.Table, folder: str) -> pa.Table:
    codes = pa.array(np.zeros(table.num_rows, np.int8))
    return table.append_column(FOLDER, pa.DictionaryArray.from_arrays(codes, pa.array([folder])))


class RolledWriter:
    """Writes rows of one folder after the other, into files of about one size.

    Parameters
    ----------
    writer : TaskWriter
        Of the task.
    file_bytes : int
        A file that has as many is closed; what is left behind it is not to make a small one, so it is more than files
        are meant to have.
    """

    def __init__(self, writer: TaskWriter, file_bytes: int) -> None:
        self._writer, self._file_bytes = writer, file_bytes
        self._folder: str | None = None

    def write(self, table: pa.Table, folder: str) -> None:
        """Write rows."""
        if folder != self._folder and self._folder is not None:
            self._writer.roll()
        self._folder = folder
        self._writer.write(table, folder=folder)
        if self._writer.num_bytes >= self._file_bytes:
            self._writer.roll()


def compacted(
    job: SharedJob, reader: SplitReader, file_bytes: int, task: tuple[int, Sequence[Sequence[Piece]]]
) -> TaskMessage:
    """Write rows in the order that they are in, each bin a file.

    Parameters
    ----------
    job : SharedJob
        The write.
    reader : SplitReader
        Of the table.
    file_bytes : int
        As of `RolledWriter`.
    task : tuple
        Its number, and the rows: some bins of pieces.
    """
    begin_task()
    number, bins = task
    with job.task(f"{number:07}") as writer:
        rolled = RolledWriter(writer, file_bytes)
        for pieces in bins:
            for piece, table in _tables(reader, pieces):
                rolled.write(table, piece.folder)
            writer.roll()
    assert writer.message is not None
    return writer.message


def _tables(reader: SplitReader, pieces: Sequence[Piece]) -> Iterator[tuple[Piece, pa.Table]]:
    for piece in pieces:
        for table in reader.tables(piece.split):
            yield piece, table
