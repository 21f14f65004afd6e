"""Column chunks and dictionaries, decoded as they are stored, a chunk at a time."""

from __future__ import annotations

from contextlib import closing

import numpy as np

from ...column.chunks import ChunkTables
from ...column.context import Context
from ...column.scratch import ThreadScratch
from ...column.writers import faults_of
from ...errors import located
from ...filtering.asked import AskedColumns, stored_target
from ...opened import OpenedFile
from ...plan.read_plan import ReadPlan
from ...plan.row_ranges import RowRanges
from ...predicate.values import Values
from ...pruning.dictionary_page import entries, may_have_dictionary
from ...pruning.indexes import fetch
from ...schema import BYTE_ARRAY, Leaf
from ...threads import Crew
from .kinds import Kind
from .values import ChunkValues, summary

__all__ = ["read_chunk", "read_dictionary"]


def read_chunk(file: OpenedFile, leaf: Leaf, kind: Kind, row_group: int, verify_crc: bool, threads: int) -> ChunkValues:
    """Decode a column chunk, and say what its values are.

    Parameters
    ----------
    file : OpenedFile
        The file.
    leaf : Leaf
        The column.
    kind : Kind
        What it has.
    row_group : int
        The ordinal of its row group.
    verify_crc : bool
        Whether pages with a CRC are held against it.
    threads : int
        How many work on it.

    Returns
    -------
    ChunkValues

    Raises
    ------
    ParquetError
        When the chunk is damaged, or is one that this version does not read.
    """
    with located(file=file.source.name, row_group=row_group, column=leaf.name):
        tables = ChunkTables(file.footer, [leaf], [row_group], file.footer_start, file.files)
        num_rows = tables.num_rows_of(row_group)
        if not num_rows:
            return summary(leaf, kind, _nothing(leaf))
        plan = ReadPlan.whole([leaf.name], [num_rows], *tables.places([row_group]), [row_group])
        faults = faults_of(file.footer.created_by)
        with Crew(threads) as crew:
            context = Context(file.source, [leaf.name], crew, verify_crc and faults.has_checksums, ThreadScratch(),
                              faults.bit_packed)  # fmt: skip
            with closing(context):
                asked = AskedColumns(context, tables, [leaf])
                values = asked.values(plan[row_group], RowRanges.all(num_rows), [0])[leaf.index]
                return summary(leaf, kind, values)


def _nothing(leaf: Leaf) -> Values:
    """Make what a chunk without rows is decoded to."""
    dtype = stored_target(leaf).dtype
    if leaf.physical == BYTE_ARRAY:
        return Values(np.zeros(0, np.uint8), np.zeros(1, np.int64))
    return Values(np.zeros(0, dtype))


def read_dictionary(file: OpenedFile, leaf: Leaf, kind: Kind, row_group: int, first_page: int) -> ChunkValues | None:
    """Decode the dictionary of a chunk all of whose pages have indices into it, and say what its entries are.

    Parameters
    ----------
    file, leaf, kind, row_group
        As in `read_chunk`.
    first_page : int
        Where the footer says that its first data page begins.

    Returns
    -------
    ChunkValues or None
        None where there is no dictionary that can be read by itself.

    Raises
    ------
    ParquetError
        As `read_chunk`.
    """
    if not may_have_dictionary(leaf):
        return None
    with located(file=file.source.name, row_group=row_group, column=leaf.name):
        tables = ChunkTables(file.footer, [leaf], [row_group], file.footer_start)
        starts, ends = tables.places([row_group])
        start, end = int(starts[0, 0]), int(ends[0, 0])
        if not start < first_page < end:
            return None
        (piece,) = fetch(file, np.array([[start, first_page - start]], np.int64))
        found = entries(piece, row_group, 0, leaf, tables)
        if found is None:
            return None
        flat = Values(found.values, found.offsets)
        return summary(leaf, kind, flat, is_dictionary=True)
