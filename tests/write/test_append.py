"""`append=True`: old row groups byte for byte, new ones after them, and the combined frame."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq.errors import InvalidFileError, SchemaError

pq = pytest.importorskip("pyarrow.parquet")


def frame(rows: int = 500, first: int = 0) -> pd.DataFrame:
    numbers = np.arange(first, first + rows)
    return pd.DataFrame(
        {
            "number": numbers,
            "real": numbers / 7,
            "text": [f"text {number % 40}" for number in numbers],
            "kind": pd.Categorical.from_codes(numbers % 3, ["a", "b", "c"]),
            "span": pd.to_timedelta(numbers, unit="s").astype("timedelta64[us]"),
        },
        index=pd.RangeIndex(first, first + rows),
    )


def read_by_both(path: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    return numparq.read_parquet(path), pd.read_parquet(path, engine="pyarrow")


@pytest.mark.parametrize("first", ["numparq", "pyarrow"])
def test_rows_are_added(tmp_path: Path, first: str):
    path = tmp_path / "a.parquet"
    if first == "numparq":
        numparq.to_parquet(frame(), path, row_group_size=200, bloom_filter_options={"text": True})
    else:
        frame().to_parquet(path, engine="pyarrow", row_group_size=200)
    with numparq.ParquetFile(path) as file:
        groups = [group.to_dict() for group in file.metadata.row_groups]
    before = path.read_bytes()
    end = len(before) - 8 - int.from_bytes(before[-8:-4], "little")
    for number in (1, 2):
        numparq.to_parquet(frame(500, 500 * number), path, append=True, row_group_size=300)
        assert path.read_bytes()[:end] == before[:end]
    with numparq.ParquetFile(path) as file:
        assert [group.to_dict() for group in file.metadata.row_groups][: len(groups)] == groups
        assert [group.ordinal for group in file.metadata.row_groups][len(groups) :] == list(
            range(len(groups), len(groups) + 4)
        )
    for got in read_by_both(path):
        pd.testing.assert_frame_equal(got, frame(1500))
    assert pq.ParquetFile(path).metadata.row_group(4).column(0).has_column_index
    assert os.listdir(tmp_path) == ["a.parquet"]


def test_writer_appends_several_frames(tmp_path: Path):
    path = tmp_path / "a.parquet"
    numparq.to_parquet(frame(100), path)
    with numparq.ParquetWriter(path, append=True) as writer:
        for first in (100, 200):
            writer.write(frame(100, first))
    for got in read_by_both(path):
        pd.testing.assert_frame_equal(got, frame(300))


def test_append_creates_a_missing_file(tmp_path: Path):
    numparq.to_parquet(frame(), tmp_path / "a.parquet", append=True)
    pd.testing.assert_frame_equal(numparq.read_parquet(tmp_path / "a.parquet"), frame())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda df: df.drop(columns="real"), "real"),
        (lambda df: df.rename(columns={"real": "surreal"}), "real"),
        (lambda df: df.assign(number=df["number"] + 0.5), "number"),
        (lambda df: df.set_index(pd.RangeIndex(5, 5 + 2 * len(df), 2)), "RangeIndex"),
    ],
)
def test_different_schemas_are_refused(tmp_path: Path, change, words: str):
    path = tmp_path / "a.parquet"
    numparq.to_parquet(frame(), path)
    before = path.read_bytes()
    with pytest.raises(SchemaError, match=words):
        numparq.to_parquet(change(frame(500, 500)), path, append=True)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.parquet"]


def test_append_needs_a_local_parquet_file(tmp_path: Path):
    with pytest.raises(ValueError, match="local"):
        numparq.to_parquet(frame(), io.BytesIO(), append=True)
    with pytest.raises(ValueError, match="local"):
        numparq.to_parquet(frame(), "memory://a.parquet", append=True)
    (tmp_path / "a.parquet").write_bytes(b"no parquet file at all")
    with pytest.raises(InvalidFileError):
        numparq.to_parquet(frame(), tmp_path / "a.parquet", append=True)


def test_concurrent_change_is_an_error(tmp_path: Path):
    path = tmp_path / "a.parquet"
    numparq.to_parquet(frame(), path)
    with pytest.raises(OSError, match="changed by another process"), numparq.ParquetWriter(path, append=True) as writer:
        writer.write(frame(500, 500))
        numparq.to_parquet(frame(3), path)
    assert len(numparq.read_parquet(path)) == 3
    assert os.listdir(tmp_path) == ["a.parquet"]


APPEND = """
import sys, numpy as np, pandas as pd, numparq
path, first = sys.argv[1], int(sys.argv[2])
for number in range(first, first + 5):
    numparq.to_parquet(pd.DataFrame({"a": np.full(10, number)}), path, append=True, index=False)
"""


@pytest.mark.slow
def test_concurrent_appends_lose_nothing(tmp_path: Path):
    path = str(tmp_path / "a.parquet")
    numparq.to_parquet(pd.DataFrame({"a": np.full(10, -1)}), path, index=False)
    processes = [subprocess.Popen([sys.executable, "-c", APPEND, path, str(first)]) for first in (0, 100, 200)]
    assert [process.wait(120) for process in processes] == [0, 0, 0]
    expected = sorted([-1, *range(5), *range(100, 105), *range(200, 205)] * 10)
    assert sorted(numparq.read_parquet(path)["a"].tolist()) == expected


KILLED = """
import sys, numpy as np, pandas as pd, numparq
path, append = sys.argv[1], sys.argv[2] == "append"
rows = 200_000
df = pd.DataFrame({"a": np.arange(rows), "b": np.random.default_rng(1).standard_normal(rows)})
numparq.to_parquet(df[:10])  # kernels are loaded
print("ready", flush=True)
while True:
    numparq.to_parquet(df, path, append=append, row_group_size=20_000)
    print("written", flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["write", "append"])
def test_killed_process_leaves_a_complete_file(tmp_path: Path, how: str):
    path = tmp_path / "a.parquet"
    random = np.random.default_rng(5)
    whole = [200_000]
    for _ in range(12):
        numparq.to_parquet(pd.DataFrame({"a": np.arange(200_000), "b": np.zeros(200_000)}), path)
        process = subprocess.Popen([sys.executable, "-c", KILLED, str(path), how], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(random.random() * 0.25)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        got = numparq.read_parquet(path)
        assert len(got) % 200_000 == 0
        assert (got["a"].to_numpy() == np.arange(len(got)) % 200_000).all()
        whole.append(len(got))
    assert len(os.listdir(tmp_path)) <= 1 + 12  # leftovers of killed processes are hidden
    assert all(name == "a.parquet" or name.startswith(".") for name in os.listdir(tmp_path))
