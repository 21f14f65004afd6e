"""Targets by the schema alone: the same dtypes for every part of a table, whatever values are in it.

What `numparq.dtypes.choose` and `numparq.restored` choose for a column of one file is a first guess, with others to
follow where the values do not allow it. Of a table that is read in parts, or out of many files, no part may follow
another guess than the rest; `settled` gives the one target that holds for all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from .dtype_notes import Wanted
from .kernels.tables import INT96_NS
from .target_tables import NULLABLE, NUMPY, nullable_dtype
from .targets import Column, Target

__all__ = ["settled"]

_UNITS = ("s", "ms", "us", "ns")
_LARGEST_EXACT = {4: 2, 8: 4}  # bytes of a float, and of the widest integers that it holds all of


def settled(target: Target, *, may_be_null: bool) -> Target:
    """Give the target whose dtype holds for all values that a column can have.

    Parameters
    ----------
    target : Target
        Of a flat column, or of a leaf of a nested one, as `choose`, `choose_nested` or `restored_target` give it.
    may_be_null : bool
        Whether there may be a null in any part of the table. Where this is False, a null is an error.

    Returns
    -------
    Target
        With nothing to follow it. Integers and booleans that may be null are nullable ones; INT96 is microseconds, and
        an error where these do not hold it. A dtype by the pandas metadata counts where every value of the stored
        type has its place in it; else that of the stored type does.
    """
    if target.conversion == INT96_NS and target.on_inexact is not None:
        target = target.on_inexact
    if not target.nested:
        rule = _RULES.get(target.finish)
        target = target if rule is None else rule(target, may_be_null)
    wanted = target.wanted if target.nested else _certain(target.wanted, target)
    if target.on_null is None and target.on_inexact is None and wanted is target.wanted:
        return target
    return replace(target, wanted=wanted, on_null=None, on_inexact=None)


def _numbers(target: Target, may_be_null: bool) -> Target:
    """Settle what may be integers or booleans, and become floats or objects beside nulls."""
    kind = target.type.kind
    if kind not in ("int", "bool"):
        return target
    column = Column(target.type, target.physical, 0, may_be_null, False)
    made = (NULLABLE if may_be_null else NUMPY)[kind](column)
    assert made is not None
    is_apart = target.categorical or target.wanted is not None
    return replace(made, block=made.block and not is_apart, categorical=target.categorical, wanted=target.wanted)


def _masked(target: Target, may_be_null: bool) -> Target:
    """Settle nullable numbers: of another width than is stored, if it holds all values of that."""
    stored, wanted = target.dtype, target.pandas_dtype
    assert stored is not None
    if _holds(stored, wanted.numpy_dtype):
        return target
    return replace(target, pandas_dtype=nullable_dtype(stored))


def _holds(stored: np.dtype, wanted: np.dtype) -> bool:
    """Whether every number of one dtype is one of the other."""
    if stored.kind in "iu" and wanted.kind == "f":
        return stored.itemsize <= _LARGEST_EXACT.get(wanted.itemsize, 0)
    return np.can_cast(stored, wanted, "safe")


def _zoned(target: Target, may_be_null: bool) -> Target:
    """Settle timestamps with a zone: in another unit only if that is the coarser one, which all of them fit."""
    is_finer = target.unit != "" and _UNITS.index(target.unit) > _UNITS.index(target.type.unit)
    return replace(target, unit="") if is_finer else target


def _arrow(target: Target, may_be_null: bool) -> Target:
    """Settle Arrow's data: as the stored type has it, for pyarrow converts to another one only what fits."""
    return replace(target, pandas_dtype=None, unit="")


_RULES: dict[str, Callable[[Target, bool], Target]] = {
    "block": _numbers,
    "widened": _numbers,
    "narrow_floats": _numbers,
    "bool_objects": _numbers,
    "masked": _masked,
    "masked_floats": _masked,
    "timestamp_tz": _zoned,
    "arrow": _arrow,
}


def _certain(wanted: Wanted | None, target: Target) -> Wanted | None:
    """Give the dtype that a column is turned into at the end, if that can be done with whatever values; else None."""
    if wanted is None or wanted.categories is not None:
        return wanted
    dtype: Any = wanted.dtype
    if isinstance(dtype, pd.SparseDtype):
        is_same = target.finish == "block" and target.dtype == dtype.subtype
        return wanted if is_same or dtype.subtype.kind == "O" else None
    if isinstance(dtype, pd.ArrowDtype):  # a dictionary, of a Categorical
        return wanted
    return wanted if isinstance(dtype, np.dtype) and dtype.kind == "O" else None
