"""Scan of many files of different schemas: columns mapped and cast, partition columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from numparq.dataset.cast.columns import cast_column
from numparq.dataset.schema_merge.dataset_schema import DatasetSchema
from numparq.errors import UnsupportedError
from numparq.format.schema import Leaf
from numparq.scan.file_columns import FileColumns, can_be_missing
from numparq.scan.file_reader import FileReader
from numparq.scan.options import ScanOptions
from numparq.scan.scan import Scan
from numparq.scan.scan_file import ScanFile

from .projected_columns import DatasetColumns

if TYPE_CHECKING:
    from numparq.scan.recovery.skip_damaged import SkipDamaged

__all__ = ["DatasetScan"]


class DatasetScan(Scan):
    """Scan of many files, whose columns become those of `schema`."""

    table: DatasetColumns

    def __init__(
        self,
        schema: DatasetSchema,
        table: DatasetColumns,
        files: Sequence[ScanFile],
        choices: ScanOptions,
        skip: SkipDamaged | None = None,
    ) -> None:
        stored = [table.selected[at] for at in table.stored_positions]
        mappings = [schema.map_columns(wanted.file, stored) for wanted in files]  # one object for files of one schema
        by_id = {id(mapping): mapping for mapping in mappings}
        distinct = {key: dict(zip(table.stored_positions, mapping, strict=True)) for key, mapping in by_id.items()}
        apart = {
            at
            for mapping in distinct.values()
            for at, mapped in mapping.items()
            if not mapped.is_same and not (mapped.column is None and can_be_missing(table.selected[at]))
        }
        if choices.explode is not None and len(table.selected) - 1 in apart:
            column = table.selected[-1].name
            raise UnsupportedError("explode needs the same type in all files; read the files one by one", column=column)
        # Files of different schemas share one object if the columns that are read are equal: they can be joined.
        columns: dict[int, FileColumns] = {}
        made: dict[tuple[Any, ...], FileColumns] = {}
        for key, mapping in distinct.items():
            own = {at: mapped.column for at, mapped in mapping.items()}
            content = tuple(one if one is None or isinstance(one, Leaf) else id(one) for one in own.values())
            columns[key] = made[content] = made.get(content) or FileColumns(table, own, apart)
        of_files = {wanted.ordinal: columns[id(mapping)] for wanted, mapping in zip(files, mappings, strict=True)}
        super().__init__(table, files, of_files, choices, skip)

    def partition_arrays(self, ordinals: Sequence[int], counts: Sequence[int]) -> dict[int, Any]:
        """Build the partition columns, for so many rows of each file, by leaf position."""
        return self.table.partition_arrays(ordinals, counts)

    def _cast_arrays(self, parts: Sequence[FileReader], arrays: Sequence[dict[int, Any]]) -> dict[int, Any]:
        """Cast the columns that each file has decoded apart to the dtypes of the table, and concatenate them."""
        made = {}
        for at, dtype in self._cast_dtypes().items():
            if self.table.labels[self.table.leaf_slices[at].start] is None:  # lost
                continue
            cast = [
                cast_column(
                    of_part.get(at),
                    part.columns.stored.get(at),
                    self.table.selected[at],
                    dtype,
                    num_rows=part.rows.num_rows,
                    file=part.file.source.name,
                )
                for part, of_part in zip(parts, arrays, strict=True)
            ]
            if not cast:  # no file has a row
                cast = [cast_column(None, None, self.table.selected[at], dtype, num_rows=0)]
            made[self.table.leaf_slices[at].start] = _concatenated(cast)
        return made

    def _cast_dtypes(self) -> dict[int, Any]:
        """Return the dtype, by the schema alone, that each cast column has in all files, by position."""
        positions = sorted(self._apart)
        table = self.table.select(positions)
        may_be_null = [answer for at in positions for answer in self.may_be_null[self.table.leaf_slices[at]]]
        return dict(zip(positions, table.dtypes(table.schema_only_types(may_be_null)), strict=True))


def _concatenated(arrays: Sequence[Any]) -> Any:
    """Put arrays of one dtype behind one another."""
    if len(arrays) == 1:
        return arrays[0]
    if isinstance(arrays[0].dtype, pd.CategoricalDtype):
        one_order = all(array.dtype == arrays[0].dtype for array in arrays)
        return pd.api.types.union_categoricals(arrays, ignore_order=not one_order)
    if isinstance(arrays[0], np.ndarray):
        return np.concatenate(arrays)
    return pd.concat([pd.Series(array, copy=False) for array in arrays], ignore_index=True).array
