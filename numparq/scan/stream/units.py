"""Units: row slices decoded at once, sized by the memory limit, split along row groups and pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from numparq.column.read.page_sources import WINDOW_BYTES
from numparq.column.read.row_selection import RowSlice
from numparq.column.scratch import UNLIMITED
from numparq.errors import LimitError
from numparq.format.schema import Leaf
from numparq.scan.leaf_memory import LargestPages
from numparq.scan.memory import MemoryEstimate, dictionary_scratch_bytes, format_bytes, scratch_bytes, scratch_share
from numparq.types.choose import choose_output_type
from numparq.types.output_type import OutputType
from numparq.types.schema_only import schema_only_type
from numparq.util.arguments import check_optional_positive_int, thread_count
from numparq.util.pluralize import pluralize

if TYPE_CHECKING:
    from numparq.scan.predicate import ScanPredicate

# Factor by which the first unit is smaller if the size of strings is unknown.
STRING_INFLATION = 4.0
# Fewest rows whose measured bytes adjust the estimate; page borders distort smaller units.
MIN_UNIT_ROWS = 1024

# Without a caller's limit a part of a row group has so many bytes of each leaf column, and at most so many of all. Each
# part costs a task a column, and decompresses the pages at its ends once more: 1,000 columns of 50,000 rows took 2.3 s
# in six parts, 0.34 in one.
_LEAF_BYTES = 4 << 20
_MAX_GROUP_BYTES = 2 << 30
# Larger parts are not read ahead: three of them may be in memory, of others two.
_MAX_PREFETCHED_BYTES = 512 << 20

# Allowance for casts, and for freed memory that the allocator retains.
_MARGIN = 2.0
# Batches of the default size that fit the memory limit, at least.
_BATCHES = 8


class UnitPlan:
    """Split of rows into units, each sized at its turn; `inflation` is the ratio of actual to estimated row bytes.

    `unsplittable_columns` returns the columns of a row group whose rows cannot be read alone.
    """

    def __init__(
        self,
        slices: Sequence[RowSlice],
        costs: MemoryEstimate,
        shares: MemoryShares,
        unsplittable_columns: Callable[[int], list[str]],
    ) -> None:
        self._slices = slices
        self._costs = costs
        self._shares = shares
        self._room = shares.unit_bytes
        self._group_bytes = shares.group_bytes
        self._batch_rows = shares.batch_rows
        self._is_strict = shares.is_strict
        self._divided = unsplittable_columns
        self.inflation = STRING_INFLATION if costs.is_lower_bound else 1.0

    def estimate_bytes(self, slices: Sequence[Any]) -> float:
        """Return the estimated bytes of rows, inflation included."""
        return self._costs.rows_bytes(slices) * self.inflation + self._costs.merged_bytes(slices)

    def units(self) -> Iterator[list[RowSlice]]:
        """Yield the row slices of each unit.

        Raises LimitError for a row group that neither fits nor can be split, and for a single row that does not fit.
        """
        unit: list[RowSlice] = []
        left = float(self._room)
        for part in self._slices:
            size = self.estimate_bytes([part])
            if unit and size > left:
                yield unit
                unit, left = [], float(self._room)
            if size <= self._group_bytes:
                first_row = unit[-1].out + len(unit[-1]) if unit else 0
                unit.append(RowSlice(part.row_group, part.start, part.stop, first_row))
                left -= size
            else:
                yield from self._split_row_group(part)
        if unit:
            yield unit

    def _row_bytes(self, part: RowSlice) -> float:
        return self._costs.row_bytes(part.row_group) * self.inflation

    def _split_row_group(self, part: RowSlice) -> Iterator[list[RowSlice]]:
        """Split a row group that does not fit."""
        whole = self._divided(part.row_group)
        if whole and not self._is_strict:
            yield [RowSlice(part.row_group, part.start, part.stop, 0)]
            return
        if whole:
            names = ", ".join(map(repr, whole[:3])) + (", ..." if len(whole) > 3 else "")
            size = self.estimate_bytes([part])
            raise LimitError(
                f"{pluralize(len(part), 'row')} would take about {format_bytes(size)}, more than the "
                f"{format_bytes(self._room)} available at once; they cannot be split, since rows of {names} begin in "
                f"one page and end in another; raise memory_limit to {self._limit_for(size)}, or leave the "
                "column out",
                row_group=part.row_group,
            )
        start = part.start
        while start < part.stop:
            stop = min(start + self._rows_that_fit(part), part.stop)
            yield [RowSlice(part.row_group, start, stop, 0)]
            start = stop

    def _limit_for(self, unit_bytes: float) -> str:
        return format_bytes(self._shares.limit_for(unit_bytes), round_up=True)

    def _rows_that_fit(self, part: RowSlice) -> int:
        """Return how many rows of a row group fit beside its dictionaries, which every unit of it decodes whole."""
        row, dictionaries = self._row_bytes(part), self._costs.dictionary_bytes(part.row_group)
        fit = int((self._group_bytes - dictionaries) / row)
        if fit < 1 and not self._is_strict:
            fit = max(int(self._group_bytes / row), 1)
        if fit < 1:
            beside = f" beside dictionaries of {format_bytes(dictionaries)}" if dictionaries else ""
            raise LimitError(
                f"a row takes about {format_bytes(row)}{beside}, more than the {format_bytes(self._room)} available "
                f"at once; raise memory_limit to {self._limit_for(dictionaries + max(row, dictionaries / 4))}, or "
                "read fewer columns",
                row_group=part.row_group,
            )
        return fit // self._batch_rows * self._batch_rows or fit


class BatchSize:
    """Requested size of units and batches, checked; `has_limit`: the caller gave a limit, which units must keep.

    Without one, a part of a row group may have `leaf_bytes` of each leaf column. Raises TypeError or ValueError for
    invalid numbers, and for both `batch_rows` and `batch_bytes`.
    """

    DEFAULT_LIMIT = 256 << 20
    DEFAULT_ROWS = 65_536

    def __init__(
        self,
        memory_limit: Any = None,
        batch_rows: Any = None,
        batch_bytes: Any = None,
        leaf_bytes: int = _LEAF_BYTES,
    ) -> None:
        if batch_rows is not None and batch_bytes is not None:
            raise ValueError("batch_rows and batch_bytes cannot be combined; use one of them")
        self.has_limit = memory_limit is not None
        self._leaf_bytes = 0 if self.has_limit else leaf_bytes
        self.memory_limit = check_optional_positive_int(memory_limit, "memory_limit") or self.DEFAULT_LIMIT
        self.batch_rows = check_optional_positive_int(batch_rows, "batch_rows")
        self.batch_bytes = check_optional_positive_int(batch_bytes, "batch_bytes")

    def with_limit(self, memory_limit: int) -> BatchSize:
        """Return the same request with another limit."""
        return BatchSize(memory_limit, self.batch_rows, self.batch_bytes)

    def group_bytes(self, num_leaves: int) -> int:
        """Return the bytes that a part of a row group may have, if they are more than those of a unit."""
        return min(num_leaves * self._leaf_bytes, _MAX_GROUP_BYTES)

    def batch_rows_for(self, row_bytes: float, room: float) -> int:
        """Return the rows of a batch; by default those that fit an eighth of `room` bytes."""
        if self.batch_rows is not None:
            return self.batch_rows
        if self.batch_bytes is not None:
            return max(int(self.batch_bytes / row_bytes), 1)
        return max(min(self.DEFAULT_ROWS, int(room / _BATCHES / row_bytes)), 1)


class MemoryShares:
    """Memory limit divided between scratch buffers, units and batches.

    Raises LimitError if batches of the requested rows do not fit.

    Attributes
    ----------
    threads : int
        Decoding threads, as many as memory allows.
    scratch_share : ScratchShare
        A thread's scratch buffers.
    unit_bytes : int
        Bytes of a unit of several row groups or files.
    group_bytes : int
        Bytes of a unit that is a row group, or a part of one; not less.
    is_strict : bool
        Whether larger units are refused.
    has_exact_batches : bool
        Whether each batch has exactly `batch_rows` rows, as requested.
    reads_ahead : bool
        Whether the next unit may be read while one is in use.
    """

    def __init__(
        self, costs: Sequence[MemoryEstimate], everything: float, sizes: BatchSize, threads: int | None = None
    ) -> None:
        limit = sizes.memory_limit
        self._with_limit: Callable[[int], MemoryShares] = lambda other: MemoryShares(
            costs, everything, sizes.with_limit(other), threads
        )
        self.threads = thread_count(threads)
        largest_pages = LargestPages.of_all(one.largest_pages for one in costs)

        def scratch_of(threads: int, window: int = WINDOW_BYTES) -> int:
            beside = dictionary_scratch_bytes(largest_pages, threads, window)
            return scratch_bytes(largest_pages.chunk, threads, window) + beside

        while self.threads > 1 and scratch_of(self.threads) > limit // 3:
            self.threads -= 1
        self.scratch_share = scratch_share(limit, self.threads) if sizes.has_limit else UNLIMITED
        self._limit = limit
        scratch = scratch_of(self.threads, scratch_share(limit, self.threads).window_bytes)
        left = (limit - scratch) / _MARGIN
        if left < 1:
            raise LimitError(
                f"memory_limit={format_bytes(limit)} is too small: fetching and decompressing pages takes "
                f"{format_bytes(scratch)}; raise it to at least {format_bytes(2 * scratch)}"
            )
        largest = max((one.max_row_bytes for one in costs), default=1.0)
        dictionaries = max((one.max_dictionary_bytes for one in costs), default=0.0)
        group_bytes = sizes.group_bytes(max((len(one.output_types) for one in costs), default=0))
        self.batch_rows = sizes.batch_rows_for(largest, max(left, 2 * group_bytes))
        self.has_exact_batches = sizes.batch_rows is not None
        is_small = self.scratch_share.window_bytes < WINDOW_BYTES  # allocators retain much of small buffers
        prefetches, room = True, left / 4 if is_small else left / 2
        if self.has_exact_batches:
            batch = min(self.batch_rows * largest + dictionaries, everything)
            prefetches, room = _unit_bytes_with_batch(batch, left)
            if not room and not sizes.has_limit:
                room = batch
            if not room:
                raise LimitError(
                    f"a batch of {pluralize(self.batch_rows, 'row')} takes about {format_bytes(batch)}, and "
                    f"three must fit in the {format_bytes(left)} that other memory leaves of memory_limit="
                    f"{format_bytes(limit)}; use fewer batch_rows, or raise memory_limit"
                )
        self.is_strict = sizes.has_limit
        self.unit_bytes = max(int(room), 1)
        self.group_bytes = max(self.unit_bytes, group_bytes)
        largest_group = max((one.max_group_bytes for one in costs), default=0.0)
        self.reads_ahead = prefetches and min(group_bytes, largest_group) <= _MAX_PREFETCHED_BYTES
        batch_bytes = max(self.group_bytes - dictionaries, self.group_bytes / 2)
        self.batch_rows = max(min(self.batch_rows, int(batch_bytes / largest)), 1)

    def limit_for(self, unit_bytes: float) -> int:
        """Return a memory limit that leaves so much to a unit."""
        limit, room = self._limit, 0
        while room < unit_bytes:
            limit += limit // 16 + 1
            with suppress(LimitError):
                room = self._with_limit(limit).unit_bytes
        return limit


def add_filter_columns(
    leaves: Sequence[Leaf], output_types: Sequence[OutputType], predicate: ScanPredicate | None
) -> tuple[list[Leaf], list[OutputType]]:
    """Return leaves and output types, followed by those of filter columns that are not projected."""
    shown = {leaf.index for leaf in leaves}
    others = [leaf for leaf in (predicate.leaves if predicate else ()) if leaf.index not in shown]
    return [*leaves, *others], [
        *output_types,
        *(schema_only_type(choose_output_type(leaf), may_be_null=True) for leaf in others),
    ]


def _unit_bytes_with_batch(batch: float, left: float) -> tuple[bool, float]:
    """Return whether memory allows reading ahead, and the bytes of a unit (0.0: none fits).

    A batch joins the end of one unit with the start of the next, while a third may be read.
    """
    for is_ahead, units in ((True, 3), (False, 2)):
        room = (left - batch) / units
        if room >= batch:
            return is_ahead, room
    return False, 0.0
