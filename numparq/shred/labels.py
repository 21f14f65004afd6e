"""Labels to names: what the columns of a frame, and the levels of its index, are called in the file."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import pandas as pd

from ..errors import SchemaError


def text_of(label: Any) -> Any:
    """Give a label as pyarrow writes it: a str, or None for a missing one.

    Parameters
    ----------
    label : object
        Bytes are decoded as UTF-8; the items of a tuple are turned to text one by one, and the tuple then.
    """
    if isinstance(label, str):
        return label
    if isinstance(label, bytes):
        return label.decode("utf-8", "replace")
    if isinstance(label, tuple):
        return str(tuple(map(text_of, label)))
    if label is None or (isinstance(label, float) and label != label):
        return None
    return str(label)


def field_names(labels: Sequence[Any]) -> list[str]:
    """Name the columns of a file.

    Parameters
    ----------
    labels : sequence
        The labels of a frame's columns.

    Returns
    -------
    list of str
        Their texts, where need be with ``_1``, ``_2``, ... behind, so that no two are the same: few readers know what
        to do about that. The pandas metadata keep the labels as they were.

    Raises
    ------
    SchemaError
        When a label is no Unicode text.
    """
    wanted = [str(text_of(label)) for label in labels]
    taken, names = set(wanted), []
    seen: set[str] = set()
    for name in wanted:
        _check(name)
        if name in seen:
            name = unused(name, taken)
            taken.add(name)
        seen.add(name)
        names.append(name)
    return names


def unused(name: str, taken: set[str]) -> str:
    """Give the first of ``name_1``, ``name_2``, ... that is not taken."""
    number = 1
    while f"{name}_{number}" in taken:
        number += 1
    return f"{name}_{number}"


def _check(name: str) -> None:
    try:
        name.encode()
    except UnicodeEncodeError:
        raise SchemaError(f"the column name {name!r} is no Unicode text") from None


def index_name(level: pd.Index, number: int, taken: Collection[Any]) -> str:
    """Name the column that a level of the index becomes.

    Parameters
    ----------
    level : pandas.Index
        The level.
    number : int
        Which of the levels it is, from 0.
    taken : collection of str
        Names of the other columns of the file.

    Returns
    -------
    str
        The level's own name; ``__index_level_0__`` and so on where it has none, or one that is taken.
    """
    name = text_of(level.name)
    if name is not None and name not in taken:
        _check(name)
        return name
    while f"__index_level_{number}__" in taken:
        number += 1
    return f"__index_level_{number}__"


def json_label(label: Any) -> Any:
    """Give a label as JSON can hold it: itself, or its text."""
    if isinstance(label, float) and label != label:
        return None
    return label if label is None or isinstance(label, (str, int, float)) else str(label)
