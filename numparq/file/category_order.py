"""Category order of ordered Categoricals, checked across appended frames."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from numparq.errors import SchemaError
from numparq.from_pandas.labels import level_values

if TYPE_CHECKING:
    import pandas as pd


class CategoryOrder:
    """Category order of the rows written so far; `path` is the file whose rows come first, read on demand."""

    def __init__(self, path: str | None = None) -> None:
        self._path = path
        self._ranks: dict[str, dict[Any, int]] = {}

    def check_append(self, ordered: Mapping[str, pd.Index]) -> None:
        """Append the categories of ordered Categoricals, by column name.

        Raises SchemaError if readers, who merge categories in order of appearance, would see another order.
        """
        joined = {name: _merge_ranks(self._ranks_of(name), categories, name) for name, categories in ordered.items()}
        self._ranks.update(joined)

    def _ranks_of(self, name: str) -> dict[Any, int]:
        if name not in self._ranks and self._path is not None:
            self._ranks[name] = _read_ranks(self._path, name)
        return self._ranks.get(name, {})


def _merge_ranks(ranks: dict[Any, int], categories: pd.Index, name: str) -> dict[Any, int]:
    """Return the ranks of all categories; raise SchemaError if the orders conflict."""
    joined = dict(ranks)
    last, before = -1, None
    for category in categories.tolist():
        rank = joined.setdefault(category, len(joined))
        if rank < last:
            raise SchemaError(
                f"ordered categories must keep the order of the rows before: {category!r} comes after {before!r} here, "
                "but before it there; append new categories at the end",
                column=name,
            )
        last, before = rank, category
    return joined


def _read_ranks(path: str, name: str) -> dict[Any, int]:
    """Read the ranks of a column's categories from a file; empty if it is read as no Categorical."""
    from .readable_file import ReadableFile

    with ReadableFile(path) as file:
        frame = file.read([name])
        keys = {entry.key: entry.value for entry in file.metadata.key_value_metadata or ()}
    if frame.shape[1]:
        dtype = frame.dtypes.iloc[0]
    else:
        dtype = level_values(frame.index, json.loads(keys["pandas"])["index_columns"].index(name)).dtype
    if not hasattr(dtype, "categories"):
        return {}
    return {category: rank for rank, category in enumerate(dtype.categories.tolist())}
