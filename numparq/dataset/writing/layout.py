"""How the rows of a write become files, the same in all of its tasks, and whether they can."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...errors import SchemaError
from ...shred.given import GivenSchema, given_schema
from ...writer import ParquetWriter
from .division import PartitionColumns, check_some_are_left
from .gathering import RowGroupLimits
from .parts import FileLimits
from .sorting import SortKey
from .texts import check_stored

__all__ = ["Layout"]


@dataclass(frozen=True, slots=True)
class Layout:
    """How rows become files, the same in all tasks of a write.

    Parameters
    ----------
    partition_cols : tuple of str
        The columns by whose values rows are divided.
    schema : object
        The columns' types, as `numparq.ParquetWriter` takes them; None for those of the first rows.
    row_group : RowGroupLimits
        When rows are enough for a row group.
    file : FileLimits
        When a file is full.
    sort_keys : tuple of SortKey
        What the rows of a task are sorted by.
    options : dict
        Others of each file, as in `numparq.ParquetWriter`.
    same_name : callable
        Gives the same for names of columns that are one to readers.
    """

    partition_cols: tuple[str, ...]
    schema: Any
    row_group: RowGroupLimits
    file: FileLimits
    sort_keys: tuple[SortKey, ...]
    options: dict[str, Any]
    same_name: Callable[[str], str] = str

    @property
    def file_schema(self) -> GivenSchema:
        """The types of the columns that files have."""
        given = given_schema(self.schema)
        columns = {name: column for name, column in given.columns.items() if name not in self.partition_cols}
        return GivenSchema(columns, given.complete)

    @property
    def is_complete(self) -> bool:
        """Whether the schema says what columns there are, and not just of what types some are."""
        return given_schema(self.schema).complete

    @property
    def partition_kinds(self) -> dict[str, str]:
        """The kinds of types of the partition columns, as far as they are given."""
        given = given_schema(self.schema).columns
        return {name: given[name].field.type.kind for name in self.partition_cols if name in given}

    def check(self) -> None:
        """Find out beforehand, and not in all the tasks, that something is wrong, or names columns that there are not.

        Raises
        ------
        SchemaError, ValueError, TypeError
            As tasks would.
        """
        PartitionColumns(self.partition_cols)
        given = given_schema(self.schema)
        for name in self.partition_cols:
            if name in given.columns:
                check_stored(given.columns[name].node, given.columns[name].field.type)
            elif given.complete:
                raise SchemaError("the schema has no such column to partition by", column=name)
        check_some_are_left(self.partition_cols, list(given.columns) if given.complete else None)
        if self.schema is None:
            ParquetWriter(None, **self.options).abort()
        else:
            self.empty_file()

    def empty_file(self) -> bytes:
        """Make a file without rows, of the columns of the schema."""
        with ParquetWriter(None, self.file_schema, **self.options, threads=1, progress=False) as writer:
            pass
        return writer.getvalue()
