"""Arrow types of leaf columns by logical type, limits of decimals, and fallbacks of output types."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from numparq.errors import CorruptPageError, InvalidFileError
from numparq.format.arrow_type import ArrowType, DictionaryIndex
from numparq.format.logical_type import LogicalType
from numparq.kernels.enums import BOOLEAN, BYTE_ARRAY, DOUBLE, FIXED_LEN_BYTE_ARRAY, FLOAT, INT32, INT64, INT96
from numparq.kernels.status import INEXACT, NULL_FOUND, TRUNCATED
from numparq.kernels.tables import COPY, INT96_NS, INT96_US, NARROW, WIDEN_SIGNED, WIDEN_UNSIGNED
from numparq.types import choose, output_type
from numparq.types.parquet_type import infer_arrow_type


def integer(bit_width, signed):
    return LogicalType("INTEGER", bit_width=bit_width, signed=signed)


def decimal_type(precision, scale=0):
    return LogicalType("DECIMAL", precision=precision, scale=scale)


def timestamp(unit, utc, kind="TIMESTAMP"):
    return LogicalType(kind, unit=unit, utc=utc)


FIXED = FIXED_LEN_BYTE_ARRAY
ARROW_TYPES = [
    (BOOLEAN, None, None, ArrowType("bool")),
    (INT32, None, None, ArrowType("int", 32)),
    (INT64, None, None, ArrowType("int", 64)),
    (INT96, None, None, ArrowType("timestamp", unit="ns")),
    (FLOAT, None, None, ArrowType("float", 32)),
    (DOUBLE, None, None, ArrowType("float", 64)),
    (BYTE_ARRAY, None, None, ArrowType("binary")),
    (FIXED, 5, None, ArrowType("fixed_size_binary", byte_width=5)),
    (INT32, None, integer(8, True), ArrowType("int", 8)),
    (INT32, None, integer(16, False), ArrowType("int", 16, signed=False)),
    (INT64, None, integer(64, False), ArrowType("int", 64, signed=False)),
    (INT32, None, integer(64, True), ArrowType("int", 32)),
    (INT64, None, integer(8, True), ArrowType("int", 64)),
    (INT32, None, integer(12, True), ArrowType("int", 32)),
    (INT32, None, LogicalType("DATE"), ArrowType("date", unit="D")),
    (INT64, None, LogicalType("DATE"), ArrowType("int", 64)),
    (INT32, None, timestamp("MILLIS", True, "TIME"), ArrowType("time", unit="ms")),
    (INT32, None, timestamp("MICROS", True, "TIME"), ArrowType("int", 32)),
    (INT64, None, timestamp("NANOS", False, "TIME"), ArrowType("time", unit="ns")),
    (INT64, None, timestamp("MICROS", True), ArrowType("timestamp", unit="us", timezone="UTC")),
    (INT64, None, timestamp("MILLIS", False), ArrowType("timestamp", unit="ms")),
    (INT64, None, timestamp(None, True), ArrowType("int", 64)),
    (BYTE_ARRAY, None, LogicalType("STRING"), ArrowType("utf8")),
    (FIXED, 4, LogicalType("STRING"), ArrowType("fixed_size_binary", byte_width=4)),
    (BYTE_ARRAY, None, LogicalType("JSON"), ArrowType("utf8", extension="arrow.json")),
    (BYTE_ARRAY, None, LogicalType("ENUM"), ArrowType("binary")),
    (BYTE_ARRAY, None, LogicalType("BSON"), ArrowType("binary")),
    (BYTE_ARRAY, None, LogicalType("GEOMETRY"), ArrowType("binary")),
    (BYTE_ARRAY, None, LogicalType("OF THE FUTURE"), ArrowType("binary")),
    (FIXED, 12, LogicalType("INTERVAL"), ArrowType("fixed_size_binary", byte_width=12)),
    (FIXED, 16, LogicalType("UUID"), ArrowType("uuid", byte_width=16)),
    (FIXED, 4, LogicalType("UUID"), ArrowType("fixed_size_binary", byte_width=4)),
    (FIXED, 2, LogicalType("FLOAT16"), ArrowType("float", 16)),
    (FIXED, 3, LogicalType("FLOAT16"), ArrowType("fixed_size_binary", byte_width=3)),
    (INT32, None, LogicalType("UNKNOWN"), ArrowType("null")),
    (BYTE_ARRAY, None, decimal_type(100, 30), ArrowType("decimal", 256, precision=100, scale=30)),
    (DOUBLE, None, decimal_type(5), ArrowType("float", 64)),
]


@pytest.mark.parametrize(("physical", "length", "annotation", "expected"), ARROW_TYPES, ids=str)
def test_arrow_type_by_logical_type(physical, length, annotation, expected):
    assert infer_arrow_type(physical, length, annotation) == expected


LIMITS = [
    (INT32, None, 9),
    (INT64, None, 18),
    (FIXED, 1, 2),
    (FIXED, 4, 9),
    (FIXED, 8, 18),
    (FIXED, 16, 38),
    (FIXED, 32, 76),
]


@pytest.mark.parametrize(("physical", "length", "limit"), LIMITS)
def test_decimal_precision_limits(physical, length, limit):
    assert infer_arrow_type(physical, length, decimal_type(limit)).precision == limit
    with pytest.raises(InvalidFileError, match=rf"DECIMAL\({limit + 1}, 0\) does not fit .* at most {limit} digits"):
        infer_arrow_type(physical, length, decimal_type(limit + 1))


@pytest.mark.parametrize("length", range(1, 60))
def test_fixed_length_decimal_limit_follows_the_specification(length):
    digits = len(str(2 ** (8 * length - 1) - 1)) - 1  # floor(log10(x)) of a number that is no power of ten
    assert infer_arrow_type(FIXED, length, decimal_type(digits)).precision == digits
    with pytest.raises(InvalidFileError):
        infer_arrow_type(FIXED, length, decimal_type(digits + 1))


@pytest.mark.parametrize(("precision", "scale"), [(0, 0), (None, None), (-1, 0), (3, 4), (3, -1)])
def test_invalid_decimals_are_refused(precision, scale):
    with pytest.raises(InvalidFileError, match="is not a valid decimal type"):
        infer_arrow_type(INT32, None, decimal_type(precision, scale))


@pytest.mark.parametrize("length", [None, 0, -1])
def test_fixed_len_byte_array_needs_a_length(length):
    with pytest.raises(InvalidFileError, match="type_length of at least 1"):
        infer_arrow_type(FIXED, length, None)


ORIGINS = [
    (
        INT64,
        timestamp("MICROS", True),
        ArrowType("timestamp", unit="s", timezone="Asia/Tokyo"),
        ArrowType("timestamp", unit="us", timezone="Asia/Tokyo"),
    ),
    (
        INT64,
        timestamp("MICROS", False),
        ArrowType("timestamp", unit="us", timezone="Asia/Tokyo"),
        ArrowType("timestamp", unit="us"),
    ),
    (INT64, None, ArrowType("duration", unit="ns"), ArrowType("duration", unit="ns")),
    (INT64, integer(64, False), ArrowType("duration", unit="ns"), ArrowType("int", 64, signed=False)),
    (INT32, None, ArrowType("duration", unit="ns"), ArrowType("int", 32)),
    (BYTE_ARRAY, LogicalType("STRING"), ArrowType("large_utf8"), ArrowType("large_utf8")),
    (BYTE_ARRAY, None, ArrowType("large_utf8"), ArrowType("binary")),
    (
        BYTE_ARRAY,
        LogicalType("STRING"),
        ArrowType("utf8", dictionary=DictionaryIndex(8, True, True)),
        ArrowType("utf8", dictionary=DictionaryIndex(8, True, True)),
    ),
    (INT64, None, ArrowType("int", 64, dictionary=DictionaryIndex()), ArrowType("int", 64)),
    (
        INT32,
        decimal_type(5, 2),
        ArrowType("decimal", 32, precision=5, scale=2),
        ArrowType("decimal", 32, precision=5, scale=2),
    ),
    (
        INT32,
        decimal_type(5, 2),
        ArrowType("decimal", 32, precision=6, scale=2),
        ArrowType("decimal", 128, precision=5, scale=2),
    ),
    (
        INT64,
        decimal_type(15, 2),
        ArrowType("decimal", 32, precision=15, scale=2),
        ArrowType("decimal", 128, precision=15, scale=2),
    ),
    (
        INT64,
        None,
        ArrowType("int", 64, extension="pandas.period", extension_metadata="{}"),
        ArrowType("int", 64, extension="pandas.period", extension_metadata="{}"),
    ),
    (INT32, None, ArrowType("int", 64, extension="pandas.period", extension_metadata="{}"), ArrowType("int", 32)),
    (
        BYTE_ARRAY,
        LogicalType("STRING"),
        ArrowType("utf8", extension="arrow.json", extension_metadata=""),
        ArrowType("utf8", extension="arrow.json", extension_metadata=""),
    ),
]


@pytest.mark.parametrize(("physical", "annotation", "origin", "expected"), ORIGINS, ids=str)
def test_arrow_schema_hints(physical, annotation, origin, expected):
    assert infer_arrow_type(physical, None, annotation, origin) == expected


def leaf(physical, annotation=None, length=None, optional=True):
    return SimpleNamespace(
        physical=physical, logical=annotation, type_length=length, max_definition_level=int(optional)
    )


def chain(first, *statuses):
    targets = [first]
    for status in statuses:
        targets.append(output_type.fallback_type(targets[-1], status))
    return [(target.array_kind, str(target.dtype), target.conversion, target.nulls) for target in targets]


def test_fallbacks_of_integers():
    first = choose.choose_output_type(leaf(INT64))
    assert chain(first, NULL_FOUND, INEXACT) == [
        ("block", "int64", COPY, "refuse"),
        ("widened", "float64", WIDEN_SIGNED, "fill"),
        ("masked", "int64", COPY, "mask"),
    ]
    assert chain(choose.choose_output_type(leaf(INT64, integer(64, False)), has_nulls=True), INEXACT) == [
        ("widened", "float64", WIDEN_UNSIGNED, "fill"),
        ("masked", "uint64", COPY, "mask"),
    ]


def test_fallbacks_of_narrow_integers():
    assert chain(choose.choose_output_type(leaf(INT32, integer(8, False))), NULL_FOUND) == [
        ("block", "uint8", NARROW, "refuse"),
        ("narrow_floats", "uint8", NARROW, "mask"),
    ]


def test_fallbacks_of_booleans():
    assert chain(choose.choose_output_type(leaf(BOOLEAN)), NULL_FOUND) == [
        ("block", "bool", COPY, "refuse"),
        ("bool_objects", "bool", COPY, "mask"),
    ]


@pytest.mark.parametrize("dtype_backend", choose.DTYPE_BACKENDS)
def test_fallback_of_int96_is_microseconds(dtype_backend):
    first = choose.choose_output_type(leaf(INT96), dtype_backend=dtype_backend)
    second = output_type.fallback_type(first, INEXACT)
    assert (first.conversion, second.conversion) == (INT96_NS, INT96_US)
    assert (first.type.unit, second.type.unit) == ("ns", "us")


def test_required_columns_refuse_nulls():
    for physical in (BOOLEAN, INT32, INT64, FLOAT, DOUBLE, INT96):
        for dtype_backend in choose.DTYPE_BACKENDS:
            target = choose.choose_output_type(
                leaf(physical, optional=False), dtype_backend=dtype_backend, has_nulls=True
            )
            assert target.nulls == "refuse"


def test_status_without_fallback_raises():
    with pytest.raises(CorruptPageError):
        output_type.fallback_type(choose.choose_output_type(leaf(INT64, optional=False)), NULL_FOUND)
    with pytest.raises(CorruptPageError):
        output_type.fallback_type(choose.choose_output_type(leaf(INT64)), TRUNCATED)


def test_fallbacks_keep_the_categorical_option():
    first = choose.choose_output_type(leaf(INT96), categorical=True)
    assert first.categorical
    assert output_type.fallback_type(first, INEXACT).categorical


def test_fill_is_one_item():
    for physical in (INT32, INT64, INT96, FLOAT, DOUBLE):
        for dtype_backend in choose.DTYPE_BACKENDS:
            target = choose.choose_output_type(leaf(physical), dtype_backend=dtype_backend, has_nulls=True)
            assert target.nulls != "fill" or len(target.fill) == target.dtype.itemsize


def test_an_unknown_backend():
    with pytest.raises(ValueError, match="dtype_backend must be one of numpy, numpy_nullable, pyarrow, not 'x'"):
        choose.choose_output_type(leaf(INT64), dtype_backend="x")
