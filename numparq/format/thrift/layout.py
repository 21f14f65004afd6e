"""Layouts of Thrift structs in int64 words, and the tables that drive the decoding kernels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from numparq.kernels.thrift import records, wire

from .idl import IdlField, IdlStruct, load_idl

POSITION = "@"  # last name of a path to a struct's position in the data

WIRE_TYPES = {
    "bool": wire.TRUE,
    "i8": wire.I8,
    "i16": wire.I16,
    "i32": wire.I32,
    "enum": wire.I32,
    "i64": wire.I64,
    "double": wire.DOUBLE,
    "binary": wire.BINARY,
    "string": wire.BINARY,
    "struct": wire.STRUCT,
    "list": wire.LIST,
}
_SMALLEST = {"bool": 0, "double": 8}  # least encoded bytes of a value; 1 for all other kinds
# fastparquet writes a bool for the repetition type of columns whose nulls it is to infer. Elsewhere, a bool in place of
# an enum is damage: one bit can make it the field after the damaged one.
_ENUM_OR_BOOL = "repetition_type"
_ABSENT = {"binary": (-1, 0), "string": (-1, 0), "list": (-1, 0)}

Projection = dict[str, Any]  # field name -> projection of it; {} is everything


@dataclass(frozen=True, eq=False)
class FieldSlot:
    """A field's first word within its record, and the record layout of its struct or elements."""

    field: IdlField
    word: int
    record: RecordLayout | None


@dataclass(frozen=True, eq=False)
class RecordLayout:
    """Layout of one struct in words.

    Attributes
    ----------
    words : int
        Words of a record; 0 if only its presence is kept.
    slots : dict of str to FieldSlot
        Projected fields by name.
    start : int
        Word of the struct's position in the data, or -1.
    template : tuple of int
        Words of an empty record.
    depth : int
        Levels of nested structs, itself included.
    """

    struct: IdlStruct
    words: int
    slots: dict[str, FieldSlot]
    start: int
    template: tuple[int, ...]
    depth: int = field(default=1)


class ThriftLayout:
    """Layout of a struct or a projection of it, with the table that drives the kernels.

    The projection has dotted paths through structs and lists, each with all below it; ``@`` is a struct's position.
    """

    def __init__(self, root: str, projection: Iterable[str] | None = None) -> None:
        self.record = _record(root, _tree(projection or ()), {})
        if not self.record.words:
            raise ValueError(f"{root} has no fields")
        if self.record.depth > wire.MAX_DEPTH:
            raise ValueError(f"{root} is nested more than {wire.MAX_DEPTH} levels deep")
        self.words = self.record.words
        self.table = _table(self.record)
        self._slots: dict[str, int] = {}

    def slot(self, path: str) -> int:
        """Return a field's word (of two, the first), counted from the innermost list element or the root.

        A struct's word is its presence mask; ``@`` at the end of the path is the word of its position.
        """
        found = self._slots.get(path)
        if found is None:
            found = self._slots[path] = self._slot(path)
        return found

    def _slot(self, path: str) -> int:
        record, word, names = self.record, 0, path.split(".")
        for name in names[:-1]:
            slot = record.slots[name]
            if slot.record is None:
                raise KeyError(path)
            word = 0 if slot.field.kind == "list" else word + slot.word
            record = slot.record
        return word + (record.start if names[-1] == POSITION else record.slots[names[-1]].word)

    def record_layout(self, path: str) -> RecordLayout:
        """Return the layout of a nested struct, or of the elements of a list of structs."""
        record = self.record
        for name in path.split("."):
            inner = record.slots[name].record
            if inner is None:
                raise KeyError(path)
            record = inner
        return record

    def bit(self, path: str) -> int:
        """Return a field's bit in the presence mask of its struct, projected or not."""
        *outer, name = path.split(".")
        record = self.record_layout(".".join(outer)) if outer else self.record
        return 1 << next(field.id for field in record.struct.fields if field.name == name)


@lru_cache(maxsize=64)
def thrift_layout(root: str, *wanted: str) -> ThriftLayout:
    """Return a cached `ThriftLayout`."""
    return ThriftLayout(root, wanted)


def _tree(paths: Iterable[str]) -> Projection:
    """Return dotted paths as a tree; a path that is the prefix of another selects everything below it."""
    tree: Projection = {}
    whole: list[tuple[Projection, str]] = []
    for path in paths:
        inner, names = tree, path.split(".")
        for name in names[:-1]:
            inner = inner.setdefault(name, {})
        inner.setdefault(names[-1], {})
        whole.append((inner, names[-1]))
    for inner, name in whole:
        inner[name] = {}
    return tree


