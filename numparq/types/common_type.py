"""The common type, the smallest Arrow type that holds all values of several; and type names for messages.

64-bit integers beside floats, or beside unsigned ones, have a common type that holds most of their values, not all.
`holds_all_values` tells these pairs, whose values are checked as they are cast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache

from numparq.format.arrow_type import TIME_UNITS, ArrowType

_STORED_ALIKE = {
    "large_utf8": "utf8",
    "utf8_view": "utf8",
    "large_binary": "binary",
    "binary_view": "binary",
}
# Extension types whose values mean something else than their storage.
_MEANINGFUL = ("pandas.period",)


def value_type(arrow_type: ArrowType) -> ArrowType:
    """Return a type without what does not affect its set of values."""
    extension = arrow_type.extension if arrow_type.extension in _MEANINGFUL else None
    return ArrowType(
        _STORED_ALIKE.get(arrow_type.kind, arrow_type.kind),
        _decimal_width(arrow_type.precision) if arrow_type.kind == "decimal" else arrow_type.bit_width,
        arrow_type.signed,
        arrow_type.unit,
        "UTC" if arrow_type.timezone else "",
        arrow_type.precision,
        arrow_type.scale,
        arrow_type.byte_width,
        extension=extension,
        extension_metadata=arrow_type.extension_metadata if extension else None,
    )


def _decimal_width(precision: int) -> int:
    return 128 if precision <= 38 else 256


@lru_cache(maxsize=1024)
def common_type(types: frozenset[ArrowType]) -> ArrowType | None:
    """Return the smallest type that holds all values of one or more types from `value_type`, or None.

    For 64-bit integers with floats, and for uint64 with signed integers, it holds only some (`holds_all_values`).
    """
    # Kinds that absorb others come first: int32 and uint32 each fit float64, but their common int64 does not.
    first, *others = sorted(types, key=lambda item: (_RANKS.get(item.kind, len(_RANKS)), repr(item)))
    found: ArrowType | None = first
    for other in others:
        if found is None:
            return None
        found = _joined(found, other)
    return found


_RANKS = {kind: rank for rank, kind in enumerate(("float", "decimal", "timestamp", "binary"))}


def _joined(first: ArrowType, second: ArrowType) -> ArrowType | None:
    if first == second:
        return first
    if first.extension != second.extension or first.extension_metadata != second.extension_metadata:
        return None
    rule = _RULES.get((first.kind, second.kind))
    if rule is not None:
        return rule(first, second)
    rule = _RULES.get((second.kind, first.kind))
    return rule(second, first) if rule is not None else None


# --- rules by pair of kinds ------------------------------------------------------------------------------------------


def _integers(first: ArrowType, second: ArrowType) -> ArrowType | None:
    if first.signed == second.signed:
        return first if first.bit_width >= second.bit_width else second
    signed, unsigned = (first, second) if first.signed else (second, first)
    return ArrowType("int", min(max(signed.bit_width, 2 * unsigned.bit_width), 64))


# Bits of an integer -> bits of the smallest float that holds all of them (its significand has 11, 24 or 53 bits); of
# 64 bits, as many as there are.
_FLOATS_OF = {8: 16, 16: 32, 32: 64, 64: 64}


def _integer_and_float(integer: ArrowType, real: ArrowType) -> ArrowType | None:
    return replace(real, bit_width=max(real.bit_width, _FLOATS_OF[integer.bit_width]))


# (Bits of an integer, signed) -> its most decimal digits.
_DIGITS = {(bits, signed): len(str(2 ** (bits - signed))) for bits in (8, 16, 32, 64) for signed in (True, False)}


def _integer_and_decimal(integer: ArrowType, decimal: ArrowType) -> ArrowType | None:
    digits = _DIGITS[integer.bit_width, integer.signed]
    return _decimal(max(digits, decimal.precision - decimal.scale), decimal.scale)


def _decimals(first: ArrowType, second: ArrowType) -> ArrowType | None:
    whole = max(first.precision - first.scale, second.precision - second.scale)
    return _decimal(whole, max(first.scale, second.scale))


# More digits occur only in hostile files; every value would be cast to that many.
_MOST_DIGITS = 1000


def _decimal(whole: int, scale: int) -> ArrowType | None:
    """Return the decimal type with the given digits before and after the point; None if these are too many."""
    if whole + scale > _MOST_DIGITS:
        return None
    return ArrowType("decimal", _decimal_width(whole + scale), precision=whole + scale, scale=scale)


def _finest(first: ArrowType, second: ArrowType) -> ArrowType | None:
    if bool(first.timezone) != bool(second.timezone):
        return None
    return first if TIME_UNITS.index(first.unit) >= TIME_UNITS.index(second.unit) else second


_RULES: dict[tuple[str, str], Callable[[ArrowType, ArrowType], ArrowType | None]] = {
    ("int", "int"): _integers,
    ("bool", "int"): lambda boolean, integer: integer,
    ("bool", "float"): lambda boolean, real: real,
    ("int", "float"): _integer_and_float,
    ("int", "decimal"): _integer_and_decimal,
    ("float", "float"): lambda first, second: first if first.bit_width >= second.bit_width else second,
    ("decimal", "decimal"): _decimals,
    ("date", "timestamp"): lambda date, timestamp: None if timestamp.timezone else timestamp,
    ("timestamp", "timestamp"): _finest,
    ("time", "time"): _finest,
    ("duration", "duration"): _finest,
    ("fixed_size_binary", "fixed_size_binary"): lambda first, second: ArrowType("binary"),
    ("fixed_size_binary", "binary"): lambda fixed, binary: binary,
}


# --- casts that depend on values -------------------------------------------------------------------------------------


def can_cast_exactly(source: ArrowType, target: ArrowType) -> bool:
    """Whether values of a type from `value_type` can be cast to another one, all of them or those that fit it."""
    return (
        common_type(frozenset((source, target))) == target
        or (source.kind, target.kind) in _IF_EXACT
        or (source.kind, target.kind) == ("utf8", "binary")
        or (source.kind == target.kind == "int" and source.bit_width <= target.bit_width)
    )


# Casts that a schema of the caller may ask for, though no merge does: each value must be one of the other type.
_IF_EXACT = {("float", "int"), ("float", "decimal"), ("binary", "utf8"), ("fixed_size_binary", "utf8")}


def holds_all_values(target: ArrowType, source: ArrowType) -> bool:
    """Whether a type that values can be cast to holds all of the source type; else each value is checked."""
    if (source.kind, target.kind) in _IF_EXACT:
        return False
    if source.kind != "int" or target.kind not in ("int", "float"):
        return True
    if target.kind == "float":
        return source.bit_width < 64 and _FLOATS_OF[source.bit_width] <= target.bit_width
    return source.bit_width + (target.signed and not source.signed) <= target.bit_width and (
        target.signed or not source.signed
    )


# --- names for messages ----------------------------------------------------------------------------------------------


def describe_type(arrow_type: ArrowType) -> str:
    """Return the name of a type for messages."""
    named = _WORDS.get(arrow_type.kind)
    words = named(arrow_type) if named else arrow_type.kind
    return f"{arrow_type.extension}({arrow_type.extension_metadata})" if arrow_type.extension in _MEANINGFUL else words


def _listed(name: str, parts: Iterable[object]) -> str:
    return f"{name}[{', '.join(str(part) for part in parts if part != '')}]"


_WORDS: dict[str, Callable[[ArrowType], str]] = {
    "int": lambda item: f"{'' if item.signed else 'u'}int{item.bit_width}",
    "float": lambda item: f"float{item.bit_width}",
    "decimal": lambda item: f"decimal({item.precision}, {item.scale})",
    "timestamp": lambda item: _listed("timestamp", (item.unit, item.timezone)),
    "time": lambda item: _listed("time", (item.unit,)),
    "duration": lambda item: _listed("duration", (item.unit,)),
    "utf8": lambda item: "string",
    "large_utf8": lambda item: "string",
    "utf8_view": lambda item: "string",
    "large_binary": lambda item: "binary",
    "binary_view": lambda item: "binary",
    "fixed_size_binary": lambda item: f"fixed_size_binary[{item.byte_width}]",
}
