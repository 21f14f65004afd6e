"""The columns that a read gives: how each of their leaves is decoded, and the frame that they become."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ..column.buffer import ColumnBuffer
from ..dtypes import choose, uses_origin
from ..errors import SchemaError, located
from ..frame import Layout, assemble
from ..frame.finish import finish
from ..opened import OpenedFile
from ..pandas_metadata import PandasMetadata
from ..restored import restored_target, stored_arrow_type
from ..schema import Leaf
from ..selection import NestedColumn, Selected, select_columns, virtual_columns, with_leaves
from ..settled import settled
from ..targets import NOT_YET, Target
from .choices import Choices

if TYPE_CHECKING:
    import pandas as pd

    from ..explode import Explosion
    from ..nested_columns import NestedRead

__all__ = ["ReadColumns", "columns_of"]

_FEW = 64  # columns, of which it is kept what is read of them
_NOTHING: Mapping[int, Any] = MappingProxyType({})


def columns_of(file: OpenedFile, columns: Any, choices: Choices) -> ReadColumns:
    """Find the columns to read.

    Parameters
    ----------
    file : OpenedFile
        The file.
    columns : sequence of str or tuple, or None
        The columns wanted, as in `numparq.read_parquet`.
    choices : Choices
        What else is asked for.

    Returns
    -------
    ReadColumns

    Raises
    ------
    SchemaError
        When the file has no such column, or one that is called like a virtual one.
    """
    metadata = file.pandas_metadata
    index = metadata.index_fields if metadata else ()
    if choices.explode is None:
        return ReadColumns(file, _selected(file, columns, index), choices, virtual_columns(choices.include))
    from ..explode import Explosion

    explosion = Explosion(file.schema, choices.explode, columns, index, choices.include, choices.category_names)
    return ReadColumns(file, with_leaves(explosion.columns), choices, explosion.virtual, explosion)


def _selected(file: OpenedFile, columns: Any, index: Sequence[str]) -> Selected:
    """Find the columns asked for: of a list of few names, or none, once for all files with the same footer."""
    is_plain = type(columns) is list and len(columns) <= _FEW and all(type(name) is str for name in columns)
    if columns is not None and not is_plain:
        return with_leaves(select_columns(file.schema, columns, index))
    key = "columns", None if columns is None else tuple(columns), tuple(index)
    return file.footer.kept.get(key, lambda: with_leaves(select_columns(file.schema, columns, index)))


class ReadColumns:
    """The columns of a read.

    Parameters
    ----------
    file : OpenedFile
        The file that they are of: its schema, and what its footer says of dtypes.
    chosen : Selected
        The columns.
    choices : Choices
        What else is asked for.
    virtual : sequence of str
        The virtual columns wanted.
    explosion : Explosion, optional
        How a collection becomes rows, if one is to.

    Attributes
    ----------
    leaves : list of Leaf
        The leaves of all columns.
    names : list of str
        Theirs.
    labels : list of str or None
        For each leaf the name of the column that it is, or begins; else None.
    nested : list of NestedRead
        The nested columns.
    virtual : list of str
        The virtual columns.
    metadata : PandasMetadata or None
        What pandas noted of the frame that was written.
    """

    def __init__(
        self, file: OpenedFile, chosen: Selected, choices: Choices, virtual: Sequence[str] = (),
        explosion: Explosion | None = None,
    ) -> None:  # fmt: skip
        self._file = file
        self._choices = choices
        self._selected = chosen
        self._explosion = explosion
        self.virtual = list(virtual)
        self.metadata = file.pandas_metadata
        self.leaves, self.names, self.labels = [*chosen.leaves], chosen.names, [*chosen.labels]
        self.nested: list[NestedRead] = [] if chosen.is_flat else self._nested_reads()
        for name in self.virtual:
            if name in self.labels:
                raise SchemaError(f"the file has a column {name!r} already; include={name!r} would make a second one")

    @property
    def separate(self) -> list[int]:
        """The leaves that will not be columns of the frame, but its index: they share no block."""
        index = set(self.metadata.index_fields) if self.metadata else ()
        return [place for place, name in enumerate(self.names) if name in index] if index else []

    def targets(self, null_counts: Sequence[int | None]) -> list[Target]:
        """Choose how each leaf is decoded.

        Parameters
        ----------
        null_counts : sequence of int or None
            Nulls of each leaf, in the rows that may be read; None where that is not known.
        """
        categories = self._choices.category_names
        if len(self.leaves) <= _FEW:
            asked = tuple(self.leaves), tuple(null_counts), self._choices.dtype_backend, frozenset(categories)
            key = "targets", type(self), *asked  # other columns of a table choose otherwise
            targets = [*self._file.footer.kept.get(key, lambda: self._flat_targets(null_counts, categories))]
        else:
            targets = self._flat_targets(null_counts, categories)
        for column in self.nested:
            targets[column.places] = column.targets()
        if self._explosion is not None:
            self._explosion.take(self.nested, self.labels)
        return targets

    def _flat_targets(self, null_counts: Sequence[int | None], categories: Collection[str]) -> list[Target]:
        """Choose how the leaves of flat columns are decoded."""
        targets = []
        for leaf, null_count in zip(self.leaves, null_counts, strict=True):
            with located(column=leaf.name):
                targets.append(NOT_YET if leaf.is_nested else self._target(leaf, null_count, leaf.name in categories))
        return targets

    def settled_targets(self, may_be_null: Sequence[bool]) -> list[Target]:
        """Choose how each leaf is decoded, by the schema alone: for rows that are one part of several.

        Parameters
        ----------
        may_be_null : sequence of bool
            Of each leaf, whether it may be null in any part; where not, a null is an error.

        Returns
        -------
        list of Target
            As `numparq.settled.settled` has them.
        """
        # Of leaves in structs, pyarrow 26 does not count the nulls of rows whose struct is null.
        of_leaf = {
            leaf.index: answer or (leaf.is_nested and leaf.max_definition_level > 0)
            for leaf, answer in zip(self.leaves, may_be_null, strict=True)
        }
        for column in self.nested:
            column.may_be_null = of_leaf
        targets = self.targets([None if answer else 0 for answer in may_be_null])
        return [
            target if leaf.is_nested else settled(target, may_be_null=of_leaf[leaf.index])
            for target, leaf in zip(targets, self.leaves, strict=True)
        ]

    def _target(self, leaf: Leaf, null_count: int | None, categorical: bool) -> Target:
        """Choose how a flat column is decoded."""
        metadata, backend = self.metadata, self._choices.dtype_backend
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

    def _nested_reads(self) -> list[NestedRead]:
        """Choose what becomes of the nested columns."""
        metadata, hints, fetcher = self.metadata, self._file.arrow_schema, None
        if self._choices.files == "bytes":
            from ..file_references import Fetcher

            fetcher = Fetcher(self._file.source, self._file.files, self._choices.verify_crc)
        found, place = [], 0
        for column in self._selected.columns:
            if isinstance(column, Leaf):
                place += 1
                continue
            from ..nested_columns import NestedRead

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

    def finished(self, targets: Sequence[Target], buffers: Sequence[ColumnBuffer], num_rows: int) -> list[Any]:
        """Make arrays of the columns, each by itself.

        Parameters
        ----------
        targets : sequence of Target
            How the leaves were decoded.
        buffers : sequence of ColumnBuffer
            And to what.
        num_rows : int
            How many rows there are.

        Returns
        -------
        list of array
            NumPy or extension arrays, as they would be columns of a frame.
        """
        nested = {column.places.start: column for column in self.nested}
        return [
            nested[place].finished(targets, buffers) if place in nested
            else finish(targets[place], buffers[place], num_rows)
            for place, label in enumerate(self.labels) if label is not None
        ]  # fmt: skip

    def count_nulls(self, buffers: Sequence[ColumnBuffer], null_counts: Sequence[int | None]) -> None:
        """Let columns have the dtypes of a full read, though their nulls may not be among the rows that are left.

        Parameters
        ----------
        buffers : sequence of ColumnBuffer
            What the leaves were decoded to.
        null_counts : sequence of int or None
            As of `targets`.
        """
        for buffer, count in zip(buffers, null_counts, strict=True):
            buffer.null_count = buffer.null_count or count or 0
        if self.nested:
            known = {leaf.index: count for leaf, count in zip(self.leaves, null_counts, strict=True) if count}
            for column in self.nested:
                column.null_counts = known

    def frame(
        self, layout: Layout, buffers: Sequence[ColumnBuffer], virtual: Sequence[tuple[str, Any]] = (),
        made: Mapping[int, Any] = _NOTHING,
    ) -> pd.DataFrame:  # fmt: skip
        """Make the frame of what was decoded.

        Parameters
        ----------
        layout : Layout
            The memory of the leaves.
        buffers : sequence of ColumnBuffer
            What they were decoded to.
        virtual : sequence of (str, array)
            The virtual columns, finished.
        made : mapping of int to array
            Columns that are finished already, by the position of their first leaf.

        Returns
        -------
        pandas.DataFrame
        """
        finished = {
            column.places.start: column.finished(layout.targets, buffers)
            for column in self.nested
            if column.places.start not in made
        }
        frame = assemble(layout, buffers, self.labels, self.metadata, virtual, {**finished, **made})
        shown: Sequence[Leaf | NestedColumn] = self._selected.columns
        if self._explosion is not None:
            self._explosion.without(self.labels)
            frame = self._explosion.frame(frame, layout.targets, buffers, self.metadata)
            shown = self._explosion.shown
        return frame if self._choices.geometries == "wkb" else self._with_geometries(frame, shown)

    def _with_geometries(self, frame: pd.DataFrame, shown: Sequence[Leaf | NestedColumn]) -> Any:
        """Turn the columns of WKB into those of geopandas."""
        from ..geodata import with_geometries

        leaves = [column if isinstance(column, Leaf) else column.shape.leaf for column in shown]
        columns = [self._file.geospatial.get(leaf.name) if leaf is not None else None for leaf in leaves]
        return with_geometries(frame, [column.name for column in shown], columns, self._file.footer)
