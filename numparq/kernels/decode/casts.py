"""Casts of stored values to output types: narrowing, integer to float, INT96 and days to timestamps."""

from __future__ import annotations

import numpy as np

from numparq.kernels.memory import copy_bytes, load32, load64, store8, store16, store64, store_float64
from numparq.kernels.registry import helper
from numparq.kernels.status import INEXACT
from numparq.kernels.tables import DAYS_MS, INT96_NS, INT96_US, NARROW, WIDEN_SIGNED

_EXACT = 1 << 53
_JULIAN_EPOCH = 2440588  # the Julian day of 1970-01-01
_NS_OF_DAY = 86_400_000_000_000
_MAX_DAYS = 106_751  # whole days of int64 nanoseconds on either side of the epoch
_US_OF_DAY = 86_400_000_000
_MS_OF_DAY = 86_400_000
_WRAP_DAYS, _WRAP_MICROSECONDS = divmod(1 << 64, _US_OF_DAY)
_INT64_MAX = (1 << 63) - 1
_MAX_DAYS_US = 106_751_991  # the same of microseconds


@helper
def signed32(value):
    """Sign-extend the low 32 bits."""
    return (value ^ 0x80000000) - 0x80000000


@helper
def narrow(data, pos, count, out, out_pos, item):
    """Cast int32s to their low `item` (1 or 2) bytes."""
    if item == 1:
        for i in range(count):
            store8(out, out_pos + i, load32(data, pos + (i << 2)))
    else:
        for i in range(count):
            store16(out, out_pos + (i << 1), load32(data, pos + (i << 2)))
    return 0


@helper
def widen_to_float64(data, pos, count, size, signed, out, out_pos):
    """Cast INT32 (`size` 4) or INT64 (`size` 8) values to float64; INEXACT if one is beyond 2**53, else 0."""
    if size == 4:
        for i in range(count):
            small = load32(data, pos + (i << 2))
            store_float64(out, out_pos + (i << 3), np.float64(signed32(small) if signed else small))
        return 0
    # An unsigned value from 2**63 up is negative here.
    lowest = -_EXACT if signed else 0
    inexact = np.bool_(False)
    for i in range(count):
        value = np.int64(load64(data, pos + (i << 3)))
        inexact |= value > _EXACT or value < lowest
        store_float64(out, out_pos + (i << 3), np.float64(value))
    return INEXACT if inexact else 0


@helper
def days_to_milliseconds(data, pos, count, out, out_pos):
    """Cast int32 days to int64 milliseconds; none overflows."""
    for i in range(count):
        days = np.int64(signed32(load32(data, pos + (i << 2))))
        store64(out, out_pos + (i << 3), np.uint64(days * _MS_OF_DAY))
    return 0


@helper
def fits_int64(days, time, max_days, most, least):
    """Whether days and a time of day make an int64 other than the smallest, which is NaT."""
    if days > max_days or days < -max_days - 1:
        return False
    return not (days == max_days and time > most) and not (days == -max_days - 1 and time < least)


@helper
def unwrap_microseconds(days, time):
    """Undo the overflow of Spark's INT96 timestamps; return the days and the microseconds of the day."""
    # Spark (to 4.0 at least) adds the Julian day of the epoch to int64 microseconds, which wraps around for timestamps
    # of the last 6,681 years in their range; its reader wraps back. No other value lies where these end up.
    if days < -_MAX_DAYS_US - 1 - _JULIAN_EPOCH or days >= 0:
        return days, time
    days += _WRAP_DAYS
    time += _WRAP_MICROSECONDS
    if time >= _US_OF_DAY:
        return days + 1, time - _US_OF_DAY
    return days, time


@helper
def cast_int96(data, pos, count, out, out_pos, per_microsecond):
    """Cast INT96 values to int64 nanoseconds (`per_microsecond` 1) or microseconds (1000) since 1970; 0 or INEXACT.

    An INT96 timestamp is eight bytes of nanoseconds of the day, then four bytes of the Julian day.
    """
    day_length = _NS_OF_DAY // per_microsecond
    max_days = _MAX_DAYS if per_microsecond == 1 else _MAX_DAYS_US
    most = _INT64_MAX - max_days * day_length
    least = day_length - most  # one above the smallest int64, which is NaT
    for i in range(count):
        nanoseconds = np.int64(load64(data, pos + i * 12))
        days = signed32(load32(data, pos + i * 12 + 8)) - _JULIAN_EPOCH
        if nanoseconds < 0 or nanoseconds >= _NS_OF_DAY:  # some writers leave whole days in it
            days += nanoseconds // _NS_OF_DAY
            nanoseconds = nanoseconds % _NS_OF_DAY
        time = nanoseconds // per_microsecond
        if not fits_int64(days, time, max_days, most, least):
            if per_microsecond == 1:
                return INEXACT
            days, time = unwrap_microseconds(days, time)
            if not fits_int64(days, time, max_days, most, least):
                return INEXACT
        if days < 0:  # so that no step overflows near the smallest int64
            value = (days + 1) * day_length + (time - day_length)
        else:
            value = days * day_length + time
        store64(out, out_pos + (i << 3), np.uint64(value))
    return 0


@helper
def cast_values(data, pos, count, cast, stored, item, out, out_pos):
    """Cast `count` dense values of `stored` bytes to `item` bytes by a cast of `tables`; return 0 or a status.

    For COPY, `stored` equals `item`.
    """
    if cast == NARROW:
        return narrow(data, pos, count, out, out_pos, item)
    if cast == INT96_NS:
        return cast_int96(data, pos, count, out, out_pos, 1)
    if cast == INT96_US:
        return cast_int96(data, pos, count, out, out_pos, 1000)
    if cast == DAYS_MS:
        return days_to_milliseconds(data, pos, count, out, out_pos)
    if cast != 0:
        return widen_to_float64(data, pos, count, stored, cast == WIDEN_SIGNED, out, out_pos)
    copy_bytes(out, out_pos, data, pos, count * item)
    return 0
