"""Minimal partitions, listings and schemas for tests of dataset filters."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from numparq.column.projection import select_column
from numparq.dataset.listing.files import DataFile
from numparq.errors import SchemaError
from numparq.format.open_file import OpenFile
from numparq.format.schema import Leaf
from numparq.scan.file_reader import FileReader
from numparq.scan.scan_file import ScanFile
from numparq.util.worker_pool import WorkerPool


class StubPartitionKeys:
    """Partition keys with given types: by key, a leaf and the parser of its text."""

    def __init__(self, **keys: tuple[Leaf, Any]) -> None:
        self.keys = tuple(keys)
        self._keys = keys

    def leaf(self, key: str) -> Leaf:
        return self._keys[key][0]

    def value(self, key: str, raw: str | None) -> Any:
        return None if raw is None else self._keys[key][1](raw)

    def advice(self, key: str) -> str:
        """Return no advice: all types are given."""
        return ""


def stub_partition(*values: str | None, name: str = "part.parquet", size: int | None = None) -> DataFile:
    return DataFile(name, name, size, None, values)


def matching_row_numbers(file: OpenFile, condition: Any) -> list[int]:
    """Return the numbers of the rows that satisfy a condition."""
    reader = FileReader([ScanFile(file, 0, None, condition)])
    with WorkerPool(1) as pool:
        reader.open([], pool)
        reader.select()
        return np.asarray(reader.virtual_column("row_number")).tolist()


class StubSchemaByName:
    """A dataset schema whose columns are resolved by name."""

    def __init__(self, prototype: OpenFile) -> None:
        self.schema_file = prototype

    def check_columns(self, columns: Any) -> None:
        """Accept all columns: they conflict in no file."""

    def map_columns(self, file: OpenFile, columns: Any) -> list[Any]:
        return [SimpleNamespace(column=_of_file(file.schema, column)) for column in columns]


def _of_file(schema: Any, column: Any) -> Any:
    path = column.path if isinstance(column, Leaf) else column.type.path
    try:
        return select_column(schema, tuple(path))
    except SchemaError:
        return None
