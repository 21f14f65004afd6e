"""Sort keys: ints or bytes that order like the values of a column."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

from numparq.format.arrow_type import ArrowType
from numparq.format.column_order import ColumnOrder
from numparq.format.physical_type import BOOLEAN, BYTE_ARRAY, DOUBLE, FIXED_LEN_BYTE_ARRAY, FLOAT, INT32, INT64, INT96
from numparq.format.schema import Leaf
from numparq.types.parquet_type import infer_arrow_type

from .key_ranges import TOP, KeyRanges, RangeTuple

_WIDTHS = {INT32: 4, INT64: 8, INT96: 12, FLOAT: 4, DOUBLE: 8, BYTE_ARRAY: 0}
JULIAN_EPOCH = 2440588  # Julian day of 1970-01-01
NS_OF_DAY = 86_400_000_000_000
_NS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_FLOATS = {2: "<e", 4: "<f", 8: "<d"}

# Type kind -> quantity that keys count, and the worth of one key.
_WORTHS: dict[str, tuple[str, Callable[[ArrowType], int | Fraction]]] = {
    "bool": ("numbers", lambda kind: 1),
    "int": ("numbers", lambda kind: 1),
    "float": ("numbers", lambda kind: 1),
    "decimal": ("numbers", lambda kind: Fraction(1, 10**kind.scale)),
    "date": ("moments", lambda kind: NS_OF_DAY),
    "timestamp": ("moments", lambda kind: _NS[kind.unit]),
    "time": ("times of day", lambda kind: _NS[kind.unit]),
    "duration": ("durations", lambda kind: _NS[kind.unit]),
}


@dataclass(frozen=True, slots=True)
class KeyDomain:
    """Sort keys of a column: their kind, width and bounds.

    Attributes
    ----------
    kind : str
        As `ColumnOrder.kind`, by the type, whatever the file declares; ``"none"`` for columns of nulls only.
    width : int
        Bytes of a PLAIN value; 0 for BYTE_ARRAY.
    low, high : object
        First key, and the exclusive end of keys.
    type : ArrowType
        Logical meaning of the values.
    """

    kind: str
    width: int
    low: Any
    high: Any
    type: ArrowType

    def __hash__(self) -> int:
        return hash((self.kind, self.width, self.low))  # cheap, and distinct for nearly all domains

    @property
    def is_float(self) -> bool:
        """Whether values may be NaN."""
        return self.kind == "float"

    @property
    def all_keys(self) -> KeyRanges:
        """Range of all keys; NaNs have none."""
        return RangeTuple(((self.low, self.high),))

    @property
    def quantity(self) -> str:
        """Quantity that numeric keys count: only keys of one quantity can be compared; "" for byte strings."""
        return _WORTHS[self.type.kind][0] if self.type.kind in _WORTHS else ""

    @property
    def worth(self) -> Fraction:
        """Worth of one key, in ones or nanoseconds; for keys that count a quantity."""
        return Fraction(_WORTHS[self.type.kind][1](self.type))

    def key(self, plain: bytes) -> Any:
        """Return the key of a PLAIN value; a key outside of `low` to `high` is a NaN or an invalid value."""
        key = ColumnOrder(self.kind, self.width).sort_key(plain)
        if self.kind == "int96":
            day, nanoseconds = key
            return (day - JULIAN_EPOCH) * NS_OF_DAY + nanoseconds
        return key

    def plain_value(self, key: Any) -> bytes:
        """Return the PLAIN value of a key; not for INT96, nor decimals of BYTE_ARRAY."""
        if self.kind == "bytes":
            value: bytes = key
            return value
        number: int = key
        if self.kind == "decimal":
            return number.to_bytes(self.width, "big", signed=True)
        if self.kind == "float":
            return float_bits(number, self.width).to_bytes(self.width, "little", signed=True)
        return number.to_bytes(self.width, "little", signed=self.kind == "signed")

    def successor(self, key: Any) -> Any:
        """Return the next larger key."""
        return key + b"\0" if self.kind == "bytes" else key + 1


def float_bits(key: int, width: int) -> int:
    """Return the bits of the float with this key, as a signed integer."""
    return key if key >= 0 else key ^ ((1 << 8 * width - 1) - 1)


def float_value(key: int, width: int) -> float:
    """Return the float with this key."""
    return float(struct.unpack(_FLOATS[width], float_bits(key, width).to_bytes(width, "little", signed=True))[0])


@lru_cache(maxsize=1024)
def key_domain(leaf: Leaf, origin: ArrowType | None = None) -> KeyDomain:
    """Return the sort keys of a leaf; `origin` is its type by the file's ``ARROW:schema``.

    Raises InvalidFileError if its type breaks the specification.
    """
    arrow_type = infer_arrow_type(leaf.physical, leaf.type_length, leaf.logical, origin)
    width = leaf.type_length or 0 if leaf.physical == FIXED_LEN_BYTE_ARRAY else _WIDTHS.get(leaf.physical, 1)
    if arrow_type.kind == "null":
        return KeyDomain("none", width, 0, 0, arrow_type)
    if arrow_type.kind == "bool":
        return KeyDomain("boolean", 1, 0, 2, arrow_type)
    if arrow_type.kind == "float":
        infinite = ((1 << {2: 5, 4: 8, 8: 11}[width]) - 1) << {2: 10, 4: 23, 8: 52}[width]
        return KeyDomain("float", width, -infinite - 1, infinite + 1, arrow_type)
    if leaf.physical == INT96:
        return KeyDomain("int96", width, -math.inf, math.inf, arrow_type)
    if leaf.physical in (INT32, INT64):
        bits = arrow_type.bit_width if arrow_type.kind == "int" else 8 * width
        if arrow_type.kind == "int" and not arrow_type.signed:
            return KeyDomain("unsigned", width, 0, 1 << bits, arrow_type)
        return KeyDomain("signed", width, -1 << bits - 1, 1 << bits - 1, arrow_type)
    if arrow_type.kind == "decimal":
        most = 1 << 8 * width - 1 if width else math.inf
        return KeyDomain("decimal", width, -most, most, arrow_type)
    if leaf.logical is not None and leaf.logical.kind == "ENUM":  # decoded as bytes, compared with text too
        arrow_type = replace(arrow_type, kind="enum")
    return KeyDomain("bytes", width, b"", TOP, arrow_type)


_BYTES = {
    **dict.fromkeys(("utf8", "large_utf8", "utf8_view"), ("text",)),
    **dict.fromkeys(("binary", "large_binary", "binary_view", "fixed_size_binary"), ("bytes",)),
    "enum": ("text", "bytes"),
    "uuid": ("UUIDs",),
}


def comparable_kinds(domain: KeyDomain) -> set[str]:
    """Return what the values of a column are; columns that share any can be compared."""
    if domain.quantity == "moments":
        return {"instants" if domain.type.timezone else "local times"}
    return {domain.quantity} if domain.quantity else set(_BYTES.get(domain.type.kind, ()))


def has_canonical_bytes(leaf: Leaf, domain: KeyDomain) -> bool:
    """Whether equal values have equal bytes (zeros and NaNs aside), so that a Bloom filter can find them.

    Not so for BYTE_ARRAY decimals, INT96 and ints narrower than their physical type. BOOLEAN has no Bloom filter.
    """
    narrow = leaf.physical == INT32 and domain.high - domain.low < 1 << 32
    several_forms = domain.kind == "decimal" and leaf.physical == BYTE_ARRAY
    return not (leaf.physical in (BOOLEAN, INT96) or narrow or several_forms or domain.kind == "none")
