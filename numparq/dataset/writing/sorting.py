"""The order that rows are written in, where they are to be sorted."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ...errors import SchemaError
from .gathering import is_arrow

__all__ = ["SortKey", "sort_keys", "sort_order"]

SortKey = tuple[str, bool, bool]  # its name, whether its largest values come first, and whether its nulls do


def sort_keys(given: Sequence[Any]) -> list[SortKey]:
    """Understand what rows are to be sorted by.

    Parameters
    ----------
    given : sequence
        Names, or tuples of name, descending, nulls first, as ``sorting_columns`` of `numparq.ParquetWriter`.
    """
    keys = []
    for item in given:
        name, *rest = (item,) if isinstance(item, str) else item
        keys.append((str(name), bool(rest and rest[0]), bool(len(rest) > 1 and rest[1])))
    return keys


def sort_order(keys: list[SortKey], rows: Any) -> np.ndarray:
    """Give the positions of rows in the order of some columns; those that are equal stay in theirs.

    NaN is above all numbers, as it is for Spark.

    Parameters
    ----------
    keys : list of SortKey
        The columns, the one that counts most first.
    rows : pandas.DataFrame or pyarrow.Table
        The rows.

    Raises
    ------
    SchemaError
        When there is no such column, or its values have no order.
    """
    import pyarrow as pa

    missing = [name for name, _, _ in keys if name not in (rows.column_names if is_arrow(rows) else rows.columns)]
    if missing:
        raise SchemaError("rows cannot be sorted by a column that they do not have", column=missing[0])
    names = [name for name, _, _ in keys]
    table = rows if is_arrow(rows) else pa.Table.from_pandas(rows[names], preserve_index=False)
    order = None
    for key in reversed(keys):  # a stable sort by each, the one that counts least first
        column = table[key[0]] if order is None else table[key[0]].take(order)
        placed = _placed(column, key)
        order = placed if order is None else order.take(placed)
    return np.asarray(order)


def _placed(column: Any, key: SortKey) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    name, descending, nulls_first = key
    sort = partial(pc.array_sort_indices, order="descending" if descending else "ascending",
                   null_placement="at_start" if nulls_first else "at_end")  # fmt: skip
    values = column.combine_chunks()
    try:
        order = sort(values)
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise SchemaError(f"rows cannot be sorted by values of the type {column.type}", column=name) from error
    return _with_nan_highest(values, np.asarray(order), key) if pa.types.is_floating(values.type) else order


def _with_nan_highest(values: Any, order: np.ndarray, key: SortKey) -> Any:
    """Have NaN above all numbers, as Spark has it: Arrow puts it beside the nulls, whichever end these are at."""
    import pyarrow as pa

    _, descending, nulls_first = key
    is_there = values.is_valid().to_numpy(zero_copy_only=False)
    is_nan = np.isnan(values.to_numpy(zero_copy_only=False)) & is_there
    if not is_nan.any():
        return pa.array(order)
    rank = np.where(is_nan, -1 if descending else 1, 0)
    rank[~is_there] = -2 if nulls_first else 2
    return pa.array(order[np.argsort(rank[order], kind="stable")])
