"""Values of pages to be encoded: nulls dropped, dictionary codes looked up, page boundaries."""

from __future__ import annotations

import numpy as np

from .memory import copy_bytes, load8, load16, load32, load64, popcount, store8, store16, store32, store64
from .registry import helper, inlined, kernel


@helper
def drop_nulls_any(values, width, validity, count, out):
    """Drop nulls from values of any width; return the number of values kept."""
    kept = 0
    for i in range(count):
        copy_bytes(out, kept * width, values, i * width, width)
        kept += load8(validity, i)
    return kept


@kernel("u1 x u1 x u1")
def drop_nulls_fixed(values, width, validity, count, out):
    """Copy the valid values of `width` bytes each to `out`; return their number. `validity` is 1 or 0 a value.

    All `count` values of `out` may be overwritten; it does not overlap `values`.
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
    """Copy the valid items of an array to `out`; return their number."""
    kept = np.uint64(0)
    for i in range(count):
        out[kept] = values[i]
        kept += np.uint64(load8(validity, i))
    return np.int64(kept)


@kernel("i8 u1 x i8")
def drop_nulls_i8(values, validity, count, out):
    """Copy the valid int64s, such as starts or ends, to `out`, which has room for `count`; return their number."""
    return drop_nulls_items(values, validity, count, out)


@kernel("i4 u1 x i4")
def drop_nulls_i4(values, validity, count, out):
    """Copy the valid int32s, such as codes, to `out`, which has room for `count`; return their number."""
    return drop_nulls_items(values, validity, count, out)


@kernel("u1 i8 x i8")
def count_valid_by_page(validity, page_offsets, num_pages, out):
    """Count the valid values of each page, ``validity[page_offsets[p] : page_offsets[p + 1]]``; return the total."""
    total = 0
    for page in range(num_pages):
        pos = page_offsets[page]
        end = page_offsets[page + 1]
        present = 0
        while pos + 8 <= end:  # each byte is 0 or 1, so set bits are valid values
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
    """Cut binary values into pages of up to `max_bytes` and `max_rows`, at least one value each; return their number.

    A value takes `extra` bytes beyond its own (4 for a length). `out` takes 0 and then the exclusive end of each page.
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
    """Gather values of any width by code."""
    for i in range(count):
        copy_bytes(out, i * width, values, np.int64(codes[i]) * width, width)
    return count


@kernel("u1 x i4 x u1")
def gather_fixed(values, width, codes, count, out):
    """Gather `count` dictionary values of `width` bytes by code, which must be in range."""
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
    """Gather int64s, such as starts or ends, by code."""
    for i in range(count):
        out[i] = values[np.uint64(codes[i])]
    return count
