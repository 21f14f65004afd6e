"""One part of a store: a Parquet file whose columns are decoded, row group by row group, as vectors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np

from numparq.column.read.chunk_table import ChunkTables
from numparq.column.read.context import ReadContext
from numparq.column.scratch import ThreadScratch
from numparq.errors import ParquetError, error_context
from numparq.expr.matchers.vectors import ColumnVector
from numparq.format.key_values.spark import ROW_METADATA
from numparq.format.open_file import OpenFile
from numparq.format.physical_type import BYTE_ARRAY
from numparq.format.schema import Leaf
from numparq.format.writer_quirks import page_quirks
from numparq.plan.row_ranges import RowRanges
from numparq.prune.planner import ReadPlanner
from numparq.scan.filter_columns import FilterColumns
from numparq.util.worker_pool import WorkerPool

from .metadata import OBJECT_NAME, Json, StoreSchema, parse_store_schema
from .own_metadata import OWN_KEY, OwnMetadata

_MOST_CACHED_BYTES = 16 << 20  # a decoded column of a row group that is larger is not kept
# Indexes of a store that Xskipper builds from footers if it has no others, and only of numbers.
_NUMBERS = frozenset({"byte", "short", "integer", "long", "float", "double"})


class StorePart:
    """A part of a store.

    Attributes
    ----------
    schema : StoreSchema
        What it says of itself.
    own : OwnMetadata or None
        What numparq wrote of its files; None if another program wrote it.
    is_from_footers : bool
        Whether Xskipper may have copied its cells from footers of Parquet files.
    """

    def __init__(self, file: OpenFile) -> None:
        self.file = file
        keys = file.footer.key_value_metadata
        self.schema: StoreSchema = parse_store_schema(keys.text(ROW_METADATA), file.source.name)
        self.own = OwnMetadata.decode(keys.text(OWN_KEY))
        self.is_from_footers = self.own is None and all(
            index.name == "minmax" and _bound_type(index.type) in _NUMBERS for index in self.schema.indexes
        )

    @property
    def name(self) -> str:
        """Name of the file."""
        return self.file.source.name

    def leaves(self, column: str) -> list[Leaf]:
        """Return the leaves of a column of the part."""
        schema = self.file.schema
        position = schema.positions.get(column)
        return [] if position is None else [schema.leaf(leaf) for leaf in schema.column_leaves(position)]

    @cached_property
    def row_groups(self) -> list[PartRows]:
        """The row groups that have rows."""
        counts = self.file.footer.row_group_num_rows.tolist()
        firsts = [0, *accumulate(counts)]
        return [PartRows(self, ordinal, count, firsts[ordinal]) for ordinal, count in enumerate(counts) if count]


def _bound_type(kind: Json) -> str:
    """Return the type of a bound in Spark's type of a MinMax cell."""
    try:
        bound = kind["fields"][0]["type"]
    except (KeyError, IndexError, TypeError):
        return ""
    return bound if isinstance(bound, str) else ""


@dataclass(eq=False)
class PartRows:
    """Rows of one row group of a part, of which the first has the number `first_row` there."""

    part: StorePart
    ordinal: int
    num_rows: int
    first_row: int = 0

    def __post_init__(self) -> None:
        self._columns: dict[int, ColumnVector] = {}

    @cached_property
    def object_names(self) -> list[str | None]:
        """Ids of the files that the rows are of; None for a null."""
        leaves = self.part.leaves(OBJECT_NAME)
        if len(leaves) != 1 or leaves[0].physical != BYTE_ARRAY or leaves[0].is_nested:
            return [None] * self.num_rows
        vector = self.column(leaves[0])
        starts, ends = vector.string_bounds()
        data = vector.values.tobytes()
        texts = [
            data[start:end].decode("utf-8", "replace")
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
        ]
        if vector.codes is not None:
            return [texts[code] if code >= 0 else None for code in vector.codes.tolist()]
        if vector.validity is None:
            return list(texts)
        return [text if is_there else None for text, is_there in zip(texts, vector.validity.tolist(), strict=False)]

    def column(self, leaf: Leaf, rows: RowRanges | None = None) -> ColumnVector:
        """Decode a leaf column, of all rows or of some.

        Raises ParquetError if it cannot be read.
        """
        if rows is not None and rows.count == self.num_rows:
            rows = None
        known = self._columns.get(leaf.index) if rows is None else None
        if known is not None:
            return known
        file = self.part.file
        chosen = rows or RowRanges.all(self.num_rows)
        with error_context(file=file.source.name, row_group=self.ordinal, column=leaf.name):
            tables = ChunkTables(file.footer, [leaf], [self.ordinal], file.footer_start, file.multi_file_source)
            planner = ReadPlanner(file, [leaf], tables)
            plan = planner.plan_rows({self.ordinal: chosen})
            planner.locate_pages(plan, [leaf])
            quirks = page_quirks(file.footer.created_by)
            with WorkerPool(1) as pool:
                context = ReadContext(
                    file.reader, [leaf.name], pool, quirks.has_checksums, ThreadScratch(), quirks.bit_packed
                )
                with closing(context):
                    columns = FilterColumns(context, tables, [leaf])
                    vector = _copy(columns.decode(plan.groups[self.ordinal], chosen, [0])[leaf.index])
        if rows is None and vector.values.nbytes <= _MOST_CACHED_BYTES:
            self._columns[leaf.index] = vector
        return vector


def _copy(vector: ColumnVector) -> ColumnVector:
    """Return a vector that shares no memory with the scratch that it was decoded to."""
    names = ("values", "offsets", "validity", "list_offsets", "codes")
    arrays: Any = {name: np.array(array) for name in names if (array := getattr(vector, name)) is not None}
    levels = {level: None if mask is None else np.array(mask) for level, mask in vector.levels.items()}
    return replace(vector, levels=levels, **arrays)


def row_groups_of(parts: list[StorePart]) -> Iterator[PartRows]:
    """Yield the row groups of parts whose object names can be read."""
    for part in parts:
        for rows in part.row_groups:
            try:
                _ = rows.object_names
            except ParquetError:
                continue
            yield rows
