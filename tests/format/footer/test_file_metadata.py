"""Footers: the fields of a read against thriftpy2, and errors of damaged footers."""

from __future__ import annotations

import gc
import random
import sys
from typing import Any

import numpy as np
import pytest
from thriftpy2.protocol.compact import TCompactProtocol
from thriftpy2.transport import TMemoryBuffer

from numparq import ParquetFile
from numparq.errors import DecryptionError, InvalidFileError, ParquetError
from numparq.format.footer import tail as footer_module
from numparq.format.footer.column_chunks import CHUNK_FIELDS, CHUNK_FLAGS
from numparq.format.footer.file_metadata import Footer
from numparq.format.schema import Schema
from support.data.thrift_structs import IDL
from support.oracles import thrift as oracle


def decoded(data: bytes) -> Any:
    thing = IDL.FileMetaData()
    TCompactProtocol(TMemoryBuffer(data)).read_struct(thing)
    return thing


def footer_of(content: bytes) -> bytes:
    return content[-8 - int.from_bytes(content[-8:-4], "little") : -8]


def opened(encoded: bytes) -> Footer:
    """Parse a footer in memory, with nothing after it."""
    return Footer(np.frombuffer(encoded, np.uint8), len(encoded))


def number(thing: Any, path: str) -> int:
    for name in path.split("."):
        thing = getattr(thing, name, None)
    return -1 if thing is None else thing


def example(num_columns: int = 4, num_row_groups: int = 3) -> Any:
    """Return a FileMetaData of so many columns and row groups."""

    def chunk(group: int, column: int) -> Any:
        statistics = IDL.Statistics(null_count=column, max_value=b"max", min_value=b"")
        meta = IDL.ColumnMetaData(
            type=column % 8,
            encodings=[0, 3],
            path_in_schema=[f"c{column}"],
            codec=1,
            num_values=100 * group + column,
            total_uncompressed_size=5,
            total_compressed_size=1 << 33,
            data_page_offset=4 + column,
            dictionary_page_offset=None if column % 2 else 0,
            statistics=statistics if group else None,
        )
        return IDL.ColumnChunk(file_offset=0, meta_data=meta, file_path="elsewhere" if column == 3 else None)

    schema = [IDL.SchemaElement(name="root", num_children=num_columns)]
    schema += [
        IDL.SchemaElement(name=f"c{i}", type=i % 8, type_length=2, repetition_type=1) for i in range(num_columns)
    ]
    groups = [
        IDL.RowGroup(columns=[chunk(g, c) for c in range(num_columns)], total_byte_size=1, num_rows=10 * g)
        for g in range(num_row_groups)
    ]
    pairs = [IDL.KeyValue("k", "one"), IDL.KeyValue("k", "two"), IDL.KeyValue("é", None)]
    return IDL.FileMetaData(version=2, schema=schema, num_rows=30, row_groups=groups, key_value_metadata=pairs)


def encoded(thing: Any) -> bytes:
    return oracle.encode_struct(oracle.fields_of(thing))


# --- valid footers ----------------------------------------------------------------------------------------------------


def check_against_thriftpy2(footer: Footer, thing: Any) -> None:
    """Compare a footer with thriftpy2's."""
    assert footer.row_group_num_rows.tolist() == [group.num_rows for group in thing.row_groups]
    assert footer.created_by == thing.created_by
    pairs: dict[str, Any] = {}
    for pair in thing.key_value_metadata or ():
        pairs.setdefault(pair.key, (pair.value or "").encode())
    assert footer.key_value_metadata == pairs
    shape = len(thing.row_groups), footer.num_leaves
    table = footer.chunks.read_table(range(shape[0]), range(shape[1]))
    for name, path in CHUNK_FIELDS.items():
        expected = [[number(chunk, path) for chunk in group.columns] for group in thing.row_groups]
        assert table[name].tolist() == expected, name
    for name, fields in CHUNK_FLAGS.items():
        there = [
            [any(getattr(chunk, field) is not None for field in fields) for chunk in group.columns]
            for group in thing.row_groups
        ]
        assert (table[name] != 0).tolist() == there, name


def test_footers_of_all_files(parquet_testing):
    files = sorted(parquet_testing.rglob("*.parquet"))
    assert files
    for path in files:
        content = path.read_bytes()
        try:
            footer = opened(footer_of(content))
        except InvalidFileError:
            assert path.parent.name == "bad_data", path
            continue
        check_against_thriftpy2(footer, decoded(footer_of(content)))


def test_chunk_fields_by_row_group_and_column():
    footer = opened(encoded(example()))
    check_against_thriftpy2(footer, example())
    values = footer.chunks["num_values"]
    assert values[2, 1] == 201
    assert values[1, [3, 0, 3]].tolist() == [103, 100, 103]
    assert values[[0, 1, 2], 2].tolist() == [2, 102, 202]
    assert values[[], 2].tolist() == []
    assert footer.chunks.read_table([2, 0], [1])["num_values"].tolist() == [[201], [1]]
    assert footer.chunks.chunk_record(1, 2) == footer.record.row_groups[1].columns[2]
    assert footer.key_value_metadata == {"k": b"one", "é": b""}


def test_only_requested_chunks_are_parsed():
    footer = opened(encoded(example(50, 20)))
    assert not footer.chunks._known.any()
    footer.chunks["codec"][3, np.array([7, 9])]
    footer.chunks["type"][3, 7]
    assert np.flatnonzero(footer.chunks._known).tolist() == [3 * 50 + 7, 3 * 50 + 9]


