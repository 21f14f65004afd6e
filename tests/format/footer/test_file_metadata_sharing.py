"""Parsed footers and schemas shared between reads: by content, bounded, and never mixed up."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq import col
from numparq.format.footer import file_metadata
from numparq.format.footer.file_metadata import parse_footer
from numparq.format.page_index import OffsetIndex
from numparq.plan.chunk_pages import ChunkPages
from numparq.prune.index_reader import located_pages


def _write_file(path: Path, values: np.ndarray) -> Path:
    frame = pd.DataFrame({"key": np.arange(len(values)), "value": values})
    numparq.to_parquet(
        frame, path, row_group_size=len(values) // 2, max_rows_per_page=100, use_dictionary=False, compression=None
    )
    return path


def test_equal_footers_are_shared(tmp_path: Path) -> None:
    values = np.arange(1000.0)
    first, same = _write_file(tmp_path / "a", values), _write_file(tmp_path / "b", values)
    other = _write_file(tmp_path / "c", values + 1)
    with numparq.ParquetFile(first) as a, numparq.ParquetFile(same) as b, numparq.ParquetFile(other) as c:
        assert a._file.footer is b._file.footer
        assert a._file.footer is not c._file.footer


def test_footers_of_many_files_stay_cached() -> None:
    files = [numparq.to_parquet(pd.DataFrame({"a": [number]})) for number in range(100)]
    first, again = ([numparq.ParquetFile(data)._file.footer for data in files] for _ in range(2))
    assert len({*map(id, first)}) == 100
    assert [*map(id, first)] == [*map(id, again)]


def test_footer_copies_its_source_buffer() -> None:
    data = bytearray(numparq.to_parquet(pd.DataFrame({"a": range(10)})) or b"")
    length = int.from_bytes(data[-8:-4], "little")
    view = np.frombuffer(data, np.uint8)[-8 - length : -8]
    footer = parse_footer(view, length)
    names = footer.schema_elements.text
    view[:] = 0
    assert parse_footer(np.frombuffer(bytes(footer.data), np.uint8), length) is footer
    assert names is not None
    assert footer.binary(0, 4) == bytes(footer.data[:4])


def test_large_footer_is_not_cached() -> None:
    frame = pd.DataFrame(np.zeros((2, 3000)), columns=[f"column {number}" for number in range(3000)])
    data = numparq.to_parquet(frame)
    with numparq.ParquetFile(data) as a, numparq.ParquetFile(data) as b:
        assert a._file.footer.length > 128 << 10
        assert a._file.footer is not b._file.footer


def test_equal_footers_with_different_pages(tmp_path: Path) -> None:
    """Values are changed in place, within the bounds: footer and indexes stay equal."""
    values = np.arange(1000.0)
    first, changed = _write_file(tmp_path / "a", values), tmp_path / "b"
    data = bytearray(first.read_bytes())
    place = data.index(np.float64(733.0).tobytes())
    data[place : place + 8] = np.float64(732.5).tobytes()
    changed.write_bytes(data)
    predicate = col("key") == 733
    assert numparq.read_parquet(first, filters=predicate)["value"].tolist() == [733.0]
    assert numparq.read_parquet(changed, filters=predicate, verify_crc=False)["value"].tolist() == [732.5]
    assert numparq.read_parquet(first, filters=predicate)["value"].tolist() == [733.0]


def test_equal_footers_with_different_indexes(tmp_path: Path) -> None:
    """A damaged index is ignored; the cached index of the intact file is not used for this file."""
    values = np.arange(1000.0)
    first, damaged = _write_file(tmp_path / "a", values), tmp_path / "b"
    data = bytearray(first.read_bytes())
    predicate = col("key") == 733
    with numparq.ParquetFile(first) as file:
        assert len(file.plan(filters=predicate).row_groups[1].chunks[0].offsets) == 5
        chunk = file.metadata.row_groups[1].columns[0]
        place = chunk.column_index_offset
        data[place : place + chunk.column_index_length] = b"\xff" * chunk.column_index_length
    damaged.write_bytes(data)
    with numparq.ParquetFile(damaged) as file:
        assert file.plan(filters=predicate).num_rows == 500
        assert file.read(filters=predicate)["value"].tolist() == [733.0]


def test_index_pages_must_match_the_chunk() -> None:
    index = OffsetIndex(np.array([[100, 90, 0], [190, 110, 10], [300, 100, 20]]))
    whole = ChunkPages.unindexed(100, 400, 30)
    assert located_pages(index, whole).num_pages == 3  # type: ignore[union-attr]
    assert located_pages(index, ChunkPages.unindexed(100, 401, 30)) is None
    assert located_pages(index, ChunkPages.unindexed(100, 400, 15)) is None
    assert located_pages(index, ChunkPages.unindexed(100, 400, 40)).num_rows == 40  # type: ignore[union-attr]


def encode_columns(*columns: str, attrs: dict | None = None, **options: object) -> bytes:
    frame = pd.DataFrame({name: [1, 2, 3] for name in columns})
    frame.attrs = attrs or {}
    return numparq.to_parquet(frame, **options)


def test_equal_schemas_are_shared() -> None:
    first, second = (
        numparq.ParquetFile(data) for data in (encode_columns("a", "b"), encode_columns("a", "b", row_group_size=2))
    )
    assert first.schema is second.schema
    assert first._file.arrow_schema is second._file.arrow_schema
    assert first._file.pandas_metadata is second._file.pandas_metadata
    assert first.schema.flat_leaf(1) is second.schema.flat_leaf(1)


@pytest.mark.parametrize(
    "other",
    [
        encode_columns("a", "c"),
        encode_columns("a"),
        encode_columns("b", "a"),
        numparq.to_parquet(pd.DataFrame({"a": [1.0], "b": [2]})),
    ],
    ids=["name", "fewer", "order", "type"],
)
def test_different_schemas_are_not_shared(other: bytes) -> None:
    first, second = numparq.ParquetFile(encode_columns("a", "b")), numparq.ParquetFile(other)
    assert first.schema is not second.schema
    assert str(first.schema) != str(second.schema)


def test_large_schemas_are_not_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_metadata, "_SHARED_SCHEMA_BYTES", 100)
    data = encode_columns("c", "d")
    first, second = numparq.ParquetFile(data), numparq.ParquetFile(encode_columns("c", "d", row_group_size=2))
    assert first.schema is not second.schema
    assert str(first.schema) == str(second.schema)
    assert numparq.read_parquet(data).columns.tolist() == ["c", "d"]


def test_shared_key_value_metadata_is_read_only() -> None:
    data = encode_columns("a", "b")
    keys = numparq.ParquetFile(data)._file.footer.key_value_metadata
    with pytest.raises(TypeError):
        del keys["pandas"]  # type: ignore[attr-defined]
    assert "pandas" in numparq.ParquetFile(data)._file.footer.key_value_metadata


def test_frames_do_not_share_column_labels() -> None:
    data = encode_columns("a", "b")
    first = numparq.read_parquet(data)
    first.columns.name = "mine"
    second = numparq.read_parquet(data)
    assert second.columns.name is None
    assert second.columns.tolist() == ["a", "b"]


def test_frames_do_not_share_attrs() -> None:
    data = encode_columns("a", attrs={"of": ["one"]})
    numparq.read_parquet(data).attrs["of"].append("two")
    assert numparq.read_parquet(data).attrs == {"of": ["one"]}
