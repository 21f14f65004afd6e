"""Resolve the columns of a user's Spark schema and check that its types hold every value."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from numparq.errors import SchemaError

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

# Returns the position of each wanted column or struct field among names; None if missing.
FieldFinder = Callable[[list[str], list[str]], list[int | None]]

# Digits before the point that hold all integers of a type.
_DIGITS = {"ByteType": 3, "ShortType": 5, "IntegerType": 10, "LongType": 19}
_INTEGERS = tuple(_DIGITS)
# Types that hold all values of a type, besides itself.
_WIDER = {
    "ByteType": (*_INTEGERS[1:], "FloatType", "DoubleType"),
    "ShortType": (*_INTEGERS[2:], "FloatType", "DoubleType"),
    "IntegerType": ("LongType", "DoubleType"),
    "FloatType": ("DoubleType",),
    "DateType": ("TimestampNTZType",),
}


def find_fields(names: list[str], wanted: list[str]) -> list[int | None]:
    """Return the position of each wanted field, or None: exact names first, then regardless of case, as Spark does.

    Raises SchemaError if a name is ambiguous: several fields differ only in case, and `wanted` lacks one.
    """
    if names == wanted:  # duplicates are possible: s.x and t.x
        return list(range(len(names)))
    exact = {name: place for place, name in reversed(list(enumerate(names)))}
    folded: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        folded.setdefault(name.lower(), []).append(place)
    places: list[int | None] = []
    for name in wanted:
        alike = folded.get(name.lower(), [])
        others = {names[place] for place in alike} - {name, *wanted}
        if (others and name in exact) or len(others) > 1:
            raise SchemaError(
                f"the name matches several columns regardless of case: {', '.join(names[place] for place in alike)}; "
                "set caseSensitive",
                column=name,
            )
        places.append(exact[name] if name in exact else (alike[0] if alike else None))
    return places


def find_fields_exactly(names: list[str], wanted: list[str]) -> list[int | None]:
    """Return the position of each wanted field by its exact name, or None."""
    places = {name: place for place, name in reversed(list(enumerate(names)))}
    return list(range(len(names))) if names == wanted else [places.get(name) for name in wanted]


def check_user_schema(file_schema: StructType, wanted: StructType, field_finder: FieldFinder = find_fields) -> None:
    """Check that the types of a user's schema hold all values of the files' types; missing columns are null.

    Raises SchemaError with the column. `field_finder` is `find_fields` or `find_fields_exactly`.
    """
    _check_fields(file_schema, wanted, (), field_finder)


def _check_fields(
    file_schema: StructType, wanted: StructType, above: tuple[str, ...], field_finder: FieldFinder
) -> None:
    for place, field in zip(field_finder(file_schema.fieldNames(), wanted.fieldNames()), wanted.fields, strict=True):
        if place is not None:
            _check(file_schema.fields[place].dataType, field.dataType, (*above, field.name), field_finder)


def _check(file_schema: DataType, wanted: DataType, path: tuple[str, ...], field_finder: FieldFinder) -> None:
    from pyspark.sql import types

    if isinstance(file_schema, types.StructType) and isinstance(wanted, types.StructType):
        _check_fields(file_schema, wanted, path, field_finder)
    elif isinstance(file_schema, types.ArrayType) and isinstance(wanted, types.ArrayType):
        _check(file_schema.elementType, wanted.elementType, (*path, "element"), field_finder)
    elif isinstance(file_schema, types.MapType) and isinstance(wanted, types.MapType):
        _check(file_schema.keyType, wanted.keyType, (*path, "key"), field_finder)
        _check(file_schema.valueType, wanted.valueType, (*path, "value"), field_finder)
    elif not _holds(file_schema, wanted):
        raise SchemaError(
            f"type {wanted.simpleString()} of the schema cannot hold all values of the stored type "
            f"{file_schema.simpleString()}",
            column=".".join(path),
        )


def _holds(file_schema: DataType, wanted: DataType) -> bool:
    """Whether a type that is not nested holds all values of another."""
    if file_schema == wanted or type(wanted).__name__ in _WIDER.get(type(file_schema).__name__, ()):
        return True
    rule = _RULES.get(type(wanted).__name__)
    return rule is not None and rule(file_schema, wanted)


def _decimals(file_schema: Any, wanted: Any) -> bool:
    name = type(file_schema).__name__
    whole = wanted.precision - wanted.scale
    if name in _DIGITS:
        return bool(whole >= _DIGITS[name])
    return (
        name == "DecimalType"
        and wanted.scale >= file_schema.scale
        and whole >= file_schema.precision - file_schema.scale
    )


_RULES: dict[str, Callable[[Any, Any], bool]] = {
    "DecimalType": _decimals,
    "StringType": lambda there, wanted: type(there).__name__ == "StringType",  # any collation
    "TimeType": lambda there, wanted: type(there).__name__ == "TimeType" and wanted.precision >= there.precision,
    "DayTimeIntervalType": lambda there, wanted: type(there).__name__ == "DayTimeIntervalType",
}
