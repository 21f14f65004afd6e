"""Plan a read and narrow the plan level by level: statistics, Bloom filters, column indexes, dictionaries."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property, partial
from itertools import compress, product
from operator import and_, attrgetter
from typing import NamedTuple

from numparq.column.read.chunk_table import ChunkTables
from numparq.expr.bound import conjuncts, describe, filter_leaves
from numparq.expr.expression import Constant, Expression
from numparq.format.open_file import OpenFile
from numparq.format.page_index import PAGE_OFFSET
from numparq.format.schema import Leaf, leaf_ordinal
from numparq.plan.chunk_pages import ChunkPages
from numparq.plan.plan_builder import PlanBuilder
from numparq.plan.row_group_plan import RowGroupPlan
from numparq.plan.row_ranges import RowRanges
from numparq.plan.whole_chunks import WholeChunks

from .bloom_filters import BloomFilterPruner
from .column_indexes import ColumnIndexPruner
from .dictionaries import DictionaryPruner
from .index_reader import (
    BLOOM_FILTER,
    COLUMN_INDEX,
    OFFSET_INDEX,
    PAGE_STATISTICS,
    PAGES,
    IndexLocations,
    PageIndexReader,
)
from .match import containers_match
from .page_headers import read_encodings
from .statistics import PruningStatistics, row_group_statistics

_ENTRY_BYTES = 1 << 8  # of such a value, besides its arrays

_NO_ROWS = RowRanges()
_FEW = 16  # column chunks whose indexes are located, loaded or cached at once
_FEW_RANGES = 8  # row ranges of a row group whose pages are found by their headers
_FEW_PAGES = 4  # whose headers are read to leave out a dictionary page
_LARGE_DICTIONARY = 64 << 10
# Of reads of more column chunks than this, those of fewer bytes are read whole: an index takes longer, and 3 KiB.
_MANY_CHUNKS, _MIN_CHUNK_BYTES = 4096, 4096
_MIN_JOINED_CHUNK_BYTES = 32 << 10  # of joined files, which are in memory
_ordinal_of, _rows_of = attrgetter("ordinal"), attrgetter("rows")


class _PageStatistics(NamedTuple):
    """Page statistics of the filter columns, where they come from, and the row groups that have any."""

    row_groups: list[int]
    level: str
    pages: ColumnIndexPruner


class ReadPlanner:
    """Plans reads of a file; `leaves` are the columns read, filter columns included, in the order of `tables`."""

    def __init__(self, file: OpenFile, leaves: Sequence[Leaf], tables: ChunkTables) -> None:
        self._file = file
        self._leaves = leaves
        self._tables = tables
        self._position_of = dict(zip(map(leaf_ordinal, leaves), range(len(leaves)), strict=True))
        self._min_chunk_bytes = _MIN_CHUNK_BYTES if tables.num_chunks > _MANY_CHUNKS else 0
        if file.footer.data_bounds is not None:
            self._min_chunk_bytes = _MIN_JOINED_CHUNK_BYTES
        self._index_locations = IndexLocations.for_file(file)

    @cached_property
    def _indexes(self) -> PageIndexReader:
        return PageIndexReader(self._file, self._leaves, self._index_locations)

    # --- without predicates ------------------------------------------------------------------------------------------

    def plan_rows(self, rows: Mapping[int, RowRanges]) -> PlanBuilder:
        """Return the plan that reads the given rows of each row group from whole chunks; nothing is fetched.

        `rows` maps ordinals of row groups to row ranges, in the order of the plan.
        """
        groups, partial_rows = [], {}
        for (ordinal, selected), chunks in zip(rows.items(), self._tables.chunks_as_pages(list(rows)), strict=True):
            is_built = type(chunks) is tuple and len(chunks) > 0
            num_rows, every = chunks[0].num_rows if is_built else self._tables.num_rows(ordinal), selected
            if selected.count < num_rows:
                partial_rows[ordinal], every = selected, RowRanges.all(num_rows)
            groups.append(RowGroupPlan(ordinal, num_rows, every, chunks))
        plan = PlanBuilder(self._tables.names, groups)
        if partial_rows:
            plan.narrow(partial_rows, "rows", "not selected")
        return plan

    def locate_pages(self, plan: PlanBuilder, leaves: Sequence[Leaf]) -> None:
        """Set the pages of these leaves' chunks by offset index, for partly selected row groups.

        The offset indexes that are not cached are fetched together.
        """
        positions = [*map(self._position_of.__getitem__, map(leaf_ordinal, leaves))]
        partly = []
        for group in plan.groups.values():
            if 0 < group.rows.count < group.num_rows:
                if type(group.chunks) is WholeChunks and group.chunks.largest < self._min_chunk_bytes:
                    continue
                for position in positions:
                    chunk = group.chunks[position]
                    if not chunk.is_indexed and chunk.end - chunk.start >= self._min_chunk_bytes:
                        partly.append(group)
                        break
        if partly:
            self._locate_pages(plan, partly, leaves)

    def _locate_pages(self, plan: PlanBuilder, groups: Sequence[RowGroupPlan], leaves: Sequence[Leaf]) -> None:
        """Set the pages of these leaves' chunks in some row groups."""
        entry, cached = self._file.entry, dict[tuple[int, int], ChunkPages]()
        missing: list[tuple[RowGroupPlan, int, int]] = []
        for group in groups:
            for leaf in leaves:
                position = self._position_of[leaf.index]
                chunk = group.chunks[position]
                if not chunk.is_indexed and chunk.end - chunk.start >= self._min_chunk_bytes:
                    pages = entry.get((PAGES, group.ordinal, leaf.index))
                    if pages is None:
                        missing.append((group, position, leaf.index))
                    else:
                        cached[group.ordinal, position] = pages
        if missing:
            cached |= self._read_pages(missing)
        if cached:
            plan.set_pages(cached)

    def _read_pages(self, missing: Sequence[tuple[RowGroupPlan, int, int]]) -> dict[tuple[int, int], ChunkPages]:
        """Read the offset indexes, or page headers, of chunks; return their pages by row group and position."""
        entry, indexes = self._file.entry, self._indexes
        indexes.load({OFFSET_INDEX: [(group.ordinal, leaf) for group, _, leaf in missing]})
        # Scattered rows lie in nearly every page: headers are walked for rows in few ranges.
        without = [each for each in missing if (OFFSET_INDEX, each[0].ordinal, each[2]) not in entry]
        indexes.walk_headers(
            (group.ordinal, leaf, group.chunks[position])
            for group, position, leaf in without
            if len(group.rows) <= _FEW_RANGES
        )
        located = {}
        for group, position, leaf in missing:
            pages = indexes.chunk_pages(group.chunks[position], group.ordinal, leaf)
            if pages is not None:
                located[group.ordinal, position] = pages
        return located

    def read_encodings(self, plan: PlanBuilder, leaves: Sequence[Leaf]) -> None:
        """Read which pages with selected rows need the dictionary page, where that is large and those are few.

        A header is read sooner than a dictionary page. Not done for a remote file: each header would be a request.
        """
        reader = self._file.reader
        if reader.source.is_remote:
            return
        for group in plan.groups.values():
            if not group.rows.count:
                continue
            for leaf in leaves:
                chunk = group.chunks[self._position_of[leaf.index]]
                if not chunk.is_indexed or chunk.locations[0, PAGE_OFFSET] - chunk.start < _LARGE_DICTIONARY:
                    continue
                pages = chunk.pages_of_unknown_encoding(group.rows)
                if 0 < len(pages) <= _FEW_PAGES:
                    read_encodings(reader, chunk, pages, group.ordinal, leaf.index)

    # --- with predicates ---------------------------------------------------------------------------------------------

    def match_row_groups(self, row_groups: Sequence[int], bound: Expression) -> tuple[list[int], set[int]]:
        """Return the row groups that may match a bound expression by statistics, and those whose rows all match.

        Each row group is named once. Nothing is fetched.
        """
        if isinstance(bound, Constant):
            return ([*row_groups], {*row_groups}) if bound.value else ([], set())
        statistics: dict[int, PruningStatistics] = {}
        for leaf in filter_leaves(bound):
            statistics[leaf.index] = row_group_statistics(self._file.footer, leaf, row_groups)
        may, must = containers_match(bound, statistics, len(row_groups))
        return [*compress(row_groups, may.tolist())], {*compress(row_groups, must.tolist())}

    def prune(self, plan: PlanBuilder, bound: Expression) -> set[int]:
        """Prune a plan by row group statistics, Bloom filters, column indexes and dictionaries, in this order.

        Fetches nothing for row groups that statistics decide. Partly selected row groups get pages by offset index.
        Returns the ordinals of row groups whose rows all match, by statistics alone.
        """
        if isinstance(bound, Constant):
            if not bound.value:
                plan.narrow(dict.fromkeys(plan.groups, _NO_ROWS), "predicate", "no row can match")
            return {*plan.groups}
        fully_matched: set[int] | None = None
        for part in conjuncts(bound):
            left = [*map(_ordinal_of, plan.left)]
            candidates, all_match = self.match_row_groups(left, part)
            plan.narrow(dict.fromkeys({*left}.difference(candidates), _NO_ROWS), "statistics", partial(describe, part))
            fully_matched = all_match if fully_matched is None else fully_matched & all_match
        self.prune_by_indexes(plan, bound, fully_matched or set())
        return fully_matched or set()

    def prune_by_indexes(self, plan: PlanBuilder, bound: Expression, fully_matched: Collection[int]) -> None:
        """Prune as `prune` does, without the row group statistics, which prove that all `fully_matched` rows match."""
        undecided = []
        for group in plan.groups.values():
            if group.rows.count and group.ordinal not in fully_matched:
                undecided.append(group.ordinal)
        if undecided:
            filter_columns, probed = filter_leaves(bound), set[tuple[int, int]]()
            chunks = [*product(undecided, map(leaf_ordinal, filter_columns))]
            # The indexes of few chunks are located at once.
            together = self._leaves if len(undecided) * len(self._leaves) <= _FEW else ()
            besides = product(undecided, map(leaf_ordinal, together))
            if self._index_locations.locate(BLOOM_FILTER, chunks, besides):
                probed = self._prune_by_bloom_filters(plan, bound, undecided)
            self._prune_by_pages(plan, bound, undecided, filter_columns)
            # Rows that page statistics have narrowed are read in the time that a dictionary takes.
            whole = []
            for ordinal in undecided:
                if plan.groups[ordinal].rows.count == plan.groups[ordinal].num_rows:
                    whole.append(ordinal)
            if whole:
                self._prune_by_dictionaries(plan, bound, whole, probed)
        self.locate_pages(plan, self._leaves)

    def _prune_by_bloom_filters(
        self, plan: PlanBuilder, bound: Expression, undecided: Sequence[int]
    ) -> set[tuple[int, int]]:
        """Prune by Bloom filters; return the chunks (ordinals of row group and leaf) whose filter was probed."""
        probed: set[tuple[int, int]] = set()
        for part, dropped in BloomFilterPruner(self._file, self._index_locations).prune(bound, undecided, probed):
            plan.narrow(dict.fromkeys(dropped, _NO_ROWS), "Bloom filter", partial(describe, part))
        return probed

    def _prune_by_pages(
        self, plan: PlanBuilder, bound: Expression, undecided: Sequence[int], filter_columns: Sequence[Leaf]
    ) -> None:
        candidates = []
        for ordinal in undecided:
            if plan.groups[ordinal].rows.count:
                candidates.append(ordinal)
        known = self._page_statistics(plan, candidates, filter_columns) if candidates else None
        if known is None:
            return
        steps, groups = [], [*map(plan.groups.__getitem__, known.row_groups)]
        left = [*map(_rows_of, groups)]
        for part in conjuncts(bound):
            rows = known.pages.may_match_rows(part)
            steps.append((part, dict(zip(known.row_groups, rows, strict=True))))
            left = [*map(and_, left, rows)]
        partly = []
        for group, rows_left in zip(groups, left, strict=True):
            if 0 < rows_left.count < group.rows.count:
                partly.append(group)
        self._locate_pages(plan, partly, self._leaves)
        for part, rows_of in steps:
            plan.narrow(rows_of, known.level, partial(describe, part))

    def _page_statistics(
        self, plan: PlanBuilder, row_groups: Sequence[int], filter_columns: Sequence[Leaf]
    ) -> _PageStatistics | None:
        """Return the page statistics of row groups; kept in the file's entry if these are few."""
        if len(row_groups) * len(filter_columns) > _FEW:
            return self._read_page_statistics(plan, row_groups, filter_columns)
        entry, key = self._file.entry, (PAGE_STATISTICS, *map(leaf_ordinal, filter_columns), -1, *row_groups)
        known: _PageStatistics | None = entry.get(key)
        if known is None and key not in entry:
            known = self._read_page_statistics(plan, row_groups, filter_columns)
            entry.put({key: known}, _ENTRY_BYTES if known is None else _ENTRY_BYTES + known.pages.num_bytes)
        return known

    def _read_page_statistics(
        self, plan: PlanBuilder, row_groups: Sequence[int], filter_columns: Sequence[Leaf]
    ) -> _PageStatistics | None:
        ordinals = self._load_page_indexes(plan, row_groups, filter_columns)
        if not ordinals:
            return None
        positions = [(self._position_of[leaf.index], leaf) for leaf in filter_columns]
        pages = ColumnIndexPruner(self._file, self._indexes, [plan.groups[ordinal] for ordinal in ordinals], positions)
        return _PageStatistics(ordinals, self._indexes.origin(ordinals[0], filter_columns[0].index), pages)

    def _load_page_indexes(
        self, plan: PlanBuilder, row_groups: Sequence[int], filter_columns: Sequence[Leaf]
    ) -> list[int]:
        """Load the page indexes; return the row groups with page statistics of any filter column."""
        chunks = []
        for group in row_groups:
            for leaf in filter_columns:
                chunk = plan.groups[group].chunks[self._position_of[leaf.index]]
                if chunk.end - chunk.start >= self._min_chunk_bytes:
                    chunks.append((group, leaf.index))
        indexed = self._indexes.chunks_with_index(COLUMN_INDEX, chunks)
        useful = list(dict.fromkeys(group for group, _ in indexed))
        # If requests are slow, or chunks few, the offset indexes of all columns are loaded at once.
        is_cheap = self._file.source.is_remote or len(useful) * len(self._leaves) <= _FEW
        leaves = self._leaves if is_cheap else filter_columns
        located = [(group, leaf.index) for group in useful for leaf in leaves]
        self._indexes.load({COLUMN_INDEX: indexed, OFFSET_INDEX: located})
        if len(indexed) < len(chunks):
            without = set(chunks).difference(indexed)
            walked = self._indexes.walk_headers(
                (group, leaf.index, plan.groups[group].chunks[self._position_of[leaf.index]])
                for group in row_groups
                for leaf in filter_columns
                if (group, leaf.index) in without
            )
            useful = [*filter({*useful, *walked}.__contains__, row_groups)]
        return useful

    def _prune_by_dictionaries(
        self, plan: PlanBuilder, bound: Expression, row_groups: Sequence[int], probed: set[tuple[int, int]]
    ) -> None:
        dictionaries = DictionaryPruner(self._file, self._leaves, self._tables)
        for part, dropped in dictionaries.prune(plan, bound, row_groups, probed):
            plan.narrow(dict.fromkeys(dropped, _NO_ROWS), "dictionary", partial(describe, part))
