"""Shred a DataFrame: columns by row ranges, their schema, and the footer's key-value metadata."""

from __future__ import annotations

import json
import warnings
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from numparq.column.leaf_values import SourceColumn
from numparq.errors import SchemaError, error_context
from numparq.format.key_values.arrow import ArrowField
from numparq.format.key_values.pandas import column_entry, encode_document, label_entries
from numparq.format.key_values.pandas_dtypes import ATTRS_KEY, DtypeEntry, dtype_entry
from numparq.format.key_values.pandas_labels import add_label_note
from numparq.format.key_values.python_values import value_to_json
from numparq.format.schema import OPTIONAL
from numparq.format.schema_node import SchemaNode
from numparq.util.arguments import is_flag

from .cast.table import cast_values
from .column_values import ColumnValues, NestedValuesError, flat_values
from .columns import array_values
from .geometry import split_geometries
from .labels import IndexLevel, frame_columns, select_by_schema
from .numbers import number_converter
from .user_schema import UserColumn, UserSchema, parse_schema

ColumnArray = Any  # a NumPy or pandas array, Index or IndexLevel


@dataclass(slots=True)
class ShreddedFrame:
    """A frame ready to be written.

    Attributes
    ----------
    columns : list of SourceColumn
        Columns of the frame, then the index levels that are columns.
    key_value_metadata : dict of str to str
        For the footer: ``pandas``, and ``PANDAS_ATTRS`` if the frame has attrs.
    ordered_categories : dict of str to pandas.Index
        Categories of the columns that are ordered Categoricals.
    inferred_columns : frozenset of str
        Columns whose type follows from their values, not their dtype: a slice of rows may have another type.
    arrow_schema : str or None
        Value of ``ARROW:schema``, if it does not follow from `arrow_fields`.
    arrays : list
        Array of each column, from whose row `first_row` on the rows come.
    """

    columns: list[SourceColumn]
    num_rows: int
    arrow_fields: list[ArrowField]
    key_value_metadata: dict[str, str | bytes] = field(default_factory=dict)
    ordered_categories: dict[str, pd.Index] = field(default_factory=dict)
    inferred_columns: frozenset[str] = frozenset()
    arrow_schema: str | None = None
    arrays: list[ColumnArray] = field(default_factory=list)
    first_row: int = 0

    def slice(self, start: int, stop: int) -> ShreddedFrame:
        """Return rows `start` to `stop` (exclusive) with the types and metadata of all rows, without a copy."""
        columns, first_row = [column.from_row(start) for column in self.columns], self.first_row + start
        return replace(self, columns=columns, num_rows=stop - start, first_row=first_row)

    def inferred_schema(self) -> UserSchema:
        """Return the types of the inferred columns, by which a slice of rows is shredded."""
        return UserSchema(
            {
                column.node.name: UserColumn(column.node, field)
                for column, field in zip(self.columns, self.arrow_fields, strict=True)
                if column.node.name in self.inferred_columns
            },
            is_complete=False,
        )


def shred_frame(
    df: pd.DataFrame, index: bool | None = None, schema: Any = None, reserved: Collection[str] = ()
) -> ShreddedFrame:
    """Shred a DataFrame, which is not copied and must not change until it is written.

    `index=None` stores a RangeIndex in the metadata only. No index level gets a name in `reserved`.
    """
    if index is not None and not is_flag(index):
        raise TypeError(f"index must be True, False or None, not {index!r}")
    check_frame(df)
    df, geo = split_geometries(df)
    given = parse_schema(schema)
    parts, levels = frame_columns(df, index, reserved)
    if given.is_complete:
        parts, levels = select_by_schema(parts, levels, given, len(df))
    elif missing := sorted(set(given.columns) - {part.name for part in parts}):
        raise SchemaError(f"the schema names column {missing[0]!r}, which the DataFrame does not have")
    columns = [shred_column(part.name, part.values, given.columns.get(part.name)) for part in parts]
    fields = [column.field for column in columns]
    entries, dtypes = [], {}
    described: dict[int, DtypeEntry] = {}  # by the identity of dtypes, which `dtypes` keeps alive
    for part, arrow_field in zip(parts, fields, strict=True):
        dtype = dtypes[part.name] = part.values.dtype
        known = described.get(id(dtype))
        if known is None:
            known = described[id(dtype)] = dtype_entry(dtype)
        entries.append(add_label_note(column_entry(known, part.label, arrow_field), part.note))
    ordered = {
        name: dtype.categories
        for name, dtype in dtypes.items()
        if isinstance(dtype, pd.CategoricalDtype) and dtype.ordered
    }
    spread = [level for level in levels if isinstance(level, str)] if isinstance(df.index, pd.MultiIndex) else []
    inferred = frozenset(
        name for name, dtype in dtypes.items() if (isinstance(dtype, np.dtype) and dtype.kind == "O") or name in spread
    )
    metadata = _key_value_metadata(df, levels, entries, index is not False) | geo
    arrays = [part.values for part in parts]
    return ShreddedFrame(columns, len(df), fields, metadata, ordered, inferred, arrays=arrays)


