"""Schema nodes to write, and the schema elements and leaf columns they become."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from numparq.errors import SchemaError
from numparq.util.pluralize import pluralize

from .logical_type import CONVERTED_TYPES, LogicalType
from .schema import OPTIONAL, REPEATED, Leaf
from .thrift.idl import enum_value, load_idl

_INT32, _INT64, _BYTE_ARRAY, _FIXED = 1, 2, 6, 7  # enum Type
_CONVERTED_DECIMAL = 5
_MOST_DIGITS = {_INT32: 9, _INT64: 18}
_CONVERTED_ONLY = ("INTERVAL", "MAP_KEY_VALUE")
_VARIANT_VERSION = 1

# --- converted types ------------------------------------------------------------------------------------------------


_TO_CONVERTED = {logical: number for number, logical in CONVERTED_TYPES.items()}


# --- parameters of logical types ------------------------------------------------------------------------------------


def _temporal(logical: LogicalType) -> dict[str, Any]:
    return {"isAdjustedToUTC": logical.utc, "unit": {logical.unit: {}}}


def _geography(logical: LogicalType) -> dict[str, Any]:
    algorithms = load_idl().enums["EdgeInterpolationAlgorithm"]
    number = None if logical.algorithm is None else algorithms[logical.algorithm]
    return {"crs": logical.crs, "algorithm": number}


_PARAMETERS: dict[str, Callable[[LogicalType], dict[str, Any]]] = {
    "INTEGER": lambda logical: {"bitWidth": logical.bit_width, "isSigned": logical.signed},
    "DECIMAL": lambda logical: {"scale": logical.scale, "precision": logical.precision},
    "TIME": _temporal,
    "TIMESTAMP": _temporal,
    "VARIANT": lambda logical: {"specification_version": logical.version or _VARIANT_VERSION},
    "GEOMETRY": lambda logical: {"crs": logical.crs},
    "GEOGRAPHY": _geography,
}

# --- valid combinations ---------------------------------------------------------------------------------------------


_GROUPS = ("LIST", "MAP", "MAP_KEY_VALUE", "VARIANT", "FILE")
_BYTES = ("STRING", "ENUM", "JSON", "BSON", "GEOMETRY", "GEOGRAPHY")
_LENGTHS = {"UUID": 16, "FLOAT16": 2, "INTERVAL": 12}  # FIXED_LEN_BYTE_ARRAY lengths
_UNITS = {
    ("TIME", "MILLIS"): _INT32,
    ("TIME", "MICROS"): _INT64,
    ("TIME", "NANOS"): _INT64,
    ("TIMESTAMP", "MILLIS"): _INT64,
    ("TIMESTAMP", "MICROS"): _INT64,
    ("TIMESTAMP", "NANOS"): _INT64,
}
_WIDTHS = {8: _INT32, 16: _INT32, 32: _INT32, 64: _INT64}


@dataclass(frozen=True, slots=True)
class SchemaNode:
    """A schema node to write: a leaf column or a group.

    Attributes
    ----------
    name : str
        Name of the column, or of the field in its group.
    repetition : int
        REQUIRED, OPTIONAL or REPEATED.
    physical : int or None
        Physical type, 0 (BOOLEAN) to 7 (FIXED_LEN_BYTE_ARRAY); None for a group.
    type_length : int
        Bytes of a FIXED_LEN_BYTE_ARRAY value.
    logical : LogicalType or None
        Logical type.
    children : tuple of SchemaNode
        Nodes of a group.
    field_id : int or None
        Field id of the schema element.
    """

    name: str
    repetition: int = OPTIONAL
    physical: int | None = None
    type_length: int = 0
    logical: LogicalType | None = None
    children: tuple[SchemaNode, ...] = ()
    field_id: int | None = None


def leaf_columns(columns: Sequence[SchemaNode]) -> list[Leaf]:
    """Return the leaf columns of a schema in order; `Leaf.element` counts depth first from 0, the root."""
    found: list[Leaf] = []
    element = 0

    def walk(node: SchemaNode, column: int, path: tuple[str, ...], definition: int, repetition: int) -> None:
        nonlocal element
        element += 1
        path = (*path, node.name)
        definition += node.repetition in (OPTIONAL, REPEATED)
        repetition += node.repetition == REPEATED
        if node.physical is not None:
            length = node.type_length or None
            found.append(
                Leaf(
                    len(found),
                    column,
                    path,
                    node.physical,
                    length,
                    node.logical,
                    definition,
                    repetition,
                    node.repetition,
                    element,
                )
            )
        for child in node.children:
            walk(child, column, path, definition, repetition)

    for number, column in enumerate(columns):
        walk(column, number, (), 0, 0)
    return found


def to_schema_elements(columns: Iterable[SchemaNode]) -> list[dict[str, Any]]:
    """Return the schema elements of a schema, the root first and depth first, as dicts for `encode_struct`.

    Older readers get a converted type too, also for local times. SchemaError names an invalid node's column.
    """
    columns = tuple(columns)
    elements: list[dict[str, Any]] = [{"name": "schema", "num_children": len(columns)}]
    to_come: list[tuple[tuple[str, ...], SchemaNode]]
    to_come = [((column.name,), column) for column in reversed(columns)]
    while to_come:
        path, node = to_come.pop()
        elements.append(_element(node, path))
        to_come += [((*path, child.name), child) for child in reversed(node.children)]
    return elements


def _element(node: SchemaNode, path: tuple[str, ...]) -> dict[str, Any]:
    trouble = _node_error(node)
    if trouble:
        raise SchemaError(trouble, column=".".join(path))
    element: dict[str, Any] = {"name": node.name, "repetition_type": node.repetition, "field_id": node.field_id}
    if node.physical is None:
        element["num_children"] = len(node.children)
    else:
        element["type"] = node.physical
        if node.physical == _FIXED:
            element["type_length"] = node.type_length
    if node.logical is not None:
        element |= _annotation(node.logical)
    return element


def _annotation(logical: LogicalType) -> dict[str, Any]:
    """Return the fields of a schema element for a logical type."""
    made: dict[str, Any] = {"converted_type": _converted(logical)}
    if logical.kind not in _CONVERTED_ONLY:
        parameters = _PARAMETERS.get(logical.kind)
        made["logicalType"] = {logical.kind: parameters(logical) if parameters else {}}
    if logical.kind == "DECIMAL":
        made |= {"precision": logical.precision, "scale": logical.scale}
    return made


def _converted(logical: LogicalType) -> int | None:
    """Return the ConvertedType of a logical type, or None."""
    if logical.kind == "DECIMAL":
        return _CONVERTED_DECIMAL
    if logical.utc is False:  # the converted type is the same for local values
        logical = LogicalType(logical.kind, unit=logical.unit, utc=True)
    return _TO_CONVERTED.get(logical)


def _node_error(node: SchemaNode) -> str | None:
    """Return what is wrong with a node, apart from its children, or None."""
    if not 0 <= node.repetition <= 2:
        return f"the repetition type {node.repetition} is unknown; use 0 (REQUIRED), 1 (OPTIONAL) or 2 (REPEATED)"
    if node.physical is None:
        if not node.children:
            return "a group without fields cannot be stored in Parquet"
        wrong = node.logical is not None and node.logical.kind not in _GROUPS
        return f"logical type {node.logical} cannot annotate a group" if wrong else None
    if node.children:
        return "the schema node has both a physical type and fields"
    if not 0 <= node.physical <= _FIXED:
        return f"the physical type {node.physical} is unknown"
    if node.physical == _FIXED and node.type_length < 1:
        return f"a FIXED_LEN_BYTE_ARRAY needs a type_length of at least 1, not {node.type_length}"
    if node.logical is None:
        return None
    return _parameter_error(node.logical) or _physical_type_error(node, node.logical)


def _physical_type_error(node: SchemaNode, logical: LogicalType) -> str | None:
    """Check the physical type against the logical type."""
    kind, physical = logical.kind, node.physical
    if kind in _GROUPS:
        return f"logical type {logical} can only annotate a group"
    if kind in _BYTES and physical != _BYTE_ARRAY:
        return f"logical type {logical} needs BYTE_ARRAY, not {_type_name(physical)}"
    if kind in _LENGTHS and (physical != _FIXED or node.type_length != _LENGTHS[kind]):
        return f"logical type {logical} needs FIXED_LEN_BYTE_ARRAY of length {_LENGTHS[kind]}"
    if kind == "DATE" and physical != _INT32:
        return f"logical type DATE needs INT32, not {_type_name(physical)}"
    if (kind, logical.unit) in _UNITS and physical != _UNITS[kind, logical.unit or ""]:
        return (
            f"logical type {logical} needs {_type_name(_UNITS[kind, logical.unit or ''])}, not {_type_name(physical)}"
        )
    if kind == "INTEGER" and physical != _WIDTHS[logical.bit_width or 0]:
        return f"logical type {logical} needs {_type_name(_WIDTHS[logical.bit_width or 0])}, not {_type_name(physical)}"
    if kind == "DECIMAL":
        return _decimal_error(node, logical)
    return None


def _decimal_error(node: SchemaNode, logical: LogicalType) -> str | None:
    """Check that the physical type holds all decimals of the precision."""
    if node.physical == _BYTE_ARRAY:
        return None
    if node.physical == _FIXED:
        most = len(str((1 << 8 * node.type_length - 1) - 1)) - 1 if node.type_length < 1000 else 2000
    else:
        most = _MOST_DIGITS.get(node.physical or 0, 0)
    if not most:
        return f"logical type {logical} needs INT32, INT64, FIXED_LEN_BYTE_ARRAY or BYTE_ARRAY"
    if (logical.precision or 0) > most:
        return f"logical type {logical} has more than the {pluralize(most, 'digit')} that its physical type holds"
    return None


def _parameter_error(logical: LogicalType) -> str | None:
    kind = logical.kind
    if kind not in (*_kinds(), *_CONVERTED_ONLY):
        return f"the logical type {kind} is unknown"
    if kind == "INTEGER" and (logical.bit_width not in _WIDTHS or logical.signed is None):
        return "logical type INTEGER needs 8, 16, 32 or 64 bits, signed or unsigned"
    if kind in ("TIME", "TIMESTAMP") and ((kind, logical.unit) not in _UNITS or logical.utc is None):
        return f"logical type {kind} needs the unit MILLIS, MICROS or NANOS, adjusted to UTC or not"
    if kind == "DECIMAL" and not 0 <= _or(logical.scale, -1) <= _or(logical.precision, -1):
        return f"the scale of {logical} must be from 0 to the precision"
    if kind == "DECIMAL" and logical.precision == 0:
        return f"the precision of {logical} must be at least 1"
    if logical.algorithm is not None and logical.algorithm not in load_idl().enums["EdgeInterpolationAlgorithm"]:
        return f"the edge interpolation algorithm {logical.algorithm} is unknown"
    return None


def _or(value: int | None, default: int) -> int:
    return default if value is None else value


@lru_cache(maxsize=1)
def _kinds() -> tuple[str, ...]:
    """Return the members of the LogicalType union."""
    return tuple(field.name for field in load_idl().structs["LogicalType"].fields)


def _type_name(physical: int | None) -> str:
    """Return a physical type's name in the specification."""
    return "a group" if physical is None else str(enum_value("Type", physical))
