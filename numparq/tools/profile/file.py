"""Profile one file: footer, page indexes, then each column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from numparq.errors import ParquetError, error_context
from numparq.format.open_file import OpenFile
from numparq.format.schema import Leaf
from numparq.format.thrift.decode import read_record, root_record
from numparq.format.thrift.layout import ThriftLayout, thrift_layout
from numparq.skipping.summary.chunk_pages import FilePageIndexes
from numparq.skipping.summary.column_climb import SummaryNeeds

from .column import profile_column
from .partial_profile import FileSizes, PartialProfile


@lru_cache(maxsize=1)
def _sorting_layout() -> ThriftLayout:
    return thrift_layout("FileMetaData", "row_groups.sorting_columns")


def profile_file(
    file: OpenFile,
    ordinal: int,
    size: int | None,
    select_leaves: Callable[[Sequence[Leaf]], Sequence[Leaf]],
    needs: SummaryNeeds,
) -> PartialProfile:
    """Profile one file of `size` bytes (None: not listed); damage below the footer is recorded as troubles.

    `select_leaves` chooses among the leaf columns; the first one wins for a repeated path. Raise ParquetError if the
    footer is damaged.
    """
    with error_context(file=file.source.name):
        table = file.footer.chunks.read_table(range(file.num_row_groups), range(file.footer.num_leaves))
        leaves = {leaf.path: leaf for leaf in reversed(list(file.schema))}
        selected = sorted(select_leaves(list(leaves.values())), key=lambda leaf: leaf.index)
        pages = FilePageIndexes(file, selected)
        sort_orders = list(_sort_orders(file))
    troubles: list[str] = []
    columns = {}
    for leaf in selected:
        with error_context(file=file.source.name, column=leaf.name):
            columns[leaf.path], messages = profile_column(file, ordinal, leaf, pages, needs)
        columns[leaf.path].counts["declared"] = sum(keys[0].column_idx == leaf.index for keys in sort_orders)
        troubles += messages
    stored, plain = (int(np.maximum(table[f"total_{kind}_size"], 0).sum()) for kind in ("compressed", "uncompressed"))
    sizes = FileSizes(file.source.size if size is None else size, file.num_rows, file.num_row_groups, stored, plain)
    profile = PartialProfile(
        {ordinal: sizes},
        Counter({file.footer.created_by or "an unknown writer": 1}),
        Counter(_describe_sort_order(file, keys) for keys in sort_orders),
        columns=columns,
    )
    return profile + PartialProfile.from_errors(ordinal, file.source.name, troubles) if troubles else profile


def _sort_orders(file: OpenFile) -> Iterator[Sequence[Any]]:
    """Yield the sorting columns of each row group that declares some."""
    layout = _sorting_layout()
    record = root_record(layout, read_record(file.footer.data, file.footer.length, layout), file.footer.data)
    yield from (group.sorting_columns for group in record.row_groups or () if group.sorting_columns)


def _describe_sort_order(file: OpenFile, keys: Sequence[Any]) -> str:
    """Return the names of a row group's sorting columns."""
    names = []
    for key in keys:
        if not 0 <= key.column_idx < file.schema.num_leaves:
            return "an unknown column"
        try:
            names.append(file.schema.leaf(key.column_idx).name + (" descending" if key.descending else ""))
        except ParquetError:
            return "a damaged column"
    return ", ".join(names)
