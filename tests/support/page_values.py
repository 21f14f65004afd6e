"""Upper bound of the pages that `cut_binary_pages` makes."""

from __future__ import annotations


def max_binary_pages(count: int, total_bytes: int, max_bytes: int, max_rows: int) -> int:
    """Say how many pages `cut_binary_pages` makes at most.

    Parameters
    ----------
    count : int
        Number of values.
    total_bytes : int
        Their bytes, with what each takes besides.
    max_bytes, max_rows : int
        What fits a page.

    Returns
    -------
    int
        Number of pages. A page ends where it is full of rows, or where with the next one it has more than `max_bytes`.
    """
    return min(count, count // max(max_rows, 1) + 2 * total_bytes // max(max_bytes, 1) + 1)
