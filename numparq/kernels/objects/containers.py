"""Items of lists, tuples and dicts in a column of objects."""

from __future__ import annotations

from numparq.kernels.registry import kernel
from numparq.kernels.status import BAD_LENGTH, BAD_VALUE

from .cpython import clear_error, current_error, dict_item, incref, int64_at
from .strings import replace_object
from .types import DICT, LIST, NONE, SIZE_OFFSET, TUPLE, TYPE_OFFSET, is_null

ITEMS_OFFSET = 24  # of a list's pointer to its items, and of a tuple's items


@kernel("O x O x x i8 u1", gil=True)
def measure_containers(objects, count, constants, first, last, offsets, validity):
    """Write the offsets of containers in items, and their validity; return how many are valid.

    BAD_VALUE means an object that is neither null nor of a type between the items `first` and `last` of `constants`.
    """
    total, present = 0, 0
    offsets[0] = 0
    for i in range(count):
        object_ = objects[i]
        type_ = 0 if object_ == 0 else int64_at(object_ + TYPE_OFFSET)
        known = False
        for k in range(first, last + 1):
            known = known or type_ == constants[k]
        if known:
            total += int64_at(object_ + SIZE_OFFSET)
            validity[i] = 1
            present += 1
        elif is_null(object_, type_, constants):
            validity[i] = 0
        else:
            return BAD_VALUE
        offsets[i + 1] = total
    return present


@kernel("O x O i8 u1 O", gil=True)
def copy_list_items(objects, count, constants, offsets, validity, out):
    """Copy the items of measured lists and tuples to `offsets`; return their number.

    BAD_LENGTH means that an object is not the one that was measured.
    """
    for i in range(count):
        if validity[i] == 0:
            continue
        object_ = objects[i]
        size = offsets[i + 1] - offsets[i]
        type_ = 0 if object_ == 0 else int64_at(object_ + TYPE_OFFSET)
        if (type_ != constants[LIST] and type_ != constants[TUPLE]) or int64_at(object_ + SIZE_OFFSET) != size:
            return BAD_LENGTH
        items = int64_at(object_ + ITEMS_OFFSET) if type_ == constants[LIST] else object_ + ITEMS_OFFSET
        for k in range(size):
            item = int64_at(items + 8 * k)
            incref(item)
            replace_object(out, offsets[i] + k, item)
    return offsets[count]


@kernel("O x O O O", gil=True)
def copy_dict_items(objects, count, constants, key, out):
    """Copy each dict's item of the key ``key[0]``, None without it; return how many there are.

    BAD_VALUE means an object that is no dict, or an error of the key.
    """
    found = 0
    for i in range(count):
        object_ = objects[i]
        if object_ == 0 or int64_at(object_ + TYPE_OFFSET) != constants[DICT]:
            return BAD_VALUE
        item = dict_item(object_, key[0])
        if item == 0:
            if current_error() != 0:
                clear_error()
                return BAD_VALUE
            item = constants[NONE]
        else:
            found += 1
        incref(item)
        replace_object(out, i, item)
    return found
