"""Variant binary encoding: the oracle's values, round trips, damage, and limits of depth and size."""

from __future__ import annotations

import datetime
import decimal
import json
import struct
import subprocess
import sys
import time
import uuid

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from numparq import InvalidFileError, ParquetError, UnsupportedError, variant
from numparq.format.variant.decoder import decode_value
from support.data.variants import EMPTY, IDS, NAMES, exact_value, values
from support.oracles import variant as oracle

UTC = datetime.UTC


@given(values, st.booleans(), st.sampled_from([1, 2, 3, 4]))
def test_values_encoded_by_the_oracle(value, backwards, width):
    metadata, data = oracle.metadata(NAMES, width), oracle.encode(value, IDS, backwards)
    expected = oracle.to_python(value)
    assert (
        exact_value(variant.decode(metadata, data))
        == exact_value(expected)
        == exact_value(oracle.decode(metadata, data))
    )


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**38) + 1, 10**38 - 1)
    | st.floats()
    | st.text(max_size=70)
    | st.binary(max_size=70)
    | st.uuids()
    | st.dates()
    | (st.times() | st.datetimes() | st.datetimes(timezones=st.just(UTC))).map(lambda moment: moment.replace(fold=0))
    | st.decimals(allow_nan=False, allow_infinity=False, places=5, min_value=-(10**20), max_value=10**20)
)
nested_values = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


def as_decoded(value):
    """Return a value as it is decoded: integers beyond 64 bits are decimals."""
    if isinstance(value, dict):
        return {key: as_decoded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_decoded(item) for item in value]
    big = type(value) is int and not -(1 << 63) <= value < 1 << 63
    return decimal.Decimal(value) if big else value


@given(nested_values)
@example({name: number for number, name in enumerate(map(str, range(300)))})  # more than 255 fields
@example(list(range(300)))
@example(["x" * 70_000, "y"])  # three bytes per offset
def test_encode_then_decode(value):
    metadata, data = variant.encode(value)
    expected = exact_value(as_decoded(value))
    assert exact_value(variant.decode(metadata, data)) == expected
    assert exact_value(oracle.decode(metadata, data)) == expected
    known = oracle.names_of(metadata)
    assert known == sorted(set(known), key=str.encode)
    assert metadata[0] >> 4 & 1 == bool(known)  # the sorted flag is set


def test_smallest_types_are_chosen():
    kinds = [
        (None, 0),
        (True, 1),
        (127, 3),
        (-129, 4),
        (1 << 20, 5),
        (1 << 40, 6),
        (1 << 63, 10),
        (1.5, 7),
        (np.float32(1.5), 14),
        (decimal.Decimal("1.25"), 8),
        (decimal.Decimal("1234567890"), 9),
        (decimal.Decimal("1E+20"), 10),
        (datetime.date(2020, 1, 1), 11),
        (datetime.datetime(2020, 1, 1, tzinfo=UTC), 12),
        (datetime.datetime(2020, 1, 1), 13),
        (b"x", 15),
        ("x" * 64, 16),
        (datetime.time(1), 17),
        (pd.Timestamp(5, unit="ns", tz="Europe/Berlin"), 18),
        (pd.Timestamp(5, unit="ns"), 19),
        (uuid.UUID(int=1), 20),
        (pd.Timestamp("2020-01-01"), 13),
        (np.datetime64("2020-01-01"), 11),
        (np.datetime64(5, "ns"), 19),
        (np.datetime64("2020-01-01T00:00:01"), 13),
        (np.int16(5), 3),
        (np.bool_(False), 2),
        (pd.NaT, 0),
        (pd.NA, 0),
        (np.datetime64("NaT"), 0),
    ]
    for value, kind in kinds:
        assert variant.encode(value)[1][0] == kind << 2, repr(value)
    assert variant.encode("x" * 63)[1][0] == 63 << 2 | 1
    assert variant.encode((1, np.array([2, 3])))[1] == variant.encode([1, [2, 3]])[1]
    aware = datetime.datetime(2020, 1, 1, 2, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
    assert variant.decode(*variant.encode(aware)) == datetime.datetime(2020, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        ({1: 2}, TypeError, "field names of a variant must be strings, not 1"),
        (1j, TypeError, "a variant cannot hold 1j of type complex"),
        (np.timedelta64(5, "us"), TypeError, "of type timedelta64"),
        (10**38, ValueError, "cannot be stored in a variant: it needs more than 38 digits"),
        (
            decimal.Decimal("1E-39"),
            ValueError,
            "decimal 1E-39 cannot be stored in a variant: it needs more than 38 digits",
        ),
        (decimal.Decimal("1E+999999"), ValueError, "decimal 1E+999999 cannot be stored"),
        (decimal.Decimal("NaN"), ValueError, "decimal NaN cannot be stored in a variant; use a float"),
        (datetime.time(1, tzinfo=UTC), ValueError, "cannot be stored in a variant: it has a time zone"),
        ("\ud800", ValueError, "string '\\ud800' cannot be encoded as UTF-8"),
        ({"\ud800": 1}, ValueError, "cannot be encoded as UTF-8"),
        (np.datetime64(10**15, "s"), ValueError, "as microseconds without loss"),
    ],
)
def test_unencodable_values_are_refused(value, kind, message):
    with pytest.raises(kind) as caught:
        variant.encode(value)
    assert message in str(caught.value)


