"""Decoded buffers become pyarrow arrays: values, validity and memory ownership."""

from __future__ import annotations

import decimal

import numpy as np
import pytest

from numparq.column.buffers import BinaryArray, DecodedColumn, DictionaryArray
from numparq.errors import InvalidFileError
from numparq.format.arrow_type import ArrowType, DictionaryIndex
from numparq.to_pandas import arrow
from numparq.types import pyarrow
from numparq.types.output_type import OutputType

pa = pytest.importorskip("pyarrow")


def fixed(arrow_type, values, validity=None):
    values = np.ascontiguousarray(values)
    nulls = 0 if validity is None else validity.count(0)
    mask = None if validity is None else np.array(validity, np.uint8)
    target = OutputType("fixed", "arrow", arrow_type, values.dtype)
    array = arrow.to_arrow(target, DecodedColumn(values, mask, nulls), len(values))
    array.validate(full=True)
    return array


def binary(arrow_type, *arrays, storage="binary"):
    array = arrow.to_arrow(OutputType(storage, "arrow", arrow_type), DecodedColumn(arrays=list(arrays)), 0)
    array.validate(full=True)
    return array


def binary_array(*values, slack=b""):
    offsets = np.concatenate([[0], np.cumsum([len(value or b"") for value in values])]).astype(np.int64)
    data = np.frombuffer(b"".join(value or b"" for value in values) + slack, np.uint8)
    return BinaryArray(offsets, data, np.array([value is not None for value in values], np.uint8))


def address(array):
    return array.chunk(0).buffers()[-1].address


LAYOUTS = [
    (ArrowType("int", 16), "i2"),
    (ArrowType("float", 64), "f8"),
    (ArrowType("date"), "i4"),
    (ArrowType("timestamp", unit="us", timezone="UTC"), "i8"),
    (ArrowType("duration", unit="s"), "i8"),
    (ArrowType("time", unit="ms"), "i4"),
    (ArrowType("time", unit="ns"), "i8"),
    (ArrowType("float", 16), "V2"),
    (ArrowType("fixed_size_binary", byte_width=3), "V3"),
    (ArrowType("uuid"), "V16"),
]


def test_fixed_values_are_not_copied():
    for arrow_type, dtype in LAYOUTS:
        values = np.zeros(9, dtype)
        array = fixed(arrow_type, values, [1] * 8 + [0])
        assert array.null_count == 1
        assert array.type == pyarrow.type_to_pyarrow(arrow_type)
        chunk = array.chunk(0)
        storage = chunk.storage if isinstance(chunk, pa.ExtensionArray) else chunk
        assert storage.buffers()[1].address == values.__array_interface__["data"][0]


def test_validity_and_booleans_are_bit_packed():
    rng = np.random.default_rng(0)
    for count in (0, 1, 7, 8, 9, 1000):
        values, present = rng.integers(0, 2, count).astype(bool), rng.integers(0, 2, count)
        got = fixed(ArrowType("bool"), values, present.tolist())
        assert got.to_pylist() == [bool(value) if valid else None for value, valid in zip(values, present, strict=True)]


def test_no_validity_bitmap_without_nulls():
    assert fixed(ArrowType("int", 64), np.arange(3), [1, 1, 1]).chunk(0).buffers()[0] is None


@pytest.mark.parametrize("kind", ["utf8", "large_utf8", "utf8_view", "binary", "large_binary", "binary_view"])
def test_strings_and_bytes_of_every_layout(kind):
    got = binary(
        ArrowType(kind), binary_array(b"a", None, "grün".encode(), slack=b"rest"), binary_array(), binary_array(b"")
    )
    text = "utf8" in kind
    assert got.to_pylist() == (["a", None, "grün", ""] if text else [b"a", None, "grün".encode(), b""])
    assert got.type == pyarrow.type_to_pyarrow(ArrowType(kind))


def test_large_strings_are_not_copied():
    array_ = binary_array(b"abc", None)
    buffers = binary(ArrowType("large_utf8"), array_).chunk(0).buffers()
    assert buffers[1].address == array_.offsets.__array_interface__["data"][0]
    assert buffers[2].address == array_.data.__array_interface__["data"][0]


def test_json_is_an_extension_type():
    got = binary(ArrowType("utf8", extension="arrow.json"), binary_array(b"{}", None))
    assert got.type == pa.json_()
    assert got.to_pylist() == ["{}", None]


