"""The key domain of a column: what stands for its values where they are compared.

Keys are such that the column's order is theirs: ints for everything of a fixed size, with the floats numbered in their
order (-0.0 is -1, 0.0 is 0, NaNs are outside), and bytes for strings and bytes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from ..arrow_schema import ArrowType
from ..logical import resolve
from ..schema import BYTE_ARRAY, DOUBLE, FIXED_LEN_BYTE_ARRAY, FLOAT, INT32, INT64, INT96, Leaf
from ..statistics.order import Order
from .ranges import TOP, Ranges

_WIDTHS = {INT32: 4, INT64: 8, INT96: 12, FLOAT: 4, DOUBLE: 8, BYTE_ARRAY: 0}
_JULIAN_EPOCH = 2440588  # the Julian day of 1970-01-01
_NS_OF_DAY = 86_400_000_000_000


@dataclass(frozen=True, slots=True)
class Domain:
    """How the values of a column are keyed.

    Parameters
    ----------
    kind : str
        As in `Order`, of the values, whatever a file says of its statistics; ``"none"`` where there are only nulls.
    width : int
        Bytes of a PLAIN value; 0 of BYTE_ARRAY.
    low, high : object
        The first key, and the one behind the last.
    type : ArrowType
        What the values mean.
    """

    kind: str
    width: int
    low: Any
    high: Any
    type: ArrowType

    @property
    def is_float(self) -> bool:
        """Whether there may be NaNs."""
        return self.kind == "float"

    @property
    def everything(self) -> Ranges:
        """All keys; NaNs have none."""
        return ((self.low, self.high),)

    def key(self, plain: bytes) -> Any:
        """Give the key of a PLAIN value; one outside of `low` to `high` is that of a NaN, or of no value at all."""
        key = Order(self.kind, self.width).key(plain)
        if self.kind == "int96":
            day, nanoseconds = key
            return (day - _JULIAN_EPOCH) * _NS_OF_DAY + nanoseconds
        return key

    def plain(self, key: Any) -> bytes:
        """Give the PLAIN value that has a key; of floats, and of whatever has one length or is BYTE_ARRAY."""
        if self.kind == "bytes":
            return key
        if self.kind == "decimal":
            return key.to_bytes(self.width, "big", signed=True)
        if self.kind == "float":
            return float_bits(key, self.width).to_bytes(self.width, "little", signed=True)
        return key.to_bytes(self.width, "little", signed=self.kind == "signed")

    def after(self, key: Any) -> Any:
        """Give the next larger key."""
        return key + b"\0" if self.kind == "bytes" else key + 1


def float_bits(key: int, width: int) -> int:
    """Give the bits, as a signed integer, of the float that has a key."""
    return key if key >= 0 else key ^ ((1 << 8 * width - 1) - 1)


@lru_cache(maxsize=1024)
def domain_of(leaf: Leaf, origin: ArrowType | None = None) -> Domain:
    """Say how the values of a leaf are keyed.

    Parameters
    ----------
    leaf : Leaf
        The column.
    origin : ArrowType or None
        Its type by the file's ``ARROW:schema``.

    Returns
    -------
    Domain

    Raises
    ------
    InvalidFileError
        When its type breaks the specification.
    """
    arrow_type = resolve(leaf.physical, leaf.type_length, leaf.logical, origin)
    width = leaf.type_length or 0 if leaf.physical == FIXED_LEN_BYTE_ARRAY else _WIDTHS.get(leaf.physical, 1)
    if arrow_type.kind == "null":
        return Domain("none", width, 0, 0, arrow_type)
    if arrow_type.kind == "bool":
        return Domain("boolean", 1, 0, 2, arrow_type)
    if arrow_type.kind == "float":
        infinite = ((1 << {2: 5, 4: 8, 8: 11}[width]) - 1) << {2: 10, 4: 23, 8: 52}[width]
        return Domain("float", width, -infinite - 1, infinite + 1, arrow_type)
    if leaf.physical == INT96:
        return Domain("int96", width, -math.inf, math.inf, arrow_type)
    if leaf.physical in (INT32, INT64):
        bits = arrow_type.bit_width if arrow_type.kind == "int" else 8 * width
        if arrow_type.kind == "int" and not arrow_type.signed:
            return Domain("unsigned", width, 0, 1 << bits, arrow_type)
        return Domain("signed", width, -1 << bits - 1, 1 << bits - 1, arrow_type)
    if arrow_type.kind == "decimal":
        most = 1 << 8 * width - 1 if width else math.inf
        return Domain("decimal", width, -most, most, arrow_type)
    if leaf.logical is not None and leaf.logical.kind == "ENUM":  # read as bytes, and meant as text
        arrow_type = replace(arrow_type, kind="enum")
    return Domain("bytes", width, b"", TOP, arrow_type)
