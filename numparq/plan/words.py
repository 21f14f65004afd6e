"""A plan in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .row_group_plan import DICTIONARY

if TYPE_CHECKING:
    from .read_plan import Cut, ReadPlan
    from .row_group_plan import RowGroupPlan

__all__ = ["counted", "explain", "headline", "reads"]

# More row groups, and more columns of each, are counted only.
_MOST_ROW_GROUPS = 20
_MOST_COLUMNS = 6


def headline(plan: ReadPlan) -> str:
    """Say how much of a file is read, in one line."""
    all_rows = sum(group.num_rows for group in plan.row_groups)
    all_bytes = sum(group.num_chunk_bytes for group in plan.row_groups)
    return (
        f"{counted(len(plan.columns), 'column')}, {plan.num_rows:,} of {counted(all_rows, 'row')}, "
        f"{plan.num_bytes:,} of {counted(all_bytes, 'byte')}"
    )


def explain(plan: ReadPlan) -> str:
    """Say what is read, and what is not and why; see `ReadPlan.explain`."""
    lines = [headline(plan)]
    if plan.cuts:
        lines += ["cut by", *_aligned([_cut_words(cut) for cut in plan.cuts])]
    left = plan.left
    lines.append(f"left in {len(left):,} of {counted(len(plan.row_groups), 'row group')}")
    lines += [f"  {_group_words(plan, group)}" for group in left[:_MOST_ROW_GROUPS]]
    if len(left) > _MOST_ROW_GROUPS:
        lines.append(f"  and {counted(len(left) - _MOST_ROW_GROUPS, 'more row group')}")
    return "\n".join(lines)


def reads(plan: ReadPlan) -> list[str]:
    """Say of each byte range what it is; see `ReadPlan.reads`."""
    return [
        f"row group {group}, column {plan.columns[column]}: {_page_words(plan[group], column, page)} "
        f"({counted(stop - start, 'byte')})"
        for start, stop, group, column, page in plan.requests().tolist()
    ]


def _page_words(group: RowGroupPlan, column: int, page: int) -> str:
    if not group.chunks[column].is_indexed:
        return "all pages"
    return "dictionary" if page == DICTIONARY else f"page {page:,}"


def _group_words(plan: ReadPlan, group: RowGroupPlan) -> str:
    pages: dict[str, list[str]] = {}
    for place, name in enumerate(plan.columns[:_MOST_COLUMNS]):
        pages.setdefault(_pages_words(group, place), []).append(name)
    columns = [f"{', '.join(names)}: {words}" for words, names in pages.items()]
    if len(plan.columns) > _MOST_COLUMNS:
        columns.append(counted(len(plan.columns) - _MOST_COLUMNS, "more column"))
    return "; ".join([f"row group {group.ordinal}: {_rows_words(group)}", *columns])


def _rows_words(group: RowGroupPlan) -> str:
    if group.rows.count == group.num_rows:
        return "the row" if group.num_rows == 1 else f"all {group.num_rows:,} rows"
    return f"{group.rows.count:,} of {counted(group.num_rows, 'row')} in {counted(len(group.rows), 'range')}"


def _pages_words(group: RowGroupPlan, place: int) -> str:
    chunk = group.chunks[place]
    if not chunk.is_indexed:
        return "all pages"
    return f"{len(group.needed(place)):,} of {counted(chunk.num_pages, 'page')}"


def _cut_words(cut: Cut) -> list[str]:
    return [cut.level, counted(cut.num_rows, "row"), counted(cut.num_bytes, "byte"), cut.reason]


def _aligned(table: list[list[str]]) -> list[str]:
    """Put cells below each other: the first and the last column to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [
        f"  {row[0]:<{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:>{widths[2]}}  {row[3]}".rstrip() for row in table
    ]


def counted(number: int, noun: str) -> str:
    """Give a number with its noun, as in ``1 row`` and ``2,000 rows``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
