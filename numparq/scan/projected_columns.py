"""Projected columns: the output type of each leaf, and the DataFrame built from decoded leaves."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from itertools import repeat
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from numparq.column.buffers import DecodedColumn
from numparq.column.projection import (
    NestedProjection,
    Projection,
    check_categories,
    check_include,
    projection_of,
    select_columns,
)
from numparq.errors import SchemaError, error_context
from numparq.format.key_values.arrow import pyarrow_field_type, pyarrow_schema
from numparq.format.key_values.pandas import PandasMetadata
from numparq.format.open_file import OpenFile
from numparq.format.schema import Leaf
from numparq.to_pandas.columns import to_array
from numparq.to_pandas.frame import BlockLayout, assemble
from numparq.types.choose import apply_dates, choose_output_type, needs_arrow_hint
from numparq.types.output_type import NESTED_PLACEHOLDER, OutputType
from numparq.types.pandas_roundtrip import roundtrip_output_type
from numparq.types.schema_only import schema_only_type
from numparq.typing import Columns
from numparq.util.bounded_cache import BoundedCache

from .file_columns import FileColumns, leaf_range
from .options import ScanOptions

if TYPE_CHECKING:
    import pandas as pd

    from numparq.to_pandas.nested.column import NestedOutput
    from numparq.to_pandas.nested.explode import ExplodedCollection


_MAX_CACHED_COLUMNS = 64  # selections of more columns are not cached
_MAX_CACHED_TYPES = 64  # lists of output types of one selection
_TYPE_KEYS = "pandas", "PANDAS_ATTRS", "ARROW:schema"  # key-values that output types follow from
_MAX_CACHED_METADATA = 32 << 10  # bytes of these, which are in the cache as keys
_NOTHING: Mapping[int, Any] = MappingProxyType({})
_STR = frozenset({str})


def project_columns(file: OpenFile, columns: Columns, options: ScanOptions) -> ProjectedColumns:
    """Select the projected columns of a read, virtual and exploded ones included.

    Raises SchemaError for a missing column, and for a column named like a virtual one.
    """
    if options.explode is None:
        is_empty = type(options.include) is tuple and not options.include
        virtual = [] if is_empty else check_include(options.include)
        if options.categories is not None:
            check_categories(options.categorical_names, file.schema, virtual)
        is_plain = columns is None or (
            type(columns) is list and len(columns) <= _MAX_CACHED_COLUMNS and _STR.issuperset(map(type, columns))
        )
        if file.is_alias or not is_plain:
            return ProjectedColumns(file, _prepare_columns(file, columns), options, virtual)
        key = "columns", file.calendar, None if columns is None else tuple(columns)
        cache = file.footer.cache
        prepared = cache.get(key) or cache.get_or_make(key, lambda: _shared_columns(file, columns))
        return ProjectedColumns(file, prepared, options, virtual)
    metadata = file.pandas_metadata
    index = metadata.index_fields if metadata else ()
    from numparq.to_pandas.nested.explode import ExplodedCollection

    explosion = ExplodedCollection(
        file.schema, options.explode, columns, index, options.include, options.categorical_names
    )
    return ProjectedColumns(file, projection_of(explosion.read_columns), options, explosion.virtual_columns, explosion)


class _PreparedColumns:
    """Projection of some columns, and what follows from it and the footer; kept for later reads, never changed."""

    __slots__ = ("identity", "index_leaves", "metadata", "output_types", "projection")

    def __init__(
        self, projection: Projection, metadata: PandasMetadata | None, output_types: BoundedCache | None = None
    ) -> None:
        self.projection, self.metadata = projection, metadata
        self.identity = FileColumns.identity(projection.leaves)
        if output_types is None:
            output_types = BoundedCache(_MAX_CACHED_TYPES if len(projection.leaves) <= _MAX_CACHED_COLUMNS else 1)
        self.output_types = output_types
        index = set(metadata.index_fields) if metadata else set[str]()
        self.index_leaves = [leaf for leaf, name in enumerate(projection.names) if name in index] if index else []


def _shared_columns(file: OpenFile, columns: Columns) -> _PreparedColumns:
    """Select the columns of a file; one instance for files of the same writer, schema and metadata of pandas and Arrow.

    Files of a dataset often have these in common; their types need not be chosen again.
    """
    keys = file.footer.key_value_metadata
    sizes = keys.sizes()
    if sum(map(sizes.get, _TYPE_KEYS, repeat(0))) > _MAX_CACHED_METADATA:
        return _prepare_columns(file, columns)
    key = None if columns is None else tuple(columns), file.footer.created_by, *map(keys.get, _TYPE_KEYS)
    return file.schema._cache.get_or_make(key, lambda: _prepare_columns(file, columns))


def _prepare_columns(file: OpenFile, columns: Columns) -> _PreparedColumns:
    """Select the columns of a file."""
    metadata = file.pandas_metadata
    index = metadata.index_fields if metadata else ()
    return _PreparedColumns(projection_of(select_columns(file.schema, columns, index)), metadata)


class ProjectedColumns:
    """Projected columns of a read. Single-use: `output_types` and the error policy change them.

    Attributes
    ----------
    leaves : list of Leaf
        Leaf columns of all projected columns.
    labels : list of str or None
        By leaf, the name of the column that it is or begins; None for the other leaves of nested columns.
    index_leaves : list of int
        Positions of the leaves that become the index of the frame; they share no block.
    selected : sequence of Leaf or NestedProjection
        The columns, in the order of their leaves.
    identity : FileColumns
        Columns of a file that has the leaves themselves.
    may_be_null : list of bool or None
        Whether each leaf may be null in any unit of a stream; None: the files' row groups decide.
    has_partitions : bool
        Whether `partition_arrays` returns columns.
    """

    selected: Sequence[Leaf | NestedProjection]
    cast_positions: Sequence[int] = ()  # of columns that a file of the scan casts
    has_partitions = False
    may_be_null: list[bool] | None = None

    def __init__(
        self,
        file: OpenFile,
        projection: Projection | _PreparedColumns,
        options: ScanOptions,
        virtual: Sequence[str] = (),
        explosion: ExplodedCollection | None = None,
    ) -> None:
        self._file = file
        self._options = options
        if isinstance(projection, Projection):
            types = None
            if len(projection.leaves) <= _MAX_CACHED_COLUMNS:
                key = "columns", type(self), tuple(projection.leaves)  # subclasses choose other output types
                types = file.footer.cache.get_or_make(key, lambda: BoundedCache(_MAX_CACHED_TYPES))
            projection = _PreparedColumns(projection, file.pandas_metadata, types)
        self._prepared, projection = projection, projection.projection
        self._projection, self.selected = projection, projection.columns
        self._explosion = explosion
        self.virtual = list(virtual)
        self.identity = self._prepared.identity
        self.metadata, self.index_leaves = self._prepared.metadata, self._prepared.index_leaves
        self.leaves, self.names, self.labels = [*projection.leaves], projection.names, [*projection.labels]
        self.nested: list[NestedOutput] = [] if projection.is_flat else self._nested_columns()
        self._all_nested = [*self.nested]  # with the exploded column
        for name in self.virtual:
            if name in self.labels:
                raise SchemaError(f"include={name!r} cannot be added: the file already has a column of that name")
        if explosion is not None:
            explosion.detach(self.nested, self.labels)

    @property
    def schema_file(self) -> OpenFile:
        """The file, or one that stands for all files."""
        return self._file

    @cached_property
    def leaf_slices(self) -> list[slice]:
        """For each column its leaves among `leaves`."""
        slices, first = [], 0
        for column in self.selected:
            count = 1 if isinstance(column, Leaf) else len(column.leaves)
            slices.append(slice(first, first + count))
            first += count
        return slices

    def output_types(self, null_counts: Sequence[int | None]) -> list[OutputType]:
        """Return the output type of each leaf, given its null count in the rows that may be read (None: unknown).

        Sets up nested columns as a side effect.
        """
        options = self._options
        categories = set() if options.categories is None else options.categorical_names
        have_nulls = [*map(bool, null_counts)]  # all that types depend on
        key = options.dtype_backend, options.dates, *categories, -1, *have_nulls
        cached = self._prepared.output_types
        targets = cached.get(key) or cached.get_or_make(key, lambda: self._flat_output_types(have_nulls, categories))
        targets = [*targets]
        for column in self._all_nested:
            targets[column.leaf_slice] = column.output_types()
        return targets

    def _flat_output_types(self, have_nulls: Sequence[bool], categories: Collection[str]) -> list[OutputType]:
        """Return the output types of flat leaves, and a placeholder for each nested leaf."""
        targets = []
        for leaf, has_nulls in zip(self.leaves, have_nulls, strict=True):
            with error_context(file=self._file.source.name, column=leaf.name):
                if leaf.is_nested:
                    targets.append(NESTED_PLACEHOLDER)
                    continue
                target = self._output_type(leaf, has_nulls, leaf.name in categories)
                targets.append(apply_dates(target, self._options.dates))
        return targets

    @cached_property
    def has_categories(self) -> bool:
        """Whether a flat column is decoded as codes and categories."""
        targets = self._flat_output_types([True] * len(self.leaves), self._options.categorical_names)
        return any(target.entry_type is not None for target in targets)

    def schema_only_types(self, may_be_null: Sequence[bool]) -> list[OutputType]:
        """Return the schema-only type of each leaf, the same for every unit, file or split of a read.

        A leaf whose `may_be_null` is False refuses nulls.
        """
        return self._schema_only(range(len(self.leaves)), may_be_null)

    def _schema_only(self, positions: Sequence[int], may_be_null: Sequence[bool]) -> list[OutputType]:
        """Return the schema-only types of leaves at some positions, whole columns."""
        # For leaves in structs, pyarrow 26 does not count the nulls of rows whose struct is null.
        of_leaf = {
            leaf.index: answer or (leaf.is_nested and leaf.max_definition_level > 0)
            for leaf, answer in zip(self.leaves, may_be_null, strict=True)
        }
        for column in self._all_nested:
            if column.leaf_slice.start in positions:
                column.may_be_null = of_leaf
        targets = self.output_types([None if answer else 0 for answer in may_be_null])
        found = []
        for at in positions:
            target, leaf = targets[at], self.leaves[at]
            found.append(target if leaf.is_nested else schema_only_type(target, may_be_null=of_leaf[leaf.index]))
        return found

    def fix_cast_types(self, types: Sequence[OutputType], may_be_null: Sequence[bool]) -> list[OutputType]:
        """Return output types with schema-only ones for the leaves of columns that are cast."""
        cast = [leaf for at in self.cast_positions for leaf in leaf_range(self, at)]
        fixed = dict(zip(cast, self._schema_only(cast, may_be_null), strict=True))
        return [fixed.get(at, target) for at, target in enumerate(types)]

    def _output_type(self, leaf: Leaf, has_nulls: bool, categorical: bool) -> OutputType:
        """Return the output type of a flat column."""
        metadata, backend = self.metadata, self._options.dtype_backend
        if backend == "numpy" and metadata is not None and metadata.is_written_by_numparq and not categorical:
            restored = self._pandas_type(leaf, has_nulls, metadata)
            if restored is not None:
                return restored
        return choose_output_type(
            leaf,
            self._file.arrow_schema.field_type(leaf.column) if needs_arrow_hint(leaf, backend) else None,
            dtype_backend=backend,
            has_nulls=has_nulls,
            pandas_dtype=metadata.extension_dtype(leaf.name) if metadata else None,
            timezone=metadata.timezone(leaf.name) if metadata else None,
            categorical=categorical,
        )

    def _pandas_type(self, leaf: Leaf, has_nulls: bool, metadata: PandasMetadata) -> OutputType | None:
        """Return the output type of the column's original dtype; None if unknown or not available here."""
        dtype_spec = metadata.dtype_spec(leaf.name)
        if dtype_spec is None:
            return None
        origin = self._file.arrow_schema.field_type(leaf.column) if needs_arrow_hint(leaf, "numpy") else None
        return roundtrip_output_type(
            leaf, origin, dtype_spec, lambda: pyarrow_field_type(self._pyarrow_schema, leaf), has_nulls
        )

    @cached_property
    def _pyarrow_schema(self) -> Any:
        return pyarrow_schema(self._file.footer.key_value_metadata.get("ARROW:schema"))

    def _nested_columns(self) -> list[NestedOutput]:
        """Build the nested columns."""
        metadata, hints, fetcher = self.metadata, self._file.arrow_schema, None
        if self._options.files == "bytes":
            from numparq.format.file_reference import FileReferenceReader

            file, verifies = self._file, self._options.verify_crc
            is_encrypted = file.footer.keys is not None
            fetcher = FileReferenceReader(file.source, file.multi_file_source, verifies, is_encrypted)
        columns, first = [], 0
        for column in self._projection.columns:
            if isinstance(column, Leaf):
                first += 1
                continue
            from numparq.to_pandas.nested.column import NestedOutput

            name = column.full_type.name
            with error_context(file=self._file.source.name, column=name):
                nested = NestedOutput(
                    column,
                    first,
                    hints.field_hint(column.position),
                    self._options.dtype_backend,
                    metadata.extension_dtype(name) if metadata else None,
                    metadata.numpy_type(name) if metadata and metadata.is_written_by_numparq else None,
                )
            nested.variants, nested.dates, nested.fetcher = self._options.variants, self._options.dates, fetcher
            columns.append(nested)
            first = nested.leaf_slice.stop
        if self._explosion is not None:
            columns[-1].shares_entries = False  # exploded: its leaves become separate columns
        return columns

    def partition_arrays(self, ordinals: Sequence[int], counts: Sequence[int]) -> dict[int, Any]:
        """Return the partition columns for `counts` rows of each file, by the position of their leaf: none."""
        return {}

    def cast_columns(self) -> list[int]:
        """Return the positions of the first leaves of the columns that are cast and not lost."""
        firsts = [self.leaf_slices[at].start for at in self.cast_positions]
        return [leaf for leaf in firsts if self.labels[leaf] is not None]

    def to_array(self, first: int, layout: BlockLayout, buffers: Sequence[DecodedColumn]) -> Any:
        """Return the array of the column whose first leaf is `first`."""
        nested = {column.leaf_slice.start: column for column in self.nested}
        if first in nested:
            return nested[first].to_array(layout.targets, buffers)
        return to_array(layout.targets[first], buffers[first], layout.num_rows)

    def restore_null_counts(self, buffers: Sequence[DecodedColumn], null_counts: Sequence[int | None]) -> None:
        """Restore the null counts of the whole row groups, so that filtered rows get the dtypes of a full read."""
        for buffer, count in zip(buffers, null_counts, strict=True):
            buffer.null_count = buffer.null_count or count or 0
        if self.nested:
            counts = {leaf.index: count for leaf, count in zip(self.leaves, null_counts, strict=True) if count}
            for column in self.nested:
                column.null_counts = counts

    def to_frame(
        self,
        layout: BlockLayout,
        buffers: Sequence[DecodedColumn],
        virtual: Sequence[tuple[str, Any]] = (),
        finished_columns: Mapping[int, Any] = _NOTHING,
    ) -> pd.DataFrame:
        """Build the DataFrame from decoded leaves and finished virtual columns.

        `finished_columns` are arrays by the position of the column's first leaf.
        """
        finished = {**finished_columns}
        for column in self.nested:
            if column.leaf_slice.start not in finished:
                finished[column.leaf_slice.start] = column.to_array(layout.targets, buffers)
        frame = assemble(layout, buffers, self.labels, self.metadata, virtual, finished)
        shown: Sequence[Leaf | NestedProjection] = self._projection.columns
        if self._explosion is not None:
            self._explosion.drop_lost(self.labels)
            frame = self._explosion.to_frame(frame, layout.targets, buffers, self.metadata)
            shown = self._explosion.output_columns
        return frame if self._options.geometries == "wkb" else self._with_geometries(frame, shown)

    def _with_geometries(self, frame: pd.DataFrame, shown: Sequence[Leaf | NestedProjection]) -> Any:
        """Cast WKB columns to geopandas geometries."""
        from numparq.to_pandas.geometry import to_geodataframe

        leaves = [column if isinstance(column, Leaf) else column.type.leaf for column in shown]
        columns = [self._file.geospatial.get(leaf.name) if leaf is not None else None for leaf in leaves]
        return to_geodataframe(frame, [column.name for column in shown], columns, self._file.footer)
