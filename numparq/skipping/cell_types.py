"""Types of cells: how Spark stores the values of a dataset's column, and its values as such."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from numparq.errors import UnsupportedError
from numparq.expr.bind import describe_type
from numparq.expr.sort_keys import KeyDomain, key_domain
from numparq.format.logical_type import LogicalType
from numparq.format.physical_type import (
    BOOLEAN,
    BYTE_ARRAY,
    DOUBLE,
    FIXED_LEN_BYTE_ARRAY,
    FLOAT,
    INT32,
    INT64,
    INT96,
)
from numparq.format.schema import Leaf
from numparq.types.parquet_type import decimal_byte_width

from .metadata import Json

_JULIAN_EPOCH, _NS_OF_DAY = 2440588, 86_400 * 10**9
_NS = {"MILLIS": 10**6, "MICROS": 10**3, "NANOS": 1}
_INT64_BOUNDS = -(1 << 63), (1 << 63) - 1
_MOST_DIGITS = 38
_SIGN = 0x80  # last byte of -0.0
# Bits and sign of an integer -> Spark's type and that it is stored as.
_INTEGERS: dict[tuple[int, bool], tuple[str, int, int | None]] = {
    (8, True): ("byte", INT32, 8),
    (16, True): ("short", INT32, 16),
    (32, True): ("integer", INT32, None),
    (64, True): ("long", INT64, None),
    (8, False): ("short", INT32, 16),
    (16, False): ("integer", INT32, None),
    (32, False): ("long", INT64, None),
}
_TEXTS = ("utf8", "large_utf8", "utf8_view", "enum")

# Returns the PLAIN value in a store of a PLAIN value in a file, exactly; None if there is none.
Conversion = Callable[[bytes], bytes | None]


@dataclass(frozen=True)
class CellType:
    """Type of the values in cells.

    Attributes
    ----------
    spark : object
        Spark's type, as JSON.
    physical : int
        Physical type.
    type_length : int
        Bytes of a FIXED_LEN_BYTE_ARRAY.
    logical : LogicalType or None
        Logical type.
    is_local : bool
        Whether INT96 hold local times, as those in nanoseconds, which Spark does not have.
    """

    spark: Json
    physical: int
    type_length: int = 0
    logical: LogicalType | None = None
    is_local: bool = False


def cell_type(leaf: Leaf) -> tuple[CellType, Conversion]:
    """Return the type of a column's values in cells, and their conversion.

    Raises UnsupportedError for types that Spark cannot read, or that have no order.
    """
    domain = key_domain(leaf)
    for rule in _RULES:
        converted = rule(leaf, domain)
        if converted is not None:
            return converted
    raise UnsupportedError(f"a data-skipping store has no values of type {describe_type(leaf)}", column=leaf.name)


def _unchanged(plain: bytes) -> bytes:
    return plain


_Rule = Callable[[Leaf, KeyDomain], tuple[CellType, Conversion] | None]


def _boolean(leaf: Leaf, domain: KeyDomain) -> tuple[CellType, Conversion] | None:
    return (CellType("boolean", BOOLEAN), _unchanged) if leaf.physical == BOOLEAN else None


def _integer(leaf: Leaf, domain: KeyDomain) -> tuple[CellType, Conversion] | None:
    if domain.type.kind != "int":
        return None
    known = _INTEGERS.get((domain.type.bit_width, domain.type.signed))
    if known is None:  # unsigned, 64 bits
        return _decimal_type(20, 0, domain)
    name, physical, bits = known
    logical = None if bits is None else LogicalType("INTEGER", bit_width=bits, signed=True)
    width = 4 if physical == INT32 else 8
    return CellType(name, physical, 0, logical), _key_conversion(domain, width, "little")


def _key_conversion(domain: KeyDomain, width: int, order: str) -> Conversion:
    """Return the conversion of keys that are numbers to numbers of some bytes."""
    low, high = -(1 << 8 * width - 1), (1 << 8 * width - 1) - 1

    def convert(plain: bytes) -> bytes | None:
        key = domain.key(plain)
        return key.to_bytes(width, order, signed=True) if low <= key <= high else None

    return convert


def _float(leaf: Leaf, domain: KeyDomain) -> tuple[CellType, Conversion] | None:
    if domain.type.kind != "float":
        return None
    if domain.width == 8:
        return CellType("double", DOUBLE), _unchanged
    if domain.width == 4:
        return CellType("float", FLOAT), _unchanged
    return CellType("float", FLOAT), lambda plain: struct.pack("<f", *struct.unpack("<e", plain))


def _date(leaf: Leaf, domain: KeyDomain) -> tuple[CellType, Conversion] | None:
    is_date = leaf.logical is not None and leaf.logical.kind == "DATE"
    return (CellType("date", INT32, 0, leaf.logical), _unchanged) if is_date else None


def _timestamp(leaf: Leaf, domain: KeyDomain) -> tuple[CellType, Conversion] | None:
    if leaf.physical == INT96:
        return CellType("timestamp", INT96), _unchanged
    logical = leaf.logical
    if logical is None or logical.kind != "TIMESTAMP" or logical.unit not in _NS:
        return None
    worth = _NS[logical.unit]
    if logical.utc or worth == 1:
        is_local = not logical.utc
        return CellType("timestamp", INT96, is_local=is_local), lambda plain: int96(domain.key(plain) * worth)
    local = LogicalType("TIMESTAMP", unit="MICROS", utc=False)
    return CellType("timestamp_ntz", INT64, 0, local), _to_microseconds(domain, worth // 1000)


def int96(nanoseconds: int) -> bytes:
    """Return an instant as INT96."""
    day, rest = divmod(nanoseconds, _NS_OF_DAY)
    return rest.to_bytes(8, "little") + (day + _JULIAN_EPOCH).to_bytes(4, "little", signed=True)


def _to_microseconds(domain: KeyDomain, worth: int) -> Conversion:
    low, high = _INT64_BOUNDS

    def convert(plain: bytes) -> bytes | None:
        microseconds = domain.key(plain) * worth
        return microseconds.to_bytes(8, "little", signed=True) if low <= microseconds <= high else None

    return convert


def _decimal(leaf: Leaf, domain: KeyDomain) -> tuple[CellType, Conversion] | None:
    if domain.type.kind != "decimal":
        return None
    return _decimal_type(domain.type.precision, domain.type.scale, domain)


def _decimal_type(precision: int, scale: int, domain: KeyDomain) -> tuple[CellType, Conversion] | None:
    if not 0 < precision <= _MOST_DIGITS or not 0 <= scale <= precision:
        return None
    logical, name = LogicalType("DECIMAL", precision=precision, scale=scale), f"decimal({precision},{scale})"
    if precision <= 9:
        return CellType(name, INT32, 0, logical), _key_conversion(domain, 4, "little")
    if precision <= 18:
        return CellType(name, INT64, 0, logical), _key_conversion(domain, 8, "little")
    width = decimal_byte_width(precision)
    return CellType(name, FIXED_LEN_BYTE_ARRAY, width, logical), _key_conversion(domain, width, "big")


def _text(leaf: Leaf, domain: KeyDomain) -> tuple[CellType, Conversion] | None:
    if leaf.physical != BYTE_ARRAY or domain.type.kind not in _TEXTS:
        return None
    return CellType("string", BYTE_ARRAY, 0, LogicalType("STRING")), _unchanged


_RULES: tuple[_Rule, ...] = (_boolean, _integer, _float, _date, _timestamp, _decimal, _text)


def nan_of(kind: CellType) -> bytes:
    """Return a NaN of a type of floats."""
    return struct.pack("<f" if kind.physical == FLOAT else "<d", np.nan)


def with_one_zero(plain: bytes) -> bytes:
    """Return a PLAIN float, 0.0 for -0.0."""
    is_negative_zero = plain[-1] == _SIGN and not any(plain[:-1])
    return bytes(len(plain)) if is_negative_zero else plain
