"""Values of decoded arrays, taken by ranges or indices."""

from __future__ import annotations

from numparq.kernels.memory import copy16, copy_bytes, load8, load16, load32, load64, store8, store16, store32, store64
from numparq.kernels.registry import helper, kernel

# --- values taken ----------------------------------------------------------------------------------------------------


@helper
def take_range(source, start, item, length, out, out_pos):
    """Copy a run of items; short runs of items of a machine's word without a call."""
    if length > 4:
        copy_bytes(out, out_pos, source, start * item, length * item)
    elif item == 8:
        for i in range(length):
            store64(out, out_pos + (i << 3), load64(source, (start + i) << 3))
    elif item == 4:
        for i in range(length):
            store32(out, out_pos + (i << 2), load32(source, (start + i) << 2))
    elif item == 1:
        for i in range(length):
            store8(out, out_pos + i, load8(source, start + i))
    elif item == 2:
        for i in range(length):
            store16(out, out_pos + (i << 1), load16(source, (start + i) << 1))
    else:
        copy_bytes(out, out_pos, source, start * item, length * item)
    return 0


@kernel("u1 x i8 x u1 x")
def take_fixed_ranges(source, item, ranges, num_spans, out, out_pos):
    """Copy runs of items of a fixed size, one behind the other; gives the position behind the last.

    Parameters
    ----------
    source, item
        The items, and the bytes of each.
    spans, num_spans
        Of each run its first item, and how many there are.
    out, out_pos
        Where they go.
    """
    for span in range(num_spans):
        length = ranges[2 * span + 1]
        take_range(source, ranges[2 * span], item, length, out, out_pos)
        out_pos += length * item
    return out_pos


@kernel("i8 i8 x")
def count_bytes_of_ranges(offsets, ranges, num_spans):
    """Add up the bytes of runs of strings."""
    total = 0
    for span in range(num_spans):
        start = ranges[2 * span]
        total += offsets[start + ranges[2 * span + 1]] - offsets[start]
    return total


@kernel("i8 u1 i8 x i8 u1")
def take_binary_ranges(offsets, data, ranges, num_spans, out_offsets, out):
    """Copy runs of strings, one behind the other; gives their bytes.

    Parameters
    ----------
    offsets, data
        The strings, as in `BinaryArray`.
    spans, num_spans
        As in `take_fixed_ranges`.
    out_offsets, out
        Where they go: an offset more than there are strings, the first of them 0; and the bytes.
    """
    written = 0
    row = 0
    out_offsets[0] = 0
    for span in range(num_spans):
        start = ranges[2 * span]
        length = ranges[2 * span + 1]
        moved = written - offsets[start]
        size = offsets[start + length] - offsets[start]
        copy_bytes(out, written, data, offsets[start], size)
        for i in range(length):
            row += 1
            out_offsets[row] = offsets[start + i + 1] + moved
        written += size
    return written


# --- values taken one by one: where runs are short, for no branch depends on what is wanted ---------------------------


@kernel("u1 x i4")
def mask_to_indices(mask, count, out):
    """Write the places of all items of a mask that are 1 (none is above) to `out`, which has room for `count` and one.

    Gives their number.
    """
    found = 0
    for i in range(count):
        out[found] = i
        found += load8(mask, i)
    return found


@kernel("u1 x i4 x u1 x")
def take_fixed_indices(source, item, indices, count, out, out_pos):
    """Copy items of a fixed size from `count` places, one behind the other; gives the position behind the last."""
    if item == 8:
        for i in range(count):
            store64(out, out_pos + (i << 3), load64(source, indices[i] << 3))
    elif item == 4:
        for i in range(count):
            store32(out, out_pos + (i << 2), load32(source, indices[i] << 2))
    elif item == 1:
        for i in range(count):
            store8(out, out_pos + i, load8(source, indices[i]))
    else:
        for i in range(count):
            copy_bytes(out, out_pos + i * item, source, indices[i] * item, item)
    return out_pos + count * item


@kernel("i8 i4 x")
def count_bytes_of_indices(offsets, indices, count):
    """Add up the bytes of the strings at `count` places; none of a negative one."""
    total = 0
    for i in range(count):
        place = indices[i]
        if place >= 0:
            total += offsets[place + 1] - offsets[place]
    return total


@kernel("i8 u1 i4 x i8 u1")
def take_binary_indices(offsets, data, indices, count, out_offsets, out):
    """Copy strings from `count` places, one behind the other, an empty one for a negative place; gives their bytes.

    Up to 16 bytes behind the strings, and behind what is written, may be touched.
    """
    written = 0
    out_offsets[0] = 0
    for i in range(count):
        place = indices[i]
        if place >= 0:
            start = offsets[place]
            length = offsets[place + 1] - start
            if length <= 16:
                copy16(out, written, data, start)
            else:
                copy_bytes(out, written, data, start, length)
            written += length
        out_offsets[i + 1] = written
    return written


@kernel("u1 i8 x i8")
def measure_prefixed_strings(data, starts, count, offsets):
    """Write the offsets of strings whose lengths lie in the four bytes before their starts; gives their bytes."""
    written = 0
    offsets[0] = 0
    for i in range(count):
        written += load32(data, starts[i] - 4)
        offsets[i + 1] = written
    return written


@kernel("u1 i8 x i8 u1")
def copy_prefixed_strings(data, starts, count, offsets, out):
    """Copy strings from their starts to their offsets; up to 16 bytes behind both may be touched."""
    for i in range(count):
        length = offsets[i + 1] - offsets[i]
        if length <= 16:
            copy16(out, offsets[i], data, starts[i])
        else:
            copy_bytes(out, offsets[i], data, starts[i], length)
    return offsets[count]
