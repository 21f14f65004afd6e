"""Files that store text with and without the annotation STRING, read by a schema of the caller."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq
from numparq import SchemaError, col

TEXTS = ["x", "\u00e4", None, "xyz"]
STORED = {
    "string": (pa.string(), TEXTS),
    "binary": (pa.binary(), [None if text is None else text.encode() for text in TEXTS]),
    "fixed": (pa.binary(2), [b"yy", None]),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), ["x", None, "x"]),
}


def write_folder(folder: Path) -> list[str | None]:
    """Write a file of each kind; return their texts."""
    texts: list[str | None] = []
    for name, (kind, values) in STORED.items():
        rows = pa.array(range(len(texts), len(texts) + len(values)))
        texts += [value.decode() if isinstance(value, bytes) else value for value in values]
        lists = pa.array([None if value is None else [value] for value in values], pa.list_(kind))
        columns = {"n": rows, "a": pa.array(values, kind), "l": lists}
        pq.write_table(pa.table(columns), folder / f"{len(texts):02}-{name}.parquet", row_group_size=2)
    return texts


@pytest.mark.parametrize("backend", ["numpy", "numpy_nullable", "pyarrow"])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.dictionary(pa.int32(), pa.string())])
def test_text_is_read_by_the_type_of_the_schema(tmp_path: Path, kind: pa.DataType, backend: str) -> None:
    texts = write_folder(tmp_path)
    values = [None if text is None else text.encode() for text in texts] if kind == pa.binary() else texts
    found = numparq.read_parquet(tmp_path, schema={"n": pa.int64(), "a": kind}, dtype_backend=backend)
    assert found["a"].astype(object).where(found["a"].notna(), None).tolist() == values
    for filters, match in ((col("a") == values[0], values[0]), (col("a").isin([values[1], values[3]]), None)):
        got = numparq.read_parquet(tmp_path, schema={"n": pa.int64(), "a": kind}, filters=filters)
        wanted = [match] if match is not None else [values[1], values[3]]
        assert got["n"].tolist() == [row for row, value in enumerate(values) if value in wanted]


def test_text_in_lists(tmp_path: Path) -> None:
    texts = write_folder(tmp_path)
    found = numparq.Dataset(tmp_path, schema={"l": pa.list_(pa.string())}).to_arrow()["l"].to_pylist()
    assert found == [None if text is None else [text] for text in texts]


def test_bytes_that_are_no_text_are_named(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [b"x", None, b"\xff", b"y"]}), tmp_path / "a.parquet")
    with pytest.raises(SchemaError, match=r"b'\\xff' is not UTF-8, and cannot be stored as string") as raised:
        numparq.read_parquet(tmp_path, schema={"a": pa.string()})
    assert raised.value.where["column"] == "a"
    assert raised.value.where["file"].endswith("a.parquet")


def test_geometries_are_no_text(tmp_path: Path) -> None:
    node = numparq.format.SchemaNode("a", physical=6, logical=numparq.format.LogicalType("GEOMETRY"))
    with numparq.ParquetWriter(tmp_path / "a.parquet", schema=[node]) as writer:
        writer.write(pd.DataFrame({"a": [b"\x01\x01" + bytes(19)]}))
    with pytest.raises(SchemaError, match="cannot be cast to string"):
        numparq.read_parquet(tmp_path, schema={"a": pa.string()})
