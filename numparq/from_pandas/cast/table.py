"""Cast column values to a type: that of the user's schema, or of rows written before. Errors name the value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from numparq.column.leaf_values import LeafValues
from numparq.errors import SchemaError
from numparq.format.arrow_type import ArrowType
from numparq.format.schema import REQUIRED
from numparq.from_pandas.column_values import ColumnValues
from numparq.from_pandas.user_schema import UserColumn
from numparq.types.parquet_type import parquet_type

from .bytes import (
    binary_to_fixed,
    binary_to_text,
    decimals_to_decimals,
    fixed_to_binary,
    fixed_to_fixed,
    integers_to_decimals,
    text_to_decimals,
)
from .numbers import (
    booleans_to_integers,
    floats_exactly,
    floats_to_floats,
    floats_to_integers,
    integers_to_booleans,
    integers_to_floats,
    integers_to_integers,
)
from .physical import physical_cast
from .rule import CastError, CastRule, no_cast, nulls_to_zeros
from .temporal import integers_to_units, timestamps_to_timestamps, units_to_units

_STORED_KINDS = {
    "large_utf8": "utf8",
    "utf8_view": "utf8",
    "large_binary": "binary",
    "binary_view": "binary",
    "uuid": "fixed_size_binary",
}

_TEMPORAL = ("date", "time", "timestamp", "duration")
CastRules = Mapping[tuple[str, str], CastRule]
# What the user's schema may ask for.
CASTS: CastRules = {
    ("int", "int"): integers_to_integers,
    ("int", "float"): integers_to_floats,
    ("int", "decimal"): integers_to_decimals,
    ("int", "bool"): integers_to_booleans,
    ("bool", "int"): booleans_to_integers,
    ("float", "int"): floats_to_integers,
    ("float", "float"): floats_to_floats,
    ("decimal", "decimal"): decimals_to_decimals,
    ("timestamp", "timestamp"): timestamps_to_timestamps,
    ("timestamp", "date"): units_to_units,
    ("date", "timestamp"): units_to_units,
    ("date", "date"): no_cast,
    ("time", "time"): units_to_units,
    ("duration", "duration"): units_to_units,
    ("duration", "time"): units_to_units,
    ("utf8", "utf8"): no_cast,
    ("utf8", "binary"): no_cast,
    ("utf8", "decimal"): text_to_decimals,
    ("binary", "binary"): no_cast,
    ("binary", "utf8"): binary_to_text,
    ("binary", "fixed_size_binary"): binary_to_fixed,
    ("fixed_size_binary", "binary"): fixed_to_binary,
    ("fixed_size_binary", "fixed_size_binary"): fixed_to_fixed,
    **{("int", kind): integers_to_units for kind in _TEMPORAL},
    **{
        ("null", kind): nulls_to_zeros
        for kind in ("bool", "int", "float", "decimal", "utf8", "binary", "fixed_size_binary", *_TEMPORAL)
    },
}

# What needs no schema: the values mean the same afterwards, and none is rounded.
EXACT_CASTS: CastRules = {
    **{
        (before, after): rule
        for (before, after), rule in CASTS.items()
        if before in (after, "null") or {before, after} == {"binary", "fixed_size_binary"}
    },
    **{pair: CASTS[pair] for pair in (("int", "float"), ("float", "int"), ("int", "decimal"))},
    ("float", "float"): floats_exactly,
}


def stored_kind(arrow_type: ArrowType) -> str:
    """Return the kind of a type by its storage: text, binary and UUID variants become one each."""
    return _STORED_KINDS.get(arrow_type.kind, arrow_type.kind)


def cast_values(values: ColumnValues, user_column: UserColumn, rules: CastRules = CASTS) -> ColumnValues:
    """Return the values of a flat column cast to the type of a schema by one of the `rules`.

    Raises SchemaError if there is no such cast; `leaves` raises it for a value that does not fit.
    """
    target = user_column.field.type
    step = _find_cast(values.type, target, rules)
    wanted = (user_column.node.physical, user_column.node.type_length, user_column.node.logical)
    store = physical_cast(parquet_type(target), wanted)
    required = user_column.node.repetition == REQUIRED
    if step is None and store is None and not required:
        return replace(values, type=target)

    def leaves(start: int, stop: int) -> list[LeafValues]:
        (leaf,) = values.read_leaves(start, stop)
        try:
            leaf = leaf if step is None else step(leaf)
            leaf = leaf if store is None else store(leaf)
        except CastError as error:
            raise SchemaError(_message(error, leaf, start, target)) from None
        if required:
            _check_present(leaf, start)
        return [leaf]

    return ColumnValues(target, leaves)


def _find_cast(origin: ArrowType, target: ArrowType, rules: CastRules) -> Callable[[LeafValues], LeafValues] | None:
    """Return the cast between two types; None if nothing needs to be done."""
    before, after = (
        replace(kind, dictionary=None, extension=None, extension_metadata=None) for kind in (origin, target)
    )
    if before == after or (before.kind == "null" and parquet_type(after)[:2] == parquet_type(before)[:2]):
        return None
    rule = rules.get((stored_kind(before), stored_kind(after)))
    if rule is None:
        raise SchemaError(f"values of type {_type_name(origin)} cannot be written as {_type_name(target)}")
    return rule(before, after)


def _type_name(arrow_type: ArrowType) -> str:
    """Return the name of a type for messages."""
    details: dict[str, str] = {
        "int": f"{'' if arrow_type.signed else 'u'}int{arrow_type.bit_width}",
        "float": f"float{arrow_type.bit_width}",
        "decimal": f"decimal({arrow_type.precision}, {arrow_type.scale})",
        "fixed_size_binary": f"fixed_size_binary({arrow_type.byte_width})",
    }
    unit = f"[{arrow_type.unit}{', ' if arrow_type.timezone else ''}{arrow_type.timezone}]" if arrow_type.unit else ""
    return details.get(arrow_type.kind, arrow_type.kind + unit)


def _message(error: CastError, leaf: LeafValues, start: int, target: ArrowType) -> str:
    """Return the message for a value that does not fit; an entry of a dictionary may have no row to name."""
    rows = [error.position] if leaf.codes is None else np.flatnonzero(leaf.codes == error.position)[:1].tolist()
    row = f"row {start + rows[0]}: " if rows else ""
    return f"{row}{error.value_text} does not fit {_type_name(target)}"


def _check_present(leaf: LeafValues, start: int) -> None:
    """Raise SchemaError for a null in a required column."""
    if leaf.validity is not None:
        row = start + int(np.argmin(leaf.validity))
        raise SchemaError(
            f"row {row} is null, but the schema requires a value; fill the nulls or make the column optional"
        )