def _record(name: str, projection: Projection, made: dict[tuple[str, str], RecordLayout]) -> RecordLayout:
    """Lay out a struct, once for each projection."""
    key = (name, repr(projection))
    if key not in made:
        struct = load_idl().structs[name]
        unknown = set(projection) - {field.name for field in struct.fields} - {POSITION}
        if unknown:
            raise KeyError(f"{name} has no field {', '.join(sorted(unknown))}")
        made[key] = _lay_out(struct, projection, made)
    return made[key]


def _lay_out(struct: IdlStruct, projection: Projection, made: dict[tuple[str, str], RecordLayout]) -> RecordLayout:
    fields = [field for field in struct.fields if not projection or field.name in projection]
    if not fields and POSITION not in projection:
        return RecordLayout(struct, 0, {}, -1, ())
    template, slots = [0], {}
    start = -1
    if POSITION in projection:
        start = len(template)
        template.append(-1)
    first = end = len(template)
    depth = 1
    for field_ in fields:
        refers = field_.refers if "struct" in (field_.kind, field_.element) else None
        inner = _record(refers, projection.get(field_.name, {}), made) if refers else None
        absent = _absent(field_, inner)
        word = first if struct.union else end
        slots[field_.name] = FieldSlot(field_, word, inner)
        template[word : word + len(absent)] = absent
        end = max(end, word + len(absent))
        depth = max(depth, 1 + inner.depth if inner else 1)
    return RecordLayout(struct, len(template), slots, start, tuple(template), depth)


def _absent(field_: IdlField, inner: RecordLayout | None) -> tuple[int, ...]:
    """Return the words of an absent field."""
    if field_.kind == "struct":
        assert inner is not None
        return inner.template
    if field_.kind in _ABSENT:
        return _ABSENT[field_.kind]
    return (-1 if field_.default is None else int(field_.default),)


@lru_cache(maxsize=256)
def _smallest(name: str) -> int:
    """Return the least encoded size of a valid struct in bytes: required fields and the stop byte."""
    return 1 + sum(
        1 + (_smallest(field.refers) if field.kind == "struct" and field.refers else _SMALLEST.get(field.kind, 1))
        for field in load_idl().structs[name].fields
        if field.required
    )


def _table(root: RecordLayout) -> np.ndarray:
    """Return the kernels' table of a layout: nodes, the root's first, then templates."""
    nodes: dict[int, tuple[int, RecordLayout]] = {}
    end = 0
    todo = [root]
    while todo:
        record = todo.pop(0)
        if id(record) not in nodes:
            nodes[id(record)] = (end, record)
            end += records.N_FIELDS + records.FIELD_WORDS * (1 + _largest(record))
            todo += [slot.record for slot in record.slots.values() if slot.record and slot.record.words]
    table = np.zeros(end + sum(record.words for _, record in nodes.values()), np.int64)
    for node, record in nodes.values():
        fields = record.struct.fields
        table[node : node + records.N_FIELDS] = (
            record.words,
            sum(1 << f.id for f in fields if f.required),
            sum(1 << f.id for f in fields),
            0 if record.struct.union else -1,
            _largest(record),
            end,
            record.start,
            _smallest(record.struct.name),
        )
        table[end : end + record.words] = record.template
        end += record.words
        table[node + records.N_FIELDS + records.F_WORD] = -1
        for field_ in fields:
            place = node + records.N_FIELDS + records.FIELD_WORDS * field_.id
            table[place : place + records.FIELD_WORDS] = _field_words(field_, record.slots.get(field_.name), nodes)
    return table


def _largest(record: RecordLayout) -> int:
    """Return the largest field id; presence masks have room for 62."""
    largest = max((field.id for field in record.struct.fields), default=0)
    assert largest <= 62
    return largest


def _field_words(
    field_: IdlField, slot: FieldSlot | None, nodes: dict[int, tuple[int, RecordLayout]]
) -> tuple[int, int, int, int]:
    """Return a field's type, word, element type and node for the kernels' table."""
    kind = WIRE_TYPES[field_.kind]
    if slot is None:
        return kind, -1, 0, 0
    if slot.record is not None and not slot.record.words:  # only its presence counts, which is in the mask
        if field_.kind == "list":
            raise ValueError(f"{field_.name}: elements without words cannot be laid out")
        return kind, -1, 0, 0
    element = WIRE_TYPES[field_.element] if field_.element else wire.TRUE * (field_.name == _ENUM_OR_BOOL)
    return kind, slot.word, element, nodes[id(slot.record)][0] if slot.record is not None else 0
