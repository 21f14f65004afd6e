"""ARROW:schema: messages read and written as pyarrow does."""

from __future__ import annotations

import base64
import binascii
import random
import struct

import pytest

from numparq.format.arrow_type import ArrowType, DictionaryIndex
from numparq.format.key_values.arrow import ArrowField, ArrowSchema, encode_arrow_schema, replace_metadata
from numparq.format.key_values.flatbuffer import FlatbufferError, FlatbufferTable

pa = pytest.importorskip("pyarrow")
INT = ArrowType("int", 64)
PERIOD = ArrowType("int", 64, extension="pandas.period", extension_metadata='{"freq": "D"}')
FIELDS = {
    "null": (ArrowType("null"), pa.null()),
    "bool": (ArrowType("bool"), pa.bool_()),
    **{
        f"{sign}int{bits}": (ArrowType("int", bits, not sign), getattr(pa, f"{sign}int{bits}")())
        for sign in ("", "u")
        for bits in (8, 16, 32, 64)
    },
    **{f"float{bits}": (ArrowType("float", bits), getattr(pa, f"float{bits}")()) for bits in (16, 32, 64)},
    **{
        f"decimal{bits}": (ArrowType("decimal", bits, precision=7, scale=2), getattr(pa, f"decimal{bits}")(7, 2))
        for bits in (32, 64, 128, 256)
    },
    "date": (ArrowType("date", unit="D"), pa.date32()),
    "date64": (ArrowType("date", unit="ms"), pa.date64()),
    **{
        f"time-{unit}": (ArrowType("time", unit=unit), (pa.time32 if unit in ("s", "ms") else pa.time64)(unit))
        for unit in ("s", "ms", "us", "ns")
    },
    **{
        f"timestamp-{unit}": (ArrowType("timestamp", unit=unit), pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")
    },
    "zoned": (ArrowType("timestamp", unit="us", timezone="Europe/Paris"), pa.timestamp("us", "Europe/Paris")),
    **{f"duration-{unit}": (ArrowType("duration", unit=unit), pa.duration(unit)) for unit in ("s", "ms", "us", "ns")},
    "utf8": (ArrowType("utf8"), pa.string()),
    "large_utf8": (ArrowType("large_utf8"), pa.large_string()),
    "utf8_view": (ArrowType("utf8_view"), pa.string_view()),
    "binary": (ArrowType("binary"), pa.binary()),
    "large_binary": (ArrowType("large_binary"), pa.large_binary()),
    "binary_view": (ArrowType("binary_view"), pa.binary_view()),
    "fixed": (ArrowType("fixed_size_binary", byte_width=5), pa.binary(5)),
    "uuid": (ArrowType("uuid", byte_width=16), pa.uuid()),
    "dictionary": (
        ArrowType("utf8", dictionary=DictionaryIndex(8, True, True)),
        pa.dictionary(pa.int8(), pa.string(), ordered=True),
    ),
    "dictionary-int": (
        ArrowType("int", 64, dictionary=DictionaryIndex(16, False)),
        pa.dictionary(pa.uint16(), pa.int64()),
    ),
}
NESTED = [
    (
        ArrowField("l", ArrowType("list"), (ArrowField("item", INT, nullable=False),)),
        pa.field("l", pa.list_(pa.field("item", pa.int64(), nullable=False))),
    ),
    (
        ArrowField("f", ArrowType("fixed_size_list", byte_width=3), (ArrowField("item", INT),)),
        pa.field("f", pa.list_(pa.field("item", pa.int64()), 3)),
    ),
    (
        ArrowField("s", ArrowType("struct"), (ArrowField("a", INT), ArrowField("ü", ArrowType("utf8")))),
        pa.field("s", pa.struct([("a", pa.int64()), ("ü", pa.string())])),
    ),
    (
        ArrowField(
            "m",
            ArrowType("map"),
            (
                ArrowField(
                    "entries",
                    ArrowType("struct"),
                    (ArrowField("key", INT, nullable=False), ArrowField("value", INT)),
                    nullable=False,
                ),
            ),
        ),
        pa.field("m", pa.map_(pa.int64(), pa.int64())),
    ),
    (ArrowField("r", INT, nullable=False), pa.field("r", pa.int64(), nullable=False)),
]


def read(message):
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(message)))


@pytest.mark.parametrize("name", FIELDS)
def test_written_types(name):
    own, theirs = FIELDS[name]
    message = encode_arrow_schema([ArrowField(name, own), ArrowField("ä", INT)])
    assert read(message).equals(pa.schema([pa.field(name, theirs), pa.field("ä", pa.int64())]))
    found = ArrowSchema(message, 2).field_type(0)
    assert found == own or (own.kind == "uuid" and found.extension == "arrow.uuid")


def test_all_types_and_nested_fields():
    fields = [ArrowField(name, own) for name, (own, _) in FIELDS.items()] + [own for own, _ in NESTED]
    theirs = [pa.field(name, their) for name, (_, their) in FIELDS.items()] + [their for _, their in NESTED]
    assert read(encode_arrow_schema(fields)).equals(pa.schema(theirs))
    assert read(encode_arrow_schema([])).equals(pa.schema([]))


