"""Structs in the Thrift compact protocol: the kernels against thriftpy2 and against the oracle."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from thriftpy2.protocol.compact import TCompactProtocol
from thriftpy2.transport import TMemoryBuffer

from numparq.format.thrift.decode import Record, root_record
from numparq.format.thrift.layout import ThriftLayout, thrift_layout
from numparq.kernels import status as kernels_status
from numparq.kernels.thrift.wire import S_ROOM, S_TOP, STACK_WORDS
from support.data.thrift_structs import IDL, KNOWN, UNIONS, UNKNOWN, WITH_FIELDS, structs, with_unknown_fields
from support.kernels.engines import COMPILED, ENGINES
from support.kernels.guarded_buffers import GuardedBuffer, with_slack
from support.kernels.thrift_structs import read_struct, to_dict
from support.oracles import Damaged
from support.oracles import thrift as oracle
from support.oracles.hybrid_rle import uleb
from support.oracles.pages import idl, to_bytes


@pytest.fixture(scope="module", params=ENGINES, ids=repr)
def engine(request):
    return request.param


def read_by_oracle(name: str, data: bytes) -> tuple[int, dict[str, Any]]:
    reader = oracle.StructReader(data, UNIONS)
    found = reader.struct(KNOWN[name])
    return reader.pos, found


def read_by_thriftpy2(name: str, data: bytes) -> Any:
    thing = KNOWN[name]()
    TCompactProtocol(TMemoryBuffer(data)).read_struct(thing)
    return thing


def write_by_thriftpy2(thing: Any) -> bytes:
    buffer = TMemoryBuffer()
    TCompactProtocol(buffer).write_struct(thing)
    return buffer.getvalue()


def check_against_oracle(engine, name: str, data: bytes, seed: int = 0) -> None:
    """Compare the kernel with the oracle, on bytes that may be invalid."""
    taken, found = read_struct(engine, thrift_layout(name), data, seed)
    try:
        expected_end, expected = read_by_oracle(name, data)
    except Damaged:
        assert taken < 0, f"{data.hex()} was read as {found}"
        return
    assert taken == expected_end
    assert to_dict(found) == expected


@given(data=st.data())
def test_random_structs_written_by_thriftpy2(data):
    name = data.draw(st.sampled_from(WITH_FIELDS))
    thing = data.draw(structs(KNOWN[name]))
    encoded = write_by_thriftpy2(thing)
    assert encoded == oracle.encode_struct(oracle.fields_of(thing))
    expected = read_by_oracle(name, encoded)
    for engine in ENGINES:
        taken, found = read_struct(engine, thrift_layout(name), encoded)
        assert (taken, to_dict(found)) == expected
        assert found == found
        assert equal_to_thriftpy2(found, read_by_thriftpy2(name, encoded))


def equal_to_thriftpy2(found: Any, thing: Any) -> bool:
    """Check that all attributes are equal, defaults included."""
    for _, (code, name, *_about) in thing.thrift_spec.items():
        expected, value = getattr(thing, name), getattr(found, name)
        if code == 12 and expected is not None:
            assert equal_to_thriftpy2(value, expected)
        elif code == 15 and expected is not None:
            assert len(value) == len(expected)
            for one, other in zip(value, expected, strict=True):
                assert equal_to_thriftpy2(one, other) if hasattr(other, "thrift_spec") else one == other
        else:
            assert value == expected, name
    return True


@given(data=st.data())
def test_unknown_fields_are_skipped(data):
    name = data.draw(st.sampled_from(WITH_FIELDS))
    known = oracle.fields_of(data.draw(structs(KNOWN[name])))
    unknown = data.draw(st.lists(UNKNOWN.filter(lambda f: f[0] not in KNOWN[name].thrift_spec), min_size=1, max_size=4))
    inside = not any(kind in UNIONS for kind in KNOWN.values() if kind.__name__ == name) and data.draw(st.booleans())
    unknown = [field for field in unknown if not inside or field[0] > 62 or field[0] <= 0]
    rng = random.Random(data.draw(st.integers(0, 1 << 30)))
    encoded = oracle.encode_struct(with_unknown_fields(known, unknown, rng, inside), long_ids=data.draw(st.booleans()))
    for engine in ENGINES:
        check_against_oracle(engine, name, encoded)


def test_footers_of_all_files(engine, parquet_testing):
    files = sorted(parquet_testing.rglob("*.parquet"))
    assert files
    for path in files if engine is COMPILED else files[:40:4]:
        encoded = footer_of(path)
        if len(encoded) > engine.size(1 << 20, 4000):
            continue
        taken, found = read_struct(engine, thrift_layout("FileMetaData"), encoded)
        assert taken == len(encoded), path
        assert to_dict(found) == read_by_oracle("FileMetaData", encoded)[1], path
        assert equal_to_thriftpy2(found, read_by_thriftpy2("FileMetaData", encoded))


def footer_of(path) -> bytes:
    content = path.read_bytes()
    assert content[-4:] == b"PAR1"
    return content[-8 - int.from_bytes(content[-8:-4], "little") : -8]


CHUNK = "row_groups.columns."


def example_footer() -> Any:
    def chunk(i: int) -> Any:
        statistics = IDL.Statistics(null_count=i, max_value=b"z" * i, min_value=b"")
        meta = IDL.ColumnMetaData(
            type=i % 8,
            encodings=[0, 3, 8],
            path_in_schema=["a", "b"],
            codec=1,
            num_values=10 * i,
            data_page_offset=1 << 40,
            total_uncompressed_size=5,
            total_compressed_size=-(1 << 63),
            statistics=statistics if i % 2 else None,
            key_value_metadata=[IDL.KeyValue("k", "v" * i)],
        )
        return IDL.ColumnChunk(
            meta_data=meta, file_offset=7, crypto_metadata=IDL.ColumnCryptoMetaData() if i == 3 else None
        )

    groups = [
        IDL.RowGroup(columns=[chunk(i + g) for i in range(4)], total_byte_size=1, num_rows=100 + g) for g in range(5)
    ]
    schema = [IDL.SchemaElement(name=f"c{i}", logicalType=IDL.LogicalType(STRING=IDL.StringType())) for i in range(20)]
    return IDL.FileMetaData(version=1, schema=schema, num_rows=3, row_groups=groups, created_by="somebody")


def test_projected_fields_in_the_arena():
    layout = thrift_layout(
        "FileMetaData", "row_groups.num_rows", CHUNK + "meta_data.num_values", CHUNK + "meta_data.statistics.null_count"
    )
    encoded = write_by_thriftpy2(example_footer())
    data, arena, stack = np.frombuffer(encoded, np.uint8), np.empty(2000, np.int64), np.empty(STACK_WORDS, np.int64)
    stack[S_TOP], stack[S_ROOM] = layout.words, len(arena)
    assert COMPILED.read_thrift_struct(data, 0, len(data), layout.table, arena, 0, stack) == len(data)
    first, count = arena[layout.slot("row_groups") :][:2]
    words = layout.record_layout("row_groups").words
    groups = arena[first : first + count * words].reshape(count, words)
    assert groups[:, layout.slot("row_groups.num_rows")].tolist() == [100, 101, 102, 103, 104]
    assert (groups[:, layout.slot("row_groups.columns") + 1] == 4).all()
    words = layout.record_layout("row_groups.columns").words
    chunks = arena[groups[0, layout.slot("row_groups.columns")] :][: 20 * words].reshape(5, 4, words)
    expected = np.add.outer(np.arange(5), np.arange(4))
    assert (chunks[:, :, layout.slot(CHUNK + "meta_data.num_values")] == 10 * expected).all()
    nulls = chunks[:, :, layout.slot(CHUNK + "meta_data.statistics.null_count")]
    assert (nulls == np.where(expected % 2, expected, -1)).all()
    encrypted = chunks[:, :, 0] & layout.bit(CHUNK + "crypto_metadata") != 0
    assert (encrypted == (expected == 3)).all(), "fields that are not projected are in the presence mask too"
    assert stack[S_TOP] == layout.words + 5 * layout.record_layout("row_groups").words + 20 * words


def test_structs_read_at_recorded_positions():
    layout = thrift_layout("FileMetaData", CHUNK + "@")
    encoded = write_by_thriftpy2(example_footer())
    _, found = read_struct(COMPILED, layout, encoded)
    data, stack = np.frombuffer(encoded, np.uint8), np.empty(STACK_WORDS, np.int64)
    word = layout.slot(CHUNK + "@")
    groups = root_record(layout, found._words, data).row_groups
    starts = [int(chunk._words[chunk._base + word]) - position(found) for group in groups for chunk in group.columns]
    chunk = thrift_layout("ColumnChunk")
    arena = np.empty(5000, np.int64)
    stack[S_TOP], stack[S_ROOM] = 21 * chunk.words, len(arena)
    starts.append(-1)
    places = np.arange(21)[::-1].copy()
    ends = np.full(21, len(data))
    assert COMPILED.read_thrift_structs(data, np.array(starts), ends, places, 21, chunk.table, arena, stack) == 21
    expected = [c for g in example_footer().row_groups for c in g.columns]
    for i, thing in enumerate(expected):
        view = type(found)(chunk.record, arena, (20 - i) * chunk.words, data)
        assert equal_to_thriftpy2(view, thing)
    assert arena[0] == 0, "no struct, no fields"
    beyond = np.array([len(data) + 9])
    assert COMPILED.read_thrift_structs(data, beyond, ends, places, 1, chunk.table, arena, stack) < 0
    ends[3] = starts[3] + 5  # each ends where its own footer does
    assert COMPILED.read_thrift_structs(data, np.array(starts), ends, places, 21, chunk.table, arena, stack) < 0
    assert COMPILED.read_thrift_structs(data, np.array(starts), ends, places, 3, chunk.table, arena, stack) == 3


def position(found: Any) -> int:
    """Return the position of the encoded footer in the test helper's buffer."""
    return len(found._data) - 64 - len(write_by_thriftpy2(example_footer()))


