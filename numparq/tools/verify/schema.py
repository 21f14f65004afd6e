"""Check the schema tree: root, nesting, leaf columns, column orders."""

from __future__ import annotations

from typing import Any

from numparq.format.column_order import NO_ORDER, ColumnOrder, leaf_order
from numparq.format.physical_type import BOOLEAN, FIXED_LEN_BYTE_ARRAY
from numparq.format.schema import MAX_SCHEMA_DEPTH, OPTIONAL, REPEATED, REQUIRED, Leaf
from numparq.util.pluralize import agree_noun, pluralize

from .deviations import Findings
from .schema_elements import SchemaTreeNode, check_elements

_ORDERS = {None: "type", "TYPE_ORDER": "type", "IEEE_754_TOTAL_ORDER": "ieee754", "INT96_TIMESTAMP_ORDER": "int96"}

_BOUNDS = ("min_value", "max_value")


def orders_by_name(leaves: list[Leaf | None], names: list[str | None]) -> list[ColumnOrder]:
    """Return the order of each leaf: the type's if the file names none, no order if the name is unknown."""
    found = []
    for leaf, name in zip(leaves, names, strict=True):
        order = _ORDERS.get(name)
        found.append(NO_ORDER if leaf is None or order is None else leaf_order(leaf, order))
    return found


# --- tree -------------------------------------------------------------------------------------------------------------


def read_schema_tree(metadata: dict[str, Any], findings: Findings) -> SchemaTreeNode | None:
    """Build and check the tree of schema elements; return its root, None if they are no tree."""
    elements = metadata.get("schema", [])
    if not elements:
        findings.add("schema-root", "the schema is empty: it has no root")
        return None
    root = SchemaTreeNode(elements[0], 0, ())
    _check_root(root, findings)
    open_groups = [(root, elements[0].get("num_children", 0))]
    for number, element in enumerate(elements[1:], start=1):
        while open_groups and len(open_groups[-1][0].children) >= open_groups[-1][1]:
            open_groups.pop()
        if not open_groups:
            findings.add(
                "schema-tree",
                f"the schema has {pluralize(len(elements), 'element')}, but its groups hold only {number:,}",
            )
            return None
        group = open_groups[-1][0]
        node = SchemaTreeNode(element, number, (*group.path, element.get("name", "")))
        group.children.append(node)
        if element.get("num_children", 0) > 0:
            if len(open_groups) > MAX_SCHEMA_DEPTH:
                findings.add(
                    "not-checked", f"the schema is nested deeper than {MAX_SCHEMA_DEPTH} groups, the limit of numparq"
                )
                return None
            open_groups.append((node, element["num_children"]))
    if any(len(group.children) < count for group, count in open_groups):
        findings.add("schema-tree", "the schema ends before all groups have num_children children")
        return None
    check_elements(root, findings)
    return root


def _check_root(root: SchemaTreeNode, findings: Findings) -> None:
    element = root.element
    if "type" in element or element.get("num_children") is None:
        findings.add("schema-root", "the root of the schema is not a group: it has a physical type, or no num_children")
    if element.get("repetition_type", REQUIRED) == REPEATED:
        findings.add("schema-root", "the root of the schema is repeated")


# --- leaves -----------------------------------------------------------------------------------------------------------


def schema_leaves(root: SchemaTreeNode) -> list[Leaf | None]:
    """Return the leaf columns in schema order; None for those whose values cannot be decoded."""
    found: list[Leaf | None] = []
    waiting: list[tuple[SchemaTreeNode, int, int, tuple[int, ...]]]
    waiting = [(child, column, 0, (0,)) for column, child in reversed(list(enumerate(root.children)))]
    while waiting:
        node, column, definition, lists = waiting.pop()
        definition += node.repetition in (OPTIONAL, REPEATED)
        lists = (*lists, definition) if node.repetition == REPEATED else lists
        waiting += [(child, column, definition, lists) for child in reversed(node.children)]
        if node.is_leaf:
            found.append(_leaf(node, len(found), column, definition, lists))
    return found


def _leaf(node: SchemaTreeNode, index: int, column: int, definition: int, lists: tuple[int, ...]) -> Leaf | None:
    physical, length = node.element["type"], node.element.get("type_length")
    known = BOOLEAN <= physical <= FIXED_LEN_BYTE_ARRAY and REQUIRED <= node.repetition <= REPEATED
    if not known or (physical == FIXED_LEN_BYTE_ARRAY and (length is None or length < 0)):
        return None
    length = length if physical == FIXED_LEN_BYTE_ARRAY else None
    return Leaf(
        index,
        column,
        node.path,
        physical,
        length,
        node.logical,
        definition,
        len(lists) - 1,
        node.repetition,
        node.ordinal,
        lists,
    )


def read_column_orders(metadata: dict[str, Any], num_leaves: int, findings: Findings) -> list[str | None]:
    """Return the name of each leaf's column order; None if the file has none, empty if it is unknown."""
    orders = metadata.get("column_orders")
    if orders is None:
        if _has_bounds(metadata):
            findings.add(
                "column-orders-bounds",
                "the footer has bounds but no column orders: readers ignore the bounds",
            )
        return [None] * num_leaves
    if len(orders) != num_leaves:
        findings.add(
            "column-orders",
            f"the footer has {len(orders)} column orders for {num_leaves} {agree_noun(num_leaves, 'leaf column')}",
        )
        return [None] * num_leaves
    return [next(iter(order), "") for order in orders]


def _has_bounds(metadata: dict[str, Any]) -> bool:
    """Whether any column chunk has bounds that need column orders; the deprecated ones do not."""
    chunks = [chunk for group in metadata.get("row_groups", []) for chunk in group.get("columns", [])]
    if any("column_index_offset" in chunk for chunk in chunks):
        return True
    return any(name in chunk.get("meta_data", {}).get("statistics", {}) for chunk in chunks for name in _BOUNDS)
