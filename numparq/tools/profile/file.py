"""Profile one file: footer, page indexes, then each column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from numparq.errors import ParquetError, error_context
from numparq.format.open_file import OpenFile
from numparq.format.schema import Leaf

from .chunk_metadata import ChunkMetadataTable
from .column import ColumnProfiler, ProfileOptions, leaves_by_path
from .page_index import FilePageIndexes
from .partial_profile import FileSizes, PartialProfile

UNKNOWN_WRITER = "an unknown writer"


def profile_file(
    file: OpenFile,
    ordinal: int,
    size: int | None,
    select_leaves: Callable[[Sequence[Leaf]], Sequence[Leaf]],
    options: ProfileOptions,
) -> PartialProfile:
    """Profile one file of `size` bytes (None: not listed); damage below the footer is recorded as troubles.

    `select_leaves` chooses among the leaf columns. Raise ParquetError if the footer is damaged.
    """
    with error_context(file=file.source.name):
        facts = ChunkMetadataTable(file.footer)
        leaves = list(leaves_by_path(list(file.schema)).values())
        chosen = sorted(select_leaves(leaves), key=lambda leaf: leaf.index)
        pages = FilePageIndexes(file, chosen, facts)
    troubles: list[str] = []
    columns = {}
    for leaf in chosen:
        with error_context(file=file.source.name, column=leaf.name):
            reader = ColumnProfiler(file, ordinal, leaf, facts, pages, options)
        columns[leaf.path] = reader.partial
        troubles += reader.troubles
    sorted_by = Counter(_describe_sort_order(file, keys) for keys in facts.sorting_columns() if keys)
    for keys in facts.sorting_columns():
        first = [leaf for leaf in chosen if keys and leaf.index == keys[0][0]]
        if first:
            columns[first[0].path].declared += 1
    stored, plain = (int(np.maximum(facts[name], 0).sum()) for name in ("compressed", "uncompressed"))
    entry = FileSizes(file.source.size if size is None else size, file.num_rows, file.num_row_groups, stored, plain)
    found = PartialProfile(
        {ordinal: entry}, Counter({file.footer.created_by or UNKNOWN_WRITER: 1}), sorted_by, columns=columns
    )
    return found + PartialProfile.from_errors(ordinal, file.source.name, troubles) if troubles else found


def _describe_sort_order(file: OpenFile, keys: Sequence[tuple[int, bool]]) -> str:
    """Return the names of a row group's sorting columns."""
    names = []
    for index, descending in keys:
        if not 0 <= index < file.schema.num_leaves:
            return "an unknown column"
        try:
            names.append(file.schema.leaf(index).name + (" descending" if descending else ""))
        except ParquetError:
            return "a damaged column"
    return ", ".join(names)
