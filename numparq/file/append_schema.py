"""Schema of the file that is appended to, and how the columns of a frame agree with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from numparq.errors import SchemaError
from numparq.format.arrow_type import ArrowType
from numparq.format.footer.file_metadata import Footer
from numparq.format.key_values.arrow import ArrowField, ArrowHint, ArrowSchema
from numparq.format.logical_type import LogicalType, LogicalTypeReader
from numparq.format.schema import OPTIONAL, REPEATED, REPETITION_NAMES
from numparq.format.schema_node import SchemaNode
from numparq.format.thrift.idl import enum_value
from numparq.from_pandas.user_schema import UserColumn
from numparq.types.arrow_fields import LIST_KINDS, MAX_DEPTH, NESTED_KINDS, field_from_node
from numparq.types.parquet_type import parquet_type
from numparq.util.pluralize import agree_noun

_NAMED_FREELY = ("LIST", "MAP", "MAP_KEY_VALUE")  # groups within which names mean nothing
# What says no more than the physical type does.
_PLAIN = {("INT32", 32), ("INT64", 64)}


def conform_to_file(footer: Footer, columns: Sequence[SchemaNode]) -> list[SchemaNode]:
    """Return columns as a file has them: `conform` for each of its columns, in its order.

    Raises SchemaError for the first difference.
    """
    known = file_nodes(footer)
    check_names([node.name for node in known], [column.name for column in columns])
    first = next((number for number, node in enumerate(known) if node.name != columns[number].name), None)
    if first is not None:
        raise SchemaError(
            f"the order of the columns differs: at {first} the file has {known[first].name!r}",
            column=columns[first].name,
        )
    return [conform(node, column, (column.name,)) for node, column in zip(known, columns, strict=True)]


def file_columns(footer: Footer) -> list[UserColumn]:
    """Return the columns of a file, with the Arrow types that ``ARROW:schema`` has for them."""
    columns = [UserColumn(node, field_from_node(node)) for node in file_nodes(footer)]
    return hinted_columns(columns, footer.key_value_metadata.get("ARROW:schema"))


def hinted_columns(columns: Sequence[UserColumn], arrow_schema: str | bytes | memoryview | None) -> list[UserColumn]:
    """Return columns with the Arrow types of a value of ``ARROW:schema``, where these are stored so."""
    schema = ArrowSchema(arrow_schema, len(columns))
    return [
        UserColumn(column.node, _hinted_field(column.field, schema.field_hint(number)))
        for number, column in enumerate(columns)
    ]


def _hinted_field(field: ArrowField, hint: ArrowHint | None) -> ArrowField:
    """Return a field with the type that the Arrow schema has for it, where the values are stored so."""
    kind = hint.type if hint is not None else None
    if hint is None or kind is None:
        return field
    if field.children:
        children = hint.children(len(field.children)) if _is_same_group(field.type, kind) else None
        if children is None:
            return field
        pairs = zip(field.children, children, strict=True)
        return replace(field, type=kind, children=tuple(_hinted_field(child, inner) for child, inner in pairs))
    try:
        is_stored_so = kind.kind not in NESTED_KINDS and parquet_type(kind) == parquet_type(field.type)
    except (KeyError, SchemaError):
        return field
    return replace(field, type=kind) if is_stored_so else field


def _is_same_group(known: ArrowType, hinted: ArrowType) -> bool:
    return known.kind == hinted.kind or (known.kind in LIST_KINDS and hinted.kind in LIST_KINDS)


def file_nodes(footer: Footer) -> list[SchemaNode]:
    """Return the top-level columns of a file; SchemaError if its schema is incomplete or too deep."""
    logical_types = LogicalTypeReader(footer.schema_layout, footer.text)
    elements = [_FileElement(footer, number, logical_types) for number in range(len(footer.schema_records))]
    nodes: list[tuple[SchemaNode, int]] = []  # with their depth, the next one last
    for element in reversed(elements):  # a group's children come before it, then
        if element.num_children > len(nodes):
            raise SchemaError("the schema of the file is incomplete")
        children = [nodes.pop() for _ in range(element.num_children)]
        depth = 1 + max((inner for _, inner in children), default=0)
        if depth > 2 * MAX_DEPTH:
            raise SchemaError(f"the schema of the file is nested more than {2 * MAX_DEPTH} deep")
        nodes.append((element.node(tuple(node for node, _ in children)), depth))
    return list(nodes[-1][0].children) if nodes else []


def check_names(file: Sequence[str], frame: Sequence[str]) -> None:
    """Raise SchemaError if a frame has other columns than a file; their order may differ."""
    if file == frame:
        return
    in_file, in_frame = set(file), set(frame)
    missing = [name for name in file if name not in in_frame]
    if missing:
        raise SchemaError(
            f"the file has the column {missing[0]!r}, but the frame does not{_index_hint(missing[0])}",
            column=missing[0],
        )
    extra = [name for name in frame if name not in in_file]
    if extra:
        raise SchemaError(
            f"the frame has the column {extra[0]!r}, but the file does not{_index_hint(extra[0])}", column=extra[0]
        )
    if len(file) != len(frame):
        raise SchemaError(
            f"the file has {len(file)} {agree_noun(len(file), 'column')}, the frame {len(frame)}, by the same names"
        )


def _index_hint(name: str) -> str:
    """Return what to do if only some of the frames have an index to write."""
    return "; use index=False, or the same index in all frames" if name.startswith("__index_level_") else ""


class _FileElement:
    """A SchemaElement of the file."""

    def __init__(self, footer: Footer, number: int, logical_types: LogicalTypeReader) -> None:
        words, slots = footer.schema_records[number].tolist(), footer.schema_layout.slots
        self.name = footer.text(*words[slots["name"].word :][:2])
        self.num_children = max(words[slots["num_children"].word], 0)
        self.repetition = max(words[slots["repetition_type"].word], 0)
        self.is_leaf = bool(footer.is_leaf[number])
        self.physical = words[slots["type"].word] if self.is_leaf else None
        self.type_length = words[slots["type_length"].word] if self.physical == 7 else 0
        self.field_id = words[slots["field_id"].word] if words[0] >> slots["field_id"].field.id & 1 else None
        self.logical = logical_types.read(words)

    def node(self, children: tuple[SchemaNode, ...]) -> SchemaNode:
        """Return the element as a node with children."""
        length = self.type_length or 0
        return SchemaNode(self.name, self.repetition, self.physical, length, self.logical, children, self.field_id)


def conform(known: SchemaNode, node: SchemaNode, path: tuple[str, ...], names_are_free: bool = False) -> SchemaNode:
    """Return a column as a file has it, which stores the same values.

    Names within lists and maps, and field ids, are taken from the file; a column without nulls in it goes into one that
    may have some. Raises SchemaError for any other difference; it names the first one, by `path`.
    """
    column = ".".join(path)
    if not names_are_free and known.name != node.name:
        raise SchemaError(f"the file has the field {known.name!r}, the frame {node.name!r}", column=column)
    if _meaning(known) != _meaning(node):
        raise SchemaError(f"the file has {_described(known)}, the frame {_described(node)}", column=column)
    repetition = node.repetition
    if known.repetition != repetition:
        if len(path) > 1 or repetition == REPEATED or known.repetition != OPTIONAL or node.children:
            theirs, ours = (REPETITION_NAMES[item].upper() for item in (known.repetition, repetition))
            raise SchemaError(f"the column is {theirs} in the file, and {ours} in the frame", column=column)
        repetition = OPTIONAL
    if len(known.children) != len(node.children):
        counts = f"{len(known.children)} in the file, {len(node.children)} in the frame"
        raise SchemaError(f"the number of fields differs: {counts}", column=column)
    names_are_free = (node.logical is not None and node.logical.kind in _NAMED_FREELY) or (
        names_are_free and node.repetition == REPEATED
    )
    children = tuple(
        conform(child, inner, (*path, inner.name), names_are_free)
        for child, inner in zip(known.children, node.children, strict=True)
    )
    return replace(node, name=known.name, repetition=repetition, children=children, field_id=known.field_id)


def _meaning(node: Any) -> tuple[Any, ...]:
    """Return what must be equal in two nodes whose values are to be appended."""
    physical = None if node.physical is None else str(enum_value("Type", node.physical))
    return physical, node.type_length or 0, _logical(node.logical, physical)


def _logical(logical: LogicalType | None, physical: str | None) -> LogicalType | None:
    """Return a logical type, or None for one that only repeats the physical type, such as signed 32 bits of INT32."""
    if logical is None or logical.kind == "MAP_KEY_VALUE" or not logical.kind:
        return None
    if logical.kind == "INTEGER" and logical.signed and (physical, logical.bit_width) in _PLAIN:
        return None
    return logical


def _described(node: Any) -> str:
    if node.physical is None:
        kind = "a group"
    else:
        kind = str(enum_value("Type", node.physical)) + (f"({node.type_length})" if node.type_length else "")
    return f"{kind} {node.logical}" if node.logical is not None else kind
