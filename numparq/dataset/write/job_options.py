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
    """Options of a shared job, the same in all its tasks; those of `SharedJob.begin`.

    ``options`` are those of `ParquetWriter`; ``schema`` is None if tasks infer the types from their first rows.
    """

    partition_cols: tuple[str, ...]
    schema: Any
    row_group_limits: RowGroupLimits
    file_limits: FileLimits
    sort_keys: tuple[SortKey, ...]
    options: dict[str, Any]
    same_name: Callable[[str], str] = str

    @property
    def file_schema(self) -> UserSchema:
        """Schema of the columns in files, without partition columns."""
        given = parse_schema(self.schema)
        columns = {name: column for name, column in given.columns.items() if name not in self.partition_cols}
        return UserSchema(columns, given.is_complete)

    @property
    def has_all_columns(self) -> bool:
        """Whether the schema names all columns, and not only the types of some."""
        return parse_schema(self.schema).is_complete

    @property
    def partition_kinds(self) -> dict[str, str]:
        """Arrow kinds of the partition columns, where the schema has them."""
        given = parse_schema(self.schema).columns
        return {name: given[name].field.type.kind for name in self.partition_cols if name in given}

    def check(self) -> None:
        """Raise SchemaError, ValueError or TypeError for wrong options before any task runs, as a task would."""
        FramePartitioner(self.partition_cols)
        given = parse_schema(self.schema)
        for name in self.partition_cols:
            if name in given.columns:
                check_partition_type(given.columns[name].node, given.columns[name].field.type)
            elif given.is_complete:
                raise SchemaError("the schema has no such column to partition by", column=name)
        check_columns_remain(self.partition_cols, list(given.columns) if given.is_complete else None)
        if self.schema is None:
            ParquetWriter(None, **self.options).abort()
        else:
            self.empty_file()

    def empty_file(self) -> bytes:
        """Encode a file with the columns of the schema and no rows."""
        with ParquetWriter(None, self.file_schema, **self.options, threads=1, progress=False) as writer:
            pass
        return writer.getvalue()
