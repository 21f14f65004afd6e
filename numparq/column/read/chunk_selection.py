"""Selected rows of a column chunk, decoded from its pages."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from numparq.column.buffers import BinaryArray
from numparq.column.scratch import Scratch, allocate
from numparq.kernels.decode.binary_pages import STATE_BYTES, STATE_NEEDED, STATE_PAGE
from numparq.kernels.kernel_groups import kernels
from numparq.kernels.selection.lazy_pages import STATE_FIELDS, STATE_TAKEN
from numparq.kernels.status import NEED_ROOM
from numparq.kernels.tables import NO_TRANSCODER, P_ROW, SLACK
from numparq.plan.row_ranges import RowRanges

from .decode import grow_buffer
from .decompress import PageBatches
from .output import NO_MASK, FixedOutput
from .pages import PageFailure, Pages
from .transcode import DecodablePages, open_batch

MIN_STRING_BYTES = 64 << 10  # room for strings, which are copied if there is too little


class ChunkSelection:
    """Selected rows of one column chunk, and how many of them are decoded.

    Parameters
    ----------
    rows : RowRanges
        Rows of the row group.
    mask : uint8 array or None
        1 for each row of the only range that is selected, 0 for the others; None: all are.

    Attributes
    ----------
    count : int
        Number of selected rows.
    state : int64 array
        The kernels'.
    """

    __slots__ = ("_bounds", "_mask", "_mask_row", "count", "row_ranges", "state")

    def __init__(self, rows: RowRanges, mask: np.ndarray | None) -> None:
        self.row_ranges = rows.bounds
        self._bounds = rows.bounds.reshape(-1)
        self.state = np.zeros(STATE_FIELDS, np.int64)
        if mask is None:
            self._mask, self._mask_row = NO_MASK, -1
            self.count = rows.count
        else:
            self._mask, self._mask_row = mask, int(rows.bounds[0, 0])
            self.count = int(np.count_nonzero(mask))

    @property
    def num_decoded(self) -> int:
        """Number of rows decoded so far."""
        return int(self.state[STATE_TAKEN])

    def restart(self) -> None:
        """Begin with the first row again."""
        self.state[:] = 0

    def allocate_strings(self, size_hint: int) -> BinaryArray:
        """Return memory for the rows as strings, which take about `size_hint` bytes."""
        room = max(size_hint + size_hint // 16, MIN_STRING_BYTES)
        strings = BinaryArray(allocate(self.count + 1, "i8"), allocate(room + SLACK), allocate(self.count))
        strings.offsets[0] = 0
        return strings

    def row_index(self, position: int) -> int:
        """Return the row of the row group at a position among the selected rows."""
        ranges = self.row_ranges
        if self._mask_row >= 0:
            return self._mask_row + int(self._mask.nonzero()[0][position])
        before = (ranges[:, 1] - ranges[:, 0]).cumsum()
        which = int(before.searchsorted(position, side="right"))
        return int(ranges[which, 1] - before[which]) + position

    def read(
        self,
        pages: Pages,
        output: FixedOutput | BinaryArray,
        entries: np.ndarray | BinaryArray | None,
        scratch: Scratch,
    ) -> None:
        """Decode the selected rows of pages into the output, behind those before; null counts go to the chunk table.

        `entries` are of the chunk's dictionary, in the output's type; None: the pages have it. Strings have room
        for all selected rows, and validity; their data is replaced if it is too small. Raises PageFailure.
        """
        placement = PageBatches(pages, scratch)
        work = _work_memory(placement, scratch)
        if isinstance(output, BinaryArray):
            assert isinstance(entries, BinaryArray)
            kernel, source = kernels.read_binary_rows, [entries.offsets, entries.data]
            target: list[Any] = [output.validity, output.offsets, output.data, len(output.data) - SLACK]
        else:
            kernel, target = kernels.read_fixed_rows, [work.rows, work.rows_mask, output.mask, output.out]
            assert not isinstance(entries, BinaryArray)
            source = [scratch.buffer("dictionary", placement.dictionary) if entries is None else entries]
        decompressed = scratch.buffer("decompressed", placement.decompressed) if placement.decompressed else NO_MASK
        for batch in placement.batches:
            first, last, by_kernel, transcoder = batch
            is_stored = by_kernel & (transcoder == NO_TRANSCODER)  # the kernel decompresses pages, as far as need be
            parts: Iterable[DecodablePages] = [(pages.pages, first, last, decompressed)]
            if not is_stored:
                parts = open_batch(pages, batch, decompressed, scratch)
            for table, first, last, buffer in parts:
                status = NEED_ROOM
                while status == NEED_ROOM:
                    status = kernel(
                        pages.chunks.reshape(-1),
                        table.reshape(-1),
                        first,
                        last,
                        pages.raw,
                        buffer,
                        is_stored,
                        *source,
                        work.dense,
                        work.levels,
                        self._bounds,
                        len(self.row_ranges),
                        self._mask,
                        self._mask_row,
                        work.places,
                        work.values,
                        *target,
                        self.count,
                        self.state,
                    )
                    if status == NEED_ROOM:
                        assert isinstance(output, BinaryArray)
                        first, used = int(self.state[STATE_PAGE]), int(self.state[STATE_BYTES])
                        output.data = grow_buffer(output.data, used, int(self.state[STATE_NEEDED]))
                        target[2:] = output.data, len(output.data) - SLACK
                if status < 0:
                    raise PageFailure(int(self.state[STATE_PAGE]), status)


class _WorkMemory:
    """Memory of the kernels for the values of one page, in one buffer: `dense` has room for int32 indices, too."""

    __slots__ = ("count", "dense", "item", "levels", "places", "rows", "rows_mask", "values")

    def __init__(self, count: int, item: int, scratch: Scratch) -> None:
        self.count, self.item = count, item
        sizes = [count * item, count * item + SLACK + count, count, 4 * count, 8 * count]
        edges = [0, *accumulate((size + 2 * SLACK - 1) & -SLACK for size in sizes)]
        buffer = scratch.buffer("selected rows", edges[-1])
        parts = [buffer[start:stop] for start, stop in pairwise(edges)]
        self.dense, self.rows, self.levels = parts[:3]
        self.rows_mask = count * item + SLACK
        self.places, self.values = parts[3].view(np.int32), parts[4].view(np.int64)


def _work_memory(placement: PageBatches, scratch: Scratch) -> _WorkMemory:
    """Return this thread's memory for pages, larger than before if need be."""
    memory: _WorkMemory | None = scratch.kernel_tables.get(_WorkMemory)
    count, item = placement.values, max(placement.item, 4)
    if memory is None or memory.count < count or memory.item < item:
        if memory is not None:
            count, item = max(memory.count, count), max(memory.item, item)
        memory = scratch.kernel_tables[_WorkMemory] = _WorkMemory(count, item, scratch)
    return memory


def find_page_of_invalid_row(strings: BinaryArray, first: int, last: int, rows: ChunkSelection, pages: Pages) -> int:
    """Return the page of the first of the rows `first` to `last` (exclusive) that is not valid UTF-8."""
    while last - first > 1:
        middle = (first + last) // 2
        if kernels.check_utf8(strings.offsets[first : middle + 1], middle - first, strings.data) < 0:
            last = middle
        else:
            first = middle
    behind = int(pages.pages[:, P_ROW].searchsorted(rows.row_index(first), side="right"))
    return max(behind - 1, 0)
