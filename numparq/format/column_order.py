"""Column orders: how the values of a leaf column compare in its statistics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from .logical_type import LogicalType
from .physical_type import BOOLEAN, BYTE_ARRAY, DOUBLE, FIXED_LEN_BYTE_ARRAY, FLOAT, INT32, INT64, INT96
from .schema import Leaf
from .schema_node import SchemaNode, leaf_columns

TYPE_ORDER, TOTAL_ORDER, INT96_ORDER = "type", "ieee754", "int96"
NAN_FREE_ORDER = "nan_free"  # the type's order, but no bounds if there are NaNs
COLUMN_ORDERS = (TYPE_ORDER, TOTAL_ORDER, NAN_FREE_ORDER)  # those numparq writes


# --- sort keys --------------------------------------------------------------------------------------------------------


def _signed(value: bytes) -> int:
    return int.from_bytes(value, "little", signed=True)


def _unsigned(value: bytes) -> int:
    return int.from_bytes(value, "little")


def _float(value: bytes) -> int:
    bits = int.from_bytes(value, "little", signed=True)
    return bits if bits >= 0 else bits ^ ((1 << 8 * len(value) - 1) - 1)


def _decimal(value: bytes) -> int:
    return int.from_bytes(value, "big", signed=True)


def _int96(value: bytes) -> tuple[int, int]:
    return _signed(value[8:]), _signed(value[:8])  # day, nanoseconds of the day


_KEYS: dict[str, Callable[[bytes], Any]] = {
    "signed": _signed,
    "unsigned": _unsigned,
    "boolean": _unsigned,
    "float": _float,
    "bytes": bytes,
    "decimal": _decimal,
    "int96": _int96,
}


@dataclass(frozen=True, slots=True)
class ColumnOrder:
    """Order of a leaf column's values, and the bounds that are written for it.

    Attributes
    ----------
    kind : str
        ``"signed"``, ``"unsigned"``, ``"float"``, ``"boolean"``, ``"bytes"`` (unsigned), ``"decimal"`` (signed,
        big-endian), ``"int96"`` (timestamps), or ``"none"`` (no bounds).
    width : int
        Bytes of a value; 0 for BYTE_ARRAY.
    total : bool
        Whether floats use IEEE 754 total order instead of the type's order.
    truncation : str
        Truncation of long bounds: ``"bytes"``, ``"text"``, or ``"whole"`` (none, since a bound must be a valid
        value).
    nan_free : bool
        Whether a column chunk with NaNs has no bounds, for readers that ignore NaNs outside the bounds.
    """

    kind: str
    width: int = 0
    total: bool = False
    truncation: str = "whole"
    nan_free: bool = False

    @property
    def is_float(self) -> bool:
        """Whether values may be NaN; NaNs are then counted."""
        return self.kind == "float"

    @property
    def thrift_union(self) -> dict[str, dict[str, Any]]:
        """The ColumnOrder union for the footer."""
        return _INT96_UNION if self.kind == "int96" else _TOTAL_UNION if self.total else _TYPE_UNION

    def sort_key(self, value: bytes) -> Any:
        """Return a sort key of a PLAIN value.

        Floats use total order (-0.0 < 0.0), which refines the type's order among values that are not NaN.
        """
        return _KEYS[self.kind](value)


NO_ORDER = ColumnOrder("none")

# Members of the ColumnOrder union, shared by all columns.
_TYPE_UNION: dict[str, dict[str, Any]] = {"TYPE_ORDER": {}}
_TOTAL_UNION: dict[str, dict[str, Any]] = {"IEEE_754_TOTAL_ORDER": {}}
_INT96_UNION: dict[str, dict[str, Any]] = {"INT96_TIMESTAMP_ORDER": {}}

_PHYSICAL = {
    BOOLEAN: ("boolean", 1),
    INT32: ("signed", 4),
    INT64: ("signed", 8),
    INT96: ("none", 12),
    FLOAT: ("float", 4),
    DOUBLE: ("float", 8),
    BYTE_ARRAY: ("bytes", 0),
    FIXED_LEN_BYTE_ARRAY: ("bytes", -1),
}
_WITHOUT = {"INTERVAL", "GEOMETRY", "GEOGRAPHY", "UNKNOWN", "VARIANT", "LIST", "MAP", "MAP_KEY_VALUE", "FILE"}
_CUT = {None: "bytes", "STRING": "text", "ENUM": "text"}  # BYTE_ARRAY only; a truncated JSON document is not valid

# Member of the ColumnOrder union -> name of the order, and the only kind that may have it (None: any).
_DECLARED: dict[str, tuple[str, str | None]] = {
    "TYPE_ORDER": (TYPE_ORDER, None),
    "IEEE_754_TOTAL_ORDER": (TOTAL_ORDER, "float"),
    "INT96_TIMESTAMP_ORDER": (INT96_ORDER, "int96"),
}


def leaf_order(leaf: Leaf | SchemaNode, column_order: str = TYPE_ORDER) -> ColumnOrder:
    """Return the order of a leaf column; `NO_ORDER` for INT96 by its type, INTERVAL, GEOMETRY, GEOGRAPHY, UNKNOWN.

    ``"ieee754"`` and ``"nan_free"`` affect only floats, ``"int96"`` only INT96; ValueError for other names.
    """
    if column_order not in (*COLUMN_ORDERS, INT96_ORDER):
        raise ValueError(f"column_order must be one of {', '.join(COLUMN_ORDERS)}, not {column_order!r}")
    if leaf.physical is None:
        return NO_ORDER
    if (
        leaf.physical == INT96
        and (leaf.logical is None or leaf.logical.kind == "TIMESTAMP")
        and column_order == INT96_ORDER
    ):
        return ColumnOrder("int96", 12)
    kind, width = _PHYSICAL[leaf.physical]
    width = leaf.type_length or 0 if width < 0 else width
    kind = _of_logical(leaf.logical, kind, width)
    if kind == "none":
        return NO_ORDER
    cut = "whole"
    if kind == "bytes" and leaf.physical == BYTE_ARRAY:
        cut = _CUT.get(leaf.logical.kind if leaf.logical else None, "whole")
    asked = column_order if kind == "float" else TYPE_ORDER
    return ColumnOrder(kind, width, asked == TOTAL_ORDER, cut, asked == NAN_FREE_ORDER)


def _of_logical(logical: LogicalType | None, kind: str, width: int) -> str:
    """Return the order kind of a logical type; `kind` is that of the physical type."""
    if logical is None:
        return kind
    if logical.kind in _WITHOUT:
        return "none"
    if logical.kind == "INTEGER" and not logical.signed:
        return "unsigned"
    if logical.kind == "DECIMAL" and kind == "bytes":
        return "decimal"
    return "float" if logical.kind == "FLOAT16" and width == 2 else kind


def leaf_orders(columns: Sequence[SchemaNode], column_order: str | Sequence[str] = TYPE_ORDER) -> list[ColumnOrder]:
    """Return the order of each leaf column of a schema; the binary parts of a VARIANT have none.

    `column_order` is one name for all leaf columns, or one for each.
    """
    leaves = leaf_columns(columns)
    wanted = [column_order] * len(leaves) if isinstance(column_order, str) else column_order
    inside = [within for column in columns for within in _within_variant(column, False)]
    return [
        NO_ORDER if hidden else leaf_order(leaf, order)
        for leaf, order, hidden in zip(leaves, wanted, inside, strict=True)
    ]


def _within_variant(node: SchemaNode, inside: bool) -> list[bool]:
    """Return for each leaf column whether it is a VARIANT's `metadata` or `value`; typed values have an order."""
    if node.physical is not None:
        return [inside and node.name in ("metadata", "value") and node.physical == BYTE_ARRAY]
    inside = inside or (node.logical is not None and node.logical.kind == "VARIANT")
    return [found for child in node.children for found in _within_variant(child, inside)]


def declared_orders(leaves: Sequence[Leaf], column_orders: Sequence[str | None] | None) -> list[ColumnOrder]:
    """Return the order of each leaf column's min_value, max_value and column index bounds, as the file declares it.

    `NO_ORDER` if the file has not one order per leaf column, or the order is unknown or unfit for the type.
    """
    if column_orders is None or len(column_orders) != len(leaves):
        return [NO_ORDER] * len(leaves)
    return [_declared(leaf, name) for leaf, name in zip(leaves, column_orders, strict=True)]


@lru_cache(maxsize=1024)
def _declared(leaf: Leaf, name: str | None) -> ColumnOrder:
    column_order, kind = _DECLARED.get(name or "", ("", None))
    if not column_order:
        return NO_ORDER
    order = leaf_order(leaf, column_order)
    return order if kind in (None, order.kind) else NO_ORDER


def may_have_nans(leaf: Leaf) -> bool:
    """Whether a leaf column's values may be NaN; the NaN count needs no order."""
    return leaf_order(leaf).is_float
