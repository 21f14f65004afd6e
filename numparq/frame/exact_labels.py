"""Column labels as they were, by the notes that our own files have of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ..dtype_notes import wanted_dtype
from ..scalar_notes import scalar_of


def exact_labels(found: pd.Index, labels: list[Any], notes: list[dict]) -> pd.Index:
    """Make column labels what they were.

    Parameters
    ----------
    found : pandas.Index
        The labels as any reader makes them.
    labels : list
        Each label as it was.
    notes : list of dict
        For each level what is known of it.

    Returns
    -------
    pandas.Index
        `found`, where the notes do not say more.
    """
    try:
        if all("dtype" in note for note in notes):
            found = _index(labels, notes).set_names(list(found.names))
        elif "range" in notes[0] and isinstance(found.dtype, np.dtype):
            whole = pd.RangeIndex(*notes[0]["range"], name=found.name)
            found = whole if len(whole) == len(found) and (whole == found).all() else found
        names = [scalar_of(note["name"]) if "name" in note else name
                 for note, name in zip(notes, found.names, strict=True)]  # fmt: skip
        return found.set_names(names)
    except Exception:  # whatever pandas raises for labels that it cannot make
        return found


def _index(labels: list[Any], notes: list[dict]) -> pd.Index:
    dtypes = [_dtype(note) for note in notes]
    if len(notes) == 1:
        return pd.Index(labels, dtype=dtypes[0], tupleize_cols=False)
    if any(type(label) is not tuple or len(label) != len(notes) for label in labels):
        raise ValueError("labels of several levels are tuples")
    made = [_level([label[number] for label in labels], dtype) for number, dtype in enumerate(dtypes)]
    return pd.MultiIndex([values for values, _ in made], [codes for _, codes in made], verify_integrity=False)


def _level(labels: list[Any], dtype: Any) -> tuple[pd.Index, list[int]]:
    """Give the values of a level, none of which is missing, and the codes of the labels."""
    missing = [label is None or label is pd.NA or label is pd.NaT or label != label for label in labels]
    places: dict[Any, int] = {}
    codes = [-1 if gap else places.setdefault((type(label), label), len(places))
             for label, gap in zip(labels, missing, strict=True)]  # fmt: skip
    return pd.Index([label for _, label in places], dtype=dtype, tupleize_cols=False), codes


def _dtype(note: dict) -> Any:
    if "categories" not in note:
        return wanted_dtype(note["dtype"])
    categories = list(map(scalar_of, note["categories"]))
    inner = wanted_dtype(note["dtype"]["categories"])
    return pd.CategoricalDtype(pd.Index(categories, dtype=inner), ordered=bool(note["dtype"]["ordered"]))
