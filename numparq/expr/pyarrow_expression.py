"""Translate pyarrow's expressions (`pyarrow.compute.field("a") > 1`), exactly or not at all."""

from __future__ import annotations

import sys
from binascii import b2a_base64
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from numparq.format.key_values.arrow import decode_schema_message

from .column import ColumnReference, col, comparison, escape_like
from .expression import Constant, Expression, Operand, as_condition

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc

_COMPARISONS = {
    "equal": "==",
    "not_equal": "!=",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}
_SWAPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_HINTS = {
    "cast": "compare the column itself: numbers, decimals and timestamps of different types are compared exactly",
    **dict.fromkeys(("and", "or", "and_", "or_", "and_not"), "combine expressions by &, | and ~"),
}
_OTHER_HINT = "filter the frame after reading"
_MATCH_NULLS, _SKIP_NULLS = 0, 1  # null_matching_behavior of SetLookupOptions
_ESCAPE = "\\"


def is_pyarrow_expression(value: object) -> bool:
    """Whether a value is a `pyarrow.compute.Expression`; does not import pyarrow."""
    module = sys.modules.get("pyarrow.compute")
    return module is not None and isinstance(value, module.Expression)


def from_pyarrow(expression: pc.Expression) -> Expression:
    """Return a pyarrow expression as ours, for the same rows.

    Raises ValueError for what has no exact counterpart, TypeError for a comparison with null.
    """
    arguments: list[_Argument] = []
    options: dict[str, Any] = {}
    calls: list[tuple[str, list[_Argument]]] = []  # open calls, with the arguments of the calls around them
    for key, value in (steps := _serialized(expression)):
        if key == "call":
            calls.append((value, arguments))
            arguments = []
        elif key == "field_ref":
            arguments.append(_column((value,)))
        elif key == "nested_field_ref":
            arguments.append(_column(tuple(next(steps)[1] for _ in range(int(value)))))
        elif key == "options":
            options = _options(value)
        elif key == "literal":
            arguments.append(_Literal(value))
        else:
            name, around = calls.pop()
            arguments, options = [*around, _translate(name, arguments, options)], {}
    return _condition(arguments[0])


def _serialized(expression: pc.Expression) -> Iterator[tuple[str, Any]]:
    """Yield the steps of a serialized expression: calls, their arguments and their ends, in order.

    Arrow serializes it as a record batch: the steps are the metadata of the schema, and literals its columns.
    """
    import pyarrow as pa

    try:
        (buffer,) = expression.__reduce__()[1]
    except pa.ArrowNotImplementedError as error:
        raise ValueError(f"the pyarrow expression {expression} cannot be translated: {error}") from None
    with pa.ipc.open_file(buffer) as reader:
        batch = reader.get_batch(0)
    # pyarrow shows metadata as a dict, which would lose repeated keys.
    schema = decode_schema_message(b2a_base64(memoryview(batch.schema.serialize())))
    for pair in schema.vector_items(2, sys.maxsize):
        key, value = pair.text(0, sys.maxsize) or "", pair.text(1, sys.maxsize) or ""
        yield key, batch.column(int(value))[0] if key in ("literal", "options") else value


def _column(path: tuple[str, ...]) -> ColumnReference:
    return col(path[0] if len(path) == 1 and "." not in path[0] else path)


class _Literal:
    """A literal of a pyarrow expression."""

    def __init__(self, scalar: pa.Scalar) -> None:
        self.value = _python_value(scalar)


_Argument = ColumnReference | Expression | _Literal


def _python_value(scalar: pa.Scalar) -> object:
    """Return the exact Python value of a pyarrow scalar; floats keep their type, hence stay exact beside floats."""
    import pyarrow as pa

    if not scalar.is_valid:
        return None
    kind = scalar.type
    if pa.types.is_floating(kind):
        return _typed_float(kind)(scalar.as_py())
    if pa.types.is_time(kind) or pa.types.is_duration(kind):
        return np.timedelta64(scalar.value, kind.unit)
    if pa.types.is_timestamp(kind) and kind.tz is None:
        return np.datetime64(scalar.value, kind.unit)
    return scalar.as_py()


