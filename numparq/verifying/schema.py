"""The schema: a tree of elements whose types fit each other (LogicalTypes.md, SchemaElement in parquet.thrift)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..metadata.enums import enum_value
from ..metadata.logical_type import CONVERTED, CONVERTED_NULL, LogicalType
from ..schema import (
    BOOLEAN,
    BYTE_ARRAY,
    FIXED_LEN_BYTE_ARRAY,
    INT32,
    INT64,
    MAX_DEPTH,
    OPTIONAL,
    REPEATED,
    REQUIRED,
    Leaf,
)
from .deviations import Findings, Place

__all__ = ["Node", "check_column_orders", "leaves_of", "read_schema"]

_BOUNDS = ("min_value", "max_value")
_CONVERTED_DECIMAL = 5
_DIGITS = {INT32: 9, INT64: 18}


@dataclass
class Node:
    """An element of the schema, and those in it."""

    element: dict[str, Any]
    number: int
    path: tuple[str, ...]
    children: list[Node] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The names joined by dots."""
        return ".".join(self.path)

    @property
    def is_leaf(self) -> bool:
        """Whether it holds values."""
        return "type" in self.element and not self.element.get("num_children")

    @property
    def repetition(self) -> int:
        """How often it occurs; REQUIRED where that is not said."""
        return self.element.get("repetition_type", REQUIRED)

    @property
    def logical(self) -> LogicalType | None:
        """What its values mean, by the logical type or else the converted type."""
        union = self.element.get("logicalType")
        if union is not None:
            return _logical_type(union)
        converted = self.element.get("converted_type")
        if converted == _CONVERTED_DECIMAL:
            precision, scale = self.element.get("precision", -1), self.element.get("scale", 0)
            return LogicalType("DECIMAL", precision=precision, scale=scale)
        if converted == CONVERTED_NULL:
            return LogicalType("UNKNOWN")
        return CONVERTED.get(converted) if converted is not None else None


def _logical_type(union: dict[str, Any]) -> LogicalType | None:
    for kind, about in union.items():
        unit = next(iter(about.get("unit", {})), None)
        algorithm = about.get("algorithm")
        return LogicalType(
            kind, bit_width=about.get("bitWidth"), signed=about.get("isSigned"), unit=unit,
            utc=about.get("isAdjustedToUTC"), precision=about.get("precision"), scale=about.get("scale"),
            crs=about.get("crs"), algorithm=None if algorithm is None else str(algorithm),
        )  # fmt: skip
    return None


# --- the tree ---------------------------------------------------------------------------------------------------------


def read_schema(metadata: dict[str, Any], findings: Findings) -> Node | None:
    """Make a tree of the schema's elements, and note what is wrong with it.

    Returns
    -------
    Node or None
        The root; None where the elements are no tree.
    """
    elements = metadata.get("schema", [])
    if not elements:
        findings.add("schema-root", "the schema is empty: it has not even a root")
        return None
    root = Node(elements[0], 0, ())
    _check_root(root, findings)
    open_groups = [(root, elements[0].get("num_children", 0))]
    for number, element in enumerate(elements[1:], start=1):
        while open_groups and len(open_groups[-1][0].children) >= open_groups[-1][1]:
            open_groups.pop()
        if not open_groups:
            findings.add("schema-tree", f"the schema has {len(elements):,} elements, and its groups have room for "
                                        f"{number:,}")  # fmt: skip
            return None
        group = open_groups[-1][0]
        node = Node(element, number, (*group.path, element.get("name", "")))
        group.children.append(node)
        if element.get("num_children", 0) > 0:
            if len(open_groups) > MAX_DEPTH:
                findings.add("not-checked", f"the schema is nested more than {MAX_DEPTH} deep")
                return None
            open_groups.append((node, element["num_children"]))
    if any(len(group.children) < count for group, count in open_groups):
        findings.add("schema-tree", "the schema ends before all groups have the children that they say they have")
        return None
    _check_below(root, findings)
    return root


