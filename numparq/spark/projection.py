"""A schema that the caller gives, held against the columns that there are: which is which, and what may become what."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..errors import SchemaError

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

__all__ = ["FieldPlaces", "check_projection", "exact_places", "field_places"]

# Finds columns, or fields of a struct, among names: which of them each is.
FieldPlaces = Callable[[list[str], list[str]], list[int | None]]

# Digits in front of the point that hold all integers of a type.
_DIGITS = {"ByteType": 3, "ShortType": 5, "IntegerType": 10, "LongType": 19}
_INTEGERS = tuple(_DIGITS)
# What holds all values of a type, besides itself.
_WIDER = {
    "ByteType": (*_INTEGERS[1:], "FloatType", "DoubleType"),
    "ShortType": (*_INTEGERS[2:], "FloatType", "DoubleType"),
    "IntegerType": ("LongType", "DoubleType"),
    "FloatType": ("DoubleType",),
    "DateType": ("TimestampNTZType",),
}


def field_places(names: list[str], wanted: list[str]) -> list[int | None]:
    """Find columns, or fields of a struct, by name: exactly, or else regardless of case, as Spark does.

    Parameters
    ----------
    names : list of str
        Those that there are.
    wanted : list of str
        Those to find.

    Returns
    -------
    list of int or None
        The place of each; None where there is none.

    Raises
    ------
    SchemaError
        When there are several that differ in case only, and not all of them are wanted: Spark refuses them, or, where
        some files have the one and some the other, takes them for one column.
    """
    if names == wanted:  # of which two may be called the same: s.x and t.x
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
                f"which column is it: {', '.join(names[place] for place in alike)}? Spark tells them apart where "
                "caseSensitive is set",
                column=name,
            )
        places.append(exact[name] if name in exact else (alike[0] if alike else None))
    return places


def exact_places(names: list[str], wanted: list[str]) -> list[int | None]:
    """Find columns, or fields of a struct, by just their names; parameters and result as of `field_places`."""
    places = {name: place for place, name in reversed(list(enumerate(names)))}
    return list(range(len(names))) if names == wanted else [places.get(name) for name in wanted]


def check_projection(there: StructType, wanted: StructType, places: FieldPlaces = field_places) -> None:
    """Check that columns can be read as a caller's schema has them, whatever their values.

    Parameters
    ----------
    there : pyspark.sql.types.StructType
        The columns of the files.
    wanted : pyspark.sql.types.StructType
        The caller's; what is not there is null.
    places : callable
        Finds columns and fields: `field_places` or `exact_places`.

    Raises
    ------
    SchemaError
        When a type of it does not hold all values that the column can have. It names the column.
    """
    _check_fields(there, wanted, (), places)


def _check_fields(there: StructType, wanted: StructType, above: tuple[str, ...], places: FieldPlaces) -> None:
    for place, field in zip(places(there.fieldNames(), wanted.fieldNames()), wanted.fields, strict=True):
        if place is not None:
            _check(there.fields[place].dataType, field.dataType, (*above, field.name), places)


def _check(there: DataType, wanted: DataType, path: tuple[str, ...], places: FieldPlaces) -> None:
    from pyspark.sql import types

    if isinstance(there, types.StructType) and isinstance(wanted, types.StructType):
        _check_fields(there, wanted, path, places)
    elif isinstance(there, types.ArrayType) and isinstance(wanted, types.ArrayType):
        _check(there.elementType, wanted.elementType, (*path, "element"), places)
    elif isinstance(there, types.MapType) and isinstance(wanted, types.MapType):
        _check(there.keyType, wanted.keyType, (*path, "key"), places)
        _check(there.valueType, wanted.valueType, (*path, "value"), places)
    elif not _holds(there, wanted):
        raise SchemaError(
            f"the schema asked for has {wanted.simpleString()}, which does not hold all values of "
            f"{there.simpleString()}, as the column is stored",
            column=".".join(path),
        )


def _holds(there: DataType, wanted: DataType) -> bool:
    """Whether all values of one type, which is no nested one, are values of another one."""
    if there == wanted or type(wanted).__name__ in _WIDER.get(type(there).__name__, ()):
        return True
    rule = _RULES.get(type(wanted).__name__)
    return rule is not None and rule(there, wanted)


def _decimals(there: Any, wanted: Any) -> bool:
    name = type(there).__name__
    whole = wanted.precision - wanted.scale
    if name in _DIGITS:
        return whole >= _DIGITS[name]
    return name == "DecimalType" and wanted.scale >= there.scale and whole >= there.precision - there.scale


_RULES: dict[str, Callable[[Any, Any], bool]] = {
    "DecimalType": _decimals,
    "StringType": lambda there, wanted: type(there).__name__ == "StringType",  # of another collation
    "TimeType": lambda there, wanted: type(there).__name__ == "TimeType" and wanted.precision >= there.precision,
    "DayTimeIntervalType": lambda there, wanted: type(there).__name__ == "DayTimeIntervalType",
}
