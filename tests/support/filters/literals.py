"""Literals near a value: the form for numparq, and the form that the oracle compares.

The oracle compares ints, Fractions, floats, strings and bytes; times of every kind are nanoseconds.
"""

from __future__ import annotations

import datetime
import math
import uuid
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

EPOCH = datetime.datetime(1970, 1, 1)
DAY_NS = 86_400 * 10**9
I64 = range(-(2**63) + 1, 2**63)


@dataclass(frozen=True, repr=False)
class Literal:
    """A literal, and its comparable form beside values of its column."""

    said: Any
    worth: Any

    def __repr__(self) -> str:
        return repr(self.said)


def exact(number: Any) -> Any:
    """Return a number that Python compares exactly with all others."""
    if isinstance(number, Decimal):
        return Fraction(number) if number.is_finite() else float(number)
    if isinstance(number, (float, np.floating)):
        return float(number)
    return number if isinstance(number, Fraction) else int(number)


def pick(rng: np.random.Generator, *choices: Any) -> Any:
    return choices[int(rng.integers(0, len(choices)))]


ODD_NUMBERS = (
    0,
    1,
    -1,
    0.5,
    -0.0,
    True,
    2**31,
    -(2**31) - 1,
    2**63,
    -(2**63) - 1,
    2**64,
    2**70,
    -(2**70),
    1e300,
    math.inf,
    -math.inf,
    math.nan,
    Decimal("NaN"),
    Decimal("1e400"),
    Decimal("0.01"),
    Fraction(1, 3),
    np.uint64(2**64 - 1),
    np.float32(0.1),
    0.1,
    255,
    256,
    127,
    -128.5,
)


def near_integer(rng: np.random.Generator, value: int) -> Literal:
    """Draw the value, a neighbour, or a number of another type or range."""
    number = int(value) + int(pick(rng, 0, 0, 0, 1, -1, 7))
    said = pick(
        rng,
        number,
        number,
        number,
        Fraction(2 * number + 1, 2),
        Decimal(number),
        float(number),
        Fraction(number),
        np.int64(number) if number in I64 else number,
        number + 0.5,
        pick(rng, *ODD_NUMBERS),
    )
    return Literal(said, exact(said))


def near_boolean(rng: np.random.Generator, value: bool) -> Literal:
    said = pick(rng, True, False, bool(value), not value, np.bool_(value), pick(rng, *ODD_NUMBERS), 2)
    return Literal(said, exact(said))


def near_float(width: int) -> Any:
    """Draw floats: plain numbers round to the column's precision unless they overflow; typed ones are exact."""
    dtype = np.dtype(f"f{width}").type

    def worth(said: Any) -> Any:
        if type(said) not in (int, float):
            return exact(said)
        try:
            with np.errstate(over="ignore"):
                rounded = dtype(float(said))
        except OverflowError:
            return exact(said)
        return exact(said) if np.isinf(rounded) and not math.isinf(said) else float(rounded)

    def near(rng: np.random.Generator, value: Any) -> Literal:
        value = dtype(value)
        with np.errstate(all="ignore"):
            beside = pick(
                rng,
                value,
                value,
                value,
                np.nextafter(value, dtype(np.inf)),
                np.nextafter(value, dtype(-np.inf)),
                value * dtype(1.5),
            )
        said = pick(
            rng,
            float(beside),
            float(beside),
            beside,
            pick(rng, *ODD_NUMBERS),
            np.float64(beside) + 1e-9,
            round(float(beside)) if math.isfinite(beside) else 3,
            Decimal(float(beside)),
        )
        return Literal(said, worth(said))

    return near


def beside_decimals(number: Any) -> Any:
    """Return a number or its text as it compares with decimals: a float is the decimal that it prints as."""
    if isinstance(number, (float, np.floating)) and math.isfinite(number):
        return exact(Decimal(str(number.item() if isinstance(number, np.float64) else number)))
    return exact(Decimal(number) if isinstance(number, str) else number)


def near_decimal(scale: int) -> Any:
    """Draw numbers, Decimals and decimal text; a float means the decimal that it prints as."""
    unit = Decimal(1).scaleb(-scale)

    def near(rng: np.random.Generator, value: Decimal) -> Literal:
        number = value + pick(rng, 0, 0, 0, unit, -unit, unit / 2)
        said = pick(rng, number, number, str(number), float(number), int(number), pick(rng, *ODD_NUMBERS))
        return Literal(said, beside_decimals(said))

    return near


def _neighbour(rng: np.random.Generator, value: Any) -> Any:
    """Return a string or bytes near another, shorter or longer."""
    some = ("a", "\0", "~", "é", "\uffff", "\U0010ffff") if isinstance(value, str) else (b"a", b"\0", b"\x80", b"\xff")
    end = pick(rng, *some)
    cut = int(rng.integers(0, len(value) + 1))
    return pick(rng, value, value, value, value + end, value[:-1], value[:cut], value[:-1] + end, value[:0], end * 3)


def near_text(rng: np.random.Generator, value: str) -> Literal:
    said = _neighbour(rng, value)
    return Literal(said, said)


def near_binary(rng: np.random.Generator, value: bytes) -> Literal:
    said = _neighbour(rng, value)
    return Literal(pick(rng, said, said, bytearray(said)), said)