def test_extension_types_and_metadata():
    metadata = {"pandas": '{"ä": 1}', "": "", "other": "x" * 1000}
    schema = read(encode_arrow_schema([ArrowField("p", PERIOD)], metadata))
    assert {key.decode(): value.decode() for key, value in schema.metadata.items()} == metadata
    assert ArrowSchema(encode_arrow_schema([ArrowField("p", PERIOD)], metadata), 1).field_type(0) == PERIOD


@pytest.mark.parametrize("metadata", [{}, {"pandas": "{}"}, {"a": "b", "ü": "ö" * 77}])
def test_replace_metadata(metadata):
    fields = [ArrowField(name, own) for name, (own, _) in FIELDS.items()] + [own for own, _ in NESTED]
    expected = {key.encode(): value.encode() for key, value in metadata.items()} or None
    theirs = pa.schema(
        [pa.field("a", pa.list_(pa.int8())), pa.field("b", pa.string(), metadata={"k": "v"})], {"x": "y"}
    )
    for message, schema in (
        (encode_arrow_schema(fields, {"old": "1"}), read(encode_arrow_schema(fields))),
        (base64.b64encode(theirs.serialize().to_pybytes()), theirs),
    ):
        changed = replace_metadata(message, metadata)
        assert read(changed).equals(schema)
        assert read(changed).metadata == expected
        again = replace_metadata(replace_metadata(changed, {"more": "z"}), metadata)
        assert read(again).equals(schema)
        assert read(again).metadata == expected
        assert len(again) == len(changed)


@pytest.mark.parametrize("broken", ["", "!", "AAAA", b"\x00", "/////w=="])
def test_replace_metadata_leaves_invalid_schemas(broken):
    assert replace_metadata(broken, {"a": "b"}) == broken


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
def test_read_types(place):
    assert schema_of(MESSAGE).field_type(place) == TYPES[place][1]


def test_str_and_bytes_messages():
    assert ArrowSchema(base64.b64encode(MESSAGE).decode(), len(TYPES)).field_type(1) == ArrowType("bool")


def test_message_framing_before_arrow_0_15():
    assert MESSAGE[:4] == b"\xff\xff\xff\xff"
    assert schema_of(MESSAGE[4:]).field_type(1) == ArrowType("bool")


def test_field_metadata_is_not_an_extension():
    schema = pa.schema([pa.field("a", pa.int8(), metadata={"PARQUET:field_id": "1"})])
    assert schema_of(schema.serialize().to_pybytes(), 1).field_type(0) == ArrowType("int", 8)


@pytest.mark.parametrize("place", [-1, len(TYPES), 10**9])
def test_missing_column_has_no_type(place):
    assert schema_of(MESSAGE).field_type(place) is None


def test_column_count_must_match():
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
def test_invalid_messages_have_no_types(value):
    assert ArrowSchema(value, 1).field_type(0) is None


def test_record_batch_message_has_no_types():
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
    # A vtable right after the table, with one field that points outside.
    data = struct.pack("<IiIHHH", 4, -8, 10**6, 6, 8, 4)
    root = FlatbufferTable.root(data)
    for read in (root.table, lambda number: root.text(number, 10), root.vector_length):
        with pytest.raises(FlatbufferError):
            read(0)
    assert root.int32(0) == 10**6
    assert root.int32(1, 5) == 5
    assert root.table(3) is None


def test_string_beyond_the_limit_is_ignored():
    schema = pa.schema([("a", pa.timestamp("s", "x" * 70_000))])
    assert schema_of(schema.serialize().to_pybytes(), 1).field_type(0) is None


@pytest.mark.parametrize("change", ["none", "lines", "cut", "longer"])
def test_few_fields_of_a_large_schema_are_decoded_alone(monkeypatch, change):
    fields = [pa.field(f"column {number}", pa.duration("ms") if number % 3 else pa.int8()) for number in range(1000)]
    plain = base64.b64encode(pa.schema(fields).serialize())
    value = {
        "none": plain,
        "lines": b"\n".join(plain[at : at + 76] for at in range(0, len(plain), 76)),
        "cut": plain[:-4000],
        "longer": plain.rstrip(b"=") + b"AAAA" * 5,
    }[change]
    decoded = []
    decode = binascii.a2b_base64
    monkeypatch.setattr(binascii, "a2b_base64", lambda text: decoded.append(len(text)) or decode(text))
    schema = ArrowSchema(memoryview(value), len(fields))
    for place in (0, 1, 500, 999):
        expected = ArrowType("duration", unit="ms") if place % 3 else ArrowType("int", bit_width=8, signed=True)
        assert schema.field_type(place) == expected or change == "cut"
    assert (max(decoded) < 100) == (change == "none")
    if change == "none":  # in the end it is decoded at once
        assert [schema.field_type(place).kind == "duration" for place in range(1000)] == [
            n % 3 > 0 for n in range(1000)
        ]
        assert max(decoded) == len(value)
        assert sum(decoded) < 1.5 * len(value)
    assert ArrowSchema(memoryview(value), len(fields) + 1).field_type(0) is None
