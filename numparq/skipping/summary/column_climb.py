"""Summary of a leaf column's chunks in one file: footers first, then dictionaries, then data, as far as needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from numparq.errors import ParquetError
from numparq.format.column_order import leaf_order
from numparq.format.open_file import OpenFile
from numparq.format.page_index import UNKNOWN
from numparq.format.physical_type import BYTE_ARRAY, INT96
from numparq.format.schema import Leaf
from numparq.format.thrift.layout import ThriftLayout, thrift_layout
from numparq.format.writer_quirks import parse_created_by
from numparq.prune.statistics import ContainerStatistics, row_group_statistics
from numparq.util.pluralize import pluralize

from .bounds import KeyBounds, trusted_key_bounds
from .chunk_values import ChunkValues, ReadOptions, empty_values, read_chunk, read_dictionary
from .value_kind import value_kind

# Writers whose bounds of strings are values, or have a raised upper end if a program configures their truncation.
_WHOLE_STRINGS = ("parquet-mr", "parquet-cpp", "parquet-cpp-arrow")
# From this release on NaN is the greatest value of parquet-mr, so that other bounds mean that a chunk has none.
_ORDERS_NANS = ("parquet-mr", (1, 10, 0))
_EXACT = tuple(f"meta_data.statistics.is_{side}_value_exact" for side in ("min", "max"))
_ALL = slice(None)
_MAX_RANK = ("footer", "dictionary", "data")


class SummaryNeeds(NamedTuple):
    """Facts of a column chunk that a caller needs.

    Attributes
    ----------
    counts : bool
        Number of nulls and NaNs. Without, it is enough to know whether there may be NaNs.
    bounds : bool
        Bounds, if the type has an order.
    distinct : callable or None
        Function that reduces `ChunkValues` to what is kept of the distinct values; None: they are not needed.
    data : {"auto", True, False}
        Whether to decode chunks: those that leave something unknown, all, or none, nor their dictionaries.
    options : ReadOptions
        How to decode them.
    """

    counts: bool = True
    bounds: bool = True
    distinct: Callable[[ChunkValues], Any] | None = None
    data: bool | str = "auto"
    options: ReadOptions = ReadOptions()


@lru_cache(maxsize=1)
def _exact_layout() -> ThriftLayout:
    return thrift_layout("ColumnChunk", *_EXACT)


class ColumnClimb:
    """Summary of the chunks of one leaf column, one item a row group: by the footer, then by what `climb` reads.

    Attributes
    ----------
    num_values, nulls, nans : int64 array
        Number of values including nulls, of nulls, and of NaNs; UNKNOWN if not known.
    has_nan_entry : bool array
        Whether the dictionary has a NaN, which may be unused.
    footer_bounds, bounds : KeyBounds
        Bounds of the values that are no NaN: by the footer alone, as reads prune, and by all that was read.
    sources : list of str
        Source of the bounds: ``"footer"``, ``"dictionary"`` or ``"data"``.
    distinct : dict of int to (object, str)
        What `SummaryNeeds.distinct` returned, and its source, by row group.
    contradictions : list of ParquetError
        Statistics that the data refute.
    """

    def __init__(self, file: OpenFile, leaf: Leaf) -> None:
        self._file, self.leaf, self.kind = file, leaf, value_kind(leaf)
        footer, groups = file.footer, range(file.num_row_groups)
        writer = parse_created_by(footer.created_by)
        statistics = row_group_statistics(footer, leaf, groups)
        # A chunk with fewer values than rows, or hidden metadata, is damaged or encrypted: only its data can tell.
        is_described = (statistics.num_values >= footer.row_group_num_rows) & (statistics.num_values >= 0)
        self.num_values: np.ndarray = np.where(is_described, statistics.num_values, UNKNOWN)
        self.nulls: np.ndarray = self._trusted_null_counts(statistics.null_counts).copy()
        self._are_whole = leaf.physical != BYTE_ARRAY or writer.name in _WHOLE_STRINGS
        as_stored = statistics
        if leaf.physical == BYTE_ARRAY:  # equal bounds that are not declared exact may be a prefix of the values
            as_stored = replace(statistics, is_exact=np.ones(len(groups), np.bool_))
        self.footer_bounds = trusted_key_bounds(as_stored, leaf, self.kind)
        bounds = self.footer_bounds if self._are_whole else trusted_key_bounds(statistics, leaf, self.kind)
        self.bounds = KeyBounds(*(items.copy() for items in bounds))
        self.nans: np.ndarray = np.zeros(len(groups), np.int64)
        if self.kind.key_dtype == "float64":
            orders_nans = writer.name == _ORDERS_NANS[0] and not writer.is_before(_ORDERS_NANS[1])
            self.nans = np.where(self.bounds.known & orders_nans, 0, statistics.nan_counts)
        self.has_nan_entry = np.zeros(len(groups), np.bool_)
        self.sources = ["footer"] * len(groups)
        self.distinct: dict[int, tuple[Any, str]] = {}
        self.contradictions: list[ParquetError] = []
        self._has_order = leaf_order(leaf).kind != "none" or leaf.physical == INT96
        self._plain_bounds: Callable[[int], ContainerStatistics] = statistics.container

    def _trusted_null_counts(self, stored: np.ndarray) -> np.ndarray:
        """Return the null count of each chunk, UNKNOWN if it is not certain.

        For nested leaf columns, writers disagree on what counts as a null; level histograms are unambiguous.
        """
        leaf, num_values = self.leaf, self.num_values
        if not leaf.max_definition_level:
            return np.where(num_values < 0, UNKNOWN, 0)
        if not leaf.is_nested:
            return np.where(num_values < 0, UNKNOWN, stored)
        present = np.array([self._count_present(group) for group in range(len(num_values))], np.int64)
        counts = np.where(present >= 0, num_values - present, UNKNOWN)
        return np.where((present < 0) & self._file.is_written_by_numparq & (num_values >= 0), stored, counts)

    def _count_present(self, group: int) -> int:
        """Return the values of a chunk that are not null, by its histogram of definition levels."""
        metadata = self._file.footer.chunks.chunk_record(group, self.leaf.index).meta_data
        statistics = None if metadata is None else metadata.size_statistics
        levels = [] if statistics is None else statistics.definition_level_histogram or []
        is_sound = min(levels, default=-1) >= 0 and sum(levels) == self.num_values[group]
        return int(levels[-1]) if is_sound else UNKNOWN

    @cached_property
    def low_exact(self) -> np.ndarray:
        """Mask of chunks whose lower bound, if it is known, occurs as a value."""
        return self._declared_exact(0)

    @cached_property
    def high_exact(self) -> np.ndarray:
        """Mask of chunks whose upper bound, if it is known, occurs as a value."""
        return self._declared_exact(1)

    def _declared_exact(self, side: int) -> np.ndarray:
        """Return which bounds are declared values; those of fixed size are unless the footer denies it."""
        layout, count = _exact_layout(), self._file.num_row_groups
        words = self._file.footer.chunks.read_words(layout, range(count), [self.leaf.index] * count)
        flags = words[:, layout.slot(_EXACT[side])]
        exact: np.ndarray = flags == 1 if self.leaf.physical == BYTE_ARRAY else flags != 0
        return exact

    @property
    def num_present(self) -> np.ndarray:
        """Number of values that are not null; where nulls are unknown, of all values."""
        present: np.ndarray = np.maximum(self.num_values, 0) - np.maximum(self.nulls, 0)
        return present

    def is_empty(self, groups: slice = _ALL) -> np.ndarray:
        """Return which row groups are known to have no values but nulls (bool)."""
        num_values, nulls = self.num_values[groups], self.nulls[groups]
        empty: np.ndarray = (num_values == 0) | ((nulls >= 0) & (nulls == num_values))
        return empty

    def is_all_nan(self, groups: slice = _ALL) -> np.ndarray:
        """Return which row groups are known to have only NaNs besides nulls (bool)."""
        nulls, nans = self.nulls[groups], self.nans[groups]
        all_nan: np.ndarray = (nans > 0) & (nulls >= 0) & (nans == self.num_values[groups] - nulls)
        return all_nan

    def lacks(self, needs: SummaryNeeds, groups: slice = _ALL) -> np.ndarray:
        """Return of which row groups the nulls, NaNs or bounds are needed and not known (bool)."""
        nans, lacks = self.nans[groups] < 0, np.zeros(len(self.nulls[groups]), np.bool_)
        if needs.counts:
            lacks |= (self.nulls[groups] < 0) | nans
        if needs.bounds:
            lacks |= nans & ~self.has_nan_entry[groups]
            if self._has_order:
                lacks |= ~self.bounds.known[groups] & ~self.is_all_nan(groups)
        lacks &= ~self.is_empty(groups)
        return lacks

    def drop_truncated_bounds(self) -> None:
        """Forget bounds of BYTE_ARRAY columns that are not exact, unless the writer is known to keep them whole."""
        if not self._are_whole:
            self.bounds.known[:] &= self.low_exact & self.high_exact

    # --- dictionaries and data ---------------------------------------------------------------------------------------

    def climb(self, group: int, needs: SummaryNeeds) -> None:
        """Read of a row group's chunk what is needed; raise ParquetError if it is damaged or cannot be read."""
        if needs.data is True:
            if self.num_values[group]:
                self._add_values(group, read_chunk(self._file, self.leaf, group, needs.options), needs)
            else:
                self._count_constant(group, needs)
            return
        self._count_constant(group, needs)
        if not needs.data or self._is_known(group, needs):
            return
        if not needs.counts or self.nulls[group] >= 0:  # a dictionary has no nulls
            dictionary = read_dictionary(self._file, self.leaf, group)
            if dictionary is not None:
                self._add_dictionary(group, dictionary, needs)
                if self._is_known(group, needs):
                    return
        self._add_values(group, read_chunk(self._file, self.leaf, group, needs.options), needs)

    def _is_known(self, group: int, needs: SummaryNeeds) -> bool:
        has_distinct = needs.distinct is None or group in self.distinct
        return has_distinct and not self.lacks(needs, slice(group, group + 1))[0]

    def _count_constant(self, group: int, needs: SummaryNeeds) -> None:
        """Count a chunk that needs no reading: no values, or exact bounds that are equal, or bounds of booleans."""
        if needs.distinct is None or group in self.distinct:
            return
        if self.is_empty(slice(group, group + 1))[0]:
            self.distinct[group] = needs.distinct(empty_values(self.leaf)), "footer"
            return
        if not (self.bounds.known[group] and self.low_exact[group] and self.high_exact[group]):
            return
        if self.kind.key_dtype == "float64" or self.kind.name.startswith("bytes(") or self.leaf.physical == INT96:
            return  # a zero bound stands for -0.0 and 0.0, and chunks may have NaNs
        is_constant = self.bounds.lows[group] == self.bounds.highs[group]
        if is_constant or self.kind.name == "bool":
            statistics = self._plain_bounds(group)
            plain = [statistics.min_value or b"", statistics.max_value or b""]
            self.distinct[group] = needs.distinct(ChunkValues.from_bounds(self.leaf, plain)), "footer"

    def _add_dictionary(self, group: int, values: ChunkValues, needs: SummaryNeeds) -> None:
        if needs.distinct is not None and group not in self.distinct:
            self.distinct[group] = needs.distinct(values), values.source
        if self.nans[group] < 0:
            self.has_nan_entry[group] = values.nan_count > 0
            self.nans[group] = UNKNOWN if values.nan_count else 0
        if not self.bounds.known[group]:
            self._set_bounds(group, values)

    def _add_values(self, group: int, values: ChunkValues, needs: SummaryNeeds) -> None:
        nulls, bounds = int(self.num_values[group]) - values.count, values.bounds
        if self.num_values[group] >= 0:
            if self.nulls[group] >= 0 and nulls != self.nulls[group]:
                self._report(
                    group, f"null_count is {self.nulls[group]:,}, but the column chunk has {pluralize(nulls, 'null')}"
                )
            self.nulls[group] = nulls
        low, high = self.bounds.lows[group], self.bounds.highs[group]
        if self.bounds.known[group] and bounds is not None and (bounds[0] < low or bounds[1] > high):
            self._report(group, "some values are outside the bounds")
        self.nans[group] = values.nan_count
        if needs.distinct is not None:
            self.distinct[group] = needs.distinct(values), values.source
        self._set_bounds(group, values)

    def _report(self, group: int, message: str) -> None:
        name = self._file.source.name
        self.contradictions.append(
            ParquetError(f"the statistics are wrong: {message}", file=name, row_group=group, column=self.leaf.name)
        )

    def _set_bounds(self, group: int, values: ChunkValues) -> None:
        bounds = values.bounds
        self.bounds.known[group] = bounds is not None
        if bounds is not None:
            self.bounds.lows[group], self.bounds.highs[group] = bounds
            self.low_exact[group] = self.high_exact[group] = values.source == "data"
            self.sources[group] = values.source


def merge_sources(sources: list[str]) -> str:
    """Return the farthest of some sources: the data after dictionaries after the footer."""
    return max(sources, key=_MAX_RANK.index, default="footer")