def test_encoding_depth_limit():
    value = []
    for _ in range(10_000):
        value = [value]
    with pytest.raises(ValueError, match="the value is nested more than 250 levels deep"):
        variant.encode(value)
    value = []
    for _ in range(249):
        value = [{"a": value[0]}] if value and len(value) > 5 else [value]
    assert variant.decode(*variant.encode(value)) == value


SAMPLE = {
    "a": [1, -5.5, "text", None, {"b": True, "c": [[], {}]}],
    "b": b"\0\1",
    "c": decimal.Decimal("12.345"),
    "d": {"a": datetime.date(2020, 2, 3), "e": "x" * 80},
    "é": uuid.UUID(int=7),
    "f": datetime.time(5, 6),
}


def same_verdict(metadata, data):
    """Whether bytes are valid; checks that numparq and the oracle agree."""
    try:
        expected = oracle.decode(metadata, data)
    except oracle.InvalidVariant:
        with pytest.raises(ParquetError):
            variant.decode(metadata, data)
        return False
    assert exact_value(variant.decode(metadata, data)) == exact_value(expected)
    return True


def test_cut_at_every_byte():
    metadata, data = variant.encode(SAMPLE)
    assert variant.decode(metadata, data) == SAMPLE
    for size in range(len(data)):
        with pytest.raises(InvalidFileError):
            variant.decode(metadata, data[:size])
    for size in range(len(metadata)):
        with pytest.raises(InvalidFileError):
            variant.decode(metadata[:size], data)
    for more in (b"\0", b"abc"):
        with pytest.raises(InvalidFileError):
            variant.decode(metadata, data + more)
        with pytest.raises(InvalidFileError):
            variant.decode(metadata + more, data)


def test_every_byte_damaged():
    metadata, data = variant.encode(SAMPLE)
    verdicts = []
    for place in range(len(data)):
        for change in (1, 2, 4, 8, 16, 64, 128, 255):
            verdicts.append(same_verdict(metadata, flipped(data, place, change)))
    for place in range(len(metadata)):
        for change in (1, 2, 4, 8, 16, 32, 64, 128, 255):
            verdicts.append(same_verdict(flipped(metadata, place, change), data))
    assert 200 < sum(verdicts) < len(verdicts) - 200


def flipped(data, place, change):
    return data[:place] + bytes([data[place] ^ change]) + data[place + 1 :]


@given(st.binary(max_size=12), st.binary(max_size=40))
def test_any_bytes(metadata, data):
    same_verdict(b"\x01" + metadata, data)
    same_verdict(oracle.metadata(["a", "b", "c"], 1), data)


@given(values, st.data())
def test_damaged_values(value, data):
    metadata, encoded = oracle.metadata(NAMES, 2), bytearray(oracle.encode(value, IDS))
    for _ in range(data.draw(st.integers(1, 3))):
        encoded[data.draw(st.integers(0, len(encoded) - 1))] = data.draw(st.integers(0, 255))
    same_verdict(metadata, bytes(encoded))


