"""Cast string columns to the dtype that pandas' options `string_storage` and `infer_string` demand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

__all__ = ["apply_string_options"]

# Returns the target of a string dtype: another storage, or object.
DtypeChooser = Callable[[pd.StringDtype], Any]


def apply_string_options(frame: pd.DataFrame, dtype_backend: Any) -> None:
    """Cast a frame's strings, in place, to the dtype that pandas' options demand of every engine.

    With an explicit `dtype_backend`, ``future.infer_string`` does not apply to values.
    """
    storage, inferred = pd.get_option("mode.string_storage"), _infers_str()
    if storage == "auto" and inferred:
        return
    of_names = _dtype_chooser(storage, not inferred)
    of_values = of_names if dtype_backend not in ("numpy_nullable", "pyarrow") else _dtype_chooser(storage, False)
    for place in range(frame.shape[1]):
        values = _cast(frame.iloc[:, place].array, of_values, of_names)
        if values is not None:
            frame.isetitem(place, pd.Series(values, frame.index, copy=False))
    frame.index = _cast_index(frame.index, of_values, of_names)
    frame.columns = _cast_index(frame.columns, of_names, of_names)


def _dtype_chooser(storage: str, as_objects: bool) -> DtypeChooser:
    def choose(dtype: pd.StringDtype) -> Any:
        if as_objects and dtype.na_value is not pd.NA:
            return np.dtype(object)
        return dtype if storage in ("auto", dtype.storage) else pd.StringDtype(storage, dtype.na_value)

    return choose


def _infers_str() -> bool:
    """Whether strings get the dtype ``str``; reading the option itself is deprecated."""
    return bool(pd.Index([""]).dtype != object)


def _cast(values: Any, choose: DtypeChooser, of_categories: DtypeChooser) -> Any:
    """Cast strings, or string categories; None if nothing changes."""
    dtype = values.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        categories = _cast(dtype.categories.array, of_categories, of_categories)
        if categories is None:
            return None
        index = pd.Index(categories, dtype=categories.dtype)
        return pd.Categorical.from_codes(values.codes, dtype=pd.CategoricalDtype(index, dtype.ordered))
    if not isinstance(dtype, pd.StringDtype) or (after := choose(dtype)) is dtype:
        return None
    if isinstance(after, pd.StringDtype):
        return values.astype(after)
    objects = np.array(values, dtype=object)
    objects[np.asarray(values.isna())] = None
    return objects


def _cast_index(index: pd.Index, choose: DtypeChooser, of_categories: DtypeChooser) -> pd.Index:
    if isinstance(index, pd.MultiIndex):
        levels = [_cast_index(level, choose, of_categories) for level in index.levels]
        return index.set_levels(levels, verify_integrity=False)
    values = _cast(index.array, choose, of_categories)
    return index if values is None else pd.Index(values, dtype=values.dtype, name=index.name)