@pytest.mark.parametrize("chunk", [(0, -1), (-1, 0), (2, 50)])
def test_chunks_outside_the_file_are_not_written_to_memory(chunk):
    footer = opened(encoded(example(50, 3)))
    with pytest.raises(IndexError):
        footer.chunks["codec"][chunk]
    assert not footer.chunks._known.any()


def test_no_object_per_chunk():
    data = encoded(example(500, 20))
    opened(data)
    gc.collect()
    before = sys.getallocatedblocks()
    footer = opened(data)
    schema = Schema(footer.schema_elements)
    leaf = schema.flat_leaf(schema.positions["c77"])
    footer.chunks.read_table(range(20), [leaf.index])
    assert sys.getallocatedblocks() - before < 1500, "about one for each column's name, and not for 10,000 chunks"


def test_damaged_chunk_raises_only_when_read():
    thing = example()
    fields = oracle.fields_of(thing)
    groups = next(value for field_id, _, value in fields if field_id == 4)[1]
    columns = next(value for field_id, _, value in groups[1] if field_id == 1)[1]
    columns[2] = [(2, oracle.I64, 0), (3, oracle.STRUCT, [(1, oracle.I32, 2)])]
    footer = opened(oracle.encode_struct(fields))
    assert footer.chunks["num_values"][1, [0, 1, 3]].tolist() == [100, 101, 103]
    assert footer.chunks["num_values"][2, 2] == 202
    with pytest.raises(InvalidFileError, match="column chunk 2: a required Thrift field is missing") as caught:
        footer.chunks.read_table([0, 1], [0, 2])
    assert caught.value.where == {"row_group": 1}
    with pytest.raises(InvalidFileError, match=r"required.*at byte"):
        footer.record  # noqa: B018


def test_long_footer_takes_two_reads(tmp_path, monkeypatch):
    content = b"PAR1" + bytes(1000) + encoded(example())
    content += (len(content) - 1004).to_bytes(4, "little") + b"PAR1"
    path = tmp_path / "file.parquet"
    path.write_bytes(content)
    for tail in (12, 40, len(content) - 1004, len(content) + 5):
        monkeypatch.setattr(footer_module, "TAIL_BYTES", tail)
        for source in (path, content):
            with ParquetFile(source) as file:
                assert file.num_rows == 30
                assert file.metadata == opened(encoded(example())).record


# --- damaged footers --------------------------------------------------------------------------------------------------

WHOLE = b"PAR1" + encoded(example()) + len(encoded(example())).to_bytes(4, "little") + b"PAR1"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "0 bytes, but the smallest Parquet file has 12"),
        (WHOLE[:11], "11 bytes"),
        (WHOLE[:-1], "it begins like one, so it was truncated"),
        (b"\x1f\x8b" + bytes(50), "it is not a Parquet file"),
        (b"PAR2" + WHOLE[4:], "does not begin with b'PAR1'"),
        (WHOLE[:-8] + b"\xff\xff\xff\xffPAR1", "claims 4,294,967,295 bytes, more than the file"),
        (WHOLE[:-8] + len(WHOLE[:-11]).to_bytes(4, "little") + b"PAR1", "more than the file"),
        (WHOLE[:-8] + b"\0\0\0\0PAR1", "the footer is damaged: the data ends too early, at byte 0 of 0"),
        (WHOLE[:-8] + b"\5\0\0\0PAR1", "the footer is damaged"),
    ],
)
def test_error_messages(content, message):
    with pytest.raises(InvalidFileError) as caught:
        ParquetFile(content)
    assert message in str(caught.value)
    assert caught.value.where["file"] == "<bytes>"


def test_encrypted_footer_is_refused():
    with pytest.raises(DecryptionError, match="footer is encrypted; pass decryption="):
        ParquetFile(b"PARE" + bytes(40) + b"PARE")


def test_row_groups_must_match_the_schema():
    thing = example()
    thing.row_groups[1].columns.pop()
    with pytest.raises(InvalidFileError, match="3 column chunks, but the schema has 4 leaf columns") as caught:
        opened(encoded(thing))
    assert caught.value.where == {"row_group": 1}
    thing = example()
    thing.row_groups[2].num_rows = -1
    with pytest.raises(InvalidFileError, match="claims -1 rows"):
        opened(encoded(thing))


def parse_everything(data: bytes) -> None:
    footer = opened(data)
    schema = Schema(footer.schema_elements)
    str(schema)
    list(schema)
    footer.chunks.read_table(range(len(footer.row_group_num_rows)), range(footer.num_leaves))
    repr(footer.record.to_dict())
    assert footer.key_value_metadata is not None
    assert footer.created_by is None or isinstance(footer.created_by, str)


def test_cut_at_every_byte():
    data = encoded(example())
    parse_everything(data)
    for end in range(len(data)):
        with pytest.raises(InvalidFileError):
            opened(data[:end])


@pytest.mark.parametrize("times", [1, 3, 20])
def test_flipped_bits(times):
    data, rng = encoded(example()), random.Random(times)
    outcomes = set()
    for _ in range(1500):
        damaged = bytearray(data)
        for _ in range(times):
            damaged[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        try:
            parse_everything(bytes(damaged))
            outcomes.add("read")
        except ParquetError as error:
            outcomes.add(type(error).__name__)
    assert "InvalidFileError" in outcomes
    assert outcomes <= {"read", "InvalidFileError"}