def test_layout_slots_and_bits():
    whole = ThriftLayout("PageHeader")
    assert whole.slot("type") == 1
    assert whole.words == whole.record.words
    header = whole.record.slots["data_page_header"]
    assert (
        whole.slot("data_page_header.statistics.null_count") > whole.slot("data_page_header.statistics") > header.word
    )
    assert whole.bit("data_page_header_v2") == 1 << 8
    assert whole.bit("data_page_header.encoding") == 1 << 2
    assert ThriftLayout("PageHeader", ["type"]).words == 2
    for wrong in (["nothing"], ["data_page_header.nothing"], ["type.x"]):
        with pytest.raises(KeyError):
            ThriftLayout("PageHeader", wrong).slot(wrong[0])
    with pytest.raises(ValueError, match="no fields"):
        ThriftLayout("StringType")


@pytest.mark.quick_cases(1)
def test_cut_at_every_byte(engine):
    encoded = oracle.encode_struct([*oracle.fields_of(example_footer()), (32767, oracle.BINARY, b"x" * 300)])
    for end in range(0, len(encoded), 1 if engine is COMPILED else 29):
        taken, _ = read_struct(engine, thrift_layout("FileMetaData"), encoded[:end], seed=end)
        assert taken < 0
        taken, _ = read_struct(engine, thrift_layout("FileMetaData", "version"), encoded[:end], seed=end)
        assert taken < 0


