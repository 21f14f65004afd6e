"""One-dimensional NumPy arrays in a column of objects, concatenated."""

from __future__ import annotations

from numparq.kernels.registry import helper, kernel
from numparq.kernels.status import BAD_LENGTH, BAD_VALUE

from .cpython import copy_from, int64_at, uint32_at
from .types import TYPE_OFFSET, is_null

# Items of `layout`: the address of the type ndarray, and offsets in an array object.
ARRAY_TYPE, DATA, DIMENSIONS, SHAPE, STRIDES, DTYPE = range(6)


@helper
def array_length(object_, layout, dtype, itemsize):
    """Return the items of a contiguous array of one dimension and a dtype object; -1 for other objects."""
    if int64_at(object_ + TYPE_OFFSET) != layout[ARRAY_TYPE] or int64_at(object_ + layout[DTYPE]) != dtype:
        return -1
    if uint32_at(object_ + layout[DIMENSIONS]) != 1:
        return -1
    length = int64_at(int64_at(object_ + layout[SHAPE]))
    if length > 1 and int64_at(int64_at(object_ + layout[STRIDES])) != itemsize:
        return -1
    return length


@kernel("O x O i8 x x i8 u1", gil=True)
def measure_arrays(objects, count, constants, layout, dtype, itemsize, offsets, validity):
    """Write the offsets of arrays in items, and their validity; return how many are valid.

    `dtype` is the address of their dtype object. BAD_VALUE means an object that is neither null nor a contiguous array
    of it with one dimension.
    """
    total, present = 0, 0
    offsets[0] = 0
    for i in range(count):
        object_ = objects[i]
        if is_null(object_, 0 if object_ == 0 else int64_at(object_ + TYPE_OFFSET), constants):
            validity[i] = 0
        else:
            length = array_length(object_, layout, dtype, itemsize)
            if length < 0:
                return BAD_VALUE
            total += length
            validity[i] = 1
            present += 1
        offsets[i + 1] = total
    return present


@kernel("O x i8 x x i8 u1 u1", gil=True)
def copy_arrays(objects, count, layout, dtype, itemsize, offsets, validity, out):
    """Copy measured arrays to `offsets`; return the items, or BAD_LENGTH if an object is not the one measured."""
    for i in range(count):
        if validity[i] == 0:
            continue
        object_ = objects[i]
        length = offsets[i + 1] - offsets[i]
        if object_ == 0 or array_length(object_, layout, dtype, itemsize) != length:
            return BAD_LENGTH
        copy_from(out, offsets[i] * itemsize, int64_at(object_ + layout[DATA]), length * itemsize)
    return offsets[count]
