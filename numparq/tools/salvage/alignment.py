"""Find row groups behind damage: those that every division of the pages into row groups has."""

from __future__ import annotations

from collections import Counter, defaultdict

from .chunk_ends import ChunkEnd
from .row_groups import AmbiguousPagesError, RowGroupFinder, SalvagedRowGroup

# Pages that are decoded to find all divisions, at most: so many, and so many for each page and each column.
_MAX_DECODED, _MAX_DECODED_EACH = 2_000, 20


def find_certain_row_groups(finder: RowGroupFinder, first: int, limit: int) -> tuple[list[SalvagedRowGroup], int]:
    """Return the row groups in the pages `first` to `limit` (exclusive), whatever is lost before and behind them.

    The first page may be in the midst of any column. Also returns the page to go on with: `limit`, or one behind damage
    that no checksum tells. Raise AmbiguousPagesError for pages that can be divided in too many ways.
    """
    finder.start(limit)
    divisions = _Divisions(finder, first)
    if divisions.num_paths:
        return divisions.certain(), limit
    end = find_undecodable_page(finder, limit)
    if end <= first:
        return [], limit if end < 0 else first + 1
    finder.start(end)
    return _Divisions(finder, first).certain(), end


def find_undecodable_page(finder: RowGroupFinder, limit: int) -> int:
    """Return the first page that fits nothing before it if it is damaged: no column has such a page. Otherwise -1.

    Without a damaged page, the pages are not those of the schema, or pages are missing among them.
    """
    page = finder.farthest_page
    finder.start(limit)
    columns = range(len(finder.leaves))
    fits = page >= limit or any(finder.chunk_end_finder(column, page, is_tail=True).find(0) for column in columns)
    return -1 if fits else page


class _Divisions:
    """All divisions of pages into row groups, as paths from border to border of these.

    Attributes
    ----------
    num_paths : int
        Number of divisions.
    """

    def __init__(self, finder: RowGroupFinder, first: int) -> None:
        self._finder = finder
        self._first = first
        self._most = _MAX_DECODED + _MAX_DECODED_EACH * (finder.limit - first + len(finder.leaves))
        self._groups: dict[int, list[SalvagedRowGroup]] = {}
        self._cut: Counter[int] = Counter()  # divisions whose last row group is cut off, by its first page
        self._before: Counter[int] = Counter({first: 1})  # ways to divide the pages before a border
        self._add_tails()
        self._add_row_groups()
        self._behind = self._count_behind()
        self.num_paths = self._cut[-1] + sum(count * self._behind[page] for page, count in self._tails.items())

    def _add_tails(self) -> None:
        """Add the ends of a row group that begins before the first page, in the midst of each column."""
        finder = self._finder
        self._tails: Counter[int] = Counter({self._first: 1})
        for column in range(len(finder.leaves)):
            tail = finder.chunk_end_finder(column, self._first, is_tail=True)
            for end in tail.find(None):
                self._check_work()
                if column + 1 == len(finder.leaves):
                    self._tails[end.end_page] += 1
                    continue
                groups, is_cut = finder.divisions(end.end_page, column + 1)
                self._tails.update(group.end_page for group in groups if self._is_tail(end, group))
                self._cut[-1] += is_cut
            self._cut[-1] += tail.is_open
        self._before = self._tails.copy()

    def _is_tail(self, end: ChunkEnd, others: SalvagedRowGroup) -> bool:
        """Whether the chunk up to `end` may be one of a row group that begins before the first page.

        `others` are the chunks behind it. All rows of the first column are a row group that begins with the first page.
        """
        first = self._finder.leaves[0]
        is_first = others.first_column == 1 and end.is_intact and not first.max_repetition_level
        return end.num_rows <= others.num_rows - is_first

    def _add_row_groups(self) -> None:
        """Add the row groups that begin at each border."""
        waiting = set(self._tails)
        while waiting:
            page = min(waiting)
            waiting.remove(page)
            if page >= self._finder.limit:
                continue
            self._check_work()
            groups, is_cut = self._finder.divisions(page)
            self._groups[page], self._cut[page] = groups, int(is_cut)
            for group in groups:
                self._before[group.end_page] += self._before[page]
                waiting.add(group.end_page)

    def _count_behind(self) -> dict[int, int]:
        """Count for each border the ways to divide the pages from it on."""
        behind: dict[int, int] = defaultdict(int, {self._finder.limit: 1})
        for page in sorted(self._groups, reverse=True):
            behind[page] = self._cut[page] + sum(behind[group.end_page] for group in self._groups[page])
        return behind

    def certain(self) -> list[SalvagedRowGroup]:
        """Return the row groups that all divisions have."""
        return [
            group
            for page in sorted(self._groups)
            for group in self._groups[page]
            if self.num_paths and self._before[page] * self._behind[group.end_page] == self.num_paths
        ]

    def _check_work(self) -> None:
        if self._finder.num_decoded > self._most:
            raise AmbiguousPagesError("row_group_size", "the pages can be divided into row groups in very many ways")