def near_uuid(rng: np.random.Generator, value: bytes) -> Literal:
    number = min(max(int.from_bytes(value, "big") + int(pick(rng, 0, 0, 0, 1, -1)), 0), 2**128 - 1)
    named = uuid.UUID(int=number)
    return Literal(pick(rng, named, named, str(named), named.bytes), named.bytes)


def pattern_for(rng: np.random.Generator, value: Any) -> tuple[Literal, ...]:
    """Return a LIKE pattern with parts of a value, sometimes with an escape character."""
    percent, one, escape = ("%", "_", "!") if isinstance(value, str) else (b"%", b"_", b"!")
    cut, end = sorted(rng.integers(0, len(value) + 1, 2).tolist())
    pieces = [value[:cut], value[cut:end], value[end:], value[:1], percent, percent, one, percent, value]
    made = type(value)().join(pick(rng, *pieces) for _ in range(int(rng.integers(1, 6))))
    made = pick(
        rng,
        made,
        value[:cut] + percent,
        percent + value[cut:],
        value[:cut] + one + value[cut + 1 :],
        value[:cut] + percent + value[end:],
    )
    if rng.random() < 0.25:
        escaped = made.replace(escape, escape + escape)
        made = escaped.replace(one, escape + one) if rng.random() < 0.5 else escaped
        return Literal(made, made), Literal(escape, escape)
    return (Literal(made, made),)


# --- moments ----------------------------------------------------------------------------------------------------------


def as_datetime(nanoseconds: int) -> datetime.datetime | None:
    """Return the datetime of the nanoseconds, if it exists and is exact."""
    try:
        return None if nanoseconds % 1000 else EPOCH + datetime.timedelta(microseconds=nanoseconds // 1000)
    except OverflowError:
        return None


def near_moment(unit_ns: int, zone: str | None, days: bool = False) -> Any:
    """Draw dates, datetimes and the like, with a time zone if the column has one."""

    def near(rng: np.random.Generator, value: int) -> Literal:
        moment = int(value) * unit_ns + int(pick(rng, 0, 0, 0, 0, unit_ns, -unit_ns, 1, -1, DAY_NS // 2))
        if rng.random() < 0.05:
            said = pick(rng, datetime.datetime.min, datetime.datetime.max)
            worth = (said - EPOCH) // datetime.timedelta(microseconds=1) * 1000
            return Literal(said if zone is None else said.replace(tzinfo=datetime.UTC), worth)
        if moment not in I64:
            moment = 0
        return _naive(rng, moment) if zone is None else _aware(rng, moment, zone)

    return near


def _naive(rng: np.random.Generator, moment: int) -> Literal:
    fine = np.datetime64(moment, "ns")
    exactly = as_datetime(moment)
    choices: list[Any] = [fine, str(fine), str(fine).replace("T", " "), pd.Timestamp(fine)]
    if exactly is not None:
        choices += [exactly, exactly, exactly.isoformat()]
    if moment % DAY_NS == 0 and exactly is not None:
        choices += [exactly.date(), exactly.date().isoformat(), np.datetime64(exactly.date(), "D")]
    if moment % 10**9 == 0:
        choices += [np.datetime64(moment // 10**9, "s")]
    return Literal(pick(rng, *choices), moment)


def _aware(rng: np.random.Generator, moment: int, zone: str) -> Literal:
    fine, exactly = pd.Timestamp(moment, tz="UTC"), as_datetime(moment)
    choices: list[Any] = [fine, fine, f"{np.datetime64(moment, 'ns')}Z", fine.tz_convert("Asia/Tokyo")]
    if exactly is not None:
        offset = datetime.timezone(datetime.timedelta(hours=-7, minutes=-30))
        shifted = exactly.replace(tzinfo=datetime.UTC).astimezone(offset)
        choices += [exactly.replace(tzinfo=datetime.UTC), shifted, shifted.isoformat()]
    if zone == "UTC":
        choices.append(str(np.datetime64(moment, "ns")))
    return Literal(pick(rng, *choices), moment)


def near_time(unit_ns: int) -> Any:
    """Draw times of day, and durations since midnight."""

    def near(rng: np.random.Generator, value: int) -> Literal:
        moment = int(value) * unit_ns + int(pick(rng, 0, 0, 0, unit_ns, -unit_ns, 1))
        choices: list[Any] = [np.timedelta64(moment, "ns"), pd.Timedelta(moment, "ns")]
        if 0 <= moment < DAY_NS:
            seconds, rest = divmod(moment, 10**9)
            text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
            choices += [f"{text}.{rest:09d}", f"{text}.{rest:09d}"]
            if rest % 1000 == 0:
                choices += [datetime.time.fromisoformat(f"{text}.{rest // 1000:06d}")] * 3
        return Literal(pick(rng, *choices), moment)

    return near


def near_duration(unit_ns: int) -> Any:
    def near(rng: np.random.Generator, value: int) -> Literal:
        span = int(value) * unit_ns + int(pick(rng, 0, 0, 0, unit_ns, -unit_ns, 1))
        span = span if span in I64 else 0
        choices: list[Any] = [np.timedelta64(span, "ns"), pd.Timedelta(span, "ns")]
        if span % 1000 == 0:
            choices += [datetime.timedelta(microseconds=span // 1000)] * 2
        return Literal(pick(rng, *choices), span)

    return near