def test_unknown_extension_becomes_its_storage():
    assert pyarrow.type_to_pyarrow(ArrowType("int", 8, extension="nobody.knows")) == pa.int8()


def test_strings_beyond_32_bit_offsets_are_chunked(monkeypatch):
    monkeypatch.setattr(arrow, "_MAX_OFFSET", 10)
    values = [b"abcd", None, b"efgh", b"", b"ijk", b"0123456789", b"z"]
    got = binary(ArrowType("utf8"), binary_array(*values))
    assert got.to_pylist() == [None if value is None else value.decode() for value in values]
    assert got.num_chunks > 2


@pytest.mark.parametrize(
    "index", [DictionaryIndex(), DictionaryIndex(8, True, True), DictionaryIndex(16, False, False)], ids=str
)
def test_dictionaries_of_every_index_type(index):
    arrow_type = ArrowType("utf8", dictionary=index)
    coded = DictionaryArray(np.array([1, -1, 0], np.int32), binary_array(b"a", b"b"))
    full = DictionaryArray(np.array([0], np.int32), binary_array(b"c"))
    got = binary(arrow_type, coded, full, binary_array(b"d", None), storage="dictionary")
    assert got.to_pylist() == ["b", None, "a", "c", "d", None]
    assert got.type == pyarrow.type_to_pyarrow(arrow_type)
    assert got.type.ordered == index.ordered


@pytest.mark.parametrize(("count", "width"), [(128, pa.int8()), (129, pa.int32())])
def test_index_type_holds_all_values(count, width):
    arrow_type = ArrowType("utf8", dictionary=DictionaryIndex(8))
    coded = DictionaryArray(np.array([0], np.int32), binary_array(*(b"%d" % i for i in range(count))))
    got = binary(arrow_type, coded, storage="dictionary")
    assert got.type == pa.dictionary(width, pa.string())
    assert got.to_pylist() == ["0"]


# --- decimals ----------------------------------------------------


def decimal_of(bits, precision, scale=2):
    return ArrowType("decimal", bits, precision=precision, scale=scale)


@pytest.mark.parametrize(("bits", "precision"), [(32, 9), (64, 18), (128, 38), (256, 76)])
@pytest.mark.parametrize("dtype", ["i4", "i8", "V1", "V4", "V8", "V9", "V16", "V20", "V32", "V40"])
def test_decimals_of_every_width(bits, precision, dtype):
    integers = [0, 1, -1, 99, -128, 127]
    width = np.dtype(dtype).itemsize
    values = integers if dtype[0] == "i" else [value.to_bytes(width, "big", signed=True) for value in integers]
    got = fixed(decimal_of(bits, precision), np.array(values, dtype), [1] * 5 + [0])
    assert got.to_pylist() == [decimal.Decimal(value).scaleb(-2) for value in integers[:5]] + [None]


@pytest.mark.parametrize(("bits", "precision"), [(128, 38), (256, 76)])
@pytest.mark.parametrize("width", [16, 17, 32, 33])
def test_largest_decimals(bits, precision, width):
    largest = 10 ** (precision - 1) if bits // 8 <= width else 10**37
    for value in (largest, -largest):
        encoded = np.array([value.to_bytes(width, "big", signed=True)], f"V{width}")
        assert fixed(decimal_of(bits, precision, 0), encoded).to_pylist() == [decimal.Decimal(value)]
        assert binary(decimal_of(bits, precision, 0), binary_array(encoded[0].tobytes())).to_pylist() == [
            decimal.Decimal(value)
        ]


@pytest.mark.parametrize("value", [2**127, -(2**127) - 1, 2**130, -(2**140)])
def test_decimal_beyond_its_precision_is_refused(value):
    encoded = value.to_bytes(20, "big", signed=True)
    for read in (
        lambda: fixed(decimal_of(128, 38), np.array([encoded], "V20")),
        lambda: binary(decimal_of(128, 38), binary_array(encoded)),
    ):
        with pytest.raises(InvalidFileError, match=r"does not fit DECIMAL\(38, 2\)"):
            read()


def test_int32_decimal_overflow_is_refused():
    with pytest.raises(InvalidFileError, match="does not fit"):
        fixed(decimal_of(32, 9), np.array([2**31], np.int64))


def test_null_type():
    got = arrow.to_arrow(OutputType("null", "arrow", ArrowType("null")), DecodedColumn(), 3)
    assert got.type == pa.null()
    assert len(got) == 3
