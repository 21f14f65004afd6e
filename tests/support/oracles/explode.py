"""Explode of collections into rows, by loops over Python values."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pyarrow as pa


def to_python(value):
    """Return plain Python values: arrays as lists, nulls as None."""
    if isinstance(value, np.ndarray):
        return [to_python(item) for item in value.tolist()]
    if isinstance(value, dict):
        return {key: to_python(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(to_python(item) for item in value)
    return None if value is pd.NA or value is pd.NaT or (isinstance(value, float) and value != value) else value


def frame_to_python(frame):
    return [[to_python(value) for value in frame.iloc[:, place].tolist()] for place in range(frame.shape[1])]


def explode_paths(kind, here):
    """Return all collections in a type from the top down, each as the set of nodes to explode."""
    inside = {"list": [], "struct": [], "map": []}
    if pa.types.is_struct(kind):
        inside["struct"] = [(*here, place) for place in range(kind.num_fields)]
        for place in range(kind.num_fields):
            for way in explode_paths(kind.field(place).type, (*here, place)):
                yield {here, *way}
    elif pa.types.is_map(kind):
        yield {here}
        for place, child in enumerate((kind.key_type, kind.item_type)):
            for way in explode_paths(child, (*here, place)):
                yield {here, *way}
    elif hasattr(kind, "value_type") and not pa.types.is_dictionary(kind):
        element = (*here, "element")
        yield {here, element} if pa.types.is_struct(kind.value_type) else {here}
        for way in explode_paths(kind.value_type, element):
            yield {here, *way}


def explode_value(value, kind, here, way):
    """Return the rows of a value, each a tuple of columns."""
    if here not in way:
        return [(value,)]
    if pa.types.is_struct(kind):
        fields = [kind.field(place) for place in range(kind.num_fields)]
        parts = [
            explode_value(None if value is None else value[field.name], field.type, (*here, place), way)
            for place, field in enumerate(fields)
        ]
        return [sum(row, ()) for row in itertools.product(*parts)]
    if pa.types.is_map(kind):
        kinds = kind.key_type, kind.item_type
        return [
            sum(row, ())
            for entry in value or ()
            for row in itertools.product(
                *(explode_value(entry[place], kinds[place], (*here, place), way) for place in (0, 1))
            )
        ]
    return [row for item in value or () for row in explode_value(item, kind.value_type, (*here, "element"), way)]


def explode_column(array, way):
    """Return file row numbers, and the columns that replace the exploded one."""
    found = [
        (number, *row)
        for number, value in enumerate(array.to_pylist())
        for row in explode_value(value, array.type, (), way)
    ]
    return [list(column) for column in zip(*found, strict=True)] if found else None
