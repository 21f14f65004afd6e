"""Rows joined from several pieces: parts of a chunk, small files, and the rows of a point look-up."""

from __future__ import annotations

import io
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq
from numparq import col
from numparq.util.worker_pool import WorkerPool
from support.row_selection import small_read_sizes

ROWS = 2000
SMALL_PARTS = {"MIN_SHARE_BYTES": 64, "MIN_RUN_BYTES": 128, "BATCH_BYTES": 256}


@pytest.fixture
def reversed_jobs(monkeypatch):
    """Run the jobs of a pool in reverse order; return how many each run has."""
    counts: list[int] = []
    run = WorkerPool.run

    def backwards(pool, jobs):
        counts.append(len(jobs))
        return run(pool, list(jobs)[::-1])

    monkeypatch.setattr(WorkerPool, "run", backwards)
    return counts


@pytest.mark.parametrize("use_dictionary", [False, True])
@pytest.mark.parametrize("name", ["numbers", "text"])
def test_parts_of_a_chunk_in_any_order(reversed_jobs, name, use_dictionary):
    numbers = np.arange(ROWS)
    values = {"numbers": pd.array(numbers % 700, "Int64"), "text": pd.array([f"t{n % 700}" for n in numbers], "str")}
    frame = pd.DataFrame({name: values[name]})
    frame.loc[numbers % 9 == 4, name] = None
    data = numparq.to_parquet(frame, max_rows_per_page=100, use_dictionary=use_dictionary)
    with small_read_sizes(**SMALL_PARTS):
        found = numparq.read_parquet(data, threads=2)
    pd.testing.assert_frame_equal(found, frame)
    assert max(reversed_jobs) > 2


def test_strings_of_small_files_with_and_without_dictionaries(tmp_path):
    """Row groups of one file differ in rows, nulls and dictionaries; only some chunks have one."""
    expected = []
    for number in range(6):
        words = [None if (n + number) % 5 == 3 else f"{number} {n % (3 + number)}" for n in range(10 + number)]
        expected += words
        pq.write_table(
            pa.table({"s": words}), tmp_path / f"{number}.parquet", row_group_size=7, use_dictionary=number % 3 > 0
        )
    found = numparq.read_parquet(tmp_path, dtype_backend="pyarrow")["s"]
    assert found.to_numpy(object, na_value=None).tolist() == expected


def test_point_look_up_of_a_null_key():
    """What lies at nulls in decoded memory is no key: the rows around the key 0 are null."""
    keys = pd.array([-2, -1, None, 0, None, None, 1, 2], "Int64")
    frame = pd.DataFrame({"key": keys, "value": np.arange(len(keys))})
    data = numparq.to_parquet(frame, max_rows_per_page=4)
    with numparq.ParquetFile(data) as file:
        for _ in range(4):  # the first prepares the next ones
            for key, rows in ((0, [3]), (1, [6]), (7, [])):
                assert file.read(filters=col("key") == key)["value"].tolist() == rows


@pytest.mark.parametrize("columns", [["a"], ["c"], ["a", "c"], ["c", "s", "a"]])
def test_chunks_of_row_groups_with_gaps_between(tmp_path, columns):
    """A job reads chunks that are apart in the file one after the other into one buffer."""
    rows = np.arange(200)
    frame = pd.DataFrame(
        {"a": rows, "b": rows / 7, "s": [f"s{n % 9}" for n in rows], "d": rows % 2 == 0, "c": rows * 3}
    )
    numparq.to_parquet(frame, tmp_path / "x.parquet", row_group_size=20)
    pd.testing.assert_frame_equal(numparq.read_parquet(tmp_path / "x.parquet", columns=columns), frame[columns])
    found = numparq.read_parquet(tmp_path / "x.parquet", columns=columns, row_groups=[7, 2, 3])
    order = np.concatenate([rows[140:160], rows[40:80]])
    pd.testing.assert_frame_equal(found, frame[columns].take(order).reset_index(drop=True))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", ["text", "numbers"])
def test_dictionaries_of_row_groups(tmp_path, kind, threads):
    """Neighbours have the same dictionary or another one; some chunks have pages without one."""
    rng, groups = np.random.default_rng(5), []
    value_type = pa.int64() if kind == "numbers" else pa.large_string()
    for number in range(40):
        entries = np.arange(3 + number // 5) * 7 + number // 10
        entries = entries[: 0 if number == 20 else None]
        codes = rng.integers(0, len(entries), 500) if len(entries) else np.full(60, -1)
        codes[number % 3 :: 11] = -1
        labels = entries if kind == "numbers" else [f"entry {entry}" for entry in entries]
        indices = pa.array(codes, "i4", mask=codes < 0)
        made = [pa.DictionaryArray.from_arrays(indices, pa.array(labels, value_type))]
        if number in (11, 12, 30):  # pyarrow writes the values of a chunk's further dictionary
            made.append(pa.DictionaryArray.from_arrays(indices, pa.array(labels[::-1], value_type)))
        groups.append(pa.table({"c": pa.chunked_array(made)}))
    path = tmp_path / "x.parquet"
    some = [2, 1] if kind == "numbers" else ["b", "a"]
    frame = pd.DataFrame({"c": pd.Categorical(some, some)})
    schema = groups[0].schema.with_metadata(pq.read_schema(io.BytesIO(numparq.to_parquet(frame))).metadata)
    with pq.ParquetWriter(path, schema, data_page_size=100) as writer:
        for group in groups:
            writer.write_table(group)
    data = path.read_bytes()
    (writer_name,) = set(re.findall(rb"parquet-cpp-arrow version [0-9.]+", data))
    made_up = b"numparq version 0.1.0 (build ".ljust(len(writer_name) - 1, b"x") + b")"  # its notes restore dtypes
    path.write_bytes(data.replace(writer_name, made_up))
    expected = [value for group in groups for value in group["c"].to_pylist()]
    parts = [numparq.read_parquet(path, row_groups=[number])["c"] for number in range(40)]
    with small_read_sizes(MIN_SHARE_BYTES=4000):
        found = numparq.read_parquet(path, threads=threads)["c"]
        some = numparq.read_parquet(path, threads=threads, row_range=(700, 9000))["c"]
    assert found.isna().sum() == expected.count(None)
    assert [None if value != value else value for value in found.tolist()] == expected
    pd.testing.assert_series_equal(some.astype(object), found.iloc[700:9000].reset_index(drop=True).astype(object))
    categories = dict.fromkeys(value for part in parts for value in part.cat.categories)
    assert found.cat.categories.tolist() == list(categories)


def test_first_dictionary_of_each_small_file(tmp_path):
    """A file's first dictionary has the order of its categories, even where it equals one of the file before."""
    low_high = [pa.array(["lo", "mid", "hi"]), pa.array(["hi", "mid"])]
    for name, dictionaries in (("a", low_high), ("b", low_high[1:])):
        parts = [pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), entries, ordered=True) for entries in dictionaries]
        with pq.ParquetWriter(tmp_path / name, pa.schema({"c": parts[0].type})) as writer:
            for part in parts:
                writer.write_table(pa.table({"c": part}))
    found = numparq.read_parquet([tmp_path / "a", tmp_path / "b"])["c"]
    assert found.tolist() == ["lo", "mid", "lo", "hi", "mid", "hi", "hi", "mid", "hi"]
    assert not found.cat.ordered
    assert numparq.read_parquet(tmp_path / "a")["c"].cat.ordered