@pytest.mark.quick_cases(1)
@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("times", [1, 4, 30])
def test_flipped_bits(engine, times):
    rng = random.Random(times)
    footer = example_footer()
    footer.row_groups = footer.row_groups[:2]
    encodings = [
        write_by_thriftpy2(footer),
        oracle.encode_struct([*oracle.fields_of(footer), (99, oracle.LIST, (oracle.MAP, [(8, 12, [(b"k", [])])]))]),
    ]
    for number in range(engine.size(1500)):
        damaged = bytearray(rng.choice(encodings))
        for _ in range(times):
            damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        check_against_oracle(engine, "FileMetaData", bytes(damaged), seed=number)


def test_random_bytes(engine):
    rng = random.Random(5)
    for number in range(engine.size(1500)):
        data = bytes(rng.choice((rng.randrange(256), 0x15, 0x19, 0x1C, 0)) for _ in range(rng.randrange(1, 60)))
        check_against_oracle(
            engine, rng.choice(["FileMetaData", "PageHeader", "SchemaElement", "ColumnIndex"]), data, seed=number
        )


REQUIRED = [(1, oracle.I32, 0), (2, oracle.I32, 3), (3, oracle.I32, 4)]  # fields of PageHeader


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        (REQUIRED[:2], kernels_status.MISSING_FIELD),
        ([*REQUIRED, (5, oracle.STRUCT, [(1, oracle.I32, 5)])], kernels_status.MISSING_FIELD),
        ([(1, oracle.I64, 0), *REQUIRED[1:]], kernels_status.MISSING_FIELD),  # of another type, so the field is missing
        ([*REQUIRED[:2], (3, oracle.I32, 1 << 31)], kernels_status.BAD_VARINT),
        ([*REQUIRED[:2], (3, oracle.I32, -(1 << 31) - 1)], kernels_status.BAD_VARINT),
    ],
)
def test_invalid_page_headers(engine, fields, status):
    assert read_struct(engine, thrift_layout("PageHeader"), oracle.encode_struct(fields))[0] == status


