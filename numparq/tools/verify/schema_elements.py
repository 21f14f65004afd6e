"""Check schema elements: repetition, physical, logical and converted types, list and map groups (LogicalTypes.md)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from numparq.format.column_order import ColumnOrder
from numparq.format.logical_type import CONVERTED_TYPES, LEGACY_NULL_TYPE, LogicalType
from numparq.format.physical_type import BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY, INT32, INT64
from numparq.format.schema import REPEATED, REQUIRED, Leaf
from numparq.format.statistics import ValueBounds
from numparq.format.thrift.idl import enum_value
from numparq.util.pluralize import pluralize

from .deviations import Findings, Location

_DAY = {"MILLIS": 86_400_000, "MICROS": 86_400_000_000, "NANOS": 86_400_000_000_000}

_CONVERTED_DECIMAL = 5
_MAX_DIGITS = {INT32: 9, INT64: 18}

# --- logical types ----------------------------------------------------------------------------------------------------

_GROUP_TYPES = ("LIST", "MAP", "MAP_KEY_VALUE", "VARIANT", "FILE")
_PHYSICAL_TYPES: dict[str, tuple[int, ...]] = {
    "STRING": (BYTE_ARRAY,),
    "ENUM": (BYTE_ARRAY,),
    "JSON": (BYTE_ARRAY,),
    "BSON": (BYTE_ARRAY,),
    "GEOMETRY": (BYTE_ARRAY,),
    "GEOGRAPHY": (BYTE_ARRAY,),
    "DATE": (INT32,),
    "TIMESTAMP": (INT64,),
    "TIME": (INT32, INT64),
    "INTEGER": (INT32, INT64),
    "DECIMAL": (INT32, INT64, BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY),
    "UUID": (FIXED_LEN_BYTE_ARRAY,),
    "FLOAT16": (FIXED_LEN_BYTE_ARRAY,),
    "INTERVAL": (FIXED_LEN_BYTE_ARRAY,),
}
_LENGTHS = {"UUID": 16, "FLOAT16": 2, "INTERVAL": 12}
_TIME_TYPES = {"MILLIS": INT32, "MICROS": INT64, "NANOS": INT64}
_INTEGER_TYPES = {8: INT32, 16: INT32, 32: INT32, 64: INT64}


def _check_list(node: SchemaTreeNode, findings: Findings, location: Location) -> None:
    repeated = _repeated_child(node)
    if node.repetition == REPEATED:
        findings.add("schema-list", "the LIST group is itself repeated", location)
    elif repeated is None:
        findings.add("schema-list", "the LIST group does not consist of one repeated field", location)
    elif len(repeated.children) != 1 or repeated.children[0].repetition == REPEATED:
        findings.add(
            "schema-list-legacy", "the LIST group has two levels instead of three, as old writers wrote it", location
        )


def _check_map(node: SchemaTreeNode, findings: Findings, location: Location) -> None:
    repeated = _repeated_child(node)
    if node.repetition == REPEATED and (node.logical is None or node.logical.kind != "MAP_KEY_VALUE"):
        findings.add("schema-map", "the MAP group is itself repeated", location)
    elif node.logical is not None and node.logical.kind == "MAP_KEY_VALUE" and node.repetition == REPEATED:
        return  # old writers annotated the middle level of a map
    elif repeated is None or len(repeated.children) not in (1, 2):
        findings.add("schema-map", "the MAP group does not consist of a repeated group of key and value", location)
    elif repeated.children[0].repetition != REQUIRED:
        findings.add("schema-map-legacy", "the key of the map is not required", location)


def _check_variant(node: SchemaTreeNode, findings: Findings, location: Location) -> None:
    """Check the fields of a VARIANT group; a shredded one may lack the value (VariantShredding.md)."""
    fields = {child.path[-1]: child for child in node.children}
    metadata = fields.get("metadata")
    ok = metadata is not None and metadata.element.get("type") == BYTE_ARRAY
    value = fields.get("value")
    ok = ok and (value is None or value.element.get("type") == BYTE_ARRAY)
    if not ok or not fields.keys() <= {"metadata", "value", "typed_value"} or len(fields) < 2:
        findings.add("schema-variant", "the VARIANT group does not consist of metadata and a value", location)
        return
    assert metadata is not None
    if metadata.repetition != REQUIRED:
        findings.add("schema-variant", "the metadata of the VARIANT are not required", location)
    if "typed_value" in fields:
        _check_shredded(fields["typed_value"], findings)


def _check_decimal(node: SchemaTreeNode, findings: Findings, location: Location) -> None:
    logical, element = node.logical, node.element
    assert logical is not None
    precision, scale = logical.precision or 0, logical.scale or 0
    limit = _MAX_DIGITS.get(element["type"], max(precision, 0))
    if element["type"] == FIXED_LEN_BYTE_ARRAY:
        limit = math.floor(math.log10(2) * max(8 * element.get("type_length", 0) - 1, 0))
    if precision <= 0 or not 0 <= scale <= precision:
        findings.add(
            "schema-decimal",
            f"DECIMAL({precision}, {scale}) is not a type: the precision must be above 0, and the "
            "scale between 0 and the precision",
            location,
        )
    elif precision > limit:
        findings.add(
            "schema-decimal",
            f"DECIMAL({precision}, {scale}) has more digits than its physical type can hold ({limit})",
            location,
        )
    said = element.get("precision", precision), element.get("scale", scale)
    if said != (precision, scale):
        findings.add(
            "schema-converted",
            f"the logical type is DECIMAL({precision}, {scale}), but the schema element has "
            f"precision {said[0]} and scale {said[1]}",
            location,
        )


_LOGICAL_TYPE_CHECKS: dict[str, Callable[[SchemaTreeNode, Findings, Location], None]] = {
    "LIST": _check_list,
    "MAP": _check_map,
    "MAP_KEY_VALUE": _check_map,
    "VARIANT": _check_variant,
    "DECIMAL": _check_decimal,
}


def check_value_range(
    leaf: Leaf, order: ColumnOrder, actual: ValueBounds, findings: Findings, location: Location
) -> None:
    """Check that the bounds of a page are in the range of the logical type."""
    logical = leaf.logical
    if logical is None or actual.min_value is None or actual.max_value is None:
        return
    low, high = _value_range(leaf)
    if low is None or high is None:
        return
    for value in (actual.min_value, actual.max_value):
        if not low <= order.sort_key(value) <= high:
            quoted = f"value {order.sort_key(value):,}" if findings.may_quote(location) else "a value"
            findings.add("page-range", f"{quoted} is out of range for {logical}", location)
            return


def _value_range(leaf: Leaf) -> tuple[int | None, int | None]:
    logical = leaf.logical
    assert logical is not None
    if logical.kind == "DECIMAL" and (logical.precision or 0) > 0:
        most = 10 ** min(logical.precision or 0, 1000) - 1
        return -most, most
    if logical.kind == "INTEGER" and leaf.physical == INT32 and logical.bit_width in (8, 16):
        bits = logical.bit_width
        return (-(1 << bits - 1), (1 << bits - 1) - 1) if logical.signed else (0, (1 << bits) - 1)
    if logical.kind == "TIME" and leaf.physical in (INT32, INT64) and logical.unit in _DAY:
        return 0, _DAY[logical.unit]
    return None, None


@dataclass
class SchemaTreeNode:
    """Schema element with its children."""

    element: dict[str, Any]
    ordinal: int
    path: tuple[str, ...]
    children: list[SchemaTreeNode] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Dotted path."""
        return ".".join(self.path)

    @property
    def is_leaf(self) -> bool:
        """Whether the element holds values."""
        return "type" in self.element and not self.element.get("num_children")

    @property
    def repetition(self) -> int:
        """Repetition type; REQUIRED if missing."""
        return int(self.element.get("repetition_type", REQUIRED))

    @property
    def logical(self) -> LogicalType | None:
        """Logical type, or else the converted type as one."""
        union = self.element.get("logicalType")
        if union is not None:
            return _logical_type(union)
        converted = self.element.get("converted_type")
        if converted == _CONVERTED_DECIMAL:
            precision, scale = self.element.get("precision", -1), self.element.get("scale", 0)
            return LogicalType("DECIMAL", precision=precision, scale=scale)
        if converted == LEGACY_NULL_TYPE:
            return LogicalType("UNKNOWN")
        return CONVERTED_TYPES.get(converted) if converted is not None else None


