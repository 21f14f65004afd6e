"""One schema for the files of a dataset: theirs, united, or one that the caller gives."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

from ..errors import located
from ..opened import OpenedFile
from ..remembered import Kept
from ..schema import Leaf, Schema
from ..selection import NestedColumn
from .fields import Field, fields_of
from .fitting import fitted_columns
from .geo_notes import united_geo_notes
from .given import dressed, given_fields
from .identity import SchemaKey, schema_key
from .labelling import Labels, labelled, labels_by
from .matching import Match, Matcher
from .pandas_notes import united_notes
from .prototype import made_prototype, without_range
from .unite import united_columns

__all__ = ["DatasetSchema", "Match"]

_MOST_KEPT = 1024  # answers of `DatasetSchema.matches`
# The keys of a footer that tell of columns. What is united of them is kept, for the next dataset with such files,
# where these are of few kinds and have little of it.
_NOTES = ("ARROW:schema", "pandas", "PANDAS_ATTRS", "geo")
_KEPT_BYTES, _MOST_KINDS = 64 << 10, 16
_kept = Kept(16)


class DatasetSchema:
    """The schema of many files as one.

    Made by `of`.

    Parameters
    ----------
    prototype : OpenedFile
        As below.
    like : collection of SchemaKey
        The keys of files that have just the prototype's columns.
    labels : callable
        Tells columns apart.
    fields : sequence of Field, optional
        The columns of the prototype, where they are known.
    kinds : sequence of Kind
        Files whose columns are known.

    Attributes
    ----------
    prototype : OpenedFile
        A file that stands for all: its `schema`, `arrow_schema` and `pandas_metadata` are those of the dataset. No row
        is to be read of it: it is in memory and has none, or it is the first of the files.
    """

    def __init__(
        self, prototype: OpenedFile, like: Collection[SchemaKey], labels: Labels,
        fields: Sequence[Field] | None = None, kinds: Sequence[Kind] = (),
    ) -> None:  # fmt: skip
        self.prototype = prototype
        self._known_fields = fields
        self._kinds = {kind.key: kind for kind in kinds}
        self._like = frozenset(like)
        self._labels = labels
        self._keys: WeakKeyDictionary[OpenedFile, SchemaKey] = WeakKeyDictionary()
        self._matchers: dict[SchemaKey, Matcher] = {}
        self._matched: dict[Hashable, tuple[Sequence[Any], list[Match]]] = {}

    @classmethod
    def of(cls, files: Sequence[OpenedFile], *, resolve: str = "name", schema: Any = None) -> DatasetSchema:
        """Find the schema of files.

        Parameters
        ----------
        files : sequence of OpenedFile
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
        labels = labels_by(resolve)
        keys = [_key(file) for file in files]
        kinds = _kinds(files, keys)
        if schema is not None:
            made = _given(schema, kinds, len(files), labels)
        elif not files:
            raise ValueError("there is no file that a schema could be taken of")
        elif _are_alike(kinds):
            labelled(kinds[0].fields if resolve != "name" else (), labels, kinds[0].name, ())
            prototype = without_range(files[0]) if len(files) > 1 else files[0]
            made = cls(prototype, [kind.key for kind in kinds], labels, kinds=kinds)
        else:
            fields, prototype = _united(kinds, len(files), labels)
            made = cls(prototype, (), labels, fields, kinds)
        made._keys.update(zip(files, keys, strict=True))
        return made

    @property
    def is_of_a_file(self) -> bool:
        """Whether the prototype is a file that was written so, and was not made to unite several."""
        return self._known_fields is None

    @property
    def schema(self) -> Schema:
        """The tree of columns."""
        return self.prototype.schema

    @cached_property
    def fields(self) -> Sequence[Field | None]:
        """The columns of the prototype, by position."""
        return fields_of(self.prototype) if self._known_fields is None else self._known_fields

    def matches(self, file: OpenedFile, columns: Sequence[Leaf | NestedColumn]) -> list[Match]:
        """Find columns of the dataset in a file.

        Parameters
        ----------
        file : OpenedFile
            One of the files, or another that has the schema of one of them.
        columns : sequence of Leaf or NestedColumn
            Columns of the prototype, as `numparq.selection.select_columns` gives them.

        Returns
        -------
        list of Match
            One each.
        """
        key = self._keys.get(file)
        if key is None:
            key = self._keys[file] = _key(file)
        if key in self._like:
            return [Match(column, True) for column in columns]
        asked = key, tuple(map(id, columns))
        known = self._matched.get(asked)
        if known is None:
            found = [self._matcher(file, key).match(column) for column in columns]
            if len(self._matched) >= _MOST_KEPT:
                self._matched.clear()
            known = self._matched[asked] = tuple(columns), found  # which keeps the columns, and so their ids
        return list(known[1])

    def _matcher(self, file: OpenedFile, key: SchemaKey) -> Matcher:
        if key not in self._matchers:
            kind = self._kinds.get(key) or Kind(file, key)
            self._matchers[key] = Matcher(self.fields, file.schema, kind.fields, self._labels, file.source.name)
        return self._matchers[key]


