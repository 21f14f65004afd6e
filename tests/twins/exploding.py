"""Collections as rows, by loops over Python's values."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pyarrow as pa


def plain(value):
    """Give plain Python values: arrays as lists, whatever stands for a null as None."""
    if isinstance(value, np.ndarray):
        return [plain(item) for item in value.tolist()]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(plain(item) for item in value)
    return None if value is pd.NA or value is pd.NaT or (isinstance(value, float) and value != value) else value


def plain_columns(frame):
    return [[plain(value) for value in frame.iloc[:, place].tolist()] for place in range(frame.shape[1])]


def ways(kind, here):
    """Give all collections in a type, from the top down: each as the set of places to dissolve."""
    inside = {"list": [], "struct": [], "map": []}
    if pa.types.is_struct(kind):
        inside["struct"] = [(*here, place) for place in range(kind.num_fields)]
        for place in range(kind.num_fields):
            for way in ways(kind.field(place).type, (*here, place)):
                yield {here, *way}
    elif pa.types.is_map(kind):
        yield {here}
        for place, child in enumerate((kind.key_type, kind.item_type)):
            for way in ways(child, (*here, place)):
                yield {here, *way}
    elif hasattr(kind, "value_type") and not pa.types.is_dictionary(kind):
        element = (*here, "element")
        yield {here, element} if pa.types.is_struct(kind.value_type) else {here}
        for way in ways(kind.value_type, element):
            yield {here, *way}


def flattened(value, kind, here, way):
    """Give the rows that come of a value: each a tuple of columns."""
    if here not in way:
        return [(value,)]
    if pa.types.is_struct(kind):
        fields = [kind.field(place) for place in range(kind.num_fields)]
        parts = [
            flattened(None if value is None else value[field.name], field.type, (*here, place), way)
            for place, field in enumerate(fields)
        ]
        return [sum(row, ()) for row in itertools.product(*parts)]
    if pa.types.is_map(kind):
        kinds = kind.key_type, kind.item_type
        return [
            sum(row, ())
            for entry in value or ()
            for row in itertools.product(
                *(flattened(entry[place], kinds[place], (*here, place), way) for place in (0, 1))
            )
        ]
    return [row for item in value or () for row in flattened(item, kind.value_type, (*here, "element"), way)]


def expected_columns(array, way):
    """Give the ordinals of the rows of the file, and the columns in the place of the exploded one."""
    found = [
        (number, *row)
        for number, value in enumerate(array.to_pylist())
        for row in flattened(value, array.type, (), way)
    ]
    return [list(column) for column in zip(*found, strict=True)] if found else None
