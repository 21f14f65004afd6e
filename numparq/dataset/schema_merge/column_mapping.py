"""Column mapping: which column of a file is which of the dataset, by name, position or field id."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from numparq.column.nested.nested_type import NestedType, iter_leaves, project_leaves, resolve_nested_type
from numparq.column.projection import NestedProjection
from numparq.errors import SchemaError, error_context
from numparq.format.physical_type import INT96
from numparq.format.schema import Leaf, Schema
from numparq.types.common_type import value_type

from .fields import SchemaField

# Returns the key of each of several sibling fields; fields with equal keys are one column.
FieldKeyFunction = Callable[[Sequence[SchemaField | None]], list[Hashable]]


def _by_name(fields: Sequence[SchemaField | None]) -> list[Hashable]:
    names: list[Hashable] = [field.name if field is not None else None for field in fields]
    known: set[Hashable] = set()
    for name in names:
        if name is not None and name in known:
            raise SchemaError(
                f"the file has two columns named {name!r}; resolve='position' distinguishes them",
                column=name,
            )
        known.add(name)
    return names


def _by_position(fields: Sequence[SchemaField | None]) -> list[Hashable]:
    return list(range(len(fields)))


def _by_id(fields: Sequence[SchemaField | None]) -> list[Hashable]:
    ids: list[Hashable] = []
    for field in fields:
        if field is not None and field.field_id is None:
            raise SchemaError(
                "the column has no field id, which resolve='field_id' needs; use resolve='name'", column=field.name
            )
        if field is not None and field.field_id in ids:
            raise SchemaError(f"two columns have field id {field.field_id}; use resolve='name'", column=field.name)
        ids.append(None if field is None else field.field_id)
    return ids


_LABELS: dict[str, FieldKeyFunction] = {"name": _by_name, "position": _by_position, "field_id": _by_id}


class MappedColumn(NamedTuple):
    """A dataset column as a file stores it.

    Attributes
    ----------
    column : Leaf or NestedProjection, or None
        The selected part of the file's column, its struct fields renamed as in the dataset; None if the file lacks the
        column or has only nulls of it.
    is_same : bool
        Whether it decodes as the dataset's column does: same physical type, length and meaning. Nested ones also need
        the same levels and fields in order. A flat column may be REQUIRED where the dataset's is OPTIONAL.
    """

    column: Leaf | NestedProjection | None
    is_same: bool


_MISSING = MappedColumn(None, False)


def field_key_function(resolve: str) -> FieldKeyFunction:
    """Return the function that assigns keys to sibling fields, for ``resolve`` "name", "position" or "field_id"."""
    if resolve not in _LABELS:
        raise ValueError(f"resolve must be one of {', '.join(map(repr, _LABELS))}, not {resolve!r}")
    return _LABELS[resolve]


def field_keys(
    fields: Sequence[SchemaField | None], key_function: FieldKeyFunction, file: str, path: tuple[str, ...]
) -> list[Hashable]:
    """Return the keys of sibling fields; errors name the file and the full path of the column."""
    try:
        return key_function(fields)
    except SchemaError as error:
        column = (*path, str(error.where["column"]))
        raise SchemaError(error.message, file=file, column=".".join(column)) from None


class ColumnMapper:
    """Maps the dataset's columns (``wanted``) to the columns of files with one schema; lists are by column position."""

    def __init__(
        self,
        wanted: Sequence[SchemaField | None],
        schema: Schema,
        fields: Sequence[SchemaField | None],
        key_function: FieldKeyFunction,
        file: str,
    ) -> None:
        self._wanted = wanted
        self._schema = schema
        self._fields = fields
        self._labels = key_function
        self._file = file
        known = {
            label: at for at, label in enumerate(field_keys(fields, key_function, file, ())) if fields[at] is not None
        }
        self._positions = [
            known.get(label) if field is not None else None
            for label, field in zip(field_keys(wanted, key_function, file, ()), wanted, strict=True)
        ]

    def map_column(self, column: Leaf | NestedProjection) -> MappedColumn:
        """Map a column of the dataset's schema file, as `select_columns` returns it."""
        at = column.column if isinstance(column, Leaf) else column.position
        position, wanted = self._positions[at], self._wanted[at]
        known = self._fields[position] if position is not None else None
        if position is None or known is None or wanted is None or (known.is_null and not wanted.is_null):
            return _MISSING
        with error_context(file=self._file, column=column.name):
            if isinstance(column, Leaf):
                leaf = self._schema.flat_leaf(position)
                return _MISSING if leaf is None else MappedColumn(leaf, _alike(column, wanted, leaf, known))
            return self._nested(column, wanted, position, known)

    def _nested(self, column: NestedProjection, wanted: SchemaField, position: int, known: SchemaField) -> MappedColumn:
        """Map a nested column: its selected leaf columns, or others that carry the levels of its lists and structs."""
        theirs = resolve_nested_type(self._schema, position)
        pairs = _NestedMapper(self._labels, self._file, {leaf.index for leaf in column.leaves})
        renamed = pairs.renamed(column.full_type, wanted, theirs, known)
        part = _part(column, renamed, pairs)
        if part is None or not pairs.taken:
            return _MISSING
        kept = project_leaves(part, pairs.taken)
        if kept is None:
            return _MISSING
        found = NestedProjection(column.name, position, renamed, kept, kept != part)
        return MappedColumn(found, pairs.is_same and _same_shapes(column.type, kept))