def test_bool_in_place_of_an_i32(engine):
    """fastparquet writes OPTIONAL and REQUIRED as bools."""
    element = thrift_layout("SchemaElement")
    for bit in (False, True):
        fields = [(3, oracle.TRUE if bit else oracle.FALSE, bit), (4, oracle.BINARY, b"a")]
        taken, found = read_struct(engine, element, oracle.encode_struct(fields))
        assert taken > 0
        assert found.repetition_type == bit
        assert found.name == "a"


def test_unknown_thrift_types(engine):
    for field in (b"\x0e\x50", b"\x0f\x50", b"\x09\x50\x1e", b"\x09\x50\x10", b"\x0b\x50\x01\x8f\x01a"):
        encoded = oracle.encode_struct(REQUIRED)[:-1] + field + bytes(20)
        assert read_struct(engine, thrift_layout("PageHeader"), encoded)[0] == kernels_status.BAD_THRIFT_TYPE
    for field in (b"\x09\x50\x0e", b"\x0b\x50\x00", b"\x09\x50\x00"):  # an empty list may claim any type
        encoded = oracle.encode_struct(REQUIRED)[:-1] + field + b"\0"
        assert read_struct(engine, thrift_layout("PageHeader"), encoded)[0] == len(encoded)


@pytest.mark.parametrize("size", range(8, 12))
@pytest.mark.parametrize("last", [0, 1, 2, 0x7F])
def test_long_varints(engine, size, last):
    for field in (b"\x26", b"\x06" + oracle.zigzag(77)):  # a known field (file_offset), and an unknown one
        encoded = field + b"\x80" * (size - 1) + bytes([last]) + b"\0"
        whole = encoded if field == b"\x26" else b"\x26\x02" + encoded
        for tail in (b"", b"\x55" * 20):
            taken, found = read_struct(engine, thrift_layout("ColumnChunk"), whole + tail)
            good = size < 10 or (size == 10 and last <= 1)
            assert taken == (len(whole) if good else kernels_status.BAD_VARINT)
            if good and field == b"\x26":
                value = last << 7 * (size - 1)
                assert found.file_offset == value >> 1
    assert read_struct(engine, thrift_layout("ColumnChunk"), b"\x26" + b"\xff" * 9 + b"\x01\x00")[1].file_offset == -(
        1 << 63
    )


@pytest.mark.parametrize("kind", [oracle.LIST, oracle.STRUCT, oracle.MAP])
@pytest.mark.parametrize("depth", [1, 63, 64, 65, 5000])
def test_nesting_limit(engine, kind, depth):
    encoded = b""
    for _ in range(depth - 1):
        encoded += {oracle.LIST: b"\x19", oracle.MAP: b"\x01\x3b\x05", oracle.STRUCT: b"\x1c"}[kind]
    encoded += {oracle.LIST: b"\x03", oracle.MAP: b"\x00", oracle.STRUCT: b"\x00"}[kind]
    encoded += b"\0" * (depth - 1) if kind == oracle.STRUCT else b""
    whole = b"\x26\x02" + bytes([0xC0 | kind]) + encoded + b"\0"
    assert read_struct(engine, thrift_layout("ColumnChunk"), whole)[0] == (
        len(whole) if depth <= 64 else kernels_status.TOO_DEEP
    )


