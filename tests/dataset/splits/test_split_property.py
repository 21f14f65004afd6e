"""Property test of splits: concatenated splits of random tables equal one read."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import numparq
from numparq import SchemaError
from numparq.dataset.splits import plan
from numparq.dataset.splits.split import Split
from numparq.dataset.splits.table import split_table
from support.data.split_tables import pick, random_filter, random_table, read_splits, rows_of

VIRTUAL = ("file", "row_group", "row_number")


def split_randomly(rng, folder, dataset, **options):
    """Return a randomly split table, its columns and the options of an equivalent read."""
    names = {*dataset.schema.columns, *dataset.partition_keys}
    read_options = {"filters": random_filter(rng, names), "include": pick(rng, (), VIRTUAL)}
    columns = pick(rng, None, rng.permutation([*names])[: rng.integers(0, len(names) + 1)].tolist())
    splitting = {
        "split_bytes": int(pick(rng, 60, 300, 900, 4000, 1 << 20)),
        "min_splits": int(pick(rng, 1, 2, 9)),
        "plan_files": pick(rng, None, 4096, 0),
    }
    return split_table(str(folder), columns, **read_options, **splitting, **options), columns, read_options


@pytest.mark.quick_cases(3)
@pytest.mark.quick_cases(8)
@pytest.mark.parametrize("seed", range(30))
def test_concatenated_frames_equal_one_read(seed, tmp_path):
    rng = np.random.default_rng(seed)
    random_table(rng, tmp_path)
    with numparq.Dataset(str(tmp_path)) as dataset:
        table, columns, read_options = split_randomly(rng, tmp_path, dataset)
        expected = rows_of(dataset.read(columns, **read_options))
    frames = []
    for split in table.splits:
        reader = pickle.loads(pickle.dumps(table.reader))
        size = pick(rng, None, 9, 40)
        pieces = [reader.frame(split)] if rng.random() < 0.5 else list(reader.frames(split, size))
        assert sum(map(len, pieces)) == reader.count(split)
        frames += pieces
    nothing = table.frame(Split())
    assert [list(frame.columns) for frame in frames] == [table.names] * len(frames)
    assert all(frame.dtypes.equals(nothing.dtypes) for frame in frames)
    got = rows_of(pd.concat([nothing, *frames], ignore_index=True))
    if columns is None:
        assert set(got) == set(expected)  # an index column keeps its position in the files
    assert got == {name: expected[name] for name in table.names}
    assert_disjoint(table.splits)


def assert_disjoint(splits):
    """Check that splits are in order and no row is in two of them."""
    ranges = [(part.file.path, *rows) for split in splits for part in split.parts for rows in part.groups or ()]
    assert all(start < stop for _, _, start, stop in ranges)
    last = {}
    for path, group, start, stop in ranges:
        assert start >= last.get((path, group), 0)
        last[path, group] = stop


@pytest.mark.quick_cases(5)
@pytest.mark.parametrize("seed", range(100, 115))
def test_concatenated_tables_equal_one_read(seed, tmp_path):
    rng = np.random.default_rng(seed)
    random_table(rng, tmp_path)
    with numparq.Dataset(str(tmp_path)) as dataset:
        table, _, read_options = split_randomly(rng, tmp_path, dataset)
        with dataset.iter_batches(
            table.names[: len(table.names) - len(read_options["include"])], dtype_backend="pyarrow", **read_options
        ) as batches:
            expected = batches.reader().read_all()
    reader = pickle.loads(pickle.dumps(table.reader))
    size = pick(rng, None, 9, 40)
    tables = [part for split in [*table.splits, Split()] for part in reader.tables(split, size)]
    assert all(part.schema.equals(reader.arrow_schema, check_metadata=True) for part in tables)
    assert not any(pa.types.is_dictionary(field.type) for field in reader.arrow_schema)
    assert size is None or all(part.num_rows <= size for part in tables)
    got = pa.concat_tables(tables)
    assert got.num_rows == expected.num_rows
    for name in table.names:
        assert got[name].to_pylist() == expected[name].to_pylist()


@pytest.mark.parametrize("seed", range(200, 208))
def test_splits_with_runtime_filters_and_user_schema(seed, tmp_path):
    rng = np.random.default_rng(seed)
    random_table(rng, tmp_path)
    keys = numparq.RuntimeFilter("id", rng.integers(0, 500, 20).tolist(), low=int(rng.integers(0, 200)))
    schema = pa.schema({"id": pa.int64(), "i": pa.int64(), "nowhere": pa.float64(), "s": pa.string()})
    with numparq.Dataset(str(tmp_path), schema=schema) as dataset:
        table, columns, read_options = split_randomly(rng, tmp_path, dataset, runtime_filters=keys, schema=schema)
        expected = rows_of(dataset.read(columns, runtime_filters=keys, **read_options))
    copy = pickle.loads(pickle.dumps(table))
    got = rows_of(pd.concat([copy.frame(split) for split in [*copy.splits, Split()]], ignore_index=True))
    assert got == {name: expected[name] for name in table.names}


@pytest.mark.slow
def test_unsampled_files_read_the_same_or_raise(tmp_path, monkeypatch):
    monkeypatch.setattr(plan, "SAMPLED_FILES", 1)
    same = refused = 0
    for seed in range(300, 325):
        rng = np.random.default_rng(seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        random_table(rng, folder)
        try:
            got = rows_of(
                read_splits(split_table(str(folder), plan_files=0, split_bytes=int(pick(rng, 60, 900, 1 << 20))))
            )
        except SchemaError:
            refused += 1
            continue
        with numparq.Dataset(str(folder)) as dataset:
            assert got == rows_of(dataset.read()), seed
        same += 1
    assert same > 3
    assert refused > 3
