"""Serialized schema: a dataset schema that travels to other processes, and checks files unseen so far."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from numparq.dataset.scan.schema_only import SchemaOnlyPandasMetadata
from numparq.dataset.schema_merge.column_mapping import FieldKeyFunction, field_key_function, field_keys
from numparq.dataset.schema_merge.conflicts import find_conflicts
from numparq.dataset.schema_merge.dataset_schema import DatasetSchema
from numparq.dataset.schema_merge.fields import SchemaField, fields_of
from numparq.dataset.schema_merge.schema_file import build_schema_file, with_todays_calendar, without_rows
from numparq.dataset.schema_merge.schema_groups import SchemaKey, schema_key
from numparq.dataset.schema_merge.user_schema import conform_columns
from numparq.errors import SchemaError
from numparq.format.open_file import OpenFile


class SerializedSchema:
    """A dataset schema that can be pickled.

    With ``unknown``, the schema comes from a sample of the files: any column may be null, and each file is checked.
    """

    def __init__(self, schema: DatasetSchema, resolve: str, unknown: UnseenFiles | None = None) -> None:
        made = schema if unknown is None else _nullable(schema, field_key_function(resolve))
        self._file = without_rows(made.schema_file)
        self._calendar = made.schema_file.schema.calendar
        self._fields = None if made.is_from_file else [field for field in made.fields if field is not None]
        self._resolve = resolve
        self._unknown = unknown

    def __getstate__(self) -> tuple[Any, ...]:
        return self._file, self._calendar, self._fields, self._resolve, self._unknown

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self._file, self._calendar, self._fields, self._resolve, self._unknown = state

    @cached_property
    def schema(self) -> DatasetSchema:
        """The schema; its schema file has no rows and no index, and columns keep the names in the files."""
        prototype = OpenFile(self._file)
        prototype.calendar = self._calendar
        prototype = with_todays_calendar(prototype)
        like = [schema_key(prototype)] if self._fields is None else []
        prototype.pandas_metadata = SchemaOnlyPandasMetadata.from_metadata(prototype.pandas_metadata)
        return DatasetSchema(prototype, like, field_key_function(self._resolve), self._fields)

    @cached_property
    def _checked(self) -> set[SchemaKey]:
        """Schema keys of files that passed the check."""
        return set()

    def check_file(self, file: OpenFile) -> None:
        """Raise SchemaError if an unseen file has values or columns that the schema would lose."""
        if self._unknown is None or self._fields is None:
            return
        key = schema_key(file)
        if key not in self._checked:
            self._unknown.check_file(self._fields, file, field_key_function(self._resolve))
            self._checked.add(key)


def _nullable(schema: DatasetSchema, labels: FieldKeyFunction) -> DatasetSchema:
    """Return a schema with all columns nullable: a file may lack any of them."""
    fields = [replace(field, nullable=True) for field in schema.fields if field is not None]
    keys = dict(schema.schema_file.footer.key_value_metadata)
    has_arrow_schema = keys.pop("ARROW:schema", None) is not None
    made = build_schema_file(
        fields,
        keys,
        has_arrow_schema=has_arrow_schema,
        is_own=schema.schema_file.is_written_by_numparq,
        calendar=schema.schema_file.schema.calendar,
    )
    return DatasetSchema(made, (), labels, fields)


class UnseenFiles:
    """Rules for files whose footers were not read when the schema was merged.

    With a given schema (``is_given``), files may have other columns. Partition ``keys`` hide columns of the same name.
    """

    def __init__(self, is_given: bool, keys: Collection[str]) -> None:
        self._is_given = is_given
        self._keys = frozenset(keys)

    def check_file(self, fields: Sequence[SchemaField], file: OpenFile, labels: FieldKeyFunction) -> None:
        """Raise SchemaError if a file has values or columns that the schema's ``fields`` would lose."""
        name, theirs = file.source.name, [field for field in fields_of(file) if field is not None]
        conforming = conform_columns(fields, name, theirs, labels)
        new = {at: conflict for at, conflict in find_conflicts(conforming).items() if at not in find_conflicts(fields)}
        for conflict in new.values():
            raise conflict.to_error()
        if conforming != list(fields):
            raise SchemaError(
                f"values in structs or lists are nullable here, but not in {_OTHERS}; {_WAY_OUT}", file=name
            )
        if not self._is_given:
            self._refuse_others(fields, [field for field in theirs if field.name not in self._keys], name, labels, ())

    def _refuse_others(
        self,
        fields: Sequence[SchemaField],
        theirs: Sequence[SchemaField],
        file: str,
        labels: FieldKeyFunction,
        path: tuple[str, ...],
    ) -> None:
        """Raise SchemaError for a column or struct field that the schema lacks."""
        known = dict(zip(field_keys(fields, labels, file, path), fields, strict=True))
        for label, field in zip(field_keys(theirs, labels, file, path), theirs, strict=True):
            inner = (*path, field.name)
            if label not in known:
                raise SchemaError(
                    f"the file has a column that is missing from {_OTHERS}; {_WAY_OUT}",
                    file=file,
                    column=".".join(inner),
                )
            self._refuse_within(known[label], field, file, labels, inner)

    def _refuse_within(
        self, ours: SchemaField, theirs: SchemaField, file: str, labels: FieldKeyFunction, path: tuple[str, ...]
    ) -> None:
        """Raise SchemaError for a struct field that the schema lacks, at any depth of lists and maps."""
        if theirs.kind == "struct" and not theirs.is_variant:
            self._refuse_others(ours.children, theirs.children, file, labels, path)
        elif theirs.kind in ("list", "map"):
            for child, other in zip(ours.children, theirs.children, strict=False):
                self._refuse_within(child, other, file, labels, (*path, other.name))


_OTHERS = "the files that the table's schema was merged from"
_WAY_OUT = "pass schema=, or read the footers of all files with plan_files=None"
