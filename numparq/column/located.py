"""Pages whose places an offset index tells (PageIndex.md): only these are fetched, and no others walked over."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..errors import check
from ..io.source import Source
from ..kernels import kernels
from ..kernels.located_pages import L_END, L_IN_CHUNK, L_START
from ..kernels.tables import C_DICTIONARY_PAGE, PAGE_FIELDS, SLACK
from .pages import WINDOW_BYTES, Pages, PageWalk
from .scratch import Scratch

__all__ = ["LocatedWalk", "bytes_of", "fetched"]


class LocatedWalk(PageWalk):
    """Fetches pages of one column chunk by their places.

    Parameters
    ----------
    source : Source
        The file.
    chunks : int64 array, (1, CHUNK_FIELDS)
        The chunk table.
    located : int64 array, (pages, LOCATED_FIELDS)
        The pages, as `located_pages` gives them.
    is_flat : bool
        Whether a page has as many values as rows.
    at_hand : (uint8 array, int64 array), optional
        What `fetched` gave of all of them, and their places in it, where that has been done.
    """

    def __init__(
        self, source: Source, chunks: np.ndarray, located: np.ndarray, is_flat: bool,
        at_hand: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(source, chunks)
        self._located = located
        self._at_hand = at_hand
        self._is_flat = is_flat
        chunks[0, C_DICTIONARY_PAGE] = -1

    def windows(self, scratch: Scratch) -> Iterator[Pages]:
        """Fetch the pages, some at a time, and read their headers; a window's bytes last until the next one.

        Raises
        ------
        ParquetError
            For headers that break the format, or are not those of the pages that the offset index tells of.
        """
        if self._at_hand is not None:
            raw, located = self._at_hand
            yield Pages(raw, self.chunks, self._headers(raw, located))
            return
        sizes = (self._located[:, L_END] - self._located[:, L_START]).cumsum()
        first = before = 0
        while first < len(sizes):
            last = max(int(sizes.searchsorted(before + WINDOW_BYTES, side="right")), first + 1)
            before = int(sizes[last - 1])
            located = self._located[first:last].copy()
            raw = fetched(self._source, located, scratch)
            yield Pages(raw, self.chunks, self._headers(raw, located))
            first = last

    def _headers(self, raw: np.ndarray, located: np.ndarray) -> np.ndarray:
        """Read the headers of pages into a page table."""
        count = len(located)
        table = np.empty((count, PAGE_FIELDS), np.int64)
        state = np.zeros(1, np.int64)
        status = kernels.scan_located_pages(
            raw, located.reshape(-1), count, int(self._is_flat), self.chunks.reshape(-1), table.reshape(-1),
            self._table, self._slots, self._record, self._stack, state,
        )  # fmt: skip
        if status < 0:
            check(status, page=int(located[int(state[0]), L_IN_CHUNK]))
        return table


def bytes_of(located: np.ndarray) -> int:
    """Count the bytes of pages: int64 array, (pages, LOCATED_FIELDS)."""
    return int(np.add.reduce(located[:, L_END] - located[:, L_START]))


def fetched(source: Source, located: np.ndarray, scratch: Scratch) -> np.ndarray:
    """Fetch pages, those that touch together.

    Parameters
    ----------
    source : Source
        The file.
    located : int64 array, (pages, LOCATED_FIELDS)
        The pages; their places become those in the bytes given.
    scratch : Scratch
        This thread's buffers.

    Returns
    -------
    uint8 array
        With SLACK behind; it lasts until the thread fetches again.
    """
    starts, ends = located[:, L_START], located[:, L_END]
    runs = _runs(starts.tolist(), ends.tolist())
    if len(runs) == 1:
        start, stop = runs[0]
        raw = source.view(start, stop - start, SLACK)
        if raw is None:
            raw = scratch.take("raw", stop - start)
            source.read_into(start, raw[: stop - start])
        located[:, : L_END + 1] -= start
        return raw
    length = sum(stop - start for start, stop in runs)
    raw = scratch.take("raw", length)
    position = 0
    for start, stop in runs:
        source.read_into(start, raw[position : position + stop - start])
        position += stop - start
    sizes = ends - starts
    sizes.cumsum(out=ends)
    np.subtract(ends, sizes, out=starts)
    return raw


def _runs(starts: list[int], ends: list[int]) -> list[tuple[int, int]]:
    """Put byte ranges that touch together."""
    runs: list[tuple[int, int]] = []
    for start, end in zip(starts, ends, strict=True):
        if runs and runs[-1][1] == start:
            start = runs.pop()[0]
        runs.append((start, end))
    return runs