def _check_root(root: Node, findings: Findings) -> None:
    element = root.element
    if "type" in element or element.get("num_children") is None:
        findings.add("schema-root", "the root of the schema is not a group: it has a type, or no number of children")
    if element.get("repetition_type", REQUIRED) == REPEATED:
        findings.add("schema-root", "the root of the schema is called repeated")


def _check_below(group: Node, findings: Findings) -> None:
    """Check what is in a group, then what is in that."""
    waiting = [group]
    while waiting:
        group = waiting.pop()
        for name, count in Counter(child.path[-1] for child in group.children).items():
            if count > 1:
                where = f"the group {group.name!r}" if group.path else "the schema"
                findings.add("schema-names", f"{where} has {count} fields of the name {name!r}")
        for child in group.children:
            _check_element(child, findings)
        waiting += reversed(group.children)


def _check_element(node: Node, findings: Findings) -> None:
    element, place = node.element, Place(column=node.name)
    if "repetition_type" not in element:
        findings.add("schema-repetition", "the element does not say whether it is required", place)
    if "type" in element and element.get("num_children"):
        findings.add("schema-type", "the element has a physical type, and children besides", place)
    elif "type" not in element and "num_children" not in element:
        findings.add("schema-type", "the element is neither a group nor of a physical type", place)
    elif "type" not in element and not node.children:
        findings.add("schema-empty-group", "the group has no fields", place)
    if element.get("type") == FIXED_LEN_BYTE_ARRAY and element.get("type_length", -1) < 0:
        findings.add("schema-length", "a FIXED_LEN_BYTE_ARRAY does not say how long its values are", place)
    logical = node.logical
    if logical is None:
        return
    trouble = _misfit(node, logical)
    if trouble:
        findings.add("schema-logical", trouble, place)
    elif logical.kind in _SHAPES:
        _SHAPES[logical.kind](node, findings, place)
    _check_converted(node, logical, findings, place)


# --- logical types ----------------------------------------------------------------------------------------------------

_GROUPS = ("LIST", "MAP", "MAP_KEY_VALUE", "VARIANT", "FILE")
_TYPES: dict[str, tuple[int, ...]] = {
    "STRING": (BYTE_ARRAY,), "ENUM": (BYTE_ARRAY,), "JSON": (BYTE_ARRAY,), "BSON": (BYTE_ARRAY,),
    "GEOMETRY": (BYTE_ARRAY,), "GEOGRAPHY": (BYTE_ARRAY,), "DATE": (INT32,), "TIMESTAMP": (INT64,),
    "TIME": (INT32, INT64), "INTEGER": (INT32, INT64), "DECIMAL": (INT32, INT64, BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY),
    "UUID": (FIXED_LEN_BYTE_ARRAY,), "FLOAT16": (FIXED_LEN_BYTE_ARRAY,), "INTERVAL": (FIXED_LEN_BYTE_ARRAY,),
}  # fmt: skip
_LENGTHS = {"UUID": 16, "FLOAT16": 2, "INTERVAL": 12}
_TIME_TYPES = {"MILLIS": INT32, "MICROS": INT64, "NANOS": INT64}
_WIDTHS = {8: INT32, 16: INT32, 32: INT32, 64: INT64}


def _misfit(node: Node, logical: LogicalType) -> str | None:
    """Say why the element cannot be of its logical type; None where it can."""
    physical = node.element.get("type")
    if (logical.kind in _GROUPS) != (physical is None):
        return f"{logical} annotates {'a group' if physical is None else 'a leaf'}, which it cannot"
    if physical is None or logical.kind not in _TYPES:
        return None
    name = enum_value("Type", physical)
    length = node.element.get("type_length")
    if physical not in _TYPES[logical.kind]:
        return f"{logical} annotates {name!s}, which it cannot"
    if logical.kind in _LENGTHS and length != _LENGTHS[logical.kind]:
        return f"{logical} has {_LENGTHS[logical.kind]} bytes, and the element has {length}"
    if logical.kind == "TIME" and _TIME_TYPES.get(logical.unit or "", physical) != physical:
        return f"{logical} annotates {name!s}, which it cannot"
    if logical.kind == "INTEGER" and _WIDTHS.get(logical.bit_width or 0) != physical:
        return f"{logical} annotates {name!s}, which it cannot"
    return None


