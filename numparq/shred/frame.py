"""From a DataFrame to what the writer needs: columns by ranges of rows, their number, and the footer's metadata."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from ..errors import located
from ..leaves import SourceColumn
from .arrow_message import arrow_message
from .families import Nested, source_of
from .fields import field_of
from .labels import field_names, index_name, text_of
from .numbers import number_converter
from .pandas_document import column_entry, document, json_attrs, label_entries, range_entry
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
    """

    columns: list[SourceColumn]
    num_rows: int
    arrow_fields: list[ArrowField]
    key_value_metadata: dict[str, str | bytes] = field(default_factory=dict)


def take_apart(df: pd.DataFrame, index: bool | None = None, schema: Any = None) -> TakenApart:
    """Take a DataFrame apart.

    Parameters
    ----------
    df : pandas.DataFrame
        The frame. It is not copied: it must not change while it is written.
    index : bool or None
        Whether to write the index: as columns (True), not at all (False), or as pandas has it by default (None): as
        columns, but a RangeIndex as three numbers of the metadata.
    schema : None
        Reserved.

    Returns
    -------
    TakenApart

    Raises
    ------
    SchemaError
        When a column cannot be written; it is named.
    """
    if not isinstance(df, pd.DataFrame):
        raise TypeError(f"a DataFrame is wanted, not {type(df).__name__}")
    names = field_names(list(df.columns))
    series = [values for _, values in df.items()]
    columns = [column_of(name, values.array) for name, values in zip(names, series, strict=True)]
    labels = [text_of(label) for label in df.columns]
    entries = [
        column_entry(values, label, arrow_field(column))
        for values, label, column in zip(series, labels, columns, strict=True)
    ]
    levels: list[Any] = []
    if index is not False:
        for level, descriptor, column in _index_columns(df.index, labels, names, index):
            levels.append(descriptor)
            if column is not None:
                columns.append(column)
                entries.append(column_entry(level, text_of(level.name), arrow_field(column)))
    fields = [arrow_field(column) for column in columns]
    return TakenApart(columns, len(df), fields, _metadata(df, levels, entries, index is not False))


def column_of(name: str, array: Any) -> SourceColumn:
    """Make a column of the file of an array of a frame.

    Parameters
    ----------
    name : str
        Its name in the file.
    array : numpy.ndarray or pandas.api.extensions.ExtensionArray
        Its values.
    """
    with located(column=name):
        try:
            return Column(name, source_of(array))
        except Nested:
            from .nested import source_column

            return source_column(name, array)


def arrow_field(column: SourceColumn) -> ArrowField:
    """Give a column as Arrow describes it: as it says itself, or by its schema."""
    known = getattr(column, "field", None)
    return known if isinstance(known, ArrowField) else field_of(column.node)


def _index_columns(index: pd.Index, labels: list[Any], names: list[str], choice: bool | None) -> Any:
    """Give each level of the index, what the metadata call it, and its column, if it is to be one."""
    taken = [*labels, *names]
    strange = [name for name in index.names if name is not None and not isinstance(name, str)]
    if strange:
        warnings.warn(f"names of the index that are no strings become strings: {strange}", UserWarning, stacklevel=3)
    for number in range(index.nlevels):
        level = index.get_level_values(number)
        if isinstance(level, pd.RangeIndex) and choice is None:
            yield level, range_entry(level), None
            continue
        name = index_name(level, number, taken)
        taken.append(name)
        if isinstance(level, pd.RangeIndex):
            yield level, name, Column(name, _range_source(level))
        else:
            yield level, name, column_of(name, level.array)


def _range_source(index: pd.RangeIndex) -> Source:
    arrow_type, convert = number_converter(np.dtype(np.int64))
    first, step = index.start, index.step
    return flat(arrow_type, lambda start, stop: first + step * np.arange(start, stop, dtype=np.int64), convert)


def _metadata(df: pd.DataFrame, levels: list[Any], entries: list[dict], with_index: bool) -> dict[str, str | bytes]:
    attrs = json_attrs(df.attrs) if df.attrs else "{}"
    labels = label_entries(df.columns) if with_index else []
    metadata: dict[str, str | bytes] = {"pandas": document(levels, labels, entries, json.loads(attrs or "{}"))}
    if df.attrs and attrs is not None:
        metadata["PANDAS_ATTRS"] = attrs
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
    return arrow_message(fields, {key: text for key, text in metadata.items() if isinstance(text, str)})
