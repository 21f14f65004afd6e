"""Field ids of a schema at any depth: written, and used by `resolve="field_id"`."""

from __future__ import annotations

import io
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq


def field(name: str, kind: pa.DataType, number: int, nullable: bool = True) -> pa.Field:
    return pa.field(name, kind, nullable, {"PARQUET:field_id": str(number)})


def struct(name: str) -> pa.DataType:
    return pa.struct([field(name, pa.int64(), 9), field("other", pa.string(), 10)])


# The type whose inner struct names its first field, a value, and how the value is read back.
KINDS = {
    "struct": (struct, {"old": 1, "other": "x"}),
    "struct in a struct": (lambda name: pa.struct([field("i", struct(name), 8)]), {"i": {"old": 1, "other": "x"}}),
    "list": (lambda name: pa.list_(field("element", struct(name), 8)), [{"old": 1, "other": "x"}]),
    "large list of lists": (
        lambda name: pa.large_list(field("element", pa.list_(field("element", struct(name), 8)), 7)),
        [[{"old": 1, "other": "x"}]],
    ),
    "map": (
        lambda name: pa.map_(field("key", pa.string(), 30, False), field("value", struct(name), 8)),
        [("k", {"old": 1, "other": "x"})],
    ),
}


def ids_of(data: bytes) -> list[str]:
    return re.findall(r"(\w+)[^;]*?field_id=(-?\d+)", str(pq.ParquetFile(io.BytesIO(data)).schema))


@pytest.mark.parametrize("kind", KINDS)
def test_ids_are_written_as_by_pyarrow(kind: str):
    make, value = KINDS[kind]
    schema = pa.schema([field("a", make("old"), 1)])
    table = pa.table([pa.array([value, None], schema[0].type)], schema=schema)
    file = io.BytesIO()
    pq.write_table(table, file)
    expected = ids_of(file.getvalue())
    assert "9" in {number for _, number in expected}
    assert ids_of(numparq.to_parquet(table)) == expected
    frame = table.to_pandas()
    assert ids_of(numparq.to_parquet(frame, schema=schema)) == expected
    assert ids_of(numparq.to_parquet(frame, schema={"a": schema[0]})) == expected
    without_own = ids_of(numparq.to_parquet(frame, schema={"a": schema[0].type}))
    assert [number for _, number in without_own if number != "-1"] == [n for _, n in expected if n not in ("-1", "1")]


@pytest.mark.parametrize("kind", KINDS)
def test_ids_resolve_names_at_any_depth(tmp_path, kind: str):
    make, value = KINDS[kind]
    path = tmp_path / "a.parquet"
    old = pa.schema([field("a", make("old"), 1)])
    pq.write_table(pa.table([pa.array([value, None], old[0].type)], schema=old), path)
    wanted = pa.schema([field("b", make("new"), 1)])
    frame = numparq.read_parquet(path, schema=wanted, resolve="field_id", dtype_backend="pyarrow")
    text = repr(value).replace("'old'", "'new'")
    assert repr(pa.array(frame["b"]).to_pylist()[0]) == text


def test_ids_do_not_change_other_columns():
    frame = pd.DataFrame({"i": pd.arrays.IntervalArray.from_breaks([0, 1, 2]), "z": np.array([1 + 2j, 0])})
    data = numparq.to_parquet(frame)
    nodes = numparq.to_parquet(
        frame, schema={"z": pa.struct([field("real", pa.float64(), 3), field("imag", pa.float64(), 4)])}
    )
    assert numparq.read_parquet(nodes)["z"].tolist() == numparq.read_parquet(data)["z"].tolist()
