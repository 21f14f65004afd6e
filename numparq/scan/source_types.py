"""Output types of the leaves that a file casts, and values that do not fit the types that they are cast to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from numparq.errors import SchemaError, error_context
from numparq.format.open_file import OpenFile
from numparq.format.schema import Leaf
from numparq.types.choose import choose_nested_output_type, choose_output_type
from numparq.types.output_type import OutputType
from numparq.types.schema_only import schema_only_type

from .file_columns import FileColumns


class UnfitValues(NamedTuple):
    """Rows of a column, counted in a file, with values that its type cannot hold; `leaf` is its first projected one."""

    leaf: int
    rows: np.ndarray
    error: SchemaError


def source_types(file: OpenFile, columns: FileColumns, projected_types: Sequence[OutputType]) -> list[OutputType]:
    """Return the output types of the leaves that a file casts: values as stored, and their validity."""
    types = []
    for column in columns.cast:
        target = projected_types[column.projected.start]
        for leaf in [columns.leaves[at] for at in column.leaves]:
            with error_context(file=file.source.name, column=leaf.name):
                types.append(_source_type(file, leaf, target))
    return types


def _source_type(file: OpenFile, leaf: Leaf, target: OutputType) -> OutputType:
    if leaf.is_nested:
        return schema_only_type(choose_nested_output_type(leaf), may_be_null=True)
    hint = file.arrow_schema.field_type(leaf.column)
    hint = None if hint is None else replace(hint, dictionary=None)
    source = schema_only_type(choose_output_type(leaf, hint, dtype_backend="pyarrow"), may_be_null=True)
    return (
        replace(source, nulls="refuse")
        if target.storage == source.storage == "fixed" and target.nulls == "refuse"
        else source
    )
