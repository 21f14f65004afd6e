"""Casts of text, binary and decimals, the values stored as bytes."""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal

import numpy as np

from numparq.column.leaf_values import LeafValues
from numparq.format.arrow_type import ArrowType
from numparq.from_pandas.decimals import integer_bytes
from numparq.types.parquet_type import decimal_byte_width

from .numbers import integer_view
from .rule import Cast, no_cast, raise_first, replace_values

# Numbers in text; Decimal itself accepts more.
_NUMBER = re.compile(rb"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,6})?")
_LONGEST_NUMBER = 4000  # characters: bounds the time for a hostile text


def binary_to_text(before: ArrowType, after: ArrowType) -> Cast:
    """Cast bytes to text; they must be valid UTF-8."""

    def step(leaf: LeafValues) -> LeafValues:
        assert leaf.starts is not None
        assert leaf.ends is not None
        data, bad = leaf.values, np.zeros(len(leaf.starts), bool)
        for place, (start, end) in enumerate(zip(leaf.starts.tolist(), leaf.ends.tolist(), strict=True)):
            try:
                data[start:end].tobytes().decode()
            except UnicodeDecodeError:
                bad[place] = True
        raise_first(leaf, bad, lambda place: _bytes_at(leaf, place))
        return leaf

    return step


def _bytes_at(leaf: LeafValues, place: int) -> bytes:
    assert leaf.starts is not None
    assert leaf.ends is not None
    return leaf.values[leaf.starts[place] : leaf.ends[place]].tobytes()


def binary_to_fixed(before: ArrowType, after: ArrowType) -> Cast:
    """Cast bytes to a fixed length, which they must have."""
    width = after.byte_width

    def step(leaf: LeafValues) -> LeafValues:
        assert leaf.starts is not None
        assert leaf.ends is not None
        fits = leaf.ends - leaf.starts == width
        raise_first(leaf, ~fits, lambda place: _bytes_at(leaf, place))
        found = np.zeros((len(fits), width), np.uint8)
        found[fits] = leaf.values[leaf.starts[fits][:, None] + np.arange(width)]
        return replace_values(leaf, found.reshape(-1))

    return step


def fixed_to_binary(before: ArrowType, after: ArrowType) -> Cast:
    """Cast bytes of a fixed length to any length."""
    width = before.byte_width

    def step(leaf: LeafValues) -> LeafValues:
        starts = np.arange(0, len(leaf.values), width, dtype=np.int64)
        return replace(leaf, starts=starts, ends=starts + width)

    return step


def fixed_to_fixed(before: ArrowType, after: ArrowType) -> Cast:
    """Cast bytes between fixed lengths, which must be equal."""
    if before.byte_width == after.byte_width:
        return no_cast(before, after)
    first, second = fixed_to_binary(before, after), binary_to_fixed(before, after)
    return lambda leaf: second(first(leaf))


def decimals_to_decimals(before: ArrowType, after: ArrowType) -> Cast:
    """Cast decimals to another precision and scale without losing a digit."""
    length, shift = decimal_byte_width(before.precision), after.scale - before.scale

    def step(leaf: LeafValues) -> LeafValues:
        data = leaf.values.tobytes()
        integers = [int.from_bytes(data[at : at + length], "big", signed=True) for at in range(0, len(data), length)]
        return _store_decimals(leaf, integers, shift, after)

    return step


def text_to_decimals(before: ArrowType, after: ArrowType) -> Cast:
    """Cast text to decimals; it must be a number that fits precision and scale."""

    def step(leaf: LeafValues) -> LeafValues:
        assert leaf.starts is not None
        found = [_unscaled(_bytes_at(leaf, place), after) for place in range(len(leaf.starts))]
        bad = np.array([value is None for value in found], bool)
        raise_first(leaf, bad, lambda place: _bytes_at(leaf, place).decode())
        kept = [value or 0 for value in found]
        return replace_values(leaf, integer_bytes(kept, decimal_byte_width(after.precision), after.precision))

    return step


def _unscaled(text: bytes, after: ArrowType) -> int | None:
    """Return the unscaled integer of a number in text; None if the text is not a number of this type."""
    if len(text) > _LONGEST_NUMBER or not _NUMBER.fullmatch(text):
        return None
    sign, digits, exponent = Decimal(text.decode()).as_tuple()
    assert isinstance(exponent, int)
    kept = "".join(map(str, digits)).rstrip("0")
    shift = exponent + len(digits) - len(kept) + after.scale
    if not kept:
        return 0
    if shift < 0 or len(kept.lstrip("0")) + shift > after.precision:
        return None
    unscaled: int = int(kept) * 10**shift
    return -unscaled if sign else unscaled


def integers_to_decimals(before: ArrowType, after: ArrowType) -> Cast:
    """Cast integers to decimals; they must fit the precision."""
    return lambda leaf: _store_decimals(leaf, integer_view(leaf, before).tolist(), after.scale, after)


def _store_decimals(leaf: LeafValues, integers: list[int], shift: int, after: ArrowType) -> LeafValues:
    factor, limit = 10 ** abs(shift), 10**after.precision
    found = [value * factor for value in integers] if shift >= 0 else [value // factor for value in integers]
    bad = np.array(
        [abs(new) >= limit or (shift < 0 and new * factor != old) for new, old in zip(found, integers, strict=True)],
        bool,
    )
    raise_first(leaf, bad, lambda place: integers[place])
    kept = [0 if wrong else value for value, wrong in zip(found, bad.tolist(), strict=True)]  # nulls are arbitrary
    return replace_values(leaf, integer_bytes(kept, decimal_byte_width(after.precision), after.precision))