def _logical_type(union: dict[str, Any]) -> LogicalType | None:
    for kind, about in union.items():
        unit = next(iter(about.get("unit", {})), None)
        algorithm = about.get("algorithm")
        return LogicalType(
            kind,
            bit_width=about.get("bitWidth"),
            signed=about.get("isSigned"),
            unit=unit,
            utc=about.get("isAdjustedToUTC"),
            precision=about.get("precision"),
            scale=about.get("scale"),
            crs=about.get("crs"),
            algorithm=None if algorithm is None else str(algorithm),
        )
    return None


def check_elements(group: SchemaTreeNode, findings: Findings) -> None:
    """Check the elements within a group at all depths."""
    waiting = [group]
    while waiting:
        group = waiting.pop()
        for name, count in Counter(child.path[-1] for child in group.children).items():
            if count > 1:
                where = f"the group {group.name!r}" if group.path else "the schema"
                findings.add("schema-names", f"{where} has {pluralize(count, 'field')} named {name!r}")
        for child in group.children:
            _check_element(child, findings)
        waiting += reversed(group.children)


def _check_element(node: SchemaTreeNode, findings: Findings) -> None:
    element, place = node.element, Location(column=node.name)
    if "repetition_type" not in element:
        findings.add("schema-repetition", "the schema element has no repetition_type", place)
    if "type" in element and element.get("num_children"):
        findings.add("schema-type", "the schema element has both a physical type and children", place)
    elif "type" not in element and "num_children" not in element:
        findings.add("schema-type", "the schema element has neither a physical type nor num_children", place)
    elif "type" not in element and not node.children:
        findings.add("schema-empty-group", "the group has no fields", place)
    if element.get("type") == FIXED_LEN_BYTE_ARRAY and element.get("type_length", -1) < 0:
        findings.add("schema-length", "the FIXED_LEN_BYTE_ARRAY column has no valid type_length", place)
    logical = node.logical
    if logical is None:
        return
    trouble = _logical_type_error(node, logical)
    if trouble:
        findings.add("schema-logical", trouble, place)
    elif logical.kind in _LOGICAL_TYPE_CHECKS:
        _LOGICAL_TYPE_CHECKS[logical.kind](node, findings, place)
    _check_converted(node, logical, findings, place)