def _check_decimal(node: Node, findings: Findings, place: Place) -> None:
    logical, element = node.logical, node.element
    assert logical is not None
    precision, scale = logical.precision or 0, logical.scale or 0
    limit = _DIGITS.get(element["type"], max(precision, 0))
    if element["type"] == FIXED_LEN_BYTE_ARRAY:
        limit = math.floor(math.log10(2) * max(8 * element.get("type_length", 0) - 1, 0))
    if precision <= 0 or not 0 <= scale <= precision:
        findings.add("schema-decimal", f"DECIMAL({precision}, {scale}) is no type: the precision is above 0, and the "
                                       "scale from 0 to the precision", place)  # fmt: skip
    elif precision > limit:
        findings.add("schema-decimal", f"DECIMAL({precision}, {scale}) has more digits than the {limit} that its "
                                       "physical type holds", place)  # fmt: skip
    said = element.get("precision", precision), element.get("scale", scale)
    if said != (precision, scale):
        findings.add("schema-converted", f"the logical type is DECIMAL({precision}, {scale}), and beside it stand "
                                         f"precision {said[0]} and scale {said[1]}", place)  # fmt: skip


def _check_converted(node: Node, logical: LogicalType, findings: Findings, place: Place) -> None:
    """Check that the converted type, where both are there, is that of the logical type."""
    converted = node.element.get("converted_type")
    if "logicalType" not in node.element or converted is None:
        return
    as_logical = LogicalType("DECIMAL") if converted == _CONVERTED_DECIMAL else CONVERTED.get(converted)
    if as_logical is None:
        return
    same = as_logical.kind == logical.kind and all(
        getattr(as_logical, name) in (None, getattr(logical, name)) for name in ("bit_width", "signed", "unit")
    )
    if not same:
        name = enum_value("ConvertedType", converted)
        findings.add("schema-converted", f"the converted type is {name!s}, and the logical type {logical}", place)


def _repeated_child(node: Node) -> Node | None:
    return node.children[0] if len(node.children) == 1 and node.children[0].repetition == REPEATED else None


def _check_list(node: Node, findings: Findings, place: Place) -> None:
    repeated = _repeated_child(node)
    if node.repetition == REPEATED:
        findings.add("schema-list", "the LIST group is itself repeated", place)
    elif repeated is None:
        findings.add("schema-list", "the LIST group has another content than one repeated field", place)
    elif len(repeated.children) != 1 or repeated.children[0].repetition == REPEATED:
        findings.add("schema-list-legacy", "the list has two levels, as old writers made them", place)


def _check_map(node: Node, findings: Findings, place: Place) -> None:
    repeated = _repeated_child(node)
    if node.repetition == REPEATED and (node.logical is None or node.logical.kind != "MAP_KEY_VALUE"):
        findings.add("schema-map", "the MAP group is itself repeated", place)
    elif node.logical is not None and node.logical.kind == "MAP_KEY_VALUE" and node.repetition == REPEATED:
        return  # the middle level of a map, as old writers annotated it
    elif repeated is None or len(repeated.children) not in (1, 2):
        findings.add("schema-map", "the MAP group has another content than repeated pairs of key and value", place)
    elif repeated.children[0].repetition != REQUIRED:
        findings.add("schema-map-legacy", "the key of the map is not required", place)


