"""The ARROW:schema key, written: as pyarrow and numparq read it."""

from __future__ import annotations

import base64

import pytest

pa = pytest.importorskip("pyarrow")
from numparq.format.arrow_type import ArrowType, DictionaryIndex  # noqa: E402
from numparq.format.key_values.arrow import ArrowField, ArrowSchema, encode_arrow_schema, replace_metadata  # noqa: E402

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
def test_types(name):
    own, theirs = FIELDS[name]
    message = encode_arrow_schema([ArrowField(name, own), ArrowField("ä", INT)])
    assert read(message).equals(pa.schema([pa.field(name, theirs), pa.field("ä", pa.int64())]))
    found = ArrowSchema(message, 2).field_type(0)
    assert found == own or (own.kind == "uuid" and found.extension == "arrow.uuid")


def test_all_at_once_and_nested():
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
def test_other_metadata_in_anyones_schema(metadata):
    fields = [ArrowField(name, own) for name, (own, _) in FIELDS.items()] + [own for own, _ in NESTED]
    wanted = {key.encode(): value.encode() for key, value in metadata.items()} or None
    theirs = pa.schema(
        [pa.field("a", pa.list_(pa.int8())), pa.field("b", pa.string(), metadata={"k": "v"})], {"x": "y"}
    )
    for message, schema in (
        (encode_arrow_schema(fields, {"old": "1"}), read(encode_arrow_schema(fields))),
        (base64.b64encode(theirs.serialize().to_pybytes()), theirs),
    ):
        changed = replace_metadata(message, metadata)
        assert read(changed).equals(schema)
        assert read(changed).metadata == wanted
        again = replace_metadata(replace_metadata(changed, {"more": "z"}), metadata)
        assert read(again).equals(schema)
        assert read(again).metadata == wanted
        assert len(again) == len(changed)


@pytest.mark.parametrize("broken", ["", "!", "AAAA", b"\x00", "/////w=="])
def test_what_is_no_schema_stays(broken):
    assert replace_metadata(broken, {"a": "b"}) == broken