def _alike(column: Leaf, wanted: SchemaField, leaf: Leaf, known: SchemaField) -> bool:
    """Whether the values of two leaf columns decode the same."""
    if (column.physical, column.type_length) != (leaf.physical, leaf.type_length):
        return False
    if wanted.type is None or known.type is None:
        return False
    asked, have = value_type(wanted.type), value_type(known.type)
    if asked.kind == have.kind == "decimal":  # precision does not change how values decode
        return asked.scale == have.scale
    return asked == have or (column.physical == INT96 and asked.kind == have.kind)


class _NestedMapper:
    """Walks a nested column of the dataset and the file's column in parallel.

    Attributes
    ----------
    taken : set of int
        Ordinals of the file's leaf columns to read.
    paths : dict of tuple to tuple
        Path in the dataset to path in the file, for each node that the file has.
    is_same : bool
        Whether all leaf columns decode the same.
    """

    def __init__(self, key_function: FieldKeyFunction, file: str, leaves: set[int]) -> None:
        self._labels = key_function
        self._file = file
        self._leaves = leaves
        self.taken: set[int] = set()
        self.paths: dict[tuple[str, ...], tuple[str, ...]] = {}
        self.is_same = True

    def renamed(self, asked: NestedType, wanted: SchemaField, theirs: NestedType, known: SchemaField) -> NestedType:
        """Return the file's node with the dataset's names, and add its leaf columns to `taken`."""
        self.paths[asked.path] = theirs.path
        if theirs.leaf is not None:  # the dataset's node is a leaf too, unless this one holds only nulls
            if any(leaf.index in self._leaves for leaf in iter_leaves(asked)):
                self.taken.add(theirs.leaf.index)
                self.is_same &= asked.leaf is not None and _alike(asked.leaf, wanted, theirs.leaf, known)
            return replace(theirs, name=asked.name)
        before = len(self.taken)
        if wanted.is_variant:
            made = self._variant(asked, wanted, theirs, known)
        else:
            made = self._children(asked, wanted, theirs, known)
        if len(self.taken) == before and any(leaf.index in self._leaves for leaf in iter_leaves(asked)):
            # The file has no selected leaf, but another one carries the nulls and list lengths.
            self.taken.add(min(iter_leaves(theirs), key=lambda leaf: leaf.max_repetition_level).index)
        return made

    def _variant(self, asked: NestedType, wanted: SchemaField, theirs: NestedType, known: SchemaField) -> NestedType:
        """Take all leaf columns of a VARIANT: each file may shred it differently."""
        if any(leaf.index in self._leaves for leaf in iter_leaves(asked)):
            self.taken.update(leaf.index for leaf in iter_leaves(theirs))
            self.is_same &= wanted.children == known.children
        return replace(theirs, name=asked.name)

    def _children(self, asked: NestedType, wanted: SchemaField, theirs: NestedType, known: SchemaField) -> NestedType:
        # Children that the dataset lacks get names that no field can have; they are read for their levels only.
        children = [replace(child, name=f"\0{place}") for place, child in enumerate(theirs.children)]
        for ours, place in self._child_positions(wanted, known):
            children[place] = self.renamed(
                asked.children[ours], wanted.children[ours], theirs.children[place], known.children[place]
            )
        return replace(theirs, name=asked.name, children=tuple(children))

    def _child_positions(self, wanted: SchemaField, known: SchemaField) -> Iterator[tuple[int, int]]:
        """Yield the positions, in the dataset's node and in the file's, of each child that both have."""
        if wanted.kind != "struct":
            yield from ((place, place) for place in range(len(wanted.children)))
            return
        path = (wanted.name,)
        have: dict[Hashable, int] = {
            label: place for place, label in enumerate(field_keys(known.children, self._labels, self._file, path))
        }
        for place, label in enumerate(field_keys(wanted.children, self._labels, self._file, path)):
            if label in have:
                yield place, have[label]


def _part(column: NestedProjection, theirs: NestedType, pairs: _NestedMapper) -> NestedType | None:
    """Return the node of the file's column that matches the selected part of the dataset's; None if it is missing."""
    wanted, found = column.full_type, theirs
    while wanted.path != column.type.path:
        inside = [child for child in wanted.children if column.type.path[: len(child.path)] == child.path]
        path = pairs.paths.get(inside[0].path) if inside else None
        children = [child for child in found.children if child.path == path]
        if not children:
            return None
        wanted, found = inside[0], children[0]
    return found


def _same_shapes(first: NestedType, second: NestedType) -> bool:
    """Whether two nested types have the same levels, kinds and field names throughout."""
    same = (first.kind, first.nullable, first.definition_level, first.element_level, first.logical) == (
        second.kind,
        second.nullable,
        second.definition_level,
        second.element_level,
        second.logical,
    )
    if not same or len(first.children) != len(second.children):
        return False
    return all(
        (first.kind != "struct" or one.name == other.name) and _same_shapes(one, other)
        for one, other in zip(first.children, second.children, strict=True)
    )