@pytest.mark.parametrize(
    ("metadata", "value", "kind", "message"),
    [
        (b"", b"\0", InvalidFileError, "a variant has no metadata"),
        (b"\x02\0\0", b"\0", UnsupportedError, "the metadata of a variant has version 2; numparq reads version 1"),
        (
            b"\x01\x05\0",
            b"\0",
            InvalidFileError,
            "the metadata of a variant ends within the offsets of its 5 field names",
        ),
        (
            b"\x01\x01\0\x02a",
            b"\0",
            InvalidFileError,
            "the offsets in the metadata of a variant do not match its field names",
        ),
        (b"\x01\x01\0\x01\xff", b"\0", InvalidFileError, "a string in a variant is not valid UTF-8"),
        (EMPTY, b"", InvalidFileError, "the value of a variant is empty"),
        (EMPTY, b"\x0c", InvalidFileError, "the value of a variant ends at byte 2 instead of byte 1"),
        (EMPTY, b"\x0c\1\1", InvalidFileError, "the value of a variant ends at byte 2 instead of byte 3"),
        (EMPTY, b"\x05\xff", InvalidFileError, "a string in a variant is not valid UTF-8"),
        (EMPTY, b"\x09a", InvalidFileError, "the short string of a variant ends at byte 3 instead of byte 2"),
        (
            EMPTY,
            b"\x40\xff\xff\xff\xffa",
            InvalidFileError,
            "the string or binary value of a variant ends at byte 4294967300 instead of byte 6",
        ),
        (
            EMPTY,
            b"\x20\x27\1\0\0\0",
            InvalidFileError,
            "a decimal in a variant has scale 39, above the limit of 38",
        ),
        (
            EMPTY,
            b"\x54",
            UnsupportedError,
            "a variant has a value of primitive type 21, which numparq cannot read",
        ),
        (
            EMPTY,
            b"\x02\x01\x00\x00\x01\x00",
            InvalidFileError,
            "an object in a variant has the field id 0, but its metadata has 0 field names",
        ),
        (
            b"\x01\x02\0\1\2aa",
            b"\x02\x02\0\1\0\1\2\0\0",
            InvalidFileError,
            "an object in a variant has two fields of one name",
        ),
        (EMPTY, b"\x03\x02\0\0\1\0", InvalidFileError, "values in a variant overlap, or have gaps between them"),
        (
            EMPTY,
            b"\x03\x02\0\2\3\0\0\0",
            InvalidFileError,
            "the value of a variant ends at byte 6 instead of byte 7",
        ),
        (EMPTY, b"\x03\x01\1\2\0\0", InvalidFileError, "values in a variant overlap, or have gaps between them"),
        (EMPTY, b"\x03\x00\1\0", InvalidFileError, "values in a variant overlap, or have gaps between them"),
        (
            EMPTY,
            b"\x13\xff\xff\xff\xff\0",
            InvalidFileError,
            "an array in a variant ends within the offsets of its 4294967295 values",
        ),
        (
            EMPTY,
            b"\x03\x01\0\x05\0",
            InvalidFileError,
            "an array in a variant ends at byte 9 instead of byte 5",
        ),
    ],
)
def test_error_messages_for_damage(metadata, value, kind, message):
    with pytest.raises(kind) as caught:
        variant.decode(metadata, value)
    assert type(caught.value) is kind
    assert str(caught.value) == message


def test_overlapping_values_are_refused_quickly():
    """Each array has the next one twice; the oracle would visit 2**60 values."""
    value = b"\0"
    for _ in range(60):
        value = b"\x1f" + struct.pack("<I3I", 2, 0, 0, len(value)) + value
    started = time.process_time()
    with pytest.raises(InvalidFileError, match="overlap"):
        variant.decode(EMPTY, value)
    assert time.process_time() - started < 5