def check_frame(df: object) -> None:
    """Raise TypeError for anything but a DataFrame; the caller has taken Arrow data."""
    if isinstance(df, pd.DataFrame):
        return
    kind = f"{type(df).__module__}.{type(df).__qualname__}".removeprefix("builtins.")
    method = next((name for name in ("collect", "to_frame") if hasattr(df, name)), None)
    hint = f"; call its {method}() first" if method else ""
    raise TypeError(f"df must be a pandas.DataFrame, or Arrow data such as a polars.DataFrame, not {kind}{hint}")


def shred_column(name: str, values: Any, user_column: UserColumn | None = None) -> SourceColumn:
    """Return the source column of an array, Series, Index or IndexLevel, of the user's type if given."""
    with error_context(column=name):
        if user_column is not None and user_column.is_variant:
            from .nested.variant import variant_column

            return variant_column(name, plain_array(values), user_column)
        try:
            source = _column_values(values)
        except NestedValuesError:
            return _nested_column(name, plain_array(values), user_column)
        if user_column is None:
            return source.column(name)
        if user_column.is_flat and not source.children:
            return cast_values(source, user_column).column(name, user_column.node, user_column.field)
        if len(values) == 0 or source.type.kind == "null":
            return _nested_column(name, np.full(len(values), None, object), user_column)
        if replace(_without_ids(user_column.node), repetition=OPTIONAL) == source.node(name):
            return source.column(name, replace(user_column.node, repetition=OPTIONAL))
        raise SchemaError("the nested structure of the column differs from the schema")


def _without_ids(node: SchemaNode) -> SchemaNode:
    return replace(node, field_id=None, children=tuple(map(_without_ids, node.children)))


def _column_values(values: Any) -> ColumnValues:
    if isinstance(values, pd.RangeIndex):
        return _range_values(values)
    return values.column_values(array_values) if isinstance(values, IndexLevel) else array_values(plain_array(values))


def plain_array(values: Any) -> Any:
    """Return the array of a Series, Index or IndexLevel, or the array itself."""
    return values.array if isinstance(values, (pd.Series, pd.Index, IndexLevel)) else values


def _nested_column(name: str, values: Any, given: UserColumn | None) -> SourceColumn:
    from .nested.column import nested_column

    if given is None:
        return nested_column(name, values)
    column = nested_column(name, values, given.node)
    if column.node != given.node:
        raise SchemaError("the nested structure of the column differs from the schema")
    return column


def _range_values(index: pd.RangeIndex) -> ColumnValues:
    arrow_type, convert = number_converter(np.dtype(np.int64))
    first, step = index.start, index.step
    return flat_values(arrow_type, lambda start, stop: first + step * np.arange(start, stop, dtype=np.int64), convert)


def _key_value_metadata(
    df: pd.DataFrame, levels: list[Any], entries: list[dict[str, Any]], with_index: bool
) -> dict[str, str | bytes]:
    attrs = _attrs_entries(df.attrs)
    labels = label_entries(df.columns) if with_index else []
    metadata: dict[str, str | bytes] = {"pandas": encode_document(levels, labels, entries, attrs)}
    if attrs["attributes"]:
        metadata["PANDAS_ATTRS"] = json.dumps(attrs["attributes"])
    return metadata


def _attrs_entries(attrs: dict[Any, Any]) -> dict[str, Any]:
    """Return the document's entries for ``DataFrame.attrs``: plain JSON, and numparq's note if that is lossy.

    UserWarning if neither can hold it.
    """
    try:
        text = json.dumps(attrs)
    except (TypeError, ValueError, RecursionError) as error:
        text, why = None, error
    if text is not None and _is_same(json.loads(text), attrs):
        return {"attributes": attrs}
    try:
        return {"attributes": json.loads(text or "{}"), ATTRS_KEY: value_to_json(attrs)}
    except (TypeError, ValueError, RecursionError):
        if text is None:
            warnings.warn(f"DataFrame.attrs cannot be written: {why}", UserWarning, stacklevel=3)
        return {"attributes": json.loads(text or "{}")}


def _is_same(found: Any, value: Any) -> bool:
    try:
        return bool(found == value)
    except ValueError:  # the values hold an array
        return False
