"""Filter columns of a dataset: columns and partition keys that a predicate reads, resolved per file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from numparq.column.projection import NestedProjection, select_column, unknown_column_error
from numparq.expr.expression import ColumnName
from numparq.expr.resolve import ColumnResolver, ResolvedColumn, resolve_column
from numparq.expr.sort_keys import KeyDomain, key_domain
from numparq.format.arrow_type import ArrowType
from numparq.format.open_file import OpenFile
from numparq.format.schema import Leaf
from numparq.scan.predicate import LeafArrowTypes
from numparq.types.common_type import holds_all_values, value_type

if TYPE_CHECKING:
    from numparq.dataset.partitions.columns import DatasetPartitions
    from numparq.dataset.schema_merge.dataset_schema import DatasetSchema

_MOST_KEPT = 64
_NUMBERS = ("signed", "unsigned", "float")  # kinds of sort keys


class FileFilterColumn(NamedTuple):
    """A filter column in one file.

    Attributes
    ----------
    leaf : Leaf
        The leaf column, or the first leaf of a nested column.
    definition_level : int
        Definition level from which on the value is not null.
    domain : KeyDomain
        Sort keys of the leaf's values.
    """

    leaf: Leaf
    definition_level: int
    domain: KeyDomain


@dataclass(frozen=True)
class DatasetFilterColumn:
    """A filter column of the dataset.

    Attributes
    ----------
    resolved : ResolvedColumn
        The resolved name, with the leaf that predicates are bound to.
    origin : ArrowType or None
        Type in the Arrow schema.
    key : int
        Ordinal of the partition key; -1 for a column in files.
    column : Leaf or NestedProjection or None
        The column in the schema file; None for a partition key.
    """

    resolved: ResolvedColumn
    origin: ArrowType | None = None
    key: int = -1
    column: Leaf | NestedProjection | None = None


def partition_key_ordinal(name: ColumnName, partitions: DatasetPartitions) -> int:
    """Return the ordinal of the partition key with this name; -1 if no key has it."""
    key = name[0] if isinstance(name, tuple) and len(name) == 1 else name
    return partitions.keys.index(key) if isinstance(key, str) and key in partitions.keys else -1


class _FilterColumnResolver(ColumnResolver):
    """Resolves names, and assigns each filter column a leaf of its own; ``items`` is indexed by its ordinal."""

    def __init__(self) -> None:
        self.items: list[DatasetFilterColumn] = []
        self._by_name: dict[Any, ResolvedColumn] = {}

    def resolve(self, name: ColumnName) -> ResolvedColumn:
        """Resolve a name; errors are those of `numparq.expr.resolve.resolve_column`."""
        if name not in self._by_name:
            made = self._resolve(name)
            same = [
                item.resolved for item in self.items if (item.resolved.path, item.key) == (made.resolved.path, made.key)
            ]
            if not same:
                self.items.append(made)
            self._by_name[name] = same[0] if same else made.resolved
        return self._by_name[name]

    def get(self, index: int) -> ArrowType | None:
        """Return the Arrow type of a filter column by its leaf ordinal; `bind` reads it as a mapping."""
        return self.items[index].origin

    def _resolve(self, name: ColumnName) -> DatasetFilterColumn:
        raise NotImplementedError

    def _partition(self, key: int, partitions: DatasetPartitions) -> DatasetFilterColumn:
        name = partitions.keys[key]
        leaf = replace(partitions.leaf(name), index=len(self.items))
        return DatasetFilterColumn(ResolvedColumn(leaf, True, leaf.max_definition_level, 0, [leaf], (name,)), key=key)


class PartitionKeyColumns(_FilterColumnResolver):
    """Resolver of partition keys alone."""

    def __init__(self, partitions: DatasetPartitions) -> None:
        super().__init__()
        self._partitions = partitions

    def _resolve(self, name: ColumnName) -> DatasetFilterColumn:
        key = partition_key_ordinal(name, self._partitions)
        if key < 0:
            raise unknown_column_error(name, self._partitions.keys, "the dataset")
        return self._partition(key, self._partitions)


class DatasetFilterColumns(_FilterColumnResolver):
    """Resolver of partition keys and columns; a partition key hides a column of the same name."""

    def __init__(self, dataset_schema: DatasetSchema, partitions: DatasetPartitions) -> None:
        super().__init__()
        self._schema = dataset_schema
        self._partitions = partitions
        self._origins = LeafArrowTypes(dataset_schema.schema_file)
        self._stored: dict[Any, StoredFilterColumns] = {}
        self._within: dict[tuple[int, int], tuple[Any, tuple[FileFilterColumn | None, ...]]] = {}

    def _resolve(self, name: ColumnName) -> DatasetFilterColumn:
        key = partition_key_ordinal(name, self._partitions)
        return self._partition(key, self._partitions) if key >= 0 else self._column(name)

    def _column(self, name: ColumnName) -> DatasetFilterColumn:
        schema, keys = self._schema.schema_file.schema, self._partitions.keys
        top = name[0] if isinstance(name, tuple) else name if name in schema.positions else name.split(".")[0]
        if top in keys or top not in schema.positions:
            known = [*keys, *(column for column in schema.columns if column not in keys)]
            known += [leaf.name for leaf in map(schema.leaf, range(min(schema.num_leaves, 1000)))]
            raise unknown_column_error(name, list(dict.fromkeys(known)), "the dataset")
        found = resolve_column(schema, name)
        leaf = replace(
            found.leaf,
            index=len(self.items),
            max_definition_level=found.leaf.max_definition_level + 1,
            element_levels=(0, *(level + 1 for level in found.leaf.element_levels[1:])),
        )
        bound = found._replace(leaf=leaf, definition_level=found.definition_level + 1)
        column = self._selected(found.path)
        self._schema.check_columns([column])
        return DatasetFilterColumn(bound, self._origins.get(found.leaf.index), column=column)

    def _selected(self, path: tuple[str, ...]) -> Leaf | NestedProjection:
        """Select the column of a path as ``columns=`` does; below a list or map, select the whole list or map."""
        for length in range(len(path), 0, -1):
            column = select_column(self._schema.schema_file.schema, path[:length])
            if isinstance(column, Leaf) or not column.is_pruned:
                return column
        raise AssertionError("a top-level column is a whole one")

    def in_file(self, file: OpenFile) -> tuple[FileFilterColumn | None, ...]:
        """Return the filter columns in a file, one for each of `items`.

        None stands for a partition key, and for a column that is missing or holds only nulls in the file.
        """
        about = file.schema, file.arrow_schema  # shared by all files with equal footers
        known = self._within.get((id(about[0]), id(about[1])))
        if known is None or len(known[1]) != len(self.items):
            known = about, self._map_columns(file)
            if len(self._within) >= _MOST_KEPT:
                self._within.clear()
            self._within[id(about[0]), id(about[1])] = known
        return known[1]

    def as_stored(self, places: Sequence[FileFilterColumn | None]) -> DatasetFilterColumns | StoredFilterColumns:
        """Return the columns to bind to for a file with these filter columns.

        Values that the dataset's type cannot hold are compared as they are stored: an integer beyond 2^53 beside
        floats matches exactly the literals that it does as an integer. Reading it is then an error.
        """
        stored = {
            at: place.leaf
            for at, (place, item) in enumerate(zip(places, self.items, strict=False))
            if place is not None and place.domain.kind in _NUMBERS and not self._holds(item, place.domain)
        }
        if not stored:
            return self
        key = tuple(stored.items())
        if key not in self._stored:
            self._stored[key] = StoredFilterColumns(self, stored)
        return self._stored[key]

    def _holds(self, item: DatasetFilterColumn, domain: KeyDomain) -> bool:
        known = key_domain(item.resolved.leaf, item.origin)
        return holds_all_values(value_type(known.type), value_type(domain.type))

    def _map_columns(self, file: OpenFile) -> tuple[FileFilterColumn | None, ...]:
        columns = [item.column for item in self.items if item.column is not None]
        matches = iter(self._schema.map_columns(file, columns)) if columns else iter(())
        return tuple(None if item.column is None else _in_file(file, next(matches).column) for item in self.items)


class StoredFilterColumns(ColumnResolver):
    """Filter columns of a dataset, some of them with the type that a file stores (`stored`, by ordinal)."""

    def __init__(self, columns: DatasetFilterColumns, stored: Mapping[int, Leaf]) -> None:
        self._columns = columns
        self._stored = stored

    def resolve(self, name: ColumnName) -> ResolvedColumn:
        """Resolve a name as the dataset does; a stored column has the file's type."""
        resolved = self._columns.resolve(name)
        stored = self._stored.get(resolved.leaf.index)
        if stored is None:
            return resolved
        leaf = replace(resolved.leaf, physical=stored.physical, type_length=stored.type_length, logical=stored.logical)
        return resolved._replace(leaf=leaf)

    def get(self, index: int) -> ArrowType | None:
        """Return the Arrow type of a filter column by its leaf ordinal; numbers are what their files say."""
        return None if index in self._stored else self._columns.get(index)


def _in_file(file: OpenFile, column: Leaf | NestedProjection | None) -> FileFilterColumn | None:
    """Return a file's column as a filter column."""
    if column is None:
        return None
    if isinstance(column, Leaf):
        leaf, level, is_leaf = column, column.max_definition_level, True
    else:
        leaf, level, is_leaf = column.leaves[0], column.type.definition_level, column.type.leaf is not None
    origin = None if leaf.is_nested else file.arrow_schema.field_type(leaf.column)
    domain = key_domain(leaf, origin)
    return None if is_leaf and domain.kind == "none" else FileFilterColumn(leaf, level, domain)
