"""`DatasetSchema`: one schema for many files, merged from theirs or given by the caller."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from functools import cached_property
from typing import Any

from numparq.column.projection import NestedProjection, projection_of
from numparq.errors import SchemaError
from numparq.format.open_file import OpenFile
from numparq.format.schema import Leaf, Schema
from numparq.util.bounded_cache import BoundedCache

from .column_mapping import ColumnMapper, FieldKeyFunction, MappedColumn, field_key_function, field_keys
from .conflicts import ConflictingSchema, conflicting_field, find_conflicts
from .fields import SchemaField, TypeConflict, fields_of
from .key_values import merge_geo_metadata, merge_pandas_metadata
from .merge import merge_columns
from .null_columns import empty_conflicting_columns, empty_misfits, has_no_values, misfits, without_values
from .schema_file import build_schema_file, with_todays_calendar, without_range_index
from .schema_groups import (
    MAX_SHARED_GROUPS,
    OpenAlike,
    SchemaGroup,
    SchemaKey,
    group_by_schema,
    have_same_columns,
    schema_key,
)
from .user_schema import adopt_arrow_types, conform_columns, parse_user_schema

_MOST_KEPT = 1024  # cached results of `DatasetSchema.matches`
_kept = BoundedCache(16)


class DatasetSchema:
    """One schema for many files; build it with `from_files`.

    ``same_columns_as`` holds the schema keys of files with exactly the schema file's columns, in any calendar.
    ``fields`` are None if the schema file is one of the files.

    Attributes
    ----------
    schema_file : OpenFile
        The schema file: its `schema`, `arrow_schema` and `pandas_metadata` are the dataset's. It is in memory and
        without rows, or it is the first file of the dataset.
    """

    def __init__(
        self,
        prototype: OpenFile,
        same_columns_as: Collection[SchemaKey],
        labels: FieldKeyFunction,
        fields: Sequence[SchemaField] | None = None,
        kinds: Sequence[SchemaGroup] = (),
    ) -> None:
        self.schema_file = with_todays_calendar(prototype)
        self._known_fields = fields
        self._kinds = {kind.key: kind for kind in kinds}
        calendar = self.schema_file.schema.calendar
        self._like = frozenset(key for key in same_columns_as if key.calendar == calendar)
        self._labels = labels
        self._matchers: dict[tuple[SchemaKey, tuple[int, ...]], ColumnMapper] = {}
        self._misfits: dict[SchemaKey, list[int]] = {}
        self._matched: dict[Hashable, tuple[Sequence[Any], list[MappedColumn]]] = {}

    @classmethod
    def from_files(
        cls,
        files: Sequence[OpenFile],
        *,
        resolve: str = "name",
        schema: Any = None,
        num_files: int | None = None,
        alike: OpenAlike | None = None,
    ) -> DatasetSchema:
        """Merge the schemas of files, in order of appearance, or apply a given one; ``resolve`` is that of `Dataset`.

        Each may stand for several of all `num_files` files, which `alike` opens.
        A column whose values would be lost is a conflict (`check_columns`). Raises SchemaError if two
        columns are mapped to one name, ValueError if there are neither files nor a schema.
        """
        labels = field_key_function(resolve)
        keys = [schema_key(file) for file in files]
        kinds = group_by_schema(files, keys, alike)
        count = len(files) if num_files is None else num_files
        if schema is not None:
            made = _apply_user_schema(schema, kinds, count, labels)
        elif not files:
            raise ValueError("the dataset has no files, so schema= is needed")
        elif have_same_columns(kinds):
            field_keys(kinds[0].fields if resolve != "name" else (), labels, kinds[0].name, ())
            prototype = without_range_index(files[0]) if count > 1 else files[0]
            made = cls(prototype, [kind.key for kind in kinds], labels, kinds=kinds)
        else:
            fields, prototype = _merge_groups(kinds, count, labels)
            made = cls(prototype, (), labels, fields, kinds)
        return made

    @property
    def is_from_file(self) -> bool:
        """Whether the schema file is one of the files, and not built from merged fields."""
        return self._known_fields is None

    @property
    def schema(self) -> Schema:
        """The schema tree."""
        return self.schema_file.schema

    @cached_property
    def conflicts(self) -> Mapping[int, TypeConflict]:
        """Columns that no type holds in all files, by leaf ordinal; they are leaves without values in the tree."""
        return {} if self._known_fields is None else find_conflicts(self._known_fields)

    def check_columns(self, columns: Sequence[Leaf | NestedProjection] | None = None) -> None:
        """Raise SchemaError, which names both files, if one of some columns (default: all) conflicts between files."""
        if not self.conflicts:
            return
        leaves = (
            range(self.schema.num_leaves) if columns is None else [each.index for each in projection_of(columns).leaves]
        )
        for leaf in leaves:
            if leaf in self.conflicts:
                raise self.conflicts[leaf].to_error()

    def schema_with_conflicts(self) -> Schema:
        """Return the schema tree for users: conflicts are in its text."""
        if not self.conflicts:
            return self.schema
        elements = self.schema_file.footer.schema_elements
        return ConflictingSchema(elements, self.schema.calendar, self.conflicts)

    @cached_property
    def fields(self) -> Sequence[SchemaField | None]:
        """Fields of the schema file, by column position."""
        return fields_of(self.schema_file) if self._known_fields is None else self._known_fields

    def map_columns(self, file: OpenFile, columns: Sequence[Leaf | NestedProjection]) -> list[MappedColumn]:
        """Map columns of the schema file, as `select_columns` returns them, to the columns of a file.

        The file has the schema of one of the merged files. Files of one schema share the result.
        """
        key = schema_key(file)
        is_like = key in self._like
        empty = () if is_like else self._empty_positions(file, key)
        asked = None if is_like else (key, empty), tuple(map(id, columns))
        known = self._matched.get(asked)
        if known is None:
            if is_like:
                found = [MappedColumn(column, True) for column in columns]
            else:
                found = [self._matcher(file, key, empty).map_column(column) for column in columns]
            if len(self._matched) >= _MOST_KEPT:
                self._matched.clear()
            known = self._matched[asked] = tuple(columns), found  # holds the columns, so that their ids stay valid
        return known[1]

    def _empty_positions(self, file: OpenFile, key: SchemaKey) -> tuple[int, ...]:
        """Return the columns of a file that was not merged here that have no values, and a type that does not fit."""
        if key in self._kinds:
            return ()  # the merge has replaced them
        if key not in self._misfits:
            columns = dict(zip(self._labels(self.fields), self.fields, strict=True))
            self._misfits[key] = misfits(fields_of(file), columns.get, self._labels)
        return tuple(at for at in self._misfits[key] if has_no_values(file, at))

    def _matcher(self, file: OpenFile, key: SchemaKey, empty: tuple[int, ...]) -> ColumnMapper:
        if (key, empty) not in self._matchers:
            fields = list((self._kinds.get(key) or SchemaGroup(file, key)).fields)
            for at in empty:
                fields[at] = without_values(fields[at])
            self._matchers[key, empty] = ColumnMapper(self.fields, file.schema, fields, self._labels, file.source.name)
        return self._matchers[key, empty]


def _merge_groups(
    kinds: Sequence[SchemaGroup], count: int, labels: FieldKeyFunction
) -> tuple[list[SchemaField], OpenFile]:
    """Merge the columns of schema groups and build their schema file; cached by the footer bytes that matter."""

    def merge() -> tuple[list[SchemaField], OpenFile]:
        fields = _merge_fields(kinds, labels)
        conflicts = _conflict_keys(fields, labels)
        if conflicts:
            empty_conflicting_columns(kinds, conflicts, labels, has_no_values)
            fields = _merge_fields(kinds, labels)
        return fields, _build_schema_file(fields, kinds, count, labels)

    contents = tuple([kind.content for kind in kinds])
    if len(kinds) > MAX_SHARED_GROUPS or None in contents:
        return merge()
    key = contents, count == 1, labels
    known: tuple[list[SchemaField], OpenFile] | None = _kept.get(key)
    if known is None:
        before = [kind.fields for kind in kinds]
        known = merge()
        # A conflict names files, and a column without values may have some in other datasets.
        if not find_conflicts(known[0]) and before == [kind.fields for kind in kinds]:
            _kept.get_or_make(key, lambda: known)
    return known


def _merge_fields(kinds: Sequence[SchemaGroup], labels: FieldKeyFunction) -> list[SchemaField]:
    fields = merge_columns([(kind.name, kind.fields) for kind in kinds], labels)
    return _without_other_geometries(fields, kinds)


def _conflict_keys(fields: Sequence[SchemaField], labels: FieldKeyFunction) -> set[Hashable]:
    """Return the keys of top-level columns that conflict between files."""
    return {key for key, field in zip(labels(fields), fields, strict=True) if field.conflict is not None}


def _has_rows_without_values(file: OpenFile, position: int) -> bool:
    return file.num_rows > 0 and has_no_values(file, position)


def check_one_table(files: Sequence[OpenFile]) -> None:
    """Raise SchemaError, which names both files, if files cannot form one table.

    A file without rows stands for files that have some.
    """
    labels = field_key_function("name")
    groups = group_by_schema(files, [schema_key(file) for file in files])
    fields = _merge_fields(groups, labels)
    conflicts = _conflict_keys(fields, labels)
    if conflicts:
        empty_conflicting_columns(groups, conflicts, labels, _has_rows_without_values)
        fields = _merge_fields(groups, labels)
    for conflict in find_conflicts(fields).values():
        raise conflict.to_error()


def _without_other_geometries(fields: list[SchemaField], kinds: Sequence[SchemaGroup]) -> list[SchemaField]:
    """Return fields in which geometries whose CRS or edges differ between files are conflicts."""
    documents = _geo_documents(kinds)
    columns = {field.name: at for at, field in enumerate(fields)}
    while True:
        try:
            merge_geo_metadata(documents, columns)
        except SchemaError as error:
            at = columns.pop(str(error.where["column"]))
            fields = [*fields[:at], conflicting_field(fields[at], error), *fields[at + 1 :]]
        else:
            return fields


def _geo_documents(kinds: Sequence[SchemaGroup]) -> list[tuple[str, bytes]]:
    return [(kind.name, kind.keys["geo"]) for kind in kinds if "geo" in kind.keys]


def _apply_user_schema(
    schema: Any, kinds: Sequence[SchemaGroup], count: int, labels: FieldKeyFunction
) -> DatasetSchema:
    """Build the dataset schema from the user's, after checking that all files conform."""
    wanted = parse_user_schema(schema)
    if isinstance(schema, Schema):
        wanted = adopt_arrow_types(wanted, [kind.fields for kind in kinds], labels)
    empty_misfits(kinds, wanted, labels)
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
    columns = {field.name: field.type for field in fields if field.conflict is None}
    made = merge_pandas_metadata(notes, columns, _unchanged_columns(fields, kinds, labels), count == 1)
    if made is not None:
        keys["pandas"] = made
    geometries = merge_geo_metadata(_geo_documents(kinds), columns)
    if geometries is not None:
        keys["geo"] = geometries
    return build_schema_file(
        fields,
        keys,
        has_arrow_schema=is_given or any("ARROW:schema" in kind.keys for kind in kinds),
        is_own=bool(kinds) and all(kind.file.is_written_by_numparq for kind in kinds),
        calendar=kinds[0].key.calendar.without_rebase if kinds else None,
    )


def _unchanged_columns(
    fields: Sequence[SchemaField], kinds: Sequence[SchemaGroup], labels: FieldKeyFunction
) -> set[str]:
    """Return the names of columns that have the same name and type in every file with them."""
    made = {label: (field.name, _meaning(field)) for label, field in zip(labels(fields), fields, strict=True)}
    agreed = {name for name, _ in made.values()}
    for kind in kinds:
        for label, field in zip(labels(kind.fields), kind.fields, strict=True):
            if field is not None and label in made and (field.name, _meaning(field)) != made[label]:
                agreed.discard(made[label][0])
    return agreed


def _meaning(field: SchemaField) -> tuple[Any, ...]:
    """Return what a field's dtype may depend on: its types, and its struct fields."""
    inside = tuple((child.name if field.kind == "struct" else "", _meaning(child)) for child in field.children)
    return field.kind, field.type, field.dictionary, inside
