"""A schema as it is carried to another process: the footer of a file without rows, and what it does not tell."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from ...metadata.rewrite import without_row_groups
from ...opened import OpenedFile
from ..identity import schema_key
from ..labelling import labels_by
from ..resolution import DatasetSchema
from .strict import PlainMetadata

__all__ = ["CarriedSchema"]

_MAGIC = b"PAR1"


class CarriedSchema:
    """The schema of a table, which can be pickled.

    Parameters
    ----------
    schema : DatasetSchema
        As the files have it.
    resolve : {"name", "position", "field_id"}
        Which columns of two files are the same one.
    """

    def __init__(self, schema: DatasetSchema, resolve: str) -> None:
        footer = without_row_groups(schema.prototype.footer)
        self._file = _MAGIC + footer + len(footer).to_bytes(4, "little") + _MAGIC
        self._fields = None if schema.is_of_a_file else tuple(schema.fields)
        self._resolve = resolve

    def __getstate__(self) -> tuple[Any, ...]:
        return self._file, self._fields, self._resolve

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self._file, self._fields, self._resolve = state

    @cached_property
    def schema(self) -> DatasetSchema:
        """The schema. Its prototype has neither rows nor an index, and its columns are called as they are stored."""
        prototype = OpenedFile(self._file)
        like = [schema_key(prototype)] if self._fields is None else []
        prototype.pandas_metadata = PlainMetadata.of(prototype.pandas_metadata)
        return DatasetSchema(prototype, like, labels_by(self._resolve), self._fields)
