"""Types by the schema alone: what any part of a table has, whatever files and values it is made of.

A nullable integer or boolean is a nullable one though there is no null in sight, and nothing is a Categorical, whose
categories would be those of some files.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...dtypes import choose, uses_origin
from ...pandas_metadata import PandasMetadata
from ...schema import Leaf
from ...targets import Target
from ..columns import TableColumns
from ..partitions import Partitions
from ..reading import TableRead, WantedFile

__all__ = ["PlainColumns", "PlainMetadata", "PlainPartitions", "StrictRead"]


class PlainMetadata(PandasMetadata):
    """Pandas metadata of which only dtypes count: columns are called as in the schema, and none is an index."""

    @classmethod
    def of(cls, metadata: PandasMetadata | None) -> PlainMetadata | None:
        """Make it of what a file has."""
        if metadata is None:
            return None
        made = cls.__new__(cls)
        made.__dict__.update(copy.copy(metadata).__dict__)
        made.index, made.index_fields, made.column_levels, made.attrs = (), (), [], {}
        return made

    def label(self, field: str) -> Any:
        """Give the name of a column."""
        return field

    def exact_label(self, field: str) -> Any:
        """Give the name of a column."""
        return field


class PlainColumns(TableColumns):
    """The columns of a read, with nothing dictionary-encoded."""

    def _target(self, leaf: Leaf, null_count: int | None, categorical: bool) -> Target:
        target = super()._target(leaf, null_count, categorical)
        is_categorical = target.wanted is not None and target.wanted.categories is not None
        if target.storage != "dictionary" and not is_categorical:
            return target
        backend = self._choices.dtype_backend
        origin = self._file.arrow_schema.type_of(leaf.column) if uses_origin(leaf, backend) else None
        plain = None if origin is None else replace(origin, dictionary=None)
        return choose(leaf, plain, dtype_backend=backend, null_count=null_count)


class PlainPartitions(Partitions):
    """Partition columns that are no Categoricals, and of which any may be null."""

    def type_names(self) -> dict[str, str]:
        """Give the types of all columns by their names, which `Partitions` takes."""
        return {key: self._column(key).type.name for key in self.keys}

    def has_nulls(self, key: str) -> bool:
        """Say that there may be nulls: some file of the table may be in the null partition."""
        return True


class StrictRead(TableRead):
    """A read of many files whose dtypes do not depend on these."""

    def _nulls_of(self, files: Sequence[WantedFile]) -> list[bool]:
        self._ready.update({wanted: self._made(wanted) for wanted in files})
        return [leaf.max_definition_level > 0 for leaf in self.table.leaves]
