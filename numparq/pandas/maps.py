"""Cast map columns from lists of pairs to dicts (`maps_as_pydicts`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from numparq.column.nested.nested_type import NestedType, is_variant, resolve_nested_type
from numparq.dataset.dataset import Dataset
from numparq.dataset.discover.files import is_dataset_path
from numparq.errors import SchemaError
from numparq.file.readable_file import ReadableFile
from numparq.format.schema import Schema
from numparq.keys.part_keys import keys_of_single_file
from numparq.keys.provider import as_key_source

Converter = Callable[[Any], Any]

# Options that decide a dataset's columns.
_DATASET_OPTIONS = ("partitioning", "schema", "resolve", "table_format")


def cast_maps(frame: pd.DataFrame, maps: str, source: Any, options: dict[str, Any]) -> None:
    """Cast the maps of a frame, at any depth and in place, from pairs to dicts.

    `maps`: the last of duplicate keys wins ("lossy"), or SchemaError ("strict"). `options` are those of the read.
    """
    with _open_again(source, options) as table:
        schema = table.schema
        shapes = {name: resolve_nested_type(schema, schema.positions[name]) for name in _nested_columns(frame, schema)}
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


def _open_again(source: Any, options: dict[str, Any]) -> ReadableFile | Dataset:
    """Open the source again for its schema."""
    places = {name: options[name] for name in ("storage_options", "filesystem") if name in options}
    decryption = as_key_source(options.get("decryption"))
    if is_dataset_path(source, **places):
        of_table = {name: options[name] for name in _DATASET_OPTIONS if name in options}
        return Dataset(source, decryption=decryption, **places, **of_table)
    return ReadableFile(source, decryption=keys_of_single_file(decryption, source, places.get("filesystem")), **places)


def _nested_columns(frame: pd.DataFrame, schema: Schema) -> Iterator[str]:
    """Yield the names of the frame's columns that are nested in the file."""
    for label in frame.columns:
        position = schema.positions.get(str(label))
        if position is not None and schema.flat_leaf(position) is None and schema.has_leaves(position):
            yield str(label)


def _converter(nested_type: NestedType, strict: bool) -> Converter | None:
    """Return a function that casts the maps inside a value to dicts; None if the type has no maps."""
    if is_variant(nested_type) or nested_type.kind == "leaf":
        return None
    inner = [_converter(child, strict) for child in nested_type.children]
    if nested_type.kind == "map":
        return _map_converter(nested_type, inner, strict)
    if not any(inner):
        return None
    if nested_type.kind == "list":
        return _list_converter(inner[0])
    fields = {child.name: convert for child, convert in zip(nested_type.children, inner, strict=True) if convert}
    return lambda value: {name: _convert(fields.get(name), part) for name, part in value.items()}


def _convert(convert: Converter | None, value: Any) -> Any:
    return value if convert is None or value is None else convert(value)


def _list_converter(convert: Converter | None) -> Converter:
    def converted(values: Any) -> np.ndarray:
        out = np.empty(len(values), dtype=object)
        for place, value in enumerate(values):
            out[place] = _convert(convert, value)
        return out

    return converted


def _map_converter(nested_type: NestedType, inner: list[Converter | None], strict: bool) -> Converter:
    of_key, of_value = inner

    def converted(pairs: Any) -> dict[Any, Any]:
        made = {_convert(of_key, key): _convert(of_value, value) for key, value in pairs}
        if strict and len(made) < len(pairs):
            raise SchemaError(
                "a map has a duplicate key; maps_as_pydicts='lossy' keeps the last value", column=nested_type.name
            )
        return made

    return converted
