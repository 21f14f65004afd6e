"""Pages with selected rows, and takes of value ranges, row by row."""

from __future__ import annotations

from collections.abc import Sequence

Runs = Sequence[tuple[int, int]]


def select_pages(pages: Runs, ranges: Runs) -> tuple[list[tuple[int, int, int]], list[tuple[int, int]], int]:
    """Find the pages that hold rows of some ranges.

    Parameters
    ----------
    pages : sequence of (int, int)
        First row and number of rows of each page.
    ranges : sequence of (int, int)
        First row wanted, and the one behind the last.

    Returns
    -------
    kept : list of (int, int, int)
        Of each page with wanted rows its ordinal, the first of these, and the one behind the last. An empty page in
        the middle of a range is among them.
    places : list of (int, int)
        For each wanted row, in order: where it is among the rows from the first to the last wanted one of each page,
        one page behind the other, and which range it is of.
    rows : int
        How many these are together.
    """
    range_of = {row: number for number, (first, stop) in enumerate(ranges) for row in range(first, stop)}
    kept, places, before = [], [], 0
    for number, (first, count) in enumerate(pages):
        held = [row for row in range(first, first + count) if row in range_of]
        if not count and any(low < first < stop for low, stop in ranges):
            kept.append((number, first, first))
        elif held:
            kept.append((number, held[0], held[-1] + 1))
            places += [(before + row - held[0], range_of[row]) for row in held]
            before += held[-1] + 1 - held[0]
    return kept, places, before


def take_ranges(values: Sequence, spans: Runs) -> list:
    """Take ranges of values, each given as (first, count)."""
    return [values[first + step] for first, count in spans for step in range(count)]


def take_indices(values: Sequence, places: Sequence[int], nothing: object = None) -> list:
    """Take single values in any order; `nothing` for negative indices."""
    return [nothing if place < 0 else values[place] for place in places]
