"""Options of a shared job: partition columns, schema, limits and sort order, checked before tasks run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numparq.crypto.key import KeySource, check_named
from numparq.dataset.partitions.text import check_partition_type
from numparq.errors import SchemaError
from numparq.file.writer import ParquetWriter
from numparq.format.open_file import OpenFile
from numparq.from_pandas.user_schema import UserSchema, parse_schema
from numparq.typing import EncryptionKeys
from numparq.util.arguments import check_optional_positive_int

from .partition_files import FileLimits
from .partition_frame import FramePartitioner, check_columns_remain
from .row_group_buffer import RowGroupLimits, SortKey
from .store_refresh import RefreshableStore

ROW_GROUP_ROWS = 1 << 20
ROW_GROUP_BYTES = 1 << 27


def parse_limits(
    row_group_size: int | None,
    row_group_bytes: int | None,
    max_rows_per_file: int | None,
    max_bytes_per_file: int | None,
) -> tuple[RowGroupLimits, FileLimits]:
    """Check the limits of row groups and files; ValueError or TypeError for a wrong one."""
    rows = check_optional_positive_int(row_group_size, "row_group_size")
    num_bytes = check_optional_positive_int(row_group_bytes, "row_group_bytes")
    return RowGroupLimits(rows or ROW_GROUP_ROWS, num_bytes or ROW_GROUP_BYTES), FileLimits(
        check_optional_positive_int(max_rows_per_file, "max_rows_per_file"),
        check_optional_positive_int(max_bytes_per_file, "max_bytes_per_file"),
    )


@dataclass(frozen=True, slots=True)
class JobOptions:
    """Options of a shared job, the same in all its tasks; those of `SharedJob.begin`.

    ``options`` are those of `ParquetWriter`; ``schema`` is None if tasks infer the types from their first rows;
    ``decryption`` has the keys with which the commit opens files; ``skipping`` is the store that it refreshes.
    """

    partition_cols: tuple[str, ...]
    schema: Any
    row_group_limits: RowGroupLimits
    file_limits: FileLimits
    sort_keys: tuple[SortKey, ...]
    options: dict[str, Any]
    same_name: Callable[[str], str] = str
    table_format: str = "auto"
    decryption: KeySource | None = None
    skipping: RefreshableStore | None = None

    @property
    def encryption(self) -> EncryptionKeys | None:
        """Keys of the files; None: they are not encrypted."""
        keys: EncryptionKeys | None = self.options.get("encryption")
        return keys

    def check_travels(self) -> None:
        """Raise TypeError if the options have keys that no provider named, and so cannot be pickled."""
        for keys in (self.encryption, self.decryption):
            check_named(keys, "a shared job")

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
        ParquetWriter(None, **self.options).abort()
        if self.schema is not None:
            leaves = OpenFile(self.empty_file()).schema
            if self.encryption is not None:
                self.encryption.file_keys(
                    [leaf.path for leaf in leaves], tuple
                )  # raises for names that match no column

    def empty_file(self) -> bytes:
        """Encode a file with the columns of the schema and no rows, for this process alone: it is never encrypted."""
        with ParquetWriter(None, self.file_schema, **{**self.options, "encryption": None}, threads=1) as writer:
            pass
        return writer.getvalue()
