"""Nested encoding (Dremel): levels to validity and offsets, and back."""

from __future__ import annotations

import numpy as np

from .registry import kernel
from .status import BAD_LENGTH, NULL_FOUND


@kernel("u1 u1 x x x x u1")
def assemble_validity(definition, repetition, count, depth, place_level, level, validity):
    """Write the validity (0 or 1) of each slot below `depth` lists; return the number of slots, at most `count`.

    A slot exists at definition level `place_level` or above, and is valid at `level` or above.
    """
    places = 0
    for i in range(count):
        found = np.int64(definition[i])
        if np.int64(repetition[i]) <= depth and found >= place_level:
            validity[places] = found >= level
            places += 1
    return places


@kernel("u1 u1 x x x x x u1 i8")
def assemble_lists(definition, repetition, count, depth, place_level, level, element_level, validity, offsets):
    """Write validity and offsets of the lists below `depth` lists; return the number of slots, at most `count`.

    As `assemble_validity`; from definition level `element_level` up, an element exists. `offsets` has one more item.
    """
    places = 0
    elements = 0
    for i in range(count):
        found = np.int64(definition[i])
        repeated = np.int64(repetition[i])
        if repeated <= depth and found >= place_level:
            validity[places] = found >= level
            offsets[places] = elements
            places += 1
        elements += np.int64(repeated <= depth + 1 and found >= element_level)
    offsets[places] = elements
    return places


@kernel("i8 u1 x u1 x i8 u1")
def shred_group(index, definition, count, validity, optional, out_index, out_definition):
    """Descend from entries to those within a group; return how many are present, or NULL_FOUND.

    `optional` is 1 if the group may be null, else 0. The outputs may be the inputs.
    """
    present = 0
    for i in range(count):
        place = index[i]
        level = definition[i]
        if place >= 0:
            if validity[place] != 0:
                level += optional
                present += 1
            elif optional != 0:
                place = -1
            else:
                return NULL_FOUND
        out_index[i] = place
        out_definition[i] = level
    return present


@kernel("i8 x u1 i8 x", noalias=True)
def count_list_entries(index, count, validity, offsets, num_elements):
    """Count the entries of `shred_list`: one per element, and one per null, empty or absent list.

    Return BAD_LENGTH if the offsets of a list are not within `num_elements` elements.
    """
    entries = 0
    for i in range(count):
        place = index[i]
        size = 0
        if place >= 0 and validity[place] != 0:
            first, stop = offsets[place], offsets[place + 1]
            size = stop - first
            if first < 0 or size < 0 or stop > num_elements:
                return BAD_LENGTH
        entries += max(size, 1)
    return entries


@kernel("i8 u1 u1 x u1 x i8 x i8 u1 u1", noalias=True)
def shred_list(
    index, definition, repetition, count, validity, optional, offsets, depth, out_index, out_definition, out_repetition
):
    """Descend from entries to the elements of lists; return the number of entries, or NULL_FOUND.

    List p has elements ``offsets[p]`` to ``offsets[p + 1]``, at repetition level `depth`; `optional`: `shred_group`.
    """
    out = 0
    for i in range(count):
        place = index[i]
        level = definition[i]
        first, stop = 0, 0
        if place >= 0:
            if validity[place] != 0:
                level += optional
                first, stop = offsets[place], offsets[place + 1]
            elif optional == 0:
                return NULL_FOUND
        out_repetition[out] = repetition[i]
        if first >= stop:
            out_index[out] = -1
            out_definition[out] = level
            out += 1
            continue
        level += 1
        out_index[out] = first
        out_definition[out] = level
        out += 1
        for element in range(first + 1, stop):
            out_index[out] = element
            out_definition[out] = level
            out_repetition[out] = depth
            out += 1
    return out


@kernel("i8 u1 x u1 x u1 i8")
def shred_leaf(index, definition, count, validity, optional, out_definition, positions):
    """Write a leaf's definition levels and the positions of its values; return how many values, or NULL_FOUND.

    `positions` has room for `count`. The outputs may be the inputs; `optional` as in `shred_group`.
    """
    present = 0
    for i in range(count):
        place = index[i]
        level = definition[i]
        if place >= 0:
            valid = np.int64(validity[place])  # 0 or 1: a branch on random nulls would be mispredicted
            if (valid | optional) == 0:
                return NULL_FOUND
            level += valid & optional
            positions[present] = place
            present += valid
        out_definition[i] = level
    return present