@pytest.mark.parametrize("count", [1 << 31, (1 << 63) - 1, (1 << 64) - 1, 5000])
def test_oversized_lengths_are_refused(engine, count):
    for element, field in ((oracle.STRUCT, 2), (oracle.STRUCT, 4), (oracle.I32, 60)):
        encoded = (
            b"\x15\x02"
            + bytes([oracle.LIST])
            + oracle.zigzag(field)
            + bytes([0xF0 | element])
            + uleb(count)
            + b"\0" * 2000
        )
        assert read_struct(engine, thrift_layout("FileMetaData"), encoded)[0] == kernels_status.BAD_LENGTH
    for head in (b"\x0b\x76", b"\x08\x76"):  # a map, and a string, of field 59
        assert (
            read_struct(engine, thrift_layout("ColumnChunk"), head + uleb(count) + b"\x33" * 99)[0]
            == kernels_status.BAD_LENGTH
        )


def test_repeated_field_replaces_the_earlier_one(engine):
    statistics = [(3, oracle.I64, 5), (5, oracle.BINARY, b"max")]
    first = [*((i, oracle.I32, i) for i in (1, 2, 3, 4)), (5, oracle.STRUCT, statistics)]
    second = [(i, oracle.I32, 9) for i in (1, 2, 3, 4)]
    header = [*REQUIRED, (1, oracle.I32, 2), (5, oracle.STRUCT, first), (5, oracle.STRUCT, second)]
    found = read_struct(engine, thrift_layout("PageHeader"), oracle.encode_struct(header))[1]
    assert found.type == 2
    assert found.data_page_header.statistics is None
    assert found.data_page_header.num_values == 9
    check_against_oracle(engine, "PageHeader", oracle.encode_struct(header))
    union = [
        (4, oracle.BINARY, b"name"),
        (10, oracle.STRUCT, [(5, oracle.STRUCT, [(1, oracle.I32, 2), (2, oracle.I32, 9)]), (1, oracle.STRUCT, [])]),
    ]
    found = read_struct(engine, thrift_layout("SchemaElement"), oracle.encode_struct(union))[1]
    assert found.logicalType.which() == "STRING"
    assert found.logicalType.DECIMAL is None


def test_unknown_union_member(engine):
    element = [(4, oracle.BINARY, b"name"), (10, oracle.STRUCT, [(31, oracle.STRUCT, [(1, oracle.I32, 5)])])]
    found = read_struct(engine, thrift_layout("SchemaElement"), oracle.encode_struct(element))[1]
    assert found.logicalType is not None
    assert found.logicalType.which() is None
    assert repr(found) == "SchemaElement(name='name', logicalType=LogicalType())"


@given(pairs=st.lists(st.tuples(st.none() | st.binary(max_size=9), st.none() | st.text(max_size=5)), max_size=6))
def test_many_structs(pairs):
    """Structs at any position equal those read alone; position -1 gives a struct without fields."""
    layout = ThriftLayout("Statistics")
    stored = [
        to_bytes(idl().Statistics(max=text and text.encode(), null_count=i, min=data))
        for i, (data, text) in enumerate(pairs)
    ]
    data = b"?".join([b"", *stored])
    starts = [len(b"?".join([b"", *stored[:i]])) + 1 for i in range(len(stored))]
    for engine in ENGINES:
        found = _read_all(engine, layout, data, [*starts, -1])
        assert found is not None
        for one, alone in zip(found, [read_struct(engine, layout, each)[1] for each in stored], strict=False):
            assert to_dict(one) == to_dict(alone)
        assert to_dict(found[-1]) == {}


