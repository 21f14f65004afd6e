"""Maps as dicts, where lists of pairs are not what is wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from ..column.shape import Shape, is_variant, shape_of
from ..dataset.dataset import Dataset
from ..dataset.files import is_many
from ..errors import SchemaError
from ..reader import ParquetFile
from ..schema import Schema

__all__ = ["make_dicts"]

Converter = Callable[[Any], Any]

# What decides about the columns of many files.
_OF_TABLES = ("partitioning", "schema", "resolve")


def make_dicts(frame: pd.DataFrame, maps: str, source: Any, options: dict[str, Any]) -> None:
    """Make dicts of the pairs of maps, wherever in a column they are.

    Parameters
    ----------
    frame : pandas.DataFrame
        What was read; it is changed.
    maps : {"lossy", "strict"}
        Of keys that are there twice the last one counts, or they are an error.
    source : str, os.PathLike, or binary file object
        What was read.
    options : dict
        What it was read with, as for `numparq.read_parquet`.
    """
    with _opened(source, options) as table:
        schema = table.schema
        shapes = {name: shape_of(schema, schema.positions[name]) for name in _groups(frame, schema)}
    for place, label in enumerate(frame.columns):
        shape = shapes.get(str(label))
        if shape is None or frame.dtypes.iloc[place].kind != "O":
            continue
        convert = _converter(shape, maps == "strict")
        if convert is not None:
            values = frame.iloc[:, place].array
            out = np.empty(len(values), dtype=object)
            for row, value in enumerate(values):
                out[row] = None if value is None else convert(value)
            frame.isetitem(place, pd.Series(out, frame.index, copy=False))


def _opened(source: Any, options: dict[str, Any]) -> ParquetFile | Dataset:
    """Open what was read once more, for its schema."""
    places = {name: options[name] for name in ("storage_options", "filesystem") if name in options}
    if is_many(source, **places):
        of_table = {name: options[name] for name in _OF_TABLES if name in options}
        return Dataset(source, **places, **of_table)
    return ParquetFile(source, **places)


def _groups(frame: pd.DataFrame, schema: Schema) -> Iterator[str]:
    """Give the names of the columns of a frame that are nested in its file."""
    for label in frame.columns:
        position = schema.positions.get(str(label))
        if position is not None and schema.flat_leaf(position) is None and schema.has_leaves(position):
            yield str(label)


def _converter(shape: Shape, strict: bool) -> Converter | None:
    """Give what makes dicts of the maps in a value of a column, or in a part of one; None where there are none."""
    if is_variant(shape) or shape.kind == "leaf":
        return None
    inner = [_converter(child, strict) for child in shape.children]
    if shape.kind == "map":
        return _dict_maker(shape, inner, strict)
    if not any(inner):
        return None
    if shape.kind == "list":
        return _of_elements(inner[0])
    fields = {child.name: convert for child, convert in zip(shape.children, inner, strict=True) if convert}
    return lambda value: {name: _applied(fields.get(name), part) for name, part in value.items()}


def _applied(convert: Converter | None, value: Any) -> Any:
    return value if convert is None or value is None else convert(value)


def _of_elements(convert: Converter | None) -> Converter:
    def converted(values: Any) -> np.ndarray:
        out = np.empty(len(values), dtype=object)
        for place, value in enumerate(values):
            out[place] = _applied(convert, value)
        return out

    return converted


def _dict_maker(shape: Shape, inner: list[Converter | None], strict: bool) -> Converter:
    of_key, of_value = inner

    def converted(pairs: Any) -> dict[Any, Any]:
        made = {_applied(of_key, key): _applied(of_value, value) for key, value in pairs}
        if strict and len(made) < len(pairs):
            raise SchemaError("a map has a key twice; maps_as_pydicts='lossy' keeps the last", column=shape.name)
        return made

    return converted
