"""Check that columns fit those written before: earlier frames, or the file that is appended to."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from numparq.errors import SchemaError
from numparq.format.footer.file_metadata import Footer
from numparq.format.logical_type import LogicalType, LogicalTypeReader
from numparq.format.schema import REPETITION_NAMES
from numparq.format.schema_node import SchemaNode
from numparq.format.thrift.idl import enum_value

_OPTIONAL, _REPEATED = 1, 2
_NAMED_FREELY = ("LIST", "MAP", "MAP_KEY_VALUE")  # groups within which names mean nothing
# What says no more than the physical type does.
_PLAIN = {("INT32", 32), ("INT64", 64)}


def check_columns(nodes: Sequence[SchemaNode], known: Sequence[SchemaNode]) -> None:
    """Raise SchemaError if a frame's columns are not those written before; the message has the first difference."""
    _check_names([node.name for node in known], [node.name for node in nodes])
    for node, before in zip(nodes, known, strict=True):
        if node != before:
            raise _difference(node, before, (node.name,))


def _difference(node: SchemaNode, before: SchemaNode, path: tuple[str, ...]) -> SchemaError:
    """Return the error for two nodes that differ, here or in the first of their fields that does."""
    column = ".".join(path)
    for ours, theirs in (
        (_described(node), _described(before)),
        (REPETITION_NAMES[node.repetition], REPETITION_NAMES[before.repetition]),
        (f"field id {node.field_id}", f"field id {before.field_id}"),
        ([child.name for child in node.children], [child.name for child in before.children]),
    ):
        if ours != theirs:
            return SchemaError(f"the frame has {ours}, but the file has {theirs}", column=column)
    pairs = zip(node.children, before.children, strict=True)
    inner, other = next((inner, other) for inner, other in pairs if inner != other)
    return _difference(inner, other, (*path, inner.name))


def conform_to_file(footer: Footer, columns: Sequence[Any]) -> list[Any]:
    """Compare the schema of a file with that of frames that are to be appended.

    Names within lists and maps, and field ids, are taken from the file; a column without nulls in it goes into one that
    may have some. All else has to be the same.

    Parameters
    ----------
    footer : Footer
        The file's.
    columns : sequence of Node
        The frames' top-level columns.

    Returns
    -------
    list of Node
        The columns as the file has them.

    Raises
    ------
    SchemaError
        When they differ; it names the first column that does, and how.
    """
    logical_types = LogicalTypeReader(footer.schema_layout, footer.text)
    known = [_FileElement(footer, number, logical_types) for number in range(len(footer.schema_records))]
    names = [element.name for element in known]
    top, _ = _children(known, 0)
    _check_names([names[number] for number in top], [column.name for column in columns])
    return [_conform(known, number, column, (column.name,), False) for number, column in zip(top, columns, strict=True)]


def _check_names(file: list[str], frame: list[str]) -> None:
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
        raise SchemaError(f"the file has {len(file)} columns, the frame {len(frame)}, by the same names")
    first = next(number for number, name in enumerate(file) if name != frame[number])
    raise SchemaError(f"the order of the columns differs: at {first} the file has {file[first]!r}", column=frame[first])


def _index_hint(name: str) -> str:
    """Return what to do if only some of the frames have an index to write."""
    return "; use index=False, or the same index in all frames" if name.startswith("__index_level_") else ""


class _FileElement:
    """A SchemaElement of the file."""

    def __init__(self, footer: Footer, number: int, logical_types: LogicalTypeReader) -> None:
        words, slots = footer.schema_records[number].tolist(), footer.schema_layout.slots
        self.name = footer.text(*words[slots["name"].word :][:2])
        self.children = max(words[slots["num_children"].word], 0)
        self.repetition = max(words[slots["repetition_type"].word], 0)
        self.is_leaf = bool(footer.is_leaf[number])
        self.physical = words[slots["type"].word] if self.is_leaf else None
        self.type_length = words[slots["type_length"].word] if self.physical == 7 else 0
        self.field_id = words[slots["field_id"].word] if words[0] >> slots["field_id"].field.id & 1 else None
        self.logical = logical_types.read(words)


def _children(elements: list[_FileElement], number: int) -> tuple[list[int], int]:
    """List the elements that a group has, and where the group ends."""
    found, place = [], number + 1
    for _ in range(elements[number].children):
        if place >= len(elements):
            raise SchemaError("the schema of the file is incomplete")
        found.append(place)
        place = _end(elements, place)
    return found, place


def _end(elements: list[_FileElement], number: int) -> int:
    left, place = 1, number
    while left and place < len(elements):
        left += elements[place].children - 1
        place += 1
    return place


def _conform(elements: list[_FileElement], number: int, node: Any, path: tuple[str, ...], names_are_free: bool) -> Any:
    element = elements[number]
    column = ".".join(path)
    if not names_are_free and element.name != node.name:
        raise SchemaError(f"the file has the field {element.name!r}, the frame {node.name!r}", column=column)
    if _meaning(element) != _meaning(node):
        raise SchemaError(f"the file has {_described(element)}, the frame {_described(node)}", column=column)
    repetition = node.repetition
    if element.repetition != repetition:
        if len(path) > 1 or repetition == _REPEATED or element.repetition != _OPTIONAL or node.children:
            theirs, ours = (str(enum_value("FieldRepetitionType", item)) for item in (element.repetition, repetition))
            raise SchemaError(f"the column is {theirs} in the file, and {ours} in the frame", column=column)
        repetition = _OPTIONAL
    inside, _ = _children(elements, number)
    if len(inside) != len(node.children):
        counts = f"{len(inside)} in the file, {len(node.children)} in the frame"
        raise SchemaError(f"the number of fields differs: {counts}", column=column)
    names_are_free = (node.logical is not None and node.logical.kind in _NAMED_FREELY) or (
        names_are_free and node.repetition == _REPEATED
    )
    children = tuple(
        _conform(elements, child, inner, (*path, inner.name), names_are_free)
        for child, inner in zip(inside, node.children, strict=True)
    )
    return dataclasses.replace(
        node, name=element.name, repetition=repetition, children=children, field_id=element.field_id
    )


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
