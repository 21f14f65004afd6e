"""One file: its footer, its page indexes, and where these do not suffice its data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from ...errors import ParquetError, located
from ...opened import OpenedFile
from ...schema import Leaf
from .column import ColumnReader, Reading, leaves_by_path
from .footers import ChunkFacts
from .pages import PageFacts
from .part import FileFacts, Part

__all__ = ["part_of"]

UNKNOWN_WRITER = "an unknown writer"


def part_of(
    file: OpenedFile, ordinal: int, size: int | None, wanted: Callable[[Sequence[Leaf]], Sequence[Leaf]], how: Reading
) -> Part:
    """Find out about a file.

    Parameters
    ----------
    file : OpenedFile
        The file.
    ordinal : int
        Which of the dataset's it is.
    size : int or None
        Its bytes, where the listing told.
    wanted : callable
        Chooses among the leaves of a file.
    how : Reading
        What is read.

    Returns
    -------
    Part

    Raises
    ------
    ParquetError
        When the footer is damaged.
    """
    with located(file=file.source.name):
        facts = ChunkFacts(file.footer)
        leaves = list(leaves_by_path(list(file.schema)).values())
        chosen = sorted(wanted(leaves), key=lambda leaf: leaf.index)
        pages = PageFacts(file, chosen, facts)
    troubles: list[str] = []
    columns = {}
    for leaf in chosen:
        with located(file=file.source.name, column=leaf.name):
            reader = ColumnReader(file, ordinal, leaf, facts, pages, how)
        columns[leaf.path] = reader.part
        troubles += reader.troubles
    sorted_by = Counter(_words(file, keys) for keys in facts.sorted_by() if keys)
    for keys in facts.sorted_by():
        first = [leaf for leaf in chosen if keys and leaf.index == keys[0][0]]
        if first:
            columns[first[0].path].declared += 1
    stored, plain = (int(np.maximum(facts[name], 0).sum()) for name in ("compressed", "uncompressed"))
    entry = FileFacts(file.source.size if size is None else size, file.num_rows, file.num_row_groups, stored, plain)
    found = Part({ordinal: entry}, Counter({file.footer.created_by or UNKNOWN_WRITER: 1}), sorted_by, columns=columns)
    return found + Part.failed(ordinal, file.source.name, troubles) if troubles else found


def _words(file: OpenedFile, keys: Sequence[tuple[int, bool]]) -> str:
    """Name what a row group is said to be sorted by."""
    names = []
    for index, descending in keys:
        if not 0 <= index < file.schema.num_leaves:
            return "a column that there is not"
        try:
            names.append(file.schema.leaf(index).name + (" descending" if descending else ""))
        except ParquetError:
            return "a damaged column"
    return ", ".join(names)