def test_decoding_depth_follows_the_bytes():
    value = b"\0"
    for _ in range(20_000):
        value = b"\x0f\x01" + struct.pack("<2I", 0, len(value)) + value
        if len(value) > 1 << 16:
            break
    depth, found = 0, variant.decode(EMPTY, value)
    while found is not None:
        (found,) = found
        depth += 1
    assert depth == (len(value) - 1) // 10


def test_oversized_counts_allocate_no_memory():
    for header in (b"\x13", b"\x43"):
        with pytest.raises(InvalidFileError):
            variant.decode(EMPTY, header + b"\xff\xff\xff\x7f" + bytes(100))
    with pytest.raises(InvalidFileError):
        variant.decode(b"\xc1\xff\xff\xff\x7f" + bytes(100), b"\0")


def test_fields_in_any_order_of_names_and_values():
    """Some writers sort names as UTF-16 does; nothing depends on the order."""
    metadata = oracle.metadata(["b", "a"], 1)
    assert variant.decode(metadata, b"\x02\x02\0\1\0\1\2\0\4") == {"b": None, "a": True}
    assert variant.decode(metadata, b"\x02\x02\1\0\1\0\2\0\4") == {"a": True, "b": None}
    assert decode_value(b"\x02\x02\1\0\1\0\2\0\4", ["b", "a"]) == {"a": True, "b": None}


def test_reserved_bits_are_ignored():
    assert variant.decode(b"\x21\x00\x00", b"\xe3\x01\x00\x01\x00") == [None]
    assert variant.decode(b"\x01\x01\x00\x01a", b"\x82\x01\x00\x00\x01\x00") == {"a": None}


# Values that JSON cannot represent.
SPECIAL = {
    "object_primitive": {
        "boolean_false_field": False,
        "boolean_true_field": True,
        "double_field": decimal.Decimal("1.23456789"),
        "int_field": 1,
        "null_field": None,
        "string_field": "Apache Parquet",
        "timestamp_field": "2025-04-16T12:34:56.78",
    },
    "long_string": "This string is for sure and certainly longer than 64 bytes",
    "primitive_binary": bytes.fromhex("031337deadbeefcafe"),
    "primitive_date": datetime.date(2025, 4, 16),
    "primitive_decimal4": decimal.Decimal("12.34"),
    "primitive_decimal8": decimal.Decimal("12345678.90"),
    "primitive_decimal16": decimal.Decimal("12345678912345678.90"),
    "primitive_float": 1234567936.0,
    "primitive_time": datetime.time(12, 33, 54, 123456),
    "primitive_timestamp": datetime.datetime(2025, 4, 16, 16, 34, 56, 780000, UTC),
    "primitive_timestampntz": datetime.datetime(2025, 4, 16, 12, 34, 56, 780000),
    "primitive_timestamp_nanos": pd.Timestamp("2024-11-07T12:33:54.123456789Z"),
    "primitive_timestampntz_nanos": pd.Timestamp("2024-11-07T12:33:54.123456789"),
    "primitive_uuid": uuid.UUID("f24f9b64-81fa-49d1-b74e-8c09a6e31c56"),
}


def test_conformance_suite_examples(parquet_testing):
    folder = parquet_testing / "variant"
    text = (folder / "data_dictionary.json").read_text().rstrip().removesuffix("}").rstrip().removesuffix(",") + "}"
    expected = json.loads(text) | SPECIAL
    found = sorted(path.stem for path in folder.glob("*.value"))
    assert len(found) >= 25
    for name in found:
        metadata, value = ((folder / f"{name}.{part}").read_bytes() for part in ("metadata", "value"))
        got = variant.decode(metadata, value)
        if name == "long_string":
            assert got.startswith(expected[name])
            assert len(got) > 64
        else:
            assert exact_value(got) == exact_value(expected[name]), name
        assert exact_value(oracle.decode(metadata, value)) == exact_value(got)
        assert exact_value(variant.decode(*variant.encode(got))) == exact_value(got)


def test_reads_without_variants_do_not_import_the_decoder():
    code = """if True:
        import io, sys, numparq, pandas
        numparq.read_parquet(numparq.to_parquet(pandas.DataFrame({"a": [1], "s": [{"b": [1]}]})))
        print([name for name in sys.modules if name.startswith("numparq.format.variant")])"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
