"""Projected columns of a dataset read: those of the merged schema, then partition columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from numparq.column.projection import (
    NestedProjection,
    check_categories,
    check_include,
    check_names,
    index_columns,
    merge_parts,
    projection_of,
    select_column,
    unknown_column_error,
)
from numparq.dataset.partitions.columns import DatasetPartitions
from numparq.dataset.schema_merge.dataset_schema import DatasetSchema
from numparq.errors import SchemaError, UnsupportedError, error_context
from numparq.format.arrow_type import ArrowType
from numparq.format.open_file import OpenFile
from numparq.format.schema import Leaf
from numparq.scan.file_columns import FileColumns
from numparq.scan.options import ScanOptions
from numparq.scan.projected_columns import ProjectedColumns
from numparq.scan.scan_file import ScanFile
from numparq.types.output_type import OutputType

if TYPE_CHECKING:
    from numparq.to_pandas.nested.explode import ExplodedCollection

# Of columns that no file stores.
_NOT_STORED = OutputType("null", "nulls", ArrowType("null"))


def project_columns(
    dataset_schema: DatasetSchema, partitions: DatasetPartitions, columns: Any, options: ScanOptions
) -> DatasetColumns:
    """Select the projected columns of a dataset; None stands for all, partition columns last.

    A file's column with the name of a partition column is not read. Raises SchemaError for a missing column, and for
    one that conflicts between files.
    """
    schema_file = dataset_schema.schema_file
    schema, keys = schema_file.schema, {key: partitions.leaf(key) for key in partitions.keys}
    metadata = schema_file.pandas_metadata
    index = [name for name in (metadata.index_fields if metadata else ()) if name not in keys]
    if options.explode is not None:
        from numparq.to_pandas.nested.explode import ExplodedCollection

        explosion = ExplodedCollection(
            schema, options.explode, columns, index, options.include, options.categorical_names, keys
        )
        dataset_schema.check_columns([one for one in explosion.read_columns if not _is_partition(one)])
        return DatasetColumns(schema_file, explosion.read_columns, options, partitions, explosion)
    if columns is None:
        names: Sequence[Any] = [
            name for position, name in enumerate(schema.columns) if name not in keys and schema.has_leaves(position)
        ]
        names = [*names, *keys]
    else:
        names = check_names(columns)
    selected: list[Leaf | NestedProjection] = merge_parts(
        keys[name] if isinstance(name, str) and name in keys else _selected(schema_file, name, keys) for name in names
    )
    own = [column for column in selected if not _is_partition(column)]
    selected += index_columns(schema, index, own)
    dataset_schema.check_columns([one for one in selected if not _is_partition(one)])
    check_categories({*options.categorical_names, *partitions.categories}, schema, [*keys, *options.include])
    return DatasetColumns(schema_file, selected, options, partitions)


def _selected(schema_file: OpenFile, name: Any, keys: Mapping[str, Leaf]) -> Leaf | NestedProjection:
    try:
        with error_context(file=schema_file.source.name):
            return select_column(schema_file.schema, name)
    except SchemaError:
        raise unknown_column_error(name, [*schema_file.schema.columns, *keys], "the dataset") from None


def _is_partition(column: Leaf | NestedProjection) -> bool:
    return isinstance(column, Leaf) and column.index < 0


class DatasetColumns(ProjectedColumns):
    """Projected columns of a dataset: columns of `schema_file` and partition columns, in the order of the frame."""

    has_partitions = True

    def __init__(
        self,
        schema_file: OpenFile,
        selected: Sequence[Leaf | NestedProjection],
        options: ScanOptions,
        partitions: DatasetPartitions,
        explosion: ExplodedCollection | None = None,
    ) -> None:
        virtual = check_include(options.include) if explosion is None else explosion.virtual_columns
        super().__init__(schema_file, projection_of(selected), options, virtual, explosion)
        self.selected = selected
        self.partitions = partitions

    @property
    def stored_positions(self) -> list[int]:
        """Positions of the columns that files store."""
        return [at for at, column in enumerate(self.selected) if not _is_partition(column)]

    def _output_type(self, leaf: Leaf, has_nulls: bool, categorical: bool) -> OutputType:
        return _NOT_STORED if leaf.index < 0 else super()._output_type(leaf, has_nulls, categorical)

    def partition_arrays(self, ordinals: Sequence[int], counts: Sequence[int]) -> dict[int, Any]:
        """Return the partition columns for `counts` rows of each file, by the position of their leaf."""
        return {
            self.leaf_slices[at].start: self.partitions.column(
                column.name, ordinals, counts, self._options.dtype_backend, self._options.dates
            )
            for at, column in enumerate(self.selected)
            if _is_partition(column)
        }

    # --- casts --------------------------------------------------------------------------------------------------------

    def map_files(self, schema: DatasetSchema, files: Sequence[ScanFile]) -> None:
        """Set the columns of files, which become those of `schema`; files of equal columns share one object."""
        positions = self.stored_positions
        stored = [self.selected[at] for at in positions]
        mappings = [schema.map_columns(one.file, stored) for one in files]  # one object for files of one schema
        distinct = {id(mapping): dict(zip(positions, mapping, strict=True)) for mapping in mappings}
        cast = {
            at
            for mapping in distinct.values()
            for at, mapped in mapping.items()
            if not mapped.is_same and mapped.column is not None
        }
        if self._options.explode is not None and len(self.selected) - 1 in cast:
            column = self.selected[-1].name
            raise UnsupportedError("explode needs the same type in all files; read the files one by one", column=column)
        self.cast_positions = sorted(cast)
        columns: dict[int, FileColumns] = {}
        names = {id(mapping): one.file.source.name for one, mapping in zip(files, mappings, strict=True)}
        by_content: dict[tuple[Any, ...], FileColumns] = {}
        for key, mapping in distinct.items():
            own = {at: mapped.column for at, mapped in mapping.items()}
            content = tuple(one if one is None or isinstance(one, Leaf) else id(one) for one in own.values())
            known = by_content.get(content)
            if known is None:
                with error_context(file=names[key]):
                    known = FileColumns.mapped(self, own, self.cast_positions)
            columns[key] = by_content[content] = known
        for one, mapping_of_file in zip(files, mappings, strict=True):
            one.columns = columns[id(mapping_of_file)]
