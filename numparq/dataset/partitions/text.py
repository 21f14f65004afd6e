"""Format partition values as directory text, as pyarrow prints them, and compare such texts."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from numparq.column.leaf_values import LeafValues, SourceColumn
from numparq.errors import SchemaError
from numparq.format.arrow_type import ArrowType
from numparq.format.schema_node import SchemaNode

# Kinds whose values have several spellings: the pattern of a valid text, and what makes its one canonical text.
CANONICAL_TEXT_RULES: dict[str, tuple[re.Pattern[str], Callable[[str], str]]] = {
    "int": (re.compile(r"-?[0-9]{1,40}"), lambda text: str(int(text))),
    "float": (
        re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?|-?(inf|infinity|nan)", re.IGNORECASE),
        lambda text: repr(float(text)),
    ),
    "decimal": (re.compile(r"-?[0-9]{1,80}(\.[0-9]{0,80})?"), lambda text: str(Fraction(text))),
    "bool": (re.compile("true|false", re.IGNORECASE), str.lower),
}

_DECIMALS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_SHORTEST = range(-6, 10)  # decimal exponents of floats that are printed without an exponent
_DAY = 86400

Text = Callable[[LeafValues, ArrowType], list[str]]


def _integers(leaf: LeafValues, arrow_type: ArrowType) -> list[str]:
    values = leaf.values if arrow_type.signed else leaf.values.view(f"u{leaf.values.itemsize}")
    return [str(value) for value in values.tolist()]


def _booleans(leaf: LeafValues, _: ArrowType) -> list[str]:
    return ["true" if value else "false" for value in leaf.values.tolist()]


def _strings(leaf: LeafValues, _: ArrowType) -> list[str]:
    data = leaf.values.tobytes()
    assert leaf.starts is not None
    assert leaf.ends is not None
    return [data[start:end].decode() for start, end in zip(leaf.starts.tolist(), leaf.ends.tolist(), strict=True)]


def _floats(leaf: LeafValues, arrow_type: ArrowType) -> list[str]:
    if arrow_type.bit_width == 16:  # pyarrow prints float16 with all digits of its float64 value
        return [_float(np.float64(value)) for value in leaf.values.view(np.float16)]
    return [_float(value) for value in leaf.values]


def _decimals(leaf: LeafValues, arrow_type: ArrowType) -> list[str]:
    if leaf.values.dtype != np.uint8:
        numbers = leaf.values.tolist()
    else:
        data = leaf.values.tobytes()
        if leaf.starts is not None and leaf.ends is not None:
            pieces = [data[a:b] for a, b in zip(leaf.starts.tolist(), leaf.ends.tolist(), strict=True)]
        else:
            width = _decimal_width(arrow_type.precision)
            pieces = [data[at : at + width] for at in range(0, len(data), width)]
        numbers = [int.from_bytes(piece, "big", signed=True) for piece in pieces]
    return [_decimal(number, arrow_type.scale) for number in numbers]


def _dates(leaf: LeafValues, arrow_type: ArrowType) -> list[str]:
    days = leaf.values.astype(np.int64) // (1 if arrow_type.unit == "D" else _DAY * 1000)
    return [str(day) for day in days.astype("datetime64[D]")]


def _timestamps(leaf: LeafValues, arrow_type: ArrowType) -> list[str]:
    # Parquet stores seconds as milliseconds; they are printed as seconds.
    unit = "ms" if arrow_type.unit == "s" else arrow_type.unit
    moments = leaf.values.view(f"datetime64[{unit}]").astype(f"datetime64[{arrow_type.unit}]")
    zone = "Z" if arrow_type.timezone else ""
    return [str(moment).replace("T", " ") + zone for moment in moments]


def _times(leaf: LeafValues, arrow_type: ArrowType) -> list[str]:
    digits = _DECIMALS[arrow_type.unit]
    found = []
    for value in leaf.values.tolist():
        seconds, rest = divmod(value, 10**digits)
        clock = (datetime.datetime.min + datetime.timedelta(seconds=seconds)).time().isoformat()
        found.append(f"{clock}.{rest:0{digits}}" if digits else clock)
    return found


_TEXTS: dict[str, Text] = {
    "int": _integers,
    "bool": _booleans,
    "utf8": _strings,
    "large_utf8": _strings,
    "utf8_view": _strings,
    "float": _floats,
    "decimal": _decimals,
    "date": _dates,
    "timestamp": _timestamps,
    "time": _times,
}


def canonical_text(kind: str, text: str | None) -> str | None:
    """Return one spelling for all texts of an equal value, by Arrow kind."""
    if text is None or kind not in CANONICAL_TEXT_RULES:
        return text
    pattern, make = CANONICAL_TEXT_RULES[kind]
    return make(text) if pattern.fullmatch(text) else text


def format_partition_values(column: SourceColumn, num_rows: int) -> list[str | None]:
    """Format a column's values, one text per partition; None for a null.

    Raises SchemaError for a type whose text readers would not parse back.
    """
    check_partition_column(column)
    arrow_type = column.field.type
    if arrow_type.kind == "null":
        return [None] * num_rows
    (leaf,) = column.read_leaves(0, num_rows)
    found = _TEXTS[arrow_type.kind](leaf, arrow_type)
    order = range(num_rows) if leaf.codes is None else leaf.codes.tolist()
    valid = [True] * num_rows if leaf.validity is None else leaf.validity.tolist()
    return [found[place] if there else None for place, there in zip(order, valid, strict=True)]


def check_partition_column(column: SourceColumn) -> None:
    """Raise SchemaError if readers would not parse a column's values back from text."""
    check_partition_type(column.node, column.field.type)


def check_partition_type(node: SchemaNode, arrow_type: ArrowType) -> None:
    """Raise SchemaError if readers would not parse values of a type back from text."""
    has_text = arrow_type.kind in _TEXTS or arrow_type.kind == "null"
    if not has_text or arrow_type.extension is not None or node.children:
        kind = arrow_type.extension or arrow_type.kind
        raise SchemaError(
            f"values of type {kind} cannot be partition values; use other partition columns, or cast to str",
            column=node.name,
        )


def _float(value: np.floating) -> str:
    """Format a float by the fewest digits that round-trip; very large or small values get an exponent."""
    if not np.isfinite(value):
        return str(float(value))
    mantissa, _, exponent = np.format_float_scientific(value, trim="-").partition("e")
    power = int(exponent)
    if power in _SHORTEST:
        return np.format_float_positional(value, trim="-")
    return f"{mantissa}e{power:+d}" if power > 0 else f"{mantissa}e{power}"


def _decimal(number: int, scale: int) -> str:
    if scale <= 0:
        return str(number * 10**-scale)
    whole, rest = divmod(abs(number), 10**scale)
    return f"{'-' if number < 0 else ''}{whole}.{rest:0{scale}}"


def _decimal_width(precision: int) -> int:
    """Return the width in bytes of a FIXED_LEN_BYTE_ARRAY decimal."""
    return (int(10**precision - 1).bit_length() + 8) // 8
