"""Levels of nested columns by the definition, entry by entry: (definition level, repetition level)."""

from __future__ import annotations


def places(levels: list[tuple[int, int]], depth: int, place_level: int) -> list[int]:
    """Find the entries that stand for a place at a depth."""
    return [
        number
        for number, (definition, repetition) in enumerate(levels)
        if repetition <= depth and definition >= place_level
    ]


def validity(levels: list[tuple[int, int]], depth: int, place_level: int, level: int) -> list[int]:
    """Tell for each place whether something is there."""
    return [int(levels[number][0] >= level) for number in places(levels, depth, place_level)]


def offsets(levels: list[tuple[int, int]], depth: int, place_level: int, element_level: int) -> list[int]:
    """Give the offsets of the lists at a depth: each owns the elements up to the next list."""
    starts = places(levels, depth, place_level)
    elements = places(levels, depth + 1, element_level)
    return [sum(element < start for element in elements) for start in starts] + [len(elements)]


def are_sound(levels: list[tuple[int, int]], most_definition: int, element_levels: list[int]) -> bool:
    """Tell whether levels can be those of a column: no list goes on that has no element."""
    before: int | None = None
    for definition, repetition in levels:
        if definition > most_definition or repetition >= len(element_levels):
            return False
        if repetition and (before is None or min(before, definition) < element_levels[repetition]):
            return False
        before = definition
    return True
