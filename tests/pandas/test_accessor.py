"""The `df.numparq` accessor."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq.errors import SchemaError
from support.pandas_engine import FRAME


def test_accessor_writes(registered_engine, tmp_path):
    assert FRAME.numparq.to_parquet(tmp_path / "file", compression="zstd", index=False) is None
    assert numparq.read_parquet(tmp_path / "file").index.tolist() == [0, 1, 2]
    data = FRAME.numparq.to_bytes(row_group_size=2)
    assert numparq.ParquetFile(data).num_row_groups == 2
    assert FRAME.numparq.to_parquet() == FRAME.numparq.to_bytes()


def test_accessor_schema_matches_written_file(registered_engine):
    frame = FRAME.assign(d=[Decimal("1.25"), None, Decimal("100")], l=[[1], [], None])
    with numparq.ParquetFile(frame.numparq.to_bytes()) as file:
        assert str(frame.numparq.schema) == str(file.schema)
    assert frame.numparq.schema.columns == ["a", "b", "c", "d", "l", "i"]
    assert "decimal" in str(frame.numparq.schema).lower()
    with pytest.raises(SchemaError):
        _ = pd.DataFrame({"a": [1, "x"]}).numparq.schema


def test_accessor_lists_lost_rows(registered_engine):
    frame = pd.DataFrame({"a": np.arange(2000)})
    data = bytearray(frame.numparq.to_bytes(row_group_size=1000, compression=None, column_encoding="PLAIN"))
    assert pd.read_parquet(bytes(data), engine="numparq").numparq.lost == []
    data[2000] ^= 1
    read = pd.read_parquet(bytes(data), engine="numparq", on_error="skip")
    (lost,) = read.numparq.lost
    assert lost[1] == 0
    assert lost[2] == "a"
    assert len(read) == 1000
