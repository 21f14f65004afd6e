"""The ARROW:schema key: every type as pyarrow wrote it, and no trouble from whatever else is there."""

from __future__ import annotations

import base64
import random
import struct

import pytest

from numparq.format.arrow_type import ArrowType, DictionaryIndex
from numparq.format.key_values.arrow import ArrowSchema
from numparq.format.key_values.flatbuffer import FlatbufferError, FlatbufferTable

pa = pytest.importorskip("pyarrow")

TYPES = [
    (pa.null(), ArrowType("null")),
    (pa.bool_(), ArrowType("bool")),
    (pa.int8(), ArrowType("int", 8)),
    (pa.uint64(), ArrowType("int", 64, signed=False)),
    (pa.float16(), ArrowType("float", 16)),
    (pa.float64(), ArrowType("float", 64)),
    (pa.decimal32(5, 2), ArrowType("decimal", 32, precision=5, scale=2)),
    (pa.decimal128(5, -2), ArrowType("decimal", 128, precision=5, scale=-2)),
    (pa.decimal256(70, 3), ArrowType("decimal", 256, precision=70, scale=3)),
    (pa.date32(), ArrowType("date", unit="D")),
    (pa.date64(), ArrowType("date", unit="ms")),
    (pa.time32("s"), ArrowType("time", unit="s")),
    (pa.time64("ns"), ArrowType("time", unit="ns")),
    (pa.timestamp("ms"), ArrowType("timestamp", unit="ms")),
    (pa.timestamp("ns", "Europe/Paris"), ArrowType("timestamp", unit="ns", timezone="Europe/Paris")),
    (pa.duration("s"), ArrowType("duration", unit="s")),
    (pa.duration("us"), ArrowType("duration", unit="us")),
    (pa.month_day_nano_interval(), ArrowType("interval")),
    (pa.string(), ArrowType("utf8")),
    (pa.large_string(), ArrowType("large_utf8")),
    (pa.string_view(), ArrowType("utf8_view")),
    (pa.binary(), ArrowType("binary")),
    (pa.large_binary(), ArrowType("large_binary")),
    (pa.binary_view(), ArrowType("binary_view")),
    (pa.binary(7), ArrowType("fixed_size_binary", byte_width=7)),
    (pa.list_(pa.int8()), ArrowType("list")),
    (pa.struct([("x", pa.int8())]), ArrowType("struct")),
    (pa.map_(pa.int8(), pa.int8()), ArrowType("map")),
    (pa.dictionary(pa.int8(), pa.string()), ArrowType("utf8", dictionary=DictionaryIndex(8, True, False))),
    (
        pa.dictionary(pa.uint16(), pa.int64(), ordered=True),
        ArrowType("int", 64, dictionary=DictionaryIndex(16, False, True)),
    ),
    (pa.uuid(), ArrowType("fixed_size_binary", byte_width=16, extension="arrow.uuid", extension_metadata="")),
    (pa.json_(), ArrowType("utf8", extension="arrow.json", extension_metadata="")),
]
SCHEMA = pa.schema([(f"f{place}", arrow_type) for place, (arrow_type, _) in enumerate(TYPES)])
MESSAGE = SCHEMA.serialize().to_pybytes()


def schema_of(message: bytes, num_fields: int = len(TYPES)) -> ArrowSchema:
    return ArrowSchema(base64.b64encode(message), num_fields)


@pytest.mark.parametrize("place", range(len(TYPES)), ids=lambda place: str(TYPES[place][0]))
def test_every_type(place):
    assert schema_of(MESSAGE).field_type(place) == TYPES[place][1]


def test_str_and_bytes_alike():
    assert ArrowSchema(base64.b64encode(MESSAGE).decode(), len(TYPES)).field_type(1) == ArrowType("bool")


def test_the_frame_of_before_arrow_0_15():
    assert MESSAGE[:4] == b"\xff\xff\xff\xff"
    assert schema_of(MESSAGE[4:]).field_type(1) == ArrowType("bool")


def test_field_metadata_is_not_taken_for_an_extension():
    schema = pa.schema([pa.field("a", pa.int8(), metadata={"PARQUET:field_id": "1"})])
    assert schema_of(schema.serialize().to_pybytes(), 1).field_type(0) == ArrowType("int", 8)


@pytest.mark.parametrize("place", [-1, len(TYPES), 10**9])
def test_there_is_no_such_column(place):
    assert schema_of(MESSAGE).field_type(place) is None


def test_another_number_of_columns_is_another_schema():
    assert schema_of(MESSAGE, len(TYPES) + 1).field_type(0) is None
    assert schema_of(MESSAGE, len(TYPES) - 1).field_type(0) is None


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        b"",
        "*",
        "AAAA",
        b"\xff\x00",
        "ü",
        base64.b64encode(b"\xff" * 100),
        base64.b64encode(b"\0" * 100),
        base64.b64encode(MESSAGE[:20]),
    ],
    ids=repr,
)
def test_nonsense_is_no_schema(value):
    assert ArrowSchema(value, 1).field_type(0) is None


def test_a_record_batch_is_no_schema():
    batch = pa.record_batch({"a": [1]}).serialize().to_pybytes()
    assert schema_of(batch, 1).field_type(0) is None


def test_cut_at_every_byte():
    for end in range(len(MESSAGE)):
        schema = schema_of(MESSAGE[:end])
        for place in (0, 14, len(TYPES) - 1):
            schema.field_type(place)


def test_flipped_bytes_never_raise():
    rng = random.Random(7)
    for _ in range(1500):
        damaged = bytearray(MESSAGE)
        for _ in range(rng.randint(1, 6)):
            damaged[rng.randrange(len(damaged))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        schema = schema_of(bytes(damaged))
        for place in range(len(TYPES)):
            found = schema.field_type(place)
            assert found is None or isinstance(found, ArrowType)


def test_flatbuffer_offsets_are_checked():
    table = struct.pack("<I", 4) + struct.pack("<i", 1000)
    with pytest.raises(FlatbufferError):
        FlatbufferTable.root(table)
    # A vtable right behind the table, with one field, which points outside.
    data = struct.pack("<IiIHHH", 4, -8, 10**6, 6, 8, 4)
    root = FlatbufferTable.root(data)
    for read in (root.table, lambda number: root.text(number, 10), root.vector_length):
        with pytest.raises(FlatbufferError):
            read(0)
    assert root.int32(0) == 10**6
    assert root.int32(1, 5) == 5
    assert root.table(3) is None


def test_a_string_beyond_the_limit_is_refused():
    schema = pa.schema([("a", pa.timestamp("s", "x" * 70_000))])
    assert schema_of(schema.serialize().to_pybytes(), 1).field_type(0) is None
