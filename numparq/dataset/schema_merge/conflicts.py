"""Conflicts of a schema merge: columns that no type holds in all files, which only their readers meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from numparq.errors import SchemaError
from numparq.format.arrow_type import ArrowType
from numparq.format.footer.file_metadata import SchemaElements
from numparq.format.key_values.spark import SparkCalendar
from numparq.format.logical_type import LogicalType
from numparq.format.physical_type import INT32
from numparq.format.schema import Schema

from .fields import LeafStorage, SchemaField, TypeConflict

_STORAGE = LeafStorage(INT32, 0, LogicalType("UNKNOWN"))


def conflicting_field(field: SchemaField, error: SchemaError) -> SchemaField:
    """Return a field with the name of another one that stands for a conflict: a leaf without values."""
    conflict = TypeConflict.from_error(error)
    return SchemaField(field.name, "leaf", True, field.field_id, _STORAGE, ArrowType("null"), conflict=conflict)


def find_conflicts(fields: Sequence[SchemaField | None]) -> dict[int, TypeConflict]:
    """Return the conflicts of a schema's fields by leaf ordinal."""
    leaves: list[SchemaField] = []
    to_come = [field for field in reversed(fields) if field is not None]
    while to_come:
        field = to_come.pop()
        if field.kind == "leaf":
            leaves.append(field)
        to_come += reversed(field.children)
    return {at: leaf.conflict for at, leaf in enumerate(leaves) if leaf.conflict is not None}


class ConflictingSchema(Schema):
    """A merged schema some of whose columns conflict between files; its text has the conflicts below the tree."""

    def __init__(
        self, elements: SchemaElements, calendar: SparkCalendar, conflicts: Mapping[int, TypeConflict]
    ) -> None:
        super().__init__(elements, calendar)
        self._elements = elements
        self._conflicts = dict(conflicts)

    def __str__(self) -> str:
        lines = [f"conflict: {conflict.to_error()}" for conflict in self._conflicts.values()]
        return "\n".join([super().__str__(), *lines])

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self._elements, self.calendar, self._conflicts)
