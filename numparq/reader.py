"""One file: its footer, a selection of columns and rows, jobs for a crew of threads, and the frame they make."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .arrow_schema import ArrowSchema
from .column.buffer import ColumnBuffer
from .column.chunks import ChunkTables, RowSlice
from .column.decode import Context
from .column.jobs import JobMaker
from .column.writers import faults_of
from .dtypes import choose, uses_origin
from .errors import LimitError, ParquetError, SchemaError, located
from .frame import Layout, allocate, assemble
from .frame.strings import text_of
from .io.source import Source, open_source
from .kernels.tables import C_NULL_COUNT
from .metadata.footer import Footer, read_tail
from .nested_columns import NOT_YET, NestedRead, flattened
from .pandas_metadata import PandasMetadata
from .restored import restored_target, stored_arrow_type
from .schema import Leaf, Schema
from .selection import NestedColumn, select_columns, select_rows, virtual_columns
from .targets import Target, retarget
from .threads import Crew, thread_count

if TYPE_CHECKING:
    import pandas as pd

    from .explode import Explosion
    from .file_references import Fetcher
    from .geospatial import GeospatialColumn
    from .io.joint import JointSource
    from .metadata.records import Record
    from .recovery import Recovery

_CHOICES = {"variants": ("values", "bytes"), "files": ("references", "bytes")}


class ParquetFile:
    """A Parquet file, open for reading.

    Parameters
    ----------
    path : str, os.PathLike, bytes-like, or binary file object
        The file's name, its bytes, or an object with ``read`` and ``seek``.
    external_files : bool
        As in `numparq.read_parquet`.

    Attributes
    ----------
    metadata : Record
        FileMetaData, with everything in it, under the names of the specification.
    schema : Schema
        The tree of columns.
    num_rows : int
        Rows of the file.
    num_row_groups : int
        Row groups of the file.

    Raises
    ------
    FileNotFoundError
        When there is no such file.
    InvalidFileError
        When it is no Parquet file, or its footer is damaged.

    Examples
    --------
    >>> import io, pandas, numparq
    >>> buffer = io.BytesIO()
    >>> pandas.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "z"]}).to_parquet(buffer)
    >>> with numparq.ParquetFile(buffer) as file:
    ...     file.num_rows, file.schema.columns
    (3, ['a', 'b'])
    """

    def __init__(self, path: Any, *, external_files: bool = False) -> None:
        self.source: Source = open_source(path)
        self._files: JointSource | None = None
        try:
            if external_files:
                self.source = self._files = _joint(self.source, path)
            with located(file=self.source.name):
                self._footer: Footer
                self._footer, self._footer_start = read_tail(self.source)
        except BaseException:
            self.source.close()
            raise

    @property
    def num_rows(self) -> int:
        """Rows of the file."""
        return int(self._footer.row_group_num_rows.sum())

    @property
    def num_row_groups(self) -> int:
        """Row groups of the file."""
        return len(self._footer.row_group_num_rows)

    @cached_property
    def schema(self) -> Schema:
        """The tree of columns."""
        with located(file=self.source.name):
            return Schema(self._footer)

    @cached_property
    def metadata(self) -> Record:
        """FileMetaData, with everything in it."""
        with located(file=self.source.name):
            return self._footer.full

    @cached_property
    def geospatial(self) -> dict[str, GeospatialColumn]:
        """The columns of geometries, by name: kind, CRS, bounding boxes (Geospatial.md)."""
        from .geospatial import geospatial_columns

        with located(file=self.source.name):
            return geospatial_columns(self._footer, self.schema)

    @cached_property
    def _pandas_metadata(self) -> PandasMetadata | None:
        keys = self._footer.key_value_metadata
        return PandasMetadata.parse(keys.get("pandas"), keys.get("PANDAS_ATTRS"), self._is_own)

    @cached_property
    def _arrow_schema(self) -> ArrowSchema:
        return ArrowSchema(self._footer.key_value_metadata.get("ARROW:schema"), len(self.schema.columns))

    def read(
        self,
        columns: Sequence[str | tuple[str, ...]] | None = None,
        *,
        explode: str | tuple[str, ...] | None = None,
        dtype_backend: str = "numpy",
        row_groups: Sequence[int] | None = None,
        row_range: tuple[int | None, int | None] | None = None,
        nrows: int | None = None,
        categories: Collection[str] | None = None,
        include: Sequence[str] = (),
        geometries: str = "wkb",
        variants: str = "values",
        files: str = "references",
        verify_crc: bool = True,
        on_error: str = "raise",
        threads: int | None = None,
    ) -> pd.DataFrame:
        """Read columns and rows into a DataFrame.

        Parameters
        ----------
        columns, explode, dtype_backend, row_groups, row_range, nrows, categories, include, geometries, variants
            As in `numparq.read_parquet`.
        files, verify_crc, on_error, threads
            As in `numparq.read_parquet`.

        Returns
        -------
        pandas.DataFrame
        """
        _check_choices(geometries=geometries, variants=variants, files=files)
        read = partial(self._read, explode=explode, dtype_backend=dtype_backend, row_groups=row_groups,
                       row_range=row_range, nrows=nrows, categories=categories, include=include, geometries=geometries,
                       variants=variants, files=files, verify_crc=verify_crc, threads=threads)  # fmt: skip
        if on_error == "raise":
            return read(columns, _STRICT)
        if on_error != "skip":
            raise ValueError(f"on_error is 'raise' or 'skip', not {on_error!r}")
        from .recovery import Recovery

        recovery = Recovery(self.source.name, self._footer)
        return recovery.read(lambda wanted: read(wanted, recovery), columns, self.schema.columns)

    def _read(
        self, columns: Any, ways: _Strict | Recovery, *, explode: Any, dtype_backend: str, row_groups: Any,
        row_range: Any, nrows: int | None, categories: Any, include: Any, geometries: str, variants: str, files: str,
        verify_crc: bool, threads: int | None,
    ) -> pd.DataFrame:  # fmt: skip
        """Read, as `read` does; `ways` says what is done where the file is damaged."""
        with located(file=self.source.name), Crew(thread_count(threads)) as crew:
            metadata = self._pandas_metadata
            always = metadata.index_fields if metadata else ()
            selected, extra, explosion = self._selected(columns, always, explode, include, categories)
            leaves, labels = flattened(selected)
            nested = self._nested(selected, dtype_backend)
            fetcher = self._fetcher(verify_crc) if files == "bytes" else None
            slices = select_rows(self._footer.row_group_num_rows.tolist(), row_groups, row_range, nrows)
            names = [leaf.name for leaf in leaves]
            _check_new(extra, labels)
            faults = faults_of(self._footer.created_by)
            verify_crc = verify_crc and faults.has_checksums
            context = ways.context(self.source, names, crew, verify_crc, bit_packed=faults.bit_packed)
            if not slices and self._is_own and self.num_row_groups:
                slices = [RowSlice(0, 0, 0, 0)]  # for the categories, which the first row group has
            groups = [rows.row_group for rows in slices]
            tables = ways.tables(self._footer, leaves, groups, self._footer_start, self._files)
            categorical = _category_names(categories) & set(names)
            targets = self._targets(leaves, tables.null_counts(), dtype_backend, categorical)
            for column in nested:
                column.variants, column.fetcher = variants, fetcher
                targets[column.places] = column.targets()
            if explosion is not None:
                explosion.take(nested, labels)
            index = set(always)
            num_rows = slices[-1].out + len(slices[-1]) if slices else 0
            try:
                layout = allocate(targets, num_rows, [place for place, name in enumerate(names) if name in index])
                with closing(context):
                    buffers = _decode(ways.maker(context, tables, leaves, layout), layout, slices)
                layout, buffers, labels, nested, virtual = ways.whole(
                    layout, buffers, labels, nested, self._virtual(extra, slices, num_rows), leaves, slices
                )
                made = {column.places.start: column.finished(layout.targets, buffers) for column in nested}
                frame = assemble(layout, buffers, labels, metadata, virtual, made)
                if explosion is not None:
                    explosion.without(labels)
                    frame, selected = explosion.frame(frame, layout.targets, buffers, metadata), explosion.shown
                else:
                    ways.label(frame, metadata)
                return frame if geometries == "wkb" else self._with_geometries(frame, selected)
            except ParquetError as error:
                tables.name_file(error)
                raise
            except MemoryError as error:
                what = f"{num_rows:,} rows of {len(names)} columns"
                raise LimitError(f"there is not enough memory to read {what}") from error

    def _targets(
        self, leaves: list[Leaf], null_counts: list[int | None], dtype_backend: str, categories: set[str]
    ) -> list[Target]:
        """Choose how each column is decoded."""
        metadata = self._pandas_metadata
        restores = dtype_backend == "numpy" and metadata is not None and metadata.is_own
        targets = []
        for leaf, null_count in zip(leaves, null_counts, strict=True):
            name = leaf.name
            if leaf.is_nested:
                targets.append(NOT_YET)
                continue
            try:
                target = self._restored(leaf, null_count) if restores and name not in categories else None
                targets.append(target or choose(
                    leaf, self._arrow_schema.type_of(leaf.column) if uses_origin(leaf, dtype_backend) else None,
                    dtype_backend=dtype_backend, null_count=null_count,
                    pandas_dtype=metadata.extension_dtype(name) if metadata else None,
                    timezone=metadata.timezone(name) if metadata else None, categorical=name in categories,
                ))  # fmt: skip
            except ParquetError as error:
                error.where.setdefault("column", name)
                raise
        return targets

    @property
    def _is_own(self) -> bool:
        """Whether numparq wrote the file, so that what pyarrow loses is to be restored."""
        return (self._footer.created_by or "").startswith("numparq version")

    def _restored(self, leaf: Leaf, null_count: int | None) -> Target | None:
        """Choose a target for the dtype that the column had; None where that is not known, or not to be had here."""
        metadata = self._pandas_metadata
        wanted = metadata.wanted(leaf.name) if metadata else None
        if wanted is None:
            return None
        origin = self._arrow_schema.type_of(leaf.column) if uses_origin(leaf, "numpy") else None
        schema = self._footer.key_value_metadata.get("ARROW:schema")
        return restored_target(leaf, origin, wanted, lambda: stored_arrow_type(schema, leaf), null_count)

    def _nested(self, selected: list[Leaf | NestedColumn], dtype_backend: str) -> list[NestedRead]:
        """Choose what becomes of the nested columns."""
        metadata = self._pandas_metadata
        found, place = [], 0
        for column in selected:
            if isinstance(column, Leaf):
                place += 1
                continue
            name = column.whole.name
            with located(column=name):
                found.append(NestedRead(
                    column, place, self._arrow_schema.hint_of(column.position), dtype_backend,
                    metadata.extension_dtype(name) if metadata else None,
                    metadata.numpy_type(name) if metadata and self._is_own else None,
                ))  # fmt: skip
            place = found[-1].places.stop
        return found

    def _fetcher(self, verify_checksums: bool) -> Fetcher:
        """Give what gets the bytes of FILE references."""
        from .file_references import Fetcher

        return Fetcher(self.source, self._files, verify_checksums)

    def file_bytes(self, reference: Mapping[str, Any], *, verify_checksum: bool = True) -> bytes:
        """Get the bytes that a value of the FILE type stands for.

        Parameters
        ----------
        reference, verify_checksum
            As in `numparq.file_bytes`.

        Returns
        -------
        bytes
        """
        with located(file=self.source.name):
            return self._fetcher(verify_checksum).bytes_of(reference)

    def _with_geometries(self, frame: pd.DataFrame, selected: list[Leaf | NestedColumn]) -> Any:
        """Turn the columns of WKB into those of geopandas."""
        from .geodata import with_geometries

        leaves = [column if isinstance(column, Leaf) else column.shape.leaf for column in selected]
        columns = [self.geospatial.get(leaf.name) if leaf is not None else None for leaf in leaves]
        names = [column.name for column in selected]
        return with_geometries(frame, names, columns, self._footer)

    def _selected(
        self, columns: Any, always: Sequence[str], explode: Any, include: Any, categories: Collection[str] | None
    ) -> tuple[list[Leaf | NestedColumn], list[str], Explosion | None]:
        """Find the columns to read, the virtual ones, and how a collection becomes rows, if one is to."""
        if explode is None:
            return select_columns(self.schema, columns, always), virtual_columns(include), None
        from .explode import Explosion

        explosion = Explosion(self.schema, explode, columns, always, include, _category_names(categories))
        return explosion.columns, explosion.virtual, explosion

    def _virtual(self, names: list[str], slices: list[RowSlice], num_rows: int) -> list[tuple[str, Any]]:
        """Make the virtual columns asked for."""
        starts = np.cumsum([0, *self._footer.row_group_num_rows.tolist()])
        made: list[tuple[str, Any]] = []
        for name in names:
            if name == "file":
                made.append((name, text_of([self.source.name]).take(np.zeros(num_rows, np.intp))))
                continue
            values = np.empty(num_rows, np.int64)
            for rows in slices:
                first = starts[rows.row_group] + rows.start
                numbers = rows.row_group if name == "row_group" else np.arange(first, first + len(rows))
                values[rows.out : rows.out + len(rows)] = numbers
            made.append((name, values))
        return made

    def close(self) -> None:
        """Close the file, if it was opened here."""
        self.source.close()

    def __enter__(self) -> ParquetFile:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return (f"<numparq.ParquetFile {self.source.name!r}: {self.num_rows} rows, {len(self.schema.columns)} columns, "
                f"{self.num_row_groups} row groups>")  # fmt: skip


class _Strict:
    """A read that ends at the first damage: what it has decoded is whole."""

    context, tables, maker = Context, ChunkTables, JobMaker

    @staticmethod
    def whole(
        layout: Layout, buffers: list[ColumnBuffer], labels: list[str | None], nested: list[NestedRead],
        virtual: list[tuple[str, Any]], leaves: list[Leaf], slices: list[RowSlice],
    ) -> tuple[Layout, list[ColumnBuffer], list[str | None], list[NestedRead], list[tuple[str, Any]]]:  # fmt: skip
        """Give the columns and rows that the frame is made of."""
        return layout, buffers, labels, nested, virtual

    @staticmethod
    def label(frame: pd.DataFrame, metadata: PandasMetadata | None) -> None:
        """Leave the labels as they are."""


_STRICT = _Strict()


def _decode(maker: JobMaker, layout: Layout, slices: list[RowSlice]) -> list[ColumnBuffer]:
    """Decode all columns; those whose values do not allow the target that was chosen first, once more as the next."""
    buffers = [ColumnBuffer(*memory) for memory in zip(layout.values, layout.validity, strict=True)]
    wanted: Collection[int] = range(len(buffers))
    if not layout.num_rows:
        wanted = [column for column, target in enumerate(layout.targets) if target.entries is not None]
    while wanted:
        jobs = maker.jobs(slices, wanted)
        maker.run(jobs)
        failed: dict[int, int] = {}
        for job in jobs:
            failed.update(job.failed)
            for column, nulls in zip(job.columns, job.chunks[:, C_NULL_COUNT].tolist(), strict=True):
                buffers[column].null_count += nulls
            buffers[job.columns[0]].pieces.extend(job.pieces)
        for column, status in failed.items():
            layout.replace(column, retarget(layout.targets[column], status))
            buffers[column] = ColumnBuffer(layout.values[column], layout.validity[column])
        wanted = failed
    return buffers


def _joint(source: Source, path: Any) -> JointSource:
    """Let a file name others that are beside it."""
    from .io.beside import Beside
    from .io.joint import JointSource

    return JointSource(source, Beside(path))


def _check_choices(geometries: str, **choices: str) -> None:
    """Check arguments that are one of several words."""
    if geometries != "wkb":
        from .geodata import check_geometries

        check_geometries(geometries)
    for argument, value in choices.items():
        if value not in _CHOICES[argument]:
            raise ValueError(f"{argument} is one of {', '.join(map(repr, _CHOICES[argument]))}, not {value!r}")


def _check_new(virtual: list[str], names: Sequence[str | None]) -> None:
    for name in virtual:
        if name in names:
            raise SchemaError(f"the file has a column {name!r} already; include={name!r} would make a second one")


def _category_names(categories: Collection[str] | None) -> set[str]:
    """Check the ``categories`` argument: names of columns."""
    if categories is None:
        return set()
    if isinstance(categories, str):
        raise TypeError(f"categories is a list of column names, not {categories!r}")
    return set(categories)
