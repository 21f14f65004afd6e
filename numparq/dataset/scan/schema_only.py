"""Schema-only columns: dtypes that no file, value or dictionary can change."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from numparq.dataset.partitions.columns import DatasetPartitions
from numparq.format.key_values.pandas import PandasMetadata
from numparq.format.schema import Leaf
from numparq.types.choose import choose_output_type, needs_arrow_hint
from numparq.types.output_type import OutputType

from .projected_columns import DatasetColumns


class SchemaOnlyPandasMetadata(PandasMetadata):
    """Pandas metadata of which only dtypes count: columns have the schema's names, and none is an index."""

    @classmethod
    def from_metadata(cls, metadata: PandasMetadata | None) -> SchemaOnlyPandasMetadata | None:
        """Return the metadata of a file, reduced."""
        if metadata is None:
            return None
        reduced = cls.__new__(cls)
        reduced.__dict__.update(copy.copy(metadata).__dict__)
        reduced.index, reduced.index_fields, reduced.column_levels, reduced.attrs = (), (), [], {}
        return reduced

    def labels(self, fields: Sequence[str]) -> list[Any]:
        """Return the names of columns."""
        return list(fields)

    def exact_label(self, field: str) -> Any:
        """Return the name of a column."""
        return field


class SchemaOnlyColumns(DatasetColumns):
    """Projected columns whose dtypes no file decides: nothing is dictionary-encoded."""

    @property
    def may_be_null(self) -> list[bool]:  # type: ignore[override]
        """Whether each leaf is OPTIONAL, or inside of one."""
        return [leaf.max_definition_level > 0 for leaf in self.leaves]

    def _output_type(self, leaf: Leaf, has_nulls: bool, categorical: bool) -> OutputType:
        target = super()._output_type(leaf, has_nulls, categorical)
        is_categorical = target.cast_to is not None and target.cast_to.categories is not None
        if target.storage != "dictionary" and not is_categorical:
            return target
        backend = self._options.dtype_backend
        origin = self._file.arrow_schema.field_type(leaf.column) if needs_arrow_hint(leaf, backend) else None
        plain = None if origin is None else replace(origin, dictionary=None)
        return choose_output_type(leaf, plain, dtype_backend=backend, has_nulls=has_nulls)


class SchemaOnlyPartitions(DatasetPartitions):
    """Partition columns that are no Categoricals and may be null."""

    def type_names(self) -> dict[str, str]:
        """Return the type names of all columns by key, as `DatasetPartitions` takes them."""
        return {key: self._column(key).type.name for key in self.keys}

    def has_nulls(self, key: str) -> bool:
        """Return True: some file of the table may be in the null partition."""
        return True
