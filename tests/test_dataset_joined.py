"""Small files that are decoded as one: several row groups, columns that share a block, and columns made apart."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq
from numparq.dataset.scan import file_batch


def some(seed: int, rows: int = 50) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    numbers = {f"i{column}": rng.integers(0, 1 << 40, rows) for column in range(3)}
    floats = {f"f{column}": rng.normal(size=rows) for column in range(3)}
    return pd.DataFrame({**numbers, **floats, "s": rng.choice(["x", "yy", ""], rows), "b": rng.random(rows) < 0.5})


@pytest.mark.parametrize(("files", "groups"), [(1, []), (2, [2, 2, 2]), (4, [4, 2]), (9, [6])])
def test_row_groups_and_blocks(tmp_path, monkeypatch, files, groups):
    frames = [some(seed, 40 + seed) for seed in range(6)]
    for seed, frame in enumerate(frames):
        frame.to_parquet(tmp_path / f"{seed}.parquet", row_group_size=15)
    largest = max(path.stat().st_size for path in tmp_path.iterdir())
    monkeypatch.setattr(file_batch, "MAX_BATCH_BYTES", files * largest)
    made = []
    monkeypatch.setattr(
        file_batch.FileBatchReader, "decode", lambda self, *rest: made.append(self) or decode(self, *rest)
    )
    pd.testing.assert_frame_equal(numparq.read_parquet(tmp_path), pd.concat(frames, ignore_index=True))
    assert [len(each.parts) for each in made] == groups


decode = file_batch.FileBatchReader.decode


def test_columns_that_another_file_has_in_another_type(tmp_path):
    for number in range(4):
        wide = pa.int64() if number == 3 else pa.int32()
        table = pa.table({"a": pa.array([number, 10 + number], wide), "n": [{"x": number}, {"x": 7}], "z": [1.5, 2.5]})
        if number == 3:
            table = table.set_column(1, "n", pa.array([{"x": 3, "y": "u"}, None]))
        pq.write_table(table, tmp_path / f"{number}.parquet")
    found = numparq.read_parquet(tmp_path)
    assert found["a"].tolist() == [0, 10, 1, 11, 2, 12, 3, 13]
    assert [row and row["x"] for row in found["n"]] == [0, 7, 1, 7, 2, 7, 3, None]
    assert found["z"].tolist() == [1.5, 2.5] * 4