class Kind:
    """The first of the files of one key.

    Parameters
    ----------
    file : OpenedFile
        The file.
    key : SchemaKey
        Its key.
    """

    def __init__(self, file: OpenedFile, key: SchemaKey) -> None:
        self.file = file
        self.key = key
        self.name = file.source.name
        self.keys = file.footer.key_value_metadata

    @cached_property
    def fields(self) -> list[Field | None]:
        """Its columns, by position."""
        return fields_of(self.file)

    @property
    def content(self) -> Hashable | None:
        """All that a united schema is made of, of this file; None where that is large."""
        part, notes = self.file.footer.schema_part, [self.keys.get(name) for name in _NOTES]
        if not part.is_shared or sum(len(note or b"") for note in notes) > _KEPT_BYTES:
            return None
        return part, *notes, self.file.is_own


def _key(file: OpenedFile) -> SchemaKey:
    with located(file=file.source.name):
        return schema_key(file)


def _kinds(files: Sequence[OpenedFile], keys: Sequence[SchemaKey]) -> list[Kind]:
    """Give one file of each kind, in their order."""
    found: dict[SchemaKey, Kind] = {}
    for file, key in zip(files, keys, strict=True):
        if key not in found:
            found[key] = Kind(file, key)
    return list(found.values())


def _are_alike(kinds: Sequence[Kind]) -> bool:
    """Say whether files have the same columns: their Arrow schemas may differ in length by the rows that they count."""
    first = kinds[0]
    return all(
        kind.key._replace(arrow_schema=None) == first.key._replace(arrow_schema=None) and kind.fields == first.fields
        for kind in kinds[1:]
    )


def _united(kinds: Sequence[Kind], count: int, labels: Labels) -> tuple[list[Field], OpenedFile]:
    """Unite the columns of files, and make the prototype of them: once for files that are alike in all that counts."""

    def made() -> tuple[list[Field], OpenedFile]:
        fields = united_columns([(kind.name, kind.fields) for kind in kinds], labels)
        return fields, _prototype(fields, kinds, count, labels)

    contents = tuple([kind.content for kind in kinds])
    if len(kinds) > _MOST_KINDS or None in contents:
        return made()
    return _kept.get((contents, count == 1, labels), made)


def _given(schema: Any, kinds: Sequence[Kind], count: int, labels: Labels) -> DatasetSchema:
    """Give the schema that the caller wants, once all files fit it."""
    wanted = given_fields(schema)
    if isinstance(schema, Schema):
        wanted = dressed(wanted, [kind.fields for kind in kinds], labels)
    for kind in kinds:
        wanted = fitted_columns(wanted, kind.name, kind.fields, labels)
    return DatasetSchema(_prototype(wanted, kinds, count, labels, is_given=True), (), labels, wanted, kinds)


def _prototype(
    fields: list[Field], kinds: Sequence[Kind], count: int, labels: Labels, is_given: bool = False
) -> OpenedFile:
    keys = {key: value for kind in kinds for key, value in kind.keys.items() if key == "PANDAS_ATTRS"}
    notes = [kind.keys["pandas"] for kind in kinds if "pandas" in kind.keys]
    columns = {field.name: field.type for field in fields}
    made = united_notes(notes, columns, _agreed(fields, kinds, labels), count == 1)
    if made is not None:
        keys["pandas"] = made
    geometries = united_geo_notes([(kind.name, kind.keys["geo"]) for kind in kinds if "geo" in kind.keys], columns)
    if geometries is not None:
        keys["geo"] = geometries
    return made_prototype(
        fields, keys, has_arrow_schema=is_given or any("ARROW:schema" in kind.keys for kind in kinds),
        is_own=bool(kinds) and all(kind.file.is_own for kind in kinds),
    )  # fmt: skip


def _agreed(fields: Sequence[Field], kinds: Sequence[Kind], labels: Labels) -> set[str]:
    """Give the names of columns that all files that have them have of one name and type."""
    made = {label: (field.name, _meaning(field)) for label, field in zip(labels(fields), fields, strict=True)}
    agreed = {name for name, _ in made.values()}
    for kind in kinds:
        for label, field in zip(labels(kind.fields), kind.fields, strict=True):
            if field is not None and label in made and (field.name, _meaning(field)) != made[label]:
                agreed.discard(made[label][0])
    return agreed


def _meaning(field: Field) -> tuple[Any, ...]:
    """Give what a dtype may depend on: types, and which fields there are."""
    inside = tuple((child.name if field.kind == "struct" else "", _meaning(child)) for child in field.children)
    return field.kind, field.type, field.dictionary, inside
