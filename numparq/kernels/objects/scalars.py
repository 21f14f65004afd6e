"""bool, int and float objects read as 64-bit words."""

from __future__ import annotations

from numparq.kernels.registry import kernel
from numparq.kernels.status import BAD_VALUE

from .cpython import clear_error, current_error, int64_at, int_value
from .types import FLOAT, FLOAT64, FLOAT_VALUE_OFFSET, INT, TRUE, TYPE_OFFSET, is_null


@kernel("O x O x i8 u1", gil=True)
def read_scalars(objects, count, constants, kind, out, validity):
    """Read objects of one type as int64, floats as their bits; return how many are valid.

    `kind` is the item of the type in `constants`: BOOL, INT or FLOAT. A null gets 0 in `out` and in `validity`.
    BAD_VALUE means an object of another type, or an integer beyond 64 bits.
    """
    present = 0
    for i in range(count):
        object_ = objects[i]
        type_ = 0 if object_ == 0 else int64_at(object_ + TYPE_OFFSET)
        if is_null(object_, type_, constants):
            out[i] = 0
            validity[i] = 0
            continue
        if type_ != constants[kind] and not (kind == FLOAT and type_ == constants[FLOAT64]):
            return BAD_VALUE
        if kind == FLOAT:
            out[i] = int64_at(object_ + FLOAT_VALUE_OFFSET)
        elif kind == INT:
            value = int_value(object_)
            if value == -1 and current_error() != 0:
                clear_error()
                return BAD_VALUE
            out[i] = value
        else:
            out[i] = object_ == constants[TRUE]
        validity[i] = 1
        present += 1
    return present