def _read_all(engine, layout, data, starts):
    rng = np.random.default_rng(len(data))
    size = len(starts) * layout.words
    arena, stack = GuardedBuffer(rng, size + 500, "i8"), GuardedBuffer(rng, STACK_WORDS, "i8")
    arena.array[:] = 0
    stack.array[S_TOP], stack.array[S_ROOM] = size, size + 500
    raw = with_slack(rng, data)
    places = np.arange(len(starts), dtype=np.int64)
    ends = np.full(len(starts), len(data))
    status = engine.read_thrift_structs(
        raw, np.array(starts, np.int64), ends, places, len(starts), layout.table, arena.array, stack.array
    )
    arena.check()
    stack.check()
    if status < 0:
        return None
    assert status == len(starts)
    return [
        Record(layout.record, arena.array[: (i + 1) * layout.words], i * layout.words, raw) for i in places.tolist()
    ]


@pytest.mark.parametrize("engine", ENGINES, ids=repr)
def test_many_truncated_structs(engine):
    layout = ThriftLayout("Statistics")
    stored = to_bytes(idl().Statistics(max=b"largest", min=b"", null_count=77, is_max_value_exact=True))
    for size in range(len(stored)):
        assert _read_all(engine, layout, stored + stored[:size], [0, len(stored)]) is None
    assert _read_all(engine, layout, stored * 2, [0, len(stored)]) is not None


def _read_roots(engine, layout, stored, room=4000):
    """Return of each struct the record or a status, and the bytes of its fields 1 and 4."""
    rng = np.random.default_rng(len(stored))
    arena, stack = GuardedBuffer(rng, room, "i8"), GuardedBuffer(rng, STACK_WORDS, "i8")
    records, spans = GuardedBuffer(rng, len(stored), "i8"), GuardedBuffer(rng, 4 * len(stored), "i8")
    stack.array[S_TOP], stack.array[S_ROOM] = 0, room
    raw = with_slack(rng, b"".join(stored))
    ends = np.cumsum([len(one) for one in stored], dtype=np.int64)
    starts = ends - np.array([len(one) for one in stored], np.int64)
    done = engine.read_thrift_roots(
        raw, starts, ends, len(stored), layout.table, 1, 4, arena.array, stack.array, spans.array, records.array
    )
    for buffer in (arena, stack, records, spans):
        buffer.check()
    found = []
    for at, (first, second, third, fourth) in zip(
        records.array[:done].tolist(), spans.array.reshape(-1, 4)[:done].tolist(), strict=True
    ):
        record = Record(layout.record, arena.array, at, raw) if at >= 0 else at
        found.append((record, raw[first:second].tobytes(), raw[third:fourth].tobytes()))
    return found


roots = st.lists(st.tuples(st.integers(0, 1 << 30), st.lists(st.text(max_size=5), max_size=4)), max_size=5)


@given(roots=roots)
def test_many_roots(roots):
    """Structs with lists, one behind the other, equal those read alone; spans are the bytes of two fields."""
    layout = ThriftLayout("FileMetaData")
    element = idl().SchemaElement
    things = [
        idl().FileMetaData(version=number, schema=[element(name=name) for name in names], num_rows=5, row_groups=[])
        for number, names in roots
    ]
    stored = [to_bytes(thing) for thing in things]
    for engine in ENGINES:
        found = _read_roots(engine, layout, stored)
        assert len(found) == len(stored)
        for (record, version, row_groups), thing, data in zip(found, things, stored, strict=True):
            assert to_dict(record) == to_dict(read_struct(engine, layout, data)[1])
            assert version == uleb(2 * thing.version)
            assert row_groups == bytes([oracle.STRUCT])  # an empty list
        assert len(_read_roots(engine, layout, stored, room=layout.words)) <= 1, "no room for another"


@pytest.mark.parametrize("engine", ENGINES, ids=repr)
def test_many_truncated_roots(engine):
    layout = ThriftLayout("FileMetaData")
    root = [idl().SchemaElement(name="root")]
    whole = to_bytes(idl().FileMetaData(version=2, schema=root, num_rows=9, row_groups=[], created_by="x"))
    for size in range(len(whole)):
        (first, *_), (second, *_), (third, *_) = _read_roots(engine, layout, [whole, whole[:size], whole])
        assert second < 0
        assert first.num_rows == third.num_rows == 9
