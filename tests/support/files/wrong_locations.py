"""Wrong page locations for offset indexes, and which of them no reader can notice."""

from __future__ import annotations

from typing import Any

import numpy as np

from numparq.format.page_index import PAGE_OFFSET, PAGE_ROW, PAGE_SIZE

from .forged_metadata import FileParts


def swapped_places(rng: np.random.Generator, locations: np.ndarray) -> np.ndarray:
    one, other = rng.integers(0, len(locations), 2)
    locations[[one, other], :PAGE_ROW] = locations[[other, one], :PAGE_ROW]
    return locations


def other_sizes(rng: np.random.Generator, locations: np.ndarray) -> np.ndarray:
    locations[rng.integers(0, len(locations)), PAGE_SIZE] += rng.choice([-1, 1])
    return locations


def other_starts(rng: np.random.Generator, locations: np.ndarray) -> np.ndarray:
    locations[rng.integers(0, len(locations)), PAGE_OFFSET] += rng.choice([-1, 1])
    return locations


def other_rows(rng: np.random.Generator, locations: np.ndarray) -> np.ndarray:
    locations[rng.integers(0, len(locations)), PAGE_ROW] += rng.integers(-3, 4)
    return locations


def any_rows(rng: np.random.Generator, locations: np.ndarray) -> np.ndarray:
    locations[1:, PAGE_ROW] = np.sort(rng.integers(0, locations[-1, PAGE_ROW] + 5, len(locations) - 1))
    return locations


def page_left_out(rng: np.random.Generator, locations: np.ndarray) -> np.ndarray:
    return np.delete(locations, rng.integers(0, len(locations)), axis=0)


def first_left_out(rng: np.random.Generator, locations: np.ndarray) -> np.ndarray:
    locations[1, PAGE_ROW] = 0
    return locations[1:]


def two_as_one(rng: np.random.Generator, locations: np.ndarray) -> np.ndarray:
    first = int(rng.integers(0, len(locations) - 1))
    locations[first, PAGE_SIZE] += locations[first + 1, PAGE_SIZE]
    return np.delete(locations, first + 1, axis=0)


def one_more(rng: np.random.Generator, locations: np.ndarray) -> np.ndarray:
    """Divide a page into two."""
    first = int(rng.integers(0, len(locations)))
    second = locations[first].copy()
    size = second[PAGE_SIZE] // 2
    locations[first, PAGE_SIZE] -= size
    second[PAGE_OFFSET] += locations[first, PAGE_SIZE]
    second[PAGE_SIZE] = size
    return np.insert(locations, first + 1, second, axis=0)


def moved_boundary(rng: np.random.Generator, locations: np.ndarray) -> np.ndarray:
    """Move the boundary of two pages in the file, so that the second begins within the first, or behind its header."""
    page = int(rng.integers(1, len(locations)))
    by = int(rng.choice([-20, -1, 1, 5]))
    locations[page - 1, PAGE_SIZE] += by
    locations[page, PAGE_OFFSET] += by
    locations[page, PAGE_SIZE] -= by
    return locations


def far_numbers(rng: np.random.Generator, locations: np.ndarray) -> np.ndarray:
    column, page = rng.integers(0, 3), rng.integers(0, len(locations))
    most = (1 << 31) - 1 if column == PAGE_SIZE else (1 << 63) - 1
    locations[page, column] = rng.choice([-1, 0, most, -most])
    return locations


LIES = (swapped_places, other_sizes, other_starts, other_rows, any_rows, page_left_out, first_left_out, two_as_one)
MORE_LIES = (*LIES, one_more, moved_boundary, far_numbers)


def is_unnoticed(lying: np.ndarray, locations: np.ndarray, num_rows: int) -> bool:
    """Whether a page has its place and its number of rows, but others: no reader of this page can notice it."""

    def rows_by_place(of: np.ndarray) -> dict[tuple[int, int], tuple[int, int]]:
        stops = [*of[1:, PAGE_ROW].tolist(), num_rows]
        return {(offset, size): (row, stop) for (offset, size, row), stop in zip(of.tolist(), stops, strict=True)}

    right = rows_by_place(locations)
    for place, (first, stop) in rows_by_place(lying).items():
        if place in right and right[place] != (first, stop) and right[place][1] - right[place][0] == stop - first:
            return True
    return False


def replace_locations(parts: FileParts, row_group: int, leaf: int, locations: np.ndarray) -> None:
    """Replace the page locations of one chunk's offset index."""
    index: Any = parts.indexes[row_group, leaf]["OffsetIndex"]
    kind = type(index.page_locations[0])
    index.page_locations = [
        kind(offset=offset, compressed_page_size=size, first_row_index=row) for offset, size, row in locations.tolist()
    ]
