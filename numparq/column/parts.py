"""Runs of the data pages of a chunk as parts of their own, so that several threads can decode them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ..kernels.tables import (
    C_NULL_COUNT,
    C_ROW_START,
    C_ROW_STOP,
    DICTIONARY_PAGE,
    P_NUM_VALUES,
    P_ROW,
    P_TYPE,
    P_UNCOMPRESSED,
)
from .pages import Pages

# Bytes (decompressed) that a part of a chunk has at least when its pages are shared out.
PART_BYTES = 512 << 10


def split(pages: Pages, most: int) -> list[Pages]:
    """Divide the data pages of a single chunk into at most `most` parts of about the same size."""
    sizes = np.cumsum(pages.pages[:, P_UNCOMPRESSED])
    count = int(min(most, len(sizes), max(sizes[-1] // PART_BYTES, 1)))
    if count < 2:
        return [pages]
    cuts = np.unique(np.searchsorted(sizes, np.arange(1, count) * sizes[-1] // count, side="left") + 1)
    edges = [0, *cuts[cuts < len(sizes)].tolist(), len(sizes)]
    if len(edges) == 2:
        return [pages]
    return [part_of(pages, first, last) for first, last in pairwise(edges)]


def part_of(pages: Pages, first: int, last: int) -> Pages:
    """Give a run of data pages of a single chunk as pages of their own, with the rows that they hold."""
    table = np.ascontiguousarray(pages.pages[first:last])
    chunks = pages.chunks.copy()
    chunks[0, C_ROW_START] = max(chunks[0, C_ROW_START], table[0, P_ROW])
    stop = min(chunks[0, C_ROW_STOP], table[-1, P_ROW] + table[-1, P_NUM_VALUES])
    chunks[0, C_ROW_STOP] = max(stop, chunks[0, C_ROW_START])
    chunks[0, C_NULL_COUNT] = 0
    return Pages(pages.raw, chunks, table)


def trimmed(pages: Pages) -> Pages:
    """Narrow the wanted rows of a single chunk to those of its data pages at hand, so that pieces join up."""
    first = int(pages.pages[0, P_TYPE] == DICTIONARY_PAGE)
    if first == len(pages.pages):
        chunks = pages.chunks.copy()
        chunks[0, C_NULL_COUNT] = 0
        return Pages(pages.raw, chunks, pages.pages)
    return Pages(pages.raw, part_of(pages, first, len(pages.pages)).chunks, pages.pages)
