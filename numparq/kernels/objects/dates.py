"""datetime.date and datetime.datetime objects read as days and microseconds since 1970."""

from __future__ import annotations

from numparq.kernels.registry import helper, inlined, kernel
from numparq.kernels.status import BAD_VALUE

from .cpython import int64_at, uint8_at
from .types import is_null

_TYPE = 8  # offset of an object's type
_DAYS_TO_1970 = 719_468  # since 1 March of year 0


@helper
def days_since_epoch(address):
    """Return the days since 1970 of a date, given the address of its fields: two bytes of year, month, day."""
    year = (uint8_at(address) << 8) | uint8_at(address + 1)
    month, day = uint8_at(address + 2), uint8_at(address + 3)
    early = month <= 2  # years begin in March here, so that the leap day is the last
    year -= early
    month += 9 if early else -3
    return 365 * year + year // 4 - year // 100 + year // 400 + (153 * month + 2) // 5 + day - 1 - _DAYS_TO_1970


@helper
def microseconds_since_epoch(address):
    """Return the microseconds since 1970 of a datetime, given the address of its fields."""
    hour, minute, second = uint8_at(address + 4), uint8_at(address + 5), uint8_at(address + 6)
    fraction = (uint8_at(address + 7) << 16) | (uint8_at(address + 8) << 8) | uint8_at(address + 9)
    return (((days_since_epoch(address) * 24 + hour) * 60 + minute) * 60 + second) * 1_000_000 + fraction


@inlined
def read_moments(objects, count, constants, moment_type, fields, has_time, out, validity):
    """Read dates, or with `has_time` datetimes, as the kernels below do."""
    present = 0
    for i in range(count):
        object_ = objects[i]
        type_ = 0 if object_ == 0 else int64_at(object_ + _TYPE)
        if type_ == moment_type and not (has_time and uint8_at(object_ + fields - 1)):
            address = object_ + fields
            out[i] = microseconds_since_epoch(address) if has_time else days_since_epoch(address)
            validity[i] = 1
            present += 1
        elif is_null(object_, type_, constants):
            out[i] = 0
            validity[i] = 0
        else:
            return BAD_VALUE
    return present


@kernel("O x O x x i4 u1", gil=True)
def read_dates(objects, count, constants, date_type, fields, out, validity):
    """Read dates as days since 1970; return how many are valid, or BAD_VALUE for an object of another type.

    `fields` is the offset of the year in a date object. A null gets 0 in `out` and in `validity`.
    """
    return read_moments(objects, count, constants, date_type, fields, False, out, validity)


@kernel("O x O x x i8 u1", gil=True)
def read_datetimes(objects, count, constants, datetime_type, fields, out, validity):
    """Read datetimes without a time zone as microseconds since 1970, else as `read_dates` does.

    BAD_VALUE also means a datetime with a time zone: the byte before its fields is set.
    """
    return read_moments(objects, count, constants, datetime_type, fields, True, out, validity)
