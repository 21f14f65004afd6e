"""Values of pages to be encoded: nulls dropped, dictionary codes looked up, page boundaries."""

from __future__ import annotations

import numpy as np

from .memory import copy_bytes, load8, load16, load32, load64, popcount, store8, store16, store32, store64
from .registry import helper, inlined, kernel


@helper
def drop_nulls_any(values, width, validity, count, out):
    """Keep values of any width."""
    kept = 0
    for i in range(count):
        copy_bytes(out, kept * width, values, i * width, width)
        kept += load8(validity, i)
    return kept


@kernel("u1 x u1 x u1")
def drop_nulls_fixed(values, width, validity, count, out):
    """Keep the values that are valid.

    Parameters
    ----------
    values : uint8
        `count` values of `width` bytes each.
    width : int
        Bytes of a value.
    validity : uint8
        1 for each value that is kept, 0 for each that is not.
    count : int
        Number of values.
    out : uint8
        Room for `count` values, all of which may be written to; it does not overlap `values`.

    Returns
    -------
    int
        Number of values kept.
    """
    kept = 0
    if width == 8:
        for i in range(count):
            store64(out, kept << 3, load64(values, i << 3))
            kept += load8(validity, i)
    elif width == 4:
        for i in range(count):
            store32(out, kept << 2, load32(values, i << 2))
            kept += load8(validity, i)
    elif width == 2:
        for i in range(count):
            store16(out, kept << 1, load16(values, i << 1))
            kept += load8(validity, i)
    elif width == 1:
        for i in range(count):
            store8(out, kept, load8(values, i))
            kept += load8(validity, i)
    else:
        kept = drop_nulls_any(values, width, validity, count, out)
    return kept


@inlined
def drop_nulls_items(values, validity, count, out):
    """Keep the items of an array that are valid."""
    kept = np.uint64(0)
    for i in range(count):
        out[kept] = values[i]
        kept += np.uint64(load8(validity, i))
    return np.int64(kept)


@kernel("i8 u1 x i8")
def drop_nulls_i8(values, validity, count, out):
    """Keep the int64s that are valid: as `drop_nulls_fixed`, for starts and ends; `out` has room for `count`."""
    return drop_nulls_items(values, validity, count, out)


@kernel("i4 u1 x i4")
def drop_nulls_i4(values, validity, count, out):
    """Keep the int32s that are valid: as `drop_nulls_fixed`, for codes; `out` has room for `count`."""
    return drop_nulls_items(values, validity, count, out)


@kernel("u1 i8 x i8")
def count_valid_by_page(validity, page_offsets, num_pages, out):
    """Count the valid values of each page.

    Parameters
    ----------
    validity : uint8
        1 for a value, 0 for a null.
    page_offsets : int64
        Page p is ``validity[bounds[p] : bounds[p + 1]]``.
    num_pages : int
        Number of pages.
    out : int64
        Room for `num_pages` counts.

    Returns
    -------
    int
        The total.
    """
    total = 0
    for page in range(num_pages):
        pos = page_offsets[page]
        end = page_offsets[page + 1]
        present = 0
        while pos + 8 <= end:  # each byte is 0 or 1: its bits add up to it
            present += popcount(load64(validity, pos))
            pos += 8
        while pos < end:
            present += load8(validity, pos)
            pos += 1
        out[page] = present
        total += present
    return total


@kernel("i8 i8 x x x x i8")
def cut_binary_pages(starts, ends, count, extra, max_bytes, max_rows, out):
    """Divide binary values into pages: as many values as fit, and at least one, go to each.

    Parameters
    ----------
    starts, ends : int64
        Value i has ``ends[i] - starts[i]`` bytes.
    count : int
        Number of values.
    extra : int
        Bytes that a value takes besides: 4 for its length.
    max_bytes, max_rows : int
        What fits a page.
    out : int64
        Room for ``1 + most_pages(...)`` numbers: 0, then the end of each page.

    Returns
    -------
    int
        Number of pages.
    """
    pages = 0
    first = 0
    size = 0
    out[0] = 0
    for i in range(count):
        more = ends[i] - starts[i] + extra
        if (i > first) & ((size + more > max_bytes) | (i - first >= max_rows)):
            pages += 1
            out[pages] = i
            first = i
            size = 0
        size += more
    if count > first:
        pages += 1
        out[pages] = count
    return pages


@helper
def gather_any(values, width, codes, count, out):
    """Look values of any width up."""
    for i in range(count):
        copy_bytes(out, i * width, values, np.int64(codes[i]) * width, width)
    return count


@kernel("u1 x i4 x u1")
def gather_fixed(values, width, codes, count, out):
    """Look values up: leave a dictionary.

    Parameters
    ----------
    values : uint8
        Values of `width` bytes each.
    width : int
        Bytes of a value.
    codes : int32
        Which value; each has to be within `values`.
    count : int
        Number of codes.
    out : uint8
        Room for `count` values.

    Returns
    -------
    int
        `count`.
    """
    if width == 8:
        for i in range(count):
            store64(out, i << 3, load64(values, np.int64(codes[i]) << 3))
    elif width == 4:
        for i in range(count):
            store32(out, i << 2, load32(values, np.int64(codes[i]) << 2))
    elif width == 1:
        for i in range(count):
            store8(out, i, load8(values, np.int64(codes[i])))
    else:
        gather_any(values, width, codes, count, out)
    return count


@kernel("i8 i4 x i8")
def gather_i8(values, codes, count, out):
    """Look int64s up, as `gather_fixed` does: for starts and ends."""
    for i in range(count):
        out[i] = values[np.uint64(codes[i])]
    return count
