"""Options of a shared job: partition columns, schema, limits and sort order, checked before tasks run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numparq.dataset.partitions.text import check_partition_type
from numparq.errors import SchemaError
from numparq.file.writer import ParquetWriter
from numparq.from_pandas.user_schema import UserSchema, parse_schema

from .partition_files import FileLimits
from .partition_frame import FramePartitioner, check_columns_remain
from .row_group_buffer import RowGroupLimits, SortKey

__all__ = ["JobOptions"]


@dataclass(frozen=True, slots=True)
class JobOptions:
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
    def file_schema(self) -> UserSchema:
        """The types of the columns that files have."""
        given = parse_schema(self.schema)
        columns = {name: column for name, column in given.columns.items() if name not in self.partition_cols}
        return UserSchema(columns, given.complete)

    @property
    def is_complete(self) -> bool:
        """Whether the schema says what columns there are, and not just of what types some are."""
        return parse_schema(self.schema).complete

    @property
    def partition_kinds(self) -> dict[str, str]:
        """The kinds of types of the partition columns, as far as they are given."""
        given = parse_schema(self.schema).columns
        return {name: given[name].field.type.kind for name in self.partition_cols if name in given}

    def check(self) -> None:
        """Find out beforehand, and not in all the tasks, that something is wrong, or names columns that there are not.

        Raises
        ------
        SchemaError, ValueError, TypeError
            As tasks would.
        """
        FramePartitioner(self.partition_cols)
        given = parse_schema(self.schema)
        for name in self.partition_cols:
            if name in given.columns:
                check_partition_type(given.columns[name].node, given.columns[name].field.type)
            elif given.complete:
                raise SchemaError("the schema has no such column to partition by", column=name)
        check_columns_remain(self.partition_cols, list(given.columns) if given.complete else None)
        if self.schema is None:
            ParquetWriter(None, **self.options).abort()
        else:
            self.empty_file()

    def empty_file(self) -> bytes:
        """Make a file without rows, of the columns of the schema."""
        with ParquetWriter(None, self.file_schema, **self.options, threads=1, progress=False) as writer:
            pass
        return writer.getvalue()
