"""Nested encoding (Dremel): levels to validity and offsets, and back."""

from __future__ import annotations

import numpy as np

from .registry import kernel
from .status import BAD_LENGTH, NULL_FOUND


@kernel("u1 u1 x x x x u1")
def assemble_validity(definition, repetition, count, depth, place_level, level, validity):
    """Tell for each place at a depth whether something is there: the places.

    Parameters
    ----------
    definition, repetition, count
        The levels of a leaf below.
    depth, place_level : int
        How many lists are around, and the definition level from which on there is a place.
    level : int
        The definition level from which on something is there.
    validity : uint8
        0 or 1 for each place; room for `count`.
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
    """Tell for each place at a depth whether a list is there, and which elements it has: the places.

    Parameters
    ----------
    definition, repetition, count, depth, place_level, level, validity
        As for `assemble_validity`.
    element_level : int
        The definition level from which on the list has an element.
    offsets : int64
        The list of place `p` has the elements from ``offsets[p]`` to ``offsets[p + 1]``; room for ``count + 1``.
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
    """Go from the entries above a group to those within it; the number that are there.

    `optional` is 1 for a group that may be null, else 0: a null is then NULL_FOUND. What comes out may take the
    place of what goes in.
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
    """Count the entries that `shred_list` makes: an element each, and one for what is null, empty or not there.

    BAD_LENGTH where a list is not within its `num_elements` elements.
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
    """Go from the entries above lists to their elements; the number of entries.

    List `p` has the elements from ``offsets[p]`` to ``offsets[p + 1]``. `depth` is the repetition level of what is
    repeated; `optional` as in `shred_group`.
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
    """Finish the definition levels of a leaf; `positions` are the places of its values in order. Their number.

    `positions` has room for `count`, and may be `index`, as `out_definition` may be `definition`. `optional` as in
    `shred_group`.
    """
    present = 0
    for i in range(count):
        place = index[i]
        level = definition[i]
        if place >= 0:
            valid = np.int64(validity[place])  # 0 or 1: what is null at random would be mispredicted as a branch
            if (valid | optional) == 0:
                return NULL_FOUND
            level += valid & optional
            positions[present] = place
            present += valid
        out_definition[i] = level
    return present
