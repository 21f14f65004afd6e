"""Schema-only types: dtypes that no file, value or dictionary can change."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from numparq.dataset.partitions.columns import DatasetPartitions
from numparq.format.key_values.pandas import PandasMetadata
from numparq.format.schema import Leaf
from numparq.types.choose import choose_output_type, needs_arrow_hint
from numparq.types.output_type import OutputType

from .dataset_scan import DatasetScan
from .projected_columns import DatasetColumns

__all__ = ["SchemaOnlyColumns", "SchemaOnlyPandasMetadata", "SchemaOnlyPartitions", "SchemaOnlyScan"]


class SchemaOnlyPandasMetadata(PandasMetadata):
    """Pandas metadata of which only dtypes count: columns are called as in the schema, and none is an index."""

    @classmethod
    def from_metadata(cls, metadata: PandasMetadata | None) -> SchemaOnlyPandasMetadata | None:
        """Make it of what a file has."""
        if metadata is None:
            return None
        made = cls.__new__(cls)
        made.__dict__.update(copy.copy(metadata).__dict__)
        made.index, made.index_fields, made.column_levels, made.attrs = (), (), [], {}
        return made

    def labels(self, fields: Sequence[str]) -> list[Any]:
        """Return the names of columns."""
        return list(fields)

    def exact_label(self, field: str) -> Any:
        """Give the name of a column."""
        return field


class SchemaOnlyColumns(DatasetColumns):
    """The columns of a read, with nothing dictionary-encoded."""

    def _output_type(self, leaf: Leaf, null_count: int | None, categorical: bool) -> OutputType:
        target = super()._output_type(leaf, null_count, categorical)
        is_categorical = target.cast_to is not None and target.cast_to.categories is not None
        if target.storage != "dictionary" and not is_categorical:
            return target
        backend = self._options.dtype_backend
        origin = self._file.arrow_schema.field_type(leaf.column) if needs_arrow_hint(leaf, backend) else None
        plain = None if origin is None else replace(origin, dictionary=None)
        return choose_output_type(leaf, plain, dtype_backend=backend, null_count=null_count)


class SchemaOnlyPartitions(DatasetPartitions):
    """Partition columns that are no Categoricals, and of which any may be null."""

    def type_names(self) -> dict[str, str]:
        """Give the types of all columns by their names, which `DatasetPartitions` takes."""
        return {key: self._column(key).type.name for key in self.keys}

    def has_nulls(self, key: str) -> bool:
        """Say that there may be nulls: some file of the table may be in the null partition."""
        return True


class SchemaOnlyScan(DatasetScan):
    """A read of many files whose dtypes do not depend on these."""

    @cached_property
    def may_be_null(self) -> list[bool]:
        """Whether each leaf of the table is OPTIONAL, or inside of what is."""
        return [leaf.max_definition_level > 0 for leaf in self.table.leaves]
