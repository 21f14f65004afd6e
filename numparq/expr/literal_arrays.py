"""Long lists of literals as arrays: from the caller's buffers to key ranges, without a Python object a literal."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Sequence, Set
from decimal import Context, Decimal, Inexact, InvalidOperation
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from .key_arrays import NumberRanges, StringPoints, byte_offsets
from .key_ranges import KeyRanges, union
from .sort_keys import KeyDomain

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_INTS = {int, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64}
_FLOATS = {float, np.float64}
_MOST = np.iinfo(np.int64).max
_FEW = 8  # so many literals are located one by one
_NS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1, "D": 86_400 * 10**9}


class TypedArray(NamedTuple):
    """Literals of one kind, none of which is null.

    Attributes
    ----------
    kind : str
        ``"number"``, ``"local time"``, ``"instant"`` (datetimes in UTC), ``"decimal"``, ``"Arrow decimal"``, ``"text"``
        or ``"bytes"``.
    values : numpy.ndarray, sequence of Decimal, pyarrow.Decimal128Array or StringPoints
        Numbers or datetime64; decimals; strings (text in UTF-8).
    """

    kind: str
    values: Any


class LiteralArray(Sequence[Any]):
    """Literals of an array, a Series or Arrow data, without nulls.

    Attributes
    ----------
    typed : TypedArray or None
        Their values, copied or immutable; None if they must be taken one by one.
    """

    __slots__ = ("_source", "typed")

    def __init__(self, typed: TypedArray | None, source: Sequence[Any] | pd.Series | pa.Array) -> None:
        self.typed, self._source = typed, source

    def __len__(self) -> int:
        """Return the number of literals."""
        return len(self._source)

    def __iter__(self) -> Iterator[object]:
        return iter(self[:])

    @overload
    def __getitem__(self, at: int) -> object: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Any, ...]: ...
    def __getitem__(self, at: int | slice) -> object:
        if not isinstance(at, slice):
            return self[:][at]
        literals = getattr(self._source, "iloc", self._source)[at]
        return tuple(literals.to_pylist() if hasattr(literals, "to_pylist") else literals)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LiteralArray):
            return NotImplemented
        return len(self) == len(other) and self[:] == other[:]

    def __hash__(self) -> int:
        return hash((LiteralArray, len(self)))


# --- arrays, Series, Arrow data ---------------------------------------------------------------------------------------


def literal_array(values: object) -> LiteralArray | None:
    """Return an array, Series, Index or Arrow data as literals; None if its values are taken one by one."""
    if isinstance(values, np.ndarray):
        return _numpy_literals(values)
    reader = _PACKAGES.get(type(values).__module__.partition(".")[0])
    return None if reader is None else reader(values)


def _numpy_literals(values: np.ndarray) -> LiteralArray | None:
    if values.ndim != 1 or values.dtype.kind not in "iufM":
        return None
    array = np.array(values[~np.isnat(values)] if values.dtype.kind == "M" else values)
    return LiteralArray(_typed(array), array)


def _number_literals(array: np.ndarray, source: object) -> LiteralArray:
    """Return literals with the values of `source`, which narrow floats leave: they would print as wider ones."""
    is_narrow = array.dtype.kind == "f" and array.dtype.itemsize < 8
    return LiteralArray(_typed(array), array if is_narrow else source)


def _typed(array: np.ndarray, is_zoned: bool = False) -> TypedArray:
    kind = "number" if array.dtype.kind != "M" else "instant" if is_zoned else "local time"
    return TypedArray(kind, array.astype(array.dtype.newbyteorder("="), copy=False))


def _pandas_literals(values: object) -> LiteralArray | None:
    import pandas as pd

    if not isinstance(values, (pd.Series, pd.Index)) or isinstance(values, pd.MultiIndex):
        return None
    dtype = values.dtype
    is_number = isinstance(dtype, np.dtype) and dtype.kind in "iuf"
    present = values.copy() if is_number else values.dropna()  # a NaN is a number, and no null
    if isinstance(dtype, pd.DatetimeTZDtype):
        return LiteralArray(_typed(present.to_numpy(f"M8[{dtype.unit}]"), is_zoned=True), present)
    if isinstance(dtype, np.dtype):
        return _number_literals(present.to_numpy(), present) if dtype.kind in "iufM" else None
    if isinstance(dtype, pd.ArrowDtype) or (isinstance(dtype, pd.StringDtype) and dtype.storage == "pyarrow"):
        literals = _arrow_literals(present.array.__arrow_array__())
        if literals is None or literals.typed is None or literals.typed.kind != "number":
            return None if literals is None else LiteralArray(literals.typed, present)
        return _number_literals(literals.typed.values, present)
    numpy_dtype = getattr(dtype, "numpy_dtype", None)  # of nullable numbers
    if numpy_dtype is None or numpy_dtype.kind not in "iuf":
        return None
    return _number_literals(present.to_numpy(numpy_dtype), present)


def _arrow_literals(values: object) -> LiteralArray | None:
    import pyarrow as pa

    array: Any = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if not isinstance(array, pa.Array):
        return None
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    types, kind = pa.types, array.type
    for name, large, checks in (
        ("text", pa.large_string(), (types.is_string, types.is_large_string, types.is_string_view)),
        ("bytes", pa.large_binary(), (types.is_binary, types.is_large_binary, types.is_binary_view)),
    ):
        if any(check(kind) for check in checks):
            present = array.cast(large).drop_null()
            return LiteralArray(TypedArray(name, _string_points(present)), present)
    if types.is_integer(kind) or types.is_floating(kind):
        present = array.drop_null()
        return _number_literals(present.to_numpy(zero_copy_only=False), present)
    if types.is_timestamp(kind):
        present = array.drop_null()
        moments = present.view(pa.int64()).to_numpy().view(f"M8[{kind.unit}]")
        return LiteralArray(_typed(moments, is_zoned=kind.tz is not None), present)
    if types.is_decimal128(kind):
        present = array.drop_null()
        return LiteralArray(TypedArray("Arrow decimal", present), present)
    listed = [value for value in array.to_pylist() if value is not None]
    return LiteralArray(typed_array(listed), listed)


def _string_points(values: pa.LargeStringArray) -> StringPoints:
    _, offsets, data = values.buffers()
    edges = np.frombuffer(offsets, np.int64)[values.offset : values.offset + len(values) + 1]
    return StringPoints(np.frombuffer(data, np.uint8) if data else np.empty(0, np.uint8), edges)


_PACKAGES: dict[str, Callable[[Any], LiteralArray | None]] = {"pandas": _pandas_literals, "pyarrow": _arrow_literals}

# --- lists ------------------------------------------------------------------------------------------------------------


def typed_array(values: Sequence[Any]) -> TypedArray | None:
    """Return a list of literals of one Python type, none of them null, as an array; None if that is not exact."""
    types = set(map(type, values))
    for known, build in _BUILDERS:
        if types <= known:
            try:
                return build(values)
            except (OverflowError, ValueError):  # integers beyond int64, surrogates, time zones of some
                return None
    return None


def _text(values: Sequence[str]) -> TypedArray:
    joined = "".join(values)
    data = joined.encode()
    if len(data) != len(joined):
        return TypedArray("text", StringPoints.from_strings([value.encode() for value in values]))
    return TypedArray("text", StringPoints(np.frombuffer(data, np.uint8), byte_offsets(values)))


def _binary(values: Sequence[bytes]) -> TypedArray:
    return TypedArray("bytes", StringPoints.from_strings(values))


def _moments(values: Sequence[datetime.date]) -> TypedArray:
    """Return dates or datetimes; ValueError if only some of them have a time zone."""
    import pandas as pd

    index = pd.DatetimeIndex(values)
    return _typed(index.asi8.view(f"M8[{index.unit}]"), is_zoned=index.tz is not None)


_BUILDERS: tuple[tuple[Set[type], Callable[[Sequence[Any]], TypedArray | None]], ...] = (
    (_INTS, lambda values: TypedArray("number", np.fromiter(values, np.int64, len(values)))),
    (_FLOATS, lambda values: TypedArray("number", np.array(values, np.float64))),
    ({str}, _text),
    ({bytes}, _binary),
    ({datetime.datetime}, _moments),
    ({datetime.date}, _moments),
    ({Decimal}, lambda values: TypedArray("decimal", values)),
)

# --- key ranges -------------------------------------------------------------------------------------------------------


def in_list_ranges(values: Sequence[Any], domain: KeyDomain) -> KeyRanges | None:
    """Return the keys that equal any of the literals (no nulls), computed with arrays.

    None if each literal must be located by itself.
    """
    if len(values) <= _FEW:
        return None
    typed = values.typed if isinstance(values, LiteralArray) else typed_array(values)
    if typed is None:
        return None
    reader = _READERS.get((typed.kind, domain.type.kind))
    return None if reader is None else reader(typed.values, domain)


@lru_cache(maxsize=64)
def _integer_limits(dtype: np.dtype) -> tuple[int, int]:
    limits = np.iinfo(dtype)
    return int(limits.min), int(limits.max)


def _points(keys: np.ndarray, domain: KeyDomain) -> NumberRanges:
    """Return integers as key ranges; those outside of the domain are dropped."""
    unsigned = domain.kind == "unsigned"
    low, high = domain.low, domain.high - 1
    least, most = _integer_limits(keys.dtype)
    if low > least:
        keys = keys[keys >= low]
    if high < most:
        keys = keys[keys <= high]
    return NumberRanges.from_keys(keys.astype(np.uint64 if unsigned else np.int64))


def _integer_keys(values: np.ndarray, domain: KeyDomain) -> KeyRanges | None:
    return _points(values, domain) if values.dtype.kind in "iu" else None


def _float_keys(values: np.ndarray, domain: KeyDomain) -> KeyRanges | None:
    if domain.width != 8 or values.dtype != np.float64:
        return None
    floats = np.append(values[~np.isnan(values)], [0.0, -0.0] if (values == 0).any() else [])
    bits = floats.view(np.int64)
    return NumberRanges.from_keys(bits ^ ((bits >> 63) & _MOST))


def _moment_keys(values: np.ndarray, domain: KeyDomain) -> KeyRanges | None:
    """Return datetimes as key ranges, in the unit of the column; those between two units equal no value."""
    unit, count = np.datetime_data(values.dtype)
    if domain.kind != "signed" or unit not in _NS or count != 1:
        return None
    numbers = values.view(np.int64)
    source, stored = _NS[unit], _NS["D" if domain.type.kind == "date" else domain.type.unit]
    if source < stored:
        step = stored // source
        numbers = numbers[numbers % step == 0] // step
    elif source > stored:
        step = source // stored
        most = _MOST // step
        numbers = numbers[(numbers >= -most) & (numbers <= most)] * step
    return _points(numbers, domain)


def _local_keys(values: np.ndarray, domain: KeyDomain) -> KeyRanges | None:
    return None if domain.type.timezone else _moment_keys(values, domain)


def _instant_keys(values: np.ndarray, domain: KeyDomain) -> KeyRanges | None:
    return _moment_keys(values, domain) if domain.type.timezone else None


_EXACT = Context(prec=100, traps=[Inexact, InvalidOperation])


def _decimal_keys(values: Sequence[Decimal], domain: KeyDomain) -> KeyRanges | None:
    """Return decimals as unscaled numbers; None if one is between two of them, or not finite."""
    to_integral, scaled, scale = _EXACT.to_integral_exact, _EXACT.scaleb, Decimal(domain.type.scale)
    try:
        numbers = [int(to_integral(scaled(value, scale))) for value in values]
    except (ArithmeticError, ValueError):
        return None
    try:
        return _points(np.fromiter(numbers, np.int64, len(numbers)), domain)
    except OverflowError:
        low, high = domain.low, domain.high
        return union((number, number + 1) for number in numbers if low <= number < high)


def _arrow_decimal_keys(values: pa.Decimal128Array, domain: KeyDomain) -> KeyRanges | None:
    """Return decimals of an Arrow array as unscaled numbers; None if one exceeds int64, or has further digits."""
    import pyarrow as pa

    try:
        values = values.cast(pa.decimal128(38, domain.type.scale))
    except pa.ArrowInvalid:
        return None
    words = np.frombuffer(values.buffers()[1], np.int64)[2 * values.offset : 2 * (values.offset + len(values))]
    keys, signs = words[::2], words[1::2]
    return _points(keys, domain) if (keys >> 63 == signs).all() else None


def _scaled_keys(values: np.ndarray, domain: KeyDomain) -> KeyRanges | None:
    """Return integers as keys of a DECIMAL column."""
    if values.dtype.kind not in "iu" or domain.type.scale not in range(19):
        return None
    factor = 10**domain.type.scale
    most = _MOST // factor
    within = values[(values >= -most) & (values <= most)] if values.dtype.kind == "i" else values[values <= most]
    if len(within) < len(values) and domain.high > _MOST:
        return None
    return _points(within.astype(np.int64) * factor, domain)


def _string_keys(values: StringPoints, domain: KeyDomain) -> KeyRanges:
    return values


_TEXT_TYPES = ("utf8", "large_utf8", "utf8_view", "enum")
_BINARY_TYPES = ("binary", "large_binary", "binary_view", "fixed_size_binary", "enum")
_READERS: dict[tuple[str, str], Callable[[Any, KeyDomain], KeyRanges | None]] = {
    ("number", "int"): _integer_keys,
    ("number", "float"): _float_keys,
    ("number", "decimal"): _scaled_keys,
    ("decimal", "decimal"): _decimal_keys,
    ("Arrow decimal", "decimal"): _arrow_decimal_keys,
    ("local time", "date"): _moment_keys,
    ("local time", "timestamp"): _local_keys,
    ("instant", "timestamp"): _instant_keys,
    **{("text", kind): _string_keys for kind in _TEXT_TYPES},
    **{("bytes", kind): _string_keys for kind in _BINARY_TYPES},
}