def _typed_float(kind: pa.DataType) -> type[np.floating]:
    """Return NumPy's type of a floating-point type."""
    return np.dtype(f"f{kind.bit_width // 8}").type


def _options(scalar: pa.StructScalar) -> dict[str, Any]:
    """Return the options of a function; floats of a list narrower than 64 bits keep their type."""
    import pyarrow as pa

    options: dict[str, Any] = scalar.as_py()
    if "value_set" in options:
        kind = scalar.type.field("value_set").type.value_type
        if pa.types.is_floating(kind) and kind.bit_width < 64:
            typed = _typed_float(kind)
            options["value_set"] = [None if value is None else typed(value) for value in options["value_set"]]
    return options


# --- calls ------------------------------------------------------------------------------------------------------------


def _translate(name: str, arguments: list[_Argument], options: dict[str, Any]) -> Expression:
    if name in _COMPARISONS:
        found = _comparison(_COMPARISONS[name], *arguments)
    elif name in _LOGIC:
        return _LOGIC[name](*map(_condition, arguments))
    else:
        column = arguments[0]
        is_exact = name in _TESTS and not options.get("ignore_case")
        found = _TESTS[name](column, options) if is_exact and isinstance(column, ColumnReference) else None
    if found is None:
        raise ValueError(
            f"pyarrow's function {name!r} has no exact counterpart for these arguments; {_HINTS.get(name, _OTHER_HINT)}"
        )
    return found


def _condition(argument: _Argument) -> Expression:
    """Return an argument of a logical function as an expression: a boolean column or literal may stand alone."""
    if isinstance(argument, Operand):
        return as_condition(argument)
    if isinstance(argument.value, bool):
        return Constant(argument.value)
    raise ValueError(f"the literal {argument.value!r} is no condition; use comparisons, isin() or is_null()")


def _comparison(op: str, first: _Argument, second: _Argument) -> Expression | None:
    if isinstance(first, _Literal):
        first, second, op = second, first, _SWAPPED.get(op, op)
    if not isinstance(first, ColumnReference) or isinstance(second, Expression):
        return None
    return comparison(first.name, op, second.value if isinstance(second, _Literal) else second)


def _is_in(column: ColumnReference, options: dict[str, Any]) -> Expression | None:
    """Translate is_in, which is false for a null, or true if the values have one; a NaN equals a NaN."""
    nulls, values = options["null_matching_behavior"], options["value_set"]
    if nulls not in (_MATCH_NULLS, _SKIP_NULLS):
        return None
    found: Expression = column.isin(values)
    if any(isinstance(value, (float, np.floating)) and value != value for value in values):
        found = found | column.is_nan()
    if nulls == _MATCH_NULLS and None in values:
        return column.is_null() | found
    return column.is_not_null() & found


def _like(column: ColumnReference, pattern: str) -> Expression | None:
    """Translate match_like, where a backslash escapes the next character."""
    unescaped = pattern.replace(_ESCAPE * 2, "")
    odd = any(part[:1] not in ("%", "_") for part in unescaped.split(_ESCAPE)[1:])
    return None if odd else column.like(pattern, _ESCAPE)


_LOGIC: dict[str, Callable[..., Expression]] = {
    "and_kleene": lambda first, second: first & second,
    "or_kleene": lambda first, second: first | second,
    "and_not_kleene": lambda first, second: first & ~second,
    "invert": lambda part: ~part,
}
_TESTS: dict[str, Callable[[ColumnReference, dict[str, Any]], Expression | None]] = {
    "is_valid": lambda column, options: column.is_not_null(),
    "is_null": lambda column, options: column.isna() if options["nan_is_null"] else column.is_null(),
    "is_nan": lambda column, options: column.is_nan(),
    "is_in": _is_in,
    "starts_with": lambda column, options: column.startswith(options["pattern"]),
    "ends_with": lambda column, options: column.endswith(options["pattern"]),
    "match_substring": lambda column, options: column.like(f"%{escape_like(options['pattern'])}%", _ESCAPE),
    "match_like": lambda column, options: _like(column, options["pattern"]),
}