def _logical_type_error(node: SchemaTreeNode, logical: LogicalType) -> str | None:
    """Return why the element cannot have its logical type; None if it can."""
    physical = node.element.get("type")
    if (logical.kind in _GROUP_TYPES) != (physical is None):
        return f"{logical} cannot annotate {'a group' if physical is None else 'a leaf'}"
    if physical is None or logical.kind not in _PHYSICAL_TYPES:
        return None
    name = enum_value("Type", physical)
    length = node.element.get("type_length")
    if physical not in _PHYSICAL_TYPES[logical.kind]:
        return f"{logical} cannot annotate {name!s}"
    if logical.kind in _LENGTHS and length != _LENGTHS[logical.kind]:
        return f"{logical} needs {_LENGTHS[logical.kind]} bytes, but type_length is {length}"
    if logical.kind == "TIME" and _TIME_TYPES.get(logical.unit or "", physical) != physical:
        return f"{logical} cannot annotate {name!s}"
    if logical.kind == "INTEGER" and _INTEGER_TYPES.get(logical.bit_width or 0) != physical:
        return f"{logical} cannot annotate {name!s}"
    return None


def _check_converted(node: SchemaTreeNode, logical: LogicalType, findings: Findings, location: Location) -> None:
    """Check that the converted type, if present, agrees with the logical type."""
    converted = node.element.get("converted_type")
    if "logicalType" not in node.element or converted is None:
        return
    as_logical = LogicalType("DECIMAL") if converted == _CONVERTED_DECIMAL else CONVERTED_TYPES.get(converted)
    if as_logical is None:
        return
    same = as_logical.kind == logical.kind and all(
        getattr(as_logical, name) in (None, getattr(logical, name)) for name in ("bit_width", "signed", "unit")
    )
    if not same:
        name = enum_value("ConvertedType", converted)
        findings.add("schema-converted", f"the converted type is {name!s}, but the logical type is {logical}", location)


def _repeated_child(node: SchemaTreeNode) -> SchemaTreeNode | None:
    return node.children[0] if len(node.children) == 1 and node.children[0].repetition == REPEATED else None


def _check_shredded(typed: SchemaTreeNode, findings: Findings) -> None:
    """Check that the groups of shredded fields and elements are required (VariantShredding.md)."""
    waiting = [typed]
    while waiting:
        typed = waiting.pop()
        groups = typed.children
        if typed.logical is not None and typed.logical.kind == "LIST":
            groups = [group for repeated in typed.children for group in repeated.children]
        for group in groups:
            if group.repetition != REQUIRED:
                findings.add(
                    "writer-variant",
                    "the group of a shredded field or element is not required",
                    Location(column=group.name),
                )
            waiting += [child for child in group.children if child.path[-1] == "typed_value"]