def _check_variant(node: Node, findings: Findings, place: Place) -> None:
    """Check that the fields are those of a VARIANT: shredded ones may lack the value (VariantShredding.md)."""
    fields = {child.path[-1]: child for child in node.children}
    metadata = fields.get("metadata")
    ok = metadata is not None and metadata.element.get("type") == BYTE_ARRAY
    value = fields.get("value")
    ok = ok and (value is None or value.element.get("type") == BYTE_ARRAY)
    if not ok or not fields.keys() <= {"metadata", "value", "typed_value"} or len(fields) < 2:
        findings.add("schema-variant", "the VARIANT group does not consist of metadata and a value", place)
        return
    assert metadata is not None
    if metadata.repetition != REQUIRED:
        findings.add("schema-variant", "the metadata of the VARIANT are not required", place)
    if "typed_value" in fields:
        _check_shredded(fields["typed_value"], findings)


def _check_shredded(typed: Node, findings: Findings) -> None:
    """Check that the groups of shredded fields, and of elements, are required: they are what is there of a value."""
    waiting = [typed]
    while waiting:
        typed = waiting.pop()
        groups = typed.children
        if typed.logical is not None and typed.logical.kind == "LIST":
            groups = [group for repeated in typed.children for group in repeated.children]
        for group in groups:
            if group.repetition != REQUIRED:
                findings.add("writer-variant", "the group of a shredded field or element is not required",
                             Place(column=group.name))  # fmt: skip
            waiting += [child for child in group.children if child.path[-1] == "typed_value"]


_SHAPES: dict[str, Callable[[Node, Findings, Place], None]] = {
    "LIST": _check_list, "MAP": _check_map, "MAP_KEY_VALUE": _check_map, "VARIANT": _check_variant,
    "DECIMAL": _check_decimal,
}  # fmt: skip


# --- leaves -----------------------------------------------------------------------------------------------------------


def leaves_of(root: Node) -> list[Leaf | None]:
    """List the leaves of a schema in its order; None for those whose values cannot be decoded."""
    found: list[Leaf | None] = []
    waiting: list[tuple[Node, int, int, tuple[int, ...]]]
    waiting = [(child, column, 0, (0,)) for column, child in reversed(list(enumerate(root.children)))]
    while waiting:
        node, column, definition, lists = waiting.pop()
        definition += node.repetition in (OPTIONAL, REPEATED)
        lists = (*lists, definition) if node.repetition == REPEATED else lists
        waiting += [(child, column, definition, lists) for child in reversed(node.children)]
        if node.is_leaf:
            found.append(_leaf(node, len(found), column, definition, lists))
    return found


def _leaf(node: Node, index: int, column: int, definition: int, lists: tuple[int, ...]) -> Leaf | None:
    physical, length = node.element["type"], node.element.get("type_length")
    known = BOOLEAN <= physical <= FIXED_LEN_BYTE_ARRAY and REQUIRED <= node.repetition <= REPEATED
    if not known or (physical == FIXED_LEN_BYTE_ARRAY and (length is None or length < 0)):
        return None
    length = length if physical == FIXED_LEN_BYTE_ARRAY else None
    return Leaf(index, column, node.path, physical, length, node.logical, definition, len(lists) - 1, node.repetition,
                node.number, lists)  # fmt: skip


def check_column_orders(metadata: dict[str, Any], num_leaves: int, findings: Findings) -> list[str | None]:
    """Give the name of the order of each leaf; None where the file does not say it, empty where it is not known."""
    orders = metadata.get("column_orders")
    if orders is None:
        if _has_bounds(metadata):
            findings.add("column-orders-bounds", "the footer has bounds of values, and no column orders: they mean "
                                                 "nothing to readers")  # fmt: skip
        return [None] * num_leaves
    if len(orders) != num_leaves:
        findings.add("column-orders", f"the footer has {len(orders)} column orders for {num_leaves} leaf columns")
        return [None] * num_leaves
    return [next(iter(order), "") for order in orders]


def _has_bounds(metadata: dict[str, Any]) -> bool:
    """Whether any column chunk has bounds whose meaning column orders would say; the deprecated ones need none."""
    chunks = [chunk for group in metadata.get("row_groups", []) for chunk in group.get("columns", [])]
    if any("column_index_offset" in chunk for chunk in chunks):
        return True
    return any(name in chunk.get("meta_data", {}).get("statistics", {}) for chunk in chunks for name in _BOUNDS)
