"""One read of a file: what is selected of it, decoded by jobs on threads, and put together as a frame."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .column.buffer import ColumnBuffer
from .column.chunks import ChunkTables, RowSlice
from .column.decode import Context
from .column.jobs import JobMaker
from .column.rounds import decode_rounds
from .column.writers import faults_of
from .dtypes import choose, uses_origin
from .errors import LimitError, ParquetError, SchemaError, located
from .filtering.ahead import Ahead, ranges_of_rows
from .frame import Layout, allocate, assemble
from .frame.strings import text_of
from .opened import OpenedFile
from .pandas_metadata import PandasMetadata
from .restored import restored_target, stored_arrow_type
from .schema import Leaf
from .selection import NestedColumn, checked_count, flattened, select_columns, select_rows, virtual_columns
from .targets import NOT_YET, Target
from .threads import Crew, thread_count

if TYPE_CHECKING:
    import pandas as pd

    from .column.wanted import WantedRows
    from .explode import Explosion
    from .filtering.choice import RowChoice
    from .filtering.condition import Condition
    from .nested_columns import NestedRead
    from .plan.read_plan import ReadPlan
    from .recovery import Recovery

_WORDS = {"variants": ("values", "bytes"), "files": ("references", "bytes")}


@dataclass(frozen=True)
class Choices:
    """What a read is asked for besides columns; as in `numparq.read_parquet`."""

    filters: Any = None
    runtime_filters: Any = ()
    explode: Any = None
    dtype_backend: str = "numpy"
    row_groups: Any = None
    row_range: Any = None
    nrows: int | None = None
    categories: Any = None
    include: Any = ()
    geometries: str = "wkb"
    variants: str = "values"
    files: str = "references"
    verify_crc: bool = True
    threads: int | None = None

    def __post_init__(self) -> None:
        if self.geometries != "wkb":
            from .geodata import check_geometries

            check_geometries(self.geometries)
        for name, words in _WORDS.items():
            value = getattr(self, name)
            if value not in words:
                raise ValueError(f"{name} is one of {', '.join(map(repr, words))}, not {value!r}")

    @property
    def category_names(self) -> set[str]:
        """The columns to read as Categorical."""
        if isinstance(self.categories, str):
            raise TypeError(f"categories is a list of column names, not {self.categories!r}")
        return set(self.categories or ())


class Strict:
    """A read that ends at the first damage: what it has decoded is whole."""

    context, tables = Context, ChunkTables

    @staticmethod
    def maker(
        context: Context, tables: ChunkTables, leaves: Sequence[Leaf], memory: Layout,
        slices: Sequence[RowSlice | WantedRows],
    ) -> JobMaker:  # fmt: skip
        """Make what makes the jobs: that for rows here and there where some are so."""
        if all(isinstance(part, RowSlice) for part in slices):
            return JobMaker(context, tables, leaves, memory)
        from .column.selecting import SelectingMaker

        return SelectingMaker(context, tables, leaves, memory)

    @staticmethod
    def whole(
        layout: Layout, buffers: list[ColumnBuffer], labels: list[str | None], nested: list[NestedRead],
        virtual: list[tuple[str, Any]], leaves: list[Leaf], slices: Sequence[RowSlice | WantedRows],
    ) -> tuple[Layout, list[ColumnBuffer], list[str | None], list[NestedRead], list[tuple[str, Any]]]:  # fmt: skip
        """Give the columns and rows that the frame is made of."""
        return layout, buffers, labels, nested, virtual

    @staticmethod
    def rows(
        read: FileRead, tables: ChunkTables, context: Context, ahead: Ahead, targets: Sequence[Target]
    ) -> Sequence[RowSlice | WantedRows]:
        """Find the rows to decode."""
        return read.rows_left(tables, context, ahead, targets)

    @staticmethod
    def label(frame: pd.DataFrame, metadata: PandasMetadata | None) -> None:
        """Leave the labels as they are."""


class FileRead:
    """One read of a file.

    Parameters
    ----------
    file : OpenedFile
        The file.
    columns : sequence of str or tuple, or None
        The columns wanted, as in `numparq.read_parquet`.
    choices : Choices
        What else is asked for.

    Attributes
    ----------
    slices : sequence of RowSlice or WantedRows
        The rows to read: chosen by position, and once that is known by their values.

    Raises
    ------
    SchemaError
        When the file has no such column.
    """

    def __init__(self, file: OpenedFile, columns: Any, choices: Choices) -> None:
        self._file = file
        self._choices = choices
        self._metadata = file.pandas_metadata
        self._index = self._metadata.index_fields if self._metadata else ()
        self._explosion: Explosion | None = None
        self._selected, self._virtual = self._select(columns)
        self._leaves, self._labels = flattened(self._selected)
        self._names = [leaf.name for leaf in self._leaves]
        self._nested = self._nested_reads()
        self._condition = self._made_condition()
        shown = {leaf.index for leaf in self._leaves}
        self._asked = [leaf for leaf in self._condition.leaves if leaf.index not in shown] if self._condition else []
        self.slices: Sequence[RowSlice | WantedRows] = select_rows(
            file.footer.row_group_num_rows.tolist(), choices.row_groups, choices.row_range,
            None if self._condition else choices.nrows,
        )  # fmt: skip
        for name in self._virtual:
            if name in self._labels:
                raise SchemaError(f"the file has a column {name!r} already; include={name!r} would make a second one")
        if not self.slices and file.is_own and file.num_row_groups:
            self.slices = [RowSlice(0, 0, 0, 0)]  # for the categories, which the first row group has

    def frame(self, ways: Strict | Recovery) -> pd.DataFrame:
        """Read.

        Parameters
        ----------
        ways : Strict or Recovery
            What is done where the file is damaged.

        Returns
        -------
        pandas.DataFrame
        """
        groups = [rows.row_group for rows in self.slices]
        leaves = [*self._leaves, *self._asked]
        tables = ways.tables(self._file.footer, leaves, groups, self._file.footer_start, self._file.files)
        null_counts = tables.null_counts()[: len(self._leaves)]
        targets = self._targets(null_counts)
        if self._explosion is not None:
            self._explosion.take(self._nested, self._labels)
        index = set(self._index)
        try:
            separate = [place for place, name in enumerate(self._names) if name in index]
            with (
                Crew(thread_count(self._choices.threads)) as crew,
                closing(self._context(crew, ways)) as context,
                closing(Ahead(context, self._file)) as ahead,
            ):
                self.slices = ways.rows(self, tables, context, ahead, targets)
                layout = allocate(targets, self._num_rows, separate)
                maker = ways.maker(context, tables, self._leaves, layout, self.slices)
                buffers = self._decoded(maker, layout, self._turns(tables, ahead))
            if self._condition:
                self._count_all_nulls(buffers, null_counts)
            return self._assembled(layout, buffers, ways)
        except ParquetError as error:
            tables.name_file(error)
            raise
        except MemoryError as error:
            what = f"{self._num_rows:,} rows of {len(self._names)} columns"
            raise LimitError(f"there is not enough memory to read {what}") from error

    @property
    def has_condition(self) -> bool:
        """Whether rows are chosen by what is in them."""
        return bool(self._condition)

    def _made_condition(self) -> Condition | None:
        """Bind what the rows have to satisfy, if anything."""
        if self._choices.filters is None and not self._choices.runtime_filters:
            return None
        from .filtering.condition import Condition

        return Condition(self._file, self._choices.filters, self._choices.runtime_filters)

    def plan(self) -> ReadPlan:
        """Plan what is decoded, or, of rows that have to satisfy a condition, what is left to look through."""
        slices = [rows for rows in self.slices if isinstance(rows, RowSlice) and len(rows)]
        groups = [rows.row_group for rows in slices]
        leaves = [*self._leaves, *self._asked]
        tables = ChunkTables(self._file.footer, leaves, groups, self._file.footer_start, self._file.files)
        return self._choice(tables, ()).plan(slices)

    def rows_left(
        self, tables: ChunkTables, context: Context, ahead: Ahead, targets: Sequence[Target]
    ) -> Sequence[RowSlice | WantedRows]:
        """Find the rows to decode: those chosen by position that satisfy the condition."""
        slices = [rows for rows in self.slices if isinstance(rows, RowSlice) and len(rows)]
        num_rows = self._file.footer.row_group_num_rows
        if not slices or not (self._condition or any(len(rows) < num_rows[rows.row_group] for rows in slices)):
            return self.slices
        limit = (
            None if self._choices.nrows is None or not self._condition else checked_count(self._choices.nrows, "nrows")
        )
        found = self._choice(tables, targets).rows(slices, context, ahead, limit)
        return found or [RowSlice(slices[0].row_group, 0, 0, 0)]

    @staticmethod
    def _decoded(
        maker: JobMaker, layout: Layout, turns: Callable[[], Iterable[Sequence[RowSlice | WantedRows]]]
    ) -> list[ColumnBuffer]:
        """Decode all columns; where there are no rows, those that have their categories from a dictionary."""
        columns = range(len(layout.targets))
        wanted = columns if layout.num_rows else [at for at in columns if layout.targets[at].entries is not None]
        found = decode_rounds(maker, layout, turns, wanted)
        return [found.get(at) or ColumnBuffer(layout.values[at], layout.validity[at]) for at in columns]

    def _turns(self, tables: ChunkTables, ahead: Ahead) -> Callable[[], Iterator[Sequence[RowSlice | WantedRows]]]:
        """Give what divides the rows into those that are decoded together: all, or a row group when it is fetched."""
        if not ahead.is_worth_it:
            return lambda: iter([self.slices])
        columns = range(len(self._leaves))

        def turns() -> Iterator[Sequence[RowSlice | WantedRows]]:
            ahead.take_turns([ranges_of_rows(part, tables, columns) for part in self.slices])
            for turn, part in enumerate(self.slices):
                with ahead.turn(turn):
                    yield [part]

        return turns

    def _choice(self, tables: ChunkTables, targets: Sequence[Target]) -> RowChoice:
        from .filtering.choice import RowChoice

        leaves = [*self._leaves, *self._asked]
        return RowChoice(self._file, tables, leaves, targets, self._condition)

    @property
    def _num_rows(self) -> int:
        return self.slices[-1].out + len(self.slices[-1]) if self.slices else 0

    def _select(self, columns: Any) -> tuple[list[Leaf | NestedColumn], list[str]]:
        """Find the columns to read and the virtual ones, and how a collection becomes rows, if one is to."""
        choices, schema = self._choices, self._file.schema
        if choices.explode is None:
            return select_columns(schema, columns, self._index), virtual_columns(choices.include)
        from .explode import Explosion

        self._explosion = Explosion(
            schema, choices.explode, columns, self._index, choices.include, choices.category_names
        )
        return self._explosion.columns, self._explosion.virtual

    def _nested_reads(self) -> list[NestedRead]:
        """Choose what becomes of the nested columns."""
        metadata, hints, fetcher = self._metadata, self._file.arrow_schema, None
        if self._choices.files == "bytes":
            from .file_references import Fetcher

            fetcher = Fetcher(self._file.source, self._file.files, self._choices.verify_crc)
        found, place = [], 0
        for column in self._selected:
            if isinstance(column, Leaf):
                place += 1
                continue
            from .nested_columns import NestedRead

            name = column.whole.name
            with located(column=name):
                made = NestedRead(
                    column, place, hints.hint_of(column.position), self._choices.dtype_backend,
                    metadata.extension_dtype(name) if metadata else None,
                    metadata.numpy_type(name) if metadata and self._file.is_own else None,
                )  # fmt: skip
            made.variants, made.fetcher = self._choices.variants, fetcher
            found.append(made)
            place = made.places.stop
        if self._explosion is not None:
            found[-1].by_entries = False  # its leaves become columns of their own
        return found

    def _context(self, crew: Crew, ways: Strict | Recovery) -> Context:
        faults = faults_of(self._file.footer.created_by)
        verify_crc = self._choices.verify_crc and faults.has_checksums
        names = [*self._names, *(leaf.name for leaf in self._asked)]
        return ways.context(self._file.source, names, crew, verify_crc, bit_packed=faults.bit_packed)

    def _targets(self, null_counts: Sequence[int | None]) -> list[Target]:
        """Choose how each leaf is decoded."""
        categories = self._choices.category_names
        targets = []
        for leaf, null_count in zip(self._leaves, null_counts, strict=True):
            with located(column=leaf.name):
                targets.append(NOT_YET if leaf.is_nested else self._target(leaf, null_count, leaf.name in categories))
        for column in self._nested:
            targets[column.places] = column.targets()
        return targets

    def _target(self, leaf: Leaf, null_count: int | None, categorical: bool) -> Target:
        """Choose how a flat column is decoded."""
        metadata, backend = self._metadata, self._choices.dtype_backend
        if backend == "numpy" and metadata is not None and metadata.is_own and not categorical:
            restored = self._restored(leaf, null_count, metadata)
            if restored is not None:
                return restored
        return choose(
            leaf, self._file.arrow_schema.type_of(leaf.column) if uses_origin(leaf, backend) else None,
            dtype_backend=backend, null_count=null_count,
            pandas_dtype=metadata.extension_dtype(leaf.name) if metadata else None,
            timezone=metadata.timezone(leaf.name) if metadata else None, categorical=categorical,
        )  # fmt: skip

    def _restored(self, leaf: Leaf, null_count: int | None, metadata: PandasMetadata) -> Target | None:
        """Choose a target for the dtype that the column had; None where that is not known, or not to be had here."""
        wanted = metadata.wanted(leaf.name)
        if wanted is None:
            return None
        origin = self._file.arrow_schema.type_of(leaf.column) if uses_origin(leaf, "numpy") else None
        schema = self._file.footer.key_value_metadata.get("ARROW:schema")
        return restored_target(leaf, origin, wanted, lambda: stored_arrow_type(schema, leaf), null_count)

    def _assembled(self, layout: Layout, buffers: list[ColumnBuffer], ways: Strict | Recovery) -> pd.DataFrame:
        """Make the frame of what was decoded."""
        layout, buffers, labels, nested, virtual = ways.whole(
            layout, buffers, self._labels, self._nested, self._virtual_columns(), self._leaves, self.slices
        )
        made = {column.places.start: column.finished(layout.targets, buffers) for column in nested}
        frame = assemble(layout, buffers, labels, self._metadata, virtual, made)
        shown = self._selected
        if self._explosion is None:
            ways.label(frame, self._metadata)
        else:
            self._explosion.without(labels)
            frame = self._explosion.frame(frame, layout.targets, buffers, self._metadata)
            shown = self._explosion.shown
        return frame if self._choices.geometries == "wkb" else self._with_geometries(frame, shown)

    def _count_all_nulls(self, buffers: list[ColumnBuffer], null_counts: Sequence[int | None]) -> None:
        """Let columns have the dtypes of a full read, though their nulls may not be among the rows that are left."""
        known = {leaf.index: count for leaf, count in zip(self._leaves, null_counts, strict=True) if count}
        for leaf, buffer in zip(self._leaves, buffers, strict=True):
            buffer.null_count = buffer.null_count or known.get(leaf.index, 0)
        for column in self._nested:
            column.null_counts = known

    def _virtual_columns(self) -> list[tuple[str, Any]]:
        """Make the virtual columns asked for."""
        starts = np.cumsum([0, *self._file.footer.row_group_num_rows.tolist()])
        made: list[tuple[str, Any]] = []
        for name in self._virtual:
            if name == "file":
                made.append((name, text_of([self._file.source.name]).take(np.zeros(self._num_rows, np.intp))))
                continue
            values = np.empty(self._num_rows, np.int64)
            for rows in self.slices:
                numbers = rows.row_group if name == "row_group" else starts[rows.row_group] + rows.numbers()
                values[rows.out : rows.out + len(rows)] = numbers
            made.append((name, values))
        return made

    def _with_geometries(self, frame: pd.DataFrame, shown: Sequence[Leaf | NestedColumn]) -> Any:
        """Turn the columns of WKB into those of geopandas."""
        from .geodata import with_geometries

        leaves = [column if isinstance(column, Leaf) else column.shape.leaf for column in shown]
        columns = [self._file.geospatial.get(leaf.name) if leaf is not None else None for leaf in leaves]
        return with_geometries(frame, [column.name for column in shown], columns, self._file.footer)
