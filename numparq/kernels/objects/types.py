"""Types and nulls of the Python objects in a column."""

from __future__ import annotations

from numparq.kernels.registry import inlined, kernel

from .cpython import int64_at

# Items of `constants`: addresses of the null objects, of the types, and of True.
NONE, NA, NAT, FLOAT, FLOAT64, STR, BYTES, INT, BOOL, TRUE, LIST, TUPLE, DICT = range(13)
TYPE_OFFSET, SIZE_OFFSET, STATE_OFFSET, FLOAT_VALUE_OFFSET = 8, 16, 32, 16  # offsets in an object
_INFINITY_BITS = 0x7FF0000000000000
_MAGNITUDE_BITS = 0x7FFFFFFFFFFFFFFF


@inlined
def is_null(object_, type_, constants):
    """Whether an object is a null: None, NA, NaT, a float NaN, or a null pointer."""
    if object_ == 0 or object_ == constants[NONE] or object_ == constants[NA] or object_ == constants[NAT]:
        return True
    if type_ == constants[FLOAT] or type_ == constants[FLOAT64]:
        return (int64_at(object_ + FLOAT_VALUE_OFFSET) & _MAGNITUDE_BITS) > _INFINITY_BITS
    return False


@kernel("O x i8 x", gil=True)
def distinct_types(objects, count, types, room):
    """List the addresses of the objects' types by first appearance, a null pointer's as 0; return their number.

    ``types[0]`` is the number listed, before and after; further types than `types` has room for are left out.
    """
    found = types[0]
    last = types[1] if found else -1
    for i in range(count):
        object_ = objects[i]
        type_ = 0 if object_ == 0 else int64_at(object_ + TYPE_OFFSET)
        if type_ == last:
            continue
        last = type_
        known = False
        for k in range(1, found + 1):
            known = known or types[k] == type_
        if not known and found + 1 < room:
            found += 1
            types[found] = type_
    types[0] = found
    return found
