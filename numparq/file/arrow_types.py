"""Arrow types that ``ARROW:schema`` has for the columns of a file to write: those that pyarrow can read."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import count

from numparq.format.key_values.arrow import ArrowField
from numparq.from_pandas.user_schema import UserColumn


def without_dictionaries(columns: Sequence[UserColumn], leaves: Collection[int]) -> list[UserColumn]:
    """Return the columns with plain types for some leaves, by index.

    pyarrow 26 cannot read byte arrays in a DELTA encoding as a dictionary. The ``pandas`` key restores categories.
    """
    numbers = count()
    return [replace(column, field=_without_dictionaries(column.field, leaves, numbers)) for column in columns]


def _without_dictionaries(field: ArrowField, leaves: Collection[int], numbers: count[int]) -> ArrowField:
    if field.children:
        children = tuple(_without_dictionaries(child, leaves, numbers) for child in field.children)
        return replace(field, children=children)
    return replace(field, type=replace(field.type, dictionary=None)) if next(numbers) in leaves else field
