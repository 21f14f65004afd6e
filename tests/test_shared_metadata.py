"""Files that were written alike share what is made of their footers, and nothing that a frame of them can change."""

from __future__ import annotations

import pandas as pd
import pytest

import numparq
from numparq.format.footer import file_metadata


def written(*columns: str, attrs: dict | None = None, **options: object) -> bytes:
    frame = pd.DataFrame({name: [1, 2, 3] for name in columns})
    frame.attrs = attrs or {}
    return numparq.to_parquet(frame, **options)


def test_files_of_one_schema_share_it() -> None:
    first, second = (numparq.ParquetFile(data) for data in (written("a", "b"), written("a", "b", row_group_size=2)))
    assert first.schema is second.schema
    assert first.arrow_schema is second.arrow_schema
    assert first.pandas_metadata is second.pandas_metadata
    assert first.schema.flat_leaf(1) is second.schema.flat_leaf(1)


@pytest.mark.parametrize(
    "other",
    [written("a", "c"), written("a"), written("b", "a"), numparq.to_parquet(pd.DataFrame({"a": [1.0], "b": [2]}))],
    ids=["name", "fewer", "order", "type"],
)
def test_other_schemas_are_not_shared(other: bytes) -> None:
    first, second = numparq.ParquetFile(written("a", "b")), numparq.ParquetFile(other)
    assert first.schema is not second.schema
    assert str(first.schema) != str(second.schema)


def test_large_schemas_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_metadata, "_SHARED_SCHEMA_BYTES", 100)
    data = written("c", "d")
    first, second = numparq.ParquetFile(data), numparq.ParquetFile(written("c", "d", row_group_size=2))
    assert first.schema is not second.schema
    assert str(first.schema) == str(second.schema)
    assert numparq.read_parquet(data).columns.tolist() == ["c", "d"]


def test_files_of_one_footer_share_keys_that_nobody_changes() -> None:
    data = written("a", "b")
    keys = numparq.ParquetFile(data).footer.key_value_metadata
    with pytest.raises(TypeError):
        del keys["pandas"]  # type: ignore[attr-defined]
    assert "pandas" in numparq.ParquetFile(data).footer.key_value_metadata


def test_frames_share_no_labels_that_they_name() -> None:
    data = written("a", "b")
    first = numparq.read_parquet(data)
    first.columns.name = "mine"
    second = numparq.read_parquet(data)
    assert second.columns.name is None
    assert second.columns.tolist() == ["a", "b"]


def test_frames_share_no_attrs() -> None:
    data = written("a", attrs={"of": ["one"]})
    numparq.read_parquet(data).attrs["of"].append("two")
    assert numparq.read_parquet(data).attrs == {"of": ["one"]}
