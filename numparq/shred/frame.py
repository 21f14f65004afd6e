"""From a DataFrame to what the writer needs: columns by ranges of rows, their number, and the footer's metadata."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from ..errors import SchemaError, located
from ..leaves import LeafValues, SourceColumn
from ..schema import OPTIONAL
from .arrow_message import arrow_message
from .convert import converted
from .families import Nested, source_of
from .fields import field_of
from .given import GivenColumn, GivenSchema, given_schema
from .label_notes import with_label
from .numbers import number_converter
from .pandas_document import attrs_entries, column_entry, document, label_entries
from .parts import Level, chosen, parts_of
from .source import ArrowField, Column, Source, flat


@dataclass(slots=True)
class TakenApart:
    """A frame that is ready to be written.

    Parameters
    ----------
    columns : list of SourceColumn
        The columns of the file: those of the frame, then those levels of its index that are columns.
    num_rows : int
        Rows.
    arrow_fields : list of ArrowField
        The columns as Arrow describes them, for `arrow_schema`.
    key_value_metadata : dict of str to str
        For the footer: ``pandas``, and ``PANDAS_ATTRS`` where the frame has attrs.
    ordered : dict of str to pandas.Index
        The categories of columns that are ordered Categoricals.
    inferred : frozenset of str
        Columns whose type follows from their values, not from their dtype: that of some rows may be another.
    """

    columns: list[SourceColumn]
    num_rows: int
    arrow_fields: list[ArrowField]
    key_value_metadata: dict[str, str | bytes] = field(default_factory=dict)
    ordered: dict[str, pd.Index] = field(default_factory=dict)
    inferred: frozenset[str] = frozenset()

    def rows(self, start: int, stop: int) -> TakenApart:
        """Give rows `start` to `stop`, with the types and the metadata of all; nothing is copied."""
        columns: list[SourceColumn] = [_RowsOf(column, start) for column in self.columns]
        return replace(self, columns=columns, num_rows=stop - start)

    def given(self) -> GivenSchema:
        """Give the types of the columns whose type follows from their values: to take some of the rows apart by."""
        return GivenSchema(
            {column.node.name: GivenColumn(column.node, field)
             for column, field in zip(self.columns, self.arrow_fields, strict=True)
             if column.node.name in self.inferred},
            complete=False,
        )  # fmt: skip


class _RowsOf:
    """A column from a row on."""

    def __init__(self, column: SourceColumn, start: int) -> None:
        self.node = column.node
        self._column, self._start = column, start

    def leaves(self, start: int, stop: int) -> list[LeafValues]:
        return self._column.leaves(self._start + start, self._start + stop)


def take_apart(
    df: pd.DataFrame, index: bool | None = None, schema: Any = None, reserved: Collection[str] = ()
) -> TakenApart:
    """Take a DataFrame apart.

    Parameters
    ----------
    df : pandas.DataFrame
        The frame. It is not copied: it must not change while it is written.
    index : bool or None
        Whether to write the index: as columns (True), not at all (False), or as pandas has it by default (None): as
        columns, but a RangeIndex as three numbers of the metadata.
    schema : pyarrow.Schema, sequence, mapping, GivenSchema or None
        What types the columns are to have, as `numparq.shred.given.given_schema` takes it. Where it says what columns
        there are, those of the frame that it does not name are left out, and so are levels of the index. A frame
        without rows need not have the columns.
    reserved : collection of str
        Names that no level of the index gets, as if the frame had columns of these names.

    Returns
    -------
    TakenApart

    Raises
    ------
    SchemaError
        When a column cannot be written, or is not there, or has no place in the schema; it is named. Values that are
        not of the schema's type are found when they are asked for.
    """
    if not isinstance(df, pd.DataFrame):
        raise TypeError(f"a DataFrame is wanted, not {type(df).__name__}")
    given = given_schema(schema)
    parts, levels = parts_of(df, index, reserved)
    if given.complete:
        parts, levels = chosen(parts, levels, given, len(df))
    elif missing := sorted(set(given.columns) - {part.name for part in parts}):
        raise SchemaError(f"the schema names {missing[0]!r}, which is no column of the frame")
    columns = [column_of(part.name, part.values, given.columns.get(part.name)) for part in parts]
    fields = [arrow_field(column) for column in columns]
    entries = [with_label(column_entry(part.values, part.label, field), part.note)
               for part, field in zip(parts, fields, strict=True)]  # fmt: skip
    dtypes = {part.name: part.values.dtype for part in parts}
    ordered = {name: dtype.categories for name, dtype in dtypes.items()
               if isinstance(dtype, pd.CategoricalDtype) and dtype.ordered}  # fmt: skip
    spread = [level for level in levels if isinstance(level, str)] if isinstance(df.index, pd.MultiIndex) else []
    inferred = frozenset(name for name, dtype in dtypes.items() if name in spread or dtype == np.dtype(object))
    return TakenApart(columns, len(df), fields, _metadata(df, levels, entries, index is not False), ordered, inferred)


def column_of(name: str, values: Any, given: GivenColumn | None = None) -> SourceColumn:
    """Make a column of the file of a column of a frame, or a level of its index.

    Parameters
    ----------
    name : str
        Its name in the file.
    values : pandas.Series, pandas.Index or Level
        Its values.
    given : GivenColumn or None
        The type that it is to have.
    """
    with located(column=name):
        if given is not None and given.is_variant:
            from .variants import variant_column

            return variant_column(name, values.array, given)
        try:
            source = _source(values)
        except Nested:
            return _nested_column(name, values.array, given)
        if given is None:
            return Column(name, source)
        if given.is_flat and not source.children:
            return Column(name, converted(source, given), given.node, given.field)
        if len(values) == 0 or source.type.kind == "null":
            return _nested_column(name, np.full(len(values), None, object), given)
        if replace(given.node, repetition=OPTIONAL, field_id=None) == source.node(name):
            return Column(name, source, replace(given.node, repetition=OPTIONAL))
        raise SchemaError("the column has another structure than the schema says")


def _source(values: Any) -> Source:
    if isinstance(values, pd.RangeIndex):
        return _range_source(values)
    return values.source(source_of) if isinstance(values, Level) else source_of(values.array)


def _nested_column(name: str, values: Any, given: GivenColumn | None) -> SourceColumn:
    from .nested import source_column

    if given is None:
        return source_column(name, values)
    column = source_column(name, values, given.node)
    if column.node != given.node:
        raise SchemaError("the column has another structure than the schema says")
    return column


def arrow_field(column: SourceColumn) -> ArrowField:
    """Give a column as Arrow describes it: as it says itself, or by its schema."""
    known = getattr(column, "field", None)
    return known if isinstance(known, ArrowField) else field_of(column.node)


def _range_source(index: pd.RangeIndex) -> Source:
    arrow_type, convert = number_converter(np.dtype(np.int64))
    first, step = index.start, index.step
    return flat(arrow_type, lambda start, stop: first + step * np.arange(start, stop, dtype=np.int64), convert)


def _metadata(df: pd.DataFrame, levels: list[Any], entries: list[dict], with_index: bool) -> dict[str, str | bytes]:
    attrs = attrs_entries(df.attrs)
    labels = label_entries(df.columns) if with_index else []
    metadata: dict[str, str | bytes] = {"pandas": document(levels, labels, entries, attrs)}
    if attrs["attributes"]:
        metadata["PANDAS_ATTRS"] = json.dumps(attrs["attributes"])
    return metadata


def arrow_schema(fields: Sequence[ArrowField], metadata: Mapping[str, str | bytes]) -> str:
    """Write the value of the ``ARROW:schema`` key.

    Parameters
    ----------
    fields : sequence of ArrowField
        `TakenApart.arrow_fields`.
    metadata : mapping of str to str or bytes
        The other keys of the footer: pyarrow looks for them in the Arrow schema, where there is one.
    """
    return _arrow_schema(tuple(fields), tuple((key, text) for key, text in metadata.items() if isinstance(text, str)))


@lru_cache(maxsize=4)  # the files of a dataset have the same, thousands of them
def _arrow_schema(fields: tuple[ArrowField, ...], metadata: tuple[tuple[str, str], ...]) -> str:
    return arrow_message(fields, dict(metadata))
