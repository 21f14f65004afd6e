"""Values to the type that a schema gives: exact, or an error that names the value which does not fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..arrow_schema import ArrowType
from ..errors import SchemaError
from ..leaves import LeafValues
from ..schema import REQUIRED
from .convert_bytes import (
    decimals,
    fixed_lengths,
    integers_to_decimals,
    of_fixed_length,
    texts,
    texts_to_decimals,
    to_fixed_length,
)
from .convert_moments import counted, moments, timestamps
from .convert_numbers import (
    booleans_to_integers,
    floats,
    floats_to_integers,
    integers,
    integers_to_booleans,
    integers_to_floats,
)
from .convert_values import Rule, Unfit, keep, of_nulls
from .given import GivenColumn
from .physical import restored
from .source import Source
from .storage import stored_as

_FAMILIES = {"large_utf8": "utf8", "utf8_view": "utf8", "large_binary": "binary", "binary_view": "binary",
             "uuid": "fixed_size_binary"}  # fmt: skip

_COUNTED = ("date", "time", "timestamp", "duration")
CONVERSIONS: dict[tuple[str, str], Rule] = {
    ("int", "int"): integers,
    ("int", "float"): integers_to_floats,
    ("int", "decimal"): integers_to_decimals,
    ("int", "bool"): integers_to_booleans,
    ("bool", "int"): booleans_to_integers,
    ("float", "int"): floats_to_integers,
    ("float", "float"): floats,
    ("decimal", "decimal"): decimals,
    ("timestamp", "timestamp"): timestamps,
    ("timestamp", "date"): moments,
    ("date", "timestamp"): moments,
    ("date", "date"): keep,
    ("time", "time"): moments,
    ("duration", "duration"): moments,
    ("duration", "time"): moments,
    ("utf8", "utf8"): keep,
    ("utf8", "binary"): keep,
    ("utf8", "decimal"): texts_to_decimals,
    ("binary", "binary"): keep,
    ("binary", "utf8"): texts,
    ("binary", "fixed_size_binary"): to_fixed_length,
    ("fixed_size_binary", "binary"): of_fixed_length,
    ("fixed_size_binary", "fixed_size_binary"): fixed_lengths,
    **{("int", kind): counted for kind in _COUNTED},
    **{("null", kind): of_nulls
       for kind in ("bool", "int", "float", "decimal", "utf8", "binary", "fixed_size_binary", *_COUNTED)},
}  # fmt: skip


def family(arrow_type: ArrowType) -> str:
    """Name the kind of a type, by what is stored of its values."""
    return _FAMILIES.get(arrow_type.kind, arrow_type.kind)


def converted(source: Source, given: GivenColumn) -> Source:
    """Give a source whose values are of the type that a schema gives.

    Parameters
    ----------
    source : Source
        A flat column.
    given : GivenColumn
        Of a flat column.

    Raises
    ------
    SchemaError
        When values of its type are never values of the other; or, when its leaves are asked for, one of them is none.
    """
    target = given.field.type
    step = _step(source.type, target)
    wanted = (given.node.physical, given.node.type_length, given.node.logical)
    store = restored(stored_as(target), wanted)
    required = given.node.repetition == REQUIRED
    if step is None and store is None and not required:
        return replace(source, type=target)

    def leaves(start: int, stop: int) -> list[LeafValues]:
        (leaf,) = source.leaves(start, stop)
        try:
            leaf = leaf if step is None else step(leaf)
            leaf = leaf if store is None else store(leaf)
        except Unfit as error:
            raise SchemaError(_described(error, leaf, start, target)) from None
        if required:
            _check_present(leaf, start)
        return [leaf]

    return Source(target, leaves)


def _step(origin: ArrowType, target: ArrowType) -> Callable[[LeafValues], LeafValues] | None:
    """Find the conversion of values; None where nothing has to be done."""
    before, after = (replace(kind, dictionary=None, extension=None, extension_metadata=None)
                     for kind in (origin, target))  # fmt: skip
    if before == after or (before.kind == "null" and stored_as(after)[:2] == stored_as(before)[:2]):
        return None
    rule = CONVERSIONS.get((family(before), family(after)))
    if rule is None:
        raise SchemaError(f"values of type {_name(origin)} cannot be written as {_name(target)}")
    return rule(before, after)


def _name(arrow_type: ArrowType) -> str:
    """Describe a type in a few words."""
    details: dict[str, Any] = {
        "int": f"{'' if arrow_type.signed else 'u'}int{arrow_type.bit_width}",
        "float": f"float{arrow_type.bit_width}",
        "decimal": f"decimal({arrow_type.precision}, {arrow_type.scale})",
        "fixed_size_binary": f"fixed_size_binary({arrow_type.byte_width})",
    }
    unit = f"[{arrow_type.unit}{', ' if arrow_type.timezone else ''}{arrow_type.timezone}]" if arrow_type.unit else ""
    return details.get(arrow_type.kind, arrow_type.kind + unit)


def _described(error: Unfit, leaf: LeafValues, start: int, target: ArrowType) -> str:
    """Say which value does not fit; of a dictionary's value, no row can be told."""
    row = "" if leaf.codes is not None else f"row {start + error.place}: "
    return f"{row}{error.shown} does not fit {_name(target)}"


def _check_present(leaf: LeafValues, start: int) -> None:
    """Refuse nulls."""
    if leaf.validity is not None:
        row = start + int(np.argmin(leaf.validity))
        raise SchemaError(f"row {row} is null, and the schema says that the column is required")
