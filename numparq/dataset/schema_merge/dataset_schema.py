"""`DatasetSchema`: one schema for many files, merged from theirs or given by the caller."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

from numparq.column.projection import NestedProjection
from numparq.format.open_file import OpenFile
from numparq.format.schema import Leaf, Schema
from numparq.util.bounded_cache import BoundedCache

from .column_mapping import ColumnMapper, FieldKeyFunction, MappedColumn, field_key_function, field_keys
from .fields import SchemaField, fields_of
from .key_values import merge_geo_metadata, merge_pandas_metadata
from .merge import merge_columns
from .schema_file import build_schema_file, without_range_index
from .schema_groups import (
    MAX_SHARED_GROUPS,
    SchemaGroup,
    SchemaKey,
    file_schema_key,
    group_by_schema,
    have_same_columns,
)
from .user_schema import adopt_arrow_types, conform_columns, parse_user_schema

__all__ = ["DatasetSchema"]

_MOST_KEPT = 1024  # answers of `DatasetSchema.matches`
_kept = BoundedCache(16)


class DatasetSchema:
    """The schema of many files as one.

    Made by `of`.

    Parameters
    ----------
    prototype : OpenFile
        As below.
    same_columns_as : collection of SchemaKey
        The keys of files that have just the prototype's columns.
    labels : callable
        Tells columns apart.
    fields : sequence of SchemaField, optional
        The columns of the prototype, where they are known.
    kinds : sequence of SchemaGroup
        Files whose columns are known.

    Attributes
    ----------
    prototype : OpenFile
        A file that stands for all: its `schema`, `arrow_schema` and `pandas_metadata` are those of the dataset. No row
        is to be read of it: it is in memory and has none, or it is the first of the files.
    """

    def __init__(
        self,
        prototype: OpenFile,
        same_columns_as: Collection[SchemaKey],
        labels: FieldKeyFunction,
        fields: Sequence[SchemaField] | None = None,
        kinds: Sequence[SchemaGroup] = (),
    ) -> None:
        self.prototype = prototype
        self._known_fields = fields
        self._kinds = {kind.key: kind for kind in kinds}
        self._like = frozenset(same_columns_as)
        self._labels = labels
        self._keys: WeakKeyDictionary[OpenFile, SchemaKey] = WeakKeyDictionary()
        self._matchers: dict[SchemaKey, ColumnMapper] = {}
        self._matched: dict[Hashable, tuple[Sequence[Any], list[MappedColumn]]] = {}

    @classmethod
    def of(cls, files: Sequence[OpenFile], *, resolve: str = "name", schema: Any = None) -> DatasetSchema:
        """Find the schema of files.

        Parameters
        ----------
        files : sequence of OpenFile
            At least one, unless there is a `schema`.
        resolve : {"name", "position", "field_id"}
            Which columns of two files are the same one, and, in these, which fields of structs: those of the same
            name; those at the same place; or those of the same field id, which all files must have then. Names are
            those of `schema`, or else of the first file that has the column.
        schema : Schema, pyarrow.Schema, mapping, or sequence, optional
            The columns of the dataset, in order. A mapping of names to types, or a sequence of pairs of these, of
            `Node`s, or of pyarrow's fields: as `ParquetWriter` takes them. Columns that files have besides are not in
            the dataset. By default it has all columns of all files, in the order in which they first appear, each of
            the type that holds the values of all.

        Returns
        -------
        DatasetSchema

        Raises
        ------
        SchemaError
            When files differ so that values would be lost; it names both files, the column and the types.
        ValueError
            When there is no file, and no `schema`.
        """
        labels = field_key_function(resolve)
        keys = [file_schema_key(file) for file in files]
        kinds = group_by_schema(files, keys)
        if schema is not None:
            made = _apply_user_schema(schema, kinds, len(files), labels)
        elif not files:
            raise ValueError("there is no file that a schema could be taken of")
        elif have_same_columns(kinds):
            field_keys(kinds[0].fields if resolve != "name" else (), labels, kinds[0].name, ())
            prototype = without_range_index(files[0]) if len(files) > 1 else files[0]
            made = cls(prototype, [kind.key for kind in kinds], labels, kinds=kinds)
        else:
            fields, prototype = _merge_groups(kinds, len(files), labels)
            made = cls(prototype, (), labels, fields, kinds)
        made._keys.update(zip(files, keys, strict=True))
        return made

    @property
    def is_from_file(self) -> bool:
        """Whether the prototype is a file that was written so, and was not made to unite several."""
        return self._known_fields is None

    @property
    def schema(self) -> Schema:
        """The tree of columns."""
        return self.prototype.schema

    @cached_property
    def fields(self) -> Sequence[SchemaField | None]:
        """The columns of the prototype, by position."""
        return fields_of(self.prototype) if self._known_fields is None else self._known_fields

    def matches(self, file: OpenFile, columns: Sequence[Leaf | NestedProjection]) -> list[MappedColumn]:
        """Find columns of the dataset in a file.

        Parameters
        ----------
        file : OpenFile
            One of the files, or another that has the schema of one of them.
        columns : sequence of Leaf or NestedProjection
            Columns of the prototype, as `numparq.column.projection.select_columns` gives them.

        Returns
        -------
        list of Match
            One each.
        """
        key = self._keys.get(file)
        if key is None:
            key = self._keys[file] = file_schema_key(file)
        if key in self._like:
            return [MappedColumn(column, True) for column in columns]
        asked = key, tuple(map(id, columns))
        known = self._matched.get(asked)
        if known is None:
            found = [self._matcher(file, key).match(column) for column in columns]
            if len(self._matched) >= _MOST_KEPT:
                self._matched.clear()
            known = self._matched[asked] = tuple(columns), found  # which keeps the columns, and so their ids
        return list(known[1])

    def _matcher(self, file: OpenFile, key: SchemaKey) -> ColumnMapper:
        if key not in self._matchers:
            kind = self._kinds.get(key) or SchemaGroup(file, key)
            self._matchers[key] = ColumnMapper(self.fields, file.schema, kind.fields, self._labels, file.source.name)
        return self._matchers[key]


def _merge_groups(
    kinds: Sequence[SchemaGroup], count: int, labels: FieldKeyFunction
) -> tuple[list[SchemaField], OpenFile]:
    """Unite the columns of files, and make the prototype of them: once for files that are alike in all that counts."""

    def made() -> tuple[list[SchemaField], OpenFile]:
        fields = merge_columns([(kind.name, kind.fields) for kind in kinds], labels)
        return fields, _build_schema_file(fields, kinds, count, labels)

    contents = tuple([kind.content for kind in kinds])
    if len(kinds) > MAX_SHARED_GROUPS or None in contents:
        return made()
    return _kept.get((contents, count == 1, labels), made)


def _apply_user_schema(
    schema: Any, kinds: Sequence[SchemaGroup], count: int, labels: FieldKeyFunction
) -> DatasetSchema:
    """Give the schema that the caller wants, once all files fit it."""
    wanted = parse_user_schema(schema)
    if isinstance(schema, Schema):
        wanted = adopt_arrow_types(wanted, [kind.fields for kind in kinds], labels)
    for kind in kinds:
        wanted = conform_columns(wanted, kind.name, kind.fields, labels)
    return DatasetSchema(_build_schema_file(wanted, kinds, count, labels, is_given=True), (), labels, wanted, kinds)


def _build_schema_file(
    fields: list[SchemaField],
    kinds: Sequence[SchemaGroup],
    count: int,
    labels: FieldKeyFunction,
    is_given: bool = False,
) -> OpenFile:
    keys = {key: value for kind in kinds for key, value in kind.keys.items() if key == "PANDAS_ATTRS"}
    notes = [kind.keys["pandas"] for kind in kinds if "pandas" in kind.keys]
    columns = {field.name: field.type for field in fields}
    made = merge_pandas_metadata(notes, columns, _unchanged_columns(fields, kinds, labels), count == 1)
    if made is not None:
        keys["pandas"] = made
    geometries = merge_geo_metadata([(kind.name, kind.keys["geo"]) for kind in kinds if "geo" in kind.keys], columns)
    if geometries is not None:
        keys["geo"] = geometries
    return build_schema_file(
        fields,
        keys,
        has_arrow_schema=is_given or any("ARROW:schema" in kind.keys for kind in kinds),
        is_own=bool(kinds) and all(kind.file.is_own for kind in kinds),
    )


def _unchanged_columns(
    fields: Sequence[SchemaField], kinds: Sequence[SchemaGroup], labels: FieldKeyFunction
) -> set[str]:
    """Give the names of columns that all files that have them have of one name and type."""
    made = {label: (field.name, _meaning(field)) for label, field in zip(labels(fields), fields, strict=True)}
    agreed = {name for name, _ in made.values()}
    for kind in kinds:
        for label, field in zip(labels(kind.fields), kind.fields, strict=True):
            if field is not None and label in made and (field.name, _meaning(field)) != made[label]:
                agreed.discard(made[label][0])
    return agreed


def _meaning(field: SchemaField) -> tuple[Any, ...]:
    """Give what a dtype may depend on: types, and which fields there are."""
    inside = tuple((child.name if field.kind == "struct" else "", _meaning(child)) for child in field.children)
    return field.kind, field.type, field.dictionary, inside
